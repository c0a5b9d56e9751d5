//! Input and output of bitrate rules.

use anabranch_units::{Duration, Instant};

/// The representations of one adaptation set, from which a rule chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    bitrates: Vec<u64>,
    segment_duration: Duration,
    segments: u64,
    sizes: Option<Vec<Vec<u64>>>,
    live: bool,
}

/// Why a ladder cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// There are no representations.
    #[error("there is no representation")]
    Empty,
    /// Bitrates are zero or not strictly ascending: two representations of one rate cannot be distinguished.
    #[error("the bitrate of representation {0} is not above that of the one before it")]
    NotAscending(usize),
    /// The media segments have no duration.
    #[error("the media segments have no duration")]
    NoDuration,
    /// The table of sizes has the wrong shape.
    #[error("expected the sizes of {representations} representations with {segments} media segments each")]
    Sizes {
        /// Expected number of rows.
        representations: usize,
        /// Expected number of columns in each row.
        segments: u64,
    },
}

impl Ladder {
    /// Representations of these nominal rates (bit/s, strictly ascending) with `segments` media segments of equal
    /// duration.
    pub fn new(bitrates: Vec<u64>, segment_duration: Duration, segments: u64) -> Result<Self, LadderError> {
        if bitrates.is_empty() {
            return Err(LadderError::Empty);
        }
        let mut below = 0;
        for (index, &bitrate) in bitrates.iter().enumerate() {
            if bitrate <= below {
                return Err(LadderError::NotAscending(index));
            }
            below = bitrate;
        }
        if segment_duration.is_zero() {
            return Err(LadderError::NoDuration);
        }
        Ok(Ladder { bitrates, segment_duration, segments, sizes: None, live: false })
    }

    /// With the size in bytes of every media segment: `sizes[representation][index]`.
    pub fn with_sizes(mut self, sizes: Vec<Vec<u64>>) -> Result<Self, LadderError> {
        let fits = sizes.len() == self.bitrates.len() && sizes.iter().all(|row| row.len() as u64 == self.segments);
        if !fits {
            return Err(LadderError::Sizes { representations: self.bitrates.len(), segments: self.segments });
        }
        self.sizes = Some(sizes);
        Ok(self)
    }

    /// As a live stream (a dynamic MPD), which some rules treat differently.
    pub fn live(mut self) -> Self {
        self.live = true;
        self
    }

    /// Number of representations, at least one.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bitrates.len()
    }

    /// The nominal rates, bit/s.
    pub fn bitrates(&self) -> &[u64] {
        &self.bitrates
    }

    /// The nominal rate of a representation, bit/s, as a float for formulas.
    pub fn bps(&self, representation: usize) -> f64 {
        self.bitrates[representation] as f64
    }

    /// Playing time of one media segment.
    pub fn segment_duration(&self) -> Duration {
        self.segment_duration
    }

    /// Number of media segments.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Whether this is a live stream.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Bytes of a media segment: from the table, or by the nominal rate.
    pub fn segment_bytes(&self, representation: usize, index: u64) -> u64 {
        let known =
            self.sizes.as_ref().and_then(|rows| rows[representation].get(usize::try_from(index).ok()?).copied());
        known.unwrap_or_else(|| {
            let bits = u128::from(self.bitrates[representation]) * u128::from(self.segment_duration.as_nanos());
            u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX)
        })
    }

    /// The highest representation up to `top` whose rate is at most `bps`; the lowest one if none is.
    pub fn highest_within(&self, bps: f64, top: usize) -> usize {
        (0..=top.min(self.len() - 1)).rev().find(|&i| self.bps(i) <= bps).unwrap_or(0)
    }
}

/// The bytes of a body received at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Time of the report.
    pub at: Instant,
    /// Bytes of the body so far.
    pub bytes: u64,
}

/// A finished request for a media segment: complete or aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// Number of the media segment, from zero.
    pub index: u64,
    /// Rank of the representation.
    pub representation: usize,
    /// When the request was placed.
    pub requested_at: Instant,
    /// When the first byte of the response was readable.
    pub first_byte_at: Instant,
    /// The first report of progress to the player, if it came before the body was complete. A browser reports no more
    /// often than every 50 ms (XMLHttpRequest, "progress"), so a small segment may have none.
    pub first_progress: Option<Mark>,
    /// The last report of progress; a complete body's is of the whole of it.
    pub last_progress: Mark,
    /// When the last byte was readable, or the request was aborted.
    pub finished_at: Instant,
}

impl Download {
    /// Bytes of the body in the last report.
    pub fn bytes(&self) -> u64 {
        self.last_progress.bytes
    }

    /// The rate from the request to the last byte, bit/s, latency included.
    pub fn throughput_bps(&self) -> f64 {
        let seconds = self.finished_at.since(self.requested_at).as_secs_f64().max(1e-9);
        self.bytes() as f64 * 8.0 / seconds
    }
}

/// A progress report on a running request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of the media segment, from zero.
    pub index: u64,
    /// Rank of the representation.
    pub representation: usize,
    /// When the request was placed.
    pub requested_at: Instant,
    /// The first report of this request (perhaps this one), if the body was not complete by then.
    pub first_progress: Option<Mark>,
    /// Bytes of the body so far.
    pub bytes: u64,
    /// Bytes of the whole body.
    pub total: u64,
}

/// The buffer state of the player, with its own hysteresis (see [`super::dashjs::BufferWatch`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferState {
    /// Too little to play.
    Empty,
    /// Enough to play.
    Loaded,
}

/// Phase of the playback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback {
    /// Before the first picture, or after a seek.
    Startup,
    /// From then on, stalls included.
    Steady,
}

/// Pictures since the session began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// Decoded and due.
    pub total: u64,
    /// Of these, dropped.
    pub dropped: u64,
}

/// The state of the player as a rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The representations to choose from.
    pub ladder: &'a Ladder,
    /// Current time.
    pub now: Instant,
    /// Playing time that is buffered, as the player last measured it.
    pub buffer: Duration,
    /// The state of the buffer; `None` before the first measurement.
    pub buffer_state: Option<BufferState>,
    /// The level at which the player pauses its requests.
    pub buffer_target: Duration,
    /// Phase of the playback.
    pub playback: Playback,
    /// Rank of the representation chosen last.
    pub current: usize,
    /// Rank of the highest representation allowed (the viewer's screen, a limit of the scenario).
    pub top: usize,
    /// Number of the media segment to decide for.
    pub next: u64,
    /// Completed downloads of media segments, oldest first.
    pub downloads: &'a [Download],
    /// Pictures decoded and dropped.
    pub pictures: Pictures,
}

/// An event between two decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A media segment is complete.
    SegmentFinished(&'a Download),
    /// A request was aborted: by the rule, or by a seek.
    SegmentAborted(&'a Download),
    /// An initialisation segment is complete.
    InitFinished,
    /// The player measured its buffer: [`View::buffer`] is new.
    BufferMeasured,
    /// The state of the buffer changed to this.
    BufferState(BufferState),
    /// The viewer sought to another position.
    Seeked,
    /// Another representation came on screen.
    Shown {
        /// Rank of the representation shown before.
        from: usize,
        /// Rank of the representation shown now.
        to: usize,
    },
}

/// The next representation, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Rank of the representation.
    pub representation: usize,
    /// Waiting time before the request is placed.
    pub wait: Duration,
    /// The reason, for tables and figures.
    pub reason: &'static str,
}

impl Decision {
    /// This representation, at once.
    pub fn now(representation: usize, reason: &'static str) -> Self {
        Decision { representation, wait: Duration::ZERO, reason }
    }
}

/// Abandon the running request and fetch the same media segment in this representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandon {
    /// Rank of the representation.
    pub representation: usize,
    /// The reason.
    pub reason: &'static str,
}

/// The request of one part of a composite rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Name of the part.
    pub rule: &'static str,
    /// Rank of the requested representation.
    pub representation: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(bitrates: &[u64]) -> Result<Ladder, LadderError> {
        Ladder::new(bitrates.to_vec(), Duration::from_secs(4), 2)
    }

    #[test]
    fn ladders_that_make_no_sense_are_refused() {
        assert_eq!(ladder(&[]), Err(LadderError::Empty));
        assert_eq!(ladder(&[0, 5]), Err(LadderError::NotAscending(0)));
        assert_eq!(ladder(&[5, 9, 9]), Err(LadderError::NotAscending(2)));
        assert_eq!(Ladder::new(vec![1], Duration::ZERO, 1), Err(LadderError::NoDuration));
        let shape = LadderError::Sizes { representations: 2, segments: 2 };
        assert_eq!(ladder(&[5, 9]).unwrap().with_sizes(vec![vec![1, 2]]), Err(shape.clone()));
        assert_eq!(ladder(&[5, 9]).unwrap().with_sizes(vec![vec![1, 2], vec![1]]), Err(shape));
    }

    #[test]
    fn sizes_come_from_the_table_or_from_the_rate() {
        let plain = ladder(&[1_000_000, 3_000_000]).unwrap();
        assert_eq!(plain.segment_bytes(1, 0), 1_500_000);
        let table = plain.with_sizes(vec![vec![10, 20], vec![30, 40]]).unwrap();
        assert_eq!((table.segment_bytes(0, 1), table.segment_bytes(1, 0)), (20, 30));
        assert_eq!(table.segment_bytes(1, 9), 1_500_000, "beyond the table the rate is the best guess");
    }

    #[test]
    fn the_highest_rate_within_a_limit_counts_equality_and_respects_the_top() {
        let ladder = ladder(&[100, 200, 300]).unwrap();
        assert_eq!(ladder.highest_within(200.0, 2), 1);
        assert_eq!(ladder.highest_within(199.9, 2), 0);
        assert_eq!(ladder.highest_within(1.0, 2), 0);
        assert_eq!(ladder.highest_within(900.0, 2), 2);
        assert_eq!(ladder.highest_within(900.0, 1), 1);
        assert_eq!(ladder.highest_within(f64::NAN, 2), 0);
    }

    #[test]
    fn throughput_counts_the_whole_request() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let download = Download {
            index: 0,
            representation: 0,
            requested_at: at(100),
            first_byte_at: at(600),
            first_progress: None,
            last_progress: Mark { at: at(1_100), bytes: 125_000 },
            finished_at: at(1_100),
        };
        assert_eq!(download.throughput_bps(), 1_000_000.0);
    }
}
