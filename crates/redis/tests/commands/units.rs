//! What is committed, what is not, and who sees which.

use redis::engine::{Engine, Ran};
use redis::flow::Fate;
use redis::reply::Recorded;
use redis::server::Settings;

use crate::rig::{words, Rig};

#[test]
fn a_value_is_read_from_memory_and_from_the_tables() {
    let mut rig = Rig::new();
    rig.check("SET a \"x\\x00y\"", "OK");
    rig.reads("GET a", "\"x\\x00y\"");
    rig.reads("GET b", "(nil)");
    rig.check("INCRBY n 41", "41");
    rig.forget();
    rig.check("INCRBY n 1", "42");
    rig.reads("GET n", "\"42\"");
    rig.reads("DBSIZE", "2");
    rig.check("FLUSHDB", "OK");
    rig.reads("GET a", "(nil)");
    rig.reads("DBSIZE", "0");
}

#[test]
fn others_read_what_is_committed_and_the_writer_waits() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.tables.lock().slow = true;
    let (writer, reader) = (rig.conn, rig.client());
    let run = |rig: &mut Rig, conn, line: &str| {
        let mut reply = Recorded::new(2);
        match rig.engine.run(conn, words(line).args(), rig.now, &mut reply) {
            Ran::Done { barrier, .. } => (format!("{reply:?}"), barrier),
            other => panic!("{line}: {other:?}"),
        }
    };
    let (said, first) = run(&mut rig, writer, "SET a 2");
    assert_eq!(said, "OK");
    let first = first.expect("a write waits");
    rig.turn();
    let (said, second) = run(&mut rig, writer, "SET a 3");
    assert_eq!(said, "OK");
    assert_eq!(run(&mut rig, reader, "GET a"), ("\"1\"".into(), None), "nothing waits");
    let (said, own) = run(&mut rig, writer, "GET a");
    assert_eq!(said, "\"3\"", "the writer sees what it wrote");
    assert_eq!(own, second, "and is told when that is committed");
    assert_eq!(rig.engine.fate(first), Fate::Pending);
    rig.tables.commit();
    rig.engine.turn(rig.now);
    assert_eq!(rig.engine.fate(first), Fate::Committed);
    assert_eq!(run(&mut rig, reader, "GET a").0, "\"2\"", "the first batch alone is committed");
    rig.turn();
    rig.tables.commit();
    rig.turn();
    assert_eq!(run(&mut rig, reader, "GET a"), ("\"3\"".into(), None));
}

#[test]
fn what_an_sql_writer_was_faster_with_is_done_again() {
    let mut rig = Rig::new();
    rig.check("SET n 5", "OK");
    rig.tables.lock().slow = true;
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(rig.conn, words("INCRBY n 1").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), before: Some(before), .. } = ran else {
        panic!("{ran:?}")
    };
    rig.turn();
    rig.tables.lock().tables.kv.get_mut(&(0, b"n"[..].into())).unwrap().val = b"70".to_vec();
    rig.tables.conflict();
    rig.turn();
    assert_eq!(rig.redo, [rig.conn]);
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    rig.tables.lock().slow = false;
    rig.engine.restore(rig.conn, before);
    rig.check("INCRBY n 1", "71");
    rig.reads("GET n", "\"71\"");
}

#[test]
fn the_process_says_where_chance_begins() {
    let chosen = |seed: u64| {
        let tables = Box::new(crate::rig::Shared::default());
        let mut engine = Engine::new(Settings::default(), tables, 1, 0).with_seed(seed);
        engine.server.random.number()
    };
    assert_eq!(chosen(1), chosen(1));
    assert_ne!(chosen(1), chosen(2));
}

#[test]
fn a_transaction_is_one_batch_over_all_shards() {
    let mut rig = Rig::new();
    rig.check("MULTI", "OK");
    for key in 0..20 {
        rig.check(&format!("SET key{key} {key}"), "QUEUED");
    }
    rig.check("INCRBY key7 x", "QUEUED");
    rig.check("INCRBY key7 1", "QUEUED");
    let before = rig.tables.lock().batches;
    let oks = "OK ".repeat(20);
    rig.check("EXEC", &format!("[{oks}!ERR value is not an integer or out of range 8]"));
    assert_eq!(rig.tables.lock().batches, before + 1);
    rig.reads("GET key7", "\"8\"");
}

#[test]
fn watch_trips_on_a_change_by_another_or_by_sql() {
    let mut rig = Rig::new();
    let other = rig.client();
    rig.check("WATCH a b", "OK");
    rig.run_as(other, "SET b 1");
    rig.check("MULTI", "OK");
    rig.check("SET a 1", "QUEUED");
    rig.check("EXEC", "(nil array)");
    rig.check("WATCH a", "OK");
    let change = redis::store::Told::Changed { db: 0, key: b"a"[..].into() };
    rig.tables.told(change);
    rig.turn();
    rig.check("MULTI", "OK");
    rig.check("EXEC", "(nil array)");
    rig.check("WATCH a", "OK");
    rig.check("MULTI", "OK");
    rig.check("GET b", "QUEUED");
    rig.check("EXEC", "[\"1\"]");
}

#[test]
fn while_postgresql_is_away_commands_wait_and_then_fail() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.tables.lock().away = true;
    let why = "no route to host".to_owned();
    rig.tables.told(redis::store::Told::Away { why });
    rig.turn();
    let (writer, reader) = (rig.conn, rig.client());
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(writer, words("SET b 2").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), .. } = ran else { panic!("{ran:?}") };
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(reader, words("GET a").args(), rig.now, &mut reply);
    assert!(matches!(ran, Ran::Parked), "copies can't be trusted: {ran:?}");
    rig.pass(4_999);
    assert_eq!(rig.engine.fate(barrier), Fate::Pending);
    rig.pass(1);
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    assert_eq!(rig.redo, [writer]);
    let error = "!ERR PostgreSQL can't be reached: no route to host";
    rig.check("SET c 3", error);
    assert_eq!(rig.run_as(reader, "GET a"), error);
    // EXEC, too, and that is its end: what followed was queued.
    let other = rig.client();
    rig.run_as(other, "MULTI");
    rig.run_as(other, "GET a");
    assert_eq!(rig.run_as(other, "EXEC"), error);
    assert_eq!(rig.run_as(other, "PING"), "PONG");
    rig.tables.lock().away = false;
    rig.tables.told(redis::store::Told::Taken { applied: vec![0; 3], kids: 2 << 40, same: true });
    rig.turn();
    rig.reads("GET a", "\"1\"");
    rig.reads("GET b", "(nil)");
    rig.check("SET b 5", "OK");
    rig.reads("GET b", "\"5\"");
}

/// The change was told between EXEC and the sending of its batch: the entry that it relied on was
/// dropped, and with it what there was to check.
#[test]
fn watch_trips_on_a_change_that_is_told_before_the_batch_is_sent() {
    let mut rig = Rig::new();
    rig.check("SET stock 1", "OK");
    rig.check("WATCH stock", "OK");
    rig.check("MULTI", "OK");
    rig.check("SET order 7", "QUEUED");
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(rig.conn, words("EXEC").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), before: Some(before), .. } = ran else {
        panic!("{ran:?}")
    };
    rig.tables.lock().tables.kv.get_mut(&(0, b"stock"[..].into())).unwrap().version += 100;
    rig.tables.told(redis::store::Told::Changed { db: 0, key: b"stock"[..].into() });
    rig.turn();
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    rig.engine.restore(rig.conn, before);
    rig.check("EXEC", "(nil array)");
    rig.reads("GET order", "(nil)");
}

/// A key that was not in memory was overwritten; until that was committed, others were told that
/// it did not exist.
#[test]
fn others_wait_for_a_key_that_is_overwritten_unseen() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.forget();
    rig.tables.lock().slow = true;
    let (writer, reader) = (rig.conn, rig.client());
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(writer, words("SET a 2").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(written), .. } = ran else { panic!("{ran:?}") };
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(reader, words("GET a").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(seen), .. } = ran else { panic!("{reply:?} {ran:?}") };
    assert_eq!((format!("{reply:?}"), seen), ("\"2\"".into(), written));
}

/// SQL wrote the row after the batch had, and was heard of before the batch was: the copy in memory
/// counted as clean for ever.
#[test]
fn what_sql_has_written_behind_a_batch_is_seen() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.tables.lock().slow = true;
    let mut reply = Recorded::new(2);
    rig.engine.run(rig.conn, words("APPEND a 2").args(), rig.now, &mut reply);
    rig.turn();
    rig.tables.told(redis::store::Told::Changed { db: 0, key: b"a"[..].into() });
    rig.turn();
    rig.tables.commit();
    {
        let mut state = rig.tables.lock();
        let row = state.tables.kv.get_mut(&(0, b"a"[..].into())).unwrap();
        (row.val, row.version) = (b"of SQL".to_vec(), -7);
        state.slow = false;
    }
    rig.turn();
    rig.reads("GET a", "\"of SQL\"");
}

/// COPY was undone by a conflict and ran again after a later DEL of its source, which was in
/// another shard and had committed; and it copied what SQL had overwritten before.
#[test]
fn a_unit_that_writes_relies_on_what_it_has_read() {
    let mut rig = Rig::new();
    rig.check("SET source 1", "OK");
    rig.check("SET target 0", "OK");
    {
        let mut state = rig.tables.lock();
        let row = state.tables.kv.get_mut(&(0, b"source"[..].into())).unwrap();
        (row.val, row.version) = (b"2".to_vec(), -7);
    }
    let mut reply = Recorded::new(2);
    let words = words("COPY source target REPLACE");
    let ran = rig.engine.run(rig.conn, words.args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), before: Some(before), .. } = ran else {
        panic!("{ran:?}")
    };
    rig.turn();
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    rig.engine.restore(rig.conn, before);
    rig.check("COPY source target REPLACE", "1");
    rig.reads("GET target", "\"2\"");
}

/// A key's time was prolonged; when the former time was over and the change not yet committed,
/// others were told that the key was gone.
#[test]
fn a_key_whose_time_is_being_prolonged_does_not_vanish_meanwhile() {
    let mut rig = Rig::new();
    rig.check("SET a 1 PX 10", "OK");
    rig.tables.lock().slow = true;
    let (writer, reader) = (rig.conn, rig.client());
    let mut reply = Recorded::new(2);
    rig.engine.run(writer, words("PEXPIRE a 5000").args(), rig.now, &mut reply);
    rig.turn();
    rig.pass(50);
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(reader, words("GET a").args(), rig.now, &mut reply);
    assert!(matches!(ran, Ran::Done { barrier: Some(_), .. }), "{reply:?} {ran:?}");
    assert_eq!(format!("{reply:?}"), "\"1\"");
}

#[test]
fn what_a_unit_reads_behind_its_own_flush_is_not_looked_for_in_the_tables() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.forget();
    rig.check("MULTI", "OK");
    rig.check("FLUSHDB", "QUEUED");
    rig.check("DEL a", "QUEUED");
    rig.check("SET b 2", "QUEUED");
    rig.check("EXEC", "[OK 0 OK]");
    rig.reads("GET a", "(nil)");
    rig.reads("GET b", "\"2\"");
}

/// Between a conflict and the undoing of all that it takes with it, a reader saw what was going to
/// be undone, and nobody told it of that: it waited for ever.
#[test]
fn who_reads_what_is_about_to_be_undone_runs_again() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.tables.lock().slow = true;
    let (writer, reader) = (rig.conn, rig.client());
    let run = |rig: &mut Rig, conn, line: &str| {
        let mut reply = Recorded::new(2);
        let ran = rig.engine.run(conn, words(line).args(), rig.now, &mut reply);
        let Ran::Done { barrier: Some(barrier), .. } = ran else { panic!("{line}: {ran:?}") };
        rig.turn();
        barrier.shard
    };
    // Two batches, of two shards: the one of `a` fails first.
    let shards = [run(&mut rig, writer, "APPEND a 2"), run(&mut rig, reader, "SET e 2")];
    assert_ne!(shards[0], shards[1]);
    rig.tables.conflict_one();
    rig.turn();
    assert!(rig.redo.is_empty(), "the other batch is still on its way");
    // It has a reply outstanding, so it sees what is not committed.
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(reader, words("GET a").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), .. } = ran else { panic!("{reply:?} {ran:?}") };
    rig.tables.commit();
    rig.turn();
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    rig.redo.sort_unstable();
    assert_eq!(rig.redo, [writer, reader]);
}

/// With several workers: a later command ran before the worker had heard that earlier ones of its
/// connection were undone, so it came before them.
#[test]
fn no_command_runs_before_those_that_have_to_run_again() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.tables.lock().slow = true;
    let run = |rig: &mut Rig, line: &str| {
        rig.engine.run(rig.conn, words(line).args(), rig.now, &mut Recorded::new(2))
    };
    assert!(matches!(run(&mut rig, "APPEND a 2"), Ran::Done { .. }));
    rig.engine.turn(rig.now);
    rig.tables.conflict();
    rig.engine.turn(rig.now);
    assert!(matches!(run(&mut rig, "GET a"), Ran::Parked));
    rig.turn();
    assert_eq!(rig.redo, [rig.conn]);
    assert!(matches!(run(&mut rig, "GET a"), Ran::Parked), "now its row is looked up");
    rig.turn();
    assert!(matches!(run(&mut rig, "GET a"), Ran::Done { barrier: None, .. }));
}

/// The sweep had found a row whose time was over. When it was told, the key had been written and
/// had left memory: others were told that it did not exist.
#[test]
fn what_the_sweep_has_found_may_be_another_by_now() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.forget();
    let key: (u16, Box<[u8]>) = (0, b"a"[..].into());
    let version = rig.tables.lock().tables.kv[&key].version;
    rig.tables.lock().slow = true;
    rig.tables.told(redis::store::Told::Expired { keys: vec![(key.0, key.1, version)] });
    rig.engine.turn(rig.now);
    let mut reply = Recorded::new(2);
    let ran = rig.engine.run(rig.conn, words("GET a").args(), rig.now, &mut reply);
    let Ran::Done { barrier: Some(barrier), .. } = ran else { panic!("{reply:?} {ran:?}") };
    rig.tables.conflict();
    rig.tables.lock().slow = false;
    rig.turn();
    assert_eq!(rig.engine.fate(barrier), Fate::Undone);
    rig.reads("GET a", "\"1\"");
}

/// FLUSHDB was not committed, and others were told that a key which it would remove did not exist.
#[test]
fn a_flush_is_not_seen_before_it_is_committed() {
    for line in ["GET a", "SET a 2"] {
        let mut rig = Rig::new();
        rig.check("SET a 1", "OK");
        rig.forget();
        rig.tables.lock().slow = true;
        let (writer, reader) = (rig.conn, rig.client());
        let run = |rig: &mut Rig, conn, line: &str| {
            let mut reply = Recorded::new(2);
            (rig.engine.run(conn, words(line).args(), rig.now, &mut reply), format!("{reply:?}"))
        };
        assert!(matches!(run(&mut rig, writer, "FLUSHDB").0, Ran::Done { .. }));
        run(&mut rig, writer, line);
        let (ran, reply) = run(&mut rig, reader, "GET a");
        assert!(matches!(ran, Ran::Parked | Ran::Done { barrier: Some(_), .. }), "{ran:?} {reply}");
    }
}

/// A row was looked up before a FLUSHDB, and came when that was done.
#[test]
fn a_row_that_was_looked_up_before_a_flush_is_not_let_in() {
    for committed in [false, true] {
        let mut rig = Rig::new();
        rig.check("SET a 1", "OK");
        rig.forget();
        let reader = rig.client();
        let mut reply = Recorded::new(2);
        let ran = rig.engine.run(reader, words("GET a").args(), rig.now, &mut reply);
        assert!(matches!(ran, Ran::Parked));
        rig.tables.lock().late = true;
        rig.turn();
        rig.tables.lock().slow = true;
        rig.engine.run(rig.conn, words("FLUSHDB").args(), rig.now, &mut Recorded::new(2));
        rig.turn();
        if committed {
            rig.tables.commit();
        } else {
            rig.tables.arrive();
        }
        rig.turn();
        rig.tables.commit();
        rig.tables.arrive();
        rig.tables.lock().late = false;
        rig.turn();
        rig.reads("GET a", "(nil)");
    }
}

/// PostgreSQL was away for so long that who waited for a row was told so; then the row came, old.
#[test]
fn a_row_that_was_asked_for_before_all_was_given_up_is_old() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.forget();
    let reader = rig.client();
    rig.tables.lock().late = true;
    let get = words("GET a");
    let ran = rig.engine.run(reader, get.args(), rig.now, &mut Recorded::new(2));
    assert!(matches!(ran, Ran::Parked));
    rig.turn();
    rig.tables.told(redis::store::Told::Away { why: "gone".to_owned() });
    rig.tables.lock().away = true;
    rig.turn();
    rig.pass(5_000);
    assert_eq!(rig.run_as(reader, "GET a"), "!ERR PostgreSQL can't be reached: gone");
    rig.tables.lock().away = false;
    rig.tables.told(redis::store::Told::Taken { applied: vec![9; 3], kids: 2 << 40, same: true });
    rig.turn();
    {
        let mut state = rig.tables.lock();
        let row = state.tables.kv.get_mut(&(0, b"a"[..].into())).unwrap();
        (row.val, row.version) = (b"2".to_vec(), 7);
    }
    let ran = rig.engine.run(reader, get.args(), rig.now, &mut Recorded::new(2));
    assert!(matches!(ran, Ran::Parked));
    rig.turn();
    rig.tables.lock().late = false;
    rig.tables.arrive();
    rig.turn();
    assert_eq!(rig.run_as(reader, "GET a"), "\"2\"");
}

/// A transaction read a key and wrote another, and was undone; a later read of the key was not, so it
/// told of an earlier state than the transaction when that had run again.
#[test]
fn a_later_read_runs_again_with_what_was_before_it() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.check("SET e 1", "OK");
    rig.tables.lock().slow = true;
    for line in ["MULTI", "GET e", "APPEND a 1"] {
        rig.check(line, if line == "MULTI" { "OK" } else { "QUEUED" });
    }
    let exec = rig.ran("EXEC").expect("it writes");
    let later = rig.ran("GET e").expect("it is not to be answered before");
    rig.turn();
    rig.tables.conflict();
    rig.turn();
    assert_eq!(rig.engine.fate(exec), Fate::Undone);
    assert_eq!(rig.engine.fate(later), Fate::Undone);
}

/// A read of several keys waited for the batch of one of them. It was undone and ran again behind a
/// later write of another one, which had been committed, and showed that.
#[test]
fn a_later_write_is_not_committed_before_a_read_of_its_key() {
    let mut rig = Rig::new();
    rig.check("SET a 1", "OK");
    rig.check("SET e 1", "OK");
    rig.tables.lock().slow = true;
    let before = rig.tables.lock().batches;
    let append = rig.ran("APPEND a 1").expect("a write waits");
    let read = rig.ran("MGET a e").expect("it sees the write");
    let write = rig.ran("SET e 2").expect("a write waits");
    assert_eq!((append, read.shard), (read, write.shard), "all in one batch");
    rig.turn();
    assert_eq!(rig.tables.lock().batches, before + 1);
}

#[test]
fn a_key_that_was_over_when_it_was_watched_may_go_but_not_come_back() {
    let watching = |rig: &mut Rig| {
        rig.check("SET a 1 PX 5", "OK");
        rig.pass(10);
        rig.check("WATCH a", "OK");
    };
    let exec = |rig: &mut Rig, reply: &str| {
        rig.run("MULTI");
        rig.run("PING");
        rig.check("EXEC", reply);
    };
    let mut rig = Rig::new();
    let other = rig.client();
    rig.check("DEBUG SET-ACTIVE-EXPIRE 0", "OK");
    watching(&mut rig);
    exec(&mut rig, "[PONG]");
    watching(&mut rig);
    rig.run_as(other, "FLUSHDB");
    exec(&mut rig, "[PONG]");
    watching(&mut rig);
    rig.run_as(other, "SET a 2");
    exec(&mut rig, "(nil array)");
    watching(&mut rig);
    rig.check("DEBUG SET-ACTIVE-EXPIRE 1", "OK");
    rig.pass(1);
    exec(&mut rig, "[PONG]");
    // One that ends while it is watched has changed.
    rig.check("SET a 1 PX 5", "OK");
    rig.check("WATCH a", "OK");
    rig.pass(10);
    exec(&mut rig, "(nil array)");
}
