//! Commits, and who sees them when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::place::{Cached, Place};
use crate::kit::wait;

const TABLE: &str = "create table t(id int primary key, n int not null, note text);
    insert into t select g, 0 from generate_series(1, 20) g";

#[test]
fn trap_c01_a_commit_that_is_told_and_not_yet_visible_is_not_lost_by_a_later_fill() {
    let lines = ["synchronous_standby_names = 'nobody'", "synchronous_commit = local"];
    let place = Place::start_alone(&lines, TABLE);
    let mut reader = place.client();
    const READ: &str = "select n from t where id = 1";
    reader.warm(READ);
    let mut writer = place.beside();
    writer.run("set synchronous_commit = on");
    let pid = writer.one("select pg_backend_pid()");
    let writing = std::thread::spawn(move || {
        writer.run("update t set n = 1 where id = 1");
        writer
    });
    let mut watcher = place.superuser();
    let waits = format!(
        "select count(*) from pg_stat_activity where pid = {pid} and wait_event = 'SyncRep'"
    );
    wait::until("a commit that waits for its standby", || watcher.one(&waits) == "1");
    wait::until("the end of what was kept", || {
        assert_eq!(reader.one(READ), "0", "nobody sees it yet");
        !reader.was_hit()
    });
    let end = Instant::now() + Duration::from_millis(300);
    while Instant::now() < end {
        assert_eq!(reader.one(READ), "0", "nobody sees it yet");
        assert!(!reader.was_hit(), "what is read now would be kept for ever");
    }
    watcher.run(&format!("select pg_cancel_backend({pid})"));
    let mut writer = writing.join().expect("the writer");
    assert_eq!(writer.notices.len(), 1, "it had been committed all the same");
    for _ in 0..20 {
        assert_eq!(reader.one(READ), "1");
    }
    assert_eq!(reader.warm(READ), [[Some("1".to_owned())]]);
    writer.run("set synchronous_commit = local; update t set n = 2 where id = 1");
    place.becomes(&mut reader, READ, "2");
}

#[test]
fn trap_c02_a_commit_of_several_rows_and_tables_is_seen_whole_or_not_at_all() {
    let place = Place::start(
        "create table a(id int primary key, n int); create table b(id int primary key, n int);
         insert into a select g, 0 from generate_series(1, 5) g; insert into b select * from a",
    );
    const READS: [&str; 3] = [
        "select min(n), max(n) from (select n from a where id in (1, 4) union all select n from b where id = 2) x",
        "select min(n), max(n) from (select n from a union all select n from b) x",
        "select a.n, b.n from a, b where a.id = 3 and b.id = 5",
    ];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for through in [true, false] {
            let (place, stop) = (&place, &stop);
            scope.spawn(move || {
                let mut writer = if through { place.client() } else { place.beside() };
                while !stop.load(Ordering::Relaxed) {
                    writer.run("begin; update a set n = n + 1; savepoint s; update b set n = n + 1; commit");
                    std::thread::sleep(Duration::from_millis(4));
                }
            });
        }
        let readers = [0, 1, 2].map(|at| {
            let place = &place;
            scope.spawn(move || {
                let mut reader = place.client();
                let (mut hits, mut last) = (0, 0);
                let end = Instant::now() + Duration::from_secs(20);
                let mut rounds = 0;
                while (hits < 300 || rounds < 1000) && Instant::now() < end {
                    let rows = reader.rows(READS[at]);
                    assert_eq!(rows[0][0], rows[0][1], "half a commit, hit: {}", reader.was_hit());
                    let now: i64 =
                        rows[0][0].as_ref().expect("a number").parse().expect("a number");
                    assert!(now >= last, "from {last} back to {now}, hit: {}", reader.was_hit());
                    last = now;
                    hits += usize::from(reader.was_hit());
                    rounds += 1;
                }
                hits
            })
        });
        let hits = readers.map(|reader| reader.join());
        stop.store(true, Ordering::Relaxed);
        for hits in hits {
            let hits = hits.expect("a reader");
            assert!(hits >= 30, "only {hits} answers from the cache");
        }
    });
}

#[test]
fn trap_c03_what_postgresql_has_shown_is_never_taken_back_by_the_cache() {
    let place = Place::start(TABLE);
    const READ: &str = "select n from t where id = 1";
    // Volatile, so PostgreSQL itself answers it.
    const FRESH: &str = "select n from t where id = 1 and random() < 2";
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = place.beside();
            while !stop.load(Ordering::Relaxed) {
                writer.run("update t set n = n + 1 where id = 1");
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let reading = scope.spawn(|| {
            let mut reader = place.client();
            let (mut last, mut hits) = (0, 0);
            for round in 0..600 {
                let sql = if round % 4 == 0 { FRESH } else { READ };
                let now: i64 = reader.one(sql).parse().expect("a number");
                let hit = reader.was_hit();
                assert!(now >= last, "round {round}, hit: {hit}: from {last} back to {now}");
                last = now;
                hits += usize::from(hit);
            }
            hits
        });
        let hits = reading.join();
        stop.store(true, Ordering::Relaxed);
        let hits = hits.expect("the reader");
        assert!(hits >= 20, "only {hits} answers from the cache");
    });
}

#[test]
fn trap_c03_large_transactions_are_told_while_they_run_and_count_from_their_commit() {
    let place = Place::start_alone(&["logical_decoding_work_mem = 64kB"], TABLE);
    let mut reader = place.client();
    const READ: &str = "select n from t where id = 1";
    const ALL: &str = "select sum(n) from t";
    reader.warm(READ);
    reader.warm(ALL);
    const MANY: &str =
        "insert into t select g, 0, repeat('x', 200) from generate_series(1000, 9000) g";
    let mut writer = place.beside();
    for end in ["commit", "rollback"] {
        writer.run("begin; savepoint a");
        writer.run("update t set n = n + 100 where id = 1");
        writer.run("rollback to a; savepoint b");
        writer.run("update t set n = n + 1 where id = 1");
        writer.run(MANY);
        writer.run("release b; delete from t where id >= 1000");
        assert_eq!(reader.warm(READ), [[Some(if end == "commit" { "0" } else { "1" }.to_owned())]]);
        writer.run(end);
        place.becomes(&mut reader, READ, "1");
        place.becomes(&mut reader, ALL, "1");
    }
    let mut own = place.client();
    own.run("begin; update t set n = 7 where id = 1");
    own.run(&MANY.replace("1000", "10000").replace("9000", "18000"));
    own.run("delete from t where id >= 10000; commit");
    assert_eq!(own.one(READ), "7");
    assert_eq!(own.one(ALL), "7");
    assert_eq!(own.warm(ALL), [[Some("7".to_owned())]]);
}
