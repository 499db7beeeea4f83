//! The suites of other languages' drivers, each by the runner of its language: those for PostgreSQL
//! against a gateway whose pool is much smaller than the number of clients, those for Redis against
//! its Redis door.
//!
//! Ignored by default: they need Python, Node, Java and Go, and fetch the drivers at their first
//! run. `make test-drivers` runs them one after the other.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{kill_process_group, Pid, Signal};

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{binary, ADMIN, ADMIN_PASSWORD};
use crate::kit::place::{build_directory, workspace};
use crate::kit::{cluster, wait, Config, Gateway, WireClient};

/// Most of the time a suite may take, the download of its driver included.
const LIMIT: Duration = Duration::from_secs(400);

/// Drivers for PostgreSQL.
#[track_caller]
fn suite(language: &str) {
    let database = cluster().database();
    // Fifty clients at once share five servers, on machines with two cores.
    let gateway = Gateway::start(Config::of(&database).set("pool.wait_timeout", "30s"));
    let port = gateway.port.to_string();
    let variables = [
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", &port),
        ("PGUSER", APP),
        ("PGPASSWORD", APP_PASSWORD),
        ("PGDATABASE", &database.name),
    ];
    run(language, &variables);
}

/// Clients of Redis, and what is built on them.
#[track_caller]
fn redis_suite(language: &str) {
    let config = Config::of(&cluster().database())
        .set("listen.redis", "127.0.0.1:{redis_port}")
        .set("redis.user", APP)
        .set("redis.default_user", APP);
    let gateway = Gateway::start(config);
    let password = APP_PASSWORD.replace(' ', "%20");
    let url = format!("redis://{APP}:{password}@127.0.0.1:{}/0", gateway.redis_port);
    run(language, &[("REDIS_URL", &url)]);
}

/// Runs `tests/drivers/LANGUAGE/run.sh`, whose output goes straight to the terminal.
#[track_caller]
fn run(language: &str, variables: &[(&str, &str)]) {
    let script = workspace().join("tests/drivers").join(language).join("run.sh");
    let mut run = Command::new(&script)
        .envs(variables.iter().copied())
        .env("DRIVERS_OUT", build_directory().join("drivers").join(language))
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|e| panic!("{}: {e}", script.display()));
    match wait::within(LIMIT, || run.try_wait().expect("a child of ours")) {
        Some(status) => assert!(status.success(), "{}: {status}", script.display()),
        None => {
            // The script's runner and its workers too.
            let group = Pid::from_child(&run);
            let _ = kill_process_group(group, Signal::KILL);
            let _ = run.wait();
            panic!("{} still ran after {LIMIT:?}", script.display());
        }
    }
}

/// Not a driver, but run by Node and from npm as well: the dashboard in a browser.
#[test]
#[ignore = "needs Chromium, Node and npm: make test-drivers"]
fn the_dashboard_in_chromium() {
    let database = cluster().database();
    let table = "create table shelf(id int primary key, n int not null);
        insert into shelf select id, id * 2 from generate_series(0, 19) id";
    WireClient::login(&cluster().address(), APP, APP_PASSWORD, &database.name).run(table);
    let config = Config::of(&database)
        .set("cache.mode", "manual")
        .set("cache.user", APP)
        .set("auth.stats_users", ["looker"])
        .set("users.looker.password", "looker secret");
    let gateway = Gateway::start(config);
    let variables = [
        ("PGHOST", "127.0.0.1".to_owned()),
        ("PGPORT", gateway.port.to_string()),
        ("PGUSER", APP.to_owned()),
        ("PGPASSWORD", APP_PASSWORD.to_owned()),
        ("PGDATABASE", database.name.clone()),
        ("DASHBOARD", format!("http://127.0.0.1:{}/", gateway.http_port)),
        ("ADMIN", ADMIN.to_owned()),
        ("ADMIN_PASSWORD", ADMIN_PASSWORD.to_owned()),
        ("STATS", "looker".to_owned()),
        ("STATS_PASSWORD", "looker secret".to_owned()),
        ("GATEWAY_PID", gateway.pid().to_string()),
        ("GATEWAY_PROGRAM", binary().display().to_string()),
        ("GATEWAY_FILE", gateway.file().display().to_string()),
        (
            "SCREENSHOTS",
            match std::env::var_os("UPDATE_DOCS") {
                Some(_) => workspace().join("docs/images").display().to_string(),
                None => String::new(),
            },
        ),
    ];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    run("browser", &variables);
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

#[test]
#[ignore = "needs Python and PyPI: make test-drivers"]
fn redis_py_celery_and_flask_session() {
    redis_suite("redis-python");
}

#[test]
#[ignore = "needs Node and npm: make test-drivers"]
fn ioredis_node_redis_and_bullmq() {
    redis_suite("redis-node");
}

#[test]
#[ignore = "needs a JDK and Maven: make test-drivers"]
fn jedis() {
    redis_suite("redis-java");
}

#[test]
#[ignore = "needs Go: make test-drivers"]
fn go_redis() {
    redis_suite("redis-go");
}
