//! A hostile client over plain TCP.

use crate::answer::Answer;
use crate::world::{PORT, World, segment, world};
use crate::{EVIL, LEN, rogue::PATH, wait};
use anabranch_live::{Limits, Opened};
use anabranch_segment::{Flags, Segment, SynOptions};
use anabranch_units::SeqNumber;

const ISN: SeqNumber = SeqNumber(u32::MAX - 100);
const FROM: u16 = 667;

/// A connection of plain TCP, without scaled windows or timestamps.
struct Plain {
    /// The server's first number after its SYN.
    ack: SeqNumber,
}

impl Plain {
    /// Connects, and sends a request of ten bytes.
    fn ask<F: FnMut(Opened) -> Answer>(world: &mut World<F>) -> Self {
        let options = SynOptions { mss: 1460, window_scale: None, sack_permitted: true };
        world.forge(PATH, EVIL, &Segment { seq: ISN, syn: Some(options), ..segment(Flags::SYN, FROM) });
        let answer = world.emitted(EVIL, FROM).pop().expect("SYN/ACK");
        assert_eq!((answer.flags, answer.source_port), (Flags::SYN | Flags::ACK, PORT));
        let plain = Plain { ack: answer.seq + 1 };
        world.forge(PATH, EVIL, &plain.segment(0, 0, u16::MAX));
        world.forge(PATH, EVIL, &Segment { payload_len: 10, ..plain.segment(0, 0, u16::MAX) });
        plain
    }

    /// A segment behind `at` bytes that acknowledges `acked` bytes.
    fn segment(&self, at: u32, acked: u32, window: u16) -> Segment {
        Segment { seq: ISN + 1 + at, ack: self.ack + acked, window, ..segment(Flags::ACK, FROM) }
    }
}

/// Bytes of payload that the server has sent since the last call.
fn payload<F: FnMut(Opened) -> Answer>(world: &mut World<F>) -> u32 {
    world.emitted(EVIL, FROM).iter().map(|segment| segment.payload_len).sum()
}

#[test]
fn a_shrunk_window_is_respected() {
    for (window, expected) in [(0, 0), (100, 0), (3_000, 2_920)] {
        let mut world = world(Limits::default(), LEN);
        let plain = Plain::ask(&mut world);
        assert_eq!(payload(&mut world), 14_600, "the initial window");
        world.forge(PATH, EVIL, &plain.segment(10, 14_600, window));
        // The rogue answers at once, so that the tail-loss probe is due after two milliseconds already.
        wait(&mut world, 1);
        assert_eq!(payload(&mut world), expected, "window {window}");
        // It opens again.
        world.forge(PATH, EVIL, &plain.segment(10, 14_600 + expected, 20_000));
        assert!(payload(&mut world) > 10_000, "window {window}");
    }
}
