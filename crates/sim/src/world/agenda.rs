//! The timeouts of the components, and the earliest of them.
//!
//! A tournament tree: the leaves hold one time per component, every inner node the winner of its two children. Setting a time
//! replays the matches on one way to the root, O(log n), without allocation; reading the earliest is O(1).
//! Ties go to the component with the lower index, so a run has one order whatever was set in which order.

use anabranch_units::Instant;

/// The timeouts of a fixed number of components.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// One per leaf; [`Instant::FAR_FUTURE`]: never. Padded to a power of two.
    times: Vec<Instant>,
    /// `winners[1]` is the root, the children of `i` are `2 i` and `2 i + 1`, and the leaf of component `c` is `times.len() + c`.
    winners: Vec<u32>,
}

impl Agenda {
    /// For components `0..count`, all without a timeout.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let mut winners: Vec<u32> = vec![0; leaves];
        winners.extend(0..leaves as u32);
        for node in (1..leaves).rev() {
            // All times are equal, so the left child wins everywhere.
            winners[node] = winners[2 * node];
        }
        Agenda { times: vec![Instant::FAR_FUTURE; leaves], winners }
    }

    /// Sets the timeout of a component; [`Instant::FAR_FUTURE`] if it has none.
    #[inline]
    pub fn set(&mut self, component: usize, at: Instant) {
        if self.times[component] != at {
            self.times[component] = at;
            self.replay(component);
        }
    }

    /// The timeout of a component.
    #[inline]
    pub fn time(&self, component: usize) -> Instant {
        self.times[component]
    }

    /// Replays the matches on the way from a component, whose time has changed, to the root.
    fn replay(&mut self, component: usize) {
        let component = component as u32;
        let mut winner = (self.times[component as usize], component);
        let mut node = self.times.len() + component as usize;
        while node > 1 {
            let other = self.winners[node ^ 1];
            // Of equal times that of the lower index wins.
            winner = winner.min((self.times[other as usize], other));
            node /= 2;
            // A winner above against another component is unchanged, for only this one's time has changed.
            if self.winners[node] == winner.1 && winner.1 != component {
                break;
            }
            self.winners[node] = winner.1;
        }
    }

    /// The earliest timeout and its component; [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub fn next(&self) -> (Instant, usize) {
        let component = self.winners[1] as usize;
        (self.times[component], component)
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
