//! Sequence numbers that wrap during a transfer: data sequence numbers at 2^32 and 2^64, and those of subflows at 2^32,
//! in both directions, with losses and packets out of order. The harness checks every byte's place.

#[path = "../../tests/common/mod.rs"]
pub(super) mod common;

use super::keys::FIRST_NUMBER;
use super::{Commit, Failover, Protocol};
use anabranch_segment::{DataSeq, Segment};
use anabranch_units::{Duration, Instant, LinkDirection};
use common::talk::Scripted;
use common::{Pair, Path, config, secs};

/// Bytes in either direction.
const BYTES: u64 = 800_000;

/// A transfer in both directions whose data numbers begin at `first`, and whose subflow numbers begin just before 2^32.
fn transfer(first: u64, wide: bool, seed: u64, adapt: impl Fn(&mut Pair)) -> Pair {
    FIRST_NUMBER.set(Some(first));
    let mut ours = config(Protocol::Mptcp, 2);
    ours.transport.wide_data_seq = wide;
    (ours.transport.commit, ours.transport.failover) = match seed % 3 {
        0 => (Commit::AtWindow, Failover::Legacy),
        1 => (Commit::IntoBuffer, Failover::Legacy),
        _ => (Commit::IntoBuffer, Failover::Upstream),
    };
    ours.transport.subflow_windows = ours.transport.failover == Failover::Upstream;
    let mut net = Pair::new(ours.clone(), ours, vec![Path::symmetric(5, 10), Path::symmetric(3, 25)], seed);
    // Key, seed and first number; then for each join nonce, seed and number.
    let near = |before: u64| (1u64 << 32) - before;
    net.server_entropy = Some(Scripted::new(&[2, 0, near(40_000), 5, 0, near(9_000)]));
    net.to_send = BYTES;
    net.ask(BYTES, true);
    net.trace = Some(Vec::new());
    adapt(&mut net);
    let ended = net.run_until(secs(120), |net| {
        let there = net.received == BYTES && net.requested == BYTES;
        there && net.client.is_closed() && net.server.as_ref().is_some_and(super::Connection::is_closed)
    });
    FIRST_NUMBER.set(None);
    assert!(net.client.is_multipath(), "a transfer over plain TCP tests nothing");
    assert!(ended, "{} and {} bytes: {:?} {:?}", net.received, net.requested, net.client, net.server);
    net
}

/// After the handshake: data that overtakes it would mean plain TCP (RFC 8684 section 3.1).
fn disturbed(net: &mut Pair) {
    net.run_until(Instant::ZERO + Duration::from_millis(100), |_| false);
    for pipe in net.paths.iter_mut().flat_map(|path| [&mut path.up, &mut path.down]) {
        (pipe.loss, pipe.duplication, pipe.shuffle) = (0.02, 0.01, Duration::from_millis(15));
    }
}

/// How many numbers in the trace are on either side of the wrap, in one direction.
fn sides(net: &Pair, direction: LinkDirection, number: impl Fn(&Segment) -> Option<DataSeq>) -> [usize; 2] {
    let mut sides = [0; 2];
    let trace = net.trace.as_ref().expect("kept");
    for number in trace.iter().filter(|(.., to, _)| *to == direction).filter_map(|(.., segment)| number(segment)) {
        let top = if number.wide { 63 } else { 31 };
        sides[usize::from(number.value >> top == 0)] += 1;
    }
    sides
}

fn mapped(segment: &Segment) -> Option<DataSeq> {
    segment.dss?.mapping.map(|mapping| mapping.dsn)
}

fn acknowledged(segment: &Segment) -> Option<DataSeq> {
    segment.dss?.data_ack
}

/// Numbers on either side of the wrap: more than losses take away by chance.
const ENOUGH: usize = 10;

#[test]
fn data_numbers_wrap_at_both_widths() {
    // 2^32 with 32-bit numbers; the same in the lower half of 64-bit ones, where nothing may happen; and 2^64 with
    // both.
    let places = [(7 << 32) - 150_000, 0_u64.wrapping_sub(150_000)];
    for (seed, (first, wide)) in places.iter().flat_map(|first| [(*first, false), (*first, true)]).enumerate() {
        for seed in [3 * seed as u64, 3 * seed as u64 + 1, 3 * seed as u64 + 2] {
            let net = transfer(first, wide, seed, disturbed);
            if wide && first < 1 << 63 {
                continue;
            }
            for direction in LinkDirection::BOTH {
                let [before, behind] = sides(&net, direction, mapped);
                assert!(
                    before > ENOUGH && behind > ENOUGH,
                    "mappings: {before} and {behind}, from {first:x}, wide: {wide}"
                );
                let [before, behind] = sides(&net, direction, acknowledged);
                assert!(before > ENOUGH && behind > ENOUGH, "acknowledgments: {before} and {behind}");
            }
        }
    }
}

#[test]
fn the_wrap_may_fall_anywhere_around_the_end_of_data() {
    // The last byte, DATA_FIN, or the acknowledgment of it has number zero.
    for wide in [false, true] {
        for behind in 0..4 {
            transfer(0_u64.wrapping_sub(BYTES + 2).wrapping_add(behind), wide, behind, disturbed);
        }
    }
}

#[test]
fn the_wrap_may_fall_into_an_outage() {
    for (seed, wide) in [(0, false), (1, true), (2, false)] {
        FIRST_NUMBER.set(Some(0_u64.wrapping_sub(100_000)));
        let net = transfer(0_u64.wrapping_sub(100_000), wide, seed, |net| {
            disturbed(net);
            net.run_until(Instant::ZERO + Duration::from_millis(200), |_| false);
            net.paths[0].cut();
            net.run_until(secs(3), |_| false);
            net.paths[0].heal();
        });
        assert_eq!((net.received, net.requested), (BYTES, BYTES));
    }
}
