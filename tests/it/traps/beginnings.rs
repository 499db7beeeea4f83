//! BEGIN takes no server: the first statement behind it does.

use super::batch::{answered_alike, tags, Batch};
use super::servers::OneServer;
use crate::kit::{Config, WireClient};

const QUIET: std::time::Duration = std::time::Duration::from_millis(150);

/// With and without what else looks at statements.
const SETTINGS: [(&str, &str); 3] =
    [("pool.coalesce", "off"), ("pool.coalesce", "batch"), ("pool.mode", "session")];

const BEGINS: [&str; 6] = [
    "begin",
    "START TRANSACTION READ ONLY",
    "begin work isolation level repeatable read",
    "/* c */ begin isolation level serializable, read only, deferrable;",
    "begin isolation level read uncommitted not deferrable",
    "start transaction isolation level serializable",
];

fn held(servers: &OneServer) -> WireClient {
    let mut holder = servers.client();
    holder.run("begin; select 1");
    holder
}

fn extended(sql: &str) -> Batch {
    Batch::new().parse("", sql).bind("", &[]).describe_portal("").execute().sync()
}

#[test]
fn an_empty_transaction_takes_no_server() {
    for (name, value) in SETTINGS {
        let servers = OneServer::start_with(|config: Config| config.set(name, value));
        let (mut direct, mut client) = (servers.direct(), servers.client());
        let holder = held(&servers);
        for (number, sql) in BEGINS.into_iter().enumerate() {
            let end = ["commit", "ROLLBACK", "end transaction"][number % 3];
            for (first, last) in [
                (Batch::new().query(sql), Batch::new().query(end)),
                (extended(sql), extended(end)),
                (Batch::new().query(sql), extended(end)),
            ] {
                answered_alike(&mut direct, &mut client, &first, 1);
                assert_eq!(client.status, b'T', "{sql}");
                answered_alike(&mut direct, &mut client, &last, 1);
                assert_eq!(client.status, b'I', "{end}");
            }
        }
        // One that ends with its client.
        client.run("begin");
        client.terminate();
        holder.terminate();
        assert_eq!(servers.client().one("select 'the server is free'"), "the server is free");
    }
}

#[test]
fn the_first_statement_begins_it_as_it_was_asked_for() {
    for (name, value) in SETTINGS {
        let servers = OneServer::start_with(|config: Config| config.set(name, value));
        for (sql, isolation, read_only) in [
            ("begin", "read committed", "off"),
            ("begin isolation level serializable read only", "serializable", "on"),
            ("start transaction isolation level repeatable read", "repeatable read", "off"),
        ] {
            let mut holder = held(&servers);
            let mut client = servers.client();
            client.run(sql);
            let settings = "select current_setting('transaction_isolation') || ' ' || \
                            current_setting('transaction_read_only')";
            Batch::new().query(settings).to(&mut client);
            client.expect_silence(QUIET);
            holder.run("commit");
            holder.terminate();
            let answer = client.until_ready();
            assert_eq!(answer[1].values(), [Some(format!("{isolation} {read_only}"))], "{sql}");
            assert_eq!(client.status, b'T', "{sql}");
            client.run("rollback");
            assert_eq!(client.status, b'I');
            client.terminate();
        }
    }
}

#[test]
fn what_goes_wrong_in_it_is_told_as_postgresql_does() {
    for (name, value) in SETTINGS {
        let servers = OneServer::start_with(|config: Config| config.set(name, value));
        servers.database.run("create table t(a int); grant all on t to app");
        let (mut direct, mut client) = (servers.direct(), servers.client());
        let steps = [
            // A second BEGIN, and ends of nothing.
            Batch::new().query("begin"),
            Batch::new().query("begin"),
            Batch::new().query("commit"),
            Batch::new().query("commit"),
            extended("rollback"),
            // It fails at once, and COMMIT undoes it.
            Batch::new().query("begin"),
            Batch::new().query("no statement"),
            Batch::new().query("select 1"),
            Batch::new().query("commit"),
            // Begun by the one protocol, used and ended by the other.
            extended("begin"),
            Batch::new().query("insert into t values (1) returning a"),
            extended("select count(*) from t"),
            Batch::new().query("rollback"),
            Batch::new().query("begin"),
            extended("insert into t values (2)"),
            extended("commit"),
            Batch::new().query("select a from t"),
            // What is neither a transaction nor right.
            Batch::new().query("begin isolation level"),
            extended("begin read"),
            Batch::new().query("begin; select 1"),
            Batch::new().query("rollback"),
            // Only a Sync, a statement that is only parsed, a savepoint, what is set for it.
            Batch::new().query("begin"),
            Batch::new().sync(),
            Batch::new().parse("s", "select 7").sync(),
            Batch::new().query("savepoint s; select nothing"),
            Batch::new().query("rollback to s"),
            Batch::new().query("set transaction isolation level serializable"),
            Batch::new().query("set local timezone to 'Asia/Aden'"),
            Batch::new().query("commit"),
            Batch::new().bind_to("", "s", &[]).execute().sync(),
            // All in one go.
            Batch::new().query("begin").query("select 1").query("commit").query("select 2"),
        ];
        for (number, step) in steps.iter().enumerate() {
            let ready = if number + 1 == steps.len() { 4 } else { 1 };
            let told = answered_alike(&mut direct, &mut client, step, ready);
            assert!(told.ends_with('Z'), "step {number}: {told}");
        }
        // Both sides wrote their row.
        assert_eq!(servers.database.one("select count(*) from t where a = 2"), "2");
    }
}

#[test]
fn a_statement_that_is_cancelled_while_it_waits_fails_its_transaction() {
    let servers = OneServer::start();
    let mut client = servers.client();
    let holder = held(&servers);
    client.run("begin");
    Batch::new().query("select 1").to(&mut client);
    client.expect_silence(QUIET);
    client.cancel(&servers.gateway.address());
    assert_eq!(tags(&client.until_ready()), "EZ");
    assert_eq!(client.status, b'E');
    holder.terminate();
    assert_eq!(client.error("select 1").code, "25P02");
    client.run("rollback");
    assert_eq!(client.one("select 'well'"), "well");
}
