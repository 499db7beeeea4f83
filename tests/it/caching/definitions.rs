//! C7: what tables, views and functions are changes: through the gateway at once, beside it soon.

use std::time::{Duration, Instant};

use super::place::{Cached, Place};
use crate::kit::WireClient;

const SET_UP: &str = "create table t(id int primary key, n int not null);
    insert into t select g, g from generate_series(1, 10) g;
    create view few as select id, n from t where n <= 3;
    create view deep as select count(*) as c from few;
    create function twice(n int) returns int language sql immutable as $$ select n * 2 $$";

/// Each change is made in both ways, on a database of its own each time: behind it `read` gives
/// `after`.
fn changes(cases: &[(&str, &str, &str, &str)]) {
    let place = Place::start(SET_UP);
    let mut through = place.client();
    for (read, before, change, after) in cases {
        assert_eq!(through.warm(read), [[Some((*before).to_owned())]], "{read}");
        through.run(change);
        assert_eq!(through.one(read), *after, "{read} behind {change}, through the gateway");
        place.becomes(&mut through, read, after);
    }
    let place = Place::start(SET_UP);
    let mut through = place.client();
    let mut beside = place.beside();
    for (read, before, change, after) in cases {
        assert_eq!(through.warm(read), [[Some((*before).to_owned())]], "{read}");
        beside.run(change);
        place.becomes(&mut through, read, after);
    }
}

#[test]
fn trap_c07_truncate() {
    const COUNT: &str = "select count(*) from t";
    const REFILL: &str = "insert into t select g, g from generate_series(1, 10) g";
    changes(&[
        (COUNT, "10", "truncate t", "0"),
        (COUNT, "0", REFILL, "10"),
        (COUNT, "10", "begin; truncate t; rollback", "10"),
        (COUNT, "10", "begin; truncate t; insert into t values (1, 1); commit", "1"),
        ("select count(*) from t where id = 1", "1", "truncate t restart identity cascade", "0"),
    ]);
}

#[test]
fn trap_c07_views_and_functions_are_replaced() {
    changes(&[
        (
            "select count(*) from few",
            "3",
            "create or replace view few as select id, n from t where n <= 5",
            "5",
        ),
        (
            "select c from deep",
            "5",
            "create or replace view few as select id, n from t where n <= 4",
            "4",
        ),
        (
            "select twice(n) from t where id = 2",
            "4",
            "create or replace function twice(n int) returns int language sql immutable as \
             'select n * 3'",
            "6",
        ),
        (
            "select c from deep",
            "4",
            "begin; create or replace view deep as select 7::bigint as c from few limit 1; commit",
            "7",
        ),
    ]);
}

#[test]
fn trap_c07_tables_are_altered_renamed_and_replaced() {
    changes(&[
        (
            "select n from t where id = 2",
            "2",
            "drop view deep, few; alter table t alter n type int using n + 100",
            "102",
        ),
        ("select sum(n) from t", "1055", "alter table t alter n type int using n - 100", "55"),
        (
            "select n from t where id = 3",
            "3",
            "begin; alter table t rename to older; create table t(id int primary key, n int);
             insert into t values (3, 33); commit",
            "33",
        ),
        (
            "select n from t where id = 3",
            "33",
            "begin; alter table t rename column n to m; alter table t add n int default 5; commit",
            "5",
        ),
        ("select sum(m) from t", "33", "alter table t add unique (m)", "33"),
    ]);
}

#[test]
fn trap_c07_names_that_come_to_mean_another_table() {
    changes(&[
        (
            "select count(*) from t",
            "10",
            "create schema app; create table app.t(id int primary key)",
            "0",
        ),
        ("select count(*) from t", "0", "drop schema app cascade", "10"),
    ]);
}

#[test]
fn trap_c07_partitions_come_go_and_pass_rows_on() {
    let place = Place::start(
        "create table p(id int, k int, n int, primary key (id, k)) partition by list (k);
         create table p1 partition of p for values in (1);
         create table p2 partition of p for values in (2) partition by range (id);
         create table p2a partition of p2 for values from (0) to (100);
         create table loose(id int, k int, n int, primary key (id, k));
         insert into loose values (50, 3, 1);
         insert into p select g, g % 2 + 1, g from generate_series(1, 10) g",
    );
    let reads = [
        "select count(*) from p",
        "select sum(n) from p where k = 2",
        "select count(*) from p2",
        "select count(*) from p1 where n > 3",
        "select count(*) from p where id = 50",
        "select n from p where id = 4 and k = 1",
    ];
    let writes = [
        "insert into p values (11, 2, 11)",
        "update p set k = 2 where id = 2",
        "update p2a set n = n + 1 where id = 3",
        "delete from p1 where id = 4",
        "truncate p2a",
        "insert into p select g, 2, g from generate_series(20, 40) g",
        "alter table p attach partition loose for values in (3)",
        "update loose set n = 9",
        "alter table p detach partition loose",
        "create table p4 partition of p for values in (4); insert into p values (60, 4, 60)",
        "update p4 set n = n + 1",
        "drop table p4",
        "truncate p",
    ];
    let mut beside = place.beside();
    let mut through = place.client();
    for (at, write) in writes.iter().enumerate() {
        for read in reads {
            through.warm(read);
        }
        let own = at % 2 == 0;
        if own {
            through.run(write);
        } else {
            beside.run(write);
        }
        for read in reads {
            let expected = beside.rows(read);
            if own {
                assert_eq!(through.rows(read), expected, "{read} behind the client's own {write}");
            }
            same_soon(&mut through, read, &expected, write);
        }
    }
}

#[test]
fn inherited_tables_are_parts_of_their_parents() {
    let place = Place::start(
        "create table base(id int primary key, n int); create table child(primary key (id)) inherits (base);
         insert into base values (1, 1); insert into child values (2, 2)",
    );
    let mut beside = place.beside();
    let mut through = place.client();
    for write in [
        "update child set n = 5",
        "insert into child values (3, 3)",
        "alter table child no inherit base",
        "update child set n = 7",
        "alter table child inherit base",
        "delete from only base",
    ] {
        through.warm("select sum(n) from base");
        through.warm("select count(*) from only base");
        beside.run(write);
        for read in ["select sum(n) from base", "select count(*) from only base"] {
            let expected = beside.rows(read);
            same_soon(&mut through, read, &expected, write);
        }
    }
}

/// Looks at the catalogues are 3 s apart, by themselves.
#[test]
fn a_table_that_is_created_through_the_gateway_is_followed_at_once() {
    const CREATED: usize = 6;
    // Alone: a new table is told when those have ended who may have written it, whoever they are.
    let place = Place::start_alone(&[], "");
    let mut client = place.client();
    let mut longest = Vec::new();
    for number in 0..CREATED {
        let create = match number % 3 {
            0 => format!("create table t{number}(id int primary key)"),
            1 => format!("begin; create table t{number}(id int primary key); commit"),
            _ => format!(
                "create table t{number}(id int); alter table t{number} add primary key (id)"
            ),
        };
        client.run(&create);
        let begun = Instant::now();
        client.warm(&format!("select count(*) from t{number}"));
        longest.push(begun.elapsed());
    }
    // A busy machine may be slow once or twice.
    longest.sort();
    assert!(longest[CREATED / 2] < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn what_a_user_without_a_cache_alters_is_known_at_once() {
    let place = Place::start_with(
        "create table t(id int primary key, n int); insert into t values (1, 1); grant all on t to plain",
        |config| config.set("users.plain.cache", "off"),
    );
    place.superuser().run("alter table t owner to plain; grant all on t to app");
    let mut reader = place.client();
    let mut owner = place.plain();
    for (value, alter) in [
        ("x1", "alter table t alter n type text using 'x' || n"),
        ("yx1", "begin; alter table t alter n type text using 'y' || n; commit"),
    ] {
        reader.warm("select n from t where id = 1");
        owner.run(alter);
        assert_eq!(reader.one("select n from t where id = 1"), value);
    }
}

#[track_caller]
fn same_soon(client: &mut WireClient, read: &str, expected: &super::place::Rows, write: &str) {
    let mut last = None;
    let right = crate::kit::wait::within(super::place::KNOWN_WITHIN, || {
        let got = client.rows(read);
        let right = got == *expected;
        last = Some(got);
        right.then_some(())
    });
    assert!(right.is_some(), "{read} behind {write}: {last:?} and not {expected:?}");
    assert_eq!(client.warm(read), *expected, "{read} behind {write}");
}
