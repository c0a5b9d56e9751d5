//! The parts of the campaign, their quantities and their tolerances.

use serde::{Deserialize, Serialize};

/// The part of a test case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    /// (a) Bulk over one path.
    OnePath,
    /// (b) Bulk over several paths.
    SeveralPaths,
    /// (c) Bulk from our server.
    OurServer,
    /// (d) DASH.
    Dash,
    /// (e) A cut path.
    Handoff,
    /// (f) On-off traffic.
    OnOff,
    /// (g) Bulk with the coupled controls that `anabranch kernel attach` brings into the kernel.
    Coupled,
}

impl Part {
    /// Every part that a kernel can be compared in as it is: all but [`Part::Coupled`].
    pub const ALL: [Part; 6] =
        [Part::OnePath, Part::SeveralPaths, Part::OurServer, Part::Dash, Part::Handoff, Part::OnOff];

    /// The part with that letter, [`Part::Coupled`] included.
    pub fn find(letter: &str) -> Option<Self> {
        Part::ALL.into_iter().chain([Part::Coupled]).find(|part| part.letter() == letter)
    }

    /// Letter on the command line.
    pub fn letter(self) -> &'static str {
        match self {
            Part::OnePath => "a",
            Part::SeveralPaths => "b",
            Part::OurServer => "c",
            Part::Dash => "d",
            Part::Handoff => "e",
            Part::OnOff => "f",
            Part::Coupled => "g",
        }
    }

    /// Short description.
    pub fn title(self) -> &'static str {
        match self {
            Part::OnePath => "bulk over one path, kernel TCP to kernel TCP",
            Part::SeveralPaths => "bulk over several paths, kernel MPTCP to kernel MPTCP",
            Part::OurServer => "bulk, our server to the kernel's MPTCP",
            Part::Dash => "DASH, our player on a kernel's socket and the real dash.js",
            Part::Handoff => "a path cut and restored, kernel MPTCP to kernel MPTCP",
            Part::OnOff => "a chunk a second, kernel to kernel",
            Part::Coupled => "bulk with coupled controls by BPF, kernel MPTCP to kernel MPTCP",
        }
    }
}

/// Quantity that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Goodput in bit/s.
    Goodput,
    /// Retransmitted segments.
    Retransmissions,
    /// The median download time of a chunk, in seconds.
    ChunkTime,
    /// The 90th percentile of these.
    #[serde(rename = "chunk-time-p90")]
    ChunkTimeP90,
    /// The share of the first path in the payload that the server sent, retransmissions included.
    FirstShare,
    /// The share of the session that received least, where there are several.
    SmallestShare,
    /// Mean bitrate in bit/s.
    MeanBitrate,
    /// Number of changes of the representation.
    Switches,
    /// Number of stalls.
    Stalls,
}

impl Quantity {
    /// Its key in an [`Measurement`](crate::measurement::Measurement).
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Goodput => "goodput_bps",
            Quantity::Retransmissions => "retransmissions",
            Quantity::ChunkTime => "chunk_s",
            Quantity::ChunkTimeP90 => "chunk_p90_s",
            Quantity::FirstShare => "first_share",
            Quantity::SmallestShare => "smallest_share",
            Quantity::MeanBitrate => "mean_bitrate_bps",
            Quantity::Switches => "switches",
            Quantity::Stalls => "stalls",
        }
    }
}

/// What has to agree, and how well: within a share, or within a number, if both are given.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Criterion {
    /// The quantity.
    pub quantity: Quantity,
    /// Tolerance as a share, up or down.
    pub share: Option<f64>,
    /// Tolerance as a number, up or down.
    pub number: Option<f64>,
}

const fn within(quantity: Quantity, share: Option<f64>, number: Option<f64>) -> Criterion {
    Criterion { quantity, share, number }
}

/// Tolerance of the goodput of (a) in 9 of 10 test cases.
pub const USUAL_GOODPUT: f64 = 0.05;
/// Criteria of every test case of (a).
pub(crate) const ONE_PATH: &[Criterion] =
    &[within(Quantity::Goodput, Some(0.15), None), within(Quantity::Retransmissions, Some(0.25), Some(20.0))];
/// Criteria of (b), (c) and (e).
pub(crate) const GOODPUT: &[Criterion] = &[within(Quantity::Goodput, Some(0.10), None)];
/// Criteria of (g).
pub(crate) const COUPLED: &[Criterion] =
    &[within(Quantity::Goodput, Some(0.10), None), within(Quantity::FirstShare, None, Some(0.05))];
/// Criteria of (f).
pub(crate) const CHUNKS: &[Criterion] = &[within(Quantity::ChunkTime, Some(0.10), None)];
/// Criteria of the test cases of (a) with two sessions on one link.
pub(crate) const SHARED_LINK: &[Criterion] = &[
    within(Quantity::Goodput, Some(0.05), None),
    within(Quantity::Retransmissions, Some(0.25), Some(20.0)),
    within(Quantity::SmallestShare, None, Some(0.05)),
];
/// Criteria of the test cases of (a) with a control by rate.
pub(crate) const RATE_BASED: &[Criterion] =
    &[within(Quantity::Goodput, Some(0.05), None), within(Quantity::Retransmissions, Some(0.25), Some(20.0))];
/// Criteria of the test cases of (b) with unlike paths, or with a control by rate.
pub(crate) const UNLIKE_PATHS: &[Criterion] = &[
    within(Quantity::Goodput, Some(0.05), None),
    within(Quantity::Retransmissions, Some(0.25), Some(20.0)),
    within(Quantity::FirstShare, None, Some(0.05)),
];
/// Criteria of the test cases of (f) with unlike paths, or with a control by rate.
pub(crate) const CHUNKS_OVER_UNLIKE_PATHS: &[Criterion] =
    &[within(Quantity::ChunkTime, Some(0.10), None), within(Quantity::ChunkTimeP90, Some(0.10), None)];
/// Criteria of (d).
pub(crate) const DASH: &[Criterion] = &[
    within(Quantity::MeanBitrate, Some(0.10), None),
    within(Quantity::Switches, Some(0.25), Some(5.0)),
    within(Quantity::Stalls, None, Some(1.0)),
];
