//! Groups of metrics in JSON: read so that an error names the key, and null as a whole where they were not observed.
//!
//! These are functions for serde's `with`, on fields that are flattened as well as on those that are not. The keys of a
//! group are the names of its fields, which its own `Deserialize` gives: they are written once.

use anabranch_units::keys_of;
use serde::de::{DeserializeOwned, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// A group that is always observed.
pub mod required {
    use super::{DeserializeOwned, Deserializer, Serialize, Serializer, members};

    /// Writes the group.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Serialize, S: Serializer>(group: &T, serializer: S) -> Result<S::Ok, S::Error> {
        group.serialize(serializer)
    }

    /// Reads the group.
    ///
    /// # Errors
    /// If a key is missing or has a value of another type; the message names it.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        members::<T, D>(deserializer).and_then(super::read)
    }
}

/// A group that is observed as a whole or not at all: then all its keys are there and null.
pub mod observable {
    use super::{DeserializeOwned, Deserializer, Serialize, Serializer, are_null, members, write_nulls};

    /// Writes the group, or null for each of its keys.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T, S>(group: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize + DeserializeOwned,
        S: Serializer,
    {
        match group {
            Some(group) => group.serialize(serializer),
            None => write_nulls::<T, S>(serializer),
        }
    }

    /// Reads the group; none if all its keys are there and null.
    ///
    /// # Errors
    /// If a key is missing or has a value of another type; the message names it.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: DeserializeOwned,
        D: Deserializer<'de>,
    {
        let members = members::<T, D>(deserializer)?;
        if are_null::<T>(&members) { Ok(None) } else { super::read(members).map(Some) }
    }
}

/// A flattened group that some sessions do not have: `None` and no key. The others' group may be not observed:
/// `Some(None)` and all keys null.
pub mod optional {
    use super::{DeserializeOwned, Deserializer, Serialize, Serializer, are_null, members, observable};
    use serde::ser::SerializeMap;

    /// Writes the group, or null for each of its keys, or nothing.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T, S>(group: &Option<Option<T>>, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize + DeserializeOwned,
        S: Serializer,
    {
        match group {
            Some(group) => observable::serialize(group, serializer),
            None => serializer.serialize_map(Some(0))?.end(),
        }
    }

    /// Reads the group.
    ///
    /// # Errors
    /// If some keys are there and another one is missing or has a value of another type; the message names it.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
    where
        T: DeserializeOwned,
        D: Deserializer<'de>,
    {
        let members = members::<T, D>(deserializer)?;
        if members.is_empty() {
            Ok(None)
        } else if are_null::<T>(&members) {
            Ok(Some(None))
        } else {
            super::read(members).map(|group| Some(Some(group)))
        }
    }
}

fn write_nulls<T: DeserializeOwned, S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    let keys = keys_of::<T>();
    let mut map = serializer.serialize_map(Some(keys.len()))?;
    for key in keys {
        map.serialize_entry(key, &())?;
    }
    map.end()
}

/// The members of an object that belong to the group.
fn members<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let mut all: Map<String, Value> = serde::Deserialize::deserialize(deserializer)?;
    Ok(keys_of::<T>().iter().filter_map(|key| all.remove_entry(*key)).collect())
}

fn are_null<T: DeserializeOwned>(members: &Map<String, Value>) -> bool {
    members.len() == keys_of::<T>().len() && members.values().all(Value::is_null)
}

fn read<T: DeserializeOwned, E: serde::de::Error>(members: Map<String, Value>) -> Result<T, E> {
    if let Some(key) = keys_of::<T>().iter().find(|key| !members.contains_key(**key)) {
        return Err(E::custom(format!("missing field `{key}`")));
    }
    serde_path_to_error::deserialize(Value::Object(members)).map_err(|error| E::custom(error))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Seen {
        zeal: Option<u64>,
        art: f64,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Whole {
        name: String,
        #[serde(flatten, with = "super::observable")]
        seen: Option<Seen>,
        #[serde(with = "super::observable")]
        nested: Option<Seen>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Perhaps {
        #[serde(flatten, with = "super::optional")]
        seen: Option<Option<Seen>>,
    }

    #[test]
    fn a_group_that_was_not_observed_is_null_key_by_key_in_the_order_of_its_fields() {
        let whole = Whole { name: "x".into(), seen: None, nested: None };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(text, r#"{"name":"x","zeal":null,"art":null,"nested":{"zeal":null,"art":null}}"#);
        assert_eq!(serde_json::from_str::<Whole>(&text).unwrap(), whole);
        let seen = Some(Seen { zeal: None, art: 0.5 });
        let whole = Whole { seen: seen.clone(), nested: seen, ..whole };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(text, r#"{"name":"x","zeal":null,"art":0.5,"nested":{"zeal":null,"art":0.5}}"#);
        assert_eq!(serde_json::from_str::<Whole>(&text).unwrap(), whole);
    }

    #[test]
    fn a_group_that_there_is_not_differs_from_one_that_was_not_observed() {
        for (seen, text) in [
            (None, json!({})),
            (Some(None), json!({ "zeal": null, "art": null })),
            (Some(Some(Seen { zeal: Some(7), art: 1.0 })), json!({ "zeal": 7, "art": 1.0 })),
        ] {
            let value = Perhaps { seen };
            assert_eq!(serde_json::to_value(&value).unwrap(), text);
            assert_eq!(serde_json::from_value::<Perhaps>(text).unwrap(), value);
        }
    }

    #[test]
    fn half_a_group_is_refused_by_the_name_of_what_is_wrong() {
        let nested = json!({ "zeal": null, "art": null });
        for (zeal, art) in [(json!(7), json!(null)), (json!(null), json!("often"))] {
            let text = json!({ "name": "x", "zeal": zeal, "art": art, "nested": nested });
            let error = serde_json::from_value::<Whole>(text).unwrap_err().to_string();
            assert!(error.contains("art: invalid type"), "{error}");
        }
        let error = serde_json::from_value::<Perhaps>(json!({ "zeal": 7 })).unwrap_err().to_string();
        assert!(error.contains("missing field `art`"), "{error}");
    }
}
