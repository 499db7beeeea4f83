//! All keys of a database: KEYS, SCAN and their like, FLUSHALL; and commands that ask PostgreSQL as
//! a part of EXEC.

use std::collections::BTreeSet;

use redis::reply::Recorded;

use crate::rig::{words, Rig};

/// A reply of SCAN: the cursor and the keys.
fn page(reply: &Recorded) -> (String, Vec<String>) {
    let line = format!("{reply:?}");
    let mut strings = line.split('"').skip(1).step_by(2).map(str::to_owned);
    (strings.next().expect("a cursor"), strings.collect())
}

fn scan(rig: &mut Rig, cursor: &str, options: &str) -> (String, Vec<String>) {
    let conn = rig.conn;
    page(&rig.reply_to(conn, &words(&format!("SCAN {cursor} {options}"))))
}

/// The whole of a scan.
fn scan_all(rig: &mut Rig, options: &str) -> Vec<String> {
    let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
    loop {
        let (next, keys) = scan(rig, &cursor, options);
        all.extend(keys);
        if next == "0" {
            return all;
        }
        cursor = next;
    }
}

fn fill(rig: &mut Rig, count: usize) {
    let words = (0..count).flat_map(|at| [format!("key:{at}"), "v".into()]);
    let words = std::iter::once("MSET".to_owned()).chain(words).collect();
    let conn = rig.conn;
    assert_eq!(rig.run_words(conn, &words), "OK");
}

#[test]
fn a_scan_gives_every_key_that_is_there_all_the_time() {
    let mut rig = Rig::new();
    fill(&mut rig, 300);
    let mut seen = BTreeSet::new();
    let (mut cursor, mut round) = ("0".to_owned(), 0);
    loop {
        let (next, keys) = scan(&mut rig, &cursor, "COUNT 7");
        seen.extend(keys);
        // Meanwhile others come and go.
        rig.run(&format!("SET new:{round} v"));
        rig.run(&format!("DEL key:{}", 200 + round));
        (cursor, round) = (next, round + 1);
        if cursor == "0" {
            break;
        }
    }
    assert!((0..200).all(|at| seen.contains(&format!("key:{at}"))));
    assert!(round > 40);
}

#[test]
fn a_scan_minds_its_options() {
    let mut rig = Rig::new();
    fill(&mut rig, 50);
    rig.check("PEXPIRE key:7 10", "1");
    rig.pass(20);
    assert_eq!(scan_all(&mut rig, "").len(), 49);
    assert_eq!(scan_all(&mut rig, "MATCH key:1?").len(), 10);
    assert_eq!(scan_all(&mut rig, "MATCH *:1? COUNT 3").len(), 10);
    assert_eq!(scan_all(&mut rig, "TYPE string COUNT 1000000000000").len(), 49);
    assert_eq!(scan_all(&mut rig, "TYPE HASH").len(), 0);
    assert_eq!(scan_all(&mut rig, "TYPE nonsense").len(), 0);
    // What the pattern begins with is looked for where it is.
    let (cursor, keys) = scan(&mut rig, "0", "MATCH key:4* COUNT 12");
    assert_eq!((cursor.as_str(), keys.len()), ("0", 11), "in one page");
}

#[test]
fn a_cursor_that_nobody_knows_starts_over() {
    let mut rig = Rig::new();
    fill(&mut rig, 20);
    let (_, first) = scan(&mut rig, "0", "COUNT 5");
    let (cursor, other) = scan(&mut rig, "12345", "COUNT 5");
    assert_eq!(first, other);
    let (_, second) = scan(&mut rig, &cursor, "COUNT 5");
    assert_eq!(scan(&mut rig, &cursor, "COUNT 5").1, second, "a cursor can be used again");
    rig.check("SELECT 1", "OK");
    rig.check(&format!("SCAN {cursor}"), "[\"0\" []]");
}

#[test]
fn keys_goes_through_all_pages() {
    let mut rig = Rig::new();
    fill(&mut rig, 25_000);
    let conn = rig.conn;
    let count = |rig: &mut Rig, pattern: &str| {
        let reply = rig.reply_to(conn, &words(&format!("KEYS {pattern}")));
        format!("{reply:?}").matches('"').count() / 2
    };
    assert_eq!(count(&mut rig, "*"), 25_000);
    assert_eq!(count(&mut rig, "*9"), 2_500);
    assert_eq!(count(&mut rig, "key:1234*"), 11);
    rig.check("KEYS key:12345", "[\"key:12345\"]");
    rig.check("KEYS \"key:\\[*\"", "[]");
}

#[test]
fn questions_are_asked_inside_of_exec() {
    let mut rig = Rig::new();
    rig.table(
        r#"
MSET a 1 b 2 n 5
MULTI => OK
INCR n => QUEUED
DBSIZE => QUEUED
KEYS a => QUEUED
DBSIZE => QUEUED
RANDOMKEY => QUEUED
SCAN 0 MATCH b => QUEUED
INCR n => QUEUED
EXEC => [6 3 ["a"] 3 "a" ["0" ["b"]] 7]
GET n => "7"
"#
        .replace("MSET a 1 b 2 n 5", "MSET a 1 b 2 n 5 => OK")
        .as_str(),
    );
}

/// The tables do not know yet what a transaction or a script has changed.
#[test]
fn questions_see_what_their_unit_has_changed() {
    let mut rig = Rig::new();
    rig.check("MSET a 1 b 2 n 5", "OK");
    rig.forget();
    rig.table(
        r#"
MULTI => OK
DEL a => QUEUED
SET b 3 => QUEUED
SET c 1 => QUEUED
HSET d f v => QUEUED
DBSIZE => QUEUED
KEYS * => QUEUED
SCAN 0 TYPE hash => QUEUED
SCAN 0 MATCH [ac] => QUEUED
HDEL d f => QUEUED
PEXPIRE n -1 => QUEUED
RENAME c e => QUEUED
COPY b z DB 1 => QUEUED
DBSIZE => QUEUED
KEYS * => QUEUED
SELECT 1 => QUEUED
DBSIZE => QUEUED
RANDOMKEY => QUEUED
FLUSHDB => QUEUED
DBSIZE => QUEUED
RANDOMKEY => QUEUED
SET y 1 => QUEUED
KEYS * => QUEUED
SELECT 0 => QUEUED
DEL b e => QUEUED
RANDOMKEY => QUEUED
EXEC => [1 OK OK 1 4 ["n" "b" "c" "d"] ["0" ["d"]] ["0" ["c"]] 1 1 OK 1 2 ["b" "e"] OK 1 "z" OK 0 (nil) OK ["y"] OK 2 (nil)]
DBSIZE => 0
"#,
    );
    let script =
        "EVAL \"redis.call('SET','a',1) redis.call('SET','b',1) return redis.call('DBSIZE')\" 0";
    rig.check(script, "2");
    rig.forget();
    rig.check(script, "2");
}

#[test]
fn a_miss_in_exec_undoes_what_came_before_it() {
    let mut rig = Rig::new();
    rig.check("MSET a 1 b 1 x 5", "OK");
    rig.forget();
    rig.table(
        r#"
MULTI => OK
INCR a => QUEUED
INCR b => QUEUED
APPEND a 7 => QUEUED
COPY a c DB 3 => QUEUED
MOVE x 4 => QUEUED
SET fresh 1 => QUEUED
GET x => QUEUED
EXEC => [2 2 2 1 1 OK (nil)]
"#,
    );
    rig.reads("MGET a b x fresh", "[\"27\" \"2\" (nil) \"1\"]");
    rig.check("SELECT 3", "OK");
    rig.reads("GET c", "\"27\"");
    rig.check("SELECT 4", "OK");
    rig.reads("GET x", "\"5\"");
}

#[test]
fn a_flush_in_exec_that_is_run_again_flushes_once() {
    let mut rig = Rig::new();
    rig.check("MSET a 1 b 2", "OK");
    rig.check("SELECT 1", "OK");
    rig.check("SET there 1", "OK");
    rig.check("SELECT 0", "OK");
    rig.forget();
    rig.table(
        r#"
GET a => "1"
MULTI => OK
FLUSHDB => QUEUED
SET new 1 => QUEUED
GET b => QUEUED
COPY new there DB 1 => QUEUED
DBSIZE => QUEUED
EXEC => [OK OK (nil) 0 1]
"#,
    );
    rig.reads("MGET a b new", "[(nil) (nil) \"1\"]");
    rig.check("DBSIZE", "1");
}

#[test]
fn flushall_empties_all_databases_in_one_batch() {
    let mut rig = Rig::new();
    for db in [0, 3, 15] {
        rig.check(&format!("SELECT {db}"), "OK");
        rig.check("MSET a 1 b 2", "OK");
    }
    rig.forget();
    rig.check("GET a", "\"1\"");
    let before = rig.tables.lock().batches;
    rig.check("FLUSHALL ASYNC", "OK");
    assert_eq!(rig.tables.lock().batches, before + 1);
    assert!(rig.tables.lock().tables.kv.is_empty());
    rig.reads("MGET a b", "[(nil) (nil)]");
    rig.check("SELECT 3", "OK");
    rig.reads("EXISTS a b", "0");
}
