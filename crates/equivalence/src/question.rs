//! What is asked of the two worlds: the parts of the campaign, what is compared, and how well it has to agree.

use serde::{Deserialize, Serialize};

/// Which question a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    /// (a)
    OnePath,
    /// (b)
    TwoPaths,
    /// (c)
    OurServer,
    /// (d)
    Dash,
    /// (e)
    Handoff,
    /// (f)
    OnOff,
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 6] = [Part::OnePath, Part::TwoPaths, Part::OurServer, Part::Dash, Part::Handoff, Part::OnOff];

    /// Its letter on the command line.
    pub fn letter(self) -> &'static str {
        match self {
            Part::OnePath => "a",
            Part::TwoPaths => "b",
            Part::OurServer => "c",
            Part::Dash => "d",
            Part::Handoff => "e",
            Part::OnOff => "f",
        }
    }

    /// What it compares, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Part::OnePath => "bulk over one path, kernel TCP to kernel TCP",
            Part::TwoPaths => "bulk over two paths, kernel MPTCP to kernel MPTCP",
            Part::OurServer => "bulk, our server to the kernel's MPTCP",
            Part::Dash => "DASH, our player on a kernel's socket and the real dash.js",
            Part::Handoff => "a path cut and restored, kernel MPTCP to kernel MPTCP",
            Part::OnOff => "a chunk a second, kernel to kernel",
        }
    }
}

/// What can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// In bits per second.
    Goodput,
    /// In segments.
    Retransmissions,
    /// The median download time of a chunk, in seconds.
    ChunkTime,
    /// In bits per second.
    MeanBitrate,
    /// How often the representation changed.
    Switches,
    /// How often the picture froze.
    Stalls,
}

impl Quantity {
    /// Its key in an [`Observation`](crate::observation::Observation).
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Goodput => "goodput_bps",
            Quantity::Retransmissions => "retransmissions",
            Quantity::ChunkTime => "chunk_s",
            Quantity::MeanBitrate => "mean_bitrate_bps",
            Quantity::Switches => "switches",
            Quantity::Stalls => "stalls",
        }
    }
}

/// What has to agree, and how well: within a share, or within a number, if both are given.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Criterion {
    /// What.
    pub quantity: Quantity,
    /// A share, up or down.
    pub share: Option<f64>,
    /// A number, up or down.
    pub number: Option<f64>,
}

const fn within(quantity: Quantity, share: Option<f64>, number: Option<f64>) -> Criterion {
    Criterion { quantity, share, number }
}

/// Goodput of (a) in 9 of 10 cells.
pub const USUAL_GOODPUT: f64 = 0.05;
/// What every cell of (a) must keep.
pub(crate) const ONE_PATH: &[Criterion] =
    &[within(Quantity::Goodput, Some(0.15), None), within(Quantity::Retransmissions, Some(0.25), Some(20.0))];
/// Of (b), (c) and (e).
pub(crate) const GOODPUT: &[Criterion] = &[within(Quantity::Goodput, Some(0.10), None)];
/// Of (f).
pub(crate) const CHUNKS: &[Criterion] = &[within(Quantity::ChunkTime, Some(0.10), None)];
/// Of (d).
pub(crate) const DASH: &[Criterion] = &[
    within(Quantity::MeanBitrate, Some(0.10), None),
    within(Quantity::Switches, Some(0.25), Some(5.0)),
    within(Quantity::Stalls, None, Some(1.0)),
];
