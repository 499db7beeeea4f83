//! Tables that somebody has named.

use std::collections::BTreeMap;

use super::super::place::{Cached, Place};
use super::super::reloads::reload;
use super::Mirrored;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{wait, WireClient};

const SET_UP: &str = "create schema s;
    create table t(id int primary key, n int not null, s text);
    insert into t select g, g * 10, 'x' || g from generate_series(1, 300) g;
    create table u(id int primary key, n int not null);
    insert into u select g, g from generate_series(1, 20) g;
    create table s.u(id int primary key, n int not null);
    insert into s.u select g, g from generate_series(1, 30) g;
    create table keyless(id int, n int);
    create view seen as select * from t;
    do $$ begin
        execute format('alter role app in database %I set search_path = s, public',
            current_database());
    end $$";

const READS: [&str; 3] = [
    "select * from t where id = 7 and id < {}",
    "select sum(n), count(*) from t where id between 5 and 50 and n < {}",
    "select n, s from t where n between 100 and 200 and id < {} order by n, id",
];

type Row = BTreeMap<String, String>;

/// The tables that are to be mirrored, from now on.
fn configure(place: &Place, mirrors: &[&str]) {
    let section = format!("databases.{}", place.database.name);
    reload(place, &section, "mirrors", &format!("{mirrors:?}"));
}

/// Waits until SHOW MIRRORS has these tables, each with its columns and how many rows it has.
#[track_caller]
fn are_ready(place: &Place, expected: &[(&str, &str, &str)]) {
    let mut rows: Vec<Row> = Vec::new();
    let same = wait::within(wait::DEADLINE, || {
        rows = place.gateway.show("mirrors");
        let ready = |(row, (table, columns, count)): (&Row, &(&str, &str, &str))| {
            let known = [&row["table"], &row["columns"], &row["rows"], &row["state"]];
            known == [*table, *columns, *count, "ready"] && row["pinned"] == "yes"
        };
        let all = rows.len() == expected.len() && rows.iter().zip(expected).all(ready);
        all.then_some(())
    });
    assert!(same.is_some(), "{rows:#?} and not {expected:?}");
}

/// Waits until SHOW MIRRORS says so of the table.
#[track_caller]
fn is_refused(place: &Place, table: &str, why: &str) {
    let mut rows = Vec::new();
    let said = wait::within(wait::DEADLINE, || {
        rows = place.gateway.show("mirrors");
        let row = rows.iter().find(|row| row["table"] == table)?;
        (row["state"] == "refused" && row["why"].contains(why)).then_some(())
    });
    assert!(said.is_some(), "{table}: {rows:#?} and not {why:?}");
    let said = || place.gateway.said().text();
    let logged = |line: &str| line.contains("mirror_refused") && line.contains(why);
    wait::until("a line in the log", || said().lines().any(logged));
}

#[test]
fn a_configuration_adds_tables_and_takes_them_away_by_reload() {
    let place = Place::start(SET_UP);
    configure(&place, &["t columns (n)"]);
    are_ready(&place, &[("public.t", "id, n", "300")]);
    configure(&place, &["t", "u"]);
    // Where the search_path of the role finds it.
    are_ready(&place, &[("public.t", "id, n, s", "300"), ("s.u", "id, n", "30")]);
    configure(&place, &["public.u", "s.u columns (id)"]);
    are_ready(&place, &[("public.u", "id, n", "20"), ("s.u", "id", "30")]);
    let mut client = place.client();
    client.run("drop mirror s.u");
    are_ready(&place, &[("public.u", "id, n", "20")]);
    client.run("mirror table t columns (s)");
    are_ready(&place, &[("public.t", "id, s", "300"), ("public.u", "id, n", "20")]);
    place.gateway.console().run("reload");
    let all = [("public.t", "id, s", "300"), ("public.u", "id, n", "20"), ("s.u", "id", "30")];
    are_ready(&place, &all);
    configure(&place, &[]);
    are_ready(&place, &[("public.t", "id, s", "300")]);
    for (columns, known) in [("", "id, n, s"), (" columns (n)", "id, n"), (" columns (s)", "id, s")]
    {
        client.run(&format!("mirror table t{columns}"));
        are_ready(&place, &[("public.t", known, "300")]);
    }
    client.run("drop mirror t");
    are_ready(&place, &[]);
}

#[test]
fn what_is_configured_is_mirrored_again_from_another_server_and_in_another_mode() {
    const COUNT: &str = "select count(*) from t where id < {}";
    let place = Place::start(SET_UP);
    configure(&place, &["t"]);
    are_ready(&place, &[("public.t", "id, n, s", "300")]);
    let other = place.cluster().database();
    let address = place.cluster().address();
    WireClient::login(&address, APP, APP_PASSWORD, &other.name).run(&SET_UP.replace("300", "40"));
    let section = format!("databases.{}", place.database.name);
    for (name, rows) in [(&other.name, "40"), (&place.database.name, "300")] {
        reload(&place, &section, "dbname", &format!("{name:?}"));
        are_ready(&place, &[("public.t", "id, n, s", rows)]);
        assert_eq!(place.client().mirror(COUNT), [[Some(rows.to_owned())]]);
    }
    reload(&place, "cache", "mode", "\"off\"");
    wait::until("no mirror", || {
        let rows = place.gateway.show("mirrors");
        rows.len() == 1 && rows[0]["state"] == "off"
    });
    place.client().never_hits(&super::unheard(COUNT));
    reload(&place, "cache", "mode", "\"auto\"");
    place.client();
    are_ready(&place, &[("public.t", "id, n, s", "300")]);
    assert_eq!(place.client().mirror(COUNT), [[Some("300".to_owned())]]);
}

#[test]
fn what_is_configured_and_can_not_be_says_why_until_it_can() {
    let place = Place::start(SET_UP);
    configure(&place, &["nowhere", "keyless", "seen", "t columns (missing)", "s.none"]);
    is_refused(&place, "nowhere", "there is no table nowhere");
    is_refused(&place, "keyless", "no primary key");
    is_refused(&place, "seen", "is a view");
    is_refused(&place, "t", "missing");
    is_refused(&place, "s.none", "s.none");
    let mut client = place.client();
    client.run("create table nowhere(id int primary key, n int)");
    client.run("alter table keyless add primary key (id)");
    client.run("alter table t add column missing int");
    configure(&place, &["nowhere", "keyless", "t columns (missing)"]);
    let ready = [("public.keyless", "id, n", "0"), ("public.t", "id, missing", "300")];
    are_ready(&place, &[&ready[..], &[("s.nowhere", "id, n", "0")]].concat());
}

#[test]
fn a_mirror_that_statements_wanted_is_pinned_and_let_go() {
    let place = Place::start(SET_UP);
    place.mirrors(&READS[..1]);
    let pinned = |yes: &str| {
        wait::until("a mirror that is pinned, or not", || {
            let rows = place.gateway.show("mirrors");
            rows.len() == 1 && rows[0]["state"] == "ready" && rows[0]["pinned"] == yes
        });
    };
    pinned("no");
    let mut client = place.client();
    client.run("mirror table t");
    pinned("yes");
    // Statements that nobody has asked before are answered from their first run on, which is when
    // they are judged.
    let before = place.figure("misses_total");
    place.mirrors(&READS[1..]);
    let missed = place.figure("misses_total") - before;
    assert!(missed < 256, "{missed} misses before a mirror answers that is there");
    client.run("drop mirror t");
    pinned("no");
    place.mirrors_again(&READS, "a mirror that nobody has named any more");
}

/// Each leaves a table, or none.
const CHANGES: [&str; 9] = [
    "truncate t",
    "insert into t select g, g * 10, 'y' || g from generate_series(1, 100) g",
    "vacuum full t",
    "alter table t alter column n type bigint",
    "alter table t alter column s type varchar(10) using 'v' || id",
    "cluster t using t_pkey",
    "drop table t",
    "create table t(id int primary key, n int not null, s text);
         insert into t values (7, 1, 'new'), (9, 150, null)",
    "alter table t alter column n type int using n + 1",
];

fn is_rewritten(through: bool) {
    let place = Place::start(&SET_UP.replace("s, public", "public"));
    place.beside().run("drop view seen");
    let (mut client, mut other, mut beside) = (place.client(), place.client(), place.beside());
    client.run("mirror table t");
    place.mirrors(&READS);
    for change in CHANGES {
        match through {
            true => client.run(change),
            false => beside.run(change),
        }
        if change.starts_with("drop") {
            is_refused(&place, "public.t", "there is no table");
            for read in READS {
                assert_eq!(client.error(&super::unheard(read)).code, "42P01");
            }
            continue;
        }
        // What the gateway was told of counts at once.
        for _ in 0..if through { 10 } else { 0 } {
            for read in READS {
                let expected = beside.unheard_rows(read);
                for reader in [&mut client, &mut other] {
                    let got = reader.unheard_rows(read);
                    let hit = reader.was_hit();
                    assert_eq!(got, expected, "{read} behind {change}, hit: {hit}");
                }
            }
        }
        place.mirrors_again(&READS, change);
        client.run("update t set n = n + 1 where id = 7");
        for read in READS {
            let expected = beside.unheard_rows(read);
            let got = other.unheard_rows(read);
            let hit = other.was_hit();
            assert_eq!(got, expected, "{read} behind {change} and an update, hit: {hit}");
        }
    }
    are_ready(&place, &[("public.t", "id, n, s", "2")]);
    assert_eq!(place.figure("mismatches_total"), 0);
}

#[test]
fn trap_c07_a_table_that_is_named_is_rewritten_through_the_gateway() {
    is_rewritten(true);
}

#[test]
fn trap_c07_a_table_that_is_named_is_rewritten_beside_the_gateway() {
    is_rewritten(false);
}
