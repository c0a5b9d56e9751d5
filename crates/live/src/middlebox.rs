//! What stands in the way between the ends of a link and changes packets: worn cables, and boxes that know better.

use anabranch_network::{Probability, Streams};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Which segments lose their MPTCP options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strip {
    /// None.
    #[default]
    Nothing,
    /// All: the ends find out in the handshake.
    Everywhere,
    /// All but those with SYN: the ends agree on MPTCP first.
    BehindHandshake,
}

/// What happens to the packets of a link, both directions alike, before they enter it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Middlebox {
    /// How many packets have one of their bits flipped, anywhere from the IP header on. Checksums stay as they
    /// are: finding out is the receiver's task.
    pub corruption: Probability,
    /// Which segments lose their MPTCP options; no-operation options take their place, and checksums are set right.
    pub strip: Strip,
}

/// What a middlebox did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meddled {
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Segments that lost an option.
    pub stripped: u64,
}

/// A middlebox at work in one direction.
#[derive(Debug)]
pub(crate) struct Meddler {
    middlebox: Middlebox,
    rng: ChaCha8Rng,
    pub meddled: Meddled,
}

impl Meddler {
    pub(crate) fn new(middlebox: Middlebox, streams: &Streams) -> Self {
        Meddler { middlebox, rng: streams.stream("middlebox"), meddled: Meddled::default() }
    }

    pub(crate) fn pass(&mut self, packet: &mut [u8]) {
        if self.middlebox.strip != Strip::Nothing {
            let spare_syn = self.middlebox.strip == Strip::BehindHandshake;
            self.meddled.stripped += u64::from(anabranch_wire::strip_mptcp(packet, spare_syn));
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
            self.meddled.corrupted += 1;
        }
    }
}
