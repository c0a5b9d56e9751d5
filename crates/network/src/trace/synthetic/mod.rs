//! Synthetic rates with the statistics of recordings of WiFi and of mobile networks.
//!
//! The quality of a radio link varies (shadowing decorrelates exponentially over distance: Gudmundson, Electronics
//! Letters 27(23), 1991), and the rate follows it between zero and the rate of the fastest modulation; other users and
//! the scheduler add variation from second to second; at times there is no service. In steps of one second:
//!
//! ```text
//! z_0 ~ N(0, 1),  z_(k+1) = a z_k + sqrt(1 - a^2) N(0, 1),  a = exp(-1 s / correlation_time)      (an Ornstein-Uhlenbeck process)
//! y_k = 1 / (1 + exp(-(headroom + spread z_k)))                   (share of the fastest modulation; a logit-normal marginal)
//! n_k = exp(noise N(0, 1) - noise^2 / 2)                                                           (mean 1, independent)
//! u_k = 0 in an outage, else 1: a Markov chain, P(1 -> 0) = 1 - exp(-1 s / between_outages), P(0 -> 1) = 1 - exp(-1 s / outage)
//! rate_k = mean y_k n_k u_k / (E[y] E[u]),   E[u] = P(0 -> 1) / (P(0 -> 1) + P(1 -> 0))
//! ```
//!
//! A low headroom makes y nearly log-normal, a high one a plateau with fades. Without outages the autocorrelation of the rate
//! falls at lag zero by what the noise contributes, and then about exponentially with the correlation time. The chain
//! starts in its stationary distribution. After `period` the rate begins again, as a recording does. The fitted
//! parameters and the quality of the fit are in docs/validation/traces.md.

mod kinds;

pub use kinds::{SYNTHETIC_KINDS, SyntheticEntry};

use super::{AtEnd, Steps, TraceError};
use crate::draws::{Probability, Streams};
use crate::jitter::normal;
use anabranch_units::{Bandwidth, Duration};

/// The model's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SyntheticModel {
    /// The logit of the typical share of the fastest modulation: 0 is half of it.
    pub headroom: f64,
    /// The standard deviation of that logit.
    pub spread: f64,
    /// The time after which the quality's correlation has fallen to 1/e.
    pub correlation_time: Duration,
    /// The standard deviation of the logarithm of the variation from second to second.
    pub noise: f64,
    /// The mean time from an outage's end to the next one's beginning.
    pub between_outages: Duration,
    /// The mean length of an outage; zero: there are none.
    pub outage: Duration,
}

/// Configuration of a synthetic rate.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticConfig {
    /// The model of its variation.
    pub model: SyntheticModel,
    /// Its mean in the long run. The mean of a realisation differs from it.
    pub mean: Bandwidth,
    /// The time after which it repeats, in whole seconds.
    pub period: Duration,
    /// The name of the realisation: the same name in a run with the same seed gives the same rates. Both directions
    /// of a link should have the same, because they are one radio.
    pub stream: String,
    /// Seed in place of the run's.
    pub seed: Option<u64>,
}

const STEP: Duration = Duration::from_secs(1);

/// Above this, logarithms of rates vary by factors of 10^20.
const MOST_SPREAD: f64 = 50.0;

/// A week: a table of more steps would only fill the memory.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

impl SyntheticModel {
    /// Which parameter is impossible, and why.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if !(-MOST_SPREAD..=MOST_SPREAD).contains(&self.headroom) {
            return Err(("headroom", "is not a number from -50 to 50"));
        }
        if !(0.0..=MOST_SPREAD).contains(&self.spread) {
            return Err(("spread", "is not a number from 0 to 50"));
        }
        if !(0.0..=3.0).contains(&self.noise) {
            return Err(("noise", "is not a number from 0 to 3"));
        }
        if self.between_outages.is_zero() {
            return Err(("between_outages", "is zero, so that there is nothing but outages"));
        }
        Ok(())
    }

    /// The probabilities of an outage's beginning and end within a step.
    fn transitions(&self) -> [f64; 2] {
        if self.outage.is_zero() {
            return [0.0, 1.0];
        }
        let within_step = |mean: Duration| 1.0 - libm::exp(-STEP.as_secs_f64() / mean.as_secs_f64());
        [within_step(self.between_outages), within_step(self.outage)]
    }

    /// The share of time with service, 0 to 1.
    pub fn service(&self) -> f64 {
        let [begin, end] = self.transitions();
        end / (begin + end)
    }

    /// The share of the fastest modulation at this quality.
    fn modulation(&self, z: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-(self.headroom + self.spread * z)))
    }

    /// E[y]: the modulation's mean over the normal distribution, by the trapezoid rule over ten standard deviations on both
    /// sides, whose error is far below that of floats for so smooth a function.
    fn mean_modulation(&self) -> f64 {
        const STEPS: i32 = 2000;
        const REACH: f64 = 10.0;
        let (mut sum, mut weights) = (0.0, 0.0);
        for step in -STEPS..=STEPS {
            let z = REACH * f64::from(step) / f64::from(STEPS);
            let weight = libm::exp(-0.5 * z * z);
            sum += weight * self.modulation(z);
            weights += weight;
        }
        sum / weights
    }
}

impl SyntheticConfig {
    /// Checks the model's parameters and the period.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.period < STEP || self.period > LONGEST {
            return Err(("period", "is not between one second and a week"));
        }
        self.model.check()
    }

    /// Generates the rate.
    ///
    /// # Panics
    /// If the period is shorter than a second, which [`check`](Self::check) refuses.
    pub fn generate(&self, streams: &Streams) -> Steps<Bandwidth> {
        let streams = streams.named(self.seed, &self.stream);
        let [mut quality, mut noise, mut outages] =
            ["quality", "noise", "outages"].map(|effect| streams.stream(&format!("rate/{effect}")));
        let model = &self.model;
        let a = libm::exp(-STEP.as_secs_f64() / model.correlation_time.as_secs_f64());
        let innovation = (1.0 - a * a).sqrt();
        let [begin, end] = model.transitions().map(Probability::clamped);
        let full = self.mean.as_bps() as f64 / (model.mean_modulation() * model.service());
        let mut z = normal(&mut quality);
        let mut out = Probability::clamped(1.0 - model.service()).draw(&mut outages);
        let step = |_| {
            let varies = libm::exp(model.noise * normal(&mut noise) - 0.5 * model.noise * model.noise);
            let rate = if out { 0.0 } else { full * model.modulation(z) * varies };
            z = a * z + innovation * normal(&mut quality);
            out ^= if out { end } else { begin }.draw(&mut outages);
            (STEP, Bandwidth::from_bps((rate + 0.5) as u64))
        };
        let steps = self.period.as_nanos() / STEP.as_nanos();
        Steps::new((0..steps).map(step), AtEnd::Loop).expect("there is a step, and not too many")
    }

    /// The rate as the content of a file.
    pub fn recording(&self, run_seed: u64) -> Result<super::Recording, TraceError> {
        self.check().map_err(|(key, problem)| TraceError::whole(format!("`{key}` {problem}")))?;
        let rate = super::RecordedRate::Table(self.generate(&Streams::new(run_seed, "")));
        Ok(super::Recording { rate, latency: None })
    }
}

#[cfg(test)]
mod tests;
