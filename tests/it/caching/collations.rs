//! C12: what is equal, and what comes first, is said by a collation.

use super::place::{Cached, Place};
use crate::traps::batch::Batch;

const SET_UP: &str = "
    create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create collation bare (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    create domain folded_text as text collate folded;
    create table t(
        id int primary key,
        d text, c text collate \"C\", i text collate \"en-US-x-icu\",
        f text collate folded, v varchar(9) collate folded, p char(4) collate bare, o folded_text);
    alter table t replica identity full;
    create table u(id int primary key, d text, f text collate folded);
    alter table u replica identity full;
    create view folded_view as select id, d collate folded as s from t;
    insert into t select g, x, x, x, x, x, x, x from unnest(
        array['abc', 'abd', 'b', 'a b', 'z', '\u{e9}']) with ordinality as x(x, g);
    insert into u values (1, 'abc', 'abc'), (2, 'x', 'x')";

/// Each once for every column.
const BY_COLUMN: [&str; 9] = [
    "select id from t where {} = 'abc' order by id",
    "select id from t where {} in ('ABC', 'q') order by id",
    "select id from t where {} = any (array['aBc', null]) order by id",
    "select id from t where {} < 'abd' order by id",
    "select id from t where {} between 'ab' and 'b' order by id",
    "select id from t where {} >= 'B' or {} = 'abc' order by id",
    "select id from t order by {}, id limit 3",
    "select count(distinct {}) from t",
    "select count(*) from t where ({}, id) in (('abc', 1), ('ABC', 20))",
];

const COLUMNS: [&str; 7] = ["d", "c", "i", "f", "v", "p", "o"];

const READS: [&str; 14] = [
    "select id from t where d = 'abc' collate folded order by id",
    "select id from t where d collate folded = 'abc' order by id",
    "select id from t where d in ('abc', 'x' collate folded) order by id",
    "select id from t where (d, id) = ('abc' collate folded, 20)",
    "select id from t where f = 'abc' collate \"C\" order by id",
    "select id from t where d < 'abd' collate \"en-US-x-icu\" order by id",
    "select id from folded_view where s = 'abc' order by id",
    "select id from (select id, f as d from t) x where d = 'abc' order by id",
    "select t.id, u.id from t join u on t.f = u.d order by 1, 2",
    "select t.id, u.id from t join u on t.d = u.f where t.d = 'abc' order by 1, 2",
    "select count(*) from t join u using (d) where d = 'abc'",
    "select count(*) from t join u using (f) where f = 'abc'",
    "select id from t where f in (select d from u) order by id",
    "select min(f collate \"C\"), max(c), min(i), max(d) from t",
];

const WRITES: [&str; 12] = [
    "insert into t values (20, 'ABC', 'ABC', 'ABC', 'ABC', 'ABC', 'ABC', 'ABC')",
    "update t set d = 'Abc', c = 'Abc', i = 'Abc', f = 'Abc', v = 'Abc', p = 'Abc', o = 'Abc' \
     where id = 20",
    "update t set f = 'abx', d = 'abx' where id = 1",
    "insert into t values (21, '\u{e0}bc', '\u{e0}bc', '\u{e0}bc', '\u{e0}bc', '\u{e0}bc', '\u{e0}bc', '\u{e0}bc')",
    "update u set d = 'aBC' where id = 2",
    "update u set f = 'aBC' where id = 2",
    "delete from t where id = 20",
    "update t set i = 'B', c = 'B', d = 'B' where id = 4",
    "insert into t (id, d, f) values (22, 'ABC', 'ABC')",
    "update t set p = 'ABC ', v = 'ABC' where id = 22",
    "update t set o = 'aBc' where id = 5",
    "delete from t where f = 'abc'",
];

#[test]
fn trap_c12_what_a_collation_says_is_equal_or_less_is_never_stale() {
    let place = Place::start(SET_UP);
    let by_column = COLUMNS
        .iter()
        .flat_map(|column| BY_COLUMN.iter().map(move |read| read.replace("{}", column)));
    let reads: Vec<String> = by_column.chain(READS.map(str::to_owned)).collect();
    place.compares(&reads, &WRITES.map(str::to_owned));
}

#[test]
fn trap_c12_only_what_tells_every_byte_apart_is_watched_by_value() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    for column in COLUMNS {
        let read = format!("select id from t where {column} = 'abc'");
        let plan = client.rows(&format!("explain create cache from {read}"));
        let plan: Vec<String> = plan.into_iter().flatten().flatten().collect();
        let precise = format!("table public.t: rows where {column} = $1");
        let by_value = ["d", "c", "i"].contains(&column);
        assert_eq!(plan.contains(&precise), by_value, "{read}: {plan:?}");
        let range = format!("explain create cache from select id from t where {column} < 'abc'");
        let plan: Vec<String> = client.rows(&range).into_iter().flatten().flatten().collect();
        assert!(plan.iter().any(|line| line.ends_with(": any row")), "{range}: {plan:?}");
    }
}

#[test]
fn trap_c12_values_of_parameters_are_folded_too() {
    let place = Place::start(SET_UP);
    let mut client = place.client();
    let mut beside = place.beside();
    for column in COLUMNS {
        let sql = format!("select count(*) from t where {column} = $1");
        let asked = |value: &str| Batch::new().parse("", &sql).bind("", &[value]).execute().sync();
        for write in [
            format!("insert into t (id, {column}) values (30, 'ABC')"),
            format!("update t set {column} = 'aBc' where id = 30"),
            "delete from t where id = 30".to_owned(),
        ] {
            for value in ["abc", "ABC", "aBc", "a\u{301}bc"] {
                client.warm_by(&sql, |client| asked(value).answer(client));
            }
            beside.run(&write);
            // From here on it may see nothing older.
            client.run("select random()");
            for value in ["abc", "ABC", "aBc", "a\u{301}bc"] {
                let expected = asked(value).answer(&mut beside);
                let got = asked(value).answer(&mut client);
                assert_eq!(got, expected, "{sql} of {value} behind {write}");
            }
        }
    }
}
