//! A stream and a host for tests: bytes arrive at given times, timeouts are handled when due.

use crate::{Player, Stream};
use anabranch_events::PlayerEvent;
use anabranch_units::{Duration, Instant};

/// One end of a connection whose arrivals are set by the test.
#[derive(Default)]
pub(crate) struct Pipe {
    readable: u64,
    pub(crate) written: u64,
    pub(crate) finished: bool,
    pub(crate) peer_finished: bool,
}

impl Pipe {
    pub(crate) fn arrive(&mut self, bytes: u64) {
        self.readable += bytes;
    }
}

impl Stream for Pipe {
    fn readable(&self) -> u64 {
        self.readable
    }

    fn read(&mut self, max: u64) -> u64 {
        let taken = max.min(self.readable);
        self.readable -= taken;
        taken
    }

    fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    fn finish(&mut self) {
        self.finished = true;
    }

    fn is_finished(&self) -> bool {
        self.peer_finished && self.readable == 0
    }
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Starts a player at zero, applies `arrivals` (milliseconds, bytes) in order, handles its timeouts, and collects its
/// events until it has finished or `until` is reached. A timeout is handled before an arrival of the same instant.
pub(crate) fn watch(
    player: &mut dyn Player,
    pipe: &mut Pipe,
    arrivals: impl IntoIterator<Item = (u64, u64)>,
    until: Instant,
) -> Vec<(Instant, PlayerEvent)> {
    let mut events = Vec::new();
    player.start(Instant::ZERO, pipe);
    for (ms, bytes) in arrivals {
        let now = at_ms(ms);
        if now > until {
            break;
        }
        run_timers(player, pipe, now);
        pipe.arrive(bytes);
        player.on_readable(now, pipe);
        events.extend(player.log().drain());
    }
    run_timers(player, pipe, until);
    events.extend(player.log().drain());
    assert!(events.windows(2).all(|w| w[0].0 <= w[1].0), "events are in order");
    events
}

fn run_timers(player: &mut dyn Player, pipe: &mut Pipe, until: Instant) {
    let mut last = (Instant::ZERO, 0);
    while let Some(due) = player.poll_timeout().filter(|&due| due <= until) {
        last = if due == last.0 { (due, last.1 + 1) } else { (due, 0) };
        assert!(last.1 < 10, "the timer at {due} fires without effect");
        player.handle_timeout(due, pipe);
    }
}

/// A constant rate: `bytes` every `every_ms` milliseconds, `count` times, from `from_ms` on.
pub(crate) fn steady(from_ms: u64, every_ms: u64, bytes: u64, count: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..count).map(move |n| (from_ms + n * every_ms, bytes))
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
