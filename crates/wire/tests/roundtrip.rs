//! Encoded segments can be decoded again, and no input makes the decoder panic.

use anabranch_segment::{
    CapableFlags, DataSeq, Dss, Flags, MAX_OPTIONS_LEN, Mapping, MptcpOption, RemovedAddresses, ResetReason, SackBlock,
    SackBlocks, Segment, SynOptions, Timestamps,
};
use anabranch_units::SeqNumber;
use anabranch_wire::{DecodeError, EncodeError, decode, encode, encode_headers, headers_len};
use proptest::option::of;
use proptest::prelude::*;
use std::net::IpAddr;

const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 1, 0, 2));
const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 1));

fn data_seq() -> impl Strategy<Value = DataSeq> {
    prop_oneof![
        any::<u64>().prop_map(|value| DataSeq { value, wide: true }),
        any::<u32>().prop_map(|value| DataSeq { value: value.into(), wide: false }),
    ]
}

fn mapping() -> impl Strategy<Value = Mapping> {
    (data_seq(), any::<(u32, u16)>(), of(any::<u16>())).prop_map(|(dsn, (subflow_offset, len), checksum)| Mapping {
        dsn,
        subflow_offset,
        len,
        checksum,
    })
}

fn dss() -> impl Strategy<Value = Dss> {
    (of(data_seq()), of(mapping()), any::<bool>()).prop_map(|(data_ack, mapping, data_fin)| Dss {
        data_ack,
        mapping,
        data_fin,
    })
}

fn capable() -> impl Strategy<Value = MptcpOption> {
    let flags = any::<[bool; 3]>().prop_map(|[checksum_required, deny_join_initial, hmac_sha256]| CapableFlags {
        checksum_required,
        deny_join_initial,
        hmac_sha256,
    });
    // The forms of RFC 8684 section 3.1: each field is there only with all before it.
    (0u8..16, flags, 0usize..5, any::<[u64; 2]>(), any::<[u16; 2]>()).prop_map(
        |(version, flags, fields, keys, halves)| MptcpOption::Capable {
            version,
            flags,
            sender_key: (fields > 0).then_some(keys[0]),
            receiver_key: (fields > 1).then_some(keys[1]),
            data_len: (fields > 2).then_some(halves[0]),
            checksum: (fields > 3).then_some(halves[1]),
        },
    )
}

fn reset_reason() -> impl Strategy<Value = ResetReason> {
    prop_oneof![
        Just(ResetReason::Unspecified),
        Just(ResetReason::MptcpError),
        Just(ResetReason::NoResources),
        Just(ResetReason::Prohibited),
        Just(ResetReason::TooMuchOutstanding),
        Just(ResetReason::BadPerformance),
        Just(ResetReason::Middlebox),
        (7u8..).prop_map(ResetReason::Other),
    ]
}

fn add_address() -> impl Strategy<Value = MptcpOption> {
    any::<(bool, u8, IpAddr, Option<u16>, u64)>().prop_map(|(echo, address_id, address, port, hmac)| {
        MptcpOption::AddAddress { echo, address_id, address, port, hmac: if echo { 0 } else { hmac } }
    })
}

fn mptcp_option() -> impl Strategy<Value = MptcpOption> {
    let join_syn = any::<(bool, u8, u32, u32)>().prop_map(|(backup, address_id, token, nonce)| MptcpOption::JoinSyn {
        backup,
        address_id,
        token,
        nonce,
    });
    let join_syn_ack = any::<(bool, u8, u64, u32)>()
        .prop_map(|(backup, address_id, hmac, nonce)| MptcpOption::JoinSynAck { backup, address_id, hmac, nonce });
    let removed = prop::collection::vec(any::<u8>(), 1..=8)
        .prop_map(|ids| MptcpOption::RemoveAddress(RemovedAddresses::new(&ids).expect("one to eight")));
    prop_oneof![
        capable(),
        join_syn,
        join_syn_ack,
        any::<[u8; 20]>().prop_map(|hmac| MptcpOption::JoinAck { hmac }),
        add_address(),
        removed,
        any::<bool>().prop_map(|backup| MptcpOption::Priority { backup }),
        any::<u64>().prop_map(|dsn| MptcpOption::Fail { dsn }),
        any::<u64>().prop_map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        (any::<bool>(), reset_reason()).prop_map(|(transient, reason)| MptcpOption::Reset { transient, reason }),
    ]
}

fn sack() -> impl Strategy<Value = SackBlocks> {
    prop::collection::vec(any::<(u32, u32)>(), 0..=SackBlocks::CAPACITY).prop_map(|list| {
        let mut blocks = SackBlocks::default();
        for (start, end) in list {
            assert!(blocks.push(SackBlock { start: SeqNumber(start), end: SeqNumber(end) }));
        }
        blocks
    })
}

fn syn_options() -> impl Strategy<Value = SynOptions> {
    (1u16.., of(0u8..=14), any::<bool>()).prop_map(|(mss, window_scale, sack_permitted)| SynOptions {
        mss,
        window_scale,
        sack_permitted,
    })
}

/// Segments of every kind whose options fit.
fn segment() -> impl Strategy<Value = Segment> {
    let fixed = (any::<(u16, u16, u32, u32, u8, u16)>(), 0u32..1600);
    let stamps = of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }));
    let mptcp = prop_oneof![3 => Just(Vec::new()), 3 => prop::collection::vec(mptcp_option(), 1), 1 => prop::collection::vec(mptcp_option(), 2..4)];
    (fixed, stamps, sack(), syn_options(), of(dss()), mptcp)
        .prop_map(|((fixed, payload_len), timestamps, sack, syn, dss, mptcp)| {
            let (source_port, destination_port, seq, ack, flags, window) = fixed;
            let flags = Flags(flags);
            Segment {
                source_port,
                destination_port,
                seq: SeqNumber(seq),
                ack: SeqNumber(ack),
                flags,
                window,
                payload_len,
                timestamps,
                sack,
                syn: flags.contains(Flags::SYN).then_some(syn),
                dss,
                mptcp: mptcp.into_iter().collect(),
            }
        })
        .prop_map(without_excess)
}

/// Takes options away until the rest fits into a header.
fn without_excess(mut segment: Segment) -> Segment {
    while segment.options_len() > MAX_OPTIONS_LEN {
        if !segment.sack.is_empty() {
            segment.sack = SackBlocks::default();
        } else if segment.mptcp.pop().is_none() {
            segment.timestamps = None;
        }
    }
    segment
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

/// Byte `i` of every payload here.
fn pattern(i: usize) -> u8 {
    (i * 31 % 251) as u8
}

fn encoded(source: IpAddr, destination: IpAddr, segment: &Segment) -> Vec<u8> {
    let mut buffer = vec![0xee; 4096];
    let fill = |payload: &mut [u8]| payload.iter_mut().enumerate().for_each(|(i, byte)| *byte = pattern(i));
    let len = encode(&mut buffer, source, destination, segment, fill).expect("fits");
    buffer.truncate(len);
    buffer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_written_can_be_read((source, destination) in addresses(), segment in segment()) {
        let bytes = encoded(source, destination, &segment);
        prop_assert_eq!(bytes.len(), headers_len(source.is_ipv6(), &segment) + segment.payload_len as usize);
        let packet = decode(&bytes).expect("valid");
        prop_assert_eq!((packet.source, packet.destination), (source, destination));
        prop_assert!(packet.payload.iter().enumerate().all(|(i, &byte)| byte == pattern(i)));
        prop_assert_eq!(packet.segment, segment);
    }

    #[test]
    fn a_changed_bit_is_noticed((source, destination) in addresses(), segment in segment(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = encoded(source, destination, &segment);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        // IPv6 has no checksum of its own; its traffic class, flow label and hop limit are not tested here.
        let unprotected = source.is_ipv6() && (at < 4 || at == 7);
        prop_assert!(unprotected || decode(&bytes).is_err());
    }

    #[test]
    fn a_shortened_packet_is_noticed((source, destination) in addresses(), segment in segment(), keep in any::<prop::sample::Index>()) {
        let bytes = encoded(source, destination, &segment);
        let keep = keep.index(bytes.len());
        prop_assert_eq!(decode(&bytes[..keep]), Err(DecodeError::Truncated));
    }

    #[test]
    fn a_small_buffer_is_refused(segment in segment(), missing in 1usize..100) {
        let needed = encoded(A, B, &segment).len();
        let mut buffer = vec![0; needed - missing.min(needed)];
        let called = |_: &mut [u8]| panic!("the payload was asked for");
        prop_assert_eq!(encode(&mut buffer, A, B, &segment, called), Err(EncodeError::BufferTooSmall(needed)));
    }

    #[test]
    fn headers_alone_are_those_of_a_payload_of_zeros((source, destination) in addresses(), segment in segment()) {
        let mut whole = vec![0xee; 4096];
        let total = encode(&mut whole, source, destination, &segment, |payload| payload.fill(0)).expect("fits");
        let mut alone = vec![0xee; headers_len(source.is_ipv6(), &segment)];
        let lengths = encode_headers(&mut alone, source, destination, &segment);
        prop_assert_eq!(lengths, Ok((alone.len(), total)));
        prop_assert_eq!(&alone[..], &whole[..alone.len()]);
        let needed = alone.len();
        prop_assert_eq!(
            encode_headers(&mut alone[1..], source, destination, &segment),
            Err(EncodeError::BufferTooSmall(needed))
        );
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), version in prop_oneof![Just(0x45u8), Just(0x46), Just(0x60), any::<u8>()]) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        let _ = decode(&bytes);
    }

    /// Random bytes rarely have a right checksum; here the headers are right and only the options are random.
    #[test]
    fn arbitrary_options_never_panic(
        options in prop::collection::vec(prop_oneof![3 => any::<u8>(), 2 => Just(30), 1 => Just(1), 1 => 2u8..30], 40),
        words in 0u32..=10,
        flags in any::<u8>(),
    ) {
        let payload_len = 50;
        let mut segment = Segment::new(Flags(flags));
        segment.payload_len = words * 4 + payload_len;
        let mut bytes = encoded(A, B, &Segment { syn: None, ..segment });
        bytes[40..40 + words as usize * 4].copy_from_slice(&options[..words as usize * 4]);
        bytes[32] = (5 + words as u8) << 4;
        repair_checksum(&mut bytes);
        let packet = decode(&bytes).expect("options are never an error");
        prop_assert_eq!(packet.segment.payload_len, payload_len);
        // Decoded options can be encoded again, if they still fit with regular padding.
        if packet.segment.options_len() <= MAX_OPTIONS_LEN {
            let again = encoded(A, B, &packet.segment);
            prop_assert_eq!(decode(&again).expect("valid").segment, packet.segment);
        }
    }
}

/// Sets the TCP checksum of an IPv4 packet without IP options.
fn repair_checksum(packet: &mut [u8]) {
    packet[36..38].fill(0);
    let len = (packet.len() - 20) as u16;
    let sum = anabranch_wire::checksum::Sum::default().bytes(&packet[12..20]).word(6).word(len).bytes(&packet[20..]);
    let checksum = sum.finish();
    packet[36..38].copy_from_slice(&checksum.to_be_bytes());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut buffer = [0; 2048];
    let fill = |_: &mut [u8]| {};
    let plain = Segment::new(Flags::ACK);
    let v6 = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
    assert_eq!(encode(&mut buffer, A, v6, &plain, fill), Err(EncodeError::MixedFamilies));

    let mut crowded = plain.clone();
    let proof = MptcpOption::JoinAck { hmac: [0; 20] };
    crowded.mptcp = [proof.clone(), proof].into();
    assert_eq!(encode(&mut buffer, A, B, &crowded, fill), Err(EncodeError::TooManyOptions(48)));

    let mut long = plain;
    long.payload_len = 65_496;
    assert_eq!(encode(&mut buffer, A, B, &long, fill), Err(EncodeError::PayloadTooLong(65_496)));
    long.payload_len = 65_495;
    assert_eq!(encode(&mut buffer, A, B, &long, fill), Err(EncodeError::BufferTooSmall(65_535)));
    assert_eq!(encode(&mut buffer, v6, v6, &long, fill), Err(EncodeError::BufferTooSmall(65_555)));
}

/// A router's report about a packet: ICMP over IPv4, ICMPv6 over IPv6.
fn report(ipv6: bool, mtu: u32) -> Vec<u8> {
    use anabranch_wire::checksum::Sum;
    let (from, to, router): (core::net::IpAddr, core::net::IpAddr, core::net::IpAddr) = if ipv6 {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), "fd00::3".parse().unwrap())
    } else {
        ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), [10, 0, 0, 3].into())
    };
    let mut segment = Segment::new(Flags::ACK);
    (segment.source_port, segment.destination_port, segment.seq) = (80, 4321, SeqNumber(0xfedc_ba98));
    segment.payload_len = 1400;
    let mut quoted = vec![0; 2000];
    let len = anabranch_wire::encode(&mut quoted, from, to, &segment, |_| {}).unwrap();
    quoted.truncate(if ipv6 { len.min(1232) } else { 28 });
    let mut icmp = vec![if ipv6 { 2 } else { 3 }, if ipv6 { 0 } else { 4 }, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(quoted);
    let mut packet = Vec::new();
    if let (core::net::IpAddr::V6(router), core::net::IpAddr::V6(to)) = (router, from) {
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((icmp.len() as u16).to_be_bytes());
        packet.extend([58, 64]);
        packet.extend(router.octets().iter().chain(&to.octets()));
        let pseudo = Sum::default().bytes(&packet[8..40]).bytes(&(icmp.len() as u32).to_be_bytes()).word(58);
        let sum = pseudo.bytes(&icmp).finish();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    if let (core::net::IpAddr::V4(router), core::net::IpAddr::V4(to)) = (router, from) {
        packet.extend([0x45, 0]);
        packet.extend((20 + icmp.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 1, 0, 0]);
        packet.extend(router.octets().iter().chain(&to.octets()));
        let sum = Sum::default().bytes(&packet).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        let sum = Sum::default().bytes(&icmp).finish();
        icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet.extend(icmp);
    packet
}

#[test]
fn a_report_says_which_segment_was_too_big() {
    for (ipv6, len) in [(false, 1440), (true, 1460)] {
        let packet = report(ipv6, 1280);
        let decoded = anabranch_wire::decode_too_big(&packet).expect("a report");
        assert_eq!((decoded.source.1, decoded.destination.1, decoded.seq), (80, 4321, SeqNumber(0xfedc_ba98)));
        assert_eq!((decoded.packet, decoded.mtu), (len, 1280));
        assert_eq!(decoded.source.0.is_ipv6(), ipv6);
        assert!(anabranch_wire::decode(&packet).is_err(), "it is no TCP");
        // Nothing of a report that is cut off or damaged is believed.
        (0..packet.len()).for_each(|end| {
            let _ = anabranch_wire::decode_too_big(&packet[..end]);
        });
        let icmp = if ipv6 { 40 } else { 20 };
        for at in icmp..packet.len() {
            let mut damaged = packet.clone();
            damaged[at] ^= 1;
            assert_eq!(anabranch_wire::decode_too_big(&damaged), None, "byte {at}");
        }
    }
}
