//! Options of a replaceable part, as a scenario writes them: `{ name = "cubic", constants = "rfc9438" }`.

use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// The value of one option.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// One of a list of words.
    Text(String),
    /// A number, in the unit that the option's documentation gives.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// Several values in their order. Only parts that come from outside take one.
    List(Vec<Value>),
}

/// Named option values. The part consumes the names it knows; any other name is an error that lists the valid ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    entries: Vec<(String, Value)>,
}

/// An option that the part does not know or cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The option's name.
    pub option: String,
    /// The fault and the valid values.
    pub message: String,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option `{}`: {}", self.option, self.message)
    }
}

impl std::error::Error for OptionError {}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> de::Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word, a number, true or false, or a list of these")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_string()))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
                Ok(Value::Number(n as f64))
            }

            fn visit_f64<E: de::Error>(self, x: f64) -> Result<Value, E> {
                Ok(Value::Number(x))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Value::List(list))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Options {
    /// The named values, in the order in which they were given.
    pub fn entries(&self) -> &[(String, Value)] {
        &self.entries
    }

    /// From named values.
    pub fn new(entries: Vec<(String, Value)>) -> Self {
        Options { entries }
    }

    /// A copy without the option `name`.
    pub fn without(&self, name: &str) -> Self {
        Options { entries: self.entries.iter().filter(|(key, _)| key != name).cloned().collect() }
    }

    /// Refuses options that are not among `known`.
    pub fn expect_only(&self, known: &[&str]) -> Result<(), OptionError> {
        match self.entries.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) if known.is_empty() => Err(error(name, "there are no options here".into())),
            Some((name, _)) => Err(error(name, format!("unknown; known are {}", known.join(", ")))),
        }
    }

    /// The word given for `name`, which must be one of `allowed`; the first of them if nothing was given.
    pub fn word<'a>(&self, name: &str, allowed: &[&'a str]) -> Result<&'a str, OptionError> {
        match self.find(name) {
            None => Ok(allowed[0]),
            Some(Value::Text(text)) => allowed
                .iter()
                .find(|word| *word == text)
                .copied()
                .ok_or_else(|| error(name, format!("`{text}` is none of {}", allowed.join(", ")))),
            Some(_) => {
                Err(error(name, format!("expected one of {}; the default is {}", allowed.join(", "), allowed[0])))
            }
        }
    }

    /// The number given for `name`, which must lie within `range`; `default` if nothing was given.
    pub fn number(&self, name: &str, default: f64, range: std::ops::RangeInclusive<f64>) -> Result<f64, OptionError> {
        match self.find(name) {
            None => Ok(default),
            Some(Value::Number(n)) if range.contains(n) => Ok(*n),
            Some(_) => {
                let (least, most) = (range.start(), range.end());
                Err(error(name, format!("expected a number from {least} to {most}; the default is {default}")))
            }
        }
    }

    /// The flag given for `name`; `default` if nothing was given.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, OptionError> {
        match self.find(name) {
            None => Ok(default),
            Some(Value::Flag(flag)) => Ok(*flag),
            Some(_) => Err(error(name, format!("expected true or false; the default is {default}"))),
        }
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.entries.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

fn error(option: &str, message: String) -> OptionError {
    OptionError { option: option.into(), message }
}
