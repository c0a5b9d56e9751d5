//! Addresses that the ends tell each other (RFC 8684 section 3.4): announced with a proof, echoed, taken back.
//!
//! An announcement is repeated until it is echoed, at most three times, after the longest timeout among the subflows,
//! doubled each time (Linux since 6.18). An announced address opens the paths that lead to it. Nothing echoes an address that
//! is taken back: that is repeated in the same way, unless the address comes back first.

use super::keys::address_hmac;
use super::{Connection, Mode, PathConfig, Role};
use anabranch_segment::{MptcpOption, RemovedAddresses};
use anabranch_units::{Duration, Instant, PathId};
use core::net::IpAddr;
use subtle::ConstantTimeEq;

/// Repetitions of an announcement that is not echoed (Linux `ADD_ADDR_RETRANS_MAX`).
const MAX_REPETITIONS: u32 = 3;
/// The longest pause before one (Linux `net.mptcp.add_addr_timeout`).
const LONGEST_PAUSE: Duration = Duration::from_secs(120);
/// Addresses of the peer that are remembered; a flood gets no more.
const MAX_LEARNED: usize = 8;
/// Options that may wait on one subflow; a flood of announcements is echoed no further.
const MAX_SIGNALS: usize = 8;

/// An address with its name and, where it differs from the connection's, its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    id: u8,
    ip: IpAddr,
    port: Option<u16>,
}

/// What the peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Added(Address),
    Removed(u8),
}

impl News {
    /// The name of the address.
    fn id(self) -> u8 {
        match self {
            News::Added(address) => address.id,
            News::Removed(id) => id,
        }
    }
}

/// One of our addresses that the peer was told or is to be told of.
#[derive(Clone, Copy, Debug)]
struct Announcement {
    news: News,
    sent: u32,
    /// When it leaves, again; none once it was echoed or was sent too often.
    due: Option<Instant>,
}

/// What each end knows of the other's addresses beyond those of the subflows.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    announced: Vec<Announcement>,
    learned: Vec<Address>,
}

impl Connection {
    /// Tells the peer of another address of this end, under a name that no other one has. It is repeated until the peer
    /// echoes it. Before Multipath TCP is established it waits.
    pub fn announce_address(&mut self, now: Instant, address_id: u8, address: IpAddr, port: Option<u16>) {
        let address = Address { id: address_id, ip: address, port };
        self.tell(now, News::Added(address));
    }

    /// Takes an address of this end back: the peer closes the subflows that use it and opens no more.
    pub fn withdraw_address(&mut self, now: Instant, address_id: u8) {
        self.tell(now, News::Removed(address_id));
    }

    /// What was to be told of the address before is out of date.
    fn tell(&mut self, now: Instant, news: News) {
        self.forget_news_of(news.id());
        self.addresses.announced.push(Announcement { news, sent: 0, due: Some(now) });
        self.send_announcements(now);
    }

    fn forget_news_of(&mut self, address_id: u8) {
        self.addresses.announced.retain(|other| other.news.id() != address_id);
    }

    /// The interface under a path is back. Only the client joins, so a server tells it where.
    pub(super) fn restore_path(&mut self, now: Instant, id: PathId) {
        let Some(at) = self.config.paths.iter().position(|path| path.id == id) else { return };
        self.addresses.announced.retain(|told| told.news != News::Removed(at as u8));
        let missed = !self.subflows.iter().any(|subflow| subflow.path.id == id);
        if self.role == Role::Server && missed {
            self.announce_address(now, at as u8, self.config.paths[at].local, None);
        }
    }

    /// Puts the announcements that are due on a subflow.
    pub(super) fn send_announcements(&mut self, now: Instant) {
        let Some((at, key)) = self.announcer().zip(self.remote_key) else { return };
        let longest = self.subflows.iter().map(|s| s.sender.rtt().base_rto()).max().unwrap_or(LONGEST_PAUSE);
        for announcement in &mut self.addresses.announced {
            if announcement.due.is_none_or(|due| due > now) {
                continue;
            }
            if announcement.sent > MAX_REPETITIONS {
                announcement.due = None;
                continue;
            }
            announcement.due = Some(now + (longest * (1 << announcement.sent)).min(LONGEST_PAUSE));
            announcement.sent += 1;
            let option = match announcement.news {
                News::Added(Address { id, ip, port }) => {
                    let hmac = address_hmac(self.local_key, key, id, ip, port);
                    Some(MptcpOption::AddAddress { echo: false, address_id: id, address: ip, port, hmac })
                }
                News::Removed(id) => RemovedAddresses::new(&[id]).map(MptcpOption::RemoveAddress),
            };
            self.subflows[at].signals.extend(option);
        }
    }

    /// The subflow that carries announcements.
    fn announcer(&self) -> Option<usize> {
        let ready = self.mode == Mode::Multipath && self.confirmed && !self.closed;
        let works = |at: &usize| ready && self.subflows[*at].is_established() && !self.subflows[*at].closing;
        (0..self.subflows.len()).filter(works).min_by_key(|at| self.subflows[*at].potentially_failed)
    }

    /// When an announcement is due.
    pub(super) fn announcement_deadline(&self) -> Option<Instant> {
        let due = self.addresses.announced.iter().filter_map(|announcement| announcement.due).min()?;
        self.announcer().map(|_| due)
    }

    /// The peer announces an address. Without the right proof it was not the peer.
    pub(super) fn on_address_announced(&mut self, now: Instant, at: usize, option: &MptcpOption) {
        let MptcpOption::AddAddress { echo, address_id, address, port, hmac } = *option else { return };
        let told = Address { id: address_id, ip: address, port };
        if echo {
            let ours =
                self.addresses.announced.iter_mut().filter(|announcement| announcement.news == News::Added(told));
            ours.for_each(|announcement| announcement.due = None);
            return;
        }
        let proof = self.remote_key.map(|key| address_hmac(key, self.local_key, address_id, address, port));
        let proven = proof.is_some_and(|proof| proof.ct_eq(&hmac).into());
        let subflow = &mut self.subflows[at];
        if !proven || self.mode != Mode::Multipath || subflow.signals.len() >= MAX_SIGNALS {
            return;
        }
        subflow.signals.push_back(MptcpOption::AddAddress { echo: true, address_id, address, port, hmac: 0 });
        self.learn_address(now, told);
    }

    fn learn_address(&mut self, now: Instant, told: Address) {
        let learned = &mut self.addresses.learned;
        if learned.contains(&told) {
            return;
        }
        learned.retain(|other| other.id != told.id);
        if learned.len() == MAX_LEARNED {
            return;
        }
        learned.push(told);
        // What failed before may succeed now.
        for path in self.config.paths.iter().filter(|path| path.remote == told.ip) {
            self.path_manager.on_address_known(now, path.id);
        }
        self.mend_mesh(now);
    }

    /// The peer takes addresses back: no path leads there any more, until it announces them again.
    pub(super) fn forget_addresses(&mut self, ids: &[u8]) {
        let Addresses { learned, .. } = &mut self.addresses;
        for gone in learned.iter().filter(|address| ids.contains(&address.id)) {
            for path in self.config.paths.iter().filter(|path| path.remote == gone.ip) {
                self.path_manager.on_address_gone(path.id);
            }
        }
        learned.retain(|address| !ids.contains(&address.id));
    }

    /// Whether the peer is known to have the address to which a path leads: that of the first path, or an announced one.
    pub(super) fn knows_remote(&self, path: &PathConfig) -> bool {
        let initial = self.config.paths[0].remote;
        let known = if path.remote == initial { !self.initial_denied } else { self.config.join_unannounced };
        known || self.announced_port(path).is_some()
    }

    /// The port under which the peer announced the address to which a path leads; `Some(None)` for the connection's own.
    pub(super) fn announced_port(&self, path: &PathConfig) -> Option<Option<u16>> {
        self.addresses.learned.iter().find(|address| address.ip == path.remote).map(|address| address.port)
    }
}
