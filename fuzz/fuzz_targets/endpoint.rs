//! See `src/endpoint.rs`; run with `make fuzz`.

#![no_main]

#[path = "../src/endpoint.rs"]
mod endpoint;

libfuzzer_sys::fuzz_target!(|data: &[u8]| endpoint::run(data));
