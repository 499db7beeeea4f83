//! What the answer to a statement depends on.
//!
//! A [`Recipe`] is made once for a statement's shape. With the values of one run it gives the tags
//! of that run's answer: for every table that is read its epoch, and either *any* (every change
//! of a row) or, where a restriction tells which rows can matter, *wild* and one tag for each value
//! or node of a range. The applier raises the same tags; see [`crate::apply`].

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::quality::FixedState;
use smallvec::SmallVec;
pub use sql::Source;

use crate::cover::cover;
use crate::tags::{Tag, Tags};
use crate::value::{self, as_i64, canonical, canonical_binary, oid, Canonical, Element, Kind};

/// Most tags for one table; what would need more depends on every row.
pub const TABLE_TAGS_MAX: usize = 64;

/// Most tags of an answer; tables for which too few are left depend on every row. (One that reads
/// more than half as many tables has two for each.)
pub const ENTRY_TAGS_MAX: usize = 128;

/// What the answer to a statement of some shape depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Recipe {
    pub tables: Vec<TableDeps>,
}

/// One occurrence of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableDeps {
    pub oid: u32,
    /// Which of its rows can matter; None: any.
    pub restriction: Option<Precise>,
}

/// Rows that can matter. What compares as NULL is not true: such rows can't.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Precise {
    /// Each column of the signature has one of its values.
    Equal { signature: Arc<Signature>, values: Vec<Vec<Source>> },
    /// The one column has the value of an element.
    AnyOf { signature: Arc<Signature>, array: Source },
    /// The one column lies between bounds, each with whether it is itself meant.
    Range { signature: Arc<Signature>, low: Option<(Source, bool)>, high: Option<(Source, bool)> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    Equal,
    Range,
}

/// Columns whose values the applier must look at in every changed row of a table.
#[derive(Debug)]
pub struct Signature {
    pub table: u32,
    pub columns: Vec<(String, Kind)>,
    pub form: Form,
    /// All of the above as a number; the same for equal signatures.
    id: u64,
}

impl PartialEq for Signature {
    fn eq(&self, other: &Signature) -> bool {
        (self.table, self.form, &self.columns) == (other.table, other.form, &other.columns)
    }
}

impl Eq for Signature {}

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl Signature {
    /// Columns in any order; it is kept. A range has one, of an ordered kind.
    pub fn new(table: u32, columns: Vec<(String, Kind)>, form: Form) -> Signature {
        let id = FixedState::with_seed(0).hash_one((table, form, &columns));
        Signature { table, columns, form, id }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether a range can be told by it.
    fn is_range(&self) -> bool {
        self.form == Form::Range && self.columns.len() == 1 && self.columns[0].1.is_ordered()
    }
}

/// One value among those of a signature: `write` appends its canonical bytes. They are counted, so
/// that the values of several columns can't be taken for others.
pub(crate) fn put_counted(out: &mut Canonical, write: impl FnOnce(&mut Canonical) -> bool) -> bool {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let known = write(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    known
}

/// A value as the statement has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    /// A literal without its quotes, a parameter in text format.
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

/// The values of one run of a statement.
pub trait Values {
    /// With the object identifier of its type as PostgreSQL has it; `unknown` (705) or 0 for what
    /// takes the type of the column it is compared with. None: not to be had.
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)>;
}

/// It can't be told which rows matter, or not with so few tags.
struct Coarse;

impl Recipe {
    /// The recipe with other sources; none if there is no other for one of them.
    pub fn with_sources(mut self, other: impl Fn(Source) -> Option<Source>) -> Option<Recipe> {
        let restrictions = self.tables.iter_mut().filter_map(|table| table.restriction.as_mut());
        for restriction in restrictions {
            let sources: SmallVec<[&mut Source; 8]> = match restriction {
                Precise::Equal { values, .. } => values.iter_mut().flatten().collect(),
                Precise::AnyOf { array, .. } => SmallVec::from_iter([array]),
                Precise::Range { low, high, .. } => {
                    [low, high].into_iter().flatten().map(|(source, _)| source).collect()
                }
            };
            for source in sources {
                *source = other(*source)?;
            }
        }
        Some(self)
    }

    /// Whether a value is compared with a column. (Of an array each element is, not itself.)
    pub fn compares(&self, source: Source) -> bool {
        let of = |restriction: &Precise| match restriction {
            Precise::Equal { values, .. } => values.iter().flatten().any(|one| *one == source),
            Precise::AnyOf { .. } => false,
            Precise::Range { low, high, .. } => {
                [low, high].into_iter().flatten().any(|(one, _)| *one == source)
            }
        };
        self.tables.iter().filter_map(|table| table.restriction.as_ref()).any(of)
    }

    /// Puts the tags of an answer into `out`, instead of what is there. False: of some table every
    /// row had to be taken although the recipe restricts them; the tags are right all the same.
    pub fn tags(&self, values: &impl Values, tags: &Tags, out: &mut SmallVec<[Tag; 8]>) -> bool {
        out.clear();
        let mut precise = true;
        for (at, table) in self.tables.iter().enumerate() {
            let later = self.tables.len() - at - 1;
            let left = ENTRY_TAGS_MAX.saturating_sub(out.len() + 2 * later);
            put(out, tags.epoch(table.oid));
            let start = out.len();
            let limit = start + left.min(TABLE_TAGS_MAX).saturating_sub(1);
            let run = Run { values, tags, limit };
            let told = match &table.restriction {
                None => {
                    put(out, tags.any(table.oid));
                    continue;
                }
                Some(restriction) => run.put(restriction, out),
            };
            if told.is_err() {
                out.truncate(start);
                put(out, tags.any(table.oid));
                precise = false;
            }
        }
        precise
    }
}

/// A table that is named several times has its tags once.
fn put(out: &mut SmallVec<[Tag; 8]>, tag: Tag) {
    if !out.contains(&tag) {
        out.push(tag);
    }
}

/// One table in one run of a statement.
struct Run<'a, V> {
    values: &'a V,
    tags: &'a Tags,
    /// How many tags there may be in the end.
    limit: usize,
}

impl<V: Values> Run<'_, V> {
    fn put(&self, restriction: &Precise, out: &mut SmallVec<[Tag; 8]>) -> Result<(), Coarse> {
        match restriction {
            Precise::Equal { signature, values } => {
                if signature.form != Form::Equal || values.len() != signature.columns.len() {
                    return Err(Coarse);
                }
                self.add(self.tags.wild(signature), out)?;
                self.product(signature, values, &mut Canonical::new(), out)
            }
            Precise::AnyOf { signature, array } => {
                if signature.form != Form::Equal {
                    return Err(Coarse);
                }
                self.add(self.tags.wild(signature), out)?;
                self.any_of(signature, *array, out)
            }
            Precise::Range { signature, low, high } => {
                if !signature.is_range() {
                    return Err(Coarse);
                }
                self.add(self.tags.wild(signature), out)?;
                self.range(signature, *low, *high, out)
            }
        }
    }

    fn add(&self, tag: Tag, out: &mut SmallVec<[Tag; 8]>) -> Result<(), Coarse> {
        put(out, tag);
        if out.len() <= self.limit {
            Ok(())
        } else {
            Err(Coarse)
        }
    }

    /// A tag for every combination of values; `so_far` has those of the columns before.
    fn product(
        &self,
        signature: &Signature,
        values: &[Vec<Source>],
        so_far: &mut Canonical,
        out: &mut SmallVec<[Tag; 8]>,
    ) -> Result<(), Coarse> {
        let Some((first, rest)) = values.split_first() else {
            return self.add(self.tags.value(signature, so_far), out);
        };
        let kind = signature.columns[signature.columns.len() - values.len()].1;
        for source in first {
            let (value, type_oid) = self.values.get(*source).ok_or(Coarse)?;
            if value == Value::Null {
                continue;
            }
            let start = so_far.len();
            if !put_counted(so_far, |out| put_value(kind, type_oid, value, out)) {
                return Err(Coarse);
            }
            self.product(signature, rest, so_far, out)?;
            so_far.truncate(start);
        }
        Ok(())
    }

    fn any_of(
        &self,
        signature: &Signature,
        array: Source,
        out: &mut SmallVec<[Tag; 8]>,
    ) -> Result<(), Coarse> {
        let [(_, kind)] = *signature.columns else {
            return Err(Coarse);
        };
        let (array, type_oid) = self.values.get(array).ok_or(Coarse)?;
        let of = value::element_oid(type_oid).ok_or(Coarse)?;
        let mut bytes = Canonical::new();
        let mut told = Ok(());
        let mut each = |value: Value<'_>, of: u32| {
            if told.is_err() {
                return;
            }
            bytes.clear();
            told = if put_counted(&mut bytes, |out| put_value(kind, of, value, out)) {
                self.add(self.tags.value(signature, &bytes), out)
            } else {
                Err(Coarse)
            };
        };
        let read = match array {
            Value::Null => Ok(()),
            Value::Text(text) => value::elements(text, |element| {
                if let Element::Value(text) = element {
                    each(Value::Text(text), of);
                }
            }),
            Value::Binary(bytes) => value::elements_binary(bytes, |of, element| {
                if let Element::Value(bytes) = element {
                    each(Value::Binary(bytes), of);
                }
            }),
        };
        read.map_err(|_| Coarse)?;
        told
    }

    fn range(
        &self,
        signature: &Signature,
        low: Option<(Source, bool)>,
        high: Option<(Source, bool)>,
        out: &mut SmallVec<[Tag; 8]>,
    ) -> Result<(), Coarse> {
        let kind = signature.columns[0].1;
        let low = self.bound(kind, low, Side::Low)?;
        let high = self.bound(kind, high, Side::High)?;
        let (Some(low), Some(high)) = (low, high) else {
            return Ok(());
        };
        let room = self.limit.saturating_sub(out.len());
        if room < NODES_MIN {
            return Err(Coarse);
        }
        let mut told = Ok(());
        cover(low, high, room, |level, place| {
            if told.is_ok() {
                told = self.add(self.tags.node(signature, level, place), out);
            }
        });
        told
    }

    /// The outermost value that is meant; None when no value is.
    fn bound(
        &self,
        kind: Kind,
        bound: Option<(Source, bool)>,
        side: Side,
    ) -> Result<Option<i64>, Coarse> {
        let Some((source, inclusive)) = bound else {
            return Ok(Some(if side == Side::Low { i64::MIN } else { i64::MAX }));
        };
        let (value, type_oid) = self.values.get(source).ok_or(Coarse)?;
        if value == Value::Null {
            return Ok(None);
        }
        let mut bytes = Canonical::new();
        if !put_value(kind, type_oid, value, &mut bytes) {
            return Err(Coarse);
        }
        let value = as_i64(kind, &bytes).ok_or(Coarse)?;
        Ok(match side {
            _ if inclusive => Some(value),
            Side::Low => value.checked_add(1),
            Side::High => value.checked_sub(1),
        })
    }
}

/// With fewer tags left a range is not told.
const NODES_MIN: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

pub(crate) fn put_value(kind: Kind, type_oid: u32, value: Value<'_>, out: &mut Canonical) -> bool {
    match value {
        Value::Null => false,
        // A date's input ignores the time behind it.
        Value::Text(text) if kind == Kind::Timestamp && type_oid == oid::DATE => {
            let mut date = Canonical::new();
            canonical(Kind::Date, text, &mut date) && canonical(kind, text, out)
        }
        Value::Text(text) => kind.compares_with(type_oid) && canonical(kind, text, out),
        Value::Binary(bytes) => canonical_binary(kind, type_oid, bytes, out),
    }
}
