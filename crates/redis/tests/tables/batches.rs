//! Batches: what they write, and when nothing of them happens.

use crate::kit::{integer, Database, Session};
use redis::batch::{Batch, Expect, Fence, Put};
use redis::changes;
use redis::keyspace::NEVER;
use redis::rows::Rows;
use redis::statements;
use redis::value::{Kind, Tracked, Value};

pub fn string<'a>(key: &'a [u8], val: &'a [u8]) -> Put<'a> {
    let (kind, expires) = (Kind::Str, NEVER);
    Put { shard: 0, db: 0, key, kind, val, kid: 0, n: 0, head: 0, tail: 0, expires }
}

pub fn collection(key: &[u8], kind: Kind, kid: i64, n: i64) -> Put<'_> {
    Put { kind, kid, n, ..string(key, b"") }
}

pub fn fence(seq: i64) -> Fence {
    Fence { shard: 0, epoch: 1, seq, folded: None }
}

/// A session that owns shards 0 to 3.
pub fn owner(database: &Database) -> Session {
    let mut engine = database.engine();
    engine.take(&[0, 1, 2, 3], "one");
    engine
}

fn one(write: impl FnOnce(&mut Batch)) -> Batch {
    let mut batch = Batch::new();
    write(&mut batch);
    batch
}

/// More than a page of an index takes, and not to be compressed.
fn long(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..9000).map(next).collect()
}

#[test]
fn every_kind_of_row_comes_back() {
    let database = Database::new();
    let mut engine = owner(&database);
    let (name, other) = (long(1), [&long(1)[..], b"!"].concat());
    let names: [&[u8]; 5] = [b"", b"\0\xff", b"name", &name, &other];
    let mut batch = Batch::new();
    for (at, key) in names.iter().enumerate() {
        let kid = 10 * (at as i64 + 1);
        let put = |kind, n| Put { db: at as u16, ..collection(key, kind, kid + n, n) };
        batch.put(Put { db: 9, ..string(key, key) }, Expect::Anything);
        batch.put(put(Kind::Hash, 5), Expect::Absent);
        names.iter().for_each(|field| batch.hash_put(kid + 5, field, &[field, &b"v"[..]].concat()));
        let more = |prefix: &[u8]| [prefix, key].concat();
        let key = more(b"set");
        batch.put(Put { db: 8, key: &key, ..put(Kind::Set, 4) }, Expect::Absent);
        names[1..].iter().for_each(|member| batch.set_put(kid + 4, member));
        let key = more(b"zset");
        batch.put(Put { db: 8, key: &key, ..put(Kind::Zset, 3) }, Expect::Absent);
        let scores = [f64::NEG_INFINITY, -0.5, 1e300];
        names[2..]
            .iter()
            .zip(scores)
            .for_each(|(name, score)| batch.zset_put(kid + 3, name, score));
        let key = more(b"list");
        let list = Put { head: -1, tail: 0, db: 8, key: &key, ..put(Kind::List, 2) };
        batch.put(list, Expect::Absent);
        batch.list_put(kid + 2, -1, &name);
        batch.list_put(kid + 2, 0, b"");
        let key = more(b"stream");
        let stream = Put {
            db: 8,
            key: &key,
            val: b"head",
            expires: 4_102_444_800_123,
            ..put(Kind::Stream, 1)
        };
        batch.put(stream, Expect::Absent);
        batch.stream_put(kid + 1, u64::MAX, 7, b"fields");
        batch.stream_group_put(kid + 1, &name, b"state");
    }
    engine.apply(&batch, &[fence(1)]).expect("applied");

    for (db, key) in names.iter().enumerate() {
        let rows = engine.load(db as i16, &[key, b"nothing"]);
        let [(found, row)] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert_eq!((&**found, row.version, row.expires), (*key, 1, NEVER));
        let Value::Hash(hash) = &row.value else { panic!("{:?}", row.value.kind()) };
        assert_eq!((hash.kid(), hash.len()), (10 * (db as i64 + 1) + 5, 5));
        for field in names {
            assert_eq!(hash.get(field), Some(&[field, b"v"].concat()[..]));
        }
        let text = &engine.load(9, &[key])[0].1;
        let Value::Str(text) = &text.value else { panic!("{:?}", text.value.kind()) };
        assert_eq!(&*text.text(), *key);
        let more = |prefix: &[u8]| [prefix, key].concat();
        let row = engine.load(8, &[&more(b"set")]).remove(0).1;
        let Value::Set(set) = &row.value else { panic!("{:?}", row.value.kind()) };
        assert!(set.len() == 4 && names[1..].iter().all(|member| set.contains(member)));
        let row = engine.load(8, &[&more(b"zset")]).remove(0).1;
        let Value::Zset(zset) = &row.value else { panic!("{:?}", row.value.kind()) };
        assert_eq!(zset.len(), 3);
        assert_eq!(zset.score(b"name"), Some(f64::NEG_INFINITY));
        assert_eq!((zset.score(&name), zset.score(&other)), (Some(-0.5), Some(1e300)));
        let row = engine.load(8, &[&more(b"list")]).remove(0).1;
        let Value::List(list) = &row.value else { panic!("{:?}", row.value.kind()) };
        assert_eq!((list.ends(), list.iter().collect::<Vec<_>>()), ((-1, 0), vec![&name[..], b""]));
        let row = engine.load(8, &[&more(b"stream")]).remove(0).1;
        assert_eq!((row.value.kind(), row.expires), (Kind::Stream, 4_102_444_800_123));
        assert_eq!(row.value.collection().map(Tracked::len), Some(1));
    }
    let stream = "SELECT ms, seq, fields FROM redis.stream LIMIT 1";
    assert_eq!(engine.run(stream), ["-1|7|\\x6669656c6473"]);
    let groups = "SELECT DISTINCT length(name), state FROM redis.stream_group";
    assert_eq!(engine.run(groups), ["9000|\\x7374617465"]);
}

#[test]
fn rows_of_collections_are_changed_and_deleted() {
    let database = Database::new();
    let mut engine = owner(&database);
    let first = one(|b| {
        for n in 0..5u8 {
            b.hash_put(1, &[n], b"old");
            b.set_put(2, &[n]);
            b.zset_put(3, &[n], 0.0);
            b.list_put(4, i64::from(n), b"old");
            b.stream_put(5, u64::from(n), 0, b"old");
            b.stream_group_put(5, &[n], b"old");
        }
    });
    engine.apply(&first, &[fence(1)]).expect("applied");
    let second = one(|b| {
        b.hash_put(1, &[0], b"new");
        b.hash_delete(1, &[1]);
        b.set_put(2, &[0]);
        b.set_delete(2, &[1]);
        b.zset_put(3, &[0], 1.0);
        b.zset_delete(3, &[1]);
        b.list_trim(4, 1, 3);
        b.list_put(4, 2, b"new");
        b.stream_put(5, 0, 0, b"new");
        b.stream_delete(5, 1, 0);
        b.stream_group_put(5, &[0], b"new");
        b.stream_group_delete(5, &[1]);
    });
    engine.apply(&second, &[fence(2)]).expect("applied");
    let rest = |engine: &mut Session, table: &str, what: &str| {
        engine.one(&format!("SELECT string_agg({what}, ' ' ORDER BY {what}) FROM redis.{table}"))
    };
    let text = |column: &str| format!("convert_from({column}, 'UTF8')");
    assert_eq!(rest(&mut engine, "hash", &text("val")), "new old old old");
    assert_eq!(rest(&mut engine, "set_", "member::text"), "\\x00 \\x02 \\x03 \\x04");
    assert_eq!(rest(&mut engine, "zset", "score::text"), "0 0 0 1");
    assert_eq!(rest(&mut engine, "list", &format!("pos || {}", text("val"))), "1old 2new 3old");
    assert_eq!(
        rest(&mut engine, "stream", &format!("ms || {}", text("fields"))),
        "0new 2old 3old 4old"
    );
    assert_eq!(rest(&mut engine, "stream_group", &text("state")), "new old old old");
}

#[test]
fn what_was_under_an_overwritten_key_is_swept() {
    let database = Database::new();
    let mut engine = owner(&database);
    let hash = one(|b| {
        b.put(collection(b"k", Kind::Hash, 7, 1), Expect::Absent);
        b.hash_put(7, b"f", b"v");
        b.put(collection(b"moved", Kind::Set, 8, 1), Expect::Absent);
        b.set_put(8, b"m");
    });
    engine.apply(&hash, &[fence(1)]).expect("applied");
    // The fast call, which does not know what it overwrites; and a rename.
    engine
        .apply(&one(|b| b.put(string(b"k", b"v"), Expect::Anything)), &[fence(2)])
        .expect("applied");
    let rename = one(|b| {
        b.delete(0, b"moved", Expect::Version(1));
        b.put(collection(b"here", Kind::Set, 8, 1), Expect::Absent);
    });
    engine.apply(&rename, &[fence(3)]).expect("applied");
    assert_eq!(engine.run("SELECT kid, t FROM redis.orphan ORDER BY 1"), ["7|h", "8|e"]);
    let sweep = engine.call(&statements::SWEEP, |params| params.int8(100)).expect("swept");
    assert_eq!(integer(sweep[0][0].as_deref()), 3, "two orphans, one row");
    assert_eq!(engine.one("SELECT count(*) FROM redis.hash"), "0");
    assert_eq!(engine.run("SELECT * FROM redis.orphan"), [""; 0]);
    let rows = engine.load(0, &[b"here", b"moved", b"k"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(engine.one("SELECT count(*) FROM redis.set_"), "1", "what was renamed is kept");
}

#[test]
fn a_sweep_does_so_much_and_no_more() {
    let database = Database::new();
    let mut engine = owner(&database);
    let batch = one(|b| {
        (0..100u8).for_each(|n| b.zset_put(3, &[n], 1.0));
        b.orphan(3, Kind::Zset);
    });
    engine.apply(&batch, &[fence(1)]).expect("applied");
    for left in [70, 40, 10, 0] {
        engine.call(&statements::SWEEP, |params| params.int8(30)).expect("swept");
        assert_eq!(engine.one("SELECT count(*) FROM redis.zset"), left.to_string());
    }
    assert_eq!(engine.one("SELECT count(*) FROM redis.orphan"), "0");
}

#[test]
fn a_batch_is_applied_once_and_by_its_owner_only() {
    let database = Database::new();
    let mut engine = owner(&database);
    for general in [false, true] {
        let seq = 1 + i64::from(general);
        let batch = one(|b| {
            b.put(string(b"k", if general { b"general" } else { b"plain" }), Expect::Anything);
            if general {
                b.delete(0, b"other", Expect::Anything);
            }
        });
        engine.apply(&batch, &[fence(seq)]).expect("applied");
        for wrong in [fence(seq), fence(seq + 2), Fence { epoch: 2, ..fence(seq + 1) }] {
            let (code, detail) = engine.apply(&batch, &[wrong]).expect_err("fenced");
            assert_eq!(code, changes::STALE);
            assert_eq!(detail, format!("shard 0 epoch 1 applied {seq}"));
        }
    }
    // Another gateway takes over: what the first sends is refused, what it sends again goes on.
    let mut other = database.engine();
    assert_eq!(other.take(&[0, 1], "two"), [[0, 2, 2, 2, 0], [1, 2, 0, 0, 0]]);
    let batch = one(|b| b.put(string(b"k", b"late"), Expect::Anything));
    assert_eq!(engine.apply(&batch, &[fence(3)]).expect_err("fenced").0, changes::STALE);
    assert_eq!(other.one("SELECT redis.get('k'::text)"), "general");
    other.apply(&batch, &[Fence { epoch: 2, ..fence(3) }]).expect("applied");
    assert_eq!(other.one("SELECT redis.get('k'::text)"), "late");
}

#[test]
fn a_batch_of_several_shards_happens_in_all_or_in_none() {
    let database = Database::new();
    let mut engine = owner(&database);
    let batch = one(|b| {
        b.put(string(b"a", b"1"), Expect::Anything);
        b.put(Put { shard: 2, ..string(b"b", b"2") }, Expect::Anything);
    });
    let both = |first, second| [fence(first), Fence { shard: 2, ..fence(second) }];
    engine.apply(&batch, &both(1, 1)).expect("applied");
    let alone = one(|b| b.put(Put { shard: 2, ..string(b"b", b"3") }, Expect::Anything));
    engine.apply(&alone, &[Fence { shard: 2, ..fence(2) }]).expect("applied");
    let (code, detail) = engine.apply(&batch, &both(2, 2)).expect_err("fenced");
    assert_eq!(code, changes::STALE);
    assert_eq!(detail, "shard 0 epoch 1 applied 1, shard 2 epoch 1 applied 2");
    assert_eq!(engine.run("SELECT applied FROM redis.shard ORDER BY id"), ["1", "0", "2", "0"]);
    engine.apply(&batch, &both(2, 3)).expect("applied");
    let versions = "SELECT ver FROM redis.kv ORDER BY key";
    assert_eq!(engine.run(versions), ["2", "3"], "each of its own shard");
}

#[test]
fn what_is_not_as_expected_undoes_the_whole_batch() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    let start = one(|b| {
        [&b"a"[..], b"b", b"c"].iter().for_each(|key| b.put(string(key, b"old"), Expect::Absent));
    });
    engine.apply(&start, &[fence(1)]).expect("applied");
    sql.run("SELECT redis.set('b', 'theirs'); SELECT redis.set('new', 'theirs')");
    let dump = "SELECT key, val, ver FROM redis.kv ORDER BY key";
    let before = sql.run(dump);
    fn put(batch: &mut Batch, key: &[u8], expect: Expect) {
        batch.put(string(key, b"mine"), expect);
    }
    type Case = (&'static str, &'static [u8], Box<dyn Fn(&mut Batch)>);
    let cases: [Case; 8] = [
        (changes::CONFLICT, b"b", Box::new(|b| put(b, b"b", Expect::Version(1)))),
        (changes::CONFLICT, b"gone", Box::new(|b| put(b, b"gone", Expect::Version(1)))),
        (changes::CONFLICT, b"new", Box::new(|b| put(b, b"new", Expect::Absent))),
        (changes::CONFLICT, b"b", Box::new(|b| b.delete(0, b"b", Expect::Version(1)))),
        (changes::CONFLICT, b"gone", Box::new(|b| b.delete(0, b"gone", Expect::Version(1)))),
        (changes::WATCHED, b"b", Box::new(|b| b.check(0, b"b", Expect::Version(1)))),
        (changes::WATCHED, b"gone", Box::new(|b| b.check(0, b"gone", Expect::Version(1)))),
        (changes::WATCHED, b"new", Box::new(|b| b.delete(0, b"new", Expect::Absent))),
    ];
    for (number, (expected, key, wrong)) in cases.iter().enumerate() {
        let batch = one(|b| {
            put(b, b"a", Expect::Version(1));
            put(b, b"x", Expect::Absent);
            put(b, b"y", Expect::Anything);
            b.delete(0, b"c", Expect::Version(1));
            b.hash_put(1, b"f", b"v");
            wrong(b);
        });
        let (code, detail) = engine.apply(&batch, &[fence(2)]).expect_err("a conflict");
        assert_eq!(code, *expected, "case {number}");
        let named: Vec<_> = changes::named_keys(&detail).collect();
        assert_eq!(named, [(0, key.to_vec())], "case {number}");
        assert_eq!(sql.run(dump), before, "case {number}");
    }
    assert_eq!(sql.one("SELECT count(*) FROM redis.hash"), "0");
    let version = engine.load(0, &[b"b"])[0].1.version;
    assert!(version < 0, "SQL's versions are negative: {version}");
    let batch = one(|b| {
        put(b, b"b", Expect::Version(version));
        b.check(0, b"a", Expect::Version(1));
        b.check(0, b"nothing", Expect::Absent);
        b.delete(0, b"c", Expect::Version(1));
        b.delete(0, b"nothing", Expect::Anything);
    });
    engine.apply(&batch, &[fence(2)]).expect("all is as expected");
    assert_eq!(
        sql.run("SELECT key_text, value_text FROM redis.strings ORDER BY 1"),
        ["a|old", "b|mine", "new|theirs"]
    );
}

#[test]
fn a_database_is_emptied_before_the_rest_of_the_batch() {
    let database = Database::new();
    let mut engine = owner(&database);
    let start = one(|b| {
        b.put(string(b"a", b"1"), Expect::Absent);
        b.put(collection(b"h", Kind::Hash, 5, 1), Expect::Absent);
        b.hash_put(5, b"f", b"v");
        b.put(Put { db: 3, ..string(b"a", b"3") }, Expect::Absent);
    });
    engine.apply(&start, &[fence(1)]).expect("applied");
    let batch = one(|b| {
        b.flush(0);
        b.put(string(b"b", b"2"), Expect::Anything);
    });
    engine.apply(&batch, &[fence(2)]).expect("applied");
    assert_eq!(engine.run("SELECT db, key_text FROM redis.strings ORDER BY 1"), ["0|b", "3|a"]);
    assert_eq!(engine.run("SELECT kid, t FROM redis.orphan"), ["5|h"]);
}

#[test]
fn questions_about_all_keys_are_answered() {
    let database = Database::new();
    let mut engine = owner(&database);
    let batch = one(|b| {
        for n in 0..10u8 {
            b.put(string(&[b'k', n], b"v"), Expect::Absent);
        }
        b.put(string(b"", b"v"), Expect::Absent);
        b.put(string(&long(1), b"v"), Expect::Absent);
        b.put(Put { expires: 1000, ..string(b"over", b"v") }, Expect::Absent);
        b.put(collection(b"set", Kind::Set, 1, 0), Expect::Absent);
        b.put(Put { db: 1, ..string(b"elsewhere", b"v") }, Expect::Absent);
    });
    engine.apply(&batch, &[fence(1)]).expect("applied");
    let size = engine.call(&statements::SIZE, |params| params.int2(0)).expect("answered");
    assert_eq!(integer(size[0][0].as_deref()), 13);
    let databases = engine.call(&statements::DATABASES, |_| {}).expect("answered");
    let keys: Vec<i64> = databases.iter().map(|row| integer(row[1].as_deref())).collect();
    assert_eq!(keys, [13, 1]);
    let mut all = Vec::new();
    let first = |params: &mut backend::calls::Params<'_>| {
        params.int2(0);
        params.int8(5);
        params.null();
    };
    let mut page = engine.call(&statements::FIRST_KEYS, first).expect("answered");
    while !page.is_empty() {
        all.extend(page.drain(..).map(|mut row| row.remove(0).expect("a key")));
        let after = redis::name::stored(all.last().expect("a key")).into_owned();
        let next = |params: &mut backend::calls::Params<'_>| {
            params.int2(0);
            params.bytea(&after);
            params.int8(5);
            params.null();
        };
        page = engine.call(&statements::KEYS, next).expect("answered");
    }
    assert_eq!(all.len(), 13);
    assert!(
        all.contains(&long(1)) && all.contains(&Vec::new()) && !all.contains(&b"over".to_vec())
    );
    let sets = |params: &mut backend::calls::Params<'_>| {
        params.int2(0);
        params.int8(5);
        params.char(b'e');
    };
    let page = engine.call(&statements::FIRST_KEYS, sets).expect("answered");
    assert_eq!(page, [[Some(b"set".to_vec())]]);
    let random = engine.call(&statements::RANDOM_KEY, |params| params.int2(1)).expect("answered");
    assert_eq!(random, [[Some(b"elsewhere".to_vec())]]);
    let random = engine.call(&statements::RANDOM_KEY, |params| params.int2(2)).expect("answered");
    assert_eq!(random, [[None]]);
    let pages = engine.call(&statements::PAGES, |_| {}).expect("answered");
    let pages = integer(pages[0][0].as_deref());
    let expired = |params: &mut backend::calls::Params<'_>| {
        params.int8(0);
        params.int8(pages);
    };
    let expired = engine.call(&statements::EXPIRED, expired).expect("answered");
    assert_eq!(expired[0][1], Some(b"over".to_vec()));
    assert_eq!((expired.len(), integer(expired[0][2].as_deref())), (1, 1));
    let counts = engine.call(&statements::COUNTS, |params| params.int2(0)).expect("answered");
    let strings = counts.iter().find(|row| row[0] == Some(vec![b's'])).expect("strings");
    assert_eq!((integer(strings[1].as_deref()), integer(strings[2].as_deref())), (13, 1));
}
