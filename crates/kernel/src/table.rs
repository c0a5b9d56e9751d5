//! The table of subflows as the programs write it (`bpf/table.h`).

use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Fractional bits of windows.
const WINDOW_BITS: u32 = 16;
const AF_INET: u32 = 2;

#[repr(C)]
struct Key {
    token: u32,
    slot: u32,
}

#[repr(C)]
struct Slot {
    window: u64,
    interval: u64,
    rtt_us: u32,
    subflow: u32,
    fraction: u64,
    acked_at_loss: u64,
    between_losses: u64,
    history: [u32; 12],
    round_end: u32,
    latest_rtt_us: u32,
    losses: u32,
    timeouts: u32,
    mss: u32,
    in_flight: u32,
    family: u32,
    namespace: u32,
    local: [u32; 4],
    remote: [u32; 4],
    local_port: u32,
    remote_port: u32,
    /// Nine paths of 24 bytes, and ten numbers.
    connection: [u64; 37],
}

/// The state of a subflow at its last acknowledgment.
#[derive(Clone, Debug, PartialEq)]
pub struct Subflow {
    /// The kernel's token of the connection: its subflows have the same one.
    pub token: u32,
    /// The kernel's number of the subflow in its connection.
    pub number: u32,
    /// Inode number of its network namespace.
    pub namespace: u32,
    /// Local address and port.
    pub local: (IpAddr, u16),
    /// The peer's address and port.
    pub remote: (IpAddr, u16),
    /// Congestion window in packets; while it recovers, the one that recovery aims at.
    pub window: f64,
    /// Smoothed round trip in seconds.
    pub rtt_s: f64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// Reductions of the threshold: losses, marks of congestion, and timeouts.
    pub losses: u32,
    /// Timeouts.
    pub timeouts: u32,
}

/// Counters of an attachment, and the port that it was attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Subflows that got a slot.
    pub claimed: u64,
    /// Slots that were freed.
    pub released: u64,
    /// Subflows that found no slot and behave as NewReno.
    pub degraded: u64,
    /// The local port of the selected connections; zero if all of the cgroup are.
    pub port: u64,
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

/// An address whose words are in the network's byte order.
fn address(family: u32, bytes: &[u8], offset: usize) -> Option<IpAddr> {
    let bytes: [u8; 16] = bytes.get(offset..offset + 16)?.try_into().ok()?;
    if family == AF_INET {
        let [a, b, c, d, ..] = bytes;
        return Some(Ipv4Addr::new(a, b, c, d).into());
    }
    Some(Ipv6Addr::from(bytes).to_canonical())
}

impl Subflow {
    /// Reads an element; `None` if it has another size.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        if key.len() != size_of::<Key>() || value.len() != size_of::<Slot>() {
            return None;
        }
        let field = |offset| word(value, offset);
        let family = field(offset_of!(Slot, family))?;
        let port = |offset| field(offset).and_then(|port| u16::try_from(port).ok());
        Some(Subflow {
            token: word(key, offset_of!(Key, token))?,
            number: field(offset_of!(Slot, subflow))?,
            namespace: field(offset_of!(Slot, namespace))?,
            local: (address(family, value, offset_of!(Slot, local))?, port(offset_of!(Slot, local_port))?),
            remote: (address(family, value, offset_of!(Slot, remote))?, port(offset_of!(Slot, remote_port))?),
            window: long(value, offset_of!(Slot, window))? as f64 / f64::from(1 << WINDOW_BITS),
            rtt_s: f64::from(field(offset_of!(Slot, rtt_us))?) / 1e6,
            mss: field(offset_of!(Slot, mss))?,
            in_flight: field(offset_of!(Slot, in_flight))?,
            losses: field(offset_of!(Slot, losses))?,
            timeouts: field(offset_of!(Slot, timeouts))?,
        })
    }
}

impl Totals {
    /// Reads the only element.
    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let field = |number: usize| long(value, number * size_of::<u64>());
        Some(Totals { claimed: field(0)?, released: field(1)?, degraded: field(2)?, port: field(3)? })
    }

    /// The element as the loader writes it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.claimed, self.released, self.degraded, self.port].into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_of_another_size_is_refused() {
        assert_eq!(Subflow::read(&[0; 8], &[0; size_of::<Slot>() - 8]), None);
        assert_eq!(Subflow::read(&[0; 4], &[0; size_of::<Slot>()]), None);
    }

    #[test]
    fn windows_have_fractions_and_addresses_the_order_of_the_network() {
        let mut value = [0u8; size_of::<Slot>()];
        value[offset_of!(Slot, window)..][..8].copy_from_slice(&(5u64 << 15).to_ne_bytes());
        value[offset_of!(Slot, family)..][..4].copy_from_slice(&AF_INET.to_ne_bytes());
        value[offset_of!(Slot, local)..][..4].copy_from_slice(&[10, 1, 0, 2]);
        value[offset_of!(Slot, local_port)..][..4].copy_from_slice(&80u32.to_ne_bytes());
        let subflow = Subflow::read(&[0; 8], &value).unwrap();
        assert_eq!(subflow.window, 2.5);
        assert_eq!(subflow.local, (IpAddr::from([10, 1, 0, 2]), 80));
    }
}
