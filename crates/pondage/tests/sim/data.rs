//! The rows of one simulated database: versions, transactions, the log, snapshots.
//!
//! A commit is two steps, as in PostgreSQL: its record is written to the log, from where the
//! stream tells it; some time later others see it, and only then its own client hears of it. Each
//! time something becomes visible a new *state* begins; states are counted from 0. Every answer to
//! a read has to be that of one state.

pub(crate) mod catalogue;
pub(crate) mod cell;
pub(crate) mod copying;
pub(crate) mod read;
pub(crate) mod stream;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::plan::{Caching, Fault};
use cell::Cell;
use read::Read;

/// When the one server that there is was started, as pulses and the stream are told.
pub const STARTED: i64 = 700_000_000_000_000;

pub(crate) type Handle = Rc<RefCell<Database>>;

pub(crate) const TABLES: [&str; 2] = ["t1", "t2"];

/// Keys that nobody but the world outside writes.
pub(crate) const OUTSIDE_KEYS: i32 = 6;

pub(crate) const GROUPS: i32 = 4;

/// A transaction of the world beside the gateway is over after so many microseconds: who waits for
/// its locks does not wait for ever, however time leaps.
const OUTSIDE_LASTS_MAX: u64 = 2_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) group: i32,
    /// Another one for each write.
    pub(crate) mark: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Put {
        table: usize,
        key: i32,
        row: Row,
    },
    Delete {
        table: usize,
        key: i32,
    },
    Truncate {
        table: usize,
    },
    /// Definitions: of a function, say, since nobody waits for those.
    Define,
}

/// A change as the log has it.
#[derive(Debug, Clone)]
pub(crate) enum Logged {
    Row {
        table: usize,
        /// Of the table, at that time.
        identity: u8,
        version: i32,
        before: Option<(i32, Row)>,
        after: Option<(i32, Row)>,
    },
    Truncate {
        table: usize,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Record {
    /// Of a large transaction that runs.
    Part {
        xid: u64,
        changes: Vec<Logged>,
    },
    /// All of the transaction's changes, those of its parts first.
    Commit {
        xid: u64,
        end: u64,
        changes: Vec<Logged>,
    },
    Abort {
        xid: u64,
    },
}

#[derive(Debug, Default)]
struct Open {
    changes: Vec<Change>,
    log: Vec<Logged>,
}

#[derive(Debug)]
struct Table {
    identity: u8,
    /// Of its description.
    version: i32,
    /// `pg_class.relfilenode`.
    filenode: u32,
    /// What each key has had since which state.
    rows: BTreeMap<i32, Vec<(u64, Option<Row>)>>,
}

/// A commit whose record is written, and that nobody sees yet.
#[derive(Debug)]
struct Closing {
    visible: u64,
    xid: u64,
    names: Vec<String>,
    changes: Vec<Change>,
}

/// A transaction of the world beside the gateway.
#[derive(Debug)]
struct Outside {
    began: u64,
    xid: u64,
    steps: u32,
    streamed: bool,
}

pub(crate) struct Database {
    pub(crate) now: u64,
    pub(crate) state: u64,
    /// When each state began.
    since: Vec<u64>,
    random: StdRng,
    late: f64,
    /// So often others do something.
    busy: f64,
    fault: Option<Fault>,
    tables: Vec<Table>,
    /// The states that have brought other definitions.
    defined: Vec<u64>,
    next: u64,
    completed: u64,
    running: BTreeSet<u64>,
    open: BTreeMap<u64, Open>,
    closing: Vec<Closing>,
    /// The state that shows what a client has called so.
    shown: HashMap<String, u64>,
    /// With the position behind each.
    log: Vec<(u64, Record)>,
    insert: u64,
    flushed: u64,
    keys: i32,
    outside: Option<Outside>,
    serial: u32,
    /// Commits, for the tally.
    pub(crate) late_commits: u64,
}

impl Database {
    pub(crate) fn new(seed: u64, caching: &Caching, clients: usize) -> Database {
        let mut random = StdRng::seed_from_u64(seed);
        let keys = 2 * clients as i32 + OUTSIDE_KEYS;
        let tables = TABLES.map(|_| {
            let mut rows = BTreeMap::new();
            for key in 0..keys {
                if random.random_bool(0.7) {
                    let group = random.random_range(0..GROUPS);
                    let row = Row { group, mark: format!("old{key}") };
                    rows.insert(key, vec![(0, Some(row))]);
                }
            }
            let identity = *b"ddf".get(random.random_range(0..3)).unwrap();
            Table { identity, version: 0, filenode: 1, rows }
        });
        // Numbers of transactions go round now and then.
        let first = [1_000, (1 << 32) - 20, (7 << 32) + (1 << 31) - 9][random.random_range(0..3)];
        Database {
            now: 0,
            state: 0,
            since: vec![0],
            random,
            late: caching.late,
            busy: caching.writes / 4.0,
            fault: caching.fault,
            tables: tables.into(),
            defined: Vec::new(),
            next: first,
            completed: first - 1,
            running: BTreeSet::new(),
            open: BTreeMap::new(),
            closing: Vec::new(),
            shown: HashMap::new(),
            log: Vec::new(),
            insert: 1_000,
            flushed: 1_000,
            keys,
            outside: None,
            serial: 0,
            late_commits: 0,
        }
    }

    pub(crate) fn keys(&self) -> i32 {
        self.keys
    }

    pub(crate) fn begin(&mut self) -> u64 {
        let xid = self.next;
        self.next += 1;
        if self.next as u32 == 0 {
            // The first ones of each round are no transactions'.
            // Source: `FirstNormalTransactionId` in access/transam.h.
            self.next += 3;
        }
        self.running.insert(xid);
        self.open.insert(xid, Open::default());
        xid
    }

    fn latest(&self, table: usize, key: i32) -> Option<Row> {
        self.tables[table].rows.get(&key)?.last()?.1.clone()
    }

    /// What a transaction finds under a key.
    fn found(&self, open: &Open, table: usize, key: i32) -> Option<Row> {
        let own = open.changes.iter().rev().find_map(|change| match change {
            Change::Put { table: of, key: at, row } if (*of, *at) == (table, key) => {
                Some(Some(row.clone()))
            }
            Change::Delete { table: of, key: at } if (*of, *at) == (table, key) => Some(None),
            Change::Truncate { table: of } if *of == table => Some(None),
            _ => None,
        });
        own.unwrap_or_else(|| self.latest(table, key))
    }

    pub(crate) fn change(&mut self, xid: u64, change: Change) {
        let Some(open) = self.open.get(&xid) else { return };
        let logged = match &change {
            Change::Put { table, key, row } => {
                let before = self.found(open, *table, *key).map(|before| (*key, before));
                Some(self.logged(*table, before, Some((*key, row.clone()))))
            }
            Change::Delete { table, key } => {
                let before = self.found(open, *table, *key).map(|before| (*key, before));
                before.map(|before| self.logged(*table, Some(before), None))
            }
            Change::Truncate { table } => Some(Logged::Truncate { table: *table }),
            Change::Define => None,
        };
        if let Some(open) = self.open.get_mut(&xid) {
            open.changes.push(change);
            open.log.extend(logged);
        }
        self.insert += 40;
    }

    fn logged(
        &self,
        table: usize,
        before: Option<(i32, Row)>,
        after: Option<(i32, Row)>,
    ) -> Logged {
        let Table { identity, version, .. } = self.tables[table];
        Logged::Row { table, identity, version, before, after }
    }

    /// The commit's record is written; `names` are what its client calls what it has done.
    pub(crate) fn commit(&mut self, xid: u64, names: Vec<String>, flush: bool) {
        let Some(open) = self.open.remove(&xid) else { return };
        self.insert += 60;
        let end = self.insert;
        self.log.push((end, Record::Commit { xid, end, changes: open.log }));
        if flush {
            self.flushed = end;
        }
        let late = self.random.random_bool(self.late);
        let delay = match self.random.random_range(0..10) {
            _ if !late => 0,
            0..7 => self.random.random_range(0..5_000),
            _ => self.random.random_range(0..200_000),
        };
        self.late_commits += u64::from(delay > 0);
        let visible = self.now + delay;
        self.closing.push(Closing { visible, xid, names, changes: open.changes });
        self.show();
    }

    pub(crate) fn abort(&mut self, xid: u64) {
        if self.open.remove(&xid).is_none() {
            return;
        }
        self.insert += 30;
        self.log.push((self.insert, Record::Abort { xid }));
        self.ended(xid);
    }

    fn ended(&mut self, xid: u64) {
        self.running.remove(&xid);
        self.completed = self.completed.max(xid);
    }

    pub(crate) fn is_visible(&self, xid: u64) -> bool {
        !self.running.contains(&xid)
    }

    /// Somebody empties a table, or has, and it is not seen yet.
    pub(crate) fn is_emptied(&self) -> bool {
        let open = self.open.values().map(|open| &open.changes);
        let mut all = open.chain(self.closing.iter().map(|closing| &closing.changes));
        all.any(|changes| changes.iter().any(|one| matches!(one, Change::Truncate { .. })))
    }

    /// What is due becomes visible.
    fn show(&mut self) {
        while let Some(at) = self.closing.iter().position(|one| one.visible <= self.now) {
            let closing = self.closing.remove(at);
            self.state += 1;
            let state = self.state;
            self.since.push(self.now);
            self.ended(closing.xid);
            for change in closing.changes {
                match change {
                    Change::Put { table, key, row } => self.set(table, key, Some(row)),
                    Change::Delete { table, key } => self.set(table, key, None),
                    Change::Truncate { table } => {
                        (0..self.keys).for_each(|key| self.set(table, key, None));
                    }
                    Change::Define => self.defined.push(state),
                }
            }
            self.shown.extend(closing.names.into_iter().map(|name| (name, state)));
        }
    }

    fn set(&mut self, table: usize, key: i32, row: Option<Row>) {
        let versions = self.tables[table].rows.entry(key).or_default();
        match versions.last_mut() {
            Some((since, last)) if *since == self.state => *last = row,
            _ => versions.push((self.state, row)),
        }
    }

    /// `pg_current_snapshot()`, and where the log ends.
    pub(crate) fn pulse(&mut self) -> (String, u64) {
        let snapshot = match self.fault {
            Some(Fault::NothingRuns) => self.snapshot_of_all(),
            _ => self.snapshot(),
        };
        // The position is looked at a little later.
        let end = match self.fault {
            Some(Fault::PulseTooOld) => self.insert.saturating_sub(400),
            _ => self.insert,
        };
        (snapshot, end)
    }

    fn snapshot(&self) -> String {
        let next = self.completed + 1;
        let running: Vec<u64> = self.running.range(..next).copied().collect();
        let oldest = running.first().copied().unwrap_or(next);
        let listed: Vec<String> = running.iter().map(u64::to_string).collect();
        format!("{oldest}:{next}:{}", listed.join(","))
    }

    /// One that says that all have ended who run.
    fn snapshot_of_all(&self) -> String {
        format!("{0}:{0}:", self.next)
    }

    /// What a statement of this transaction finds now, and how many definitions it knows.
    pub(crate) fn look(&self, read: &Read, xid: Option<u64>) -> (Vec<Vec<Cell>>, usize) {
        let own = xid.and_then(|xid| self.open.get(&xid));
        let own = own.map_or(&[][..], |open| open.changes.as_slice());
        let defined = own.iter().filter(|change| **change == Change::Define).count();
        (self.cells(read, self.state, own), self.definitions_at(self.state) + defined)
    }

    pub(crate) fn definitions_at(&self, state: u64) -> usize {
        self.defined.partition_point(|since| *since <= state)
    }

    pub(crate) fn row_at(&self, table: usize, key: i32, state: u64) -> Option<&Row> {
        let versions = self.tables[table].rows.get(&key)?;
        let at = versions.partition_point(|(since, _)| *since <= state);
        versions[..at].last()?.1.as_ref()
    }

    /// The state that shows what a client has called so.
    pub(crate) fn shown(&self, name: &str) -> Option<u64> {
        self.shown.get(name).copied()
    }

    /// The state that was there at this time.
    pub(crate) fn state_at(&self, time: u64) -> u64 {
        self.since.partition_point(|since| *since <= time).saturating_sub(1) as u64
    }

    /// States in which some row that a read looks at has changed.
    pub(crate) fn changes_of(&self, read: &Read, after: u64) -> BTreeSet<u64> {
        let mut states = BTreeSet::new();
        for table in &read.tables {
            for (key, versions) in &self.tables[*table].rows {
                if read.may_find(*key) {
                    let from = versions.partition_point(|(since, _)| *since <= after);
                    states.extend(versions[from..].iter().map(|(since, _)| *since));
                }
            }
        }
        states
    }

    /// Time passes: commits become visible, the log is flushed, others write.
    pub(crate) fn live(&mut self, now: u64, calm: bool) {
        self.now = now;
        self.show();
        if self.random.random_bool(0.1) {
            // Hint bits, vacuum, a checkpoint.
            self.insert += self.random.random_range(1..100);
        }
        if self.random.random_bool(if calm { 0.3 } else { 0.05 }) {
            self.flushed = self.insert;
        }
        let lasts = self.outside.as_ref().map_or(0, |outside| now - outside.began);
        let busy = if calm && self.outside.is_none() { 0.0 } else { self.busy };
        if lasts >= OUTSIDE_LASTS_MAX {
            self.act_outside(true);
        } else if self.random.random_bool(busy) {
            self.act_outside(calm);
        }
    }

    /// They begin something, go on with it, or end it, and at once if `soon`.
    fn act_outside(&mut self, soon: bool) {
        let Some(mut outside) = self.outside.take() else {
            if self.random.random_bool(0.02) {
                return self.describe_anew();
            }
            // Rows that a commit has changed are locked until it is visible.
            if self.closing.is_empty() {
                let (xid, steps) = (self.begin(), self.random.random_range(1..5));
                let streamed = self.random.random_bool(0.3);
                self.outside = Some(Outside { began: self.now, xid, steps, streamed });
            }
            return;
        };
        let xid = outside.xid;
        if outside.steps == 0 || soon {
            if self.random.random_bool(0.2) {
                return self.abort(xid);
            }
            let flush = self.random.random_bool(0.7);
            return self.commit(xid, Vec::new(), flush);
        }
        let logged = self.open.get(&xid).map_or(0, |open| open.log.len());
        for _ in 0..self.random.random_range(1..4) {
            self.change_outside(xid);
        }
        if outside.streamed {
            let open = self.open.get(&xid);
            let changes = open.map(|open| open.log[logged..].to_vec()).unwrap_or_default();
            self.log.push((self.insert, Record::Part { xid, changes }));
        }
        outside.steps -= 1;
        self.outside = Some(outside);
    }

    fn change_outside(&mut self, xid: u64) {
        let table = self.random.random_range(0..TABLES.len());
        let key = self.keys - 1 - self.random.random_range(0..OUTSIDE_KEYS);
        let group = self.random.random_range(0..GROUPS);
        self.serial += 1;
        let row = Row { group, mark: format!("out{}", self.serial) };
        match self.random.random_range(0..20) {
            0..12 => self.change(xid, Change::Put { table, key, row }),
            12..16 => self.change(xid, Change::Delete { table, key }),
            16..18 => self.move_row(xid, table, key),
            // It waits for all who have changed the table; here it is tried again another time.
            _ if self.open.len() == 1 && self.closing.is_empty() => {
                self.change(xid, Change::Truncate { table });
            }
            _ => {}
        }
    }

    /// An UPDATE of a key.
    fn move_row(&mut self, xid: u64, table: usize, key: i32) {
        let to = self.keys - 1 - self.random.random_range(0..OUTSIDE_KEYS);
        let Some(open) = self.open.get(&xid) else { return };
        let Some(row) = self.found(open, table, key) else { return };
        if self.found(open, table, to).is_some() {
            return;
        }
        let logged = self.logged(table, Some((key, row.clone())), Some((to, row.clone())));
        if let Some(open) = self.open.get_mut(&xid) {
            open.changes.push(Change::Delete { table, key });
            open.changes.push(Change::Put { table, key: to, row });
            open.log.push(logged);
        }
        self.insert += 40;
    }

    /// ALTER TABLE of something that no answer shows.
    fn describe_anew(&mut self) {
        let table = self.random.random_range(0..TABLES.len());
        let identity = *b"ddf".get(self.random.random_range(0..3)).unwrap_or(&b'd');
        self.tables[table].version += 1;
        self.tables[table].filenode += self.tables[table].version as u32 % 2;
        self.tables[table].identity = identity;
    }
}
