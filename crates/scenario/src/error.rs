//! What is wrong with a scenario, and what would be right.

use std::fmt;

/// One mistake in a scenario, worded for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file (or the name under which the text was given), or the override such as `--set link.wifi.rate=fast`.
    pub file: String,
    /// Counted from one; zero where the mistake is not in a text, such as in an override.
    pub line: usize,
    /// Counted from one, in characters; zero like `line`, or where the whole line is wrong.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right; empty where the message says it all.
    pub expected: String,
    /// The valid name nearest to the one written, if one is near.
    pub nearest: Option<String>,
}

impl Error {
    /// Where the mistake is: the file with line and column, as far as they are known, the key, or the override.
    pub fn place(&self) -> String {
        let known = [self.line, self.column].into_iter().filter(|number| *number > 0);
        known.fold(self.file.clone(), |place, number| format!("{place}:{number}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_one_line() {
        let error = Error {
            file: "a.toml".into(),
            line: 3,
            column: 7,
            message: "unknown key `rte` in [link.wifi]".into(),
            expected: "one of rate, rtt".into(),
            nearest: Some("rate".into()),
        };
        let text = "a.toml:3:7: unknown key `rte` in [link.wifi]; expected one of rate, rtt; did you mean `rate`?";
        assert_eq!(error.to_string(), text);
    }
}
