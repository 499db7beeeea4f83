//! Mirrors that are being made, from the wish to the day that they answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use backend::moment::Moment;

use super::super::budget::Charge;
use super::super::definition::Definition;
use super::super::feed::{Follow, Follows, Open};
use super::super::ordered::has_sums;
use super::super::stored::store;
use super::super::table::{Broken, Table};
use super::super::wish::{add_columns, places, Aim, Wish};
use super::tables::{put, Standing, TOO_MUCH};
use super::{lock, Mirrors, Queue};
use crate::shared::Snapshot;

/// Between a failure and the next try: doubled with each.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// A mirror that has stood for so long has not failed.
const FORGIVEN: Duration = Duration::from_secs(900);

/// Rows between two looks at the memory that is taken.
const LOOK_ROWS: u32 = 1024;

/// Backlogs are put in without anybody waiting while they are longer than this.
const BACKLOG_SHORT: usize = 64;

/// One that is being made.
pub(super) struct Making {
    mirror: u64,
    aim: Aim,
    /// Whether it is now; `aim` is what it was begun for.
    pinned: bool,
    definition: Arc<Definition>,
    /// The generation of [`Follows`] with which it came.
    since: u64,
    /// Commits up to this number were told before it was followed: its copy has to see them.
    behind: u64,
    state: State,
    backlog: Vec<Backlog>,
    bytes: usize,
    /// Blocks of the table that are copied, and all.
    blocks: (u64, u64),
}

enum State {
    Waiting,
    Copying,
    Loaded(Box<Loaded>),
    /// Its backlog is being put in.
    Standing,
}

/// What has been settled since the copy was asked for, or before.
enum Backlog {
    Commit(u32, Arc<Open>),
    /// Only a part of this transaction was told.
    Untold(u32),
}

/// Why there is no mirror.
#[derive(Debug, Default)]
pub(super) struct Failure {
    pub why: String,
    times: u32,
    last: Moment,
    until: Moment,
}

/// A table to be copied, and what is there of it already.
pub struct Copy {
    pub mirror: u64,
    pub definition: Arc<Definition>,
    table: Table,
    charge: Charge,
    snapshot: Option<(Snapshot, u64)>,
    indexes: BTreeMap<i16, Vec<i16>>,
    rows: u32,
    values: Vec<u8>,
    ends: Vec<Option<(usize, usize)>>,
}

/// A table that is copied.
pub struct Loaded {
    mirror: u64,
    table: Table,
    charge: Charge,
    snapshot: Snapshot,
    /// Whatever the snapshot sees ends before this position.
    lsn: u64,
}

impl Failure {
    pub(super) fn note(&mut self, why: &str, now: Moment) {
        if now.since(self.last) > FORGIVEN {
            self.times = 0;
        }
        why.clone_into(&mut self.why);
        let pause = PAUSE_FIRST.saturating_mul(1 << self.times.min(16)).min(PAUSE_MAX);
        self.times = self.times.saturating_add(1);
        (self.last, self.until) = (now, now.after(pause));
    }
}

impl Making {
    pub(super) fn mirror(&self) -> u64 {
        self.mirror
    }

    pub(super) fn table(&self) -> u32 {
        self.definition.oid
    }

    pub(super) fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    pub(super) fn blocks(&self) -> (u64, u64) {
        self.blocks
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pinned
    }

    pub(super) fn is_copying(&self) -> bool {
        matches!(self.state, State::Copying)
    }

    pub(super) fn since(&self) -> u64 {
        self.since
    }

    pub(super) fn backlog_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn lacks(&mut self, number: u64, untold: &[u32]) {
        self.behind = number;
        self.backlog.extend(untold.iter().map(|xid| Backlog::Untold(*xid)));
    }

    /// Gives the bytes that it takes more.
    pub(super) fn note(&mut self, xid: u32, open: &Arc<Open>) -> usize {
        self.backlog.push(Backlog::Commit(xid, open.clone()));
        self.bytes += open.bytes();
        open.bytes()
    }
}

impl Copy {
    /// `snapshot` as text; whatever it sees ends before `lsn`.
    ///
    /// # Errors
    /// A snapshot that is none.
    pub fn began(&mut self, snapshot: &str, lsn: u64) -> Result<(), String> {
        let parsed = Snapshot::parse(snapshot.as_bytes());
        let parsed = parsed.ok_or_else(|| format!("{snapshot:?} is not a snapshot"))?;
        self.snapshot = Some((parsed, lsn));
        Ok(())
    }

    /// A row as PostgreSQL prints it.
    ///
    /// # Errors
    /// A value that is not understood; too little memory.
    pub fn row(&mut self, fields: &[Option<&[u8]>]) -> Result<(), String> {
        self.values.clear();
        self.ends.clear();
        if fields.len() != self.definition.columns.len() {
            return Err(format!("a row has {} fields", fields.len()));
        }
        for (column, field) in self.definition.columns.iter().zip(fields) {
            let start = self.values.len();
            if field.is_some_and(|text| !store(column, text, &mut self.values)) {
                return Err(format!("a value of column \"{}\" is not understood", column.name));
            }
            self.ends.push(field.map(|_| (start, self.values.len())));
        }
        let value = |at: &Option<(usize, usize)>| at.map(|(from, to)| &self.values[from..to]);
        let fields: smallvec::SmallVec<[Option<&[u8]>; 16]> = self.ends.iter().map(value).collect();
        let loaded = self.table.load(&fields).map_err(|Broken(why)| why);
        drop(fields);
        loaded?;
        self.rows += 1;
        match self.rows % LOOK_ROWS {
            0 => self.charge(),
            _ => Ok(()),
        }
    }

    fn charge(&mut self) -> Result<(), String> {
        match self.charge.set(self.table.bytes()) {
            true => Ok(()),
            false => Err(TOO_MUCH.to_owned()),
        }
    }

    /// All rows are there: makes the indexes, which takes a while.
    ///
    /// # Errors
    /// Rows that can't be, too little memory.
    pub fn finish(mut self) -> Result<Loaded, String> {
        let (snapshot, lsn) = self.snapshot.take().ok_or("there was no snapshot")?;
        self.table.finish().map_err(|Broken(why)| why)?;
        self.charge()?;
        let indexes = std::mem::take(&mut self.indexes);
        for (column, sums) in &indexes {
            if let Some((column, sums)) = missing(&self.table, *column, sums) {
                self.table.add_index(column, &sums);
                self.charge()?;
            }
        }
        let Copy { mirror, table, charge, .. } = self;
        Ok(Loaded { mirror, table, charge, snapshot, lsn })
    }
}

/// The index of this column that the table lacks, with all the sums that it is to know. Columns are
/// named by their numbers.
pub(super) fn missing(table: &Table, column: i16, sums: &[i16]) -> Option<(u16, Vec<u16>)> {
    let place = |number: &i16| {
        let columns = &table.definition().columns;
        let at = columns.iter().position(|column| column.attnum == *number)?;
        u16::try_from(at).ok()
    };
    let column = place(&column)?;
    let mut sums: Vec<u16> = sums.iter().filter_map(place).collect();
    let Some(known) = table.index(column) else { return Some((column, sums)) };
    let class = |at: u16| table.definition().columns.get(usize::from(at)).map(|at| at.class);
    sums.retain(|sum| class(*sum).is_some_and(has_sums));
    if sums.iter().all(|sum| known.knows_sum(*sum)) {
        return None;
    }
    sums.extend(known.sums());
    sums.sort_unstable();
    sums.dedup();
    Some((column, sums))
}

/// What the thread does that makes mirrors.
impl Mirrors {
    /// Looks what is wanted: begins and drops mirrors. To be called every now and then while a
    /// stream is followed; `is_told` says of which tables it tells.
    pub fn arrange(&self, now: Moment, is_told: impl Fn(u32) -> bool) {
        let mut aims = self.aims(now);
        aims.retain(|aim| is_told(aim.definition.oid));
        self.drop_indexes(&aims);
        let mut queue = self.queue();
        let mut gone = Vec::new();
        let mut pinned = Vec::new();
        let mut covered = HashSet::new();
        {
            let tables = self.look();
            for standing in tables.iter() {
                let aim = aims.iter().find(|aim| aim.definition.oid == standing.oid());
                if let Some(aim) = aim.filter(|aim| aim.is_pinned() != standing.pinned) {
                    pinned.push((standing.oid(), aim.is_pinned()));
                }
                match aim {
                    Some(aim) if standing.is_as_wanted(aim) => {
                        covered.insert(standing.oid());
                    }
                    // It answers until there is another, unless the table has changed.
                    Some(aim)
                        if aim.definition.filenode == standing.table.definition().filenode => {}
                    _ => gone.push(standing.oid()),
                }
            }
        }
        let unused: Vec<Standing> = {
            let mut tables = self.write();
            pinned.iter().for_each(|(oid, pinned)| tables.pin(*oid, *pinned));
            gone.iter().filter_map(|oid| tables.remove(*oid)).collect()
        };
        let mut begun = false;
        let Queue { making, bytes, failures, last, .. } = &mut *queue;
        making.retain(|_, making| {
            let aim = aims.iter().find(|aim| aim.definition.oid == making.table());
            let wanted =
                aim.is_some_and(|aim| places(&making.definition, &aim.definition).is_some());
            let keep = wanted && !covered.contains(&making.table());
            making.pinned = aim.is_some_and(Aim::is_pinned);
            *bytes -= if keep { 0 } else { making.bytes };
            begun |= !keep;
            if keep {
                covered.insert(making.table());
            }
            keep
        });
        failures.retain(|oid, _| aims.iter().any(|aim| aim.definition.oid == *oid));
        let since = self.follows.load().generation + 1;
        for aim in aims {
            let oid = aim.definition.oid;
            let waits = failures.get(&oid).is_some_and(|failure| failure.until > now);
            if waits || covered.contains(&oid) {
                continue;
            }
            *last += 1;
            let mirror = *last;
            let definition = Arc::new(aim.definition.clone());
            let (state, backlog) = (State::Waiting, Vec::new());
            let blocks = (0, 0);
            let new = Making {
                mirror,
                pinned: aim.is_pinned(),
                aim,
                definition,
                since,
                behind: 0,
                state,
                backlog,
                bytes: 0,
                blocks,
            };
            making.insert(mirror, new);
            begun = true;
        }
        if begun || !unused.is_empty() {
            self.follow_all(&queue);
        }
        drop(queue);
        drop(unused);
    }

    /// What all wishes want together, by table, with the columns that are there already.
    pub(super) fn aims(&self, now: Moment) -> Vec<Aim> {
        let wishes: Vec<_> = {
            let mut wishes = lock(&self.wishes);
            wishes.retain(|wish| wish.strong_count() > 0);
            wishes.iter().filter_map(Weak::upgrade).collect()
        };
        let mut aims: Vec<Aim> = Vec::new();
        for wish in wishes.iter().filter(|wish| wish.counts(now)) {
            for wanted in &wish.tables {
                match aims.iter_mut().find(|aim| aim.definition.oid == wanted.definition.oid) {
                    Some(aim) => aim.add(wanted, wish.pinned),
                    None => aims.push(Aim::new(wanted, wish.pinned)),
                }
            }
        }
        let tables = self.look();
        for aim in &mut aims {
            let of = |one: &&Standing| one.oid() == aim.definition.oid;
            let Some(standing) = tables.iter().find(of) else { continue };
            let known = standing.table.definition();
            if places(known, &aim.definition).is_none() && !standing.is_named_anew(aim) {
                add_columns(&mut aim.definition, known);
            }
        }
        drop(tables);
        aims
    }

    /// The applier tells of these from now on.
    pub(super) fn follow_all(&self, queue: &Queue) {
        let mut list: Vec<Follow> = Vec::new();
        let follow = |mirror, definition: &Arc<Definition>| Follow {
            mirror,
            definition: definition.clone(),
        };
        list.extend(queue.making.values().map(|one| follow(one.mirror, &one.definition)));
        let tables = self.look();
        list.extend(tables.iter().map(|one| follow(one.mirror, one.table.definition())));
        drop(tables);
        let generation = self.follows.load().generation + 1;
        self.follows.store(Arc::new(Follows { generation, list }));
    }

    /// One that can be copied now.
    pub fn next_copy(&self) -> Option<Copy> {
        let followed = self.followed.load(Ordering::Acquire);
        let mut queue = self.queue();
        // What is not settled a snapshot need not see, and nobody keeps it.
        let number = self.number();
        let waiting = |making: &&mut Making| {
            let is_told = making.since <= followed && making.behind <= number;
            matches!(making.state, State::Waiting) && is_told
        };
        let making = queue.making.values_mut().find(waiting)?;
        making.state = State::Copying;
        let definition = making.definition.clone();
        Some(Copy {
            mirror: making.mirror,
            table: Table::new(definition.clone()),
            definition,
            charge: Charge::new(&self.budget),
            snapshot: None,
            indexes: making.aim.indexes.clone(),
            rows: 0,
            values: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Some are not there yet.
    pub fn is_making(&self) -> bool {
        !self.queue().making.is_empty()
    }

    /// Some go on when the stream says something.
    pub fn waits_for_stream(&self) -> bool {
        let followed = self.followed.load(Ordering::Acquire);
        let queue = self.queue();
        let mut making = queue.making.values();
        making.any(|making| match making.state {
            State::Waiting => making.since > followed || making.behind > self.number(),
            State::Loaded(_) => true,
            State::Copying | State::Standing => false,
        })
    }

    /// So many blocks of so many are copied. False: it is of no use any more.
    pub fn progress(&self, mirror: u64, done: u64, total: u64) -> bool {
        let mut queue = self.queue();
        let making = queue.making.get_mut(&mirror);
        making.map(|making| making.blocks = (done, total)).is_some()
    }

    /// A mirror can't be made as it is wanted. What wants it counts no longer until it is used
    /// again: statements of a table as it was once are not asked any more.
    pub fn failed(&self, mirror: u64, why: &str, now: Moment) {
        let mut queue = self.queue();
        if let Some(making) = queue.making.remove(&mirror) {
            queue.bytes -= making.bytes;
            queue.failed(making.table(), why, now);
            self.follow_all(&queue);
            let wishes: Vec<_> = lock(&self.wishes).iter().filter_map(Weak::upgrade).collect();
            let wants = |wish: &&Arc<Wish>| {
                wish.tables.iter().any(|of| of.definition.oid == making.table())
            };
            wishes.iter().filter(wants).for_each(|wish| wish.doubt());
        }
    }

    pub fn loaded(&self, loaded: Loaded) {
        let mut queue = self.queue();
        if let Some(making) = queue.making.get_mut(&loaded.mirror) {
            making.state = State::Loaded(Box::new(loaded));
        }
    }

    /// Puts the backlogs of those in that may stand now, and has them answer.
    pub fn stand(&self, now: Moment) {
        while let Some(loaded) = self.next_loaded() {
            let mirror = loaded.mirror;
            if let Err(Broken(why)) = self.stand_one(*loaded) {
                self.failed(mirror, &why, now);
            }
        }
    }

    fn next_loaded(&self) -> Option<Box<Loaded>> {
        let mut queue = self.queue();
        let shown = self.shown();
        let ready = |making: &&mut Making| match &making.state {
            State::Loaded(loaded) => loaded.lsn <= shown,
            _ => false,
        };
        let making = queue.making.values_mut().find(ready)?;
        match std::mem::replace(&mut making.state, State::Standing) {
            State::Loaded(loaded) => Some(loaded),
            _ => None,
        }
    }

    fn stand_one(&self, mut loaded: Loaded) -> Result<(), Broken> {
        let mirror = loaded.mirror;
        loop {
            let mut queue = self.queue();
            let Queue { making, bytes, failures, .. } = &mut *queue;
            let Some(one) = making.get_mut(&mirror) else { return Ok(()) };
            let backlog = std::mem::take(&mut one.backlog);
            *bytes -= std::mem::take(&mut one.bytes);
            if backlog.len() > BACKLOG_SHORT {
                drop(queue);
                loaded.put_in(&backlog)?;
                continue;
            }
            loaded.put_in(&backlog)?;
            let Some(one) = making.remove(&mirror) else { return Ok(()) };
            failures.remove(&one.table());
            let Loaded { table, charge, .. } = loaded;
            let (pinned, named) = (one.pinned, one.aim.named);
            let before = self.write().put(Standing { mirror, table, charge, pinned, named });
            self.follow_all(&queue);
            drop(queue);
            drop(before);
            return Ok(());
        }
    }
}

impl Loaded {
    fn put_in(&mut self, backlog: &[Backlog]) -> Result<(), Broken> {
        for one in backlog {
            match one {
                Backlog::Commit(xid, _) | Backlog::Untold(xid) if self.snapshot.sees(*xid) => {}
                Backlog::Untold(_) => {
                    return Err(Broken("a transaction ran on that had begun before".to_owned()));
                }
                Backlog::Commit(_, open) => {
                    let own = open.changes().filter(|(mirror, _)| *mirror == self.mirror);
                    for (_, change) in own {
                        put(&mut self.table, change)?;
                    }
                }
            }
        }
        match self.charge.set(self.table.bytes()) {
            true => Ok(()),
            false => Err(Broken(TOO_MUCH.to_owned())),
        }
    }
}
