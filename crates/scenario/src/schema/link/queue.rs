//! Which packets may wait.

use super::super::document::{Node, Value};
use super::super::reader::{Complaint, Reader, Result, read_quantity};
use super::{probability, share_of};
use crate::quantity::{read_bytes, read_ratio, read_time, write_bytes, write_ratio, write_time};
use anabranch_network::{CoDelConfig, DropTailConfig, QUEUES, QueueConfig, QueueLimit, RedConfig};

/// The unit of a queue that counts packets.
const PACKETS: &str = "packets";

pub(super) fn read(file: &str, node: &Node) -> Result<QueueConfig> {
    if !matches!(node.value, Value::Table(_)) {
        return Ok(QueueConfig::DropTail(DropTailConfig { limit: read_limit(file, "queue", node)? }));
    }
    let any = Reader::unchecked(file, node, "link.queue", "queue")?;
    let names = || QUEUES.names();
    let (kind, at) = match any.text("kind")? {
        Some(given) => given,
        None => return any.missing("kind", &format!("one of {}", names().collect::<Vec<_>>().join(", "))),
    };
    let Some(kind) = QUEUES.find(kind) else {
        return Err(Complaint::unknown("queue", kind, names()).at(file, at));
    };
    let Some(limit) = any.node("limit") else { return any.missing("limit", LIMIT) };
    let limit = read_limit(file, "limit", limit)?;
    match (kind.create)(limit) {
        QueueConfig::DropTail(config) => {
            Reader::new(file, node, "link.queue.drop-tail", "queue")?;
            Ok(QueueConfig::DropTail(config))
        }
        QueueConfig::Red(config) => read_red(&Reader::new(file, node, "link.queue.red", "queue")?, config),
        QueueConfig::CoDel(config) => {
            let r = Reader::new(file, node, "link.queue.codel", "queue")?;
            Ok(QueueConfig::CoDel(CoDelConfig {
                limit,
                target: r.quantity("target", read_time)?.unwrap_or(config.target),
                interval: r.quantity("interval", read_time)?.unwrap_or(config.interval),
            }))
        }
    }
}

fn read_red(r: &Reader<'_>, config: RedConfig) -> Result<QueueConfig> {
    let threshold = |key: &str, default: u64| -> Result<u64> {
        let Some(node) = r.node(key) else { return Ok(default) };
        let given = read_limit(r.file, key, node)?;
        match (given, config.limit) {
            (QueueLimit::Bytes(n), QueueLimit::Bytes(_)) | (QueueLimit::Packets(n), QueueLimit::Packets(_)) => Ok(n),
            _ => r.fail(Complaint::new(format!("`{key}` has another unit than `limit`"), "the same unit"), &node.at),
        }
    };
    Ok(QueueConfig::Red(RedConfig {
        limit: config.limit,
        min: threshold("min", config.min)?,
        max: threshold("max", config.max)?,
        max_probability: match r.quantity("max_probability", read_ratio)? {
            Some(ratio) => probability(ratio),
            None => config.max_probability,
        },
        gentle: if r.has("gentle") { r.flag("gentle")? } else { config.gentle },
        weight_exponent: r.integer("weight_exponent", 0..=24)?.map_or(config.weight_exponent, |n| n as u32),
        mean_packet: r.integer("mean_packet", 1..=65_535)?.map_or(config.mean_packet, |n| n as u32),
    }))
}

const LIMIT: &str = "a size such as \"64 kB\" or \"100 packets\"";

/// `"64 kB"` or `"100 packets"`.
fn read_limit(file: &str, key: &str, node: &Node) -> Result<QueueLimit> {
    let packets = match &node.value {
        Value::Text(text) => text.trim().strip_suffix(PACKETS).map(str::trim),
        _ => None,
    };
    let Some(number) = packets else {
        let bytes = read_quantity(file, key, node, read_bytes);
        return bytes.map(QueueLimit::Bytes).map_err(|error| crate::Error { expected: LIMIT.into(), ..error });
    };
    match number.parse() {
        Ok(n) => Ok(QueueLimit::Packets(n)),
        Err(_) => Err(Complaint::new(format!("`{key}`: `{number}` is no number of packets"), LIMIT).at(file, &node.at)),
    }
}

fn write_limit(limit: QueueLimit) -> String {
    write_threshold(limit, limit.value())
}

/// A number in the unit of the limit.
fn write_threshold(limit: QueueLimit, n: u64) -> String {
    match limit {
        QueueLimit::Bytes(_) => format!("\"{}\"", write_bytes(n)),
        QueueLimit::Packets(_) => format!("\"{n} {PACKETS}\""),
    }
}

pub(in super::super) fn write(queue: &QueueConfig) -> String {
    match queue {
        QueueConfig::DropTail(DropTailConfig { limit }) => {
            format!("{{ kind = \"drop-tail\", limit = {} }}", write_limit(*limit))
        }
        QueueConfig::CoDel(CoDelConfig { limit, target, interval }) => format!(
            "{{ kind = \"codel\", limit = {}, target = \"{}\", interval = \"{}\" }}",
            write_limit(*limit),
            write_time(*target),
            write_time(*interval)
        ),
        QueueConfig::Red(RedConfig { limit, min, max, max_probability, gentle, weight_exponent, mean_packet }) => {
            let thresholds = format!(
                "limit = {}, min = {}, max = {}",
                write_limit(*limit),
                write_threshold(*limit, *min),
                write_threshold(*limit, *max)
            );
            let probability = write_ratio(share_of(*max_probability));
            format!(
                "{{ kind = \"red\", {thresholds}, max_probability = \"{probability}\", gentle = {gentle}, \
                 weight_exponent = {weight_exponent}, mean_packet = {mean_packet} }}"
            )
        }
    }
}
