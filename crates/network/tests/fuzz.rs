//! The fuzz target `trace` on a stable compiler: its corpus, and random changes of it.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/trace.rs"]
mod trace;

#[test]
fn the_corpus_and_what_is_made_from_it_do_no_harm() {
    mutate::replay("trace", 60_000, trace::run);
}

#[test]
#[ignore = "slow suite: half a minute of changed inputs"]
fn many_inputs_made_from_the_corpus_do_no_harm() {
    mutate::replay("trace", 2_000_000, trace::run);
}
