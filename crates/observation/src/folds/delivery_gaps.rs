//! The longest time in which nothing arrived although something was asked for.

use anabranch_events::{PlayerEvent, TransportEvent};
use anabranch_units::{Duration, Instant};

/// Folds what the player asked for and when bytes became readable. While no response is under way nothing is sent, so
/// that time does not count.
#[derive(Clone, Debug, Default)]
pub struct DeliveryGaps {
    /// Responses under way.
    under_way: u32,
    /// Since when nothing became readable while a response is under way.
    since: Option<Instant>,
    longest: Duration,
}

impl DeliveryGaps {
    /// Takes in one event of the player.
    pub fn observe(&mut self, at: Instant, event: &PlayerEvent) {
        match event {
            PlayerEvent::Requested { .. } => {
                self.since = self.since.or(Some(at));
                self.under_way += 1;
            }
            PlayerEvent::ResponseComplete { .. } => {
                self.under_way = self.under_way.saturating_sub(1);
                if self.under_way == 0 {
                    self.longest = self.longest(at);
                    self.since = None;
                }
            }
            // Of what was under way nothing more comes.
            PlayerEvent::Reconnected => {
                self.longest = self.longest(at);
                (self.under_way, self.since) = (0, None);
            }
            _ => {}
        }
    }

    /// Takes in one event of the endpoint that receives the content, before what the player says because of it.
    #[inline]
    pub fn observe_receiver(&mut self, at: Instant, event: &TransportEvent) {
        if let TransportEvent::Delivered { .. } = event
            && let Some(since) = self.since
        {
            self.longest = self.longest.max(at.since(since));
            self.since = Some(at);
        }
    }

    /// The longest gap of a session that ended, or was cut off, at `end`.
    pub fn longest(&self, end: Instant) -> Duration {
        self.longest.max(self.since.map_or(Duration::ZERO, |since| end.since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_ms, ms};

    fn delivered() -> TransportEvent {
        TransportEvent::Delivered { subflow: None, offset: None, bytes: 1, waited: ms(0), across: ms(0) }
    }

    fn complete(request: u32) -> PlayerEvent {
        PlayerEvent::ResponseComplete { request, bytes: 1, end: 0 }
    }

    #[test]
    fn only_time_in_which_a_response_is_under_way_counts() {
        let mut gaps = DeliveryGaps::default();
        gaps.observe(at_ms(100), &PlayerEvent::Requested { request: 0 });
        gaps.observe_receiver(at_ms(400), &delivered());
        gaps.observe_receiver(at_ms(450), &delivered());
        gaps.observe(at_ms(450), &complete(0));
        assert_eq!(gaps.longest(at_ms(9_000)), ms(300), "between requests nothing is sent");
        gaps.observe(at_ms(9_000), &PlayerEvent::Requested { request: 1 });
        gaps.observe(at_ms(9_100), &PlayerEvent::Requested { request: 2 });
        gaps.observe_receiver(at_ms(9_200), &delivered());
        gaps.observe(at_ms(9_200), &complete(1));
        assert_eq!(gaps.longest(at_ms(9_400)), ms(300));
        assert_eq!(gaps.longest(at_ms(9_900)), ms(700), "the second response has not come until the end");
    }

    #[test]
    fn a_new_connection_owes_nothing_of_the_old_one() {
        let mut gaps = DeliveryGaps::default();
        gaps.observe(at_ms(0), &PlayerEvent::Requested { request: 0 });
        gaps.observe(at_ms(500), &PlayerEvent::Reconnected);
        assert_eq!(gaps.longest(at_ms(9_000)), ms(500));
        gaps.observe(at_ms(9_000), &PlayerEvent::Requested { request: 1 });
        gaps.observe_receiver(at_ms(9_800), &delivered());
        assert_eq!(gaps.longest(at_ms(9_900)), ms(800));
    }
}
