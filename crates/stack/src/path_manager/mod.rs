//! Path managers: which paths have a subflow.

use anabranch_units::{Duration, Instant, PathId};

/// Pause before the first retry of a join; it doubles with each retry.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(60);

/// A subflow on every path: the client joins on each one, and again when a path that was down comes back or a subflow
/// was lost.
#[derive(Clone, Debug)]
pub(crate) struct FullMesh {
    paths: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    path: PathId,
    up: bool,
    /// The path leads to an address that the peer has not withdrawn.
    leads: bool,
    /// Earliest time of the next join.
    not_before: Instant,
    failures: u32,
}

impl Entry {
    fn open(&self) -> bool {
        self.up && self.leads
    }
}

impl FullMesh {
    pub fn new(paths: impl Iterator<Item = PathId>) -> Self {
        let fresh = |path| Entry { path, up: true, leads: true, not_before: Instant::ZERO, failures: 0 };
        FullMesh { paths: paths.map(fresh).collect() }
    }

    pub fn on_path_change(&mut self, now: Instant, path: PathId, up: bool) {
        if let Some(entry) = self.entry(path) {
            *entry = Entry { up, not_before: now, failures: 0, ..*entry };
        }
    }

    /// The peer announced the address at the end of the path.
    pub fn on_address_known(&mut self, now: Instant, path: PathId) {
        if let Some(entry) = self.entry(path) {
            *entry = Entry { leads: true, not_before: now, failures: 0, ..*entry };
        }
    }

    /// The peer withdrew the address at the end of the path.
    pub fn on_address_gone(&mut self, path: PathId) {
        if let Some(entry) = self.entry(path) {
            entry.leads = false;
        }
    }

    /// A subflow on the path may carry data.
    pub fn on_opened(&mut self, path: PathId) {
        if let Some(entry) = self.entry(path) {
            entry.failures = 0;
        }
    }

    /// A subflow on the path, or the attempt to open one, failed.
    pub fn on_failed(&mut self, now: Instant, path: PathId) {
        if let Some(entry) = self.entry(path) {
            let pause = (FIRST_RETRY * (1 << entry.failures.min(10))).min(LAST_RETRY);
            entry.not_before = now + pause;
            entry.failures += 1;
        }
    }

    /// Whether a join may be tried on the path now.
    pub fn may_join(&self, now: Instant, path: PathId) -> bool {
        self.paths.iter().any(|entry| entry.path == path && entry.open() && entry.not_before <= now)
    }

    /// When the pause of a path that `lacks` a subflow ends; `None` if no pause is running.
    pub fn poll_timeout(&self, lacks: impl Fn(PathId) -> bool) -> Option<Instant> {
        self.paths.iter().filter(|entry| entry.open() && lacks(entry.path)).map(|entry| entry.not_before).min()
    }

    fn entry(&mut self, path: PathId) -> Option<&mut Entry> {
        self.paths.iter_mut().find(|entry| entry.path == path)
    }
}
