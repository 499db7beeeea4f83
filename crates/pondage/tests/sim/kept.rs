//! What belongs to the keeping of results: data, streams, the connections that ask how far a
//! database is, and the judgement of every answer.
//!
//! An answer must be that of one state of the data. Which states are allowed is what the cache
//! promises: none older than what its client has done or been shown, than what anybody had heard of
//! as done, or what others could see, when its statement came, or than `max_lag`. Of what others have
//! done counts what they have heard of: not what somebody else has done before, beside the gateway.

use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::SystemTime;

use cache::mirror::definition::Definition;
use pondage::caches::Caches;
use pondage::config::Definition as Named;
use pondage::control::caches::Registry;
use pondage::control::messages::{OpenError, PoolName, ToWorker};
use pondage::route::Verdict;
use pondage::worker::snapshot::Detail;
use rand::Rng;
use tokio::sync::oneshot;

use crate::client::{Arrival, Client};
use crate::data::cell::show;
use crate::data::copying::Copies;
use crate::data::read::Form;
use crate::data::stream::Stream;
use crate::data::{Change, Database, Handle};
use crate::ledger::News;
use crate::plan::{Caching, Fault, Plan};
use crate::postgres::{take_messages, Asked, Other, Postgres, Step};
use crate::world::{Checked, Mail, Post, World};

/// A connection that asks how far a database is.
struct Pulse {
    model: Postgres,
    input: Vec<u8>,
}

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) caching: Option<Caching>,
    data: BTreeMap<String, Handle>,
    streams: BTreeMap<String, Stream>,
    pulses: BTreeMap<(usize, u32), Pulse>,
    /// Somebody waits for what a stream has just told.
    woken: Arc<AtomicBool>,
    /// States that somebody has heard of as done, and when, and definitions, of each database.
    heard: HashMap<String, BTreeMap<u64, u64>>,
    defined: HashMap<String, usize>,
    pub(crate) tally: Counts,
}

/// How often what is to be proven has happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) judged: u64,
    /// Answers that showed an older state than the last.
    pub(crate) older: u64,
    pub(crate) late_commits: u64,
    pub(crate) losses: u64,
    pub(crate) broken_links: u64,
    /// Transactions that began without a server.
    pub(crate) late_begins: u64,
    /// Results that were no longer valid at the end.
    pub(crate) dropped: u64,
    pub(crate) copies: Copies,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, one: Counts) {
        self.judged += one.judged;
        self.older += one.older;
        self.late_commits += one.late_commits;
        self.losses += one.losses;
        self.broken_links += one.broken_links;
        self.late_begins += one.late_begins;
        self.dropped += one.dropped;
        self.copies += one.copies;
    }
}

/// Statements that somebody has named.
const NAMED: [&str; 4] = ["look t1 key 1", "look t2 key 1", "look both key 1", "look t1 group 1"];

pub(crate) fn caches(seed: u64, plan: &Plan) -> Caches {
    let Some(caching) = &plan.caching else { return Caches::default() };
    let named = Registry::default();
    for database in 0..plan.databases {
        for text in NAMED.iter().filter(|_| caching.names) {
            let mut scan = sql::Scan::new();
            assert!(scan.scan(text.as_bytes()), "it has a shape");
            let normal = sql::normal(scan.shape()).into();
            let definition = Named {
                name: None,
                database: None,
                freshness: None,
                max_lag: None,
                query: (*text).to_owned(),
                normal,
            };
            named.create(&format!("db{database}"), &definition).expect("a new cache");
        }
    }
    Caches::with_tags(64 << 20, caching.mirrors, named, caching.tags, seed)
}

impl Kept {
    pub(crate) fn new(seed: u64, plan: &Plan, caches: &Caches) -> Kept {
        let mut kept = Kept { caching: plan.caching.clone(), ..Kept::default() };
        let woken = kept.woken.clone();
        caches.serve(Box::new(move || woken.store(true, Ordering::SeqCst)));
        for number in 0..plan.databases {
            let Some(caching) = &plan.caching else { break };
            let database = Database::new(seed ^ number as u64, caching, plan.clients);
            kept.data.insert(format!("db{number}"), Handle::new(database.into()));
        }
        kept
    }

    pub(crate) fn data(&self, database: &str) -> Option<Handle> {
        self.data.get(database).cloned()
    }
}

impl World {
    /// Time passes for the data, the streams and the connections.
    pub(crate) fn live(&mut self) {
        let calm = self.calm;
        for (name, data) in &self.kept.data {
            let mut data = data.borrow_mut();
            data.live(self.now, calm);
            if let Some(stream) = self.kept.streams.get_mut(name) {
                stream.live(&mut data, &mut self.random, calm);
            }
        }
        self.wake();
        let breaks = self.kept.caching.as_ref().map_or(0.0, |caching| caching.breaks);
        for pulse in self.kept.pulses.values_mut() {
            if self.random.random_bool(self.plan.sluggish) {
                continue;
            }
            if !calm && self.random.random_bool(breaks) && !pulse.model.dead {
                self.kept.tally.broken_links += 1;
                pulse.model.die(self.random.random_bool(0.5));
            }
            pulse.model.read(take_messages(&mut pulse.input));
            for _ in 0..self.random.random_range(1..12) {
                if pulse.model.step() != Step::Did {
                    break;
                }
            }
        }
    }

    fn wake(&mut self) {
        if self.kept.woken.swap(false, Ordering::SeqCst) {
            for plane in 0..self.planes.len() {
                let due = self.now + self.random.random_range(0..300);
                self.post.push(Post { due, plane, mail: Mail::Tell(ToWorker::Applied) });
            }
        }
    }

    /// A database's stream is wanted.
    pub(crate) fn follow(&mut self, database: &str) {
        let Some(caching) = &self.kept.caching else { return };
        if !self.kept.streams.contains_key(database) {
            let shared = self.common.caches.database(database);
            let store = self.common.caches.store();
            self.kept.streams.insert(database.to_owned(), Stream::new(shared, caching, store));
        }
    }

    /// A connection for pulses is wanted.
    pub(crate) fn open_link(&mut self, plane: usize, link: u64, database: &str, due: u64) {
        let breaks = self.kept.caching.as_ref().map_or(0.0, |caching| caching.breaks);
        let refused = !self.calm && self.random.random_bool((breaks * 20.0).min(1.0));
        let database = (!refused).then(|| database.to_owned());
        self.post.push(Post { due, plane, mail: Mail::Linked { link, database } });
    }

    pub(crate) fn link_arrived(&mut self, plane: usize, link: u64, database: Option<String>) {
        let Some(database) = database else {
            let error = OpenError {
                code: "08001".to_owned(),
                message: "no way".to_owned(),
                theirs: "no way".to_owned(),
                detail: None,
                hint: None,
                permanent: false,
                at: SystemTime::UNIX_EPOCH,
            };
            return self.planes[plane].link_failed(link as u32, &error);
        };
        if self.planes[plane].link_opened(link as u32) {
            let mut model = Postgres::new(&[]);
            model.data = self.kept.data(&database);
            self.kept.pulses.insert((plane, link as u32), Pulse { model, input: Vec::new() });
        }
    }

    pub(crate) fn read_links(&mut self, number: usize) {
        let links = self.kept.pulses.keys().filter(|(plane, _)| *plane == number);
        for at in links.map(|(_, link)| *link).collect::<Vec<_>>() {
            let Some(pulse) = self.kept.pulses.get_mut(&(number, at)) else { continue };
            let all = pulse.model.out.len();
            let dead = pulse.model.dead;
            let take = self.part(all);
            if take > 0 {
                let Some(pulse) = self.kept.pulses.get_mut(&(number, at)) else { continue };
                let bytes: Vec<u8> = pulse.model.out.drain(..take).collect();
                self.planes[number].link_bytes(at, &bytes);
            } else if dead {
                self.kept.pulses.remove(&(number, at));
                self.planes[number].link_closed(at, "end");
            }
        }
    }

    pub(crate) fn write_links(&mut self, number: usize) {
        for at in std::mem::take(&mut self.planes[number].written_links) {
            let length = self.planes[number].link_out(at).map_or(0, |out| out.len());
            let take = self.part(length);
            let Some(out) = self.planes[number].link_out(at) else { continue };
            let bytes: Vec<u8> = out.drain(..take).collect();
            if let Some(pulse) = self.kept.pulses.get_mut(&(number, at)) {
                pulse.input.extend(bytes);
            }
            if take == length {
                self.planes[number].link_flushed(at);
            } else {
                self.planes[number].written_links.push(at);
            }
        }
    }

    pub(crate) fn close_link(&mut self, plane: usize, link: u32) {
        self.kept.pulses.remove(&(plane, link));
    }

    /// Looks who has begun a transaction of which no server knows.
    pub(crate) fn count_late(&mut self, number: usize) {
        for client in self.clients.iter_mut().filter(|client| client.plane == number) {
            let known = client.slot.and_then(|slot| self.planes[number].clients.get(slot));
            let late = known.is_some_and(|known| known.begun.is_some());
            let before = std::mem::replace(&mut client.late, late);
            self.kept.tally.late_begins += u64::from(late && !before);
        }
    }

    /// Bytes of a client's have come to the gateway.
    pub(crate) fn arrived(&mut self, client: usize, bytes: usize) {
        let client = &mut self.clients[client];
        let state = self.kept.data.get(&client.database).map_or(0, |data| data.borrow().state);
        let defined = self.kept.defined.get(&client.database).copied().unwrap_or(0);
        client.arrive(bytes, Arrival { time: self.now, state, defined });
    }

    /// A client has heard something.
    pub(crate) fn judge_news(&mut self, at: usize, news: &News) -> Checked {
        self.ledger.check(news)?;
        let client = &mut self.clients[at];
        let Some(data) = self.kept.data.get(&client.database) else { return Ok(()) };
        let database = data.borrow();
        match news {
            News::Wrote(_) => Ok(()),
            News::Committed(name) => {
                let Some(state) = database.shown(name) else {
                    let word = name.split_whitespace().next().unwrap_or("");
                    return match word {
                        "put" | "del" | "alter" => Err(format!("nobody sees \"{name}\"")),
                        _ => Ok(()),
                    };
                };
                client.floor = client.floor.max(state);
                let heard = self.kept.heard.entry(client.database.clone()).or_default();
                heard.entry(state).or_insert(self.now);
                let defined = database.definitions_at(state);
                client.defined = client.defined.max(defined);
                let all = self.kept.defined.entry(client.database.clone()).or_default();
                *all = (*all).max(defined);
                Ok(())
            }
            News::Read(asked, text) => {
                drop(database);
                self.judge_answer(at, asked, text)
            }
        }
    }

    fn judge_answer(&mut self, at: usize, asked: &Asked, text: &str) -> Checked {
        let client = &mut self.clients[at];
        self.kept.tally.judged += 1;
        let is_other = *text == show(&[asked.read.other()]);
        match asked.other {
            Other::Yes | Other::Maybe if is_other => return Ok(()),
            Other::Yes => return Err(format!("{text} was found, where names mean other tables")),
            Other::Maybe | Other::No => {}
        }
        let (Some(data), Some(caching)) =
            (self.kept.data.get(&client.database), &self.kept.caching)
        else {
            return Ok(());
        };
        let Some(arrival) = client.arrivals.get(asked.message as usize).copied() else {
            return Err("an answer came before its question".to_owned());
        };
        let database = data.borrow();
        let found = match asked.read.form {
            Form::Text => judge_definitions(client, asked, text, arrival, &database)?,
            Form::Rows | Form::Sums => text,
        };
        let lag = database.state_at(arrival.time.saturating_sub(caching.max_lag_ms * 1_000));
        let from = match caching.freshness {
            "bounded" => lag,
            "strict" => client.floor.max(arrival.state),
            _ => {
                let heard = self.kept.heard.get(&client.database);
                heard_of(heard, asked, arrival, client.floor.max(lag), &database)
            }
        };
        let mut states = database.changes_of(&asked.read, from);
        states.insert(from);
        let right = |state: &u64| database.at(&asked.read, *state, &asked.own) == found;
        let Some(state) = states.into_iter().find(right) else {
            let mut all = database.changes_of(&asked.read, 0);
            all.insert(0);
            let known: Vec<u64> = all.into_iter().filter(right).collect();
            return Err(format!(
                "{text}\nis the answer to {:?} of {known:?}; {from} (client {}, arrival {arrival:?}, lag \
                 {lag}) was known, now it is {}",
                asked.read, client.floor, database.state
            ));
        };
        self.kept.tally.older += u64::from(state < arrival.state);
        client.floor = client.floor.max(state);
        Ok(())
    }

    /// A statement is judged: how its results are kept. With the count of definitions before that.
    pub(crate) fn plan_of(
        &mut self,
        pool: &PoolName,
        text: &[u8],
        verdict: Option<&Verdict>,
    ) -> (Option<Arc<cache::plan::Plan>>, u64) {
        let caches = &self.common.caches;
        if self.kept.caching.is_none() {
            return (None, 0);
        }
        let definitions = caches.database(&pool.database).definitions();
        let follows = |verdict: &&Verdict| {
            verdict.cache.as_ref().is_ok_and(|all| caches.follows(&pool.database, all))
        };
        let verdict = verdict.filter(follows);
        (verdict.and_then(|known| caches.plan(pool, text, known, definitions)), definitions)
    }

    pub(crate) fn has_fault(&self, fault: Fault) -> bool {
        self.kept.caching.as_ref().is_some_and(|caching| caching.fault == Some(fault))
    }

    /// What the catalogues say of tables, where there may be mirrors of them.
    pub(crate) fn catalogue(&self, database: &str) -> Vec<Definition> {
        let mirrors = self.kept.caching.as_ref().is_some_and(|caching| caching.mirrors > 0);
        let data = self.kept.data.get(database).filter(|_| mirrors);
        data.map(|data| data.borrow().catalogue()).unwrap_or_default()
    }

    /// Reads that mirrors have answered.
    pub(crate) fn mirrored(&mut self) -> u64 {
        let of_each = self.planes.iter_mut().flat_map(|plane| {
            let (reply, mut snapshot) = oneshot::channel();
            plane.control(ToWorker::Snapshot { detail: Detail::POOLS, reply });
            snapshot.try_recv().expect("a snapshot").pools
        });
        of_each.map(|pool| pool.totals.cached.mirrored).sum()
    }

    /// What has come to pass so far.
    pub(crate) fn counts(&self) -> Counts {
        let shared: Vec<_> = self.kept.streams.values().map(Stream::shared).collect();
        let mut dropped = 0;
        self.common.caches.store().each(|entry| {
            let held = shared.iter().any(|shared| entry.is_valid(&shared.tags));
            dropped += u64::from(!held);
        });
        let late = self.kept.data.values().map(|data| data.borrow().late_commits);
        let losses = self.kept.streams.values().map(|stream| stream.losses);
        let mut copies = Copies::default();
        let makers = self.kept.streams.values().filter_map(|stream| stream.maker.as_ref());
        makers.for_each(|maker| copies += maker.copies);
        let (late_commits, losses) = (late.sum(), losses.sum());
        Counts { late_commits, losses, dropped, copies, ..self.kept.tally }
    }
}

/// Looks at the definitions that an answer knows; what it has found comes back.
fn judge_definitions<'a>(
    client: &mut Client,
    asked: &Asked,
    text: &'a str,
    arrival: Arrival,
    database: &Database,
) -> Result<&'a str, String> {
    let parts = text.strip_prefix(&asked.shows).and_then(|rest| rest.split_once('|'));
    let Some((defined, found)) = parts else {
        return Err(format!("{text} does not begin with {}", asked.shows));
    };
    let own = asked.own.iter().filter(|change| **change == Change::Define).count();
    let defined: usize = defined.strip_prefix('d').and_then(|n| n.parse().ok()).unwrap_or(0);
    let least = client.defined.max(arrival.defined) + own;
    if defined < least || defined > database.definitions_at(database.state) + own {
        return Err(format!("{text}: definitions {least} were known"));
    }
    client.defined = client.defined.max(defined - own);
    Ok(found)
}

/// The newest state that somebody had heard of when the statement came, and that is another one to
/// it, if that is newer than `from`.
fn heard_of(
    heard: Option<&BTreeMap<u64, u64>>,
    asked: &Asked,
    arrival: Arrival,
    from: u64,
    database: &Database,
) -> u64 {
    let newer = heard.into_iter().flat_map(|heard| heard.range(from + 1..).rev());
    let mut known = newer.filter(|(_, time)| **time <= arrival.time).map(|(state, _)| *state);
    let at = |state| database.at(&asked.read, state, &asked.own);
    known.find(|state| at(*state) != at(state - 1)).unwrap_or(from)
}
