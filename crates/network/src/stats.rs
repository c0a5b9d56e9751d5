//! Counters of one direction of a link.

use crate::Histogram;
use anabranch_events::DropCause;

/// Packets and their bytes at the network layer, without the link's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Bytes at the network layer.
    pub bytes: u64,
}

impl Count {
    fn plus(self, other: Count) -> Count {
        Count { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// The counters of a direction that lost count of packets: what entered is not what was delivered or dropped or is
/// inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} packets ({} B) entered, but {} ({} B) were delivered, {} ({} B) dropped and {} ({} B) are inside",
    .entered.packets, .entered.bytes, .delivered.packets, .delivered.bytes,
    .dropped.packets, .dropped.bytes, .inside.packets, .inside.bytes
)]
pub struct Imbalance {
    /// Sent by the host, or copied by the link.
    pub entered: Count,
    /// Received at the far end.
    pub delivered: Count,
    /// Dropped for any cause.
    pub dropped: Count,
    /// Waiting, in service or propagating.
    pub inside: Count,
}

/// Counters of one direction since its creation, as of the last call with a time.
///
/// `sent + duplicated == delivered + dropped + inside`, in packets and in bytes;
/// [`Direction::inside`](crate::Direction::inside) returns the last of these.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Packets that the host sent.
    pub sent: Count,
    /// Packets that the host received at the far end, copies included.
    pub delivered: Count,
    /// Copies made by the link.
    pub duplicated: Count,
    /// Times that packets waited in the queue until their transmission began.
    /// Packets dropped while waiting are not included.
    pub queue_delay: Histogram,
    dropped: [Count; 4],
}

impl Stats {
    /// Packets dropped for this cause.
    pub fn dropped(&self, cause: DropCause) -> Count {
        self.dropped[index(cause)]
    }

    /// Packets dropped for any cause.
    pub fn dropped_in_total(&self) -> Count {
        let sum = |field: fn(&Count) -> u64| self.dropped.iter().map(field).sum();
        Count { packets: sum(|c| c.packets), bytes: sum(|c| c.bytes) }
    }

    /// Checks that no packet was lost count of: what was sent or copied was delivered, dropped, or is `inside`.
    ///
    /// # Errors
    /// The numbers, if they do not add up: that is a fault of this program.
    pub fn check_conservation(&self, inside: Count) -> Result<(), Imbalance> {
        let balance = Imbalance {
            entered: self.sent.plus(self.duplicated),
            delivered: self.delivered,
            dropped: self.dropped_in_total(),
            inside,
        };
        let left = balance.delivered.plus(balance.dropped).plus(inside);
        if balance.entered == left { Ok(()) } else { Err(balance) }
    }

    pub(crate) fn count_drop(&mut self, cause: DropCause, bytes: u32) {
        self.dropped[index(cause)].add(bytes);
    }
}

fn index(cause: DropCause) -> usize {
    match cause {
        DropCause::Queue => 0,
        DropCause::Random => 1,
        DropCause::Outage => 2,
        DropCause::TooBig => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(packets: u64, bytes: u64) -> Count {
        Count { packets, bytes }
    }

    /// Ten sent and one copied; six delivered, three dropped for different causes, two inside.
    fn balanced() -> Stats {
        let mut stats = Stats { sent: count(10, 1_000), duplicated: count(1, 100), ..Stats::default() };
        stats.delivered = count(6, 600);
        for cause in [DropCause::Queue, DropCause::Random, DropCause::Outage] {
            stats.count_drop(cause, 100);
        }
        stats
    }

    #[test]
    fn what_entered_was_delivered_or_dropped_or_is_inside() {
        assert_eq!(balanced().check_conservation(count(2, 200)), Ok(()));
    }

    #[test]
    fn a_packet_or_a_byte_too_many_or_too_few_is_found() {
        for inside in [count(1, 200), count(3, 200), count(2, 199), count(2, 201)] {
            let imbalance = balanced().check_conservation(inside).unwrap_err();
            assert_eq!((imbalance.entered, imbalance.inside), (count(11, 1_100), inside));
        }
        let mut stats = balanced();
        stats.count_drop(DropCause::TooBig, 100);
        let text = stats.check_conservation(count(2, 200)).unwrap_err().to_string();
        let expected =
            "11 packets (1100 B) entered, but 6 (600 B) were delivered, 4 (400 B) dropped and 2 (200 B) are inside";
        assert_eq!(text, expected);
    }
}
