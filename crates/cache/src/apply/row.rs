//! The tags of one changed row.
//!
//! What is known of the row before depends on the table's replica identity: all of it (FULL); of
//! an UPDATE or DELETE otherwise the key alone, or that the key has not changed. So for a
//! signature within the key old values are always known. For others they are not, and whatever was
//! found by the old ones can't be told: the signature's wild tag is raised, on which every answer
//! with such a restriction depends. The same goes for large values that are not told because they
//! have not changed, and for values that are not understood.

use std::sync::Arc;

use backend::replication::Old;
use smallvec::SmallVec;
use wire::pg::pgoutput::{Field, Relation};

use super::open::Touched;
use crate::cover::ancestors;
use crate::recipe::{put_counted, Form, Signature};
use crate::tags::Tags;
use crate::value::{as_i64, canonical, Canonical, Kind};

/// The fields of a row.
pub(super) type Fields<'a> = SmallVec<[Field<'a>; 32]>;

/// What is known of a row before its change.
#[derive(Debug)]
pub(super) enum Before<'a> {
    /// It was not there.
    Absent,
    /// Its key is the new row's.
    SameKey,
    /// Its key; the other fields say nothing.
    Key(Fields<'a>),
    Whole(Fields<'a>),
}

impl<'a> Before<'a> {
    pub(super) fn of(old: &Old<'a>, relation: &Relation) -> Before<'a> {
        match old {
            Old::Absent => Before::Absent,
            // Had the row been there, all of it would be told.
            Old::Unknown if relation.identity == b'f' => Before::Absent,
            Old::Unknown => Before::SameKey,
            Old::Key(tuple) => Before::Key(tuple.fields().collect()),
            Old::Whole(tuple) => Before::Whole(tuple.fields().collect()),
        }
    }

    fn whole(&self) -> Option<&[Field<'a>]> {
        match self {
            Before::Whole(fields) => Some(fields),
            _ => None,
        }
    }
}

/// A signature and where its columns are in the rows of a relation.
#[derive(Debug)]
pub(super) struct Bound {
    pub signature: Arc<Signature>,
    /// None: the relation has no such columns, or not of these kinds.
    columns: Option<SmallVec<[usize; 4]>>,
    in_key: bool,
}

/// What a row's values under a signature are.
enum Told {
    /// Their canonical bytes have been written.
    Known,
    /// One of them is NULL: no restriction finds the row.
    Null,
    Unknown,
}

impl Bound {
    pub(super) fn new(signature: Arc<Signature>, relation: &Relation) -> Bound {
        let find = |(name, kind): &(String, Kind)| {
            let at = relation.columns.iter().position(|column| column.name == *name)?;
            (Kind::of(relation.columns[at].type_oid) == Some(*kind)).then_some(at)
        };
        let columns: Option<SmallVec<[usize; 4]>> = signature.columns.iter().map(find).collect();
        let keyed = matches!(relation.identity, b'd' | b'i');
        let in_key = keyed
            && columns.iter().flatten().all(|at| relation.columns[*at].key)
            && columns.is_some();
        Bound { signature, columns, in_key }
    }

    /// Adds the tags of a change.
    pub(super) fn touch(
        &self,
        before: &Before<'_>,
        new: Option<&[Field<'_>]>,
        tags: &Tags,
        into: &mut Touched,
    ) {
        let known = match before {
            Before::Absent => true,
            Before::SameKey => self.in_key && new.is_some(),
            Before::Key(fields) => self.in_key && self.touch_values(fields, None, tags, into),
            Before::Whole(fields) => self.touch_values(fields, None, tags, into),
        };
        let told = new.is_none_or(|new| self.touch_values(new, before.whole(), tags, into));
        if !(known && told) {
            into.insert(tags.wild(&self.signature));
        }
    }

    /// Adds the tags of a row with these fields. False: they are not all known.
    fn touch_values(
        &self,
        fields: &[Field<'_>],
        before: Option<&[Field<'_>]>,
        tags: &Tags,
        into: &mut Touched,
    ) -> bool {
        let mut bytes = Canonical::new();
        match self.values(fields, before, &mut bytes) {
            Told::Null => return true,
            Told::Unknown => return false,
            Told::Known => {}
        }
        if self.signature.form == Form::Equal {
            into.insert(tags.value(&self.signature, &bytes));
            return true;
        }
        let Some((_, kind)) = self.signature.columns.first() else {
            return false;
        };
        let Some(value) = as_i64(*kind, bytes.get(4..).unwrap_or_default()) else {
            return false;
        };
        for (level, place) in ancestors(value) {
            into.insert(tags.node(&self.signature, level, place));
        }
        true
    }

    /// `before` has the values of what has not changed, if anything has.
    fn values(
        &self,
        fields: &[Field<'_>],
        before: Option<&[Field<'_>]>,
        out: &mut Canonical,
    ) -> Told {
        let Some(columns) = &self.columns else {
            return Told::Unknown;
        };
        let mut told = Told::Known;
        for (at, (_, kind)) in columns.iter().zip(&self.signature.columns) {
            let field = match fields.get(*at) {
                Some(Field::Unchanged) => before.and_then(|before| before.get(*at)),
                field => field,
            };
            match field {
                Some(Field::Null) => return Told::Null,
                Some(Field::Text(text)) => {
                    if !put_counted(out, |out| canonical(*kind, text, out)) {
                        told = Told::Unknown;
                    }
                }
                Some(Field::Unchanged) | None => told = Told::Unknown,
            }
        }
        told
    }
}
