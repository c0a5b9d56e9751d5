//! An ideal network for players: a delay, and a rate that changes at given times.

use crate::testing::Pipe;
use anabranch_events::PlayerEvent;
use anabranch_media::{Exchanges, HttpServer, Player, Stream};
use anabranch_units::{Bandwidth, Duration, Instant};
use std::collections::VecDeque;

/// Response bytes come in pieces of at most this size.
const PIECE: u64 = 1_000;
/// Only a timer that fires without effect takes more steps.
const MOST_STEPS: u64 = 20_000_000;

/// The link from the server to the player.
#[derive(Clone, Debug)]
pub(super) struct Downlink {
    /// One-way delay.
    pub delay: Duration,
    /// Start and value of each rate; the first entry is for time zero.
    pub rates: Vec<(Instant, Bandwidth)>,
    /// When the server closes the connection; `None`: never. Nothing arrives after that.
    pub hangs_up: Option<Instant>,
}

impl Downlink {
    pub fn constant(bps: u64, delay_ms: u64) -> Self {
        Downlink {
            delay: Duration::from_millis(delay_ms),
            rates: vec![(Instant::ZERO, Bandwidth::from_bps(bps))],
            hangs_up: None,
        }
    }

    /// With another rate from so many milliseconds on.
    pub fn then(mut self, from_ms: u64, bps: u64) -> Self {
        self.rates.push((Instant::from_nanos(from_ms * 1_000_000), Bandwidth::from_bps(bps)));
        self
    }

    /// When the last of `bytes` is sent if the first is sent at `from`.
    fn sent(&self, from: Instant, bytes: u64) -> Option<Instant> {
        let current = self.rates.iter().rposition(|(since, _)| *since <= from)?;
        self.rates[current..].iter().find(|(_, rate)| *rate > Bandwidth::ZERO).map(|(since, rate)| {
            let begin = from.max(*since);
            begin + rate.time_to_send(bytes)
        })
    }
}

/// Runs a player until it has finished or `until`; returns its events in order.
pub(super) fn play(
    player: &mut dyn Player,
    exchanges: &Exchanges,
    link: &Downlink,
    until: Instant,
) -> Vec<(Instant, PlayerEvent)> {
    let mut run = Run {
        near: Pipe::default(),
        far: Pipe::default(),
        server: HttpServer::new(exchanges.clone()),
        requests: VecDeque::new(),
        responses: VecDeque::new(),
        asked: 0,
        answered: 0,
        free: Instant::ZERO,
        events: Vec::new(),
    };
    player.start(Instant::ZERO, &mut run.near);
    run.after(Instant::ZERO, link);
    for _ in 0..MOST_STEPS {
        run.events.extend(player.log().drain());
        let hang_up = link.hangs_up.filter(|_| !run.near.peer_finished);
        let next =
            [player.poll_timeout(), run.requests.front().map(|r| r.0), run.responses.front().map(|r| r.0), hang_up];
        let Some(now) = next.into_iter().flatten().min().filter(|&now| now <= until) else { break };
        if player.finished() {
            break;
        }
        run.step(now, player, link);
        assert!(run.events.last().is_none_or(|(at, _)| *at <= now));
    }
    run.events.extend(player.log().drain());
    assert!(run.events.windows(2).all(|w| w[0].0 <= w[1].0), "events are in order");
    run.events
}

/// The server's end: bytes can be withdrawn until their transmission begins.
struct Far<'a> {
    pipe: &'a mut Pipe,
    responses: &'a mut VecDeque<(Instant, u64)>,
    now: Instant,
    delay: Duration,
    withdrawn: u64,
}

impl Stream for Far<'_> {
    fn readable(&self) -> u64 {
        self.pipe.readable()
    }

    fn read(&mut self, max: u64) -> u64 {
        self.pipe.read(max)
    }

    fn write(&mut self, bytes: u64) {
        self.pipe.write(bytes);
    }

    fn withdraw(&mut self, bytes: u64) -> u64 {
        let mut taken = 0;
        while let [.., before, last] = self.responses.make_contiguous() {
            // A piece leaves when the one before it has left.
            if before.0 - self.delay <= self.now || taken + last.1 > bytes {
                break;
            }
            taken += last.1;
            self.responses.pop_back();
        }
        self.pipe.written -= taken;
        self.withdrawn += taken;
        taken
    }

    fn finish(&mut self) {
        self.pipe.finish();
    }

    fn is_finished(&self) -> bool {
        self.pipe.is_finished()
    }
}

struct Run {
    near: Pipe,
    far: Pipe,
    server: HttpServer,
    /// Arrival times and bytes of requests.
    requests: VecDeque<(Instant, u64)>,
    /// Arrival times and bytes of responses.
    responses: VecDeque<(Instant, u64)>,
    asked: u64,
    answered: u64,
    /// When the link is idle again.
    free: Instant,
    events: Vec<(Instant, PlayerEvent)>,
}

/// The first of a queue, if its time has come.
fn due(queue: &mut VecDeque<(Instant, u64)>, now: Instant) -> Option<(Instant, u64)> {
    queue.front().is_some_and(|first| first.0 == now).then(|| queue.pop_front())?
}

impl Run {
    fn step(&mut self, now: Instant, player: &mut dyn Player, link: &Downlink) {
        if player.poll_timeout() == Some(now) {
            player.handle_timeout(now, &mut self.near);
        } else if let Some((_, bytes)) = due(&mut self.requests, now) {
            self.far.arrive(bytes);
            let mut far =
                Far { pipe: &mut self.far, responses: &mut self.responses, now, delay: link.delay, withdrawn: 0 };
            self.server.on_readable(&mut far);
            if far.withdrawn > 0 {
                self.answered -= far.withdrawn;
                self.free = self.responses.back().map_or(now, |last| last.0 - link.delay);
            }
            self.answer(now, link);
        } else if let Some((_, bytes)) = due(&mut self.responses, now) {
            self.near.arrive(bytes);
            player.on_readable(now, &mut self.near);
        } else {
            self.near.peer_finished = true;
            self.responses.clear();
            player.on_readable(now, &mut self.near);
        }
        self.after(now, link);
    }

    /// Sends the player's requests.
    fn after(&mut self, now: Instant, link: &Downlink) {
        let bytes = self.near.written - self.asked;
        if bytes > 0 {
            self.asked = self.near.written;
            self.requests.push_back((now + link.delay, bytes));
        }
    }

    fn answer(&mut self, now: Instant, link: &Downlink) {
        let mut left = self.far.written - self.answered;
        self.answered = self.far.written;
        self.free = self.free.max(now);
        while left > 0 {
            let piece = left.min(PIECE);
            let Some(sent) = link.sent(self.free, piece) else { return };
            self.free = sent;
            if link.hangs_up.is_none_or(|at| sent + link.delay < at) {
                self.responses.push_back((sent + link.delay, piece));
            }
            left -= piece;
        }
    }
}
