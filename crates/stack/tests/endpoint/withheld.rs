//! Segments that are withheld to find peers that acknowledge what they have not received: what they cost honest peers,
//! and how soon others are found.

use crate::common::{Meddler, Pair, Path, Seeded, config, secs};
use anabranch_events::{SendKind, TransportEvent};
use anabranch_segment::{DataSeq, Dss, Flags, SackBlocks};
use anabranch_stack::Connection;
use anabranch_stack::connection::{Choice, Commit, Protocol, ReceiveBuffer, WITHHELD_INTERVAL};
use anabranch_units::{Bytes, LinkDirection, PathId, SeqNumber};
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;

/// A server that withholds one in `interval` segments of `bytes` for a client.
fn download(paths: Vec<Path>, protocol: Protocol, interval: Option<NonZeroU32>, bytes: u64) -> Pair {
    let mut ours = config(protocol, paths.len());
    ours.withheld_interval = interval;
    let mut net = Pair::new(config(protocol, paths.len()), ours, paths, 7);
    net.paths.iter_mut().for_each(|path| path.down.queue = 128_000);
    net.to_send = bytes;
    net
}

fn is_done(net: &mut Pair) -> bool {
    net.received == net.to_send && net.client.peer_finished()
}

fn routes(two: bool) -> Vec<Path> {
    let second = two.then(|| Path::symmetric(10, 40));
    [Path::symmetric(20, 20)].into_iter().chain(second).collect()
}

/// Loses each segment with data with this probability when it first leaves. The same bytes are lost in every run, so
/// that runs can be compared pair by pair.
fn loses(probability: f64, seed: u64) -> Meddler {
    let mut first = HashMap::new();
    let mut seen = HashSet::new();
    Box::new(move |path, direction, segment| {
        if direction == LinkDirection::Up || segment.payload_len == 0 {
            return true;
        }
        let offset = segment.seq.0.wrapping_sub(first.entry(path).or_insert(segment.seq).0);
        let fate = u64::from(offset) | u64::from(path.0) << 32 | seed << 40;
        !seen.insert((path, offset)) || !Seeded(fate).chance(probability)
    })
}

/// Seconds of a download of 20 MB, and how many segments left late.
fn timed(two: bool, loss: f64, control: &str, seed: u64, interval: Option<NonZeroU32>) -> (f64, usize) {
    let mut net = download(routes(two), Protocol::Mptcp, interval, 20_000_000);
    net.server_config.transport.congestion_control = Choice::of(control);
    net.server_entropy = Some(Box::new(Seeded(seed)));
    net.meddler = Some(loses(loss, seed));
    net.trace = Some(Vec::new());
    assert!(net.run_until(secs(600), is_done), "{} bytes", net.received);
    (net.now.as_secs_f64(), late(&mut net))
}

#[test]
fn withheld_segments_cost_less_than_half_a_percent_of_the_goodput() {
    for (two, control) in [(false, "cubic"), (false, "bbr"), (true, "cubic"), (true, "bbr")] {
        for (loss, runs) in [(0.0, 4), (0.01, 40)] {
            let (mut without, mut with, mut withheld) = (0.0, 0.0, 0);
            for seed in 0..runs {
                let (plain, tested) =
                    (timed(two, loss, control, seed, None), timed(two, loss, control, seed, Some(WITHHELD_INTERVAL)));
                (without, with) = (without + plain.0, with + tested.0);
                withheld += tested.1.saturating_sub(plain.1);
            }
            let what = format!("{control}, two {two}, loss {loss}");
            eprintln!("{what}: {without} s without, {with} s with {withheld} withheld, {:+.5}", with / without - 1.0);
            assert!(withheld as u64 > 5 * runs, "{what}: {withheld}");
            assert!(with < 1.005 * without, "{what}: {without} s, {with} s");
        }
    }
}

/// Data that leaves after later data of the same subflow.
fn late(net: &mut Pair) -> usize {
    let mut next = vec![None; net.paths.len()];
    let trace = net.trace.take().unwrap_or_default();
    let data = trace.iter().filter(|(.., direction, s)| *direction == LinkDirection::Down && s.payload_len > 0);
    data.filter(|(_, path, _, segment)| {
        let end = segment.seq + segment.payload_len;
        let highest = next[path.index()].get_or_insert(end);
        let behind = (end.0.wrapping_sub(highest.0) as i32) < 0;
        *highest = if behind { *highest } else { end };
        behind
    })
    .count()
}

#[test]
fn nothing_reacts_to_a_withheld_segment() {
    for commit in [Commit::AtWindow, Commit::IntoBuffer] {
        for two in [false, true] {
            let mut ours = config(Protocol::Mptcp, 1 + usize::from(two));
            // Less than the queues hold.
            ours.transport.receive_buffer = ReceiveBuffer { initial: Bytes(200_000), max: Bytes(200_000) };
            ours.transport.opportunistic_retransmission = false;
            let mut net = download(routes(two), Protocol::Mptcp, NonZeroU32::new(50), 4_000_000);
            net.client = Connection::client(ours, Box::new(Seeded(1))).unwrap();
            net.server_config.transport.opportunistic_retransmission = false;
            net.server_config.transport.commit = commit;
            net.paths.iter_mut().for_each(|path| path.down.queue = u64::MAX);
            net.trace = Some(Vec::new());
            assert!(net.run_until(secs(60), is_done));
            let late = late(&mut net);
            assert!((10..90).contains(&late), "{late} of 2800");
            let events: Vec<_> = net.server().log().drain().map(|(_, event)| event).collect();
            let repeats = |event: &TransportEvent| match event {
                TransportEvent::SegmentSent { kind, .. } => !matches!(kind, SendKind::New | SendKind::Duplicate),
                TransportEvent::WindowReduced { .. } | TransportEvent::TimeoutFired { .. } => true,
                _ => false,
            };
            let reactions: Vec<_> = events.iter().filter(|event| repeats(event)).collect();
            assert!(reactions.is_empty(), "{commit:?}, two {two}: {reactions:?}");
        }
    }
}

#[test]
fn without_selective_acknowledgments_nothing_is_withheld() {
    let mut net = download(routes(false), Protocol::Tcp, NonZeroU32::new(3), 1_000_000);
    net.trace = Some(Vec::new());
    net.meddler = Some(Box::new(|_, direction, segment| {
        if let Some(syn) = segment.syn.as_mut().filter(|_| direction == LinkDirection::Up) {
            syn.sack_permitted = false;
        }
        true
    }));
    assert!(net.run_until(secs(60), is_done));
    assert_eq!(late(&mut net), 0);
}

/// A client that acknowledges, on subflows and at the data level, whatever the server has sent, received or not.
fn liar() -> Meddler {
    let mut sent: HashMap<PathId, SeqNumber> = HashMap::new();
    let mut data = 0;
    Box::new(move |path, direction, segment| match direction {
        LinkDirection::Down => {
            let end = segment.seq + segment.sequence_len();
            let highest = sent.entry(path).or_insert(end);
            *highest = if (end.0.wrapping_sub(highest.0) as i32) > 0 { end } else { *highest };
            if let Some(mapping) = segment.dss.and_then(|dss| dss.mapping) {
                data = mapping.dsn.value + u64::from(mapping.len);
            }
            true
        }
        LinkDirection::Up if segment.flags == Flags::ACK => {
            segment.sack = SackBlocks::default();
            segment.ack = sent[&path];
            segment.dss = segment.dss.map(|dss| {
                let lie = DataSeq { value: data & 0xffff_ffff, wide: false };
                Dss { data_ack: dss.data_ack.map(|_| lie), ..dss }
            });
            true
        }
        LinkDirection::Up => true,
    })
}

#[test]
fn a_peer_that_acknowledges_what_it_has_not_received_is_reset_in_time() {
    for protocol in [Protocol::Tcp, Protocol::Mptcp] {
        for seed in 0..20 {
            let mut net = download(routes(false), protocol, Some(WITHHELD_INTERVAL), 100_000_000);
            net.server_entropy = Some(Box::new(Seeded(seed)));
            net.meddler = Some(liar());
            net.trace = Some(Vec::new());
            let reset = |net: &mut Pair| net.server.as_ref().is_some_and(|end| end.has_false_acknowledgments());
            assert!(net.run_until(secs(60), reset), "{protocol:?} {seed}: never found");
            assert_eq!(net.server().take_false_acknowledgments().len(), 1);
            net.flush();
            let trace = net.trace.take().unwrap();
            let down = || trace.iter().filter(|(.., direction, _)| *direction == LinkDirection::Down);
            assert!(down().any(|(.., segment)| segment.flags.contains(Flags::RST)), "{protocol:?} {seed}");
            let data = down().filter(|(.., segment)| segment.payload_len > 0).count();
            assert!(data < 2 * WITHHELD_INTERVAL.get() as usize + 1_000, "{protocol:?} {seed}: {data} segments");
        }
    }
}
