//! Rows 5 and 14, which are exact: CUBIC's K, and Compound below its low window.

use super::{Check, LawRow};
use crate::runs::{Events, set, shipped, simulate_with_events};
use anabranch_observation::Column;
use anabranch_stack::congestion::{Ack, LossCause, REGISTRY, RateSample, Siblings, Window};
use anabranch_stack::options::{Options, Value};
use anabranch_stack::view::{Packets, SubflowView};
use anabranch_units::{Duration, Instant};

pub(super) fn rows() -> Vec<LawRow> {
    vec![cubic_k(), compound_is_newreno()]
}

fn cubic_k() -> LawRow {
    LawRow {
        number: 5,
        network: "CUBIC's controller, one loss at 100 packets".into(),
        checks: vec![
            Check::near("window after the loss", "β W", 70.0, 0.01),
            Check::near("K in seconds", "∛(0.3 · 100/0.4)", K, 0.01),
            Check::near("window K after the loss", "W(K) = W", 100.0, 0.01),
        ],
        seeds: 1,
        quick_seeds: 1,
        measure: Box::new(|_| fall_and_return()),
    }
}

/// ∛75.
const K: f64 = 4.217;
/// C of RFC 9438, packets/s³.
const C: f64 = 0.4;

/// The controller alone, with the constants of RFC 9438 and a round trip of 0.1 s: a loss at 100 packets, then the
/// acknowledgments of each round trip evenly spaced. Gives the window after the loss, K and the window at K.
fn fall_and_return() -> Vec<f64> {
    const RTT: f64 = 0.1;
    let options = Options::new(vec![("constants".into(), Value::Text("rfc9438".into()))]);
    let mut control = (REGISTRY.find("cubic").expect("it is registered").create)(&options, 1).expect("a known option");
    let rtt = Duration::from_secs_f64(RTT);
    let view = [view(rtt)];
    let mut window = Window { cwnd: Packets::whole(100), ssthresh: Packets::whole(2), ..Window::initial(0) };
    let begin = Instant::ZERO + Duration::from_secs(1);
    control.on_congestion(begin, LossCause::FastRetransmit, &mut window, Siblings::new(&view, 0));
    window.cwnd = window.ssthresh;
    control.on_recovery_end(begin, &mut window);
    let after_loss = window.cwnd.as_f64();
    let (mut t, mut sent) = (0.0, 0);
    let mut estimates = Vec::new();
    while t < K {
        sent += 1;
        let ack = ack(begin + Duration::from_secs_f64(t), sent, rtt);
        control.on_ack(&ack, &mut window, Siblings::new(&view, 0));
        // Solved for K where the function is steep: 100 - w = C (K - t)³.
        if (1.0..3.0).contains(&t) {
            estimates.push(t + ((100.0 - window.cwnd.as_f64()) / C).cbrt());
        }
        t += RTT / window.cwnd.as_f64();
    }
    vec![after_loss, estimates.iter().sum::<f64>() / estimates.len() as f64, window.cwnd.as_f64()]
}

fn ack(now: Instant, sent: u64, rtt: Duration) -> Ack {
    Ack {
        now,
        delivered: 1,
        total_delivered: sent,
        rtt: Some(rtt),
        may_grow: true,
        prior_in_flight: 100,
        in_flight: 100,
        lost: 0,
        acked_offset: sent,
        sent_offset: sent + 100,
        rate: RateSample::default(),
    }
}

fn view(rtt: Duration) -> SubflowView {
    let idle = SubflowView::idle(0, 1448, Packets::whole(100), rtt);
    SubflowView { ssthresh: Packets::whole(2), in_flight: 100, ..idle }
}

/// Below this window Compound's delay window is off.
const LOW_WINDOW: f64 = 38.0;

fn compound_is_newreno() -> LawRow {
    LawRow {
        number: 14,
        network: "sticky/3p-50 with queues of 9 kB, Compound and NewReno".into(),
        checks: vec![
            Check::at_most("largest window", "low window of 38 packets", LOW_WINDOW - 1.0),
            Check::at_most("events that differ", "identical traces", 0.0),
            Check::at_least("window reductions, so that there is something to differ", "-", 100.0),
        ],
        seeds: 3,
        quick_seeds: 1,
        measure: Box::new(|seed| {
            let run = |control: &str| {
                let mut changes = vec![set("transport.congestion_control", control), set("duration", "120 s")];
                changes.extend((1..=3).map(|path| set(format!("link.path{path}.queue"), "9 kB")));
                simulate_with_events(shipped("sticky/3p-50"), &changes, seed)
            };
            let (compound, newreno) = (run("compound"), run("newreno"));
            let (a, b) = (Events::of(&compound), Events::of(&newreno));
            let largest = a.floats("cwnd_packets").iter().copied().filter(|w| !w.is_nan()).fold(0.0, f64::max);
            let reductions = b.named("window-reduced").count();
            vec![largest, differences(&compound, &newreno) as f64, reductions as f64]
        }),
    }
}

/// In how many rows two tables of events differ.
fn differences(a: &anabranch_observation::Outcome, b: &anabranch_observation::Outcome) -> usize {
    let (a, b) = (a.events.as_ref().expect("recorded"), b.events.as_ref().expect("recorded"));
    let equal = |row: usize| a.columns.iter().zip(&b.columns).all(|((_, a), (_, b))| same(a, b, row));
    let rows = a.len().min(b.len());
    a.len().abs_diff(b.len()) + (0..rows).filter(|row| !equal(*row)).count()
}

fn same(a: &Column, b: &Column, row: usize) -> bool {
    match (a, b) {
        (Column::Integer(a), Column::Integer(b)) => a[row] == b[row],
        (Column::Float(a), Column::Float(b)) => a[row].to_bits() == b[row].to_bits(),
        (Column::Flag(a), Column::Flag(b)) => a[row] == b[row],
        (Column::Text { words: v, codes: a }, Column::Text { words: w, codes: b }) => {
            a[row].map(|code| &v[code as usize]) == b[row].map(|code| &w[code as usize])
        }
        _ => false,
    }
}
