//! The playout buffer: which representation of which media segment it holds.
//!
//! Segments are appended in order, or replace one in the buffer; so the buffer has no gaps.

/// A media segment in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub representation: usize,
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct MediaBuffer {
    held: Vec<Held>,
    total: u32,
}

impl MediaBuffer {
    /// An empty buffer for a video of `total` media segments.
    pub fn new(total: u32) -> Self {
        MediaBuffer { held: Vec::with_capacity(total as usize), total }
    }

    /// The first media segment that is not in the buffer.
    pub fn end(&self) -> u32 {
        self.held.len() as u32
    }

    /// Whether the whole video is in the buffer.
    pub fn is_complete(&self) -> bool {
        self.end() >= self.total
    }

    /// Number of media segments that can be fetched.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Ends the video at the end of the buffer.
    pub fn close(&mut self) {
        self.total = self.end();
    }

    pub fn get(&self, index: u32) -> Option<Held> {
        self.held.get(index as usize).copied()
    }

    /// Appends, or replaces.
    pub fn put(&mut self, index: u32, held: Held) {
        match self.held.get_mut(index as usize) {
            Some(old) => *old = held,
            None => {
                debug_assert_eq!(index, self.end(), "media segments are fetched in order");
                self.held.push(held);
            }
        }
    }

    /// Bytes of the media segments from `index` on.
    pub fn bytes_from(&self, index: u32) -> u64 {
        self.held.iter().skip(index as usize).map(|held| held.bytes).sum()
    }
}
