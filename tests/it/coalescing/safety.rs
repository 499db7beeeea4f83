//! What must not share never does, and what has just become unfit stops at once.

use super::crowd::{alone_because, counters, explained, learn, patient};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, Gateway, WireClient};
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

const OBJECTS: &str = "
    create table t(id int primary key, n int);
    insert into t select g, g from generate_series(1, 50) g;
    create sequence seq;
    create function reads(int) returns int language sql stable as 'select n from t where id = $1';
    create function hidden() returns int language sql volatile as 'select 1';
    create view fair as select id, n from t;
    create view foul as select id, n, hidden() from t;
    create domain positive as int check (value > 0);
    create table guarded(id int primary key);
    insert into guarded values (1);
";

fn simple(sql: &str) -> Batch {
    Batch::new().query(sql)
}

fn unnamed(sql: &str) -> Batch {
    Batch::new().parse("", sql).bind("", &[]).describe_portal("").execute().sync()
}

/// Each statement with a part of the reason for which it never joins.
const NEVER: &[(&str, &str)] = &[
    ("select hidden()", "hidden() is volatile"),
    ("select id from t where n = hidden()", "hidden() is volatile"),
    ("select * from foul where id = 1", "hidden() is volatile"),
    ("select nextval('seq')", "nextval()"),
    ("select setval('seq', 5)", "setval()"),
    ("select last_value from seq", "is a sequence"),
    ("select pg_advisory_lock(7), pg_advisory_unlock(7)", "pg_advisory"),
    ("select pg_try_advisory_xact_lock(7)", "pg_try_advisory_xact_lock"),
    ("select set_config('application_name', 'x', true)", "set_config"),
    ("select pg_sleep(0)", "pg_sleep"),
    ("select pg_notify('c', 'x')", "pg_notify"),
    ("select id from t where id = 1 for update", "FOR"),
    ("select id from t where id = 1 for share", "FOR"),
    ("select id from t where id = 1 for key share of t", "FOR"),
    ("with w as (update t set n = n where id = 1 returning n) select * from w", "WITH"),
    ("with w as (delete from t where id = 999 returning n) select * from w", "WITH"),
    ("update t set n = n where id = 1", "coalesce_writes is off"),
    ("insert into t values (1, 1) on conflict do nothing", "coalesce_writes is off"),
    ("delete from t where id = 999", "coalesce_writes is off"),
    ("select '5'::positive", "domain"),
    ("show application_name", "not SHOW"),
    ("set local work_mem = '4MB'", "not SET"),
    ("explain select 1", "not EXPLAIN"),
    ("analyze t", "not ANALYZE"),
    ("lock table t", "not LOCK"),
    ("do $$ begin null; end $$", "one plain statement"),
    ("select 1; select 2", "one plain statement"),
    ("select no_such_function(1)", "is not known"),
    ("select * from no_such_table", "is not known"),
    ("declare c cursor for select 1", "not DECLARE"),
    ("copy t to stdout", "not COPY"),
];

#[test]
fn what_must_not_share_travels_alone_and_says_why() {
    let database = cluster().database();
    direct(&database).run(OBJECTS);
    let gateway = Gateway::start(patient(&database));
    let mut client = gateway.client(&database);
    let mut wrong = Vec::new();
    for (sql, expected) in NEVER {
        let why = alone_because(&mut client, &simple(sql));
        if !why.to_lowercase().contains(&expected.to_lowercase()) {
            wrong.push(format!("{sql}: {why}, not {expected}"));
        }
        if *sql != "select 1; select 2" && !sql.starts_with("copy") && !sql.starts_with("do") {
            alone_because(&mut client, &unnamed(sql));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let counted = counters(&gateway, &database);
    assert_eq!((counted["joined"], counted["trips"]), (0, 0), "{counted:?}");
}

#[test]
fn temporary_tables_and_select_into_travel_alone() {
    let database = cluster().database();
    direct(&database).run(OBJECTS);
    let gateway = Gateway::start(patient(&database).set("pool.mode", "transaction"));
    let mut client = gateway.client(&database);
    for number in 0..12 {
        client.run(&format!("select 1 as a into made_{number}"));
    }
    assert_eq!(explained(&mut client)[1], "Way: alone");
    assert_eq!(counters(&gateway, &database)["joined"], 0);
}

#[test]
fn a_transaction_and_a_series_travel_alone_with_what_joins_otherwise() {
    let database = cluster().database();
    direct(&database).run(OBJECTS);
    let gateway = Gateway::start(patient(&database));
    let mut client = gateway.client(&database);
    let sql = "select n from t where id = 1";
    learn(&mut client, &simple(sql), "batch");
    client.run("begin; select 1");
    client.run(sql);
    let told = explained(&mut client);
    assert!(told[2].contains("part of a transaction"), "{told:?}");
    client.run("commit");
    let before = counters(&gateway, &database);
    let two = Batch::new().query(sql).query(sql);
    two.to(&mut client);
    (0..2).for_each(|_| drop(client.until_ready()));
    let series = Batch::new().parse("", sql).bind("", &[]).execute().bind("", &[]).execute().sync();
    series.answer(&mut client);
    let part = Batch::new().parse("", sql).bind_to("p", "", &[]).execute_of("p", 1).sync();
    part.answer(&mut client);
    assert_eq!(explained(&mut client)[1], "Way: alone");
    let after = counters(&gateway, &database);
    assert!(after["joined"] <= before["joined"] + 1, "only the last of two: {before:?} {after:?}");
    client.run(sql);
    let told = explained(&mut client);
    assert!(told[1].starts_with("Way: batch"), "{told:?}");
}

#[test]
fn settings_that_differ_keep_statements_apart() {
    let database = cluster().database();
    direct(&database).run(OBJECTS);
    let gateway = Gateway::start(patient(&database));
    let mut client = gateway.client(&database);
    let sql = "select n, current_setting('TimeZone') from t where id = 1";
    learn(&mut client, &simple(sql), "batch");
    let parameters = [
        ("user", APP),
        ("database", database.name.as_str()),
        ("default_transaction_isolation", "serializable"),
    ];
    let mut strict = WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters);
    strict.run(sql);
    let told = explained(&mut strict);
    assert_eq!(told[1], "Way: alone", "{told:?}");
    // Two clients in two time zones, on one server.
    let zones = ["Asia/Tokyo", "America/Lima"];
    let mut clients = zones.map(|zone| {
        let mut client = gateway.client(&database);
        client.run(&format!("set timezone = '{zone}'"));
        client
    });
    for _ in 0..30 {
        clients.iter_mut().for_each(|client| simple(sql).to(client));
        for (client, zone) in clients.iter_mut().zip(zones) {
            let answer = client.until_ready();
            assert_eq!(answer[1].values(), [Some("1".to_owned()), Some(zone.to_owned())]);
        }
    }
}

/// A definition that changes through the gateway, and a part of the reason that there is then.
fn unfit_after(sql: &str, change: &str, expected: &str) {
    let database = cluster().database();
    direct(&database).run(OBJECTS);
    let gateway = Gateway::start(patient(&database));
    let [mut reader, mut owner] = [(); 2].map(|()| gateway.client(&database));
    for form in [simple, unnamed] {
        learn(&mut reader, &form(sql), "batch");
    }
    owner.run(change);
    let before = counters(&gateway, &database);
    for form in [simple, unnamed] {
        form(sql).answer(&mut reader);
        assert_eq!(explained(&mut reader)[1], "Way: alone", "the next one after {change}");
    }
    let why = alone_because(&mut reader, &simple(sql));
    assert!(why.contains(expected), "after {change}: {why}");
    let after = counters(&gateway, &database);
    assert_eq!(before["joined"], after["joined"], "{before:?} {after:?}");
}

#[test]
fn a_function_that_becomes_volatile_travels_alone_from_then_on() {
    let change = "create or replace function reads(int) returns int language sql volatile as \
                  'select n from t where id = $1'";
    unfit_after("select reads(7)", change, "reads() is volatile");
    unfit_after("select reads(7)", "alter function reads(int) volatile", "reads() is volatile");
    let within = "begin; alter function reads(int) volatile; commit";
    unfit_after("select reads(7)", within, "reads() is volatile");
}

#[test]
fn a_table_that_gets_row_security_travels_alone_from_then_on() {
    let change = "alter table guarded enable row level security";
    unfit_after("select * from guarded where id = 1", change, "row security");
}

#[test]
fn a_view_that_is_replaced_travels_alone_from_then_on() {
    let change = "create or replace view fair as select id, n + hidden() - 1 as n from t";
    unfit_after("select n from fair where id = 3", change, "hidden() is volatile");
}

#[test]
fn a_table_that_becomes_a_view_is_seen() {
    let change =
        "begin; alter table t rename to was; create view t as select *, hidden() from was; commit";
    unfit_after("select n from t where id = 3", change, "hidden() is volatile");
}

#[test]
fn definitions_that_change_are_seen_by_prepared_statements() {
    let database = cluster().database();
    direct(&database).run("create table t(id int primary key, n int); insert into t values (3, 3)");
    let gateway = Gateway::start(patient(&database));
    let [mut reader, mut owner] = [(); 2].map(|()| gateway.client(&database));
    let sql = "select n from t where id = 3";
    learn(&mut reader, &simple(sql), "batch");
    let one = |reader: &mut WireClient| reader.one(sql);
    assert_eq!(one(&mut reader), "3");
    owner.run("alter table t alter n type text using 'was ' || n");
    for _ in 0..20 {
        assert_eq!(one(&mut reader), "was 3");
    }
    learn(&mut reader, &simple(sql), "batch");
    assert_eq!(one(&mut reader), "was 3");
    // Elsewhere, so that nobody has told the gateway.
    direct(&database).run("alter table t alter n type int using 30");
    for _ in 0..20 {
        assert_eq!(one(&mut reader), "30");
    }
    direct(&database)
        .run("alter table t add more int; alter table t drop n; alter table t add n bool");
    direct(&database).run("update t set n = true");
    for _ in 0..20 {
        assert_eq!(one(&mut reader), "t");
    }
}
