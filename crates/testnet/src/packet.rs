//! IP packets as the link emulator carries them.

use anabranch_network::Packet;
use anabranch_units::PathId;

/// The bytes of an IP packet, and its position on its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesPacket {
    bytes: Vec<u8>,
    /// Its path.
    pub(crate) path: PathId,
    /// Number of links passed.
    pub(crate) passed: u8,
}

impl BytesPacket {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Packet for BytesPacket {
    fn bytes(&self) -> u32 {
        // Devices return at most 65 535 bytes.
        self.bytes.len() as u32
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// Buffers kept for reuse; more are freed. Two full queues of typical links.
const POOL_LIMIT: usize = 4096;

/// Buffers of delivered packets for reuse, so that a steady flow allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Vec<u8>>);

impl Pool {
    /// A packet with these bytes at the beginning of its path.
    pub(crate) fn packet(&mut self, path: PathId, bytes: &[u8]) -> BytesPacket {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        BytesPacket { bytes: buffer, path, passed: 0 }
    }

    /// Returns a packet's buffer to the pool.
    pub(crate) fn recycle(&mut self, packet: BytesPacket) {
        if self.0.len() < POOL_LIMIT {
            self.0.push(packet.bytes);
        }
    }
}
