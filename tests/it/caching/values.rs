//! C13: values that are equal though they are written otherwise, NULL, and answers to nothing.
//!
//! `tests/cache_check/random.rs` does the same with random tables.

use super::identity::follows;
use super::place::Place;

/// Types, each with groups of constants that are equal.
const EQUAL: [(&str, &[&[&str]]); 12] = [
    ("char(5)", &[&["'ab'", "'ab '", "'ab   '"], &["''", "' '"], &["' ab'"]]),
    ("varchar(5)", &[&["'ab'"], &["'ab '"], &["''"]]),
    ("numeric", &[&["1", "1.0", "1.000", "1e0"], &["0", "-0.0", "0.00"], &["'NaN'", "'nan'"]]),
    ("numeric(6, 2)", &[&["1.01", "1.005", "1.0100"], &["100", "1e2"]]),
    ("float8", &[&["0", "'-0'", "-0.0", "0e5"], &["'NaN'", "'nan'"], &["1.5", "15e-1"]]),
    ("real", &[&["0", "'-0'"], &["'NaN'"], &["'Infinity'", "'inf'"]]),
    ("bool", &[&["true", "'t'", "'yes'", "'1'"], &["false", "'off'", "'n'"]]),
    ("date", &[&["'2024-02-29'", "'20240229'", "'2024-2-29'"], &["'2024-03-01'"]]),
    (
        "timestamptz",
        &[
            &["'2024-02-29 12:00+00'", "'2024-02-29 14:00+02'", "'2024-02-29T12:00:00Z'"],
            &["'2024-02-29 12:00:00.5+00'"],
        ],
    ),
    (
        "uuid",
        &[&["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'"]],
    ),
    ("interval", &[&["'1 day'", "'24 hours'"], &["'30 days'", "'1 mon'"]]),
    ("int[]", &[&["'{1,2}'", "'{ 1, 2 }'", "array[1, 2]"], &["'{1,NULL}'"]]),
];

#[test]
fn trap_c13_what_is_equal_is_found_however_it_is_written() {
    for identity in ["full", "default"] {
        let tables: Vec<String> = EQUAL
            .iter()
            .enumerate()
            .map(|(at, (of, _))| {
                format!(
                    "create table t{at}(id int primary key, v {of}); \
                     alter table t{at} replica identity {identity}"
                )
            })
            .collect();
        let place = Place::start(&tables.join("; "));
        for (at, (_, groups)) in EQUAL.iter().enumerate() {
            let all: Vec<&str> = groups.iter().flat_map(|group| group.iter().copied()).collect();
            let table = format!("t{at}");
            let reads: Vec<String> = all
                .iter()
                .flat_map(|value| {
                    [
                        format!("select id, v from {table} where v = {value} order by id"),
                        format!("select count(*) from {table} where v in ({value}, null)"),
                        format!("select id from {table} where v >= {value} order by v, id"),
                    ]
                })
                .collect();
            let mut writes = Vec::new();
            for (id, value) in all.iter().enumerate() {
                writes.push(format!("insert into {table} values ({id}, {value})"));
                writes.push(format!("update {table} set v = {value} where id = 0"));
            }
            writes.push(format!("update {table} set v = null where id = 1"));
            writes.push(format!("delete from {table} where v = {}", all[0]));
            place.compares(&reads, &writes);
        }
    }
}

#[test]
fn trap_c13_nothing_has_no_sum_and_scales_are_postgresql_s() {
    let place = Place::start(
        "create table t(id int primary key, n int, b bigint, m numeric(8, 2), x numeric, f float8); \
         alter table t replica identity full; create table u(id int primary key, n int)",
    );
    follows(
        &place,
        &[
            "select sum(n), avg(n), min(n), max(n), count(n), count(*) from t",
            "select sum(b), avg(b), sum(m), avg(m), sum(x), avg(x), max(f) from t where id < 5",
            "select sum(n) from t where n = 7",
            "select coalesce(sum(m), 0), avg(m) from t where n in (1, 2, 7)",
            "select n, sum(m), avg(x) from t group by n order by n",
            "select count(*) from t having count(*) > 1",
            "select bool_and(n > 1), string_agg(n::text, ','), array_agg(n) from t where n > 5",
            "select sum(n) + 1, -sum(n), sum(n) / count(*) from t where id = 1 group by n",
            "select (select max(n) from u), (select sum(n) from u where u.id = 3) from t where id = 1",
            "select variance(n), stddev(m) from t",
        ],
        &[
            "insert into t values (1, 7, 7000000000, 1.50, 1.500, 0.5)",
            "insert into t values (2, null, null, null, null, null)",
            "insert into t values (3, 2, 1, 0.1, 1e-20, 'NaN'), (4, 1, 2, 100, 1.0, '-0')",
            "update t set m = 0.10, x = 0.10 where id = 3",
            "insert into u values (3, null)",
            "update u set n = 5",
            "update t set n = null where n = 7",
            "update t set x = 'NaN' where id = 4",
            "delete from t where id <> 2",
            "truncate t",
            "delete from u",
        ],
    );
}

#[test]
fn trap_c13_null_and_ranges_that_overlap() {
    let place = Place::start(
        "create table t(id int primary key, n int, s char(3)); create index on t (n); \
         alter table t replica identity full; \
         insert into t select g, nullif(g % 6, 5), chr(97 + g % 3) from generate_series(1, 30) g",
    );
    follows(
        &place,
        &[
            "select id from t where n in (1, null) order by id",
            "select count(*) from t where n not in (1, 2)",
            "select count(*) from t where n not in (1, null)",
            "select count(*), sum(n) from t where n between 1 and 3 or n between 2 and 4",
            "select count(*), sum(n) from t where n < 3 or n < 4 or n = 2 or n is null",
            "select count(*) from t where n = 2 or n = 2 or n in (2, 3)",
            "select id, n from t order by n, id limit 7",
            "select id, n from t order by n desc, id limit 7",
            "select id, n from t order by n nulls first, id desc limit 7",
            "select n, count(*) from t group by n order by n nulls first",
            "select id from t where n is not distinct from null order by id",
            "select id from t where (n = 1) is not false order by id",
            "select id from t where n = 3 and s = 'a' order by id",
            "select id from t where s in ('a ', null) and n >= 2 and n <= 3 order by id",
            "select count(*) from t where n between 4 and 1",
            "select count(*) from t where n >= 1 and n <= 3 and n <> 2",
        ],
        &[
            "insert into t values (31, 2, 'a'), (32, null, null)",
            "update t set n = 1 where id = 32",
            "update t set n = null where n = 3",
            "update t set s = 'a' where n between 2 and 3",
            "update t set n = 3 where id in (2, 4, 6)",
            "delete from t where n in (2, null)",
            "delete from t where n is null",
            "update t set n = n + 1",
        ],
    );
}
