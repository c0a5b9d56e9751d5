//! What is wrong with a scenario, and what would be right.

use std::fmt;
use strsim::osa_distance;

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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        write!(f, ": {}", self.message)?;
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

/// The candidate with the smallest edit distance to `word`, unless even that one is too far to be meant. A swap of neighbours is one
/// edit (optimal string alignment).
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = word.to_lowercase();
    // A third of the letters may be wrong: a typing error, not another word.
    let limit = (word.chars().count() / 3).max(2);
    let scored = candidates.into_iter().map(|c| (osa_distance(&word, &c.to_lowercase()), c));
    let best = scored.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= limit && best.0 < word.chars().count()).then(|| best.1.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word_and_other_words_find_nothing() {
        let names = ["min-rtt", "round-robin", "gr-sty", "tr-sty"];
        assert_eq!(nearest("minrtt", names).as_deref(), Some("min-rtt"));
        assert_eq!(nearest("gr-sty2", names).as_deref(), Some("gr-sty"));
        assert_eq!(nearest("Round_Robin", names).as_deref(), Some("round-robin"));
        assert_eq!(nearest("weighted-fair", names), None);
        assert_eq!(nearest("q", names), None);
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(osa_distance("rate", "raet"), 1);
        assert_eq!(osa_distance("", "abc"), 3);
        assert_eq!(osa_distance("kitten", "sitting"), 3);
    }

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
