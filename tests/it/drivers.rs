//! The suites of other languages' drivers, each by the runner of its language, against a gateway
//! whose pool is much smaller than the number of clients.
//!
//! Ignored by default: they need Python, Node, Java and Go, and fetch the drivers at their first
//! run. `make test-drivers` runs them one after the other.

use std::process::{Command, Stdio};

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::workspace;
use crate::kit::{cluster, Config, Gateway};

/// Runs `tests/drivers/LANGUAGE/run.sh`, whose output goes straight to the terminal.
#[track_caller]
fn suite(language: &str) {
    let database = cluster().database();
    // Fifty clients at once share five servers, on machines with two cores.
    let gateway = Gateway::start(Config::of(&database).set("pool.wait_timeout", "30s"));
    let script = workspace().join("tests/drivers").join(language).join("run.sh");
    let status = Command::new(&script)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", gateway.port.to_string())
        .env("PGUSER", APP)
        .env("PGPASSWORD", APP_PASSWORD)
        .env("PGDATABASE", &database.name)
        .stdin(Stdio::null())
        .status()
        .unwrap_or_else(|e| panic!("{}: {e}", script.display()));
    assert!(status.success(), "{}: {status}", script.display());
}

#[test]
#[ignore = "needs Python and PyPI: make test-drivers"]
fn psycopg_and_asyncpg() {
    suite("python");
}

#[test]
#[ignore = "needs Node and npm: make test-drivers"]
fn node_postgres() {
    suite("node");
}

#[test]
#[ignore = "needs a JDK and Maven: make test-drivers"]
fn pgjdbc() {
    suite("java");
}

#[test]
#[ignore = "needs Go: make test-drivers"]
fn pgx() {
    suite("go");
}
