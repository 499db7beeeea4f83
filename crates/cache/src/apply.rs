//! From the replication stream to tags.
//!
//! ```text
//! row, truncate, relation --> tags of the (sub)transaction, collected
//! abort                   --> its tags are forgotten
//! commit                  --> the next number; all its tags raised; then number and position told
//! ```
//!
//! Which tags a row has: *any* of its table; for each registered signature of the table the tag of
//! the values before and after, or *wild* (see [`row`]). TRUNCATE and another description of the
//! table: its *epoch*, on which every answer that reads the table depends. What changes a partition
//! or a child changes the tables above it as well.
//!
//! Large transactions are told while they run and come mixed, so tags are collected for each
//! subtransaction. A (sub)transaction with very many tags is remembered by its tables alone: their
//! epochs are raised.

mod open;
mod row;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backend::replication::{Changes, Old, PublishedTable};
use foldhash::fast::RandomState;
use smallvec::SmallVec;
use wire::pg::pgoutput::{Relation, Tuple};

use crate::mirror::feed::Feed;
use crate::shared::Shared;
use crate::tags::Tags;
use crate::watch::List;
use open::{Open, Touched};
pub use open::{SUBTRANSACTIONS_MAX, TAGS_OF_ALL_MAX, TAGS_OF_ONE_MAX};
use row::{Before, Bound, Fields};

/// Implements [`Changes`]; one for each database that is followed.
#[derive(Debug)]
pub struct Applier {
    shared: Arc<Shared>,
    published: Published,
    tables: HashMap<u32, Table, RandomState>,
    list: Arc<List>,
    open: Open,
    /// What mirrors are told.
    feed: Feed,
    lsn: u64,
}

type Published = HashMap<u32, PublishedTable>;

/// A table as the stream has described it.
#[derive(Debug)]
struct Table {
    relation: Relation,
    /// The table itself, and those that it is a part of.
    oids: SmallVec<[u32; 4]>,
    /// Their signatures.
    bound: Vec<Bound>,
}

impl Table {
    fn new(relation: Relation, published: &Published, list: &List) -> Table {
        let oids = with_ancestors(relation.oid, published);
        let mut table = Table { relation, oids, bound: Vec::new() };
        table.bind(list);
        table
    }

    fn bind(&mut self, list: &List) {
        let watched = self.oids.iter().flat_map(|oid| list.of(*oid));
        let bound = watched.map(|watched| Bound::new(watched.signature.clone(), &self.relation));
        self.bound = bound.collect();
    }

    fn touch(&self, old: &Old<'_>, new: Option<Tuple<'_>>, tags: &Tags, touched: &mut Touched) {
        for oid in &self.oids {
            touched.table(*oid);
            touched.insert(tags.any(*oid));
        }
        if touched.is_coarse() || self.bound.is_empty() {
            return;
        }
        let before = Before::of(old, &self.relation);
        let new: Option<Fields<'_>> = new.map(|tuple| tuple.fields().collect());
        for bound in &self.bound {
            bound.touch(&before, new.as_deref(), tags, touched);
        }
    }
}

/// A table and those above it. One that is not published is a partition that has just come into
/// being: it may belong to any that has partitions or children.
fn with_ancestors(relation: u32, published: &Published) -> SmallVec<[u32; 4]> {
    let mut oids = SmallVec::from_elem(relation, 1);
    if let Some(known) = published.get(&relation) {
        oids.extend_from_slice(&known.ancestors);
        return oids;
    }
    for table in published.values() {
        if table.partitioned || !table.ancestors.is_empty() {
            oids.push(table.oid);
            oids.extend_from_slice(&table.ancestors);
        }
    }
    oids
}

fn touch_epochs(oids: &[u32], tags: &Tags, touched: &mut Touched) {
    for oid in oids {
        touched.table(*oid);
        touched.insert(tags.epoch(*oid));
    }
}

impl Applier {
    pub fn new(shared: Arc<Shared>) -> Applier {
        let list = shared.watch.list().clone();
        shared.watch.saw(list.generation);
        Applier {
            shared,
            published: Published::new(),
            tables: HashMap::default(),
            list,
            open: Open::default(),
            feed: Feed::default(),
            lsn: 0,
        }
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Looks whether signatures have come or gone. Every call of [`Changes`] that begins or ends
    /// something does it as well; to be called when one was registered and nothing comes.
    pub fn look(&mut self) {
        let follows = self.shared.mirrors.follows();
        if follows.generation != self.feed.generation() {
            self.feed.follow(&follows);
            let number = self.shared.applied().number;
            let untold = |table| self.open.touched(table);
            self.shared.mirrors.are_followed(&follows, number, &untold);
        }
        drop(follows);
        if self.shared.watch.list().generation == self.list.generation {
            return;
        }
        let list = self.shared.watch.list().clone();
        let tags = &self.shared.tags;
        let applied = self.shared.applied().number;
        // What is applied or collected already lacks the tags of new signatures.
        for signature in list.since(self.list.generation) {
            let wild = tags.wild(signature);
            tags.bump(wild, applied);
            self.open.touch_with(&[signature.table], |touched| touched.insert(wild));
        }
        self.tables.values_mut().for_each(|table| table.bind(&list));
        self.shared.watch.saw(list.generation);
        self.list = list;
    }

    /// A commit of nobody's, which everybody sees already.
    fn touch_now(&mut self, touch: impl FnOnce(&Tags, u64)) {
        let number = self.shared.next_number();
        touch(&self.shared.tags, number);
        self.shared.applied_commit(number, None);
    }

    fn touch_epochs(&mut self, xid: u32, relation: u32) {
        let oids = with_ancestors(relation, &self.published);
        let tags = &self.shared.tags;
        let told = self.open.touch(xid, |touched| touch_epochs(&oids, tags, touched));
        if told.is_err() {
            self.stray();
        }
    }

    fn stray(&mut self) {
        self.lost("a change came outside of a transaction");
    }
}

fn by_oid(tables: &[PublishedTable]) -> Published {
    tables.iter().map(|table| (table.oid, table.clone())).collect()
}

impl Changes for Applier {
    fn comes_from(&mut self, started: i64) {
        self.shared.comes_from(started);
    }

    fn began(&mut self, lsn: u64, tables: &[PublishedTable]) {
        self.open = Open::default();
        self.feed.clear();
        self.tables.clear();
        self.published = by_oid(tables);
        self.look();
        self.lsn = lsn;
        self.shared.begin(lsn, self.published.clone());
    }

    fn published(&mut self, tables: &[PublishedTable]) {
        let now = by_oid(tables);
        let mut others = HashSet::new();
        for (oid, table) in now.iter().chain(&self.published) {
            if now.get(oid) != self.published.get(oid) {
                others.extend(table.ancestors.iter().copied().chain([*oid]));
            }
        }
        let others: Vec<u32> = others.into_iter().collect();
        let gone: Vec<u32> =
            self.published.keys().copied().filter(|oid| !now.contains_key(oid)).collect();
        self.shared.mirrors.drop_all(&gone);
        self.published = now;
        self.shared.publish(self.published.clone());
        // What is collected already may lack tags of tables above.
        let tags = &self.shared.tags;
        self.open.touch_with(&others, |touched| touch_epochs(&others, tags, touched));
        self.touch_now(|tags, number| {
            others.iter().for_each(|oid| tags.bump(tags.epoch(*oid), number));
        });
        for (oid, table) in &mut self.tables {
            table.oids = with_ancestors(*oid, &self.published);
            table.bind(&self.list);
        }
    }

    fn redefined(&mut self) {
        self.shared.redefine();
        self.touch_now(|tags, number| tags.bump_all(number));
    }

    fn lost(&mut self, why: &str) {
        self.open = Open::default();
        self.feed.clear();
        self.shared.lose(why);
    }

    fn relation(&mut self, relation: &Relation) {
        let known = self.tables.get(&relation.oid);
        if known.is_some_and(|known| known.relation == *relation) {
            return;
        }
        let is_other = known.is_some();
        let table = Table::new(relation.clone(), &self.published, &self.list);
        let oids = table.oids.clone();
        self.tables.insert(relation.oid, table);
        self.feed.described(relation.oid);
        if is_other {
            let tags = &self.shared.tags;
            self.open.touch_current(|touched| touch_epochs(&oids, tags, touched));
            self.touch_now(|tags, number| {
                oids.iter().for_each(|oid| tags.bump(tags.epoch(*oid), number));
            });
        }
    }

    fn begin(&mut self, xid: u32) {
        self.look();
        self.open.begin(xid);
        self.feed.begin();
    }

    fn streaming(&mut self, xid: u32) {
        self.look();
        self.open.streaming(xid);
        self.feed.streaming(xid);
    }

    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>) {
        let known = self.tables.get(&relation).filter(|_| self.published.contains_key(&relation));
        let Some(table) = known else {
            return self.touch_epochs(xid, relation);
        };
        let tags = &self.shared.tags;
        let told = self.open.touch(xid, |touched| table.touch(&old, new, tags, touched));
        self.feed.row(xid, &table.relation, &old, new.as_ref());
        if told.is_err() {
            self.stray();
        }
    }

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>) {
        relations.for_each(|relation| {
            self.touch_epochs(xid, relation);
            self.feed.truncate(xid, relation);
        });
    }

    fn commit(&mut self, xid: u32, end: u64) {
        let number = self.shared.next_number();
        self.open.commit(xid, &self.shared.tags, number);
        self.shared.mirrors.commit(number, end, xid, self.feed.commit(xid));
        self.shared.applied_commit(number, Some(xid));
        self.progress(end);
    }

    fn abort(&mut self, xid: u32, sub: u32) {
        self.open.abort(xid, sub);
        self.feed.abort(xid, sub);
    }

    fn progress(&mut self, lsn: u64) {
        self.look();
        if lsn > self.lsn {
            self.lsn = lsn;
            self.shared.reach(lsn);
        }
    }
}
