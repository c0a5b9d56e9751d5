//! Switch requests of dash.js's rules, and their combination.
//!
//! 2.0 to 2.4:  the *highest* representation of the highest priority that was used (RulesController.applyRules with the
//!              override function of AbrController.getPlaybackQuality, 2.2.0)
//! from 2.5 on: the *lowest* (ABRRulesCollection.getMinSwitchRequest), where every rule has the default priority

use super::super::view::Vote;

/// `SwitchRequest.PRIORITY`. (`WEAK` is only given to requests for no change.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Default,
    Strong,
}

/// A `SwitchRequest` for a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) rule: &'static str,
    pub(super) representation: usize,
    pub(super) priority: Priority,
}

impl Request {
    pub(super) fn new(rule: &'static str, representation: usize) -> Self {
        Request { rule, representation, priority: Priority::Default }
    }

    pub(super) fn strong(rule: &'static str, representation: usize) -> Self {
        Request { rule, representation, priority: Priority::Strong }
    }

    pub(super) fn vote(&self) -> Vote {
        Vote { rule: self.rule, representation: self.representation }
    }
}

fn strongest(requests: &[Request]) -> impl Iterator<Item = Request> {
    let priority = requests.iter().map(|r| r.priority).max();
    requests.iter().copied().filter(move |r| Some(r.priority) == priority)
}

/// The lowest representation of the strongest priority; of equals, the first asked for.
pub(super) fn lowest(requests: &[Request]) -> Option<Request> {
    strongest(requests).min_by_key(|r| r.representation)
}

/// The highest representation of the strongest priority; of equals, the first asked for.
pub(super) fn highest(requests: &[Request]) -> Option<Request> {
    strongest(requests).reduce(|best, r| if r.representation > best.representation { r } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strong_request_excludes_the_others() {
        let all = [Request::new("a", 1), Request::strong("b", 5), Request::strong("c", 3), Request::new("d", 9)];
        assert_eq!(lowest(&all).map(|r| r.rule), Some("c"));
        assert_eq!(highest(&all).map(|r| r.rule), Some("b"));
    }

    #[test]
    fn the_lowest_and_the_highest_need_not_come_first() {
        let all = [Request::new("a", 3), Request::new("b", 1), Request::new("c", 7), Request::new("d", 5)];
        assert_eq!((lowest(&all).map(|r| r.rule), highest(&all).map(|r| r.rule)), (Some("b"), Some("c")));
    }

    #[test]
    fn of_equals_the_first_gives_the_reason() {
        let all = [Request::new("a", 2), Request::new("b", 2)];
        assert_eq!((lowest(&all), highest(&all)), (Some(all[0]), Some(all[0])));
        assert_eq!((lowest(&[]), highest(&[])), (None, None));
    }
}
