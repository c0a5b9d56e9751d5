//! Replaceable parts by name.
//!
//! Schedulers, congestion controls, path policies, queues, loss models, bitrate rules and players each have a
//! [`Registry`]: a list of [`Entry`]s, in the order in which help and documentation show them. The user of a part finds
//! its entry by name and calls its constructor, so a new part is a file and a line in its registry.
//!
//! A [`Choice`] names a part and gives its [options](options::Options). [`by_kind`] declares the table of a part whose
//! options are keys of their own.

mod by_kind;
mod choice;
pub mod options;

pub use choice::Choice;

use options::OptionError;
use std::fmt;
use std::ops::Deref;

/// A part that can be chosen by name. `C` is the constructor: a function pointer whose arguments are the kind's own.
#[derive(Clone, Copy)]
pub struct Entry<C> {
    /// The name in scenarios and on the command line.
    pub name: &'static str,
    /// What the part does, in one sentence that ends with a full stop.
    pub summary: &'static str,
    /// Where its behaviour is defined: a paper, a standard, a program's source.
    pub source: &'static str,
    /// Makes one.
    pub create: C,
}

impl<C> fmt::Debug for Entry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All parts of one kind. It is a slice of entries with a search by name.
pub struct Registry<C: 'static>(&'static [Entry<C>]);

impl<C> Registry<C> {
    /// A registry of these entries, whose names differ.
    pub const fn new(entries: &'static [Entry<C>]) -> Self {
        Registry(entries)
    }

    /// The entry of that name.
    pub fn find(&self, name: &str) -> Option<&'static Entry<C>> {
        self.0.iter().find(|entry| entry.name == name)
    }

    /// The entry of that name, which the key `option` has.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(&self, option: &str, name: &str) -> Result<&'static Entry<C>, OptionError> {
        self.find(name).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            OptionError { option: option.into(), message: format!("`{name}` is none of {}", names.join(", ")) }
        })
    }

    /// The names, in the registry's order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<C> {
        self.0.iter().map(|entry| entry.name)
    }

    /// How many parts there are. A constant may call this, but not the slice's method of the same name.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no part.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, in the registry's order.
    pub fn iter(&self) -> std::slice::Iter<'static, Entry<C>> {
        self.0.iter()
    }
}

impl<C> Clone for Registry<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Registry<C> {}

impl<C> fmt::Debug for Registry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl<C> Deref for Registry<C> {
    type Target = [Entry<C>];

    fn deref(&self) -> &[Entry<C>] {
        self.0
    }
}

impl<C> IntoIterator for Registry<C> {
    type Item = &'static Entry<C>;
    type IntoIter = std::slice::Iter<'static, Entry<C>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn entry(name: &'static str, create: fn() -> u32) -> Entry<fn() -> u32> {
        Entry { name, summary: "A number.", source: "none", create }
    }

    static NUMBERS: Registry<fn() -> u32> = Registry::new(&[entry("two", || 2), entry("one", || 1)]);

    #[test]
    fn entries_are_found_by_their_whole_name() {
        assert_eq!(NUMBERS.find("one").map(|entry| (entry.create)()), Some(1));
        assert!(NUMBERS.find("tw").is_none() && NUMBERS.find("").is_none());
    }

    #[test]
    fn the_order_is_that_of_the_list() {
        assert_eq!(NUMBERS.names().collect::<Vec<_>>(), ["two", "one"]);
        assert_eq!(NUMBERS.into_iter().map(|entry| (entry.create)()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((NUMBERS.len(), NUMBERS[0].name), (2, "two"));
        assert_eq!(format!("{NUMBERS:?}"), "[\"two\", \"one\"]");
    }
}
