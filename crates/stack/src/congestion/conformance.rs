//! The contract of every registered controller, checked on arbitrary sequences of events.

use super::testing::{at, view};
use super::{Ack, CongestionControl, LossCause, MIN_SSTHRESH, REGISTRY, RateSample, Siblings, Window};
use crate::options::{Options, Value};
use crate::view::{Packets, Phase, SubflowView};
use anabranch_units::Duration;
use proptest::prelude::*;

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
        let now = at(self.now_us as f64 / 1e6);
        let siblings = Siblings::new(&self.views, 0);
        match *event {
            Event::Ack { .. } => self.acknowledge(event),
            Event::Congestion(cause) => {
                self.before_reduction = self.window;
                self.cc.on_congestion(now, cause, &mut self.window, siblings);
                assert!(self.window.ssthresh.as_f64() >= MIN_SSTHRESH, "{:?}", self.window);
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
                self.cc.on_restart(at(self.now_us as f64 / 1e6), idle, &mut self.window);
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
        assert!(self.window.cwnd >= Packets::whole(1), "{:?} after {event:?}", self.window);
        assert!(self.window.cwnd.as_f64() < 1e7, "{:?} after {event:?}", self.window);
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
            now: at(self.now_us as f64 / 1e6),
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
            },
        };
        self.cc.on_ack(&ack, &mut self.window, Siblings::new(&self.views, 0));
    }
}

proptest! {
    #[test]
    fn every_controller_keeps_a_sane_window_and_repeats_itself(events in prop::collection::vec(event(), 1..400), seed in any::<u64>()) {
        for entry in REGISTRY {
            let trace = || -> Vec<_> {
                let mut driver = Driver::new((entry.create)(&Options::default(), seed).unwrap());
                events.iter().map(|event| {
                    driver.apply(event);
                    (driver.window.cwnd, driver.window.ssthresh, driver.window.pacing_rate)
                }).collect()
            };
            prop_assert_eq!(trace(), trace(), "{} is not deterministic", entry.name);
        }
    }
}

#[test]
fn names_are_unique_and_begin_with_the_documented_ones() {
    let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
    let documented = ["newreno", "cubic", "compound", "lia", "olia", "balia", "wvegas", "bbr", "mcc", "cbbr"];
    assert!(names.starts_with(&documented), "scripts depend on these names: {names:?}");
    for entry in REGISTRY {
        assert_eq!(REGISTRY.find(entry.name).map(|found| found.summary), Some(entry.summary));
        assert!(entry.summary.ends_with('.') && !entry.source.is_empty());
    }
    assert!(REGISTRY.find("no-such-controller").is_none());
}

#[test]
fn unknown_options_and_wrong_values_are_refused() {
    for entry in REGISTRY {
        let options = Options::new(vec![("no-such-option".into(), Value::Flag(true))]);
        let error = (entry.create)(&options, 0).expect_err(entry.name);
        assert_eq!(error.option, "no-such-option");
    }
    for (name, option) in [("cubic", "constants"), ("cubic", "hystart"), ("mcc", "gamma_unit"), ("wvegas", "drain")] {
        let options = Options::new(vec![(option.into(), Value::Text("no-such-word".into()))]);
        let error = (REGISTRY.find(name).unwrap().create)(&options, 0).expect_err(option);
        assert_eq!(error.option, option);
    }
}
