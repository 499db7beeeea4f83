//! Tables, transactions and cached answers, step by step.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backend::replication::{Changes, Old, PublishedTable};
use cache::apply::Applier;
use cache::cover::ancestors;
use cache::recipe::{Form, Recipe};
use cache::shared::Shared;
use cache::tags::{Tag, Tags};
use smallvec::SmallVec;
use wire::pg::pgoutput::{put_tuple, Field, Relation, Tuple};

use crate::random::Random;
use crate::table::{is_long, nullable, relation, value, Restriction, Row, COLUMNS};

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Wild tags are not raised.
    NoWild,
    OldIgnored,
    NewIgnored,
    /// A value that is not told counts as NULL.
    UnchangedIgnored,
    /// Nodes of one level of ranges are not raised.
    LevelMissing,
    EpochMissing,
    /// What is told of a streamed transaction is dropped with any part that is undone.
    UndoneTooMuch,
}

impl Fault {
    pub const ALL: [Fault; 7] = [
        Fault::NoWild,
        Fault::OldIgnored,
        Fault::NewIgnored,
        Fault::UnchangedIgnored,
        Fault::LevelMissing,
        Fault::EpochMissing,
        Fault::UndoneTooMuch,
    ];
}

/// A row as it was and as it will be.
#[derive(Debug, Clone)]
struct Change {
    id: u64,
    table: u32,
    before: Option<Row>,
    after: Option<Row>,
}

#[derive(Debug)]
struct Streamed {
    xid: u32,
    /// With the number of the subtransaction.
    changes: Vec<(u32, Change)>,
}

/// A restriction, and the answer that is cached for it.
#[derive(Debug)]
struct Cached {
    restriction: Restriction,
    recipe: Recipe,
    generation: u64,
    /// Tags and version.
    lease: Option<(SmallVec<[Tag; 8]>, u64)>,
    /// Why it must be dropped: what a commit has changed of it.
    must: Option<String>,
    /// A commit may have concerned it.
    may: bool,
}

pub struct World {
    random: Random,
    fault: Option<Fault>,
    shared: Arc<Shared>,
    applier: Applier,
    relations: Vec<Relation>,
    rows: HashMap<u64, (u32, Row)>,
    next_row: u64,
    next_xid: u32,
    lsn: u64,
    streamed: Vec<Streamed>,
    /// Rows that open transactions have changed.
    locked: HashSet<u64>,
    cached: Vec<Cached>,
    hidden: HashSet<Tag>,
    /// Restrictions stay.
    pub settled_in: bool,
    pub kept: usize,
    pub dropped: usize,
}

impl World {
    pub fn new(seed: u64, tags: usize, fault: Option<Fault>) -> World {
        let mut random = Random(seed);
        let shared = Arc::new(Shared::new(Tags::new(tags, seed), Box::new(|| {})));
        let mut applier = Applier::new(shared.clone());
        let relations: Vec<Relation> =
            [101, 102].into_iter().map(|oid| relation(&mut random, oid)).collect();
        let published: Vec<PublishedTable> = relations.iter().map(published).collect();
        applier.began(1, &published);
        relations.iter().for_each(|relation| applier.relation(relation));
        let cached = (0..12).map(|_| {
            let table = random.of(&relations).oid;
            let (restriction, mut recipe) = Restriction::new(&mut random, table);
            let generation = shared.watch.adopt(&mut recipe);
            Cached { restriction, recipe, generation, lease: None, must: None, may: false }
        });
        let cached: Vec<Cached> = cached.collect();
        let hidden = fault.map(|fault| hidden(fault, &shared.tags, &cached)).unwrap_or_default();
        World {
            random,
            fault,
            shared,
            applier,
            relations,
            rows: HashMap::new(),
            next_row: 1,
            next_xid: u32::MAX - 20,
            lsn: 1,
            streamed: Vec::new(),
            locked: HashSet::new(),
            cached,
            hidden,
            settled_in: false,
            kept: 0,
            dropped: 0,
        }
    }

    pub fn run(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            match self.random.below(20) {
                0..=9 => self.transaction()?,
                10..=14 => self.streamed_part(),
                15..=16 => self.end_streamed()?,
                17 => self.undo_part(),
                18 => self.replace(),
                _ => {
                    self.lsn += 1;
                    self.applier.progress(self.lsn);
                }
            }
            self.lease();
        }
        Ok(())
    }

    fn xid(&mut self) -> u32 {
        self.next_xid = self.next_xid.wrapping_add(1).max(3);
        self.next_xid
    }

    /// Who has no answer gets one.
    fn lease(&mut self) {
        let shared = &self.shared;
        for cached in &mut self.cached {
            if cached.lease.is_some() || !shared.watch.has_seen(cached.generation) {
                continue;
            }
            let mut tags = SmallVec::new();
            assert!(cached.recipe.tags(&cached.restriction.given, &shared.tags, &mut tags));
            cached.lease = Some((tags, shared.applied().number));
            (cached.must, cached.may) = (None, false);
        }
    }

    /// A recipe goes and another one comes.
    fn replace(&mut self) {
        if self.fault.is_some() || self.settled_in {
            // The hidden tags are those of the first ones.
            return;
        }
        let at = self.random.below(self.cached.len());
        self.shared.watch.release(&self.cached[at].recipe);
        // Often the same one again.
        if self.random.one_in(2) {
            let table = self.random.of(&self.relations).oid;
            let (restriction, recipe) = Restriction::new(&mut self.random, table);
            self.cached[at].restriction = restriction;
            self.cached[at].recipe = recipe;
            self.cached[at].lease = None;
        }
        let cached = &mut self.cached[at];
        cached.generation = self.shared.watch.adopt(&mut cached.recipe);
        if self.random.one_in(2) {
            cached.lease = None;
        }
    }

    /// An ordinary transaction.
    fn transaction(&mut self) -> Result<(), String> {
        let xid = self.xid();
        self.applier.begin(xid);
        let mut changes = Vec::new();
        let whole = match self.random.below(25) {
            0 => self.truncate(xid, &mut changes),
            1 => Some(self.describe_anew()),
            _ => None,
        };
        for _ in 0..self.random.below(4) {
            if let Some(change) = self.change() {
                self.tell(xid, &change);
                self.apply(&change);
                changes.push(change);
            }
            if self.random.one_in(20) {
                self.replace();
            }
        }
        self.commit(xid, &changes, whole)
    }

    /// Waits for nobody, so only if nobody has changed the table.
    fn truncate(&mut self, xid: u32, changes: &mut Vec<Change>) -> Option<u32> {
        let table = self.random.of(&self.relations).oid;
        let open = self.streamed.iter().flat_map(|streamed| &streamed.changes);
        if open.map(|(_, change)| change.table).any(|changed| changed == table) {
            return None;
        }
        self.applier.truncate(xid, &mut [table].into_iter());
        let gone = self.rows.iter().filter(|(_, (of, _))| *of == table);
        changes.extend(gone.map(|(id, (table, row))| Change {
            id: *id,
            table: *table,
            before: Some(row.clone()),
            after: None,
        }));
        self.rows.retain(|_, (of, _)| *of != table);
        Some(table)
    }

    fn describe_anew(&mut self) -> u32 {
        let at = self.random.below(self.relations.len());
        let relation = &mut self.relations[at];
        relation.columns[2].modifier += 1;
        self.applier.relation(relation);
        relation.oid
    }

    fn streamed_part(&mut self) {
        if self.streamed.is_empty() || self.streamed.len() < 3 && self.random.one_in(3) {
            let xid = self.xid();
            self.streamed.push(Streamed { xid, changes: Vec::new() });
        }
        let at = self.random.below(self.streamed.len());
        let top = self.streamed[at].xid;
        self.applier.streaming(top);
        for _ in 0..1 + self.random.below(4) {
            let sub = if self.random.one_in(2) { top } else { self.xid() };
            if let Some(change) = self.change() {
                self.tell(sub, &change);
                self.locked.insert(change.id);
                self.streamed[at].changes.push((sub, change));
            }
        }
    }

    fn undo_part(&mut self) {
        let Some(at) = self.streamed.len().checked_sub(1) else {
            return;
        };
        let top = self.streamed[at].xid;
        let subs = self.streamed[at].changes.iter().map(|(sub, _)| *sub);
        let subs: Vec<u32> = subs.filter(|sub| *sub != top).collect();
        if subs.is_empty() {
            return;
        }
        let undone = *self.random.of(&subs);
        self.applier.streaming(top);
        self.applier.abort(top, undone);
        if self.fault == Some(Fault::UndoneTooMuch) {
            subs.iter().chain([&top]).for_each(|sub| self.applier.abort(top, *sub));
        }
        let locked = &mut self.locked;
        self.streamed[at].changes.retain(|(sub, change)| {
            if *sub == undone {
                locked.remove(&change.id);
            }
            *sub != undone
        });
    }

    fn end_streamed(&mut self) -> Result<(), String> {
        if self.streamed.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.streamed.len());
        let streamed = self.streamed.swap_remove(at);
        let changes: Vec<Change> = streamed.changes.into_iter().map(|(_, change)| change).collect();
        for change in &changes {
            self.locked.remove(&change.id);
        }
        if self.random.one_in(4) {
            self.applier.abort(streamed.xid, streamed.xid);
            return Ok(());
        }
        changes.iter().for_each(|change| self.apply(change));
        self.commit(streamed.xid, &changes, None)
    }

    fn apply(&mut self, change: &Change) {
        match &change.after {
            Some(row) => self.rows.insert(change.id, (change.table, row.clone())),
            None => self.rows.remove(&change.id),
        };
    }

    /// What happens to some row.
    fn change(&mut self) -> Option<Change> {
        let free: Vec<u64> =
            self.rows.keys().filter(|id| !self.locked.contains(id)).copied().collect();
        if free.is_empty() || self.rows.len() < 30 && self.random.one_in(3) {
            let relation = self.random.of(&self.relations).clone();
            let row = (0..COLUMNS.len()).map(|at| self.value(&relation, at)).collect();
            let id = self.next_row;
            self.next_row += 1;
            return Some(Change { id, table: relation.oid, before: None, after: Some(row) });
        }
        // HashMap's order is not of the seed.
        let id = *free.iter().min_by_key(|id| **id % 7 * 100 + **id)?;
        let id = if self.random.one_in(2) { *free.iter().max()? } else { id };
        let (table, before) = self.rows[&id].clone();
        let relation = self.relations.iter().find(|relation| relation.oid == table)?.clone();
        let after = (!self.random.one_in(4)).then(|| {
            let mut row = before.clone();
            for _ in 0..1 + self.random.below(2) {
                let at = self.random.below(COLUMNS.len());
                row[at] = self.value(&relation, at);
            }
            row
        });
        Some(Change { id, table, before: Some(before), after })
    }

    fn value(&mut self, relation: &Relation, at: usize) -> Option<String> {
        value(&mut self.random, at, nullable(relation, at))
    }

    /// As the stream does, by the table's replica identity.
    fn tell(&mut self, xid: u32, change: &Change) {
        let relation = self.relations.iter().find(|relation| relation.oid == change.table);
        let relation = relation.expect("a table of ours");
        let keys: Vec<bool> = relation.columns.iter().map(|column| column.key).collect();
        let whole = relation.identity == b'f';
        let new = change.after.as_ref().map(|row| {
            tuple(row.iter().enumerate().map(|(at, value)| {
                let before = change.before.as_ref().and_then(|row| row[at].as_ref());
                match value {
                    Some(value) if is_long(value) && before == Some(value) => {
                        let ignored = self.fault == Some(Fault::UnchangedIgnored);
                        if ignored {
                            Field::Null
                        } else {
                            Field::Unchanged
                        }
                    }
                    value => field(value),
                }
            }))
        });
        let same_key =
            change.before.as_ref().zip(change.after.as_ref()).is_some_and(|(before, after)| {
                // A long value of the key is told although it has not changed.
                let same = |at: usize| {
                    before[at] == after[at] && !before[at].as_deref().is_some_and(is_long)
                };
                (0..keys.len()).all(|at| !keys[at] || same(at))
            });
        let old =
            change.before.as_ref().filter(|_| whole || !same_key).map(|row| {
                tuple(row.iter().zip(&keys).map(|(value, key)| {
                    if whole || *key {
                        field(value)
                    } else {
                        Field::Null
                    }
                }))
            });
        let new = new.filter(|_| self.fault != Some(Fault::NewIgnored));
        let old = old.filter(|_| self.fault != Some(Fault::OldIgnored));
        let told = match &old {
            None if change.before.is_none() => Old::Absent,
            None => Old::Unknown,
            Some(bytes) if whole => Old::Whole(Tuple::parse(bytes).expect("a row")),
            Some(bytes) => Old::Key(Tuple::parse(bytes).expect("a row")),
        };
        let new = new.as_ref().map(|bytes| Tuple::parse(bytes).expect("a row"));
        self.applier.row(xid, change.table, told, new);
    }

    /// `whole`: a table that has changed as such.
    fn commit(&mut self, xid: u32, changes: &[Change], whole: Option<u32>) -> Result<(), String> {
        self.lsn += 10;
        self.applier.commit(xid, self.lsn);
        assert_eq!(self.shared.applied().lsn, self.lsn);
        for cached in &mut self.cached {
            let restriction = &cached.restriction;
            for change in changes.iter().filter(|change| change.table == restriction.table) {
                let rows = [&change.before, &change.after];
                let found =
                    rows.iter().any(|row| row.as_ref().is_some_and(|row| restriction.finds(row)));
                if found && change.before != change.after {
                    cached.must = Some(format!("{change:?}"));
                }
                let relation = self.relations.iter().find(|of| of.oid == change.table);
                cached.may |= found || !is_told(&cached.recipe, relation, change);
            }
            if whole == Some(restriction.table) {
                cached.must = Some("the table as a whole".to_owned());
            }
            let Some((tags, version)) = &cached.lease else {
                continue;
            };
            let raised = tags.iter().filter(|tag| !self.hidden.contains(tag));
            let holds = raised.copied().all(|tag| self.shared.tags.hold(&[tag], *version));
            match &cached.must {
                Some(why) if holds => {
                    return Err(format!("{restriction:?}\nis served, though {why}"));
                }
                Some(_) => cached.lease = None,
                None if cached.may => cached.lease = cached.lease.take().filter(|_| holds),
                None if holds => self.kept += 1,
                None => {
                    self.dropped += 1;
                    cached.lease = None;
                }
            }
        }
        Ok(())
    }
}

/// Whether the stream tells enough to know that a change does not concern a restriction.
fn is_told(recipe: &Recipe, relation: Option<&Relation>, change: &Change) -> bool {
    let Some((relation, restriction)) = relation.zip(recipe.tables[0].restriction.as_ref()) else {
        return true;
    };
    let columns = restriction.signature().columns.iter();
    let mut known = columns.map(|(name, _)| {
        relation.columns.iter().find(|column| column.name == *name).is_some_and(|of| of.key)
    });
    relation.identity == b'f' || known.all(|known| known) && change.table == relation.oid
}

fn published(relation: &Relation) -> PublishedTable {
    PublishedTable {
        oid: relation.oid,
        schema: relation.schema.clone(),
        name: relation.name.clone(),
        partitioned: false,
        ancestors: Vec::new(),
    }
}

fn field(value: &Option<String>) -> Field<'_> {
    value.as_ref().map_or(Field::Null, |text| Field::Text(text.as_bytes()))
}

fn tuple<'a>(fields: impl Iterator<Item = Field<'a>>) -> Vec<u8> {
    let fields: Vec<Field<'_>> = fields.collect();
    let mut bytes = Vec::new();
    put_tuple(&mut bytes, &fields);
    bytes
}

/// Tags that a broken applier would not raise.
fn hidden(fault: Fault, tags: &Tags, cached: &[Cached]) -> HashSet<Tag> {
    let restrictions =
        cached.iter().filter_map(|cached| cached.recipe.tables[0].restriction.as_ref());
    let signatures = restrictions.map(|restriction| restriction.signature());
    match fault {
        Fault::NoWild => signatures.map(|signature| tags.wild(signature)).collect(),
        Fault::EpochMissing => [101, 102].into_iter().map(|oid| tags.epoch(oid)).collect(),
        Fault::LevelMissing => signatures
            .filter(|signature| signature.form == Form::Range)
            .flat_map(|signature| {
                let nodes = (-16..32).flat_map(ancestors).filter(|(level, _)| *level == 1);
                nodes.map(|(level, place)| tags.node(signature, level, place))
            })
            .collect(),
        _ => HashSet::new(),
    }
}
