//! What is wrong with a description of content, and where.

use std::fmt;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from one.
    pub line: u32,
    /// Counted from one.
    pub column: u32,
}

/// A description of content that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ContentError {
    /// The file, as the caller named it.
    pub file: String,
    /// Where in the file, if one place is to blame.
    pub place: Option<Place>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ContentError {
    pub(super) fn new(file: &str, place: Option<Place>, message: impl fmt::Display) -> Self {
        ContentError { file: file.to_string(), place, message: message.to_string() }
    }
}

impl fmt::Display for ContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place { line, column }) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
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
