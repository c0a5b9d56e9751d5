//! One sentence for each verdict: why it came out so. A sentence belongs to the verdict that it explains; if a later version of
//! the simulator judges otherwise, the sentence is not shown, and a new one has to be found.

use super::verdict::Verdict;

const SENTENCES: &[(&str, Verdict, &str)] = &[];

/// The sentence for a claim's verdict.
pub fn of(id: &str, verdict: Verdict) -> &'static str {
    let found = SENTENCES.iter().find(|(i, v, _)| *i == id && *v == verdict);
    found.map_or("(not yet explained)", |(.., sentence)| sentence)
}
