//! What a session keeps that can't be taken to another server stays its client's: the
//! client keeps the server, nobody else gets it, and it goes on to others when nothing is left.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use wire::pg::backend::tag;
use wire::pg::frontend;

use super::batch::Batch;
use crate::kit::cluster::{SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// Functions that make and end it, in ways that no text tells.
const FUNCTIONS: &str = "
    create function takes(n int) returns void language plpgsql
        as 'begin perform pg_advisory_lock(n); end';
    create function takes_by_another(n int) returns void language sql as 'select takes(n)';
    create function gives(n int) returns bool language sql as 'select pg_advisory_unlock(n)';
    create function makes() returns void language plpgsql
        as 'begin create temporary table made(a int); end';
    create function builds(what text) returns void language plpgsql
        as $$ begin execute 'create ' || what || ' table made(a int)'; end $$;
    create function drops() returns void language plpgsql as 'begin drop table made; end';
    create function hears() returns void language sql as 'listen heard';
    create function ignores() returns void language sql as 'unlisten heard';
    create function brief() returns void language plpgsql
        as 'begin create temp table brief(a int) on commit drop; end';
    create function fails() returns int language plpgsql
        as 'begin create temp table made(a int); return 1 / 0; end';
    create procedure calls() language plpgsql as 'begin create temp table made(a int); end';";

struct Place {
    gateway: Gateway,
    database: Database,
}

impl Place {
    fn start(size: i64, settings: impl FnOnce(Config) -> Config) -> Place {
        let database = cluster().database();
        database.run(FUNCTIONS);
        let config = Config::of(&database).set("pool.pool_size", size).set("pool.listen", "server");
        Place { gateway: Gateway::start(settings(config)), database }
    }

    fn client(&self) -> WireClient {
        self.gateway.client(&self.database)
    }

    /// Why clients are pinned, one text each. What `client` has done before is known.
    fn pins_after(&self, client: &mut WireClient) -> Vec<String> {
        client.run("select 1");
        self.pins()
    }

    fn pins(&self) -> Vec<String> {
        self.gateway.show("pins").into_iter().map(|row| row["reasons"].clone()).collect()
    }

    fn has_no_pins(&self) {
        wait::until("no client to be pinned", || self.pins().is_empty());
    }
}

fn pid(client: &mut WireClient) -> String {
    client.one("select pg_backend_pid()")
}

/// What is done, what is told about it, and what undoes it.
const KINDS: &[(&str, &str, &str)] = &[
    ("create temp table t(a int)", "temporary table t", "drop table t"),
    ("create temp table t as select 1 as a", "temporary table t", "drop table t"),
    ("create table pg_temp.t(a int)", "temporary table t", "discard temp"),
    ("select 1 as a into temporary t", "temporary table t", "discard all"),
    ("create temp table t(a int) on commit delete rows", "temporary table t", "drop table t"),
    ("create temp view v as select 1", "temporary view v", "drop view v"),
    ("create temp sequence s", "temporary sequence s", "drop sequence s"),
    (
        "create function pg_temp.f() returns int language sql as 'select 1'",
        "temporary function pg_temp_",
        "drop function pg_temp.f()",
    ),
    ("declare c cursor with hold for select 1", "cursor c", "close c"),
    ("declare \"C d\" cursor with hold for select 1", "cursor C d", "close all"),
    ("listen \"A b\"", "LISTEN A b", "unlisten *"),
    ("select pg_advisory_lock(42)", "advisory lock 42", "select pg_advisory_unlock(42)"),
    (
        "select pg_advisory_lock_shared(1, -2)",
        "advisory lock (1, -2)",
        "select pg_advisory_unlock_all()",
    ),
    (
        "select pg_try_advisory_lock(-1)",
        "advisory lock -1",
        "do $$ begin perform pg_advisory_unlock(-1); end $$",
    ),
    (
        "do $$ begin execute 'create temp' || ' table t()'; end $$",
        "temporary table t",
        "do $$ begin drop table t; end $$",
    ),
    ("select takes(7)", "advisory lock 7", "select gives(7)"),
    ("select takes_by_another(8)", "advisory lock 8", "select gives(8)"),
    ("select makes()", "temporary table made", "select drops()"),
    ("select builds('temp')", "temporary table made", "drop table made"),
    ("call calls()", "temporary table made", "discard temp"),
    ("select hears()", "LISTEN heard", "select ignores()"),
    ("begin; create temp table t(a int); commit", "temporary table t", "begin; drop table t; end"),
    (
        "begin; savepoint a; select takes(3); rollback to a; commit",
        "advisory lock 3",
        "discard all",
    ),
];

#[test]
fn what_a_session_keeps_pins_its_client_until_it_is_gone() {
    let place = Place::start(2, |config| config);
    for extended in [false, true] {
        for (make, told, unmake) in KINDS {
            if extended && (make.contains("; ") || unmake.contains("; ")) {
                continue;
            }
            let mut client = place.client();
            let run = |client: &mut WireClient, text: &str| match extended {
                true => drop(client.extended(text, &[])),
                false => client.run(text),
            };
            run(&mut client, make);
            let pins = place.pins_after(&mut client);
            assert!(pins.len() == 1 && pins[0].starts_with(told), "{make}: {pins:?}");
            let own = pid(&mut client);
            let mut other = place.client();
            for _ in 0..3 {
                assert_ne!(pid(&mut other), own, "{make}");
                assert_eq!(pid(&mut client), own, "{make}");
            }
            run(&mut client, unmake);
            assert_eq!(place.pins_after(&mut client), [""; 0], "{make}, {unmake}");
        }
    }
}

#[test]
fn what_is_rolled_back_or_ends_by_itself_pins_nobody() {
    let place = Place::start(1, |config| config);
    let mut client = place.client();
    for text in [
        "begin; create temp table t(a int); rollback",
        "begin; savepoint a; create temp table t(a int); rollback to a; commit",
        "begin; create temp table t(a int) on commit drop; insert into t values (1); commit",
        "begin; declare c cursor for select 1; fetch c; commit",
        "begin; declare c cursor with hold for select 1; rollback",
        "begin; listen a; rollback",
        "begin; select pg_advisory_xact_lock(1); commit",
        "select pg_advisory_lock(1); select pg_advisory_unlock(1)",
        "select brief()",
        "begin; select makes(); rollback",
        "create temp table t(a int); drop table t",
    ] {
        client.run(text);
        assert_eq!(place.pins_after(&mut client), [""; 0], "{text}");
    }
    client.error("select fails()");
    assert_eq!(place.pins_after(&mut client), [""; 0]);
    // The server is anybody's.
    assert_eq!(pid(&mut place.client()), pid(&mut client));
}

#[test]
fn a_client_is_pinned_until_the_last_of_several_things_is_gone() {
    let place = Place::start(2, |config| config);
    let mut client = place.client();
    client.run("create temp table t(a int); insert into t values (1)");
    client.run("select pg_advisory_lock(1), pg_advisory_lock(2); listen a");
    client.run("declare c cursor with hold for select a from t");
    let all = "temporary table t, LISTEN a, advisory lock 1, advisory lock 2, cursor c";
    assert_eq!(place.pins_after(&mut client), [all]);
    let steps = [
        ("drop table t", "LISTEN a, advisory lock 1, advisory lock 2, cursor c"),
        ("select pg_advisory_unlock(1)", "LISTEN a, cursor c, advisory lock 2"),
        ("begin; unlisten a; rollback", "cursor c, advisory lock 2, LISTEN a"),
        ("unlisten a", "cursor c, advisory lock 2"),
        ("select pg_advisory_unlock_all()", "cursor c"),
    ];
    for (text, left) in steps {
        client.run(text);
        assert_eq!(place.pins_after(&mut client), [left], "{text}");
    }
    assert_eq!(client.one("fetch c"), "1");
    // By the protocol: to PostgreSQL a cursor is a portal.
    Batch::new().close_portal("c").sync().answer(&mut client);
    assert_eq!(place.pins_after(&mut client), [""; 0]);
}

#[test]
fn settings_and_statements_of_a_pinned_client_go_on_as_before() {
    let place = Place::start(2, |config| config);
    let mut client = place.client();
    client.run("create temp table t(a int); set search_path to x, pg_temp");
    client.run("set app.user_id to '7'");
    client.extended("insert into t values ($1)", &[Some(b"5")]);
    assert_eq!(client.one("begin; select a from t"), "5");
    client.run("commit; prepare p as select a from t");
    assert_eq!(client.one("execute p"), "5");
    client.run("drop table t");
    place.has_no_pins();
    assert_eq!(client.one("select current_setting('search_path')"), "x, pg_temp");
    assert_eq!(client.one("select current_setting('app.user_id')"), "7");
}

#[test]
fn statement_mode_pins_too() {
    let place = Place::start(2, |config| config.set("pool.mode", "statement"));
    let mut client = place.client();
    client.run("create temp table t(a int)");
    client.run("insert into t values (1)");
    assert_eq!(pid(&mut client), pid(&mut client));
    assert_ne!(pid(&mut place.client()), pid(&mut client));
    assert_eq!(client.one("select count(*) from t"), "1");
}

/// What the only server has in its session.
const LEFT: &str =
    "select (select count(*) from pg_class where relnamespace = pg_my_temp_schema()) \
    + (select count(*) from pg_cursors where is_holdable) \
    + (select count(*) from pg_listening_channels()) \
    + (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())";

#[test]
fn who_leaves_leaves_nothing_behind() {
    let place = Place::start(1, |config| config);
    let pid_before = pid(&mut place.client());
    for (make, ..) in KINDS {
        for at_once in [true, false] {
            let mut client = place.client();
            match at_once {
                // Before anybody has asked what there is.
                true => Batch::new().query(make).to(&mut client),
                false => {
                    client.run(make);
                    client.run("select 1");
                }
            }
            client.terminate();
            let mut other = place.client();
            assert_eq!(other.one(LEFT), "0", "{make}");
            assert_eq!(pid(&mut other), pid_before, "{make}");
        }
    }
    assert_eq!(place.pins(), [""; 0]);
}

#[test]
fn a_server_with_a_library_is_its_clients_and_then_closed() {
    let place = Place::start(2, |config| config.set("users.postgres.password", SUPERUSER_PASSWORD));
    let client = || {
        let address = place.gateway.address();
        WireClient::login(&address, SUPERUSER, SUPERUSER_PASSWORD, &place.database.name)
    };
    place.database.run(
        "create function loads() returns void language plpgsql as $$ begin load 'plpgsql'; end $$",
    );
    for text in ["load 'plpgsql'", "select loads()", "do $$ begin load 'plpgsql'; end $$"] {
        let mut one = client();
        one.run(text);
        assert_eq!(place.pins_after(&mut one), ["LOAD"], "{text}");
        let own = pid(&mut one);
        one.terminate();
        place.has_no_pins();
        assert_ne!(pid(&mut client()), own, "{text}");
        let mut one = client();
        one.run(text);
        let own = pid(&mut one);
        one.run("discard all");
        assert_eq!(place.pins_after(&mut one), [""; 0], "{text}");
        assert_ne!(pid(&mut one), own, "{text}");
    }
    client().error("load 'nothing of this name'");
    place.has_no_pins();
}

/// The last thing that a client is told.
#[track_caller]
fn last_word(client: &mut WireClient) -> Complaint {
    let messages = client.until_closed();
    let last = messages.iter().rev().find(|message| message.tag == tag::ERROR);
    last.expect("an error").complaint()
}

#[test]
fn no_more_clients_are_pinned_than_max_pinned() {
    for workers in [1, 2_i64] {
        let place = Place::start(2, |config| config.set("runtime.workers", workers));
        let mut first = place.client();
        first.run("create temp table t(a int)");
        first.run("select 1");
        let mut second = place.client();
        second.put(|out| frontend::put_query(out, "select pg_advisory_lock(5)"));
        let complaint = last_word(&mut second);
        assert_eq!(complaint.code, "53300");
        assert!(complaint.message.starts_with("too many clients of "), "{complaint:?}");
        let detail = "This client has left in its session: advisory lock 5. Without a server of \
                      its own it would lose it. max_pinned is 1.";
        assert_eq!(complaint.detail, detail);
        assert!(complaint.hint.ends_with("see SHOW PINS. [P0427]"), "{complaint:?}");
        let mut third = place.client();
        assert_eq!(third.one(LEFT), "0");
        assert_eq!(place.pins(), ["temporary table t"]);
        first.run("drop table t");
        first.run("select 1");
        third.run("select pg_advisory_lock(5)");
        assert_eq!(place.pins_after(&mut third), ["advisory lock 5"]);
    }
}

#[test]
fn pins_can_be_refused() {
    let place = Place::start(2, |config| config.set("pool.max_pinned", 0));
    let mut client = place.client();
    client.put(|out| frontend::put_query(out, "listen a"));
    let complaint = last_word(&mut client);
    assert_eq!(complaint.code, "0A000");
    assert!(complaint.message.ends_with("may not keep a server connection"), "{complaint:?}");
    assert_eq!(place.client().one(LEFT), "0");
}

#[test]
fn who_waits_for_a_pool_full_of_pins_is_told_of_them() {
    let place = Place::start(1, |config| config.set("pool.wait_timeout", "700ms"));
    let mut holder = place.client();
    holder.run("create temp table t(a int)");
    holder.run("select 1");
    let pins = place.gateway.show("pins");
    let id = &pins[0]["client_id"];
    assert_eq!(pins[0]["remote_pid"], pid(&mut holder));
    let mut waiting = place.client();
    waiting.put(|out| frontend::put_query(out, "select 1"));
    let complaint = last_word(&mut waiting);
    assert_eq!(complaint.code, "53300");
    let detail = format!(
        "1 of 1 in use, 1 waiting; 1 pinned to clients; oldest holder: client {id}, \
         application_name \"\", pinned for "
    );
    assert!(complaint.detail.contains(&detail), "{complaint:?}");
    let hint = format!("KILL_CLIENT {id}, or raise pool_size; see SHOW PINS. [P0412]");
    assert_eq!(complaint.hint, hint);
    assert_eq!(place.gateway.figure("pondage_pins"), 1);
    let state = place.gateway.page("/api/v1/state").expect("the HTTP door");
    let state: String = state.split_whitespace().collect();
    assert!(state.contains("\"reasons\":[\"temporary\"]"), "{state}");
    let mut waiting = place.client();
    waiting.put(|out| frontend::put_query(out, "select 'free'"));
    place.gateway.console().run(&format!("kill_client {id}"));
    assert_eq!(waiting.until_ready()[1].values(), [Some("free".into())]);
    assert_eq!(waiting.one(LEFT), "0");
}

#[test]
fn pinned_clients_live_through_what_sessions_live_through() {
    let place = Place::start(2, |config| config);
    let mut client = place.client();
    client.run("create temp table t(a int)");
    let own = pid(&mut client);
    let mut console = place.gateway.console();
    console.run("reconnect");
    console.run("reload");
    let mut pausing = place.gateway.console();
    pausing.put(|out| frontend::put_query(out, "pause"));
    pausing.expect_silence(Duration::from_millis(150));
    assert_eq!(client.one("select count(*) from t"), "0");
    assert_eq!(pid(&mut client), own);
    // Now nothing is in use any more, and the server is of before.
    client.run("drop table t");
    pausing.until_ready();
    console.run("resume");
    assert_ne!(pid(&mut client), own);
}

#[test]
fn what_clients_of_session_mode_have_left_is_looked_at_when_the_mode_changes() {
    let place = Place::start(2, |config| config.set("pool.mode", "session"));
    let mut client = place.client();
    client.run("create temp table t(a int); set app.user_id to '7'");
    let config = Config::of(&place.database).set("pool.pool_size", 2);
    place.gateway.rewrite(config.set("pool.mode", "transaction"));
    place.gateway.console().run("reload");
    assert_eq!(client.one("select count(*) from t"), "0");
    assert_eq!(place.pins_after(&mut client), ["temporary table t"]);
    let own = pid(&mut client);
    assert_ne!(pid(&mut place.client()), own);
}

#[test]
fn who_loses_a_pinned_server_is_told() {
    let place = Place::start(2, |config| config);
    let mut client = place.client();
    client.run("create temp table t(a int)");
    let own = pid(&mut client);
    cluster().superuser("postgres").run(&format!("select pg_terminate_backend({own})"));
    assert_eq!(last_word(&mut client).code, "57P01");
    place.has_no_pins();
    place.client().run("create temp table t(a int)");
}

/// A way to PostgreSQL that can be cut.
fn cuttable(server: u16) -> (u16, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (cut, cutting) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all: Vec<TcpStream> = Vec::new();
        listener.set_nonblocking(true).expect("a socket");
        loop {
            if let Ok((client, _)) = listener.accept() {
                client.set_nonblocking(false).expect("a socket");
                let there = TcpStream::connect(("127.0.0.1", server)).expect("PostgreSQL");
                for (from, to) in [(&client, &there), (&there, &client)] {
                    let mut from = from.try_clone().expect("a socket");
                    let mut to = to.try_clone().expect("a socket");
                    std::thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(read @ 1..) = from.read(&mut bytes) {
                            if to.write_all(&bytes[..read]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                all.extend([client, there]);
            }
            match cutting.recv_timeout(Duration::from_millis(5)) {
                Ok(()) => all.drain(..).for_each(|one| drop(one.shutdown(Shutdown::Both))),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    (port, cut)
}

#[test]
fn a_pinned_client_is_never_moved_silently() {
    let (port, cut) = cuttable(cluster().port);
    let database = cluster().database();
    let name = database.name.clone();
    let config = Config::of(&database)
        .set("pool.pool_size", 2)
        .set(&format!("databases.{name}.port"), i64::from(port))
        .set(&format!("databases.{name}.tls_mode"), "disable");
    let gateway = Gateway::start(config);
    let (mut pinned, mut free) = (gateway.client(&database), gateway.client(&database));
    pinned.run("create temp table t(a int)");
    pinned.run("select 1");
    free.run("select 1");
    cut.send(()).expect("the way is there");
    let complaint = last_word(&mut pinned);
    assert_eq!(complaint.code, "57P01");
    assert_eq!(complaint.detail, "What this client had there is gone: temporary table t.");
    assert_eq!(complaint.hint, "Connect again. [P0433]");
    wait::until("all servers to be gone", || gateway.show("servers").is_empty());
    assert_eq!(free.one("select 'goes on'"), "goes on");
}

#[test]
fn notifications_reach_a_pinned_listener_at_once() {
    let place = Place::start(2, |config| config);
    let (mut client, mut other) = (place.client(), place.client());
    client.run("listen a");
    assert_eq!(place.pins_after(&mut client), ["LISTEN a"]);
    other.run("notify a, 'idle'");
    let heard = client.expect(tag::NOTIFICATION);
    assert!(heard.body.ends_with(b"a\0idle\0"), "{:?}", heard.body);
    client.run("unlisten a");
    assert_eq!(place.pins_after(&mut client), [""; 0]);
    other.run("notify a, 'nobody'");
    assert_eq!(client.one("select 'quiet'"), "quiet");
}

#[test]
fn no_notification_is_lost_while_the_server_is_asked() {
    const COUNT: usize = 300;
    let place = Place::start(2, |config| config);
    let mut client = place.client();
    client.run("listen a");
    place.pins_after(&mut client);
    let mut other = super::servers::direct(&place.database);
    let notifies = std::thread::spawn(move || {
        for number in 0..COUNT {
            other.run(&format!("notify a, '{number}'"));
        }
    });
    let mut heard = Vec::new();
    let mut hear = |message: &crate::kit::wireclient::Message| {
        if message.tag == tag::NOTIFICATION {
            heard.push(String::from_utf8_lossy(&message.body[6..]).trim_matches('\0').to_owned());
        }
        heard.len() < COUNT
    };
    while !notifies.is_finished() {
        // Each is followed by the question.
        for message in client.query("unlisten b") {
            hear(&message);
        }
    }
    notifies.join().expect("all are sent");
    Batch::new().query("unlisten c").to(&mut client);
    while hear(&client.message()) {}
    let all: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
    assert_eq!(heard, all);
}

#[test]
fn what_postgresql_does_not_tell_counts_as_being_there() {
    let place = Place::start(2, |config| config);
    let superuser = || cluster().superuser(&place.database.name);
    superuser().run("revoke select on pg_catalog.pg_locks from public");
    let mut client = place.client();
    client.run("select pg_advisory_lock(1)");
    assert_eq!(place.pins_after(&mut client), ["unknown"]);
    let own = pid(&mut client);
    assert_ne!(pid(&mut place.client()), own);
    superuser().run("grant select on pg_catalog.pg_locks to public");
    client.run("select 1");
    assert_eq!(place.pins_after(&mut client), ["advisory lock 1"]);
    assert_eq!(pid(&mut client), own);
    client.run("select pg_advisory_unlock(1)");
    // Nobody knows what it had set meanwhile.
    assert_ne!(pid(&mut client), own);
}
