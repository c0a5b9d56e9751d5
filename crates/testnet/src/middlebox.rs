//! Middleboxes: corruption of packets and removal of MPTCP options in front of a link.

use anabranch_network::{Probability, Streams};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Which segments lose their MPTCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strip {
    /// No segments.
    #[default]
    Nothing,
    /// All segments: the ends detect it in the handshake.
    Everywhere,
    /// All segments without SYN: the ends negotiate MPTCP first.
    BehindHandshake,
}

/// Changes to the packets of a link, the same for both directions, before they enter it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Middlebox {
    /// The share of packets of which one bit is flipped, anywhere from the IP header on. Checksums are left unchanged,
    /// so that the receiver can detect it.
    pub corruption: Probability,
    /// Which segments lose their MPTCP options; no-operation options replace them, and checksums are corrected.
    pub strip: Strip,
}

/// Counters of a middlebox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MiddleboxCounts {
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Segments that lost an option.
    pub stripped: u64,
}

/// The middlebox of one direction.
#[derive(Debug)]
pub(crate) struct ActiveMiddlebox {
    middlebox: Middlebox,
    rng: ChaCha8Rng,
    pub counts: MiddleboxCounts,
}

impl ActiveMiddlebox {
    pub(crate) fn new(middlebox: Middlebox, streams: &Streams) -> Self {
        ActiveMiddlebox { middlebox, rng: streams.stream("middlebox"), counts: MiddleboxCounts::default() }
    }

    pub(crate) fn pass(&mut self, packet: &mut [u8]) {
        if self.middlebox.strip != Strip::Nothing {
            let spare_syn = self.middlebox.strip == Strip::BehindHandshake;
            self.counts.stripped += u64::from(anabranch_wire::strip_mptcp(packet, spare_syn));
        }
        if self.middlebox.corruption != Probability::ZERO && self.middlebox.corruption.draw(&mut self.rng) {
            self.flip(packet);
        }
    }

    fn flip(&mut self, packet: &mut [u8]) {
        // At most 65 535 bytes, so that the bias of the remainder is below 2^-44.
        let bit = self.rng.next_u64() % (packet.len() as u64 * 8).max(1);
        if let Some(byte) = packet.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
            self.counts.corrupted += 1;
        }
    }
}
