//! Links: two directions, written once in the short form or apart as `up` and `down`.

mod effects;
pub(super) mod queue;
mod rate;
mod synthetic;
mod trace;

#[cfg(test)]
mod tests;

pub use effects::{Jitter, Loss, LossModel, Reordering};
pub use rate::Rate;
pub use synthetic::Synthetic;
pub use trace::{LatencyUse, Trace};

use super::document::{Node, Origin, Value};
use super::reader::{Complaint, Reader, Result, default_quantity, read_quantity, wrong_kind};
use crate::quantity::{Ratio, read_bytes, read_ratio, read_time, write_bytes, write_ratio, write_time};
use anabranch_network::{ConfigError, DelayConfig, DirectionConfig, Probability, QueueConfig};
use anabranch_units::Duration;
use std::path::Path;
use std::sync::Arc;

pub use anabranch_network::QueueConfig as Queue;

/// What stands around a link and matters to its rate.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Where traces are looked up.
    pub directory: Option<&'a Path>,
    /// Where traces begin that do not say it themselves.
    pub trace_offset: Duration,
    /// The link's name.
    pub link: &'a str,
}

/// A link: what goes up to the server, and what comes down from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Direction {
    /// How fast it sends.
    pub rate: Rate,
    /// How long a packet takes from end to end.
    pub delay: Duration,
    /// What comes to the delay.
    pub jitter: Option<Jitter>,
    /// Which packets may wait.
    pub queue: QueueConfig,
    /// Which packets are lost on the way.
    pub loss: Loss,
    /// Which packets overtake others.
    pub reordering: Option<Reordering>,
    /// Which share arrives twice.
    pub duplication: Ratio,
    /// The largest IP packet.
    pub mtu: u32,
    /// Bytes per packet that only the rate sees.
    pub overhead: u32,
}

/// What is said about a direction: everything, or what an event changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// See [`Direction`].
    pub rate: Option<Rate>,
    /// See [`Direction`].
    pub delay: Option<Duration>,
    /// See [`Direction`].
    pub jitter: Option<Jitter>,
    /// See [`Direction`].
    pub queue: Option<QueueConfig>,
    /// See [`Direction`].
    pub loss: Option<Loss>,
    /// See [`Direction`].
    pub reordering: Option<Reordering>,
    /// See [`Direction`].
    pub duplication: Option<Ratio>,
    /// See [`Direction`].
    pub mtu: Option<u32>,
    /// See [`Direction`].
    pub overhead: Option<u32>,
}

impl Change {
    /// What is said here, and else what `other` says.
    fn or(self, other: Change) -> Change {
        Change {
            rate: self.rate.or(other.rate),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            queue: self.queue.or(other.queue),
            loss: self.loss.or(other.loss),
            reordering: self.reordering.or(other.reordering),
            duplication: self.duplication.or(other.duplication),
            mtu: self.mtu.or(other.mtu),
            overhead: self.overhead.or(other.overhead),
        }
    }

    /// As the network takes it, one change after the other.
    pub fn config(&self) -> Vec<anabranch_network::Change> {
        use anabranch_network::Change as C;
        let mut list = Vec::new();
        list.extend(self.rate.as_ref().map(|rate| C::Rate(rate.config())));
        list.extend(self.delay_config().map(C::Delay));
        list.extend(self.jitter.as_ref().map(|jitter| C::Jitter(Some(jitter.config()))));
        list.extend(self.queue.as_ref().map(|queue| C::Queue(queue.clone())));
        list.extend(self.loss.as_ref().map(|loss| C::Loss(loss.config())));
        list.extend(self.reordering.as_ref().map(|r| C::Reordering(Some(r.config()))));
        list.extend(self.duplication.map(|share| C::Duplication(probability(share))));
        list.extend(self.mtu.map(C::Mtu));
        list.extend(self.overhead.map(C::Overhead));
        list
    }

    /// A recorded delay begins with its rate; a constant one ends it.
    fn delay_config(&self) -> Option<DelayConfig> {
        let recorded = self.rate.as_ref().and_then(|rate| rate.delay(self.delay.unwrap_or(Duration::ZERO)));
        recorded.map(|steps| DelayConfig::Table(Arc::new(steps))).or(self.delay.map(DelayConfig::Constant))
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Change::default()
    }
}

impl Direction {
    /// As the network takes it.
    pub fn config(&self) -> DirectionConfig {
        let mut config = DirectionConfig::new(self.rate.config(), self.queue.clone());
        config.delay = Change::from(self).delay_config().expect("a direction has a delay");
        config.jitter = self.jitter.as_ref().map(Jitter::config);
        config.loss = self.loss.config();
        config.loss_at = self.loss.at;
        config.reordering = self.reordering.as_ref().map(Reordering::config);
        config.duplication = probability(self.duplication);
        config.mtu = self.mtu;
        config.overhead = self.overhead;
        config
    }

    /// Puts an event's changes in force.
    pub(super) fn apply(&mut self, said: &Change) {
        let own = Change::from(&*self);
        let said = said.clone().or(own);
        self.rate = said.rate.expect("a direction has a rate");
        self.delay = said.delay.expect("a direction has a delay");
        self.jitter = said.jitter;
        self.queue = said.queue.expect("a direction has a queue");
        self.loss = said.loss.expect("a direction has a loss model");
        self.reordering = said.reordering;
        self.duplication = said.duplication.expect("a direction has a duplication");
        self.mtu = said.mtu.expect("a direction has an MTU");
        self.overhead = said.overhead.expect("a direction has an overhead");
    }

    fn from_change(said: Change, r: &Reader<'_>) -> Result<Self> {
        let Some(rate) = said.rate else { return r.missing("rate", "a rate such as \"2 Mb/s\", or \"unlimited\"") };
        let d = Defaults;
        Ok(Direction {
            rate,
            delay: said.delay.unwrap_or_else(|| d.get("delay", read_time)),
            jitter: said.jitter,
            queue: said.queue.unwrap_or_else(|| QueueConfig::drop_tail_bytes(d.get("queue", read_bytes))),
            loss: said.loss.unwrap_or_else(|| Loss::bernoulli(d.get("loss", read_ratio))),
            reordering: said.reordering,
            duplication: said.duplication.unwrap_or_else(|| d.get("duplication", read_ratio)),
            mtu: said.mtu.unwrap_or_else(|| d.get("mtu", read_bytes) as u32),
            overhead: said.overhead.unwrap_or_else(|| d.get("overhead", read_bytes) as u32),
        })
    }
}

/// The defaults of links in the reference.
struct Defaults;

impl Defaults {
    fn get<T>(&self, key: &str, read: super::reader::ReadQuantity<T>) -> T {
        default_quantity("link.default", key, read)
    }
}

/// Reads `[link.NAME]`.
pub(super) fn read(file: &str, node: &Node, context: Context<'_>) -> Result<Link> {
    let name = context.link;
    let r = Reader::new(file, node, "link", format!("[link.{name}]"))?;
    let (up, down) = read_both(&r, context)?;
    let make = |said: Change, which: &str| {
        let direction = Direction::from_change(said, &r)?;
        match direction.config().validate() {
            Ok(()) => Ok(direction),
            Err(error) => Err(explain(&r, which, &error)),
        }
    };
    Ok(Link { name: name.to_string(), up: make(up, "up")?, down: make(down, "down")? })
}

/// What a link's table or an event says about both directions.
fn read_both(r: &Reader<'_>, context: Context<'_>) -> Result<(Change, Change)> {
    let mut shared = read_keys(r, context)?;
    if let Some(rtt) = r.quantity("rtt", read_time)? {
        if let Some(entry) = r.entry("delay") {
            return r.fail(Complaint::new("both `rtt` and `delay` are given", "one of them"), &entry.at);
        }
        shared.delay = Some(rtt / 2);
    }
    // Random loss in the short form is that of the downlink, where the data is.
    let loss = shared.loss.take();
    let up = read_direction(r, "up", context)?.or(shared.clone());
    shared.loss = loss;
    let down = read_direction(r, "down", context)?.or(shared);
    Ok((up, down))
}

fn read_direction(r: &Reader<'_>, key: &str, context: Context<'_>) -> Result<Change> {
    match r.node(key) {
        // `down = true` of an event is an outage, which the caller reads.
        Some(Node { value: Value::Flag(_), .. }) | None => Ok(Change::default()),
        Some(node) => {
            let label = format!("`{key}` of {}", r.label);
            read_keys(&Reader::new(r.file, node, "link.direction", label)?, context)
        }
    }
}

fn read_keys(r: &Reader<'_>, context: Context<'_>) -> Result<Change> {
    let file = r.file;
    Ok(Change {
        rate: r.node("rate").map(|node| rate::read(file, node, context)).transpose()?,
        delay: r.quantity("delay", read_time)?,
        jitter: r.node("jitter").map(|node| effects::read_jitter(file, node)).transpose()?,
        queue: r.node("queue").map(|node| queue::read(file, node)).transpose()?,
        loss: r.node("loss").map(|node| effects::read_loss(file, node)).transpose()?,
        reordering: r.node("reordering").map(|node| effects::read_reordering(file, node)).transpose()?,
        duplication: r.quantity("duplication", read_ratio)?,
        mtu: read_packet_bytes(r, "mtu")?,
        overhead: read_packet_bytes(r, "overhead")?,
    })
}

/// `1500`, or `"1500 B"`.
fn read_packet_bytes(r: &Reader<'_>, key: &str) -> Result<Option<u32>> {
    let Some(node) = r.node(key) else { return Ok(None) };
    let bytes = match &node.value {
        Value::Integer(n) => u64::try_from(*n).unwrap_or(u64::MAX),
        Value::Text(_) => read_quantity(r.file, key, node, read_bytes)?,
        other => return r.fail(wrong_kind(key, other, "bytes, such as 1500"), &node.at),
    };
    match u32::try_from(bytes) {
        Ok(n) if n <= anabranch_network::MAX_PACKET_BYTES => Ok(Some(n)),
        _ => {
            let expected = format!("from 0 to {} bytes", anabranch_network::MAX_PACKET_BYTES);
            r.fail(Complaint::new(format!("`{key}` is not usable"), expected), &node.at)
        }
    }
}

/// Reads what an event changes: whether the link is cut, and new properties of the downlink and the uplink.
pub(super) fn read_change(event: &Reader<'_>, context: Context<'_>) -> Result<(Option<bool>, Change, Change)> {
    let cut = match event.node("down").map(|node| &node.value) {
        Some(Value::Flag(down)) => Some(*down),
        _ => None,
    };
    let (up, down) = read_both(event, context)?;
    if cut.is_none() && up.is_empty() && down.is_empty() {
        return event.missing("down", "`down`, or a key of links that changes, such as `rate`");
    }
    Ok((cut, down, up))
}

/// Puts a complaint of the network where its key stands.
fn explain(r: &Reader<'_>, which: &str, error: &ConfigError) -> crate::Error {
    let key = error.field.split('.').next().unwrap_or("");
    let of_direction = match r.node(which).map(|node| &node.value) {
        Some(Value::Table(table)) => table.get(key).map(|entry| &entry.at),
        _ => None,
    };
    let at: &Origin = of_direction.or_else(|| r.entry(key).map(|entry| &entry.at)).unwrap_or(r.at);
    Complaint::new(format!("{} of {}: {error}", which, r.label), "").at(r.file, at)
}

/// A share as the network takes it.
pub(super) fn probability(share: Ratio) -> Probability {
    Probability::new(share.as_f64()).expect("a share lies between 0 and 1")
}

/// And back, exactly for whatever came from a share.
fn share_of(probability: Probability) -> Ratio {
    Ratio((probability.as_f64() * 1e9).round() as u64)
}

/// Writes what is said about a direction as `key = value` lines.
pub(super) fn write_change(said: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |key: &str, value: Option<String>| lines.extend(value.map(|value| format!("{key} = {value}")));
    line("rate", said.rate.as_ref().map(Rate::write));
    line("delay", said.delay.map(|delay| format!("\"{}\"", write_time(delay))));
    line("jitter", said.jitter.as_ref().map(Jitter::write));
    line("queue", said.queue.as_ref().map(queue::write));
    line("loss", said.loss.as_ref().map(Loss::write));
    line("reordering", said.reordering.as_ref().map(Reordering::write));
    line("duplication", said.duplication.map(|share| format!("\"{}\"", write_ratio(share))));
    line("mtu", said.mtu.map(|bytes| bytes.to_string()));
    line("overhead", said.overhead.map(|bytes| format!("\"{}\"", write_bytes(u64::from(bytes)))));
    lines
}

impl From<&Direction> for Change {
    fn from(d: &Direction) -> Change {
        Change {
            rate: Some(d.rate.clone()),
            delay: Some(d.delay),
            jitter: d.jitter.clone(),
            queue: Some(d.queue.clone()),
            loss: Some(d.loss.clone()),
            reordering: d.reordering.clone(),
            duplication: Some(d.duplication),
            mtu: Some(d.mtu),
            overhead: Some(d.overhead),
        }
    }
}
