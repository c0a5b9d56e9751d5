//! A download: reads whatever is there at once, so the receive window never holds the sender back.

use super::{Content, Player, PlayerSetup, SetupError, receive, refuse_dash, refuse_vlc};
use crate::http::{Exchange, Exchanges, HttpClient};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_units::{Duration, Instant};

/// The body of an endless download: a pebibyte, a day at 100 Gb/s.
const ENDLESS_BYTES: u64 = 1 << 50;

/// Fetches one body as fast as it comes.
pub struct Bulk {
    client: HttpClient,
    body: u64,
    duration: Option<Duration>,
    deadline: Option<Instant>,
    finished: bool,
    log: Log<PlayerEvent>,
}

pub(super) fn build(setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
    let options = setup.options;
    refuse_dash("bulk", &options)?;
    refuse_vlc("bulk", &options)?;
    let body = match setup.content {
        Content::Bytes(bytes) => bytes,
        Content::Endless => ENDLESS_BYTES,
        Content::Progressive(_) | Content::Dash(_) => {
            let needs = "a number of bytes, or endless content";
            return Err(SetupError::WrongContent { player: "bulk", needs });
        }
    };
    Ok(Box::new(Bulk::new(body, options.duration, setup.exchanges.clone())))
}

impl Bulk {
    /// A download of `body` bytes that stops after `duration` even if there is more.
    pub fn new(body: u64, duration: Option<Duration>, exchanges: Exchanges) -> Self {
        Bulk {
            client: HttpClient::new(exchanges),
            body,
            duration,
            deadline: None,
            finished: false,
            log: Log::default(),
        }
    }

    fn finish(&mut self, stream: &mut dyn Stream) {
        self.finished = true;
        self.deadline = None;
        stream.finish();
    }
}

impl Player for Bulk {
    fn start(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.deadline = self.duration.map(|d| now + d);
        let request = self.client.request(stream, Exchange::get(self.body));
        self.log.emit(now, PlayerEvent::Requested { request });
    }

    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.finished {
            return;
        }
        let received = receive(&mut self.client, stream, u64::MAX, now, &mut self.log);
        if received.completed.is_some() || stream.is_finished() {
            self.finish(stream);
        }
    }

    fn on_timer(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.finish(stream);
        }
    }

    fn next_timer(&self) -> Option<Instant> {
        self.deadline
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
    use crate::http::{REQUEST_HEADER_BYTES, RESPONSE_HEADER_BYTES};
    use crate::testing::{Pipe, at_ms, steady, watch};

    #[test]
    fn it_ends_with_the_last_byte() {
        let mut bulk = Bulk::new(1_000, None, Exchanges::new());
        let mut pipe = Pipe::default();
        let said = watch(&mut bulk, &mut pipe, [(5, RESPONSE_HEADER_BYTES), (7, 999), (9, 1)], at_ms(20));
        assert_eq!(pipe.written, REQUEST_HEADER_BYTES);
        assert_eq!(
            said,
            [
                (at_ms(0), PlayerEvent::Requested { request: 0 }),
                (at_ms(5), PlayerEvent::FirstByte { request: 0 }),
                (
                    at_ms(9),
                    PlayerEvent::ResponseComplete { request: 0, bytes: 1_000, end: 1_000 + RESPONSE_HEADER_BYTES }
                ),
            ]
        );
        assert!(bulk.finished() && pipe.finished);
    }

    #[test]
    fn an_endless_one_stops_on_time() {
        let mut bulk = Bulk::new(ENDLESS_BYTES, Some(Duration::from_millis(50)), Exchanges::new());
        let mut pipe = Pipe::default();
        watch(&mut bulk, &mut pipe, steady(0, 1, 1_000, 49), at_ms(49));
        assert!(!bulk.finished());
        assert_eq!((pipe.readable(), bulk.next_timer()), (0, Some(at_ms(50))));
        bulk.on_timer(at_ms(50), &mut pipe);
        assert!(bulk.finished() && pipe.finished && bulk.next_timer().is_none());
    }

    #[test]
    fn a_server_that_hangs_up_ends_it() {
        let mut bulk = Bulk::new(1_000, None, Exchanges::new());
        let mut pipe = Pipe::default();
        watch(&mut bulk, &mut pipe, [(5, 700)], at_ms(10));
        pipe.peer_finished = true;
        bulk.on_readable(at_ms(11), &mut pipe);
        assert!(bulk.finished());
    }
}
