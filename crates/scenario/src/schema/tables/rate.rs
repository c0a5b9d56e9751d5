//! `rate`: a constant, a token bucket, a recorded trace, or a synthetic rate.

use super::offset::Offset;
use anabranch_network::{
    AtEnd, ColumnName, ConstantConfig, Gap, RateConfig, RateUnit, Steps, SyntheticConfig, TimeUnit, TokenBucketConfig,
    TraceKind,
};
use anabranch_registry::by_kind;
use anabranch_units::{Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

by_kind! {
    /// How fast a direction sends. The kind follows from the other keys where it is not written.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Rate: "kind of rate" {
        /// Always the same.
        "constant" => Constant(ConstantConfig),
        /// A shaper that lets bursts pass.
        "token-bucket" => TokenBucket(TokenBucketConfig),
        /// As recorded.
        "trace" => Trace(Trace),
        /// Synthetic, with the statistics of recorded rates.
        "synthetic" => Synthetic(SyntheticConfig),
    }
}

/// A recording that a direction follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// The file, relative to the scenario's.
    pub trace: String,
    /// `mahimahi`, `columns` or `json`; recognised from the file where absent.
    pub format: Option<TraceKind>,
    /// The unit of a table's rates, such as `Mb/s`, `MB/s`, `KiB/s` or `B per interval`. Required unless the column's
    /// heading has it, such as `wifi_mbps` or `Throughput (Mbit/s)`.
    pub unit: Option<RateUnit>,
    /// The column of a table that holds the rates: its heading, or its number counted from 0. Where absent, the only
    /// one whose heading says so; in a table without a heading, the second of two.
    pub rate_column: Option<ColumnName>,
    /// The column of a table that holds the times: its heading, or its number counted from 0. Where absent, the only
    /// one whose heading says so; in a table without a heading, the first.
    pub time_column: Option<ColumnName>,
    /// The unit of a table's times: `s`, `ms`, `us` or `ns`. Where absent, the heading's, and else seconds.
    pub time_unit: Option<TimeUnit>,
    /// The length of each row of a table, where it has no times.
    pub interval: Option<Duration>,
    /// What happens in a gap of a table, a step more than ten times as long as the usual one: `hold` (the rate holds),
    /// `zero` (after a usual step the rate is zero) or `error`. Where absent the rate holds, and a warning says so.
    pub gap: Option<Gap>,
    /// The former name of `rate_column`, for numbers only.
    #[serde(default, deserialize_with = "text::whole_option::<1, 999, _, _>")]
    #[schemars(range(min = 1, max = 999))]
    pub column: Option<usize>,
    /// What follows the end of the recording: `loop` (it repeats) or `hold` (the last rate stays).
    #[serde(default)]
    pub at_end: AtEnd,
    /// Where in the recording the trace begins; the scenario's `trace_offset` where absent. With `at_end = "loop"` the
    /// beginning of the recording follows its end. `random` draws the offset from the run's seed, separately for each
    /// link.
    pub offset: Option<Offset>,
    /// How much of the recording is used, from the offset on; all of it where absent. Two traces that were recorded
    /// together and differ in length stay aligned if both have the same duration. With a random offset only the first
    /// part of the recording, of this length, is used, and the trace begins anywhere in it.
    pub duration: Option<Duration>,
    /// The factor by which the recorded rates are multiplied.
    #[serde(default = "unscaled", deserialize_with = "text::number::<0, 1000000, _>")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub scale: f64,
    /// How a recorded latency is used: `ignore`, `round-trip` (half of it is added to the delay of each direction that
    /// follows the trace) or `one-way` (all of it is added).
    #[serde(default)]
    pub latency: LatencyUse,
    /// The recording, once the file was read.
    #[serde(skip)]
    pub(in super::super) recorded: Option<Recorded>,
}

fn unscaled() -> f64 {
    1.0
}

/// What a trace's file holds, from its offset on.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Recorded {
    /// The file as it was read.
    pub content: Arc<[u8]>,
    /// How long it is until it repeats.
    pub period: Duration,
    /// When the first packet has passed, if one ever does.
    pub first_packet: Option<Duration>,
    pub rate: RateConfig,
    /// What the latency adds to the delay over time.
    pub delay: Option<Steps<Duration>>,
}

/// What is done with a recorded latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyUse {
    /// Nothing.
    #[default]
    Ignore,
    /// Half of it is the delay of each direction.
    RoundTrip,
    /// It is the delay of each direction.
    OneWay,
}

impl Rate {
    /// As the network takes it.
    ///
    /// # Panics
    /// If it is a trace whose file was not read.
    pub fn config(&self) -> RateConfig {
        match self {
            Rate::Constant(constant) => RateConfig::Constant(*constant),
            Rate::TokenBucket(bucket) => RateConfig::TokenBucket(*bucket),
            Rate::Trace(trace) => trace.recorded.as_ref().expect("the trace was read").rate.clone(),
            Rate::Synthetic(synthetic) => RateConfig::Synthetic(synthetic.clone()),
        }
    }

    /// Whether nothing ever passes. Not of a trace whose file was not read.
    pub(in super::super) fn is_zero(&self) -> bool {
        match self {
            Rate::Constant(ConstantConfig { rate }) | Rate::TokenBucket(TokenBucketConfig { rate, .. }) => {
                rate.as_bps() == 0
            }
            Rate::Synthetic(synthetic) => synthetic.mean.as_bps() == 0,
            Rate::Trace(trace) => match trace.recorded.as_ref().map(|recorded| &recorded.rate) {
                Some(RateConfig::Table(steps)) => steps.iter().all(|(_, rate)| rate.as_bps() == 0),
                _ => false,
            },
        }
    }

    /// The recorded delay over time, if there is one and it is to be used, on top of a constant one.
    pub(super) fn delay(&self, constant: Duration) -> Option<Steps<Duration>> {
        let Rate::Trace(trace) = self else { return None };
        let recorded = trace.recorded.as_ref()?.delay.as_ref();
        recorded.map(|recorded| recorded.map(|delay| delay + constant))
    }
}

impl Trace {
    /// Whether its beginning is drawn from the seed; `shared`: that of traces without an offset is.
    pub(crate) fn begins_anywhere(&self, shared: bool) -> bool {
        self.offset.map_or(shared, |offset| offset == Offset::Random)
    }

    /// Begins at this part of the recording, in units of 2^-64 of it.
    ///
    /// # Panics
    /// If its file was not read.
    pub(crate) fn begin_at(&mut self, part: u64) {
        let recorded = self.recorded.as_mut().expect("the trace was read");
        let skipped = (u128::from(part) * u128::from(recorded.period.as_nanos())) >> 64;
        recorded.shift(Duration::from_nanos(skipped as u64));
    }

    /// When the first packet passes, if one ever does; `None` where the beginning is yet to be drawn, or the file to be
    /// read.
    pub(in super::super) fn first_packet(&self, shared: bool) -> Option<Option<Duration>> {
        let recorded = self.recorded.as_ref().filter(|_| !self.begins_anywhere(shared))?;
        Some(recorded.first_packet)
    }

    /// The file as it was read.
    pub(crate) fn content(&self) -> Option<Arc<[u8]>> {
        self.recorded.as_ref().map(|recorded| recorded.content.clone())
    }
}

impl Recorded {
    fn shift(&mut self, offset: Duration) {
        self.rate = match &self.rate {
            RateConfig::Table(steps) => RateConfig::Table(Arc::new(steps.shifted(offset))),
            RateConfig::Opportunities(trace) => RateConfig::Opportunities(Arc::new(trace.shifted(offset))),
            other => other.clone(),
        };
        self.delay = self.delay.as_ref().map(|delay| delay.shifted(offset));
    }
}
