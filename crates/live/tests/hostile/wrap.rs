//! Data sequence numbers of 32 bits that wrap. (Those of 64 bits would have to be near their end, which is a hash of a
//! random key; the stack's own tests put them there.)

use crate::rogue::{self, Rogue};
use crate::world::world;
use crate::{LEN, wait};
use anabranch_live::Limits;
use anabranch_segment::{DataSeq, Flags, MptcpOption, Segment};
use std::net::{IpAddr, Ipv4Addr};

/// How many bytes of a server's stream come before its data sequence numbers, 32 bits of them, wrap: neither none nor
/// more than the stream is long.
const BEFORE_THE_WRAP: std::ops::Range<u32> = 100_000..2_000_000;

#[test]
fn data_sequence_numbers_wrap_at_32_bits() {
    let mut world = world(Limits::default(), LEN);
    // Keys are random, and so are their hashes; one client in some two thousand matches.
    let ahead = |rogue: &Rogue| (rogue::initial_data_seq(rogue.server_key) as u32).wrapping_neg();
    let mut port = 0;
    let rogue = loop {
        port += 1;
        let rogue =
            Rogue::connect(&mut world, IpAddr::V4(Ipv4Addr::from(0x0b00_0000 + port / 60_000)), (port % 60_000) as u16);
        if BEFORE_THE_WRAP.contains(&ahead(&rogue)) {
            break rogue;
        }
        // A reset alone ends the subflow; the connection would wait for another one, and there is no room for so many.
        let close = MptcpOption::FastClose { receiver_key: rogue.server_key };
        rogue.say(&mut world, &Segment { flags: Flags::RST, mptcp: [close].into(), ..rogue.segment(0) });
        world.to_attackers.clear();
        assert!(port < 100_000, "no luck");
    };
    let (wraps_after, first) = (ahead(&rogue), rogue::initial_data_seq(rogue.server_key).wrapping_add(1));
    rogue.ask(&mut world);
    let (mut taken, mut narrow, mut both_sides) = (0u64, 0, [false; 2]);
    for _ in 0..20_000 {
        wait(&mut world, 1);
        let emitted = world.emitted(rogue.address, rogue.port);
        for segment in emitted.iter().filter(|segment| segment.payload_len > 0) {
            let mapping = segment.dss.and_then(|dss| dss.mapping).expect("each has its mapping");
            let at = u64::from(mapping.subflow_offset) - 1;
            let expected = first.wrapping_add(at);
            let mask = if mapping.dsn.wide { u64::MAX } else { u64::from(u32::MAX) };
            assert_eq!({ mapping.dsn.value }, expected & mask, "byte {at}, {wraps_after} before the wrap");
            narrow += u32::from(!mapping.dsn.wide);
            both_sides[usize::from(at > u64::from(wraps_after))] = true;
            taken = taken.max(at + u64::from(segment.payload_len));
        }
        let mut dss = rogue.data_ack(taken);
        // Half of the numbers, so that the server has to complete them.
        dss.data_ack = dss.data_ack.map(|ack| DataSeq { value: ack.value & u64::from(u32::MAX), wide: false });
        let ack = rogue.ack + taken as u32;
        rogue.say(&mut world, &Segment { ack, dss: Some(dss), ..rogue.segment(10) });
        if taken == LEN {
            break;
        }
    }
    assert_eq!((taken, both_sides), (LEN, [true; 2]), "the whole stream was sent, across the wrap");
    eprintln!("{port} connections, {narrow} narrow numbers");
    let acked = world.server.connections().find(|(connection, _)| connection.acked() > 0).expect("it lives");
    assert_eq!(acked.0.acked(), LEN);
}
