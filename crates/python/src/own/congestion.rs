//! Congestion controls in Python.

use super::context::seconds;
use super::control::{Ack, Siblings, Window};
use super::part::Part;
use anabranch_events::Note;
use anabranch_stack::congestion::{self, CongestionControl, LossCause, MIN_SSTHRESH, contract::WINDOWS};
use anabranch_units::{Duration, Instant};
use pyo3::prelude::*;

/// A congestion control of an author.
pub(super) struct OwnControl {
    part: Part,
    methods: Methods,
    window: Py<Window>,
    siblings: Py<Siblings>,
    ack: Option<Py<Ack>>,
    governs_itself: bool,
}

/// The author's methods; those that the base class has for readers alone are not called.
struct Methods {
    on_ack: Py<PyAny>,
    on_congestion: Py<PyAny>,
    on_established: Option<Py<PyAny>>,
    on_recovery_end: Option<Py<PyAny>>,
    on_undo: Option<Py<PyAny>>,
    on_restart: Option<Py<PyAny>>,
}

impl std::fmt::Debug for OwnControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

impl OwnControl {
    pub fn new(py: Python<'_>, part: Part) -> PyResult<Self> {
        let methods = Methods {
            on_ack: part.method(py, "on_ack")?,
            on_congestion: part.method(py, "on_congestion")?,
            on_established: part.own_method(py, "on_established")?,
            on_recovery_end: part.own_method(py, "on_recovery_end")?,
            on_undo: part.own_method(py, "on_undo")?,
            on_restart: part.own_method(py, "on_restart")?,
        };
        Ok(OwnControl {
            methods,
            window: Py::new(py, Window(congestion::Window::initial(1)))?,
            siblings: Py::new(py, Siblings::default())?,
            ack: None,
            governs_itself: part.flag(py, "governs_itself")?,
            part,
        })
    }

    /// Calls one of the methods with a window that it may change.
    fn with_window(
        &mut self,
        now: Instant,
        window: &mut congestion::Window,
        siblings: Option<congestion::Siblings<'_>>,
        call: impl FnOnce(&mut Self, Python<'_>) -> PyResult<Option<()>>,
    ) {
        if !self.part.works() {
            return;
        }
        let _timer = self.part.decision();
        Python::attach(|py| {
            self.part.at(py, now);
            self.window.borrow_mut(py).0 = *window;
            let shown = siblings.map_or(Ok(()), |siblings| {
                let mut shown = self.siblings.borrow_mut(py);
                shown.own = siblings.position();
                shown.subflows.update(py, siblings.all())
            });
            match shown.and_then(|()| call(self, py)) {
                Ok(Some(())) => {
                    let set = self.window.borrow(py).0;
                    self.adopt(set, window);
                }
                Ok(None) => {}
                Err(error) => self.part.fail(py, error),
            }
        });
    }

    /// Takes over what the method set, if a control may set that.
    fn adopt(&self, set: congestion::Window, window: &mut congestion::Window) {
        let cwnd = set.cwnd.as_f64();
        if WINDOWS.contains(&cwnd) {
            *window = set;
        } else {
            self.part.misbehave(&format!(
                "window.cwnd became {cwnd:.3} packets; expected at least 1 and less than 10 million"
            ));
        }
    }

    /// A threshold must be set, and leave a window that can grow.
    fn check_threshold(&self, window: &mut congestion::Window) {
        let ssthresh = window.ssthresh.as_f64();
        if self.part.works() && ssthresh < MIN_SSTHRESH {
            let found = format!("on_congestion() left window.ssthresh at {ssthresh:.3} packets; expected at least 2");
            self.part.misbehave(&found);
        } else if self.part.works() && ssthresh.is_infinite() && !self.governs_itself {
            self.part.misbehave("on_congestion() set no window.ssthresh; expected at least 2 packets");
        }
        // The run is lost, and what is left of it needs some threshold.
        if !self.part.works() {
            window.set_ssthresh(window.cwnd.as_f64() / 2.0);
        }
    }
}

fn word(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "fast-retransmit",
        LossCause::Timeout => "timeout",
        LossCause::Penalty => "penalty",
    }
}

impl CongestionControl for OwnControl {
    fn on_established(&mut self, now: Instant, window: &mut congestion::Window, siblings: congestion::Siblings<'_>) {
        if self.methods.on_established.is_some() {
            self.with_window(now, window, Some(siblings), |own, py| {
                let Some(method) = &own.methods.on_established else { return Ok(None) };
                Ok(own.part.call(py, method, (&own.window, &own.siblings), |_| Ok(())))
            });
        }
    }

    fn on_ack(&mut self, ack: &congestion::Ack, window: &mut congestion::Window, siblings: congestion::Siblings<'_>) {
        self.with_window(ack.now, window, Some(siblings), |own, py| {
            let shown = match &own.ack {
                Some(shown) => {
                    shown.borrow_mut(py).0 = *ack;
                    shown.clone_ref(py)
                }
                None => Py::new(py, Ack(*ack))?,
            };
            own.ack = Some(shown.clone_ref(py));
            Ok(own.part.call(py, &own.methods.on_ack, (shown, &own.window, &own.siblings), |_| Ok(())))
        });
    }

    fn on_congestion(
        &mut self,
        now: Instant,
        cause: LossCause,
        window: &mut congestion::Window,
        siblings: congestion::Siblings<'_>,
    ) {
        self.with_window(now, window, Some(siblings), |own, py| {
            let arguments = (word(cause), &own.window, &own.siblings);
            Ok(own.part.call(py, &own.methods.on_congestion, arguments, |_| Ok(())))
        });
        self.check_threshold(window);
    }

    fn on_recovery_end(&mut self, now: Instant, window: &mut congestion::Window) {
        if self.methods.on_recovery_end.is_some() {
            self.with_window(now, window, None, |own, py| {
                let Some(method) = &own.methods.on_recovery_end else { return Ok(None) };
                Ok(own.part.call(py, method, (&own.window,), |_| Ok(())))
            });
        }
    }

    fn on_undo(&mut self, now: Instant, window: &mut congestion::Window) {
        if self.methods.on_undo.is_some() {
            self.with_window(now, window, None, |own, py| {
                let Some(method) = &own.methods.on_undo else { return Ok(None) };
                Ok(own.part.call(py, method, (&own.window,), |_| Ok(())))
            });
        }
    }

    fn on_restart(&mut self, now: Instant, idle: Duration, _app_limited: bool, window: &mut congestion::Window) {
        if self.methods.on_restart.is_some() {
            self.with_window(now, window, None, |own, py| {
                let Some(method) = &own.methods.on_restart else { return Ok(None) };
                let idle = seconds(Instant::ZERO + idle);
                Ok(own.part.call(py, method, (idle, &own.window), |_| Ok(())))
            });
        }
    }

    fn governs_itself(&self) -> bool {
        self.governs_itself
    }

    fn take_notes(&mut self, take: &mut dyn FnMut(Note)) {
        self.part.take_notes(|_, note| take(note));
    }
}
