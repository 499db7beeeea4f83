//! Traps 11, 13, 14 and 17: clients that vanish, cancels, servers that die, statement mode.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use wire::pg::backend::tag;
use wire::pg::startup;

use super::batch::{tags, Batch};
use super::servers::{OneServer, TwoServers};
use super::statements::error_code;
use crate::kit::{cluster, wait, Config, Gateway, WireClient};

/// Runs until it is cancelled.
const LONG: &str = "select pg_sleep(600)";

/// Long enough for a wrong message to arrive.
const QUIET: Duration = Duration::from_millis(150);

/// Waits until the server with this process id sleeps in a query.
#[track_caller]
fn wait_for_sleep(pid: &str) {
    let sql = format!("select wait_event = 'PgSleep' from pg_stat_activity where pid = {pid}");
    let mut superuser = cluster().superuser("postgres");
    wait::until("the query to sleep", || superuser.rows(&sql) == [[Some("t".to_owned())]]);
}

/// Waits until PostgreSQL has ended this process.
#[track_caller]
fn wait_for_end(pid: &str) {
    let sql = format!("select 1 from pg_stat_activity where pid = {pid}");
    let mut superuser = cluster().superuser("postgres");
    wait::until("the end of the server", || superuser.rows(&sql).is_empty());
}

#[track_caller]
fn terminate(pid: &str) {
    cluster().superuser("postgres").run(&format!("select pg_terminate_backend({pid})"));
}

#[test]
fn trap_11_the_transaction_of_a_client_that_vanishes_is_rolled_back_before_reuse() {
    let servers = OneServer::start();
    servers.database.run("create table t(a int); grant all on t to app");
    let pid = servers.pid();
    for failed in [false, true] {
        let mut client = servers.client();
        client.run("begin; insert into t values (1); set local timezone to 'Asia/Tokyo'");
        if failed {
            client.error("select 1/0");
        }
        drop(client);
        let mut next = servers.client();
        assert_eq!(next.one("select count(*) from t"), "0");
        assert_eq!(next.status, b'I', "the next client is not in a transaction");
        assert_eq!(next.one("show timezone"), "UTC");
        assert_eq!(next.one("select pg_backend_pid()"), pid, "the server was kept");
    }
    // A polite goodbye in a transaction is no commit either.
    let mut client = servers.client();
    client.run("begin; insert into t values (1)");
    client.terminate();
    assert_eq!(servers.client().one("select count(*) from t"), "0");
}

#[test]
fn trap_11_the_query_of_a_client_that_vanishes_is_cancelled() {
    let servers = OneServer::start();
    let simple = Batch::new().query(LONG);
    let extended = Batch::new().parse("", LONG).bind("", &[]).execute().sync();
    let flushed = Batch::new().parse("", LONG).bind("", &[]).execute().flush();
    let many = extended.clone().query(LONG).query(LONG);
    let in_transaction = Batch::new().query("begin").query(LONG);
    for batch in [simple, extended, flushed, many, in_transaction] {
        let mut client = servers.client();
        batch.to(&mut client);
        wait_for_sleep(&pid_of_only(&servers));
        drop(client);
        let mut next = servers.client();
        assert_eq!(tags(&next.query("select 'next'")), "TDCZ");
    }
}

/// The process id of the one server that the database has.
#[track_caller]
fn pid_of_only(servers: &OneServer) -> String {
    let sql = format!(
        "select pid from pg_stat_activity \
         where datname = '{}' and usename = 'app' and backend_type = 'client backend'",
        servers.database.name
    );
    cluster().superuser("postgres").one(&sql)
}

#[test]
fn trap_11_the_copy_of_a_client_that_vanishes_is_closed_and_nothing_of_it_stays() {
    let servers = OneServer::start();
    servers.database.run("create table t(a int); grant all on t to app");
    let copy = "copy t from stdin";
    for extended in [false, true] {
        let before = servers.pid();
        let mut client = servers.client();
        if extended {
            let batch = Batch::new().parse("", copy).bind("", &[]).execute().sync();
            batch.to(&mut client);
            client.expect_tags("12G");
        } else {
            Batch::new().query(copy).to(&mut client);
            client.expect_tags("G");
        }
        // In the middle of a message as well.
        let data = Batch::new().copy_data("1\n").copy_data("2\n3\n").0;
        client.send(&data[..data.len() - 2]);
        drop(client);
        wait_for_end(&before);
        let mut next = servers.client();
        assert_eq!(next.one("select count(*) from t"), "0");
        assert_ne!(next.one("select pg_backend_pid()"), before);
    }
    assert_eq!(cluster().backends(&servers.database), 1, "no server is lost");
}

#[test]
fn trap_11_a_client_that_vanishes_within_a_message_harms_nobody() {
    let servers = OneServer::start();
    let mut other = servers.client();
    let query = Batch::new().query(&format!("select '{}'", "x".repeat(200_000))).0;
    let parse = Batch::new().parse("s", "select $1::text").sync().0;
    let bind = Batch::new().bind("s", &["y".repeat(200_000).as_str()]).execute().sync().0;
    for bytes in [query, [parse, bind].concat()] {
        for at in [1, 4, 5, 6, 30, 60, 4096, 70_000, bytes.len() - 1] {
            let mut client = servers.client();
            client.send(&bytes[..at]);
            drop(client);
            assert_eq!(tags(&other.query("select 'alive'")), "TDCZ", "after {at} bytes");
        }
    }
    wait::until("one server again", || cluster().backends(&servers.database) == 1);
}

#[test]
fn trap_13_a_cancel_for_one_client_never_hits_the_next_one() {
    let servers = OneServer::start();
    let address = servers.gateway.address();
    let (mut one, mut other) = (servers.client(), servers.client());
    // Idle: its last server is the other's now.
    one.run("select 1");
    Batch::new().query("select pg_sleep(3), 'not cancelled'").to(&mut other);
    wait_for_sleep(&pid_of_only(&servers));
    for _ in 0..5 {
        one.cancel(&address);
    }
    let answer = other.until_ready();
    assert_eq!(tags(&answer), "TDCZ", "{answer:?}");
}

#[test]
fn trap_13_a_cancel_that_comes_as_the_query_ends_never_hits_the_next_one() {
    const ROUNDS: usize = 60;
    let servers = OneServer::start();
    let address = servers.gateway.address();
    let (mut one, mut other) = (servers.client(), servers.client());
    let mut cancelled = 0;
    for round in 0..ROUNDS {
        // The other waits for the server, and gets it when the first query ends, whichever way.
        Batch::new().query("select pg_sleep(0.01)").to(&mut one);
        Batch::new().query("select pg_sleep(0.01), 'not cancelled'").to(&mut other);
        std::thread::sleep(Duration::from_micros(500 * (round as u64 % 30)));
        one.cancel(&address);
        let answer = one.until_ready();
        match tags(&answer).as_str() {
            "TDCZ" => {}
            // PostgreSQL looks for a cancel behind each row, too.
            "EZ" | "TEZ" | "TDEZ" => {
                assert_eq!(error_code(&answer), "57014");
                cancelled += 1;
            }
            other => panic!("{other}: {answer:?}"),
        }
        let answer = other.until_ready();
        assert_eq!(tags(&answer), "TDCZ", "round {round}: {answer:?}");
    }
    assert!(cancelled > 0, "no cancel ever hit its query");
    assert_eq!(one.one("select 'alive'"), "alive");
}

/// A way to a server that keeps CancelRequests until they are let go, and then drops them.
struct SlowCancels {
    port: u16,
    release: mpsc::Sender<()>,
    arrived: mpsc::Receiver<()>,
}

impl SlowCancels {
    fn to(server: u16) -> SlowCancels {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (release, released) = mpsc::channel();
        let (arrives, arrived) = mpsc::channel();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.expect("a connection");
                let mut first = [0; 8];
                client.read_exact(&mut first).expect("a first packet");
                // The code of a CancelRequest.
                if first[4..] == 80_877_102_u32.to_be_bytes() {
                    let _ = arrives.send(());
                    let _ = released.recv();
                    continue;
                }
                let mut there = TcpStream::connect(("127.0.0.1", server)).expect("PostgreSQL");
                there.write_all(&first).expect("PostgreSQL reads");
                let ends = [(&client, &there), (&there, &client)].map(|(from, to)| {
                    (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"))
                });
                for (mut from, mut to) in ends {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        SlowCancels { port, release, arrived }
    }
}

/// PostgreSQL may signal twice, and a client that has seen the end of its request sends its next
/// statement on the same connection.
#[test]
fn trap_13_who_cancels_is_kept_until_postgresql_has_heard_it() {
    for workers in [1, 2_i64] {
        let database = cluster().database();
        let way = SlowCancels::to(cluster().port);
        let config = Config::of(&database)
            .set("runtime.workers", workers)
            .set(&format!("databases.{}.host", database.name), "127.0.0.1")
            .set(&format!("databases.{}.port", database.name), i64::from(way.port))
            .set(&format!("databases.{}.tls_mode", database.name), "disable");
        let gateway = Gateway::start(config);
        let mut client = gateway.client(&database);
        let pid = client.one("begin; select pg_backend_pid()");
        Batch::new().query(LONG).to(&mut client);
        wait_for_sleep(&pid);
        let (number, key) = client.key.clone().expect("BackendKeyData");
        let mut asker = WireClient::connect(&gateway.address());
        asker.put(|out| startup::put_cancel(out, number, &key));
        way.arrived.recv().expect("the request reaches the server");
        asker.expect_silence(QUIET);
        way.release.send(()).expect("the way is there");
        assert!(asker.until_closed().is_empty(), "a CancelRequest is never answered");
    }
}

#[test]
fn trap_13_a_cancel_for_an_idle_client_or_with_a_wrong_key_does_nothing() {
    let mut servers = TwoServers::start();
    servers.both();
    let address = servers.gateway.address();
    let (mut busy, mut idle) = (servers.client(), servers.client());
    idle.cancel(&address);
    assert_eq!(idle.one("select 'idle'"), "idle");
    // Idle in a transaction: nothing runs either.
    idle.run("begin; select 1");
    idle.cancel(&address);
    assert_eq!(idle.one("select 'in a transaction'"), "in a transaction");

    Batch::new().query("select pg_sleep(0.5), 'not cancelled'").to(&mut busy);
    let (pid, key) = busy.key.clone().expect("BackendKeyData");
    let mut wrong = key.clone();
    wrong[0] ^= 1;
    for (pid, key) in [(pid, wrong), (pid ^ 0x0100, key.clone()), (0, vec![0; 4])] {
        let mut other = WireClient::connect(&address);
        other.put(|out| startup::put_cancel(out, pid, &key));
        assert_eq!(other.until_closed(), []);
    }
    assert_eq!(tags(&busy.until_ready()), "TDCZ");
    assert_eq!(tags(&idle.query("rollback")), "CZ");
}

#[test]
fn trap_13_a_cancel_reaches_a_running_query_when_the_pool_is_full_and_a_client_that_waits() {
    let servers = OneServer::start();
    let address = servers.gateway.address();
    let (mut running, mut waiting) = (servers.client(), servers.client());
    Batch::new().query(LONG).to(&mut running);
    wait_for_sleep(&pid_of_only(&servers));
    Batch::new().query("select 'it had to wait'").to(&mut waiting);
    waiting.expect_silence(QUIET);
    waiting.cancel(&address);
    assert_eq!(error_code(&waiting.until_ready()), "57014");
    assert_eq!(waiting.status, b'I');
    Batch::new().query("select 'again'").to(&mut waiting);
    waiting.expect_silence(QUIET);
    running.cancel(&address);
    assert_eq!(error_code(&running.until_ready()), "57014");
    assert_eq!(tags(&waiting.until_ready()), "TDCZ");
    assert_eq!(running.one("select 'alive'"), "alive");
}

#[test]
fn trap_14_a_server_that_dies_in_a_query_gives_one_fatal_and_a_close() {
    let servers = OneServer::start();
    let simple = Batch::new().query(LONG);
    let pipeline = Batch::new()
        .parse("", LONG)
        .bind("", &[])
        .execute()
        .sync()
        .query("select 'never'")
        .query("select 'never'");
    let in_transaction = Batch::new().query("begin").query(LONG);
    for batch in [simple, pipeline, in_transaction] {
        let mut client = servers.client();
        let mut waiting = servers.client();
        batch.to(&mut client);
        let pid = pid_of_only(&servers);
        wait_for_sleep(&pid);
        Batch::new().query("select 'waited'").to(&mut waiting);
        terminate(&pid);
        let last = client.until_closed();
        let errors: Vec<_> = last.iter().filter(|message| message.tag == tag::ERROR).collect();
        assert_eq!(errors.len(), 1, "{last:?}");
        let complaint = errors[0].complaint();
        assert_eq!((complaint.severity.as_str(), complaint.code.as_str()), ("FATAL", "57P01"));
        assert_eq!(last.last(), Some(errors[0]), "nothing follows it");
        // Who waited is served by a new server.
        assert_eq!(tags(&waiting.until_ready()), "TDCZ");
    }
}

#[test]
fn trap_14_a_server_that_dies_in_an_idle_transaction_gives_one_fatal_and_a_close() {
    let servers = OneServer::start();
    let mut client = servers.client();
    client.run("begin; select 1");
    let pid = client.one("select pg_backend_pid()");
    terminate(&pid);
    let last = client.until_closed();
    assert_eq!(tags(&last), "E");
    let complaint = last[0].complaint();
    assert_eq!((complaint.severity.as_str(), complaint.code.as_str()), ("FATAL", "57P01"));
    assert_eq!(servers.client().one("select 'alive'"), "alive");
}

#[test]
fn trap_14_a_server_killed_while_idle_is_never_handed_to_a_client() {
    let servers = OneServer::start();
    let mut client = servers.client();
    for _ in 0..20 {
        let pid = client.one("select pg_backend_pid()");
        terminate(&pid);
        wait_for_end(&pid);
        let next = client.one("select pg_backend_pid()");
        assert_ne!(next, pid);
    }
    assert_eq!(client.notices, []);
    assert_eq!(cluster().backends(&servers.database), 1);
}

#[test]
fn trap_17_statement_mode_rejects_begin_and_lives_on() {
    let statement_mode = |config: Config| config.set("pool.mode", "statement");
    let servers = OneServer::start_with(statement_mode);
    servers.database.run("create table t(a int); grant all on t to app");
    let mut client = servers.client();
    let mut other = servers.client();
    let begins = ["begin", "START TRANSACTION", "/* first */ Begin isolation level serializable"];
    // Ones that a first look does not find.
    let hidden = ["select 1; begin", "insert into t values (1); begin; insert into t values (2)"];
    for sql in begins.into_iter().chain(hidden) {
        let answer = client.query(sql);
        assert_eq!(error_code(&answer), "0A000", "{sql}");
        let hint = answer.iter().find(|m| m.tag == tag::ERROR).expect("an error").complaint().hint;
        assert!(hint.contains("transaction"), "{hint}");
        assert_eq!(client.status, b'I', "{sql}");
        assert_eq!(client.one("select 'alive'"), "alive");
        assert_eq!(tags(&other.query("select 1")), "TDCZ", "the server went back");
        let answer =
            Batch::new().parse("", sql.trim_start_matches("select 1; ")).sync().answer(&mut client);
        assert_eq!(client.status, b'I', "{answer:?}");
        if !sql.contains(';') {
            let run = Batch::new().parse("", sql).bind("", &[]).execute().sync();
            assert_eq!(error_code(&run.answer(&mut client)), "0A000", "{sql}");
            assert_eq!(client.status, b'I');
            assert_eq!(tags(&other.query("select 1")), "TDCZ");
        }
    }
    assert_eq!(servers.database.one("select count(*) from t where a = 2"), "0", "rolled back");
    // Everything else works, prepared statements too.
    let run = Batch::new().parse("s", "select 'prepared'").bind("s", &[]).execute().sync();
    assert_eq!(tags(&run.answer(&mut client)), "12DCZ");
    client.run("insert into t values (3)");
    assert_eq!(other.one("select count(*) from t where a = 3"), "1");
}
