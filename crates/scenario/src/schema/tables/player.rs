//! `player = { ... }`: who watches.

use anabranch_media::{PLAYERS, PlayerOptions};
use schemars::JsonSchema;
use serde::de::{EnumAccess, Error, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::sync::LazyLock;

/// Who watches, or downloads.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Player {
    /// The name of a player.
    #[schemars(schema_with = "names_of_players")]
    pub kind: String,
    /// What the scenario says about it.
    #[serde(flatten)]
    pub options: PlayerOptions,
}

/// The names of all players.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| PLAYERS.names().collect());

fn names_of_players(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "enum": *NAMES, "x-expected": format!("one of {}", NAMES.join(", ")) })
}

impl<'de> Deserialize<'de> for Player {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByKind;
        impl<'de> Visitor<'de> for ByKind {
            type Value = Player;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a player, or a table with `kind`")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Player, A::Error> {
                let (kind, content) = access.variant::<String>()?;
                if !NAMES.contains(&kind.as_str()) {
                    return Err(A::Error::unknown_variant(&kind, &NAMES));
                }
                Ok(Player { kind, options: content.newtype_variant()? })
            }
        }
        deserializer.deserialize_enum("player", &NAMES, ByKind)
    }
}
