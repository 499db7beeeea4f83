//! What never rides: what is part of a client's transaction, and bodies that leave something in the
//! session, whether they do it themselves or something that they use.

use super::books::query;
use crate::coalescing::crowd::{alone_because, counters, explained, Crowd};
use crate::kit::Config;
use crate::traps::batch::Batch;

const TABLES: &str = "
    create table t(id int primary key, n int);
    insert into t select g, 0 from generate_series(1, 9) g;
    create function locks_and_unlocks(p_id int) returns int language plpgsql as $$ begin
        perform pg_advisory_lock(p_id); perform pg_advisory_unlock(p_id); return p_id; end $$;
";

/// Bodies that never ride: the name of a function of one number, and its definition.
const NEVER: &[(&str, &str)] = &[
    (
        "session_lock",
        "create function session_lock(p_id int) returns int language plpgsql as $$ begin
            update t set n = n + 1 where id = p_id;
            perform pg_advisory_lock(p_id); perform pg_advisory_unlock(p_id);
            return p_id; end $$",
    ),
    (
        "tries_session_lock",
        "create function tries_session_lock(p_id int) returns boolean language sql as
            $$ select pg_try_advisory_lock(p_id) and pg_advisory_unlock(p_id) $$",
    ),
    (
        "listens",
        "create function listens(p_id int) returns int language plpgsql as $$ begin
            listen news; unlisten news; return p_id; end $$",
    ),
    (
        "holds",
        "create function holds(p_id int) returns int language sql as
            $$ declare held cursor with hold for select 1; close held; select p_id $$",
    ),
    (
        "makes_temporary",
        "create function makes_temporary(p_id int) returns int language plpgsql as $$ begin
            create temp table if not exists scratch(n int);
            drop table scratch; return p_id; end $$",
    ),
    (
        "returns_a_cursor",
        "create function returns_a_cursor(p_id int) returns refcursor language plpgsql as $$
            declare c refcursor := 'c'; begin
            open c for select * from t where id = p_id; return c; end $$",
    ),
    (
        "sets",
        "create function sets(p_id int) returns text language plpgsql as $$ begin
            return set_config('application_name', '', false); end $$",
    ),
    (
        "by_a_function",
        "create function by_a_function(p_id int) returns int language plpgsql as $$ begin
            update t set n = n + 1 where id = p_id;
            return locks_and_unlocks(p_id); end $$",
    ),
    (
        "by_two_functions",
        "create function in_between(p_id int) returns int language sql as
            $$ select locks_and_unlocks(p_id) $$;
        create function by_two_functions(p_id int) returns int language plpgsql as $$
            declare got int; begin
            select in_between(id) into got from t where id = p_id; return got; end $$",
    ),
    (
        "by_a_trigger",
        "create table watched(id int, n int);
        insert into watched values (1, 0);
        create function watch() returns trigger language plpgsql as $$ begin
            perform locks_and_unlocks(new.id); return null; end $$;
        create trigger watch after update on watched for each row execute function watch();
        create function by_a_trigger(p_id int) returns int language plpgsql as $$ begin
            update watched set n = n + 1 where id = p_id; return p_id; end $$",
    ),
    (
        "by_a_view",
        "create view seen as select id, locks_and_unlocks(id) as n from t;
        create function by_a_view(p_id int) returns int language plpgsql as $$
            declare got int; begin
            select n into got from seen where id = p_id; return got; end $$",
    ),
];

#[test]
fn bodies_that_leave_something_in_the_session_never_ride() {
    let mut set_up = TABLES.to_owned();
    let declare = |config: Config| {
        NEVER.iter().fold(config, |config, (name, _)| {
            config.set(&format!("procedures.\"public.{name}\".key"), ["p_id"])
        })
    };
    NEVER.iter().for_each(|(_, sql)| set_up.push_str(&format!("{sql};\n")));
    let mut crowd = Crowd::start(1, &set_up, declare);
    let client = &mut crowd.clients[0];
    for (name, _) in NEVER {
        for form in [format!("select {name}(1)"), format!("select * from {name}(1)")] {
            alone_because(client, &query(&form));
        }
        let sql = format!("select {name}($1)");
        let extended = Batch::new().parse("", &sql).bind("", &["1"]).execute().sync();
        alone_because(client, &extended);
    }
    let counted = counters(&crowd.gateway, &crowd.database);
    assert_eq!(counted["trained"], 0, "{counted:?}");
}

const BUMP: &str = "
    create function bump(p_id int) returns int language plpgsql as $$ declare got int; begin
        update t set n = n + 1 where id = p_id returning n into got; return got; end $$;
";

fn bumping(config: Config) -> Config {
    config.set("procedures.\"public.bump\".key", ["p_id"])
}

#[test]
fn calls_in_a_transaction_of_the_client_never_ride() {
    let mut crowd = Crowd::start(2, &format!("{TABLES}{BUMP}"), bumping);
    crowd.learn(&query("select bump(9)"), "train");
    let client = &mut crowd.clients[0];
    client.run("begin; select 1");
    assert_eq!(client.one("select bump(1)"), "1");
    let told = explained(client);
    assert_eq!(told[1], "Way: alone", "{told:?}");
    assert_eq!(client.one("select bump(1)"), "2");
    client.run("rollback");
    assert_eq!(client.one("select bump(1)"), "1", "nothing of it was done");
    // As its first statement, and in a transaction of one text.
    Batch::new().query("begin").query("select bump(1)").query("commit").to(client);
    (0..3).for_each(|_| drop(client.until_ready()));
    client.run("begin; select bump(1); rollback");
    assert_eq!(client.one("select bump(1)"), "3");
    assert!(explained(client)[1].starts_with("Way: train"));
}

#[test]
fn temporary_tables_that_end_with_the_call_do_ride() {
    let set_up = format!(
        "{TABLES} create function scratches(p_id int) returns int language plpgsql as $$
            declare got int; begin
            create temp table scratch(n int) on commit drop;
            insert into scratch values (p_id);
            select n into got from scratch; return got; end $$;"
    );
    let declare = |config: Config| super::books::on_one_train(config, "scratches");
    let mut crowd = Crowd::start(4, &set_up, declare);
    crowd.learn(&query("select scratches(1)"), "train");
    let batches: Vec<Batch> = (0..4).map(|id| query(&format!("select scratches({id})"))).collect();
    let answers = crowd.together_by("train", &batches);
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(super::books::value_of(answer), id.to_string());
    }
}

#[test]
fn a_body_that_commits_works_and_commits_as_its_session_would() {
    let set_up = format!(
        "{TABLES} create table seen(token text, settings text);
        create procedure twice(p_id int, p_token text) language plpgsql as $$ begin
            update t set n = n + 1 where id = p_id;
            insert into seen values (p_token,
                current_setting('synchronous_commit') || current_setting('lock_timeout'));
            commit;
            update t set n = n + 1 where id = p_id;
            insert into seen values (p_token,
                current_setting('synchronous_commit') || current_setting('lock_timeout'));
        end $$; {BUMP}"
    );
    let declare = |config: Config| bumping(config).set("procedures.\"public.twice\".key", ["p_id"]);
    let mut crowd = Crowd::start(6, &set_up, declare);
    crowd.learn(&query("select bump(1)"), "train");
    for _ in 0..10 {
        crowd.clients[0].run("call twice(1, 'alone')");
    }
    for round in 0..3 {
        let batches: Vec<Batch> = (0..6)
            .map(|number| match number % 2 {
                0 => query("select bump(1)"),
                _ => query(&format!("call twice(1, '{round}/{number}')")),
            })
            .collect();
        for (number, answer) in crowd.together(&batches).iter().enumerate() {
            let expected = if number % 2 == 0 { "SELECT 1" } else { "CALL" };
            assert_eq!(super::books::done(answer), expected);
        }
    }
    let mut beside = crowd.beside();
    assert_eq!(beside.one("select distinct settings from seen"), "on0");
    let twice = "select count(*) || ' ' || max(times) || ' ' || min(times) from (
        select count(*) as times from seen where token <> 'alone' group by token) a";
    assert_eq!(beside.one(twice), "9 2 2");
    let alone = "select count(*) from seen where token = 'alone'";
    assert_eq!(beside.one(alone), "20");
}
