//! Options of the DASH players.

use crate::abr::AbrOptions;
use crate::content::Resolution;
use anabranch_units::{Bandwidth, Duration, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a response that the player gives up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GiveUp {
    /// The connection is closed and another one opened, as browsers abort an XMLHttpRequest over HTTP/1.1: bytes in
    /// flight still cross the network, and the next request waits for a handshake and begins with a slow start. Where
    /// the host has no further connection, as `Drain`.
    #[default]
    Close,
    /// The server withdraws unsent bytes; bytes in flight still arrive, in front of the next response. As in HTTP/2.
    Cancel,
    /// The whole response still arrives, in front of the next one.
    Drain,
}

/// Options of the DASH players. Nothing said: the player's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DashOptions {
    /// Options of its bitrate rule. What the buffer holds is said below, to player and rule alike.
    #[serde(flatten, skip_deserializing)]
    pub rule: AbrOptions,
    /// The buffered playing time at which the player pauses its requests: `stableBufferTime` (dash.js 2),
    /// `bufferTimeDefault` (5), or the capacity of the buffer (the others).
    pub buffer: Option<Duration>,
    /// The same at the highest representation allowed (dash.js: `bufferTimeAtTopQuality`, or the one for long content).
    pub buffer_at_top: Option<Duration>,
    /// The playing time that must be buffered before the first picture. It takes at least one media segment.
    pub startup: Option<Duration>,
    /// The playing time that must be buffered before a stall ends, beyond what the player itself demands.
    pub resume: Option<Duration>,
    /// The first representation is the highest with at most this bitrate.
    pub initial_bitrate: Option<Bandwidth>,
    /// The rank of the first representation, counted from 0, the lowest.
    #[serde(deserialize_with = "text::whole_option::<0, 10000, _, _>")]
    #[schemars(range(max = 10000))]
    pub initial_representation: Option<usize>,
    /// No representation above this bitrate (dash.js: `maxBitrate`).
    pub max_bitrate: Option<Bandwidth>,
    /// No representation with larger pictures (dash.js: `limitBitrateByPortal`).
    pub max_resolution: Option<Resolution>,
    /// The bitrate of an audio track that is downloaded, too; no audio where absent.
    pub audio: Option<Bandwidth>,
    /// What happens to a response that the player gives up: `close` (the connection is closed and another one opened,
    /// as over HTTP/1.1; the default), `cancel` (the server withdraws unsent bytes, as in HTTP/2) or `drain` (the whole
    /// response still arrives).
    pub give_up: Option<GiveUp>,
    /// dash.js 5: after a switch upwards, download buffered segments of a lower representation again.
    pub fast_switch: Option<bool>,
    /// dash.js 5: report the buffer, the bitrate and more to the server with each request for media (CMCD, CTA-5004).
    pub cmcd: Option<bool>,
}
