//! Who waits for the stream is not kept waiting by what others do.

use std::sync::atomic::{AtomicBool, Ordering};

use super::place::{Cached, Place};

/// It takes longer than the stream is behind, so that waiting is worth it.
const READ: &str = "select count(*), sum(length(s)) from t where n > 5";

/// Fewer than are looked at to find out whether waiting is worth it.
const READS: u64 = 50;

/// Ends the writers, also where the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What another database of the cluster writes is in the log as well, and the stream, which says
/// nothing of it, has to get past it.
#[test]
fn strict_reads_hit_while_another_database_writes() {
    let place = Place::start_alone_with(
        &[],
        "create table t(id int primary key, n int not null, s text);
         insert into t select g, g, repeat('x', 200) from generate_series(1, 30000) g",
        |config| config.set("cache.freshness", "strict"),
    );
    let other = place.cluster().database().name;
    let mut superuser = place.cluster().superuser(&other);
    superuser.run("create table w(id int primary key, n int, s text)");
    superuser.run("insert into w values (1, 0, '')");
    let mut client = place.client();
    client.warm(READ);
    let before = place.figure("hits_total");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = Ended(&done);
        for write in [
            "update w set n = n + 1 where id = 1",
            "begin; insert into w select g, g, repeat('y', 200) from generate_series(2, 20000) g;
             rollback",
        ] {
            let mut writer = place.cluster().superuser(&other);
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    writer.run(write);
                }
            });
        }
        for _ in 0..READS {
            client.rows(READ);
        }
    });
    let hits = place.figure("hits_total") - before;
    assert!(hits * 5 >= READS * 4, "{hits} of {READS}");
}

#[test]
fn who_does_not_wait_is_served_a_little_later() {
    let place = Place::start_with(
        "create table t(id int primary key, n int); insert into t values (1, 1)",
        |config| config.set("cache.wait", "0s"),
    );
    const READ: &str = "select n from t where id = 1";
    let mut client = place.client();
    client.warm(READ);
    for _ in 0..5 {
        // PostgreSQL has shown it something, and nobody knows how new that was.
        client.one("select random() < 2");
        let waits = place.figure("waits_total");
        client.warm(READ);
        assert_eq!(place.figure("waits_total"), waits);
    }
}
