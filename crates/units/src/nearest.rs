//! The name that was probably meant.

/// The candidate with the smallest edit distance to `word`, unless even that one is too far to be meant.
///
/// Insertions, deletions, substitutions and swaps of neighbours count one each (optimal string alignment), and case does
/// not count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = word.to_lowercase();
    // A third of the letters may be wrong: a typing error, not another word.
    let limit = (word.chars().count() / 3).max(2);
    let scored = candidates.into_iter().map(|c| (strsim::osa_distance(&word, &c.to_lowercase()), c));
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
        // At three letters two edits are allowed: a swap that counted two and one more error would be too far.
        assert_eq!(nearest("raet", ["rate"]).as_deref(), Some("rate"));
        assert_eq!(nearest("ratex", ["raet"]).as_deref(), Some("raet"));
        assert_eq!(nearest("axbc", ["rate"]), None);
    }
}
