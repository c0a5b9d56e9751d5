//! The claims' Markdown.

use super::forecasts::{Areas, HORIZON_S};
use super::study::{Cell, Group, HANDOFF, Observation, STICKY, Study, cells};
use super::verdict::Claim;
use super::{explanations, judge};
use crate::report::{interval, number, table};
use crate::statistics::Mean;

/// The means of one group's cells.
pub fn cells_table(study: &Study, group: Group) -> String {
    let handoff = group.schedulers.len() == HANDOFF.schedulers.len();
    let paths = if handoff { 2 } else { 3 };
    let mut head =
        vec!["scenario", "control", "scheduler", "underflows", "discards", "stalls", "stalled s", "switches"];
    head.push("retransmissions");
    head.extend(&["Mb/s on 1", "on 2", "on 3"][..paths]);
    if handoff {
        head.extend(["before the cut", "after", "recovery s"]);
    }
    let rows: Vec<Vec<String>> = cells(group).map(|cell| cell_row(study, cell, paths, handoff)).collect();
    table(&head, &rows)
}

fn cell_row(study: &Study, cell: Cell, paths: usize, handoff: bool) -> Vec<String> {
    let mean = |of: &dyn Fn(&Observation) -> f64| interval(&Mean::of(&study.values(cell, of)));
    let mut row = vec![cell.scenario.to_string(), cell.control.to_string(), cell.scheduler.to_string()];
    let columns: [fn(&Observation) -> f64; 6] =
        [|o| o.underflows, |o| o.discards, |o| o.stalls, |o| o.stall_s, |o| o.switches, |o| o.retransmissions];
    row.extend(columns.iter().map(|of| mean(of)));
    row.extend((0..paths).map(|path| mean(&|o: &Observation| o.paths[path].throughput_bps / 1e6)));
    if handoff && cell.scenario.ends_with("-handoff") {
        row.extend([mean(&|o| o.around_cut.0), mean(&|o| o.around_cut.1), mean(&|o| o.recovery_s)]);
    } else if handoff {
        row.extend(["", "", ""].map(String::from));
    }
    row
}

/// How many sessions were not played to the end, in words.
pub fn unfinished(study: &Study) -> String {
    let all = || cells(STICKY).chain(cells(HANDOFF)).flat_map(|cell| study.cell(cell));
    let missing = all().filter(|o| !o.finished).count();
    match missing {
        0 => format!("All {} sessions were played to the end.", all().count()),
        n => format!("{n} of {} sessions were not played to the end within the scenario's time.", all().count()),
    }
}

/// The verdicts of the first study, and beside them those of its variants.
pub fn verdicts_table(studies: &[Study], forecasts: &Claim) -> String {
    let judged: Vec<Vec<Claim>> = studies.iter().map(judge).collect();
    let head = ["id", "the paper's claim", "criterion", "findings that hold", "verdict", "why"];
    let mut claims: Vec<&Claim> = judged[0].iter().collect();
    claims.insert(9, forecasts);
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let cells = [claim.id, claim.claim, claim.criterion, &claim.score(), claim.verdict().word()];
            let mut row: Vec<String> = cells.iter().map(|cell| collapse(cell)).collect();
            row.push(collapse(explanations::of(claim.id, claim.verdict())));
            row
        })
        .collect();
    table(&head, &rows)
}

/// The verdicts under every variant.
pub fn variants_table(studies: &[Study]) -> String {
    let judged: Vec<Vec<Claim>> = studies.iter().map(judge).collect();
    let titles: Vec<String> = studies.iter().map(|s| format!("{} ({} seeds)", s.variant.name, s.seeds)).collect();
    let mut head = vec!["id"];
    head.extend(titles.iter().map(String::as_str));
    let row = |i: usize| {
        let mut row = vec![judged[0][i].id.to_string()];
        row.extend(judged.iter().map(|claims| format!("{} ({})", claims[i].verdict().word(), claims[i].score())));
        row
    };
    table(&head, &(0..judged[0].len()).map(row).collect::<Vec<_>>())
}

/// Every finding, under its claim.
pub fn findings_list(study: &Study, forecasts: &Claim) -> String {
    let mut claims = judge(study);
    claims.insert(9, forecasts.clone());
    let mut text = String::new();
    for claim in &claims {
        text.push_str(&format!("- **{}** ({})\n", claim.id, claim.verdict().word()));
        for finding in &claim.findings {
            let mark = if finding.holds { "holds" } else { "does not hold" };
            text.push_str(&format!("  - {mark}: {}\n", finding.text));
        }
    }
    text
}

/// The areas by scenario and control, means over schedulers and seeds.
pub fn forecasts_table(areas: &[Areas]) -> String {
    let mut rows = Vec::new();
    for scenario in STICKY.scenarios {
        for control in super::study::CONTROLS {
            let own: Vec<&Areas> =
                areas.iter().filter(|a| a.cell.scenario == *scenario && a.cell.control == control).collect();
            let cell = |of: fn(&Areas) -> Option<f64>| {
                let values: Vec<f64> = own.iter().filter_map(|a| of(a)).collect();
                match values.len() {
                    0 => "no case".to_string(),
                    n => format!("{} ({n} of {} sessions)", number(Mean::of(&values).mean), own.len()),
                }
            };
            rows.push(vec![(*scenario).to_string(), control.to_string(), cell(|a| a.underflow), cell(|a| a.discard)]);
        }
    }
    let underflow = format!("underflow within {HORIZON_S} s, area under the curve");
    table(&["scenario", "control", &underflow, "the picture is discarded, area under the curve"], &rows)
}

/// Text without the breaks that the source's lines have.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
