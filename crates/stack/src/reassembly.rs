//! Byte ranges received out of order.
//!
//! Both levels of Multipath TCP need a set of disjoint byte ranges beyond an advancing point, each with a note. (The
//! subflow notes where the bytes belong in the stream, the connection when they arrived.)

use crate::packet_memory::{received_memory, room_behind};
use crate::queue::push_back;
use std::collections::VecDeque;

/// A run of bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<T> {
    pub start: u64,
    pub end: u64,
    pub note: T,
}

/// A note that can be adjusted when the front of its piece is removed.
pub(crate) trait Note: Copy {
    /// The note for the piece without its first `bytes`.
    fn advanced(self, bytes: u64) -> Self;
}

/// A piece and the memory that Linux counts for it.
#[derive(Clone, Copy, Debug)]
struct Held<T> {
    piece: Piece<T>,
    memory: u32,
    /// Bytes of payload that fit behind it and take no memory.
    room: u32,
}

impl<T> Held<T> {
    /// A packet behind this one, if there is one that ends where it begins.
    fn after(before: Option<&Held<T>>, piece: Piece<T>) -> Self {
        let len = piece.end - piece.start;
        let room = before.filter(|held| held.piece.end == piece.start).map_or(0, |held| u64::from(held.room));
        let (memory, room) = if len <= room { (0, room - len) } else { (received_memory(len), room_behind(len)) };
        Held { piece, memory: memory as u32, room: room as u32 }
    }
}

/// Disjoint pieces in ascending order. Arrivals are mostly near either end, where insertion is cheap: a deque
/// moves its shorter side.
#[derive(Clone, Debug)]
pub(crate) struct Reassembly<T> {
    held: VecDeque<Held<T>>,
    bytes: u64,
    /// See [`Reassembly::memory`].
    memory: u64,
}

impl<T> Default for Reassembly<T> {
    fn default() -> Self {
        Reassembly { held: VecDeque::new(), bytes: 0, memory: 0 }
    }
}

impl<T: Note> Reassembly<T> {
    /// Distinct bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory that Linux counts for them, if each piece is a packet. What fits behind the one before takes none.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// How many pieces hold them.
    pub fn pieces(&self) -> usize {
        self.held.len()
    }

    /// The first byte that is held; the highest number if none is.
    pub fn start(&self) -> u64 {
        self.held.front().map_or(u64::MAX, |first| first.piece.start)
    }

    /// One past the last byte that is held; zero if none is.
    pub fn end(&self) -> u64 {
        self.held.back().map_or(0, |last| last.piece.end)
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds the bytes of `piece` that are not held yet; bytes held already are kept. Returns how many were new.
    pub fn insert(&mut self, piece: Piece<T>) -> u64 {
        let before = self.bytes;
        // In order at the end is by far the most frequent case.
        let last = self.held.back();
        if last.is_none_or(|last| last.piece.end <= piece.start) {
            if piece.start < piece.end {
                let held = Held::after(last, piece);
                self.count(&held);
                push_back(&mut self.held, held);
            }
            return self.bytes - before;
        }
        let mut at = self.held.partition_point(|held| held.piece.end <= piece.start);
        let mut rest = piece;
        while rest.start < rest.end {
            let Some(held) = self.held.get(at).map(|held| held.piece).filter(|held| held.start < rest.end) else {
                self.add_at(at, rest);
                break;
            };
            if rest.start < held.start {
                self.add_at(at, Piece { end: held.start, ..rest });
                at += 1;
            }
            if held.end >= rest.end {
                break;
            }
            let cut = held.end.saturating_sub(rest.start);
            rest = Piece { start: held.end, end: rest.end, note: rest.note.advanced(cut) };
            at += 1;
        }
        self.bytes - before
    }

    /// Removes and returns the first piece if nothing is missing before it, without what lies before `next`.
    pub fn pop_ready(&mut self, next: u64) -> Option<Piece<T>> {
        loop {
            let Held { piece: first, memory, .. } = *self.held.front()?;
            if first.start > next {
                return None;
            }
            self.held.pop_front();
            self.bytes -= first.end - first.start;
            self.memory -= u64::from(memory);
            if first.end > next {
                let cut = next - first.start;
                return Some(Piece { start: next, end: first.end, note: first.note.advanced(cut) });
            }
        }
    }

    fn add_at(&mut self, at: usize, piece: Piece<T>) {
        if piece.start < piece.end {
            let before = at.checked_sub(1).and_then(|before| self.held.get(before));
            let held = Held::after(before, piece);
            self.count(&held);
            self.held.insert(at, held);
        }
    }

    fn count(&mut self, held: &Held<T>) {
        self.bytes += held.piece.end - held.piece.start;
        self.memory += u64::from(held.memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct At(u64);
    impl Note for At {
        fn advanced(self, bytes: u64) -> Self {
            At(self.0 + bytes)
        }
    }

    fn piece(start: u64, end: u64) -> Piece<At> {
        Piece { start, end, note: At(start + 1000) }
    }

    #[test]
    fn a_late_piece_fills_the_hole_and_frees_what_waited() {
        let mut held = Reassembly::default();
        assert_eq!(held.insert(piece(10, 20)), 10);
        assert_eq!(held.insert(piece(30, 40)), 10);
        assert_eq!(held.insert(piece(5, 35)), 15);
        assert_eq!(held.bytes(), 35);
        assert_eq!(held.pop_ready(4), None);
        assert_eq!(held.pop_ready(7), Some(Piece { start: 7, end: 10, note: At(1007) }));
        assert_eq!(held.pop_ready(10).map(|p| p.end), Some(20));
        assert_eq!(held.pop_ready(20).map(|p| p.end), Some(30));
        assert_eq!(held.pop_ready(40), None);
        assert!(held.is_empty());
    }

    /// A full segment has 1,420 bytes in 2,304 of memory, of which 164 are left behind it; a short one of 200 has 360
    /// of 1,280.
    #[test]
    fn what_fits_behind_the_packet_before_takes_no_memory() {
        let memory = |pieces: &[(u64, u64)]| {
            let mut held = Reassembly::default();
            pieces.iter().for_each(|&(start, end)| _ = held.insert(piece(start, end)));
            held.memory()
        };
        assert_eq!(memory(&[(0, 1_420), (1_420, 1_584)]), 2_304);
        assert_eq!(memory(&[(0, 1_420), (1_420, 1_585)]), 2_304 + 1_280);
        assert_eq!(memory(&[(0, 200), (200, 400), (400, 560), (560, 700)]), 1_280 + 1_280, "each takes from the room");
        assert_eq!(memory(&[(0, 200), (201, 300)]), 1_280 + 1_280, "a hole is between them");
        assert_eq!(memory(&[(0, 200), (400, 600), (200, 400)]), 1_280 + 1_280, "also where it fills a hole");
    }

    #[test]
    fn memory_is_free_once_its_packet_has_gone() {
        let mut held = Reassembly::default();
        for (start, end) in [(0, 200), (200, 400), (400, 1_820)] {
            held.insert(piece(start, end));
        }
        assert_eq!(held.memory(), 1_280 + 2_304);
        let left = [0, 200, 400].map(|next| held.pop_ready(next).map(|_| held.memory()));
        assert_eq!(left, [Some(2_304), Some(2_304), Some(0)]);
    }

    proptest! {
        /// Against the obvious model: a flag for each byte.
        #[test]
        fn holds_exactly_the_bytes_inserted(inserts in prop::collection::vec((0u64..120, 1u64..30), 1..40)) {
            let mut held = Reassembly::default();
            let mut model = [false; 160];
            for (start, len) in inserts {
                let new = (start..start + len).filter(|b| !std::mem::replace(&mut model[*b as usize], true)).count();
                prop_assert_eq!(held.insert(piece(start, start + len)), new as u64);
            }
            let mut next = 0;
            while next < 160 {
                match held.pop_ready(next) {
                    Some(p) => {
                        prop_assert_eq!(p.start, next);
                        prop_assert_eq!(p.note, At(next + 1000));
                        prop_assert!((p.start..p.end).all(|b| model[b as usize]));
                        next = p.end;
                    }
                    None => {
                        prop_assert!(!model[next as usize]);
                        next += 1;
                    }
                }
            }
            prop_assert!(held.is_empty());
        }
    }
}
