//! Writing big-endian fields into a buffer whose size was checked beforehand.

/// The option that says nothing: one byte of padding (RFC 9293 section 3.2).
pub(crate) const NOP: u8 = 1;

/// A cursor over the caller's buffer.
///
/// Its methods panic at the buffer's end: the encoder computes the length of all headers first and refuses a
/// buffer that is too small, so reaching the end is a broken invariant of this crate, never bad input.
pub(crate) struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(buffer: &'a mut [u8]) -> Self {
        Writer { buffer, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Overwrites a byte written before.
    pub(crate) fn patch(&mut self, at: usize, value: u8) {
        self.buffer[..self.at][at] = value;
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_be_bytes());
    }
}
