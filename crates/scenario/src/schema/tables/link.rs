//! `[link.NAME]`: two directions, and what they do to packets.

use super::named::Named;
use super::rate::{Rate, Trace};
use anabranch_network::{Change, DelayConfig, DirectionConfig, Jitter, Loss, Probability, QueueConfig, Reordering};
use anabranch_units::{Bytes, Duration, LinkDirection, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// A link: what goes up to the server, and what comes down from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The link's name.
    #[serde(skip)]
    pub name: String,
    /// The direction from client to server. Its keys override those of the link.
    pub up: DirectionSpec,
    /// The direction from server to client, likewise.
    pub down: DirectionSpec,
}

impl Link {
    /// One of its directions.
    pub fn of(&self, direction: LinkDirection) -> &DirectionSpec {
        match direction {
            LinkDirection::Down => &self.down,
            LinkDirection::Up => &self.up,
        }
    }
}

impl Named for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_name(&mut self, name: String) {
        self.name = name;
    }
}

/// What happens to packets that are larger than a link's `mtu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TooBig {
    /// There are none: the endpoints know the `mtu`.
    #[default]
    Known,
    /// They are dropped, and the sender gets a report (ICMP).
    Reported,
    /// They are dropped, and the sender is not notified: a black hole.
    Silent,
}

/// One direction of a link, or what an event changes of it. A key that is absent in an event leaves its property as it
/// is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirectionSpec {
    /// A rate, a token bucket { rate, burst, peak }, a trace { trace, ... } or a synthetic rate { synthetic, mean, ...
    /// }.
    pub rate: Option<Rate>,
    /// The one-way propagation delay of each direction. A link may have `rtt` in its place.
    pub delay: Option<Duration>,
    /// A random change of the delay, packet by packet: { kind, ... }; none where absent.
    pub jitter: Option<Jitter>,
    /// The queue: a size or a number of packets (drop-tail), or { kind, limit, ... }. The default of 64 kB, about 43
    /// full packets, is that of a home router: 256 ms at 2 Mb/s.
    pub queue: Option<QueueConfig>,
    /// Random loss: a share, or { kind, ... }. Where it is a key of the link itself, it concerns the downlink only.
    pub loss: Option<Loss>,
    /// Packets that are delayed so that others overtake them: { share, by }; none where absent.
    pub reordering: Option<Reordering>,
    /// The share of packets that arrive twice.
    pub duplication: Option<Probability>,
    /// The largest IP packet, in bytes; 1500 is Ethernet's.
    #[serde(deserialize_with = "packet_bytes")]
    #[schemars(schema_with = "packet_bytes_schema")]
    pub mtu: Option<u32>,
    /// What happens to larger packets: `known`, as where absent (there are none, because the endpoints know the `mtu`),
    /// `reported` (dropped, and the sender gets a report, as by ICMP) or `silent` (dropped: a black hole). With the
    /// latter two the endpoints begin with 1500 bytes, or with the least `mtu` of the path's links that are `known`,
    /// and look for what passes.
    pub too_big: Option<TooBig>,
    /// Bytes per packet that the rate counts in addition to the IP packet: none on a tunnel device, 14 B on Ethernet.
    #[serde(deserialize_with = "packet_bytes")]
    #[schemars(schema_with = "packet_bytes_schema")]
    pub overhead: Option<u32>,
}

/// `1500`, or `"1500 B"`.
fn packet_bytes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    text::packet_bytes(deserializer, anabranch_network::MAX_PACKET_BYTES).map(Some)
}

fn packet_bytes_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let number = json!({ "type": "integer", "minimum": 0, "maximum": anabranch_network::MAX_PACKET_BYTES });
    schemars::json_schema!({ "anyOf": [number, generator.subschema_for::<Bytes>()], "x-expected": "bytes, such as 1500" })
}

impl DirectionSpec {
    /// What a link has where its table says nothing: no rate, no delay, the shared queue of a home router, no loss.
    pub fn usual() -> Self {
        DirectionSpec {
            delay: Some(Duration::ZERO),
            queue: Some(QueueConfig::drop_tail_bytes(64_000)),
            loss: Some(Loss::NONE),
            duplication: Some(Probability::ZERO),
            mtu: Some(1500),
            overhead: Some(0),
            ..DirectionSpec::default()
        }
    }

    /// What is said here, and else what `other` says.
    #[must_use]
    pub fn or(self, other: DirectionSpec) -> DirectionSpec {
        DirectionSpec {
            rate: self.rate.or(other.rate),
            delay: self.delay.or(other.delay),
            jitter: self.jitter.or(other.jitter),
            queue: self.queue.or(other.queue),
            loss: self.loss.or(other.loss),
            reordering: self.reordering.or(other.reordering),
            duplication: self.duplication.or(other.duplication),
            mtu: self.mtu.or(other.mtu),
            too_big: self.too_big.or(other.too_big),
            overhead: self.overhead.or(other.overhead),
        }
    }

    /// As the network takes a link's direction.
    ///
    /// # Panics
    /// If it has no rate or no queue, as only an event's has not.
    pub fn config(&self) -> DirectionConfig {
        let rate = self.rate.as_ref().expect("a link has a rate").config();
        let plain = DirectionConfig::new(rate, self.queue.clone().expect("a link has a queue"));
        self.changes().into_iter().fold(plain, DirectionConfig::after)
    }

    /// Whether the endpoints do not know its MTU.
    pub(crate) fn hides_mtu(&self) -> bool {
        self.too_big.is_some_and(|too_big| too_big != TooBig::Known)
    }

    /// The recording that its rate follows, if it does.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        if let Some(Rate::Trace(trace)) = &self.rate { Some(trace) } else { None }
    }

    /// Whether something of it is drawn from the run's seed; `shared`: the beginning of traces without an offset is.
    pub(crate) fn is_random(&self, shared: bool) -> bool {
        let rate = match &self.rate {
            Some(Rate::Trace(trace)) => trace.begins_anywhere(shared),
            Some(Rate::Synthetic(synthetic)) => synthetic.seed.is_none(),
            Some(Rate::Constant(_) | Rate::TokenBucket(_)) | None => false,
        };
        rate || self.jitter.is_some()
            || self.queue.as_ref().is_some_and(QueueConfig::is_random)
            || self.loss.as_ref().is_some_and(Loss::is_random)
            || self.reordering.is_some_and(|reordering| reordering.share > Probability::ZERO)
            || self.duplication.is_some_and(|share| share > Probability::ZERO)
    }

    /// As the network takes what an event changes, one change after the other.
    pub fn changes(&self) -> Vec<Change> {
        // Destructured, so that a key that is forgotten here does not compile.
        let DirectionSpec { rate, delay: _, jitter, queue, loss, reordering, duplication, mtu, too_big, overhead } =
            self;
        let mut list = Vec::new();
        list.extend(rate.as_ref().map(|rate| Change::Rate(rate.config())));
        list.extend(self.delay_config().map(Change::Delay));
        list.extend(jitter.map(|jitter| Change::Jitter(Some(jitter))));
        list.extend(queue.clone().map(Change::Queue));
        list.extend(loss.clone().map(Change::Loss));
        list.extend(reordering.map(|reordering| Change::Reordering(Some(reordering))));
        list.extend(duplication.map(Change::Duplication));
        list.extend(mtu.map(Change::Mtu));
        list.extend(too_big.map(|too_big| Change::ReportsTooBig(too_big == TooBig::Reported)));
        list.extend(overhead.map(Change::Overhead));
        list
    }

    /// A recorded delay begins with its rate; a constant one ends it.
    fn delay_config(&self) -> Option<DelayConfig> {
        let recorded = self.rate.as_ref().and_then(|rate| rate.delay(self.delay.unwrap_or(Duration::ZERO)));
        recorded.map(|steps| DelayConfig::Table(Arc::new(steps))).or(self.delay.map(DelayConfig::Constant))
    }
}
