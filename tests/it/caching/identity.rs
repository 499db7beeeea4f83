//! What the stream says of rows as they were: keys only, values that are left out, nothing at all.

use super::place::{Cached, Place, KNOWN_WITHIN};
use crate::kit::wait;

/// Answers of a statement go on being right whatever is written, and come from the cache between.
pub(super) fn follows(place: &Place, reads: &[&str], writes: &[&str]) {
    let mut beside = place.beside();
    let mut through = place.client();
    for read in reads {
        through.warm(read);
    }
    for (at, write) in writes.iter().enumerate() {
        if at % 2 == 0 {
            beside.run(write);
        } else {
            through.run(write);
        }
        for read in reads {
            let expected = beside.rows(read);
            let mut last = None;
            let right = wait::within(KNOWN_WITHIN, || {
                let got = through.rows(read);
                let right = got == expected;
                last = Some(got);
                right.then_some(())
            });
            assert!(right.is_some(), "{read} behind {write}: {last:?} and not {expected:?}");
            assert_eq!(through.warm(read), expected, "{read} behind {write}");
        }
    }
}

const WRITES: [&str; 12] = [
    "update t set grp = 6 where id = 1",
    "update t set grp = 5 where id = 1",
    "update t set grp = 6 where id = 3",
    "delete from t where id = 2",
    "insert into t values (2, 5, 'b', 22)",
    "update t set id = 20 where id = 2",
    "update t set id = 2, grp = 6 where id = 20",
    "update t set n = 50 where id = 4",
    "update t set n = 1 where id = 4",
    "delete from t where grp = 6",
    "insert into t select g, g % 3 + 4, 'c', g from generate_series(100, 130) g",
    "delete from t",
];

const READS: [&str; 7] = [
    "select id, n from t where grp = 5 order by id",
    "select count(*) from t where grp = 6",
    "select count(*) from t where grp in (4, 6)",
    "select id from t where n between 20 and 60 order by id",
    "select n from t where id = 2",
    "select sum(n) from t",
    "select id from t where grp = 5 and note = 'b' order by id",
];

const ROWS: &str =
    "insert into t values (1, 5, 'a', 10), (2, 5, 'b', 20), (3, 6, 'a', 30), (4, 5, 'b', 40)";

#[test]
fn trap_c04_updates_that_tell_no_old_row() {
    let table = "create table t(id int primary key, grp int, note text, n int)";
    let place = Place::start(&format!("{table}; {ROWS}"));
    follows(&place, &READS, &WRITES);
}

#[test]
fn trap_c04_updates_under_replica_identity_full() {
    let table = "create table t(id int primary key, grp int, note text, n int);
        alter table t replica identity full";
    let place = Place::start(&format!("{table}; {ROWS}"));
    follows(&place, &READS, &WRITES);
}

#[test]
fn trap_c04_updates_under_an_index_as_identity() {
    let table =
        "create table t(id int not null unique, grp int, note text, n int, primary key (id));
        create unique index other on t(id, n) ; alter table t alter n set not null;
        alter table t replica identity using index other";
    let place = Place::start(&format!("{table}; {ROWS}"));
    follows(&place, &READS, &WRITES);
}

#[test]
fn trap_c05_values_that_are_too_long_to_be_told_again() {
    for identity in ["default", "full"] {
        let place = Place::start(&format!(
            "create table t(id int primary key, big text, other text, n int);
             alter table t alter big set storage external, alter other set storage external;
             alter table t replica identity {identity};
             insert into t select g, repeat(chr(96 + g), 2600), repeat(chr(96 + g), 2400), g
                 from generate_series(1, 5) g"
        ));
        let big = |letter: &str| letter.repeat(2600);
        let reads = [
            format!("select id, n from t where big = '{}' order by id", big("a")),
            format!("select id, n from t where big = '{}' and n > 0 order by id", big("b")),
            format!(
                "select id, n from t where big in ('{}', '{}') order by id",
                big("c"),
                big("z")
            ),
            "select length(big), n from t where id = 1".to_owned(),
            "select md5(other), n from t where id = 2".to_owned(),
            format!("select count(*) from t where other = '{}'", "b".repeat(2400)),
        ];
        let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
        let writes = [
            "update t set n = n + 1".to_owned(),
            "update t set n = n + 1 where id = 1".to_owned(),
            format!("update t set big = '{}' where id = 1", big("z")),
            "update t set n = n + 1 where id = 3".to_owned(),
            "update t set id = 30 where id = 3".to_owned(),
            "update t set other = 'short' where id = 2".to_owned(),
            format!("update t set big = '{}' where id = 2", big("a")),
            "delete from t where id = 30".to_owned(),
            "update t set n = -n".to_owned(),
        ];
        let writes: Vec<&str> = writes.iter().map(String::as_str).collect();
        follows(&place, &reads, &writes);
    }
}

#[test]
fn trap_c06_tables_without_identity_are_not_touched() {
    let place = Place::start(
        "create table bare(id int, n int); insert into bare values (1, 1);
         create table nothing(id int primary key, n int); insert into nothing values (1, 1);
         alter table nothing replica identity nothing;
         create table later(id int primary key, n int); insert into later values (1, 1)",
    );
    let mut client = place.client();
    let mut beside = place.beside();
    for table in ["bare", "nothing"] {
        client.never_hits(&format!("select n from {table} where id = 1"));
        beside.run(&format!("update {table} set n = n + 1"));
        assert_eq!(client.one(&format!("select n from {table} where id = 1")), "2");
        beside.run(&format!("delete from {table}"));
    }
    let read = "select n from later where id = 1";
    client.warm(read);
    // While nobody has noticed yet the owner may be refused, but not for long.
    beside.run("alter table later drop constraint later_pkey");
    wait::until("the table to be left alone", || {
        beside.query("update later set n = 7")[0].tag == b'C'
    });
    let (mut asked, mut hits) = (0, 0);
    for n in 8..200 {
        beside.run(&format!("update later set n = {n}"));
        // Nobody tells it, so nobody else may answer.
        let got = client.one("select n from later where id = 1");
        assert_eq!(
            got,
            n.to_string(),
            "hit: {}, after {asked} reads, {hits} hits",
            client.was_hit()
        );
        client.one(read);
        (asked, hits) = (asked + 1, hits + usize::from(client.was_hit()));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(hits, 0, "of a table that is not followed");
    beside.run("alter table later add primary key (id)");
    assert_eq!(client.warm(read), [[Some("199".to_owned())]]);
    beside.run("update later set n = 8");
    place.becomes(&mut client, read, "8");
}

#[test]
fn trap_c06_tables_that_are_not_in_the_publication_are_not_cached() {
    let place = Place::start("");
    let mut client = place.client();
    let mut beside = place.superuser();
    // Not the cache user's, so nobody adds it.
    beside.run(
        "create table foreign_one(id int primary key, n int); grant select on foreign_one to app",
    );
    beside.run("insert into foreign_one values (1, 0)");
    // New, so it is added after a while.
    client.run("create table fresh(id int primary key, n int); insert into fresh values (1, 0)");
    let mut hits = [0, 0];
    for n in 1..=600 {
        for (at, table) in ["foreign_one", "fresh"].into_iter().enumerate() {
            beside.run(&format!("update {table} set n = {n}"));
            // What PostgreSQL has shown is the least that the cache may show.
            let read = format!("select n from {table} where id = 1");
            assert_eq!(client.one(&format!("{read} and random() < 2")), n.to_string());
            for _ in 0..2 {
                let got = client.one(&read);
                let hit = client.was_hit();
                assert_eq!(got, n.to_string(), "{table}, hit: {hit}");
                hits[at] += usize::from(hit);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(hits[0], 0);
    client.warm("select n from fresh where id = 1");
}

#[test]
fn rows_that_are_equal_in_another_dress_are_found() {
    let place = Place::start(
        "create table t(id int primary key, c char(6), m numeric, f float8, b bytea, u uuid, s text,
            d date, ts timestamptz, o bool);
         alter table t replica identity full;
         insert into t values (1, 'ab', 1.0, -0.0, '\\x00ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
            'x', '2024-02-29', '2024-02-29 12:00+00', true), (2, 'cd', 'NaN', 'NaN', '', null, '', null, null, null)",
    );
    let reads = [
        "select count(*) from t where c = 'ab'",
        "select count(*) from t where c = 'ab  '",
        "select count(*) from t where m = 1",
        "select count(*) from t where m = 1.000",
        "select count(*) from t where m = 10e-1",
        "select count(*) from t where m = 'NaN'",
        "select count(*) from t where f = 0",
        "select count(*) from t where f = 'nan'",
        "select count(*) from t where b = '\\x00FF'",
        "select count(*) from t where u = 'A0EEBC999C0B4EF8BB6D6BB9BD380A11'",
        "select count(*) from t where d = '2024-02-29'",
        "select count(*) from t where o = 't'",
        "select count(*) from t where o",
        "select count(*) from t where id in (1, null)",
        "select count(*) from t where id = 1 or id = 2 or id between 1 and 2",
        "select count(*) from t where s = ''",
        "select sum(m) from t where id = 99",
    ];
    let mut client = place.client();
    let kept: Vec<&str> = reads
        .into_iter()
        .filter(|read| {
            let told = client.query(&format!("explain create cache from {read}"));
            told[1].tag == b'D' && told[1].values()[0].as_deref() == Some("Cacheable: yes")
        })
        .collect();
    assert!(kept.len() >= 10, "{kept:?}");
    let writes = [
        "delete from t where id = 1",
        "insert into t values (1, 'ab   ', 1.00, 0, '\\x00ff', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '', '2024-02-29', now(), true)",
        "update t set c = 'zz', m = 2, f = 1, b = '\\x01', u = null, d = null, o = false",
        "update t set c = 'ab', m = 1.0000, f = '-0', b = '\\x00ff', u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', d = '2024-02-29', o = true where id = 2",
        "update t set m = 'NaN', f = 'NaN'",
        "delete from t",
    ];
    follows(&place, &kept, &writes);
}
