//! C1 and C2: commits are shown when others see them, and whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::super::place::{Cached, Place};
use super::Mirrored;
use crate::kit::{wait, WireClient};

const READ: &str = "select n from t where id = 1 and id < {}";
const NEW: &str = "select n from u where id = 1 and id < {}";

/// Looks while nobody may see a commit.
const LOOKS: usize = 500;

/// A write that waits for a standby; the session's process, and its end.
fn held(place: &Place, sql: &'static str) -> (String, std::thread::JoinHandle<WireClient>) {
    let mut writer = place.beside();
    writer.run("set synchronous_commit = on");
    let pid = writer.one("select pg_backend_pid()");
    let writing = std::thread::spawn(move || {
        writer.run(sql);
        writer
    });
    let waits = format!(
        "select count(*) from pg_stat_activity where pid = {pid} and wait_event = 'SyncRep'"
    );
    let mut watcher = place.superuser();
    wait::until("a commit that waits for its standby", || watcher.one(&waits) == "1");
    (pid, writing)
}

#[test]
fn trap_c01_mirrors_do_not_show_what_nobody_sees_yet() {
    let lines = ["synchronous_standby_names = 'nobody'", "synchronous_commit = local"];
    let place = Place::start_alone(
        &lines,
        "create table t(id int primary key, n int not null);
         insert into t select g, 0 from generate_series(1, 20) g;
         create table u(id int primary key, n int not null); insert into u select * from t",
    );
    place.mirrors(&[READ]);
    let mut reader = place.client();
    let (pid, writing) =
        held(&place, "begin; update t set n = 1 where id = 1; update u set n = 1; commit");
    for _ in 0..LOOKS {
        // A mirror of the second one is wanted, and would be copied, only now.
        for read in [READ, NEW] {
            let seen = reader.unheard_one(read);
            assert_eq!(seen, "0", "nobody sees it yet, hit: {}", reader.was_hit());
        }
    }
    place.superuser().run(&format!("select pg_cancel_backend({pid})"));
    let mut writer = writing.join().expect("the writer");
    assert_eq!(writer.notices.len(), 1, "it had been committed all the same");
    writer.run("set synchronous_commit = local");
    place.mirrors_again(&[READ, NEW], "a commit that others see now");
    for n in 2..50 {
        writer.run(&format!("update t set n = {n} where id = 1; update u set n = {n}"));
    }
    place.mirrors_again(&[READ, NEW], "more");
}

#[test]
fn trap_c02_mirrors_show_commits_of_several_rows_and_tables_whole() {
    let place = Place::start(
        "create table a(id int primary key, n int not null);
         create table b(id int primary key, n int not null);
         insert into a select g, 0 from generate_series(1, 50) g; insert into b select * from a",
    );
    const READS: [&str; 3] = [
        "select min(n), max(n) from a where id < {}",
        "select a.n, b.n from a join b on a.id = b.id where a.id = 7 and b.id < {}",
        "select min(a.n), max(b.n) from a, b where a.id = b.id and a.id between 3 and 30 and b.id < {}",
    ];
    place.mirrors(&READS);
    let (stop, hits) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for through in [true, false] {
            let (place, stop, hits) = (&place, &stop, &hits);
            scope.spawn(move || {
                let mut writer = if through { place.client() } else { place.beside() };
                while !stop.load(Ordering::Relaxed) {
                    let before = hits.load(Ordering::Relaxed);
                    writer.run(
                        "begin; update a set n = n + 1; savepoint s; update b set n = n + 1; commit",
                    );
                    // However slow the machine is, mirrors come to answer between two commits.
                    while hits.load(Ordering::Relaxed) == before && !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                }
            });
        }
        let readers = READS.map(|read| {
            let (place, hits) = (&place, &hits);
            scope.spawn(move || {
                let mut reader = place.client();
                let mut last = 0;
                let end = Instant::now() + wait::DEADLINE;
                while hits.load(Ordering::Relaxed) < 300 && Instant::now() < end {
                    let rows = reader.unheard_rows(read);
                    let hit = reader.was_hit();
                    assert_eq!(rows[0][0], rows[0][1], "half a commit, hit: {hit}");
                    let now: i64 =
                        rows[0][0].as_ref().expect("a number").parse().expect("a number");
                    assert!(now >= last, "from {last} back to {now}, hit: {hit}");
                    last = now;
                    hits.fetch_add(usize::from(hit), Ordering::Relaxed);
                }
            })
        });
        let ended = readers.map(|reader| reader.join());
        stop.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|reader| reader.expect("a reader"));
        // Whoever is made to wait too often stops waiting for a while: not each has its share.
        let hits = hits.load(Ordering::Relaxed);
        assert!(hits >= 300, "only {hits} answers by mirrors");
    });
}
