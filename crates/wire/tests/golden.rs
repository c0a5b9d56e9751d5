//! Bytes written by other implementations, or derived from the figures of RFC 8684 by hand.

use anabranch_segment::{
    CapableFlags, DataSeq, Dss, Flags, Mapping, MptcpOption, RemovedAddresses, ResetReason, SackBlock, Segment,
    SynOptions, Timestamps,
};
use anabranch_units::SeqNumber;
use anabranch_wire::{DecodeError, decode, encode};
use std::net::IpAddr;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digit = |b: u8| char::from(b).to_digit(16).expect("hexadecimal") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The options of an encoded segment.
fn options(segment: &Segment) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let address = IpAddr::from([127, 0, 0, 1]);
    let len = encode(&mut buffer, address, address, segment, |payload| payload.fill(0)).expect("fits");
    buffer[40..len - segment.payload_len as usize].to_vec()
}

fn with_option(option: MptcpOption) -> Segment {
    let mut segment = Segment::new(Flags::ACK);
    segment.mptcp.push(option);
    segment
}

fn capable(fields: usize) -> MptcpOption {
    MptcpOption::Capable {
        version: 1,
        flags: CapableFlags { hmac_sha256: true, ..Default::default() },
        sender_key: (fields > 0).then_some(0x0102_0304_0506_0708),
        receiver_key: (fields > 1).then_some(0x1112_1314_1516_1718),
        data_len: (fields > 2).then_some(0x2122),
        checksum: (fields > 3).then_some(0x3132),
    }
}

#[test]
fn mptcp_options_look_as_in_the_figures() {
    let keys = "0102030405060708 1112131415161718";
    let v6 = "20010db8000000000000000000000001";
    let v4 = IpAddr::from([10, 2, 0, 2]);
    let (hmac, nonce, token) = (0x4142_4344_4546_4748, 0x5152_5354, 0x6162_6364);
    let cases = [
        (capable(0), "1e04 01 01".to_owned()),
        (capable(1), "1e0c 01 01 0102030405060708".to_owned()),
        (capable(2), format!("1e14 01 01 {keys}")),
        (capable(3), format!("1e16 01 01 {keys} 2122 0101")),
        (capable(4), format!("1e18 01 01 {keys} 2122 3132")),
        (MptcpOption::JoinSyn { backup: true, address_id: 2, token, nonce }, "1e0c 11 02 61626364 51525354".into()),
        (
            MptcpOption::JoinSynAck { backup: false, address_id: 2, hmac, nonce },
            "1e10 10 02 4142434445464748 51525354".into(),
        ),
        (MptcpOption::JoinAck { hmac: [0x71; 20] }, format!("1e18 10 00 {}", "71".repeat(20))),
        (
            MptcpOption::AddAddress { echo: false, address_id: 3, address: v4, port: None, hmac },
            "1e10 30 03 0a020002 4142434445464748".into(),
        ),
        (
            MptcpOption::AddAddress { echo: true, address_id: 3, address: v4, port: Some(0x1f90), hmac: 0 },
            "1e0a 31 03 0a020002 1f90 0101".into(),
        ),
        (
            MptcpOption::AddAddress {
                echo: false,
                address_id: 3,
                address: "2001:db8::1".parse().unwrap(),
                port: Some(0x1f90),
                hmac,
            },
            format!("1e1e 30 03 {v6} 1f90 4142434445464748 0101"),
        ),
        (MptcpOption::RemoveAddress(RemovedAddresses::new(&[9]).unwrap()), "1e04 40 09".into()),
        (MptcpOption::RemoveAddress(RemovedAddresses::new(&[9, 8]).unwrap()), "1e05 40 09 08 010101".into()),
        (MptcpOption::Priority { backup: true }, "1e03 51 01".into()),
        (MptcpOption::Fail { dsn: hmac }, "1e0c 60 00 4142434445464748".into()),
        (MptcpOption::FastClose { receiver_key: hmac }, "1e0c 70 00 4142434445464748".into()),
        (MptcpOption::Reset { transient: true, reason: ResetReason::Middlebox }, "1e04 81 06".into()),
    ];
    for (option, bytes) in cases {
        assert_eq!(options(&with_option(option.clone())), hex(&bytes), "{option:?}");
    }
}

#[test]
fn data_sequence_signals_look_as_in_the_figure() {
    let wide = |value| DataSeq { value, wide: true };
    let narrow = |value| DataSeq { value, wide: false };
    let mapping = |dsn, checksum| Mapping { dsn, subflow_offset: 0x0a0b_0c0d, len: 0x0579, checksum };
    let map = |dsn, checksum| Some(mapping(dsn, checksum));
    let cases = [
        (Dss { data_ack: Some(narrow(0x0102_0304)), mapping: None, data_fin: false }, "1e08 2001 01020304"),
        (
            Dss { data_ack: Some(wide(0x0102_0304_0506_0708)), mapping: None, data_fin: false },
            "1e0c 2003 0102030405060708",
        ),
        (
            Dss { data_ack: None, mapping: map(narrow(0x1122_3344), None), data_fin: true },
            "1e0e 2014 11223344 0a0b0c0d 0579 0101",
        ),
        (
            Dss {
                data_ack: Some(wide(0x0102_0304_0506_0708)),
                mapping: map(wide(0x1112_1314_1516_1718), None),
                data_fin: false,
            },
            "1e1a 200f 0102030405060708 1112131415161718 0a0b0c0d 0579 0101",
        ),
        (
            Dss { data_ack: Some(narrow(7)), mapping: map(wide(8), Some(0xc5c6)), data_fin: false },
            "1e18 200d 00000007 0000000000000008 0a0b0c0d 0579 c5c6",
        ),
    ];
    for (dss, bytes) in cases {
        let mut segment = Segment::new(Flags::ACK);
        segment.dss = Some(dss);
        assert_eq!(options(&segment), hex(bytes), "{dss:?}");
    }
}

#[test]
fn tcp_options_stand_in_the_order_of_linux() {
    let stamps = Timestamps { value: 0x0102_0304, echo: 0x0506_0708 };
    let mut syn = Segment::new(Flags::SYN);
    syn.syn = Some(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
    syn.mptcp.push(capable(0));
    assert_eq!(options(&syn), hex("020405b4 04020101 01030307 1e040101"));
    syn.timestamps = Some(stamps);
    assert_eq!(options(&syn), hex("020405b4 0402080a 01020304 05060708 01030307 1e040101"));
    syn.syn = Some(SynOptions { mss: 1460, window_scale: None, sack_permitted: false });
    assert_eq!(options(&syn), hex("020405b4 0101080a 01020304 05060708 1e040101"));

    let mut ack = Segment::new(Flags::ACK);
    ack.timestamps = Some(stamps);
    ack.sack.push(SackBlock { start: SeqNumber(0x11), end: SeqNumber(0x22) });
    ack.dss = Some(Dss { data_ack: Some(DataSeq { value: 0x33, wide: true }), mapping: None, data_fin: false });
    assert_eq!(options(&ack), hex("0101080a 01020304 05060708 0101050a 00000011 00000022 1e0c2003 0000000000000033"));
    assert_eq!(ack.options_len(), 36);
}

/// Decodes options that a middlebox or an attacker could write.
fn read_options(flags: Flags, bytes: &[u8]) -> Segment {
    let mut carrier = Segment::new(flags);
    carrier.payload_len = bytes.len() as u32;
    let mut buffer = [0; 256];
    let address = IpAddr::from([127, 0, 0, 1]);
    let len = encode(&mut buffer, address, address, &carrier, |payload| payload.copy_from_slice(bytes)).expect("fits");
    // Turning payload into options changes one byte of the header; the checksum is corrected by its difference.
    let packet = &mut buffer[..len];
    packet[32] = (5 + bytes.len() / 4) as u8 * 16;
    packet[36..38].fill(0);
    let sum = anabranch_wire::checksum::Sum::default().bytes(&packet[12..20]).word(6).word(len as u16 - 20);
    let checksum = sum.bytes(&packet[20..]).finish();
    packet[36..38].copy_from_slice(&checksum.to_be_bytes());
    decode(packet).expect("options are never an error").segment
}

#[test]
fn nonsense_among_options_is_passed_over() {
    // An unknown option, MP_PRIO of version 0 (too long), DSS (too short), ADD_ADDR of no known length; then
    // timestamps.
    let bytes = hex("fd06aabbccdd 1e045101 1e082003 01020304 1e053001aa 080a0000000100000002 000000");
    let segment = read_options(Flags::ACK, &bytes);
    assert_eq!((segment.dss, segment.mptcp.is_empty()), (None, true));
    assert_eq!(segment.timestamps, Some(Timestamps { value: 1, echo: 2 }));

    // MP_CAPABLE with the reserved extensibility flag, and a length that leaves the header: the list ends there.
    let segment = read_options(Flags::SYN, &hex("1e040141 020405b4 1e3001 01 1e045101"));
    assert_eq!(segment.mptcp, []);
    assert_eq!(segment.syn.map(|syn| syn.mss), Some(1460));

    // Lengths below two could make a reader loop for ever.
    for bad in ["1e000000", "1e010000", "08000000"] {
        assert_eq!(read_options(Flags::ACK, &hex(bad)).mptcp, []);
    }

    // Options of a SYN have no effect on another segment, and an absent MSS has a default.
    assert_eq!(read_options(Flags::ACK, &hex("020405b4")).syn, None);
    let unsaid = SynOptions { mss: 536, window_scale: Some(14), sack_permitted: false };
    assert_eq!(read_options(Flags::SYN, &hex("0303ff00")).syn, Some(unsaid));
}

#[test]
fn packets_of_other_protocols_are_distinguished() {
    let mut buffer = [0; 128];
    let address = IpAddr::from([127, 0, 0, 1]);
    let len = encode(&mut buffer, address, address, &Segment::new(Flags::ACK), |_| {}).expect("fits");
    let altered = |at: usize, value: u8| {
        let mut packet = buffer[..len].to_vec();
        packet[at] = value;
        packet[10..12].fill(0);
        let checksum = anabranch_wire::checksum::Sum::default().bytes(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        decode(&packet).map(|_| ())
    };
    assert_eq!(altered(8, 3), Ok(()), "hops do not matter");
    assert_eq!(altered(9, 17), Err(DecodeError::NotTcp(17)));
    assert_eq!(altered(6, 0x20), Err(DecodeError::Fragment));
    assert_eq!(altered(7, 1), Err(DecodeError::Fragment));
    assert_eq!(altered(0, 0x44), Err(DecodeError::HeaderLength));
    assert_eq!(altered(0, 0x55), Err(DecodeError::IpVersion(5)));
    assert_eq!(altered(3, 19), Err(DecodeError::HeaderLength));
    assert_eq!(altered(3, 39), Err(DecodeError::Truncated));
    assert_eq!(decode(&[]), Err(DecodeError::Truncated));
}

/// Options written by Linux 6.18, client and server, in the order in which a connection needs them.
const FROM_LINUX: [(Flags, &str); 11] = [
    (Flags::SYN, "020405b40402080a88fd1b8b00000000010303071e040101"),
    (Flags::SYN, "020405b40402080a1519db2988fd1b8b010303071e0c01011e7f9a268bcac382"),
    (Flags::ACK, "0101080a88fd1b9f1519db291e140101f4a4dc1f31fb55e21e7f9a268bcac382"),
    (Flags::ACK, "0101080a88fd1b9f1519db291e160101f4a4dc1f31fb55e21e7f9a268bcac38200120101"),
    (Flags::ACK, "0101080a1519db3d88fd1b9f1e0c2003270aa6ea08a23dbb"),
    (Flags::SYN, "020405b40402080af7f00e0200000000010303071e0c1002c5093f31fdd440c9"),
    (Flags::SYN, "020405b40402080a30af411df7f00e02010303071e101000657e898d21584f6d582b9860"),
    (Flags::ACK, "0101080af7f00e2a30af411d1e1810009090866ae2bfa0c33f13a74c2264e75b95566fef"),
    (Flags::ACK, "0101080a1519db3d88fd1b9f1e1a200f270aa6ea08a23dbbc958565ee19d3a50000000017a080101"),
    (Flags::ACK, "0101080a88fd1c421519db980101050a18e7c37318e7c8ff1e0c2003c958565ee19fdf78"),
    (Flags::ACK, "0101080a1519e3cd88fd242e1e1a201f270aa6ea08a23dbbc958565ee1f8c7d00000000000010101"),
];

#[test]
fn the_options_of_linux_are_understood_and_written_alike() {
    for (flags, bytes) in FROM_LINUX {
        let segment = read_options(flags, &hex(bytes));
        assert_eq!(options(&segment), hex(bytes), "{segment:?}");
        assert!(segment.dss.is_some() != segment.mptcp.len().eq(&1), "one MPTCP option each: {segment:?}");
    }
    let join = read_options(FROM_LINUX[5].0, &hex(FROM_LINUX[5].1));
    let expected = MptcpOption::JoinSyn { backup: false, address_id: 2, token: 0xc509_3f31, nonce: 0xfdd4_40c9 };
    assert_eq!(join.mptcp, [expected]);
    let fin = read_options(FROM_LINUX[10].0, &hex(FROM_LINUX[10].1)).dss.expect("a signal");
    assert!(fin.data_fin);
    let mapping = fin.mapping.expect("a mapping");
    assert_eq!((mapping.subflow_offset, mapping.len, mapping.checksum), (0, 1, None));
}

#[test]
fn a_packet_of_linux_is_understood_whole() {
    let bytes = hex("4500004046f240004006df5f0a0100020a630001 e3621b586ee9806900000000b002faf077090000
         020405b40402080a88fd1b8b00000000010303071e040101");
    let packet = decode(&bytes).expect("Linux writes valid packets");
    assert_eq!((packet.source, packet.destination), ([10, 1, 0, 2].into(), [10, 99, 0, 1].into()));
    let segment = packet.segment;
    assert_eq!((segment.source_port, segment.destination_port), (58210, 7000));
    assert_eq!((segment.seq, segment.flags, segment.window), (SeqNumber(0x6ee9_8069), Flags::SYN, 64240));
    assert_eq!(segment.syn, Some(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true }));
    let mut written = [0; 64];
    assert_eq!(encode(&mut written, packet.source, packet.destination, &segment, |_| {}), Ok(64));
    assert_eq!(written[20..], bytes[20..], "TCP's part, checksum included");
}

#[test]
fn both_zeros_of_a_checksum_are_right() {
    // Linux writes 0xffff for zero. The window is chosen such that the checksum is zero.
    let address = IpAddr::from([127, 0, 0, 1]);
    let mut segment = Segment::new(Flags::ACK);
    let mut buffer = [0; 64];
    let len = encode(&mut buffer, address, address, &segment, |_| {}).expect("fits");
    segment.window = u16::from_be_bytes([buffer[36], buffer[37]]);
    assert_eq!(encode(&mut buffer, address, address, &segment, |_| {}), Ok(len));
    assert_eq!(buffer[36..38], [0, 0]);
    assert_eq!(decode(&buffer[..len]).expect("valid").segment, segment);
    buffer[36..38].fill(0xff);
    assert_eq!(decode(&buffer[..len]).expect("valid").segment, segment);
}
