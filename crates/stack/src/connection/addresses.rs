//! Address advertisement (RFC 8684 section 3.4): ADD_ADDR with an HMAC, its echo, REMOVE_ADDR.
//!
//! ADD_ADDR is retransmitted until it is echoed, at most three times, after the longest timeout among the subflows,
//! doubled each time (Linux since 6.18). An advertised address opens the paths that lead to it. REMOVE_ADDR has no
//! echo: it is retransmitted in the same way, unless the address is advertised again first.

use super::keys::address_hmac;
use super::{Connection, Mode, PathConfig, Role};
use anabranch_segment::{MptcpOption, RemovedAddresses};
use anabranch_units::{Duration, Instant, PathId};
use core::net::IpAddr;
use subtle::ConstantTimeEq;

/// Retransmissions of an ADD_ADDR that is not echoed (Linux `ADD_ADDR_RETRANS_MAX`).
const MAX_RETRANSMISSIONS: u32 = 3;
/// The longest pause before a retransmission (Linux `net.mptcp.add_addr_timeout`).
const LONGEST_PAUSE: Duration = Duration::from_secs(120);
/// Addresses of the peer that are stored at most, a bound against floods.
const MAX_LEARNED: usize = 8;
/// Options that may wait on one subflow, a bound against floods of ADD_ADDR to echo.
const MAX_SIGNALS: usize = 8;

/// An address with its address ID and, where it differs from the connection's, its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    id: u8,
    ip: IpAddr,
    port: Option<u16>,
}

/// The option to send to the peer: ADD_ADDR or REMOVE_ADDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressChange {
    Added(Address),
    Removed(u8),
}

impl AddressChange {
    /// The address ID.
    fn id(self) -> u8 {
        match self {
            AddressChange::Added(address) => address.id,
            AddressChange::Removed(id) => id,
        }
    }
}

/// One of this end's addresses that was or will be advertised.
#[derive(Clone, Copy, Debug)]
struct Announcement {
    change: AddressChange,
    sent: u32,
    /// Time of the next transmission; `None` once it was echoed or the retransmissions are used up.
    due: Option<Instant>,
}

/// Advertised addresses of both ends, beyond those of the subflows.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    announced: Vec<Announcement>,
    learned: Vec<Address>,
}

impl Connection {
    /// Advertises another address of this end under an address ID that is not in use. ADD_ADDR is retransmitted until
    /// the peer echoes it. It waits until Multipath TCP is established.
    pub fn announce_address(&mut self, now: Instant, address_id: u8, address: IpAddr, port: Option<u16>) {
        let address = Address { id: address_id, ip: address, port };
        self.advertise(now, AddressChange::Added(address));
    }

    /// Withdraws an address of this end: the peer closes the subflows that use it and opens no more.
    pub fn withdraw_address(&mut self, now: Instant, address_id: u8) {
        self.advertise(now, AddressChange::Removed(address_id));
    }

    /// Replaces an earlier advertisement or withdrawal of the same address.
    fn advertise(&mut self, now: Instant, change: AddressChange) {
        self.forget_changes_of(change.id());
        self.addresses.announced.push(Announcement { change, sent: 0, due: Some(now) });
        self.send_announcements(now);
    }

    fn forget_changes_of(&mut self, address_id: u8) {
        self.addresses.announced.retain(|other| other.change.id() != address_id);
    }

    /// The interface under a path is back. Only the client joins, so a server advertises the address.
    pub(super) fn restore_path(&mut self, now: Instant, id: PathId) {
        let Some(at) = self.config.paths.iter().position(|path| path.id == id) else { return };
        self.addresses.announced.retain(|other| other.change != AddressChange::Removed(at as u8));
        let missed = !self.subflows.iter().any(|subflow| subflow.path.id == id);
        if self.role == Role::Server && missed {
            self.announce_address(now, at as u8, self.config.paths[at].local, None);
        }
    }

    /// Queues the address options that are due on a subflow.
    pub(super) fn send_announcements(&mut self, now: Instant) {
        let Some((at, key)) = self.announcer().zip(self.remote_key) else { return };
        let longest = self.subflows.iter().map(|s| s.sender.rtt().base_rto()).max().unwrap_or(LONGEST_PAUSE);
        for announcement in &mut self.addresses.announced {
            if announcement.due.is_none_or(|due| due > now) {
                continue;
            }
            if announcement.sent > MAX_RETRANSMISSIONS {
                announcement.due = None;
                continue;
            }
            announcement.due = Some(now + (longest * (1 << announcement.sent)).min(LONGEST_PAUSE));
            announcement.sent += 1;
            let option = match announcement.change {
                AddressChange::Added(Address { id, ip, port }) => {
                    let hmac = address_hmac(self.local_key, key, id, ip, port);
                    Some(MptcpOption::AddAddress { echo: false, address_id: id, address: ip, port, hmac })
                }
                AddressChange::Removed(id) => RemovedAddresses::new(&[id]).map(MptcpOption::RemoveAddress),
            };
            self.subflows.change(at).control_segments.signals.extend(option);
        }
    }

    /// The subflow that carries the address options.
    fn announcer(&self) -> Option<usize> {
        let ready = self.mode() == Mode::Multipath && self.confirmed() && !self.closed;
        let works = |at: &usize| {
            ready && self.subflows[*at].is_established() && !self.subflows[*at].control_segments.is_closing()
        };
        (0..self.subflows.len()).filter(works).min_by_key(|at| self.subflows[*at].potentially_failed)
    }

    /// When the next address option is due.
    #[inline]
    pub(super) fn announcement_deadline(&self) -> Option<Instant> {
        if self.addresses.announced.is_empty() { None } else { self.next_announcement() }
    }

    fn next_announcement(&self) -> Option<Instant> {
        let due = self.addresses.announced.iter().filter_map(|announcement| announcement.due).min()?;
        self.announcer().map(|_| due)
    }

    /// An ADD_ADDR arrived. Without the right HMAC it is ignored: the peer did not send it.
    pub(super) fn on_address_announced(&mut self, now: Instant, at: usize, option: &MptcpOption) {
        let MptcpOption::AddAddress { echo, address_id, address, port, hmac } = *option else { return };
        let announced = Address { id: address_id, ip: address, port };
        if echo {
            let ours = self
                .addresses
                .announced
                .iter_mut()
                .filter(|announcement| announcement.change == AddressChange::Added(announced));
            ours.for_each(|announcement| announcement.due = None);
            return;
        }
        let proof = self.remote_key.map(|key| address_hmac(key, self.local_key, address_id, address, port));
        let proven = proof.is_some_and(|proof| proof.ct_eq(&hmac).into());
        let mode = self.mode();
        let subflow = self.subflows.change(at);
        if !proven || mode != Mode::Multipath || subflow.control_segments.signals.len() >= MAX_SIGNALS {
            return;
        }
        subflow.control_segments.signals.push_back(MptcpOption::AddAddress {
            echo: true,
            address_id,
            address,
            port,
            hmac: 0,
        });
        self.learn_address(now, announced);
    }

    fn learn_address(&mut self, now: Instant, announced: Address) {
        let learned = &mut self.addresses.learned;
        if learned.contains(&announced) {
            return;
        }
        learned.retain(|other| other.id != announced.id);
        if learned.len() == MAX_LEARNED {
            return;
        }
        learned.push(announced);
        // A path that failed before may work now.
        for path in self.config.paths.iter().filter(|path| path.remote == announced.ip) {
            self.path_manager.on_address_known(now, path.id);
        }
        self.open_missing_subflows(now);
    }

    /// The peer withdrew addresses: no path leads there until it advertises them again.
    pub(super) fn forget_addresses(&mut self, ids: &[u8]) {
        let Addresses { learned, .. } = &mut self.addresses;
        for gone in learned.iter().filter(|address| ids.contains(&address.id)) {
            for path in self.config.paths.iter().filter(|path| path.remote == gone.ip) {
                self.path_manager.on_address_gone(path.id);
            }
        }
        learned.retain(|address| !ids.contains(&address.id));
    }

    /// Whether the peer is known to have the address to which a path leads: that of the first path, or an advertised
    /// one.
    pub(super) fn knows_remote(&self, path: &PathConfig) -> bool {
        let initial = self.config.paths[0].remote;
        let known = if path.remote == initial { !self.initial_denied } else { self.config.join_unannounced };
        known || self.announced_port(path).is_some()
    }

    /// The port with which the peer advertised the address to which a path leads; `Some(None)` for the connection's
    /// own.
    pub(super) fn announced_port(&self, path: &PathConfig) -> Option<Option<u16>> {
        self.addresses.learned.iter().find(|address| address.ip == path.remote).map(|address| address.port)
    }
}
