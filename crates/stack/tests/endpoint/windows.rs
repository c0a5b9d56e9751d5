//! A peer of plain TCP that shrinks its window (RFC 9293 section 3.8.6). Over Multipath TCP the window of the
//! connection never shrinks (RFC 8684 section 3.3.5), but a subflow's own may.

use crate::common::config;
use crate::common::talk::*;
use anabranch_stack::Config;
use anabranch_stack::connection::{Choice, Commit, Failover, Protocol};

const NOTHING: [&str; 0] = [];
/// Payload of a full segment without timestamps.
const FULL: u64 = 1_460;

/// A server's end of a plain TCP whose window is not scaled, at time 20, with a megabyte to send. Its first ten
/// segments have left.
fn sending(commit: Commit) -> Talk {
    let mut config = config(Protocol::Tcp, 1);
    config.transport.commit = commit;
    let mut talk = Talk::server(config, &[OUR_KEY, 0, 1_000], &[], |syn| {
        syn.timestamps = None;
        syn.syn.as_mut().unwrap().window_scale = None;
    });
    talk.emitted();
    talk.wait_until(20);
    talk.deliver(0, peer(1, 1));
    talk.end.write(1_000_000);
    assert_eq!(payload(&mut talk), 10 * FULL);
    talk.wait_until(40);
    talk
}

/// Payload of what the endpoint sends now.
fn payload(talk: &mut Talk) -> u64 {
    talk.emitted_segments().iter().map(|(_, segment)| u64::from(segment.payload_len)).sum()
}

/// The peer acknowledges `segments` and has this window; returns the payload that follows.
fn acknowledge(talk: &mut Talk, segments: u64, window: u16) -> u64 {
    talk.window = window;
    talk.deliver(0, peer(1, 1 + segments * FULL));
    payload(talk)
}

/// A server's end of a connection at time 20, whose peer never had a larger window than this, in whole units of 128.
fn served_with_window(config: Config, window: u16) -> Talk {
    let first = [capable(None, None, None)];
    let mut talk = Talk::server(config, &[OUR_KEY, 0, 1_000], &first, |syn| syn.window = 5_000);
    talk.emitted();
    talk.wait_until(20);
    talk.window = window / 128;
    talk.deliver(0, peer(1, 1).option(capable(Some(PEER_KEY), Some(OUR_KEY), None)));
    talk.deliver(0, peer(1, 1).data_ack(0));
    talk
}

/// Linux adds the window of a subflow to the data acknowledgment, and keeps an older one where the subflow acknowledges
/// nothing new.
#[test]
fn with_subflow_windows_data_leaves_beyond_what_was_advertised() {
    for (subflow_windows, expected) in [(false, 0), (true, 1_428)] {
        let mut config = two_paths();
        config.transport.subflow_windows = subflow_windows;
        let mut talk = served_with_window(config, 12_800);
        talk.end.write(1_000_000);
        assert_eq!(payload(&mut talk), 8 * 1_428);
        // Data of another path was acknowledged. What this one advertises ends at 12 820, but 1428 + 12 800 is more.
        talk.window = 11_392 / 128;
        talk.deliver(0, peer(1, 1).data_ack(1_428));
        assert_eq!(payload(&mut talk), expected);
    }
}

/// At time 20, ten segments of what the application wrote have left, and more is queued.
fn queueing(subflow_windows: bool) -> Talk {
    let mut config = two_paths();
    config.transport.commit = Commit::IntoBuffer;
    config.transport.subflow_windows = subflow_windows;
    let mut talk = Talk::served(config);
    talk.window = 512;
    talk.deliver(0, peer(1, 1).data_ack(0));
    talk.end.write(1_000_000);
    assert_eq!((talk.now, payload(&mut talk)), (20, 10 * 1_428), "the rest of the window is queued");
    talk
}

/// Five of the ten segments are acknowledged at time 40; the others fill a window of 6,400 bytes.
fn shrink(talk: &mut Talk) {
    talk.wait_until(40);
    talk.window = 6_400 / 128;
    talk.deliver(0, peer(1, 1 + 5 * 1_428).data_ack(0).echo(20));
}

/// A subflow's own window limits what is in flight on it (Linux's `tcp_snd_wnd_test`), although the connection's never
/// shrinks.
#[test]
fn with_subflow_windows_a_subflow_keeps_to_its_own() {
    for (subflow_windows, expected) in [(false, 10 * 1_428), (true, 0)] {
        let mut talk = queueing(subflow_windows);
        shrink(&mut talk);
        assert_eq!(payload(&mut talk), expected);
        // It holds nothing back once nothing is in flight.
        talk.wait_until(60);
        talk.window = 0;
        talk.deliver(0, peer(1, 1 + 10 * 1_428 + expected).data_ack(0).echo(40));
        assert!(payload(&mut talk) > 0);
    }
}

/// A send buffer has room for three windows of `bbr` in upstream Linux (`sndbuf_expand`), and for two otherwise.
#[test]
fn the_send_buffer_has_room_for_the_windows_that_linux_gives_the_control() {
    let buffered = |control, failover| {
        let mut config = two_paths();
        config.transport.commit = Commit::IntoBuffer;
        config.transport.failover = failover;
        config.transport.congestion_control = Choice::of(control);
        let mut talk = Talk::served(config);
        talk.end.write(1_000_000);
        talk.emitted();
        1_000_000 - talk.end.unbuffered()
    };
    let two_windows = buffered("newreno", Failover::Upstream);
    assert_eq!(buffered("bbr", Failover::Legacy), two_windows);
    assert!(buffered("bbr", Failover::Upstream) > two_windows);
}

/// What an acknowledgment allows joins what is queued before any of that leaves, so that a window ends with a short
/// segment only if no more may be sent.
#[test]
fn data_is_given_to_a_subflow_before_what_is_queued_leaves() {
    let mut config = two_paths();
    config.transport.commit = Commit::IntoBuffer;
    let mut talk = served_with_window(config, 17_920);
    talk.end.write(10 * 1_428);
    assert_eq!(payload(&mut talk), 10 * 1_428);
    // 3640 bytes of the next write have room in the peer's window, and none in that of congestion.
    talk.end.write(10_000);
    assert_eq!(payload(&mut talk), 0);
    talk.wait_until(40);
    talk.deliver(0, peer(1, 1 + 2 * 1_428).data_ack(2 * 1_428).echo(20));
    let lens: Vec<u32> = talk.emitted_segments().iter().map(|(_, segment)| segment.payload_len).collect();
    assert_eq!(lens, [1_428; 4]);
}

/// RFC 8985 section 7.3: the probe that is due after two round trips and 6 ms.
#[test]
fn a_tail_loss_probe_is_the_next_packet_of_the_queue_if_the_peer_has_room_for_it() {
    assert_eq!(queueing(true).emitted_at(66), ["0 ACK 14281+1428 ack 1 14280@14281+1428 data-ack 0"]);
    let mut talk = queueing(true);
    shrink(&mut talk);
    assert_eq!(talk.emitted(), NOTHING);
    assert_eq!(talk.emitted_at(86), ["0 ACK 12853+1428 ack 1 12852@12853+1428 data-ack 0"], "the last again");
}

#[test]
fn no_more_is_sent_than_a_shrunk_window_allows() {
    // Of 3000 bytes a remainder of 80 waits until it is a segment.
    for (window, expected) in [(0, 0), (100, 0), (3_000, 2 * FULL)] {
        assert_eq!(acknowledge(&mut sending(Commit::AtWindow), 10, window), expected, "window {window}");
    }
}

#[test]
fn nor_is_what_was_queued_before() {
    for (window, expected) in [(0, 0), (100, 100), (3_000, 3_000)] {
        let mut talk = sending(Commit::IntoBuffer);
        assert_eq!(acknowledge(&mut talk, 10, window), expected, "window {window}");
    }
    let mut talk = sending(Commit::IntoBuffer);
    acknowledge(&mut talk, 10, 0);
    assert_eq!(talk.emitted_at(40 + 440), ["0 ACK 14600 ack 1"], "a probe with an old number");
    assert_eq!(acknowledge(&mut talk, 10, 5_000), 5_000, "its answer opens the window");
}

#[test]
fn a_shrunk_window_that_opens_is_used_at_once() {
    let mut talk = sending(Commit::AtWindow);
    assert_eq!(acknowledge(&mut talk, 10, 0), 0);
    assert_eq!(acknowledge(&mut talk, 10, 10 * FULL as u16), 10 * FULL);
}

#[test]
fn a_window_of_less_than_a_segment_is_used_after_a_timeout() {
    let mut talk = sending(Commit::AtWindow);
    assert_eq!(acknowledge(&mut talk, 10, 100), 0);
    // The round trip was 20 ms, so the timeout is 220 ms; the connection waits twice as long.
    assert_eq!(talk.emitted_at(40 + 440), ["0 ACK 14601+100 ack 1"]);
    talk.deliver(0, peer(1, 1 + 14_700));
    assert_eq!(talk.emitted(), NOTHING, "the next 100 bytes wait again");
    assert!(talk.end.poll_timeout().is_some());
}

#[test]
fn what_lies_beyond_a_shrunk_window_is_not_sent_again() {
    let mut talk = sending(Commit::AtWindow);
    // One segment arrived; the window allows two of the nine others.
    assert_eq!(acknowledge(&mut talk, 1, 2 * FULL as u16), 0);
    // The tail-loss probe after two round trips would repeat the last segment, so nothing leaves until the timeout.
    assert_eq!(talk.emitted_at(40 + 46 + 220), ["0 ACK 1461+1460 ack 1"]);
    talk.wait_until(322);
    assert_eq!(acknowledge(&mut talk, 2, 1_000), FULL, "that begins within the window");
}

#[test]
fn a_connection_lives_while_its_peer_answers_with_a_closed_window() {
    let mut talk = sending(Commit::AtWindow);
    assert_eq!(acknowledge(&mut talk, 1, 0), 0);
    let (mut probes, mut others) = (0, 0);
    while talk.now < 3_600_000 {
        let due = talk.end.poll_timeout().expect("the window is probed");
        talk.now = talk.now.max(due.as_nanos().div_ceil(1_000_000));
        talk.end.handle_timeout(at(talk.now));
        for segment in talk.emitted() {
            if segment == "0 ACK 1461+1460 ack 1" { probes += 1 } else { others += 1 }
        }
        talk.wait_until(talk.now + 20);
        assert_eq!(acknowledge(&mut talk, 1, 0), 0);
    }
    assert!(!talk.end.is_closed(), "after an hour");
    assert!(probes > 30 && others == 0, "{probes} probes with the first segment, {others} other segments");
    assert_eq!(acknowledge(&mut talk, 10, 3_000), 2 * FULL);
}

#[test]
fn a_peer_that_is_silent_behind_a_closed_window_is_given_up() {
    let mut talk = sending(Commit::AtWindow);
    assert_eq!(acknowledge(&mut talk, 1, 0), 0);
    while let Some(due) = talk.end.poll_timeout().filter(|due| *due < at(3_600_000)) {
        talk.now = talk.now.max(due.as_nanos().div_ceil(1_000_000));
        talk.end.handle_timeout(due.max(at(talk.now)));
        talk.emitted();
    }
    assert!(talk.end.is_closed());
}

#[test]
fn an_older_segment_does_not_move_the_window() {
    let mut talk = sending(Commit::AtWindow);
    talk.window = 0;
    talk.deliver(0, peer(101, 1 + 10 * FULL).payload(100));
    talk.emitted();
    // It was sent before the peer closed its window, and arrives later.
    talk.window = 60_000;
    talk.deliver(0, peer(1, 1 + 10 * FULL).payload(100));
    assert_eq!(payload(&mut talk), 0);
}
