//! The bytes of a receive stream, keyed by their offset.

use std::collections::VecDeque;

/// Holds bytes from the first one that the application has not read to the last one that has arrived. The endpoint
/// limits what is accepted, so the buffer is no larger than the advertised receive window.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    /// The stream offset of the first byte.
    base: u64,
    bytes: VecDeque<u8>,
}

/// Capacity that an empty buffer keeps, which a connection without an upload does not exceed.
const KEPT: usize = 64 << 10;

impl ReceiveBuffer {
    /// Stores bytes at their offset; bytes read already are skipped. Gaps hold zeros until they are filled.
    pub(crate) fn store(&mut self, offset: u64, bytes: &[u8]) {
        let known = self.base.saturating_sub(offset);
        let Some(bytes) = usize::try_from(known).ok().and_then(|known| bytes.get(known..)) else { return };
        let start = (offset + known - self.base) as usize;
        let end = start + bytes.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (front, back) = self.bytes.as_mut_slices();
        let in_front = front.len().saturating_sub(start).min(bytes.len());
        if in_front > 0 {
            front[start..start + in_front].copy_from_slice(&bytes[..in_front]);
        }
        if in_front < bytes.len() {
            let at = start + in_front - front.len();
            back[at..at + bytes.len() - in_front].copy_from_slice(&bytes[in_front..]);
        }
    }

    /// Passes the first `len` bytes, in one slice or two, to `reader` and removes them.
    pub(crate) fn consume(&mut self, len: usize, mut reader: impl FnMut(&[u8])) {
        let (front, back) = self.bytes.as_slices();
        let in_front = front.len().min(len);
        for piece in [&front[..in_front], &back[..len - in_front]] {
            if !piece.is_empty() {
                reader(piece);
            }
        }
        self.bytes.drain(..len);
        self.base += len as u64;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
        }
    }

    /// Bytes of memory that it occupies.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(range: std::ops::Range<u64>) -> Vec<u8> {
        range.map(|i| (i % 253) as u8).collect()
    }

    #[test]
    fn bytes_come_out_in_order_however_they_went_in() {
        let mut buffer = ReceiveBuffer::default();
        let mut read = Vec::new();
        // Out of order, overlapping, duplicated, and across the end of the ring.
        for round in 0..50u64 {
            let at = round * 70;
            for (from, to) in [(40, 70), (10, 30), (0, 15), (25, 45), (0, 5)] {
                buffer.store(at + from, &content(at + from..at + to));
            }
            for len in [33, 37] {
                buffer.consume(len, |piece| read.extend_from_slice(piece));
            }
            buffer.store(at + 60, &content(at + 60..at + 70));
            buffer.store(at, &[0xff; 5]);
        }
        assert_eq!(read, content(0..50 * 70));
        assert_eq!(buffer.bytes.len(), 0, "old bytes leave nothing behind");
        assert!(buffer.bytes.capacity() < 1000);
    }
}
