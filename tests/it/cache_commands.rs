//! CREATE CACHE and its like, typed on ordinary connections: who may, and that nothing else is
//! taken for one of them.

use wire::pg::frontend::{self, Target};

use crate::kit::cluster::{APP, OTHER_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};
use crate::traps::servers::direct;

const TABLE: &str = "create table t(id int primary key, n int);
    insert into t select g, g from generate_series(1, 100) g; grant select on t to public";

const CREATE: &str = "create cache by_id from select n from t where id = 1";

/// A gateway where `app` may administer, and `plain` may not.
fn start() -> (&'static Database, Gateway) {
    let database: &Database = Box::leak(Box::new(cluster().database()));
    direct(database).run(TABLE);
    let config = Config::of(database)
        .set("auth.admin_users", ["admin", APP])
        .set("cache.mode", "manual")
        .set("cache.user", APP)
        .set("users.plain.password", OTHER_PASSWORD);
    (database, Gateway::start(config))
}

/// Names of all caches.
fn caches(gateway: &Gateway) -> Vec<String> {
    gateway.show("caches").into_iter().map(|row| row["name"].clone()).collect()
}

#[test]
fn an_administrator_creates_sees_and_drops_caches_where_the_statements_run() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    client.run(CREATE);
    let rows = client.table("show caches");
    assert_eq!(
        (rows[0]["name"].as_str(), rows[0]["database"].as_str()),
        ("by_id", &*database.name)
    );
    assert_eq!(rows[0]["query"], "select n from t where id = 1");
    let plan = client.rows("explain create cache from select n from t where id = $1");
    assert_eq!(plan[0][0].as_deref(), Some("Cacheable: yes"));
    let limits = "Mirrorable: yes, up to 20000 rows to look at and 1MiB to answer";
    assert_eq!(plan[2][0].as_deref(), Some(limits));
    let refused = client.error("create cache from select random() from t");
    assert_eq!(refused.code, "0A000");
    assert!(refused.detail.contains("random"), "{refused:?}");
    assert_eq!(client.error("create cache").code, "42601");
    assert!(client.table("show mirrors").is_empty());
    assert_eq!(client.one("select n from t where id = 1"), "1", "goes on");
    client.run("drop cache by_id");
    assert_eq!(client.error("drop cache by_id").code, "42704");
    assert!(caches(&gateway).is_empty());
}

#[test]
fn others_than_administrators_are_told_who_may() {
    let (database, gateway) = start();
    let mut plain = WireClient::login(&gateway.address(), "plain", OTHER_PASSWORD, &database.name);
    for text in [CREATE, "drop all caches", "show caches", "explain create cache from select 1"] {
        let refused = plain.error(text);
        assert_eq!(refused.code, "42501", "{text}");
        assert!(refused.hint.contains("auth.admin_users"), "{refused:?}");
    }
    assert_eq!(plain.one("select n from t where id = 2"), "2");
    assert!(caches(&gateway).is_empty());
}

#[test]
fn what_comes_behind_a_command_is_answered_behind_it() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    client.put(|out| {
        frontend::put_query(out, CREATE);
        frontend::put_query(out, "select n from t where id = 3");
        frontend::put_query(out, "drop cache by_id");
    });
    let tags: Vec<String> = (0..3)
        .map(|_| {
            let messages = client.until_ready();
            let done = messages.iter().find(|message| message.tag == b'C').expect("a tag");
            done.command_tag()
        })
        .collect();
    assert_eq!(tags, ["CREATE CACHE", "SELECT 1", "DROP CACHE"]);
}

#[test]
fn the_extended_protocol_does_when_all_of_it_comes_at_once() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    let tags = |client: &mut WireClient, sql: &str| {
        let messages = client.extended(sql, &[]);
        messages.iter().map(|message| char::from(message.tag)).collect::<String>()
    };
    assert_eq!(tags(&mut client, CREATE), "12CZ");
    assert_eq!(tags(&mut client, "show caches"), "12DCZ");
    assert_eq!(tags(&mut client, "create cache"), "EZ");
    assert_eq!(tags(&mut client, "select n from t"), format!("12{}CZ", "D".repeat(100)));

    let prepare = |out: &mut Vec<u8>, name: &[u8]| {
        frontend::put_parse(out, name, b"drop all caches", &[]);
        frontend::put_describe(out, Target::Statement, name);
    };
    for name in [&b""[..], b"named"] {
        client.put(|out| {
            prepare(out, name);
            frontend::put_sync(out);
        });
        let messages = client.until_ready();
        assert_eq!(messages.iter().map(|message| message.tag).collect::<Vec<_>>(), b"EZ");
        assert!(messages[0].complaint().hint.contains("simple query"));
    }
    // In pieces, too.
    let mut bytes = Vec::new();
    frontend::put_parse(&mut bytes, b"", b"drop all caches", &[]);
    frontend::put_bind(&mut bytes, b"", b"", &[]);
    frontend::put_execute(&mut bytes, b"", 0);
    frontend::put_sync(&mut bytes);
    client.send_split(&bytes, &[3, 9, 20, bytes.len() - 2]);
    let messages = client.until_ready();
    assert!(messages.iter().any(|message| message.tag == b'C'), "{messages:?}");
    assert!(caches(&gateway).is_empty());
}

#[test]
fn named_statements_are_answered_from_memory_until_they_are_dropped() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    let kept = |client: &mut WireClient, text: &str| {
        client.run(text);
        client.rows("explain last statement")[1][0].as_deref() == Some("Way: cache")
    };
    let (named, other) = ("SELECT n FROM t WHERE id = 5", "select n from t where n = 5");
    client.run(CREATE);
    wait::until("an answer from memory", || kept(&mut client, named));
    let row = client.table("show caches").remove(0);
    let count = |column: &str| row[column].parse::<u64>().expect("a number");
    assert!(count("hits") > 0 && count("misses") > 0 && count("fills") > 0, "{row:?}");
    assert_eq!((row["mode"].as_str(), row["state"].as_str()), ("manual", "ready"), "{row:?}");
    let stream = gateway.show("streams").remove(0);
    assert_eq!((stream["state"].as_str(), stream["followed"].as_str()), ("following", "1"));
    (0..20).for_each(|_| assert!(!kept(&mut client, other), "nobody has named it"));
    wait::until("a verdict on what nobody has named", || {
        client.run(other);
        let proxied = client.table("show proxied queries");
        assert!(!proxied.iter().any(|row| row["query"].contains("where id=")), "{proxied:?}");
        let row = proxied.iter().find(|row| row["query"] == "select n from t where n=$1");
        row.expect("what nobody has named")["cacheable"] == "yes"
    });
    client.run("update t set n = 500 where id = 5");
    assert_eq!(client.one(named), "500");
    client.run("drop cache by_id");
    assert!(!kept(&mut client, named), "dropped");
    client.run(&format!("create cache from {other}"));
    wait::until("an answer from memory", || kept(&mut client, other));
}

#[test]
fn advice_counts_what_would_have_been_answered_and_changes_nothing() {
    let database = cluster().database();
    direct(&database).run(TABLE);
    let config = Config::of(&database).set("cache.mode", "advise").set("cache.user", APP);
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    let text = "select n from t where id = 5";
    wait::until("a read that would have been answered", || {
        assert_eq!(client.one(text), "5");
        let proxied = gateway.show("proxied queries");
        let row = proxied.iter().find(|row| row["query"] == "select n from t where id=$1");
        row.is_some_and(|row| row["would_hit"] != "0" && row["cacheable"] == "yes")
    });
    assert_ne!(client.rows("explain last statement")[1][0].as_deref(), Some("Way: cache"));
    client.run("begin; select 1");
    assert_eq!(client.one(text), "5");
    client.run("update t set n = 50 where id = 5");
    client.run("commit");
    assert_eq!(client.one(text), "50");
}

#[test]
fn in_a_transaction_postgresql_is_asked_and_does_not_know_it() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    client.run("begin; select 1");
    assert_eq!(client.error(CREATE).code, "42601");
    client.run("rollback");
    client.run(CREATE);
    assert_eq!(caches(&gateway), ["by_id"]);
}

#[test]
fn caches_of_the_configuration_come_and_go_with_reload() {
    let database = cluster().database();
    direct(&database).run(TABLE);
    let with = |caches: &[&str]| {
        let caches: Vec<String> = caches.iter().map(|text| (*text).to_owned()).collect();
        let config = Config::of(&database).set("cache.user", APP);
        config.set(&format!("databases.{}.caches", database.name), caches)
    };
    let gateway = Gateway::start(with(&["one from select n from t", "select n from u"]));
    let names = caches(&gateway);
    assert_eq!((names.len(), names[0].as_str()), (2, "one"));
    assert!(names[1].starts_with("q_"));
    gateway.rewrite(with(&["two from select n from t"]));
    let mut console = gateway.console();
    console.run("reload");
    assert_eq!(caches(&gateway), ["two"]);
    console.run(&format!("create cache mine in database {} from select id from t", database.name));
    console.run("reload");
    assert_eq!(caches(&gateway), ["mine", "two"]);
}

#[test]
fn a_table_is_mirrored_by_command_and_answers_at_once() {
    let (database, gateway) = start();
    let mut client = gateway.client(database);
    assert_eq!(client.error("mirror table nowhere").code, "42P01");
    assert_eq!(client.error("mirror table t columns (m)").code, "42703");
    assert_eq!(client.error("drop mirror t").code, "42704");
    client.run("mirror table t");
    wait::until("the mirror", || {
        let rows = client.table("show mirrors");
        rows.first().is_some_and(|row| row["state"] == "ready" && row["rows"] == "100")
    });
    let rows = gateway.show("mirrors");
    let row = &rows[0];
    assert_eq!((row["database"].as_str(), row["table"].as_str()), (&*database.name, "public.t"));
    assert_eq!((row["columns"].as_str(), row["pinned"].as_str()), ("id, n", "yes"));
    assert_eq!(row["copied_percent"], "100.0");
    client.run("drop mirror t");
    wait::until("the end of the mirror", || client.table("show mirrors").is_empty());
}
