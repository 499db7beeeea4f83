//! Who writes the tables by SQL is heard, and never overwritten unseen.

use crate::batches::{collection, fence, owner, string};
use crate::kit::Database;
use redis::batch::{Batch, Expect};
use redis::changes::{changes, Changes};
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
    assert_eq!(changes(b"k 0 68"), Changes::Key { db: 0, stored: b"h".to_vec() });
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
    batch
        .put(redis::batch::Put { head: ends.0, tail: ends.1, ..put }, Expect::Version(row.version));
    list.drain(&mut batch);
    engine.apply(&batch, &[fence(2)]).expect("applied");
    let rows = "SELECT kid, pos FROM redis.list JOIN redis.kv USING (kid) ORDER BY pos";
    assert_eq!(sql.run(rows), ["6|0", "6|1"]);
    assert_eq!(sql.run("SELECT kid FROM redis.orphan"), ["5"]);
}
