//! A TOML text as a tree in which every key and every value knows where it was written.

use crate::error::Error;
use toml::de::{DeTable, DeValue};

/// Where something was written: a place in the text, or an override of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Line and column, from one.
    Text { line: usize, column: usize },
    /// The override as it was given.
    Override(String),
    /// The way to it, `session[0].video.rate`, in a text that a program wrote from a dictionary.
    Key(String),
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Node>),
    Table(Table),
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub at: Origin,
}

/// Entries in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    /// The key as the author wrote it, where the long form has another one.
    pub written: Option<String>,
    pub at: Origin,
    pub node: Node,
}

impl Entry {
    pub fn new(key: &str, at: &Origin, node: Node) -> Self {
        Entry { key: key.to_string(), written: None, at: at.clone(), node }
    }

    /// What messages call the key.
    pub fn shown(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.key)
    }
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let position = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(position))
    }

    /// Adds an entry, unless there is one with its key.
    pub fn add(&mut self, entry: Entry) {
        if self.get(&entry.key).is_none() {
            self.entries.push(entry);
        }
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }
}

impl Node {
    pub fn text(text: &str, at: &Origin) -> Self {
        Node { value: Value::Text(text.to_string()), at: at.clone() }
    }

    pub fn table(table: Table, at: &Origin) -> Self {
        Node { value: Value::Table(table), at: at.clone() }
    }

    /// The table, if it is one.
    pub fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    /// The table, if it is one.
    pub fn as_table_mut(&mut self) -> Option<&mut Table> {
        if let Value::Table(table) = &mut self.value { Some(table) } else { None }
    }

    /// Says of every key and value how it is reached, instead of where it stands in a text that its author never saw.
    pub fn cite_keys(&mut self, way: &str) {
        let at = Origin::Key(way.to_string());
        match &mut self.value {
            Value::Table(table) => {
                for entry in &mut table.entries {
                    let way = if way.is_empty() { entry.key.clone() } else { format!("{way}.{}", entry.key) };
                    entry.at = Origin::Key(way.clone());
                    entry.node.cite_keys(&way);
                }
            }
            Value::List(list) => {
                for (position, item) in list.iter_mut().enumerate() {
                    item.cite_keys(&format!("{way}[{position}]"));
                }
            }
            _ => {}
        }
        self.at = at;
    }

    /// Where the value at the end of these steps was written, or else the last one on the way to it that was.
    pub fn origin_of(&self, steps: &[&str]) -> &Origin {
        let Some((step, rest)) = steps.split_first() else { return &self.at };
        let next = match &self.value {
            Value::Table(table) => table.get(step).map(|entry| &entry.node),
            Value::List(list) => step.parse::<usize>().ok().and_then(|position| list.get(position)),
            _ => None,
        };
        next.map_or(&self.at, |next| next.origin_of(rest))
    }
}

impl Value {
    /// What the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Parses a whole text.
pub(super) fn parse(text: &str, file: &str) -> Result<Node, Error> {
    let places = Places::new(text);
    let parsed = DeTable::parse(text).map_err(|e| syntax_error(&e, &places, file))?;
    let at = places.origin(0);
    Ok(Node { value: Value::Table(table(parsed.get_ref(), &places, file)?), at })
}

/// Parses one value, as the right side of an override is.
pub(super) fn parse_value(text: &str, origin: &Origin) -> Option<Node> {
    let parsed = DeValue::parse(text).ok()?;
    let places = Places { line_starts: Vec::new(), text, fixed: Some(origin.clone()) };
    value(parsed.get_ref(), places.origin(0), &places, "").ok()
}

fn syntax_error(error: &toml::de::Error, places: &Places<'_>, file: &str) -> Error {
    let (line, column) = places.position(error.span().map_or(0, |span| span.start));
    Error {
        file: file.into(),
        line,
        column,
        message: format!("this is no valid TOML: {}", error.message().replace('\n', "; ")),
        expected: String::new(),
        nearest: None,
    }
}

fn table(parsed: &DeTable<'_>, places: &Places<'_>, file: &str) -> Result<Table, Error> {
    let mut entries = Vec::new();
    for (key, node) in parsed.iter() {
        let start = key.span().start;
        let at = places.origin(start);
        let node = value(node.get_ref(), places.origin(node.span().start), places, file)?;
        entries.push((start, Entry::new(key.get_ref(), &at, node)));
    }
    // The parser's map sorts by name; people number their paths in the order in which they write them.
    entries.sort_by_key(|(start, _)| *start);
    Ok(Table { entries: entries.into_iter().map(|(_, entry)| entry).collect() })
}

fn value(parsed: &DeValue<'_>, at: Origin, places: &Places<'_>, file: &str) -> Result<Node, Error> {
    let unusable = |what: &str| {
        let (line, column) = match &at {
            Origin::Text { line, column } => (*line, *column),
            Origin::Override(_) | Origin::Key(_) => (0, 0),
        };
        Error {
            file: file.into(),
            line,
            column,
            message: format!("{what} has no place in a scenario"),
            expected: "a text, a number, true or false, a list or a table".into(),
            nearest: None,
        }
    };
    let value = match parsed {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => {
            let n = i64::from_str_radix(n.as_str(), n.radix()).map_err(|_| unusable("a number this large"))?;
            Value::Integer(n)
        }
        DeValue::Float(x) => Value::Float(x.as_str().parse().map_err(|_| unusable("such a number"))?),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => return Err(unusable("a date")),
        DeValue::Array(list) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| {
                value(item.get_ref(), places.origin(item.span().start), places, file)
            };
            Value::List(list.iter().map(node).collect::<Result<_, _>>()?)
        }
        DeValue::Table(inner) => Value::Table(table(inner, places, file)?),
    };
    Ok(Node { value, at })
}

/// Turns byte offsets into lines and columns.
struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    fixed: Option<Origin>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Places { text, line_starts, fixed: None }
    }

    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or("");
        (line, before.chars().count() + 1)
    }

    fn origin(&self, offset: usize) -> Origin {
        if let Some(origin) = &self.fixed {
            return origin.clone();
        }
        let (line, column) = self.position(offset);
        Origin::Text { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_know_their_places() {
        let node = parse("[link.z]\nrtt = \"1 ms\"\n[link.a]\n  rate = 3\n", "x").unwrap();
        let Value::Table(root) = &node.value else { panic!() };
        let Value::Table(links) = &root.get("link").unwrap().node.value else { panic!() };
        let names: Vec<_> = links.entries.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let Value::Table(a) = &links.get("a").unwrap().node.value else { panic!() };
        assert_eq!(a.get("rate").unwrap().at, Origin::Text { line: 4, column: 3 });
        assert_eq!(a.get("rate").unwrap().node.at, Origin::Text { line: 4, column: 10 });
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let error = parse("a = 1\nb = = 2\n", "x.toml").unwrap_err();
        assert_eq!((error.file.as_str(), error.line), ("x.toml", 2));
        let error = parse("a = 1\na = 2\n", "x.toml").unwrap_err();
        assert_eq!(error.line, 2);
    }
}
