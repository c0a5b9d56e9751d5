//! The comparison as a table.

use super::recorded::{GROUPS, Group};
use super::{STATISTICS, means, summaries, synthetic_group, values};
use crate::statistics::Mean;
use anabranch_network::{SYNTHETIC_KINDS, Summary, SyntheticEntry, SyntheticModel};
use std::fmt::Write;

/// One line: a statistic, recorded and synthetic.
pub struct StatisticRow {
    /// The statistic's name.
    pub name: &'static str,
    /// Over the recorded traces; none where no trace has a value.
    pub real: Option<Mean>,
    /// Over seeds, of the mean over the synthetic traces.
    pub made: Option<Mean>,
}

/// The kind of synthetic rates that a group is compared with.
///
/// # Panics
/// If there is no such kind, which would be a mistake in the list of groups.
pub fn kind(group: &Group) -> &'static SyntheticEntry {
    SYNTHETIC_KINDS.find(group.kind).expect("groups name kinds")
}

/// Every statistic of a group and of synthetic groups like it.
pub fn compare(real: &[Summary], model: &SyntheticModel, seeds: u64) -> Vec<StatisticRow> {
    let groups: Vec<Vec<f64>> = (1..=seeds).map(|seed| means(&synthetic_group(model, real, seed))).collect();
    let some = |values: Vec<f64>| (!values.is_empty()).then(|| Mean::of(&values));
    let row = |(i, statistic): (usize, &super::Statistic)| StatisticRow {
        name: statistic.name,
        real: some(values(real, statistic)),
        made: some(groups.iter().map(|group| group[i]).filter(|value| !value.is_nan()).collect()),
    };
    STATISTICS.iter().enumerate().map(row).collect()
}

/// The table of the parameters.
pub fn parameters() -> String {
    let mut text = String::from(
        "| kind | headroom | spread | correlation time | noise | between outages | outage |\n|---|---|---|---|---|---|---|\n",
    );
    for kind in SYNTHETIC_KINDS {
        let m = (kind.create)();
        let (between, outage) = if m.outage.is_zero() {
            ("-".into(), "none".into())
        } else {
            (m.between_outages.to_string(), m.outage.to_string())
        };
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} | {between} | {outage} |",
            kind.name, m.headroom, m.spread, m.correlation_time, m.noise
        )
        .expect("a string takes all");
    }
    text
}

/// The comparison of every group that is present, as Markdown.
pub fn comparison(seeds: u64) -> String {
    let mut text = String::new();
    for group in GROUPS {
        let real = summaries(&group.recordings());
        if real.is_empty() {
            continue;
        }
        let how = if group.fitted { "fitted to these" } else { "not fitted to these" };
        let mean = Mean::of(&real.iter().map(|s| s.mean_bps / 1e6).collect::<Vec<_>>());
        let seconds: usize = real.iter().map(|s| s.samples_bps.len()).sum();
        writeln!(
            text,
            "### `{}`: {}\n\n{} traces, {seconds} s, {:.1} Mb/s on average; {how}.\n",
            group.kind,
            group.name,
            real.len(),
            mean.mean
        )
        .expect("a string takes all");
        text.push_str("| statistic | recorded | synthetic |\n|---|---|---|\n");
        for row in compare(&real, &(kind(group).create)(), seeds) {
            writeln!(text, "| {} | {} | {} |", row.name, text_of(row.real), text_of(row.made))
                .expect("a string takes all");
        }
        text.push('\n');
    }
    text
}

fn text_of(mean: Option<Mean>) -> String {
    match mean {
        None => "-".into(),
        Some(mean) if mean.count < 2 => format!("{:.2}", mean.mean),
        Some(mean) => format!("{:.2} ± {:.2}", mean.mean, mean.half),
    }
}
