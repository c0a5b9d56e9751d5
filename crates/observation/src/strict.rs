//! Reading JSON of our own, such as `metrics.json`: what is missing, renamed, unknown or no number is refused by its
//! key.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// Why a text is refused: the key, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Reads a value that has every key of its type and no other. Serde alone takes an absent `Option` for `None`, and
/// ignores unknown keys next to flattened structs; so the value that was read is written again, and has to give the
/// same keys and values.
///
/// # Errors
/// If the text is no JSON (JSON has no NaN), a key is missing or unknown, or a value has the wrong type. The message
/// names it.
pub fn read<T: Serialize + DeserializeOwned>(text: &str) -> Result<T, Unreadable> {
    let refused = |error: &dyn fmt::Display| Unreadable(error.to_string());
    let mut json = serde_json::Deserializer::from_str(text);
    let value: Value = serde_path_to_error::deserialize(&mut json).map_err(|error| refused(&error))?;
    json.end().map_err(|error| refused(&error))?;
    let read: T = serde_path_to_error::deserialize(&value).map_err(|error| refused(&error))?;
    let written = serde_json::to_value(&read).map_err(|error| refused(&error))?;
    match difference(&value, &written, "") {
        Some(difference) => Err(Unreadable(difference)),
        None => Ok(read),
    }
}

/// Where what was given first differs from what was read.
fn difference(given: &Value, read: &Value, at: &str) -> Option<String> {
    let inside = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            let unknown = given.keys().find(|key| !read.contains_key(*key));
            if let Some(key) = unknown {
                return Some(format!("unknown key `{}`", inside(key)));
            }
            read.iter().find_map(|(key, read)| match given.get(key) {
                Some(given) => difference(given, read, &inside(key)),
                None => Some(format!("missing key `{}`", inside(key))),
            })
        }
        (Value::Array(given), Value::Array(read)) if given.len() == read.len() => {
            let pairs = given.iter().zip(read).enumerate();
            pairs
                .into_iter()
                .find_map(|(position, (given, read))| difference(given, read, &format!("{at}[{position}]")))
        }
        (Value::Number(given), Value::Number(read)) if given.as_f64() == read.as_f64() => None,
        _ => (given != read).then(|| format!("`{at}`: {given} was read as {read}")),
    }
}
