# What there is to do here. `make` alone lists it.

TARGET := $(or $(CARGO_TARGET_DIR),target)
ARGS :=
BENCH := PONDAGE=$(abspath $(TARGET))/release/pondage scripts/bench.sh

.PHONY: help run build pictures site deb release test test-drivers lint bench bench-connect bench-coalesce bench-prepared bench-redis bench-cache bench-procedure bench-session redis-diff redis-suite redis-py-suite pgbouncer-suite drivers-suites slow-network redis-kills procedure-kills simulate soak fuzz cache-check sql-logic

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## install what is missing, build, and start a demo with a private PostgreSQL
	$(TARGET)/release/pondage demo $(ARGS)

build: ## the release binary, target/release/pondage
	scripts/setup.sh run
	cargo build --release --locked -p pondage

pictures: ## the pictures of docs/benchmarks.md, drawn anew from its tables
	cd bench && python3 -m pondage_bench.pictures

site: ## the manual as HTML, target/site/index.html; installs mdBook with cargo if it is missing
	@command -v mdbook >/dev/null || cargo install --locked --version ^0.5 mdbook --no-default-features --features search
	mdbook build docs --dest-dir $(abspath $(TARGET))/site
	scripts/check_site.py $(TARGET)/site

deb: build ## the Debian package, target/deb/pondage_VERSION_ARCH.deb
	packaging/deb/build.sh $(TARGET)/release/pondage $(TARGET)/deb

release: ## tarball, package, SBOM, notes and checksums of a tagged VERSION
	@[ -n "$(VERSION)" ] || { echo "make release VERSION=0.1.0: say which"; exit 2; }
	scripts/release.sh $(VERSION) $(TARGET)/release-$(VERSION)

test: ## everything: formats, lints, documentation, drivers, a tiny benchmark, all tests
	scripts/test.sh

test-drivers: ## the suites of Python, Node, Java and Go drivers only
	scripts/setup.sh test
	cargo build --workspace --all-targets --locked
	cargo test --workspace --test it --locked -- --ignored --test-threads=1 --nocapture drivers::

lint: ## format, clippy, documentation; licences and advisories where cargo-deny is installed
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "lint: cargo-deny is not installed; licences and advisories were not checked"; fi

bench: build ## a short version of every benchmark, side by side with what is installed
	$(BENCH) connect --seconds 1 --scales 10 --loads select-connect,tpcb-connect,select-simple,idle
	$(BENCH) coalesce --seconds 1 --scales 10 --loads select-prepared,select-simple,one-prepared,tpcb
	$(BENCH) prepared --statements 2000
	$(BENCH) redis --seconds 1 --rounds 1 --loads write-128@128,read-128@128,write-pipelined-128@128,counter
	$(BENCH) cache --seconds 2 --rounds 1 --rows 100000 --threads 4 --warm-up 2 --loads 'point-select,read-only@*special,mirror-random-ranges@*-disable,writers,lag'
	$(BENCH) procedure --seconds 2 --rounds 1 --warm-up 1 --warehouses 10 --customers 300 --clients 100 --loads payment,neworder

bench-connect: build ## connections and pooling against PostgreSQL and other poolers
	$(BENCH) connect $(ARGS)

bench-coalesce: build ## statements of many clients that share trips, with their limits
	$(BENCH) coalesce $(ARGS)

bench-prepared: build ## prepared statements of sixty threads through pgjdbc
	$(BENCH) prepared $(ARGS)

bench-redis: build ## reads and writes in Redis's protocol, beside redis-server and upserts
	$(BENCH) redis $(ARGS)

bench-cache: build ## reads that come again, with and without the read cache; needs sysbench
	$(BENCH) cache $(ARGS)

bench-session: build ## LISTEN, PREPARE and pins: what sessions keep in transaction mode
	$(BENCH) session $(ARGS)

bench-procedure: build ## TPC-C's payment and new-order: statements, calls and trains of calls
	$(BENCH) procedure $(ARGS)

simulate: ## the data plane in worlds made from seeds, for MINUTES (default 60); FIRST, SEEDS
	cargo build --release --workspace --tests --locked
	PONDAGE_SIM_FIRST=$(or $(FIRST),1000) PONDAGE_SIM_ROUNDS=$(SEEDS) \
		PONDAGE_SIM_MINUTES=$(or $(MINUTES),$(if $(SEEDS),,60)) \
		cargo test --release --workspace --test sim --locked -- --nocapture every_client

soak: ## clients that connect, query, cancel and vanish for SOAK_SECONDS (default 600)
	scripts/setup.sh run
	cargo build --release --workspace --all-targets --locked
	PONDAGE_SOAK_SECONDS=$(or $(SOAK_SECONDS),600) \
		cargo test --release --workspace --test soak --locked -- --nocapture

cache-check: ## what the read cache promises, while others write and streams are killed; ROUNDS, SEED
	scripts/setup.sh test
	cargo build --workspace --all-targets --locked
	PONDAGE_CHECK_ROUNDS=$(or $(ROUNDS),100) PONDAGE_CHECK_SEED=$(SEED) \
		cargo test --workspace --test cache_check --locked -- --nocapture --test-threads=1

sql-logic: ## published .test and .slt files from the checkout DIR, with and without the cache; PART, ONE_OF
	@[ -d "$(DIR)" ] || { \
		echo "make sql-logic DIR=/path/to/checkout: a directory of .test or .slt files that is not"; \
		echo "part of this repository; docs/benchmarks.md says where those are that it was run with."; \
		echo "Our own files, tests/sql_logic/slt, run in make test."; exit 2; }
	$(MAKE) build
	PONDAGE_LOGIC_DIR=$(abspath $(DIR)) PONDAGE_LOGIC_PART=$(PART) PONDAGE_LOGIC_ONE_OF=$(ONE_OF) \
		PONDAGE_BIN=$(abspath $(TARGET))/release/pondage \
		cargo test --workspace --test sql_logic --locked -- --ignored --nocapture

redis-kills: ## what the Redis door promises, while everything is killed; ROUNDS, SEED, FAULT, MODE
	scripts/setup.sh test
	cargo build --workspace --all-targets --locked
	PONDAGE_KILLS_ROUNDS=$(or $(ROUNDS),1000) PONDAGE_KILLS_SEED=$(SEED) \
		$(if $(FAULT),PONDAGE_KILLS_FAULT=$(FAULT)) PONDAGE_KILLS_MODE=$(MODE) \
		cargo test --workspace --test redis_kills --locked -- --nocapture

procedure-kills: ## a ledger of calls, exactly once, while everything is killed; ROUNDS, SEED
	scripts/setup.sh test
	cargo build --workspace --all-targets --locked
	PONDAGE_LEDGER_ROUNDS=$(or $(ROUNDS),100) PONDAGE_LEDGER_SEED=$(SEED) \
		cargo test --workspace --test procedure_kills --locked -- --nocapture

redis-diff: ## random commands to redis-server and to the door, or ADDRESS and AUTH; SEED, ROUNDS, FAMILIES
	scripts/setup.sh test
	cargo build --workspace --all-targets --locked
	PONDAGE_DIFF_SUBJECT=$(ADDRESS) PONDAGE_DIFF_AUTH="$(AUTH)" PONDAGE_DIFF_FAMILIES=$(FAMILIES) \
		PONDAGE_DIFF_ROUNDS=$(or $(ROUNDS),200) $(if $(SEED),PONDAGE_DIFF_SEED=$(SEED)) \
		PONDAGE_DIFF_FINDINGS=$(or $(FINDINGS),1) \
		cargo test --workspace --test redis_diff --locked -- --ignored --nocapture the_subject

redis-suite: ## Redis's own suite from the checkout SUITE, against a demo or ADDRESS
	$(if $(ADDRESS),,$(MAKE) build)
	tests/suites/tcl.py --checkout $(SUITE) $(if $(ADDRESS),--address $(ADDRESS)) $(ARGS)

redis-py-suite: ## redis-py's own tests from the checkout SUITE, against a demo or ADDRESS
	$(if $(ADDRESS),,$(MAKE) build)
	tests/suites/redis_py.py --checkout $(SUITE) $(if $(ADDRESS),--address $(ADDRESS)) $(ARGS)

pgbouncer-suite: ## PgBouncer's own tests from the checkout SUITE, with Pondage in its place
	$(if $(PONDAGE),,$(MAKE) build)
	PONDAGE=$(or $(PONDAGE),$(abspath $(TARGET))/release/pondage) \
		tests/suites/pgbouncer.py $(if $(SUITE),--checkout $(SUITE)) $(ARGS)

drivers-suites: ## suites of PostgreSQL and its drivers, directly and through Pondage; SUITES, ARGS
	$(if $(PONDAGE),,$(MAKE) build)
	PONDAGE=$(or $(PONDAGE),$(abspath $(TARGET))/release/pondage) \
		tests/suites/differences.py $(SUITES) $(ARGS)

slow-network: ## clients, Pondage and PostgreSQL with packets that are late or lost; needs root
	$(if $(PONDAGE),,$(MAKE) build)
	PONDAGE=$(or $(PONDAGE),$(abspath $(TARGET))/release/pondage) tests/suites/slow_network.py

fuzz: ## the codec's fuzz targets, FUZZ_SECONDS (default 60) each
	scripts/fuzz.sh $(ARGS)
