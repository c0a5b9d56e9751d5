//! What the servers of dialogues have for their clients.

use anabranch_live::{Application, Progress, Reply};

/// Answers the first bytes with a stream.
pub struct Answer {
    len: u64,
    /// The byte of the stream at an offset.
    byte: fn(u64) -> u8,
    asked: bool,
    answered: bool,
}

impl Answer {
    pub fn new(len: u64, byte: fn(u64) -> u8) -> Self {
        Answer { len, byte, asked: false, answered: false }
    }
}

impl Application for Answer {
    fn receive(&mut self, _: &[u8]) {
        self.asked = true;
    }

    fn poll(&mut self, _: Progress) -> Reply {
        if !self.asked || self.answered {
            return Reply::default();
        }
        self.answered = true;
        Reply { bytes: self.len, finish: true, ..Reply::default() }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = (self.byte)(at));
    }
}
