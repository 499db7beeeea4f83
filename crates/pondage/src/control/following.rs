//! Streams for the caches: which database is followed, and as whom.

use std::sync::Arc;
use std::time::Instant;

use backend::login::Credential;
use backend::moment::Moment;
use backend::replication::{Changes, Old, PublishedTable};
use cache::apply::Applier;
use cache::shared::Shared;
use wire::pg::pgoutput::{Relation, Tuple};

use super::Control;
use crate::config::PoolConfig;
use crate::stream::Options;

impl Control {
    /// Follows a database for its cache, unless it is followed already.
    pub(super) fn follow(&self, config: Arc<PoolConfig>, proven: Option<Credential>) {
        let all = self.config.load();
        let Some(streams) = self.streams() else { return };
        if streams.standing().iter().any(|standing| standing.database == config.database) {
            return;
        }
        let options = Options {
            user: all.cache.user.clone(),
            password: all.cache.password.clone(),
            publication: all.cache.publication.clone(),
            slot_max_wal: all.cache.slot_max_wal,
            ..Options::default()
        };
        let shared = self.caches.database(&config.database);
        let applier = Applier::new(shared.clone());
        let consumer = Timed { applier, shared: shared.clone(), began: self.began };
        let tap = streams.follow(config, proven, options, Box::new(consumer));
        shared.tell_wants(Box::new(move |lsn| tap.want(lsn)));
    }
}

/// The applier, and when it was last told something.
struct Timed {
    applier: Applier,
    shared: Arc<Shared>,
    began: Instant,
}

impl Timed {
    fn heard(&self) {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.heard(Moment(now));
    }
}

impl Changes for Timed {
    fn began(&mut self, lsn: u64, tables: &[PublishedTable]) {
        self.heard();
        self.applier.began(lsn, tables);
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
