//! Connections of an earlier server at the same addresses, which ended without closing them.
//!
//! Such a server's clients would wait: one that only reads sends nothing that could be answered with RST, and one that
//! uses Multipath TCP keeps its connection for a minute after RST, in case another subflow is opened (Linux's
//! `net.mptcp.close_timeout`). So each subflow that the earlier server had is sent an acknowledgment of nothing in
//! particular. The client answers it with its real numbers (RFC 9293 section 3.10.7.4), and these with RST and
//! MP_FASTCLOSE, which ends its connection at once (RFC 8684 section 3.5).

use super::FlowKey;
use super::application::socket_address;
use anabranch_segment::{Flags, MptcpOption, Segment};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// A subflow of an earlier server. Its text is `PATH LOCAL REMOTE KEY`, with `-` for no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Path, in the order of the configuration.
    pub path: PathId,
    /// The server's address and port.
    pub local: SocketAddr,
    /// The client's.
    pub remote: SocketAddr,
    /// The client's key; `None` over TCP.
    pub key: Option<u64>,
}

impl fmt::Display for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} ", self.path.0, self.local, self.remote)?;
        match self.key {
            Some(key) => write!(f, "{key:016x}"),
            None => f.write_str("-"),
        }
    }
}

/// A text is no orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOrphan;

impl FromStr for Orphan {
    type Err = NoOrphan;

    fn from_str(text: &str) -> Result<Self, NoOrphan> {
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or(NoOrphan);
        let path = PathId(word()?.parse().map_err(|_| NoOrphan)?);
        let local = word()?.parse().map_err(|_| NoOrphan)?;
        let remote = word()?.parse().map_err(|_| NoOrphan)?;
        let key = match word()? {
            "-" => None,
            key => Some(u64::from_str_radix(key, 16).map_err(|_| NoOrphan)?),
        };
        if words.next().is_some() { Err(NoOrphan) } else { Ok(Orphan { path, local, remote, key }) }
    }
}

/// How often each subflow is asked for its numbers, because the question or its answer may be lost, and a random number
/// may be one that the client accepts silently.
const ROUNDS: u32 = 4;
/// Time between two rounds. Linux answers such segments at most twice a second (`tcp_invalid_ratelimit`).
const ROUND: Duration = Duration::from_millis(1000);
/// Questions sent at a time, and the time between them: 3200 a second, so that they do not fill a queue.
const BATCH: usize = 32;
const PAUSE: Duration = Duration::from_millis(10);

/// The subflows that remain to be reset.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    keys: HashMap<FlowKey, Option<u64>>,
    /// Those to be asked, with the round and its time, in this order.
    questions: VecDeque<(Instant, u32, FlowKey)>,
}

impl Orphans {
    pub(super) fn adopt(&mut self, now: Instant, flow: FlowKey, key: Option<u64>) {
        if self.keys.insert(flow, key).is_none() {
            self.questions.push_back((now, 0, flow));
        }
    }

    /// Those that may not be reset yet, in the order in which they are asked.
    pub(super) fn left(&self) -> impl Iterator<Item = Orphan> {
        self.questions.iter().filter_map(|(_, _, flow)| {
            let key = *self.keys.get(flow)?;
            let [local, remote] = [flow.local, flow.remote].map(socket_address);
            Some(Orphan { path: flow.path, local, remote, key })
        })
    }

    /// When [`Orphans::ask`] has something.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.questions.front().map(|(at, ..)| *at)
    }

    /// The questions that are due, each with a number of `random`.
    pub(super) fn ask(&mut self, now: Instant, mut random: impl FnMut() -> u64) -> Vec<(FlowKey, Segment)> {
        let mut due = Vec::new();
        while due.len() < BATCH
            && let Some(&(at, round, flow)) = self.questions.front().filter(|(at, ..)| *at <= now)
        {
            self.questions.pop_front();
            if round == ROUNDS {
                self.keys.remove(&flow);
            }
            if !self.keys.contains_key(&flow) {
                continue;
            }
            let mut question = Segment::new(Flags::ACK);
            let numbers = random();
            (question.seq, question.ack) = (SeqNumber(numbers as u32), SeqNumber((numbers >> 32) as u32));
            due.push((flow, question));
            // Behind the last round the answers are still waited for.
            self.questions.push_back((at.max(now) + ROUND, round + 1, flow));
        }
        // Those that are left over come a little later, before those of the next round.
        for (at, ..) in self.questions.iter_mut().take_while(|(at, ..)| *at <= now) {
            *at = now + PAUSE;
        }
        due
    }

    /// The client has given up by itself, or uses its port again.
    pub(super) fn forget(&mut self, flow: FlowKey) {
        self.keys.remove(&flow);
    }

    /// The answer to a segment of an orphan; `None` if it is none.
    pub(super) fn reset(&mut self, flow: FlowKey, segment: &Segment) -> Option<Segment> {
        if segment.flags.contains(Flags::RST) {
            self.forget(flow);
            return None;
        }
        let key = *self.keys.get(&flow)?;
        let mut reset = Segment::new(Flags::RST);
        reset.seq = segment.ack;
        if let Some(receiver_key) = key {
            reset.flags = Flags::RST | Flags::ACK;
            reset.ack = segment.seq + segment.sequence_len();
            reset.mptcp.push(MptcpOption::FastClose { receiver_key });
        }
        Some(reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> FlowKey {
        let (local, remote) = ("10.99.0.1".parse().unwrap(), "10.1.0.2".parse().unwrap());
        FlowKey { path: PathId(0), local: (local, 80), remote: (remote, port) }
    }

    #[test]
    fn an_orphan_s_text_is_read_as_it_was_written() {
        for key in [None, Some(5), Some(u64::MAX)] {
            for (local, remote) in [("10.99.0.1:80", "10.1.0.2:4000"), ("[fd00:99::1]:80", "[fd00:1::2]:4000")] {
                let [local, remote] = [local, remote].map(|text| text.parse().unwrap());
                let orphan = Orphan { path: PathId(3), local, remote, key };
                assert_eq!(orphan.to_string().parse(), Ok(orphan));
            }
        }
        for text in [
            "",
            "0",
            "0 10.99.0.1:80 10.1.0.2:4000",
            "0 10.99.0.1:80 10.1.0.2:4000 x",
            "0 10.99.0.1:80 10.1.0.2:4000 - -",
        ] {
            assert_eq!(text.parse::<Orphan>(), Err(NoOrphan), "{text}");
        }
    }

    #[test]
    fn each_is_asked_a_few_times_and_then_forgotten() {
        let mut orphans = Orphans::default();
        let mut now = Instant::ZERO;
        for port in 0..100 {
            orphans.adopt(now, flow(port), None);
        }
        let mut asked = HashMap::new();
        while let Some(at) = orphans.poll_timeout() {
            assert!(at >= now);
            now = at;
            let questions = orphans.ask(now, || 7);
            assert!(questions.len() <= BATCH);
            for (flow, question) in questions {
                assert_eq!(question.flags, Flags::ACK);
                *asked.entry(flow).or_insert(0) += 1;
            }
        }
        assert_eq!(asked.len(), 100);
        assert!(asked.values().all(|times| *times == ROUNDS));
        assert!(now < Instant::ZERO + ROUND * 5, "{now:?}");
        assert!(orphans.keys.is_empty());
    }

    #[test]
    fn those_that_may_not_be_reset_yet_are_listed() {
        let mut orphans = Orphans::default();
        for port in [5, 3, 9] {
            orphans.adopt(Instant::ZERO, flow(port), Some(u64::from(port)));
        }
        orphans.forget(flow(3));
        let left: Vec<_> = orphans.left().map(|orphan| (orphan.remote.port(), orphan.key)).collect();
        assert_eq!(left, [(5, Some(5)), (9, Some(9))]);
    }

    #[test]
    fn its_numbers_are_answered_with_reset_and_its_key() {
        let mut orphans = Orphans::default();
        orphans.adopt(Instant::ZERO, flow(1), Some(77));
        orphans.adopt(Instant::ZERO, flow(2), None);
        let mut segment = Segment::new(Flags::ACK);
        (segment.seq, segment.ack) = (SeqNumber(1000), SeqNumber(2000));
        let reset = orphans.reset(flow(1), &segment).expect("an orphan");
        assert!(reset.flags.contains(Flags::RST));
        assert_eq!((reset.seq, reset.ack), (SeqNumber(2000), SeqNumber(1000)));
        assert_eq!(reset.mptcp.len(), 1);
        assert!(matches!(reset.mptcp[0], MptcpOption::FastClose { receiver_key: 77 }));
        assert!(orphans.reset(flow(2), &segment).expect("an orphan").mptcp.is_empty());
        assert!(orphans.reset(flow(3), &segment).is_none());
        assert!(orphans.reset(flow(1), &Segment::new(Flags::RST)).is_none());
        assert!(orphans.reset(flow(1), &segment).is_none(), "it has ended");
    }
}
