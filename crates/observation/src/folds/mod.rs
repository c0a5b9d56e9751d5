//! Events folded into metrics, one fold per kind of metric. Each may be asked for a report at any instant, so that it
//! also serves a run that is cut off. No fold knows another one, or whose events it gets.

mod dash;
mod delivery_gaps;
mod downloads;
mod switches;
mod transport;
mod viewer;

pub use dash::{DashMetrics, DashReport, MediaSegmentReport};
pub use delivery_gaps::DeliveryGaps;
pub use downloads::{DownloadReport, Downloads};
pub use switches::{ForecastCounts, SwitchForecast, SwitchPredictor};
pub use transport::{
    AroundEvent, DisabledSpan, PathLabel, ReorderDelay, SenderCounts, SubflowReport, TotalWindow, TransportMetrics,
    TransportReport,
};
pub use viewer::{ViewerMetrics, ViewerReport};
