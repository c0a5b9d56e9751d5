//! The name that was probably meant.

/// The candidate with the smallest edit distance to `word`, unless even that one is too far to be meant.
///
/// Insertions, deletions, substitutions and swaps of neighbours count one each (optimal string alignment), and case
/// does not count. Where no candidate is near, it is the one that shares a word with `word`, such as `segment_duration`
/// for `num_segment`: a user who guesses a name guesses its noun.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = word.to_lowercase();
    // A third of the letters may be wrong: a typing error, not another word.
    let limit = (word.chars().count() / 3).max(2);
    let scored = candidates.into_iter().map(|c| (strsim::osa_distance(&word, &c.to_lowercase()), c));
    let mut scored: Vec<(usize, &str)> = scored.collect();
    // The order of the candidates decides between equals.
    scored.sort_by_key(|(distance, _)| *distance);
    let near = scored.first().filter(|(distance, _)| *distance <= limit && *distance < word.chars().count());
    let kin = || scored.iter().find(|(_, candidate)| shares_a_word(&word, &candidate.to_lowercase()));
    near.or_else(kin).map(|(_, candidate)| (*candidate).to_string())
}

/// Shorter words, such as `max` or `sty`, are in too many names.
const SHORTEST_WORD: usize = 4;

/// Whether a part of one name is a part of the other, singular or plural.
fn shares_a_word(a: &str, b: &str) -> bool {
    let words = |name: &str| -> Vec<String> {
        let words = name.split(['_', '-', '/', '.']).filter(|word| word.chars().count() >= SHORTEST_WORD);
        words.map(|word| word.trim_end_matches('s').to_string()).collect()
    };
    let (a, b) = (words(a), words(b));
    a.iter().any(|word| b.contains(word))
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
    fn a_guess_finds_the_name_with_the_same_noun() {
        let keys = ["fps", "segment_duration", "init", "duration"];
        assert_eq!(nearest("num_segment", keys).as_deref(), Some("segment_duration"));
        assert_eq!(nearest("number_of_segments", keys).as_deref(), Some("segment_duration"));
        assert_eq!(nearest("max_size", ["max", "min_rtt"]), None, "short words are no nouns");
    }

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        // At three letters two edits are allowed: a swap that counted two and one more error would be too far.
        assert_eq!(nearest("raet", ["rate"]).as_deref(), Some("rate"));
        assert_eq!(nearest("ratex", ["raet"]).as_deref(), Some("raet"));
        assert_eq!(nearest("axbc", ["rate"]), None);
    }
}
