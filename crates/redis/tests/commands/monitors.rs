//! MONITOR: what it shows of which commands, in which order.

use crate::rig::{words, Rig};
use redis::args::Words;
use redis::session::ConnId;

fn monitor(rig: &mut Rig) -> ConnId {
    let conn = rig.client();
    assert_eq!(rig.run_as(conn, "MONITOR"), "OK");
    conn
}

/// The lines since the last time, without their time.
fn shown(rig: &mut Rig, conn: ConnId) -> Vec<String> {
    let told = rig.told(conn);
    let line = |line: &String| {
        let (time, rest) = line.split_once(' ').expect("a time");
        assert_eq!(time, "1700000000.000000");
        rest.to_owned()
    };
    told.iter().map(line).collect()
}

#[test]
fn commands_are_shown_as_redis_shows_them() {
    let mut rig = Rig::new();
    let conn = monitor(&mut rig);
    rig.check("SET k \"a\\x0a\\x0d\\x09\\x07\\x08\\x00\\xff\\\"\\\\z\"", "OK");
    rig.check("SELECT 3", "OK");
    rig.check("get k", "(nil)");
    rig.run("HGET k");
    rig.run("NOSUCH command");
    rig.run("LPUSH k");
    rig.run("INCRBY k x");
    rig.run("CONFIG GET port");
    rig.run("CLIENT LIST");
    rig.run("CLIENT GETNAME");
    let expected = [
        r#"[0 127.0.0.1:50001] "SET" "k" "a\n\r\t\a\b\x00\xff\"\\z""#,
        r#"[3 127.0.0.1:50001] "SELECT" "3""#,
        r#"[3 127.0.0.1:50001] "get" "k""#,
        r#"[3 127.0.0.1:50001] "INCRBY" "k" "x""#,
        r#"[3 127.0.0.1:50001] "CLIENT" "GETNAME""#,
    ];
    assert_eq!(shown(&mut rig, conn), expected);
    assert!(rig.run("CLIENT LIST").contains("flags=O "));
    // Nobody is shown anything more than once, nor when it has had enough.
    assert_eq!(rig.run_as(conn, "MONITOR"), "");
    assert_eq!(rig.run_as(conn, "RESET"), "RESET");
    shown(&mut rig, conn);
    rig.run("PING");
    assert!(shown(&mut rig, conn).is_empty());
    let gone = monitor(&mut rig);
    rig.engine.disconnect(gone);
    rig.run("PING");
    assert!(rig.engine.server.monitors.is_empty());
    rig.run("MULTI");
    rig.run("MONITOR");
    rig.check("EXEC", "[!ERR MONITOR isn't allowed for DENY BLOCKING client]");
}

#[test]
fn units_are_shown_in_order_and_once() {
    let mut rig = Rig::new();
    rig.check("SET far away", "OK");
    let conn = monitor(&mut rig);
    rig.forget();
    for line in ["MULTI", "INCR n", "EVAL \"return redis.call('get', 'far')\" 0", "PING", "EXEC"] {
        rig.run(line);
    }
    let expected = [
        r#"[0 127.0.0.1:50001] "MULTI""#,
        r#"[0 127.0.0.1:50001] "INCR" "n""#,
        r#"[0 127.0.0.1:50001] "EVAL" "return redis.call('get', 'far')" "0""#,
        r#"[0 lua] "get" "far""#,
        r#"[0 127.0.0.1:50001] "PING""#,
        r#"[0 127.0.0.1:50001] "EXEC""#,
    ];
    assert_eq!(shown(&mut rig, conn), expected, "it has waited for what is not in memory");
    // One that blocks is shown when it does.
    rig.run("BLPOP q 0");
    let pusher = rig.client();
    rig.run_as(pusher, "LPUSH q 1");
    let expected =
        [r#"[0 127.0.0.1:50001] "BLPOP" "q" "0""#, r#"[0 127.0.0.1:50003] "LPUSH" "q" "1""#];
    assert_eq!(shown(&mut rig, conn), expected);
}

#[test]
fn what_runs_again_after_it_was_undone_is_shown_once() {
    let mut rig = Rig::new();
    rig.check("SET n 1", "OK");
    let conn = monitor(&mut rig);
    rig.tables.lock().slow = true;
    let mut reply = redis::reply::Recorded::new(2);
    let ran = rig.engine.run(rig.conn, words("INCR n").args(), rig.now, &mut reply);
    let redis::engine::Ran::Done { before: Some(before), .. } = ran else { panic!("{ran:?}") };
    rig.turn();
    rig.tables.conflict();
    rig.turn();
    rig.tables.lock().slow = false;
    rig.engine.restore(rig.conn, before);
    rig.check("INCR n", "2");
    rig.check("INCR n", "3");
    assert_eq!(shown(&mut rig, conn), [r#"[0 127.0.0.1:50001] "INCR" "n""#; 2]);
}

#[test]
fn long_commands_are_cut_and_endless_units_close_who_monitors() {
    let mut rig = Rig::new();
    let conn = monitor(&mut rig);
    let long = "x".repeat(3 << 20);
    let set: Words = ["MSET", "k", &long, "l", "v"].into_iter().collect();
    rig.run_words(rig.conn, &set);
    let lines = shown(&mut rig, conn);
    assert!(lines[0].len() < (1 << 20) + 200, "{} bytes", lines[0].len());
    assert!(lines[0].ends_with("more bytes) ... (2 more arguments)"), "{}", lines[0].len());
    rig.run("EVAL \"for i = 1, 40 do redis.call('strlen', ARGV[1] .. string.rep('y', 1000000)) end\" 0 k");
    assert!(shown(&mut rig, conn).is_empty());
    assert_eq!(rig.closed, [conn]);
}
