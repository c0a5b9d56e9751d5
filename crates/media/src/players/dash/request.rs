//! Running requests, and the times of a browser's progress reports.
//!
//! XMLHttpRequest reports the first bytes of a body at once and later ones at most every 50 ms: bytes that arrive
//! within that time are reported at its end (XHR, "receive response body"; Chromium's
//! XMLHttpRequestProgressEventThrottle). The end of a body is reported by the completion itself.

use crate::abr::{Download, Mark, Progress};
use anabranch_units::{Duration, Instant};

const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// A request whose response is incomplete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub number: u32,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Manifest,
    Init {
        representation: usize,
    },
    /// Audio, or its initialisation segment.
    Audio,
    Media(Media),
    /// Abandoned: its bytes are read and discarded.
    Drained,
}

/// A media segment that is being fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Media {
    pub index: u32,
    pub representation: usize,
    pub total: u64,
    requested_at: Instant,
    first_byte_at: Option<Instant>,
    first_progress: Option<Mark>,
    last_report: Option<Mark>,
    pub bytes: u64,
}

impl Media {
    pub fn new(index: u32, representation: usize, total: u64, now: Instant) -> Self {
        Media {
            index,
            representation,
            total,
            requested_at: now,
            first_byte_at: None,
            first_progress: None,
            last_report: None,
            bytes: 0,
        }
    }

    pub fn began(&mut self, now: Instant) {
        self.first_byte_at = Some(now);
    }

    /// When the bytes since the last report are to be reported.
    #[inline]
    pub fn report_due(&self) -> Option<Instant> {
        if self.bytes == 0 || self.bytes == self.total {
            return None;
        }
        match self.last_report {
            None => Some(Instant::ZERO),
            Some(last) => (self.bytes > last.bytes).then(|| last.at + REPORT_INTERVAL),
        }
    }

    /// Makes a report.
    pub fn report(&mut self, now: Instant) -> Progress {
        let mark = Mark { at: now, bytes: self.bytes };
        self.first_progress.get_or_insert(mark);
        self.last_report = Some(mark);
        Progress {
            index: u64::from(self.index),
            representation: self.representation,
            requested_at: self.requested_at,
            first_progress: self.first_progress,
            bytes: self.bytes,
            total: self.total,
        }
    }

    /// The record for the rule when it is over, complete or abandoned.
    pub fn download(&self, now: Instant) -> Download {
        Download {
            index: u64::from(self.index),
            representation: self.representation,
            requested_at: self.requested_at,
            first_byte_at: self.first_byte_at.unwrap_or(now),
            first_progress: self.first_progress,
            last_progress: Mark { at: now, bytes: self.bytes },
            finished_at: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn the_first_bytes_are_reported_at_once_and_later_ones_every_fifty_milliseconds() {
        let mut media = Media::new(0, 0, 1_000, at_ms(0));
        assert_eq!(media.report_due(), None);
        media.bytes = 100;
        assert!(media.report_due().is_some_and(|due| due <= at_ms(7)));
        let progress = media.report(at_ms(7));
        assert_eq!((progress.bytes, progress.first_progress), (100, Some(Mark { at: at_ms(7), bytes: 100 })));
        assert_eq!(media.report_due(), None, "nothing new");
        media.bytes = 200;
        assert_eq!(media.report_due(), Some(at_ms(57)));
        media.report(at_ms(57));
        media.bytes = 1_000;
        assert_eq!(media.report_due(), None, "completion speaks for itself");
        let download = media.download(at_ms(90));
        assert_eq!(download.first_progress, Some(Mark { at: at_ms(7), bytes: 100 }));
        assert_eq!(download.last_progress, Mark { at: at_ms(90), bytes: 1_000 });
    }

    #[test]
    fn a_body_that_comes_at_once_has_no_first_report() {
        let mut media = Media::new(3, 1, 500, at_ms(10));
        media.began(at_ms(20));
        media.bytes = 500;
        let download = media.download(at_ms(20));
        assert_eq!((download.first_progress, download.first_byte_at, download.index), (None, at_ms(20), 3));
    }
}
