//! Traps 2, 3, 5, 6, 7 and 10: which replies come, when, and what they let go.

use std::time::Duration;

use wire::pg::backend::tag;

use super::batch::{answered_alike, tags, Batch};
use super::servers::{OneServer, TwoServers};
use super::statements::error_code;
use crate::kit::wait;

/// Long enough for a wrong message to arrive.
const QUIET: Duration = Duration::from_millis(150);

/// A lock that a test takes directly, so that statements through the gateway wait for it.
const LOCK: &str = "select pg_advisory_xact_lock(4711)";

/// Fails in its Execute: a constant would be folded, and fail, in its Bind.
const LATE_ERROR: &str = "select 1 / floor(random() / 2)::int";

#[test]
fn trap_02_n_pipelined_syncs_give_n_readyforquery_and_the_server_is_free_after_the_last() {
    const SYNCS: usize = 100;
    let servers = OneServer::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    let mut locker = servers.direct();
    locker.run("select pg_advisory_lock(4711)");
    let mut batch = Batch::new();
    for n in 0..SYNCS - 1 {
        batch = match n % 3 {
            0 => batch.sync(),
            1 => batch.parse("", "select 1").bind("", &[]).execute().sync(),
            _ => batch.parse("", "selec").sync(),
        };
    }
    batch.parse("", LOCK).bind("", &[]).execute().sync().to(&mut client);
    for _ in 0..SYNCS - 1 {
        client.until_ready();
    }
    // One is left, so the only server is not free yet.
    Batch::new().query("select pg_backend_pid()").to(&mut other);
    other.expect_silence(QUIET);
    client.expect_silence(QUIET);
    locker.run("select pg_advisory_unlock_all()");
    assert_eq!(tags(&client.until_ready()), "12DCZ");
    assert_eq!(tags(&other.until_ready()), "TDCZ");
    client.expect_silence(QUIET);
    // Syncs of a client that has no server.
    Batch::new().sync().sync().sync().to(&mut client);
    client.expect_tags("ZZZ");
    client.expect_silence(QUIET);
}

#[test]
fn trap_03_after_an_extended_error_everything_is_skipped_up_to_sync() {
    let servers = OneServer::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let abs = servers.database.one("select 'abs(int)'::regprocedure::oid").parse().expect("an oid");
    // Errors in Parse, Bind, Execute and Describe; a Query and a FunctionCall are skipped too.
    for failing in [
        Batch::new().parse("", "selec 1"),
        Batch::new().parse("", "select $1::int").bind("", &["no number"]),
        Batch::new().parse("", LATE_ERROR).bind("", &[]).execute(),
        Batch::new().describe_portal("nobody"),
        Batch::new().bind("nobody", &[]),
    ] {
        let batch = failing
            .parse("s", "select 'skipped'")
            .bind("s", &[])
            .execute()
            .query("select 'skipped too'")
            .call(abs, &["-1"])
            .close("s")
            .flush()
            .sync()
            .parse("", "select 'after the Sync'")
            .bind("", &[])
            .execute()
            .sync();
        let tags = answered_alike(&mut direct, &mut client, &batch, 2);
        assert!(tags.ends_with("EZ12DCZ"), "{tags}");
    }
}

#[test]
fn trap_03_after_an_error_in_a_query_or_function_call_nothing_is_skipped() {
    let servers = OneServer::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let abs = servers.database.one("select 'abs(int)'::regprocedure::oid").parse().expect("an oid");
    let batch = Batch::new().query("select 1/0").query("select 'next'");
    assert_eq!(answered_alike(&mut direct, &mut client, &batch, 2), "EZTDCZ");
    let batch = Batch::new().query("select 1; select 1/0; select 2").query("select 'next'");
    assert_eq!(answered_alike(&mut direct, &mut client, &batch, 2), "TDCEZTDCZ");
    let batch = Batch::new().call(abs, &["no number"]).call(abs, &["-7"]).query("select 'next'");
    assert_eq!(answered_alike(&mut direct, &mut client, &batch, 3), "EZVZTDCZ");
    let batch = Batch::new()
        .query("select 1/0")
        .parse("", "select 'next'")
        .bind("", &[])
        .execute()
        .sync()
        .call(1, &[]);
    assert_eq!(answered_alike(&mut direct, &mut client, &batch, 3), "EZ12DCZEZ");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_05_an_error_on_an_injected_parse_comes_in_its_binds_place() {
    let mut servers = TwoServers::start();
    servers.database.run("create table gone(a int); grant all on gone to app");
    let mut client = servers.client();
    servers.only(0);
    let parsed = Batch::new().parse("s", "select count(*) from gone").sync();
    assert_eq!(tags(&parsed.answer(&mut client)), "1Z");
    servers.database.run("drop table gone");

    servers.only(1);
    let run = Batch::new()
        .parse("", "select 'before'")
        .bind("", &[])
        .execute()
        .bind("s", &[])
        .execute()
        .parse("after", "select 'skipped'")
        .sync();
    let answer = run.answer(&mut client);
    assert_eq!(tags(&answer), "12DCEZ");
    assert_eq!(error_code(&answer), "42P01", "relation does not exist");
    // The session lives on, and so does the statement when its table is back.
    assert_eq!(client.one("select 'alive'"), "alive");
    servers.database.run("create table gone(a int); grant all on gone to app");
    let run = Batch::new().bind("s", &[]).execute().sync();
    for server in [1, 0] {
        servers.only(server);
        assert_eq!(tags(&run.answer(&mut client)), "2DCZ");
    }
    let after = Batch::new().bind("after", &[]).sync().answer(&mut client);
    assert_eq!(error_code(&after), "26000");
}

#[test]
fn trap_06_flush_is_never_a_sync_and_without_sync_the_server_is_kept() {
    let servers = OneServer::start();
    servers.database.run("create table t(a int); grant all on t to app");
    let (mut client, mut other) = (servers.client(), servers.client());
    let insert = "insert into t values (1)";
    Batch::new().parse("", insert).bind("", &[]).execute().flush().to(&mut client);
    client.expect_tags("12C");
    Batch::new().flush().flush().to(&mut client);
    client.expect_silence(QUIET);
    // The server is kept: it is the only one, and the other client waits.
    Batch::new().query("select count(*) from t").to(&mut other);
    other.expect_silence(QUIET);
    assert_eq!(servers.database.one("select count(*) from t"), "0", "nothing is committed yet");
    // One implicit transaction up to the Sync, which an error undoes.
    Batch::new().parse("", LATE_ERROR).bind("", &[]).execute().flush().to(&mut client);
    client.expect_tags("12E");
    Batch::new().flush().to(&mut client);
    client.expect_silence(QUIET);
    assert_eq!(tags(&Batch::new().sync().answer(&mut client)), "Z");
    let counted = other.until_ready();
    assert_eq!(counted[1].values(), [Some("0".into())], "the insert was rolled back");
    // A Flush of a client without a server is nothing.
    Batch::new().flush().to(&mut client);
    client.expect_silence(QUIET);
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_07_an_error_is_delivered_at_once() {
    let servers = OneServer::start();
    let mut client = servers.client();
    // Neither Flush nor Sync follows, as PostgreSQL needs none for an error.
    Batch::new().parse("", "selec 1").to(&mut client);
    client.expect_tags("E");
    client.expect_silence(QUIET);
    Batch::new().parse("s", "select 1").to(&mut client);
    client.expect_silence(QUIET);
    assert_eq!(tags(&Batch::new().sync().answer(&mut client)), "Z");
    // Also one that comes while the client still sends its batch.
    Batch::new().parse("s", LATE_ERROR).bind("s", &[]).execute().to(&mut client);
    let messages = std::iter::from_fn(|| Some(client.message()));
    let until_error: Vec<_> = messages.take_while(|message| message.tag != tag::ERROR).collect();
    assert_eq!(tags(&until_error), "12");
    Batch::new().bind("s", &[]).execute().to(&mut client);
    assert_eq!(tags(&Batch::new().sync().answer(&mut client)), "Z");
}

#[test]
fn trap_10_portals_live_in_their_transaction_only() {
    let servers = OneServer::start();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let rows = "select generate_series(1, 5)";
    let steps = [
        // Outside of a transaction block the Sync ends it.
        Batch::new().parse("s", rows).bind_to("p", "s", &[]).execute_of("p", 2).sync(),
        Batch::new().execute_of("p", 2).sync(),
        Batch::new().query("begin"),
        Batch::new().bind_to("p", "s", &[]).execute_of("p", 2).sync(),
        Batch::new().execute_of("p", 2).describe_portal("p").sync(),
        Batch::new().bind_to("p", "s", &[]).sync(),
        Batch::new().query("rollback"),
        Batch::new().query("begin"),
        Batch::new().bind_to("p", "s", &[]).execute_of("p", 2).sync(),
        Batch::new().execute_of("p", 0).close_portal("p").execute_of("p", 1).sync(),
        Batch::new().query("rollback"),
        Batch::new().execute_of("p", 1).sync(),
    ];
    let seen = steps.map(|step| answered_alike(&mut direct, &mut client, &step, 1));
    assert_eq!(
        seen,
        ["12DDsZ", "EZ", "CZ", "2DDsZ", "DDsTZ", "EZ", "CZ", "CZ", "2DDsZ", "DDDC3EZ", "CZ", "EZ"]
    );
}

#[test]
fn trap_10_a_suspended_portal_keeps_the_server() {
    let servers = OneServer::start();
    let (mut client, mut other) = (servers.client(), servers.client());
    let rows = "select generate_series(1, 3)";
    Batch::new().parse("", rows).bind_to("p", "", &[]).execute_of("p", 1).flush().to(&mut client);
    client.expect_tags("12Ds");
    Batch::new().query("select 'waits'").to(&mut other);
    other.expect_silence(QUIET);
    for tags in ["Ds", "DC"] {
        // With two rows wanted the last one completes it.
        let wanted = if tags == "Ds" { 1 } else { 2 };
        Batch::new().execute_of("p", wanted).flush().to(&mut client);
        client.expect_tags(tags);
    }
    other.expect_silence(QUIET);
    assert_eq!(tags(&Batch::new().sync().answer(&mut client)), "Z");
    assert_eq!(tags(&other.until_ready()), "TDCZ");
    // Between the Syncs of a transaction block as well.
    client.run("begin; select 1");
    let open = Batch::new().parse("", rows).bind_to("p", "", &[]).execute_of("p", 1).sync();
    assert_eq!(tags(&open.answer(&mut client)), "12DsZ");
    Batch::new().query("select 'waits'").to(&mut other);
    other.expect_silence(QUIET);
    assert_eq!(tags(&Batch::new().execute_of("p", 0).sync().answer(&mut client)), "DDCZ");
    client.run("commit");
    wait::until("the other client's answer", || tags(&other.until_ready()) == "TDCZ");
}
