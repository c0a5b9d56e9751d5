//! Every subflow may carry data.

use super::{Entry, PathPolicy};
use crate::scheduler::SubflowSet;
use crate::view::SubflowView;
use anabranch_units::Instant;

pub(super) const ENTRY: Entry = Entry {
    name: "full-mesh",
    summary: "Uses every subflow.",
    source: "RFC 8684 section 1.3; Linux's default",
    create: |options| {
        options.expect_only(&[])?;
        Ok(Box::new(FullMesh))
    },
};

#[derive(Debug)]
struct FullMesh;

impl PathPolicy for FullMesh {
    fn decide(&mut self, _now: Instant, subflows: &[SubflowView]) -> SubflowSet {
        let mut all = SubflowSet::EMPTY;
        (0..subflows.len().min(64)).for_each(|at| all.insert(at));
        all
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}
