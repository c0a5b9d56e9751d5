//! See `src/wire_decode.rs`; run with `make fuzz`.

#![no_main]

#[path = "../src/wire_decode.rs"]
mod wire_decode;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire_decode::run(data));
