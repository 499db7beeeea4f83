//! What is wanted of mirrors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend::moment::Moment;

use super::definition::{Column, Definition};

/// What nobody has read for so long is wanted no longer.
pub const IDLE: Duration = Duration::from_secs(600);

/// No moment.
const DOUBTED: u64 = u64::MAX;

/// Columns and indexes of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub definition: Definition,
    /// A column by its place in the definition, and those whose sums its index has to know.
    pub indexes: Vec<(u16, Vec<u16>)>,
}

/// Wanted as long as it lives and is read, or for ever.
#[derive(Debug)]
pub struct Wish {
    pub tables: Vec<Wanted>,
    /// By a command or the configuration.
    pub pinned: bool,
    used: AtomicU64,
}

/// What all wishes together want of a table. Columns are named by their numbers.
#[derive(Debug, Clone)]
pub(super) struct Aim {
    pub definition: Definition,
    pub indexes: BTreeMap<i16, Vec<i16>>,
    /// The columns that a command or the configuration wants, if any does.
    pub named: BTreeSet<i16>,
}

impl Wish {
    pub fn new(tables: Vec<Wanted>, pinned: bool, now: Moment) -> Wish {
        Wish { tables, pinned, used: AtomicU64::new(now.0) }
    }

    pub fn is_used(&self, now: Moment) {
        self.used.store(now.0, Ordering::Relaxed);
    }

    /// It counts only when it is used again: it may be for a table as it was once.
    pub(super) fn doubt(&self) {
        self.used.store(DOUBTED, Ordering::Relaxed);
    }

    pub(super) fn counts(&self, now: Moment) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        self.pinned || used != DOUBTED && now.since(Moment(used)) < IDLE
    }
}

impl Aim {
    pub(super) fn new(wanted: &Wanted, pinned: bool) -> Aim {
        let indexes = BTreeMap::new();
        let named = BTreeSet::new();
        let mut aim = Aim { definition: wanted.definition.clone(), indexes, named };
        aim.add_rest(wanted, pinned);
        aim
    }

    pub(super) fn is_pinned(&self) -> bool {
        !self.named.is_empty()
    }

    /// Takes what another wish wants as well. Of a table that has changed meanwhile the later one
    /// counts alone.
    pub(super) fn add(&mut self, wanted: &Wanted, pinned: bool) {
        if !add_columns(&mut self.definition, &wanted.definition) {
            *self = Aim::new(wanted, pinned);
            return;
        }
        self.add_rest(wanted, pinned);
    }

    fn add_rest(&mut self, wanted: &Wanted, pinned: bool) {
        let columns = &wanted.definition.columns;
        self.named.extend(columns.iter().filter(|_| pinned).map(|column| column.attnum));
        let number = |place: &u16| columns.get(usize::from(*place)).map(|column| column.attnum);
        for (column, sums) in &wanted.indexes {
            let Some(column) = number(column) else { continue };
            let known = self.indexes.entry(column).or_default();
            for sum in sums.iter().filter_map(number) {
                if !known.contains(&sum) {
                    known.push(sum);
                }
            }
        }
    }
}

/// False: they are not of one table as it is at one time.
pub(super) fn add_columns(all: &mut Definition, more: &Definition) -> bool {
    let Some(same) = place_columns(all, more) else { return false };
    if same.iter().all(Option::is_some) {
        return true;
    }
    let new = more.columns.iter().zip(&same).filter(|(_, known)| known.is_none());
    let new: Vec<Column> = new.map(|(column, _)| column.clone()).collect();
    let identity: Vec<i16> = numbers(all, &all.identity);
    all.columns.extend(new);
    all.columns.sort_by_key(|column| column.attnum);
    let place = |number: &i16| {
        let at = all.columns.iter().position(|column| column.attnum == *number)?;
        u16::try_from(at).ok()
    };
    all.identity = identity.iter().filter_map(place).collect();
    true
}

fn numbers(definition: &Definition, places: &[u16]) -> Vec<i16> {
    let number = |place: &u16| definition.columns.get(usize::from(*place)).map(|c| c.attnum);
    places.iter().filter_map(number).collect()
}

/// Where `part`'s columns are in `whole`. None: they are not of one table as it is at one time.
fn place_columns(whole: &Definition, part: &Definition) -> Option<Vec<Option<u16>>> {
    let same = (whole.oid, whole.filenode) == (part.oid, part.filenode)
        && numbers(whole, &whole.identity) == numbers(part, &part.identity);
    if !same {
        return None;
    }
    let place = |column: &Column| match whole
        .columns
        .iter()
        .position(|known| known.attnum == column.attnum)
    {
        // One that was dropped, and one that came later.
        None if whole.columns.iter().any(|known| known.name == column.name) => None,
        None => Some(None),
        Some(at) if whole.columns[at] == *column => Some(u16::try_from(at).ok()),
        Some(_) => None,
    };
    part.columns.iter().map(place).collect()
}

/// Where `part`'s columns are in `whole`, if all are there.
pub(super) fn places(whole: &Definition, part: &Definition) -> Option<Vec<u16>> {
    place_columns(whole, part)?.into_iter().collect()
}
