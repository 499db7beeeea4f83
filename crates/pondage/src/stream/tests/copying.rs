//! Copies of tables: with what is told of the stream they are the tables, and where they can't be,
//! they fail soon and in words.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::Client;

use super::copied::{copy, limits, sources, Copied};
use super::following::table;
use super::rig::{connect, rows, until, Followed, Rig};
use crate::stream::Limits;

const TABLES: &str = "
    CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL, t text);
    CREATE TABLE entry (id int, at timestamptz, body bytea, sum numeric, PRIMARY KEY (id));
    CREATE TABLE idle (id int PRIMARY KEY, t text);";

const ROWS: &str = "
    INSERT INTO account SELECT i, i, repeat('x', i % 200) FROM generate_series(1, 3000) i;
    INSERT INTO entry SELECT i, now(), sha256(i::text::bytea), i / 7.0
      FROM generate_series(1, 2000) i;
    INSERT INTO idle VALUES (1, E'tab\\t line\\n back\\\\ \\\\N \\r\\b\\f\\x0b\\x01'), (2, NULL),
      (3, ''), (4, '\\N'), (5, '\\.'), (6, 'ä€😀');";

/// More than the server's and our own buffers hold.
const LARGE: &str = "
    CREATE TABLE large (id int PRIMARY KEY, t text);
    INSERT INTO large SELECT i, repeat('y', 1000) FROM generate_series(1, 20000) i;";

/// The copy and what is told of later transactions are the tables, when nobody writes any more.
async fn assert_same(rig: &Rig, followed: &Followed, copied: &Copied, names: &[&str]) {
    rig.told(followed).await;
    let copies = copied.look(|seen| seen.copies.clone());
    let oids: Vec<u32> = copied.look(|seen| seen.tables.iter().map(|table| table.oid).collect());
    let rebuilt = followed.mirror.rebuilt(copies, copied.has());
    for (name, oid) in names.iter().zip(&oids) {
        assert_eq!(rebuilt[oid], table(rig, name).await, "{name}");
    }
}

/// One transaction of a writer, which may be undone.
async fn write(sql: &Client, random: &mut StdRng) {
    let mut text = "BEGIN;".to_owned();
    for _ in 0..random.random_range(1..6) {
        let id = random.random_range(1..4000);
        let more = id + random.random_range(0..20);
        text.push_str(&match random.random_range(0..9) {
            0 => format!("INSERT INTO account VALUES ({id}, 0, 'new') ON CONFLICT DO NOTHING;"),
            1 => format!("UPDATE account SET n = n + 1 WHERE id BETWEEN {id} AND {more};"),
            2 => format!("DELETE FROM account WHERE id BETWEEN {id} AND {more};"),
            3 => format!("UPDATE account SET t = repeat('z', {more} % 300) WHERE id = {id};"),
            4 => format!(
                "INSERT INTO entry SELECT i FROM generate_series({id}, {more}) i
                 ON CONFLICT (id) DO UPDATE SET sum = coalesce(entry.sum, 0) - 1;"
            ),
            5 => format!("DELETE FROM entry WHERE id = {id};"),
            6 => format!("SAVEPOINT s; DELETE FROM entry WHERE id < {id}; ROLLBACK TO s;"),
            7 => format!("UPDATE account SET id = id + 10000 WHERE id = {id};"),
            _ => format!("SAVEPOINT s; UPDATE entry SET at = NULL WHERE id = {id}; RELEASE s;"),
        });
    }
    text.push_str(if random.random_range(0..8) == 0 { "ROLLBACK" } else { "COMMIT" });
    // Writers may stand in each other's way.
    if sql.batch_execute(&text).await.is_err() {
        sql.batch_execute("ROLLBACK").await.expect("an end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_and_the_stream_are_the_tables_while_others_write() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    let followed = rig.follow().await;
    rig.app(ROWS).await;
    let names = ["account", "entry", "idle"];
    for round in 0..8 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        let commits = Arc::new(AtomicUsize::new(0));
        for writer in 0..4 {
            let sql = connect(&rig.cluster, "app").await;
            let (stop, commits) = (stop.clone(), commits.clone());
            writers.spawn(async move {
                let mut random = StdRng::seed_from_u64(round * 10 + writer);
                while !stop.load(Ordering::Relaxed) {
                    write(&sql, &mut random).await;
                    commits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        until("writers", || commits.load(Ordering::Relaxed) > 20).await;
        let copied = Copied::default();
        copy(&rig, &followed, &names, &copied).await;
        copied.ended().await.expect("a copy");
        stop.store(true, Ordering::Relaxed);
        writers.join_all().await;
        assert_same(&rig, &followed, &copied, &names).await;
        assert_eq!(copied.look(|seen| seen.copies.values().next_back().map(Vec::len)), Some(6));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_told_and_not_visible_is_not_in_the_copy() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    let followed = rig.follow().await;
    rig.run("SET synchronous_commit = local").await;
    rig.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    rig.run("SELECT pg_reload_conf()").await;
    let other = connect(&rig.cluster, "app").await;
    // Sessions know the setting before commits heed it: one that changes nothing tells.
    let first = connect(&rig.cluster, "app").await;
    let waits =
        tokio::spawn(
            async move { while first.batch_execute("SELECT txid_current()").await.is_ok() {} },
        );
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    while rows(&other, waiting).await[0][0].as_deref() != Some("1") {}
    // The standby is waited for: the commit is told and not visible.
    let writing = tokio::spawn(async move {
        other.batch_execute("UPDATE account SET n = -1 WHERE id <= 10").await.expect("a commit");
    });
    until("the commit", || followed.mirror.look(|seen| seen.commits == 1)).await;
    let copied = Copied::default();
    copy(&rig, &followed, &["account"], &copied).await;
    copied.ended().await.expect("a copy");
    let is_new = |row: &&Vec<Option<String>>| row[1].as_deref() == Some("-1");
    let new = |seen: &super::copied::Seen| seen.copies.values().flatten().filter(is_new).count();
    assert_eq!(copied.look(new), 0);
    rig.run("ALTER SYSTEM RESET synchronous_standby_names").await;
    rig.run("SELECT pg_reload_conf()").await;
    writing.await.expect("a writer");
    waits.abort();
    assert_same(&rig, &followed, &copied, &["account"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tables_are_described_and_their_pieces_are_read_by_place() {
    let rig = Rig::start(&[]).await;
    rig.app(
        "CREATE SCHEMA \"S \"\"1\"; CREATE TABLE \"S \"\"1\".\"t'\" (gone int, \"a\"\"b\" varchar(9)
           COLLATE \"C\", k int NOT NULL, m int, n int NOT NULL, e numeric(5, 2));
         ALTER TABLE \"S \"\"1\".\"t'\" DROP gone;
         CREATE UNIQUE INDEX kn ON \"S \"\"1\".\"t'\" (n, k) INCLUDE (m);
         ALTER TABLE \"S \"\"1\".\"t'\" REPLICA IDENTITY USING INDEX kn;
         INSERT INTO \"S \"\"1\".\"t'\" SELECT 'x', i, NULL, i, 1.5 FROM generate_series(1, 20) i;
         CREATE TABLE empty (id int PRIMARY KEY); ALTER TABLE empty REPLICA IDENTITY FULL;
         CREATE TABLE parent (id int PRIMARY KEY, t text); INSERT INTO parent VALUES (1, 'parent');
         CREATE TABLE child () INHERITS (parent); INSERT INTO child VALUES (2, 'child');",
    )
    .await;
    rig.app(LARGE).await;
    let followed = rig.follow().await;
    let copied = Copied::stopping_at(400);
    let names = ["\"S \"\"1\".\"t''\"", "empty", "parent", "large"];
    copy(&rig, &followed, &names, &copied).await;
    copied.reached(400).await;
    let plan = "SELECT query FROM pg_stat_activity WHERE query LIKE 'COPY (%'";
    assert!(rig.rows(plan).await.len() > 1, "several connections");
    copied.open();
    copied.ended().await.expect("a copy");
    let found = copied.look(|seen| seen.tables.clone());
    let columns = |at: usize| {
        let columns = found[at].columns.iter();
        let shown = columns.map(|c| {
            format!(
                "{} {} {} {} {} {}",
                c.attnum, c.name, c.type_oid, c.type_modifier, c.not_null, c.collation
            )
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        columns(0),
        [
            "2 a\"b 1043 13 false 950",
            "3 k 23 -1 true 0",
            "4 m 23 -1 false 0",
            "5 n 23 -1 true 0",
            "6 e 1700 327686 false 0"
        ]
    );
    assert_eq!(found[0].identity, [5, 3]);
    assert_eq!((found[1].identity.as_slice(), found[1].blocks), (&[1][..], 0));
    assert!(found[3].blocks > 1000);
    let rows =
        copied.look(|seen| found.iter().map(|t| seen.copies[&t.oid].len()).collect::<Vec<_>>());
    assert_eq!(rows, [20, 0, 1, 20_000]);
}

/// A rig in which `large` can be copied, and a copy that stands still in it.
async fn standing_still() -> (Rig, Followed, Copied) {
    let rig = Rig::start(&[]).await;
    rig.app(LARGE).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    let followed = rig.follow().await;
    let copied = Copied::stopping_at(50);
    let large = sources(&rig, &["large", "account"]).await;
    let limits = Limits { connections: 1, piece_blocks: 100_000 };
    followed.tap.copy(large, limits, Box::new(copied.clone()));
    copied.reached(50).await;
    (rig, followed, copied)
}

/// Another copy goes well.
async fn assert_copies(rig: &Rig, followed: &Followed) {
    let copied = Copied::default();
    copy(rig, followed, &["account", "idle"], &copied).await;
    copied.ended().await.expect("a copy");
    assert_same(rig, followed, &copied, &["account", "idle"]).await;
}

const BACKENDS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'pondage' AND backend_type = 'client backend'";

/// Its connections are gone but for the one that looks at the tables.
async fn assert_left(rig: &Rig) {
    let end = Instant::now() + super::rig::DEADLINE;
    while rig.one(BACKENDS).await != "1" {
        assert!(Instant::now() < end, "connections are left");
    }
}

async fn kill(rig: &Rig, what: &str) {
    let killed = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'pondage' AND {what}"
    );
    assert_eq!(rig.rows(&killed).await.len(), 1, "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copier_that_is_killed_ends_the_copy_and_not_the_stream() {
    let (rig, followed, copied) = standing_still().await;
    kill(&rig, "query LIKE 'COPY %'").await;
    copied.open();
    copied.ended().await.expect_err("it was killed");
    assert_left(&rig).await;
    assert_copies(&rig, &followed).await;
    assert_eq!(followed.mirror.look(|seen| seen.lost.len()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_locks_a_copy_does_not_count() {
    let (rig, followed, copied) = standing_still().await;
    kill(&rig, "state = 'idle in transaction'").await;
    // Nothing keeps this away any more, and what is copied next would be found empty.
    rig.run("TRUNCATE account").await;
    copied.open();
    copied.ended().await.expect_err("it was killed");
    assert_left(&rig).await;
    assert_copies(&rig, &followed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_fails_before_its_stream_is_lost() {
    let (rig, followed, copied) = standing_still().await;
    let waiting = Copied::default();
    copy(&rig, &followed, &["account"], &waiting).await;
    kill(&rig, "backend_type = 'walsender'").await;
    copied.open();
    copied.failed("the stream has ended").await;
    waiting.failed("the stream has ended").await;
    assert_eq!(waiting.look(|seen| seen.snapshot.clone()), None);
    followed.begun(2).await;
    assert_left(&rig).await;
    assert_copies(&rig, &followed).await;

    rig.streams.stop("app");
    until("the end", || followed.mirror.look(|seen| !seen.following)).await;
    let late = Copied::default();
    copy(&rig, &followed, &["account"], &late).await;
    assert_eq!(
        late.look(|seen| seen.ended.clone()),
        Some(Err("the database is not followed".to_owned()))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_gives_way_to_who_changes_the_table() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    rig.app(LARGE).await;
    let followed = rig.follow().await;
    for statement in
        ["REINDEX INDEX large_pkey", "ALTER TABLE large ADD more int", "TRUNCATE large"]
    {
        let copied = Copied::stopping_at(50);
        copy(&rig, &followed, &["large"], &copied).await;
        copied.reached(50).await;
        let other = connect(&rig.cluster, "app").await;
        let changed = tokio::spawn(async move { other.batch_execute(statement).await });
        let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        while rig.one(waits).await == "0" {}
        // All of it would take seconds.
        let began = Instant::now();
        copied.slow();
        copied.open();
        // A piece that begins in that time waits behind who changes the table, and not for long.
        let why = copied.ended().await.expect_err("it is done");
        let gave_way = ["waits for the copy", "lock timeout"].iter().any(|how| why.contains(how));
        assert!(gave_way, "{why}");
        changed.await.expect("a task").expect("a change");
        assert!(began.elapsed() < Duration::from_secs(4), "{statement}: {:?}", began.elapsed());
    }
    assert_copies(&rig, &followed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_that_are_not_what_they_were_or_not_ours_are_refused() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    rig.run("CREATE TABLE theirs (id int PRIMARY KEY); INSERT INTO theirs VALUES (1)").await;
    rig.app("CREATE TABLE policed (id int PRIMARY KEY); INSERT INTO policed VALUES (1)").await;
    rig.app("ALTER TABLE policed ENABLE ROW LEVEL SECURITY").await;
    rig.run("ALTER TABLE policed FORCE ROW LEVEL SECURITY").await;
    rig.app("CREATE VIEW seen AS SELECT id FROM idle").await;
    let followed = rig.follow().await;
    for (name, changed, why) in [
        ("theirs", "", "42501"),
        ("policed", "", "row-level security"),
        ("seen", "", "is no ordinary table"),
        ("idle", "VACUUM FULL idle", "was rewritten or emptied"),
        ("idle", "TRUNCATE idle", "was rewritten or emptied"),
        ("idle", "ALTER TABLE idle RENAME t TO u", "is another one, or gone"),
        ("idle", "ALTER TABLE idle DROP u; ALTER TABLE idle ADD u text", "is another one, or gone"),
        ("entry", "ALTER TABLE entry RENAME TO moved", "42P01"),
        ("moved", "ALTER TABLE moved RENAME TO x; CREATE TABLE moved (id int)", "another table"),
        ("account", "DROP TABLE account", "42P01"),
    ] {
        let sources = sources(&rig, &[name]).await;
        if !changed.is_empty() {
            for statement in changed.split(';') {
                rig.app(statement).await;
            }
        }
        let copied = Copied::default();
        followed.tap.copy(sources, limits(), Box::new(copied.clone()));
        copied.failed(why).await;
        assert_eq!(copied.look(|seen| seen.rows), 0);
    }
    assert_left(&rig).await;
    assert_eq!(followed.mirror.look(|seen| seen.lost.len()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_no_more_ends_the_copy_and_the_next_has_its_turn() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    let followed = rig.follow().await;
    let (nothing, few, all) = (Copied::taking(0), Copied::taking(700), Copied::default());
    for copied in [&nothing, &few, &all] {
        copy(&rig, &followed, &["account", "idle"], copied).await;
    }
    nothing.failed("nothing is taken").await;
    few.failed("it is full").await;
    all.ended().await.expect("a copy");
    assert_eq!(nothing.look(|seen| seen.rows), 0);
    assert_eq!(few.look(|seen| seen.rows), 701);
    assert_eq!(all.look(|seen| seen.rows), 3006);
    assert_left(&rig).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_not_waited_for_long() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    let followed = rig.follow().await;
    let other = connect(&rig.cluster, "app").await;
    other.batch_execute("BEGIN; LOCK TABLE account").await.expect("a lock");
    let began = Instant::now();
    let copied = Copied::default();
    copy(&rig, &followed, &["idle", "account"], &copied).await;
    copied.failed("55P03").await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    other.batch_execute("COMMIT").await.expect("an end");
    assert_copies(&rig, &followed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_goes_on_and_few_connections_are_enough() {
    let rig = Rig::start(&[]).await;
    rig.app(TABLES).await;
    rig.app(ROWS).await;
    rig.app(LARGE).await;
    let followed = rig.follow().await;
    // The stream's two, the one that holds, and one that copies.
    rig.run("ALTER ROLE app CONNECTION LIMIT 4").await;
    let copied = Copied::default();
    copied.slow();
    copy(&rig, &followed, &["large"], &copied).await;
    copied.reached(1).await;
    let mut told = 0;
    while copied.look(|seen| seen.ended.is_none()) {
        rig.run("UPDATE idle SET t = t || 'x'").await;
        rig.told(&followed).await;
        told += 1;
    }
    copied.ended().await.expect("a copy");
    assert!(told > 3, "{told}");
    assert_same(&rig, &followed, &copied, &["large"]).await;
}
