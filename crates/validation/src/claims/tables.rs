//! The claims' Markdown.

use super::forecasts::{Areas, HORIZON_S};
use super::reproduction::{ClaimRow, Details, Paper, Reproduction, Under};
use super::streaming::Quantity;
use super::study::{Cell, Group, HANDOFF, Observation, STICKY, Study, cells};
use super::verdict::Outcome;
use crate::report::{interval, number, table};
use crate::statistics::Mean;

/// The means of one group's conditions.
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

/// How many sessions of a study were not played to the end, in words.
pub fn unfinished(missing: usize, all: usize) -> String {
    match missing {
        0 => format!("All {all} sessions were played to the end."),
        n => format!("{n} of {all} sessions were not played to the end within the scenario's time."),
    }
}

/// The verdicts of a paper's claims.
pub fn verdicts_table(rows: &[ClaimRow]) -> String {
    let head = ["id", "the paper's claim", "criterion", "findings that hold", "verdict", "why"];
    let line = |row: &ClaimRow| {
        let claim = &row.claim;
        let score = claim.score();
        [claim.id, claim.claim, claim.criterion, &score, claim.verdict().word(), row.why()].map(collapse).to_vec()
    };
    table(&head, &rows.iter().map(line).collect::<Vec<_>>())
}

/// Which assumptions change which verdict.
pub fn variants_table(rows: &[ClaimRow]) -> String {
    let mut varied = rows.iter().filter(|row| !row.under.is_empty()).peekable();
    let Some(first) = varied.peek() else { return String::new() };
    let names: Vec<&str> = first.under[1..].iter().map(|under| under.variant).collect();
    let intro = format!("Varied, with {} seeds each: {}.", first.under[0].seeds, names.join("; "));
    let lines: Vec<_> = varied.map(variants_line).collect();
    let head = ["id", "as shipped", "findings that hold", "the same verdict under", "another verdict under"];
    format!("{intro}\n\n{}", table(&head, &lines))
}

fn variants_line(row: &ClaimRow) -> Vec<String> {
    let words = |under: &Under| format!("{}: {} ({})", under.variant, under.verdict.word(), under.holding);
    let flips: Vec<String> = row.flips().map(words).collect();
    let variants = row.under.len() - 1;
    let holding = || row.under.iter().map(|under| under.holding);
    let (least, most) = (holding().min().unwrap_or(0), holding().max().unwrap_or(0));
    vec![
        row.claim.id.to_string(),
        format!("{} ({})", row.under[0].verdict.word(), row.under[0].holding),
        format!("{least} to {most} of {}", row.claim.findings.len()),
        format!("{} of {variants}", variants - flips.len()),
        flips.join("; "),
    ]
}

/// Measured values beside the paper's.
pub fn quantities_table(rows: &[ClaimRow]) -> String {
    let line = |quantity: &Quantity| {
        let paper = if quantity.paper.is_empty() { "–" } else { quantity.paper };
        [quantity.claim, &quantity.what, paper, &interval(&quantity.ours)].map(String::from).to_vec()
    };
    let lines: Vec<_> = rows.iter().flat_map(|row| &row.quantities).map(line).collect();
    table(&["claim", "quantity", "the paper", "here, 95 % interval"], &lines)
}

/// Every finding, under its claim.
pub fn findings_list(rows: &[ClaimRow]) -> String {
    let mut text = String::new();
    for ClaimRow { claim, .. } in rows {
        text.push_str(&format!("- **{}** ({})\n", claim.id, claim.verdict().word()));
        for finding in &claim.findings {
            let mark = match finding.outcome {
                Outcome::Holds => "holds",
                Outcome::Fails => "does not hold",
                Outcome::Undecided => "undecided",
            };
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

/// Every part of a paper's report: name and content.
pub fn parts(measured: &Reproduction) -> Vec<(&'static str, String)> {
    let rows = &measured.rows;
    let mut parts = vec![("verdicts", verdicts_table(rows))];
    match &measured.details {
        Details::Vlc(study, areas) => {
            let sticky = measured.paper == Paper::Sticky;
            let (missing, all) = study.unfinished();
            let cells = cells_table(study, if sticky { STICKY } else { HANDOFF });
            parts.push(("means", format!("{}\n\n{cells}", unfinished(missing, all))));
            parts.extend(sticky.then(|| ("forecasts", forecasts_table(areas))));
        }
        Details::Streaming(study) => {
            let (missing, all) = study.unfinished();
            parts.push(("quantities", format!("{}\n\n{}", unfinished(missing, all), quantities_table(rows))));
        }
    }
    parts.extend([("variants", variants_table(rows)), ("findings", findings_list(rows))]);
    parts.retain(|(_, content)| !content.is_empty());
    parts
}

/// A paper's report as a document of its own.
pub fn document(measured: &Reproduction) -> String {
    let title = |part: &str| match part {
        "verdicts" => "Verdicts",
        "means" => "Means",
        "forecasts" => "The conditions of S10 as predictors",
        "quantities" => "Measured values",
        "variants" => "Which verdicts depend on assumptions",
        _ => "Every finding",
    };
    let section = |(part, content): (&str, String)| format!("### {}\n\n{}\n", title(part), content.trim_end());
    let sections: Vec<String> = parts(measured).into_iter().map(section).collect();
    format!("## {}\n\n{}", measured.paper.title(), sections.join("\n"))
}

/// Text without the breaks that the source's lines have.
fn collapse(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
