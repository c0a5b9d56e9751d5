//! Helpers of the live tests.
#![allow(dead_code, unused_macros, unused_imports)] // Each test program uses a part of it.

pub mod capture;
pub mod content;
pub mod kernel;
pub mod served;
#[cfg(feature = "serve")]
pub mod site;

use anabranch_live::requirements::{self, Tool};
use anabranch_live::{Emulator, EmulatorReport, Host};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints why the test cannot run here; returns whether that is so.
///
/// # Panics
/// If `ANABRANCH_REQUIRE_LIVE=1`: then a machine that cannot run the live tests fails them.
pub fn unable(tools: &[Tool]) -> bool {
    let missing = requirements::missing(tools);
    if missing.is_empty() {
        return false;
    }
    let reasons = missing.join(" ");
    let required = std::env::var("ANABRANCH_REQUIRE_LIVE").is_ok_and(|value| value == "1");
    assert!(!required, "live tests are required, but: {reasons}");
    eprintln!("skipped: {reasons}");
    true
}

/// Ends the test early, with the reason on stderr, where the machine cannot run it.
macro_rules! require {
    ($tools:expr) => {
        if crate::common::unable($tools) {
            return;
        }
    };
}
pub(crate) use require;

/// Whether long measurements were requested (`make matrix`); they are too long for the slow suite.
pub fn asked_for() -> bool {
    let asked = std::env::var("ANABRANCH_MATRIX").is_ok_and(|value| value == "1");
    if !asked {
        eprintln!("skipped: `make matrix` runs it");
    }
    asked
}

/// Carries traffic on a thread of its own while `work` runs, and returns the results of both.
pub fn while_emulating<H: Host + Send, T>(
    mut emulator: Emulator<H>,
    work: impl FnOnce() -> T,
) -> (T, H, EmulatorReport) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            emulator.run(&stop, |_, _| false).expect("the emulator carries on");
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
        drop(stopper);
        let (host, report) = runner.join().expect("the emulator does not panic");
        (result, host, report)
    })
}
