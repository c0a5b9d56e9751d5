//! How fast a direction sends: a rate, a token bucket, a recorded trace, or a made-up one.

use super::super::document::{Node, Value};
use super::super::reader::{Reader, Result, read_quantity};
use super::{Context, Synthetic, Trace, synthetic, trace};
use crate::quantity::{read_bytes, read_rate, write_bytes, write_rate};
use anabranch_network::{RateConfig, Steps, TokenBucketConfig};
use anabranch_units::{Bandwidth, Duration};

/// How fast a direction sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Always the same.
    Constant(Bandwidth),
    /// A shaper that lets bursts pass.
    TokenBucket(TokenBucketConfig),
    /// As recorded.
    Trace(Trace),
    /// Made up.
    Synthetic(Synthetic),
}

impl Rate {
    /// As the network takes it.
    pub(crate) fn config(&self) -> RateConfig {
        match self {
            Rate::Constant(rate) => RateConfig::Constant(*rate),
            Rate::TokenBucket(bucket) => RateConfig::TokenBucket(*bucket),
            Rate::Trace(trace) => trace.config(),
            Rate::Synthetic(synthetic) => RateConfig::Synthetic(synthetic.config.clone()),
        }
    }

    /// The recorded delay over time, if there is one and it is to be used, on top of a constant one.
    pub(super) fn delay(&self, constant: Duration) -> Option<Steps<Duration>> {
        let Rate::Trace(trace) = self else { return None };
        trace.delay().map(|recorded| recorded.map(|delay| delay + constant))
    }

    pub(in super::super) fn write(&self) -> String {
        match self {
            Rate::Constant(rate) => format!("\"{}\"", write_rate(*rate)),
            Rate::TokenBucket(TokenBucketConfig { rate, burst, peak }) => {
                let (rate, burst, peak) = (write_rate(*rate), write_bytes(*burst), write_rate(*peak));
                format!("{{ rate = \"{rate}\", burst = \"{burst}\", peak = \"{peak}\" }}")
            }
            Rate::Trace(trace) => trace.write(),
            Rate::Synthetic(synthetic) => synthetic.write(),
        }
    }
}

pub(super) fn read(file: &str, node: &Node, context: Context<'_>) -> Result<Rate> {
    let Value::Table(table) = &node.value else {
        return read_quantity(file, "rate", node, read_rate).map(Rate::Constant);
    };
    if table.get("trace").is_some() {
        return trace::read(&Reader::new(file, node, "link.trace", "rate")?, context).map(Rate::Trace);
    }
    if table.get("synthetic").is_some() {
        return synthetic::read(&Reader::new(file, node, "link.synthetic", "rate")?, context).map(Rate::Synthetic);
    }
    let r = Reader::new(file, node, "link.rate", "rate")?;
    let Some(rate) = r.quantity("rate", read_rate)? else {
        return r.missing("rate", "`rate` and `burst` of a token bucket, `trace`, or `synthetic`");
    };
    let Some(burst) = r.quantity("burst", read_bytes)? else {
        return r.missing("burst", "the size of the bucket, such as \"15 kB\"");
    };
    Ok(Rate::TokenBucket(TokenBucketConfig { rate, burst, peak: r.quantity_or_default("peak", read_rate)? }))
}
