//! Synthetic rates compared with recorded ones.
//!
//! A group of recordings is one kind of network. Every statistic is computed per trace, relative to the trace's own
//! mean rate, and averaged over the group. The synthetic group has as many traces, of the same lengths, because short
//! traces vary less around their own mean and correlate less than long ones; it is generated once per seed.

pub mod fit;
pub mod recorded;
pub mod table;

use crate::statistics::Mean;
use anabranch_network::{RecordedNetwork, Streams, Summary, SyntheticModel};
use anabranch_units::{Bandwidth, Duration};
use rayon::prelude::*;

/// A statistic of a trace: its name, its computation, and the difference that counts as one in the fit.
pub struct Statistic {
    /// Name in the table.
    pub name: &'static str,
    /// Its value; `None` where the trace is too short or has no outage.
    pub of: fn(&Summary) -> Option<f64>,
    /// A noticeable difference.
    pub scale: f64,
}

/// The compared statistics.
pub const STATISTICS: &[Statistic] = &[
    Statistic { name: "coefficient of variation", of: |s| Some(s.variation), scale: 0.05 },
    Statistic { name: "5 % quantile / mean", of: |s| Some(s.quantile_bps(0.05) / s.mean_bps), scale: 0.05 },
    Statistic { name: "25 % quantile / mean", of: |s| Some(s.quantile_bps(0.25) / s.mean_bps), scale: 0.05 },
    Statistic { name: "median / mean", of: |s| Some(s.quantile_bps(0.5) / s.mean_bps), scale: 0.05 },
    Statistic { name: "75 % quantile / mean", of: |s| Some(s.quantile_bps(0.75) / s.mean_bps), scale: 0.05 },
    Statistic { name: "95 % quantile / mean", of: |s| Some(s.quantile_bps(0.95) / s.mean_bps), scale: 0.1 },
    Statistic { name: "autocorrelation at 1 s", of: |s| s.autocorrelation(1), scale: 0.05 },
    Statistic { name: "autocorrelation at 5 s", of: |s| s.autocorrelation(5), scale: 0.05 },
    Statistic { name: "autocorrelation at 20 s", of: |s| s.autocorrelation(20), scale: 0.05 },
    Statistic { name: "outage share", of: |s| Some(s.outage_share), scale: 0.02 },
    Statistic { name: "outages per minute", of: |s| Some(outages_per_minute(s)), scale: 0.3 },
    Statistic { name: "mean outage (s)", of: mean_outage, scale: 2.0 },
];

fn outages_per_minute(s: &Summary) -> f64 {
    60.0 * s.outages as f64 / s.samples_bps.len() as f64
}

fn mean_outage(s: &Summary) -> Option<f64> {
    (s.outages > 0).then(|| s.outage_share * s.samples_bps.len() as f64 / s.outages as f64)
}

/// The values of a statistic over a group of traces, without those that have none.
pub fn values(group: &[Summary], statistic: &Statistic) -> Vec<f64> {
    group.iter().filter_map(statistic.of).collect()
}

/// The mean of each statistic over a group; NaN where no trace has a value.
pub fn means(group: &[Summary]) -> Vec<f64> {
    let mean = |statistic| match values(group, statistic) {
        none if none.is_empty() => f64::NAN,
        some => Mean::of(&some).mean,
    };
    STATISTICS.iter().map(mean).collect()
}

fn summary(recording: &RecordedNetwork) -> Summary {
    Summary::of(recording).expect("recordings last for minutes")
}

/// The statistics of recordings.
pub fn summaries(recordings: &[RecordedNetwork]) -> Vec<Summary> {
    recordings.iter().map(summary).collect()
}

/// A synthetic group with traces of the lengths of the real ones.
pub fn synthetic_group(model: &SyntheticModel, like: &[Summary], seed: u64) -> Vec<Summary> {
    let made = |(index, real): (usize, &Summary)| {
        // So high that rounding to bits per second does not matter; everything is relative to it.
        let mean = Bandwidth::from_mbps(100);
        let period = Duration::from_secs(real.samples_bps.len() as u64);
        let streams = Streams::new(seed, format!("trace/{index}"));
        summary(&model.recording(mean, period, &streams).expect("the parameters are possible"))
    };
    like.par_iter().enumerate().map(made).collect()
}
