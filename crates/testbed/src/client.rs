//! The scenario's players in real time, on a kernel's sockets.

use crate::shared_flow::SharedFlow;
use crate::socket::{Dialer, SocketStream, wait};
use anabranch_events::{Log, PlayerEvent};
use anabranch_live::sharpen_timers;
use anabranch_media::{Player, Stream};
use anabranch_testnet::run_before_others;
use anabranch_units::{Duration, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Interval of the checks for a stop without other activity.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// Interval of the checks for new data while the player leaves bytes unread: the kernel would report the old ones for
/// ever.
const RECHECK_INTERVAL: Duration = Duration::from_millis(2);

/// A player that starts at a given time.
pub(crate) struct ModelClient {
    pub flow: Arc<SharedFlow>,
    pub player: Box<dyn Player + Send>,
    pub dialer: Dialer,
}

impl ModelClient {
    /// Plays until the player is done, its connection is closed or the run is over. The calling thread must be in the
    /// client's namespace.
    pub fn run(mut self) {
        let flow = self.flow.clone();
        if let Err(error) = self.play(&flow) {
            flow.fail(format!("{}: {error}", flow.name));
        }
        flow.state().over = true;
    }

    fn play(&mut self, flow: &SharedFlow) -> io::Result<()> {
        sharpen_timers()?;
        // A player that runs late would count pictures as late that were not.
        run_before_others();
        while flow.clock.now() < flow.start {
            if flow.stopped() {
                return Ok(());
            }
            let left = flow.start.since(flow.clock.now()).min(STOP_INTERVAL);
            std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
        }
        let socket = self.dialer.dial()?;
        while !wait(&socket, false, true, STOP_INTERVAL.as_nanos())?.writable {
            if flow.stopped() {
                return Ok(());
            }
        }
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let mut stream = SocketStream::new(socket, self.dialer.clone(), flow);
        self.player.start(flow.clock.now(), &mut stream);
        self.run_player(flow, &mut stream)
    }

    fn run_player(&mut self, flow: &SharedFlow, stream: &mut SocketStream<'_>) -> io::Result<()> {
        let player = &mut self.player;
        let mut next_sample = next_multiple(flow.clock.now(), flow.sample_interval);
        loop {
            stream.flush();
            observe(flow, player.log());
            let now = flow.clock.now();
            if player.finished() {
                flow.state().finished = Some(now);
                return Ok(());
            }
            if flow.stopped() {
                return Ok(());
            }
            if stream.is_over() && stream.readable() == 0 && player.poll_timeout().is_none() {
                return stream.failure().map_or(Ok(()), |error| Err(io::Error::new(error.kind(), error.to_string())));
            }
            flow.starved.store(player.poll_timeout().is_none(), Ordering::Relaxed);
            let unread = stream.readable() > 0;
            let pause = if unread { RECHECK_INTERVAL } else { STOP_INTERVAL };
            let wake = player.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(next_sample).min(now + pause);
            let listens = !unread && !stream.is_over();
            let ready = wait(&stream.socket, listens, stream.wants_to_write(), wake.since(now).as_nanos())?;
            let now = flow.clock.now();
            if stream.refresh(now) || (listens && ready.readable && stream.look_for_end()) {
                player.on_readable(now, stream);
            }
            if player.poll_timeout().is_some_and(|at| at <= now) {
                player.handle_timeout(now, stream);
            }
            if now >= next_sample {
                player.sample(now);
                next_sample = next_multiple(now, flow.sample_interval);
            }
        }
    }
}

/// Passes the player's events to the observer.
fn observe(flow: &SharedFlow, log: &mut Log<PlayerEvent>) {
    if !log.is_empty() {
        flow.observer().see_player(log);
    }
}

/// The next instant after `now` that is a whole number of intervals from zero.
pub(crate) fn next_multiple(now: Instant, interval: Duration) -> Instant {
    let step = interval.as_nanos().max(1);
    Instant::from_nanos((now.as_nanos() / step + 1) * step)
}
