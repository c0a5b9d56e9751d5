//! The kinds of networks whose statistics were fitted.
//!
//! `cargo run --release -p anabranch-validation --bin traces -- --fit` fits them again from the recordings.

use super::SyntheticModel;
use anabranch_registry::{Entry, Registry};
use anabranch_units::Duration;

/// A kind of network in the registry. Its constructor gives the fitted parameters.
pub type SyntheticEntry = Entry<fn() -> SyntheticModel>;

/// Every kind of network that can be chosen by name.
pub static SYNTHETIC_KINDS: Registry<fn() -> SyntheticModel> = Registry::new(&[
    Entry {
        name: "wifi",
        summary: "WiFi in one place: a steady rate that differs from second to second, with short gaps.",
        source: "Fitted to Solis-WiFi-Trace, 80 static indoor traces",
        create: || SyntheticModel {
            headroom: 0.4,
            spread: 0.3,
            correlation_time: Duration::from_secs(62),
            noise: 0.2,
            between_outages: Duration::from_secs(69),
            outage: Duration::from_millis(1_200),
        },
    },
    Entry {
        name: "wifi-walk",
        summary: "WiFi on foot: a plateau near the access point, fades and dead spots away from it.",
        source: "Fitted to Aydin, Fund, Panwar, CNERT 2023, WiFi of 23 paired traces",
        create: || SyntheticModel {
            headroom: 0.3,
            spread: 2.0,
            correlation_time: Duration::from_secs(35),
            noise: 0.0,
            between_outages: Duration::from_secs(51),
            outage: Duration::from_millis(8_200),
        },
    },
    Entry {
        name: "lte",
        summary: "LTE on foot, by bicycle and in city traffic: slow swings, few outages.",
        source: "Fitted to van der Hooft et al., IEEE Comm. Letters 20(11), 2016, 40 traces in Ghent",
        create: || SyntheticModel {
            headroom: 0.0,
            spread: 1.0,
            correlation_time: Duration::from_secs(40),
            noise: 0.17,
            between_outages: Duration::from_secs(190),
            outage: Duration::from_secs(2),
        },
    },
    Entry {
        name: "lte-drive",
        summary: "A mobile network on the road: a factor of ten between good and bad places, and outages of seconds.",
        source: "Fitted to the drives of CoNEXT 2023 (satellite and cellular), three networks, 60 traces",
        create: || SyntheticModel {
            headroom: -0.8,
            spread: 1.3,
            correlation_time: Duration::from_secs(53),
            noise: 0.14,
            between_outages: Duration::from_secs(53),
            outage: Duration::from_millis(1_600),
        },
    },
]);
