//! When a thread runs, compared with others.

use core::ffi::c_int;

/// The lowest real-time priority: above all normal threads, below the kernel's own.
const PRIORITY: c_int = 1;

/// Gives the calling thread real-time priority (`SCHED_FIFO`), so that its timers are accurate on a busy machine; false
/// if the machine does not allow it. Only for threads that sleep most of the time: on a single processor nothing else
/// runs meanwhile.
pub fn run_before_others() -> bool {
    schedule(libc::SCHED_FIFO, PRIORITY)
}

/// Lets the calling thread run only where no other thread wants to (`SCHED_IDLE`); false if the machine does not allow it.
pub(crate) fn run_after_others() -> bool {
    schedule(libc::SCHED_IDLE, 0)
}

fn schedule(policy: c_int, priority: c_int) -> bool {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: 0 means the calling thread; the kernel reads `param`, which lives until the call returns, and keeps no pointer to it.
    unsafe { libc::sched_setscheduler(0, policy, &raw const param) == 0 }
}
