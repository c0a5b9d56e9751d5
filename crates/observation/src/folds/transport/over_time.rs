//! Quantities over time.

use anabranch_units::{Duration, Instant};

/// The mean of a quantity that keeps its value until it is set again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanOverTime {
    present: Option<(Instant, f64)>,
    /// The first value, for a subflow whose samples span no time.
    first: Option<f64>,
    integral: f64,
    time: Duration,
}

impl MeanOverTime {
    /// Sets it; none: it has no value any more.
    pub fn set(&mut self, at: Instant, value: Option<f64>) {
        if let Some((since, present)) = self.present {
            self.integral += present * at.since(since).as_secs_f64();
            self.time += at.since(since);
        }
        self.first = self.first.or(value);
        self.present = value.map(|v| (at, v));
    }

    /// What it is now.
    pub fn present(&self) -> Option<f64> {
        self.present.map(|(_, value)| value)
    }

    pub fn mean(&self) -> Option<f64> {
        if self.time.is_zero() { self.first } else { Some(self.integral / self.time.as_secs_f64()) }
    }
}

/// Sums up the time in which something holds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    total: Duration,
    running_since: Option<Instant>,
}

impl Stopwatch {
    pub fn turn(&mut self, on: bool, at: Instant) {
        self.total = self.total(at);
        self.running_since = on.then_some(at);
    }

    pub fn total(&self, at: Instant) -> Duration {
        self.total + self.running_since.map_or(Duration::ZERO, |since| at.since(since))
    }
}

/// Mean and variation of a quantity that keeps its value until it is set again, within an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fluctuation {
    from: Instant,
    to: Instant,
    present: Option<(Instant, f64)>,
    /// Integrals of the value and of its square, and the time that they cover, s.
    integral: f64,
    square: f64,
    time: f64,
}

impl Fluctuation {
    /// Only what happens from `from` on and before `to` counts.
    pub fn within(from: Instant, to: Instant) -> Self {
        Fluctuation { from, to, present: None, integral: 0.0, square: 0.0, time: 0.0 }
    }

    /// Sets it; none: it has no value any more.
    pub fn set(&mut self, at: Instant, value: Option<f64>) {
        if let Some((since, present)) = self.present {
            let seconds = at.min(self.to).since(since.max(self.from)).as_secs_f64();
            self.integral += present * seconds;
            self.square += present * present * seconds;
            self.time += seconds;
        }
        self.present = value.map(|v| (at, v));
    }

    /// The mean, and the standard deviation over the mean; none without any time or with a mean of zero.
    pub fn mean_and_variation(&self) -> Option<(f64, f64)> {
        let mean = self.integral / self.time;
        let variance = (self.square / self.time - mean * mean).max(0.0);
        (self.time > 0.0 && mean > 0.0).then(|| (mean, variance.sqrt() / mean))
    }
}
