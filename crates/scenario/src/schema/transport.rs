//! The `[transport]` section: how the endpoints of every session behave.

use super::document::{Entry, Node, Origin, Value, parse_value};
use super::reader::{Complaint, Reader, Result, read_quantity, wrong_kind};
use crate::quantity::read_bytes;
use anabranch_stack::congestion;
use anabranch_stack::connection::{Commit, Failover, Protocol, ReceiveBuffer};
use anabranch_stack::options::{OptionError, Options, Value as OptionValue};
use anabranch_stack::{path_policy, scheduler};

/// An algorithm of a registry with its options.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its name in the registry.
    pub name: String,
    /// Its options, in the order in which they were written.
    pub options: Vec<(String, OptionValue)>,
}

impl Choice {
    /// The algorithm without options.
    pub fn named(name: &str) -> Self {
        Choice { name: name.to_string(), options: Vec::new() }
    }

    /// The options as the stack takes them.
    pub(crate) fn to_options(&self) -> Options {
        Options::new(self.options.clone())
    }

    /// As a scheduler or a path policy; the name was checked when the scenario was read.
    pub(crate) fn named_part(&self) -> anabranch_stack::connection::Choice {
        anabranch_stack::connection::Choice { name: self.name.clone(), options: self.to_options() }
    }

    /// As a congestion control; the name was checked when the scenario was read.
    pub(crate) fn congestion_control(&self) -> anabranch_stack::connection::CongestionChoice {
        let entry = congestion::REGISTRY.find(&self.name).expect("the scenario's names were checked");
        anabranch_stack::connection::CongestionChoice { entry, options: self.to_options() }
    }
}

/// How the endpoints behave.
#[derive(Clone, Debug, PartialEq)]
pub struct Transport {
    /// Multipath TCP or TCP.
    pub protocol: Protocol,
    /// Which subflow carries the next data.
    pub scheduler: Choice,
    /// Which subflows may carry new data.
    pub path_policy: Choice,
    /// The window of each subflow, where its path says nothing else.
    pub congestion_control: Choice,
    /// When data is bound to a subflow.
    pub commit: Commit,
    /// What becomes of the data of a subflow that times out.
    pub failover: Failover,
    /// Repeat the head of the line on a faster subflow when the shared window is full.
    pub opportunistic_retransmission: bool,
    /// Halve the window of the subflow that blocked it.
    pub penalisation: bool,
    /// What the receiver accepts.
    pub receive_buffer: ReceiveBuffer,
    /// Bytes written and not acknowledged.
    pub send_buffer: u64,
    /// Packets before the first acknowledgment.
    pub initial_window: u32,
    /// Space packets out.
    pub pacing: bool,
    /// Decay the window while nothing is sent.
    pub idle_restart: bool,
    /// Windows are whole packets after a reduction.
    pub whole_windows: bool,
    /// Packets are held back for bursts.
    pub segmentation_offload: bool,
    /// Repetitions of a SYN with MP_CAPABLE before plain TCP is tried.
    pub capable_retries: u32,
    /// Use the timestamps option.
    pub timestamps: bool,
    /// Data sequence numbers of 8 bytes.
    pub wide_data_seq: bool,
}

const SECTION: &str = "transport";

/// The spellings of [`Protocol`].
const PROTOCOLS: [&str; 2] = ["mptcp", "tcp"];

/// Whose behaviour is meant where nothing else is said.
const KERNELS: [&str; 2] = ["legacy", "upstream"];

/// Where upstream Linux differs from the defaults, which are legacy Multipath TCP's: keys and values as a scenario would write them.
/// It never had a remedy for a window that one subflow blocks.
const UPSTREAM: [(&str, &str); 6] = [
    ("scheduler", "\"linux\""),
    ("commit", "\"into-buffer\""),
    ("failover", "\"upstream\""),
    ("opportunistic_retransmission", "false"),
    ("penalisation", "false"),
    ("wide_data_seq", "true"),
];

/// The spellings of [`Commit`].
const COMMITS: [&str; 2] = ["at-window", "into-buffer"];

/// The spellings of [`Failover`].
const FAILOVERS: [&str; 2] = ["legacy", "upstream"];

pub(super) fn read(file: &str, node: &Node) -> Result<Transport> {
    let r = Reader::new(file, node, SECTION, "[transport]")?;
    if r.word("kernel", &KERNELS)? == "legacy" {
        return read_keys(&r);
    }
    let mut filled = node.clone();
    if let Value::Table(table) = &mut filled.value {
        for (key, value) in UPSTREAM.into_iter().filter(|(key, _)| !r.has(key)) {
            let node = parse_value(value, r.at).expect("the values of upstream Linux are TOML");
            table.entries.push(Entry { key: key.to_string(), at: r.at.clone(), node });
        }
    }
    read_keys(&Reader::new(file, &filled, SECTION, "[transport]")?)
}

fn read_keys(r: &Reader<'_>) -> Result<Transport> {
    let file = r.file;
    let scheduler = match r.node("scheduler") {
        Some(node) => read_scheduler(file, node)?,
        None => Choice::named(super::reference::default(SECTION, "scheduler")),
    };
    let path_policy = match r.node("path_policy") {
        Some(node) => read_path_policy(file, node)?,
        None => Choice::named(super::reference::default(SECTION, "path_policy")),
    };
    let congestion_control = match r.node("congestion_control") {
        Some(node) => read_congestion_control(file, node)?,
        None => Choice::named(super::reference::default(SECTION, "congestion_control")),
    };
    Ok(Transport {
        protocol: match r.word("protocol", &PROTOCOLS)? {
            "mptcp" => Protocol::Mptcp,
            _ => Protocol::Tcp,
        },
        scheduler,
        path_policy,
        congestion_control,
        commit: match r.word("commit", &COMMITS)? {
            "at-window" => Commit::AtWindow,
            _ => Commit::IntoBuffer,
        },
        failover: match r.word("failover", &FAILOVERS)? {
            "legacy" => Failover::Legacy,
            _ => Failover::Upstream,
        },
        opportunistic_retransmission: r.flag("opportunistic_retransmission")?,
        penalisation: r.flag("penalisation")?,
        receive_buffer: read_receive_buffer(r)?,
        send_buffer: positive_bytes(r, "send_buffer")?,
        initial_window: r.integer_or_default("initial_window", 1..=1000)? as u32,
        pacing: r.flag("pacing")?,
        idle_restart: r.flag("idle_restart")?,
        whole_windows: r.flag("whole_windows")?,
        segmentation_offload: r.flag("segmentation_offload")?,
        capable_retries: r.integer_or_default("capable_retries", 0..=128)? as u32,
        timestamps: r.flag("timestamps")?,
        wide_data_seq: r.flag("wide_data_seq")?,
    })
}

/// The smallest buffer with which a connection of full segments still moves.
const SMALLEST_BUFFER: u64 = 4_096;

fn positive_bytes(r: &Reader<'_>, key: &str) -> Result<u64> {
    let bytes = r.quantity_or_default(key, read_bytes)?;
    check_buffer(r, key, bytes)?;
    Ok(bytes)
}

fn check_buffer(r: &Reader<'_>, key: &str, bytes: u64) -> Result<()> {
    if bytes < SMALLEST_BUFFER {
        let at = r.node(key).map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new(format!("`{key}` is {bytes} B"), format!("at least {SMALLEST_BUFFER} B")), at);
    }
    Ok(())
}

/// `"3 MB"` is a fixed window; a table has where autotuning begins and ends.
fn read_receive_buffer(r: &Reader<'_>) -> Result<ReceiveBuffer> {
    const BUFFER: &str = "transport.receive_buffer";
    let table = Node { value: Value::Table(super::document::Table::default()), at: r.at.clone() };
    let node = r.node("receive_buffer").unwrap_or(&table);
    if !matches!(node.value, Value::Table(_)) {
        let max = read_quantity(r.file, "receive_buffer", node, read_bytes)?;
        check_buffer(r, "receive_buffer", max)?;
        return Ok(ReceiveBuffer { initial: max, max });
    }
    let b = Reader::new(r.file, node, BUFFER, "receive_buffer")?;
    let initial = positive_bytes(&b, "initial")?;
    let max = positive_bytes(&b, "max")?;
    if max < initial {
        let at = b.node("max").or(b.node("initial")).map_or(b.at, |node| &node.at);
        let message = format!("`max` of receive_buffer ({max} B) is less than `initial` ({initial} B)");
        return r.fail(Complaint::new(message, "initial <= max"), at);
    }
    Ok(ReceiveBuffer { initial, max })
}

/// A scheduler: a name, or a table with a name and options, which are tried at once so that a mistake has its line.
pub(super) fn read_scheduler(file: &str, node: &Node) -> Result<Choice> {
    let names = || scheduler::REGISTRY.iter().map(|entry| entry.name);
    let (choice, places) = read_choice(file, node, "scheduler", names)?;
    check_options(file, node, &places, scheduler::create(&choice.name, &choice.to_options()).err())?;
    Ok(choice)
}

/// A path policy, likewise.
fn read_path_policy(file: &str, node: &Node) -> Result<Choice> {
    let names = || path_policy::REGISTRY.iter().map(|entry| entry.name);
    let (choice, places) = read_choice(file, node, "path policy", names)?;
    check_options(file, node, &places, path_policy::create(&choice.name, &choice.to_options()).err())?;
    Ok(choice)
}

/// A congestion control, likewise.
pub(super) fn read_congestion_control(file: &str, node: &Node) -> Result<Choice> {
    let names = || congestion::REGISTRY.iter().map(|entry| entry.name);
    let (choice, places) = read_choice(file, node, "congestion control", names)?;
    let entry = congestion::REGISTRY.find(&choice.name).expect("the name was just checked");
    check_options(file, node, &places, (entry.create)(&choice.to_options(), 0).err())?;
    Ok(choice)
}

type Places<'a> = Vec<(&'a str, &'a Origin)>;

fn read_choice<'a, I: Iterator<Item = &'static str>>(
    file: &'a str,
    node: &'a Node,
    what: &str,
    names: impl Fn() -> I,
) -> Result<(Choice, Places<'a>)> {
    let expected = format!("the name of a {what}, or a table with `name` and its options");
    let known = |name: &str, at: &Origin| match names().any(|n| n == name) {
        true => Ok(()),
        false => Err(Complaint::unknown(what, name, names()).at(file, at)),
    };
    match &node.value {
        Value::Text(name) => {
            known(name, &node.at)?;
            Ok((Choice::named(name), Vec::new()))
        }
        Value::Table(_) => {
            let r = Reader::unchecked(file, node, SECTION, what)?;
            let Some((name, at)) = r.text("name")? else { return r.missing("name", &expected) };
            known(name, at)?;
            let mut choice = Choice::named(name);
            let mut places = Vec::new();
            for entry in r.entries().iter().filter(|entry| entry.key != "name") {
                choice.options.push((entry.key.clone(), option_value(file, &entry.key, &entry.node)?));
                places.push((entry.key.as_str(), &entry.at));
            }
            Ok((choice, places))
        }
        other => Err(wrong_kind(what, other, &expected).at(file, &node.at)),
    }
}

fn option_value(file: &str, key: &str, node: &Node) -> Result<OptionValue> {
    match &node.value {
        Value::Text(text) => Ok(OptionValue::Text(text.clone())),
        Value::Integer(n) => Ok(OptionValue::Number(*n as f64)),
        Value::Float(x) => Ok(OptionValue::Number(*x)),
        Value::Flag(flag) => Ok(OptionValue::Flag(*flag)),
        other => Err(wrong_kind(key, other, "a word, a number, true or false").at(file, &node.at)),
    }
}

fn check_options(file: &str, node: &Node, places: &Places<'_>, error: Option<OptionError>) -> Result<()> {
    let Some(error) = error else { return Ok(()) };
    let at = places.iter().find(|(key, _)| *key == error.option).map_or(&node.at, |(_, at)| at);
    Err(Complaint::new(error.to_string(), "").at(file, at))
}

/// The spelling of a protocol.
pub(super) fn protocol_name(protocol: Protocol) -> &'static str {
    PROTOCOLS[usize::from(protocol == Protocol::Tcp)]
}

/// The spelling of a commit model.
pub(super) fn commit_name(commit: Commit) -> &'static str {
    COMMITS[usize::from(commit == Commit::IntoBuffer)]
}

/// The spelling of what becomes of a subflow's data.
pub(super) fn failover_name(failover: Failover) -> &'static str {
    FAILOVERS[usize::from(failover == Failover::Upstream)]
}
