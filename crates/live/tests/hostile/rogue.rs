//! A hostile client with a full implementation of Multipath TCP.

use crate::answer::Answer;
use crate::world::{PORT, World, segment};
use anabranch_live::Opened;
use anabranch_segment::{CapableFlags, DataSeq, Dss, Flags, Mapping, MptcpOption, Segment, SynOptions};
use anabranch_units::{PathId, SeqNumber};
use sha2::{Digest, Sha256};
use std::net::IpAddr;

const KEY: u64 = 0x6666_7777_8888_9999;
const ISN: SeqNumber = SeqNumber(u32::MAX - 500);
pub const PATH: PathId = PathId(0);

pub fn initial_data_seq(key: u64) -> u64 {
    let hash: [u8; 32] = Sha256::digest(key.to_be_bytes()).into();
    u64::from_be_bytes(hash[24..].try_into().expect("8 bytes"))
}

fn capable(sender_key: Option<u64>, receiver_key: Option<u64>) -> MptcpOption {
    let flags = CapableFlags { hmac_sha256: true, ..CapableFlags::default() };
    MptcpOption::Capable { version: 1, flags, sender_key, receiver_key, data_len: None, checksum: None }
}

pub fn syn(from: u16) -> Segment {
    let options = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
    Segment { seq: ISN, syn: Some(options), mptcp: [capable(None, None)].into(), ..segment(Flags::SYN, from) }
}

/// A connection with valid keys.
pub struct Rogue {
    pub address: IpAddr,
    pub port: u16,
    pub server_key: u64,
    /// The server's first number after its SYN.
    pub ack: SeqNumber,
    window: u16,
}

impl Rogue {
    pub fn connect<F: FnMut(Opened) -> Answer>(world: &mut World<F>, address: IpAddr, port: u16) -> Self {
        Rogue::connect_with(world, address, port, u16::MAX)
    }

    /// [`Rogue::connect`] with a given window in all its segments.
    pub fn connect_with<F: FnMut(Opened) -> Answer>(
        world: &mut World<F>,
        address: IpAddr,
        port: u16,
        window: u16,
    ) -> Self {
        world.forge(PATH, address, &Segment { window, ..syn(port) });
        let answer = world.emitted(address, port).pop().expect("SYN/ACK");
        assert_eq!((answer.flags, answer.source_port), (Flags::SYN | Flags::ACK, PORT));
        let server_key = answer.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable { sender_key, .. } => *sender_key,
            _ => None,
        });
        let rogue = Rogue { address, port, server_key: server_key.expect("a key"), ack: answer.seq + 1, window };
        let keys = capable(Some(KEY), Some(rogue.server_key));
        world.forge(PATH, address, &Segment { mptcp: [keys].into(), ..rogue.segment(0) });
        // The first DSS, with a window.
        world.forge(PATH, address, &Segment { dss: Some(rogue.data_ack(0)), ..rogue.segment(0) });
        world.emitted(address, port);
        rogue
    }

    /// Sends the first byte as a request, so that the server answers.
    pub fn ask<F: FnMut(Opened) -> Answer>(&self, world: &mut World<F>) {
        self.say(world, &self.data(0, 0, 10));
    }

    pub fn say<F: FnMut(Opened) -> Answer>(&self, world: &mut World<F>, segment: &Segment) {
        world.forge(PATH, self.address, segment);
    }

    /// An acknowledgment with a number `at` bytes behind the SYN.
    pub fn segment(&self, at: u32) -> Segment {
        Segment { seq: ISN + 1 + at, ack: self.ack, window: self.window, ..segment(Flags::ACK, self.port) }
    }

    /// The DATA_ACK of `bytes` bytes of the server's.
    pub fn data_ack(&self, bytes: u64) -> Dss {
        let value = initial_data_seq(self.server_key).wrapping_add(1).wrapping_add(bytes);
        Dss { data_ack: Some(DataSeq { value, wide: true }), mapping: None, data_fin: false }
    }

    /// `len` bytes at the subflow's byte `at`, mapped to the stream's byte `stream`.
    pub fn data(&self, at: u32, stream: u64, len: u16) -> Segment {
        let dsn = DataSeq { value: initial_data_seq(KEY).wrapping_add(1).wrapping_add(stream), wide: true };
        let mapping = Mapping { dsn, subflow_offset: at + 1, len, checksum: None };
        let dss = Dss { mapping: Some(mapping), ..self.data_ack(0) };
        Segment { payload_len: u32::from(len), dss: Some(dss), ..self.segment(at) }
    }
}
