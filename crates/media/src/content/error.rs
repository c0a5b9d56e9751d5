//! Errors in descriptions of content, and warnings, with their place.

use std::fmt;

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line number, from one.
    pub line: u32,
    /// Column number, from one.
    pub column: u32,
}

/// A description of content that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ContentError {
    /// The file, as the caller named it.
    pub file: String,
    /// Position of the fault; `None` if it is not at one place.
    pub place: Option<Place>,
    /// The fault, and what was expected.
    pub message: String,
}

impl ContentError {
    pub(super) fn new(file: &str, place: Option<Place>, message: impl fmt::Display) -> Self {
        ContentError { file: file.to_string(), place, message: message.to_string() }
    }
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(f, &self.file, self.place, &self.message)
    }
}

/// A part of a description that was not used as it is written: skipped, cut, joined or corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentWarning {
    /// The file, as the caller named it.
    pub file: String,
    /// Position of the part; `None` if it is not at one place.
    pub place: Option<Place>,
    /// What the warning is about, and what was done with it, without a full stop.
    pub message: String,
}

impl fmt::Display for ContentWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_at(f, &self.file, self.place, &self.message)
    }
}

fn write_at(f: &mut fmt::Formatter<'_>, file: &str, place: Option<Place>, message: &str) -> fmt::Result {
    match place {
        Some(Place { line, column }) => write!(f, "{file}:{line}:{column}: {message}"),
        None => write!(f, "{file}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_file_and_place() {
        let at = Some(Place { line: 3, column: 7 });
        assert_eq!(ContentError::new("a.mpd", at, "odd").to_string(), "a.mpd:3:7: odd");
        assert_eq!(ContentError::new("a.mpd", None, "odd").to_string(), "a.mpd: odd");
    }
}
