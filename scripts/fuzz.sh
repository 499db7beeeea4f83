#!/bin/sh
# Fuzzes the codec: every target for FUZZ_SECONDS (default 60), or those named.
set -eu
cd "$(dirname "$0")/.."
if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzzing needs a nightly compiler and cargo-fuzz:" >&2
    echo "  rustup toolchain install nightly && cargo install cargo-fuzz" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)
for target in "$@"; do
    echo "=== $target"
    cargo +nightly fuzz run "$target" -- "-max_total_time=${FUZZ_SECONDS:-60}"
done
