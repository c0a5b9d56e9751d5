//! Content, HTTP exchanges, players and viewer metrics.
//!
//! A player is sans-IO: its host passes the time and calls it when bytes became readable, and it sees the transport
//! only as a [`Stream`]. The events of players and transport ([`anabranch_events`]) are folded into metrics here, by
//! the same code in the simulator and live.

pub mod abr;
pub mod content;
mod dash_metrics;
mod delivery_gaps;
mod downloads;
mod frames;
mod given;
pub mod group;
mod http;
mod metrics;
mod observed;
mod players;
mod predict;
mod stream;
#[cfg(test)]
mod testing;
mod transport_metrics;

pub use dash_metrics::{DashMetrics, DashMetricsOptions, DashReport, MediaSegmentReport, QoeWeights};
pub use delivery_gaps::DeliveryGaps;
pub use downloads::{DownloadReport, Downloads};
pub use frames::{FrameKind, FrameRate, FrameTable, Variation, VideoError, VideoSpec};
pub use http::{Exchange, Exchanges, HttpClient, HttpServer, REQUEST_HEADER_BYTES, RESPONSE_HEADER_BYTES, Received};
pub use metrics::{ViewerMetrics, ViewerReport};
pub use observed::Observed;
pub use players::{
    Bulk, Content, Dash, DashOptions, FileOptions, FrameCounts, GiveUp, OwnRule, PLAYERS, Player, PlayerEntry,
    PlayerOptions, PlayerSetup, SetupError, Vlc, VlcOptions, outside_domain,
};
pub use predict::{ForecastCounts, SwitchForecast, SwitchPredictor};
pub use stream::Stream;
pub use transport_metrics::{
    AroundEvent, DisabledSpan, PathLabel, ReorderDelay, SenderCounts, SubflowReport, TotalWindow, TransportMetrics,
    TransportReport,
};
