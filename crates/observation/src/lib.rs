//! What is observed of a run, by the same code in simulation and live.
//!
//! An [`Observer`] per connection folds the events of endpoints and player into metrics (`folds`), samples the
//! recording for figures and keeps the rows of the table of events. [`gather`] makes the [`Outcome`] of all observers
//! and of what the links counted.
//! [`reducers`] compute numbers of single studies from an outcome.

mod account;
mod capacity;
mod fairness;
mod finite;
mod folds;
mod gather;
mod group;
mod live;
mod marks;
mod metrics;
mod observed;
mod observer;
mod recording;
pub mod reducers;
mod scalars;
mod strict;
mod stuck;
mod table;
#[cfg(test)]
mod testing;

pub use account::{Account, Cause, Passed, Written};
pub use fairness::{Fairness, jain};
pub use finite::{NotFinite, check as check_finite};
pub use folds::{
    AroundEvent, DashMetrics, DashReport, DeliveryGaps, DisabledSpan, DownloadReport, Downloads, ForecastCounts,
    MediaSegmentReport, PathLabel, ReorderDelay, SenderCounts, SubflowReport, SwitchForecast, SwitchPredictor,
    TotalWindow, TransportMetrics, TransportReport, ViewerMetrics, ViewerReport,
};
pub use gather::{Facts, Over, gather, link_metrics};
pub use live::{DecisionLatency, Lateness, LiveFacts, ServerCounters};
pub use metrics::{Ended, Engine, LinkMetrics, Metrics, Outcome, QueueDelay, SCHEMA, SessionMetrics, json_schema};
pub use observed::Observed;
pub use observer::{Keep, Observer, observers};
pub use recording::{Mark, NoteSeries, PathRecording, Recording, SessionRecording, Shown};
pub use strict::{Unreadable, read as read_strictly};
pub use stuck::{Waiting, is_stuck};
pub use table::{Column, EventColumns, EventRow};
