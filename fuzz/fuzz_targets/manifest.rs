//! See `src/manifest.rs`; run with `make fuzz`.

#![no_main]

#[path = "../src/manifest.rs"]
mod manifest;

libfuzzer_sys::fuzz_target!(|data: &[u8]| manifest::run(data));
