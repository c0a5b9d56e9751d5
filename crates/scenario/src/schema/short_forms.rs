//! Where a table may be written as a single value: `scheduler = "min-rtt"`, `loss = "2 %"`.

use super::document::{Entry, Node, Table, Value};

/// What a single value stands for: the key of the table that takes it, and another key with a fixed value.
pub(super) struct ShortForm {
    /// The key that may have a single value.
    pub key: &'static str,
    /// The type of the table that it stands for.
    pub table: &'static str,
    /// The keys of that table that take the value.
    pub takes: &'static [&'static str],
    /// A further key of the table, and its value.
    pub fixed: Option<(&'static str, &'static str)>,
}

const fn short(key: &'static str, table: &'static str, takes: &'static [&'static str]) -> ShortForm {
    ShortForm { key, table, takes, fixed: None }
}

const fn with_kind(
    key: &'static str,
    table: &'static str,
    takes: &'static [&'static str],
    kind: &'static str,
) -> ShortForm {
    ShortForm { key, table, takes, fixed: Some(("kind", kind)) }
}

/// Every short form of a single key. Those of [`SHORT_KEYS`] concern several keys: see [`super::expand`].
pub(super) const SHORT_FORMS: [ShortForm; 9] = [
    short("path_policy", "Choice", &["name"]),
    short("scheduler", "Choice", &["name"]),
    short("congestion_control", "Choice", &["name"]),
    short("response_pacing", "Choice", &["name"]),
    short("player", "Player", &["kind"]),
    short("receive_buffer", "ReceiveBuffer", &["initial", "max"]),
    short("rate", "Constant", &["rate"]),
    with_kind("queue", "DropTail", &["limit"], "drop-tail"),
    with_kind("loss", "Bernoulli", &["share"], "bernoulli"),
];

/// A key that an author may write and that the structs do not have, because [`super::expand`] replaces it by others.
pub(super) struct ShortKey {
    /// The type of the table in which it is written.
    pub table: &'static str,
    pub key: &'static str,
    pub meaning: &'static str,
}

/// The words of `kernel`, which stands for other keys of `[transport]`.
pub(super) const KERNELS: [&str; 2] = ["legacy", "upstream"];

/// Every key that the structs do not have.
pub(super) const SHORT_KEYS: [ShortKey; 3] = [
    ShortKey {
        table: "Transport",
        key: "kernel",
        meaning: "The kernel whose behaviour the other keys default to: `legacy` (the patched kernels of the papers: the defaults \
            below) or `upstream` (today's Linux: `scheduler = \"linux\"`, `commit = \"into-buffer\"`, `failover = \"upstream\"`, \
            `subflow_windows = true`, `opportunistic_retransmission = false`, `penalisation = false`, `wide_data_seq = true`).",
    },
    ShortKey {
        table: "Link",
        key: "rtt",
        meaning: "The round-trip time without queueing, half of it in each direction; in place of `delay`.",
    },
    ShortKey {
        table: "Event",
        key: "rtt",
        meaning: "The new round-trip time without queueing. Every other key of `[link.NAME]` can be given here, too.",
    },
];

/// Keys of the structs that an author need not know: messages and the reference page do not name them.
pub(super) const LONG_KEYS: [&str; 1] = ["cut"];

/// Types whose required keys may be left out, because [`super::expand`] adds them.
pub(super) const FILLED_IN: [&str; 2] = ["Link", "Session"];

/// Makes the table of a single value that stands under a key; false if there is no short form of that key.
pub(super) fn open(node: &mut Node, key: &str) -> bool {
    let Some(form) = SHORT_FORMS.iter().find(|form| form.key == key) else { return false };
    if key == "player" && open_own_rule(node) {
        return true;
    }
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

/// The player of a bitrate rule from outside that is named without one: a plain one with a long buffer.
const PLAYER_OF_OWN_RULE: &str = "rate";

/// `player = "module:Class"` names a bitrate rule.
fn open_own_rule(node: &mut Node) -> bool {
    if !matches!(&node.value, Value::Text(word) if word.contains(':')) {
        return false;
    }
    let kind = Entry::new("kind", &node.at, Node::text(PLAYER_OF_OWN_RULE, &node.at));
    let rule = Entry { written: Some("player".into()), ..Entry::new("rule", &node.at, node.clone()) };
    node.value = Value::Table(Table { entries: vec![kind, rule] });
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
