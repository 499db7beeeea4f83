//! Reads that are answered from what is kept, and those whose answers are to be kept.
//!
//! A read comes here before anything else is done with it. It is *served* if its result is kept, is
//! valid, and is at least as new as anything its client has seen; else it goes to PostgreSQL like
//! every other statement, mostly with a [`Fill`] that copies its answer. A result that only may be
//! too old for this client makes it wait for a moment; see `pulses.rs`.

use std::sync::Arc;
use std::time::Duration;

use backend::moment::Moment;
use backend::settings::Settings;
use backend::statement::Statement;
use cache::entry::Entry;
use cache::fill::Fill;
use cache::lease::Awaited;
use cache::mirror::output::Session;
use cache::plan::Plan;
use cache::position::Seen;
use cache::request::Asked;
use cache::store::{Found, Store};
use smallvec::SmallVec;
use sql::Leaves;
use wire::pg::backend::{self as reply, TxStatus};
use wire::pg::frontend::{BindTail, Parse};

use super::auditing;
use super::beginning::Portal;
use super::company::is_sound;
use super::mirroring::{Looked, Wanted};
use super::requests::Taken;
use super::standpoint::{Promise, Tier};
use super::{Plane, PoolState};
use crate::config::{CacheMode, Coalesce};
use crate::control::messages::PoolName;
use crate::route::{Share, Way, Why};
use crate::session::client::{Hold, NONE};
use crate::session::explain::Last;
use crate::worker::worth::Patience;

/// Different settings of one pool that are remembered.
const GROUNDS_MAX: usize = 64;

/// A statement that takes so long is better waited for than asked again.
const SLOW: Duration = Duration::from_millis(1);

/// The part of the time that a statement takes in PostgreSQL for which it waits for the stream, if
/// that is longer than `cache.wait`; and how long at the most.
const WAIT_PART: u32 = 8;
const WAIT_MAX: Duration = Duration::from_millis(100);

/// So many times what a statement takes it waits for another's answer, and at the most so long.
const LEASE_TIMES: u32 = 2;
const LEASE_MAX: Duration = Duration::from_secs(10);

/// What a client has to do with what is kept. Only clients of pools with a cache have one.
#[derive(Debug, Default)]
pub struct Reads {
    /// How far it has seen at the most.
    pub seen: Seen,
    /// The request that is looked at has waited since.
    pub awaits: Option<Awaits>,
    /// Its session is not what its settings say: it has a temporary table, or has set what is not
    /// reported.
    pub strange: bool,
    /// It has made it so on the server that it has now.
    pub left: bool,
    /// What is kept was too old for the read that PostgreSQL is asked for.
    pub gave_up: bool,
    /// Its unnamed portal, if its server does not know that.
    pub portal: Option<Box<Portal>>,
}

/// A request that waits until what is kept is known to be new enough, or is there.
#[derive(Debug, Clone)]
pub struct Awaits {
    pub until: Moment,
    pub since: Moment,
    pub need: Need,
    /// What had been asked for when the request arrived.
    pub arrived: Seen,
    /// The statement takes so long that any wait is worth it.
    slow: bool,
}

#[derive(Debug, Clone)]
pub enum Need {
    /// The stream has to have come so far.
    Stream(Seen),
    /// The mirrors have to have come so far.
    Mirrors(Seen),
    /// Somebody else asks for the same.
    Answer(Awaited),
}

/// What a pool has to do with what is kept.
#[derive(Debug)]
pub struct PoolCache {
    /// Its database's place in [`Plane::caches`].
    pub at: usize,
    /// Of some shape, since definitions last changed, results may be kept.
    pub plans: bool,
    grounds: Vec<(Arc<Settings>, Ground)>,
}

/// What of a session's settings matters to answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground {
    /// Names and texts mean what they mean to the pool's other sessions.
    pub sound: bool,
    utf8: bool,
    encoding: u64,
    formatting: u64,
    /// How values are printed.
    session: Session,
}

/// Names of UTF-8, as PostgreSQL reports it and as clients spell it.
const UTF8: [&str; 3] = ["UTF8", "UTF-8", "unicode"];

pub(super) fn is_utf8(settings: &Settings) -> bool {
    let encoding = settings.get("client_encoding");
    encoding.is_some_and(|encoding| UTF8.iter().any(|utf8| encoding.eq_ignore_ascii_case(utf8)))
}

/// Settings on which the text of a value may depend.
///
/// Source: PostgreSQL docs, "Client Connection Defaults", Locale and Formatting.
const FORMATTING: [&str; 9] = [
    "bytea_output",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "timezone",
    "xmlbinary",
];

/// A read as it came.
pub(super) struct Ask<'a> {
    pub text: &'a [u8],
    /// In the extended protocol.
    pub bound: Option<Bound<'a>>,
    /// Bytes of all its messages.
    pub bytes: usize,
}

pub(super) struct Bound<'a> {
    /// None: the unnamed one, of `parse`.
    pub statement: Option<&'a Arc<Statement>>,
    pub values: &'a [u8],
    pub tail: BindTail<'a>,
    /// The declared types of the parameters, as in a Parse.
    pub types: &'a [u8],
    pub parse: Option<Parse<'a>>,
    pub describe: bool,
}

/// What became of a look at what is kept.
enum Look {
    Serve(Arc<Entry>),
    /// By mirrors; the answer is in [`Plane::running`].
    Mirrored,
    Wait {
        need: Need,
        usual: Duration,
    },
    /// To PostgreSQL, and what it answers is to be kept.
    Fill(Box<Fill>),
    /// To PostgreSQL, since what is kept can't be shown to be new enough in time.
    Old,
    /// To PostgreSQL.
    Pass,
}

impl Awaits {
    fn goes_on(&self, now: Moment) -> bool {
        now < self.until
    }
}

impl PoolCache {
    pub fn new(at: usize) -> PoolCache {
        PoolCache { at, plans: false, grounds: Vec::new() }
    }

    pub(super) fn ground(
        &mut self,
        settings: &Arc<Settings>,
        defaults: &Settings,
        store: &Store,
    ) -> Ground {
        let known = self.grounds.iter().find(|(known, _)| Arc::ptr_eq(known, settings));
        if let Some((_, ground)) = known {
            return *ground;
        }
        let mut formatting = Vec::new();
        let mut encoding = Vec::new();
        for (name, value) in settings.iter() {
            let name = name.to_ascii_lowercase();
            let into = match &*name {
                "client_encoding" => &mut encoding,
                name if FORMATTING.contains(&name) => &mut formatting,
                _ => continue,
            };
            into.extend_from_slice(name.as_bytes());
            into.push(b'=');
            into.extend_from_slice(value.to_ascii_lowercase().as_bytes());
            into.push(0);
        }
        let ground = Ground {
            sound: is_sound(settings, defaults, false),
            utf8: is_utf8(settings),
            encoding: store.hash(&encoding),
            formatting: store.hash(&formatting),
            session: Session::of(&|name| {
                let known = settings.get(name).or_else(|| defaults.get(name));
                known.map(str::to_owned)
            }),
        };
        if self.grounds.len() >= GROUNDS_MAX {
            self.grounds.clear();
        }
        self.grounds.push((settings.clone(), ground));
        ground
    }
}

impl Plane {
    /// Answers a read of this shape from what is kept, or lets it wait for a moment. None: it goes
    /// to PostgreSQL.
    pub(super) fn read_kept(&mut self, slot: u32, shape: u32, ask: &Ask<'_>) -> Option<Taken> {
        match self.look(slot, shape, ask) {
            Look::Serve(entry) => {
                let description = entry.description().unwrap_or_default();
                let waited = self.answer_kept(slot, shape, ask, description, entry.rows());
                self.trace_kept(slot, Tier::Stream, waited);
                self.has_seen(slot, &entry);
                Some(Taken::Bytes(ask.bytes))
            }
            Look::Mirrored => {
                let running = std::mem::take(&mut self.running);
                let (description, rows) = (&running.description, &running.rows);
                let waited = self.answer_kept(slot, shape, ask, description, rows);
                self.trace_kept(slot, Tier::Mirrors, waited);
                self.running = running;
                let pool = &mut self.pools[self.clients[slot].pool as usize];
                pool.totals.cached.mirrored += 1;
                if let Some(shape) = pool.shapes.get_mut(shape) {
                    shape.mirrored += 1;
                }
                Some(Taken::Bytes(ask.bytes))
            }
            Look::Wait { need, usual } => {
                self.await_kept(slot, need, usual);
                Some(Taken::Held)
            }
            Look::Fill(fill) => {
                self.clients[slot].fill = Some(fill);
                None
            }
            Look::Old => {
                if let Some(reads) = &mut self.clients[slot].reads {
                    reads.gave_up = true;
                }
                None
            }
            Look::Pass => None,
        }
    }

    fn look(&mut self, slot: u32, id: u32, ask: &Ask<'_>) -> Look {
        let client = &self.clients[slot];
        let PoolState { cache, config, shapes, welcome, totals, epoch, .. } =
            &mut self.pools[client.pool as usize];
        let Some(pool) = cache else { return Look::Pass };
        // Who still has a server from before a reload is answered by that.
        if self.servers.get(client.server).is_some_and(|server| server.epoch != *epoch) {
            return Look::Pass;
        }
        let Some(shape) = shapes.get_mut(id).filter(|shape| shape.kept.is_some()) else {
            return Look::Pass;
        };
        // Who came before there was a cache may have seen and set whatever.
        let Some(reads) = client.reads.as_deref() else { return Look::Pass };
        let database = &mut self.caches[pool.at];
        let totals = &mut totals.cached;
        let named = shape.named(&database.names).cloned();
        let wanted = match config.cache {
            CacheMode::Off => false,
            CacheMode::Manual => named.is_some(),
            CacheMode::Advise | CacheMode::Auto => {
                let mirrored = shape.kept.as_ref().and_then(|plan| plan.mirrored());
                named.is_some()
                    || mirrored.is_some_and(|mirrored| mirrored.wish().is_some())
                    || shape.worth.is_tried()
            }
        };
        if !wanted || reads.strange {
            return Look::Pass;
        }
        if !database.serves() {
            totals.unserved += 1;
            return Look::Pass;
        }
        let (Some(defaults), Some(plan)) = (welcome, &shape.kept) else { return Look::Pass };
        let store = &database.store;
        let ground = pool.ground(&client.settings, defaults, store);
        if ask.bound.is_some() && plan.has_literals() && !self.scan.scan(ask.text) {
            return Look::Pass;
        }
        let asked = Asked {
            text: ask.text,
            literals: self.scan.literals(),
            utf8: ground.utf8,
            bind: ask.bound.as_ref().map(|bound| (bound.tail, bound.types)),
        };
        let request = &mut self.request;
        if !ground.sound || !request.read(plan, &asked, ground.encoding, ground.formatting) {
            return Look::Pass;
        }
        let own = named.as_ref().map(|named| (named.freshness, named.max_lag));
        let (freshness, max_lag) = own.unwrap_or_default();
        let promise = Promise {
            freshness: freshness.unwrap_or(config.cache_freshness),
            max_lag: max_lag.unwrap_or(config.cache_max_lag),
        };
        // Who has waited for another's answer may wait for this as well.
        let may = !self.config.cache.wait.is_zero();
        let usual = shape.history.usual();
        let waits = |patience: &mut Patience| match &reads.awaits {
            None => may && (usual >= SLOW || patience.waits()),
            Some(waits) => may && waits.goes_on(self.now),
        };
        if plan.mirrored().is_some() && config.cache != CacheMode::Advise {
            let session = &ground.session;
            let hits = shape.hits;
            let wanted = Wanted { plan, request, ask, session, promise, reads, shape: id, hits };
            match database.look_mirrored(&wanted, &mut self.running, self.now) {
                Looked::Answered => return Look::Mirrored,
                Looked::Audited(fill) => {
                    shape.hits += 1;
                    return Look::Fill(fill);
                }
                Looked::Behind(seen) => {
                    if waits(&mut database.patience) {
                        return Look::Wait { need: Need::Mirrors(seen), usual };
                    }
                    totals.too_old += 1;
                    return Look::Old;
                }
                Looked::Not => {}
            }
        }
        let store = &database.store;
        let hash = store.hash(request.key());
        let full = store.is_full();
        let describes = ask.bound.as_ref().is_none_or(|bound| bound.describe);
        match store.get(hash, request.key()) {
            Found::Entry(entry)
                if entry.is_valid(&database.shared.tags)
                    && (!describes || entry.description().is_some()) =>
            {
                if config.cache == CacheMode::Advise {
                    totals.advised += 1;
                    shape.advised += 1;
                    shape.worth.looked(true, full);
                    return Look::Pass;
                }
                match database.is_new_enough(&entry, promise, reads, self.now) {
                    // It was valid before it was known how far the stream is: what was applied in
                    // between counts.
                    Ok(()) if !entry.is_valid(&database.shared.tags) => {}
                    Ok(()) if shape.hits % auditing::ONE_OF == 0 => {
                        shape.hits += 1;
                        let version = entry.version();
                        let tags = SmallVec::from_slice(entry.tags());
                        let key = request.key();
                        let mut fill = Fill::new(plan.clone(), hash, id, key, version, tags);
                        fill.audits = Some(entry);
                        return Look::Fill(Box::new(fill));
                    }
                    Ok(()) => return Look::Serve(entry),
                    Err(need) => {
                        if waits(&mut database.patience) {
                            return Look::Wait { need: Need::Stream(need), usual };
                        }
                        totals.too_old += 1;
                        return Look::Old;
                    }
                }
            }
            Found::Busy => return Look::Pass,
            Found::Entry(_) | Found::Nothing => {}
        }
        totals.misses += 1;
        shape.misses += 1;
        if let Some(mirrored) = plan.mirrored() {
            let hits = shape.hits.saturating_sub(shape.mirrored);
            if database.wants_mirrors(mirrored, hits, shape.misses) {
                mirrored.want(&database.shared.mirrors, self.now);
            }
        }
        if !plan.is_watched() {
            return Look::Pass;
        }
        // What nobody has asked for may never be asked for again.
        let known = self.common.caches.doorkeeper.knows(hash);
        // Who has been here before is a hit the next time, unless what is kept does not stay.
        shape.worth.looked(known && !full, full);
        if named.is_none() && !known {
            return Look::Pass;
        }
        // What is applied is read before the tags: what comes in between is not in the entry.
        let version = database.shared.applied().number;
        let mut tags = SmallVec::new();
        plan.recipe().tags(request, &database.shared.tags, &mut tags);
        if database.shared.tags.newest(&tags) > database.shared.settled() {
            database.settle(self.now);
            totals.unsettled += 1;
            return Look::Pass;
        }
        match database.leases.take(hash) {
            Ok(lease) => {
                let key = request.key();
                let mut fill = Fill::new(plan.clone(), hash, id, key, version, tags);
                fill.lease = Some(lease);
                Look::Fill(Box::new(fill))
            }
            Err(awaited) => {
                totals.leased += 1;
                let waits = match &reads.awaits {
                    None => usual >= SLOW,
                    Some(waits) => waits.goes_on(self.now),
                };
                match waits {
                    true => Look::Wait { need: Need::Answer(awaited), usual },
                    false => Look::Pass,
                }
            }
        }
    }

    /// A mirror may not have come so far: it shows a commit when a snapshot has, and this was kept
    /// when PostgreSQL had shown it.
    fn has_seen(&mut self, slot: u32, entry: &Entry) {
        let client = &mut self.clients[slot];
        let cache = self.pools[client.pool as usize].cache.as_ref();
        let database = cache.and_then(|cache| self.caches.get(cache.at));
        if let (Some(reads), Some(database), Some(lsn)) = (&mut client.reads, database, entry.lsn())
        {
            reads.seen = database.pulses.later(reads.seen, lsn);
        }
    }

    /// Says how long it has waited.
    fn answer_kept(
        &mut self,
        slot: u32,
        id: u32,
        ask: &Ask<'_>,
        description: &[u8],
        rows: &[u8],
    ) -> Duration {
        let status = self.clients[slot].status();
        self.tell(slot, |out| {
            match &ask.bound {
                None => out.extend_from_slice(description),
                Some(bound) => {
                    if bound.parse.is_some() {
                        reply::put_parse_complete(out);
                    }
                    reply::put_bind_complete(out);
                    if bound.describe {
                        out.extend_from_slice(description);
                    }
                }
            }
            out.extend_from_slice(rows);
            reply::put_ready(out, status);
        });
        let now = self.now;
        let client = &mut self.clients[slot];
        client.asking = NONE;
        let (mut since, mut slow) = (now, false);
        if let Some(reads) = &mut client.reads {
            if let Some(waits) = reads.awaits.take() {
                since = waits.since;
                slow = waits.slow;
            }
        }
        let took = now.since(since);
        let cache = self.pools[client.pool as usize].cache.as_ref().map(|cache| cache.at);
        let mut full = false;
        if let Some(database) = cache.and_then(|at| self.caches.get_mut(at)) {
            full = database.store.is_full();
            if let Some(reads) = &mut client.reads {
                // Pulses are forgotten, and it would have seen more than it has.
                reads.seen = database.pulses.resolve(reads.seen).map_or(reads.seen, Seen::Lsn);
            }
            database.patience.hit();
            if since < now && !slow {
                database.patience.waited(took);
            }
        }
        client.last = Some(Last {
            shape: Some(id),
            way: Way::Kept,
            why: Why::Free,
            company: 0,
            prepared: false,
            took_us: u32::try_from(took.as_micros()).unwrap_or(u32::MAX),
        });
        client.active = now;
        let pool = &mut self.pools[client.pool as usize];
        pool.totals.cached.hits += 1;
        pool.totals.query_count += 1;
        if status == TxStatus::Idle {
            pool.totals.xact_count += 1;
        }
        if let Some(shape) = pool.shapes.get_mut(id) {
            (shape.way, shape.why) = (Way::Kept, Why::Free);
            shape.calls += 1;
            shape.hits += 1;
            shape.worth.looked(true, full);
            shape.time.record(took.as_micros() as u64);
        }
        match &ask.bound {
            None => {
                if let Some(names) = &mut client.names {
                    names.forget_unnamed();
                }
                self.forget_portal(slot);
            }
            Some(bound) => {
                pool.totals.bind_count += 1;
                if let Some(parse) = &bound.parse {
                    self.unnamed_parsed(slot, parse, None);
                }
                if self.clients[slot].begun.is_some() {
                    self.keep_portal(slot, bound.statement, bound.values);
                }
            }
        }
        took
    }

    /// Whether a read in a transaction of which no server knows may be sent outside of it: it has
    /// its own snapshot there as well, and does nothing but read.
    pub(super) fn reads_outside(&self, slot: u32, shape: u32) -> bool {
        let client = &self.clients[slot];
        let pool = &self.pools[client.pool as usize];
        let plain = client.reads.as_ref().is_some_and(|reads| !reads.strange);
        client.begun.is_some()
            && plain
            && pool.config.coalesce != Coalesce::Off
            && pool.shapes.get(shape).is_some_and(|shape| shape.kept.is_some())
    }

    /// A text goes to PostgreSQL that may make this session unlike the pool's others.
    pub(super) fn note_session(&mut self, slot: u32, text: &[u8]) {
        let Some(reads) = &mut self.clients[slot].reads else { return };
        match sql::leaves(text) {
            Leaves::Nothing => {}
            Leaves::Something => (reads.strange, reads.left) = (true, true),
            Leaves::Clean => reads.strange = false,
        }
    }

    /// It is known how results of this shape may be kept. None: not at all.
    pub(super) fn plan_made(
        &mut self,
        name: &PoolName,
        id: u32,
        plan: Option<Arc<Plan>>,
        definitions: u64,
    ) {
        let Some(&at) = self.pool_by_name.get(name) else { return };
        let pool = &mut self.pools[at as usize];
        let Some(cache) = &mut pool.cache else { return };
        // What has changed meanwhile it does not know.
        let current = self.caches[cache.at].shared.definitions() == definitions;
        if let Some(shape) = pool.shapes.get_mut(id) {
            // Where statements of a transaction share a snapshot by default, none is kept.
            let own = shape.verdict.as_ref().is_some_and(|verdict| verdict.share == Share::Batch);
            shape.kept = plan.filter(|_| current && own && !shape.distrusted);
            cache.plans |= shape.kept.is_some();
            if !current {
                shape.ask_again();
            }
            shape.tell_verdict(&self.caches[cache.at].names);
        }
    }

    /// Tells procedures and those who have named statements how these fare, for whoever is about to
    /// look.
    pub(super) fn tell_counted(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.shapes.tell());
    }

    /// Forgets all plans of databases whose definitions or rights have changed.
    pub(super) fn check_definitions(&mut self) {
        for cache in 0..self.caches.len() {
            if !self.caches[cache].redefined() {
                continue;
            }
            for pool in &mut self.pools {
                if let Some(of_it) = pool.cache.as_mut().filter(|of_it| of_it.at == cache) {
                    of_it.plans = false;
                    pool.shapes.redefined();
                }
            }
        }
    }

    /// The request is looked at again when there is what it needs, or has not been for too long.
    fn await_kept(&mut self, slot: u32, need: Need, usual: Duration) {
        let now = self.now;
        let client = &mut self.clients[slot];
        let Some(pool) = self.pools.get_mut(client.pool as usize) else { return };
        let Some(cache) = &pool.cache else { return };
        let database = &mut self.caches[cache.at];
        let Some(reads) = &mut client.reads else { return };
        if reads.awaits.is_none() {
            pool.totals.cached.waits += 1;
            if let Some(shape) = pool.shapes.get_mut(client.asking) {
                shape.waits += 1;
            }
            client.asked = now;
        }
        database.wait(slot, &need, now);
        let patience = self.config.cache.wait.max((usual / WAIT_PART).min(WAIT_MAX));
        match &mut reads.awaits {
            Some(waits) => {
                // It has waited for another's answer; how new that is, it asks only now.
                if matches!(waits.need, Need::Answer(_)) && !matches!(need, Need::Answer(_)) {
                    waits.until = now.after(patience);
                }
                waits.need = need;
            }
            None => {
                let until = match need {
                    Need::Stream(_) | Need::Mirrors(_) => patience,
                    Need::Answer(_) => (usual * LEASE_TIMES).min(LEASE_MAX),
                };
                reads.awaits = Some(Awaits {
                    until: now.after(until),
                    since: now,
                    need,
                    arrived: database.pulses.now(),
                    slow: usual >= SLOW,
                });
            }
        }
        client.hold = Hold::Stream;
    }

    /// A client has heard of a commit, and so may look for what it has done.
    pub(super) fn read_notified(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let cache = self.pools.get(client.pool as usize).and_then(|pool| pool.cache.as_ref());
        if let (Some(cache), Some(reads)) = (cache, &mut client.reads) {
            reads.seen = self.caches[cache.at].pulses.now();
        }
    }

    /// PostgreSQL has answered a client: it has seen what was committed by now, and what it got may
    /// be worth keeping.
    pub(super) fn read_answered(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let fill = client.fill.take();
        let Some(cache) = self.pools.get(client.pool as usize).and_then(|pool| pool.cache.as_ref())
        else {
            return;
        };
        let database = &mut self.caches[cache.at];
        let seen = database.pulses.now();
        let Some(reads) = &mut client.reads else { return };
        let waits = reads.awaits.take();
        reads.seen = seen;
        if std::mem::take(&mut reads.gave_up) {
            // The next one need not, if it comes a little later.
            database.settle(self.now);
        }
        if let Some(waits) = waits.filter(|waits| !waits.slow) {
            database.patience.waited(waits.until.since(waits.since));
        }
        if fill.is_some() {
            database.patience.went(self.now.since(client.asked));
        }
        let Some(fill) = fill else { return };
        let pool = &mut self.pools[client.pool as usize];
        let (mut kept, mut same) = (None, false);
        if let Some(shape) = pool.shapes.get_mut(fill.shape) {
            shape.fills += 1;
            kept = shape.named(&database.names).map(|named| named.counters.kept.clone());
            same = shape.kept.as_ref().is_some_and(|plan| Arc::ptr_eq(plan, &fill.plan));
        }
        let Some(mut entry) = fill.entry() else { return };
        if fill.audits.is_some() {
            // Under other definitions than those of what is kept the answer says nothing.
            if same {
                database.compare(client.pool, &fill, Arc::new(entry));
            }
            return;
        }
        // What has changed meanwhile is of use to nobody.
        if !entry.is_valid(&database.shared.tags) {
            return;
        }
        if let Some(kept) = kept {
            entry.count_in(kept);
        }
        let entry = Arc::new(entry);
        if database.store.put(fill.hash, entry.clone()) {
            pool.totals.cached.fills += 1;
            database.keep(seen, entry, self.now);
        }
    }
}
