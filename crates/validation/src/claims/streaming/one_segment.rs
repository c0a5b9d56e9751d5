//! P11: a media segment of 4 Mb/s over paths of 5 and 1 Mb/s.

use super::compare::{DELAY, Quantity, REORDER, SECOND_CHOICE, STALLS, above, higher, lower};
use super::mptcp_plus::alone;
use super::study::{Condition, Study};
use crate::claims::verdict::Claim;
use crate::runs::set;

const SCENARIO: &str = "mptcp-plus/one-segment";
/// Every media segment in the 4 Mb/s representation.
const FIXED_PAIR: &str = "4 Mb/s over 5 + 1";
const FIXED_ALONE: &str = "4 Mb/s over 5";
/// The first one only; then dash.js chooses.
const CHOOSING_PAIR: &str = "dash.js over 5 + 1";
const CHOOSING_ALONE: &str = "dash.js over 5";

pub(super) fn conditions() -> Vec<Condition> {
    let fixed = || vec![set("session.0.player", "{ kind = \"fixed\", representation = 17 }")];
    let mut fixed_alone = fixed();
    fixed_alone.extend(alone("path1"));
    vec![
        Condition::new(FIXED_PAIR, SCENARIO, fixed()),
        Condition::new(FIXED_ALONE, SCENARIO, fixed_alone),
        Condition::new(CHOOSING_PAIR, SCENARIO, Vec::new()),
        Condition::new(CHOOSING_ALONE, SCENARIO, alone("path1")),
    ]
}

pub(super) fn p11(study: &Study) -> Claim {
    Claim {
        id: "P11",
        claim: "a 4 Mb/s segment over 5 + 1 Mb/s: the part on the slow path delays the segment, may cause a rebuffering, and lowers the \
            next choice",
        criterion: "with every segment at 4 Mb/s the mean delay is higher over both paths than over the fast one, bytes wait for earlier \
            ones, and there are more stalls; after a first segment at 4 Mb/s dash.js's next choice is lower",
        findings: vec![
            higher(study, FIXED_PAIR, FIXED_ALONE, DELAY),
            above(study, FIXED_PAIR, REORDER, 0.0),
            higher(study, FIXED_PAIR, FIXED_ALONE, STALLS),
            lower(study, CHOOSING_PAIR, CHOOSING_ALONE, SECOND_CHOICE),
        ],
    }
}

pub(super) fn quantities(study: &Study) -> Vec<Quantity> {
    let mut all = Vec::new();
    for condition in [FIXED_PAIR, FIXED_ALONE] {
        all.extend([DELAY, STALLS].map(|metric| metric.quantity(study, "P11", condition, "")));
    }
    all.extend([CHOOSING_PAIR, CHOOSING_ALONE].map(|c| SECOND_CHOICE.quantity(study, "P11", c, "")));
    all
}
