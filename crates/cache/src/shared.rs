//! What all threads share of one followed database: the tags, how far the stream has been
//! applied, and which commits are known to be visible.
//!
//! PostgreSQL makes a commit durable, and tells it in the stream, before other sessions can see it.
//! So a commit that has been applied is *unsettled* until a snapshot shows its transaction as
//! ended: an answer that is fetched before that may still have the old rows, and would never be
//! dropped. [`Shared::settled`] is the number up to which this can't happen.
//!
//! When a stream begins there may be transactions that committed just before, so that they are
//! not told, and are not visible yet. All that run in the first snapshot after the start may be
//! such ones; nothing is settled until they have ended. (PostgreSQL itself waits in the same way
//! before it lets a stream begin.)

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use backend::moment::Moment;
use backend::replication::PublishedTable;

use crate::acks::Acks;
use crate::mirror::budget::Budget;
use crate::mirror::held::{Mirrors, Upto, SHOW_HERE_BYTES};
use crate::tags::Tags;
use crate::watch::Watch;

/// Most commits of which it is remembered singly whether they are settled. 16 bytes each.
pub const UNSETTLED_MAX: usize = 64 * 1024;

/// Most running transactions in a snapshot; PostgreSQL has at most 2^18 connections.
pub const RUNNING_MAX: usize = 1 << 20;

/// The number of no transaction. Source: `InvalidTransactionId` in `access/transam.h`.
const NO_XID: u32 = 0;

/// What `pg_current_snapshot()` says: which transactions have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// No transaction from here on had ended.
    next: u64,
    /// Those before it that were running, in order.
    running: Vec<u64>,
}

impl Snapshot {
    /// From its text: `xmin:xmax:xip,xip,...`.
    pub fn parse(text: &[u8]) -> Option<Snapshot> {
        let mut parts = text.split(|byte| *byte == b':');
        let (xmin, next, list) = (xid(parts.next()?)?, xid(parts.next()?)?, parts.next()?);
        if xmin > next || parts.next().is_some() {
            return None;
        }
        let mut running = Vec::new();
        if !list.is_empty() {
            for word in list.split(|byte| *byte == b',') {
                if running.len() >= RUNNING_MAX {
                    return None;
                }
                running.push(xid(word)?);
            }
        }
        running.sort_unstable();
        Some(Snapshot { next, running })
    }

    /// Whether it shows what a transaction has done, if that has committed. By the lower half of
    /// its number.
    pub fn sees(&self, xid: u32) -> bool {
        self.has_ended(xid)
    }

    /// Whether a transaction has ended, by the lower half of its number.
    fn has_ended(&self, xid: u32) -> bool {
        xid == NO_XID || self.has_ended_wide(self.widened(xid))
    }

    fn has_ended_wide(&self, xid: u64) -> bool {
        xid < self.next && self.running.binary_search(&xid).is_err()
    }

    /// Whether all between two numbers, these included, have ended.
    fn have_ended(&self, oldest: u32, newest: u32) -> bool {
        let (oldest, newest) = (self.widened(oldest), self.widened(newest));
        let at = self.running.partition_point(|xid| *xid < oldest);
        newest < self.next && self.running.get(at).is_none_or(|xid| *xid > newest)
    }

    /// The whole number of a transaction that is less than 2^31 away from the snapshot.
    fn widened(&self, xid: u32) -> u64 {
        let behind = (self.next as u32).wrapping_sub(xid) as i32;
        self.next.wrapping_sub(i64::from(behind) as u64)
    }
}

fn xid(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// How far the stream has been applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The last commit whose tags are raised, all of them.
    pub number: u64,
    /// Everything before this position has been told and applied.
    pub lsn: u64,
}

/// Told of a position that somebody waits for.
pub type Asked = Box<dyn Fn(u64) + Send + Sync>;

/// See the module's documentation.
pub struct Shared {
    pub tags: Tags,
    pub watch: Watch,
    pub acks: Acks,
    pub mirrors: Mirrors,
    number: AtomicU64,
    lsn: AtomicU64,
    settled: AtomicU64,
    following: AtomicBool,
    starts: AtomicU64,
    /// When the server was started that the stream comes from.
    server: AtomicI64,
    definitions: AtomicU64,
    /// The lowest position that somebody waits for.
    wanted: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
    /// Who is told what somebody waits for.
    asked: ArcSwapOption<Asked>,
    /// When the stream last said something, as [`Moment`] counts.
    told: AtomicU64,
    published: ArcSwap<HashMap<u32, PublishedTable>>,
    /// Of tables that have some, their partitions and children, however far below.
    parts: ArcSwap<HashMap<u32, Vec<u32>>>,
    /// Locked for each commit and each snapshot, for as long as it takes to compare numbers.
    unsettled: Mutex<Unsettled>,
    lost: Mutex<Option<String>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Shared");
        shown.field("applied", &self.applied()).field("settled", &self.settled());
        shown.field("following", &self.is_following()).finish_non_exhaustive()
    }
}

/// Commits that may not be visible yet.
#[derive(Debug, Default)]
struct Unsettled {
    /// Number and transaction, in order of numbers.
    queue: VecDeque<(u64, u32)>,
    /// What came behind a full queue.
    rest: Option<Rest>,
    start: Option<Start>,
    /// The last snapshot of this stream's time.
    last: Option<Snapshot>,
}

/// Commits of which only their outermost transactions are known.
#[derive(Debug)]
struct Rest {
    last: u64,
    oldest: u32,
    newest: u32,
}

/// A stream has begun, with this number.
#[derive(Debug)]
struct Start {
    number: u64,
    /// Who ran in the first snapshot behind it and has not ended since; none was seen yet.
    running: Option<Vec<u64>>,
}

impl Shared {
    /// Without memory for mirrors. `wake` is called by the applier's thread when a position is
    /// reached that somebody wants; see [`Shared::want`].
    pub fn new(tags: Tags, wake: Box<dyn Fn() + Send + Sync>) -> Shared {
        Shared::mirroring(tags, wake, Arc::new(Budget::new(0)))
    }

    /// One whose mirrors take their memory from this budget.
    pub fn mirroring(tags: Tags, wake: Box<dyn Fn() + Send + Sync>, budget: Arc<Budget>) -> Shared {
        Shared {
            tags,
            watch: Watch::default(),
            acks: Acks::default(),
            mirrors: Mirrors::new(budget),
            number: AtomicU64::new(0),
            lsn: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            following: AtomicBool::new(false),
            starts: AtomicU64::new(0),
            server: AtomicI64::new(0),
            definitions: AtomicU64::new(0),
            wanted: AtomicU64::new(u64::MAX),
            wake,
            asked: ArcSwapOption::empty(),
            told: AtomicU64::new(0),
            published: ArcSwap::default(),
            parts: ArcSwap::default(),
            unsettled: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    /// The position first: the number is then at least that position's.
    pub fn applied(&self) -> Applied {
        let lsn = self.lsn.load(Ordering::SeqCst);
        Applied { number: self.number.load(Ordering::Acquire), lsn }
    }

    /// Every commit with a number up to this is visible to whoever asks from now on.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Whether a stream tells all changes. If not, nothing may be served.
    pub fn is_following(&self) -> bool {
        self.following.load(Ordering::SeqCst)
    }

    /// Why there is no stream; none there was so far, or there is one.
    pub fn why_lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tables whose changes are told.
    pub fn published(&self) -> Guard<Arc<HashMap<u32, PublishedTable>>> {
        self.published.load()
    }

    /// Of published tables that have some, their partitions and children, however far below.
    pub fn parts(&self) -> Guard<Arc<HashMap<u32, Vec<u32>>>> {
        self.parts.load()
    }

    fn store_published(&self, tables: HashMap<u32, PublishedTable>) {
        let mut parts: HashMap<u32, Vec<u32>> = HashMap::new();
        for table in tables.values() {
            for ancestor in &table.ancestors {
                parts.entry(*ancestor).or_default().push(table.oid);
            }
        }
        self.parts.store(Arc::new(parts));
        self.published.store(Arc::new(tables));
    }

    /// Rises when rights, definitions or the set of published tables may have changed: what was
    /// found out about a statement before counts no more.
    pub fn definitions(&self) -> u64 {
        self.definitions.load(Ordering::Acquire)
    }

    /// Rises with every stream that begins. To be read before a snapshot is asked for, and told
    /// to [`Shared::settle`].
    pub fn starts(&self) -> u64 {
        self.starts.load(Ordering::Acquire)
    }

    /// Whether the stream comes from the server that was started then, so that positions in its log
    /// can be compared. Another may have taken its place, with another log.
    pub fn is_of(&self, started: i64) -> bool {
        self.server.load(Ordering::Acquire) == started
    }

    /// Something was heard from the server, if only that it lives.
    pub fn heard(&self, now: Moment) {
        self.told.fetch_max(now.0, Ordering::Relaxed);
    }

    pub fn last_heard(&self) -> Moment {
        Moment(self.told.load(Ordering::Relaxed))
    }

    /// Whether all before `lsn` is applied. If not, a wake comes when it is, or earlier; each wake
    /// is for all who wait, and who waits on has to say so again. Without a stream no wake may
    /// come: look at [`Shared::is_following`] behind this.
    pub fn want(&self, lsn: u64) -> bool {
        if self.lsn.load(Ordering::SeqCst) >= lsn {
            return true;
        }
        self.wanted.fetch_min(lsn, Ordering::SeqCst);
        if self.lsn.load(Ordering::SeqCst) >= lsn {
            return true;
        }
        self.ask(lsn);
        false
    }

    fn ask(&self, lsn: u64) {
        if let Some(asked) = &*self.asked.load() {
            asked(lsn);
        }
    }

    /// From now on `asked` is called, by whoever waits, with each position that is not applied yet.
    pub fn tell_wants(&self, asked: Asked) {
        self.asked.store(Some(Arc::new(asked)));
    }

    /// Learns from a snapshot which commits are visible. `start` is what [`Shared::starts`] said
    /// before it was asked for: an older one, of another stream and maybe another server, says
    /// nothing.
    pub fn settle(&self, snapshot: Snapshot, start: u64) {
        {
            let mut unsettled = self.unsettled();
            if start != self.starts() {
                return;
            }
            if let Some(number) = unsettled.settle(&snapshot) {
                self.settled.store(number, Ordering::Release);
            }
            unsettled.last = Some(snapshot);
        }
        if !self.show(SHOW_HERE_BYTES) {
            self.ask(self.applied().lsn + 1);
        }
    }

    /// Puts what is settled into the mirrors; commits with more than `most` bytes are left.
    fn show(&self, most: usize) -> bool {
        // In this order: all before what is applied has come to the mirrors.
        let restarts = self.mirrors.restarts();
        let applied = self.applied().lsn;
        let upto = Upto { settled: self.settled(), applied, restarts };
        self.mirrors.show(upto, most, self.last_heard())
    }

    /// Whether all before `lsn` is in the mirrors. If not, a wake may come when it is; see
    /// [`Shared::want`].
    pub fn want_shown(&self, lsn: u64) -> bool {
        self.mirrors.shown() >= lsn || self.want(lsn) && self.mirrors.shown() >= lsn
    }

    /// How many commits are waiting to be seen; those that are not remembered singly count as one.
    pub fn unsettled_count(&self) -> usize {
        let unsettled = self.unsettled();
        unsettled.queue.len() + usize::from(unsettled.rest.is_some())
    }

    /// Behind the start of a stream, the transactions that must end before anything is settled.
    pub fn start_waits_for(&self) -> Vec<u64> {
        let unsettled = self.unsettled();
        let start = unsettled.start.as_ref();
        start.and_then(|start| start.running.clone()).unwrap_or_default()
    }

    fn unsettled(&self) -> MutexGuard<'_, Unsettled> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the applier says.
impl Shared {
    /// The next stream comes from the server that was started then.
    pub(crate) fn comes_from(&self, started: i64) {
        self.server.store(started, Ordering::Release);
    }

    /// A stream begins. All tags are raised: what has happened before was not told.
    pub(crate) fn begin(&self, lsn: u64, tables: HashMap<u32, PublishedTable>) {
        let number = self.number.load(Ordering::Relaxed) + 1;
        self.tags.bump_all(number);
        self.store_published(tables);
        self.definitions.fetch_add(1, Ordering::AcqRel);
        {
            let mut unsettled = self.unsettled();
            let start = Some(Start { number, running: None });
            *unsettled = Unsettled { start, ..Unsettled::default() };
            self.starts.fetch_add(1, Ordering::AcqRel);
            // The log of a server that has taken over may be shorter: nothing of this stream is
            // shown up to where the last one was.
            self.lsn.store(0, Ordering::SeqCst);
            self.mirrors.restart();
        }
        self.number.store(number, Ordering::Release);
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.following.store(true, Ordering::SeqCst);
        self.reach(lsn);
    }

    /// Nothing is served any more, until a stream begins.
    pub fn lose(&self, why: &str) {
        self.following.store(false, Ordering::SeqCst);
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
        self.mirrors.restart();
        // Who waits for a position does not get it any more.
        self.wanted.store(u64::MAX, Ordering::SeqCst);
        (self.wake)();
    }

    pub(crate) fn publish(&self, tables: HashMap<u32, PublishedTable>) {
        self.store_published(tables);
        self.redefine();
    }

    /// Definitions or rights have changed.
    pub fn redefine(&self) {
        self.definitions.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of the commit whose tags are to be raised next.
    pub(crate) fn next_number(&self) -> u64 {
        self.number.load(Ordering::Relaxed) + 1
    }

    /// All tags of commit `number` are raised. Without a transaction it is something that
    /// everybody sees already.
    pub(crate) fn applied_commit(&self, number: u64, xid: Option<u32>) {
        {
            let mut unsettled = self.unsettled();
            if unsettled.push(number, xid.unwrap_or(NO_XID)) {
                self.settled.store(number, Ordering::Release);
            }
        }
        self.number.store(number, Ordering::Release);
    }

    /// All before `lsn` is applied.
    pub(crate) fn reach(&self, lsn: u64) {
        self.lsn.store(lsn, Ordering::SeqCst);
        self.show(usize::MAX);
        if self.wanted.load(Ordering::SeqCst) <= lsn {
            self.wanted.store(u64::MAX, Ordering::SeqCst);
            (self.wake)();
        }
    }
}

impl Unsettled {
    /// Takes a commit; whether it is settled at once.
    fn push(&mut self, number: u64, xid: u32) -> bool {
        let seen = self.last.as_ref().is_some_and(|last| last.has_ended(xid));
        let none_waits = self.queue.is_empty() && self.rest.is_none() && self.start.is_none();
        if (xid == NO_XID || seen) && none_waits {
            return true;
        }
        match &mut self.rest {
            Some(rest) => rest.add(number, xid),
            None if self.queue.len() < UNSETTLED_MAX => self.queue.push_back((number, xid)),
            None => self.rest = Some(Rest { last: number, oldest: xid, newest: xid }),
        }
        false
    }

    /// The greatest number that is settled now, if it has changed.
    fn settle(&mut self, snapshot: &Snapshot) -> Option<u64> {
        let mut settled = None;
        if let Some(start) = &mut self.start {
            let running = start.running.get_or_insert_with(|| snapshot.running.clone());
            running.retain(|xid| !snapshot.has_ended_wide(*xid));
            if !running.is_empty() {
                return None;
            }
            settled = Some(start.number);
            self.start = None;
        }
        while let Some((number, xid)) = self.queue.front() {
            if !snapshot.has_ended(*xid) {
                return settled;
            }
            settled = Some(*number);
            self.queue.pop_front();
        }
        if self.rest.as_ref().is_some_and(|rest| rest.has_ended(snapshot)) {
            settled = self.rest.take().map(|rest| rest.last);
        }
        settled
    }
}

impl Rest {
    fn add(&mut self, number: u64, xid: u32) {
        self.last = number;
        if xid == NO_XID {
            return;
        }
        if self.oldest == NO_XID {
            (self.oldest, self.newest) = (xid, xid);
        }
        // Numbers go round: the difference tells which came first.
        if xid.wrapping_sub(self.newest) as i32 > 0 {
            self.newest = xid;
        }
        if (xid.wrapping_sub(self.oldest) as i32) < 0 {
            self.oldest = xid;
        }
    }

    fn has_ended(&self, snapshot: &Snapshot) -> bool {
        self.oldest == NO_XID || snapshot.have_ended(self.oldest, self.newest)
    }
}

#[cfg(test)]
mod tests;
