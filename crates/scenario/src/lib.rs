//! The scenario: a network, sessions over it, and scheduled events, as one TOML text.
//!
//! [`load`] reads and checks a text; [`Scenario::resolved`] writes it with every default filled in. From a [`Scenario`]
//! follow the links ([`directed_links`]) and the connections with their players ([`plan`]), for the simulator and for
//! the live testbed alike. [`catalogue`] has the shipped scenarios, [`traces`] what the command line does with trace
//! files.
//!
//! ```
//! let text = r#"
//!     schema = 1
//!     duration = "5 s"
//!     [link.wifi]
//!     rtt = "50 ms"
//!     rate = "2 Mb/s"
//!     [[session]]
//!     video = { kind = "bulk" }
//! "#;
//! let scenario = anabranch_scenario::load(text, "example", None, &[]).unwrap();
//! assert_eq!(scenario.paths[0].name, "wifi");
//! ```

pub mod catalogue;
mod error;
mod links;
mod plan;
mod portable;
mod schema;
mod seed;
pub mod traces;
mod warning;

pub use error::Error;
pub use links::{DirectedLink, directed_links};
pub use plan::{FlowPlan, addresses, plan};
pub use portable::Portable;
pub use schema::{
    Action, Bulk, Dash, DirectionSpec, Event, External, Fps, LatencyUse, Link, MOST_RECORDED, Offset, Path, Player,
    Progressive, Rate, SCHEMA, Scenario, Session, Starts, Statistics, TooBig, Trace, Traffic, TrafficKind, Video,
    json_schema, load, load_dictionary, load_with, page,
};
pub use warning::{Warning, WarningKind};
