#!/usr/bin/env bash
# Says what is missing before anything is built: CARGO, new enough, PYTHON at least 3.11 with virtual environments, and cc.
set -euo pipefail

MIN_RUST=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)

fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  (($# == 0)) || printf '       %s\n' "$@" >&2
  exit 1
}
command -v "$CARGO" >/dev/null || fail "cargo was not found. Install a current Rust ($MIN_RUST or later) from https://rustup.rs"
rust=$("$CARGO" --version | cut -d' ' -f2)
printf '%s\n%s\n' "$MIN_RUST" "$rust" | sort -C -V \
  || fail "Rust $MIN_RUST or later is needed; this is $rust. With rustup: rustup update stable"
command -v "$PYTHON" >/dev/null \
  || fail "$PYTHON was not found. Python 3.11 or later is needed (Debian: apt install python3 python3-venv)," \
    "or name another interpreter: make PYTHON=/path/to/python3.11 ..."
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || fail "Python 3.11 or later is needed; $("$PYTHON" --version) was found." \
    "Name another interpreter with: make PYTHON=/path/to/python3.11 ..."
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null \
  || fail "$PYTHON cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"
command -v cc >/dev/null || fail "cc, which Rust links with, was not found. On Debian and Ubuntu: apt install build-essential"
