//! The keys of a struct, which its own `Deserialize` gives, so that they are written once.

use serde::de::{self, DeserializeOwned, Deserializer, Error as _, Visitor};
use std::fmt;

/// The names of a struct's fields as serde reads and writes them, in the order of their declaration; none of what is no
/// struct.
pub fn keys_of<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(AskKeys) {
        Err(Keys(keys)) => keys,
        Ok(_) => &[],
    }
}

/// A deserializer that has no data: it fails with the names of the fields that the type asks for.
struct AskKeys;

#[derive(Debug)]
struct Keys(&'static [&'static str]);

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Keys {}

impl de::Error for Keys {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Keys(&[])
    }
}

impl<'de> Deserializer<'de> for AskKeys {
    type Error = Keys;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Keys> {
        Err(Keys(fields))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Keys> {
        Err(Keys::custom("not a struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_serde_in_their_order() {
        #[derive(serde::Deserialize)]
        #[expect(dead_code, reason = "only its keys matter")]
        struct Line {
            #[serde(rename = "to")]
            end: u32,
            from: u32,
            #[serde(skip)]
            length: u32,
        }
        assert_eq!(keys_of::<Line>(), ["to", "from"]);
        assert!(keys_of::<u32>().is_empty());
    }
}
