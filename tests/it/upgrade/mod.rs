//! A new process takes over from the one that runs, and nobody notices.

mod failures;
mod manager;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, RedisClient, WireClient};

fn config(database: &Database) -> Config {
    Config::of(database)
        .set("listen.postgres", ["127.0.0.1:{port}", "unix:{directory}"])
        .set("runtime.control_socket", "{directory}/control")
        .set("runtime.pid_file", "{directory}/pid")
        .set("pool.pool_size", 2)
}

/// Clients that write, until they are told to stop; each row that was acknowledged is counted.
struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn none() -> Load {
        Load { stop: Arc::default(), written: Arc::default(), threads: Vec::new() }
    }

    /// A client that connects for so many transactions, then anew; without a number it stays.
    fn add(&mut self, address: &Address, database: &Database, stays_for: Option<usize>) {
        let (stop, written) = (self.stop.clone(), self.written.clone());
        let (address, name) = (address.clone(), database.name.clone());
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut client = WireClient::login(&address, APP, APP_PASSWORD, &name);
                let rounds = stays_for.unwrap_or(usize::MAX);
                for _ in (0..rounds).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    client.run("begin; insert into counted values (1)");
                    client.run("commit");
                    written.fetch_add(1, Ordering::Relaxed);
                }
                client.terminate();
            }
        }));
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client without an error");
        }
        self.written.load(Ordering::Relaxed)
    }
}

#[test]
fn twenty_upgrades_in_a_row_lose_no_client_and_no_write() {
    let database = cluster().database();
    database.run("create table counted (n int); grant all on counted to app");
    let first = Gateway::start(config(&database));
    let (tcp, unix) = (first.address(), Address::unix(first.directory.path(), first.port));
    let mut load = Load::none();
    for (address, stays_for) in [(&tcp, 1), (&tcp, 3), (&unix, 1), (&unix, 5)] {
        load.add(address, &database, Some(stays_for));
    }
    let mut gateways = vec![first];
    for round in 0..20 {
        if round % 5 == 0 {
            load.add(&tcp, &database, None);
        }
        let before = load.written();
        let last = gateways.last().expect("the first");
        let next = last.successor(&[]);
        gateways.push(next);
        wait::until("writes after an upgrade", || load.written() > before + 20);
    }
    let newest = gateways.pop().expect("the newest");
    let pid = std::fs::read_to_string(newest.directory.path().join("pid")).expect("a pid file");
    assert_eq!(pid.trim(), newest.pid().to_string());
    let written = load.finish();
    assert_eq!(database.one("select count(*) from counted"), written.to_string());
    // Those before end with their last client, by themselves.
    for mut old in gateways {
        let status = old.wait();
        assert!(status.success(), "{status}");
    }
    let mut client = newest.client(&database);
    assert_eq!(client.one("select 'here'"), "here");
}

#[test]
fn the_command_has_the_running_process_start_the_next_one() {
    let database = cluster().database();
    let mut first = Gateway::start(config(&database));
    let mut stays = first.client(&database);
    let file = first.file.display().to_string();
    let done = Gateway::command(&["upgrade", "-c", &file], &[]);
    assert!(done.status.success(), "{done:?}");
    // The new one writes its file as soon as it has heard that it serves.
    wait::until("the pid file of the new process", || {
        let file = std::fs::read_to_string(first.directory.path().join("pid"));
        file.is_ok_and(|pid| done.stdout.trim() == format!("process {} serves now", pid.trim()))
    });
    assert_ne!(done.stdout.trim(), format!("process {} serves now", first.pid()));
    assert_eq!(first.client(&database).one("select 'new'"), "new");
    assert_eq!(stays.one("select 'old'"), "old");
    // The one that it started is no child of this test: another one ends it.
    let last = first.successor(&[]);
    stays.terminate();
    assert!(first.wait().success());
    assert_eq!(last.client(&database).one("select 'last'"), "last");
}

#[test]
fn a_cancel_request_finds_its_client_in_the_processes_before() {
    let database = cluster().database();
    let first = Gateway::start(config(&database));
    let mut sleeper = first.client(&database);
    let mut newer = WireClient::connect(&first.address());
    let parameters = [("user", APP), ("database", database.name.as_str())];
    newer.put(|out| wire::pg::startup::put_startup(out, 2, &parameters));
    newer.authenticate(APP, APP_PASSWORD).expect("logged in");
    assert_eq!(newer.key.as_ref().map(|(_, key)| key.len()), Some(32));
    let second = first.successor(&[]);
    let mut other = second.client(&database);
    let third = second.successor(&[]);
    for client in [&mut sleeper, &mut other, &mut newer] {
        client.put(|out| wire::pg::frontend::put_query(out, "select pg_sleep(600)"));
        let sleeps = "select count(*) from pg_stat_activity where datname = current_database() \
                      and query = 'select pg_sleep(600)' and state = 'active'";
        wait::until("the sleep", || database.one(sleeps) == "1");
        client.cancel(&third.address());
        let replies = client.until_ready();
        let error = replies.iter().find(|reply| reply.tag == b'E').expect("an error");
        assert_eq!(error.complaint().code, "57014");
    }
    // A wrong key is nobody's.
    sleeper.put(|out| wire::pg::frontend::put_query(out, "select pg_sleep(0.2)"));
    other.cancel(&third.address());
    let replies = sleeper.until_ready();
    assert!(replies.iter().all(|reply| reply.tag != b'E'), "{replies:?}");
}

#[test]
fn who_stays_too_long_is_closed_when_it_is_idle() {
    let database = cluster().database();
    let config = config(&database).set("runtime.upgrade_timeout", "300ms");
    let mut first = Gateway::start(config);
    let mut idle = first.client(&database);
    let mut busy = first.client(&database);
    busy.run("begin; select 1");
    let second = first.successor(&[]);
    let last = idle.until_closed();
    let said = last.last().expect("an error").complaint();
    assert_eq!(said.code, "57P01");
    assert_eq!(busy.one("select 'still in its transaction'"), "still in its transaction");
    busy.run("commit");
    busy.until_closed();
    assert!(first.wait().success());
    assert_eq!(second.client(&database).one("select 1"), "1");
}

#[test]
fn what_a_redis_client_was_told_is_there_after_an_upgrade() {
    let database = cluster().database();
    let config = crate::redis::open(&database)
        .set("runtime.control_socket", "{directory}/control")
        .set("redis.journal_databases", [1]);
    let mut gateway = Gateway::start(config);
    for round in 0..3 {
        let mut client = RedisClient::connect(&gateway);
        for db in ["0", "1"] {
            client.says(format!("SELECT {db}\r\n").as_bytes(), b"+OK\r\n");
            client.says(b"INCR upgrades\r\n", format!(":{}\r\n", round + 1).as_bytes());
        }
        let next = gateway.successor(&[]);
        client.ends();
        assert!(gateway.wait().success());
        gateway = next;
    }
    let mut client = RedisClient::connect(&gateway);
    client.says(b"GET upgrades\r\n", b"$1\r\n3\r\n");
}
