//! Lending: which server a client gets, who waits, and when another connection is opened.
//!
//! A [`Pool`] is one worker's part of a pool: its idle servers and its waiting clients. How many
//! connections exist over all workers is counted by a [`Budget`] that they share.
//!
//! How it is driven: a client that needs a server asks [`Pool::take`]; without success it calls
//! [`Pool::wait`]. A server that becomes free goes to [`Pool::next_waiting`], else to
//! [`Pool::rest`]. After anything that may call for another connection the caller asks
//! [`Pool::open_one`] and dials when it says so; [`Pool::opened`] or [`Pool::failed`] follows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::moment::Moment;

/// Connections of one pool that one worker opens at the same time. Each costs PostgreSQL a fork;
/// a burst of clients is mostly served by servers that come back before a new one is there.
pub const OPENING_MAX: u32 = 4;

/// Connections that exist or are being opened, over all workers.
#[derive(Debug, Default)]
pub struct Budget(AtomicU32);

impl Budget {
    /// Takes one if fewer than `limit` are taken.
    pub fn take(&self, limit: u32) -> bool {
        let more = |taken: u32| (taken < limit).then_some(taken + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    pub fn give_back(&self) {
        let less = |taken: u32| taken.checked_sub(1);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    }

    pub fn taken(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whose servers a [`Budget`] counts that several pools share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    Database,
    User,
}

/// A budget that several pools share, and what it allows.
#[derive(Debug, Clone)]
pub struct Ceiling {
    pub scope: Scope,
    pub budget: Arc<Budget>,
    pub limit: u32,
}

impl Ceiling {
    pub fn is_reached(&self) -> bool {
        self.budget.taken() >= self.limit
    }
}

/// What all workers know of one pool.
#[derive(Debug, Default)]
pub struct Shared {
    pub servers: Budget,
    /// Bit `n`: worker `n` has clients waiting and may not open another server.
    pub starving: AtomicU64,
}

/// How many connections a pool may have.
#[derive(Debug, Clone)]
pub struct Limits {
    pub size: u32,
    pub min: u32,
    pub reserve: u32,
    /// A client that has waited so long may be given one of the reserve.
    pub reserve_after: Duration,
    /// No new try so soon after one that failed.
    pub retry_after: Duration,
    /// Of budgets that several pools share: of a database, of a user.
    pub also: Vec<Ceiling>,
}

/// One worker's part of a pool. `S` names a server, `C` a client.
#[derive(Debug)]
pub struct Pool<S, C> {
    shared: Arc<Shared>,
    /// The last one is lent first: a few busy servers stay warm, the others grow old and close.
    idle: Vec<S>,
    waiting: VecDeque<(C, Moment)>,
    opening: u32,
    retry_at: Moment,
    failures: u32,
}

impl<S: Copy + PartialEq, C: Copy + PartialEq> Pool<S, C> {
    pub fn new(shared: Arc<Shared>) -> Pool<S, C> {
        Pool {
            shared,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            opening: 0,
            retry_at: Moment(0),
            failures: 0,
        }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn idle(&self) -> &[S] {
        &self.idle
    }

    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn opening(&self) -> u32 {
        self.opening
    }

    /// The most recently used idle server; none while others wait, since they came first.
    pub fn take(&mut self) -> Option<S> {
        if self.waiting.is_empty() {
            self.idle.pop()
        } else {
            None
        }
    }

    /// Some idle server, for closing it or giving it away: the least recently used.
    pub fn take_oldest(&mut self) -> Option<S> {
        (!self.idle.is_empty()).then(|| self.idle.remove(0))
    }

    pub fn rest(&mut self, server: S) {
        self.idle.push(server);
    }

    /// An idle server is gone or wanted elsewhere.
    pub fn remove_idle(&mut self, server: S) -> bool {
        let at = self.idle.iter().rposition(|idle| *idle == server);
        at.map(|at| self.idle.remove(at)).is_some()
    }

    /// Waits for a server, at the place of its arrival.
    pub fn wait(&mut self, client: C, arrived: Moment) {
        let place = self.waiting.partition_point(|(_, since)| *since <= arrived);
        self.waiting.insert(place, (client, arrived));
    }

    /// Back to the head of the queue: its server died before anything was sent.
    pub fn wait_first(&mut self, client: C, since: Moment) {
        self.waiting.push_front((client, since));
    }

    pub fn leave(&mut self, client: C) {
        if let Some(at) = self.waiting.iter().position(|(waiting, _)| *waiting == client) {
            self.waiting.remove(at);
        }
    }

    /// Who has waited longest, and since when; it waits no more.
    pub fn next_waiting(&mut self) -> Option<(C, Moment)> {
        self.waiting.pop_front()
    }

    pub fn oldest_waiting(&self) -> Option<(C, Moment)> {
        self.waiting.front().copied()
    }

    /// Those who have waited since `since` or longer.
    pub fn waiting_since(&self, since: Moment) -> Vec<C> {
        let long = self.waiting.iter().take_while(|(_, began)| *began <= since);
        long.map(|(client, _)| *client).collect()
    }

    /// Whether to open one more connection now; if so its place in the budget is taken. `extra`
    /// is how many are wanted beside those for waiting clients.
    pub fn open_one(&mut self, limits: &Limits, extra: u32, now: Moment) -> bool {
        let wanted = self.waiting.len() as u64 + u64::from(extra) > u64::from(self.opening);
        if !wanted || self.opening >= OPENING_MAX || now < self.retry_at {
            return false;
        }
        let patient = self
            .oldest_waiting()
            .is_some_and(|(_, began)| now.since(began) >= limits.reserve_after);
        let limit = if patient { limits.size.saturating_add(limits.reserve) } else { limits.size };
        if !self.shared.servers.take(limit) {
            return false;
        }
        for (taken, ceiling) in limits.also.iter().enumerate() {
            if !ceiling.budget.take(ceiling.limit) {
                limits.also[..taken].iter().for_each(|ceiling| ceiling.budget.give_back());
                self.shared.servers.give_back();
                return false;
            }
        }
        self.opening += 1;
        true
    }

    /// A connection that [`Pool::open_one`] allowed is there.
    pub fn opened(&mut self) {
        self.opening = self.opening.saturating_sub(1);
        self.failures = 0;
        self.retry_at = Moment(0);
    }

    /// It could not be had. The pause before the next try is `retry_after`.
    pub fn failed(&mut self, limits: &Limits, now: Moment) {
        self.opening = self.opening.saturating_sub(1);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.after(limits.retry_after);
        self.closed(limits);
    }

    /// A connection is gone: its places in the budgets are free.
    pub fn closed(&mut self, limits: &Limits) {
        self.shared.servers.give_back();
        limits.also.iter().for_each(|ceiling| ceiling.budget.give_back());
    }

    /// Tries that failed since the last that did not.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// RECONNECT, RESUME: do not wait for the pause after a failure.
    pub fn retry_now(&mut self) {
        self.retry_at = Moment(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(1_000_000);

    fn limits(size: u32, reserve: u32) -> Limits {
        Limits {
            size,
            min: 0,
            reserve,
            reserve_after: Duration::from_secs(5),
            retry_after: Duration::from_secs(1),
            also: Vec::new(),
        }
    }

    fn pool() -> Pool<u32, u32> {
        Pool::new(Arc::new(Shared::default()))
    }

    #[test]
    fn the_last_server_that_came_back_is_lent_first() {
        let mut pool = pool();
        pool.rest(1);
        pool.rest(2);
        assert_eq!(pool.take(), Some(2));
        assert_eq!(pool.take_oldest(), Some(1));
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn nobody_overtakes_a_waiting_client() {
        let mut pool = pool();
        pool.wait(7, NOW);
        pool.rest(1);
        assert_eq!(pool.take(), None, "client 7 came first");
        assert_eq!(pool.next_waiting(), Some((7, NOW)));
        assert_eq!(pool.take(), Some(1));
    }

    #[test]
    fn who_comes_late_to_the_queue_has_the_place_of_its_arrival() {
        let mut pool = pool();
        for (client, arrived) in [(1, 10), (2, 30), (3, 20), (4, 30), (5, 5)] {
            pool.wait(client, Moment(arrived));
        }
        let order: Vec<u32> = std::iter::from_fn(|| pool.next_waiting()).map(|(c, _)| c).collect();
        assert_eq!(order, [5, 1, 3, 2, 4]);
    }

    #[test]
    fn no_more_is_opened_than_clients_wait_and_the_size_allows() {
        let mut pool = pool();
        assert!(!pool.open_one(&limits(2, 0), 0, NOW), "nobody waits");
        for client in 0..5 {
            pool.wait(client, NOW);
        }
        assert!(pool.open_one(&limits(2, 0), 0, NOW));
        assert!(pool.open_one(&limits(2, 0), 0, NOW));
        assert!(!pool.open_one(&limits(2, 0), 0, NOW), "two of two");
        assert!(!pool.open_one(&limits(2, 1), 0, NOW), "nobody has waited for the reserve yet");
        let later = NOW.after(Duration::from_secs(5));
        assert!(pool.open_one(&limits(2, 1), 0, later));
        assert!(!pool.open_one(&limits(2, 1), 0, later));
    }

    #[test]
    fn workers_share_one_budget() {
        let shared = Arc::new(Shared::default());
        let mut pools = [Pool::<u32, u32>::new(shared.clone()), Pool::new(shared)];
        for pool in &mut pools {
            pool.wait(0, NOW);
        }
        assert!(pools[0].open_one(&limits(1, 0), 0, NOW));
        assert!(!pools[1].open_one(&limits(1, 0), 0, NOW));
        pools[0].failed(&limits(1, 0), NOW);
        assert!(pools[1].open_one(&limits(1, 0), 0, NOW));
    }

    #[test]
    fn a_full_database_gives_the_place_in_the_pool_back() {
        let database = Arc::new(Budget::default());
        let ceiling = Ceiling { scope: Scope::Database, budget: database.clone(), limit: 1 };
        let limits = Limits { also: vec![ceiling], ..limits(5, 0) };
        let mut pool = pool();
        pool.wait(0, NOW);
        pool.wait(1, NOW);
        assert!(pool.open_one(&limits, 0, NOW));
        assert!(!pool.open_one(&limits, 0, NOW));
        assert_eq!((pool.shared().servers.taken(), database.taken()), (1, 1));
        pool.opened();
        pool.closed(&limits);
        assert_eq!((pool.shared().servers.taken(), database.taken()), (0, 0));
    }

    #[test]
    fn after_a_failure_there_is_a_pause() {
        let mut pool = pool();
        pool.wait(0, NOW);
        assert!(pool.open_one(&limits(1, 0), 0, NOW));
        pool.failed(&limits(1, 0), NOW);
        assert_eq!(pool.failures(), 1);
        assert!(!pool.open_one(&limits(1, 0), 0, NOW.after(Duration::from_millis(999))));
        assert!(pool.open_one(&limits(1, 0), 0, NOW.after(Duration::from_secs(1))));
    }
}
