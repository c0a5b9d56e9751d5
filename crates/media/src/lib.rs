//! Content, HTTP exchanges and players.
//!
//! A player is sans-IO: its host passes the time and calls it when bytes became readable, and it sees the transport
//! only as a [`Stream`]. What it does it says in events ([`anabranch_events`]).

pub mod abr;
pub mod cmcd;
pub mod content;
mod frames;
mod given;
mod http;
pub mod pacing;
mod players;
mod stream;
#[cfg(test)]
mod testing;

pub use frames::{FrameKind, FrameRate, FrameTable, Variation, VideoError, VideoSpec};
pub use http::{
    Answer, Exchange, Exchanges, HttpClient, HttpServer, MediaSegment, REQUEST_HEADER_BYTES, RESPONSE_HEADER_BYTES,
    Received,
};
pub use players::{
    Bulk, Content, Dash, DashOptions, FileOptions, FrameCounts, GiveUp, OwnRule, PLAYERS, Player, PlayerEntry,
    PlayerOptions, PlayerSetup, SetupError, Vlc, VlcOptions, outside_domain,
};
pub use stream::Stream;
