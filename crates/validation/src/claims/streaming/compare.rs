//! Comparisons of conditions. *Higher*, *lower*: the 95 % interval of the mean of the differences, taken seed by seed,
//! lies above or below zero.

use super::seen::Seen;
use super::study::Study;
use crate::claims::verdict::{Finding, Outcome};
use crate::statistics::Mean;

/// A quantity of a session, with the unit of sentences.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub name: &'static str,
    pub unit: &'static str,
    pub of: fn(&Seen) -> f64,
}

pub(super) const HIGH_QUALITY: Metric = Metric { name: "high quality", unit: "%", of: |s| s.high_quality * 100.0 };
pub(super) const BITRATE: Metric = Metric { name: "bitrate", unit: "kb/s", of: |s| s.bitrate_bps / 1e3 };
pub(super) const USED_BITRATE: Metric =
    Metric { name: "mean of used bitrates", unit: "kb/s", of: |s| s.used_bitrate_bps / 1e3 };
pub(super) const SWITCHES: Metric = Metric { name: "switches", unit: "", of: |s| s.switches };
pub(super) const IMPACTFUL: Metric = Metric { name: "impactful switches", unit: "", of: |s| s.impactful };
pub(super) const STARTUP: Metric = Metric { name: "start-up", unit: "s", of: |s| s.startup_s };
pub(super) const STALLS: Metric = Metric { name: "stalls", unit: "", of: |s| s.stalls };
pub(super) const BUFFER_DEVIATION: Metric =
    Metric { name: "deviation of the buffer", unit: "s", of: |s| s.buffer_deviation_s };
pub(super) const DELAY: Metric = Metric { name: "segment delay", unit: "s", of: |s| s.delay_s };
pub(super) const DELAY_P90: Metric =
    Metric { name: "90th percentile of the segment delay", unit: "s", of: |s| s.delay_p90_s };
pub(super) const SPEED: Metric = Metric { name: "segment speed", unit: "kb/s", of: |s| s.speed_bps / 1e3 };
pub(super) const REORDER: Metric = Metric { name: "wait for earlier bytes", unit: "ms", of: |s| s.reorder_s * 1e3 };
pub(super) const VARIATION: Metric =
    Metric { name: "variation of the total window", unit: "", of: |s| s.window_variation };
pub(super) const SECOND_CHOICE: Metric =
    Metric { name: "next choice", unit: "kb/s", of: |s| s.second_choice_bps / 1e3 };

/// A measured value, beside the paper's where it gives one.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// The claim that it belongs to.
    pub claim: &'static str,
    /// What it is, with its unit.
    pub what: String,
    /// The paper's value; empty where only a figure shows it.
    pub paper: &'static str,
    /// Ours.
    pub ours: Mean,
}

impl Metric {
    pub fn mean(&self, study: &Study, condition: &str) -> Mean {
        study.mean(condition, self.of)
    }

    /// A value to be shown, with the paper's.
    pub fn quantity(&self, study: &Study, claim: &'static str, condition: &str, paper: &'static str) -> Quantity {
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let what = format!("{condition}: {}{unit}", self.name);
        Quantity { claim, what, paper, ours: self.mean(study, condition) }
    }

    fn spaced_unit(&self) -> String {
        if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) }
    }

    /// The mean in words.
    pub fn words(&self, condition: &str, mean: &Mean) -> String {
        format!("{condition}: {} {}{}", self.name, digits(mean), self.spaced_unit())
    }
}

/// A mean with its interval, and as many digits as the interval deserves.
pub(super) fn digits(mean: &Mean) -> String {
    let places = match mean.half.max(mean.mean.abs() / 1e3) {
        h if h >= 10.0 => 0,
        h if h >= 1.0 => 1,
        h if h >= 0.1 => 2,
        _ => 3,
    };
    format!("{:.places$} ± {:.places$}", mean.mean, mean.half)
}

fn difference(study: &Study, a: &str, b: &str, metric: Metric) -> (Mean, String) {
    let d = study.difference(a, b, metric.of);
    (d, format!("{}, {a} − {b}: {}{}", metric.name, digits(&d), metric.spaced_unit()))
}

/// A is lower than B.
pub(super) fn lower(study: &Study, a: &str, b: &str, metric: Metric) -> Finding {
    let (d, text) = difference(study, a, b, metric);
    Finding::new(text, Outcome::below(&d, 0.0))
}

/// A is higher than B.
pub(super) fn higher(study: &Study, a: &str, b: &str, metric: Metric) -> Finding {
    let (d, text) = difference(study, a, b, metric);
    Finding::new(text, Outcome::above(&d, 0.0))
}

/// A condition's mean lies above a mark, for certain.
pub(super) fn above(study: &Study, condition: &str, metric: Metric, mark: f64) -> Finding {
    let mean = metric.mean(study, condition);
    Finding::new(format!("{}, mark {mark}", metric.words(condition, &mean)), Outcome::above(&mean, mark))
}

/// A condition's mean lies below a mark, for certain.
pub(super) fn below(study: &Study, condition: &str, metric: Metric, mark: f64) -> Finding {
    let mean = metric.mean(study, condition);
    Finding::new(format!("{}, mark {mark}", metric.words(condition, &mean)), Outcome::below(&mean, mark))
}

/// A condition's mean lies within a distance of the paper's value.
pub(super) fn near(study: &Study, condition: &str, metric: Metric, paper: f64, distance: f64) -> Finding {
    let mean = metric.mean(study, condition);
    let text = format!("{}, paper {paper}", metric.words(condition, &mean));
    Finding::new(text, (mean.mean - paper).abs() <= distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_interval() {
        let of = |mean, half| digits(&Mean { mean, half, count: 10 });
        assert_eq!(of(1234.56, 12.3), "1235 ± 12");
        assert_eq!(of(64.94, 1.23), "64.9 ± 1.2");
        assert_eq!(of(0.812, 0.004), "0.812 ± 0.004");
    }
}
