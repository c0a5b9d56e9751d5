//! Counts the memory that connections hold.

use hyper::body::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of bytes that are held at present, shared by all who hold some.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Bytes that are held.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A buffer of `len` zeros.
    pub(super) fn hold(&self, len: usize) -> Held {
        self.add(len);
        Held { bytes: vec![0; len], len, meter: self.clone() }
    }

    /// More bytes are held.
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Fewer bytes are held.
    pub(super) fn remove(&self, bytes: usize) {
        self.0.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// A buffer that counts until it is dropped.
#[derive(Debug)]
pub(super) struct Held {
    bytes: Vec<u8>,
    /// Bytes of the buffer that are of use.
    len: usize,
    meter: Meter,
}

impl Held {
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The first `len` bytes. They count until their last user has dropped them.
    pub(super) fn into_bytes(mut self, len: usize) -> Bytes {
        self.len = len;
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.meter.remove(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_counts_until_its_last_user_drops_it() {
        let meter = Meter::default();
        let bytes = meter.hold(1000).into_bytes(10);
        let part = bytes.slice(5..);
        drop(bytes);
        assert_eq!((part.len(), meter.bytes()), (5, 1000));
        drop(part);
        assert_eq!(meter.bytes(), 0);
    }
}
