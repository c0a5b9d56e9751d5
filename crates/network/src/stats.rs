//! What one direction of a link has counted.

use crate::Histogram;
use anabranch_events::DropCause;

/// Packets and their bytes at the network layer, without the link's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Count {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Counters of one direction since it was made. They stand as of the last call that carried a time.
///
/// `sent + duplicated == delivered + dropped + inside`, in packets and in bytes;
/// [`Direction::inside`](crate::Direction::inside) says the last of these.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// What the host handed in.
    pub sent: Count,
    /// What the host took out at the far end, copies included.
    pub delivered: Count,
    /// Copies that the link made.
    pub duplicated: Count,
    /// How long packets waited in the queue before the server took them, its own time over them excluded.
    /// Packets that were dropped while they waited are not in it.
    pub queue_delay: Histogram,
    dropped: [Count; 4],
}

impl Stats {
    /// What was dropped for this reason.
    pub fn dropped(&self, cause: DropCause) -> Count {
        self.dropped[index(cause)]
    }

    /// What was dropped, for whatever reason.
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
