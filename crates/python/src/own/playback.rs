//! What bitrate rules in Python see and answer.

use super::context::seconds;
use anabranch_media::abr::{self, BufferState, Playback};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// The representations of a video.
#[pyclass(frozen, module = "anabranch._core")]
pub struct Ladder(abr::Ladder);

impl Ladder {
    fn rank(&self, representation: usize) -> PyResult<usize> {
        let have = self.0.len();
        let missing =
            || PyIndexError::new_err(format!("representation {representation}: there are {have}, counted from 0"));
        (representation < have).then_some(representation).ok_or_else(missing)
    }
}

#[pymethods]
impl Ladder {
    #[getter]
    fn bitrates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.bitrates())
    }
    #[getter]
    fn segment_duration(&self) -> f64 {
        self.0.segment_duration().as_secs_f64()
    }
    #[getter]
    fn segments(&self) -> u64 {
        self.0.segments()
    }
    #[getter]
    fn live(&self) -> bool {
        self.0.is_live()
    }
    fn __len__(&self) -> usize {
        self.0.len()
    }
    /// The nominal rate of a representation, bit/s.
    fn bps(&self, representation: usize) -> PyResult<f64> {
        Ok(self.0.bps(self.rank(representation)?))
    }
    /// Bytes of a media segment: from the video's table, or from the nominal rate.
    fn segment_bytes(&self, representation: usize, index: u64) -> PyResult<u64> {
        Ok(self.0.segment_bytes(self.rank(representation)?, index))
    }
    /// The rank of the highest representation up to a rank with at most this rate; 0 if there is none.
    fn highest_within(&self, bps: f64, top: usize) -> usize {
        self.0.highest_within(bps, top)
    }
}

/// A finished request for a media segment.
#[pyclass(frozen, module = "anabranch._core")]
pub struct Download(abr::Download);

#[pymethods]
impl Download {
    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }
    #[getter]
    fn representation(&self) -> usize {
        self.0.representation
    }
    #[getter]
    fn requested_at(&self) -> f64 {
        seconds(self.0.requested_at)
    }
    #[getter]
    fn first_byte_at(&self) -> f64 {
        seconds(self.0.first_byte_at)
    }
    #[getter]
    fn finished_at(&self) -> f64 {
        seconds(self.0.finished_at)
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    #[getter]
    fn throughput_bps(&self) -> f64 {
        self.0.throughput_bps()
    }
}

/// A running request for a media segment.
#[pyclass(frozen, module = "anabranch._core")]
pub struct Progress(pub(super) abr::Progress);

#[pymethods]
impl Progress {
    #[getter]
    fn index(&self) -> u64 {
        self.0.index
    }
    #[getter]
    fn representation(&self) -> usize {
        self.0.representation
    }
    #[getter]
    fn requested_at(&self) -> f64 {
        seconds(self.0.requested_at)
    }
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }
    #[getter]
    fn total(&self) -> u64 {
        self.0.total
    }
}

/// Something that happened between two decisions.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct PlayerEvent {
    kind: &'static str,
    download: Option<Py<Download>>,
    shown_before: Option<usize>,
    shown_now: Option<usize>,
}

impl PlayerEvent {
    pub(super) fn new(py: Python<'_>, event: &abr::Event<'_>) -> PyResult<Self> {
        let plain = |kind| PlayerEvent { kind, download: None, shown_before: None, shown_now: None };
        Ok(match event {
            abr::Event::SegmentFinished(download) => {
                PlayerEvent { download: Some(Py::new(py, Download(**download))?), ..plain("segment-finished") }
            }
            abr::Event::SegmentAborted(download) => {
                PlayerEvent { download: Some(Py::new(py, Download(**download))?), ..plain("segment-aborted") }
            }
            abr::Event::InitFinished => plain("init-finished"),
            abr::Event::BufferMeasured => plain("buffer-measured"),
            abr::Event::BufferState(state) => plain(word(*state)),
            abr::Event::Seeked => plain("seeked"),
            abr::Event::Shown { from, to } => {
                PlayerEvent { shown_before: Some(*from), shown_now: Some(*to), ..plain("shown") }
            }
        })
    }
}

fn word(state: BufferState) -> &'static str {
    match state {
        BufferState::Empty => "buffer-empty",
        BufferState::Loaded => "buffer-loaded",
    }
}

/// The representation of the next media segment.
#[pyclass(frozen, module = "anabranch._core", get_all)]
pub struct Decision {
    pub(super) representation: usize,
    pub(super) wait: f64,
    pub(super) reason: String,
}

#[pymethods]
impl Decision {
    #[new]
    #[pyo3(signature = (representation, *, wait=0.0, reason=String::new()))]
    fn new(representation: usize, wait: f64, reason: String) -> Self {
        Decision { representation, wait, reason }
    }
}

/// The player as a rule sees it.
#[pyclass(module = "anabranch._core")]
pub struct PlayerView {
    #[pyo3(get)]
    ladder: Py<Ladder>,
    /// Only grows.
    #[pyo3(get)]
    downloads: Py<PyList>,
    now: f64,
    buffer: f64,
    buffer_state: Option<BufferState>,
    buffer_target: f64,
    playback: Playback,
    #[pyo3(get)]
    current: usize,
    #[pyo3(get)]
    top: usize,
    #[pyo3(get)]
    next: u64,
    #[pyo3(get)]
    pictures_total: u64,
    #[pyo3(get)]
    pictures_dropped: u64,
}

impl PlayerView {
    pub(super) fn new(py: Python<'_>, view: &abr::View<'_>) -> PyResult<Self> {
        let mut made = PlayerView {
            ladder: Py::new(py, Ladder(view.ladder.clone()))?,
            downloads: PyList::empty(py).unbind(),
            now: 0.0,
            buffer: 0.0,
            buffer_state: None,
            buffer_target: 0.0,
            playback: Playback::Startup,
            current: 0,
            top: 0,
            next: 0,
            pictures_total: 0,
            pictures_dropped: 0,
        };
        made.update(py, view)?;
        Ok(made)
    }

    pub(super) fn update(&mut self, py: Python<'_>, view: &abr::View<'_>) -> PyResult<()> {
        self.now = seconds(view.now);
        self.buffer = view.buffer.as_secs_f64();
        self.buffer_state = view.buffer_state;
        self.buffer_target = view.buffer_target.as_secs_f64();
        self.playback = view.playback;
        (self.current, self.top, self.next) = (view.current, view.top, view.next);
        (self.pictures_total, self.pictures_dropped) = (view.pictures.total, view.pictures.dropped);
        let downloads = self.downloads.bind(py);
        for download in view.downloads.iter().skip(downloads.len()) {
            downloads.append(Py::new(py, Download(*download))?)?;
        }
        Ok(())
    }
}

#[pymethods]
impl PlayerView {
    #[getter]
    fn now(&self) -> f64 {
        self.now
    }
    #[getter]
    fn buffer(&self) -> f64 {
        self.buffer
    }
    #[getter]
    fn buffer_state(&self) -> Option<&'static str> {
        self.buffer_state.map(|state| match state {
            BufferState::Empty => "empty",
            BufferState::Loaded => "loaded",
        })
    }
    #[getter]
    fn buffer_target(&self) -> f64 {
        self.buffer_target
    }
    #[getter]
    fn playback(&self) -> &'static str {
        match self.playback {
            Playback::Startup => "startup",
            Playback::Steady => "steady",
        }
    }
}
