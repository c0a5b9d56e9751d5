//! Overrides of the command line: `transport.scheduler=gr-sty`, `session.0.player.kind=vlc`.

use super::document::{Entry, Node, Origin, Table, Value, parse_value};
use super::mistake::Mistake;
use super::short_forms::open;
use crate::error::Error;

/// Writes one override into the tree. Whether the key exists at all is the schema's business, which knows
/// that the value came from an override and says so; here only the way to it is checked.
pub(super) fn apply(root: &mut Node, key: &str, text: &str) -> Result<(), Error> {
    let origin = Origin::Override(format!("{key}={text}"));
    let node = parse_value(text, &origin).unwrap_or_else(|| Node::text(text, &origin));
    let steps: Vec<&str> = key.split('.').map(str::trim).collect();
    if steps.iter().any(|step| step.is_empty()) {
        return Err(refuse(&origin, format!("`{key}` is no dotted key"), "a key such as `transport.scheduler`"));
    }
    let mut place = root;
    let mut parent = "";
    for (depth, step) in steps.iter().enumerate() {
        open_short_form(place, parent, &origin);
        if depth == 1 && NAMED.contains(&parent) {
            check_declared(place, parent, step, &origin)?;
        }
        place = descend(place, step, &origin)?;
        parent = step;
    }
    *place = node;
    Ok(())
}

/// Tables whose keys are names, which an override cannot declare: a new one would be a typing error that nobody notices.
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
