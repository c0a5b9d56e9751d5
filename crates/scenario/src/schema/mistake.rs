//! What is wrong with a scenario while it is read: first without its place, then with it.

use super::document::{Origin, Value};
use super::tables::{RATES_EXPECTED, RESOLUTIONS_EXPECTED};
use crate::error::Error;
use anabranch_units::nearest;
use serde::de::{self, Expected, Unexpected};
use std::fmt::{self, Display};

/// A mistake, and its place once that is known.
#[derive(Clone, Debug)]
pub(super) struct Mistake {
    at: Option<Origin>,
    kind: Kind,
    expected: String,
    nearest: Option<String>,
}

/// What is wrong; the words that depend on the place are added with it.
#[derive(Clone, Debug)]
enum Kind {
    /// The message is complete.
    Complete(String),
    /// To be preceded by the name of the key.
    Value(String),
    /// The value is something else: "an integer", or the number itself.
    Is(String),
    /// A word that is none of those allowed; with a name of what it stands for, if that is not the key.
    Word(String, Option<&'static str>),
    /// A key that the table does not have.
    UnknownKey(String),
    /// A key that the table lacks.
    Missing(&'static str),
}

impl Mistake {
    pub fn new(message: impl Into<String>, expected: impl Into<String>) -> Self {
        Mistake { at: None, kind: Kind::Complete(message.into()), expected: expected.into(), nearest: None }
    }

    /// A name that is none of the known ones.
    pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let (expected, nearest) = alternatives(name, &known.into_iter().collect::<Vec<_>>());
        Mistake { nearest, ..Mistake::new(format!("unknown {what} `{name}`"), expected) }
    }

    /// A word that is none of those allowed, for what `what` says, else for the key.
    pub fn word(word: &str, what: Option<&'static str>, known: &[&str]) -> Self {
        let (expected, nearest) = alternatives(word, known);
        Mistake { at: None, kind: Kind::Word(word.into(), what), expected, nearest }
    }

    /// A key that the table does not have.
    pub fn unknown_key(key: &str, known: &[&str]) -> Self {
        let (expected, nearest) = alternatives(key, known);
        Mistake { at: None, kind: Kind::UnknownKey(key.into()), expected, nearest }
    }

    /// A key that the table lacks.
    pub fn missing(key: &'static str, expected: impl Into<String>) -> Self {
        Mistake { kind: Kind::Missing(key), ..Mistake::new("", expected) }
    }

    /// The value is of another kind.
    pub fn wrong_kind(found: &Value, expected: &dyn Expected) -> Self {
        Mistake { kind: Kind::Is(found.kind().into()), ..Mistake::new("", words_for(&expected.to_string())) }
    }

    /// Says what was expected under a missing key, if that is not known yet.
    #[must_use]
    pub fn expecting(mut self, what: impl FnOnce(&str) -> String) -> Self {
        if let Kind::Missing(key) = self.kind
            && self.expected.is_empty()
        {
            self.expected = what(key);
        }
        self
    }

    /// Puts the mistake in its place, unless it has one.
    #[must_use]
    pub fn at(mut self, origin: &Origin) -> Self {
        self.at.get_or_insert_with(|| origin.clone());
        self
    }

    /// The mistake was made in the value of this key.
    #[must_use]
    pub fn in_value(mut self, key: &str, origin: &Origin) -> Self {
        if self.expected == A_LIST {
            self.expected = match key {
                "session" | "traffic" | "event" => format!("a list of tables: [[{key}]]"),
                "rates" => RATES_EXPECTED.into(),
                "resolutions" => RESOLUTIONS_EXPECTED.into(),
                _ => "a list of names".into(),
            };
        }
        self.kind = match self.kind {
            Kind::Value(problem) => Kind::Complete(format!("`{key}`: {problem}")),
            Kind::Is(kind) => Kind::Complete(format!("`{key}` is {kind}")),
            Kind::Word(word, None) => Kind::Complete(format!("unknown `{key}`: `{word}`")),
            Kind::Word(word, Some(what)) => Kind::Complete(format!("unknown {what} `{word}`")),
            other => other,
        };
        self.at(origin)
    }

    /// The mistake concerns the keys of this table.
    #[must_use]
    pub fn in_table(mut self, label: &str, origin: &Origin) -> Self {
        self.kind = match self.kind {
            Kind::UnknownKey(key) => Kind::Complete(format!("unknown key in {label}: `{key}`")),
            Kind::Missing(key) => Kind::Complete(format!("{label} has no `{key}`")),
            other => other,
        };
        self.at(origin)
    }

    /// The mistake as it is shown, in a scenario from this file.
    pub fn into_error(self, file: &str) -> Error {
        let message = match self.kind {
            Kind::Complete(text) | Kind::Value(text) => text,
            Kind::Is(kind) => format!("the value is {kind}"),
            Kind::Word(word, what) => format!("unknown {} `{word}`", what.unwrap_or("word")),
            Kind::UnknownKey(key) => format!("unknown key `{key}`"),
            Kind::Missing(key) => format!("there is no `{key}`"),
        };
        let (expected, nearest) = (self.expected, self.nearest);
        match self.at {
            Some(Origin::Override(text)) => {
                Error { file: format!("--set {text}"), line: 0, column: 0, message, expected, nearest }
            }
            Some(Origin::Key(way)) if !way.is_empty() => {
                Error { file: format!("{file}, key `{way}`"), line: 0, column: 0, message, expected, nearest }
            }
            Some(Origin::Text { line, column }) => {
                Error { file: file.to_string(), line, column, message, expected, nearest }
            }
            Some(Origin::Key(_)) | None => {
                Error { file: file.to_string(), line: 0, column: 0, message, expected, nearest }
            }
        }
    }
}

/// What would be right, and what was probably meant.
pub(super) fn alternatives(name: &str, known: &[&str]) -> (String, Option<String>) {
    let expected = match known {
        [] => "nothing: there is none".to_string(),
        [only] => format!("`{only}`"),
        many => format!("one of {}", many.join(", ")),
    };
    (expected, nearest(name, known.iter().copied()))
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.clone().into_error("the scenario"))
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    /// A text of the form `message; expected what would be right; did you mean `word`?`, as quantities give it.
    fn custom<T: Display>(text: T) -> Self {
        let text = text.to_string();
        let (rest, nearest) = match text.split_once("; did you mean `") {
            Some((rest, word)) => (rest, Some(word.trim_end_matches("`?").to_string())),
            None => (text.as_str(), None),
        };
        let (message, expected) = rest.split_once("; expected ").unwrap_or((rest, ""));
        Mistake { at: None, kind: Kind::Value(message.into()), expected: expected.into(), nearest }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
            Unexpected::Float(_) => "a number",
            Unexpected::Str(_) | Unexpected::Char(_) => "a text",
            Unexpected::Seq => "a list",
            _ => "a table",
        };
        Mistake { kind: Kind::Is(found.into()), ..Mistake::new("", words_for(&expected.to_string())) }
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(text) => format!("`{text}`"),
            Unexpected::Unsigned(n) => n.to_string(),
            Unexpected::Signed(n) => n.to_string(),
            Unexpected::Float(x) => x.to_string(),
            other => other.to_string(),
        };
        Mistake { kind: Kind::Is(found), ..Mistake::new("", words_for(&expected.to_string())) }
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Mistake::word(word, None, known)
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Mistake::unknown_key(key, known)
    }

    fn missing_field(key: &'static str) -> Self {
        Mistake::missing(key, "")
    }
}

/// What is expected where a list has another kind of value; the key says of what.
const A_LIST: &str = "a list";

/// serde's names of Rust's types in the words of scenarios.
fn words_for(expected: &str) -> String {
    match expected {
        "a boolean" => "true or false".into(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number".into(),
        "f64" => "a number".into(),
        "a string" => "a text".into(),
        "a sequence" => A_LIST.into(),
        "a map" => "a table".into(),
        other if other.starts_with("struct ") || other.starts_with("tuple struct ") => "a table".into(),
        other if other.starts_with("enum ") => "one of a few words".into(),
        other => other.into(),
    }
}
