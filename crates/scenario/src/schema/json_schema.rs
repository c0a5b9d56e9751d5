//! The JSON Schema of scenarios, which follows from the tables' structs.
//!
//! [`json_schema`] describes what an author may write, for completion and underlines in editors; messages and the
//! reference page take their keys, defaults and meanings from the same source.

use super::short_forms::{FILLED_IN, KERNELS, SHORT_FORMS, SHORT_KEYS, ShortForm};
use super::tables::{DirectionSpec, Scenario};
use anabranch_stack::connection::EXTERNAL_NAME;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The long form, as the structs have it.
static LONG: LazyLock<Map<String, Value>> = LazyLock::new(|| match schemars::schema_for!(Scenario).to_value() {
    Value::Object(schema) => schema,
    other => unreachable!("the schema of a struct is a table, not {other}"),
});

/// The schema of one type.
pub(super) fn type_schema(name: &str) -> Option<&'static Map<String, Value>> {
    if name == "Scenario" { Some(&LONG) } else { LONG.get("$defs")?.get(name)?.as_object() }
}

fn properties(name: &str) -> Option<&'static Map<String, Value>> {
    type_schema(name)?.get("properties")?.as_object()
}

/// One key of one kind of table, for the reference page.
pub(super) struct Key {
    pub name: &'static str,
    /// The default as the scenario would write it, texts without quotes; none if the key is required, or if its absence
    /// means something that `meaning` explains.
    pub default: Option<String>,
    /// What it means.
    pub meaning: String,
    pub required: bool,
}

/// The keys of a table with what there is to say about them.
pub(super) fn reference(type_name: &str) -> Vec<Key> {
    let required = type_schema(type_name).and_then(|schema| schema.get("required")?.as_array());
    let is_required = |key: &str| required.is_some_and(|list| list.iter().any(|name| name == key));
    let usual = usual_direction(type_name);
    let keys = properties(type_name).into_iter().flatten().map(|(name, schema)| Key {
        name,
        default: usual.get(name).or(schema.get("default")).and_then(default_text),
        meaning: meaning_of(schema),
        required: is_required(name),
    });
    keys.collect()
}

/// One of the tables that a key may have, by its `kind`.
pub(super) struct Kind {
    pub name: &'static str,
    /// What it means, in one sentence.
    pub meaning: String,
    /// The type that has its keys.
    pub table: &'static str,
}

/// The kinds of a type that is one of several tables.
pub(super) fn kinds(type_name: &str) -> Vec<Kind> {
    let variants = type_schema(type_name).and_then(|schema| schema.get("oneOf")?.as_array());
    let kind = |variant: &'static Value| {
        let name = variant["properties"]["kind"]["const"].as_str()?;
        let table = variant["$ref"].as_str()?.rsplit('/').next()?;
        Some(Kind { name, meaning: meaning_of(variant), table })
    };
    variants.into_iter().flatten().filter_map(kind).collect()
}

/// A link's defaults are one value, because an event has none.
fn usual_direction(type_name: &str) -> Map<String, Value> {
    if type_name != "DirectionSpec" {
        return Map::new();
    }
    match serde_json::to_value(DirectionSpec::usual()) {
        Ok(Value::Object(table)) => table,
        _ => Map::new(),
    }
}

fn meaning_of(schema: &Value) -> String {
    let described = schema.get("description").and_then(Value::as_str);
    described.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A default as a scenario would write it; a table with a single value in its short form.
fn default_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(list) if list.is_empty() => None,
        Value::Object(table) => {
            let values: Vec<&Value> =
                table.iter().filter(|(key, _)| !["kind", "at"].contains(&key.as_str())).map(|(_, v)| v).collect();
            match values[..] {
                [Value::String(single)] => Some(single.clone()),
                _ => {
                    let pairs =
                        table.iter().filter_map(|(key, value)| Some(format!("{key} = \"{}\"", default_text(value)?)));
                    let pairs: Vec<_> = pairs.collect();
                    (!pairs.is_empty() && pairs.len() < 4).then(|| format!("{{ {} }}", pairs.join(", ")))
                }
            }
        }
        other => Some(other.to_string()),
    }
}

/// What is expected under a key of a table.
pub(super) fn expected_of(type_name: &str, key: &str) -> String {
    properties(type_name).and_then(|keys| keys.get(key)).map_or_else(String::new, expected)
}

fn expected(schema: &Value) -> String {
    if let Some(text) = schema.get("x-expected").and_then(Value::as_str) {
        return text.to_string();
    }
    let referred = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    if let Some(found) = referred.and_then(type_schema) {
        return expected(&Value::Object(found.clone()));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => "a list of names".into(),
        Some("boolean") => "true or false".into(),
        Some("string") => "a text".into(),
        Some("integer") => match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), _) => format!("a whole number of at least {least}"),
            _ => "a whole number".into(),
        },
        Some("number") => "a number".into(),
        _ => "a table".into(),
    }
}

/// The JSON Schema (draft 2020-12) of what an author may write in a scenario.
pub fn json_schema() -> Value {
    let mut root = LONG.clone();
    root.insert("title".into(), "Anabranch scenario".into());
    let direction = properties("DirectionSpec").cloned().unwrap_or_default();
    let mut definitions = match root.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let inlined: Vec<(String, Value)> =
        definitions.iter().map(|(name, schema)| (name.clone(), inline_variants(schema, &definitions))).collect();
    for (name, mut schema) in inlined {
        let Some(table) = schema.as_object_mut() else { continue };
        accept_short_keys(&name, table, &direction);
        open_short_forms(table, &definitions);
        close(table);
        definitions.insert(name, schema);
    }
    root.insert("$defs".into(), Value::Object(definitions));
    close(&mut root);
    Value::Object(root)
}

/// A variant has the key that names it in addition to those of its own table, so that what neither has can be refused.
fn inline_variants(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    for variant in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(variant) = variant.as_object_mut() else { continue };
        let Some(Value::String(path)) = variant.remove("$ref") else { continue };
        let content = path.rsplit('/').next().and_then(|name| definitions.get(name));
        let Some(content) = content.and_then(Value::as_object) else { continue };
        for key in ["properties", "required"] {
            match (variant.get_mut(key), content.get(key)) {
                (Some(Value::Object(own)), Some(Value::Object(more))) => own.extend(more.clone()),
                (Some(Value::Array(own)), Some(Value::Array(more))) => own.extend(more.clone()),
                _ => {}
            }
        }
    }
    schema
}

/// Adds the keys that only the short form has. Keys that are demanded only because the long form has them may be
/// absent.
fn accept_short_keys(name: &str, table: &mut Map<String, Value>, direction: &Map<String, Value>) {
    if FILLED_IN.contains(&name) {
        table.remove("required");
    }
    if name == "Rate" {
        demand_no_kind(table);
    }
    let Some(Value::Object(properties)) = table.get_mut("properties") else { return };
    if ["Link", "Event"].contains(&name) {
        properties.extend(direction.iter().map(|(key, schema)| (key.clone(), schema.clone())));
    }
    for short in SHORT_KEYS.iter().filter(|short| short.table == name) {
        let mut schema = match short.key {
            "kernel" => json!({ "enum": KERNELS }),
            // A round trip is a time, as the delay is.
            _ => direction.get("delay").cloned().unwrap_or_default(),
        };
        schema["description"] = short.meaning.into();
        properties.insert(short.key.into(), schema);
    }
    if name == "Event"
        && let Some(down) = properties.get("down").cloned()
    {
        let description = down.get("description").cloned().unwrap_or_default();
        let either = json!({ "description": description, "anyOf": [{ "type": "boolean" }, down] });
        properties.insert("down".into(), either);
    }
}

/// The kind of a rate follows from its other keys.
fn demand_no_kind(table: &mut Map<String, Value>) {
    for variant in table.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(required) = variant.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|key| key != "kind");
        }
    }
}

/// Where a table has a short form, its single value is as good.
fn open_short_forms(table: &mut Map<String, Value>, definitions: &Map<String, Value>) {
    let Some(Value::Object(properties)) = table.get_mut("properties") else { return };
    // The choice of an algorithm is no type of its own here: its schema says that a name will do.
    let single = |form: &ShortForm| definitions.get(form.table)?.get("properties")?.get(form.takes[0]).cloned();
    for form in &SHORT_FORMS {
        let is_table = properties.get(form.key).is_some_and(refers_to_table);
        if let (true, Some(single)) = (is_table, single(form)) {
            let whole = properties[form.key].clone();
            let description = whole.get("description").cloned().unwrap_or_default();
            let mut forms = vec![single, whole];
            if form.key == "player" {
                // A bitrate rule from outside may stand for a plain player with that rule.
                forms.push(json!({ "type": "string", "pattern": EXTERNAL_NAME }));
            }
            let opened = json!({ "description": description, "anyOf": forms });
            properties.insert(form.key.into(), opened);
        }
    }
}

fn refers_to_table(schema: &Value) -> bool {
    schema.get("$ref").is_some() || schema.get("anyOf").is_some_and(|list| list.to_string().contains("$ref"))
}

/// Refuses keys that the table does not have.
fn close(table: &mut Map<String, Value>) {
    if table.contains_key("properties") {
        table.insert("additionalProperties".into(), false.into());
    }
    for variant in table.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(variant) = variant.as_object_mut().filter(|variant| variant.contains_key("properties")) {
            variant.insert("additionalProperties".into(), false.into());
        }
    }
}
