//! Reads tables of the tree against the reference of keys: unknown ones are refused, missing ones get their defaults.

use super::document::{Entry, Node, Origin, Table, Value};
use super::reference;
use crate::error::{Error, nearest};
use crate::quantity::Problem;

pub(super) type Result<T> = std::result::Result<T, Error>;

/// Reads a text with a unit.
pub(super) type ReadQuantity<T> = fn(&str) -> std::result::Result<T, Problem>;

/// What is wrong at a place, without the place.
pub(super) struct Complaint {
    message: String,
    expected: String,
    nearest: Option<String>,
}

impl Complaint {
    pub fn new(message: impl Into<String>, expected: impl Into<String>) -> Self {
        Complaint { message: message.into(), expected: expected.into(), nearest: None }
    }

    /// A name that is none of the known ones.
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let expected = match known.as_slice() {
            [] => "nothing: there is none".to_string(),
            [only] => format!("`{only}`"),
            many => format!("one of {}", many.join(", ")),
        };
        let nearest = nearest(name, known.iter().copied());
        Complaint { message: format!("unknown {what} `{name}`"), expected, nearest }
    }

    /// Puts the complaint in its place.
    pub fn at(self, file: &str, origin: &Origin) -> Error {
        let Complaint { message, expected, nearest } = self;
        match origin {
            Origin::Text { line, column } => {
                Error { file: file.to_string(), line: *line, column: *column, message, expected, nearest }
            }
            Origin::Override(text) => {
                Error { file: format!("--set {text}"), line: 0, column: 0, message, expected, nearest }
            }
        }
    }
}

/// One table of the scenario.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    pub file: &'a str,
    /// Where the table stands.
    pub at: &'a Origin,
    /// How messages call it, such as `[link.wifi]`.
    pub label: String,
    table: &'a Table,
    section: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader of a table that may have the keys of a section of the reference, and no others.
    pub fn new(file: &'a str, node: &'a Node, section: &'static str, label: impl Into<String>) -> Result<Self> {
        let reader = Reader::unchecked(file, node, section, label)?;
        let known = || reference::keys(section);
        for entry in &reader.table.entries {
            if !known().any(|key| key == entry.key) {
                let what = format!("key in {}:", reader.label);
                return Err(Complaint::unknown(&what, &entry.key, known()).at(file, &entry.at));
            }
        }
        Ok(reader)
    }

    /// The same without the check, for tables whose keys are names.
    pub fn unchecked(file: &'a str, node: &'a Node, section: &'static str, label: impl Into<String>) -> Result<Self> {
        let label = label.into();
        let Value::Table(table) = &node.value else {
            let message = format!("{label} is {}", node.value.kind());
            return Err(Complaint::new(message, "a table").at(file, &node.at));
        };
        Ok(Reader { file, at: &node.at, label, table, section })
    }

    pub fn entries(&self) -> &'a [Entry] {
        &self.table.entries
    }

    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table.get(key)
    }

    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    pub fn fail<T>(&self, complaint: Complaint, at: &Origin) -> Result<T> {
        Err(complaint.at(self.file, at))
    }

    /// The complaint that a key without a default is missing.
    pub fn missing<T>(&self, key: &str, expected: &str) -> Result<T> {
        self.fail(Complaint::new(format!("{} has no `{key}`", self.label), expected), self.at)
    }

    /// The quantity under a key, if it was given.
    pub fn quantity<T>(&self, key: &str, read: ReadQuantity<T>) -> Result<Option<T>> {
        self.entry(key).map(|entry| self.quantity_of(entry, read)).transpose()
    }

    /// The quantity under a key, else the default of the reference.
    pub fn quantity_or_default<T>(&self, key: &str, read: ReadQuantity<T>) -> Result<T> {
        match self.quantity(key, read)? {
            Some(value) => Ok(value),
            None => Ok(default_quantity(self.section, key, read)),
        }
    }

    fn quantity_of<T>(&self, entry: &Entry, read: ReadQuantity<T>) -> Result<T> {
        read_quantity(self.file, &entry.key, &entry.node, read)
    }

    /// The text under a key.
    pub fn text(&self, key: &str) -> Result<Option<(&'a str, &'a Origin)>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        match &entry.node.value {
            Value::Text(text) => Ok(Some((text, &entry.node.at))),
            other => self.fail(wrong_kind(key, other, "a text"), &entry.node.at),
        }
    }

    /// A flag, else the default of the reference.
    pub fn flag(&self, key: &str) -> Result<bool> {
        let Some(entry) = self.entry(key) else { return Ok(reference::default(self.section, key) == "true") };
        match &entry.node.value {
            Value::Flag(flag) => Ok(*flag),
            other => self.fail(wrong_kind(key, other, "true or false"), &entry.node.at),
        }
    }

    /// A whole number in a range, if it was given.
    pub fn integer(&self, key: &str, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let expected = match (*range.start(), *range.end()) {
            (start, end) if end >= u64::from(u32::MAX) => format!("a whole number of at least {start}"),
            (start, end) => format!("a whole number from {start} to {end}"),
        };
        match &entry.node.value {
            Value::Integer(n) => match u64::try_from(*n) {
                Ok(n) if range.contains(&n) => Ok(Some(n)),
                _ => self.fail(Complaint::new(format!("`{key}` is {n}"), expected), &entry.node.at),
            },
            other => self.fail(wrong_kind(key, other, &expected), &entry.node.at),
        }
    }

    /// A whole number, else the default of the reference.
    pub fn integer_or_default(&self, key: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        match self.integer(key, range)? {
            Some(n) => Ok(n),
            None => Ok(reference::default(self.section, key).parse().expect("the reference's default is a number")),
        }
    }

    /// A number in a range, if it was given.
    pub fn number(&self, key: &str, range: std::ops::RangeInclusive<f64>) -> Result<Option<f64>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        let expected = format!("a number from {} to {}", range.start(), range.end());
        let n = match &entry.node.value {
            Value::Integer(n) => *n as f64,
            Value::Float(x) => *x,
            other => return self.fail(wrong_kind(key, other, &expected), &entry.node.at),
        };
        if !range.contains(&n) {
            return self.fail(Complaint::new(format!("`{key}` is {n}"), expected), &entry.node.at);
        }
        Ok(Some(n))
    }

    /// One of the allowed words, else the default of the reference.
    pub fn word(&self, key: &str, allowed: &[&'static str]) -> Result<&'static str> {
        let (text, at) = match self.text(key)? {
            Some(given) => given,
            None => (reference::default(self.section, key), self.at),
        };
        match allowed.iter().find(|word| **word == text) {
            Some(word) => Ok(word),
            None => self.fail(Complaint::unknown(&format!("`{key}`:"), text, allowed.iter().copied()), at),
        }
    }

    /// The nodes of a list; none if it was not given.
    pub fn list(&self, key: &str) -> Result<Option<&'a [Node]>> {
        let Some(entry) = self.entry(key) else { return Ok(None) };
        match &entry.node.value {
            Value::List(list) => Ok(Some(list)),
            other => self.fail(wrong_kind(key, other, "a list"), &entry.node.at),
        }
    }

    /// A list of texts with their places.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<(&'a str, &'a Origin)>>> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        let text = |node: &'a Node| match &node.value {
            Value::Text(text) => Ok((text.as_str(), &node.at)),
            other => self.fail(wrong_kind(key, other, "a list of texts"), &node.at),
        };
        list.iter().map(text).collect::<Result<_>>().map(Some)
    }
}

/// The complaint that a value is of the wrong kind.
pub(super) fn wrong_kind(key: &str, value: &Value, expected: &str) -> Complaint {
    Complaint::new(format!("`{key}` is {}", value.kind()), expected)
}

/// The default of the reference as a quantity.
pub(super) fn default_quantity<T>(section: &'static str, key: &str, read: ReadQuantity<T>) -> T {
    match read(reference::default(section, key)) {
        Ok(value) => value,
        Err(problem) => panic!("the reference's default of {section}.{key}: {}", problem.message),
    }
}

/// A quantity from the node under a key. A zero may stand without quotes, because it needs no unit.
pub(super) fn read_quantity<T>(file: &str, key: &str, node: &Node, read: ReadQuantity<T>) -> Result<T> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(n) => n.to_string(),
        Value::Float(x) => x.to_string(),
        other => {
            let expected = read("").err().map_or_else(String::new, |problem| problem.expected);
            return Err(wrong_kind(key, other, &expected).at(file, &node.at));
        }
    };
    read(&text).map_err(|problem| {
        let Problem { message, expected, nearest } = problem;
        Complaint { message: format!("`{key}`: {message}"), expected, nearest }.at(file, &node.at)
    })
}
