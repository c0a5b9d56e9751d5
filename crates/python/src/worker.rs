//! Long work on a thread of its own, with the interpreter free for others meanwhile.

#[cfg(target_os = "linux")]
use pyo3::prelude::*;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the interpreter is asked for, to report and to see whether the user interrupts. People notice more than a tenth of a
/// second; the interpreter's lock, taken this rarely, costs nothing.
pub(crate) const ASK_EVERY: Duration = Duration::from_millis(50);

/// Does `work` on a thread of its own, and calls `report` now and then until it is done.
///
/// The result of `work` is an error if it panicked.
///
/// # Errors
/// The first exception of a signal handler or of `report`. It sets `stop`, at which `work` has to end early, and is raised when `work` has
/// ended.
#[cfg(target_os = "linux")]
pub(crate) fn supervise<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
    report: impl Fn(Python<'_>) -> PyResult<()> + Sync,
) -> PyResult<std::thread::Result<T>> {
    let ask = || {
        Python::attach(|py| {
            py.check_signals()?;
            report(py)
        })
    };
    py.detach(|| {
        std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            let mut raised = None;
            while !worker.is_finished() {
                std::thread::sleep(ASK_EVERY);
                if raised.is_none() {
                    raised = ask().err();
                    stop.store(raised.is_some(), Ordering::Relaxed);
                }
            }
            let result = worker.join();
            raised.map_or(Ok(result), Err)
        })
    })
}
