//! One table in memory.

use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use super::building::{Building, Notes};
use super::definition::Definition;
use super::key::put_key;
use super::ordered::{Ordered, Range};
use super::rows::Rows;
use super::tree::Total;

/// A field of a row that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    Null,
    Value(&'a [u8]),
    /// It is what it was.
    Unchanged,
}

/// The table is not what the changes were made to; why, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

/// The mirrored columns of a table, its rows by their identity, and indexes of columns.
#[derive(Debug)]
pub struct Table {
    definition: Arc<Definition>,
    rows: Rows,
    identity: Ordered,
    indexes: Vec<Ordered>,
    /// While the table is filled: all rows, without an index.
    loading: Option<Vec<u32>>,
    /// While an index is built: the rows that change.
    notes: Option<Notes>,
    /// The values and the key of a row, while they are needed.
    values: Vec<u8>,
    key: Vec<u8>,
}

impl Table {
    /// One that is to be filled.
    pub fn new(definition: Arc<Definition>) -> Table {
        let rows = Rows::new(&definition.columns);
        let identity = Ordered::build(
            &definition.identity,
            &[],
            &definition.columns,
            &rows,
            std::iter::empty(),
        );
        Table {
            definition,
            rows,
            identity,
            indexes: Vec::new(),
            loading: Some(Vec::new()),
            notes: None,
            values: Vec::new(),
            key: Vec::new(),
        }
    }

    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    pub fn len(&self) -> u64 {
        self.rows.live()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that it takes.
    pub fn bytes(&self) -> u64 {
        let loading = self.loading.as_ref().map_or(0, |rows| rows.capacity() * size_of::<u32>());
        let indexes: u64 = self.indexes.iter().map(Ordered::bytes).sum();
        let own = self.indexes.capacity() * size_of::<Ordered>()
            + self.values.capacity()
            + self.key.capacity()
            + loading;
        let notes = self.notes.as_ref().map_or(0, Notes::bytes);
        self.rows.bytes() + self.identity.bytes() + indexes + notes + own as u64
    }

    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// None: NULL.
    #[inline]
    pub fn field(&self, row: u32, column: u16) -> Option<&[u8]> {
        self.rows.field(row, column)
    }

    /// That of one column.
    pub fn index(&self, column: u16) -> Option<&Ordered> {
        let mut all = std::iter::once(&self.identity).chain(&self.indexes).rev();
        all.find(|index| index.is_of(&[column]))
    }

    pub fn identity_index(&self) -> &Ordered {
        &self.identity
    }

    /// A row while the table is filled.
    ///
    /// # Errors
    /// A row that can't be.
    pub fn load(&mut self, fields: &[Option<&[u8]>]) -> Result<(), Broken> {
        let id = self.rows.insert(fields)?;
        if let Some(rows) = &mut self.loading {
            rows.push(id);
        }
        Ok(())
    }

    /// All rows are there.
    ///
    /// # Errors
    /// Two of them have the same identity.
    pub fn finish(&mut self) -> Result<(), Broken> {
        let Some(ids) = self.loading.take() else { return Ok(()) };
        let Definition { columns, identity, .. } = &*self.definition;
        self.identity = Ordered::build(identity, &[], columns, &self.rows, ids.into_iter());
        if self.identity.null_count() > 0 || self.has_twice() {
            return Err(Broken("rows have no identity of their own".to_owned()));
        }
        Ok(())
    }

    fn has_twice(&self) -> bool {
        let (mut last, mut key) = (Vec::new(), Vec::new());
        for id in self.identity.ids(&self.rows, &ALL, false) {
            key.clear();
            self.put_key_of(id, &mut key);
            if key == last {
                return true;
            }
            std::mem::swap(&mut key, &mut last);
        }
        false
    }

    /// The key of a row's identity.
    pub(super) fn put_key_of(&self, id: u32, out: &mut Vec<u8>) {
        let Definition { columns, identity, .. } = &*self.definition;
        for at in identity {
            let stored = self.rows.field(id, *at).unwrap_or_default();
            put_key(columns[usize::from(*at)].class, stored, out);
        }
    }

    /// The key of a row's identity.
    pub fn put_identity(&self, fields: &[Option<&[u8]>], out: &mut Vec<u8>) {
        let Definition { columns, identity, .. } = &*self.definition;
        for at in identity.iter().map(|at| usize::from(*at)) {
            let stored = fields.get(at).copied().flatten().unwrap_or_default();
            put_key(columns[at].class, stored, out);
        }
    }

    /// Whether a row with this identity may come.
    fn admits(&mut self, fields: &[Option<&[u8]>]) -> Result<(), Broken> {
        let lacks = |at: &u16| fields.get(usize::from(*at)).copied().flatten().is_none();
        if self.definition.identity.iter().any(lacks) {
            return Err(Broken("a row has no identity".to_owned()));
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        self.put_identity(fields, &mut key);
        let found = self.find(&key);
        self.key = key;
        match found {
            Some(_) => Err(Broken("a row came that was there already".to_owned())),
            None => Ok(()),
        }
    }

    pub fn find(&self, identity: &[u8]) -> Option<u32> {
        self.identity.find(&self.rows, identity)
    }

    /// # Errors
    /// There is a row with its identity.
    pub fn insert(&mut self, fields: &[Option<&[u8]>]) -> Result<(), Broken> {
        self.admits(fields)?;
        let id = self.rows.insert(fields)?;
        let Table { rows, identity, indexes, notes, .. } = self;
        note(notes, |notes| notes.came(id));
        std::iter::once(identity).chain(indexes).for_each(|index| index.insert(rows, id));
        Ok(())
    }

    /// A row has become another.
    ///
    /// # Errors
    /// It is not there.
    pub fn update(&mut self, identity: &[u8], fields: &[Field<'_>]) -> Result<(), Broken> {
        let Some(id) = self.find(identity) else { return Err(missing()) };
        let kept = self.kept(id, fields)?;
        if kept.iter().all(|kept| *kept) {
            return Ok(());
        }
        // Copied, since the new row takes the place of the old one.
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        let mut ends: SmallVec<[Option<(usize, usize)>; 16]> = SmallVec::new();
        for (at, field) in fields.iter().enumerate() {
            let value = match field {
                Field::Null => None,
                Field::Value(value) => Some(*value),
                Field::Unchanged => self.rows.field(id, at as u16),
            };
            let start = values.len();
            values.extend_from_slice(value.unwrap_or_default());
            ends.push(value.map(|_| (start, values.len())));
        }
        let new: SmallVec<[Option<&[u8]>; 16]> =
            ends.iter().map(|at| at.map(|(from, to)| &values[from..to])).collect();
        let done = self.replace(id, &new, &kept);
        drop(new);
        self.values = values;
        done
    }

    /// Which columns keep their values.
    fn kept(&self, id: u32, fields: &[Field<'_>]) -> Result<Kept, Broken> {
        if fields.len() != self.definition.columns.len() {
            return Err(Broken("a row has another number of columns".to_owned()));
        }
        let same = |(at, field): (u16, &Field<'_>)| match field {
            Field::Unchanged => true,
            Field::Null => self.rows.field(id, at).is_none(),
            Field::Value(value) => self.rows.field(id, at) == Some(value),
        };
        Ok((0..).zip(fields).map(same).collect())
    }

    fn replace(&mut self, id: u32, new: &[Option<&[u8]>], kept: &Kept) -> Result<(), Broken> {
        let keeps =
            |index: &Ordered| (0..).zip(kept).all(|(at, kept)| *kept || !index.has_column(at));
        if !keeps(&self.identity) && self.changes_identity(id, new) {
            self.admits(new)?;
        }
        let Table { rows, identity, indexes, notes, .. } = self;
        let moves = rows.would_move(id, new)?;
        let mut before: SmallVec<[Option<Totals>; 8]> = SmallVec::new();
        for index in std::iter::once(&mut *identity).chain(&mut *indexes) {
            if !moves && keeps(index) {
                before.push(Some(index.totals(rows, id)));
            } else {
                before.push(None);
                if !index.remove(rows, id) {
                    return Err(Broken("an index lacks a row".to_owned()));
                }
            }
        }
        note(notes, |notes| notes.goes(id, rows));
        let id = rows.replace(id, new)?;
        note(notes, |notes| notes.came(id));
        for (index, before) in std::iter::once(identity).chain(indexes).zip(before) {
            match before {
                Some(before) => index.adjust(rows, id, &before),
                None => index.insert(rows, id),
            }
        }
        Ok(())
    }

    /// A value may become another one that is equal to it.
    fn changes_identity(&self, id: u32, new: &[Option<&[u8]>]) -> bool {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        self.put_key_of(id, &mut before);
        self.put_identity(new, &mut after);
        before != after
    }

    /// # Errors
    /// The row is not there.
    pub fn delete(&mut self, identity: &[u8]) -> Result<(), Broken> {
        let Some(id) = self.find(identity) else { return Err(missing()) };
        let Table { rows, identity, indexes, notes, .. } = self;
        note(notes, |notes| notes.goes(id, rows));
        for index in std::iter::once(identity).chain(indexes) {
            if !index.remove(rows, id) {
                return Err(Broken("an index lacks a row".to_owned()));
            }
        }
        rows.remove(id);
        Ok(())
    }

    pub fn truncate(&mut self) {
        self.rows.clear();
        // An index that is being built is to be begun anew.
        self.notes = None;
        if let Some(rows) = &mut self.loading {
            rows.clear();
        }
        self.identity = self.identity.empty();
        self.indexes.iter_mut().for_each(|index| *index = index.empty());
    }

    /// Makes an index of a column that knows these sums.
    pub fn add_index(&mut self, column: u16, sums: &[u16]) {
        let index = self.built_index(column, sums);
        drop(self.put_index(column, index));
    }

    /// An index of the rows as they are.
    fn built_index(&self, column: u16, sums: &[u16]) -> Ordered {
        let ids = self.identity.ids(&self.rows, &ALL, false);
        Ordered::build(&[column], sums, &self.definition.columns, &self.rows, ids)
    }

    /// Gives the one whose place it takes.
    fn put_index(&mut self, column: u16, index: Ordered) -> Option<Ordered> {
        match self.indexes.iter_mut().find(|known| known.is_of(&[column])) {
            Some(known) => Some(std::mem::replace(known, index)),
            None => {
                self.indexes.push(index);
                None
            }
        }
    }

    /// Begins an index of a column that knows these sums, beside readers and changes. None: another
    /// one is being built.
    pub fn begin_index(&mut self, column: u16, sums: &[u16]) -> Option<Building> {
        if self.notes.is_some() || self.loading.is_some() {
            return None;
        }
        let building = Building::new(&self.definition, column, sums)?;
        self.notes = Some(building.notes());
        Some(building)
    }

    /// One more step of [`Building`] that has to change the table; a short one. The last one puts
    /// the index into it.
    pub fn build_index(&mut self, building: &mut Building) {
        let known = self.notes.as_ref().is_some_and(|notes| building.is_of(notes));
        let Some(notes) = self.notes.take_if(|_| known) else { return building.is_gone() };
        match building.swap(notes) {
            Some(notes) => self.notes = Some(notes),
            None => {
                if let Some((column, index)) = building.finish(&self.rows) {
                    building.keep(self.put_index(column, index));
                }
            }
        }
    }

    /// An index that was begun is of no use any more.
    pub fn forget_index(&mut self, building: &Building) {
        self.notes.take_if(|notes| building.is_of(notes));
    }

    pub(super) fn notes(&self) -> Option<&Notes> {
        self.notes.as_ref()
    }

    pub fn drop_index(&mut self, column: u16) {
        self.indexes.retain(|index| !index.is_of(&[column]));
    }

    /// Columns with an index of their own, and the sums that it knows.
    pub fn indexes(&self) -> impl Iterator<Item = (u16, Vec<u16>)> + '_ {
        let columns = 0..self.definition.columns.len() as u16;
        columns.filter_map(|column| {
            let index = self.indexes.iter().find(|index| index.is_of(&[column]))?;
            Some((column, index.sums().collect()))
        })
    }
}

/// By column.
type Kept = SmallVec<[bool; 16]>;

/// By sum.
type Totals = SmallVec<[Total; 4]>;

const ALL: Range<'static> = Range { low: Bound::Unbounded, high: Bound::Unbounded };

fn missing() -> Broken {
    Broken("a row that has changed is not there".to_owned())
}

/// Too many notes are none.
fn note(notes: &mut Option<Notes>, add: impl FnOnce(&mut Notes) -> bool) {
    if notes.as_mut().is_some_and(|notes| !add(notes)) {
        *notes = None;
    }
}
