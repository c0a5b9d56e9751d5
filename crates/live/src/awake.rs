//! Processors that do not idle.
//!
//! A processor of a virtual machine that has nothing to do is given back to the host, and returns late when other guests
//! are busy. So timers of a machine that idles are late. On such a guest one timer of 100 was 1.7 to 3.5 ms late, and
//! 0.01 to 0.04 ms with this (5,000 timers, a millisecond apart, of a thread with real-time priority).
//!
//! It is for one run at a time. With eight such threads, of four emulators on two processors, the kernel's workers were late: in 3 of 10
//! such runs a kernel took two seconds to acknowledge a DATA_FIN, which it does in a worker, and in none of 10 without them.

use crate::priority::run_after_others;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How often a thread spins between two looks at whether it should end: some microseconds, so that the looks cost nothing.
const SPINS: u32 = 1_000;

/// Keeps the processors of a virtual machine from idling, by a thread on each that runs only where no other thread wants to.
///
/// On a real machine it does nothing: there a processor returns from its idle states within some hundred microseconds.
pub struct Awake {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Awake {
    /// Keeps the processors busy that the calling thread may use, until the value is dropped.
    pub fn begin() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let allowed = if is_virtual() { sched_getaffinity(None).unwrap_or_default() } else { CpuSet::new() };
        let processors = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let threads = processors.map(|cpu| occupy(cpu, &end)).collect();
        Awake { end, threads }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A thread that spins on one processor. It does not where it would take time from others, or leave its processor.
fn occupy(cpu: usize, end: &Arc<AtomicBool>) -> JoinHandle<()> {
    let end = end.clone();
    std::thread::spawn(move || {
        let mut only = CpuSet::new();
        only.set(cpu);
        if !run_after_others() || sched_setaffinity(None, &only).is_err() {
            return;
        }
        while !end.load(Ordering::Relaxed) {
            (0..SPINS).for_each(|_| spin_loop());
        }
    })
}

/// Whether this is a virtual machine, as processors of PCs say. Others do not, and count as real ones.
fn is_virtual() -> bool {
    let says = |line: &str| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor");
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.lines().any(says))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Enough for a thread that others delay.
    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn a_thread_that_occupies_a_processor_ends_when_told() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let thread = occupy(cpu, &end);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!thread.is_finished(), "it spins");
        end.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while !thread.is_finished() {
            assert!(begun.elapsed() < TIMEOUT);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
