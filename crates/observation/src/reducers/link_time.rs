//! Where the time of a session's links went while a response was due.

use super::{Number, Observed};
use crate::account::Cause;
use crate::scalars::scalars_of;
use crate::table::{Column, EventColumns};
use std::collections::BTreeMap;

/// The share of what the links could have carried that was new data, and that of each cause. Time in which the player
/// itself read no more is left out. None of a session that requested nothing, or whose links have no limit of their
/// rate.
pub fn shares(observed: &Observed<'_>) -> Vec<Number> {
    let found = observed.account.map(|account| bits(account, &observed.metrics.name)).unwrap_or_default();
    let counted = Cause::ALL.iter().filter(|cause| **cause != Cause::Player).map(|cause| scalars_of(cause).0);
    let all: f64 = counted.clone().filter_map(|cause| found.get(cause)).sum();
    let share = |cause: &str| (all > 0.0).then(|| found.get(cause).copied().unwrap_or(0.0) / all);
    counted.map(|cause| (format!("{}_share", cause.replace('-', "_")), share(cause))).collect()
}

/// What the links of a session could have carried, by cause.
fn bits<'a>(account: &'a EventColumns, session: &str) -> BTreeMap<&'a str, f64> {
    let mut found = BTreeMap::new();
    let column = |name: &str| account.columns.iter().find(|(known, _)| *known == name).map(|(_, column)| column);
    let (
        Some(Column::Text { words: sessions, codes: of }),
        Some(Column::Text { words, codes }),
        Some(Column::Float(bits)),
    ) = (column("session"), column("cause"), column("bits"))
    else {
        unreachable!("an account has these columns");
    };
    let own = sessions.iter().position(|name| name == session).map(|position| position as u32);
    for ((of, cause), bits) in of.iter().zip(codes).zip(bits) {
        if let (true, Some(cause)) = (*of == own && own.is_some(), *cause) {
            *found.entry(words[cause as usize].as_str()).or_insert(0.0) += bits;
        }
    }
    found
}
