//! Helpers of the live tests.
#![allow(dead_code, unused_macros, unused_imports)] // Each test program uses a part of it.

pub mod capture;
pub mod content;
pub mod kernel;
pub mod nginx;
pub mod served;
pub mod site;

use anabranch_live::Host;
use anabranch_testnet::{Emulator, EmulatorReport};
use anabranch_units::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the test early, with the reason on stderr, where the machine cannot run it.
macro_rules! require {
    ($tools:expr) => {
        if anabranch_testnet::requirements::skips_test($tools) {
            return;
        }
    };
}
pub(crate) use require;

/// Whether long measurements were requested (`make matrix`, `make uploads`); they are too long for the slow suite.
pub fn asked_for() -> bool {
    let asked = std::env::var("ANABRANCH_MATRIX").is_ok_and(|value| value == "1");
    if !asked {
        eprintln!("skipped: `make matrix` or `make uploads` runs it");
    }
    asked
}

/// Carries traffic on a thread of its own while `work` runs, and returns what came of both.
pub fn while_emulating<H: Host + Send, T>(emulator: Emulator<H>, work: impl FnOnce() -> T) -> (T, H, EmulatorReport) {
    emulating_until(emulator, |_| true, Duration::ZERO, work)
}

/// The same; behind `work` it goes on until the host has ended in its own way, but no longer than `longest`.
pub fn emulating_until<H: Host + Send, T>(
    mut emulator: Emulator<H>,
    ended: impl Fn(&H) -> bool + Sync,
    longest: Duration,
    work: impl FnOnce() -> T,
) -> (T, H, EmulatorReport) {
    let (stop, worked) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            let mut worked_at = None;
            let done = |host: &mut H, now: Instant| {
                let since = worked.load(Ordering::Relaxed).then(|| *worked_at.get_or_insert(now));
                since.is_some_and(|since| ended(host) || now.since(since) > longest)
            };
            emulator.run(&stop, done).expect("the emulator carries on");
            emulator.finish().expect("the capture is written")
        });
        // The flag is set even if the work panics; otherwise the scope would wait for ever.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let stopper = Stop(&stop);
        let result = work();
        worked.store(true, Ordering::Relaxed);
        let (host, report) = runner.join().expect("the emulator does not panic");
        drop(stopper);
        (result, host, report)
    })
}
