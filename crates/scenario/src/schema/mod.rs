//! The scenario: a network, sessions over it, and what happens meanwhile, as one TOML text.
//!
//! The schema lives here and nowhere else. [`mod@reference`] lists every key with its default and meaning; the documentation,
//! the reader and the resolved scenario all follow it. A mistake becomes one [`Error`](crate::Error) with its place.

mod dash;
mod document;
mod link;
mod overrides;
mod page;
mod reader;
pub mod reference;
mod resolved;
mod session;
mod transport;
mod video;

#[cfg(test)]
mod tests;

pub use dash::DashContent;
pub use link::{
    Change, Direction, Jitter, LatencyUse, Link, Loss, LossModel, Queue, Rate, Reordering, Synthetic, Trace,
};
pub use page::page;
pub use session::{Action, Event, Path, Session, Traffic};
pub use transport::{Choice, Transport};
pub use video::{Player, Video};

use crate::quantity::read_time;
use anabranch_units::Duration;
use document::{Node, Table, Value};
use reader::{Complaint, Reader, Result, wrong_kind};
use session::Names;

/// The version of the schema, as a scenario states it.
pub const SCHEMA: u64 = 1;

/// A checked scenario, every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What the run is called: the file's name, or that of a shipped scenario.
    pub name: String,
    /// What the scenario wants to know.
    pub question: String,
    /// When a run ends at the latest.
    pub duration: Duration,
    /// When counting begins: goodput and means leave out what happened before.
    pub warm_up: Duration,
    /// How often windows, rates and buffers are sampled.
    pub sample_interval: Duration,
    /// A run in which no session received a packet for this long cannot progress, and ends.
    pub stuck_after: Duration,
    /// How the endpoints behave.
    pub transport: Transport,
    /// Links.
    pub links: Vec<Link>,
    /// Paths over the links.
    pub paths: Vec<Path>,
    /// Who downloads over them.
    pub sessions: Vec<Session>,
    /// Who else does.
    pub traffic: Vec<Traffic>,
    /// What happens meanwhile, in the order of time.
    pub events: Vec<Event>,
}

/// Reads a scenario. `name` stands in messages and results; trace files are looked up in `directory`;
/// overrides are dotted keys and values, as `--set` takes them.
///
/// # Errors
/// The first mistake, with its place.
pub fn load(
    text: &str,
    name: &str,
    directory: Option<&std::path::Path>,
    overrides: &[(String, String)],
) -> Result<Scenario> {
    let mut root = document::parse(text, name)?;
    for (key, value) in overrides {
        overrides::apply(&mut root, key, value)?;
    }
    read(name, &root, directory)
}

impl Scenario {
    /// The scenario as TOML with every default written out. It reads as the same scenario again.
    pub fn resolved(&self) -> String {
        resolved::write(self)
    }
}

fn read(file: &str, root: &Node, directory: Option<&std::path::Path>) -> Result<Scenario> {
    let r = Reader::new(file, root, "scenario", "the scenario")?;
    check_schema(&r)?;
    let empty = Node { value: Value::Table(Table::default()), at: root.at.clone() };
    let transport_node = r.node("transport").unwrap_or(&empty);
    let transport = transport::read(file, transport_node)?;
    let trace_offset = r.quantity_or_default("trace_offset", read_time)?;
    let context = link::Context { directory, trace_offset, link: "" };
    let links = read_named(&r, "link", |link, node| link::read(file, node, link::Context { link, ..context }))?;
    let link_names = Names { what: "link", names: links.iter().map(|link| link.name.as_str()).collect() };
    let mut paths = read_named(&r, "path", |name, node| session::read_path(file, name, node, &link_names))?;
    if paths.is_empty() {
        paths = links.iter().enumerate().map(|(i, link)| path_per_link(i, link)).collect();
    }
    if paths.is_empty() {
        let expected = "a [link.NAME] with rate and rtt; a path per link is made where none is written";
        return r.fail(Complaint::new("the scenario has no path", expected), r.at);
    }
    let path_names = Names { what: "path", names: paths.iter().map(|path| path.name.as_str()).collect() };
    let base = (transport_node, &transport);
    let sessions =
        read_each(&r, "session", |i, node| session::read_session(file, i, node, &path_names, base, directory))?;
    let traffic = read_each(&r, "traffic", |i, node| session::read_traffic(file, i, node, &path_names))?;
    if sessions.is_empty() && traffic.is_empty() {
        return r.fail(Complaint::new("the scenario has no session", "a [[session]]"), r.at);
    }
    let names = (&link_names, &path_names);
    let mut events = read_each(&r, "event", |i, node| session::read_event(file, i, node, names, context))?;
    events.sort_by_key(|(event, _)| event.at);
    check_events(file, &links, &events)?;
    let events = events.into_iter().map(|(event, _)| event).collect();
    let scenario = Scenario {
        name: file.to_string(),
        question: r.text("question")?.map_or(String::new(), |(text, _)| text.to_string()),
        duration: required_time(&r, "duration")?,
        warm_up: r.quantity_or_default("warm_up", read_time)?,
        sample_interval: positive_time(&r, "sample_interval")?,
        stuck_after: positive_time(&r, "stuck_after")?,
        transport,
        links,
        paths,
        sessions,
        traffic,
        events,
    };
    if scenario.warm_up >= scenario.duration {
        let at = r.node("warm_up").map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new("`warm_up` is not shorter than `duration`", "warm_up < duration"), at);
    }
    Ok(scenario)
}

/// Tries every change of a link on the link as it then is.
fn check_events(file: &str, links: &[Link], events: &[(Event, document::Origin)]) -> Result<()> {
    let mut links = links.to_vec();
    for (event, at) in events {
        let Action::Link { link, down, up, .. } = &event.action else { continue };
        let link = &mut links[*link];
        link.down.apply(down);
        link.up.apply(up);
        for (direction, which) in [(&link.down, "down"), (&link.up, "up")] {
            if let Err(error) = direction.config().validate() {
                let message = format!("the event leaves link `{}` ({which}) unusable: {error}", link.name);
                return Err(Complaint::new(message, "").at(file, at));
            }
        }
    }
    Ok(())
}

fn check_schema(r: &Reader<'_>) -> Result<()> {
    let expected = format!("schema = {SCHEMA}");
    match r.integer("schema", 0..=u64::MAX)? {
        Some(SCHEMA) => Ok(()),
        None => r.missing("schema", &expected),
        Some(other) => {
            let at = r.node("schema").map_or(r.at, |node| &node.at);
            r.fail(Complaint::new(format!("schema {other} is not known to this version"), expected), at)
        }
    }
}

/// Tables whose keys are names: `[link.NAME]`.
fn read_named<T>(r: &Reader<'_>, key: &'static str, mut read: impl FnMut(&str, &Node) -> Result<T>) -> Result<Vec<T>> {
    let Some(node) = r.node(key) else { return Ok(Vec::new()) };
    let tables = Reader::unchecked(r.file, node, "scenario", format!("`{key}`"))?;
    tables.entries().iter().map(|entry| read(&entry.key, &entry.node)).collect()
}

/// Lists of tables: `[[session]]`.
fn read_each<T>(r: &Reader<'_>, key: &str, mut read: impl FnMut(usize, &Node) -> Result<T>) -> Result<Vec<T>> {
    let Some(node) = r.node(key) else { return Ok(Vec::new()) };
    let Value::List(list) = &node.value else {
        return r.fail(wrong_kind(key, &node.value, &format!("a list of tables: [[{key}]]")), &node.at);
    };
    list.iter().enumerate().map(|(i, node)| read(i, node)).collect()
}

fn path_per_link(position: usize, link: &Link) -> Path {
    let ip = reference::default("path", "ip").parse().expect("the default is a number");
    Path { name: link.name.clone(), links: vec![position], backup: false, congestion_control: None, ip }
}

fn positive_time(r: &Reader<'_>, key: &str) -> Result<Duration> {
    let time = r.quantity_or_default(key, read_time)?;
    check_positive(r, key, time)
}

fn required_time(r: &Reader<'_>, key: &str) -> Result<Duration> {
    match r.quantity(key, read_time)? {
        Some(time) => check_positive(r, key, time),
        None => r.missing(key, "a time such as \"700 s\""),
    }
}

fn check_positive(r: &Reader<'_>, key: &str, time: Duration) -> Result<Duration> {
    if time.is_zero() {
        let at = r.node(key).map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new(format!("`{key}` is zero"), "a time above zero"), at);
    }
    Ok(time)
}
