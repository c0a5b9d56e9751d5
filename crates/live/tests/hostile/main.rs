//! Hostile input: nothing panics, no other client is affected, memory stays bounded.

#[path = "../common/answer.rs"]
mod answer;
mod heap;
mod plain;
mod rogue;
mod slow;
mod world;
mod wrap;

use anabranch_live::{Limits, Opened};
use anabranch_segment::{
    DataSeq, Dss, Flags, Mapping, MptcpOption, MptcpOptions, ResetReason, SackBlock, Segment, SynOptions,
};
use anabranch_units::{Duration, PathId, SeqNumber};
use answer::Answer;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rogue::{PATH, Rogue};
use std::net::{IpAddr, Ipv4Addr};
use world::{PATHS, PORT, SERVER, World, distrustful_world, honest_address, segment, world};

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

const LEN: u64 = 3_000_000;
const EVIL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 66, 0, 1));
/// Bytes of a half-open connection at most, endpoint and tables together.
const HALF_OPEN_COST: i64 = 8 << 10;

fn rng(name: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(name)
}

/// Duration of an honest client's download without an attack.
fn undisturbed() -> Duration {
    let mut world = world(Limits::default(), LEN);
    world.add_honest();
    world.run(LEN, |_| {})
}

/// An honest client downloads during the attack, and it takes no longer than without. Then it closes in order.
fn disturb<F: FnMut(Opened) -> Answer>(world: &mut World<F>, attack: impl FnMut(&mut World<F>)) {
    world.add_honest();
    let took = world.run(LEN, attack);
    // Keys are random, and with them the last digits of times; a timeout of 200 ms would be noticed.
    assert!(took <= undisturbed() + Duration::from_millis(50), "{took} instead of {}", undisturbed());
    assert_eq!(world.honest[0].connection.views().len(), usize::from(PATHS), "both subflows have lived through it");
}

fn any_address(rng: &mut ChaCha8Rng) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0x0b00_0000 | (rng.next_u32() & 0x00ff_ffff)))
}

#[test]
fn a_server_that_cannot_send_more_serves_in_turn() {
    let mut world = world(Limits::default(), 1 << 30);
    world.packets_per_step = 10;
    world.add_honest();
    // The first client's windows are large by then.
    (0..500).for_each(|_| world.step());
    (0..4).for_each(|_| world.add_honest());
    (0..1000).for_each(|_| world.step());
    let before: Vec<u64> = world.honest.iter().map(|honest| honest.received).collect();
    (0..1000).for_each(|_| world.step());
    let got: Vec<u64> = world.honest.iter().zip(before).map(|(honest, before)| honest.received - before).collect();
    let (least, most) = (*got.iter().min().unwrap(), *got.iter().max().unwrap());
    // A turn is 16 KiB; at both ends of the second, one may be under way on each path.
    assert!(most - least <= 4 * (16 << 10), "{got:?}");
    assert!(most > 2_500_000, "{got:?}");
}

/// A client that acknowledges data as soon as the server has sent what follows, whether it has arrived or not, hides
/// all losses.
#[test]
fn a_client_that_acknowledges_what_was_not_sent_is_reset_and_honest_clients_are_not() {
    const LEN: u64 = 20_000_000;
    let mut world = distrustful_world(LEN);
    let rogue = Rogue::connect(&mut world, EVIL, 9);
    rogue.ask(&mut world);
    let (mut segments, mut bytes, mut reset) = (0, 0, false);
    while !reset {
        world.step();
        for segment in world.emitted(EVIL, 9) {
            reset |= segment.flags.contains(Flags::RST);
            segments += usize::from(segment.payload_len > 0);
            bytes = bytes.max(u64::from((segment.seq + segment.payload_len).0.wrapping_sub(rogue.ack.0)));
        }
        let lie = Segment { ack: rogue.ack + bytes as u32, dss: Some(rogue.data_ack(bytes)), ..rogue.segment(10) };
        rogue.say(&mut world, &lie);
        assert!(bytes < LEN, "everything was sent");
    }
    // One of the first 1999 is withheld. A window follows it before the lie arrives, which in slow start is as much
    // again.
    assert!(segments < 4_000, "{segments} segments");
    let lies =
        |world: &World<_>| world.server.path_counters().iter().map(|path| path.false_acknowledgments).sum::<u64>();
    assert_eq!(lies(&world), 1);
    world.add_honest();
    world.run(LEN, |_| {});
    assert_eq!((lies(&world), world.honest[0].connection.views().len()), (1, usize::from(PATHS)));
}

#[test]
fn a_hundred_thousand_syns() {
    let mut world = world(Limits::default(), LEN);
    let mut rng = rng(1);
    let mut sent = 0;
    let before = heap::held();
    let mut most = 0;
    disturb(&mut world, |world| {
        // Two honest clients come in the middle of the flood: their round trip of 20 ms is shorter than what it takes
        // to displace them.
        if sent == 20_000 || sent == 60_000 {
            world.add_honest();
        }
        for _ in 0..100.min(100_000 - sent) {
            let mut syn = rogue::syn(rng.next_u32() as u16);
            syn.seq = SeqNumber(rng.next_u32());
            world.forge(PathId((rng.next_u32() % u32::from(PATHS)) as u16), any_address(&mut rng), &syn);
            sent += 1;
        }
        world.to_attackers = Vec::new();
        most = most.max(heap::held() - before);
    });
    while sent < 100_000 {
        world.step();
        for _ in 0..100 {
            world.forge(PATH, any_address(&mut rng), &rogue::syn(rng.next_u32() as u16));
            sent += 1;
        }
        world.to_attackers = Vec::new();
        most = most.max(heap::held() - before);
    }
    let counters = world.server.counters();
    assert_eq!(world.server.half_open(), Limits::default().half_open);
    assert!(counters.accepted > 95_000 && counters.displaced > 90_000, "{counters:?}");
    let bound = Limits::default().half_open as i64 * HALF_OPEN_COST + (8 << 20);
    eprintln!("{sent} SYNs: {most} bytes at most, bound {bound}");
    assert!(most < bound, "{most} bytes");
    // After the flood its connections are removed by timeouts.
    for _ in 0..400_000 {
        world.step();
    }
    assert_eq!((world.server.half_open(), world.server.connections().count()), (0, 0));
}

#[test]
fn random_bytes() {
    let mut world = world(Limits::default(), LEN);
    let mut rng = rng(2);
    disturb(&mut world, |world| {
        let mut packet = [0; 200];
        for _ in 0..50 {
            rng.fill_bytes(&mut packet);
            let len = rng.next_u32() as usize % packet.len();
            if rng.next_u32().is_multiple_of(2) {
                packet[0] = 0x45;
            }
            world.forge_bytes(PATH, &packet[..len]);
        }
    });
    assert!(world.server.counters().undecodable > 1000);
    assert_eq!(world.server.counters().accepted, 1);
}

/// A segment of arbitrary content, of whose numbers half are near the significant ones.
fn arbitrary(rng: &mut ChaCha8Rng, rogue: &Rogue) -> Segment {
    let near = |rng: &mut ChaCha8Rng| match rng.next_u32() % 4 {
        0 => rng.next_u32(),
        1 => 0,
        _ => rng.next_u32() % 70_000,
    };
    let mut segment = rogue.data(near(rng), u64::from(near(rng)), (rng.next_u32() % 1400) as u16);
    segment.flags = if rng.next_u32().is_multiple_of(8) { Flags(rng.next_u32() as u8) } else { Flags::ACK };
    segment.flags = Flags(segment.flags.0 & !Flags::RST.0);
    segment.seq = segment.seq + rng.next_u32() % 3;
    segment.ack = segment.ack + near(rng);
    segment.window = rng.next_u32() as u16;
    if rng.next_u32().is_multiple_of(4) {
        segment.sack.push(SackBlock { start: segment.ack + near(rng), end: segment.ack + near(rng) });
    }
    if let Some(Dss { mapping: Some(mapping), data_ack, data_fin }) = &mut segment.dss {
        match rng.next_u32() % 8 {
            0 => mapping.len = rng.next_u32() as u16,
            1 => mapping.dsn = DataSeq { value: rng.next_u64(), wide: true },
            2 => mapping.dsn = DataSeq { value: u64::from(rng.next_u32()), wide: false },
            3 => mapping.subflow_offset = rng.next_u32(),
            4 => *data_fin = true,
            5 => *data_ack = Some(DataSeq { value: rng.next_u64(), wide: true }),
            6 => *data_ack = rogue.data_ack(u64::from(near(rng))).data_ack,
            _ => {}
        }
    }
    match rng.next_u32() % 16 {
        0 => segment.dss = None,
        1 => segment.mptcp.push(MptcpOption::Priority { backup: true }),
        2 => {
            segment.dss = None;
            segment.mptcp.push(MptcpOption::Fail { dsn: rng.next_u64() });
        }
        3 => {
            segment.dss = None;
            segment.mptcp.push(MptcpOption::FastClose { receiver_key: rng.next_u64() });
        }
        4 => {
            segment.dss = None;
            let address = any_address(rng);
            segment.mptcp.push(MptcpOption::AddAddress { echo: false, address_id: 9, address, port: None, hmac: 1 });
        }
        5 => segment.syn = Some(SynOptions { mss: rng.next_u32() as u16, window_scale: None, sack_permitted: false }),
        _ => {}
    }
    // Options of a SYN are written on a SYN only.
    if segment.syn.is_some() {
        segment.flags = Flags::SYN;
        segment.dss = None;
    }
    while segment.options_len() > 40 {
        segment.mptcp = MptcpOptions::NONE;
        segment.sack = Default::default();
        segment.dss = segment.dss.map(|dss| Dss { data_ack: None, ..dss });
    }
    segment
}

#[test]
fn arbitrary_segments_on_valid_connections() {
    let mut world = world(Limits::default(), LEN);
    let mut rng = rng(3);
    let before = heap::held();
    let (mut port, mut most) = (1, 0);
    let mut rogue = Rogue::connect(&mut world, EVIL, port);
    disturb(&mut world, |world| {
        for _ in 0..100 {
            let segment = arbitrary(&mut rng, &rogue);
            rogue.say(world, &segment);
        }
        // Every other millisecond a new one, since the old one may have been reset.
        if rng.next_u32().is_multiple_of(2) {
            port += 1;
            rogue = Rogue::connect(world, EVIL, port);
            rogue.ask(world);
        }
        world.to_attackers = Vec::new();
        most = most.max(heap::held() - before);
    });
    eprintln!("{port} connections, {most} bytes, {:?}", world.server.counters());
    assert!(port > 20);
    assert!(most < i64::from(port) * (128 << 10) + (8 << 20), "{most} bytes");
}

#[test]
fn joins_with_a_wrong_token() {
    let mut world = world(Limits::default(), LEN);
    let mut rng = rng(4);
    disturb(&mut world, |world| {
        for _ in 0..20 {
            let join =
                MptcpOption::JoinSyn { backup: false, address_id: 3, token: rng.next_u32(), nonce: rng.next_u32() };
            let syn = Segment { mptcp: [join].into(), ..rogue::syn(rng.next_u32() as u16) };
            world.forge(PathId(1), EVIL, &syn);
        }
    });
    assert_eq!(world.server.counters().accepted, 1);
    let resets = world.to_attackers.iter().filter(|(_, _, segment)| segment.flags.contains(Flags::RST)).count();
    assert!(resets > 0 && resets == world.to_attackers.len(), "each answer was RST");
    assert!(resets <= 2 * Limits::default().resets_per_second as usize, "and there were few: {resets}");
}

#[test]
fn a_join_with_the_right_token_and_a_wrong_proof() {
    let mut world = world(Limits::default(), LEN);
    let mut port = 0;
    disturb(&mut world, |world| {
        // The attacker knows the token of the honest client's connection, but not the keys.
        let victim = world.server.connections().next();
        let Some((token, 2)) = victim.map(|(victim, _)| (victim.token(), victim.views().len())) else { return };
        for _ in 0..20.min(100 - port) {
            port += 1;
            join_without_proof(world, port, token);
        }
    });
    assert_eq!(port, 100);
}

/// Tries to join a connection whose keys are not known.
fn join_without_proof<F: FnMut(Opened) -> Answer>(world: &mut World<F>, port: u16, token: u32) {
    let join = MptcpOption::JoinSyn { backup: false, address_id: 3, token, nonce: 5 };
    world.forge(PathId(1), EVIL, &Segment { mptcp: [join].into(), ..rogue::syn(port) });
    let answer = world.emitted(EVIL, port).pop().expect("an answer to the SYN");
    assert!(answer.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSynAck { .. })), "{answer:?}");
    let proof = MptcpOption::JoinAck { hmac: [7; 20] };
    let (seq, ack) = (rogue::syn(port).seq + 1, answer.seq + 1);
    world.forge(PathId(1), EVIL, &Segment { seq, ack, mptcp: [proof].into(), ..segment(Flags::ACK, port) });
    let reset = world.emitted(EVIL, port).pop().expect("an answer to the proof");
    assert!(reset.flags.contains(Flags::RST), "{reset:?}");
    assert_eq!(reset.mptcp, [MptcpOption::Reset { transient: false, reason: ResetReason::Prohibited }]);
}

#[test]
fn joins_without_proof_keep_no_later_join_out() {
    let (mut world, _) = alone(LEN);
    let token = world.server.connections().next().expect("the rogue's own").0.token();
    // More than a connection has subflows, and more than are remembered.
    for port in 1000..1600 {
        let join = MptcpOption::JoinSyn { backup: false, address_id: 3, token, nonce: 5 };
        world.forge(PathId(1), EVIL, &Segment { mptcp: [join].into(), ..rogue::syn(port) });
        let answer = world.emitted(EVIL, port).pop().unwrap_or_else(|| panic!("no answer to join {port}"));
        assert!(
            answer.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSynAck { .. })),
            "join {port}: {answer:?}"
        );
    }
}

/// A rogue without other clients; the server's answer is `len` bytes long.
fn alone(len: u64) -> (World<impl FnMut(Opened) -> Answer>, Rogue) {
    let mut world = world(Limits::default(), len);
    let rogue = Rogue::connect(&mut world, EVIL, 666);
    assert!(world.server.connections().next().expect("it was accepted").0.is_multipath());
    (world, rogue)
}

fn wait<F: FnMut(Opened) -> Answer>(world: &mut World<F>, ms: u64) {
    for _ in 0..ms {
        world.step();
    }
}

#[test]
fn a_mapping_that_contradicts_another_ends_the_subflow() {
    let (mut world, rogue) = alone(LEN);
    // Until the first byte was placed, the server would take wrong mappings for a middlebox's effect, and fall back.
    rogue.say(&mut world, &rogue.data(0, 0, 50));
    // Bytes 100 to 300 of the subflow are stream bytes 100 to 300; then 200 to 400 are 1200 to 1400.
    rogue.say(&mut world, &rogue.data(100, 100, 200));
    assert!(world.emitted(EVIL, 666).iter().all(|segment| !segment.flags.contains(Flags::RST)));
    rogue.say(&mut world, &rogue.data(200, 1200, 200));
    let reset = world.emitted(EVIL, 666).pop().expect("an answer");
    assert!(reset.flags.contains(Flags::RST), "{reset:?}");
    assert_eq!(reset.mptcp, [MptcpOption::Reset { transient: false, reason: ResetReason::MptcpError }]);
}

#[test]
fn overlapping_mappings_that_agree_are_taken() {
    let (mut world, rogue) = alone(1000);
    rogue.say(&mut world, &rogue.data(100, 100, 200));
    rogue.say(&mut world, &rogue.data(200, 200, 300));
    rogue.say(&mut world, &rogue.data(0, 0, 150));
    wait(&mut world, 50);
    let emitted = world.emitted(EVIL, 666);
    assert!(emitted.iter().all(|segment| !segment.flags.contains(Flags::RST)));
    let last = emitted.last().expect("an acknowledgment");
    assert_eq!(last.ack, rogue.segment(500).seq, "all bytes of the subflow");
    let acked = rogue::initial_data_seq(0x6666_7777_8888_9999).wrapping_add(501);
    assert_eq!(last.dss.and_then(|dss| dss.data_ack), Some(DataSeq { value: acked & 0xffff_ffff, wide: false }));
}

#[test]
fn a_data_ack_of_unsent_data_is_ignored() {
    let (mut world, rogue) = alone(LEN);
    rogue.ask(&mut world);
    let sent: u32 = world.emitted(EVIL, 666).iter().map(|segment| segment.payload_len).sum();
    assert!(sent > 10_000);
    for future in [u64::from(sent) + 1, LEN, LEN + 1, 1 << 31, 1 << 40, u64::MAX / 2] {
        rogue.say(&mut world, &Segment { dss: Some(rogue.data_ack(future)), ..rogue.segment(10) });
        let (connection, _) = world.server.connections().next().expect("it lives");
        assert_eq!(connection.acked(), 0, "{future}");
    }
    // An acknowledgment of the subflow for bytes that were never sent is ignored, too.
    let ahead = Segment { ack: rogue.ack + sent + 1, ..rogue.segment(10) };
    rogue.say(&mut world, &ahead);
    let new: u32 = world.emitted(EVIL, 666).iter().map(|segment| segment.payload_len).sum();
    assert_eq!(new, 0, "nothing opened the window");
    // A valid one is still accepted.
    let honest = Segment { ack: rogue.ack + sent, dss: Some(rogue.data_ack(u64::from(sent))), ..rogue.segment(10) };
    rogue.say(&mut world, &honest);
    assert_eq!(world.server.connections().next().expect("it lives").0.acked(), u64::from(sent));
}

#[test]
fn tiny_segments_with_holes() {
    let (mut world, rogue) = alone(LEN);
    let before = heap::held();
    // Every other byte of the window, one at a time, and then again.
    for _ in 0..2 {
        for at in (1..60_000).step_by(2) {
            rogue.say(&mut world, &rogue.data(at, u64::from(at), 1));
        }
        world.to_attackers = Vec::new();
    }
    let held = heap::held() - before;
    eprintln!("{held} bytes for 60 000");
    assert!(held < 1 << 20, "{held} bytes");
    // The transfer continues: the missing bytes arrive, then everything again, and the server accepts it.
    for at in (0..60_000).step_by(1000) {
        rogue.say(&mut world, &rogue.data(at, u64::from(at), 1000));
    }
    wait(&mut world, 100);
    let last = world.emitted(EVIL, 666).pop().expect("an answer");
    assert_eq!(last.ack, rogue.segment(60_000).seq);
}

#[test]
fn mappings_beyond_every_window_are_not_taken() {
    let (mut world, rogue) = alone(LEN);
    let before = heap::held();
    for stream in [1 << 20, 1 << 31, 1 << 40, u64::MAX - 1000, u64::MAX / 2] {
        rogue.say(&mut world, &rogue.data(0, stream, 1000));
    }
    for at in [1 << 20, 1 << 29, u32::MAX / 2, u32::MAX - 1000] {
        rogue.say(&mut world, &rogue.data(at, u64::from(at), 1000));
    }
    assert!(heap::held() - before < 100_000);
    // A DATA_FIN far beyond the window is ignored.
    let far = Mapping { subflow_offset: 0, len: 1, ..rogue.data(0, 1 << 40, 1).dss.unwrap().mapping.unwrap() };
    let dss = Dss { mapping: Some(far), data_fin: true, ..rogue.data_ack(0) };
    rogue.say(&mut world, &Segment { dss: Some(dss), ..rogue.segment(0) });
    let open = world.server.connections().next().is_none_or(|(connection, _)| !connection.peer_finished());
    assert!(open);
}

#[test]
fn forged_fast_closes_and_resets_end_nothing() {
    let mut world = world(Limits::default(), LEN);
    let mut rng = rng(5);
    disturb(&mut world, |world| {
        // The attacker knows the honest client's addresses and ports, but neither its numbers nor its keys. A random
        // number of an RST is in a window of 2^20 once in 4096 tries; that is why RST must hit the window here, too,
        // and 20 are sent.
        if world.now.as_nanos() % 50_000_000 != 0 {
            return;
        }
        let fast_close = MptcpOption::FastClose { receiver_key: rng.next_u64() };
        let mut forged = Segment { mptcp: [fast_close].into(), ..segment(Flags::RST | Flags::ACK, 40_000) };
        // The honest client's numbers are about to wrap, so these are far away.
        forged.seq = SeqNumber(1 << 30 | (rng.next_u32() >> 4));
        forged.ack = SeqNumber(rng.next_u32());
        world.forge(PATH, honest_address(PATH), &forged);
        forged.destination_port = PORT + 1;
        world.forge(PATH, honest_address(PATH), &forged);
    });
    assert_ne!(SERVER, EVIL);
}
