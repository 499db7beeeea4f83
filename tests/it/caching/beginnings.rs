//! Transactions that begin with cached reads: no server knows of them until one has to.

use super::place::{Cached, Place};
use crate::kit::{wait, Gateway, WireClient};
use crate::traps::batch::{answered_alike, Batch};

const TABLE: &str = "create table t(id int primary key, n int not null);
    insert into t values (1, 10), (2, 20)";
const READ: &str = "select n from t where id = 1";
const OTHER: &str = "select n from t where id = 2";

fn start() -> Place {
    start_with("pool.pool_size", 1)
}

fn start_with(path: &str, value: i64) -> Place {
    let place = Place::start_with(TABLE, |config| config.set(path, value));
    place.client().warm(READ);
    place
}

/// Transactions that PostgreSQL was asked for, as the pool counts them.
fn transactions(gateway: &Gateway) -> u64 {
    let stats = gateway.show("stats_totals");
    stats.iter().map(|row| row["server_assignment_count"].parse::<u64>().expect("a number")).sum()
}

fn tags(client: &mut WireClient, batch: &Batch) -> String {
    client.send(&batch.0);
    client.until_ready().iter().map(|message| char::from(message.tag)).collect()
}

#[test]
fn a_transaction_of_cached_reads_costs_no_server() {
    let place = start();
    let mut client = place.client();
    let mut holder = place.client();
    // The only server is taken: whatever is answered now, no server has answered.
    holder.run("begin; select 1");
    let before = transactions(&place.gateway);
    for (begin, end) in [
        ("begin", "commit"),
        ("BEGIN;", "rollback"),
        ("start transaction", "END"),
        ("begin work", "abort"),
        ("begin isolation level read committed", "commit work"),
    ] {
        client.run(begin);
        assert_eq!(client.status, b'T', "{begin}");
        assert_eq!(client.one(READ), "10");
        assert_eq!(client.status, b'T');
        assert!(client.was_hit());
        assert_eq!(client.one(READ), "10");
        client.run(end);
        assert_eq!(client.status, b'I', "{end}");
    }
    assert_eq!(transactions(&place.gateway), before);
    holder.run("rollback");
}

#[test]
fn in_the_extended_protocol_too() {
    let place = start();
    let mut client = place.client();
    let read = Batch::new().parse("r", READ).sync();
    assert_eq!(tags(&mut client, &read), "1Z");
    let read = Batch::new().bind("r", &[]).describe_portal("").execute().sync();
    client.warm_by(READ, |client| tags(client, &read));
    let mut holder = place.client();
    holder.run("begin; select 1");
    for describe in [false, true] {
        let whole = |sql: &str| {
            let batch = Batch::new().parse("", sql).bind("", &[]);
            let batch = if describe { batch.describe_portal("") } else { batch };
            batch.execute().sync()
        };
        let nothing = if describe { "12nCZ" } else { "12CZ" };
        assert_eq!(tags(&mut client, &whole("BEGIN")), nothing);
        assert_eq!(client.status, b'T');
        assert_eq!(tags(&mut client, &read), "2TDCZ");
        assert_eq!(client.status, b'T');
        assert!(client.was_hit());
        assert_eq!(tags(&mut client, &whole("COMMIT")), nothing);
        assert_eq!(client.status, b'I');
    }
    holder.run("rollback");
    // All of a transaction in one go.
    let batch = Batch::new().parse("", "begin").bind("", &[]).execute().sync();
    let batch = Batch(batch.0).bind("r", &[]).execute().sync();
    let batch = batch.parse("", "commit").bind("", &[]).execute().sync();
    assert_eq!(tags(&mut client, &batch), "12CZ");
    assert_eq!(client.status, b'T');
    let row = client.until_ready();
    assert_eq!(row[1].values(), [Some("10".to_owned())]);
    client.until_ready();
    assert_eq!(client.status, b'I');
    // In one batch, without a Sync between: PostgreSQL's alone.
    let batch = Batch::new().parse("", "begin").bind("", &[]).execute();
    let batch = batch.bind("r", &[]).execute().parse("", "commit").bind("", &[]).execute().sync();
    assert_eq!(tags(&mut client, &batch), "12C2DC12CZ");
    assert_eq!(client.status, b'I');
}

#[test]
fn the_unnamed_portal_of_a_read_is_there_until_its_transaction_ends() {
    let place = start_with("pool.pool_size", 3);
    let (mut client, mut beside) = (place.client(), place.beside());
    let names = Batch::new().parse("hot", READ).parse("cold", OTHER).sync();
    assert_eq!(answered_alike(&mut beside, &mut client, &names, 1), "11Z");
    let again = |limit| {
        let batch = Batch::new().describe_portal("").execute_of("", limit);
        batch.execute().close_portal("").sync()
    };
    for name in ["hot", "cold"] {
        for end in ["commit", "select 1/(random()*0)::int; commit", "rollback"] {
            for limit in [0, 1] {
                let read = Batch::new().query("begin").bind(name, &[]).execute().sync();
                answered_alike(&mut beside, &mut client, &read, 2);
                let there = answered_alike(&mut beside, &mut client, &again(limit), 1);
                assert_eq!(there, "TCC3Z");
                answered_alike(&mut beside, &mut client, &again(limit), 1);
                answered_alike(&mut beside, &mut client, &Batch::new().query("rollback"), 1);

                answered_alike(&mut beside, &mut client, &read, 2);
                answered_alike(&mut beside, &mut client, &Batch::new().query(end), 1);
                let gone = answered_alike(&mut beside, &mut client, &again(limit), 1);
                assert_eq!(gone, "EZ");
                answered_alike(&mut beside, &mut client, &Batch::new().query("rollback"), 1);
            }
        }
    }
}

#[test]
fn named_statements_begin_and_end_as_well() {
    let place = start();
    let mut client = place.client();
    let names = Batch::new().parse("b", "BEGIN").parse("c", "COMMIT").parse("r", READ).sync();
    assert_eq!(tags(&mut client, &names), "111Z");
    let run = |name: &str| Batch::new().bind(name, &[]).execute().sync();
    for _ in 0..30 {
        assert_eq!(tags(&mut client, &run("b")), "2CZ");
        assert_eq!(client.status, b'T');
        assert_eq!(tags(&mut client, &run("r")), "2DCZ");
        assert_eq!(client.status, b'T');
        assert_eq!(tags(&mut client, &run("c")), "2CZ");
        assert_eq!(client.status, b'I');
        client.send(&run("r").0);
        client.until_ready();
    }
}

#[test]
fn what_comes_behind_a_cached_read_is_in_its_transaction() {
    let place = start_with("pool.pool_size", 3);
    let mut client = place.client();
    let mut beside = place.beside();
    for end in ["rollback", "commit"] {
        client.run("begin");
        assert_eq!(client.one(READ), "10");
        assert!(client.was_hit());
        client.run("update t set n = n + 1 where id = 1");
        assert_eq!(client.status, b'T');
        assert_eq!(client.one(READ), "11", "its own, not yet committed");
        assert!(!client.was_hit());
        assert_eq!(beside.one(READ), "10", "nobody else sees it");
        client.run(end);
        assert_eq!(client.status, b'I');
        let expected = if end == "commit" { "11" } else { "10" };
        assert_eq!(client.one(READ), expected);
        assert_eq!(beside.one(READ), expected);
        assert_eq!(client.warm(READ), [[Some(expected.to_owned())]]);
    }
}

#[test]
fn errors_behind_a_cached_read_fail_the_transaction() {
    let place = start_with("pool.pool_size", 3);
    let mut client = place.client();
    for end in ["commit", "rollback"] {
        client.run("begin");
        client.one(READ);
        assert!(client.was_hit());
        assert_eq!(client.error("select 1/0").code, "22012");
        assert_eq!(client.status, b'E');
        assert_eq!(client.error(READ).code, "25P02");
        assert_eq!(client.error(OTHER).code, "25P02");
        let replies = client.query(end);
        assert_eq!(replies[0].command_tag(), "ROLLBACK");
        assert_eq!(client.status, b'I');
    }
    client.run("begin");
    client.one(READ);
    assert_eq!(client.error("selekt").code, "42601");
    assert_eq!(client.status, b'E');
    client.run("rollback");
    client.run("begin; select 1");
    client.run("rollback");
    // Out of a transaction they warn, in one a second BEGIN does.
    client.notices.clear();
    client.run("commit");
    client.run("begin");
    client.run("begin");
    let codes: Vec<&str> = client.notices.iter().map(|notice| &*notice.code).collect();
    assert_eq!(codes, ["25P01", "25001"]);
    assert_eq!(client.status, b'T');
    client.run("commit");
    assert_eq!(client.status, b'I');
}

#[test]
fn savepoints_settings_and_chains_reach_postgresql_behind_a_late_beginning() {
    let place = start_with("pool.pool_size", 3);
    let mut client = place.client();
    client.run("begin");
    client.one(READ);
    client.run("savepoint s");
    client.run("update t set n = 0 where id = 1");
    client.run("rollback to s");
    assert_eq!(client.one(READ), "10");
    client.run("commit and chain");
    assert_eq!(client.status, b'T');
    client.run("rollback");
    client.run("begin");
    client.one(READ);
    client.run("set local timezone = 'Asia/Tokyo'");
    assert_eq!(client.one("show timezone"), "Asia/Tokyo");
    client.run("commit");
    assert_ne!(client.one("show timezone"), "Asia/Tokyo");
    client.run("begin read only");
    client.one(READ);
    assert_eq!(client.error("update t set n = 0").code, "25006");
    client.run("rollback");
}

#[test]
fn other_isolation_levels_have_postgresql_s_snapshot() {
    let cases = [
        ("", "begin isolation level repeatable read"),
        ("", "begin transaction isolation level serializable, read only"),
        ("", "start transaction isolation level repeatable read"),
    ];
    each_has_one_snapshot(&start_with("pool.pool_size", 3), &cases);
}

#[test]
fn other_isolation_levels_of_a_session_have_postgresql_s_snapshot() {
    let cases = [
        ("set default_transaction_isolation = 'repeatable read'", "begin"),
        ("set session characteristics as transaction isolation level serializable", "begin"),
    ];
    let place = Place::start_with(TABLE, |config| config.set("pool.mode", "session"));
    each_has_one_snapshot(&place, &cases);
}

fn each_has_one_snapshot(place: &Place, cases: &[(&str, &str)]) {
    let mut beside = place.beside();
    let mut now = 10;
    for (set_up, begin) in cases {
        let mut client = place.client();
        client.warm(READ);
        if !set_up.is_empty() {
            client.run(set_up);
        }
        client.run(begin);
        assert_eq!(client.one(READ), now.to_string(), "{set_up} {begin}");
        assert!(!client.was_hit(), "{set_up} {begin}: not of its snapshot");
        now += 1;
        beside.run(&format!("update t set n = {now} where id = 1"));
        assert_eq!(client.one(READ), (now - 1).to_string(), "{set_up} {begin}: one snapshot");
        client.run("commit");
        client.run("reset all");
        place.becomes(&mut place.client(), READ, &now.to_string());
    }
}

#[test]
fn several_clients_begin_late_on_one_server() {
    let place = start();
    place.client().warm(OTHER);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let place = &place;
            scope.spawn(move || {
                let mut client = place.client();
                for round in 0..40 {
                    client.run("begin");
                    let before: i64 = client.one(OTHER).parse().expect("a number");
                    assert_eq!(client.status, b'T');
                    if (round + number) % 3 == 0 {
                        client.run("update t set n = n + 1 where id = 2");
                        let after: i64 = client.one(OTHER).parse().expect("a number");
                        assert!(after > before);
                        client.run(if round % 2 == 0 { "commit" } else { "rollback" });
                    } else {
                        client.run("commit");
                    }
                    assert_eq!(client.status, b'I');
                }
            });
        }
    });
    let committed = (0..6).map(|n| (0..40).filter(|r| (r + n) % 3 == 0 && r % 2 == 0).count());
    let expected = 20 + committed.sum::<usize>();
    assert_eq!(place.beside().one(OTHER), expected.to_string());
    place.becomes(&mut place.client(), OTHER, &expected.to_string());
}

#[test]
fn a_client_that_leaves_within_a_late_transaction_leaves_nothing() {
    let place = start();
    for _ in 0..5 {
        let mut client = place.client();
        client.run("begin");
        client.one(READ);
        drop(client);
    }
    let mut client = place.client();
    client.run("begin");
    client.one(READ);
    client.run("update t set n = 77 where id = 1");
    drop(client);
    let mut other = place.client();
    assert_eq!(other.one("select n + 0 from t where id = 1"), "10");
    assert_eq!(other.status, b'I');
}

#[test]
fn reads_that_only_ever_come_in_transactions_are_cached_too() {
    let place = start_with("pool.pool_size", 3);
    let mut client = place.client();
    client.warm_by("a transaction of one read", |client| {
        client.run("begin");
        assert_eq!(client.one(OTHER), "20");
        let hit = client.was_hit();
        client.run("commit");
        if hit {
            // The last statement is the read again.
            client.one(OTHER);
        }
    });
}

#[test]
fn reads_of_clients_that_do_everything_in_transactions_are_kept_as_well() {
    let place = Place::start(TABLE);
    let mut client = place.client();
    // Nobody with such settings has read outside of a transaction.
    client.run("set timezone = 'Asia/Tokyo'");
    let hit = wait::within(wait::DEADLINE, || {
        client.run("begin");
        let row = client.one(READ);
        let hit = client.was_hit();
        client.run("commit");
        hit.then_some(row)
    });
    assert_eq!(hit.as_deref(), Some("10"));
}
