//! Tables whose keys are names, `[link.wifi]`, as lists in the order in which they were written.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// What has the name under which it was written.
pub(super) trait Named {
    fn name(&self) -> &str;
    fn set_name(&mut self, name: String);
}

pub(super) fn serialize<T: Named + Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(list.len()))?;
    for item in list {
        map.serialize_entry(item.name(), item)?;
    }
    map.end()
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Named + Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct Tables<T>(PhantomData<T>);
    impl<'de, T: Named + Deserialize<'de>> Visitor<'de> for Tables<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(name) = map.next_key::<String>()? {
                let mut item: T = map.next_value()?;
                item.set_name(name);
                list.push(item);
            }
            Ok(list)
        }
    }
    deserializer.deserialize_map(Tables(PhantomData))
}
