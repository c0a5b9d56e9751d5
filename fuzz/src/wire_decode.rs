//! Arbitrary bytes as an IP packet. Whatever is understood can be written, means the same when it is read again, and
//! survives a middlebox.
//!
//! Checksums are made right first, as the fuzzer could not guess them.

use anabranch_wire::{checksum::Sum, decode, encode, strip_mptcp};

/// Makes the checksums of an IPv4 header without options, and of TCP behind it, right.
fn fix_checksums(packet: &mut [u8]) {
    const IP: usize = 20;
    let len = packet.len();
    if len < IP + 20 || packet[0] != 0x45 || len > usize::from(u16::MAX) {
        return;
    }
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    packet[6..8].fill(0);
    packet[9] = 6;
    packet[10..12].fill(0);
    let sum = Sum::default().bytes(&packet[..IP]).finish();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[IP + 16..IP + 18].fill(0);
    let sum = Sum::default().bytes(&packet[12..IP]).word(6).word((len - IP) as u16).bytes(&packet[IP..]);
    packet[IP + 16..IP + 18].copy_from_slice(&sum.finish().to_be_bytes());
}

/// Reads the bytes as a packet.
pub fn run(data: &[u8]) {
    let _ = decode(data);
    let mut packet = data.to_vec();
    fix_checksums(&mut packet);
    let Ok(first) = decode(&packet) else { return };
    assert_eq!(first.payload.len(), first.segment.payload_len as usize);
    let mut buffer = vec![0; usize::from(u16::MAX) + 64];
    let written = encode(&mut buffer, first.source, first.destination, &first.segment, |payload| {
        payload.copy_from_slice(first.payload);
    });
    // What stood in a header in some compact form may need more room when it is written as we write.
    if let Ok(len) = written {
        let second = decode(&buffer[..len]).expect("what is written can be read");
        assert_eq!(first, second);
    }
    let mut stripped = packet.clone();
    if strip_mptcp(&mut stripped, false) {
        let plain = decode(&stripped).expect("a stripped packet is a packet");
        assert!(plain.segment.dss.is_none() && plain.segment.mptcp.is_empty());
        assert_eq!(plain.payload.len(), stripped.len() - (packet.len() - first.payload.len()));
    }
}
