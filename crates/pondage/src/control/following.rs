//! Streams for the caches: which database is followed, and as whom.
//!
//! A worker asks when a client of a caching pool logs in, and behind each RELOAD. A RELOAD that
//! changes where, as whom or how a database is followed ends its stream at once: nothing is served.
//! The next one begins when no worker asks the old server any more for something to keep.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use backend::login::Credential;
use backend::moment::Moment;
use backend::replication::{Changes, Old, PublishedTable};
use cache::apply::Applier;
use cache::shared::Shared;
use tokio::sync::oneshot;
use wire::pg::pgoutput::{Relation, Tuple};

use super::messages::ToWorker;
use super::mirroring::Maker;
use super::Control;
use crate::config::{Config, PoolConfig, Upstream};
use crate::stream::{Options, Tap};
use crate::worker::snapshot::Detail;

/// The databases that are followed, or are about to be. Held for a change of the map, and while a
/// stream is begun.
#[derive(Default)]
pub struct Following(Mutex<HashMap<String, Followed>>);

struct Followed {
    asker: Asker,
    source: Source,
    /// None: it begins when the workers have let go of an earlier source.
    stream: Option<Stream>,
}

/// A stream, and the thread that makes mirrors beside it.
struct Stream {
    gate: Arc<Gate>,
    /// None: there is no memory for them.
    _maker: Option<Maker>,
}

/// The pool that asked for it first.
#[derive(Clone)]
struct Asker {
    user: String,
    /// What its user has proved itself with.
    proven: Option<Credential>,
}

/// Where, as whom and how. Another source is another stream.
#[derive(Clone, PartialEq)]
struct Source {
    upstream: Upstream,
    options: Options,
}

impl Following {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Followed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn source(all: &Config, database: &str) -> Option<(Arc<PoolConfig>, Source)> {
    let pool = all.stream_pool(database).filter(|_| all.caches(database))?;
    let options = Options {
        publication: all.cache.publication.clone(),
        slot_max_wal: all.cache.slot_max_wal,
        ..Options::default()
    };
    let upstream = pool.upstream.clone();
    Some((pool, Source { upstream, options }))
}

impl Control {
    /// Follows a database for its cache, unless it is followed already.
    pub(super) fn follow(&self, config: &PoolConfig, proven: Option<Credential>) {
        let mut following = self.following.lock();
        if following.contains_key(&config.database) {
            return;
        }
        // It may have been asked for before a RELOAD.
        let Some((pool, source)) = source(&self.config.load(), &config.database) else { return };
        let asker = Asker { user: config.upstream.user.clone(), proven };
        let stream = self.begin(pool, &asker, &source);
        let followed = Followed { asker, source, stream };
        following.insert(config.database.clone(), followed);
    }

    /// What the user of a database's own connections has proved itself with.
    pub(super) fn proven(&self, pool: &PoolConfig) -> Option<Credential> {
        let following = self.following.lock();
        let asker = &following.get(&pool.database)?.asker;
        asker.proven.clone().filter(|_| asker.user == pool.upstream.user)
    }

    fn begin(&self, pool: Arc<PoolConfig>, asker: &Asker, source: &Source) -> Option<Stream> {
        let streams = self.streams()?;
        let shared = self.caches.database(&pool.database);
        let applier = Applier::new(shared.clone());
        let gate = Arc::new(Gate { closed: Mutex::default(), shared: shared.clone() });
        let consumer = Timed { applier, gate: gate.clone(), began: self.began };
        // What another has proved does not count.
        let proven = asker.proven.clone().filter(|_| asker.user == pool.upstream.user);
        let tap = streams.follow(pool, proven, source.options.clone(), Box::new(consumer));
        let maker = self.maker(&shared, &tap);
        shared.tell_wants(Box::new(move |lsn| tap.want(lsn)));
        Some(Stream { gate, _maker: maker })
    }

    fn maker(&self, shared: &Arc<Shared>, tap: &Tap) -> Option<Maker> {
        if shared.mirrors.budget().limit() == 0 {
            return None;
        }
        let store = self.caches.store();
        let started = Maker::start(shared.clone(), store, tap.clone(), self.began);
        let failed = |error: &std::io::Error| {
            tracing::error!(event = "mirrors_failed", %error, "no mirror can be made");
        };
        started.inspect_err(failed).ok()
    }

    /// Ends the streams that a new configuration does not have, or has otherwise, before workers
    /// know of it. Those that are to begin again.
    pub(super) fn unfollow(&self, all: &Config) -> Vec<String> {
        let mut again = Vec::new();
        self.following.lock().retain(|database, followed| {
            let wanted = source(all, database).map(|(_, source)| source);
            if wanted.as_ref() == Some(&followed.source) {
                return true;
            }
            if let Some(stream) = followed.stream.take() {
                stream.gate.close("its options have changed");
            }
            if let Some(streams) = self.streams() {
                streams.stop(database);
            }
            let Some(wanted) = wanted else { return false };
            followed.source = wanted;
            again.push(database.clone());
            true
        });
        again
    }

    /// Begins them, when every worker knows the new configuration.
    pub(super) async fn follow_again(&self, databases: Vec<String>) {
        if databases.is_empty() {
            return;
        }
        for worker in &self.workers {
            let (reply, answer) = oneshot::channel();
            // They take messages in order.
            worker.send(ToWorker::Snapshot { detail: Detail::POOLS, reply });
            // One that has ended asks for nothing.
            let _ = answer.await;
        }
        let all = self.config.load();
        let mut following = self.following.lock();
        for database in databases {
            let Some(followed) = following.get_mut(&database) else { continue };
            if let Some((pool, source)) = source(&all, &database) {
                followed.stream = self.begin(pool, &followed.asker, &source);
                followed.source = source;
            }
        }
    }
}

/// What a stream has to pass to be served from.
struct Gate {
    /// No stream begins behind it any more. Held while one does.
    closed: Mutex<bool>,
    shared: Arc<Shared>,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, why: &str) {
        let mut closed = self.lock();
        *closed = true;
        self.shared.lose(why);
    }
}

/// The applier, and when it was last told something.
struct Timed {
    applier: Applier,
    gate: Arc<Gate>,
    began: Instant,
}

impl Timed {
    fn heard(&self) {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.gate.shared.heard(Moment(now));
    }
}

impl Changes for Timed {
    fn comes_from(&mut self, started: i64) {
        let closed = self.gate.lock();
        if !*closed {
            self.applier.comes_from(started);
        }
    }

    fn began(&mut self, lsn: u64, tables: &[PublishedTable]) {
        let closed = self.gate.lock();
        if !*closed {
            self.heard();
            self.applier.began(lsn, tables);
        }
    }

    fn published(&mut self, tables: &[PublishedTable]) {
        self.applier.published(tables);
    }

    fn redefined(&mut self) {
        self.applier.redefined();
    }

    fn lost(&mut self, why: &str) {
        self.applier.lost(why);
    }

    fn relation(&mut self, relation: &Relation) {
        self.applier.relation(relation);
    }

    fn begin(&mut self, xid: u32) {
        self.applier.begin(xid);
    }

    fn streaming(&mut self, xid: u32) {
        self.applier.streaming(xid);
    }

    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>) {
        self.applier.row(xid, relation, old, new);
    }

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>) {
        self.applier.truncate(xid, relations);
    }

    fn commit(&mut self, xid: u32, end: u64) {
        self.applier.commit(xid, end);
    }

    fn abort(&mut self, xid: u32, sub: u32) {
        self.applier.abort(xid, sub);
    }

    fn progress(&mut self, lsn: u64) {
        self.heard();
        self.applier.progress(lsn);
    }
}
