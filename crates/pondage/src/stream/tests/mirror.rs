//! A consumer that keeps a copy of every table from what it is told.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use backend::replication::{Changes, Old, PublishedTable};
use wire::pg::pgoutput::{Field, Relation, Tuple};

pub type Row = Vec<Option<String>>;

/// A change of an open transaction.
#[derive(Debug, Clone)]
enum Change {
    Row { relation: u32, old: Option<(bool, Row)>, new: Option<Vec<New>> },
    Truncate(Vec<u32>),
}

#[derive(Debug, Clone)]
enum New {
    Value(Option<String>),
    Unchanged,
}

/// All that was told.
#[derive(Default)]
pub struct Seen {
    pub begun: usize,
    pub following: bool,
    pub start: u64,
    pub tables: Vec<PublishedTable>,
    pub lost: Vec<String>,
    pub redefined: usize,
    pub progress: u64,
    pub commits: usize,
    /// Transactions that were told while they ran.
    pub streamed: usize,
    pub aborted_parts: usize,
    /// TOASTed values that were not told.
    pub unchanged: usize,
    pub relations: HashMap<u32, Relation>,
    /// Rows in no order, for identities need not be unique in copies that begin empty.
    pub copies: BTreeMap<u32, Vec<Row>>,
    open: HashMap<u32, Vec<(u32, Change)>>,
    /// What was committed since the stream began, and by whom.
    history: Vec<(u32, Vec<Change>)>,
    /// The transaction that changes belong to.
    current: u32,
}

#[derive(Clone, Default)]
pub struct Mirror(Arc<Mutex<Seen>>);

impl Mirror {
    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.0.lock().expect("not poisoned"))
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().expect("not poisoned"));
    }

    /// The copy of a table, its rows as `a|b` in order; NULL is `-`.
    pub fn copy(&self, name: &str) -> Vec<String> {
        self.look(|seen| {
            let named = |relation: &&Relation| relation.name == name;
            let relation = seen.relations.values().find(named);
            let rows = relation.and_then(|relation| seen.copies.get(&relation.oid));
            sorted(rows.map_or(&[], Vec::as_slice))
        })
    }

    /// A copy of tables and every commit in which these transactions are not: their rows as in
    /// [`Mirror::copy`].
    pub fn rebuilt(
        &self,
        copies: BTreeMap<u32, Vec<Row>>,
        has: impl Fn(u32) -> bool,
    ) -> BTreeMap<u32, Vec<String>> {
        self.look(|seen| {
            let of = |change: &Change| match change {
                Change::Row { relation, .. } => copies.contains_key(relation),
                Change::Truncate(_) => true,
            };
            let missing = seen.history.iter().filter(|(xid, _)| !has(*xid));
            let changes: Vec<Change> =
                missing.flat_map(|(_, changes)| changes).filter(|c| of(c)).cloned().collect();
            let oids: Vec<u32> = copies.keys().copied().collect();
            let relations = seen.relations.clone();
            let mut then = Seen { relations, copies, ..Seen::default() };
            changes.into_iter().for_each(|change| then.apply(change));
            let rows = |oid: &u32| sorted(then.copies.get(oid).map_or(&[], Vec::as_slice));
            oids.iter().map(|oid| (*oid, rows(oid))).collect()
        })
    }

    pub fn tables(&self) -> Vec<String> {
        self.look(|seen| seen.tables.iter().map(|table| table.name.clone()).collect())
    }
}

/// Rows as `a|b` in order; NULL is `-`.
fn sorted(rows: &[Row]) -> Vec<String> {
    let text = |row: &Row| {
        let fields = row.iter().map(|field| field.as_deref().unwrap_or("-"));
        fields.collect::<Vec<_>>().join("|")
    };
    let mut rows: Vec<String> = rows.iter().map(text).collect();
    rows.sort();
    rows
}

fn row(tuple: &Tuple<'_>) -> Vec<New> {
    let field = |field| match field {
        Field::Null => New::Value(None),
        Field::Unchanged => New::Unchanged,
        Field::Text(text) => New::Value(Some(String::from_utf8(text.to_vec()).expect("UTF-8"))),
    };
    tuple.fields().map(field).collect()
}

fn values(tuple: &Tuple<'_>) -> Row {
    let value = |new| match new {
        New::Value(value) => value,
        New::Unchanged => panic!("an old value is not told"),
    };
    row(tuple).into_iter().map(value).collect()
}

impl Seen {
    fn apply(&mut self, change: Change) {
        match change {
            Change::Truncate(relations) => {
                relations.iter().for_each(|oid| drop(self.copies.remove(oid)));
            }
            Change::Row { relation, old, new } => self.apply_row(relation, old, new),
        }
    }

    fn apply_row(&mut self, relation: u32, old: Option<(bool, Row)>, new: Option<Vec<New>>) {
        let Relation { identity, columns, .. } = &self.relations[&relation];
        let keys: Vec<bool> = columns.iter().map(|column| column.key).collect();
        let rows = self.copies.entry(relation).or_default();
        let find = |rows: &[Row], (whole, old): &(bool, Row)| {
            rows.iter().position(|row| {
                let same = |at: usize| row.get(at) == old.get(at);
                (0..row.len()).all(|at| !(*whole || keys[at]) || same(at))
            })
        };
        // An update without an old row has the same key; an insert finds nothing. Of whole rows
        // there may be several, but then an update has the old one.
        let before = match (&old, &new) {
            (Some(old), _) => find(rows, old),
            (None, Some(new)) => {
                let value = |new: &New| match new {
                    New::Value(value) => value.clone(),
                    New::Unchanged => None,
                };
                let key = (false, new.iter().map(value).collect());
                (*identity != b'f').then(|| find(rows, &key)).flatten()
            }
            (None, None) => panic!("a change of nothing"),
        };
        let before: Option<Row> = before.map(|at| rows.swap_remove(at));
        let Some(new) = new else {
            assert!(before.is_some(), "a row was deleted that was not there: {old:?}");
            return;
        };
        let value = |(at, new): (usize, New)| match new {
            New::Value(value) => value,
            New::Unchanged => before.as_ref().expect("the row before")[at].clone(),
        };
        let unchanged = new.iter().filter(|new| matches!(new, New::Unchanged)).count();
        rows.push(new.into_iter().enumerate().map(value).collect());
        self.unchanged += unchanged;
    }

    fn note(&mut self, xid: u32, change: Change) {
        let current = self.current;
        self.open.get_mut(&current).expect("an open transaction").push((xid, change));
    }
}

impl Changes for Mirror {
    fn began(&mut self, lsn: u64, tables: &[PublishedTable]) {
        self.change(|seen| {
            *seen = Seen {
                begun: seen.begun + 1,
                following: true,
                start: lsn,
                progress: lsn,
                tables: tables.to_vec(),
                lost: std::mem::take(&mut seen.lost),
                ..Seen::default()
            };
        });
    }

    fn published(&mut self, tables: &[PublishedTable]) {
        self.change(|seen| seen.tables = tables.to_vec());
    }

    fn redefined(&mut self) {
        self.change(|seen| seen.redefined += 1);
    }

    fn lost(&mut self, why: &str) {
        self.change(|seen| {
            seen.following = false;
            seen.lost.push(why.to_owned());
        });
    }

    fn relation(&mut self, relation: &Relation) {
        self.change(|seen| {
            seen.relations.insert(relation.oid, relation.clone());
        });
    }

    fn begin(&mut self, xid: u32) {
        self.change(|seen| {
            seen.current = xid;
            assert!(seen.open.insert(xid, Vec::new()).is_none(), "{xid} is open already");
        });
    }

    fn streaming(&mut self, xid: u32) {
        self.change(|seen| {
            seen.current = xid;
            if !seen.open.contains_key(&xid) {
                seen.streamed += 1;
                seen.open.insert(xid, Vec::new());
            }
        });
    }

    fn row(&mut self, xid: u32, relation: u32, old: Old<'_>, new: Option<Tuple<'_>>) {
        let old = match &old {
            Old::Absent | Old::Unknown => None,
            Old::Key(old) => Some((false, values(old))),
            Old::Whole(old) => Some((true, values(old))),
        };
        let new = new.as_ref().map(row);
        self.change(|seen| seen.note(xid, Change::Row { relation, old, new }));
    }

    fn truncate(&mut self, xid: u32, relations: &mut dyn Iterator<Item = u32>) {
        let relations = relations.collect();
        self.change(|seen| seen.note(xid, Change::Truncate(relations)));
    }

    fn commit(&mut self, xid: u32, end: u64) {
        self.change(|seen| {
            assert!(end > seen.start, "a commit from before the beginning");
            seen.commits += 1;
            let changes = seen.open.remove(&xid).expect("an open transaction");
            let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
            changes.iter().for_each(|change| seen.apply(change.clone()));
            seen.history.push((xid, changes));
        });
    }

    fn abort(&mut self, xid: u32, sub: u32) {
        self.change(|seen| match xid == sub {
            true => drop(seen.open.remove(&xid)),
            false => {
                seen.aborted_parts += 1;
                let changes = seen.open.get_mut(&xid).expect("an open transaction");
                changes.retain(|(xid, _)| *xid != sub);
            }
        });
    }

    fn progress(&mut self, lsn: u64) {
        self.change(|seen| {
            assert!(lsn >= seen.progress, "progress goes back");
            seen.progress = lsn;
        });
    }
}
