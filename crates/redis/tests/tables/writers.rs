//! Who writes the tables by SQL is heard, and never overwritten unseen.

use crate::batches::{collection, fence, owner, string};
use crate::kit::Database;
use redis::batch::{Batch, Expect, Put};
use redis::changes::{changes, Changes};
use redis::keyspace::NEVER;
use redis::rows::Rows;
use redis::value::{Kind, Tracked, Value};

#[test]
fn writers_are_heard_by_key_and_the_gateway_is_not() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    engine.run("LISTEN redis");
    let mut batch = Batch::new();
    batch.put(string(b"s", b"v"), Expect::Anything);
    engine.apply(&batch, &[fence(1)]).expect("applied");
    batch.clear();
    batch.put(collection(b"h", Kind::Hash, 5, 3), Expect::Absent);
    [b"f", b"g", b"i"].iter().for_each(|field| batch.hash_put(5, &field[..], b"v"));
    batch.put(collection(b"l", Kind::List, 6, 2), Expect::Absent);
    batch.list_put(6, 0, b"v");
    batch.list_put(6, 1, b"w");
    engine.apply(&batch, &[fence(2)]).expect("applied");
    engine.run("SELECT 1");
    assert_eq!(engine.heard, [""; 0]);

    let cases: [(&str, &[&str]); 12] = [
        ("UPDATE redis.kv SET val = 'x' WHERE key = 's'", &["k 0 73"]),
        ("INSERT INTO redis.kv (db, key, t, val) VALUES (3, 'n', 's', 'v')", &["k 3 6e"]),
        ("UPDATE redis.kv SET db = 4 WHERE key = 'n'", &["k 4 6e", "k 3 6e"]),
        ("DELETE FROM redis.kv WHERE key = 'n'", &["k 4 6e"]),
        ("UPDATE redis.hash SET val = 'x' WHERE kid = 5", &["k 0 68"]),
        ("INSERT INTO redis.hash (kid, field, val) VALUES (5, 'j', 'v')", &["k 0 68"]),
        ("BEGIN; DELETE FROM redis.hash WHERE field = 'j'; ROLLBACK", &[]),
        ("DELETE FROM redis.hash WHERE field <> 'i'", &["k 0 68"]),
        ("UPDATE redis.list SET pos = pos + 10", &["k 0 6c"]),
        ("SELECT redis.set('s', 'y')", &["k 0 73"]),
        ("TRUNCATE redis.hash", &["k 0 68", "*"]),
        (
            "INSERT INTO redis.kv (db, key, t, val) SELECT 5, n::text::bytea, 's', '' \
          FROM generate_series(1, 2000) n",
            &["*"],
        ),
    ];
    for (statement, expected) in cases {
        sql.run(statement);
        engine.run("SELECT 1");
        let mut heard = std::mem::take(&mut engine.heard);
        if expected == ["*"] {
            assert_eq!(heard.len(), 1001, "many keys are announced at once");
            heard.drain(..1000);
        }
        assert_eq!(heard, expected, "{statement}");
    }
    assert_eq!(changes(b"k 0 68"), Changes::Key { db: 0, key: (*b"h").into() });
    sql.run("SELECT redis.set(repeat('x', 5000), 'v', db => 7)");
    engine.run("SELECT 1");
    let long = engine.heard.pop().expect("a notification");
    assert_eq!(changes(long.as_bytes()), Changes::Database(7), "its name can't be told");
    for odd in ["*", "", "k", "k 0", "k x 68", "k 0 6", "k 0 6g", "k 70000 68", "z 0 68"] {
        assert_eq!(changes(odd.as_bytes()), Changes::Everything, "{odd}");
    }
}

#[test]
fn a_changed_element_is_another_version_of_its_key() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    let mut batch = Batch::new();
    batch.put(collection(b"h", Kind::Hash, 5, 1), Expect::Absent);
    batch.hash_put(5, b"f", b"v");
    engine.apply(&batch, &[fence(1)]).expect("applied");
    sql.run("UPDATE redis.hash SET val = 'theirs'");
    batch.clear();
    batch.put(collection(b"h", Kind::Hash, 5, 1), Expect::Version(1));
    batch.hash_put(5, b"f", b"mine");
    engine.apply(&batch, &[fence(2)]).expect_err("it is another version");
    let rows = engine.load(0, &[b"h"]);
    let Value::Hash(hash) = &rows[0].1.value else { panic!("no hash") };
    assert_eq!(hash.get(b"f"), Some(&b"theirs"[..]));
    batch.clear();
    batch.put(collection(b"h", Kind::Hash, 5, 1), Expect::Version(rows[0].1.version));
    batch.hash_put(5, b"f", b"mine");
    engine.apply(&batch, &[fence(2)]).expect("applied");
    sql.run("DELETE FROM redis.hash");
    assert!(engine.load(0, &[b"h"]).is_empty(), "the key goes with its last element");
}

#[test]
fn a_list_with_gaps_is_loaded_as_a_new_one() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    let mut batch = Batch::new();
    batch.put(collection(b"l", Kind::List, 5, 3), Expect::Absent);
    (0..3).for_each(|pos| batch.list_put(5, pos, &[b'0' + pos as u8]));
    engine.apply(&batch, &[fence(1)]).expect("applied");
    sql.run("DELETE FROM redis.list WHERE val = '1'");
    let mut row = engine.load(0, &[b"l"]).remove(0).1;
    let Value::List(list) = &mut row.value else { panic!("no list") };
    assert_eq!((list.kid(), list.iter().collect::<Vec<_>>()), (0, vec![&b"0"[..], b"2"]));
    list.set_kid(6);
    batch.clear();
    let ends = list.ends();
    let put = collection(b"l", Kind::List, 6, 2);
    batch.put(Put { head: ends.0, tail: ends.1, ..put }, Expect::Version(row.version));
    list.drain(&mut batch);
    engine.apply(&batch, &[fence(2)]).expect("applied");
    let rows = "SELECT kid, pos FROM redis.list JOIN redis.kv USING (kid) ORDER BY pos";
    assert_eq!(sql.run(rows), ["6|0", "6|1"]);
    assert_eq!(sql.run("SELECT kid FROM redis.orphan"), ["5"]);
}

#[test]
fn no_update_is_lost_between_the_gateway_and_sql() {
    let database = Database::new();
    let mut engine = owner(&database);
    let mut batch = Batch::new();
    batch.put(string(b"n", b"0"), Expect::Absent);
    engine.apply(&batch, &[fence(1)]).expect("applied");
    let writer = {
        let database = database.clone();
        std::thread::spawn(move || {
            let mut sql = database.sql();
            (0..100).for_each(|_| drop(sql.run("SELECT redis.incr('n')")));
        })
    };
    let (mut added, mut seq, mut conflicts) = (0, 2, 0);
    while added < 100 {
        let row = engine.load(0, &[b"n"]).remove(0).1;
        let Value::Str(text) = &row.value else { panic!("no string") };
        let next = text.integer().expect("a number") + 1;
        batch.clear();
        batch.put(string(b"n", next.to_string().as_bytes()), Expect::Version(row.version));
        match engine.apply(&batch, &[fence(seq)]) {
            Ok(()) => (added, seq) = (added + 1, seq + 1),
            Err((code, _)) => {
                assert_eq!(code, redis::changes::CONFLICT);
                conflicts += 1;
            }
        }
    }
    writer.join().expect("nobody fails");
    assert_eq!(database.sql().one("SELECT redis.get('n'::text)"), "200", "{conflicts} conflicts");
}

#[test]
fn any_expiry_can_be_written_and_loaded() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    let far = 16_725_225_600_001; // in the year 2500
    let cases = [(NEVER, NEVER), (0, 0), (-5, 0), (far, far), (NEVER - 1, 9_000_000_000_000_000)];
    for (seq, (expires, loaded)) in cases.into_iter().enumerate() {
        let mut batch = Batch::new();
        batch.put(Put { expires, ..string(b"k", b"v") }, Expect::Anything);
        engine.apply(&batch, &[fence(seq as i64 + 1)]).expect("applied");
        assert_eq!(engine.load(0, &[b"k"])[0].1.expires, loaded);
    }
    for (word, loaded) in [("infinity", NEVER), ("-infinity", 0), ("1066-10-14", 0)] {
        sql.run(&format!("UPDATE redis.kv SET expires_at = '{word}'"));
        assert_eq!(engine.load(0, &[b"k"])[0].1.expires, loaded, "{word}");
    }
}

#[test]
fn truncating_leaves_neither_keys_without_elements_nor_elements_without_keys() {
    let database = Database::new();
    let mut sql = database.sql();
    let fill = "SELECT redis.hset('h', 'f', 'v'), redis.rpush('l', 'v'), redis.sadd('s', 'm'), \
                redis.zadd('z', 1, 'm'), redis.set('k', 'v')";
    let count = "SELECT (SELECT count(*) FROM redis.kv), (SELECT count(*) FROM redis.hash), \
                 (SELECT count(*) FROM redis.list), (SELECT count(*) FROM redis.set_), \
                 (SELECT count(*) FROM redis.zset)";
    sql.run(fill);
    sql.run("TRUNCATE redis.list");
    assert_eq!(sql.run(count), ["4|1|0|1|1"]);
    sql.run("TRUNCATE redis.hash, redis.set_");
    assert_eq!(sql.run(count), ["2|0|0|0|1"]);
    sql.run(fill);
    sql.run("TRUNCATE redis.kv, redis.hash");
    assert_eq!(sql.run(count), ["0|0|0|0|0"]);
    sql.run("LISTEN redis");
    sql.run(fill);
    sql.run("SELECT 1");
    assert_eq!(sql.heard.len(), 5, "triggers go on as before");
}
