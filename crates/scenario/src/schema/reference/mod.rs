//! Every key of the schema, its default and its meaning: the one place where they stand.
//!
//! The reader refuses keys that are not here and takes defaults from here; `docs/reference/scenario.md` is generated from here.

mod link;
mod run;
mod session;

/// One key of one kind of table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The kind of table, such as `link`.
    pub section: &'static str,
    /// The key.
    pub key: &'static str,
    /// The default as the scenario would write it (texts without quotes); none if the key is required or if its absence
    /// means something that `meaning` explains.
    pub default: Option<&'static str>,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

const fn key(section: &'static str, key: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key { section, key, default: Some(default), meaning }
}

const fn bare(section: &'static str, key: &'static str, meaning: &'static str) -> Key {
    Key { section, key, default: None, meaning }
}

/// The reference.
pub fn all() -> impl Iterator<Item = &'static Key> {
    [run::KEYS, link::KEYS, session::KEYS].into_iter().flatten()
}

/// The keys of a kind of table.
pub fn keys(section: &str) -> impl Iterator<Item = &'static str> {
    all().filter(move |key| key.section == section).map(|key| key.key)
}

/// The default of a key.
///
/// # Panics
/// If the key is not in the reference, or has no default.
pub(super) fn default(section: &str, key: &str) -> &'static str {
    let found = all().find(|k| k.section == section && k.key == key);
    found.and_then(|k| k.default).unwrap_or_else(|| panic!("the reference has no default of {section}.{key}"))
}
