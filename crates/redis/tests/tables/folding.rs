//! The journal: batches that are acknowledged, and come into the tables together.

use crate::batches::{collection, fence, owner, string};
use crate::kit::{integer, Database, Session};
use redis::batch::{Batch, Expect, Fence, Malformed, Put};
use redis::changes;
use redis::rows::Rows;
use redis::statements;
use redis::value::Kind;

fn append(engine: &mut Session, seq: i64, batch: &Batch) -> Result<(), crate::kit::Refusal> {
    let mut effects = Vec::new();
    batch.write_effects(&mut effects);
    let write = |params: &mut backend::calls::Params<'_>| {
        params.int2(0);
        params.int8(1);
        params.int8(seq);
        params.bytea(&effects);
    };
    engine.call(&statements::APPEND, write).map(|_| ())
}

#[test]
fn a_journal_is_fenced_folded_and_waited_for() {
    let database = Database::new();
    let (mut engine, mut sql) = (owner(&database), database.sql());
    for seq in 1..=3 {
        let mut batch = Batch::new();
        batch.put(string(b"hot", seq.to_string().as_bytes()), Expect::Version(seq));
        batch.put(string(&[seq as u8], b"v"), Expect::Absent);
        append(&mut engine, seq, &batch).expect("appended");
        assert_eq!(append(&mut engine, seq, &batch).expect_err("once").0, changes::STALE);
    }
    assert_eq!(sql.one("SELECT redis.sync('0.02 s')"), "f");
    let waiting = {
        let database = database.clone();
        std::thread::spawn(move || database.sql().one("SELECT redis.sync()"))
    };
    let journal = |params: &mut backend::calls::Params<'_>| {
        params.int2(0);
        params.int8(0);
        params.int8(2);
    };
    let rows = engine.call(&statements::JOURNAL, journal).expect("read");
    assert_eq!(rows.len(), 2);
    let mut batch = Batch::folding();
    for row in &rows {
        batch.read_effects(row[1].as_deref().expect("effects")).expect("a batch");
    }
    let folded = Fence { folded: Some(integer(rows[1][0].as_deref())), ..fence(1) };
    engine.apply(&batch, &[folded]).expect("folded");
    assert_eq!(sql.run("SELECT seq FROM redis.journal"), ["3"]);
    assert_eq!(sql.one("SELECT redis.get('hot'::text)"), "2");
    assert!(!waiting.is_finished());
    engine.apply(&Batch::new(), &[Fence { folded: Some(3), ..fence(2) }]).expect("folded");
    assert_eq!(waiting.join().expect("waited"), "t");
    assert_eq!(engine.take(&[0], "two"), [[0, 2, 2, 2, 3]]);
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// A key's collection, and a list's ends.
type Known = (Kind, i64, (i64, i64));

/// What is in the tables of some keys, as far as the next batch has to know.
#[derive(Default)]
struct Model {
    keys: [Option<Known>; 4],
    kids: i64,
}

impl Model {
    /// A batch in which each row is named once, as the engine makes them.
    fn batch(&mut self, dice: &mut Dice) -> Batch {
        let mut batch = Batch::new();
        if dice.roll(12) == 0 {
            batch.flush(0);
            self.keys = [None; 4];
        }
        for at in 0..self.keys.len() {
            match dice.roll(6) {
                0 => {}
                1 => {
                    batch.delete(0, &[at as u8], Expect::Anything);
                    self.keys[at] = None;
                }
                2 => {
                    batch.put(string(&[at as u8], &[dice.roll(9) as u8]), Expect::Anything);
                    self.keys[at] = None;
                }
                _ => self.collection(at, &mut batch, dice),
            }
        }
        batch
    }

    fn collection(&mut self, at: usize, batch: &mut Batch, dice: &mut Dice) {
        let (kind, kid, mut ends) = self.keys[at].unwrap_or_else(|| {
            self.kids += 1;
            let kind = [Kind::Hash, Kind::Set, Kind::Zset, Kind::List, Kind::Stream];
            (kind[dice.roll(5) as usize], self.kids, (0, -1))
        });
        for name in 0..3u8 {
            let (put, value) = (dice.roll(2) == 0, dice.roll(9) as u8);
            match (kind, put) {
                (Kind::Hash, true) => batch.hash_put(kid, &[name], &[value]),
                (Kind::Hash, false) => batch.hash_delete(kid, &[name]),
                (Kind::Set, true) => batch.set_put(kid, &[name]),
                (Kind::Set, false) => batch.set_delete(kid, &[name]),
                (Kind::Zset, true) => batch.zset_put(kid, &[name], f64::from(value)),
                (Kind::Zset, false) => batch.zset_delete(kid, &[name]),
                (Kind::Stream, true) => {
                    batch.stream_put(kid, u64::from(name), 1, &[value]);
                    batch.stream_group_put(kid, &[name], &[value]);
                }
                (Kind::Stream, false) => {
                    batch.stream_delete(kid, u64::from(name), 1);
                    batch.stream_group_delete(kid, &[name]);
                }
                _ => {}
            }
        }
        if kind == Kind::List {
            // Popped at both ends, then pushed.
            let popped = (ends.0 + dice.roll(3) as i64, ends.1 - dice.roll(3) as i64);
            batch.list_trim(kid, popped.0, popped.1);
            let ends_now =
                (popped.0 - dice.roll(3) as i64, popped.1.max(popped.0 - 1) + dice.roll(3) as i64);
            for pos in (ends_now.0..popped.0).chain(popped.1.max(popped.0 - 1) + 1..=ends_now.1) {
                batch.list_put(kid, pos, &[dice.roll(9) as u8]);
            }
            ends = ends_now;
        }
        let key = [at as u8];
        let put = Put { head: ends.0, tail: ends.1, ..collection(&key, kind, kid, 0) };
        batch.put(put, Expect::Anything);
        self.keys[at] = Some((kind, kid, ends));
    }
}

/// Everything but versions, of collections that some key has.
fn dump(sql: &mut Session) -> Vec<String> {
    sql.run(
        "SELECT db, key, t, val, kid, n, head, tail FROM redis.kv ORDER BY key; \
         SELECT h.* FROM redis.hash h JOIN redis.kv USING (kid) ORDER BY 1, 2; \
         SELECT s.* FROM redis.set_ s JOIN redis.kv USING (kid) ORDER BY 1, 2; \
         SELECT z.* FROM redis.zset z JOIN redis.kv USING (kid) ORDER BY 1, 3; \
         SELECT l.* FROM redis.list l JOIN redis.kv USING (kid) ORDER BY 1, 2; \
         SELECT x.* FROM redis.stream x JOIN redis.kv USING (kid) ORDER BY 1, 2; \
         SELECT g.* FROM redis.stream_group g JOIN redis.kv USING (kid) ORDER BY 1, 2",
    )
}

#[test]
fn batches_folded_into_one_leave_what_they_leave_one_by_one() {
    let (singly, folded) = (Database::new(), Database::new());
    let (mut singly, mut folded) = (owner(&singly), owner(&folded));
    let (mut model, mut dice) = (Model::default(), Dice(20_261_122));
    let mut seq = 0;
    let mut together = Batch::folding();
    for round in 1..=60 {
        together.clear();
        for _ in 0..5 {
            seq += 1;
            let batch = model.batch(&mut dice);
            singly.apply(&batch, &[fence(seq)]).expect("applied");
            let mut effects = Vec::new();
            batch.write_effects(&mut effects);
            together.read_effects(&effects).expect("a batch");
        }
        folded.apply(&together, &[fence(round)]).expect("applied");
        assert_eq!(dump(&mut folded), dump(&mut singly), "round {round}");
    }
    // And nothing stays behind of what no key has.
    for session in [&mut singly, &mut folded] {
        session.call(&statements::SWEEP, |params| params.int8(100_000)).expect("swept");
        for table in ["hash", "set_", "zset", "list", "stream", "stream_group"] {
            let lost = format!(
                "SELECT count(*) FROM redis.{table} r WHERE NOT EXISTS \
                 (SELECT FROM redis.kv k WHERE k.kid = r.kid)"
            );
            assert_eq!(session.one(&lost), "0", "{table}");
        }
    }
}

#[test]
fn effects_that_are_damaged_are_refused() {
    let mut batch = Batch::new();
    batch.flush(2);
    batch.orphan(-9, Kind::Zset);
    batch.delete(1, b"gone", Expect::Anything);
    batch.put(
        Put { expires: 5, ..collection(b"key", Kind::List, i64::MIN, i64::MAX) },
        Expect::Anything,
    );
    batch.list_trim(1, -5, 5);
    batch.list_put(1, -5, b"v");
    batch.zset_put(2, b"m", 0.5);
    batch.stream_put(3, u64::MAX, 1, b"f");
    batch.hash_delete(4, b"f");
    let mut effects = Vec::new();
    batch.write_effects(&mut effects);
    let mut back = Batch::new();
    back.read_effects(&effects).expect("a batch");
    let mut again = Vec::new();
    back.write_effects(&mut again);
    assert_eq!(again, effects);
    assert_eq!(Batch::new().read_effects(b""), Err(Malformed));
    assert_eq!(Batch::new().read_effects(b"\x02"), Err(Malformed), "a newer version");
    for at in 0..effects.len() {
        // Cut between two records it is a shorter batch; nowhere may it be more than an error.
        let _ = Batch::new().read_effects(&effects[..at]);
        for bit in 0..8 {
            let mut damaged = effects.clone();
            damaged[at] ^= 1 << bit;
            let mut batch = Batch::folding();
            let _ = batch.read_effects(&damaged);
            let mut calls = backend::calls::Calls::new();
            let all: Vec<_> = (0..=255).map(|shard| Fence { shard, ..fence(1) }).collect();
            batch.call(&mut calls, 0, &all).expect("appended");
        }
    }
}
