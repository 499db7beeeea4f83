//! LISTEN in transaction mode, beside a client of PostgreSQL itself that listens to the same.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use wire::pg::backend::{self, tag};

use super::batch::{tags, Batch};
use super::servers::{direct, OneServer, TwoServers};
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::wireclient::{Complaint, Message};
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, WireClient};

/// Long enough for a wrong message to arrive.
pub const QUIET: Duration = Duration::from_millis(150);

/// What tells that the connection that listens is there.
pub const LISTENS: &str =
    "select count(*) from pg_stat_activity where application_name = 'pondage listen'
     and datname = current_database()";

/// Notifications among messages: whether it is the client's own, channel, payload.
pub fn heard(client: &WireClient, messages: &[Message]) -> Vec<(bool, String, String)> {
    let own = client.key.as_ref().expect("BackendKeyData").0;
    let told = messages.iter().filter(|message| message.tag == tag::NOTIFICATION).map(|message| {
        let (pid, channel, payload) = backend::notification(&message.body).expect("a notification");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (pid == own, text(channel), text(payload))
    });
    told.collect()
}

/// The next message, which is a notification.
#[track_caller]
pub fn next(client: &mut WireClient) -> (bool, String, String) {
    let message = client.expect(tag::NOTIFICATION);
    heard(client, &[message]).remove(0)
}

pub fn foreign(channel: &str, payload: &str) -> (bool, String, String) {
    (false, channel.to_owned(), payload.to_owned())
}

/// How a client was closed.
#[track_caller]
pub fn last_words(client: &mut WireClient) -> Complaint {
    client.until_closed().last().expect("a reason").complaint()
}

#[test]
fn the_channels_are_those_that_postgresql_has() {
    let mut servers = TwoServers::start();
    servers.both();
    let long = "x".repeat(70);
    let cut = format!("listen {long}");
    let scripts: &[&[&str]] = &[
        &["listen a"],
        &["LISTEN Abc; listen \"Abc\"", "listen \"a\"\"b c\"", "listen ÄÖx"],
        &[&cut, "listen U&\"d\\0061t\\+000061\""],
        &["listen a; listen b; unlisten a"],
        &["begin; listen a; rollback", "listen b"],
        &["begin", "listen a", "savepoint s", "listen b", "rollback to s", "listen c", "commit"],
        &["begin", "listen a", "savepoint s", "listen b", "release s", "rollback"],
        &["listen a", "listen b", "unlisten a", "listen a", "unlisten b"],
        &["listen a", "listen b", "unlisten *"],
        &["listen a", "begin", "unlisten a", "rollback"],
        &["listen a", "begin", "unlisten *", "listen b", "commit"],
        &[
            "listen a",
            "begin",
            "select 1",
            "unlisten *",
            "savepoint s",
            "listen c",
            "rollback to s",
            "commit",
        ],
        &["listen a", "begin", "savepoint s", "unlisten *", "rollback to s", "listen d", "commit"],
        &["listen a", "listen b", "discard all", "listen c"],
        &["listen a", "select 1/0", "listen b; select 1/0"],
        &["begin; listen a; commit; select 1/0"],
        &["listen a", "begin", "listen b", "select 1/0", "unlisten a", "commit"],
        &[
            "do $$ begin execute 'listen a'; end $$",
            "do $$ begin execute 'unlisten a; listen b'; end $$",
        ],
        &["listen"],
        &["listen a", "set work_mem = '1MB'", "listen b", "reset all; unlisten a"],
    ];
    let channels = "select coalesce(string_agg(c, ' ' order by c collate \"C\"), '')
        from pg_listening_channels() c";
    for script in scripts {
        let (mut client, mut oracle) = (servers.client(), servers.direct());
        for text in *script {
            let (got, expected) = (client.query(text), oracle.query(text));
            assert_eq!(tags(&got), tags(&expected), "{text} of {script:?}");
        }
        assert_eq!(client.one(channels), oracle.one(channels), "{script:?}");
        let mut sender = servers.direct();
        for channel in
            ["a", "b", "c", "d", "abc", "Abc", "a\"b c", "äöx", "ÄÖx", "data", &long[..63]]
        {
            sender.run(&format!("select pg_notify($${channel}$$, '1')"));
        }
        let (got, expected) = (client.query("select 1"), oracle.query("select 1"));
        assert_eq!(heard(&client, &got), heard(&oracle, &expected), "{script:?}");
    }
    wait::until("nobody listens any more", || servers.gateway.show("channels").is_empty());
}

/// What the client is sent for each text, beside what a client in a database of its own is sent.
#[test]
fn every_answer_is_postgresqls() {
    let mut servers = TwoServers::start();
    servers.both();
    let elsewhere = cluster().database();
    let (mut client, mut oracle) = (servers.client(), direct(&elsewhere));
    for text in [
        "listen a",
        "notify a, '1'",
        "notify a, '2'; notify a, '2'; notify a, '3'; notify b, 'x'",
        "begin",
        "notify a, '4'",
        "select pg_notify('a', '5')",
        "savepoint s; notify a, '6'; rollback to s",
        "commit",
        "listen b; notify b, '6'; notify a, '7'; notify b, '8'",
        "begin; listen c; notify b, '9'; notify c, '10'; commit",
        "begin; notify a, '11'; rollback",
        "begin; unlisten a; notify a, '12'; commit",
        "create function f() returns void language sql as $$ select pg_notify('b', '13') $$",
        "select f()",
        "begin; select f(); select 1/0",
        "rollback",
        "unlisten *; notify b, '14'",
        "notify b, '15'",
    ] {
        let (got, expected) = (client.query(text), oracle.query(text));
        assert_eq!(tags(&got), tags(&expected), "{text}");
        assert_eq!(heard(&client, &got), heard(&oracle, &expected), "{text}");
    }
    for listen in [true, false] {
        let text = if listen { "listen \"X\"" } else { "select 1" };
        let batch = Batch::new().parse("", text).bind("", &[]).execute().sync();
        let batch =
            batch.parse("p", "notify \"X\", '1'").bind("p", &[]).execute().close("p").sync();
        for (who, of) in [(&mut client, &servers.database), (&mut oracle, &elsewhere)] {
            batch.to(who);
            let (one, two) = (who.until_ready(), who.until_ready());
            assert_eq!(
                tags(&one),
                "12CZ".replace("CZ", if listen { "CZ" } else { "DCZ" }),
                "{of:?}"
            );
            assert_eq!(tags(&two), "12C3AZ", "{of:?}");
            assert_eq!(heard(who, &two), [(true, "X".to_owned(), "1".to_owned())], "{of:?}");
        }
    }
}

#[test]
fn an_idle_client_is_told_at_once_and_one_in_a_transaction_at_its_end() {
    let servers = OneServer::start();
    let (mut idle, mut within, mut oracle) = (servers.client(), servers.client(), servers.direct());
    for client in [&mut idle, &mut within, &mut oracle] {
        client.run("listen a");
    }
    for client in [&mut within, &mut oracle] {
        client.run("begin");
        client.run("select 1");
    }
    // The only server is taken.
    let mut sender = servers.direct();
    sender.run("notify a, '1'");
    assert_eq!(next(&mut idle), foreign("a", "1"));
    for client in [&mut within, &mut oracle] {
        client.expect_silence(QUIET);
        assert_eq!(tags(&client.query("select 2")), "TDCZ");
        let end = client.query("commit");
        assert_eq!(tags(&end), "CAZ");
        assert_eq!(heard(client, &end), [foreign("a", "1")]);
    }
    // One that has done nothing yet.
    for client in [&mut within, &mut oracle] {
        client.run("begin");
    }
    sender.run("notify a, '2'");
    assert_eq!(next(&mut idle), foreign("a", "2"));
    for client in [&mut within, &mut oracle] {
        client.expect_silence(QUIET);
        let end = client.query("rollback");
        assert_eq!(heard(client, &end), [foreign("a", "2")]);
    }
    // What is committed before a statement begins is told before its end.
    for n in 0..20 {
        sender.run(&format!("notify a, '{n}'"));
        let replies = within.query("select 1");
        assert_eq!(heard(&within, &replies), [foreign("a", &n.to_string())]);
    }
}

#[test]
fn from_the_answer_to_listen_on_nothing_is_missed() {
    let servers = OneServer::start();
    let mut sender = servers.direct();
    for n in 0..20 {
        let mut client = servers.client();
        let text = match n % 3 {
            0 => "listen a",
            1 => "begin; listen a; commit",
            _ => "select 1; listen a",
        };
        client.run(text);
        sender.run(&format!("notify a, '{n}'"));
        assert_eq!(next(&mut client), foreign("a", &n.to_string()));
        if n % 2 == 0 {
            client.run("unlisten a");
            sender.run("notify a, 'no'");
            client.expect_silence(Duration::from_millis(20));
        }
    }
    let large = "x".repeat(7999);
    let mut client = servers.client();
    client.run("listen a");
    sender.run(&format!("notify a, '{large}'"));
    assert_eq!(next(&mut client), foreign("a", &large));
}

#[test]
fn a_pipeline_behind_a_listen_waits_for_it_and_copy_still_works() {
    let servers = OneServer::start();
    let (mut client, mut sender) = (servers.client(), servers.direct());
    sender.run("create table t (a text)");
    Batch::new()
        .query("select 1")
        .query("listen a")
        .query("select 2")
        .query("select 3")
        .to(&mut client);
    for expected in ["TDCZ", "CZ", "TDCZ", "TDCZ"] {
        assert_eq!(tags(&client.until_ready()), expected);
    }
    sender.run("notify a, '1'");
    assert_eq!(next(&mut client), foreign("a", "1"));
    let copy = Batch::new().query("copy t from stdin").copy_data("x\ny\n").copy_done();
    assert_eq!(tags(&copy.query("select 1").answer(&mut client)), "GCZ");
    assert_eq!(tags(&client.until_ready()), "TDCZ");
    let batch = Batch::new().parse("", "copy t from stdin").bind("", &[]).execute().sync();
    batch.copy_data("z\n").copy_done().sync().query("notify a, '2'").to(&mut client);
    assert_eq!(tags(&client.until_ready()), "12GCZ");
    let replies = client.until_ready();
    assert_eq!((tags(&replies).as_str(), heard(&client, &replies)[0].0), ("CAZ", true));
    assert_eq!(client.one("select count(*) from t"), "3");
    let rows = client.rows("select repeat('x', 1000) from generate_series(1, 5000)");
    assert_eq!(rows.len(), 5000);
}

#[test]
fn one_connection_listens_for_a_thousand_idle_clients() {
    const CLIENTS: usize = 1000;
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 2).set("runtime.workers", 2);
    // A thousand proofs take longer than all the rest.
    let config = config.set("auth.method", "trust");
    let gateway = Gateway::start(config);
    let mut clients: Vec<WireClient> = Vec::new();
    for n in 0..CLIENTS {
        let mut client = gateway.client(&database);
        client.run(&format!("listen all_of_them; listen c{}", n % 10));
        clients.push(client);
    }
    let mut sender = direct(&database);
    assert_eq!(sender.one(LISTENS), "1");
    let servers: usize = sender
        .one(
            "select count(*) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()",
        )
        .parse()
        .expect("a count");
    assert!(servers <= 3, "{servers} connections");
    sender.run("notify c3, 'x'; notify all_of_them, 'y'");
    for (n, client) in clients.iter_mut().enumerate() {
        if n % 10 == 3 {
            assert_eq!(next(client), foreign("c3", "x"));
        }
        assert_eq!(next(client), foreign("all_of_them", "y"));
    }
    let shown = gateway.show("channels");
    assert_eq!(shown.len(), 11);
    assert_eq!(shown[0]["channel"], "all_of_them");
    assert_eq!((shown[0]["clients"].as_str(), shown[0]["delivered"].as_str()), ("1000", "1000"));
    assert_eq!((shown[4]["channel"].as_str(), shown[4]["delivered"].as_str()), ("c3", "100"));
    assert_eq!(gateway.figure("pondage_pool_listeners"), 1000);
    assert_eq!(gateway.figure("pondage_notifications_total"), 1100);
    clients.drain(1..).for_each(drop);
    wait::until("the others have gone", || {
        gateway.show("channels").iter().all(|row| row["clients"] == "1")
    });
    assert_eq!(gateway.show("channels").len(), 2);
}

#[test]
fn when_the_connection_is_lost_who_listens_is_told_and_may_begin_anew() {
    let servers = OneServer::start();
    let (mut listener, mut within, mut other) =
        (servers.client(), servers.client(), servers.client());
    listener.run("listen a");
    within.run("listen a");
    within.run("begin; select 1");
    let killed = servers.database.one(
        "select bool_and(pg_terminate_backend(pid)) from pg_stat_activity
         where application_name = 'pondage listen' and datname = current_database()",
    );
    assert_eq!(killed, "t");
    for client in [&mut listener, &mut within] {
        let words = last_words(client);
        assert_eq!((words.severity.as_str(), words.code.as_str()), ("FATAL", "57P01"), "{words:?}");
        assert!(words.hint.contains("[P0441]"), "{words:?}");
    }
    assert_eq!(other.one("select 1"), "1");
    let mut listener = servers.client();
    listener.run("listen a");
    other.run("notify a, '1'");
    assert_eq!(next(&mut listener), foreign("a", "1"));
    assert_eq!(servers.database.one(LISTENS), "1");
}

#[test]
fn a_restart_of_postgresql_and_commands_that_renew_connections_tell_who_listens() {
    let cluster = Cluster::start("listening", &[]);
    let config = Config::base()
        .set("pool.server_login_retry", "100ms")
        .set("databases.app.host", "127.0.0.1")
        .set("databases.app.port", i64::from(cluster.port))
        .set("databases.app.dbname", "postgres");
    let gateway = Gateway::start(config.clone());
    let address = Address::tcp("127.0.0.1", gateway.port);
    let client = || WireClient::login(&address, APP, APP_PASSWORD, "app");
    let listening = || {
        let mut client = client();
        client.run("listen a");
        client
    };
    let told = |mut listener: WireClient| {
        client().run("notify a, '1'");
        assert_eq!(next(&mut listener), foreign("a", "1"));
        listener
    };
    let mut listener = told(listening());
    gateway.console().run("pause; resume");
    listener = told(listener);
    cluster.stop("fast");
    assert_eq!(last_words(&mut listener).code, "57P01");
    cluster.launch();
    let mut listener = told(listening());
    gateway.console().run("reconnect");
    listener = told(listener);
    for command in ["kill app", "reload"] {
        if command == "reload" {
            let elsewhere = config.clone().set("databases.app.dbname", "template1");
            gateway.rewrite(elsewhere);
        }
        gateway.console().run(command);
        let words = last_words(&mut listener);
        assert_eq!(words.code, "57P01", "{command}");
        if command == "kill app" {
            gateway.console().run("resume app");
        }
        listener = told(listening());
    }
    drop(listener);
    cluster.stop("immediate");
}

#[test]
fn who_does_not_read_is_told_and_closed_and_nobody_waits_for_him() {
    let servers = OneServer::start();
    let (mut slow, mut quick, mut sender) = (servers.client(), servers.client(), servers.direct());
    slow.run("listen a");
    quick.run("listen a");
    let mut heard_by_quick = 0;
    for _ in 0..60 {
        sender.run("select pg_notify('a', n || repeat('x', 7900)) from generate_series(1, 100) n");
        for _ in 0..100 {
            next(&mut quick);
            heard_by_quick += 1;
        }
    }
    assert_eq!(heard_by_quick, 6000);
    let messages = slow.until_closed();
    let (last, before) = messages.split_last().expect("messages");
    let words = last.complaint();
    assert_eq!((words.code.as_str(), words.hint.contains("[P0442]")), ("54000", true), "{words:?}");
    // What it was sent has no gap.
    let numbers = heard(&slow, before).into_iter().map(|(_, _, payload)| payload);
    for (at, payload) in numbers.enumerate() {
        assert_eq!(payload.trim_end_matches('x'), (at % 100 + 1).to_string());
    }
    // In a transaction nobody is told.
    let mut within = servers.client();
    within.run("listen b");
    within.run("begin; select 1");
    for _ in 0..12 {
        sender.run("select pg_notify('b', n || repeat('x', 7900)) from generate_series(1, 100) n");
    }
    assert_eq!(last_words(&mut within).code, "54000");
}

#[test]
fn what_can_not_be_is_refused_with_a_reason() {
    let servers = OneServer::start();
    let mut client = servers.client();
    client.run("listen a");
    client.put(|out| wire::pg::frontend::put_query(out, "set client_encoding = 'latin1'"));
    let words = last_words(&mut client);
    assert_eq!((words.code.as_str(), words.hint.contains("[P0444]")), ("0A000", true), "{words:?}");
    let mut client = servers.client();
    client.put(|out| {
        wire::pg::frontend::put_query(
            out,
            "do $$ begin for n in 1..1025 loop execute 'listen c' || n; end loop; end $$",
        );
    });
    let words = last_words(&mut client);
    assert_eq!((words.code.as_str(), words.hint.contains("[P0443]")), ("54000", true), "{words:?}");
    // Of other clients and in other encodings it is as ever.
    let address = servers.gateway.address();
    let parameters =
        [("user", APP), ("database", &servers.database.name), ("client_encoding", "latin1")];
    let mut latin = WireClient::login_with(&address, APP_PASSWORD, &parameters);
    latin.send(&Batch::new().message(b'Q', b"listen \xe4\0").0);
    assert_eq!(tags(&latin.until_ready()), "CZ");
    servers.direct().run("notify ä, 'ö'");
    let message = latin.expect(tag::NOTIFICATION);
    assert_eq!(message.body[4..], *b"\xe4\0\xf6\0");
}

#[test]
fn listen_may_stay_with_the_server() {
    let servers = OneServer::start_with(|config| config.set("pool.listen", "server"));
    let mut client = servers.client();
    client.run("listen a");
    assert_eq!(servers.database.one(LISTENS), "0");
    servers.direct().run("notify a, '1'");
    client.expect(tag::NOTIFICATION);
    // It keeps its server meanwhile.
    assert_eq!(servers.gateway.show("pins")[0]["reasons"], "LISTEN a");
    client.run("unlisten *");
    servers.direct().run("notify a, '2'");
    client.expect_silence(QUIET);
}

/// A client of the gateway and one of PostgreSQL that do the same.
struct Pair {
    client: WireClient,
    oracle: WireClient,
    heard: [Vec<(bool, String, String)>; 2],
}

impl Pair {
    fn new(gateway: &Gateway, database: &Database) -> Pair {
        let heard = [Vec::new(), Vec::new()];
        Pair { client: gateway.client(database), oracle: direct(database), heard }
    }

    /// The oracle is first: it hears what the client commits.
    fn both(&mut self, text: &str, instead: &str) {
        let expected = self.oracle.query(instead);
        let got = self.client.query(text);
        self.heard[0].extend(heard(&self.client, &got));
        self.heard[1].extend(heard(&self.oracle, &expected));
        assert_eq!(self.client.status, self.oracle.status, "{text}");
    }

    fn compare(&mut self, story: &[String]) {
        if self.client.status != b'I' {
            self.both("rollback", "rollback");
        }
        // What a client sends itself is nobody's own to the other.
        let plain = |all: &[(bool, String, String)]| -> Vec<(String, String)> {
            all.iter().map(|(_, channel, payload)| (channel.clone(), payload.clone())).collect()
        };
        self.both("select 1", "select 1");
        assert_eq!(plain(&self.heard[0]), plain(&self.heard[1]), "{story:#?}");
        for (own, _, payload) in self.heard[0].drain(..) {
            let from = payload.split(' ').next().unwrap_or_default();
            let me = self.client.key.as_ref().expect("a key").0.to_string();
            assert_eq!(own, from == me, "{payload}: {story:#?}");
        }
        self.heard[1].clear();
    }
}

#[test]
fn random_listeners_hear_what_direct_ones_hear() {
    const ROUNDS: u64 = 20;
    const STEPS: usize = 70;
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 4).set("runtime.workers", 2);
    let gateway = Gateway::start(config);
    for seed in 0..ROUNDS {
        let mut random = StdRng::seed_from_u64(seed);
        let mut pairs: Vec<Pair> = (0..3).map(|_| Pair::new(&gateway, &database)).collect();
        let mut stranger = direct(&database);
        let mut story = vec![format!("seed {seed}")];
        for step in 0..STEPS {
            let who = random.random_range(0..=pairs.len());
            let channel = *["a", "b", "\"C c\""].choose(&mut random).expect("one");
            if who == pairs.len() {
                let text = format!("notify {channel}, 'stranger {step}'");
                story.push(format!("stranger: {text}"));
                stranger.run(&text);
                continue;
            }
            let pair = &mut pairs[who];
            let within = pair.client.status != b'I';
            let me = pair.client.key.as_ref().expect("a key").0;
            let notify = format!("notify {channel}, '{me} {step}'");
            let (text, instead) = match random.random_range(0..15) {
                0..=2 => (format!("listen {channel}"), None),
                3 => (format!("unlisten {channel}"), None),
                4 => ("unlisten *".to_owned(), None),
                5 | 6 => (notify, Some("select 1")),
                7 if !within => ("begin".to_owned(), None),
                7 => ("commit".to_owned(), None),
                8 if within => ("savepoint s".to_owned(), None),
                9 if within => ("rollback to s".to_owned(), None),
                9 => ("select pg_advisory_unlock_all()".to_owned(), None),
                10 if within => ("rollback".to_owned(), None),
                10 => (format!("listen {channel}; select 1/0"), None),
                11 => (format!("listen {channel}; {notify}"), Some(channel)),
                // What pins it, and what ends that.
                12 => ("create temp table if not exists t ()".to_owned(), None),
                13 => ("drop table if exists t".to_owned(), None),
                14 => (format!("select pg_advisory_lock_shared({}, 1)", step % 2), None),
                _ => ("select 1".to_owned(), None),
            };
            let instead = match instead {
                Some("select 1") => "select 1".to_owned(),
                Some(channel) => format!("listen {channel}; select 1"),
                None => text.clone(),
            };
            story.push(format!("{who}: {text}"));
            pair.both(&text, &instead);
        }
        pairs.iter_mut().for_each(|pair| pair.compare(&story));
    }
}
