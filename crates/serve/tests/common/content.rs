//! A byte stream whose bytes at any offset can be generated and checked without the rest.

use sha2::{Digest, Sha256};

/// The 8-byte word at `index`: SplitMix64 (Steele, Lea, Flood 2014), so that all words differ.
fn word(index: u64) -> [u8; 8] {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

/// Writes the bytes of the stream from `offset` on.
pub fn fill(offset: u64, bytes: &mut [u8]) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        let at = offset + i as u64;
        *byte = word(at / 8)[(at % 8) as usize];
    }
}

/// The SHA-256 of `head` and the stream's first `len` bytes.
pub fn digest(head: &[u8], len: u64) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(head);
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    while at < len {
        let n = (buffer.len() as u64).min(len - at) as usize;
        fill(at, &mut buffer[..n]);
        hash.update(&buffer[..n]);
        at += n as u64;
    }
    hash.finalize().into()
}
