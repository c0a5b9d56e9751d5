//! A place at the head of the processor's queue.

/// The lowest real-time priority: above all that is not real-time, below the kernel's own threads.
const PRIORITY: core::ffi::c_int = 1;

/// Lets the calling thread run before all that is not real-time (`SCHED_FIFO`), so that it stays punctual on a busy machine; false if the
/// machine does not allow it. Only for threads that sleep most of the time: on one processor everything else stands still meanwhile.
pub fn run_before_others() -> bool {
    let param = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: 0 means the calling thread; the kernel reads `param`, which lives until the call returns, and keeps no pointer to it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) == 0 }
}
