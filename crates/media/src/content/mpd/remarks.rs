//! What a reader of an MPD should know.

use super::xml::{Source, Spot};
use crate::content::ContentWarning;

/// Warnings beyond these are counted.
const MOST_WARNINGS: usize = 20;
/// Media segments of all representations together: half a second of work, and 16 bytes for the size of each.
const MOST_LAID: usize = 20_000_000;

/// What a reader of the MPD should know, in order.
#[derive(Default)]
pub(super) struct Remarks<'a> {
    list: Vec<(&'a Spot, String)>,
    more: usize,
    /// Media segments that were placed.
    laid: usize,
}

impl<'a> Remarks<'a> {
    /// What the warning about an element is, without a full stop.
    pub fn add(&mut self, spot: &'a Spot, message: String) {
        if self.list.len() < MOST_WARNINGS {
            self.list.push((spot, message));
        } else {
            self.more += 1;
        }
    }

    /// Counts media segments; whether there may be so many.
    pub fn lay(&mut self, count: usize) -> bool {
        self.laid = self.laid.saturating_add(count);
        self.laid <= MOST_LAID
    }

    /// As warnings, `first` in front.
    pub fn finish(self, source: &Source, first: Option<&str>) -> Vec<ContentWarning> {
        let of_file = |message| ContentWarning { file: source.file.clone(), place: None, message };
        let mut warnings: Vec<_> = first.map(str::to_string).into_iter().map(of_file).collect();
        warnings.extend(self.list.into_iter().map(|(spot, message)| source.warning(spot, message)));
        if self.more > 0 {
            warnings.push(of_file(format!("{} more parts of the MPD are not used as they are written", self.more)));
        }
        warnings
    }
}
