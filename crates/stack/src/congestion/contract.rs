//! The contract of every controller, of the registry or from outside, checked on arbitrary sequences of events.

use super::{Ack, CongestionControl, LossCause, MIN_SSTHRESH, RateSample, Siblings, Window};
use crate::view::{Packets, Phase, SubflowView};
use anabranch_units::{Bandwidth, Duration, Instant};
use proptest::prelude::*;

/// Payload bytes of a segment.
const MSS: u32 = 1448;

/// The windows that a control may set, in packets. No path that is simulated holds ten million.
pub const WINDOWS: core::ops::Range<f64> = 1.0..1e7;

/// What a controller set after an event: window, threshold and pace.
pub type Set = (Packets, Packets, Option<Bandwidth>);

/// What happens to a subflow.
#[derive(Clone, Debug)]
pub struct Life(Vec<Event>);

/// Any life of up to 399 events.
pub fn any_life() -> impl Strategy<Value = Life> {
    prop::collection::vec(event(), 1..400).prop_map(Life)
}

impl Life {
    /// Leads a controller through this life; the same controller must set the same again.
    ///
    /// # Panics
    /// If a window falls below one packet or exceeds ten million, or a threshold after a loss is below two.
    pub fn lead(&self, control: Box<dyn CongestionControl>) -> Vec<Set> {
        let mut driver = Driver::new(control);
        let set = |event| {
            driver.apply(event);
            (driver.window.cwnd, driver.window.ssthresh, driver.window.pacing_rate)
        };
        self.0.iter().map(set).collect()
    }
}

/// An open subflow with that window in packets and round trip in seconds, beyond slow start.
fn view(id: u16, cwnd: f64, rtt: f64) -> SubflowView {
    let idle = SubflowView::idle(id, MSS, Packets::from_f64(cwnd), Duration::from_secs_f64(rtt));
    SubflowView { ssthresh: Packets::whole(2), in_flight: cwnd as u32, ..idle }
}

/// An event of a subflow's life.
#[derive(Clone, Debug)]
enum Event {
    Ack {
        after_us: u32,
        delivered: u32,
        rtt_us: Option<u32>,
        may_grow: bool,
        in_flight: u32,
        lost: u32,
        app_limited: bool,
    },
    Congestion(LossCause),
    RecoveryEnd,
    Undo,
    Restart {
        idle_ms: u32,
    },
    Sibling {
        cwnd: u16,
        rtt_us: u32,
        ssthresh: Option<u16>,
        allowed: bool,
        recovering: bool,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (
        0..200_000u32,
        1..40u32,
        prop::option::weighted(0.9, 0..2_000_000u32),
        any::<bool>(),
        0..2000u32,
        0..20u32,
        any::<bool>(),
    )
        .prop_map(|(after_us, delivered, rtt_us, may_grow, in_flight, lost, app_limited)| Event::Ack {
            after_us,
            delivered,
            rtt_us,
            may_grow,
            in_flight,
            lost,
            app_limited,
        });
    let cause = prop_oneof![Just(LossCause::FastRetransmit), Just(LossCause::Timeout), Just(LossCause::Penalty)];
    let sibling = (1..5000u16, 0..2_000_000u32, prop::option::of(1..5000u16), any::<bool>(), any::<bool>()).prop_map(
        |(cwnd, rtt_us, ssthresh, allowed, recovering)| Event::Sibling { cwnd, rtt_us, ssthresh, allowed, recovering },
    );
    prop_oneof![
        30 => ack,
        2 => cause.prop_map(Event::Congestion),
        2 => Just(Event::RecoveryEnd),
        1 => Just(Event::Undo),
        1 => (0..60_000u32).prop_map(|idle_ms| Event::Restart { idle_ms }),
        2 => sibling,
    ]
}

/// A subflow as far as its controller sees it, with the subflow's own part in each reduction.
struct Driver {
    cc: Box<dyn CongestionControl>,
    window: Window,
    before_reduction: Window,
    views: [SubflowView; 2],
    now_us: u64,
    delivered: u64,
    acked: u64,
}

impl Driver {
    fn new(cc: Box<dyn CongestionControl>) -> Self {
        let mut own = view(0, 10.0, 0.0);
        own.ssthresh = Packets::INFINITE;
        let window = Window::initial(10);
        let views = [own, view(1, 10.0, 0.05)];
        Driver { cc, window, before_reduction: window, views, now_us: 0, delivered: 0, acked: 0 }
    }

    fn apply(&mut self, event: &Event) {
        let now = Instant::from_nanos(self.now_us * 1000);
        let siblings = Siblings::new(&self.views, 0);
        match *event {
            Event::Ack { .. } => self.acknowledge(event),
            Event::Congestion(cause) => {
                self.before_reduction = self.window;
                self.cc.on_congestion(now, cause, &mut self.window, siblings);
                let threshold = self.window.ssthresh.as_f64();
                assert!(threshold >= MIN_SSTHRESH, "the threshold became {threshold} packets");
                if cause == LossCause::Timeout {
                    self.window.cwnd = Packets::whole(1);
                } else if !self.cc.governs_itself() {
                    self.window.cwnd = self.window.ssthresh;
                }
            }
            Event::RecoveryEnd => self.cc.on_recovery_end(now, &mut self.window),
            Event::Undo => {
                self.window.cwnd = self.before_reduction.cwnd;
                self.window.ssthresh = self.before_reduction.ssthresh;
                self.cc.on_undo(now, &mut self.window);
            }
            Event::Restart { idle_ms } => {
                self.now_us += u64::from(idle_ms) * 1000;
                if !self.cc.governs_itself() {
                    self.window.cwnd = self.window.cwnd.min(Packets::whole(10));
                }
                let idle = Duration::from_millis(u64::from(idle_ms));
                self.cc.on_restart(Instant::from_nanos(self.now_us * 1000), idle, true, &mut self.window);
            }
            Event::Sibling { cwnd, rtt_us, ssthresh, allowed, recovering } => {
                self.views[1] = SubflowView {
                    allowed,
                    ssthresh: ssthresh.map_or(Packets::INFINITE, |s| Packets::whole(u32::from(s))),
                    phase: if recovering { Phase::Recovery } else { Phase::Open },
                    acked_since_loss: u64::from(rtt_us),
                    ..view(1, f64::from(cwnd), f64::from(rtt_us) / 1e6)
                };
            }
        }
        self.views[0].cwnd = self.window.cwnd;
        self.views[0].ssthresh = self.window.ssthresh;
        let window = self.window.cwnd.as_f64();
        assert!(WINDOWS.contains(&window), "the window became {window} packets after {event:?}");
    }

    fn acknowledge(&mut self, event: &Event) {
        let Event::Ack { after_us, delivered, rtt_us, may_grow, in_flight, lost, app_limited } = *event else { return };
        self.now_us += u64::from(after_us);
        self.delivered += u64::from(delivered);
        self.acked += u64::from(delivered) * 1448;
        self.views[0].acked_since_loss += u64::from(delivered) * 1448;
        let rtt = rtt_us.map(|us| Duration::from_micros(u64::from(us)));
        if let Some(rtt) = rtt {
            self.views[0].srtt = rtt;
            self.views[0].latest_rtt = rtt;
        }
        let ack = Ack {
            now: Instant::from_nanos(self.now_us * 1000),
            delivered,
            total_delivered: self.delivered,
            rtt,
            may_grow,
            prior_in_flight: in_flight.saturating_add(delivered),
            in_flight,
            lost,
            acked_offset: self.acked,
            sent_offset: self.acked + u64::from(in_flight) * 1448,
            rate: RateSample {
                delivered,
                interval: Duration::from_micros(u64::from(after_us)),
                prior_delivered: self.delivered.saturating_sub(u64::from(in_flight)),
                app_limited,
                sent_in_flight: in_flight,
                lost,
            },
        };
        self.cc.on_ack(&ack, &mut self.window, Siblings::new(&self.views, 0));
    }
}
