//! Lending: which server a client gets, who waits, and when another connection is opened.
//!
//! A [`Pool`] is one worker's part of a pool: its idle servers and its waiting clients. How many
//! connections exist over all workers is counted by a [`Budget`] that they share.
//!
//! How it is driven: a client that needs a server asks [`Pool::take`]; without success it calls
//! [`Pool::wait`]. A server that becomes free goes to [`Pool::next_waiting`], else to
//! [`Pool::rest`]. After anything that may call for another connection the caller asks
//! [`Pool::open_one`] and dials when it says so; [`Pool::opened`] or [`Pool::failed`] follows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::fair::Part;
use crate::moment::Moment;

/// Connections of one pool that one worker opens at the same time. Each costs PostgreSQL a fork;
/// a burst of clients is mostly served by servers that come back before a new one is there.
pub const OPENING_MAX: u32 = 4;

/// How often the pause after a failure is doubled where the server has no room.
const PAUSE_DOUBLED_MAX: u32 = 3;

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
    /// All there are.
    Process,
    Database,
    User,
}

impl Scope {
    /// The option that sets its limit.
    pub fn option(self) -> &'static str {
        match self {
            Scope::Process => "max_servers",
            Scope::Database => "the database's max_server_connections",
            Scope::User => "the user's max_server_connections",
        }
    }
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
#[derive(Debug)]
pub struct Shared {
    pub servers: Budget,
    /// Of these, the ones that a client keeps beyond its transaction.
    pub pinned: Budget,
    /// Bit `n`: worker `n` has clients waiting and may not open another server.
    pub starving: AtomicU64,
    /// Servers that it gives up for other pools as they become free.
    owes: AtomicU32,
    /// It opens none beyond so many while other pools lack some.
    share: AtomicU32,
    /// By worker.
    demands: Mutex<BTreeMap<u8, Demand>>,
    /// Of the budgets that its servers are counted in.
    ceilings: Mutex<Vec<Ceiling>>,
}

/// What a worker's part of a pool needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// Servers that work, or have lately, or are being opened.
    pub works: u32,
    /// Clients that wait and might be served.
    pub waits: u32,
    /// Servers that are closed as soon as what they do is done.
    pub leaving: u32,
    /// What the pool may have at the most.
    pub most: u32,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            servers: Budget::default(),
            pinned: Budget::default(),
            starving: AtomicU64::new(0),
            owes: AtomicU32::new(0),
            share: AtomicU32::new(u32::MAX),
            demands: Mutex::default(),
            ceilings: Mutex::default(),
        }
    }
}

impl Shared {
    /// Whether it has servers to give up.
    pub fn owes(&self) -> bool {
        self.owes.load(Ordering::Relaxed) != 0
    }

    /// Whether to give up a server that is free: asked once for each.
    pub fn pay(&self) -> bool {
        let less = |owes: u32| owes.checked_sub(1);
        self.owes() && self.owes.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less).is_ok()
    }

    /// How many it may have while other pools lack some; [`u32::MAX`] while none does.
    pub fn share(&self) -> u32 {
        self.share.load(Ordering::Relaxed)
    }

    /// None: it is not limited.
    pub fn limit(&self, part: Option<Part>) {
        let Part { share, owes } = part.unwrap_or(Part { share: u32::MAX, owes: 0 });
        self.share.store(share, Ordering::Relaxed);
        self.owes.store(owes, Ordering::Release);
    }

    pub fn tell_demand(&self, worker: u8, demand: Demand) {
        self.demands.lock().unwrap_or_else(PoisonError::into_inner).insert(worker, demand);
    }

    /// What all workers' parts need.
    pub fn demand(&self) -> Demand {
        let demands = self.demands.lock().unwrap_or_else(PoisonError::into_inner);
        demands.values().fold(Demand::default(), |sum, one| Demand {
            works: sum.works.saturating_add(one.works),
            waits: sum.waits.saturating_add(one.waits),
            leaving: sum.leaving.saturating_add(one.leaving),
            most: sum.most.max(one.most),
        })
    }

    pub fn share_with(&self, ceilings: Vec<Ceiling>) {
        *self.lock_ceilings() = ceilings;
    }

    pub fn ceilings(&self) -> Vec<Ceiling> {
        self.lock_ceilings().clone()
    }

    fn lock_ceilings(&self) -> MutexGuard<'_, Vec<Ceiling>> {
        self.ceilings.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Who waits, and since when.
#[derive(Debug, Clone, Copy)]
struct Waiting<C> {
    client: C,
    since: Moment,
    /// Parties take turns. Most pools have one only, which is 0.
    party: usize,
}

/// When it was whose turn, as far as it matters to those who wait.
#[derive(Debug, Default)]
struct Turns {
    /// Turns so far.
    count: u64,
    parties: BTreeMap<usize, Party>,
}

#[derive(Debug, Default)]
struct Party {
    /// The number of its last turn; 0: it comes before those who have had one.
    last: u64,
    /// Its clients that wait; not counted of party 0.
    waiting: usize,
}

impl Turns {
    fn arrives(&mut self, party: usize) {
        if party != 0 {
            self.parties.entry(party).or_default().waiting += 1;
        }
    }

    fn leaves(&mut self, party: usize) {
        let Some(one) = self.parties.get_mut(&party).filter(|_| party != 0) else { return };
        one.waiting = one.waiting.saturating_sub(1);
        if one.waiting == 0 && one.last == 0 {
            self.parties.remove(&party);
        }
    }

    fn last(&self, party: usize) -> u64 {
        self.parties.get(&party).map_or(0, |one| one.last)
    }

    /// The last turn of those who come next. `plain`: somebody of party 0 waits.
    fn first(&self, plain: bool) -> Option<u64> {
        let waiting = self.parties.values().filter(|one| one.waiting > 0).map(|one| one.last);
        waiting.chain(plain.then(|| self.last(0))).min()
    }

    /// Who comes next; several who have had no turn.
    fn next(&self, plain: bool) -> Vec<usize> {
        let first = self.first(plain);
        let here = |(_, one): &(&usize, &Party)| one.waiting > 0 && Some(one.last) == first;
        let mut next: Vec<usize> =
            self.parties.iter().filter(here).map(|(party, _)| *party).collect();
        next.extend((plain && Some(self.last(0)) == first).then_some(0));
        next
    }

    /// It was its turn. Who had his before all who wait would be the next anyhow, and is forgotten.
    fn took(&mut self, party: usize, plain: bool) {
        self.count += 1;
        self.parties.entry(party).or_default().last = self.count;
        let first = self.first(plain);
        let matters = |last| first.is_some_and(|first| last >= first);
        self.parties.retain(|_, one| one.waiting > 0 || matters(one.last));
    }

    /// It was no turn.
    fn missed(&mut self, party: usize) {
        if let Some(one) = self.parties.get_mut(&party) {
            one.last = 0;
        }
    }
}

/// One worker's part of a pool. `S` names a server, `C` a client.
#[derive(Debug)]
pub struct Pool<S, C> {
    shared: Arc<Shared>,
    /// The last one is lent first: a few busy servers stay warm, the others grow old and close.
    idle: Vec<S>,
    waiting: VecDeque<Waiting<C>>,
    /// Of those who wait, the ones that are of some party.
    partisans: usize,
    turns: Turns,
    opening: u32,
    retry_at: Moment,
    failures: u32,
    /// A limit that pools share has kept it from opening another.
    short: bool,
}

impl<S: Copy + PartialEq, C: Copy + PartialEq> Pool<S, C> {
    pub fn new(shared: Arc<Shared>) -> Pool<S, C> {
        Pool {
            shared,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            partisans: 0,
            turns: Turns::default(),
            opening: 0,
            retry_at: Moment(0),
            failures: 0,
            short: false,
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

    /// The same, but the one that has been idle longest.
    pub fn take_in_turn(&mut self) -> Option<S> {
        if self.waiting.is_empty() {
            self.take_oldest()
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
    pub fn wait(&mut self, client: C, arrived: Moment, party: usize) {
        let place = self.waiting.partition_point(|one| one.since <= arrived);
        self.waiting.insert(place, Waiting { client, since: arrived, party });
        self.arrived(party);
    }

    /// Back to the head of the queue: its server died before anything was sent.
    pub fn wait_first(&mut self, client: C, since: Moment, party: usize) {
        self.waiting.push_front(Waiting { client, since, party });
        self.arrived(party);
        self.turns.missed(party);
    }

    fn arrived(&mut self, party: usize) {
        self.partisans += usize::from(party != 0);
        self.turns.arrives(party);
    }

    pub fn leave(&mut self, client: C) {
        if let Some(at) = self.waiting.iter().position(|one| one.client == client) {
            self.take_waiting(at);
        }
    }

    /// Who has waited longest, and since when; it waits no more. Of several parties it is the one
    /// whose last turn is longest ago, so that nobody stands behind another party's crowd.
    pub fn next_waiting(&mut self) -> Option<(C, Moment)> {
        let at = match self.takes_turns() {
            true => self.next_in_turn()?,
            false => 0,
        };
        self.serve_at(at)
    }

    /// The first `most` of those who wait, in the order of [`Pool::next_waiting`], and since when.
    pub fn line(&self, most: usize) -> Vec<(C, Moment)> {
        if !self.takes_turns() {
            return self.waiting.iter().take(most).map(|one| (one.client, one.since)).collect();
        }
        let mut parties: Vec<(u64, VecDeque<&Waiting<C>>)> = Vec::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for one in &self.waiting {
            let place = *places.entry(one.party).or_insert_with(|| {
                parties.push((self.turns.last(one.party), VecDeque::new()));
                parties.len() - 1
            });
            parties[place].1.push_back(one);
        }
        // Once round in order of their last turns, and so on.
        parties.sort_by_key(|(last, _)| *last);
        let mut line = Vec::new();
        while line.len() < most && !parties.is_empty() {
            let firsts = parties.iter_mut().filter_map(|(_, queue)| queue.pop_front());
            line.extend(firsts.map(|one| (one.client, one.since)));
            parties.retain(|(_, queue)| !queue.is_empty());
        }
        line.truncate(most);
        line
    }

    /// It is this one's turn; it waits no more. False: it did not wait.
    pub fn serve(&mut self, client: C) -> bool {
        let at = self.waiting.iter().position(|one| one.client == client);
        at.and_then(|at| self.serve_at(at)).is_some()
    }

    fn takes_turns(&self) -> bool {
        self.partisans > 0 || !self.turns.parties.is_empty()
    }

    /// Those who wait and are of no party are one, too.
    fn plain(&self) -> usize {
        self.waiting.len() - self.partisans
    }

    fn next_in_turn(&self) -> Option<usize> {
        // Of those who have had none it is who came first.
        let next: Vec<usize> = self.turns.next(self.plain() > 0);
        self.waiting.iter().position(|one| next.contains(&one.party))
    }

    fn serve_at(&mut self, at: usize) -> Option<(C, Moment)> {
        let counts = self.takes_turns();
        let next = self.take_waiting(at)?;
        if counts {
            let plain = self.plain() > 0;
            self.turns.took(next.party, plain);
        }
        Some((next.client, next.since))
    }

    fn take_waiting(&mut self, at: usize) -> Option<Waiting<C>> {
        let one = self.waiting.remove(at)?;
        self.partisans -= usize::from(one.party != 0);
        self.turns.leaves(one.party);
        Some(one)
    }

    pub fn oldest_waiting(&self) -> Option<(C, Moment)> {
        self.waiting.front().map(|one| (one.client, one.since))
    }

    /// Those who have waited since `since` or longer.
    pub fn waiting_since(&self, since: Moment) -> Vec<C> {
        let long = self.waiting.iter().take_while(|one| one.since <= since);
        long.map(|one| one.client).collect()
    }

    /// Time that does not count: those who wait have come so much later.
    pub fn postpone(&mut self, by: Duration) {
        self.waiting.iter_mut().for_each(|one| one.since = one.since.after(by));
    }

    /// Who has the place `number` in the queue, and since when.
    pub fn queued(&self, number: usize) -> Option<(C, Moment)> {
        self.waiting.get(number).map(|one| (one.client, one.since))
    }

    /// Whether one more connection is wanted, and may be tried now if there is room. `extra` is
    /// how many are wanted beside those for waiting clients.
    pub fn wants_one(&self, extra: u32, now: Moment) -> bool {
        let wanted = self.waiting.len() as u64 + u64::from(extra) > u64::from(self.opening);
        wanted && self.opening < OPENING_MAX && self.may_open(now)
    }

    /// Whether to open one more connection now; if so its place in the budget is taken. `extra`
    /// is as for [`Pool::wants_one`].
    pub fn open_one(&mut self, limits: &Limits, extra: u32, now: Moment) -> bool {
        self.short = false;
        if !self.wants_one(extra, now) {
            return false;
        }
        let (most, share) = (self.most(limits, now), self.shared.share());
        if !self.shared.servers.take(most.min(share)) {
            self.short = share < most;
            return false;
        }
        for (taken, ceiling) in limits.also.iter().enumerate() {
            if !ceiling.budget.take(ceiling.limit) {
                limits.also[..taken].iter().for_each(|ceiling| ceiling.budget.give_back());
                self.shared.servers.give_back();
                self.short = true;
                return false;
            }
        }
        self.opening += 1;
        true
    }

    /// Whether [`Pool::open_one`] has just said no for a limit that pools share.
    pub fn is_short(&self) -> bool {
        self.short
    }

    /// Not while the pause after a failure lasts.
    pub fn may_open(&self, now: Moment) -> bool {
        now >= self.retry_at
    }

    /// What it may have by itself: with the reserve while somebody has waited for long.
    pub fn most(&self, limits: &Limits, now: Moment) -> u32 {
        let patient = self
            .oldest_waiting()
            .is_some_and(|(_, began)| now.since(began) >= limits.reserve_after);
        if patient {
            limits.size.saturating_add(limits.reserve)
        } else {
            limits.size
        }
    }

    /// A connection that [`Pool::open_one`] allowed is there.
    pub fn opened(&mut self) {
        self.opening = self.opening.saturating_sub(1);
        self.failures = 0;
        self.retry_at = Moment(0);
    }

    /// It could not be had. The pause before the next try is `retry_after`; twice as long with each
    /// further failure, up to eight times, where the server is `crowded`.
    pub fn failed(&mut self, limits: &Limits, crowded: bool, now: Moment) {
        self.opening = self.opening.saturating_sub(1);
        let pause = if crowded { 1 << self.failures.min(PAUSE_DOUBLED_MAX) } else { 1 };
        self.failures = self.failures.saturating_add(1);
        self.retry_at = now.after(limits.retry_after.saturating_mul(pause));
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
        pool.wait(7, NOW, 0);
        pool.rest(1);
        assert_eq!(pool.take(), None, "client 7 came first");
        assert_eq!(pool.next_waiting(), Some((7, NOW)));
        assert_eq!(pool.take(), Some(1));
    }

    #[test]
    fn who_comes_late_to_the_queue_has_the_place_of_its_arrival() {
        let mut pool = pool();
        for (client, arrived) in [(1, 10), (2, 30), (3, 20), (4, 30), (5, 5)] {
            pool.wait(client, Moment(arrived), 0);
        }
        let order: Vec<u32> = std::iter::from_fn(|| pool.next_waiting()).map(|(c, _)| c).collect();
        assert_eq!(order, [5, 1, 3, 2, 4]);
    }

    #[test]
    fn nobody_stands_behind_another_partys_crowd() {
        let mut pool = pool();
        for (client, party) in [(1, 7), (2, 7), (3, 7), (4, 0), (5, 9), (6, 7), (7, 9)] {
            pool.wait(client, Moment(u64::from(client)), party);
        }
        pool.leave(3);
        assert_eq!(pool.oldest_waiting(), Some((1, Moment(1))));
        let order: Vec<u32> = std::iter::from_fn(|| pool.next_waiting()).map(|(c, _)| c).collect();
        assert_eq!(order, [1, 4, 5, 2, 7, 6], "in turns, and in order of arrival in each party");
        pool.wait_first(8, NOW, 9);
        assert_eq!(pool.next_waiting(), Some((8, NOW)), "nobody else waits");
    }

    #[test]
    fn who_comes_again_at_once_waits_for_a_turn_of_each_other_party() {
        let mut pool = pool();
        // Two crowds, and one who comes back as soon as he is served.
        for client in 0..20 {
            pool.wait(client, NOW, 1 + client as usize % 2);
        }
        pool.wait(100, NOW, 3);
        let mut parties = Vec::new();
        for _ in 0..12 {
            let (client, _) = pool.next_waiting().expect("somebody waits");
            parties.push(if client == 100 { 3 } else { 1 + client % 2 });
            if client == 100 {
                pool.wait(100, NOW, 3);
            }
        }
        assert_eq!(parties, [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn turns_are_forgotten_when_nobody_waits() {
        let mut pool = pool();
        pool.wait(1, NOW, 7);
        pool.wait(2, NOW, 0);
        while pool.next_waiting().is_some() {}
        assert!(!pool.takes_turns());
        pool.wait(3, NOW, 7);
        pool.leave(3);
        assert!(!pool.takes_turns());
    }

    proptest::proptest! {
        /// While a party waits no other has two turns, whoever comes and goes; in a party it goes
        /// by arrival. And the line is what comes of it.
        #[test]
        fn each_party_gets_its_turn(steps in proptest::collection::vec((0..4u8, 0..4usize), 1..200)) {
            let mut pool = pool();
            let mut arrived: Vec<(u32, usize)> = Vec::new();
            // Turns of others since a party began to wait, by both.
            let mut turns = [[0; 4]; 4];
            for (number, (step, party)) in steps.into_iter().enumerate() {
                let client = number as u32;
                match step {
                    0 | 1 => {
                        pool.wait(client, Moment(number as u64), party);
                        arrived.push((client, party));
                    }
                    2 => {
                        let line = pool.line(usize::MAX);
                        proptest::prop_assert_eq!(line.len(), arrived.len());
                        let next = pool.next_waiting();
                        proptest::prop_assert_eq!(next, line.first().copied());
                        let Some((served, _)) = next else { continue };
                        let at = arrived.iter().position(|(one, _)| *one == served);
                        let (_, party) = arrived[at.expect("it waited")];
                        let first = arrived.iter().find(|(_, of)| *of == party);
                        proptest::prop_assert_eq!(first.map(|(one, _)| *one), Some(served));
                        arrived.retain(|(one, _)| *one != served);
                        turns[party] = [0; 4];
                        for (other, turns) in turns.iter_mut().enumerate() {
                            if other != party && arrived.iter().any(|(_, of)| *of == other) {
                                turns[party] += 1;
                                proptest::prop_assert!(turns[party] <= 1);
                            }
                        }
                    }
                    _ => {
                        let Some(at) = arrived.iter().rposition(|(_, of)| *of == party) else {
                            continue;
                        };
                        pool.leave(arrived.remove(at).0);
                    }
                }
                for (party, turns) in turns.iter_mut().enumerate() {
                    if arrived.iter().all(|(_, of)| *of != party) {
                        *turns = [0; 4];
                    }
                }
            }
            let line: Vec<u32> =
                pool.line(usize::MAX).into_iter().map(|(client, _)| client).collect();
            let order: Vec<u32> =
                std::iter::from_fn(|| pool.next_waiting()).map(|(client, _)| client).collect();
            proptest::prop_assert_eq!(line, order);
        }
    }

    #[test]
    fn no_more_is_opened_than_clients_wait_and_the_size_allows() {
        let mut pool = pool();
        assert!(!pool.open_one(&limits(2, 0), 0, NOW), "nobody waits");
        for client in 0..5 {
            pool.wait(client, NOW, 0);
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
            pool.wait(0, NOW, 0);
        }
        assert!(pools[0].open_one(&limits(1, 0), 0, NOW));
        assert!(!pools[1].open_one(&limits(1, 0), 0, NOW));
        pools[0].failed(&limits(1, 0), false, NOW);
        assert!(pools[1].open_one(&limits(1, 0), 0, NOW));
    }

    #[test]
    fn a_full_database_gives_the_place_in_the_pool_back() {
        let database = Arc::new(Budget::default());
        let ceiling = Ceiling { scope: Scope::Database, budget: database.clone(), limit: 1 };
        let limits = Limits { also: vec![ceiling], ..limits(5, 0) };
        let mut pool = pool();
        pool.wait(0, NOW, 0);
        pool.wait(1, NOW, 0);
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
        pool.wait(0, NOW, 0);
        assert!(pool.open_one(&limits(1, 0), 0, NOW));
        pool.failed(&limits(1, 0), false, NOW);
        assert_eq!(pool.failures(), 1);
        assert!(!pool.open_one(&limits(1, 0), 0, NOW.after(Duration::from_millis(999))));
        assert!(pool.open_one(&limits(1, 0), 0, NOW.after(Duration::from_secs(1))));
    }

    #[test]
    fn where_the_server_has_no_room_the_pause_grows_to_eight_times() {
        let mut pool = pool();
        pool.wait(0, NOW, 0);
        let mut now = NOW;
        for pause in [1, 2, 4, 8, 8] {
            assert!(pool.open_one(&limits(1, 0), 0, now));
            pool.failed(&limits(1, 0), true, now);
            now = now.after(Duration::from_secs(pause));
            assert!(!pool.may_open(Moment(now.0 - 1)), "{pause} s");
        }
        assert!(pool.open_one(&limits(1, 0), 0, now));
        pool.opened();
        assert!(pool.may_open(now));
    }

    #[test]
    fn while_others_lack_some_it_opens_no_more_than_its_share() {
        let mut pool = pool();
        (0..5).for_each(|client| pool.wait(client, NOW, 0));
        pool.shared().limit(Some(Part { share: 1, owes: 0 }));
        assert!(pool.open_one(&limits(4, 0), 0, NOW));
        assert!(!pool.open_one(&limits(4, 0), 0, NOW) && pool.is_short());
        pool.shared().limit(None);
        (0..3).for_each(|_| assert!(pool.open_one(&limits(4, 0), 0, NOW)));
        assert!(!pool.open_one(&limits(4, 0), 0, NOW));
        assert!(!pool.is_short(), "that is its own size");
    }

    #[test]
    fn what_is_owed_is_given_up_once() {
        let shared = Shared::default();
        assert!(!shared.owes() && !shared.pay());
        shared.limit(Some(Part { share: 3, owes: 2 }));
        assert!(shared.pay() && shared.owes() && shared.pay());
        assert!(!shared.owes() && !shared.pay());
    }
}
