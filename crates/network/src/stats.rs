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
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
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
