//! Round trips, counted by bytes: a round ends when everything that was sent at its beginning is acknowledged.

use super::Ack;

/// The end of the current round. The very first acknowledgment ends a round that had no beginning, so a controller
/// that measures during a round asks for a minimum of samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    end: u64,
}

impl Rounds {
    /// Whether this acknowledgment ends the round; the next one then begins with what is in flight.
    pub(super) fn ended_by(&mut self, ack: &Ack) -> bool {
        let ended = ack.acked_offset > self.end;
        if ended {
            self.restart(ack);
        }
        ended
    }

    /// Begins a round at this acknowledgment, even if the last one has not ended.
    pub(super) fn restart(&mut self, ack: &Ack) {
        self.end = ack.sent_offset;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ack;
    use super::*;

    #[test]
    fn a_round_ends_beyond_the_byte_that_was_sent_last_at_its_beginning() {
        let at = |acked_offset, sent_offset| Ack { acked_offset, sent_offset, ..ack(0.0, 1, 0.1) };
        let mut rounds = Rounds::default();
        assert!(rounds.ended_by(&at(1, 100)));
        assert!(!rounds.ended_by(&at(100, 200)));
        assert!(rounds.ended_by(&at(101, 250)));
        assert!(!rounds.ended_by(&at(250, 300)));
    }
}
