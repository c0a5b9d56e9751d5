//! Real-time priority of a thread.

/// The lowest real-time priority: above all normal threads, below the kernel's own.
const PRIORITY: core::ffi::c_int = 1;

/// Gives the calling thread real-time priority (`SCHED_FIFO`), so that its timers are accurate on a busy machine; false
/// if the machine does not allow it. Only for threads that sleep most of the time: on a single processor nothing else
/// runs meanwhile.
pub fn run_before_others() -> bool {
    let param = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: 0 means the calling thread; the kernel reads `param`, which lives until the call returns, and keeps no
    // pointer to it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}
