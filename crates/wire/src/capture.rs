//! Packet captures as pcapng files (IETF draft-ietf-opsawg-pcapng), which Wireshark and tshark read.

use anabranch_units::Instant;
use std::io::{self, Write};

/// Block types (draft section 11.1).
mod block {
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const ENHANCED_PACKET: u32 = 6;
}

/// Options of blocks (draft sections 3.5 and 4).
mod option {
    pub const END: u16 = 0;
    pub const INTERFACE_NAME: u16 = 2;
    pub const TIMESTAMP_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
}

/// The byte order of what follows: we write little endian.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// LINKTYPE_RAW: packets begin with their IPv4 or IPv6 header.
const LINK_TYPE_RAW: u16 = 101;
/// Timestamps count units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the capturing host.
    Inbound,
    /// Away from it.
    Outbound,
}

/// Writes a pcapng section. Times count from the run's beginning, which appears as the epoch of 1970.
///
/// Every method fails only if the underlying writer does. Dropping a capture does not flush; see [`Capture::finish`].
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    interfaces: u32,
    /// Reused for every block, because a block's length stands before its content.
    body: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Starts a capture.
    pub fn new(out: W) -> io::Result<Self> {
        let mut capture = Capture { out, interfaces: 0, body: Vec::new() };
        capture.u32(BYTE_ORDER_MAGIC);
        capture.u16(1); // major version
        capture.u16(0); // minor version
        capture.u32(u32::MAX); // section length: not known,
        capture.u32(u32::MAX); // in 64 bits
        capture.flush_block(block::SECTION_HEADER)?;
        Ok(capture)
    }

    /// Declares an interface.
    pub fn interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        self.u16(LINK_TYPE_RAW);
        self.u16(0); // reserved
        self.u32(0); // no limit to a packet's length
        self.option(option::INTERFACE_NAME, name.as_bytes());
        self.option(option::TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        self.option(option::END, &[]);
        self.flush_block(block::INTERFACE)?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Appends a packet.
    pub fn packet(&mut self, on: InterfaceId, at: Instant, way: Direction, packet: &[u8]) -> io::Result<()> {
        let nanos = at.as_nanos();
        self.u32(on.0);
        self.u32((nanos >> 32) as u32);
        self.u32(nanos as u32);
        self.u32(packet.len() as u32);
        self.u32(packet.len() as u32);
        self.padded(packet);
        let flags: u32 = match way {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.option(option::PACKET_FLAGS, &flags.to_le_bytes());
        self.option(option::END, &[]);
        self.flush_block(block::ENHANCED_PACKET)
    }

    /// Flushes and gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn u16(&mut self, value: u16) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.body.extend_from_slice(&value.to_le_bytes());
    }

    /// Everything in a block is aligned to 32 bits.
    fn padded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    /// Writes what `body` holds as a block: type, length, content, length again.
    fn flush_block(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&len)?;
        self.body.clear();
        Ok(())
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
        capture.packet(b, Instant::from_nanos((7 << 32) + 5), Direction::Outbound, &[0x45, 1, 2, 3, 4]).unwrap();
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
}
