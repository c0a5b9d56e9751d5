//! The account as a table of columns: link time, and the bits that the link could have carried in it.

use super::{Account, By, Cause, Entry, SLICE};
use crate::capacity;
use crate::scalars::scalars_of;
use crate::table::{Column, EventColumns, words};
use anabranch_scenario::{Rate, Scenario};
use anabranch_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A link counts as slower than usual where it lacks more than this part: rates are rounded.
const LEAST_LACK: f64 = 0.01;

/// One row: a slice of time of a path, a request, and what this time of the link went to.
struct Row {
    slice: u64,
    path: String,
    session: u32,
    request: u32,
    cause: Cause,
    by: Option<String>,
    link: Duration,
    bits: f64,
}

/// The table of the sessions' accounts, session by session, oldest first. Paths whose links have no limit of their rate
/// are left out.
pub(crate) fn tabulate(
    scenario: &Scenario,
    seed: u64,
    end: Instant,
    accounts: Vec<(String, Account)>,
    flows: &[String],
) -> EventColumns {
    let names: Vec<String> = accounts.iter().map(|(name, _)| name.clone()).collect();
    let mut rows = Vec::new();
    for (session, (_, account)) in accounts.into_iter().enumerate() {
        let paths: Vec<usize> = account.paths.iter().map(|path| path.id.index()).collect();
        let mut by_path: BTreeMap<u16, BTreeMap<Entry, Duration>> = BTreeMap::new();
        for (entry, time) in account.into_entries() {
            by_path.entry(entry.1).or_default().insert(entry, time);
        }
        for (at, entries) in by_path {
            let path = paths[usize::from(at)];
            let capacity = capacity::of_slices(scenario, seed, path, end + SLICE, SLICE);
            let name = |by: By| match by {
                By::None => None,
                By::Flow(flow) => flows.get(flow as usize).cloned(),
                By::Path(path) => paths.get(usize::from(path)).map(|path| scenario.paths[*path].name.clone()),
            };
            let usual = usual(scenario, path, &capacity);
            weigh(&scenario.paths[path].name, session as u32, &entries, (&capacity, usual), &name, &mut rows);
        }
    }
    rows.sort_by_key(|row| (row.session, row.slice));
    EventColumns {
        columns: vec![
            ("time_s", Column::Float(rows.iter().map(|row| begin(row.slice).as_secs_f64()).collect())),
            ("session", words(rows.iter().map(|row| names.get(row.session as usize).map(String::as_str)))),
            ("path", words(rows.iter().map(|row| Some(row.path.as_str())))),
            ("request", Column::Integer(rows.iter().map(|row| i64::from(row.request)).collect())),
            ("cause", words(rows.iter().map(|row| Some(scalars_of(&row.cause).0)))),
            ("by", words(rows.iter().map(|row| row.by.as_deref()))),
            ("link_s", Column::Float(rows.iter().map(|row| row.link.as_secs_f64()).collect())),
            ("bits", Column::Float(rows.iter().map(|row| row.bits).collect())),
        ],
    }
}

fn begin(slice: u64) -> Instant {
    Instant::from_nanos(slice * SLICE.as_nanos())
}

/// What the path's link usually allows in a slice. A rate that varies by itself has a mean. One that is constant but
/// for scheduled changes has a best: a change that lasts for most of the run would be its mean.
fn usual(scenario: &Scenario, path: usize, capacity: &[f64]) -> f64 {
    let varies = |link: usize| !matches!(scenario.links[link].down.rate, None | Some(Rate::Constant(_)));
    if scenario.links_of(&scenario.paths[path]).into_iter().any(varies) {
        return capacity.iter().sum::<f64>() / capacity.len().max(1) as f64;
    }
    capacity.iter().copied().fold(0.0, f64::max)
}

/// Adds the rows of a path. A slice of the link is worth what its rate allows in it; what that lacks of the usual is a
/// row of its own.
fn weigh(
    path: &str,
    session: u32,
    entries: &BTreeMap<Entry, Duration>,
    (capacity, usual): (&[f64], f64),
    name: &dyn Fn(By) -> Option<String>,
    rows: &mut Vec<Row>,
) {
    if !usual.is_finite() || usual <= 0.0 {
        return;
    }
    let len = SLICE.as_secs_f64();
    let mut slices: BTreeMap<u64, Vec<(&Entry, f64)>> = BTreeMap::new();
    for (entry, time) in entries {
        slices.entry(entry.0).or_default().push((entry, time.as_secs_f64()));
    }
    for (slice, list) in slices {
        let bits = capacity.get(slice as usize).copied().unwrap_or(0.0);
        let (mut all, mut down) = (0.0, 0.0);
        for ((.., reason), time) in &list {
            all += time;
            down += if reason.cause == Cause::LinkDown { *time } else { 0.0 };
        }
        // What is left of the slice's capacity was there while the link was up.
        let rate = if all > down { bits / len * (all / (all - down)) } else { 0.0 };
        for ((_, _, request, reason), time) in &list {
            let worth = if reason.cause == Cause::LinkDown { usual / len } else { rate };
            rows.push(Row {
                slice,
                path: path.to_string(),
                session,
                request: *request,
                cause: reason.cause,
                by: name(reason.by),
                link: Duration::from_secs_f64(*time),
                bits: worth * time,
            });
        }
        let lack = (usual - bits) * (all / len) - usual / len * down;
        if lack > LEAST_LACK * usual * (all / len) {
            let request = list[0].0.2;
            let (cause, link) = (Cause::LinkSlow, Duration::ZERO);
            rows.push(Row { slice, path: path.to_string(), session, request, cause, by: None, link, bits: lack });
        }
    }
}
