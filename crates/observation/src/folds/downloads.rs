//! The downloads of players that only fetch (`bulk`, `on-off`), folded from what the player said.

use anabranch_events::PlayerEvent;
use anabranch_media::RESPONSE_HEADER_BYTES;
use anabranch_units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fold. It may be asked for a report at any instant, so it also serves a run that is cut off.
#[derive(Clone, Debug, Default)]
pub struct Downloads {
    list: Vec<Download>,
    /// Where the last complete response ends in the stream.
    read: u64,
}

#[derive(Clone, Copy, Debug)]
struct Download {
    request: u32,
    requested_at: Instant,
    first_byte_at: Option<Instant>,
    /// When the last byte came, and the bytes of the body.
    finished: Option<(Instant, u64)>,
}

/// A download, complete or not; the field names are those of `run --json`. Times count from the session's start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownloadReport {
    /// When it was requested.
    pub requested_s: f64,
    /// When the first byte of the response was there; null if none was.
    pub first_byte_s: Option<f64>,
    /// When the last one was; null if the session ended before.
    pub finished_s: Option<f64>,
    /// Bytes of the body that were read.
    pub bytes: u64,
}

impl Downloads {
    /// Takes in one event, in the order in which they were said.
    pub fn observe(&mut self, at: Instant, event: &PlayerEvent) {
        match *event {
            PlayerEvent::Requested { request } => {
                self.list.push(Download { request, requested_at: at, first_byte_at: None, finished: None });
            }
            PlayerEvent::FirstByte { request } => {
                if let Some(download) = self.find(request) {
                    download.first_byte_at = Some(at);
                }
            }
            PlayerEvent::ResponseComplete { request, bytes, end } => {
                self.read = end;
                if let Some(download) = self.find(request) {
                    download.finished = Some((at, bytes));
                }
            }
            _ => {}
        }
    }

    /// The downloads in the order of their requests, of a session that began at `start` and whose player read `bytes`
    /// in all, headers included.
    pub fn reports(&self, start: Instant, bytes: u64) -> Vec<DownloadReport> {
        let seconds = |at: Instant| at.since(start).as_secs_f64();
        // These players have one response under way at most: what was read behind the last complete one is its.
        let partial = bytes.saturating_sub(self.read + RESPONSE_HEADER_BYTES);
        let report = |download: &Download| DownloadReport {
            requested_s: seconds(download.requested_at),
            first_byte_s: download.first_byte_at.map(seconds),
            finished_s: download.finished.map(|(at, _)| seconds(at)),
            bytes: download.finished.map_or(partial, |(_, bytes)| bytes),
        };
        self.list.iter().map(report).collect()
    }

    /// Nearly always the latest.
    fn find(&mut self, request: u32) -> Option<&mut Download> {
        self.list.iter_mut().rev().find(|download| download.request == request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    #[test]
    fn each_download_has_its_times_and_the_last_one_its_part() {
        let mut downloads = Downloads::default();
        let end = RESPONSE_HEADER_BYTES + 1_000;
        for (ms, event) in [
            (500, PlayerEvent::Requested { request: 0 }),
            (600, PlayerEvent::FirstByte { request: 0 }),
            (700, PlayerEvent::ResponseComplete { request: 0, bytes: 1_000, end }),
            (1_500, PlayerEvent::Requested { request: 1 }),
            (1_600, PlayerEvent::FirstByte { request: 1 }),
        ] {
            downloads.observe(at_ms(ms), &event);
        }
        let first = DownloadReport { requested_s: 0.1, first_byte_s: Some(0.2), finished_s: Some(0.3), bytes: 1_000 };
        let second = DownloadReport { requested_s: 1.1, first_byte_s: Some(1.2), finished_s: None, bytes: 70 };
        assert_eq!(downloads.reports(at_ms(400), end + RESPONSE_HEADER_BYTES + 70), [first, second]);
        downloads.observe(at_ms(1_700), &PlayerEvent::ResponseComplete { request: 1, bytes: 1_000, end: 2 * end });
        downloads.observe(at_ms(2_500), &PlayerEvent::Requested { request: 2 });
        let third = DownloadReport { requested_s: 2.1, first_byte_s: None, finished_s: None, bytes: 0 };
        assert_eq!(downloads.reports(at_ms(400), 2 * end)[2], third);
    }
}
