//! An engine with tables in memory: rows as PostgreSQL would have them, so that what values write
//! and what they are loaded from is tested with every command.

// Two test binaries share it, and neither uses all of it.
#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use backend::moment::Moment;
use redis::args::Words;
use redis::engine::{Engine, Ran};
use redis::flow::{Barrier, Fate, Sealed};
use redis::keyspace::{Keyspace, NEVER, UNKNOWN};
use redis::query::{Answer, Database, Query};
use redis::reply::Recorded;
use redis::rows::Rows;
use redis::server::{Event, Settings};
use redis::session::{ConnId, Peer};
use redis::store::{Links, Row, Store, Told};
use redis::value::{Hash, Kind, List, Set, Str, Stream, Tracked, Value, Zset};

type Key = (u16, Box<[u8]>);

#[derive(Debug, Clone)]
pub struct KvRow {
    pub kind: Kind,
    pub val: Vec<u8>,
    pub kid: i64,
    pub n: usize,
    pub ends: (i64, i64),
    pub expires: i64,
    pub version: i64,
}

/// The tables.
#[derive(Debug, Default, Clone)]
pub struct Tables {
    pub kv: BTreeMap<Key, KvRow>,
    pub hash: BTreeMap<(i64, Vec<u8>), Vec<u8>>,
    pub set: BTreeMap<(i64, Vec<u8>), ()>,
    pub zset: BTreeMap<(i64, Vec<u8>), f64>,
    pub list: BTreeMap<(i64, i64), Vec<u8>>,
    pub stream: BTreeMap<(i64, u64, u64), Vec<u8>>,
    pub group: BTreeMap<(i64, Vec<u8>), Vec<u8>>,
    pub orphans: Vec<(i64, u8)>,
    /// Batches that have been sent and not answered, when commits are held back.
    pending: Vec<(u64, Tables)>,
    told: Vec<Told>,
}

impl Rows for Tables {
    fn hash_put(&mut self, kid: i64, field: &[u8], value: &[u8]) {
        self.hash.insert((kid, field.into()), value.into());
    }
    fn hash_delete(&mut self, kid: i64, field: &[u8]) {
        self.hash.remove(&(kid, field.into()));
    }
    fn set_put(&mut self, kid: i64, member: &[u8]) {
        self.set.insert((kid, member.into()), ());
    }
    fn set_delete(&mut self, kid: i64, member: &[u8]) {
        self.set.remove(&(kid, member.into()));
    }
    fn zset_put(&mut self, kid: i64, member: &[u8], score: f64) {
        self.zset.insert((kid, member.into()), score);
    }
    fn zset_delete(&mut self, kid: i64, member: &[u8]) {
        self.zset.remove(&(kid, member.into()));
    }
    fn list_put(&mut self, kid: i64, pos: i64, value: &[u8]) {
        self.list.insert((kid, pos), value.into());
    }
    fn list_trim(&mut self, kid: i64, first: i64, last: i64) {
        self.list.retain(|(of, pos), _| *of != kid || (first..=last).contains(pos));
    }
    fn stream_put(&mut self, kid: i64, ms: u64, seq: u64, fields: &[u8]) {
        self.stream.insert((kid, ms, seq), fields.into());
    }
    fn stream_delete(&mut self, kid: i64, ms: u64, seq: u64) {
        self.stream.remove(&(kid, ms, seq));
    }
    fn stream_group_put(&mut self, kid: i64, name: &[u8], state: &[u8]) {
        self.group.insert((kid, name.into()), state.into());
    }
    fn stream_group_delete(&mut self, kid: i64, name: &[u8]) {
        self.group.remove(&(kid, name.into()));
    }
}

impl Tables {
    fn load(&self, key: &Key) -> Option<Row> {
        let row = self.kv.get(key)?;
        let kid = row.kid;
        let of = |name: &(i64, Vec<u8>)| name.0 == kid;
        let value = match row.kind {
            Kind::Str => Value::Str(Str::new(&row.val)),
            Kind::Hash => {
                let rows = self.hash.iter().filter(|(name, _)| of(name));
                Value::Hash(Box::new(Hash::load(kid, rows.map(|((_, f), v)| (&f[..], &v[..])))))
            }
            Kind::Set => {
                let rows = self.set.iter().filter(|(name, _)| of(name));
                Value::Set(Box::new(Set::load(kid, rows.map(|((_, member), _)| &member[..]))))
            }
            Kind::Zset => {
                let rows = self.zset.iter().filter(|(name, _)| of(name));
                Value::Zset(Box::new(Zset::load(kid, rows.map(|((_, m), score)| (&m[..], *score)))))
            }
            Kind::List => {
                let rows = self.list.iter().filter(|((of, _), _)| *of == kid);
                let rows: Vec<_> = rows.map(|((_, pos), value)| (*pos, &value[..])).collect();
                assert!(rows.first().is_none_or(|(pos, _)| *pos == row.ends.0), "{rows:?} {row:?}");
                let values = rows.iter().map(|(_, value)| *value);
                Value::List(Box::new(List::load(kid, row.ends.0, values)))
            }
            Kind::Stream => {
                let entries = self.stream.iter().filter(|((of, ..), _)| *of == kid);
                let entries = entries.map(|((_, ms, seq), fields)| ((*ms, *seq), &fields[..]));
                let groups = self.group.iter().filter(|(name, _)| of(name));
                let groups = groups.map(|((_, name), state)| (&name[..], &state[..]));
                Value::Stream(Box::new(Stream::load(kid, &row.val, entries, groups)))
            }
        };
        let len = value.collection().map_or(0, Tracked::len);
        assert_eq!(len, row.n, "a collection's rows are as many as its key's row says: {row:?}");
        Some(Row { value, expires: row.expires, version: row.version })
    }

    /// Writes a sealed batch; the versions that rows must have are checked. False when what EXEC
    /// relied on is another's by now.
    fn write(&mut self, keys: &mut Keyspace, sealed: &Sealed) -> bool {
        let mut same = true;
        for (db, key, version) in &sealed.open.checks {
            same &= self.kv.get(&(*db, key.clone())).map_or(0, |row| row.version) == *version;
        }
        for db in &sealed.open.flushes {
            self.kv.retain(|(of, _), _| of != db);
        }
        let mut tables = std::mem::take(self);
        let orphans = keys.write_rows(sealed, |changed| {
            let name = (changed.db, Box::from(changed.key));
            let now = tables.kv.get(&name).map_or(0, |row| row.version);
            assert!(
                changed.expected == UNKNOWN || changed.expected == now,
                "row {:?} has version {now}, {} was expected",
                changed.key.escape_ascii().to_string(),
                changed.expected
            );
            let Some(value) = changed.value else {
                tables.kv.remove(&name);
                return;
            };
            let (_, version) = sealed.seqs.iter().find(|(of, _)| *of == changed.shard).unwrap();
            let mut row = KvRow {
                kind: value.kind(),
                val: Vec::new(),
                kid: 0,
                n: 0,
                ends: (0, 0),
                expires: changed.expires,
                version: *version as i64,
            };
            if let Value::Str(text) = &value {
                row.val = text.text().to_vec();
            }
            if let Some(collection) = value.collection_mut() {
                (row.kid, row.n) = (collection.kid(), collection.len());
                (row.ends, row.val) = (collection.ends(), collection.head().unwrap_or_default());
                collection.drain(&mut tables);
            }
            tables.kv.insert(name, row);
        });
        tables.orphans.extend(orphans);
        *self = tables;
        same
    }
}

/// Where tests see and change the tables, and hold back commits.
#[derive(Debug, Clone, Default)]
pub struct Shared(Arc<Mutex<State>>);

#[derive(Debug, Default)]
pub struct State {
    pub tables: Tables,
    /// Commits are held back until [`Shared::commit`].
    pub slow: bool,
    /// Rows that are looked up come at [`Shared::arrive`].
    pub late: bool,
    arriving: Vec<Told>,
    /// PostgreSQL can't be reached.
    pub away: bool,
    pub loads: usize,
    pub batches: usize,
    /// What time the tables have.
    pub now: i64,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Commits everything that has been sent.
    pub fn commit(&self) {
        let mut state = self.lock();
        for (number, tables) in std::mem::take(&mut state.tables.pending) {
            let told = std::mem::take(&mut state.tables.told);
            state.tables = tables;
            state.tables.told = told;
            state.tables.told.push(Told::Committed { number });
        }
    }

    /// The oldest batch finds that an SQL writer was there first; those behind it fail as well.
    pub fn conflict(&self) {
        let mut state = self.lock();
        for (number, _) in std::mem::take(&mut state.tables.pending) {
            state.tables.told.push(Told::Conflict { number });
        }
    }

    /// The oldest batch alone fails.
    pub fn conflict_one(&self) {
        let mut state = self.lock();
        let (number, _) = state.tables.pending.remove(0);
        state.tables.told.push(Told::Conflict { number });
    }

    /// Rows that were looked up are told, as they were then.
    pub fn arrive(&self) {
        let mut state = self.lock();
        let arriving = std::mem::take(&mut state.arriving);
        state.tables.told.extend(arriving);
    }

    pub fn told(&self, told: Told) {
        self.lock().tables.told.push(told);
    }
}

impl Store for Shared {
    fn send(&mut self, keys: &mut Keyspace, sealed: &Sealed) {
        let mut state = self.lock();
        state.batches += 1;
        let pending = std::mem::take(&mut state.tables.pending);
        let told = std::mem::take(&mut state.tables.told);
        let mut tables = match pending.last() {
            Some((_, tables)) => tables.clone(),
            None => state.tables.clone(),
        };
        let same = tables.write(keys, sealed);
        state.tables.pending = pending;
        state.tables.told = told;
        if !same {
            state.tables.told.push(Told::Conflict { number: sealed.number });
            return;
        }
        state.tables.pending.push((sealed.number, tables));
        if !state.slow {
            drop(state);
            self.commit();
        }
    }

    fn load(&mut self, db: u16, keys: Vec<Box<[u8]>>) {
        let mut state = self.lock();
        state.loads += 1;
        for key in keys {
            let row = state.tables.load(&(db, key.clone()));
            let told = Told::Loaded { db, key, row };
            match state.late {
                true => state.arriving.push(told),
                false => state.tables.told.push(told),
            }
        }
    }

    fn ask(&mut self, conn: ConnId, query: Query) {
        let mut state = self.lock();
        let now = state.now;
        let alive = |of: u16, row: &KvRow, db: u16| of == db && row.expires > now;
        let answer = match query {
            Query::Size { db } => {
                let rows = state.tables.kv.iter().filter(|((of, _), row)| alive(*of, row, db));
                Answer::Size(rows.count() as u64)
            }
            Query::Keys { db, after, limit, kind } => {
                let rows = state.tables.kv.iter().filter(|((of, key), row)| {
                    alive(*of, row, db)
                        && after.as_ref().is_none_or(|after| key > after)
                        && kind.is_none_or(|kind| row.kind.letter() == kind)
                });
                let keys: Vec<_> = rows.map(|((_, key), _)| key.clone()).take(limit).collect();
                Answer::Keys { more: keys.len() == limit, keys }
            }
            Query::Random { db } => {
                let mut rows = state.tables.kv.iter().filter(|((of, _), row)| alive(*of, row, db));
                Answer::Random(rows.next().map(|((_, key), _)| key.clone()))
            }
            Query::Databases => {
                let mut databases = BTreeMap::<u16, Database>::new();
                for ((db, _), row) in &state.tables.kv {
                    let database = databases.entry(*db).or_default();
                    database.db = *db;
                    database.keys += 1;
                    database.expires += u64::from(row.expires != NEVER);
                }
                Answer::Databases(databases.into_values().collect())
            }
        };
        state.tables.told.push(Told::Answered { conn, answer });
    }

    fn is_ready(&self) -> bool {
        !self.lock().away
    }

    fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.lock().tables.told)
    }

    fn links(&mut self) -> &mut dyn Links {
        self
    }
}

/// There are none.
impl Links for Shared {
    fn count(&self) -> usize {
        0
    }
    fn wanted(&mut self, _now: Moment) -> Vec<usize> {
        Vec::new()
    }
    fn opened(&mut self, _link: usize, _now: Moment) {}
    fn failed(&mut self, _link: usize, _why: &str, _now: Moment) {}
    fn receive(&mut self, _link: usize, _bytes: &[u8], _now: Moment) {}
    fn closed(&mut self, _link: usize, _why: &str, _now: Moment) {}
    fn next_due(&self) -> Option<Moment> {
        None
    }
    fn out(&mut self, link: usize) -> &mut Vec<u8> {
        panic!("there is no link {link}")
    }
    fn dropped(&mut self) -> Vec<usize> {
        Vec::new()
    }
}

/// Client `number`, from a port of its own.
pub fn peer(number: u64) -> Peer {
    Peer {
        address: format!("127.0.0.1:{}", 50_000 + number).into(),
        local_address: "127.0.0.1:6379".into(),
        user: "ann".into(),
        fd: 8,
    }
}

pub struct Rig {
    pub engine: Engine,
    pub tables: Shared,
    pub conn: ConnId,
    /// Milliseconds since 1970.
    pub now: i64,
    /// Replies and pushes that came for connections, by event.
    pub answers: HashMap<ConnId, Vec<String>>,
    resumed: Vec<ConnId>,
    pub redo: Vec<ConnId>,
    /// Connections that the engine wants to be closed.
    pub closed: Vec<ConnId>,
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Rig {
        let (tables, now) = (Shared::default(), 1_700_000_000_000);
        let mut engine = Engine::new(settings, Box::new(tables.clone()), 3, now);
        let conn = engine.connect(0, peer(1), now);
        tables.told(Told::Taken { applied: vec![0; 3], kids: 1 << 40, same: true });
        engine.turn(now);
        let (answers, resumed) = (HashMap::new(), Vec::new());
        let (redo, closed) = (Vec::new(), Vec::new());
        Rig { engine, tables, conn, now, answers, resumed, redo, closed }
    }

    pub fn client(&mut self) -> ConnId {
        let number = self.engine.server.sessions.opened() + 1;
        self.engine.connect(0, peer(number), self.now)
    }

    /// Runs a command of the first client: words as `redis-cli` takes them, with "quotes" and \xHH.
    /// Gives the reply as [`Recorded`]'s `Debug` prints it.
    pub fn run(&mut self, line: &str) -> String {
        self.run_as(self.conn, line)
    }

    pub fn run_as(&mut self, conn: ConnId, line: &str) -> String {
        self.run_words(conn, &words(line))
    }

    /// Runs a command of the first client, which ends at once, and nothing else. Gives what its reply
    /// waits for.
    pub fn ran(&mut self, line: &str) -> Option<Barrier> {
        let mut reply = Recorded::new(2);
        match self.engine.run(self.conn, words(line).args(), self.now, &mut reply) {
            Ran::Done { barrier, .. } => barrier,
            other => panic!("{line}: {other:?}"),
        }
    }

    pub fn run_words(&mut self, conn: ConnId, words: &Words) -> String {
        format!("{:?}", self.reply_to(conn, words))
    }

    /// The reply, which for a blocked command is empty.
    pub fn reply_to(&mut self, conn: ConnId, words: &Words) -> Recorded {
        let protocol = self.engine.session(conn).map_or(2, |session| session.protocol);
        let mut reply = Recorded::new(protocol);
        for _ in 0..1000 {
            match self.engine.run(conn, words.args(), self.now, &mut reply) {
                Ran::Done { barrier, .. } => {
                    self.turn();
                    let fate = barrier.map(|barrier| self.engine.fate(barrier));
                    let slow = self.tables.lock().slow;
                    assert!(slow || matches!(fate, None | Some(Fate::Committed)), "{fate:?}");
                    return reply;
                }
                Ran::Blocked => {
                    self.turn();
                    return reply;
                }
                Ran::Parked => {
                    assert!(reply.is_empty(), "a parked command has not replied");
                    self.resumed.clear();
                    for _ in 0..10 {
                        self.turn();
                        if self.resumed.contains(&conn) {
                            break;
                        }
                    }
                    assert!(self.resumed.contains(&conn), "a parked command goes on: {words:?}");
                }
            }
        }
        panic!("{words:?} never ends");
    }

    /// A few turns, so that what one brings is seen by the next.
    pub fn turn(&mut self) {
        self.tables.lock().now = self.now;
        for _ in 0..3 {
            self.engine.turn(self.now);
            for event in self.engine.take_events(0) {
                match event {
                    Event::Resume(conn) => self.resumed.push(conn),
                    Event::Answer { conn, reply, .. } | Event::Push { conn, message: reply } => {
                        self.answers.entry(conn).or_default().push(format!("{reply:?}"));
                    }
                    Event::Redo { conn, .. } => {
                        self.engine.begin_redo(conn);
                        self.redo.push(conn);
                    }
                    Event::Close(conn) => self.closed.push(conn),
                    Event::Release(_) => {}
                }
            }
        }
    }

    /// Time passes.
    pub fn pass(&mut self, ms: i64) {
        self.now += ms;
        self.turn();
    }

    /// Drops everything from memory: what follows is loaded from the tables.
    pub fn forget(&mut self) {
        self.turn();
        self.tables.told(Told::ChangedMany { db: None });
        self.turn();
    }

    /// What a blocked or subscribed client has been told since the last time.
    pub fn told(&mut self, conn: ConnId) -> Vec<String> {
        self.turn();
        self.answers.remove(&conn).unwrap_or_default()
    }

    /// Runs a command, then again what reads, with nothing in memory: both replies must be equal.
    #[track_caller]
    pub fn check(&mut self, line: &str, expected: &str) {
        assert_eq!(self.run(line), expected, "{line}");
    }

    /// As [`Rig::check`], for a command that only reads: from memory and from the tables.
    #[track_caller]
    pub fn reads(&mut self, line: &str, expected: &str) {
        assert_eq!(self.run(line), expected, "{line}, from memory");
        self.forget();
        assert_eq!(self.run(line), expected, "{line}, from the tables");
    }
}

impl Rig {
    /// Lines of `command => reply`.
    #[track_caller]
    pub fn table(&mut self, table: &str) {
        for line in table.lines().filter(|line| !line.is_empty()) {
            let (command, reply) = line.split_once(" => ").expect(line);
            self.check(command, reply);
        }
    }
}

/// Splits as `redis-cli` does.
pub fn words(line: &str) -> Words {
    let (bytes, mut words, mut word) = (line.as_bytes(), Words::default(), Vec::new());
    let (mut at, mut quoted, mut any) = (0, false, false);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                quoted = !quoted;
                any = true;
            }
            b'\\' if quoted && bytes[at + 1] == b'x' => {
                word.push(u8::from_str_radix(&line[at + 2..at + 4], 16).unwrap());
                at += 3;
            }
            b'\\' if quoted => {
                word.push(bytes[at + 1]);
                at += 1;
            }
            b' ' if !quoted => {
                if any {
                    words.push(&std::mem::take(&mut word));
                }
                any = false;
            }
            byte => {
                word.push(byte);
                any = true;
            }
        }
        at += 1;
    }
    if any {
        words.push(&word);
    }
    words
}

pub const FOREVER: i64 = NEVER;
