//! What is written is seen: one's own writes, and what others were told of.

use super::super::place::{Cached, Place};
use super::Mirrored;
use crate::kit::WireClient;

const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, 'x' || g from generate_series(1, 200) g";

const POINT: &str = "select n from t where id = 1 and id < {}";
const RANGE: &str = "select sum(n), count(*) from t where id between 1 and 10 and n < {}";

const ROUNDS: i64 = 400;

/// Reads behind every write; how many came from mirrors.
fn reads_behind(reader: &mut WireClient, n: i64, what: &str) -> usize {
    let point = reader.unheard_one(POINT);
    let hit = reader.was_hit();
    assert_eq!(point, n.to_string(), "{what}, {n}, hit: {hit}");
    let range = reader.unheard_rows(RANGE);
    let again = reader.was_hit();
    let expected = [[Some(n.to_string()), Some("10".to_owned())]];
    assert_eq!(range, expected, "{what}, {n}, hit: {again}");
    usize::from(hit) + usize::from(again)
}

#[test]
fn writers_and_others_see_what_was_acknowledged() {
    let place = Place::start(SET_UP);
    place.mirrors(&[POINT, RANGE]);
    let (mut writer, mut other) = (place.client(), place.client());
    let mut hits = 0;
    for n in 1..=ROUNDS {
        match n % 4 {
            0 => writer.run(&format!("begin; update t set n = {n} where id = 1; commit")),
            1 => drop(writer.extended(&format!("update t set n = {n} where id = 1"), &[])),
            2 => writer.run(&format!(
                "begin; delete from t where id = 1; insert into t values (1, {n}, 'y'); commit"
            )),
            _ => writer.run(&format!("set synchronous_commit = off; update t set n = {n} where id = 1; reset synchronous_commit")),
        }
        hits += reads_behind(&mut writer, n, "its own");
        hits += reads_behind(&mut other, n, "another's");
    }
    assert!(hits >= 400, "only {hits} answers by mirrors");
}

#[test]
fn strict_sees_what_was_committed_beside_the_gateway() {
    let place = Place::start_with(SET_UP, |config| config.set("cache.freshness", "strict"));
    place.mirrors(&[POINT, RANGE]);
    let (mut writer, mut reader) = (place.beside(), place.client());
    let mut hits = 0;
    for n in 1..=ROUNDS {
        writer.run(&format!("update t set n = {n} where id = 1"));
        hits += reads_behind(&mut reader, n, "strict");
    }
    assert!(hits >= 100, "only {hits} answers by mirrors");
}

#[test]
fn what_postgresql_has_shown_is_not_taken_back() {
    let place = Place::start(SET_UP);
    place.mirrors(&[POINT]);
    let (mut writer, mut reader) = (place.beside(), place.client());
    let mut hits = 0;
    for n in 1..=ROUNDS {
        writer.run(&format!("update t set n = {n} where id = 1"));
        // Volatile: PostgreSQL itself answers.
        let seen = reader.one("select n from t where id = 1 and random() < 2");
        assert_eq!(seen, n.to_string());
        let got = reader.unheard_one(POINT);
        let hit = reader.was_hit();
        assert_eq!(got, seen, "hit: {hit}");
        hits += usize::from(hit);
    }
    assert!(hits >= 50, "only {hits} answers by mirrors");
}
