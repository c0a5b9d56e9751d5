//! Paths, sessions, cross traffic and scheduled events.

use super::document::{Node, Origin, Value};
use super::reader::{Complaint, Reader, Result, read_quantity};
use super::transport::{Choice, Transport, read_congestion_control};
use super::video::{Player, Video};
use super::{dash, link, reference, transport, video};
use crate::quantity::{read_bytes, read_time};
use anabranch_media::DashMetricsOptions;
use anabranch_units::Duration;

/// A route through the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Its name.
    pub name: String,
    /// Positions of its links in the scenario's list, from the client to the server.
    pub links: Vec<usize>,
    /// Use it only when no other works.
    pub backup: bool,
    /// The control of its subflows, where it is not the transport's.
    pub congestion_control: Option<Choice>,
    /// The version of the Internet Protocol: 4 or 6.
    pub ip: u8,
}

/// One or more viewers of the same kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Positions of its paths in the scenario's list; the first carries the initial subflow.
    pub paths: Vec<usize>,
    /// How its endpoints behave.
    pub transport: Transport,
    /// What is transferred.
    pub video: Video,
    /// Who watches it.
    pub player: Player,
    /// What is measured of a DASH video.
    pub statistics: DashMetricsOptions,
    /// How many of them.
    pub count: u32,
    /// When the first of them begins.
    pub start: Duration,
    /// Each of them begins at a random moment within this after its start.
    pub start_spread: Duration,
    /// The time from each one's beginning to the next one's.
    pub stagger: Duration,
}

/// Plain TCP downloads that compete with the sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Position of its path in the scenario's list.
    pub path: usize,
    /// The control of its window.
    pub congestion_control: Choice,
    /// How many of them.
    pub count: u32,
    /// When the first of them begins.
    pub start: Duration,
    /// Each of them begins at a random moment within this after its start.
    pub start_spread: Duration,
    /// The time from each one's beginning to the next one's.
    pub stagger: Duration,
    /// When they end, if before the run does.
    pub stop: Option<Duration>,
    /// Bytes of each download; endless if none.
    pub size: Option<u64>,
}

/// Names that are declared in the scenario, in their order.
pub(super) struct Names<'a> {
    pub what: &'static str,
    pub names: Vec<&'a str>,
}

impl Names<'_> {
    /// The position of a name, or a complaint where it was used.
    pub fn position(&self, file: &str, name: &str, at: &Origin) -> Result<usize> {
        self.names
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| Complaint::unknown(self.what, name, self.names.iter().copied()).at(file, at))
    }
}

pub(super) fn read_path(file: &str, name: &str, node: &Node, links: &Names<'_>) -> Result<Path> {
    let r = Reader::new(file, node, "path", format!("[path.{name}]"))?;
    let Some(names) = r.texts("links")? else { return r.missing("links", "a list of names of links") };
    let links = names.iter().map(|(link, at)| links.position(file, link, at)).collect::<Result<Vec<_>>>()?;
    if links.is_empty() {
        return r.fail(Complaint::new("`links` is empty", "at least one name of a link"), r.at);
    }
    Ok(Path {
        name: name.to_string(),
        links,
        backup: r.flag("backup")?,
        congestion_control: r.node("congestion_control").map(|node| read_congestion_control(file, node)).transpose()?,
        ip: match r.integer_or_default("ip", 4..=6)? {
            5 => {
                let at = r.node("ip").map_or(r.at, |node| &node.at);
                return r.fail(Complaint::new("`ip` is 5", "4 or 6"), at);
            }
            version => version as u8,
        },
    })
}

/// More copies than this are a typing error.
const MOST_COPIES: u64 = 100_000;

pub(super) fn read_session(
    file: &str,
    position: usize,
    node: &Node,
    paths: &Names<'_>,
    base: (&Node, &Transport),
    directory: Option<&std::path::Path>,
) -> Result<Session> {
    let r = Reader::new(file, node, "session", format!("[[session]] {position}"))?;
    let paths = match r.texts("paths")? {
        None => (0..paths.names.len()).collect(),
        Some(names) => {
            let list = names.iter().map(|(path, at)| paths.position(file, path, at)).collect::<Result<Vec<_>>>()?;
            let at = r.node("paths").map_or(r.at, |node| &node.at);
            if list.is_empty() {
                return r.fail(Complaint::new("`paths` is empty", "at least one name of a path"), at);
            }
            if let Some(twice) = (1..list.len()).find(|i| list[..*i].contains(&list[*i])) {
                let message = format!("path `{}` stands twice in `paths`", names[twice].0);
                return r.fail(Complaint::new(message, "each path once"), names[twice].1);
            }
            list
        }
    };
    let transport = match r.node("transport") {
        None => base.1.clone(),
        Some(own) => transport::read(file, &merged(base.0, own))?,
    };
    let (video, player) = video::read(&r, directory)?;
    let statistics = dash::read_statistics(&r)?;
    if let Some(entry) = r.entry("statistics").filter(|_| !matches!(video, Video::Dash(_))) {
        return r.fail(Complaint::new("`statistics` are of a DASH video", "`video` of kind \"dash\""), &entry.at);
    }
    Ok(Session {
        paths,
        transport,
        video,
        player,
        statistics,
        count: r.integer_or_default("count", 1..=MOST_COPIES)? as u32,
        start: r.quantity_or_default("start", read_time)?,
        start_spread: r.quantity_or_default("start_spread", read_time)?,
        stagger: r.quantity_or_default("stagger", read_time)?,
    })
}

/// The keys of `own`, and those of `base` that it does not have.
fn merged(base: &Node, own: &Node) -> Node {
    let mut result = own.clone();
    if let (Value::Table(result), Value::Table(base)) = (&mut result.value, &base.value) {
        let missing = base.entries.iter().filter(|entry| result.get(&entry.key).is_none()).cloned();
        let missing: Vec<_> = missing.collect();
        result.entries.extend(missing);
    }
    result
}

pub(super) fn read_traffic(file: &str, position: usize, node: &Node, paths: &Names<'_>) -> Result<Traffic> {
    let r = Reader::new(file, node, "traffic", format!("[[traffic]] {position}"))?;
    r.word("kind", &["tcp"])?;
    let Some((path, at)) = r.text("path")? else { return r.missing("path", "the name of a path") };
    let start = r.quantity_or_default("start", read_time)?;
    let stop = r.quantity("stop", read_time)?;
    if stop.is_some_and(|stop| stop <= start) {
        let at = r.node("stop").map_or(r.at, |node| &node.at);
        return r.fail(Complaint::new("`stop` is not after `start`", "start < stop"), at);
    }
    Ok(Traffic {
        path: paths.position(file, path, at)?,
        congestion_control: match r.node("congestion_control") {
            Some(node) => read_congestion_control(file, node)?,
            None => Choice::named(reference::default("traffic", "congestion_control")),
        },
        count: r.integer_or_default("count", 1..=MOST_COPIES)? as u32,
        start,
        start_spread: r.quantity_or_default("start_spread", read_time)?,
        stagger: r.quantity_or_default("stagger", read_time)?,
        stop,
        size: r.quantity("size", read_bytes)?,
    })
}

/// Something that happens to the network at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// What.
    pub action: Action,
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A link gets other properties, in both directions.
    Link {
        /// Its position in the scenario's list.
        link: usize,
        /// Cut or restored.
        cut: Option<bool>,
        /// Changes of its downlink.
        down: Box<link::Change>,
        /// Changes of its uplink.
        up: Box<link::Change>,
    },
    /// The client's interface on a path goes away or comes back, which the client notices.
    Path {
        /// Its position in the scenario's list.
        path: usize,
        /// Whether the interface is down now.
        down: bool,
    },
}

pub(super) fn read_event(
    file: &str,
    position: usize,
    node: &Node,
    (links, paths): (&Names<'_>, &Names<'_>),
    context: link::Context<'_>,
) -> Result<(Event, Origin)> {
    let label = format!("[[event]] {position}");
    let r = Reader::new(file, node, "event", label)?;
    let Some(at) = r.entry("at") else { return r.missing("at", "a time such as \"120 s\"") };
    let at = read_quantity(file, "at", &at.node, read_time)?;
    let action = match (r.text("link")?, r.text("path")?) {
        (Some((link, at)), None) => {
            let context = link::Context { link, ..context };
            let link = links.position(file, link, at)?;
            let (cut, down, up) = link::read_change(&r, context)?;
            Action::Link { link, cut, down: Box::new(down), up: Box::new(up) }
        }
        (None, Some((path, at))) => {
            let path = paths.position(file, path, at)?;
            if let Some(entry) = r.entries().iter().find(|e| !["at", "path", "down"].contains(&e.key.as_str())) {
                let complaint =
                    Complaint::new(format!("an event of a path cannot change `{}`", entry.key), "`down` only");
                return r.fail(complaint, &entry.at);
            }
            if !r.has("down") {
                return r.missing("down", "true or false");
            }
            Action::Path { path, down: r.flag("down")? }
        }
        (Some(_), Some((_, at))) => {
            return r.fail(Complaint::new("an event has both `link` and `path`", "one of them"), at);
        }
        (None, None) => return r.missing("link", "`link` or `path`: the name of what changes"),
    };
    Ok((Event { at, action }, node.at.clone()))
}
