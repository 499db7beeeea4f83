//! Half a thousand clients that do everything a client may do, while servers are killed and the
//! operator reloads, reconnects and pauses.
//!
//! Half of them have the same settings, so that their statements share servers. Every query
//! carries its client's mark, and every reply is checked for it. At the end no client hangs, no
//! server is lost, and the gateway's memory is back where it was.
//!
//! `PONDAGE_SOAK_SECONDS` is how long it runs (60), `PONDAGE_SOAK_SEED` repeats the choices of a
//! run that failed; threads still race, so it makes a repetition likely and not certain.

#[path = "../it/traps/batch.rs"]
#[allow(dead_code)]
mod batch;
mod client;
#[path = "../it/kit/mod.rs"]
mod kit;
mod weather;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use client::{Act, Restless, Tally};
use kit::{cluster, wait, Config, Database, Gateway};

const CLIENTS: usize = 500;

/// Servers; so few that clients always wait for one.
const POOL_SIZE: i64 = 16;

/// A client that is not done so long after the end hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the gateway may keep of its peak: freed pages that the allocator has not returned.
const KEPT_MAX: usize = 24 << 20;

#[test]
fn nothing_is_lost_and_nobody_gets_anothers_reply() {
    let seconds = number("PONDAGE_SOAK_SECONDS").unwrap_or(60);
    let seed = number("PONDAGE_SOAK_SEED").unwrap_or_else(rand::random);
    println!("{CLIENTS} clients for {seconds} s, PONDAGE_SOAK_SEED={seed}");
    let database = cluster().database();
    database.run(
        "create table marks(id bigint generated always as identity, mark text); \
         create index on marks(mark); grant all on marks to app; \
         create table rides(mark text); create index on rides(mark); grant all on rides to app; \
         create table steps(n int primary key); grant all on steps to app; \
         insert into steps select generate_series(0, 9)",
    );
    let gateway = Gateway::start(settings(&database));
    // What is made once, by the first clients, belongs to the base.
    gateway.client(&database).run("select 1");
    let base = resident(&gateway);

    let stop = Arc::new(AtomicBool::new(false));
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| Running::start(number, seed, &gateway, &database, &stop, &tally))
        .collect();
    let peak = weather::rule(seed, Duration::from_secs(seconds), &gateway, &database);
    stop.store(true, Ordering::Relaxed);
    join(clients);

    println!("{}", tally.text());
    tally.assert_everything_happened();
    assert_statements_have_joined(&gateway, &database);
    // What was lost on the way may have been done, but never twice.
    let twice = "select count(*) - count(distinct mark) from rides";
    assert_eq!(database.one(twice), "0");
    assert_nothing_is_lost(&gateway, &database);
    let left = settled_memory(&gateway, base);
    println!("memory: {base} bytes before, {peak} at its peak, {left} after");
    assert!(left < base + KEPT_MAX, "{left} bytes are used after it, {base} before");
}

fn settings(database: &Database) -> Config {
    Config::of(database)
        // SCRAM would make this a test of PBKDF2.
        .set("auth.method", "md5")
        .set("runtime.workers", 2)
        .set("pool.pool_size", POOL_SIZE)
        .set("pool.max_prepared_statements", 20)
        .set("pool.wait_timeout", "60s")
        .set("pool.coalesce_writes", true)
        // Two processors are too busy for anything to be short.
        .set("pool.coalesce_short", "1s")
        .set("telemetry.log_level", "error")
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}

/// A client's thread, and what it does now.
struct Running {
    number: usize,
    doing: Arc<Mutex<Act>>,
    thread: std::thread::JoinHandle<()>,
}

impl Running {
    fn start(
        number: usize,
        seed: u64,
        gateway: &Gateway,
        database: &Database,
        stop: &Arc<AtomicBool>,
        tally: &Arc<Tally>,
    ) -> Running {
        let doing = Arc::new(Mutex::new(Act::Connect));
        let (stop, tally, told) = (stop.clone(), tally.clone(), doing.clone());
        let mut client = Restless::new(number, seed, gateway.address(), &database.name, tally);
        let thread = std::thread::Builder::new()
            .name(format!("client {number}"))
            .stack_size(256 << 10)
            .spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    client.act(|act| *told.lock().expect("no panic while held") = act);
                }
                client.leave();
            })
            .expect("a thread");
        Running { number, doing, thread }
    }
}

fn join(clients: Vec<Running>) {
    let end = Instant::now() + PATIENCE;
    let mut failed = BTreeMap::new();
    for client in clients {
        let left = end.saturating_duration_since(Instant::now());
        let done = wait::within(left, || client.thread.is_finished().then_some(()));
        let act = *client.doing.lock().expect("no panic while held");
        if done.is_none() {
            failed.insert(client.number, format!("hangs in {act:?}"));
        } else if client.thread.join().is_err() {
            failed.insert(client.number, format!("failed in {act:?}, see above"));
        }
    }
    assert!(failed.is_empty(), "{} of {CLIENTS} clients: {failed:#?}", failed.len());
}

/// Statements have gone each way of sharing, and some came to nothing on it.
fn assert_statements_have_joined(gateway: &Gateway, database: &Database) {
    let rows = gateway.show("coalesce");
    let row = rows.iter().find(|row| row["database"] == database.name).expect("the pool");
    println!("{row:?}");
    for counter in ["joined", "batched", "trained", "prepared", "skipped"] {
        assert_ne!(row[counter], "0", "{counter}: {row:?}");
    }
}

/// What Pondage says of its servers agrees with PostgreSQL, and all are idle.
fn assert_nothing_is_lost(gateway: &Gateway, database: &Database) {
    let mut last = String::new();
    let settled = wait::within(wait::DEADLINE, || {
        let pools = gateway.show("pools");
        let pool = pools.iter().find(|row| row["database"] == database.name).expect("the pool");
        let servers = gateway.show("servers");
        let mine: Vec<_> = servers.iter().filter(|row| row["database"] == database.name).collect();
        let idle = mine.iter().filter(|row| row["state"] == "idle").count();
        let backends = backends_of_app(database);
        last = format!("{backends} backends; pool {pool:#?}; servers {servers:#?}");
        let none = ["cl_active", "cl_waiting", "sv_active", "sv_active_cancel", "sv_login"];
        let rest = none.iter().all(|column| pool[*column] == "0");
        let sums = idle == mine.len() && backends == mine.len();
        (rest && sums && pool["sv_idle"] == idle.to_string()).then_some(idle)
    });
    let idle = settled.unwrap_or_else(|| panic!("servers are lost: {last}"));
    assert!((1..=POOL_SIZE as usize).contains(&idle), "{idle} servers: {last}");
    // Each of them works.
    let mut clients: Vec<_> = (0..idle).map(|_| gateway.client(database)).collect();
    clients.iter_mut().for_each(|client| client.run("begin; select 1"));
    clients.iter_mut().for_each(|client| client.run("commit"));
    assert!(gateway.show("clients").iter().all(|row| row["state"] != "waiting"));
}

fn backends_of_app(database: &Database) -> usize {
    let sql = format!(
        "select count(*) from pg_stat_activity \
         where datname = '{}' and usename = 'app' and backend_type = 'client backend' \
         and application_name <> 'pondage'",
        database.name
    );
    cluster().superuser("postgres").one(&sql).parse().expect("a count")
}

/// Resident memory in bytes.
pub fn resident(gateway: &Gateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid()));
    let status = status.expect("the gateway runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let word = line.split_whitespace().nth(1).expect("a number");
    word.parse::<usize>().expect("a number") * 1024
}

/// The allocator returns pages late, and only while it is used.
fn settled_memory(gateway: &Gateway, base: usize) -> usize {
    let limit = Duration::from_secs(10);
    let low = wait::within(limit, || {
        gateway.show("version");
        let now = resident(gateway);
        (now < base + KEPT_MAX).then_some(now)
    });
    low.unwrap_or_else(|| resident(gateway))
}
