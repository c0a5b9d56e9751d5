//! S1 to S9 and S11: the sticky schedulers' paper.

use super::study::{CONTROLS, Cell, Observation, SCHEDULERS, STICKY, Study};
use super::verdict::{
    Claim, DISCARDS, Finding, Metric, Outcome, QUALITY, RETRANSMISSIONS, SWITCHES, UNDERFLOWS, alike, difference, lower,
};
use crate::statistics::{Mean, paired};

const BASE: &str = "sticky/base";
const LOSSY: &str = "sticky/3p-50";
const LONG: &str = "sticky/3p-150";
/// The papers' DFT.
const DFT: &str = "min-rtt";
const GR: &str = "gr-sty";
const TP: &str = "tp-sty";
const TR: &str = "tr-sty";
const STICKY_ONES: [&str; 3] = [GR, TP, TR];

fn cell(scenario: &'static str, control: &'static str, scheduler: &'static str) -> Cell {
    Cell { scenario, control, scheduler }
}

pub(super) fn claims(study: &Study) -> Vec<Claim> {
    vec![s1(study), s2(study), s3(study), s4(study), s5(study), s6(study), s7(study), s8(study), s9(study), s11(study)]
}

/// A comparison for both measures of quality.
fn both(compare: impl Fn(Metric) -> Finding) -> Vec<Finding> {
    QUALITY.into_iter().map(compare).collect()
}

fn s1(study: &Study) -> Claim {
    let c = |scheduler| cell(BASE, "cubic", scheduler);
    let findings = [GR, TP].into_iter().flat_map(|s| both(|m| lower(study, c(s), c(DFT), m))).collect();
    Claim {
        id: "S1",
        claim: "base, Cubic: GR-STY and TP-STY lower both underflows and discards against DFT",
        criterion: "each of the two is lower than DFT in both",
        findings,
    }
}

fn s2(study: &Study) -> Claim {
    let c = |scheduler| cell(BASE, "cubic", scheduler);
    Claim {
        id: "S2",
        claim: "base, Cubic: TR-STY performs like DFT",
        criterion: "TR-STY is like DFT in underflows and in discards",
        findings: both(|m| alike(study, c(TR), c(DFT), m)),
    }
}

fn s3(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in ["lia", "olia", "compound"] {
        for better in [DFT, TR] {
            for worse in [GR, TP] {
                findings.extend(both(|m| lower(study, cell(BASE, control, better), cell(BASE, control, worse), m)));
            }
        }
    }
    Claim {
        id: "S3",
        claim: "base, LIA, OLIA, Compound: best video under DFT and TR-STY (the conclusion is weaker: \"not impacted\")",
        criterion: "for each control DFT and TR-STY are lower than GR-STY and TP-STY in both",
        findings,
    }
}

fn s4(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for scenario in STICKY.scenarios {
        for control in CONTROLS {
            let c = |scheduler| cell(scenario, control, scheduler);
            findings.push(lower(study, c(GR), c(TP), SWITCHES));
            findings.push(lower(study, c(TP), c(TR), SWITCHES));
            findings.push(alike(study, c(TR), c(DFT), SWITCHES));
        }
    }
    Claim {
        id: "S4",
        claim: "path switches: GR-STY fewest, TR-STY the most of the sticky ones and close to DFT",
        criterion: "in every scenario and for every control GR-STY is lower than TP-STY, TP-STY lower than TR-STY, \
            TR-STY like DFT",
        findings,
    }
}

/// The share of comparisons that may come out by chance: each interval has a fortieth of its probability on the claimed side.
const BY_CHANCE: f64 = 0.05;

fn s5(study: &Study) -> Claim {
    let mut comparisons = Vec::new();
    for scenario in STICKY.scenarios {
        for control in CONTROLS {
            let c = |scheduler| cell(scenario, control, scheduler);
            let switches = |scheduler| Mean::of(&study.values(c(scheduler), SWITCHES.of)).mean;
            let by_switches = SCHEDULERS.into_iter().min_by(|a, b| switches(*a).total_cmp(&switches(*b)));
            let fewest = by_switches.expect("there are four");
            for other in SCHEDULERS.into_iter().filter(|other| *other != fewest) {
                comparisons.extend(both(|m| lower(study, c(other), c(fewest), m)));
            }
        }
    }
    let better: Vec<_> = comparisons.iter().filter(|finding| finding.holds()).collect();
    let example = better.first().map_or(String::new(), |first| format!(", such as {}", first.text));
    let text = format!("{} of {} comparisons{example}", better.len(), comparisons.len());
    Claim {
        id: "S5",
        claim: "the scheduler with fewest switches is not necessarily the one with the best video",
        criterion: "in more than 5 % of the comparisons another scheduler is lower than it in underflows or discards, twice what \
            chance gives",
        findings: vec![Finding::new(text, better.len() as f64 > BY_CHANCE * comparisons.len() as f64)],
    }
}

/// The share of a path in the throughput.
fn share(path: usize) -> impl Fn(&Observation) -> f64 {
    move |o| o.paths[path].throughput_bps / o.paths.iter().map(|p| p.throughput_bps).sum::<f64>()
}

fn s6(study: &Study) -> Claim {
    let mut findings = Vec::new();
    let percent = |d: &Mean| format!("{:+.1} ± {:.1} points", d.mean * 100.0, d.half * 100.0);
    for control in CONTROLS {
        let c = |scheduler| cell(BASE, control, scheduler);
        for other in [1, 2] {
            let d = paired(&study.values(c(DFT), share(0)), &study.values(c(DFT), share(other)));
            let text = format!("{control} under DFT, share of flow 1 − flow {}: {}", other + 1, percent(&d));
            findings.push(Finding::new(text, Outcome::above(&d, 0.0)));
        }
        for scheduler in STICKY_ONES {
            let moved = |path| paired(&study.values(c(scheduler), share(path)), &study.values(c(DFT), share(path)));
            let (first, third) = (moved(0), moved(2));
            let text = format!("{control} {scheduler}: flow 1 {}, flow 3 {}", percent(&first), percent(&third));
            findings.push(Finding::new(text, Outcome::below(&first, 0.0).and(Outcome::above(&third, 0.0))));
            findings.push(lower(study, c(scheduler), c(DFT), RETRANSMISSIONS));
        }
    }
    for coupled in ["lia", "olia"] {
        for plain in ["cubic", "compound"] {
            findings.extend(STICKY_ONES.map(|s| moves_more(study, coupled, plain, s)));
        }
    }
    Claim {
        id: "S6",
        claim: "base: DFT favours flow 1; sticky schedulers move traffic from flow 1 to flow 3, most for LIA and OLIA, with \
            fewer retransmissions overall",
        criterion: "flow 1's share is the largest under DFT; under each sticky scheduler it is lower and flow 3's higher, \
            more so for LIA and OLIA than for Cubic and Compound; retransmissions are lower than under DFT",
        findings,
    }
}

/// Whether a scheduler gives flow 3 more with one control than with another.
fn moves_more(study: &Study, coupled: &'static str, plain: &'static str, scheduler: &'static str) -> Finding {
    let gain = |control| {
        let by = |s| study.values(cell(BASE, control, s), share(2));
        by(scheduler).iter().zip(by(DFT)).map(|(a, b)| a - b).collect::<Vec<_>>()
    };
    let d = paired(&gain(coupled), &gain(plain));
    let text = format!(
        "{scheduler}, gain of flow 3, {coupled} − {plain}: {:+.1} ± {:.1} points",
        d.mean * 100.0,
        d.half * 100.0
    );
    Finding::new(text, Outcome::above(&d, 0.0))
}

fn s7(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in CONTROLS {
        for scheduler in SCHEDULERS {
            let c = |scenario| cell(scenario, control, scheduler);
            findings.extend(both(|m| lower(study, c(BASE), c(LOSSY), m)));
        }
    }
    Claim {
        id: "S7",
        claim: "3p-50: 2 % loss on path 1 degrades underflows and discards clearly against base",
        criterion: "for every control and scheduler base is lower than 3p-50 in both",
        findings,
    }
}

/// LIA and OLIA are alike under all schedulers.
fn coupled_alike(study: &Study, scenario: &'static str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for control in ["lia", "olia"] {
        for scheduler in STICKY_ONES {
            let c = |s| cell(scenario, control, s);
            findings.extend(both(|m| alike(study, c(scheduler), c(DFT), m)));
        }
    }
    findings
}

fn s8(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in ["cubic", "compound"] {
        findings.extend(both(|m| lower(study, cell(LOSSY, control, TR), cell(LOSSY, control, DFT), m)));
    }
    findings.extend(coupled_alike(study, LOSSY));
    Claim {
        id: "S8",
        claim: "3p-50: Cubic and Compound improve under TR-STY; LIA and OLIA are alike under all schedulers",
        criterion: "TR-STY is lower than DFT in both for the first two; each sticky scheduler is like DFT in both for the others",
        findings,
    }
}

fn s9(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for control in ["cubic", "compound"] {
        for metric in QUALITY {
            let gain = |scenario| {
                let by = |s| study.values(cell(scenario, control, s), metric.of);
                by(DFT).iter().zip(by(TR)).map(|(a, b)| a - b).collect::<Vec<_>>()
            };
            let d = paired(&gain(LONG), &gain(LOSSY));
            let text = format!("{control} {}, gain in 3p-150 − in 3p-50: {:.1} ± {:.1}", metric.name, d.mean, d.half);
            findings.push(Finding::new(text, Outcome::below(&d, 0.0)));
        }
    }
    findings.extend(coupled_alike(study, LONG));
    Claim {
        id: "S9",
        claim: "3p-150: the improvement is smaller than in 3p-50; LIA and OLIA alike under all schedulers",
        criterion: "DFT − TR-STY of Cubic and Compound is lower than in 3p-50 in both; LIA and OLIA as in S8",
        findings,
    }
}

fn s11(study: &Study) -> Claim {
    let mut findings = Vec::new();
    for scenario in STICKY.scenarios {
        let improved = CONTROLS.into_iter().filter(|control| {
            STICKY_ONES.iter().any(|s| improves(study, cell(scenario, control, s), cell(scenario, control, DFT)))
        });
        let improved: Vec<_> = improved.collect();
        let text = format!("{scenario}: {} of 4 controls improve ({})", improved.len(), improved.join(", "));
        findings.push(Finding::new(text, improved.len() > CONTROLS.len() / 2));
    }
    Claim {
        id: "S11",
        claim: "most TCP variants deliver better video with sticky scheduling",
        criterion: "in every scenario, for more than half of the controls, some sticky scheduler is lower than DFT in underflows \
            or discards and not higher in the other",
        findings,
    }
}

/// Lower in one measure and not higher, for certain, in the other.
fn improves(study: &Study, a: Cell, b: Cell) -> bool {
    let [u, d] = [UNDERFLOWS, DISCARDS].map(|metric| difference(study, a, b, metric));
    (u.high() < 0.0 && d.low() <= 0.0) || (d.high() < 0.0 && u.low() <= 0.0)
}
