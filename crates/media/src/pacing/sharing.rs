//! Which viewers share a bottleneck, by the queues that their packets meet.
//!
//! Packets of subflows that share a bottleneck wait in the same queue, so that their delays rise and fall together;
//! those of others do not. Delays are compared ten times a second, for each subflow of a viewer with each of another
//! one:
//!
//! ```text
//! q   = smoothed round trip - least round trip          of subflows with data in flight
//! r   = correlation of q_i and q_j, of which old samples are forgotten within `MEMORY` samples
//! ```
//!
//! Two viewers share a bottleneck from r >= `SHARED` of any two of their subflows on, until all are below `APART`. Who
//! shares one with a member of a group belongs to it: viewers with two paths have two bottlenecks. Who shares none with
//! another one is alone.
//!
//! Work and memory grow with the square of the number of viewers (25 MB for [`MOST_VIEWERS`]); who comes later is
//! alone.
//!
//! RFC 8382 groups flows by similar statistics of one-way delays (skewness, variation, losses), since its senders do
//! not see each other's delays; a server sees those of all its connections, and at the same time.

use super::MOST_VIEWERS;
use anabranch_units::{Duration, Instant, SubflowId};

/// Delays are compared so often.
const INTERVAL: Duration = Duration::from_millis(100);
/// A delay that was noted longer ago says nothing of now.
const FRESH: Duration = Duration::from_millis(200);
/// So many samples are remembered: two minutes of common activity.
const MEMORY: f64 = 1_200.0;
/// Fewer samples say nothing: ten seconds of common activity.
const LEAST: f64 = 100.0;
/// The correlation from which on two subflows share a bottleneck, and the one below which they do not. Simulated ones
/// that did had 0.55 to 0.95, and others at most 0.38 (`viewers/four`, `viewers/unlike`, and two links apart;
/// docs/validation/viewers.md).
const SHARED: f64 = 0.5;
const APART: f64 = 0.4;
/// So many subflows of a viewer are looked at. Numbers of subflows are never used again, so later ones take the places
/// of earlier ones.
const MOST_SUBFLOWS: usize = 4;

/// The queueing delays of all viewers' subflows, and what they have in common.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// By number of the viewer.
    delays: Vec<[Option<Noted>; MOST_SUBFLOWS]>,
    /// The pairs of viewers: those of viewer i with each before begin at i (i - 1) / 2.
    pairs: Vec<Pair>,
    compared_at: Instant,
}

/// The latest queueing delay of a subflow.
#[derive(Clone, Copy, Debug)]
struct Noted {
    at: Instant,
    seconds: f64,
}

/// Two viewers.
#[derive(Clone, Debug, Default)]
struct Pair {
    shares: bool,
    moments: [[Moments; MOST_SUBFLOWS]; MOST_SUBFLOWS],
}

/// Sums over the samples of two delays.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    samples: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        let keeps = 1.0 - 1.0 / MEMORY;
        self.samples = keeps * self.samples + 1.0;
        self.x = keeps * self.x + x;
        self.y = keeps * self.y + y;
        self.xx = keeps * self.xx + x * x;
        self.yy = keeps * self.yy + y * y;
        self.xy = keeps * self.xy + x * y;
    }

    /// The correlation; none of too few samples.
    fn correlation(&self) -> Option<f64> {
        if self.samples < LEAST {
            return None;
        }
        let of = |product: f64, a: f64, b: f64| product / self.samples - a * b / (self.samples * self.samples);
        let (xx, yy) = (of(self.xx, self.x, self.x), of(self.yy, self.y, self.y));
        // Delays that never change have nothing in common.
        if xx > 0.0 && yy > 0.0 { Some(of(self.xy, self.x, self.y) / (xx * yy).sqrt()) } else { Some(0.0) }
    }
}

impl Sharing {
    /// Whether the delays of a viewer's subflows are wanted now.
    pub fn wants(&self, now: Instant, viewer: usize) -> bool {
        let fresh = |noted: &Option<Noted>| noted.is_some_and(|noted| now.since(noted.at) < INTERVAL / 2);
        viewer < MOST_VIEWERS && !self.delays.get(viewer).is_some_and(|delays| delays.iter().any(fresh))
    }

    /// The queueing delay of a viewer's subflow.
    pub fn note(&mut self, now: Instant, viewer: usize, subflow: SubflowId, delay: Duration) {
        if viewer >= self.delays.len() {
            self.delays.resize(viewer + 1, [None; MOST_SUBFLOWS]);
            self.pairs.resize((viewer + 1) * viewer / 2, Pair::default());
        }
        self.delays[viewer][usize::from(subflow.0) % MOST_SUBFLOWS] =
            Some(Noted { at: now, seconds: delay.as_secs_f64() });
    }

    /// Another viewer has this number: nothing is known of them.
    pub fn forget(&mut self, viewer: usize) {
        if viewer < self.delays.len() {
            self.delays[viewer] = [None; MOST_SUBFLOWS];
            for other in (0..self.delays.len()).filter(|other| *other != viewer) {
                self.pairs[place(viewer, other)] = Pair::default();
            }
        }
    }

    /// Compares the delays, if it is time to. Returns whether other viewers share a bottleneck than before.
    pub fn compare(&mut self, now: Instant) -> bool {
        if now.since(self.compared_at) < INTERVAL {
            return false;
        }
        self.compared_at = now;
        let mut changed = false;
        for a in 1..self.delays.len() {
            for b in 0..a {
                changed |= self.pairs[place(a, b)].compare(now, &self.delays[a], &self.delays[b]);
            }
        }
        changed
    }

    /// The group of each of so many viewers: the number of its first member.
    pub fn groups(&self, viewers: usize) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..viewers).collect();
        for a in 1..self.delays.len().min(viewers) {
            for b in (0..a).filter(|&b| self.pairs[place(a, b)].shares) {
                let (first, other) = (groups[a].min(groups[b]), groups[a].max(groups[b]));
                if first == other {
                    continue;
                }
                groups.iter_mut().filter(|group| **group == other).for_each(|group| *group = first);
            }
        }
        groups
    }
}

/// Where the pair of two viewers is.
fn place(a: usize, b: usize) -> usize {
    let (low, high) = (a.min(b), a.max(b));
    high * (high - 1) / 2 + low
}

impl Pair {
    /// Adds a sample of each two subflows; returns whether the viewers share a bottleneck now and did not, or the
    /// reverse.
    fn compare(&mut self, now: Instant, a: &[Option<Noted>], b: &[Option<Noted>]) -> bool {
        let fresh = |noted: &Option<Noted>| noted.filter(|noted| now.since(noted.at) < FRESH);
        let mut sampled = false;
        for (moments, x) in self.moments.iter_mut().zip(a) {
            let Some(x) = fresh(x) else { continue };
            for (moments, y) in moments.iter_mut().zip(b) {
                let Some(y) = fresh(y) else { continue };
                moments.add(x.seconds, y.seconds);
                sampled = true;
            }
        }
        if !sampled {
            return false;
        }
        let correlations = self.moments.iter().flatten().filter_map(Moments::correlation);
        let Some(most) = correlations.reduce(f64::max) else { return false };
        let shares = most >= if self.shares { APART } else { SHARED };
        std::mem::replace(&mut self.shares, shares) != shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at_ms;

    /// Delays in milliseconds of each viewer's only subflow at the n-th sample.
    fn compared(samples: std::ops::Range<u64>, sharing: &mut Sharing, delays: impl Fn(u64) -> Vec<u64>) -> Vec<usize> {
        let mut count = 0;
        for n in samples {
            let now = at_ms(1_000 + 100 * n);
            let delays = delays(n);
            count = delays.len();
            for (viewer, delay) in delays.into_iter().enumerate() {
                sharing.note(now, viewer, SubflowId(0), Duration::from_millis(delay));
            }
            sharing.compare(now);
        }
        sharing.groups(count)
    }

    /// Two queues that rise and fall with other periods.
    fn queues(n: u64) -> (u64, u64) {
        (10 * (n % 7), 10 * (n % 11))
    }

    #[test]
    fn who_meets_the_same_queue_is_a_group_and_others_are_alone() {
        let mut sharing = Sharing::default();
        let delays = |n| {
            let (a, b) = queues(n);
            vec![a, b, a + 3, b / 2, 20]
        };
        assert_eq!(compared(0..99, &mut sharing, delays), [0, 1, 2, 3, 4], "too few samples");
        assert_eq!(compared(99..300, &mut sharing, delays), [0, 1, 0, 1, 4]);
    }

    #[test]
    fn a_hundred_viewers_of_each_of_two_queues_are_two_groups_and_there_is_a_most_of_viewers() {
        let delays = |n| (0..200).map(|viewer| if viewer % 2 == 0 { queues(n).0 } else { queues(n).1 }).collect();
        let mut sharing = Sharing::default();
        let expected: Vec<_> = (0..200).map(|viewer| viewer % 2).collect();
        assert_eq!(compared(0..150, &mut sharing, delays), expected);
        assert!(sharing.wants(at_ms(60_000), MOST_VIEWERS - 1));
        assert!(!sharing.wants(at_ms(60_000), MOST_VIEWERS), "it is alone");
    }

    #[test]
    fn a_viewer_with_two_paths_joins_those_of_both() {
        let mut sharing = Sharing::default();
        for n in 0..300 {
            let (now, (a, b)) = (at_ms(1_000 + 100 * n), queues(n));
            let noted = [(0, 0, a), (1, 0, b), (2, 0, a), (2, 1, b)];
            for (viewer, subflow, delay) in noted {
                sharing.note(now, viewer, SubflowId(subflow), Duration::from_millis(delay));
            }
            sharing.compare(now);
        }
        assert_eq!(sharing.groups(3), [0, 0, 0]);
    }

    #[test]
    fn a_viewer_whose_path_was_joined_again_and_again_still_counts() {
        let mut sharing = Sharing::default();
        for n in 0..300 {
            let (now, (delay, _)) = (at_ms(1_000 + 100 * n), queues(n));
            for (viewer, subflow) in [(0, 0), (1, 7)] {
                sharing.note(now, viewer, SubflowId(subflow), Duration::from_millis(delay));
            }
            sharing.compare(now);
        }
        assert_eq!(sharing.groups(2), [0, 0]);
    }

    #[test]
    fn who_moves_to_another_queue_leaves_the_group_and_a_new_viewer_is_alone() {
        let mut sharing = Sharing::default();
        let same = |n| vec![queues(n).0, queues(n).0];
        let apart = |n| vec![queues(n).0, queues(n).1];
        assert_eq!(compared(0..200, &mut sharing, same), [0, 0]);
        assert_eq!(compared(200..4_000, &mut sharing, apart), [0, 1]);
        assert_eq!(compared(4_000..9_000, &mut sharing, same), [0, 0]);
        sharing.forget(1);
        assert_eq!(sharing.groups(2), [0, 1]);
    }

    #[test]
    fn delays_that_are_old_are_not_compared() {
        let mut sharing = Sharing::default();
        sharing.note(at_ms(0), 1, SubflowId(0), Duration::from_millis(5));
        let groups = compared(10..2_000, &mut sharing, |n| vec![queues(n).0]);
        assert_eq!((groups, sharing.groups(2)), (vec![0], vec![0, 1]));
        assert!(sharing.pairs[0].moments[0][0].samples < 1.0);
    }
}
