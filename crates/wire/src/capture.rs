//! Packet captures as pcapng files (IETF draft-ietf-opsawg-pcapng), which Wireshark and tshark read.

use anabranch_units::Instant;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

/// Timestamps count units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// An interface's limit to the length of packets: none.
const NO_LIMIT: u32 = 0;

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// Towards the capturing host.
    Inbound,
    /// Away from it.
    Outbound,
}

impl PacketDirection {
    /// The lowest two bits of the option `epb_flags` (draft section 4.3.1).
    fn flags(self) -> u32 {
        match self {
            PacketDirection::Inbound => 1,
            PacketDirection::Outbound => 2,
        }
    }
}

/// Writes a pcapng section of packets that begin with their IPv4 or IPv6 header. Times count from the run's beginning,
/// which appears as the epoch of 1970.
///
/// Every method fails only if the underlying writer does. Dropping a capture does not flush; see [`Capture::finish`].
pub struct Capture<W: Write> {
    out: PcapNgWriter<W>,
    interfaces: u32,
}

impl<W: Write> Capture<W> {
    /// Starts a capture.
    pub fn new(out: W) -> io::Result<Self> {
        // One byte order on every machine, so that captures can be compared.
        let out = PcapNgWriter::with_endianness(out, Endianness::Little).map_err(cause)?;
        Ok(Capture { out, interfaces: 0 })
    }

    /// Declares an interface.
    pub fn interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: NO_LIMIT, options };
        self.out.write_pcapng_block(block).map_err(cause)?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Appends a packet.
    pub fn packet(&mut self, on: InterfaceId, at: Instant, way: PacketDirection, packet: &[u8]) -> io::Result<()> {
        self.beginning(on, at, way, packet, packet.len())
    }

    /// Appends a packet of `len` bytes, of which only the first ones are kept.
    pub fn beginning(
        &mut self,
        on: InterfaceId,
        at: Instant,
        way: PacketDirection,
        kept: &[u8],
        len: usize,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: on.0,
            timestamp: Duration::from_nanos(at.as_nanos()),
            original_len: len as u32,
            data: Cow::Borrowed(kept),
            options: vec![EnhancedPacketOption::Flags(way.flags())],
        };
        self.out.write_pcapng_block(block).map_err(cause)?;
        Ok(())
    }

    /// Flushes and gives the writer back.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.out.into_inner();
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

/// The writer's own error; the library's others are about blocks that are not written here.
fn cause(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
    }

    #[test]
    fn blocks_stand_one_behind_the_other() {
        let mut capture = Capture::new(Vec::new()).unwrap();
        let a = capture.interface("wifi").unwrap();
        let b = capture.interface("lte").unwrap();
        assert_ne!(a, b);
        capture.packet(b, Instant::from_nanos((7 << 32) + 5), PacketDirection::Outbound, &[0x45, 1, 2, 3, 4]).unwrap();
        let file = words(&capture.finish().unwrap());

        assert_eq!(file[..7], [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        let mut blocks = Vec::new();
        let mut at = 0;
        while at < file.len() {
            let len = file[at + 1] as usize / 4;
            assert_eq!(file[at + len - 1] as usize, 4 * len, "the length stands at both ends");
            blocks.push(&file[at..at + len]);
            at += len;
        }
        assert_eq!(blocks.iter().map(|b| b[0]).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 1, 6]);
        let packet = blocks[3];
        assert_eq!(packet[2..7], [1, 7, 5, 5, 5], "interface, time, captured and original length");
        assert_eq!(packet[7..9], [0x0302_0145, 4], "the packet, padded");
        assert_eq!(packet[9..12], [0x0004_0002, 2, 0], "outbound, end of options");
    }

    #[test]
    fn of_a_packet_that_is_not_kept_whole_the_capture_has_both_lengths() {
        let mut capture = Capture::new(Vec::new()).unwrap();
        let wifi = capture.interface("wifi").unwrap();
        capture.beginning(wifi, Instant::ZERO, PacketDirection::Inbound, &[0x45, 1, 2, 3], 1500).unwrap();
        let file = words(&capture.finish().unwrap());
        let packet = &file[17..];
        assert_eq!(packet[..7], [6, packet[1], 0, 0, 0, 4, 1500], "interface, time, captured and original length");
    }

    #[test]
    fn an_interface_has_a_name_and_counts_nanoseconds() {
        let mut capture = Capture::new(Vec::new()).unwrap();
        capture.interface("wifi").unwrap();
        let file = words(&capture.finish().unwrap());
        let name = u32::from_le_bytes(*b"wifi");
        // Type, length; LINKTYPE_RAW, no limit; if_name; if_tsresol 9, padded; end of options; length.
        assert_eq!(file[7..], [1, 40, 101, 0, 0x0004_0002, name, 0x0001_0009, 9, 0, 40]);
    }

    #[test]
    fn what_the_writer_says_is_what_the_caller_hears() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(Capture::new(Full).map(|_| ()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
