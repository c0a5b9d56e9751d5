//! Always the same representation: the baseline of comparisons.

use super::{AbrRule, Decision, Entry, View};

pub(super) const ENTRY: Entry = Entry {
    name: "fixed",
    summary: "Always the same representation, the highest allowed one unless another is named.",
    source: "none",
    create: |options| {
        options.expect_only("fixed", &["representation"])?;
        Ok(Box::new(Fixed { representation: options.representation }))
    },
};

#[derive(Debug)]
struct Fixed {
    representation: Option<usize>,
}

impl AbrRule for Fixed {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        Decision::now(self.representation.map_or(view.top, |r| r.min(view.top)), "fixed")
    }
}

#[cfg(test)]
mod tests {
    use super::super::AbrOptions;
    use super::super::testing::{ladder, view};
    use super::*;

    fn chosen(representation: Option<usize>, top: usize) -> usize {
        let ladder = ladder(&[100, 200, 300]);
        let mut rule = (ENTRY.create)(&AbrOptions { representation, ..AbrOptions::default() }).unwrap();
        rule.decide(&View { top, ..view(&ladder) }).representation
    }

    #[test]
    fn it_is_the_named_one_within_the_limit() {
        assert_eq!(chosen(Some(0), 2), 0);
        assert_eq!(chosen(Some(1), 2), 1);
        assert_eq!(chosen(Some(9), 2), 2);
        assert_eq!(chosen(Some(2), 1), 1);
        assert_eq!(chosen(None, 2), 2);
        assert_eq!(chosen(None, 1), 1);
    }
}
