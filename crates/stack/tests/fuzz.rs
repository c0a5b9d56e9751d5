//! The fuzz target `endpoint` on a stable compiler: its corpus, and random changes of it.

#[path = "../../../fuzz/src/endpoint.rs"]
mod endpoint;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;

#[test]
fn the_corpus_and_what_is_made_from_it_do_no_harm() {
    mutate::replay("endpoint", 30000, endpoint::run);
}

#[test]
#[ignore = "slow suite: half a minute of changed inputs"]
fn many_inputs_made_from_the_corpus_do_no_harm() {
    mutate::replay("endpoint", 600000, endpoint::run);
}
