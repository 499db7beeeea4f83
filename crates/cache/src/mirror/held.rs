//! The mirrors of one database: which are wanted, which are being made, which answer.
//!
//! ```text
//! Wish --arrange--> Making: waiting -> copying -> loaded --stand--> Tables, which readers see
//!                      ^ backlog                              ^
//! commit --> queue ----'--- show: what is settled ------------'
//! ```
//!
//! PostgreSQL tells a commit before others can see it, and a mirror must not be ahead of it. So
//! commits wait in a queue until they are settled, and are then put into the tables: each as a whole,
//! in order. [`Mirrors::shown`] is the position up to which everything is.
//!
//! A copy sees what its snapshot sees, which may be ahead of what is shown. So a new mirror stands
//! only when everything up to the copy's position has been settled. Until then its changes are kept
//! in its backlog, from which those that the copy has seen are left out.

mod indexing;
mod making;
mod standing;
mod tables;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
    Weak,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use backend::moment::Moment;

use super::budget::Budget;
use super::feed::{Follows, Open};
use super::wish::Wish;
pub use making::{Copy, Loaded};
use making::{Failure, Making};
pub use standing::{MirrorInfo, State};
use tables::Standing;
pub use tables::{Reading, Tables};

/// Bytes of commits that wait to be settled, and of the backlogs of mirrors that are being made.
/// Beyond it the mirrors that are touched are made anew.
pub const QUEUE_BYTES_MAX: usize = 256 << 20;

/// A larger commit, or one that empties a table, is put into the tables by the stream's thread.
pub const SHOW_HERE_BYTES: usize = 256 << 10;

/// So often a reader looks again whether the tables are free.
const TRIES: usize = 2_000;

/// See the module's documentation.
pub struct Mirrors {
    budget: Arc<Budget>,
    tables: RwLock<Tables>,
    queue: Mutex<Queue>,
    wishes: Mutex<Vec<Weak<Wish>>>,
    /// Broken ones. To free a large one takes a while, which no reader and no client waits for.
    remains: Mutex<Vec<Standing>>,
    /// Everything that ends at or before this position is in the tables.
    shown: AtomicU64,
    /// The number of the last commit of which this is so.
    number: AtomicU64,
    follows: ArcSwap<Follows>,
    /// The generation of [`Follows`] that the applier follows.
    followed: AtomicU64,
    /// How often everything was forgotten.
    restarts: AtomicU64,
    /// Has the thread look that makes mirrors.
    poke: ArcSwapOption<Poke>,
}

type Poke = Box<dyn Fn() + Send + Sync>;

/// How far mirrors may go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Upto {
    pub settled: u64,
    pub applied: u64,
    pub restarts: u64,
}

#[derive(Default)]
struct Queue {
    commits: VecDeque<Commit>,
    /// Of those and of the backlogs.
    bytes: usize,
    making: BTreeMap<u64, Making>,
    /// By table: why there is no mirror of it.
    failures: HashMap<u32, Failure>,
    last: u64,
}

struct Commit {
    number: u64,
    end: u64,
    xid: u32,
    open: Arc<Open>,
}

impl fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirrors").field("shown", &self.shown()).finish_non_exhaustive()
    }
}

impl Mirrors {
    pub fn new(budget: Arc<Budget>) -> Mirrors {
        Mirrors {
            budget,
            tables: RwLock::default(),
            queue: Mutex::default(),
            wishes: Mutex::default(),
            remains: Mutex::default(),
            shown: AtomicU64::new(0),
            number: AtomicU64::new(0),
            follows: ArcSwap::default(),
            followed: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            poke: ArcSwapOption::empty(),
        }
    }

    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub fn shown(&self) -> u64 {
        self.shown.load(Ordering::SeqCst)
    }

    /// Every commit up to this number is in the tables.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The tables as they are now. None: they are being changed, and it takes a while.
    pub fn read(&self) -> Option<Reading<'_>> {
        for _ in 0..TRIES {
            match self.tables.try_read() {
                Ok(tables) => return Some(Reading(tables)),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return Some(Reading(poisoned.into_inner()))
                }
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }

    /// Mirrors for this come to be with the next [`Mirrors::arrange`], for as long as it lives.
    pub fn wish(&self, wish: &Arc<Wish>) {
        {
            let mut wishes = lock(&self.wishes);
            wishes.retain(|wish| wish.strong_count() > 0);
            wishes.push(Arc::downgrade(wish));
        }
        self.poke();
    }

    /// `poke` is called when there is something to do for the thread that makes mirrors.
    pub fn tell(&self, poke: Box<dyn Fn() + Send + Sync>) {
        self.poke.store(Some(Arc::new(poke)));
    }

    fn poke(&self) {
        if let Some(poke) = &*self.poke.load() {
            poke();
        }
    }

    /// Frees mirrors that broke.
    pub fn bury(&self) {
        let remains = std::mem::take(&mut *lock(&self.remains));
        drop(remains);
    }

    /// The thread that makes mirrors frees these.
    fn leave(&self, gone: Vec<Standing>) {
        if !gone.is_empty() {
            lock(&self.remains).extend(gone);
            self.poke();
        }
    }

    /// What an audit has found wrong is made anew.
    pub fn distrust(&self, tables: &[u32], why: &str, now: Moment) {
        let gone = {
            let mut queue = self.queue();
            let mut standing = self.write();
            let gone: Vec<_> = tables.iter().filter_map(|oid| standing.remove(*oid)).collect();
            for table in tables {
                queue.failed(*table, why, now);
            }
            gone
        };
        self.leave(gone);
    }

    /// Changes of these tables are told no longer.
    pub(crate) fn drop_all(&self, tables: &[u32]) {
        let gone: Vec<_> = {
            let mut queue = self.queue();
            let Queue { making, bytes, .. } = &mut *queue;
            making.retain(|_, making| {
                let goes = tables.contains(&making.table());
                *bytes -= if goes { making.backlog_bytes() } else { 0 };
                !goes
            });
            let mut standing = self.write();
            tables.iter().filter_map(|oid| standing.remove(*oid)).collect()
        };
        drop(gone);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// As [`Mirrors::read`], for who may wait.
    fn look(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the applier does.
impl Mirrors {
    pub(crate) fn follows(&self) -> arc_swap::Guard<Arc<Follows>> {
        self.follows.load()
    }

    /// The applier follows this list, and has told the commits up to `number`. `untold` gives the
    /// transactions that have done something to a table already and go on.
    pub(crate) fn are_followed(
        &self,
        follows: &Follows,
        number: u64,
        untold: &dyn Fn(u32) -> Vec<u32>,
    ) {
        let before = self.followed.load(Ordering::Acquire);
        {
            let mut queue = self.queue();
            let new = queue.making.values_mut().filter(|making| making.since() > before);
            new.for_each(|making| making.lacks(number, &untold(making.table())));
        }
        self.followed.store(follows.generation, Ordering::Release);
    }

    /// A stream begins, or is lost: nothing that is here counts any more.
    pub(crate) fn restart(&self) {
        let gone = {
            let mut queue = self.queue();
            self.restarts.fetch_add(1, Ordering::SeqCst);
            let making = std::mem::take(&mut queue.making);
            queue.commits.clear();
            queue.bytes = 0;
            self.shown.store(0, Ordering::SeqCst);
            let gone = (making, self.write().take());
            self.follow_all(&queue);
            gone
        };
        drop(gone);
    }

    /// A transaction has committed; its number is told afterwards.
    pub(crate) fn commit(&self, number: u64, end: u64, xid: u32, open: Open) {
        if open.is_empty() {
            return;
        }
        let mut queue = self.queue();
        queue.bytes += open.bytes();
        queue.commits.push_back(Commit { number, end, xid, open: Arc::new(open) });
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::SeqCst)
    }

    /// Puts commits up to the one with this number into the tables. Everything before `applied`
    /// has been given to [`Mirrors::commit`], if there was no restart since `restarts` were
    /// counted. False: some are left that are larger than `most` bytes, or somebody else is at it.
    pub(crate) fn show(&self, upto: Upto, most: usize, now: Moment) -> bool {
        let Upto { settled, applied, restarts } = upto;
        let mut queue = match self.queue.try_lock() {
            Ok(queue) => queue,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if most < usize::MAX => return false,
            Err(TryLockError::WouldBlock) => self.queue(),
        };
        if restarts != self.restarts() {
            return true;
        }
        let mut all = true;
        let mut gone = Vec::new();
        while let Some(commit) = queue.next(settled) {
            if commit.open.is_large(most) {
                all = false;
                break;
            }
            let Some(commit) = queue.commits.pop_front() else { break };
            queue.bytes -= commit.open.bytes();
            let broken = self.write().apply(&commit.open, &mut gone);
            for (table, why) in broken {
                queue.failed(table, &why, now);
            }
            queue.keep_back(commit.xid, &commit.open, now);
        }
        if queue.bytes > QUEUE_BYTES_MAX {
            gone.extend(self.give_up(&mut queue, now));
        }
        let shown = queue.commits.front().map_or(applied, |first| first.end - 1);
        self.shown.fetch_max(shown, Ordering::SeqCst);
        // Commits before the first one here were none of the mirrors', and need not be visible yet.
        let first = queue.commits.front().map_or(u64::MAX, |first| first.number - 1);
        let number = first.min(settled);
        self.number.fetch_max(number, Ordering::AcqRel);
        if !gone.is_empty() {
            self.follow_all(&queue);
        }
        drop(queue);
        self.leave(gone);
        all
    }

    /// Too much waits: all mirrors are made anew.
    fn give_up(&self, queue: &mut Queue, now: Moment) -> Vec<Standing> {
        const WHY: &str = "too many changes waited to be seen";
        queue.commits.clear();
        queue.bytes = 0;
        let making = std::mem::take(&mut queue.making);
        for making in making.values() {
            queue.failed(making.table(), WHY, now);
        }
        let gone = self.write().take();
        for standing in &gone {
            queue.failed(standing.oid(), WHY, now);
        }
        gone
    }
}

impl Queue {
    fn next(&self, settled: u64) -> Option<&Commit> {
        self.commits.front().filter(|commit| commit.number <= settled)
    }

    fn failed(&mut self, table: u32, why: &str, now: Moment) {
        self.failures.entry(table).or_default().note(why, now);
    }

    /// Keeps a commit for the mirrors that are being made and that it touches.
    fn keep_back(&mut self, xid: u32, open: &Arc<Open>, now: Moment) {
        if self.making.is_empty() {
            return;
        }
        for (mirror, why) in open.broken() {
            if let Some(making) = self.making.remove(mirror) {
                self.bytes -= making.backlog_bytes();
                self.failed(making.table(), why, now);
            }
        }
        let Queue { making, bytes, .. } = self;
        for making in making.values_mut() {
            if open.changes().any(|(mirror, _)| mirror == making.mirror()) {
                *bytes += making.note(xid, open);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
