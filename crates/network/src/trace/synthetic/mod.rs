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
//! A low headroom makes y nearly log-normal, a high one a plateau with fades. Without outages the autocorrelation of
//! the rate falls at lag zero by what the noise contributes, and then about exponentially with the correlation time.
//! The chain starts in its stationary distribution. After `period` the rate begins again, as a recording does. The
//! fitted parameters and the quality of the fit are in docs/validation/traces.md.

mod kinds;

pub use kinds::{SYNTHETIC_KINDS, SyntheticEntry};

use super::{AtEnd, RecordedNetwork, RecordedRate, Steps, TraceError};
use crate::draws::{Probability, Streams};
use crate::error::ConfigError;
use crate::jitter::normal;
use anabranch_units::{Bandwidth, Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The model's parameters, all of them.
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

/// A synthetic rate. The parameters of its model have the kind's values where they are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Synthetic")]
pub struct SyntheticConfig {
    /// The kind of network: a name of `anabranch list synthetic-rates`.
    #[serde(rename = "synthetic")]
    #[schemars(schema_with = "kinds_of_networks")]
    pub kind: String,
    /// The mean rate in the long run.
    pub mean: Bandwidth,
    /// The time after which the rate repeats. It changes once a second.
    #[serde(default = "an_hour")]
    pub period: Duration,
    /// The seed of the rate; the run's seed where absent. Both directions of a link have the same rate.
    #[serde(default, deserialize_with = "text::whole_option::<0, 9223372036854775807, _, _>")]
    pub seed: Option<u64>,
    /// The logit of the ratio of the typical rate to that of the fastest modulation; the kind's where absent.
    #[serde(default, deserialize_with = "text::number_option::<{ -MOST_SPREAD }, MOST_SPREAD, _>")]
    #[schemars(range(min = -MOST_SPREAD, max = MOST_SPREAD))]
    pub headroom: Option<f64>,
    /// The standard deviation of that logit over time; the kind's where absent.
    #[serde(default, deserialize_with = "text::number_option::<0, MOST_SPREAD, _>")]
    #[schemars(range(min = 0, max = MOST_SPREAD))]
    pub spread: Option<f64>,
    /// The time after which the autocorrelation of that logit has fallen to 1/e; the kind's where absent.
    pub correlation_time: Option<Duration>,
    /// The standard deviation of the logarithm of a factor that is new in every second; the kind's where absent.
    #[serde(default, deserialize_with = "text::number_option::<0, MOST_NOISE, _>")]
    #[schemars(range(min = 0, max = MOST_NOISE))]
    pub noise: Option<f64>,
    /// The mean time from one outage to the next; the kind's where absent.
    pub between_outages: Option<Duration>,
    /// The mean length of an outage, `0 s` for none; the kind's where absent.
    pub outage: Option<Duration>,
    /// The name of the realisation: the same name in a run with the same seed gives the same rates. Both directions
    /// of a link have the same, because they are one radio.
    #[serde(skip)]
    pub stream: String,
}

fn an_hour() -> Duration {
    Duration::from_secs(3600)
}

fn kinds_of_networks(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names: Vec<&str> = SYNTHETIC_KINDS.names().collect();
    schemars::json_schema!({ "enum": names, "x-expected": format!("one of {}", names.join(", ")) })
}

const STEP: Duration = Duration::from_secs(1);

/// Above this, logarithms of rates vary by factors of 10^20.
const MOST_SPREAD: i64 = 50;

/// At this, one second in a hundred has more than a thousand times the median rate.
const MOST_NOISE: i64 = 3;

/// A week: a table of more steps would only fill the memory.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

const KINDS: &str = "a name of `anabranch list synthetic-rates`";

impl SyntheticModel {
    /// Checks the parameters, and a period.
    ///
    /// # Errors
    /// Names the field that is impossible.
    pub fn check(&self, period: Duration) -> Result<(), ConfigError> {
        if period < STEP || period > LONGEST {
            return Err(ConfigError::new("period", format!("is {period}, not between a second and a week")));
        }
        let numbers = [
            ("headroom", self.headroom, -MOST_SPREAD, MOST_SPREAD),
            ("spread", self.spread, 0, MOST_SPREAD),
            ("noise", self.noise, 0, MOST_NOISE),
        ];
        for (field, value, min, max) in numbers {
            if !(min as f64..=max as f64).contains(&value) {
                return Err(ConfigError::new(field, format!("is {value}, not between {min} and {max}")));
            }
        }
        let times = [("correlation_time", self.correlation_time), ("between_outages", self.between_outages)];
        match times.into_iter().find(|(_, time)| time.is_zero()) {
            Some((field, _)) => Err(ConfigError::new(field, "is zero").expecting("a time above zero")),
            None => Ok(()),
        }
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

    /// E[y]: the modulation's mean over the normal distribution, by the trapezoid rule over ten standard deviations on
    /// both sides, whose error is far below that of floats for so smooth a function.
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

    /// Generates a rate with this mean in the long run, in steps of a second.
    ///
    /// # Panics
    /// If the period is shorter than a second.
    pub fn generate(&self, mean: Bandwidth, period: Duration, streams: &Streams) -> Steps<Bandwidth> {
        let [mut quality, mut noise, mut outages] =
            ["quality", "noise", "outages"].map(|effect| streams.stream(&format!("rate/{effect}")));
        let a = libm::exp(-STEP.as_secs_f64() / self.correlation_time.as_secs_f64());
        let innovation = (1.0 - a * a).sqrt();
        let [begin, end] = self.transitions().map(Probability::clamped);
        let full = mean.as_bps() as f64 / (self.mean_modulation() * self.service());
        let mut z = normal(&mut quality);
        let mut out = Probability::clamped(1.0 - self.service()).draw(&mut outages);
        let step = |_| {
            let varies = libm::exp(self.noise * normal(&mut noise) - 0.5 * self.noise * self.noise);
            let rate = if out { 0.0 } else { full * self.modulation(z) * varies };
            z = a * z + innovation * normal(&mut quality);
            out ^= if out { end } else { begin }.draw(&mut outages);
            (STEP, Bandwidth::from_bps((rate + 0.5) as u64))
        };
        let steps = period.as_nanos() / STEP.as_nanos();
        Steps::new((0..steps).map(step), AtEnd::Loop).expect("there is a step, and not too many")
    }

    /// The same as the content of a file.
    ///
    /// # Errors
    /// What [`check`](Self::check) refuses.
    pub fn recording(
        &self,
        mean: Bandwidth,
        period: Duration,
        streams: &Streams,
    ) -> Result<RecordedNetwork, TraceError> {
        self.check(period).map_err(|error| TraceError::whole(format!("`{}` {}", error.field, error.problem)))?;
        Ok(RecordedNetwork { rate: RecordedRate::Table(self.generate(mean, period, streams)), latency: None })
    }
}

impl SyntheticConfig {
    /// The model's parameters: those that are given, and the kind's in place of the others.
    ///
    /// # Panics
    /// If there is no such kind of network, which [`check`](Self::check) refuses.
    pub fn model(&self) -> SyntheticModel {
        let kind = SYNTHETIC_KINDS.find(&self.kind).expect("the kind was checked");
        let usual = (kind.create)();
        SyntheticModel {
            headroom: self.headroom.unwrap_or(usual.headroom),
            spread: self.spread.unwrap_or(usual.spread),
            correlation_time: self.correlation_time.unwrap_or(usual.correlation_time),
            noise: self.noise.unwrap_or(usual.noise),
            between_outages: self.between_outages.unwrap_or(usual.between_outages),
            outage: self.outage.unwrap_or(usual.outage),
        }
    }

    /// Sets each parameter that is absent to the kind's.
    ///
    /// # Panics
    /// As [`model`](Self::model).
    pub fn complete(&mut self) {
        let model = self.model();
        self.headroom = Some(model.headroom);
        self.spread = Some(model.spread);
        self.correlation_time = Some(model.correlation_time);
        self.noise = Some(model.noise);
        self.between_outages = Some(model.between_outages);
        self.outage = Some(model.outage);
    }

    /// Checks the kind of network, the parameters and the period.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        if SYNTHETIC_KINDS.find(&self.kind).is_none() {
            let problem = format!("is `{}`, which is no kind of network", self.kind);
            return Err(ConfigError::new("synthetic", problem).expecting(KINDS));
        }
        self.model().check(self.period)
    }

    /// Generates the rate. Its mean differs from the configured one, which is that in the long run.
    ///
    /// # Panics
    /// If [`check`](Self::check) refuses it.
    pub fn generate(&self, streams: &Streams) -> Steps<Bandwidth> {
        self.model().generate(self.mean, self.period, &streams.named(self.seed, &self.stream))
    }
}

#[cfg(test)]
mod tests;
