//! IP packets as the link emulator carries them.

use anabranch_network::Packet;

/// An IP packet's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesPacket(Vec<u8>);

impl BytesPacket {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl BytesPacket {
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Packet for BytesPacket {
    fn bytes(&self) -> u32 {
        // Devices give no more than 65 535 bytes.
        self.0.len() as u32
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

/// Packets that may wait for reuse; more are freed. Two full queues of typical links.
const POOL_LIMIT: usize = 4096;

/// Buffers of delivered packets, kept for the next ones, so that a steady flow allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Vec<u8>>);

impl Pool {
    /// A packet with these bytes.
    pub(crate) fn packet(&mut self, bytes: &[u8]) -> BytesPacket {
        let mut buffer = self.0.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        BytesPacket(buffer)
    }

    /// Takes a packet's buffer back.
    pub(crate) fn recycle(&mut self, packet: BytesPacket) {
        if self.0.len() < POOL_LIMIT {
            self.0.push(packet.0);
        }
    }
}
