//! Python values as TOML text, because the scenario's schema is read from text and nowhere else.

use crate::InputError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::fmt;

/// A value that TOML can write. Tables keep their order, which matters: people number their paths by it.
enum Value {
    Flag(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Integer(n) => serializer.serialize_i64(*n),
            Value::Float(x) => serializer.serialize_f64(*x),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for item in list {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Value::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// A scenario given as a dictionary, as the text of a scenario file.
pub(crate) fn document_text(table: &Bound<'_, PyMapping>, name: &str) -> PyResult<String> {
    let value = convert(table.as_any(), &Place::Whole(name))?;
    toml::to_string(&value).map_err(|e| InputError::new_err(format!("{name} cannot be written as TOML: {e}")))
}

/// One value as the right side of an override: texts as they are (the schema decides how to read them), the rest as
/// TOML.
#[pyfunction]
pub fn value_text(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    let mut text = String::new();
    let converted = convert(value, &Place::Whole(key))?;
    converted
        .serialize(toml::ser::ValueSerializer::new(&mut text))
        .map_err(|e| InputError::new_err(format!("`{key}` cannot be written as TOML: {e}")))?;
    Ok(text)
}

/// Where a value stands, for messages: `scenario`, or `scenario, key `session[0].count``.
enum Place<'a> {
    /// What was given.
    Whole(&'a str),
    /// A value under a key of a table.
    Key(&'a Place<'a>, &'a str),
    /// A value in a list.
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// What was given, and the way from there.
    fn parts(&self) -> (&str, String) {
        match self {
            Place::Whole(name) => (name, String::new()),
            Place::Key(outer, key) => match outer.parts() {
                (name, way) if way.is_empty() => (name, (*key).to_string()),
                (name, way) => (name, format!("{way}.{key}")),
            },
            Place::Item(outer, position) => {
                let (name, way) = outer.parts();
                (name, format!("{way}[{position}]"))
            }
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (name, way) if way.is_empty() => f.write_str(name),
            (name, way) => write!(f, "{name}, key `{way}`"),
        }
    }
}

fn convert(value: &Bound<'_, PyAny>, place: &Place<'_>) -> PyResult<Value> {
    // Booleans are integers in Python, so they come first.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Flag(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let too_large =
            |_| InputError::new_err(format!("{place}: {value} is too large for TOML; expected a 64-bit integer"));
        return Ok(Value::Integer(value.extract().map_err(too_large)?));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Value::Float(number.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.enumerate().map(|(i, item)| convert(&item?, &Place::Item(place, i)));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if let Ok(table) = value.cast::<PyMapping>() {
        return Ok(Value::Table(entries(table, place)?));
    }
    let kind = value.get_type();
    let kind = kind.name()?;
    Err(InputError::new_err(format!(
        "{place}: a value of type `{kind}` has no place in a scenario; expected a text, a number, true or false, a list or a table"
    )))
}

fn entries(table: &Bound<'_, PyMapping>, place: &Place<'_>) -> PyResult<Vec<(String, Value)>> {
    let mut entries = Vec::new();
    for item in table.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(key) = key.extract::<String>() else {
            return Err(InputError::new_err(format!("{place}: the key {key} is no text; expected a text")));
        };
        let converted = convert(&value, &Place::Key(place, &key))?;
        entries.push((key, converted));
    }
    Ok(entries)
}
