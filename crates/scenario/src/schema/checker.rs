//! What all checks share: where the value that they are about was written, and how a mistake is put there.

use super::External;
use super::document::{Node, Origin};
use super::files::Files;
use super::mistake::Mistake;
use crate::warning::WarningKind;
use anabranch_units::Duration;

pub(super) type Result<T> = std::result::Result<T, Mistake>;

/// The tree, which knows where everything was written, and what may be read next to it.
pub(super) struct Checker<'a> {
    pub root: &'a Node,
    pub files: Files<'a>,
    /// Parts that are in no registry.
    pub external: Option<&'a External>,
    /// What is legal and probably not meant, with its kind.
    pub warnings: Vec<(WarningKind, Mistake)>,
}

impl Checker<'_> {
    /// Where the value at the end of these steps was written.
    pub fn at(&self, steps: &[&str]) -> &Origin {
        self.root.origin_of(steps)
    }

    /// Puts a mistake where the value at the end of these steps was written.
    pub fn wrong<T>(&self, steps: &[&str], message: impl Into<String>, expected: impl Into<String>) -> Result<T> {
        Err(Mistake::new(message, expected).at(self.at(steps)))
    }

    /// Warns of something legal where the value at the end of these steps was written.
    pub fn warn(&mut self, steps: &[&str], kind: WarningKind, message: impl Into<String>) {
        let mistake = Mistake::new(message, "").at(self.at(steps));
        self.warnings.push((kind, mistake));
    }

    /// A name must be one of those that are known.
    pub fn known(&self, steps: &[&str], what: &str, name: &str, names: &[String]) -> Result<()> {
        if names.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(Mistake::unknown(what, name, names.iter().map(String::as_str)).at(self.at(steps)))
    }

    pub fn above_zero(&self, key: &str, time: Duration) -> Result<()> {
        if time.is_zero() {
            return self.wrong(&[key], format!("`{key}` is zero"), "a time above zero");
        }
        Ok(())
    }
}
