//! Checks that tshark, on which the other tests rely, reports faults.

use crate::common::capture::{self, CaptureFile};
use crate::common::require;
use anabranch_segment::{DataSeq, Dss, Flags, Segment};
use anabranch_testnet::requirements::TSHARK;
use anabranch_units::Instant;
use anabranch_wire::capture::{Capture, PacketDirection};
use std::fs::File;
use std::panic::catch_unwind;

/// A capture of one acknowledgment with DSS, after `change` to its bytes; its checksum is right unless `change` comes
/// `late`.
fn capture_of(name: &str, late: bool, change: impl Fn(&mut [u8])) -> CaptureFile {
    let mut segment = Segment::new(Flags::ACK);
    segment.source_port = crate::common::kernel::PORT;
    segment.dss = Some(Dss { data_ack: Some(DataSeq { value: 7, wide: true }), mapping: None, data_fin: false });
    let mut packet = [0; 128];
    let address = [10, 1, 0, 2].into();
    let len = anabranch_wire::encode(&mut packet, address, address, &segment, |_| {}).expect("fits");
    let packet = &mut packet[..len];
    if late {
        change(packet);
    } else {
        change(packet);
        packet[36..38].fill(0);
        let sum = anabranch_wire::checksum::Sum::default().bytes(&packet[12..20]).word(6).word(len as u16 - 20);
        let checksum = sum.bytes(&packet[20..]).finish();
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
    }
    let file = CaptureFile::new(name);
    let mut capture = Capture::new(File::create(file.path()).expect("a file")).expect("a header");
    let interface = capture.interface("test").expect("an interface");
    capture.packet(interface, Instant::ZERO, PacketDirection::Inbound, packet).expect("a packet");
    capture.finish().expect("all is written");
    file
}

fn complains(file: &CaptureFile) -> bool {
    catch_unwind(|| capture::assert_well_formed(file)).is_err()
}

#[test]
fn tshark_notices_what_is_wrong() {
    require!(&[TSHARK]);
    let good = capture_of("good", false, |_| {});
    assert!(!complains(&good));
    assert_eq!(capture::mptcp_options(&good), [(2, 1)].into());
    assert!(complains(&capture_of("checksum", true, |packet| packet[36] ^= 1)), "a wrong TCP checksum");
    assert!(complains(&capture_of("ip-checksum", true, |packet| packet[10] ^= 1)), "a wrong IP checksum");
    // The option begins at byte 40 with its kind, its length follows.
    assert!(complains(&capture_of("length", false, |packet| packet[41] = 8)), "a signal shorter than its flags say");
}
