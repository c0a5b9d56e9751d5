//! Removal of Multipath TCP options, as by a middlebox.

use crate::writer::NOP;
use crate::{checksum, ip, mptcp, options, protocol};

/// Offsets of the parts of a TCP header.
const DATA_OFFSET_AT: usize = 12;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;
const OPTIONS_AT: usize = 20;
/// The flag SYN.
const SYN: u8 = 0x02;

/// Overwrites the MPTCP options of an IP packet with no-operation options, as some middleboxes do (RFC 8684 section 6),
/// and corrects the TCP checksum. Returns whether there was any; a packet without a TCP segment is left unchanged, and
/// so is one with SYN if `spare_syn` is set.
pub fn strip_mptcp(packet: &mut [u8], spare_syn: bool) -> bool {
    let Ok(ip::Header { source, destination, protocol: protocol::TCP, body }) = ip::decode(packet) else {
        return false;
    };
    // The body lies within the packet: padding may follow it.
    let at = body.as_ptr().addr() - packet.as_ptr().addr();
    let len = body.len();
    let Some(tcp) = packet.get_mut(at..at + len) else { return false };
    if tcp.len() < OPTIONS_AT || (spare_syn && tcp[FLAGS_AT] & SYN != 0) {
        return false;
    }
    let header_len = usize::from(tcp[DATA_OFFSET_AT] >> 4) * 4;
    let Some(list) = tcp.get_mut(OPTIONS_AT..header_len) else { return false };
    if !overwrite(list) {
        return false;
    }
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let sum = checksum::pseudo_header(source, destination, len as u32).bytes(tcp).finish();
    tcp[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Overwrites the MPTCP options of a list; returns whether there was any.
fn overwrite(list: &mut [u8]) -> bool {
    let (mut at, mut found) = (0, false);
    while let Some(&kind) = list.get(at) {
        let len = match kind {
            options::END => return found,
            NOP => 1,
            _ => list.get(at + 1).map_or(0, |len| usize::from(*len)),
        };
        if len == 0 || (len == 1 && kind != NOP) {
            return found;
        }
        let Some(option) = list.get_mut(at..at + len) else { return found };
        if kind == mptcp::KIND {
            option.fill(NOP);
            found = true;
        }
        at += len;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};
    use anabranch_segment::{CapableFlags, DataSeq, Dss, Flags, MptcpOption, Segment, SynOptions, Timestamps};
    use anabranch_units::SeqNumber;
    use core::net::IpAddr;

    fn packet(segment: &Segment, address: &str) -> Vec<u8> {
        let address: IpAddr = address.parse().unwrap();
        let mut buffer = [0; 256];
        let len = encode(&mut buffer, address, address, segment, |payload| payload.fill(9)).unwrap();
        buffer[..len].to_vec()
    }

    #[test]
    fn only_the_mptcp_options_vanish() {
        let mut plain = Segment::new(Flags::ACK);
        (plain.seq, plain.payload_len) = (SeqNumber(77), 100);
        plain.timestamps = Some(Timestamps { value: 3, echo: 4 });
        let dss = Dss { data_ack: Some(DataSeq { value: 7, wide: true }), ..Dss::default() };
        let multipath = Segment { dss: Some(dss), mptcp: [MptcpOption::Priority { backup: true }].into(), ..plain };
        for address in ["10.0.0.1", "fd00::1"] {
            let mut bytes = packet(&multipath, address);
            bytes.extend([0xee; 3]);
            assert!(strip_mptcp(&mut bytes, true));
            let stripped = decode(&bytes).expect("the checksum is right");
            assert_eq!((&stripped.segment, stripped.payload), (&plain, [9; 100].as_slice()));
            assert!(!strip_mptcp(&mut bytes, false), "nothing is left");
        }
    }

    #[test]
    fn a_syn_may_be_spared() {
        let mut syn = Segment::new(Flags::SYN);
        syn.syn = Some(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
        let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
        let capable = MptcpOption::Capable {
            version: 1,
            flags,
            sender_key: None,
            receiver_key: None,
            data_len: None,
            checksum: None,
        };
        let offering = Segment { mptcp: [capable].into(), ..syn };
        let mut bytes = packet(&offering, "10.0.0.1");
        assert!(!strip_mptcp(&mut bytes, true));
        assert_eq!(decode(&bytes).unwrap().segment, offering);
        assert!(strip_mptcp(&mut bytes, false));
        assert_eq!(decode(&bytes).unwrap().segment, syn);
    }

    #[test]
    fn no_packet_makes_it_panic() {
        let dss = Dss { data_ack: Some(DataSeq { value: 7, wide: true }), ..Dss::default() };
        let good = packet(&Segment { dss: Some(dss), ..Segment::new(Flags::ACK) }, "fd00::1");
        for len in 0..good.len() {
            strip_mptcp(&mut good[..len].to_vec(), false);
        }
        for (at, value) in (0..good.len()).flat_map(|at| (0..=255).map(move |value| (at, value))) {
            let mut bad = good.clone();
            bad[at] = value;
            strip_mptcp(&mut bad, false);
        }
    }
}
