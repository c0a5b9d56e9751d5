//! The timeouts of the components, and the earliest of them.
//!
//! A tournament tree: the leaves hold one time per component, every inner node the winner of its two children. Setting
//! a time replays the matches on one way to the root, O(log n), without allocation; reading the earliest is O(1).
//! Ties go to the component with the lower index, so a run has one order whatever was set in which order.

use anabranch_units::Instant;

/// The timeouts of a fixed number of components.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// `nodes[1]` is the root, the children of `i` are `2 i` and `2 i + 1`, and the leaf of component `c` is
    /// `nodes.len() / 2 + c`. A node has the time and the component of its winner. The leaves are padded to a power of
    /// two.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// [`Instant::FAR_FUTURE`]: never.
    time: Instant,
    component: u32,
}

impl Agenda {
    /// For components `0..count`, all without a timeout.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let mut nodes = vec![Node { time: Instant::FAR_FUTURE, component: 0 }; 2 * leaves];
        for component in 0..leaves {
            nodes[leaves + component].component = component as u32;
        }
        for node in (1..leaves).rev() {
            // All times are equal, so the left child wins everywhere.
            nodes[node] = nodes[2 * node];
        }
        Agenda { nodes }
    }

    /// Sets the timeout of a component; [`Instant::FAR_FUTURE`] if it has none.
    #[inline]
    pub fn set(&mut self, component: usize, at: Instant) {
        let leaf = self.nodes.len() / 2 + component;
        if self.nodes[leaf].time != at {
            self.nodes[leaf].time = at;
            self.replay(leaf);
        }
    }

    /// The timeout of a component.
    #[inline]
    pub fn time(&self, component: usize) -> Instant {
        self.nodes[self.nodes.len() / 2 + component].time
    }

    /// Replays the matches on the way from a leaf, whose time has changed, to the root.
    fn replay(&mut self, leaf: usize) {
        let (mut node, mut winner) = (leaf, self.nodes[leaf]);
        while node > 1 {
            let other = self.nodes[node ^ 1];
            // Of equal times that of the lower component wins, which is on the left: its node is even.
            let loses = other.time < winner.time || (other.time == winner.time && node % 2 == 1);
            if loses {
                winner = other;
            }
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
        let Node { time, component } = self.nodes[1];
        (time, component as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_due_at_first() {
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
