//! From what an author writes to the long form, which the tables' structs are.
//!
//! Everything that depends on other keys happens here, on the tree, where each value keeps the place at which it was
//! written: short forms become tables, the keys of a link or an event become those of its directions, `kernel` becomes
//! the keys that it stands for, and what is left out but follows from other keys is added.

use super::document::{Entry, Node, Origin, Table, Value, parse_value};
use super::mistake::Mistake;
use super::short_forms::{KERNELS, open_in};
use super::tables::DirectionSpec;
use anabranch_units::{keys_of, text};

/// Where upstream Linux differs from the defaults, which are legacy Multipath TCP's: keys and values as a scenario
/// would write them. It never had a remedy for a window that one subflow blocks.
const UPSTREAM: [(&str, &str); 7] = [
    ("scheduler", "\"linux\""),
    ("commit", "\"into-buffer\""),
    ("failover", "\"upstream\""),
    ("subflow_windows", "true"),
    ("opportunistic_retransmission", "false"),
    ("penalisation", "false"),
    ("wide_data_seq", "true"),
];

/// Makes the long form of a scenario.
pub(super) fn expand(root: &mut Node) -> Result<(), Mistake> {
    let Some(scenario) = root.as_table_mut() else { return Ok(()) };
    expand_transports(scenario)?;
    if let Some(server) = scenario.get_mut("server").and_then(|entry| entry.node.as_table_mut()) {
        open_in(server, "response_pacing");
    }
    for link in tables_in(scenario, "link") {
        let label = format!("[link.{}]", link.key);
        expand_link(&mut link.node, &label)?;
    }
    add_paths(scenario);
    let paths = names_in(scenario, "path");
    for (_, session) in items_in(scenario, "session") {
        expand_session(session, &paths);
    }
    for (position, event) in items_in(scenario, "event") {
        expand_event(event, &format!("[[event]] {position}"))?;
    }
    Ok(())
}

/// The tables under a key whose keys are names.
fn tables_in<'a>(scenario: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Entry> {
    let tables = scenario.get_mut(key).and_then(|entry| entry.node.as_table_mut());
    tables.into_iter().flat_map(|table| table.entries.iter_mut())
}

/// The tables of a list, with their positions.
fn items_in<'a>(scenario: &'a mut Table, key: &str) -> impl Iterator<Item = (usize, &'a mut Node)> {
    let list = scenario.get_mut(key).and_then(|entry| match &mut entry.node.value {
        Value::List(list) => Some(list),
        _ => None,
    });
    list.into_iter().flat_map(|list| list.iter_mut().enumerate())
}

fn names_in(scenario: &Table, key: &str) -> Vec<String> {
    let tables = scenario.get(key).and_then(|entry| entry.node.as_table());
    tables.map_or_else(Vec::new, |table| table.entries.iter().map(|entry| entry.key.clone()).collect())
}

/// A session's own transport has the scenario's where it says nothing itself.
fn expand_transports(scenario: &mut Table) -> Result<(), Mistake> {
    let common = scenario.get("transport").map(|entry| entry.node.clone());
    for (_, session) in items_in(scenario, "session") {
        let own = session.as_table_mut().and_then(|session| session.get_mut("transport"));
        let Some(own) = own.and_then(|entry| entry.node.as_table_mut()) else { continue };
        let common = common.iter().filter_map(Node::as_table).flat_map(|table| table.entries.iter().cloned());
        common.for_each(|entry| own.add(entry));
        expand_transport(own)?;
    }
    match scenario.get_mut("transport").and_then(|entry| entry.node.as_table_mut()) {
        Some(transport) => expand_transport(transport),
        None => Ok(()),
    }
}

fn expand_transport(transport: &mut Table) -> Result<(), Mistake> {
    for key in ["scheduler", "path_policy", "congestion_control", "receive_buffer"] {
        open_in(transport, key);
    }
    let Some(kernel) = transport.remove("kernel") else { return Ok(()) };
    let at = &kernel.node.at;
    match &kernel.node.value {
        Value::Text(word) if word == KERNELS[0] => Ok(()),
        Value::Text(word) if word == KERNELS[1] => {
            for (key, value) in UPSTREAM {
                let value = parse_value(value, at).expect("the values of upstream Linux are TOML");
                transport.add(Entry::new(key, at, value));
            }
            Ok(())
        }
        Value::Text(word) => Err(Mistake::word(word, None, &KERNELS).in_value("kernel", at)),
        other => Err(Mistake::wrong_kind(other, &"a text").in_value("kernel", at)),
    }
}

/// What a link's table says holds for both directions, but random loss for the downlink, where the data is.
fn expand_link(link: &mut Node, label: &str) -> Result<(), Mistake> {
    let at = link.at.clone();
    let Some(table) = link.as_table_mut() else { return Ok(()) };
    check_keys(table, &["rtt", "up", "down"], label)?;
    for key in ["up", "down"] {
        table.add(Entry::new(key, &at, Node::table(Table::default(), &at)));
    }
    share(table)
}

/// Refuses a key that is neither one of these nor one of a direction.
fn check_keys(table: &Table, own: &[&'static str], label: &str) -> Result<(), Mistake> {
    let known: Vec<&str> = own.iter().chain(keys_of::<DirectionSpec>()).copied().collect();
    match table.entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        None => Ok(()),
        Some(entry) => Err(Mistake::unknown_key(&entry.key, &known).in_table(label, &entry.at)),
    }
}

/// Moves the keys of a direction into both directions, where these do not have them.
fn share(table: &mut Table) -> Result<(), Mistake> {
    halve_round_trip(table)?;
    let shared: Vec<Entry> = keys_of::<DirectionSpec>().iter().filter_map(|key| table.remove(key)).collect();
    shared.iter().try_for_each(|entry| require_effect(entry, table))?;
    for direction in ["up", "down"] {
        let shared = shared.iter().filter(|entry| concerned(entry).contains(&direction));
        if let Some(first) = shared.clone().next() {
            table.add(Entry::new(direction, &first.at, Node::table(Table::default(), &first.at)));
        }
        let own = table.get_mut(direction).and_then(|entry| entry.node.as_table_mut());
        let Some(own) = own else { continue };
        shared.for_each(|entry| own.add(entry.clone()));
        expand_direction(own);
    }
    Ok(())
}

/// The directions that a key of both concerns.
fn concerned(entry: &Entry) -> &'static [&'static str] {
    if entry.key == "loss" { &["down"] } else { &["up", "down"] }
}

/// Refuses an override of a key of both directions that changes nothing, because each of them has its own in the
/// scenario.
fn require_effect(entry: &Entry, table: &Table) -> Result<(), Mistake> {
    // An override that replaces a value leaves the key where it was written.
    let is_override = |entry: &Entry| matches!(entry.node.at, Origin::Override(_));
    let has_own = |direction: &&str| {
        let own = table.get(direction).and_then(|entry| entry.node.as_table()).and_then(|own| own.get(&entry.key));
        own.is_some_and(|own| !is_override(own))
    };
    let concerned = concerned(entry);
    if !is_override(entry) || !concerned.iter().all(has_own) {
        return Ok(());
    }
    let join =
        |suffix: &str| concerned.iter().map(|each| format!("`{each}{suffix}`")).collect::<Vec<_>>().join(" and ");
    let own = if concerned.len() == 1 { "has its own" } else { "have their own" };
    let message = format!("`{}` has no effect, because {} {own}", entry.shown(), join(""));
    Err(Mistake::new(message, format!("{} in its place", join(&format!(".{}", entry.key)))).at(&entry.node.at))
}

fn halve_round_trip(table: &mut Table) -> Result<(), Mistake> {
    let Some(mut rtt) = table.remove("rtt") else { return Ok(()) };
    if let Some(delay) = table.get("delay") {
        let remedy = "one of them: leave out `delay`, which is half of `rtt` then, or leave out `rtt`";
        return Err(Mistake::new("both `rtt` and `delay` are given", remedy).at(&delay.at));
    }
    let time: anabranch_units::Duration =
        super::deserialize::from_node(&rtt.node).map_err(|mistake| mistake.in_value("rtt", &rtt.node.at))?;
    rtt.node.value = Value::Text(text::write_time(time / 2));
    table.add(Entry { key: "delay".into(), written: Some("rtt".into()), ..rtt });
    Ok(())
}

fn expand_direction(direction: &mut Table) {
    for key in ["rate", "queue", "loss"] {
        open_in(direction, key);
    }
    let Some(rate) = direction.get_mut("rate") else { return };
    let at = rate.node.at.clone();
    let Some(rate) = rate.node.as_table_mut() else { return };
    let distinguishing =
        [("trace", "trace"), ("synthetic", "synthetic"), ("burst", "token-bucket"), ("peak", "token-bucket")];
    let kind = distinguishing.iter().find(|(key, _)| rate.get(key).is_some()).map_or("constant", |(_, kind)| kind);
    rate.add(Entry::new("kind", &at, Node::text(kind, &at)));
}

/// A path per link where none is written.
fn add_paths(scenario: &mut Table) {
    let links = scenario.get("link").and_then(|entry| entry.node.as_table()).cloned().unwrap_or_default();
    if scenario.get("path").is_some_and(|entry| entry.node.as_table().is_none_or(|table| !table.entries.is_empty())) {
        return;
    }
    let Some(at) = links.entries.first().map(|entry| entry.at.clone()) else { return };
    let path = |link: &Entry| {
        let names = Node { value: Value::List(vec![Node::text(&link.key, &link.at)]), at: link.at.clone() };
        let table = Table { entries: vec![Entry::new("links", &link.at, names)] };
        Entry::new(&link.key, &link.at, Node::table(table, &link.at))
    };
    scenario.remove("path");
    let paths = Table { entries: links.entries.iter().map(path).collect() };
    scenario.add(Entry::new("path", &at, Node::table(paths, &at)));
}

/// All paths, endless bulk, and the usual player of the video, where the session says nothing of them.
fn expand_session(session: &mut Node, paths: &[String]) {
    let at = session.at.clone();
    let Some(table) = session.as_table_mut() else { return };
    let names = Value::List(paths.iter().map(|path| Node::text(path, &at)).collect());
    table.add(Entry::new("paths", &at, Node { value: names, at: at.clone() }));
    let bulk = Table { entries: vec![Entry::new("kind", &at, Node::text("bulk", &at))] };
    table.add(Entry::new("video", &at, Node::table(bulk, &at)));
    let video = table.get("video").and_then(|entry| entry.node.as_table()).and_then(|video| video.get("kind"));
    let usual = match video.map(|kind| &kind.node.value) {
        Some(Value::Text(kind)) if kind == "progressive" => "vlc",
        Some(Value::Text(kind)) if kind == "dash" => "dash.js-5",
        _ => "bulk",
    };
    table.add(Entry::new("player", &at, Node::text(usual, &at)));
    open_in(table, "player");
    if let Some(player) = table.get_mut("player").and_then(|entry| entry.node.as_table_mut()) {
        player.add(Entry::new("kind", &at, Node::text(usual, &at)));
    }
}

/// `down = true` is a cut; the keys of links hold for both directions.
fn expand_event(event: &mut Node, label: &str) -> Result<(), Mistake> {
    let Some(table) = event.as_table_mut() else { return Ok(()) };
    check_keys(table, &["at", "link", "path", "down", "up", "rtt", "cut", "session", "reads", "writes"], label)?;
    let names = ["link", "path", "session"].map(|key| table.get(key).is_some());
    if names == [false, true, false] {
        refuse_changes(table, "path", &["down", "cut"], "`down` only")?;
    } else if names == [false, false, true] {
        refuse_changes(table, "session", &["reads", "writes"], "`reads` or `writes`")?;
    }
    if let Some(Entry { node: Node { value: Value::Flag(_), .. }, .. }) = table.get("down") {
        let down = table.remove("down").expect("it was just found");
        table.add(Entry { key: "cut".into(), written: Some("down".into()), ..down });
    }
    share(table)
}

/// An interface only goes away and comes back, and a program only stops and goes on.
fn refuse_changes(event: &Table, of: &str, known: &[&str], expected: &'static str) -> Result<(), Mistake> {
    let is_known = |key: &str| key == "at" || key == of || known.contains(&key);
    match event.entries.iter().find(|entry| !is_known(&entry.key)) {
        None => Ok(()),
        Some(entry) => {
            let message = format!("an event of a {of} cannot change `{}`", entry.key);
            Err(Mistake::new(message, expected).at(&entry.at))
        }
    }
}
