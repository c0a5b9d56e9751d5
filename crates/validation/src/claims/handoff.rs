//! H1 to H10: the handoff paper.

use super::study::{CONTROLS, Cell, HANDOFF, Study};
use super::verdict::{Claim, Finding, Outcome, disturbed, undisturbed};
use crate::statistics::{Mean, paired};

/// The papers' DFT.
const DFT: &str = "min-rtt";
const GR: &str = "gr-sty";
const LIMITED: &str = "handoff/limited-handoff";
const LARGE: &str = "handoff/large-handoff";
const CELLULAR: &str = "handoff/cellular-handoff";

/// A share of all segments that are retransmissions which the paper may have called significant.
const SIGNIFICANT: f64 = 0.01;
/// And very few.
const VERY_FEW: f64 = 0.001;

fn cell(scenario: &'static str, control: &'static str, scheduler: &'static str) -> Cell {
    Cell { scenario, control, scheduler }
}

/// Every control and scheduler in some scenarios.
fn every(scenarios: &[&'static str]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for scenario in scenarios {
        for control in CONTROLS {
            cells.extend(HANDOFF.schedulers.iter().map(|scheduler| cell(scenario, control, scheduler)));
        }
    }
    cells
}

pub(super) fn claims(study: &Study) -> Vec<Claim> {
    vec![h1(study), h2(study), h3(study), h4(study), h5(study), h6(study), h7(study), h8(study), h9(study), h10(study)]
}

fn h1(study: &Study) -> Claim {
    let cells = every(&["handoff/limited", "handoff/large"]);
    Claim {
        id: "H1",
        claim: "WiFi-WiFi without handoff, DFT: (nearly) no underflow and no discard, also in limited",
        criterion: "undisturbed under DFT for every control",
        findings: cells.into_iter().filter(|c| c.scheduler == DFT).map(|c| undisturbed(study, c)).collect(),
    }
}

fn h2(study: &Study) -> Claim {
    Claim {
        id: "H2",
        claim: "WiFi-WiFi handoff: video undisturbed in both bandwidth scenarios",
        criterion: "undisturbed for every control and both schedulers",
        findings: every(&[LIMITED, LARGE]).into_iter().map(|c| undisturbed(study, c)).collect(),
    }
}

fn h3(study: &Study) -> Claim {
    let finding = |c: Cell| {
        let flow = |i: usize| study.values(c, |o| o.paths[i].throughput_bps / 1e6);
        let d = paired(&flow(1), &flow(0));
        let text = format!(
            "{} {} {}: flow 2 − flow 1 {:+.2} ± {:.2} Mb/s",
            c.scenario, c.control, c.scheduler, d.mean, d.half
        );
        Finding::new(text, Outcome::above(&d, 0.0))
    };
    Claim {
        id: "H3",
        claim: "after the handoff flow 2 carries the traffic; its throughput is the larger",
        criterion: "over the whole session flow 2's throughput is higher than flow 1's",
        findings: every(&[LIMITED, LARGE]).into_iter().map(finding).collect(),
    }
}

/// The share of a flow's segments that are retransmissions.
fn retransmitted(study: &Study, c: Cell, flow: usize) -> Mean {
    Mean::of(&study.values(c, |o| o.paths[flow].retransmissions / o.paths[flow].segments.max(1.0)))
}

fn repeated_text(c: Cell, flow: usize, share: &Mean) -> String {
    let (percent, half) = (share.mean * 100.0, share.half * 100.0);
    format!("{} {}, flow {}: {percent:.2} ± {half:.2} % repeated", c.control, c.scheduler, flow + 1)
}

fn h4(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in ["olia", "compound"] {
        for flow in [0, 1] {
            let c = cell(LIMITED, control, DFT);
            let share = retransmitted(study, c, flow);
            findings.push(Finding::new(repeated_text(c, flow, &share), Outcome::above(&share, SIGNIFICANT)));
        }
    }
    Claim {
        id: "H4",
        claim: "limited, DFT: significant retransmissions on both flows for OLIA and Compound",
        criterion: "with the handoff, more than 1 % of each flow's segments are retransmissions",
        findings,
    }
}

fn h5(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in CONTROLS {
        for flow in [0, 1] {
            let c = cell(LIMITED, control, GR);
            let share = retransmitted(study, c, flow);
            findings.push(Finding::new(repeated_text(c, flow, &share), Outcome::below(&share, VERY_FEW)));
        }
    }
    Claim {
        id: "H5",
        claim: "GR-STY: very few retransmissions for every control in the same experiment",
        criterion: "less than 0.1 % of each flow's segments are retransmissions",
        findings,
    }
}

fn h6(study: &Study) -> Claim {
    let perfect = |c: Cell| {
        let none = study.cell(c).iter().all(|o| o.underflows == 0.0 && o.discards == 0.0);
        Finding::new(undisturbed(study, c).text, none)
    };
    Claim {
        id: "H6",
        claim: "WiFi-LTE without handoff: perfect streaming under both schedulers",
        criterion: "no underflow and no discard with any control, scheduler and seed",
        findings: every(&["handoff/cellular"]).into_iter().map(perfect).collect(),
    }
}

fn h7(study: &Study) -> Claim {
    let mut findings = vec![disturbed(study, cell(CELLULAR, "olia", DFT)), disturbed(study, cell(CELLULAR, "lia", GR))];
    let calm = every(&[CELLULAR]).into_iter().filter(|c| matches!(c.control, "cubic" | "compound"));
    findings.extend(calm.map(|c| undisturbed(study, c)));
    Claim {
        id: "H7",
        claim: "WiFi-LTE handoff: significant underflow and discards for OLIA with DFT and for LIA with GR-STY; none for Cubic \
            and Compound",
        criterion: "disturbed for certain in the first two cases, undisturbed in the others",
        findings,
    }
}

fn h8(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in ["compound", "olia"] {
        for scheduler in HANDOFF.schedulers {
            let c = cell(CELLULAR, control, scheduler);
            let flow = |i: usize| study.values(c, |o| o.paths[i].retransmissions);
            let d = paired(&flow(1), &flow(0));
            let text = format!("{control} {scheduler}: LTE − WiFi {:+.1} ± {:.1}", d.mean, d.half);
            findings.push(Finding::new(text, Outcome::above(&d, 0.0)));
        }
    }
    Claim {
        id: "H8",
        claim: "WiFi-LTE handoff: most retransmissions are on the LTE path, for Compound and OLIA",
        criterion: "more retransmissions on LTE than on WiFi",
        findings,
    }
}

fn h9(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for scenario in [LIMITED, LARGE, CELLULAR] {
        for control in CONTROLS {
            let c = cell(scenario, control, DFT);
            let d = paired(&study.values(c, |o| o.around_cut.0), &study.values(c, |o| o.around_cut.1));
            let text = format!("{scenario} {control}: before − after {:+.1} ± {:.1}", d.mean, d.half);
            findings.push(Finding::new(text, Outcome::above(&d, 0.0)));
        }
    }
    Claim {
        id: "H9",
        claim: "DFT: most retransmissions come before the handoff, while both flows are used",
        criterion: "more retransmissions before the cut than after it, in every scenario and for every control",
        findings,
    }
}

fn h10(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for scenario in [LIMITED, LARGE, CELLULAR] {
        for control in ["lia", "olia"] {
            for scheduler in HANDOFF.schedulers {
                let seconds = |control| study.values(cell(scenario, control, scheduler), |o| o.recovery_s);
                let d = paired(&seconds(control), &seconds("cubic"));
                let text = format!("{scenario} {scheduler}: {control} − cubic {:+.2} ± {:.2} s", d.mean, d.half);
                findings.push(Finding::new(text, Outcome::above(&d, 0.0)));
            }
        }
    }
    Claim {
        id: "H10",
        claim: "cause: coupling (the window depends on all active paths) slows recovery after the handoff",
        criterion: "until flow 2 carries the video's rate for a second, LIA and OLIA need longer than Cubic",
        findings,
    }
}
