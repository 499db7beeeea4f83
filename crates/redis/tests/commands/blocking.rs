//! Commands that wait for a key.

use redis::session::ConnId;
use redis::store::Told;

use crate::rig::Rig;

/// A client that is blocked by this command.
#[track_caller]
fn blocked(rig: &mut Rig, line: &str) -> ConnId {
    let conn = rig.client();
    assert_eq!(rig.run_as(conn, line), "", "{line}");
    conn
}

#[track_caller]
fn told(rig: &mut Rig, conn: ConnId, expected: &[&str]) {
    assert_eq!(rig.told(conn), expected);
}

#[test]
fn what_is_there_is_taken_at_once() {
    let mut rig = Rig::new();
    rig.check("RPUSH a 1 2 3", "3");
    rig.check("BLPOP none a 0", "[\"a\" \"1\"]");
    rig.check("BRPOP a 0.1", "[\"a\" \"3\"]");
    rig.check("BLMOVE a b LEFT RIGHT 0", "\"2\"");
    rig.check("BRPOPLPUSH b b 0", "\"2\"");
    rig.check("BLMPOP 0 2 a b LEFT COUNT 9", "[\"b\" [\"2\"]]");
    rig.check("ZADD z 1 x 2 y 3 w", "3");
    rig.check("BZPOPMIN none z 0", "[\"z\" \"x\" ,1]");
    rig.check("BZPOPMAX z 0", "[\"z\" \"w\" ,3]");
    rig.check("BZMPOP 0 1 z MIN COUNT 5", "[\"z\" [[\"y\" ,2]]]");
}

#[test]
fn timeouts_are_checked_as_redis_does() {
    let mut rig = Rig::new();
    for command in ["BLPOP k", "BZPOPMAX k", "BRPOPLPUSH k j", "BLMOVE k j LEFT LEFT"] {
        rig.check(&format!("{command} -1"), "!ERR timeout is negative");
        rig.check(&format!("{command} -0.001"), "!ERR timeout is negative");
        rig.check(&format!("{command} x"), "!ERR timeout is not a float or out of range");
        rig.check(&format!("{command} \" 1\""), "!ERR timeout is not a float or out of range");
        rig.check(&format!("{command} 1e400"), "!ERR timeout is out of range");
        rig.check(&format!("{command} 1e5000"), "!ERR timeout is not a float or out of range");
        rig.check(&format!("{command} inf"), "!ERR timeout is out of range");
        rig.check(&format!("{command} -inf"), "!ERR timeout is negative");
        rig.check(&format!("{command} 1e300"), "!ERR timeout is out of range");
        rig.check(&format!("{command} 9223372036854775"), "!ERR timeout is out of range");
    }
    rig.check("BLMPOP -1 1 k LEFT", "!ERR timeout is negative");
    rig.check("BLMPOP x 0 k LEFT", "!ERR numkeys should be greater than 0");
    rig.check("BZMPOP 0 1 k MIDDLE", "!ERR syntax error");
    rig.check("BZMPOP 0 1 k MIN COUNT 0", "!ERR count should be greater than 0");
    rig.check("SET k x", "OK");
    let wrong = "!WRONGTYPE Operation against a key holding the wrong kind of value";
    rig.check("BLPOP none k 0", wrong);
    rig.check("BZPOPMIN k 0", wrong);
    rig.check("BLMOVE k j LEFT LEFT 0", wrong);
}

#[test]
fn a_time_that_is_over_is_told() {
    let mut rig = Rig::new();
    let soon = blocked(&mut rig, "BLPOP a b 0.25");
    let later = blocked(&mut rig, "BZMPOP 1 1 a MIN");
    let never = blocked(&mut rig, "BLMOVE a b LEFT LEFT 0");
    assert_eq!(rig.engine.next_due(), Some(rig.now + 250));
    rig.pass(249);
    told(&mut rig, soon, &[]);
    rig.pass(1);
    told(&mut rig, soon, &["(nil array)"]);
    assert_eq!(rig.engine.next_due(), Some(rig.now + 750));
    rig.pass(750);
    told(&mut rig, later, &["(nil array)"]);
    assert_eq!(rig.engine.next_due(), None);
    rig.pass(1 << 40);
    told(&mut rig, never, &[]);
    rig.check("RPUSH a 1", "1");
    told(&mut rig, never, &["\"1\""]);
    rig.check("RPUSH a 1", "1");
}

#[test]
fn who_came_first_is_served_first() {
    let mut rig = Rig::new();
    let first = blocked(&mut rig, "BLPOP q r 0");
    let second = blocked(&mut rig, "BRPOP r q 0");
    let third = blocked(&mut rig, "BLPOP q q 0");
    rig.check("RPUSH q 1 2", "2");
    told(&mut rig, first, &["[\"q\" \"1\"]"]);
    told(&mut rig, second, &["[\"q\" \"2\"]"]);
    told(&mut rig, third, &[]);
    rig.check("LLEN q", "0");
    assert_eq!(rig.run_as(first, "BLPOP q 0"), "");
    rig.check("LPUSH q 3 4 5", "3");
    told(&mut rig, third, &["[\"q\" \"5\"]"]);
    told(&mut rig, first, &["[\"q\" \"4\"]"]);
    rig.reads("LRANGE q 0 -1", "[\"3\"]");
}

#[test]
fn keys_are_looked_at_in_the_order_given() {
    let mut rig = Rig::new();
    let waiting = blocked(&mut rig, "BLPOP a b c 0");
    rig.check("MULTI", "OK");
    rig.check("RPUSH c 3", "QUEUED");
    rig.check("RPUSH b 2", "QUEUED");
    rig.check("EXEC", "[1 1]");
    told(&mut rig, waiting, &["[\"b\" \"2\"]"]);
    rig.reads("LRANGE c 0 -1", "[\"3\"]");
}

#[test]
fn who_waits_is_served_before_the_next_command_of_the_pusher() {
    let mut rig = Rig::new();
    let waiting = blocked(&mut rig, "BLPOP q 0");
    let mut reply = redis::reply::Recorded::new(2);
    for line in ["LPUSH q 1", "RPOP q"] {
        rig.engine.run(rig.conn, crate::rig::words(line).args(), rig.now, &mut reply);
    }
    rig.forget();
    let mut again = redis::reply::Recorded::new(2);
    while matches!(
        rig.engine.run(rig.conn, crate::rig::words("LLEN q").args(), rig.now, &mut again),
        redis::engine::Ran::Parked
    ) {
        rig.turn();
    }
    told(&mut rig, waiting, &["[\"q\" \"1\"]"]);
    assert_eq!(format!("{again:?}"), "0");
}

#[test]
fn what_exec_pushes_and_pops_wakes_nobody() {
    let mut rig = Rig::new();
    let waiting = blocked(&mut rig, "BLPOP q 0");
    rig.check("MULTI", "OK");
    for line in ["LPUSH q 1", "RPOP q", "BLPOP q 0", "BLMOVE q q LEFT LEFT 0", "BZPOPMIN z 0"] {
        rig.check(line, "QUEUED");
    }
    rig.check("EXEC", "[1 \"1\" (nil array) (nil) (nil array)]");
    told(&mut rig, waiting, &[]);
    rig.check("LPUSH q 2", "1");
    told(&mut rig, waiting, &["[\"q\" \"2\"]"]);
}

#[test]
fn a_key_of_another_type_is_waited_through() {
    let mut rig = Rig::new();
    let list = blocked(&mut rig, "BLPOP k 0");
    let zset = blocked(&mut rig, "BZPOPMIN k 0");
    rig.check("SET k x", "OK");
    told(&mut rig, list, &[]);
    rig.check("SET j x", "OK");
    rig.check("ZUNIONSTORE k 1 none", "0");
    rig.check("ZADD k 1 a", "1");
    told(&mut rig, zset, &["[\"k\" \"a\" ,1]"]);
    told(&mut rig, list, &[]);
    rig.check("RPUSH k b", "1");
    told(&mut rig, list, &["[\"k\" \"b\"]"]);
}

#[test]
fn a_chain_of_moves_runs_through() {
    let mut rig = Rig::new();
    let last = blocked(&mut rig, "BLPOP c 0");
    let second = blocked(&mut rig, "BLMOVE b c LEFT LEFT 0");
    let first = blocked(&mut rig, "BRPOPLPUSH a b 0");
    let onto_itself = blocked(&mut rig, "BLMOVE a a RIGHT LEFT 0");
    rig.check("RPUSH a 1", "1");
    told(&mut rig, first, &["\"1\""]);
    told(&mut rig, second, &["\"1\""]);
    told(&mut rig, last, &["[\"c\" \"1\"]"]);
    told(&mut rig, onto_itself, &[]);
    rig.check("RPUSH a 2", "1");
    told(&mut rig, onto_itself, &["\"2\""]);
    rig.reads("LRANGE a 0 -1", "[\"2\"]");
}

#[test]
fn a_move_to_what_is_no_list_fails_and_leaves_the_element() {
    let mut rig = Rig::new();
    rig.check("SET text x", "OK");
    let mover = blocked(&mut rig, "BLMOVE a text LEFT LEFT 0");
    let other = blocked(&mut rig, "BLPOP a 0");
    rig.check("RPUSH a 1", "1");
    told(&mut rig, mover, &["!WRONGTYPE Operation against a key holding the wrong kind of value"]);
    told(&mut rig, other, &["[\"a\" \"1\"]"]);
}

#[test]
fn stored_results_wake_who_waits() {
    let mut rig = Rig::new();
    rig.check("ZADD s 1 a 2 b", "2");
    let one = blocked(&mut rig, "BZPOPMIN t 0");
    rig.check("ZRANGESTORE t s 0 -1", "2");
    told(&mut rig, one, &["[\"t\" \"a\" ,1]"]);
    rig.check("ZCARD t", "1");
    let two = blocked(&mut rig, "BZMPOP 0 1 u MAX");
    rig.check("ZUNIONSTORE u 1 s", "2");
    told(&mut rig, two, &["[\"u\" [[\"b\" ,2]]]"]);
}

#[test]
fn whatever_makes_a_key_a_list_wakes_who_waits() {
    let mut rig = Rig::new();
    rig.check("RPUSH d 9", "1");
    let dumped = rig.run("DUMP d").replace("\\t", "\\x09").replace("\\n", "\\x0a");
    for (before, line, said) in [
        ("RPUSH other 1", "RENAME other q", "OK"),
        ("RPUSH other 1", "RENAMENX other q", "1"),
        ("RPUSH other 1", "COPY other q REPLACE", "1"),
        ("SADD numbers 1", "SORT numbers STORE q", "1"),
    ] {
        rig.run("DEL other");
        let waiting = blocked(&mut rig, "BRPOP q 0");
        rig.run(before);
        rig.check(line, said);
        told(&mut rig, waiting, &["[\"q\" \"1\"]"]);
    }
    let waiting = blocked(&mut rig, "BRPOP q 0");
    rig.check(&format!("RESTORE q 0 {dumped}"), "OK");
    told(&mut rig, waiting, &["[\"q\" \"9\"]"]);
    let elsewhere = rig.client();
    rig.run_as(elsewhere, "SELECT 3");
    assert_eq!(rig.run_as(elsewhere, "BLPOP d 0"), "");
    rig.check("MOVE d 3", "1");
    told(&mut rig, elsewhere, &["[\"d\" \"9\"]"]);
}

#[test]
fn a_client_that_is_gone_is_passed_over() {
    let mut rig = Rig::new();
    let gone = blocked(&mut rig, "BLPOP q 5");
    let there = blocked(&mut rig, "BLPOP q 0");
    rig.engine.disconnect(gone);
    rig.check("RPUSH q 1", "1");
    told(&mut rig, there, &["[\"q\" \"1\"]"]);
    assert_eq!(rig.engine.next_due(), None);
    rig.check("RPUSH q 1", "1");
}

#[test]
fn a_client_can_be_unblocked() {
    let mut rig = Rig::new();
    let (one, two) = (blocked(&mut rig, "BLPOP q 0"), blocked(&mut rig, "BZPOPMIN q 9"));
    let number = |rig: &mut Rig, conn| rig.engine.session(conn).unwrap().number;
    let (first, second) = (number(&mut rig, one), number(&mut rig, two));
    assert!(rig.engine.server.unblock(first, false));
    assert!(!rig.engine.server.unblock(first, true), "it has been already");
    assert!(rig.engine.server.unblock(second, true));
    told(&mut rig, one, &["(nil array)"]);
    told(&mut rig, two, &["!UNBLOCKED client unblocked via CLIENT UNBLOCK"]);
    assert!(!rig.engine.server.unblock(first, false), "it does not wait");
    rig.check("RPUSH q 1", "1");
    rig.check("LLEN q", "1");
}

#[test]
fn keys_that_memory_has_lost_are_loaded_for_who_waits() {
    let mut rig = Rig::new();
    let first = blocked(&mut rig, "BLPOP a b c 0");
    let second = blocked(&mut rig, "BLPOP b 0");
    rig.forget();
    rig.check("RPUSH b 1", "1");
    told(&mut rig, first, &["[\"b\" \"1\"]"]);
    told(&mut rig, second, &[]);
    rig.forget();
    rig.check("RPUSH b 2", "1");
    told(&mut rig, second, &["[\"b\" \"2\"]"]);
}

#[test]
fn what_sql_pushes_wakes_who_waits() {
    let mut rig = Rig::new();
    rig.check("RPUSH source 1 2", "2");
    rig.check("RPUSH target 0", "1");
    rig.check("LPOP target", "\"0\"");
    let (one, two) = (blocked(&mut rig, "BLPOP target 0"), blocked(&mut rig, "BLPOP target 0"));
    rig.turn();
    {
        let mut state = rig.tables.lock();
        let row = state.tables.kv[&(0, b"source"[..].into())].clone();
        state.tables.kv.insert((0, b"target"[..].into()), row);
        state.tables.kv.remove(&(0, b"source"[..].into()));
    }
    rig.tables.told(Told::Changed { db: 0, key: b"source"[..].into() });
    rig.tables.told(Told::Changed { db: 0, key: b"target"[..].into() });
    told(&mut rig, one, &["[\"target\" \"1\"]"]);
    told(&mut rig, two, &["[\"target\" \"2\"]"]);
}

#[test]
fn an_answer_waits_for_its_commit_and_is_given_again_when_undone() {
    let mut rig = Rig::new();
    let waiting = blocked(&mut rig, "BLPOP q 0");
    rig.tables.lock().slow = true;
    let mut reply = redis::reply::Recorded::new(2);
    let push = crate::rig::words("RPUSH q 1");
    rig.engine.run(rig.conn, push.args(), rig.now, &mut reply);
    told(&mut rig, waiting, &["[\"q\" \"1\"]"]);
    assert!(!rig.engine.session(waiting).unwrap().held.is_empty());
    rig.tables.conflict();
    rig.turn();
    let mut redo = rig.redo.clone();
    redo.sort_unstable();
    assert_eq!(redo, [rig.conn, waiting], "both run again");
    rig.tables.lock().slow = false;
    assert_eq!(rig.run_as(waiting, "BLPOP q 0"), "");
    rig.check("RPUSH q 1", "1");
    told(&mut rig, waiting, &["[\"q\" \"1\"]"]);
    rig.reads("LLEN q", "0");
}

/// A worker hears of an answer after it was told to run everything again, and has no place for it:
/// the element would be lost. So who has to run again waits no more.
#[test]
fn who_has_to_run_again_is_not_answered_meanwhile() {
    let mut rig = Rig::new();
    rig.check("RPUSH source 1", "1");
    let waiting = rig.client();
    rig.tables.lock().slow = true;
    let mut reply = redis::reply::Recorded::new(2);
    let set = crate::rig::words("SET x 1");
    rig.engine.run(waiting, set.args(), rig.now, &mut reply);
    rig.turn();
    assert_eq!(rig.run_as(waiting, "BLPOP target 0"), "");
    {
        let mut state = rig.tables.lock();
        let row = state.tables.kv[&(0, b"source"[..].into())].clone();
        state.tables.kv.insert((0, b"target"[..].into()), row);
        state.tables.kv.remove(&(0, b"source"[..].into()));
    }
    rig.tables.told(Told::Changed { db: 0, key: b"source"[..].into() });
    rig.tables.told(Told::Changed { db: 0, key: b"target"[..].into() });
    rig.tables.conflict();
    rig.turn();
    assert_eq!(rig.redo, [waiting]);
    told(&mut rig, waiting, &[]);
    rig.tables.lock().slow = false;
    assert_eq!(rig.run_as(waiting, "BLPOP target 0"), "[\"target\" \"1\"]");
}

#[test]
fn many_clients_wait_and_all_are_served_in_order() {
    let mut rig = Rig::new();
    let clients: Vec<ConnId> = (0..300).map(|_| blocked(&mut rig, "BLPOP q x y 100")).collect();
    for chunk in 0..30 {
        let elements: Vec<String> = (chunk * 10..chunk * 10 + 10).map(|n| n.to_string()).collect();
        rig.check(&format!("RPUSH q {}", elements.join(" ")), "10");
    }
    for (n, conn) in clients.into_iter().enumerate() {
        told(&mut rig, conn, &[&format!("[\"q\" \"{n}\"]")]);
    }
    rig.check("LLEN q", "0");
    assert_eq!(rig.engine.next_due(), None);
}

#[test]
fn a_command_that_blocked_is_counted_once() {
    let mut rig = Rig::new();
    let served = blocked(&mut rig, "BLPOP k 0");
    let late = blocked(&mut rig, "BLPOP j 0.1");
    let wrong = blocked(&mut rig, "BLMOVE l s LEFT LEFT 0");
    assert!(!rig.run("INFO commandstats").contains("blpop"), "they have not ended");
    rig.check("RPUSH k v", "1");
    told(&mut rig, served, &["[\"k\" \"v\"]"]);
    rig.pass(100);
    told(&mut rig, late, &["(nil array)"]);
    rig.check("SET s string", "OK");
    rig.check("RPUSH l v", "1");
    let error = "!WRONGTYPE Operation against a key holding the wrong kind of value";
    told(&mut rig, wrong, &[error]);
    let info = rig.run("INFO commandstats");
    for field in [
        "cmdstat_blpop:calls=2,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0",
        "cmdstat_blmove:calls=1,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=1",
    ] {
        assert!(info.contains(field), "{field} in {info}");
    }
}

/// It blocked, and had made its consumer before: it was answered before that was committed, and its
/// next command did not see it.
#[test]
fn what_a_command_has_done_before_it_blocks_is_committed_before_it_is_answered() {
    let mut rig = Rig::new();
    rig.check("XGROUP CREATE s g 0 MKSTREAM", "OK");
    rig.tables.lock().slow = true;
    rig.check("XREADGROUP GROUP g ann BLOCK 10 STREAMS s >", "");
    let consumers = rig.ran("XINFO CONSUMERS s g");
    assert!(consumers.is_some(), "it sees the consumer that is not committed");
    rig.tables.commit();
    rig.pass(20);
    assert_eq!(rig.told(rig.conn), ["(nil array)"]);
}
