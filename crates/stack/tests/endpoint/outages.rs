//! An outage of the faster of two paths, which only missing acknowledgments show: it is left soon, and used again soon.

use crate::common::talk::*;
use crate::common::{Pair, Path, config};
use anabranch_events::{SendKind, TransportEvent};
use anabranch_stack::connection::{Choice, Protocol};
use anabranch_units::{Duration, Instant, SubflowId};

/// The application writes 5 Mb/s in pieces.
const PIECE: u64 = 31_250;
const PIECE_TIME: Duration = Duration::from_millis(50);
/// A path that is back has new data within this time.
const RETURN: Duration = Duration::from_secs(2);

struct Stream {
    net: Pair,
    /// When new data left on the faster path.
    sent: Vec<Instant>,
}

impl Stream {
    /// 20 Mb/s with a round trip of 20 ms and some loss, and 8 Mb/s with 60 ms.
    fn new(scheduler: &str, control: &str, seed: u64) -> Self {
        let mut ours = config(Protocol::Mptcp, 2);
        ours.transport.scheduler = Choice::of(scheduler);
        ours.transport.congestion_control = Choice::of(control);
        ours.transport.opportunistic_retransmission = false;
        ours.transport.penalisation = false;
        let mut paths = vec![Path::symmetric(20, 10), Path::symmetric(8, 30)];
        paths[0].down.loss = 0.005;
        paths[0].down.queue = 50_000;
        paths[1].down.queue = 60_000;
        let mut net = Pair::new(ours.clone(), ours, paths, seed);
        net.finish = false;
        Stream { net, sent: Vec::new() }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.net.now + time;
        while self.net.now < end {
            if let Some(server) = &mut self.net.server {
                server.write(PIECE);
            }
            self.net.run_until(self.net.now + PIECE_TIME, |_| false);
            let Some(server) = &mut self.net.server else { continue };
            let new = server.log().drain().filter_map(|(at, event)| match event {
                TransportEvent::SegmentSent { subflow: SubflowId(0), kind: SendKind::New, .. } => Some(at),
                _ => None,
            });
            self.sent.extend(new);
        }
    }
}

#[test]
fn a_path_is_left_when_it_falls_silent_and_used_again_when_it_is_back() {
    for (scheduler, control) in [("earliest", "cubic"), ("earliest", "cbbr"), ("earliest", "olia"), ("joined", "cbbr")]
    {
        for seed in 0..40 {
            let case = format!("{scheduler} with {control}, seed {seed}");
            let mut stream = Stream::new(scheduler, control, seed);
            stream.run_for(Duration::from_millis(5_000 + 50 * seed));
            let view = stream.net.server().views()[0];
            let bound = Duration::from_millis(200).max(view.srtt * 2 + view.rttvar * 4);
            let cut = stream.net.now;
            stream.net.paths[0].cut();
            // Retransmission timeouts come after 0.2, 0.7, 1.6, 3.4, 7.1 and 14.5 s, or a little later.
            stream.run_for(Duration::from_secs(8));
            let left = stream.sent.iter().filter(|at| **at >= cut).max().map_or(Duration::ZERO, |last| last.since(cut));
            assert!(left <= bound, "{case}: new data until {left} after the cut, with {view:?}");
            let back = stream.net.now;
            stream.net.paths[0].heal();
            stream.run_for(Duration::from_secs(5));
            let first = stream.sent.iter().find(|at| **at >= back).map(|first| first.since(back));
            assert!(first.is_some_and(|first| first <= RETURN), "{case}: new data {first:?} after the path was back");
        }
    }
}

#[test]
fn a_subflow_that_was_given_up_is_probed_and_its_answer_starts_the_repair() {
    let mut config = two_paths();
    config.transport.scheduler = Choice::of("earliest");
    let mut talk = Talk::served(config);
    talk.join(1, 2);
    talk.end.write(2_856);
    let sent = talk.emitted();
    assert_eq!(sent.len(), 2, "{sent:?}");
    let given_up = sent[0].as_bytes()[0];
    // Nothing comes back. What is lost is sent on the other path, and a second after the silence the first one is
    // probed.
    let mut probes = Vec::new();
    let until = talk.now + 3_000;
    while let Some(due) = talk.end.poll_timeout().filter(|due| *due < at(until)) {
        talk.now = talk.now.max(due.as_nanos().div_ceil(1_000_000));
        talk.end.handle_timeout(at(talk.now));
        let probe = |segment: &String| segment.as_bytes()[0] == given_up && segment[1..].starts_with(" ACK 0 ack");
        probes.extend(talk.emitted().iter().filter(|segment| probe(segment)).map(|_| talk.now));
    }
    assert!(probes.len() >= 2 && probes[1] - probes[0] == 1_000, "{probes:?}");
    talk.wait_until(until);
    talk.deliver(usize::from(given_up - b'0'), peer(1, 1).data_ack(0));
    talk.end.handle_timeout(at(talk.now));
    let repair = talk.emitted();
    assert!(repair.iter().any(|segment| segment.as_bytes()[0] == given_up && segment.contains("ACK 1+")), "{repair:?}");
}
