//! Hides subflows from a scheduler that decides inside another one.

use super::{Decision, SubflowSet, View};
use crate::view::SubflowView;

/// What the scheduler inside sees.
#[derive(Debug, Default)]
pub(super) struct Hiding {
    /// The subflows as it sees them, kept to reuse the allocation.
    shown: Vec<SubflowView>,
}

impl Hiding {
    /// What `decide` makes of a view without some subflows: they are no candidates, and are not allowed, so that it
    /// does not wait for them either. `None` if no other candidate is left.
    pub fn decide_without(
        &mut self,
        view: &View<'_>,
        is_hidden: impl Fn(&SubflowView) -> bool,
        decide: impl FnOnce(&View<'_>) -> Decision,
    ) -> Option<Decision> {
        if !view.subflows.iter().any(&is_hidden) {
            return Some(decide(view));
        }
        let mut candidates = SubflowSet::EMPTY;
        view.candidates().filter(|(_, s)| !is_hidden(s)).for_each(|(position, _)| candidates.insert(position));
        if candidates.is_empty() {
            return None;
        }
        self.shown.clear();
        self.shown.extend(view.subflows.iter().map(|s| SubflowView { allowed: s.allowed && !is_hidden(s), ..*s }));
        Some(decide(&View { subflows: &self.shown, candidates, ..*view }))
    }
}
