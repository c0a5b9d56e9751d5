//! What dash.js 5.2.1 reports with its requests for media segments (streaming/models/CmcdModel.js), if CMCD is on.
//!
//! Left out is what no server here reads: the measured throughput (`mtp`), the next object (`nor`), that the buffer was
//! empty (`bs`), and names.

use super::js::level_s;
use crate::cmcd::{Cmcd, ObjectType, StreamingFormat};
use anabranch_units::{Bandwidth, Duration};

/// `RTP_SAFETY_FACTOR`: so many times the throughput that the deadline needs is asked for.
const SAFETY_FACTOR: f64 = 5.0;
/// The buffer that an empty one counts as in that throughput, in tenths of a second.
const EMPTY_TENTHS: u64 = 5;
/// Buffers are reported in multiples of it.
const TENTH: Duration = Duration::from_millis(100);

/// The state of a player's reports.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// The next media segment is needed to begin, or to go on after a stall.
    startup: bool,
}

/// A request for a media segment.
#[derive(Clone, Copy, Debug)]
pub struct Requested {
    /// The buffer level that was measured last.
    pub buffer: Duration,
    /// Bits per second of its representation.
    pub bitrate: u64,
    /// Bits per second of the highest representation allowed.
    pub top: u64,
    /// The playing time of a media segment.
    pub duration: Duration,
}

impl Default for Reporter {
    fn default() -> Self {
        Reporter { startup: true }
    }
}

impl Reporter {
    /// The buffer is empty: see [`BufferWatch`](super::BufferWatch).
    pub fn note_empty(&mut self) {
        self.startup = true;
    }

    /// The report with a request.
    pub fn report(&mut self, requested: &Requested) -> Cmcd {
        let tenths = (level_s(requested.buffer) * 10.0) as u64;
        let buffer = Some(TENTH * tenths);
        Cmcd {
            buffer,
            bitrate: Some(kbps(requested.bitrate as f64 / 1e3)),
            duration: Some(Duration::from_millis((requested.duration.as_secs_f64() * 1e3).round() as u64)),
            deadline: buffer,
            object: Some(ObjectType::Video),
            enough: Some(enough(requested, tenths)),
            format: Some(StreamingFormat::Dash),
            startup: std::mem::take(&mut self.startup),
            top: Some(kbps((requested.top as f64 / 1e3).round())),
            ..Cmcd::default()
        }
    }
}

/// Whole kbit/s.
fn kbps(value: f64) -> Bandwidth {
    Bandwidth::from_bps(value as u64 * 1_000)
}

/// `_calculateRtp`: the throughput at which the media segment arrives in a fifth of the time that the buffer lasts, in
/// hundreds of kbit/s.
fn enough(requested: &Requested, tenths: u64) -> Bandwidth {
    let tenths = if tenths == 0 { EMPTY_TENTHS } else { tenths };
    let kilobits = requested.bitrate as f64 * requested.duration.as_secs_f64() / 1e3;
    let needed = kilobits / (tenths as f64 / 10.0);
    Bandwidth::from_bps(((needed * SAFETY_FACTOR / 100.0) as u64 + 1) * 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reporter: &mut Reporter, buffer_ms: u64) -> Cmcd {
        let buffer = Duration::from_millis(buffer_ms);
        reporter.report(&Requested { buffer, bitrate: 3_305_118, top: 4_726_737, duration: Duration::from_secs(2) })
    }

    #[test]
    fn the_first_request_and_the_one_after_an_empty_buffer_are_urgent() {
        let mut reporter = Reporter::default();
        assert!(report(&mut reporter, 0).startup);
        assert!(!report(&mut reporter, 2_000).startup);
        reporter.note_empty();
        assert!(report(&mut reporter, 100).startup);
        assert!(!report(&mut reporter, 100).startup);
    }

    #[test]
    fn levels_are_rounded_down_and_rates_as_dash_js_does() {
        let mut reporter = Reporter::default();
        let empty = report(&mut reporter, 99);
        assert_eq!(empty.buffer, Some(Duration::ZERO));
        // 6610 kbit in half a second, five times as fast.
        assert_eq!(empty.enough, Some(Bandwidth::from_bps(66_200_000)));
        let full = report(&mut reporter, 17_699);
        assert_eq!((full.buffer, full.deadline), (Some(Duration::from_millis(17_600)), full.buffer));
        assert_eq!((full.bitrate, full.top), (Some(kbps(3_305.0)), Some(kbps(4_727.0))));
        assert_eq!(full.enough, Some(Bandwidth::from_bps(1_900_000)));
    }
}
