//! Connections of each client, so that one client cannot have all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// The number of open connections by client. A client is an IPv4 address, or the network of 64 bits that an IPv6 host
/// chooses its addresses from.
#[derive(Debug, Default)]
pub(super) struct Clients(HashMap<IpAddr, usize>);

impl Clients {
    /// Whether the client at `address` has as many connections as it may have.
    pub(super) fn is_full(&self, address: IpAddr, most: usize) -> bool {
        self.0.get(&client(address)).is_some_and(|open| *open >= most)
    }

    /// A connection of this client was opened.
    pub(super) fn enter(&mut self, address: IpAddr) {
        *self.0.entry(client(address)).or_default() += 1;
    }

    /// A connection of this client, which was entered, has ended.
    pub(super) fn leave(&mut self, address: IpAddr) {
        let client = client(address);
        if let Some(open) = self.0.get_mut(&client) {
            *open -= 1;
            if *open == 0 {
                self.0.remove(&client);
            }
        }
    }
}

fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_and_is_forgotten_at_its_end() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut clients = Clients::default();
        for text in ["10.0.0.1", "10.0.0.1", "fd00::1", "fd00::2"] {
            clients.enter(address(text));
        }
        for (text, full) in [("10.0.0.1", true), ("10.0.0.2", false), ("fd00::3", true), ("fd00:0:0:1::3", false)] {
            assert_eq!(clients.is_full(address(text), 2), full, "{text}");
        }
        for text in ["10.0.0.1", "fd00::2", "fd00::1", "10.0.0.1"] {
            clients.leave(address(text));
        }
        assert!(clients.0.is_empty());
    }
}
