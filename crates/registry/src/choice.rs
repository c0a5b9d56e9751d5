//! The choice of a part by name, with its options.

use crate::options::{Options, Value};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::sync::Arc;

/// A part by name, with its options: `{ name = "cubic", constants = "rfc9438" }`, or the name alone.
///
/// A part that is no line of a registry comes from outside: from a host, which makes it by its trait `E`. What checks a
/// choice attaches that host, so that what carries the choice out needs no other way to it.
pub struct Choice<E: ?Sized> {
    /// Its name in the registry, or one that the host knows.
    pub name: String,
    /// Its options; what is not given has the part's default.
    pub options: Options,
    /// Who makes the part, if it is in no registry.
    external: Option<Arc<E>>,
}

impl<E: ?Sized> Choice<E> {
    /// The one of that name, with its default options.
    pub fn of(name: &str) -> Self {
        Choice::with(name, Options::default())
    }

    /// The one of that name with these options.
    pub fn with(name: &str, options: Options) -> Self {
        Choice { name: name.into(), options, external: None }
    }

    /// From now on `external` makes the part.
    pub fn attach(&mut self, external: Arc<E>) {
        self.external = Some(external);
    }

    /// Who makes the part; none if it is in a registry.
    pub fn external(&self) -> Option<&Arc<E>> {
        self.external.as_ref()
    }
}

impl<E: ?Sized> Clone for Choice<E> {
    fn clone(&self) -> Self {
        Choice { name: self.name.clone(), options: self.options.clone(), external: self.external.clone() }
    }
}

impl<E: ?Sized> fmt::Debug for Choice<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choice").field("name", &self.name).field("options", &self.options).finish_non_exhaustive()
    }
}

/// Choices are equal if they say the same, whatever carries them out.
impl<E: ?Sized> PartialEq for Choice<E> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.options == other.options
    }
}

impl<E: ?Sized> Serialize for Choice<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        for (name, value) in self.options.entries() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, E: ?Sized> Deserialize<'de> for Choice<E> {
    /// `{ name = "cubic", constants = "rfc9438" }`, or the name alone.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, options) = deserializer.deserialize_any(Table)?;
        Ok(Choice { name, options, external: None })
    }
}

struct Table;

impl<'de> de::Visitor<'de> for Table {
    type Value = (String, Options);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or a table with `name` and options")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok((name.into(), Options::default()))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut name, mut options) = (None, Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            if key == "name" {
                name = Some(map.next_value()?);
            } else {
                options.push((key, map.next_value::<Value>()?));
            }
        }
        let name = name.ok_or_else(|| {
            de::Error::custom("there is no `name`; expected a name, or a table with `name` and options")
        })?;
        Ok((name, Options::new(options)))
    }
}
