//! What servers without the operating system have for their clients.

use anabranch_live::{Application, Progress, Reply};

/// The byte of every stream at an offset.
pub fn content(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Answers the first bytes with a stream.
pub struct Answer {
    len: u64,
    asked: bool,
    answered: bool,
    leaves: bool,
}

impl Answer {
    pub fn new(len: u64) -> Self {
        Answer { len, asked: false, answered: false, leaves: false }
    }

    /// One that is gone once it has written everything.
    #[allow(dead_code)] // Not all tests have slow clients.
    pub fn leaving(len: u64) -> Self {
        Answer { leaves: true, ..Answer::new(len) }
    }
}

impl Application for Answer {
    fn receive(&mut self, _: &[u8]) {
        self.asked = true;
    }

    fn poll(&mut self, _: Progress) -> Reply {
        if !self.asked || self.answered {
            return Reply { leave: self.leaves && self.answered, ..Reply::default() };
        }
        self.answered = true;
        Reply { bytes: self.len, finish: true, leave: self.leaves, ..Reply::default() }
    }

    fn fill(&self, offset: u64, buffer: &mut [u8]) {
        assert!(offset + buffer.len() as u64 <= self.len, "only announced bytes are requested");
        buffer.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = content(at));
    }
}
