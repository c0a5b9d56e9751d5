//! Where a table may be written as a single value: `scheduler = "min-rtt"`, `loss = "2 %"`.

use super::document::{Entry, Node, Table, Value};

/// What a single value stands for: the key of the table that takes it, and another key with a fixed value.
pub(super) struct ShortForm {
    /// The key that may have a single value.
    pub key: &'static str,
    /// The keys of the table that take the value.
    pub takes: &'static [&'static str],
    /// A further key of the table, and its value.
    pub fixed: Option<(&'static str, &'static str)>,
}

const fn short(key: &'static str, takes: &'static [&'static str]) -> ShortForm {
    ShortForm { key, takes, fixed: None }
}

const fn with_kind(key: &'static str, takes: &'static [&'static str], kind: &'static str) -> ShortForm {
    ShortForm { key, takes, fixed: Some(("kind", kind)) }
}

/// Every short form. The one of `kernel` and those of links and events concern several keys: see [`super::expand`].
pub(super) const SHORT_FORMS: [ShortForm; 8] = [
    short("path_policy", &["name"]),
    short("scheduler", &["name"]),
    short("congestion_control", &["name"]),
    short("player", &["kind"]),
    short("receive_buffer", &["initial", "max"]),
    short("rate", &["rate"]),
    with_kind("queue", &["limit"], "drop-tail"),
    with_kind("loss", &["share"], "bernoulli"),
];

/// Makes the table of a single value that stands under a key; false if there is no short form of that key.
pub(super) fn open(node: &mut Node, key: &str) -> bool {
    let Some(form) = SHORT_FORMS.iter().find(|form| form.key == key) else { return false };
    let mut table = Table::default();
    let fixed = form.fixed.map(|(key, value)| Entry::new(key, &node.at, Node::text(value, &node.at)));
    table.entries.extend(fixed);
    for taker in form.takes {
        let entry = Entry::new(taker, &node.at, node.clone());
        table.entries.push(Entry { written: Some(key.to_string()), ..entry });
    }
    node.value = Value::Table(table);
    true
}

/// Opens the value under a key of a table, if it is a single one.
pub(super) fn open_in(table: &mut Table, key: &str) {
    if let Some(entry) = table.get_mut(key)
        && !matches!(entry.node.value, Value::Table(_))
    {
        open(&mut entry.node, key);
    }
}
