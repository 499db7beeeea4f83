//! Clients that keep their server and listen over the shared connection at once: each hears what it
//! would hear from PostgreSQL, and hears it once.

use super::batch::{tags, Batch};
use super::listening::{foreign, heard, last_words, next, LISTENS, QUIET};
use super::servers::{direct, OneServer};
use crate::kit::{cluster, wait, Config, Gateway, WireClient};

fn pins(gateway: &Gateway) -> Vec<String> {
    gateway.show("pins").into_iter().map(|row| row["reasons"].clone()).collect()
}

/// A pool of two servers, of which one client may keep one.
fn two_servers() -> OneServer {
    OneServer::start_with(|config| config.set("pool.pool_size", 2))
}

#[test]
fn who_listens_and_keeps_a_server_goes_on_to_listen_over_the_shared_connection() {
    let servers = two_servers();
    let mut sender = servers.direct();
    let pin = "create temp table t(a int)";
    for texts in [["listen a", pin], [pin, "listen a"], ["begin; listen a", "select 1"]] {
        let mut client = servers.client();
        texts.iter().for_each(|text| client.run(text));
        if client.status == b'T' {
            client.run(pin);
            client.run("commit");
        }
        // LISTEN is no reason to keep it.
        assert_eq!(pins(&servers.gateway), ["temporary table t"], "{texts:?}");
        assert_eq!(sender.one(LISTENS), "1");
        assert_eq!(servers.gateway.show("channels")[0]["channel"], "a");
        let own = client.one("select pg_backend_pid()");
        assert_eq!(client.one("select string_agg(c, ',') from pg_listening_channels() c"), "a");
        for n in 0..3 {
            sender.run(&format!("notify a, '{n}'"));
            assert_eq!(next(&mut client), foreign("a", &n.to_string()), "at once, and once");
            client.expect_silence(QUIET);
            assert_eq!(client.one("select pg_backend_pid()"), own);
        }
        // In a transaction at its end, its own with its own number.
        client.run("begin");
        let own_one = client.query("insert into t values (1); notify a, 'own'");
        sender.run("notify a, 'other'");
        client.expect_silence(QUIET);
        let end = client.query("commit");
        assert_eq!(tags(&end), "CAAZ");
        let told = [foreign("a", "other"), (true, "a".to_owned(), "own".to_owned())];
        assert_eq!(heard(&client, &own_one), []);
        assert_eq!(heard(&client, &end), told);
        // More and fewer channels while it is pinned.
        client.run("listen b; unlisten a");
        sender.run("notify a, 'no'; notify b, 'yes'");
        assert_eq!(next(&mut client), foreign("b", "yes"));
        client.expect_silence(QUIET);
        // Without the pin it goes on as all others do.
        client.run("drop table t");
        assert_eq!(pins(&servers.gateway), [""; 0]);
        sender.run("notify b, 'idle'");
        assert_eq!(next(&mut client), foreign("b", "idle"));
        drop(client);
        wait::until("nobody listens any more", || servers.gateway.show("channels").is_empty());
    }
}

#[test]
fn every_answer_to_who_keeps_a_server_is_postgresqls() {
    let servers = two_servers();
    let elsewhere = cluster().database();
    let (mut client, mut oracle) = (servers.client(), direct(&elsewhere));
    for text in [
        "create temp table t as select 1 as a",
        "listen a",
        "notify a, '1'",
        "notify a, '2'; notify a, '2'; notify a, '3'; notify b, 'x'",
        "begin",
        "select pg_notify('a', a::text) from t",
        "savepoint s; notify a, '6'; rollback to s",
        "listen b; notify b, '4'",
        "commit",
        "begin; listen c; notify b, '9'; notify c, '10'; commit",
        "begin; listen d; notify a, '11'; rollback",
        "begin; unlisten a; notify a, '12'; commit",
        "notify d, 'no'; notify c, 'yes'; select 1/0",
        "select 1/0",
        "notify b, 'last'; drop table t",
        "notify b, '13'",
        "select pg_advisory_lock(1); unlisten b; notify b, '14'",
        "notify c, '15'",
        "discard all",
        "notify c, '16'",
        "select pg_advisory_lock(1); listen \"X\"; notify \"X\", '17'",
        "unlisten *; notify \"X\", '18'",
        "notify \"X\", '19'",
    ] {
        let (got, expected) = (client.query(text), oracle.query(text));
        assert_eq!(tags(&got), tags(&expected), "{text}");
        assert_eq!(heard(&client, &got), heard(&oracle, &expected), "{text}");
    }
    // In the extended protocol, with what takes no trip to a server before it.
    for who in [&mut client, &mut oracle] {
        who.run("listen a; notify a, '0'");
        let batch = Batch::new().parse("p", "notify a, '1'").sync();
        let batch = batch.bind("p", &[]).execute().flush().sync().sync();
        let batch = batch.close("p").parse("", "unlisten a").bind("", &[]).execute().sync();
        batch.query("notify a, '2'").to(who);
        for (expected, told) in [("1Z", 0), ("2CAZ", 1), ("Z", 0), ("312CZ", 0), ("CZ", 0)] {
            let messages = who.until_ready();
            assert_eq!(tags(&messages), expected);
            assert_eq!(heard(who, &messages).len(), told);
        }
    }
}

/// What was committed before UNLISTEN was sent is told, also when it comes in pieces.
#[test]
fn nothing_is_lost_between_the_transactions_of_who_keeps_a_server() {
    let servers = two_servers();
    let mut sender = servers.direct();
    for n in 0..20 {
        let mut client = servers.client();
        client.run("select pg_advisory_lock(1)");
        client.run("listen a");
        sender.run(&format!("notify a, '{n}'"));
        let told = match n % 4 {
            0 => client.query("unlisten a"),
            1 => Batch::new()
                .close("x")
                .parse("", "unlisten a")
                .bind("", &[])
                .execute()
                .sync()
                .answer(&mut client),
            2 => Batch::new().sync().answer(&mut client),
            _ => {
                let mut query = Vec::new();
                wire::pg::frontend::put_query(&mut query, "unlisten a");
                query.chunks(3).for_each(|piece| client.send(piece));
                client.until_ready()
            }
        };
        assert_eq!(heard(&client, &told), [foreign("a", &n.to_string())], "{n}");
        drop(client);
        wait::until("the lock to be given up", || pins(&servers.gateway).is_empty());
    }
}

/// A LISTEN that no text tells: a function's is found when its transaction is over, and is the
/// client's over the shared connection; a trigger's is never found, and nobody hears of it.
#[test]
fn what_a_function_or_a_trigger_listens_to_is_not_heard_twice() {
    let servers = two_servers();
    servers.database.run(
        "create function hears() returns void language sql as 'listen heard';
         create function hides() returns trigger language plpgsql
             as $$ begin execute 'listen hidden'; return new; end $$;
         create table tr (a int); grant all on tr to public;
         create trigger hides before insert on tr for each row execute function hides();",
    );
    let mut sender = servers.direct();
    for listens in [false, true] {
        let mut client = servers.client();
        client.run("create temp table t ()");
        if listens {
            client.run("listen a");
        }
        client.run("select hears()");
        client.run("insert into tr values (1)");
        client.run("select 1");
        sender.run("notify hidden, '1'; notify heard, '2'; notify a, '3'");
        assert_eq!(next(&mut client), foreign("heard", "2"));
        if listens {
            assert_eq!(next(&mut client), foreign("a", "3"));
        }
        client.expect_silence(QUIET);
        assert_eq!(pins(&servers.gateway), ["temporary table t"]);
        // Whoever has the server next hears nothing of it.
        client.run("drop table t");
        drop(client);
        let mut other = servers.client();
        other.run("listen a");
        other.run("begin; select 1");
        sender.run("notify hidden, '1'; notify heard, '2'; notify a, '3'");
        let end = other.query("commit");
        assert_eq!(heard(&other, &end), [foreign("a", "3")]);
    }
}

#[test]
fn when_a_connection_is_lost_who_listens_and_keeps_a_server_is_told() {
    let servers = two_servers();
    let pinned = || {
        let mut client = servers.client();
        client.run("create temp table t ()");
        client.run("listen a");
        client.run("select 1");
        client
    };
    let end = |which: &str| {
        let text = format!(
            "select bool_and(pg_terminate_backend(pid)) from pg_stat_activity
            where {which} and datname = current_database()"
        );
        assert_eq!(servers.database.one(&text), "t");
    };
    let mut client = pinned();
    end("application_name = 'pondage listen'");
    let words = last_words(&mut client);
    assert_eq!((words.code.as_str(), words.hint.contains("[P0441]")), ("57P01", true), "{words:?}");
    let mut client = pinned();
    end(&format!("pid = {}", client.one("select pg_backend_pid()")));
    assert_eq!(last_words(&mut client).code, "57P01");
    wait::until("nobody listens any more", || servers.gateway.show("channels").is_empty());
    // Nothing of either is left.
    let mut client = pinned();
    assert_eq!(client.one("select count(*) from pg_listening_channels()"), "1");
}

#[test]
fn who_listens_is_told_when_a_reload_makes_everybody_listen_on_his_own_server() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 3);
    for (option, value) in [("pool.listen", "server"), ("pool.mode", "session")] {
        let gateway = Gateway::start(config.clone());
        let client = || gateway.client(&database);
        let mut clients: [WireClient; 3] = [client(), client(), client()];
        clients[1].run("create temp table t ()");
        clients[2].run("begin; select 1");
        clients.iter_mut().for_each(|client| client.run("listen a"));
        gateway.rewrite(config.clone().set(option, value));
        gateway.console().run("reload");
        for client in &mut clients {
            let words = last_words(client);
            assert_eq!((words.code.as_str(), words.hint.contains("[P0441]")), ("57P01", true));
        }
        let mut listener = client();
        listener.run("listen a");
        direct(&database).run("notify a, '1'");
        assert_eq!(next(&mut listener), foreign("a", "1"));
        listener.expect_silence(QUIET);
    }
}
