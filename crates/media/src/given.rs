//! Which options a scenario has given: a player or rule names those that it knows, and every other one is refused.

use serde::Serialize;
use serde_json::Value;

/// The first option, by its name, that is given and not among `known`. What is absent serialises to null, so that an
/// option is named only where it is declared.
pub(crate) fn first_unknown(options: &impl Serialize, known: &[&str]) -> Option<String> {
    let Ok(Value::Object(options)) = serde_json::to_value(options) else { panic!("options are a table") };
    let unknown = options.into_iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_str()));
    unknown.map(|(name, _)| name).min()
}
