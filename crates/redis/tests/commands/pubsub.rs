//! Publish and subscribe, keyspace notifications.

use redis::engine::Ran;
use redis::reply::Recorded;
use redis::session::ConnId;
use redis::store::Told;

use crate::rig::{words, Rig};

/// Runs without waiting for the commit.
fn start(rig: &mut Rig, conn: ConnId, line: &str) -> String {
    let protocol = rig.engine.session(conn).map_or(2, |session| session.protocol);
    let mut reply = Recorded::new(protocol);
    let ran = rig.engine.run(conn, words(line).args(), rig.now, &mut reply);
    assert!(matches!(ran, Ran::Done { .. }), "{line}: {ran:?}");
    format!("{reply:?}")
}

#[test]
fn subscriptions_are_counted_and_messages_arrive() {
    let mut rig = Rig::new();
    let listener = rig.client();
    let said = rig.run_as(listener, "SUBSCRIBE a b a");
    assert_eq!(said, r#"<"subscribe" "a" 1> <"subscribe" "b" 2> <"subscribe" "a" 2>"#);
    assert_eq!(rig.run_as(listener, "PSUBSCRIBE a*"), r#"<"psubscribe" "a*" 3>"#);
    assert_eq!(rig.run_as(listener, "SSUBSCRIBE a"), r#"<"ssubscribe" "a" 1>"#);
    rig.check("PUBLISH a hello", "2");
    rig.check("SPUBLISH a there", "1");
    rig.check("PUBLISH c hello", "0");
    assert_eq!(
        rig.told(listener),
        [
            r#"<"message" "a" "hello">"#,
            r#"<"pmessage" "a*" "a" "hello">"#,
            r#"<"smessage" "a" "there">"#
        ]
    );
    rig.check("PUBSUB NUMSUB a b x", r#"["a" 1 "b" 1 "x" 0]"#);
    rig.check("PUBSUB NUMPAT", "1");
    rig.check("PUBSUB CHANNELS b*", r#"["b"]"#);
    rig.check("PUBSUB SHARDCHANNELS", r#"["a"]"#);
    rig.check("PUBSUB SHARDNUMSUB a", r#"["a" 1]"#);
    let said = rig.run_as(listener, "UNSUBSCRIBE");
    assert_eq!(said, r#"<"unsubscribe" "a" 2> <"unsubscribe" "b" 1>"#);
    assert_eq!(rig.run_as(listener, "UNSUBSCRIBE"), r#"<"unsubscribe" (nil) 1>"#);
    assert_eq!(rig.run_as(listener, "UNSUBSCRIBE x"), r#"<"unsubscribe" "x" 1>"#);
    assert_eq!(rig.run_as(listener, "PUNSUBSCRIBE"), r#"<"punsubscribe" "a*" 0>"#);
    assert_eq!(rig.run_as(listener, "SUNSUBSCRIBE"), r#"<"sunsubscribe" "a" 0>"#);
    rig.check("PUBLISH a again", "0");
    rig.check("PUBSUB CHANNELS", "[]");
}

#[test]
fn with_resp2_a_listener_may_do_little_and_with_resp3_everything() {
    let mut rig = Rig::new();
    rig.check("SUBSCRIBE a", r#"<"subscribe" "a" 1>"#);
    rig.check(
        "GET a",
        "!ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context",
    );
    rig.check(
        "CLIENT ID",
        "!ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context",
    );
    rig.check("PING", r#"["pong" ""]"#);
    rig.check("PING x", r#"["pong" "x"]"#);
    rig.check("RESET", "RESET");
    rig.check("PING", "PONG");
    rig.check("PUBSUB CHANNELS", "[]");
    rig.run("HELLO 3");
    rig.check("SUBSCRIBE a", r#"<"subscribe" "a" 1>"#);
    rig.check("PING", "PONG");
    rig.check("PUBLISH a me", "1");
    assert_eq!(rig.told(rig.conn), [r#"<"message" "a" "me">"#]);
}

#[test]
fn a_message_comes_when_what_was_written_before_has_committed() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "SUBSCRIBE c");
    rig.tables.lock().slow = true;
    let writer = rig.conn;
    for (set, publish) in [("SET k 1", "PUBLISH c one"), ("SET k 2", "PUBLISH c two")] {
        assert_eq!(start(&mut rig, writer, set), "OK");
        // The batch is on its way when the message is published; the second one is not yet.
        rig.turn();
        assert_eq!(start(&mut rig, writer, publish), "1");
    }
    assert!(rig.told(listener).is_empty(), "nothing is committed");
    rig.tables.commit();
    assert_eq!(rig.told(listener), [r#"<"message" "c" "one">"#, r#"<"message" "c" "two">"#]);
    // In a transaction, too.
    start(&mut rig, writer, "MULTI");
    start(&mut rig, writer, "PUBLISH c three");
    start(&mut rig, writer, "SET other 1");
    assert_eq!(start(&mut rig, writer, "EXEC"), "[1 OK]");
    assert!(rig.told(listener).is_empty());
    rig.tables.commit();
    assert_eq!(rig.told(listener), [r#"<"message" "c" "three">"#]);
    // Somebody else's writes don't matter.
    start(&mut rig, writer, "SET k 3");
    let other = rig.client();
    assert_eq!(start(&mut rig, other, "PUBLISH c four"), "1");
    assert_eq!(rig.told(listener), [r#"<"message" "c" "four">"#]);
}

#[test]
fn a_message_of_an_undone_batch_is_not_told_twice() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "SUBSCRIBE c");
    rig.check("SET k 1", "OK");
    rig.tables.lock().slow = true;
    let writer = rig.conn;
    start(&mut rig, writer, "INCRBY k 1");
    rig.turn();
    assert_eq!(start(&mut rig, writer, "PUBLISH c one"), "1");
    rig.tables.conflict();
    rig.turn();
    assert_eq!(rig.redo, [writer]);
    rig.tables.lock().slow = false;
    rig.check("INCRBY k 1", "2");
    rig.check("PUBLISH c one", "1");
    assert_eq!(rig.told(listener), [r#"<"message" "c" "one">"#]);
}

#[test]
fn who_has_gone_or_was_killed_hears_nothing() {
    let mut rig = Rig::new();
    let (one, other) = (rig.client(), rig.client());
    rig.run_as(one, "SUBSCRIBE c");
    rig.run_as(other, "PSUBSCRIBE c");
    rig.check("PUBLISH c x", "2");
    rig.engine.disconnect(one);
    rig.check("PUBLISH c x", "1");
    rig.check("CLIENT KILL TYPE pubsub", "1");
    rig.check("PUBLISH c x", "0");
    rig.check("PUBSUB NUMPAT", "0");
}

#[test]
fn changes_are_told_when_they_have_committed() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "PSUBSCRIBE __key*");
    rig.check("SET a 1", "OK");
    assert!(rig.told(listener).is_empty());
    rig.check("CONFIG SET notify-keyspace-events KEx", "OK");
    rig.check("CONFIG GET notify-keyspace-events", r#"{"notify-keyspace-events" "xKE"}"#);
    rig.check("DEBUG SET-ACTIVE-EXPIRE 1", "OK");
    rig.tables.lock().slow = true;
    let expires = rig.now + 100;
    let store = rig.tables.clone();
    {
        let mut state = store.lock();
        state.tables.kv.get_mut(&(0, b"a"[..].into())).unwrap().expires = expires;
    }
    rig.forget();
    rig.check("GET a", "\"1\"");
    assert_eq!(rig.engine.next_due(), Some(expires));
    rig.pass(99);
    assert!(rig.told(listener).is_empty());
    rig.pass(1);
    rig.check("GET a", "(nil)");
    assert!(rig.told(listener).is_empty(), "the row is not deleted yet");
    rig.tables.commit();
    assert_eq!(
        rig.told(listener),
        [
            r#"<"pmessage" "__key*" "__keyspace@0__:a" "expired">"#,
            r#"<"pmessage" "__key*" "__keyevent@0__:expired" "a">"#
        ]
    );
    assert_eq!(rig.tables.lock().tables.kv.len(), 0);
    assert_eq!(rig.engine.next_due(), None);
}

#[test]
fn what_is_swept_in_the_tables_is_told_as_expired() {
    let mut rig = Rig::new();
    rig.check("CONFIG SET notify-keyspace-events Ex", "OK");
    rig.check("SET a 1", "OK");
    let listener = rig.client();
    rig.run_as(listener, "SUBSCRIBE __keyevent@0__:expired");
    rig.forget();
    let version = {
        let mut state = rig.tables.lock();
        let row = state.tables.kv.get_mut(&(0, b"a"[..].into())).unwrap();
        row.expires = 1;
        row.version
    };
    let key: Box<[u8]> = b"a"[..].into();
    // Not while clients are paused.
    rig.check("CLIENT PAUSE 1000 WRITE", "OK");
    rig.tables.told(Told::Expired { keys: vec![(0, key.clone(), version)] });
    assert!(rig.told(listener).is_empty());
    assert_eq!(rig.tables.lock().tables.kv.len(), 1);
    rig.check("CLIENT UNPAUSE", "OK");
    rig.tables.told(Told::Expired { keys: vec![(0, key, version)] });
    assert_eq!(rig.told(listener), [r#"<"message" "__keyevent@0__:expired" "a">"#]);
    assert!(rig.tables.lock().tables.kv.is_empty());
    assert_eq!(rig.engine.figures().expired, 1);
}

#[test]
fn many_keys_expire_each_at_its_time() {
    let mut rig = Rig::new();
    for key in 0..600 {
        rig.check(&format!("SET k{key} x"), "OK");
    }
    let now = rig.now;
    for (at, row) in rig.tables.lock().tables.kv.values_mut().enumerate() {
        row.expires = if at % 2 == 0 { now + 10 } else { now + 20 };
    }
    rig.forget();
    for key in 0..600 {
        rig.check(&format!("GET k{key}"), "\"x\"");
    }
    rig.pass(10);
    assert_eq!(rig.tables.lock().tables.kv.len(), 300);
    assert_eq!(rig.engine.next_due(), Some(now + 20));
    rig.check("DEBUG SET-ACTIVE-EXPIRE 0", "OK");
    rig.pass(10);
    assert_eq!(rig.tables.lock().tables.kv.len(), 300, "they are kept, but not seen");
    rig.check("GET k1", "(nil)");
    rig.check("DEBUG SET-ACTIVE-EXPIRE 1", "OK");
    rig.turn();
    assert_eq!(rig.tables.lock().tables.kv.len(), 0);
    assert!(rig.run("INFO stats").contains("expired_keys:600"));
}

/// What a listener to all events hears of a command.
fn heard(rig: &mut Rig, listener: ConnId, line: &str) -> Vec<String> {
    rig.run(line);
    let told = rig.told(listener);
    let words = told.iter().filter_map(|message| message.split('"').nth(5));
    words.map(|channel| channel.trim_start_matches("__keyevent@0__:").to_owned()).collect()
}

#[test]
fn new_keys_are_told_once_be_they_in_memory_or_not() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "PSUBSCRIBE *");
    rig.check("SET a 1", "OK");
    rig.check("SET old 1 PX 10", "OK");
    rig.check("CONFIG SET notify-keyspace-events En", "OK");
    rig.forget();
    assert!(heard(&mut rig, listener, "SET a 2").is_empty());
    assert_eq!(heard(&mut rig, listener, "SET b 1"), ["new"]);
    assert!(heard(&mut rig, listener, "SET b 2").is_empty());
    rig.forget();
    assert_eq!(heard(&mut rig, listener, "MSET a 1 b 1 c 1 d 1"), ["new", "new"]);
    assert_eq!(heard(&mut rig, listener, "LPUSH l 1"), ["new"]);
    assert!(heard(&mut rig, listener, "LPUSH l 1").is_empty());
    rig.pass(20);
    assert_eq!(heard(&mut rig, listener, "SET old 2"), ["new"]);
    assert_eq!(heard(&mut rig, listener, "COPY a e"), ["new"]);
}

#[test]
fn reads_of_keys_that_are_not_there_are_told() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "PSUBSCRIBE *");
    rig.check("SET a 1", "OK");
    rig.check("CONFIG SET notify-keyspace-events Em", "OK");
    assert_eq!(heard(&mut rig, listener, "GET none"), ["keymiss"]);
    assert_eq!(heard(&mut rig, listener, "MGET none a also"), ["keymiss", "keymiss"]);
    assert!(heard(&mut rig, listener, "GET a").is_empty());
    assert!(heard(&mut rig, listener, "INCR n").is_empty());
}

#[test]
fn consumers_that_are_made_by_reading_and_claiming_are_told() {
    let mut rig = Rig::new();
    let listener = rig.client();
    rig.run_as(listener, "PSUBSCRIBE *");
    rig.check("CONFIG SET notify-keyspace-events Et", "OK");
    assert_eq!(heard(&mut rig, listener, "XGROUP CREATE s g $ MKSTREAM"), ["xgroup-create"]);
    assert_eq!(heard(&mut rig, listener, "XADD s 1 a b"), ["xadd"]);
    let made = ["xgroup-createconsumer"];
    assert_eq!(heard(&mut rig, listener, "XREADGROUP GROUP g one STREAMS s >"), made);
    assert!(heard(&mut rig, listener, "XREADGROUP GROUP g one STREAMS s 0").is_empty());
    assert_eq!(heard(&mut rig, listener, "XREADGROUP GROUP g idle STREAMS s 0"), made);
    assert_eq!(heard(&mut rig, listener, "XCLAIM s g two 0 1 FORCE"), made);
    assert_eq!(heard(&mut rig, listener, "XAUTOCLAIM s g three 0 0"), made);
    assert!(heard(&mut rig, listener, "XAUTOCLAIM s g one 0 0").is_empty());
}
