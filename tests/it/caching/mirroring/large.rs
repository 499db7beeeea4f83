//! Transactions that are told while they run.

use super::super::place::{Cached, Place};
use super::Mirrored;
use crate::kit::WireClient;

const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, 'x' from generate_series(1, 500) g";

const POINT: &str = "select n, s from t where id = 1 and id < {}";
const ALL: &str = "select count(*), sum(n), max(id) from t where id > 0 and n < {}";
const READS: [&str; 2] = [POINT, ALL];

/// Over 64 MB in the stream.
const MANY: &str =
    "insert into t select g, 1, repeat('m', 700) from generate_series(1001, 101000) g";

fn compare(reader: &mut WireClient, beside: &mut WireClient, what: &str) -> usize {
    let mut hits = 0;
    for read in READS {
        let expected = beside.unheard_rows(read);
        let got = reader.unheard_rows(read);
        let hit = reader.was_hit();
        assert_eq!(got, expected, "{what}: {read}, hit: {hit}");
        hits += usize::from(hit);
    }
    hits
}

#[test]
fn large_transactions_count_from_their_commit_and_not_at_all_if_they_are_undone() {
    let place = Place::start_alone(&["logical_decoding_work_mem = 64kB"], SET_UP);
    place.mirrors(&READS);
    let (mut reader, mut beside) = (place.client(), place.beside());
    let mut writer = place.client();
    let mut hits = 0;
    for end in ["rollback", "commit", "rollback", "commit"] {
        writer.run("begin; savepoint a");
        writer.run("update t set n = n + 100");
        writer.run(MANY);
        writer.run("rollback to a; savepoint b");
        hits += compare(&mut reader, &mut beside, "undone in part");
        writer.run("update t set n = n + 1, s = 'y' where id <= 300; savepoint c");
        writer.run(MANY);
        writer.run("delete from t where id between 2000 and 90000; release c");
        hits += compare(&mut reader, &mut beside, "not ended");
        writer.run("update t set n = n + 1 where id > 1000; release b");
        writer.run(end);
        for _ in 0..20 {
            hits += compare(&mut reader, &mut beside, end);
            hits += compare(&mut writer, &mut beside, end);
        }
        place.mirrors_again(&READS, end);
        writer.run("delete from t where id > 1000");
        hits += compare(&mut writer, &mut beside, "deleted");
    }
    place.mirrors_again(&READS, "all");
    assert!(hits >= 50, "only {hits} answers by mirrors");
    assert_eq!(place.figure("mismatches_total"), 0);
}
