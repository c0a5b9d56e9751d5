//! A recorded network, and the kinds of files that hold one.

use super::{OPPORTUNITY_BYTES, Opportunities, RateAndLatency, Steps, TraceError};
use anabranch_units::{Bandwidth, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// Times in milliseconds at which 1500 bytes can be sent.
    Mahimahi,
    /// Time and rate per line.
    Columns,
    /// A JSON list of periods with rate and latency.
    Json,
}

impl TraceKind {
    /// Every kind with its name.
    pub const NAMES: [(&'static str, TraceKind); 3] =
        [("mahimahi", TraceKind::Mahimahi), ("columns", TraceKind::Columns), ("json", TraceKind::Json)];

    /// Name in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        TraceKind::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The format given by a file name's ending, if known. Mahimahi's traces end with the direction that they were
    /// recorded in.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_lowercase().as_str() {
            "csv" | "tsv" | "txt" => Some(TraceKind::Columns),
            "json" => Some(TraceKind::Json),
            "up" | "down" | "mahimahi" => Some(TraceKind::Mahimahi),
            _ => None,
        }
    }
}

/// A recorded rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedRate {
    /// Constant in steps.
    Table(Steps<Bandwidth>),
    /// Times at which a packet can be sent.
    Opportunities(Opportunities),
}

/// A recorded network: the rate and perhaps the latency over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedNetwork {
    /// The rate over time.
    pub rate: RecordedRate,
    /// The latency over time, if it was recorded.
    pub latency: Option<Steps<Duration>>,
}

impl RecordedNetwork {
    /// Length of the recording.
    pub fn period(&self) -> Duration {
        match &self.rate {
            RecordedRate::Table(steps) => steps.period(),
            RecordedRate::Opportunities(trace) => trace.period(),
        }
    }

    /// The recording from `offset` on; after its end its beginning follows, unless it holds its last value.
    pub fn shifted(&self, offset: Duration) -> Self {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.shifted(offset)),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.shifted(offset)),
        };
        RecordedNetwork { rate, latency: self.latency.as_ref().map(|latency| latency.shifted(offset)) }
    }

    /// The first part of this length; beyond the end, its continuation.
    ///
    /// Errors: a part of length zero or without a packet, or too large a one.
    pub fn lasting(&self, length: Duration) -> Result<Self, TraceError> {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.lasting(length)?),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.lasting(length)?),
        };
        let latency = self.latency.as_ref().map(|latency| latency.lasting(length)).transpose()?;
        Ok(RecordedNetwork { rate, latency })
    }

    /// The mean rate over one pass.
    pub fn mean_rate(&self) -> Bandwidth {
        match &self.rate {
            RecordedRate::Table(steps) => steps.mean_rate(),
            RecordedRate::Opportunities(trace) => trace.mean_rate(),
        }
    }

    /// When a packet of 1500 bytes has passed for the first time, from the beginning on; `None` if none ever does.
    pub fn first_packet_after(&self) -> Option<Duration> {
        match &self.rate {
            RecordedRate::Table(steps) => steps.moved_after(u64::from(OPPORTUNITY_BYTES) * 8),
            RecordedRate::Opportunities(trace) => trace.times().first().copied().map(Duration::from_nanos),
        }
    }

    /// The rate times a factor.
    ///
    /// Errors: of Mahimahi's opportunities, none or too many are left.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        let rate = match &self.rate {
            RecordedRate::Table(steps) => RecordedRate::Table(steps.map(|rate| rate.mul_f64(factor))),
            RecordedRate::Opportunities(trace) => RecordedRate::Opportunities(trace.scaled(factor)?),
        };
        Ok(RecordedNetwork { rate, latency: self.latency.clone() })
    }
}

impl From<Opportunities> for RecordedNetwork {
    fn from(trace: Opportunities) -> Self {
        RecordedNetwork { rate: RecordedRate::Opportunities(trace), latency: None }
    }
}

impl From<RateAndLatency> for RecordedNetwork {
    fn from(trace: RateAndLatency) -> Self {
        RecordedNetwork { rate: RecordedRate::Table(trace.rate), latency: trace.latency }
    }
}
