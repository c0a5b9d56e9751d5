use super::*;
use crate::testing::{at_ms, ms};
use anabranch_events::{CloseReason, SendKind};
use anabranch_units::{Bandwidth, SubflowId};

fn opened(subflow: u16, path: u16) -> TransportEvent {
    TransportEvent::SubflowOpened { subflow: SubflowId(subflow), path: PathId(path), rtt: ms(50) }
}

fn sent(subflow: u16, kind: SendKind, bytes: u32) -> TransportEvent {
    TransportEvent::SegmentSent { subflow: SubflowId(subflow), kind, bytes, offset: 0 }
}

fn sample(subflow: u16, cwnd: f64, srtt: u64, acked: u64) -> TransportEvent {
    let subflow = SubflowId(subflow);
    TransportEvent::Sample { subflow, cwnd, ssthresh: f64::INFINITY, in_flight: 0, srtt: ms(srtt), acked }
}

fn reduced(subflow: u16, cause: LossCause) -> TransportEvent {
    TransportEvent::WindowReduced { subflow: SubflowId(subflow), cause, from: 10.0, to: 5.0 }
}

fn report(metrics: &TransportMetrics, end_ms: u64) -> TransportReport {
    metrics.finish(at_ms(end_ms), |path| PathLabel { name: format!("path{}", path.0), metered: path.0 == 1 })
}

#[test]
fn segments_are_counted_by_kind_and_subflow() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    metrics.observe_sender(at_ms(0), &opened(2, 1));
    use SendKind::{Duplicate, New, Reinjection, Retransmission, TailLossProbe};
    for kind in [New, New, Retransmission, TailLossProbe, Reinjection, Duplicate] {
        metrics.observe_sender(at_ms(1), &sent(0, kind, 100));
    }
    metrics.observe_sender(at_ms(1), &sent(2, New, 7));
    use LossCause::{FastRetransmit, Penalty, Timeout};
    for cause in [FastRetransmit, FastRetransmit, Timeout, Penalty] {
        metrics.observe_sender(at_ms(2), &reduced(2, cause));
    }
    for in_a_row in [1, 2] {
        metrics.observe_sender(
            at_ms(3),
            &TransportEvent::TimeoutFired { subflow: SubflowId(2), in_a_row, timeout: Duration::from_secs(1) },
        );
    }
    let report = report(&metrics, 1_000);
    let [a, b] = &report.subflows[..] else { panic!("two subflows") };
    assert_eq!(
        (a.path.as_str(), a.bytes, a.segments_sent, a.retransmissions, a.reinjections),
        ("path0", 600, 6, 2, Some(1))
    );
    assert_eq!((b.path.as_str(), b.bytes, b.loss_events, b.rto_count), ("path1", 7, Some(3), 2));
    // The reinjection and the duplicate; retransmissions and probes are of the subflow's own data.
    assert_eq!(report.copied_bytes, Some(200));
    assert_eq!((a.metered, b.metered, report.metered_bytes), (false, true, 7));
}

#[test]
fn retransmissions_are_split_by_the_scenarios_events() {
    // Events at 30 and 10 ms, given out of order; retransmissions at 5, 10, 20, 40 on two subflows.
    let mut metrics = TransportMetrics::new(at_ms(0), &[at_ms(30), at_ms(10)]);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    metrics.observe_sender(at_ms(0), &opened(1, 1));
    for (ms, subflow) in [(5, 0), (10, 1), (20, 1), (40, 0)] {
        metrics.observe_sender(at_ms(ms), &sent(subflow, SendKind::Retransmission, 1));
    }
    let report = report(&metrics, 100);
    let around = |list: &[AroundEvent]| list.iter().map(|e| (e.at_s, e.before, e.after)).collect::<Vec<_>>();
    assert_eq!(around(report.retransmissions_around_events.as_ref().unwrap()), [(0.01, 1, 3), (0.03, 3, 1)]);
    assert_eq!(
        around(report.subflows[1].retransmissions_around_events.as_ref().unwrap()),
        [(0.01, 0, 2), (0.03, 2, 0)]
    );
}

#[test]
fn waiting_is_weighted_by_bytes() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    for (bytes, waited) in [(9_000, 0), (600, 100), (400, 200)] {
        let (waited, across) = (ms(waited), ms(0));
        let delivered = TransportEvent::Delivered { subflow: None, offset: None, bytes, waited, across };
        metrics.observe_receiver(at_ms(1), &delivered);
    }
    for buffered in [500, 4_000, 100] {
        metrics.observe_receiver(at_ms(1), &TransportEvent::OutOfOrder { subflow: SubflowId(0), offset: 0, buffered });
    }
    let report = report(&metrics, 2_000);
    assert_eq!(report.goodput_bps, 40_000.0);
    let delay = report.reorder_delay_s.unwrap();
    assert!((delay.mean - 0.014).abs() < 1e-12);
    assert!((delay.p95 / 0.1 - 1.0).abs() < 0.008);
    assert_eq!((delay.max, report.reorder_bytes_max), (0.2, Some(4_000)));
}

#[test]
fn switches_are_counted_for_all_packets_and_for_new_data() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    for (any, new_data) in [(true, true), (true, false), (false, true), (true, false)] {
        let switch = TransportEvent::PathSwitched {
            from: SubflowId(0),
            to: SubflowId(1),
            any,
            new_data,
            offset: 0,
            rtt_from: ms(1),
            rtt_to: ms(1),
            rate_from: Bandwidth::ZERO,
            rate_to: Bandwidth::ZERO,
        };
        metrics.observe_sender(at_ms(1), &switch);
        metrics.observe_receiver(at_ms(1), &switch);
    }
    let report = report(&metrics, 10);
    assert_eq!((report.path_switches, report.path_switches_new_data), (Some(3), Some(2)));
}

#[test]
fn limits_last_until_they_cease_or_the_session_ends() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    let limited = |limited| TransportEvent::ReceiveWindowLimited { limited };
    let waiting = |waiting| TransportEvent::SchedulerWaiting { waiting };
    metrics.observe_sender(at_ms(100), &limited(true));
    metrics.observe_sender(at_ms(150), &limited(true));
    metrics.observe_sender(at_ms(300), &limited(false));
    metrics.observe_sender(at_ms(900), &waiting(true));
    let report = report(&metrics, 1_000);
    assert_eq!((report.receive_window_limited_s, report.scheduler_wait_s), (Some(0.2), Some(0.1)));
}

#[test]
fn windows_and_round_trips_are_means_over_time() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    assert_eq!(report(&metrics, 10).subflows[0].mean_cwnd_packets, None);
    metrics.observe_sender(at_ms(100), &sample(0, 10.0, 50, 1_000));
    assert_eq!(report(&metrics, 100).subflows[0].mean_cwnd_packets, Some(10.0));
    metrics.observe_sender(at_ms(200), &sample(0, 40.0, 80, 5_000));
    // 10 for 100 ms and 40 for 200 ms; closed at 400, so the rest does not count.
    let reason = CloseReason::PathDown;
    metrics
        .observe_sender(at_ms(400), &TransportEvent::SubflowClosed { subflow: SubflowId(0), path: PathId(0), reason });
    let subflow = &report(&metrics, 1_000).subflows[0];
    assert!((subflow.mean_cwnd_packets.unwrap() - 30.0).abs() < 1e-9);
    assert!((subflow.mean_srtt_s.unwrap() - 0.07).abs() < 1e-9);
    assert_eq!(subflow.goodput_bps, 40_000.0);
}

#[test]
fn field_names_are_the_contracts() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    let json = serde_json::to_value(report(&metrics, 1)).unwrap();
    let session = "path_switches path_switches_new_data goodput_bps reorder_delay_s reorder_bytes_max \
        receive_window_limited_s scheduler_wait_s subflows";
    let subflow = "path goodput_bps bytes segments_sent retransmissions reinjections rto_count loss_events \
        mean_cwnd_packets mean_srtt_s";
    assert!(session.split_whitespace().all(|name| json.get(name).is_some()));
    assert!(subflow.split_whitespace().all(|name| json["subflows"][0].get(name).is_some()));
    assert!(["mean", "p95", "max"].iter().all(|name| json["reorder_delay_s"].get(name).is_some()));
}

#[test]
fn the_total_window_is_weighted_by_time_within_the_window_and_without_forbidden_paths() {
    let window = Some((ms(200), ms(1_000)));
    let mut metrics = TransportMetrics::new(at_ms(0), &[]).within(window);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    metrics.observe_sender(at_ms(0), &opened(1, 1));
    assert_eq!(report(&metrics, 50).total_window, None);
    let both = |metrics: &mut TransportMetrics, at, first, second| {
        metrics.observe_sender(at_ms(at), &sample(0, first, 50, 0));
        metrics.observe_sender(at_ms(at), &sample(1, second, 50, 0));
    };
    both(&mut metrics, 100, 10.0, 20.0);
    both(&mut metrics, 400, 6.0, 4.0);
    let allowed = |allowed| TransportEvent::PathUse { subflow: SubflowId(1), allowed };
    metrics.observe_sender(at_ms(600), &allowed(false));
    both(&mut metrics, 700, 8.0, 4.0);
    metrics.observe_sender(at_ms(800), &allowed(true));
    // 30 from 200 to 400, 10 until 600, 6 until 700, 8 until 800, 12 until 1000, where the window ends.
    let total = report(&metrics, 5_000).total_window.unwrap();
    let mean = (30.0 * 0.2 + 10.0 * 0.2 + 6.0 * 0.1 + 8.0 * 0.1 + 12.0 * 0.2) / 0.8;
    let square = (900.0 * 0.2 + 100.0 * 0.2 + 36.0 * 0.1 + 64.0 * 0.1 + 144.0 * 0.2) / 0.8;
    assert!((total.mean_packets - mean).abs() < 1e-9);
    assert!((total.variation - f64::sqrt(square - mean * mean) / mean).abs() < 1e-9);
}

#[test]
fn the_path_policys_decisions_are_spans() {
    let mut metrics = TransportMetrics::new(at_ms(1_000), &[]);
    metrics.observe_sender(at_ms(1_000), &opened(0, 0));
    let allowed = |allowed| TransportEvent::PathUse { subflow: SubflowId(0), allowed };
    for (ms, now) in [(1_500, true), (2_000, false), (2_500, false), (3_000, true), (7_000, false)] {
        metrics.observe_sender(at_ms(ms), &allowed(now));
    }
    let subflow = &report(&metrics, 8_000).subflows[0];
    assert_eq!((subflow.times_disabled, subflow.times_enabled, subflow.disabled_s), (Some(2), Some(1), Some(2.0)));
    assert_eq!(subflow.disabled_spans_s, Some(vec![DisabledSpan(1.0, 2.0), DisabledSpan(6.0, 7.0)]));
}

#[test]
fn what_a_control_counts_is_reported_as_it_was_told_last() {
    let mut metrics = TransportMetrics::new(at_ms(0), &[]);
    metrics.observe_sender(at_ms(0), &opened(0, 0));
    for (name, count) in [("theta_triggers", 1), ("rtt_samples", 9), ("theta_triggers", 3)] {
        metrics.observe_sender(at_ms(5), &TransportEvent::ControlCount { subflow: SubflowId(0), name, count });
    }
    let counts: Vec<_> = report(&metrics, 10).subflows[0].control_counts.clone().unwrap().into_iter().collect();
    assert_eq!(counts, [("rtt_samples".into(), 9), ("theta_triggers".into(), 3)]);
}

#[test]
fn of_a_sender_that_is_not_ours_only_counts_and_samples_are_reported() {
    let observed = Observed { sender: false, receiver: false, player: true };
    let mut metrics = TransportMetrics::new(at_ms(0), &[at_ms(10)]).observing(observed).restarted(at_ms(0));
    metrics.observe_sender(at_ms(0), &opened(1, 0));
    metrics.observe_sender(at_ms(100), &sample(1, 10.0, 50, 1_000));
    let counts = SenderCounts { bytes: 1_400, segments: 3, retransmissions: 2, timeouts: 1 };
    metrics.count_sender(SubflowId(1), SenderCounts { bytes: 700, ..counts });
    metrics.count_sender(SubflowId(1), counts);
    let report = report(&metrics, 1_000);
    let subflow = &report.subflows[0];
    let found = (subflow.bytes, subflow.segments_sent, subflow.retransmissions, subflow.rto_count);
    assert_eq!(found, (1_400, 3, 2, 1));
    assert_eq!((subflow.mean_cwnd_packets, subflow.goodput_bps), (Some(10.0), 8_000.0));
    assert_eq!((subflow.reinjections, subflow.disabled_s, &subflow.control_counts), (None, None, &None));
    assert_eq!((report.path_switches, report.scheduler_wait_s, report.reorder_delay_s), (None, None, None));
    assert_eq!(report.copied_bytes, None);
}
