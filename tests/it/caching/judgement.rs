//! What must not be kept, because it depends on more than rows that are told.

use super::place::{Cached, Place};
use crate::kit::WireClient;
use crate::traps::batch::Batch;

const TABLE: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, g, 'x' from generate_series(1, 10) g";
const READ: &str = "select n from t where id = 1";

#[test]
fn trap_c08_a_temporary_table_hides_a_cached_one_from_its_session() {
    let place = Place::start_with(TABLE, |config| config.set("pool.mode", "session"));
    let mut other = place.client();
    other.warm(READ);
    for create in [
        "create temp table t(id int primary key, n int)",
        "create temporary table t as select 1 as id, 77 as n",
        "create table pg_temp.t(id int, n int)",
        "select 1 as id, 77 as n into temp t",
        "do $$ begin create temp table t(id int, n int); end $$",
        "begin; create temp table t(id int, n int); commit",
    ] {
        let mut client = place.client();
        client.warm(READ);
        client.run(create);
        client.run("delete from pg_temp.t; insert into pg_temp.t(id, n) values (1, 77)");
        for _ in 0..10 {
            assert_eq!(client.one(READ), "77", "{create}");
        }
        assert_eq!(other.one(READ), "1");
        client.terminate();
    }
    assert_eq!(other.warm(READ), [[Some("1".to_owned())]]);
}

#[test]
fn trap_c08_names_mean_what_the_session_s_search_path_says() {
    let set_up = format!(
        "{TABLE}; create schema other; create table other.t(id int primary key, n int);
         insert into other.t values (1, 55)"
    );
    // In transaction mode it would stay behind on a server, with a cache or without.
    let place = Place::start_with(&set_up, |config| config.set("pool.mode", "session"));
    let mut client = place.client();
    let mut other = place.client();
    client.warm(READ);
    for _ in 0..20 {
        client.run("set search_path to other");
        assert_eq!(client.one(READ), "55");
        assert_eq!(client.one(READ), "55");
        assert_eq!(other.one(READ), "1");
        client.run("set search_path to public, other");
        assert_eq!(client.one(READ), "1");
        client.run("begin; set local search_path to other");
        assert_eq!(client.one(READ), "55");
        client.run("commit");
        assert_eq!(client.one(READ), "1");
    }
    let parameters =
        [("user", "app"), ("database", &place.database.name), ("options", "-c search_path=other")];
    let password = crate::kit::cluster::APP_PASSWORD;
    let startup = WireClient::try_login(&place.gateway.address(), password, &parameters);
    if let Ok(mut startup) = startup {
        for _ in 0..20 {
            assert_eq!(startup.one(READ), "55");
        }
    }
}

#[test]
fn trap_c09_relations_whose_changes_are_not_told() {
    let place = Place::start(&format!(
        "{TABLE}; create unlogged table u(id int primary key); insert into u values (1);
         create materialized view m as select count(*) as c from t;
         create sequence s; create view v as select id, n from t where n > 5;
         create view bad as select pid from pg_stat_activity; create view with_m as select c from m"
    ));
    let mut client = place.client();
    for read in [
        "select count(*) from u",
        "select c from m",
        "select c from with_m",
        "select last_value from s",
        "select count(*) from pg_class",
        "select count(*) from bad",
        "select count(*) from information_schema.tables",
        "select count(*) from t, pg_class",
        "select count(*) from t where exists (select 1 from u)",
        "select (select c from m) from t where id = 1",
    ] {
        client.never_hits(read);
    }
    const VIEW: &str = "select count(*) from v";
    assert_eq!(client.warm(VIEW), [[Some("5".to_owned())]]);
    client.run("update t set n = 99 where id = 1");
    assert_eq!(client.one(VIEW), "6");
    place.beside().run("delete from t where id = 1");
    place.becomes(&mut client, VIEW, "5");
}

#[test]
fn trap_c10_what_depends_on_time_chance_or_who_asks() {
    let place = Place::start(&format!(
        "{TABLE}; create function chance() returns int language sql volatile as 'select 1';
         create function stable() returns int language sql stable as 'select count(*)::int from t';
         create view late as select id, now() as at from t;
         create table rls(id int primary key, n int); insert into rls values (1, 1);
         alter table rls enable row level security;
         create table d(id int primary key, at timestamptz, day date);
         insert into d values (1, now(), current_date); create sequence q"
    ));
    let mut client = place.client();
    for read in [
        "select n, now() from t where id = 1",
        "select n from t where id = 1 and now() > '2000-01-01'",
        "select n, random() from t where id = 1",
        "select n, current_user from t where id = 1",
        "select n, session_user, current_date from t where id = 1",
        "select n, current_timestamp from t where id = 1",
        "select n, pg_backend_pid() from t where id = 1",
        "select n, current_setting('timezone') from t where id = 1",
        "select n, chance() from t where id = 1",
        "select n, stable() from t where id = 1",
        "select n, nextval('q') from t where id = 1",
        "select n, clock_timestamp() from t where id = 1",
        "select n, txid_current() from t where id = 1",
        "select n, gen_random_uuid() from t where id = 1",
        "select n from t order by random() limit 1",
        "select at from late where id = 1",
        "select n from rls where id = 1",
        "select count(*) from t, rls",
        "select count(*) from d where at < 'now'",
        "select count(*) from d where at < 'tomorrow'::timestamptz",
        "select count(*) from d where day = 'today'",
        "select count(*) from d where day = current_date",
        "select n, xmin from t where id = 1",
        "select n, ctid from t where id = 1",
        "select n from t tablesample bernoulli (50) where id = 1",
    ] {
        client.never_hits(read);
    }
    for value in ["now", "today", "yesterday", " NOW "] {
        let asked = Batch::new()
            .parse("", "select count(*) from d where day <> $1::date")
            .bind("", &[value]);
        let asked = asked.execute().sync();
        for _ in 0..25 {
            client.send(&asked.0);
            client.until_ready();
            assert!(!client.was_hit(), "{value}");
        }
    }
}

#[test]
fn trap_c16_what_does_more_than_read() {
    let place = Place::start(TABLE);
    let mut client = place.client();
    client.warm(READ);
    for read in [
        "select n from t where id = 1 for update",
        "select n from t where id = 1 for no key update",
        "select n from t where id = 1 for share",
        "select n from t where id = 1 for key share skip locked",
        "with w as (update t set n = n returning n) select n from w",
        "select n from (select n from t where id = 1 for update) x",
        "select pg_try_advisory_lock(1)",
        "select n, pg_advisory_xact_lock(1) from t where id = 1",
        "select n, pg_advisory_lock_shared(2) from t where id = 1",
        "select n into temp x from t where id = 1",
        "table t limit 0; select n from t where id = 1",
        "select n from t where id = 1; select n from t where id = 2",
        "explain select n from t where id = 1",
        "select n from t where id = 1; update t set n = n where id = 1",
    ] {
        client.never_hits(read);
        client.query("discard all");
    }
    // A lock is really taken.
    let mut holder = place.client();
    holder.run("begin");
    holder.one(READ);
    holder.one("select n from t where id = 1 for update");
    client.run("set lock_timeout = '100ms'");
    assert_eq!(client.error("update t set n = 5 where id = 1").code, "55P03");
    holder.run("commit");
}

#[test]
fn trap_c16_a_batch_is_answered_as_a_whole() {
    let place = Place::start(TABLE);
    let mut client = place.client();
    client.warm(READ);
    let one = |batch: Batch, sql: &str| batch.parse("", sql).bind("", &[]).execute();
    for (first, second) in [
        (READ, "update t set n = n + 1 where id = 1"),
        ("update t set n = n + 1 where id = 1", READ),
        (READ, READ),
    ] {
        let before: i64 = place.beside().one(READ).parse().expect("a number");
        let batch = one(one(Batch::new(), first), second).sync();
        client.send(&batch.0);
        let replies = client.until_ready();
        let ends = replies.iter().filter(|reply| reply.tag == b'C').count();
        assert_eq!(ends, 2, "{replies:?}");
        let row = replies.iter().rfind(|reply| reply.tag == b'D').expect("a row");
        let expected = before + i64::from(first != READ);
        assert_eq!(row.values(), [Some(expected.to_string())], "{first}; {second}");
        // An error undoes what came before it in the batch.
        let batch = one(one(Batch::new(), "update t set n = -1 where id = 1"), READ);
        let batch = one(batch, "select 1/0").sync();
        client.send(&batch.0);
        client.until_ready();
        let now = client.one(READ);
        assert_eq!(now, place.beside().one(READ));
        assert_ne!(now, "-1");
    }
}

#[test]
fn nothing_of_a_failed_or_cut_answer_is_kept() {
    let place = Place::start(TABLE);
    let mut client = place.client();
    const DIVIDES: &str = "select 10 / (n - 1) from t where id = 1";
    for _ in 0..20 {
        assert_eq!(client.error(DIVIDES).code, "22012");
        assert!(!client.was_hit());
    }
    client.run("update t set n = 2 where id = 1");
    assert_eq!(client.one(DIVIDES), "10");
    const ALL: &str = "select n from t order by id";
    let few = Batch::new().parse("", ALL).bind("", &[]).execute_of("", 2).sync();
    for _ in 0..20 {
        client.send(&few.0);
        let rows = client.until_ready();
        assert_eq!(rows.iter().filter(|reply| reply.tag == b'D').count(), 2);
    }
    assert_eq!(client.warm(ALL).len(), 10);
}

#[test]
fn expressions_with_constants_are_grouped_by() {
    let place = Place::start(
        "create table t(id int primary key, note text); insert into t values (1, 'a'), (2, 'b')",
    );
    let mut client = place.client();
    for read in [
        "select note || 'x', count(*) from t group by note || 'x' order by 1",
        "select note || ' words', count(*) from t group by note || ' words' order by 1",
        "select count(*) from t group by note || 'words'",
        "select id % 2, count(*) from t group by id % 2 order by id % 2",
        "select distinct note || 'now' from t order by note || 'now'",
        "select id + 1 from t group by id + 1 having id + 1 > 1",
    ] {
        let expected = place.beside().rows(read);
        assert_eq!(client.warm(read), expected, "{read}");
    }
}
