//! C5 and C7: tables that change otherwise than by rows that are told.

use super::super::place::{Cached, Place};
use super::Mirrored;

const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, g * 10, 'x' || g from generate_series(1, 300) g";

const READS: [&str; 3] = [
    "select * from t where id = 7 and id < {}",
    "select sum(n), count(*) from t where id between 5 and 50 and n < {}",
    "select n, s from t where n between 100 and 200 and id < {} order by n, id",
];

/// Reads behind a change that the gateway was told of.
const BEHIND: usize = 20;

const TYPES: &str = "alter table t alter column n type int using n + 1";

/// Each leaves a table that a mirror can be of. Behind it a row is changed as well.
const CHANGES: [&str; 9] = [
    "alter table t add column more int default 7",
    TYPES,
    "truncate t; insert into t(id, n, s) values (7, 70, 'y'), (8, 101, 'z')",
    "drop table t; create table t(id int primary key, n int not null, s text);
         insert into t values (7, 1, 'new'), (9, 150, null)",
    "alter table t replica identity full",
    "alter table t drop column s; alter table t add column s text default 'again'",
    "alter table t rename to away; create table t(id int primary key, n int not null, s text);
         insert into t values (7, 2, 'other')",
    "vacuum full t",
    "alter table t drop constraint t_pkey; alter table t add primary key (id, n)",
];

fn changes(change: &'static str, through: bool) {
    let place = Place::start(SET_UP);
    place.mirrors(&READS);
    let (mut client, mut other) = (place.client(), place.client());
    let mut beside = place.beside();
    if change.starts_with("vacuum") || through {
        for sql in change.split("; ") {
            if through {
                client.run(sql)
            } else {
                beside.run(sql)
            }
        }
    } else {
        beside.run(change);
    }
    if through {
        for _ in 0..BEHIND {
            for read in READS {
                let expected = beside.unheard_rows(read);
                for reader in [&mut client, &mut other] {
                    let got = reader.unheard_rows(read);
                    let hit = reader.was_hit();
                    assert_eq!(got, expected, "{read} behind {change}, hit: {hit}");
                }
            }
        }
    }
    place.mirrors_again(&READS, change);
    for n in 1..=BEHIND {
        client.run(&format!("update t set n = n + {n} where id = 7"));
        for read in READS {
            let expected = beside.unheard_rows(read);
            let got = other.unheard_rows(read);
            let hit = other.was_hit();
            assert_eq!(got, expected, "{read} behind {change} and an update, hit: {hit}");
        }
    }
    place.mirrors_again(&READS, change);
    assert_eq!(place.figure("mismatches_total"), 0);
}

#[test]
fn trap_c07_tables_are_changed_through_the_gateway() {
    each(true);
}

#[test]
fn trap_c07_tables_are_changed_beside_the_gateway() {
    each(false);
}

fn each(through: bool) {
    std::thread::scope(|scope| {
        // Some wait for what is looked up every few seconds.
        for changed in CHANGES {
            scope.spawn(move || changes(changed, through));
        }
    });
}

#[test]
fn trap_c05_values_that_are_not_told_because_they_stay_are_not_lost() {
    const READS: [&str; 2] = [
        "select n, big from t where id = 1 and id < {}",
        "select big, n from t where n between 0 and 1000000 and id < {} order by n, id",
    ];
    for identity in ["default", "full", "using index t_both"] {
        let place = Place::start(&format!(
            "create table t(id int primary key, n int not null, big text);
             alter table t alter column big set storage external;
             create unique index t_both on t (id, n);
             insert into t select g, g, repeat(chr(64 + g), 9000) from generate_series(1, 10) g;
             alter table t replica identity {identity}"
        ));
        place.mirrors(&READS);
        let (mut client, mut beside) = (place.client(), place.beside());
        let mut hits = 0;
        for n in 1..=60 {
            client.run(&match n % 5 {
                0 => format!("update t set big = repeat('{n}', 5000) where id = 1"),
                1 => "update t set id = id + 100 where id = 2".to_owned(),
                2 => "update t set id = id - 100 where id = 102".to_owned(),
                3 => "update t set big = null where id = 3; update t set n = n + 1 where id = 3"
                    .to_owned(),
                _ => format!("update t set n = n + {n} where id = 1"),
            });
            for read in READS {
                let expected = beside.unheard_rows(read);
                let got = client.unheard_rows(read);
                let hit = client.was_hit();
                assert!(got == expected, "{identity}, {n}, {read}, hit: {hit}");
                hits += usize::from(hit);
            }
        }
        assert!(hits >= 20, "{identity}: only {hits} answers by mirrors");
        place.mirrors_again(&READS, identity);
    }
}
