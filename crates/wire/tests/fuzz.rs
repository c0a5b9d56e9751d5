//! The fuzz target `wire_decode` on a stable compiler: its corpus, and random changes of it.

#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/wire_decode.rs"]
mod wire_decode;

#[test]
fn the_corpus_and_what_is_made_from_it_do_no_harm() {
    mutate::replay("wire_decode", 200000, wire_decode::run);
}

#[test]
#[ignore = "slow suite: half a minute of changed inputs"]
fn many_inputs_made_from_the_corpus_do_no_harm() {
    mutate::replay("wire_decode", 8000000, wire_decode::run);
}
