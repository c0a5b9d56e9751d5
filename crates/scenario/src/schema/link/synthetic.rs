//! Made-up rates with the statistics of recorded ones.

use super::super::reader::{Complaint, Reader, Result};
use super::Context;
use crate::quantity::{read_rate, read_time, write_rate, write_time};
use anabranch_network::{SYNTHETIC_KINDS, SyntheticConfig, SyntheticModel};
use anabranch_units::Duration;

/// A made-up rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// The kind of network, from which what is not said comes.
    pub kind: &'static str,
    /// As the network takes it.
    pub config: SyntheticConfig,
}

/// Logits of shares, and standard deviations of them: e^50 is more than any rate's range.
const MOST_LOGIT: f64 = 50.0;

/// Standard deviations of logarithms: e^3 is a factor of 20.
const MOST_NOISE: f64 = 3.0;

impl Synthetic {
    pub(super) fn write(&self) -> String {
        let SyntheticConfig { model, mean, period, seed, .. } = &self.config;
        let mut parts = vec![
            format!("synthetic = \"{}\"", self.kind),
            format!("mean = \"{}\"", write_rate(*mean)),
            format!("period = \"{}\"", write_time(*period)),
        ];
        parts.extend(seed.map(|seed| format!("seed = {seed}")));
        parts.push(format!("headroom = {:?}, spread = {:?}, noise = {:?}", model.headroom, model.spread, model.noise));
        let times = [
            ("correlation_time", model.correlation_time),
            ("between_outages", model.between_outages),
            ("outage", model.outage),
        ];
        parts.extend(times.map(|(key, time)| format!("{key} = \"{}\"", write_time(time))));
        format!("{{ {} }}", parts.join(", "))
    }
}

pub(super) fn read(r: &Reader<'_>, context: Context<'_>) -> Result<Synthetic> {
    let names = || SYNTHETIC_KINDS.names();
    let Some((name, at)) = r.text("synthetic")? else {
        return r.missing("synthetic", &format!("one of {}", names().collect::<Vec<_>>().join(", ")));
    };
    let Some(kind) = SYNTHETIC_KINDS.find(name) else {
        return r.fail(Complaint::unknown("kind of network", name, names()), at);
    };
    let Some(mean) = r.quantity("mean", read_rate)? else { return r.missing("mean", "a rate such as \"12 Mb/s\"") };
    let positive = |key: &str, usual: Duration| match r.quantity(key, read_time)? {
        Some(Duration::ZERO) => {
            let at = r.node(key).map_or(r.at, |node| &node.at);
            r.fail(Complaint::new(format!("`{key}` is zero"), "a time above zero"), at)
        }
        given => Ok(given.unwrap_or(usual)),
    };
    let usual = (kind.create)();
    let model = SyntheticModel {
        headroom: r.number("headroom", -MOST_LOGIT..=MOST_LOGIT)?.unwrap_or(usual.headroom),
        spread: r.number("spread", 0.0..=MOST_LOGIT)?.unwrap_or(usual.spread),
        noise: r.number("noise", 0.0..=MOST_NOISE)?.unwrap_or(usual.noise),
        correlation_time: positive("correlation_time", usual.correlation_time)?,
        between_outages: positive("between_outages", usual.between_outages)?,
        outage: r.quantity("outage", read_time)?.unwrap_or(usual.outage),
    };
    let config = SyntheticConfig {
        model,
        mean,
        period: r.quantity_or_default("period", read_time)?,
        stream: format!("link/{}", context.link),
        seed: r.integer("seed", 0..=i64::MAX as u64)?,
    };
    Ok(Synthetic { kind: kind.name, config })
}
