//! What the server does in addition to its transport: `[server]`.

use anabranch_media::pacing;
use anabranch_stack::connection::Choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server of all sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// How fast it sends responses to viewers of DASH: a name, or a table with `name` and options. A kernel's server
    /// has none but `off`.
    #[schemars(schema_with = "response_pacing_schema")]
    pub response_pacing: Choice,
}

impl Default for Server {
    fn default() -> Self {
        Server { response_pacing: Choice::of(pacing::DEFAULT) }
    }
}

fn response_pacing_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names: Vec<_> = pacing::REGISTRY.names().collect();
    let name = schemars::json_schema!({ "enum": names });
    let table = schemars::json_schema!({ "type": "object", "properties": { "name": name }, "required": ["name"] });
    let expected = format!("one of {}, or a table with `name` and options", names.join(", "));
    schemars::json_schema!({ "anyOf": [name, table], "x-expected": expected })
}
