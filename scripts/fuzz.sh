#!/usr/bin/env bash
# Fuzzes each target for FUZZ_SECONDS (60 where absent) with a nightly compiler; without one, replays and changes the corpus on a stable one.
set -euo pipefail

if "$CARGO" +nightly fuzz --version >/dev/null 2>&1; then
  for target in wire_decode endpoint trace manifest; do
    mkdir -p "fuzz/found/$target"
    "$CARGO" +nightly fuzz run "$target" "fuzz/found/$target" "fuzz/corpus/$target" -- "-max_total_time=${FUZZ_SECONDS:-60}"
  done
else
  echo "cargo-fuzz or a nightly compiler is missing (cargo install cargo-fuzz; rustup toolchain install nightly): replaying."
  crates=(-p anabranch-wire -p anabranch-stack -p anabranch-network -p anabranch-media)
  "$CARGO" test --release --locked "${crates[@]}" --test fuzz -- --include-ignored
fi
