//! The timeouts of the components, and the earliest of them.
//!
//! A tournament tree: the leaves hold one time per component, every inner node the winner of its two children. Setting a time
//! replays the matches on one way to the root, O(log n), without allocation; reading the earliest is O(1).
//! Ties go to the component with the lower index, so a run has one order whatever was set in which order.

use anabranch_units::Instant;

/// A component with its time, as one number: the lower is the earlier, and of equal times that of the lower component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Instant, component: usize) -> Self {
        Entry(u128::from(at.as_nanos()) << 64 | component as u128)
    }

    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    fn component(self) -> usize {
        self.0 as u64 as usize
    }
}

/// The timeouts of a fixed number of components.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// `nodes[1]` is the root, the children of `i` are `2 i` and `2 i + 1`, and the second half are the leaves, one per component.
    /// Padded to a power of two. Leaves without a timeout have [`Instant::FAR_FUTURE`].
    nodes: Vec<Entry>,
}

impl Agenda {
    /// For components `0..count`, all without a timeout.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let mut nodes: Vec<_> = (0..2 * leaves).map(|i| Entry::new(Instant::FAR_FUTURE, i % leaves)).collect();
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        Agenda { nodes }
    }

    /// Sets the timeout of a component; [`Instant::FAR_FUTURE`] if it has none.
    #[inline]
    pub fn set(&mut self, component: usize, at: Instant) {
        let leaf = self.nodes.len() / 2 + component;
        let entry = Entry::new(at, component);
        if self.nodes[leaf] != entry {
            self.nodes[leaf] = entry;
            self.replay(leaf);
        }
    }

    /// Replays the matches on the way to the root from a leaf that has changed, as far as a winner changes.
    fn replay(&mut self, leaf: usize) {
        let (mut winner, mut node) = (self.nodes[leaf], leaf);
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == winner {
                break;
            }
            self.nodes[node] = winner;
        }
    }

    /// The earliest timeout and its component; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub fn next(&self) -> (Instant, usize) {
        (self.nodes[1].at(), self.nodes[1].component())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nobody_wants_anything_at_first() {
        for count in [0, 1, 2, 3, 8, 9] {
            assert_eq!(Agenda::new(count).next().0, Instant::FAR_FUTURE);
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_search_through_a_list(
            count in 1usize..40,
            steps in proptest::collection::vec((0usize..40, 0u64..20), 1..200),
        ) {
            let mut agenda = Agenda::new(count);
            let mut list = vec![Instant::FAR_FUTURE; count];
            for (component, time) in steps {
                let component = component % count;
                let time = if time == 19 { Instant::FAR_FUTURE } else { Instant::from_nanos(time) };
                agenda.set(component, time);
                list[component] = time;
                let first = list.iter().copied().enumerate().map(|(i, at)| (at, i)).min().unwrap();
                let next = agenda.next();
                prop_assert_eq!(next.0, first.0);
                if first.0 != Instant::FAR_FUTURE {
                    prop_assert_eq!(next, first);
                }
            }
        }
    }
}
