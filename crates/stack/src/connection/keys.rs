//! Keys, tokens and HMACs (RFC 8684 section 3.1 to 3.4).

use core::net::IpAddr;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// Values derived from one side's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub value: u64,
    /// Identifies the connection in a join: the first 32 bits of the key's hash.
    pub token: u32,
    /// The initial data sequence number: the last 64 bits of the hash.
    pub idsn: u64,
}

#[cfg(test)]
thread_local! {
    /// For tests: replaces every initial data sequence number of this thread. No key can be found by trial whose number
    /// is just before 2^64.
    pub(crate) static FIRST_NUMBER: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

impl Key {
    pub fn new(value: u64) -> Self {
        let hash: [u8; 32] = Sha256::digest(value.to_be_bytes()).into();
        let mut token = [0; 4];
        token.copy_from_slice(&hash[..4]);
        let mut idsn = [0; 8];
        idsn.copy_from_slice(&hash[24..]);
        #[cfg(test)]
        if let Some(first) = FIRST_NUMBER.get() {
            idsn = first.to_be_bytes();
        }
        Key { value, token: u32::from_be_bytes(token), idsn: u64::from_be_bytes(idsn) }
    }
}

/// HMAC by the owner of `signer`, which shows that it knows both keys.
fn hmac(signer: Key, peer: Key, message: &[u8]) -> [u8; 32] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&signer.value.to_be_bytes());
    key[8..].copy_from_slice(&peer.value.to_be_bytes());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The HMAC of a join: over the signer's nonce and the peer's.
pub(crate) fn join_hmac(signer: Key, peer: Key, signer_nonce: u32, peer_nonce: u32) -> [u8; 32] {
    let mut message = [0; 8];
    message[..4].copy_from_slice(&signer_nonce.to_be_bytes());
    message[4..].copy_from_slice(&peer_nonce.to_be_bytes());
    hmac(signer, peer, &message)
}

/// HMAC of ADD_ADDR: the rightmost 64 bits, over the address ID, the address and its port, zero if there is none (RFC
/// 8684 section 3.4.1).
pub(crate) fn address_hmac(signer: Key, peer: Key, id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let mut message = vec![id];
    match address {
        IpAddr::V4(v4) => message.extend(v4.octets()),
        IpAddr::V6(v6) => message.extend(v6.octets()),
    }
    message.extend(port.unwrap_or(0).to_be_bytes());
    let mut right = [0; 8];
    right.copy_from_slice(&hmac(signer, peer, &message)[24..]);
    u64::from_be_bytes(right)
}

/// The leftmost 64 bits, as the SYN/ACK of a join carries them.
pub(crate) fn leftmost_64(hmac: &[u8; 32]) -> u64 {
    let mut left = [0; 8];
    left.copy_from_slice(&hmac[..8]);
    u64::from_be_bytes(left)
}

/// The leftmost 160 bits, as the third segment of a join carries them.
pub(crate) fn leftmost_160(hmac: &[u8; 32]) -> [u8; 20] {
    let mut left = [0; 20];
    left.copy_from_slice(&hmac[..20]);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_and_idsn_are_the_ends_of_the_hash() {
        // `sha256sum` of eight zero bytes prints af5570f5...e5b2328de0e83dfc.
        let key = Key::new(0);
        assert_eq!(key.token, 0xaf55_70f5);
        assert_eq!(key.idsn, 0xe5b2_328d_e0e8_3dfc);
    }

    #[test]
    fn the_order_of_keys_and_nonces_matters() {
        let (a, b) = (Key::new(1), Key::new(2));
        let proof = join_hmac(a, b, 3, 4);
        assert_ne!(proof, join_hmac(b, a, 3, 4));
        assert_ne!(proof, join_hmac(a, b, 4, 3));
        assert_eq!(leftmost_160(&proof)[..8], leftmost_64(&proof).to_be_bytes());
    }
}
