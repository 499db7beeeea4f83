#!/bin/sh
# Every check there is, in one run: what `make test` and CI call. Ends at the first step that
# fails, with its name in the last line.
set -u
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
export CARGO_TARGET_DIR="$target"

step() {
    name=$1
    shift
    printf '\n=== %s\n' "$name"
    began=$(date +%s)
    "$@" </dev/null
    status=$?
    if [ $status != 0 ]; then
        printf '\nmake test: FAILED: %s (status %s)\n' "$name" "$status" >&2
        exit 1
    fi
    printf '=== %s: %s s\n' "$name" $(($(date +%s) - began))
}

# One very small round of each; the runner leaves out what this build does not know.
tiny_benchmarks() (
    export PONDAGE="$target/debug/pondage"
    both=direct,pondage
    all=$both,pondage-off,pondage-pipeline,pondage-trains,constant,pondage-constant,limit
    cached=point-select@*-special,read-only@*-auto-special,delay-point-select,writers,lag,memory
    cached=$cached,mirror-random-ranges@*-auto,snapshot@id-k,mirror-lag
    scripts/bench.sh connect --tiny --sides $both &&
        scripts/bench.sh coalesce --tiny --sides $all &&
        scripts/bench.sh prepared --tiny --sides $both &&
        scripts/bench.sh session --tiny --sides $both &&
        scripts/bench.sh procedure --tiny --loads payment,neworder \
            --sides direct-statements,pondage-statements,$both,pondage-trains,pondage-lanes &&
        scripts/bench.sh cache --tiny --sides $both,pondage-cache,pondage-cache-64mib,constant \
            --loads "$cached"
)

manual() (
    cd tests/manual && python3 -m unittest && PONDAGE="$target/debug/pondage" ./run.py
)

in_bench() { (cd bench && "$@"); }

# One selection of packages for all steps: another one has other features, and builds all again.
step "what the tests need" scripts/setup.sh test
step "format" cargo fmt --all --check
step "clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" \
    cargo doc --workspace --no-deps --document-private-items --locked --quiet
step "build" cargo build --workspace --all-targets --locked
step "the benchmark runner's tests" in_bench python3 -m unittest discover -s . -t .
step "tiny benchmarks" tiny_benchmarks
step "PostgreSQL's and psycopg2's suites, in part" env PONDAGE="$target/debug/pondage" \
    tests/suites/differences.py --short --mode session --mode session-once \
    regress isolation libpq_pipeline psycopg2
step "the manual's commands" manual
step "packages" env PROGRAM="$target/debug/pondage" PACKAGING_VENV="$target/packaging-venv" \
    tests/packaging/run.sh
step "a slow network between hosts" env PONDAGE="$target/debug/pondage" tests/suites/slow_network.py
step "drivers of other languages" cargo test --workspace --test it --locked -- \
    --ignored --test-threads=1 --nocapture drivers::
step "tests" cargo test --workspace --locked --no-fail-fast
