//! On-off traffic: the same request at every interval, as a player makes that has filled its buffer, but without a player's decisions.

use super::{Content, Player, PlayerSetup, SetupError, receive, refuse_dash, refuse_vlc};
use crate::http::{Exchange, Exchanges, HttpClient};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_units::{Duration, Instant};

/// From one request to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long it goes on asking where nothing is said.
const DURATION: Duration = Duration::from_secs(60);

/// Fetches one body again and again.
pub struct OnOff {
    client: HttpClient,
    body: u64,
    /// When the next request is due; it waits until the response before it is complete.
    due: Instant,
    duration: Duration,
    /// It stops here, whatever is under way.
    end: Instant,
    fetching: bool,
    finished: bool,
    log: Log<PlayerEvent>,
}

pub(super) fn build(setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
    let options = setup.options;
    refuse_dash("on-off", &options)?;
    refuse_vlc("on-off", &options)?;
    let Content::Bytes(body) = setup.content else {
        return Err(SetupError::WrongContent { player: "on-off", needs: "a number of bytes" });
    };
    let duration = options.duration.unwrap_or(DURATION);
    Ok(Box::new(OnOff::new(body, duration, setup.exchanges.clone())))
}

impl OnOff {
    /// A request for `body` bytes every second, for so long.
    pub fn new(body: u64, duration: Duration, exchanges: Exchanges) -> Self {
        OnOff {
            client: HttpClient::new(exchanges),
            body,
            due: Instant::ZERO,
            duration,
            end: Instant::ZERO,
            fetching: false,
            finished: false,
            log: Log::default(),
        }
    }

    fn finish(&mut self, stream: &mut dyn Stream) {
        self.finished = true;
        stream.finish();
    }

    fn request(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.fetching || self.finished || now < self.due {
            return;
        }
        self.due += INTERVAL;
        self.fetching = true;
        let request = self.client.request(stream, Exchange::get(self.body));
        self.log.emit(now, PlayerEvent::Requested { request });
    }
}

impl Player for OnOff {
    fn start(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.due = now;
        self.end = now + self.duration;
        self.request(now, stream);
    }

    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.finished {
            return;
        }
        let received = receive(&mut self.client, stream, u64::MAX, now, &mut self.log);
        if received.completed.is_some() {
            self.fetching = false;
            self.request(now, stream);
        } else if stream.is_finished() {
            self.finish(stream);
        }
    }

    fn on_timer(&mut self, now: Instant, stream: &mut dyn Stream) {
        if now >= self.end && !self.finished {
            return self.finish(stream);
        }
        self.request(now, stream);
    }

    fn next_timer(&self) -> Option<Instant> {
        let next = if self.fetching { self.end } else { self.due.min(self.end) };
        (!self.finished).then_some(next)
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn log(&mut self) -> &mut Log<PlayerEvent> {
        &mut self.log
    }

    fn sample(&mut self, _now: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::RESPONSE_HEADER_BYTES;
    use crate::testing::{Pipe, at_ms, watch};

    fn requests(said: &[(Instant, PlayerEvent)]) -> Vec<Instant> {
        said.iter().filter(|(_, event)| matches!(event, PlayerEvent::Requested { .. })).map(|(at, _)| *at).collect()
    }

    #[test]
    fn it_asks_every_second() {
        let mut player = OnOff::new(1_000, Duration::from_secs(60), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let said = watch(&mut player, &mut Pipe::default(), [(300, whole), (1_200, whole)], at_ms(2_500));
        assert_eq!(requests(&said), [at_ms(0), at_ms(1_000), at_ms(2_000)]);
    }

    #[test]
    fn a_late_answer_delays_the_next_request_and_no_later_one() {
        let mut player = OnOff::new(1_000, Duration::from_secs(60), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let said = watch(&mut player, &mut Pipe::default(), [(1_400, whole), (1_500, whole)], at_ms(2_500));
        assert_eq!(requests(&said), [at_ms(0), at_ms(1_400), at_ms(2_000)]);
    }

    #[test]
    fn it_ends_with_its_time() {
        let mut player = OnOff::new(1_000, Duration::from_secs(2), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let mut pipe = Pipe::default();
        let said = watch(&mut player, &mut pipe, [(300, whole), (1_200, whole)], at_ms(5_000));
        assert_eq!(requests(&said), [at_ms(0), at_ms(1_000)]);
        assert!(player.finished() && pipe.finished && player.next_timer().is_none());
    }

    #[test]
    fn a_server_that_hangs_up_ends_it() {
        let mut player = OnOff::new(1_000, Duration::from_secs(60), Exchanges::new());
        let mut pipe = Pipe::default();
        watch(&mut player, &mut pipe, [(5, 700)], at_ms(10));
        pipe.peer_finished = true;
        player.on_readable(at_ms(11), &mut pipe);
        assert!(player.finished() && player.next_timer().is_none());
    }
}
