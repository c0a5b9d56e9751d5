//! The report of a campaign, as text and as JSON.

use crate::campaign::{Campaign, Found};
use crate::equivalence::Verdict;
use crate::judgement::{Compared, Judgement, part_verdict};
use crate::kernel::Kernel;
use crate::question::{Part, Quantity};
use serde::Serialize;

/// One comparison as a row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct ReportRow {
    /// Name of the test case.
    #[serde(rename = "cell")]
    pub case: String,
    /// Quantity with its unit.
    pub quantity: &'static str,
    /// Simulated value.
    pub simulated: String,
    /// Live value.
    pub live: String,
    /// The simulation over the kernel, with its 90 % interval.
    pub ratio: String,
    /// Tolerance.
    pub tolerance: String,
    /// Result of the comparison.
    pub verdict: Verdict,
}

/// CampaignReport of a part of the campaign.
#[derive(Clone, Debug, Serialize)]
pub struct PartReport {
    /// Letter of the part.
    pub letter: &'static str,
    /// Description of the part.
    pub title: &'static str,
    /// Result of the part.
    pub verdict: Verdict,
    /// For (a): the number of test cases within the usual tolerance, and of all.
    pub usual: Option<(usize, usize)>,
    /// Rows of the table.
    pub rows: Vec<ReportRow>,
    /// Invalid and failed runs.
    pub notes: Vec<String>,
}

/// CampaignReport of a whole campaign.
#[derive(Clone, Debug, Serialize)]
pub struct CampaignReport {
    /// The kernel of the live runs.
    pub kernel: Kernel,
    /// Reports of the parts.
    pub parts: Vec<PartReport>,
    /// Result of all parts.
    pub verdict: Verdict,
    /// The test cases with their runs.
    #[serde(rename = "cells")]
    pub cases: Vec<Found>,
}

impl CampaignReport {
    /// Makes the report of a campaign.
    pub fn of(campaign: Campaign) -> Self {
        let Campaign { kernel, found } = campaign;
        let of_part = |part: Part| found.iter().filter(|f| f.case.part == part).collect::<Vec<_>>();
        let parts = Part::ALL
            .into_iter()
            .chain([Part::Coupled])
            .map(|part| (part, of_part(part)))
            .filter(|(_, cases)| !cases.is_empty());
        let parts: Vec<PartReport> = parts.map(|(part, cases)| PartReport::of(part, &cases)).collect();
        let verdict = parts.iter().map(|part| part.verdict).fold(Verdict::Equivalent, Verdict::and);
        CampaignReport { kernel, parts, verdict, cases: found }
    }

    /// The report as JSON.
    ///
    /// # Panics
    /// Never: all keys are strings.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only text keys")
    }

    /// The report as a section of a document.
    pub fn to_markdown(&self) -> String {
        self.parts.iter().map(PartReport::to_markdown).collect::<Vec<_>>().join("\n")
    }
}

impl PartReport {
    fn of(part: Part, cases: &[&Found]) -> Self {
        let judgements: Vec<Option<Judgement>> = cases.iter().map(|found| found.judgement.clone()).collect();
        let usual = judgements.iter().flatten().filter(|j| j.usual() == Verdict::Equivalent).count();
        PartReport {
            letter: part.letter(),
            title: part.title(),
            verdict: part_verdict(part, &judgements),
            usual: (part == Part::OnePath).then_some((usual, cases.len())),
            rows: cases.iter().flat_map(|found| rows(found)).collect(),
            notes: cases.iter().filter_map(|found| note(found)).collect(),
        }
    }

    fn to_markdown(&self) -> String {
        let mut text = format!("### ({}) {}: {}\n\n", self.letter, self.title, self.verdict.word());
        if let Some((usual, cases)) = self.usual {
            text += &format!("Goodput within 5 % in {usual} of {cases} test cases.\n\n");
        }
        text += "| test case | quantity | simulated | kernel | ratio, 90 % interval | tolerance | verdict |\n";
        text += "| --- | --- | --- | --- | --- | --- | --- |\n";
        for row in &self.rows {
            let ReportRow { case, quantity, simulated, live, ratio, tolerance, verdict } = row;
            let verdict = verdict.word();
            text += &format!("| {case} | {quantity} | {simulated} | {live} | {ratio} | {tolerance} | {verdict} |\n");
        }
        for note in &self.notes {
            text += &format!("\n- {note}\n");
        }
        text
    }
}

fn rows(found: &Found) -> Vec<ReportRow> {
    let Some(judgement) = &found.judgement else { return Vec::new() };
    judgement.compared.iter().map(|compared| row(found, compared)).collect()
}

fn row(found: &Found, compared: &Compared) -> ReportRow {
    let criterion = compared.criterion;
    let (quantity, scale, digits) = match criterion.quantity {
        Quantity::Goodput => ("goodput, Mb/s", 1e-6, 3),
        Quantity::Retransmissions => ("retransmissions", 1.0, 1),
        Quantity::ChunkTime => ("median chunk, s", 1.0, 4),
        Quantity::ChunkTimeP90 => ("90th percentile of chunks, s", 1.0, 4),
        Quantity::FirstShare => ("share of path 1, %", 100.0, 1),
        Quantity::SmallestShare => ("share of the slower session, %", 100.0, 1),
        Quantity::MeanBitrate => ("mean bitrate, Mb/s", 1e-6, 3),
        Quantity::Switches => ("switches", 1.0, 1),
        Quantity::Stalls => ("stalls", 1.0, 1),
    };
    let number = |value: f64| format!("{:.*}", digits, value * scale);
    let share = criterion.share.map(|share| format!("{:.0} %", share * 100.0));
    let tolerance = share.into_iter().chain(criterion.number.map(|number| format!("{:.0}", number * scale)));
    ReportRow {
        case: found.case.name.clone(),
        quantity,
        simulated: number(compared.simulated),
        live: number(compared.live),
        ratio: ratio(compared),
        tolerance: tolerance.collect::<Vec<_>>().join(" or "),
        verdict: compared.verdict,
    }
}

/// The ratio; the difference where counts are zero.
fn ratio(compared: &Compared) -> String {
    let percent = |log: f64| (log.exp() - 1.0) * 100.0;
    let interval = compared.ratio;
    if compared.simulated == 0.0 || compared.live == 0.0 || interval.half > 1.0 {
        let d = compared.difference;
        return format!("difference {:+.1}, {:+.1} to {:+.1}", d.mean, d.low(), d.high());
    }
    format!("{:+.1} %, {:+.1} to {:+.1}", percent(interval.mean), percent(interval.low()), percent(interval.high()))
}

fn note(found: &Found) -> Option<String> {
    let mut parts = Vec::new();
    if found.invalid > 0 {
        parts.push(format!("{} runs were invalid", found.invalid));
    }
    if let Some(error) = found.errors.first() {
        parts.push(format!("{} runs failed: {error}", found.errors.len()));
    }
    if found.judgement.is_none() {
        parts.push("no run counts".to_string());
    }
    (!parts.is_empty()).then(|| format!("{}: {}", found.case.name, parts.join("; ")))
}
