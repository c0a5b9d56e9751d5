//! A breach of a contract, in a sentence for the author of the algorithm: without a place in the sources of Anabranch.

use proptest::test_runner::TestCaseError;

/// Fails with a sentence where something does not hold.
///
/// # Errors
/// The breach.
pub fn require(holds: bool, breach: impl FnOnce() -> String) -> Result<(), TestCaseError> {
    if holds { Ok(()) } else { Err(TestCaseError::fail(breach())) }
}

/// Fails where two algorithms of one history differ in what they did.
///
/// # Errors
/// The breach, with both in words.
pub fn require_same<T: PartialEq>(
    what: &str,
    one: &T,
    other: &T,
    words: impl Fn(&T) -> String,
) -> Result<(), TestCaseError> {
    require(one == other, || {
        format!(
            "the same history gave two {what}, {} and {}; draw from `ctx.rng`, and take the time from `ctx.now`",
            words(one),
            words(other)
        )
    })
}
