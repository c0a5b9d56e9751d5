//! Opening of subflows: MP_CAPABLE for the first (RFC 8684 section 3.1), MP_JOIN for the others (section 3.2).

use super::deadline::Deadline;
use super::keys::{Key, join_hmac, leftmost_64, leftmost_160};
use super::{Commit, Connection, Failover, Mode, PathConfig, Protocol, Role};
use crate::congestion::{BUFFERED_WINDOWS, Siblings};
use crate::external;
use crate::options::OptionError;
use crate::subflow::{DEFAULT_MSS, Opening, Origin, Peer, SendMemory, SenderOptions, State, Subflow};
use anabranch_events::{CloseReason, FallbackReason, TransportEvent};
use anabranch_segment::{CapableFlags, Flags, MptcpOption, ResetReason, Segment};
use anabranch_units::{Instant, PathId, SeqNumber, SubflowId};
use subtle::ConstantTimeEq;

/// The smallest MSS that is accepted: below it, overhead exceeds the payload (Linux `TCP_MIN_MSS`).
const LEAST_MSS: u32 = 88;
/// Subflows that a server accepts at most, a bound against attacks; more if it has more paths.
const MAX_SUBFLOWS: usize = 16;

impl Connection {
    /// Adds a subflow. Returns its position.
    pub(super) fn open(
        &mut self,
        now: Instant,
        path: PathConfig,
        state: State,
        opening: Opening,
        remote_port: Option<u16>,
    ) -> Result<usize, OptionError> {
        let id = SubflowId(self.next_subflow);
        self.next_subflow += 1;
        let choice = self.config.congestion_control_on(path.id);
        let control = external::congestion_control(choice, self.entropy.next_u64())?;
        let local_port = match self.role {
            Role::Client => self.config.local_port.wrapping_add(id.0),
            Role::Server => self.config.local_port,
        };
        let position = self.config.paths.iter().position(|p| p.id == path.id);
        let position = position.expect("a subflow's path is one of the configuration's");
        let upstream = self.config.transport.failover == Failover::Upstream;
        let buffered_windows = if upstream { control.buffered_windows() } else { BUFFERED_WINDOWS };
        let origin = Origin {
            id,
            path,
            ports: (local_port, remote_port.unwrap_or(self.config.remote_port)),
            address_id: position as u8,
            state,
            opening,
            isn: SeqNumber(self.entropy.next_u64() as u32),
            receive_buffer: self.config.transport.receive_buffer(path.mss()),
            memory: SendMemory::new(
                self.config.transport.header_room,
                self.config.transport.send_buffer.0,
                buffered_windows,
            ),
        };
        let mut subflow = Subflow::new(now, &origin, control, self.config.transport.initial_window);
        subflow.sender.configure(SenderOptions {
            paces: self.config.transport.pacing,
            whole_windows: self.config.transport.whole_windows,
            defers_for_burst: self.config.transport.segmentation_offload,
            counts_buffers: self.config.transport.commit == Commit::IntoBuffer,
            discovers_mtu: self.config.mtu_discovery,
            hides_app_limited: self.config.transport.protocol == Protocol::Mptcp && upstream,
        });
        subflow.rests_in_loss = !upstream;
        let at = self.subflows.push(subflow);
        self.progress.close_at = Deadline::NEVER;
        Ok(at)
    }

    /// A server accepts a first SYN.
    pub(super) fn accept_initial(&mut self, now: Instant, path: PathId, syn: &Segment) -> Result<(), OptionError> {
        let Some(path) = self.config.path(path).copied() else {
            let message = format!("a SYN arrived on path {}, which is none of them", path.0);
            return Err(OptionError { option: "paths".into(), message });
        };
        let at = self.open(now, path, State::SynReceived, Opening::Initial, Some(syn.source_port))?;
        self.learn_peer(at, syn);
        self.outgoing.on_window(u64::from(syn.window));
        // This end never sees payload, so it cannot compute checksums; a peer that requires them gets plain TCP.
        let takes = |flags: &CapableFlags| flags.hmac_sha256 && !flags.checksum_required;
        let offered =
            syn.mptcp.iter().any(|o| matches!(o, MptcpOption::Capable { version: 1.., flags, .. } if takes(flags)));
        if self.config.transport.protocol == Protocol::Mptcp && !offered {
            self.fall_back(now, FallbackReason::NotCapable);
        }
        Ok(())
    }

    fn learn_peer(&mut self, at: usize, syn: &Segment) {
        let subflow = self.subflows.change(at);
        subflow.peer_isn = syn.seq;
        subflow.receiver.on_syn(syn);
        let options = syn.syn;
        subflow.learn_peer(Peer {
            mss: options.map_or(DEFAULT_MSS, |o| u32::from(o.mss).max(LEAST_MSS)),
            window_scale: options.and_then(|o| o.window_scale).unwrap_or(0).min(14),
            scales_windows: options.is_some_and(|o| o.window_scale.is_some()),
            sack: options.is_some_and(|o| o.sack_permitted),
            timestamps: syn.timestamps.is_some() && self.config.transport.timestamps,
        });
    }

    /// The SYN/ACK to our SYN arrived.
    pub(super) fn on_syn_ack(&mut self, now: Instant, at: usize, segment: &Segment) {
        let subflow = self.subflows.change(at);
        let answers_syn = segment.flags.contains(Flags::ACK) && segment.ack == subflow.isn + 1;
        if segment.flags.contains(Flags::RST) {
            if answers_syn {
                subflow.state = State::Closed(CloseReason::ResetByPeer);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN | Flags::ACK) || !answers_syn || subflow.handshake.tries == 0 {
            return;
        }
        let opening = subflow.opening;
        self.learn_peer(at, segment);
        self.subflows.change(at).on_numbers_agreed(now, segment.timestamps.map(|t| t.echo));
        match opening {
            Opening::Initial => self.on_initial_syn_ack(now, at, segment),
            Opening::Join { local_nonce, .. } => self.on_join_syn_ack(now, at, segment, local_nonce),
        }
    }

    /// The first SYN is about to be sent. After this many without an answer, the option may be the reason for the loss.
    pub(super) fn doubt_capable(&mut self, now: Instant, at: usize) {
        let subflow = &self.subflows[at];
        let tries = self.config.transport.capable_retries.saturating_add(1);
        if self.mode() == Mode::Negotiating && subflow.opening == Opening::Initial && subflow.handshake.tries >= tries {
            self.fall_back(now, FallbackReason::Unanswered);
        }
    }

    fn on_initial_syn_ack(&mut self, now: Instant, at: usize, segment: &Segment) {
        let key = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable { sender_key, version: 1.., flags, .. } if !flags.checksum_required => {
                self.initial_denied = flags.deny_join_initial;
                *sender_key
            }
            _ => None,
        });
        match key {
            Some(key) if self.mode() == Mode::Negotiating => {
                self.remote_key = Some(Key::new(key));
                self.subflows.set_mode(Mode::Multipath);
            }
            _ if self.mode() == Mode::Negotiating => self.fall_back(now, FallbackReason::NotCapable),
            _ => {}
        }
        self.outgoing.on_window(u64::from(segment.window));
        self.subflows.change(at).control_segments.send_third_segment();
        self.establish(now, at);
    }

    fn on_join_syn_ack(&mut self, now: Instant, at: usize, segment: &Segment, local_nonce: u32) {
        let answer = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSynAck { backup, address_id, hmac, nonce } => Some((*backup, *address_id, *hmac, *nonce)),
            _ => None,
        });
        let proven = answer.filter(|(_, _, hmac, nonce)| {
            self.remote_key.is_some_and(|key| {
                let expected = leftmost_64(&join_hmac(key, self.local_key, *nonce, local_nonce));
                expected.ct_eq(hmac).into()
            })
        });
        let subflow = self.subflows.change(at);
        let Some((backup, address_id, _, remote_nonce)) = proven else {
            subflow.control_segments.reset(ResetReason::MptcpError);
            return;
        };
        subflow.backup_there = backup;
        subflow.remote_address_id = address_id;
        subflow.opening = Opening::Join { local_nonce, remote_nonce };
        subflow.state = State::JoinSent;
        subflow.handshake.due = Some(now);
    }

    /// The HMAC in the third segment of a join.
    pub(super) fn join_proof(&self, at: usize) -> [u8; 20] {
        match (self.subflows[at].opening, self.remote_key) {
            (Opening::Join { local_nonce, remote_nonce }, Some(key)) => {
                leftmost_160(&join_hmac(self.local_key, key, local_nonce, remote_nonce))
            }
            _ => [0; 20],
        }
    }

    /// The truncated HMAC in the SYN/ACK of a join.
    pub(super) fn short_join_proof(&self, local_nonce: u32, remote_nonce: u32) -> u64 {
        self.remote_key.map_or(0, |key| leftmost_64(&join_hmac(self.local_key, key, local_nonce, remote_nonce)))
    }

    /// A SYN on no known subflow: a join, if its token is this connection's. Returns whether it is accepted.
    pub(super) fn accept_join(&mut self, now: Instant, path: PathId, syn: &Segment) -> bool {
        let join = syn.mptcp.iter().find_map(|option| match option {
            MptcpOption::JoinSyn { backup, address_id, token, nonce } => Some((*backup, *address_id, *token, *nonce)),
            _ => None,
        });
        let Some((backup, address_id, _, remote_nonce)) = join.filter(|join| join.2 == self.local_key.token) else {
            return false;
        };
        let Some(path) = self.config.path(path).copied() else { return false };
        let open = self.mode() == Mode::Multipath && self.remote_key.is_some() && !self.closed;
        let most = self.config.paths.len().max(MAX_SUBFLOWS);
        if !open || (self.subflows.len() >= most && !self.displace_half_open_join(now)) {
            return false;
        }
        let local_nonce = self.entropy.next_u64() as u32;
        let opening = Opening::Join { local_nonce, remote_nonce };
        let Ok(at) = self.open(now, path, State::SynReceived, opening, Some(syn.source_port)) else { return false };
        self.learn_peer(at, syn);
        let subflow = self.subflows.change(at);
        subflow.backup_there = backup;
        subflow.remote_address_id = address_id;
        true
    }

    /// Drops the oldest join whose proof has not arrived: a host that knows the token alone could otherwise keep the
    /// peer's joins out. Returns whether there was one.
    fn displace_half_open_join(&mut self, now: Instant) -> bool {
        let is_half_open = |s: &Subflow| s.state == State::SynReceived && matches!(s.opening, Opening::Join { .. });
        let Some(oldest) = self.subflows.iter().position(is_half_open) else { return false };
        self.subflows.change(oldest).state = State::Closed(CloseReason::TimedOut);
        self.remove_dead(now);
        true
    }

    /// Processes a segment of a subflow that is not established. Returns the subflow's position if the segment may be
    /// processed further.
    pub(super) fn check_opening(&mut self, now: Instant, at: usize, segment: &Segment) -> Option<usize> {
        match self.subflows[at].state {
            State::Established => Some(at),
            State::SynReceived => self.on_third_segment(now, at, segment),
            State::JoinSent => {
                // Any acknowledgment of our SYN without an option is the fourth segment.
                let acknowledged = segment.ack == self.subflows[at].isn + 1;
                if acknowledged {
                    self.establish(now, at);
                }
                acknowledged.then_some(at)
            }
            State::SynSent | State::Closed(_) => None,
        }
    }

    fn on_third_segment(&mut self, now: Instant, at: usize, segment: &Segment) -> Option<usize> {
        let subflow = self.subflows.change(at);
        if segment.ack != subflow.isn + 1 {
            return None;
        }
        let echo = segment.timestamps.map(|t| t.echo);
        match subflow.opening {
            Opening::Initial => {
                self.subflows.change(at).on_numbers_agreed(now, echo);
                self.on_initial_third(now, segment);
                // Its window counts, though it has no DATA_ACK. That of the SYN was not scaled.
                self.outgoing.on_window(self.window_of(at, segment));
                self.establish(now, at);
                Some(at)
            }
            Opening::Join { local_nonce, remote_nonce } => {
                let proof = segment.mptcp.iter().find_map(|option| match option {
                    MptcpOption::JoinAck { hmac } => Some(*hmac),
                    _ => None,
                });
                // Without an HMAC it is not the third segment; that one was lost and will be retransmitted.
                let (proof, key) = proof.zip(self.remote_key)?;
                let expected = leftmost_160(&join_hmac(key, self.local_key, remote_nonce, local_nonce));
                let subflow = self.subflows.change(at);
                if bool::from(expected.ct_ne(&proof)) {
                    subflow.control_segments.reset(ResetReason::Prohibited);
                    return None;
                }
                subflow.on_numbers_agreed(now, echo);
                // A server's subflows stand in the order of their completed joins, as Linux's (`mptcp_finish_join`).
                let at = self.move_last(at);
                self.establish(now, at);
                // In Linux the fourth segment leaves before data, which has the same echo of a timestamp.
                self.waits.acknowledges_first = true;
                Some(at)
            }
        }
    }

    /// Moves a subflow behind all others; returns its new position.
    fn move_last(&mut self, at: usize) -> usize {
        let last = self.subflows.len() - 1;
        if at < last {
            self.waits.forget_positions();
            self.subflows.move_last(at);
        }
        last
    }

    fn on_initial_third(&mut self, now: Instant, segment: &Segment) {
        if self.mode() != Mode::Negotiating {
            return;
        }
        let keys = segment.mptcp.iter().find_map(|option| match option {
            MptcpOption::Capable { sender_key, receiver_key, .. } => sender_key.zip(*receiver_key),
            _ => None,
        });
        match keys {
            Some((theirs, ours)) if ours == self.local_key.value => {
                self.remote_key = Some(Key::new(theirs));
                self.subflows.set_mode(Mode::Multipath);
                self.subflows.confirm();
            }
            _ => self.fall_back(now, FallbackReason::OptionsStripped),
        }
    }

    fn establish(&mut self, now: Instant, at: usize) {
        let subflow = self.subflows.change(at);
        let (id, path, rtt) = (subflow.id, subflow.path.id, subflow.sender.rtt().srtt());
        // A client's third segment completes the handshake of the connection, and a server's fourth one that of a join.
        // The last segment of a handshake is not answered.
        let answered = match (subflow.state, subflow.opening) {
            (State::SynSent, Opening::Initial) | (State::SynReceived, Opening::Join { .. }) => true,
            (State::SynReceived, Opening::Initial) | (State::JoinSent, _) => false,
            (state, opening) => unreachable!("a subflow is established in {state:?}, {opening:?}"),
        };
        subflow.state = State::Established;
        subflow.handshake = Default::default();
        if answered {
            subflow.receiver.acknowledge_now();
        }
        self.alone &= subflow.opening == Opening::Initial;
        self.path_manager.on_opened(path);
        let (subflow, views) = self.subflows.with_views(at);
        subflow.sender.start_control(now, Siblings::new(views, at));
        if !self.established {
            self.established = true;
            self.log.emit(now, TransportEvent::Established);
        }
        self.log.emit(now, TransportEvent::SubflowOpened { subflow: id, path, rtt });
        self.apply_policy(now);
    }

    /// The peer sends DSS: Multipath TCP is confirmed, and further subflows may join.
    pub(super) fn confirm(&mut self, now: Instant) {
        self.subflows.confirm();
        self.open_missing_subflows(now);
    }

    /// Joins on every path that lacks a subflow.
    #[inline]
    pub(super) fn open_missing_subflows(&mut self, now: Instant) {
        if self.may_join() {
            self.join_missing_paths(now);
        }
    }

    fn join_missing_paths(&mut self, now: Instant) {
        for at in 0..self.config.paths.len() {
            let path = self.config.paths[at];
            if !self.wants_join(&path) || !self.path_manager.may_join(now, path.id) {
                continue;
            }
            let port = self.announced_port(&path).flatten();
            let opening = Opening::Join { local_nonce: self.entropy.next_u64() as u32, remote_nonce: 0 };
            if self.open(now, path, State::SynSent, opening, port).is_err() {
                return;
            }
        }
    }

    #[inline]
    fn may_join(&self) -> bool {
        // The client opens one subflow per path, so with as many subflows as paths the mesh is whole.
        self.subflows.len() < self.config.paths.len()
            && self.role == Role::Client
            && self.mode() == Mode::Multipath
            && self.confirmed()
            && !self.closed
            && !self.closing()
    }

    /// Whether a path lacks a subflow and leads to a known address of the peer.
    fn wants_join(&self, path: &PathConfig) -> bool {
        let taken = self.subflows.iter().any(|s| s.path.id == path.id && !matches!(s.state, State::Closed(_)));
        !taken && self.knows_remote(path)
    }

    /// When the path manager retries a join.
    #[inline]
    pub(super) fn join_deadline(&self) -> Option<Instant> {
        if self.may_join() { self.end_of_pause() } else { None }
    }

    fn end_of_pause(&self) -> Option<Instant> {
        let wants = |id: PathId| self.config.path(id).is_some_and(|path| self.wants_join(path));
        self.path_manager.poll_timeout(wants)
    }
}
