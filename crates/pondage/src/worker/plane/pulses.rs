//! What a worker has of one database's cache: the connection that asks how far PostgreSQL is, and
//! who waits for the answer, or for the stream to come so far.
//!
//! A pulse is sent at the end of a turn for all that wanted one in it: readers that wait at once,
//! answers that are to be kept, and commits that are not known to be visible, at most once in
//! [`PACE`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backend::calls::{Calls, Heard};
use backend::login::Credential;
use backend::moment::Moment;
use cache::entry::Entry;
use cache::fill::Fill;
use cache::lease::Leases;
use cache::position::{Pulses, Seen};
use cache::shared::{Shared, Snapshot};
use cache::store::Store;
use cache::tags::Tag;

use super::auditing::{Audits, Verdict};
use super::caching::{Need, PoolCache, Reads};
use super::standpoint::{Promise, Standpoint, Tier};
use super::{Effect, Plane, PoolState};
use crate::config::{CacheMode, Freshness, PoolConfig};
use crate::control::caches::Named;
use crate::control::messages::{OpenError, OpenKind, ToControl};
use crate::session::client::Hold;
use crate::worker::worth::Patience;

/// How often pulses are sent for those who are in no hurry.
const PACE: Duration = Duration::from_millis(1);

/// How often while something is written and nobody has looked for an answer in memory for that
/// long. The next who does, and finds commits that are not known to be visible, asks at [`PACE`].
const UNREAD_PACE: Duration = Duration::from_millis(20);

/// Pulses in flight on one connection.
const IN_FLIGHT_MAX: usize = 4;

/// After a failure the next try to connect waits so long.
const RETRY: Duration = Duration::from_secs(1);

/// Answers that are kept and wait for a pulse; beyond it the oldest are never served.
const KEPT_MAX: usize = 1 << 16;

/// A pulse that is not answered for so long: its connection is dead.
const SILENCE: Duration = Duration::from_secs(10);

const OTHER_SERVER: &str = "the stream of changes comes from another server";

const PREPARE: u64 = 1;
const PULSE: u64 = 2;
const STATEMENT: &str = "pondage_pulse";

/// One row: the snapshot's text, the end of the log, and when the server was started. On a standby
/// nothing is asked for, since nothing can be followed there.
const QUERY: &str = "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text, \
                     pg_catalog.pg_current_wal_insert_lsn(), \
                     pg_catalog.pg_postmaster_start_time()";

/// See the module's documentation.
pub struct DatabaseCache {
    pub shared: Arc<Shared>,
    pub store: Arc<Store>,
    pub pulses: Pulses,
    /// What is known of the stream, and of the mirrors, which come behind it.
    stream: Standpoint,
    mirrors: Standpoint,
    database: String,
    /// Of [`Shared::definitions`], as last looked at.
    definitions: u64,
    /// As whom the connection logs in.
    config: Arc<PoolConfig>,
    proven: Option<Credential>,
    link: Link,
    /// Whether waiting is worth it.
    pub patience: Patience,
    /// Who asks for what is to be kept.
    pub leases: Leases,
    /// Statements that somebody has named.
    pub names: Arc<Named>,
    /// Clients that wait.
    waiting: Vec<u32>,
    /// Entries of which it is not known yet what they may have seen, oldest first.
    kept: VecDeque<(Seen, Arc<Entry>)>,
    audits: Audits,
    /// When a pulse is to be sent.
    due: Option<Moment>,
    last_sent: Moment,
    /// When somebody last looked for an answer in memory.
    last_look: Moment,
    /// When those in flight were sent, and how many streams had begun by then.
    sent: VecDeque<(Moment, u64)>,
}

/// The connection.
struct Link {
    state: State,
    calls: Calls,
    /// Bytes that are being written.
    out: Vec<u8>,
    queued_out: bool,
}

enum State {
    Closed {
        until: Moment,
    },
    /// `outdated`: to a server that is not the database's any more.
    Opening {
        outdated: bool,
    },
    Open,
}

impl Link {
    fn closed(until: Moment) -> Link {
        let (calls, out) = (Calls::new(), Vec::new());
        Link { state: State::Closed { until }, calls, out, queued_out: false }
    }
}

impl DatabaseCache {
    pub fn new(
        shared: Arc<Shared>,
        store: Arc<Store>,
        names: Arc<Named>,
        config: Arc<PoolConfig>,
        proven: Option<Credential>,
    ) -> DatabaseCache {
        DatabaseCache {
            shared,
            store,
            pulses: Pulses::default(),
            stream: Standpoint::default(),
            mirrors: Standpoint::default(),
            database: config.database.clone(),
            definitions: 0,
            config,
            proven,
            link: Link::closed(Moment(0)),
            patience: Patience::default(),
            leases: Leases::default(),
            names,
            waiting: Vec::new(),
            kept: VecDeque::new(),
            audits: Audits::default(),
            due: None,
            last_sent: Moment(0),
            last_look: Moment(0),
            sent: VecDeque::new(),
        }
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    /// Definitions or rights have changed since this was last asked.
    pub fn redefined(&mut self) -> bool {
        let now = self.shared.definitions();
        std::mem::replace(&mut self.definitions, now) != now
    }

    /// The stream is there.
    pub fn serves(&self) -> bool {
        self.shared.is_following()
    }

    /// Whether an entry may be given to who has seen so much.
    ///
    /// # Errors
    /// What has to be told, and applied, first.
    pub fn is_new_enough(
        &mut self,
        entry: &Entry,
        promise: Promise,
        reads: &Reads,
        now: Moment,
    ) -> Result<(), Seen> {
        let applied = self.shared.applied().lsn;
        self.is_recent(Tier::Stream, applied, promise, now)?;
        let Some(of_entry) = entry.lsn() else { return Err(self.pulses.now()) };
        if of_entry > applied {
            return Err(Seen::Lsn(of_entry));
        }
        self.has_come(Tier::Stream, applied, entry.tags(), promise, reads)
    }

    /// The same for what the mirrors say of rows with these tags.
    ///
    /// # Errors
    /// What has to be told, and shown, first.
    pub fn mirrors_are_new_enough(
        &mut self,
        tags: &[Tag],
        promise: Promise,
        reads: &Reads,
        now: Moment,
    ) -> Result<(), Seen> {
        let shown = self.shared.mirrors.shown();
        if shown < self.shared.applied().lsn {
            self.settle(now);
        }
        self.is_recent(Tier::Mirrors, shown, promise, now)?;
        self.has_come(Tier::Mirrors, shown, tags, promise, reads)
    }

    /// How far that which answers has come, and by when everything had been committed that is in
    /// it for sure.
    pub fn standing(&self, tier: Tier) -> (u64, Option<Moment>) {
        match tier {
            Tier::Stream => (self.shared.applied().lsn, self.stream.verified()),
            Tier::Mirrors => (self.shared.mirrors.shown(), self.mirrors.verified()),
        }
    }

    /// Whatever the mode: what is served is never older than `max_lag`.
    fn is_recent(
        &mut self,
        tier: Tier,
        position: u64,
        promise: Promise,
        now: Moment,
    ) -> Result<(), Seen> {
        self.last_look = now;
        if now.since(self.last_sent) > promise.max_lag / 2 {
            self.want(now);
        }
        let standpoint = match tier {
            Tier::Stream => &mut self.stream,
            Tier::Mirrors => &mut self.mirrors,
        };
        match standpoint.is_recent(position, promise.max_lag, now) {
            true => Ok(()),
            false => Err(self.pulses.now()),
        }
    }

    fn has_come(
        &mut self,
        tier: Tier,
        position: u64,
        tags: &[Tag],
        promise: Promise,
        reads: &Reads,
    ) -> Result<(), Seen> {
        let seen = match promise.freshness {
            Freshness::Bounded => return Ok(()),
            Freshness::Session => {
                // What anybody was told by now, and what this client has seen itself.
                let standpoint = match tier {
                    Tier::Stream => &mut self.stream,
                    Tier::Mirrors => &mut self.mirrors,
                };
                standpoint.acked.are_applied(&self.shared.acks, tags, &self.pulses, position)?;
                reads.seen
            }
            Freshness::Strict => match &reads.awaits {
                Some(waits) => waits.arrived,
                None => return Err(self.pulses.now()),
            },
        };
        match self.pulses.resolve(seen) {
            Some(lsn) if lsn <= position => Ok(()),
            Some(lsn) => Err(Seen::Lsn(lsn)),
            None => Err(seen),
        }
    }

    /// Commits that wait to be shown by mirrors are asked for, even if nobody reads.
    pub fn settle_mirrors(&mut self, now: Moment) {
        if self.serves() && self.shared.mirrors.shown() < self.shared.applied().lsn {
            self.settle(now);
        }
    }

    /// There is memory for mirrors.
    pub fn mirrors_can_be(&self) -> bool {
        self.shared.mirrors.budget().limit() > 0
    }

    /// A client waits for what it needs.
    pub fn wait(&mut self, slot: u32, need: &Need, now: Moment) {
        self.waiting.push(slot);
        let (Need::Stream(seen) | Need::Mirrors(seen)) = *need else { return };
        if !self.pulses.is_asked(seen) {
            self.want(now);
        }
        if let Some(lsn) = self.pulses.resolve(seen) {
            self.wait_for(need, lsn, now);
        }
    }

    /// Somebody waits for this position.
    fn wait_for(&mut self, need: &Need, lsn: u64, now: Moment) {
        let applied = self.shared.want(lsn);
        let shown = self.shared.mirrors.shown() >= lsn;
        // It is told, and not known to be visible: the next snapshot may say so.
        if matches!(need, Need::Mirrors(_)) && applied && !shown && self.pulses.in_flight() == 0 {
            self.want(now);
        }
    }

    fn is_come(&self, need: &Need, applied: u64) -> bool {
        let is_before = |seen, lsn| self.pulses.resolve(seen).is_some_and(|seen| seen <= lsn);
        match need {
            Need::Stream(seen) => is_before(*seen, applied),
            Need::Mirrors(seen) => is_before(*seen, self.shared.mirrors.shown()),
            Need::Answer(awaited) => awaited.is_over(),
        }
    }

    /// This entry is in the store; what it may have seen is to be found out.
    pub fn keep(&mut self, seen: Seen, entry: Arc<Entry>, now: Moment) {
        if self.kept.len() >= KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((seen, entry));
        if !self.pulses.is_asked(seen) {
            self.want(now.max(self.last_sent.after(PACE)));
        }
    }

    /// What was kept is compared with this answer when the stream has come so far.
    pub fn compare(&mut self, pool: u32, fill: &Fill, answer: Arc<Entry>) {
        // Those of the plan by which it was kept: with others there is another plan.
        self.audits.add(self.pulses.now(), self.definitions, pool, fill, answer);
        self.want(self.last_sent.after(PACE));
    }

    pub fn decide_audit(&mut self) -> Option<Verdict> {
        self.audits.decide(&self.pulses, &self.shared)
    }

    /// Something that is applied is not known to be visible, or a client has seen what is not
    /// known to be applied.
    pub fn settle(&mut self, now: Moment) {
        self.want(now.max(self.last_sent.after(PACE)));
    }

    fn want(&mut self, at: Moment) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// A pulse is answered by the server that was started then. False: the stream does not come
    /// from it, and so that says nothing of it. After a fail-over not all connections end at the
    /// same time.
    fn answered(&mut self, snapshot: &[u8], lsn: u64, started: i64) -> bool {
        if self.serves() && !self.shared.is_of(started) {
            return false;
        }
        let applied = self.shared.applied().lsn;
        let position = self.pulses.answer(snapshot, lsn, applied);
        let Some((asked, begun)) = self.sent.pop_front() else { return true };
        if let Some(snapshot) = Snapshot::parse(snapshot) {
            self.shared.settle(snapshot, begun);
        }
        if let Some(lsn) = position {
            self.stream.will_reach(asked, lsn);
            self.mirrors.will_reach(asked, lsn);
        }
        self.stream.verify(applied);
        while let Some((seen, _)) = self.kept.front() {
            let Some(lsn) = self.pulses.resolve(*seen) else { break };
            if let Some((_, entry)) = self.kept.pop_front() {
                entry.covered_by(lsn);
            }
        }
        let waits = !(self.kept.is_empty() && self.audits.is_empty() && self.waiting.is_empty());
        if waits || self.shared.unsettled_count() > 0 {
            let is_read = self.last_sent.since(self.last_look) < UNREAD_PACE;
            let pace = if waits || is_read { PACE } else { UNREAD_PACE };
            self.want(self.last_sent.after(pace));
        }
        true
    }

    /// When a pulse is to be sent; none while none can be, which changes when something is read.
    fn due(&self) -> Option<Moment> {
        let open = matches!(self.link.state, State::Open);
        self.due.filter(|_| open && self.pulses.in_flight() < IN_FLIGHT_MAX)
    }

    /// Sends a pulse if one is due.
    fn turn(&mut self, now: Moment) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        let called = self.link.calls.call(PULSE, STATEMENT, |_| {});
        if called.and_then(|()| self.link.calls.sync()).is_err() {
            return false;
        }
        self.pulses.send();
        self.sent.push_back((now, self.shared.starts()));
        (self.due, self.last_sent) = (None, now);
        true
    }

    fn is_dead(&self, now: Moment) -> bool {
        self.sent.front().is_some_and(|(sent, _)| now.since(*sent) > SILENCE)
    }

    fn lost(&mut self, now: Moment) {
        self.link = Link::closed(now.after(RETRY));
        self.pulses.lost();
        self.stream.forget();
        self.mirrors.forget();
        self.sent.clear();
        // They are in the store, and are never served.
        self.kept.clear();
        self.audits.clear();
    }
}

impl Plane {
    /// A client comes in: what others were told before it came, it may know.
    pub(super) fn reads_begin(&mut self, slot: u32, at: u32) {
        let pool = &self.pools[at as usize];
        if pool.cache.is_none() {
            let (config, proven) = (pool.config.clone(), pool.proven.clone());
            self.pools[at as usize].cache = self.cache_of(&config, proven.as_ref());
        }
        if let Some(cache) = &self.pools[at as usize].cache {
            let seen = self.caches[cache.at].pulses.now();
            self.clients[slot].reads = Some(Box::new(Reads { seen, ..Reads::default() }));
        }
    }

    /// The place of a database in `caches`, made if it is new.
    fn cache_of(
        &mut self,
        config: &Arc<PoolConfig>,
        proven: Option<&Credential>,
    ) -> Option<PoolCache> {
        if config.cache == CacheMode::Off {
            return None;
        }
        let known = self.caches.iter().position(|cache| cache.database() == config.database);
        let at = known.unwrap_or_else(|| {
            let caches = &self.common.caches;
            let shared = caches.database(&config.database);
            self.caches.push(DatabaseCache::new(
                shared,
                caches.store(),
                caches.named.of(&config.database),
                config.clone(),
                proven.cloned(),
            ));
            self.effects.push(Effect::Control(ToControl::Follow {
                config: config.clone(),
                proven: proven.cloned(),
            }));
            self.caches.len() - 1
        });
        Some(PoolCache::new(at))
    }

    /// A reload: what is served from another server, or as another user, is asked there; streams
    /// that were not followed for a while may be again.
    pub(super) fn renew_caches(&mut self) {
        for at in 0..self.caches.len() {
            let of_it = |pool: &&PoolState| pool.cache.as_ref().is_some_and(|of| of.at == at);
            let mut pools = self.pools.iter().filter(of_it).filter(|pool| !pool.retired);
            let pool = pools.clone().find(|pool| pool.config.cache != CacheMode::Off);
            let now = pool.or_else(|| pools.next());
            let database = &mut self.caches[at];
            if now.is_none_or(|pool| pool.config.upstream != database.config.upstream) {
                match &mut database.link.state {
                    State::Opening { outdated } => *outdated = true,
                    State::Open => self.effects.push(Effect::CloseLink(at as u32)),
                    State::Closed { .. } => {}
                }
                if !matches!(database.link.state, State::Opening { .. }) {
                    database.lost(self.now);
                    database.link = Link::closed(self.now);
                }
            }
            if let Some(pool) = now {
                (database.config, database.proven) = (pool.config.clone(), pool.proven.clone());
            }
            if let Some(pool) = pool {
                let (config, proven) = (pool.config.clone(), pool.proven.clone());
                self.effects.push(Effect::Control(ToControl::Follow { config, proven }));
            }
        }
    }

    /// Lets those go on who wait for the stream no longer.
    pub(super) fn wake_readers(&mut self) {
        for at in 0..self.caches.len() {
            if self.caches[at].waiting.is_empty() {
                continue;
            }
            let applied = self.caches[at].shared.applied().lsn;
            let mut waiting = std::mem::take(&mut self.caches[at].waiting);
            let (mut told, mut shown) = (None, None);
            waiting.retain(|slot| {
                let client = self.clients.get(*slot);
                let Some(client) = client.filter(|client| client.hold == Hold::Stream) else {
                    return false;
                };
                let Some(waits) = client.reads.as_ref().and_then(|reads| reads.awaits.as_ref())
                else {
                    return false;
                };
                let database = &self.caches[at];
                if database.is_come(&waits.need, applied) || self.now >= waits.until {
                    self.clients[*slot].hold = Hold::No;
                    self.resume_later(*slot);
                    return false;
                }
                if let Need::Stream(seen) | Need::Mirrors(seen) = waits.need {
                    let lsn = database.pulses.resolve(seen);
                    let need = lsn.map(|lsn| (lsn, waits.need.clone()));
                    let first = match waits.need {
                        Need::Mirrors(_) => &mut shown,
                        _ => &mut told,
                    };
                    if first.as_ref().is_none_or(|(first, _)| lsn.is_some_and(|lsn| lsn < *first)) {
                        *first = need.or(first.take());
                    }
                }
                true
            });
            for (lsn, need) in told.into_iter().chain(shown) {
                self.caches[at].wait_for(&need, lsn, self.now);
            }
            self.caches[at].waiting = waiting;
        }
    }

    /// Sends the pulses that are due, and opens connections for them.
    pub(super) fn send_pulses(&mut self) {
        for at in 0..self.caches.len() {
            let database = &mut self.caches[at];
            if database.is_dead(self.now) {
                self.link_closed(at as u32, "it does not answer");
                continue;
            }
            match database.link.state {
                State::Closed { until } if database.due.is_some() && until <= self.now => {
                    database.link.state = State::Opening { outdated: false };
                    self.effects.push(Effect::Control(ToControl::Open {
                        worker: self.worker,
                        ticket: at as u64,
                        config: database.config.clone(),
                        proven: database.proven.clone(),
                        kind: OpenKind::Pulse,
                    }));
                }
                _ => {
                    if database.turn(self.now) {
                        self.queue_link(at);
                    }
                }
            }
        }
    }

    /// When a pulse is due, or a reader has waited long enough.
    pub(super) fn pulses_due(&self) -> Option<Moment> {
        let due = |database: &DatabaseCache| {
            let waits = |slot: &u32| {
                let reads = self.clients.get(*slot)?.reads.as_ref()?;
                Some(reads.awaits.as_ref()?.until)
            };
            let until = database.waiting.iter().filter_map(waits).min();
            until.into_iter().chain(database.due()).min()
        };
        self.caches.iter().filter_map(due).min()
    }

    fn queue_link(&mut self, at: usize) {
        let link = &mut self.caches[at].link;
        link.out.append(&mut link.calls.out);
        if !link.out.is_empty() && !std::mem::replace(&mut link.queued_out, true) {
            self.written_links.push(at as u32);
        }
    }

    /// A connection that was asked for is there; its socket is read from now on.
    pub fn link_opened(&mut self, at: u32) -> bool {
        let Some(database) = self.caches.get_mut(at as usize) else { return false };
        if matches!(database.link.state, State::Opening { outdated: true }) {
            database.lost(self.now);
            return false;
        }
        let mut link = Link { state: State::Open, ..Link::closed(Moment(0)) };
        let prepared = link.calls.prepare(PREPARE, STATEMENT, QUERY, &[]);
        if prepared.and_then(|()| link.calls.sync()).is_err() {
            return false;
        }
        database.link = link;
        self.queue_link(at as usize);
        true
    }

    pub fn link_failed(&mut self, at: u32, error: &OpenError) {
        let now = self.now;
        let Some(database) = self.caches.get_mut(at as usize) else { return };
        tracing::warn!(event = "cache_connect_failed", db = %database.database,
            sqlstate = %error.code, "{}", error.message);
        database.lost(now);
    }

    pub fn link_bytes(&mut self, at: u32, bytes: &[u8]) {
        let Some(database) = self.caches.get_mut(at as usize) else { return };
        let mut calls = std::mem::take(&mut database.link.calls);
        let mut failed = None;
        let received = calls.receive(bytes, &mut |heard| match heard {
            Heard::Row { tag: PULSE, mut columns } => {
                match (columns.bytea(), columns.int8(), columns.int8()) {
                    (Ok(snapshot), Ok(Some(lsn)), Ok(Some(started))) => {
                        if !database.answered(snapshot, lsn as u64, started) {
                            failed = Some(OTHER_SERVER.to_owned());
                        }
                    }
                    _ => failed = Some("a pulse has no position".to_owned()),
                }
            }
            Heard::Failed { error, .. } => failed = Some(error.message.to_owned()),
            _ => {}
        });
        database.link.calls = calls;
        let why = received.err().map(|broken| broken.to_string()).or(failed);
        match why {
            Some(why) => self.link_closed(at, &why),
            None => self.queue_link(at as usize),
        }
    }

    pub fn link_closed(&mut self, at: u32, why: &str) {
        let now = self.now;
        let Some(database) = self.caches.get_mut(at as usize) else { return };
        if !matches!(database.link.state, State::Open) {
            return;
        }
        tracing::warn!(event = "cache_connection_lost", db = %database.database, "{why}");
        database.lost(now);
        self.effects.push(Effect::CloseLink(at));
    }

    pub fn link_out(&mut self, at: u32) -> Option<&mut Vec<u8>> {
        self.caches.get_mut(at as usize).map(|database| &mut database.link.out)
    }

    pub fn link_flushed(&mut self, at: u32) {
        if let Some(database) = self.caches.get_mut(at as usize) {
            database.link.out.clear();
            database.link.queued_out = false;
        }
    }
}

#[cfg(test)]
#[path = "pulses_tests.rs"]
mod tests;
