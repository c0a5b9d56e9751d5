//! VLC's input clock: due times of pictures, how far ahead to read, and lateness of the input.
//!
//! It maps stream time s (PCR, playing time) to system time through one reference point:
//! - expected(s) = system_ref + (s - stream_ref): when a PCR should be read;
//! - due(s) = expected(s) + pts_delay: when a picture should be shown;
//! - late(s) = now - pts_delay - expected(s): lateness of the PCR that is read now, if positive.
//!
//! Source: VLC 3.0, src/input/clock.c, as facts. Integers are nanoseconds where VLC has microseconds. Left out: drift
//! (only for sources that set their own pace), pausing, and the 300 ms that a new reference keeps from the last time
//! stamp handed out, which a reset forgets, and which could not bind here because a reset finds all pictures overdue.

use anabranch_units::{Duration, Instant};

/// How much faster than playing VLC reads until it is ahead enough, in 256ths (CR_BUFFERING_RATE).
const READ_AHEAD_RATE: i64 = 48;
/// How far ahead it reads, in nanoseconds (CR_BUFFERING_TARGET).
const READ_AHEAD_MAX: i64 = 100_000_000;
/// A first picture is shown this long after the end of buffering (the wake-up delay in es_out.c).
const WAKE_UP_DELAY: i64 = 10_000_000;
/// Number of late values in the median (INPUT_CLOCK_LATE_COUNT).
const LATES: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Reference {
    stream: i64,
    /// System time in nanoseconds; up to the playout delay before the run's start.
    system: i64,
}

/// The input clock.
#[derive(Clone, Debug)]
pub(super) struct InputClock {
    reference: Option<Reference>,
    last_stream: i64,
    read_ahead: i64,
    pts_delay: i64,
    lates: Lates,
}

impl InputClock {
    pub(super) fn new(pts_delay: Duration) -> Self {
        InputClock {
            reference: None,
            last_stream: 0,
            read_ahead: 0,
            pts_delay: pts_delay.as_nanos() as i64,
            lates: Lates::default(),
        }
    }

    /// A PCR was read. The first one after a reset becomes the reference. Returns how late it is, if it is late.
    ///
    /// `may_read_ahead`: the decoders' queues have room.
    pub(super) fn on_pcr(&mut self, stream: Duration, now: Instant, may_read_ahead: bool) -> Option<Duration> {
        let (stream, now) = (stream.as_nanos() as i64, now.as_nanos() as i64);
        match self.reference {
            None => {
                self.reference = Some(Reference { stream, system: now });
                self.read_ahead = 0;
            }
            Some(_) if may_read_ahead => {
                let passed = (stream - self.last_stream).max(0);
                self.read_ahead = (self.read_ahead + passed * READ_AHEAD_RATE / 256).min(READ_AHEAD_MAX);
            }
            Some(_) => {}
        }
        self.last_stream = stream;
        let late = now - self.pts_delay - self.expected(stream)?;
        if late <= 0 {
            return None;
        }
        self.lates.record(late);
        Some(Duration::from_nanos(late as u64))
    }

    /// Drops the reference; the late values are kept.
    pub(super) fn reset(&mut self) {
        self.reference = None;
    }

    pub(super) fn has_reference(&self) -> bool {
        self.reference.is_some()
    }

    /// Stream time between the reference and the last PCR; zero without a reference.
    pub(super) fn buffered(&self) -> Duration {
        let buffered = self.reference.map_or(0, |r| self.last_stream - r.stream);
        Duration::from_nanos(buffered.max(0) as u64)
    }

    /// Buffering is over: the picture at the reference is due shortly after `now`.
    pub(super) fn begin_playout(&mut self, now: Instant) {
        if let Some(reference) = &mut self.reference {
            reference.system = now.as_nanos() as i64 + WAKE_UP_DELAY - self.pts_delay;
        }
    }

    /// When the next step of reading should begin: when the last PCR was expected, less the read-ahead.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let expected = self.expected(self.last_stream)?;
        Some(Instant::from_nanos((expected - self.read_ahead).max(0) as u64))
    }

    /// When the picture at this time stamp should be shown; unknown without a reference.
    pub(super) fn due(&self, stream: Duration) -> Option<Instant> {
        let due = self.expected(stream.as_nanos() as i64)? + self.pts_delay;
        Some(Instant::from_nanos(due.max(0) as u64))
    }

    /// The time stamp that is due now; unknown without a reference.
    pub(super) fn playing(&self, now: Instant) -> Option<Duration> {
        let reference = self.reference?;
        let stream = now.as_nanos() as i64 - self.pts_delay - reference.system + reference.stream;
        Some(Duration::from_nanos(stream.max(0) as u64))
    }

    pub(super) fn pts_delay(&self) -> Duration {
        Duration::from_nanos(self.pts_delay as u64)
    }

    /// The playout delay for the recent lateness: the current one plus the median of the last three late values.
    /// These are zero at first, so the first late PCR of a session has no effect.
    pub(super) fn wanted_delay(&self) -> Duration {
        Duration::from_nanos((self.pts_delay + self.lates.median()) as u64)
    }

    /// Takes a higher playout delay; a lower one is ignored. Lateness is counted against the new one from here on.
    pub(super) fn raise_delay(&mut self, to: Duration) {
        let to = to.as_nanos() as i64;
        if to > self.pts_delay {
            self.lates.lower_by(to - self.pts_delay);
            self.pts_delay = to;
        }
    }

    fn expected(&self, stream: i64) -> Option<i64> {
        self.reference.map(|r| r.system + (stream - r.stream))
    }
}

/// The last three late values, as a ring.
#[derive(Clone, Copy, Debug, Default)]
struct Lates {
    values: [i64; LATES],
    next: usize,
}

impl Lates {
    fn record(&mut self, late: i64) {
        self.values[self.next] = late;
        self.next = (self.next + 1) % LATES;
    }

    fn median(&self) -> i64 {
        let mut sorted = self.values;
        sorted.sort_unstable();
        sorted[LATES / 2]
    }

    /// Keeps the values that would still have been late with so much more delay, at the front of the ring.
    fn lower_by(&mut self, more: i64) {
        let old = *self;
        *self = Lates::default();
        // VLC's own order, which begins one place after the oldest value.
        for n in 0..LATES {
            let late = old.values[(old.next + 1 + n) % LATES] - more;
            if late > 0 {
                self.record(late);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    #[test]
    fn dates_follow_the_reference() {
        let mut clock = InputClock::new(ms(1000));
        assert_eq!((clock.due(ms(0)), clock.poll_timeout()), (None, None));
        assert_eq!(clock.on_pcr(ms(0), at_ms(300), true), None);
        assert_eq!(clock.on_pcr(ms(1250), at_ms(400), false), None);
        assert_eq!(clock.buffered(), ms(1250));
        clock.begin_playout(at_ms(400));
        assert_eq!(clock.due(ms(0)), Some(at_ms(410)));
        assert_eq!(clock.due(ms(1250)), Some(at_ms(1660)));
        assert_eq!(clock.poll_timeout(), Some(at_ms(660)), "expected at 410 - 1000 + 1250");
        assert_eq!(clock.playing(at_ms(660)), Some(ms(250)));
    }

    #[test]
    fn pictures_before_the_reference_were_due_before_it() {
        let mut clock = InputClock::new(ms(1000));
        clock.on_pcr(ms(5250), at_ms(9000), true);
        clock.begin_playout(at_ms(9000));
        assert_eq!(clock.due(ms(5040)), Some(at_ms(8800)));
    }

    #[test]
    fn it_reads_ahead_by_three_sixteenths_up_to_a_tenth_of_a_second() {
        let mut clock = InputClock::new(ms(1000));
        let mut ahead = Vec::new();
        for step in 0..5 {
            clock.on_pcr(ms(250 * step), at_ms(0), true);
            ahead.push(clock.read_ahead);
        }
        assert_eq!(ahead, [0, 46_875_000, 93_750_000, 100_000_000, 100_000_000]);
        clock.reset();
        clock.on_pcr(ms(1250), at_ms(0), true);
        assert_eq!(clock.read_ahead, 0);
        clock.on_pcr(ms(1500), at_ms(0), false);
        assert_eq!(clock.read_ahead, 0);
    }

    /// A clock whose PCR at 0 was read at 0, so that a PCR s read at t is late by t - 1000 - s.
    fn started() -> InputClock {
        let mut clock = InputClock::new(ms(1000));
        clock.on_pcr(ms(0), at_ms(0), false);
        clock
    }

    #[test]
    fn a_pcr_is_late_when_the_playout_delay_is_used_up() {
        let mut clock = started();
        assert_eq!(clock.on_pcr(ms(250), at_ms(1250), false), None);
        assert_eq!(clock.on_pcr(ms(500), at_ms(1503), false), Some(ms(3)));
    }

    #[test]
    fn the_median_of_three_ignores_one_outlier() {
        let mut clock = started();
        clock.on_pcr(ms(250), at_ms(1250 + 900), false);
        assert_eq!(clock.wanted_delay(), ms(1000), "0 0 900");
        clock.on_pcr(ms(500), at_ms(1500 + 40), false);
        assert_eq!(clock.wanted_delay(), ms(1040), "0 40 900");
        clock.on_pcr(ms(750), at_ms(1750 + 60), false);
        assert_eq!(clock.wanted_delay(), ms(1060), "40 60 900");
        clock.on_pcr(ms(1000), at_ms(2000 + 10), false);
        assert_eq!(clock.wanted_delay(), ms(1040), "10 40 60: the oldest is gone");
    }

    #[test]
    fn a_higher_delay_lowers_what_counts_as_late() {
        let mut clock = started();
        clock.on_pcr(ms(250), at_ms(1250 + 900), false);
        clock.on_pcr(ms(500), at_ms(1500 + 40), false);
        clock.raise_delay(clock.wanted_delay());
        assert_eq!(clock.pts_delay(), ms(1040));
        assert_eq!(clock.lates.values, [860_000_000, 0, 0], "900 - 40, and 40 - 40 is dropped");
        clock.raise_delay(ms(500));
        assert_eq!(clock.pts_delay(), ms(1040), "it never shrinks");
    }

    #[test]
    fn lowered_lates_keep_vlcs_order() {
        let mut lates = Lates::default();
        [10, 20, 30].into_iter().for_each(|late| lates.record(late));
        lates.lower_by(5);
        assert_eq!((lates.values, lates.next), ([15, 25, 5], 0), "the second oldest is the next to go");
    }
}
