//! Downloads without a player's decisions: one body as fast as it comes (`bulk`), or the same one at every interval, as
//! a player asks whose buffer is full (`on-off`). What arrives is read at once, so the receive window never limits the
//! sender.

use super::{Content, FileOptions, Player, PlayerSetup, SetupError, receive, refuse_unknown};
use crate::http::{Exchange, Exchanges, HttpClient};
use crate::stream::Stream;
use anabranch_events::{Log, PlayerEvent};
use anabranch_units::{Duration, Instant};

/// The body of an endless download: a pebibyte, a day at 100 Gb/s.
const ENDLESS_BYTES: u64 = 1 << 50;
/// Default time from one request of `on-off` to the next.
const INTERVAL: Duration = Duration::from_secs(1);
/// Default duration of `on-off`.
const ON_OFF_DURATION: Duration = Duration::from_secs(60);

/// Fetches a body, once or at every interval.
pub struct Bulk {
    client: HttpClient,
    body: u64,
    /// From one request to the next, if there is more than one.
    interval: Option<Duration>,
    /// When the next request is due, if there is one. It waits until the response before it is complete.
    due: Option<Instant>,
    duration: Option<Duration>,
    /// When the download stops, whatever is under way.
    end: Option<Instant>,
    fetching: bool,
    finished: bool,
    log: Log<PlayerEvent>,
}

/// The player `bulk`.
pub(super) fn bulk(setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
    let player = "bulk";
    refuse_unknown(player, &setup.options, &["duration"])?;
    let body = match setup.content {
        Content::Bytes(bytes) => bytes,
        Content::Endless => ENDLESS_BYTES,
        Content::Progressive(_) | Content::Dash(_) => {
            return Err(SetupError::WrongContent { player, needs: "a number of bytes, or endless content" });
        }
    };
    Ok(Box::new(Bulk::once(body, setup.options.file.duration, setup.exchanges.clone())))
}

/// The player `on-off`.
pub(super) fn on_off(setup: &PlayerSetup) -> Result<Box<dyn Player + Send>, SetupError> {
    let player = "on-off";
    refuse_unknown(player, &setup.options, &["duration", "interval"])?;
    let Content::Bytes(body) = setup.content else {
        return Err(SetupError::WrongContent { player, needs: "a number of bytes" });
    };
    let FileOptions { duration, interval, .. } = setup.options.file;
    let (interval, duration) = (interval.unwrap_or(INTERVAL), duration.unwrap_or(ON_OFF_DURATION));
    Ok(Box::new(Bulk::every(interval, body, duration, setup.exchanges.clone())))
}

impl Bulk {
    /// One request for `body` bytes, which stops after `duration` even if there is more.
    pub fn once(body: u64, duration: Option<Duration>, exchanges: Exchanges) -> Self {
        Bulk {
            client: HttpClient::new(exchanges),
            body,
            interval: None,
            due: None,
            duration,
            end: None,
            fetching: false,
            finished: false,
            log: Log::default(),
        }
    }

    /// A request for `body` bytes at every `interval`, until `duration` has passed.
    pub fn every(interval: Duration, body: u64, duration: Duration, exchanges: Exchanges) -> Self {
        Bulk { interval: Some(interval), ..Bulk::once(body, Some(duration), exchanges) }
    }

    fn finish(&mut self, stream: &mut dyn Stream) {
        self.finished = true;
        stream.finish();
    }

    /// Sends the request that is due, unless a response is under way.
    fn request(&mut self, now: Instant, stream: &mut dyn Stream) {
        let Some(due) = self.due.filter(|due| *due <= now && !self.fetching && !self.finished) else { return };
        self.due = self.interval.map(|interval| due + interval);
        self.fetching = true;
        let request = self.client.request(stream, Exchange::get(self.body));
        self.log.emit(now, PlayerEvent::Requested { request });
    }
}

impl Player for Bulk {
    fn start(&mut self, now: Instant, stream: &mut dyn Stream) {
        self.due = Some(now);
        self.end = self.duration.map(|duration| now + duration);
        self.request(now, stream);
    }

    fn on_readable(&mut self, now: Instant, stream: &mut dyn Stream) {
        if self.finished {
            return;
        }
        let received = receive(&mut self.client, stream, u64::MAX, now, &mut self.log);
        let complete = received.completed.is_some();
        if complete && self.due.is_some() {
            self.fetching = false;
            self.request(now, stream);
        } else if complete || stream.is_finished() {
            self.finish(stream);
        }
    }

    fn handle_timeout(&mut self, now: Instant, stream: &mut dyn Stream) {
        if !self.finished && self.end.is_some_and(|end| end <= now) {
            return self.finish(stream);
        }
        self.request(now, stream);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.due.filter(|_| !self.fetching);
        self.end.into_iter().chain(due).min().filter(|_| !self.finished)
    }

    fn finished(&self) -> bool {
        self.finished
    }

    fn has_end(&self) -> bool {
        self.interval.is_none() && self.body < ENDLESS_BYTES
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
        let mut bulk = Bulk::once(1_000, None, Exchanges::new());
        let mut pipe = Pipe::default();
        let events = watch(&mut bulk, &mut pipe, [(5, RESPONSE_HEADER_BYTES), (7, 999), (9, 1)], at_ms(20));
        assert_eq!(pipe.written, REQUEST_HEADER_BYTES);
        assert_eq!(
            events,
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
        let mut bulk = Bulk::once(ENDLESS_BYTES, Some(Duration::from_millis(50)), Exchanges::new());
        let mut pipe = Pipe::default();
        watch(&mut bulk, &mut pipe, steady(0, 1, 1_000, 49), at_ms(49));
        assert!(!bulk.finished());
        assert_eq!((pipe.readable(), bulk.poll_timeout()), (0, Some(at_ms(50))));
        bulk.handle_timeout(at_ms(50), &mut pipe);
        assert!(bulk.finished() && pipe.finished && bulk.poll_timeout().is_none());
    }

    #[test]
    fn only_a_download_of_so_many_bytes_has_an_end() {
        assert!(Bulk::once(1_000, None, Exchanges::new()).has_end());
        assert!(!Bulk::once(ENDLESS_BYTES, None, Exchanges::new()).has_end());
        assert!(!Bulk::every(INTERVAL, 1_000, Duration::from_secs(60), Exchanges::new()).has_end());
    }

    fn requests(events: &[(Instant, PlayerEvent)]) -> Vec<Instant> {
        events.iter().filter(|(_, event)| matches!(event, PlayerEvent::Requested { .. })).map(|(at, _)| *at).collect()
    }

    #[test]
    fn it_asks_every_second() {
        let mut player = Bulk::every(INTERVAL, 1_000, Duration::from_secs(60), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let events = watch(&mut player, &mut Pipe::default(), [(300, whole), (1_200, whole)], at_ms(2_500));
        assert_eq!(requests(&events), [at_ms(0), at_ms(1_000), at_ms(2_000)]);
    }

    #[test]
    fn a_late_answer_delays_the_next_request_and_no_later_one() {
        let mut player = Bulk::every(INTERVAL, 1_000, Duration::from_secs(60), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let events = watch(&mut player, &mut Pipe::default(), [(1_400, whole), (1_500, whole)], at_ms(2_500));
        assert_eq!(requests(&events), [at_ms(0), at_ms(1_400), at_ms(2_000)]);
    }

    #[test]
    fn without_an_interval_it_asks_as_soon_as_the_response_is_complete() {
        let mut player = Bulk::every(Duration::ZERO, 1_000, Duration::from_secs(60), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let events =
            watch(&mut player, &mut Pipe::default(), [(300, whole), (350, 900), (1_400, whole - 900)], at_ms(2_500));
        assert_eq!(requests(&events), [at_ms(0), at_ms(300), at_ms(1_400)]);
    }

    #[test]
    fn it_ends_with_its_time() {
        let mut player = Bulk::every(INTERVAL, 1_000, Duration::from_secs(2), Exchanges::new());
        let whole = RESPONSE_HEADER_BYTES + 1_000;
        let mut pipe = Pipe::default();
        let events = watch(&mut player, &mut pipe, [(300, whole), (1_200, whole)], at_ms(5_000));
        assert_eq!(requests(&events), [at_ms(0), at_ms(1_000)]);
        assert!(player.finished() && pipe.finished && player.poll_timeout().is_none());
    }

    #[test]
    fn a_server_that_hangs_up_ends_it() {
        let once = Bulk::once(1_000, None, Exchanges::new());
        let every_second = Bulk::every(INTERVAL, 1_000, Duration::from_secs(60), Exchanges::new());
        for mut player in [once, every_second] {
            let mut pipe = Pipe::default();
            watch(&mut player, &mut pipe, [(5, 700)], at_ms(10));
            pipe.peer_finished = true;
            player.on_readable(at_ms(11), &mut pipe);
            assert!(player.finished() && pipe.finished && player.poll_timeout().is_none());
        }
    }
}
