//! Overrides of the command line: `transport.scheduler=gr-sty`, `session.0.player.kind=vlc`.
//!
//! A table merges into the table that stands there, key by key, as a dictionary in a dictionary of Python's does. It
//! replaces a table of another kind, whose keys would mean nothing. A list replaces a list as a whole, and `{}` empties
//! a table.

use super::document::{Entry, Node, Origin, Table, Value, parse_value};
use super::mistake::Mistake;
use super::short_forms::open;
use crate::error::Error;

/// Writes one override into the tree. The schema checks whether the key exists at all: it knows
/// that the value came from an override, and says so. Here only the way to it is checked.
pub(super) fn apply(root: &mut Node, key: &str, text: &str) -> Result<(), Error> {
    let origin = Origin::Override(format!("{key}={text}"));
    let node = parse_value(text, &origin).unwrap_or_else(|| Node::text(text, &origin));
    let steps: Vec<&str> = key.split('.').map(str::trim).collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err(refuse(&origin, format!("`{key}` is no dotted key"), "a key such as `transport.scheduler`"));
    }
    put(root, &steps, node, &origin)
}

/// Puts a value at the end of the steps: a table entry by entry, where a table that it can merge with is there.
fn put(root: &mut Node, steps: &[&str], node: Node, origin: &Origin) -> Result<(), Error> {
    let mut place = &mut *root;
    let mut parent = "";
    for (depth, step) in steps.iter().enumerate() {
        open_short_form(place, parent, origin);
        if depth == 1 && NAMED.contains(&parent) {
            check_declared(place, parent, step, origin)?;
        }
        place = descend(place, step, origin)?;
        parent = step;
    }
    let Value::Table(table) = node.value else {
        *place = node;
        return Ok(());
    };
    let mut there = place.clone();
    if !matches!(there.value, Value::List(_) | Value::Table(_)) {
        open(&mut there, parent);
    }
    if !merges(&table, &there) {
        *place = Node { value: Value::Table(table), at: node.at };
        return Ok(());
    }
    *place = there;
    for entry in table.entries {
        put(root, &[steps, &[entry.key.as_str()]].concat(), entry.node, origin)?;
    }
    Ok(())
}

/// Keys that name the kind of a table: two tables that differ in the value are of two kinds.
const KINDS: [&str; 2] = ["kind", "name"];
/// Keys of which a rate has one, which then says of what kind it is.
const RATES: [&str; 3] = ["rate", "trace", "synthetic"];

/// Whether a table can merge into what stands at its place.
fn merges(table: &Table, there: &Node) -> bool {
    let Some(there) = there.as_table() else { return false };
    let word = |table: &Table, key: &str| match table.get(key).map(|entry| &entry.node.value) {
        Some(Value::Text(word)) => Some(word.clone()),
        _ => None,
    };
    let same = |key: &&str| word(table, key).is_none_or(|new| word(there, key).is_none_or(|old| new == old));
    let rate = |table: &Table| RATES.into_iter().find(|key| table.get(key).is_some_and(|entry| !is_table(&entry.node)));
    // A link has a rate as well, but neither a trace nor a synthetic rate of its own.
    let same_rate = rate(table).is_none_or(|new| rate(there).is_none_or(|old| new == old));
    !table.entries.is_empty() && !there.entries.is_empty() && KINDS.iter().all(same) && same_rate
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

/// Tables whose keys are names, which an override cannot declare: a new one would be a typing error without a message.
const NAMED: [&str; 2] = ["link", "path"];

fn check_declared(tables: &Node, what: &str, name: &str, origin: &Origin) -> Result<(), Error> {
    let Value::Table(table) = &tables.value else { return Ok(()) };
    match table.get(name) {
        Some(_) => Ok(()),
        None => {
            Err(Mistake::unknown(what, name, table.entries.iter().map(|e| e.key.as_str())).at(origin).into_error(""))
        }
    }
}

/// Makes a table of a single value into which an override reaches.
fn open_short_form(node: &mut Node, key: &str, origin: &Origin) {
    if matches!(node.value, Value::Table(_) | Value::List(_)) || open(node, key) {
        return;
    }
    *node = Node::table(Table::default(), origin);
}

fn descend<'a>(node: &'a mut Node, step: &str, origin: &Origin) -> Result<&'a mut Node, Error> {
    match &mut node.value {
        Value::Table(table) => Ok(entry(table, step, origin)),
        Value::List(list) => {
            let count = list.len();
            let position = step.parse::<usize>().ok().filter(|i| *i < count);
            let Some(position) = position else {
                let expected = match count {
                    0 => "nothing: the list is empty".to_string(),
                    n => format!("a position from 0 to {}", n - 1),
                };
                return Err(refuse(origin, format!("`{step}` is no position in the list"), &expected));
            };
            Ok(&mut list[position])
        }
        _ => unreachable!("single values were opened into tables"),
    }
}

fn entry<'a>(table: &'a mut Table, key: &str, origin: &Origin) -> &'a mut Node {
    if table.get(key).is_none() {
        table.entries.push(Entry::new(key, origin, Node::table(Table::default(), origin)));
    }
    let entry = table.get_mut(key).expect("it was just added");
    &mut entry.node
}

fn refuse(origin: &Origin, message: String, expected: &str) -> Error {
    let Origin::Override(text) = origin else { unreachable!("only overrides are applied") };
    Error { file: format!("--set {text}"), line: 0, column: 0, message, expected: expected.to_string(), nearest: None }
}
