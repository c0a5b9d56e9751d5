//! Where a recording begins.

use anabranch_units::{Duration, text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// How far into a recording a trace begins: `"30 s"`, or `"random"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// So far.
    Fixed(Duration),
    /// Anywhere in the recording, drawn from the run's seed.
    Random,
}

const RANDOM: &str = "random";
const EXPECTED: &str = "a time such as \"30 s\", or \"random\"";

impl Default for Offset {
    fn default() -> Self {
        Offset::Fixed(Duration::ZERO)
    }
}

impl Serialize for Offset {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Offset::Fixed(time) => time.serialize(serializer),
            Offset::Random => serializer.serialize_str(RANDOM),
        }
    }
}

impl<'de> Deserialize<'de> for Offset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Offset;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_str<E: de::Error>(self, written: &str) -> Result<Offset, E> {
                if written.trim() == RANDOM {
                    return Ok(Offset::Random);
                }
                let time = text::read_time(written);
                time.map(Offset::Fixed)
                    .map_err(|problem| E::custom(text::Problem { expected: EXPECTED.into(), ..problem }))
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Offset, E> {
                self.visit_str(&n.to_string())
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Offset {
    fn schema_name() -> Cow<'static, str> {
        "Offset".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let time = generator.subschema_for::<Duration>();
        json_schema!({ "anyOf": [time, { "const": RANDOM }], "x-expected": EXPECTED })
    }
}
