#!/bin/sh
# Runs the benchmark runner: scripts/bench.sh WORKLOAD [ARGUMENTS]. See bench/README.md.
set -eu
cd "$(dirname "$0")/../bench"
exec python3 -m pondage_bench "$@"
