//! Trap 12, and COPY as it should go.

use super::batch::{answered_alike, tags, Batch};
use super::servers::OneServer;
use super::statements::error_code;

const COPY: &str = "copy t from stdin";

fn with_table() -> OneServer {
    let servers = OneServer::start();
    servers.database.run("create table t(a int primary key); grant all on t to app");
    servers
}

/// Many rows after one that is no number, more than socket buffers hold.
fn bad_rows() -> Batch {
    let rows: String = (0..4000).map(|n| format!("{n}\n")).collect();
    let mut batch = Batch::new().copy_data("no number\n");
    for _ in 0..100 {
        batch = batch.copy_data(&rows);
    }
    batch
}

#[test]
fn trap_12_copy_data_in_flight_at_an_error_is_swallowed_and_the_server_goes_back() {
    let servers = with_table();
    let (mut client, mut other) = (servers.client(), servers.client());
    let pid = servers.pid();
    // By simple query: all in one write.
    let batch = Batch(
        [Batch::new().query(COPY).0, bad_rows().copy_done().query("select 'next'").0].concat(),
    );
    batch.to(&mut client);
    let failed = client.until_ready();
    assert_eq!(tags(&failed), "GEZ");
    assert_eq!(error_code(&failed), "22P02");
    assert_eq!(tags(&client.until_ready()), "TDCZ");
    assert_eq!(other.one("select pg_backend_pid()"), pid, "the same server serves on");
    // By extended query, with the Sync before the data as libpq does, and after it.
    for early in [true, false] {
        let start = Batch::new().parse("", COPY).bind("", &[]).execute();
        let start = if early { start.sync() } else { start.flush() };
        let batch = Batch([start.0, bad_rows().copy_done().sync().0].concat());
        batch.to(&mut client);
        let failed = client.until_ready();
        assert_eq!(tags(&failed), "12GEZ", "early Sync: {early}");
        assert_eq!(client.one("select 'alive'"), "alive");
        assert_eq!(other.one("select pg_backend_pid()"), pid);
    }
    assert_eq!(servers.database.one("select count(*) from t"), "0");
}

#[test]
fn trap_12_late_copy_data_never_reaches_the_copy_of_the_next_client() {
    let servers = with_table();
    let (mut client, mut other) = (servers.client(), servers.client());
    Batch::new().query(COPY).to(&mut client);
    client.expect_tags("G");
    Batch::new().copy_data("no number\n").to(&mut client);
    assert_eq!(tags(&client.until_ready()), "EZ");
    // The server is the other client's now, who copies too.
    Batch::new().query(COPY).to(&mut other);
    other.expect_tags("G");
    Batch::new().copy_data("1\n").to(&mut other);
    Batch::new().copy_data("666\n").copy_data("667\n").copy_done().to(&mut client);
    Batch::new().copy_fail("too late").to(&mut client);
    // The first client's next query waits for the server: its late data was taken before.
    Batch::new().query("select count(*) from t").to(&mut client);
    Batch::new().copy_data("2\n").copy_done().to(&mut other);
    assert_eq!(tags(&other.until_ready()), "CZ");
    let answer = client.until_ready();
    assert_eq!(tags(&answer), "TDCZ");
    assert_eq!(answer[1].values(), [Some("2".into())]);
}

#[test]
fn trap_12_an_error_before_the_copy_starts_leaves_the_session_in_order() {
    let servers = with_table();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let rows = || Batch::new().copy_data("1\n").copy_data("2\n").copy_done();
    let missing = "copy nowhere from stdin";
    let simple = [Batch::new().query(missing).0, rows().0].concat();
    let next = Batch(simple).query("select 'next'");
    assert_eq!(answered_alike(&mut direct, &mut client, &next, 2), "EZTDCZ");
    let start = Batch::new().parse("", missing).bind("", &[]).execute().0;
    let next = Batch([start, rows().0].concat()).sync().query("select 'next'");
    assert_eq!(answered_alike(&mut direct, &mut client, &next, 2), "12EZTDCZ");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn copy_in_is_the_same_as_directly() {
    let servers = with_table();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let rows = |batch: Batch| batch.copy_data("1\n2").copy_data("\n3\n");
    let undone = |batch: Batch| batch.query("delete from t");
    for (batch, ready, expected) in [
        (undone(rows(Batch::new().query(COPY)).copy_done()), 2, "GCZCZ"),
        (rows(Batch::new().query(COPY)).copy_fail("changed my mind"), 1, "GEZ"),
        (
            rows(Batch::new().parse("", COPY).bind("", &[]).execute()).copy_fail("no").sync(),
            1,
            "12GEZ",
        ),
        // Flush and Sync are ignored while it copies.
        (undone(rows(Batch::new().query(COPY).flush().sync()).sync().copy_done()), 2, "GCZCZ"),
        (
            undone(
                rows(Batch::new().parse("", COPY).bind("", &[]).execute().sync())
                    .copy_done()
                    .sync(),
            ),
            2,
            "12GCZCZ",
        ),
        // Several in one query string.
        (
            undone(
                rows(Batch::new().query("copy t from stdin; delete from t; copy t from stdin"))
                    .copy_done()
                    .copy_data("7\n")
                    .copy_done(),
            ),
            2,
            "GCCGCZCZ",
        ),
    ] {
        assert_eq!(answered_alike(&mut direct, &mut client, &batch, ready), expected);
        assert_eq!(client.one("select count(*) from t"), "0");
    }
}

#[test]
fn copy_out_is_the_same_as_directly() {
    let servers = with_table();
    let (mut direct, mut client) = (servers.direct(), servers.client());
    for sql in [
        "copy (select generate_series(1, 1000)) to stdout",
        "copy (select 1) to stdout; select 2; copy (select 3) to stdout (format binary)",
        "copy (select 10 / (n - 5) from generate_series(1, 10) n) to stdout",
    ] {
        answered_alike(&mut direct, &mut client, &Batch::new().query(sql), 1);
    }
    let extended = Batch::new().parse("", "copy (values (1), (2)) to stdout").bind("", &[]);
    let tags = answered_alike(&mut direct, &mut client, &extended.execute().sync(), 1);
    assert_eq!(tags, "12HddcCZ");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_12_a_copy_that_fails_before_it_reads_answers_the_early_sync_as_well() {
    let servers = with_table();
    servers.database.run(
        "create function refuse() returns trigger language plpgsql as \
         $$ begin raise exception 'not today'; end $$; \
         create trigger refuse before insert on t for each statement execute function refuse()",
    );
    let (mut direct, mut client) = (servers.direct(), servers.client());
    let start = Batch::new().parse("", COPY).bind("", &[]).execute().sync();
    assert_eq!(answered_alike(&mut direct, &mut client, &start, 1), "12GEZ");
    let late = Batch::new().copy_data("1\n").copy_done().sync();
    assert_eq!(answered_alike(&mut direct, &mut client, &late, 1), "Z");
    // Without waiting for the answer there are two.
    let both = Batch([start.0, late.0].concat());
    assert_eq!(answered_alike(&mut direct, &mut client, &both, 2), "12GEZZ");
    let mut other = servers.client();
    for client in [&mut client, &mut other] {
        assert_eq!(client.one("select 'alive'"), "alive");
    }
}
