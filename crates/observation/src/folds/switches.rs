//! The sticky schedulers' paper's two conditions for a path switch, as predictors (claim S10).
//!
//! For a switch from path i to path j the paper (section V) expects
//! - a buffer underflow if `rtt_i λ_i < rtt_j λ_r`: the data in flight on i is played before the first packet on j
//!   arrives;
//! - a discarded picture if `F_i < (F - F_i) λ_i / λ_j + rtt_j λ_i`: the picture's packets on i are there before those
//!   on j.
//!
//! λ_i, λ_j: packets per second that go into the path (window over round trip); λ_r: packets per second that are
//! played, from the video's mean rate; F: packets of the picture that is being sent; F_i of them were sent on i just
//! before the switch. Both are taken as printed. They ignore the player's buffer and use a round trip as a one-way
//! delay, so they are evaluated as predictors of simulated events, never used as their definition.
//!
//! Ours: F_i counts back to the picture's begin or to the previous switch of new data, whichever is later; with three
//! paths a picture may have begun on a third one.

use anabranch_events::TransportEvent;
use anabranch_media::FrameTable;
use anabranch_units::{Bandwidth, Duration, Instant, SubflowId};
use std::sync::Arc;

/// The two conditions at one switch.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SwitchForecast {
    /// Time of the switch.
    #[serde(skip)]
    pub at: Instant,
    /// The subflow that was left (i).
    #[serde(skip)]
    pub from: SubflowId,
    /// The subflow that was taken (j).
    #[serde(skip)]
    pub to: SubflowId,
    /// Whether it is a switch among all segments with payload.
    #[serde(skip)]
    pub any: bool,
    /// Whether it is a switch among the segments with new data.
    #[serde(skip)]
    pub new_data: bool,
    /// The picture being sent; `None` in a header, where no picture can be late.
    pub frame: Option<u32>,
    /// F.
    pub frame_packets: u32,
    /// F_i.
    pub packets_before: u32,
    /// `rtt_j λ_r / (rtt_i λ_i)`: a score, above one where an underflow is expected.
    pub underflow_ratio: f64,
    /// `(F - F_i) λ_i / λ_j + rtt_j λ_i - F_i` in packets: a score, above zero where a discard is expected.
    pub discard_margin: f64,
}

impl SwitchForecast {
    /// Whether the first condition holds.
    pub fn underflow(&self) -> bool {
        self.underflow_ratio > 1.0
    }

    /// Whether the second condition holds.
    pub fn discard(&self) -> bool {
        self.frame.is_some() && self.discard_margin > 0.0
    }
}

/// How many switches the conditions spoke of, and how they spoke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForecastCounts {
    /// Switches of either kind, among all segments or among those with new data.
    pub switches: u64,
    /// Those at which an underflow was expected.
    pub underflow_expected: u64,
    /// Those at which a discard was expected.
    pub discard_expected: u64,
}

/// Applies the conditions to the sender's events of one session.
#[derive(Clone, Debug)]
pub struct SwitchPredictor {
    frames: Arc<FrameTable>,
    playing_rate: Bandwidth,
    packet_bytes: u32,
    /// Offset of the file in the connection's stream.
    body_at: u64,
    /// Offset of the new data since the last switch.
    run_from: u64,
    /// The picture at the last switch: mostly the next switch is in the same picture or in the next one.
    last_frame: u32,
    counts: ForecastCounts,
}

impl SwitchPredictor {
    /// For a video whose file begins at offset `body_at` of the server's stream (after the response's header) and is
    /// sent in segments of up to `packet_bytes`, above zero.
    pub fn new(frames: Arc<FrameTable>, packet_bytes: u32, body_at: u64) -> Self {
        let playing_rate = Bandwidth::from_bytes_per(frames.size(), frames.duration());
        let packet_bytes = packet_bytes.max(1);
        let counts = ForecastCounts::default();
        SwitchPredictor { frames, playing_rate, packet_bytes, body_at, run_from: 0, last_frame: 0, counts }
    }

    /// Processes one event of the sender; a switch gives a forecast.
    #[inline]
    pub fn observe(&mut self, at: Instant, event: &TransportEvent) -> Option<SwitchForecast> {
        if let TransportEvent::PathSwitched { .. } = event { self.forecast(at, event) } else { None }
    }

    fn forecast(&mut self, at: Instant, switch: &TransportEvent) -> Option<SwitchForecast> {
        let &TransportEvent::PathSwitched { from, to, any, new_data, offset, rtt_from, rtt_to, rate_from, rate_to } =
            switch
        else {
            return None;
        };
        let (frame, frame_packets, packets_before) = self.picture_at(offset);
        if new_data {
            self.run_from = offset;
        }
        let forecast = SwitchForecast {
            at,
            from,
            to,
            any,
            new_data,
            frame,
            frame_packets,
            packets_before,
            underflow_ratio: bits(rtt_to, self.playing_rate) / bits(rtt_from, rate_from),
            discard_margin: {
                let (before, after) = (f64::from(packets_before), f64::from(frame_packets - packets_before));
                let in_flight = bits(rtt_to, rate_from) / (8.0 * f64::from(self.packet_bytes));
                after * rate_from.as_bps() as f64 / rate_to.as_bps() as f64 + in_flight - before
            },
        };
        self.counts.switches += 1;
        self.counts.underflow_expected += u64::from(forecast.underflow());
        self.counts.discard_expected += u64::from(forecast.discard());
        Some(forecast)
    }

    /// Counts so far.
    pub fn counts(&self) -> ForecastCounts {
        self.counts
    }

    /// The picture at an offset of the stream, F and F_i.
    fn picture_at(&mut self, offset: u64) -> (Option<u32>, u32, u32) {
        let Some(frame) = offset.checked_sub(self.body_at).and_then(|o| self.frames.at_offset_near(o, self.last_frame))
        else {
            return (None, 0, 0);
        };
        self.last_frame = frame;
        let (start, end) = (self.body_at + self.frames.start(frame), self.body_at + self.frames.end(frame));
        // A retransmission is behind the current run; then the whole picture so far counts.
        let from = if self.run_from <= offset { start.max(self.run_from) } else { start };
        let packets = |bytes: u64| bytes.div_ceil(u64::from(self.packet_bytes)) as u32;
        let frame_packets = packets(end - start);
        (Some(frame), frame_packets, packets(offset - from).min(frame_packets))
    }
}

/// The bytes at a rate in a time, in bits.
fn bits(time: Duration, rate: Bandwidth) -> f64 {
    time.as_secs_f64() * rate.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};
    use anabranch_media::FrameRate;

    /// 25 pictures a second of ten 1000-byte packets: 2 Mb/s, 250 packets a second; the file begins at 300.
    fn predictor() -> SwitchPredictor {
        let table = FrameTable::from_sizes(FrameRate::from_fps(25).unwrap(), 0, [10_000; 100]);
        SwitchPredictor::new(Arc::new(table), 1_000, 300)
    }

    fn switch(offset: u64, (rtt_from, rate_from): (u64, u64), (rtt_to, rate_to): (u64, u64)) -> TransportEvent {
        TransportEvent::PathSwitched {
            from: SubflowId(0),
            to: SubflowId(1),
            any: true,
            new_data: true,
            offset,
            rtt_from: ms(rtt_from),
            rtt_to: ms(rtt_to),
            rate_from: Bandwidth::from_bps(rate_from),
            rate_to: Bandwidth::from_bps(rate_to),
        }
    }

    #[test]
    fn an_underflow_is_expected_when_too_little_is_under_way() {
        // 50 ms at 1 Mb/s are 50 kb in flight; 100 ms at 2 Mb/s would play 200 kb.
        let mut p = predictor();
        let row = p.observe(at_ms(1), &switch(300, (50, 1_000_000), (100, 1_000_000))).unwrap();
        assert!((row.underflow_ratio - 4.0).abs() < 1e-9 && row.underflow());
        // 100 ms at 5 Mb/s are 500 kb; 100 ms would play 200 kb.
        let row = p.observe(at_ms(2), &switch(300, (100, 5_000_000), (100, 1_000_000))).unwrap();
        assert!((row.underflow_ratio - 0.4).abs() < 1e-9 && !row.underflow());
        assert_eq!(p.counts().underflow_expected, 1);
    }

    #[test]
    fn a_discard_is_expected_when_the_rest_of_the_picture_comes_later() {
        // Picture 2 lies at 20 300..30 300. At 24 300 four packets are out, six to go, twice as fast on j:
        // 6 * (1/2) + 20 ms * 125 packets/s - 4 = 3 + 2.5 - 4 = 1.5.
        let mut p = predictor();
        let row = p.observe(at_ms(1), &switch(24_300, (50, 1_000_000), (20, 2_000_000))).unwrap();
        assert_eq!((row.frame, row.frame_packets, row.packets_before), (Some(2), 10, 4));
        assert!((row.discard_margin - 1.5).abs() < 1e-9 && row.discard());
        // Picture 5 at 50 300..: nine out, one to go: 0.5 + 2.5 - 9 = -6.
        let row = p.observe(at_ms(2), &switch(59_300, (50, 1_000_000), (20, 2_000_000))).unwrap();
        assert!((row.discard_margin + 6.0).abs() < 1e-9 && !row.discard());
        assert_eq!(p.counts(), ForecastCounts { switches: 2, underflow_expected: 0, discard_expected: 1 });
    }

    #[test]
    fn only_packets_since_the_last_switch_were_sent_on_the_path_that_is_left() {
        let mut p = predictor();
        p.observe(at_ms(1), &switch(22_300, (50, 1_000_000), (20, 2_000_000)));
        let row = p.observe(at_ms(2), &switch(25_300, (20, 2_000_000), (50, 1_000_000))).unwrap();
        assert_eq!((row.frame_packets, row.packets_before), (10, 3));
    }

    #[test]
    fn in_a_header_no_picture_is_late_and_other_events_are_no_switch() {
        let mut p = predictor();
        let row = p.observe(at_ms(1), &switch(299, (50, 1_000_000), (20, 2_000_000))).unwrap();
        assert!(row.frame.is_none() && !row.discard());
        assert!(p.observe(at_ms(2), &TransportEvent::Established).is_none());
    }
}
