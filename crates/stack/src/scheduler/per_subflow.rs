//! State of a scheduler for each subflow, by id, because positions shift when a subflow closes.

use crate::view::SubflowView;
use anabranch_units::SubflowId;

/// A value per open subflow. A connection has a handful of them, so a short list is searched faster than a table.
#[derive(Debug, Default)]
pub(super) struct PerSubflow<T> {
    entries: Vec<(SubflowId, T)>,
}

impl<T: Default> PerSubflow<T> {
    /// The value of one subflow; the default value for a new one.
    pub(super) fn of(&mut self, id: SubflowId) -> &mut T {
        let index = match self.entries.iter().position(|(key, _)| *key == id) {
            Some(index) => index,
            None => {
                self.entries.push((id, T::default()));
                self.entries.len() - 1
            }
        };
        &mut self.entries[index].1
    }

    /// A copy of the value of one subflow; the default value for a new one.
    pub(super) fn get(&self, id: SubflowId) -> T
    where
        T: Copy,
    {
        self.entries.iter().find(|(key, _)| *key == id).map(|(_, value)| *value).unwrap_or_default()
    }

    /// Removes closed subflows. Ids are never used again, so a late removal costs memory only.
    pub(super) fn forget_dead(&mut self, living: &[SubflowView]) {
        if self.entries.len() > living.len() {
            self.entries.retain(|(id, _)| living.iter().any(|s| s.id == *id));
        }
    }

    /// Number of subflows with a value.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::{ms, subflow};

    #[test]
    fn the_dead_are_forgotten_and_the_living_keep_their_values() {
        let mut table: PerSubflow<u32> = PerSubflow::default();
        *table.of(SubflowId(0)) = 7;
        *table.of(SubflowId(3)) = 9;
        table.forget_dead(&[subflow(3, ms(10), 10)]);
        assert_eq!(table.len(), 1);
        assert_eq!(*table.of(SubflowId(3)), 9);
        assert_eq!(*table.of(SubflowId(0)), 0);
    }
}
