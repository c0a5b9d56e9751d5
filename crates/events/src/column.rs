//! How values stand in the table of events: times in seconds, rates in bit/s. The name of a field there ends in its
//! unit.

use anabranch_units::{Bandwidth, Duration};
use serde::{Serialize, Serializer};

pub(crate) fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    time.as_secs_f64().serialize(serializer)
}

pub(crate) fn seconds_option<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(Duration::as_secs_f64).serialize(serializer)
}

pub(crate) fn bps<S: Serializer>(rate: &Bandwidth, serializer: S) -> Result<S::Ok, S::Error> {
    (rate.as_bps() as f64).serialize(serializer)
}

pub(crate) fn bps_option<S: Serializer>(rate: &Option<Bandwidth>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(|rate| rate.as_bps() as f64).serialize(serializer)
}

/// Which end wanted it.
pub(crate) fn end<S: Serializer>(by_peer: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *by_peer { "peer" } else { "own" })
}
