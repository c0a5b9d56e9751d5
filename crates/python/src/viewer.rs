//! What a real player said, folded into the metrics of the simulated ones.

use crate::InputError;
use crate::scenario::Scenario;
use anabranch_events::PlayerEvent;
use anabranch_media::content::{DashVideo, Mpd, MpdSelection};
use anabranch_observation::check_finite;
use anabranch_observation::{DashMetrics, DashReport, ViewerMetrics, ViewerReport};
use anabranch_scenario::Statistics;
use anabranch_units::{Duration, Instant};
use pyo3::prelude::*;
use serde::Serialize;
use std::sync::Arc;

/// A year: whatever claims to happen later did not.
const LATEST_S: f64 = 365.0 * 86_400.0;

/// What the viewer of a real player saw.
#[pyclass(frozen)]
#[derive(Serialize)]
pub struct Viewed {
    #[serde(flatten)]
    pub(crate) viewer: ViewerReport,
    #[serde(flatten)]
    pub(crate) dash: Option<DashReport>,
}

#[pymethods]
impl Viewed {
    /// Its part of a session's metrics as JSON.
    #[getter]
    fn metrics_json(&self) -> PyResult<String> {
        check_finite(self).map_err(|error| InputError::new_err(error.to_string()))?;
        serde_json::to_string(self).map_err(|error| InputError::new_err(error.to_string()))
    }
}

/// Folds events in the order of time into the metrics of a session that began at zero and was over, or was cut off, at
/// `end_s`.
#[pyfunction]
#[pyo3(signature = (events, *, end_s, mpd, scenario))]
pub fn viewer_report(
    events: Vec<(f64, String, Vec<f64>)>,
    end_s: f64,
    mpd: Option<(String, Vec<u8>)>,
    scenario: Option<PyRef<'_, Scenario>>,
) -> PyResult<Viewed> {
    let video = mpd.map(|(file, bytes)| read_video(&file, &bytes)).transpose()?;
    let sessions = scenario.as_ref().map_or(&[][..], |scenario| &scenario.0.sessions);
    let statistics: Statistics = sessions.first().and_then(|session| session.statistics.clone()).unwrap_or_default();
    let mut viewer = ViewerMetrics::new(Instant::ZERO);
    let representations = video.as_ref().map_or(usize::MAX, |video| video.representations().len());
    let mut dash = video.map(|video| DashMetrics::new(Instant::ZERO, Arc::new(video), statistics));
    let mut last = Instant::ZERO;
    for (at_s, kind, numbers) in &events {
        let at = instant(*at_s)?;
        if at < last {
            return Err(InputError::new_err(format!("{kind} at {at_s} s comes after something later")));
        }
        last = at;
        let event = read_event(kind, numbers)?;
        if representation(&event).is_some_and(|rank| usize::from(rank) >= representations) {
            return Err(InputError::new_err(format!(
                "{kind} at {at_s} s: the MPD has {representations} representations"
            )));
        }
        viewer.observe(at, &event);
        if let Some(dash) = &mut dash {
            dash.observe(at, &event);
        }
    }
    let end = instant(end_s)?.max(last);
    Ok(Viewed { viewer: viewer.finish(end), dash: dash.map(|dash| dash.finish(end)) })
}

/// The representation that an event speaks of.
fn representation(event: &PlayerEvent) -> Option<u16> {
    match event {
        PlayerEvent::SegmentRequested { representation, .. }
        | PlayerEvent::SegmentAppended { representation, .. }
        | PlayerEvent::SegmentShown { representation, .. } => Some(*representation),
        PlayerEvent::SegmentAbandoned { instead, .. } => Some(*instead),
        _ => None,
    }
}

fn read_video(file: &str, bytes: &[u8]) -> PyResult<DashVideo> {
    let video = Mpd::read(file, bytes).and_then(|mpd| mpd.video(&MpdSelection::default()));
    video.map_err(|error| InputError::new_err(error.to_string()))
}

fn instant(seconds: f64) -> PyResult<Instant> {
    if (0.0..=LATEST_S).contains(&seconds) {
        Ok(Instant::ZERO + Duration::from_secs_f64(seconds))
    } else {
        Err(InputError::new_err(format!("{seconds} s is no time of a session")))
    }
}

/// The numbers of an event, in the order of [`PlayerEvent`]'s fields; times in seconds.
struct Numbers<'a> {
    kind: &'a str,
    values: std::slice::Iter<'a, f64>,
}

impl Numbers<'_> {
    fn next(&mut self) -> PyResult<f64> {
        let value = self.values.next().copied().filter(|value| value.is_finite() && *value >= 0.0);
        value.ok_or_else(|| InputError::new_err(format!("{}: a number is missing or negative", self.kind)))
    }

    fn integer<T: TryFrom<u64>>(&mut self) -> PyResult<T> {
        let value = self.next()?;
        T::try_from(value as u64).map_err(|_| InputError::new_err(format!("{}: {value} is too large", self.kind)))
    }

    fn time(&mut self) -> PyResult<Duration> {
        Ok(instant(self.next()?)?.since(Instant::ZERO))
    }
}

fn read_event(kind: &str, values: &[f64]) -> PyResult<PlayerEvent> {
    let mut n = Numbers { kind, values: values.iter() };
    Ok(match kind {
        "requested" => {
            PlayerEvent::SegmentRequested { request: n.integer()?, index: n.integer()?, representation: n.integer()? }
        }
        "first-byte" => PlayerEvent::FirstByte { request: n.integer()? },
        // A real player does not tell where a response ends in its connection, so no waiting is ascribed to it.
        "complete" => PlayerEvent::ResponseComplete { request: n.integer()?, bytes: n.integer()?, end: 0 },
        "abandoned" => PlayerEvent::SegmentAbandoned {
            request: n.integer()?,
            index: n.integer()?,
            received: n.integer()?,
            instead: n.integer()?,
        },
        "appended" => {
            PlayerEvent::SegmentAppended { index: n.integer()?, representation: n.integer()?, buffered: n.time()? }
        }
        "shown" => PlayerEvent::SegmentShown { index: n.integer()?, representation: n.integer()? },
        "started" => PlayerEvent::PlaybackStarted,
        "stall-began" => PlayerEvent::StallBegan,
        "stall-ended" => PlayerEvent::StallEnded,
        "ended" => PlayerEvent::PlaybackEnded,
        "discarded" => PlayerEvent::PictureDiscarded { frame: n.integer()? },
        "underflow" => PlayerEvent::BufferUnderflow { late: n.time()? },
        _ => return Err(InputError::new_err(format!("there is no player event {kind:?}"))),
    })
}
