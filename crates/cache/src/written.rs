//! What a statement that writes may change of what answers depend on, by its text and values.
//!
//! It is what the applier will find in the stream, told before that: the same tags, or *wild* where
//! the statement does not say which values the rows have.

use smallvec::SmallVec;
pub use sql::Source;

use crate::acks::Place;
use crate::cover::ancestors;
use crate::recipe::{put_counted, put_value, Form, Signature, Value};
use crate::request::Asked;
use crate::shared::Shared;
use crate::tags::Tags;
use crate::value::{as_i64, oid, Canonical, Kind};

/// Where one statement is counted, or one transaction.
pub type Places = SmallVec<[Place; 4]>;

/// Most places of a transaction; one that has written more has written anything.
const PLACES_MAX: usize = 256;

/// Rows of one table that a statement of some shape writes, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    pub table: u32,
    pub inserts: bool,
    /// Values that every row has before it is written, or, if it is inserted, afterwards.
    pub fixed: Vec<(String, Source)>,
    /// Columns that get other values.
    pub assigned: Vec<String>,
}

/// Adds to what a transaction has written.
pub fn add(places: &mut Places, more: &[Place]) {
    if places.first() == Some(&Place::ANYTHING) {
        return;
    }
    for place in more {
        if *place == Place::ANYTHING || places.len() >= PLACES_MAX {
            places.clear();
            places.push(Place::ANYTHING);
            return;
        }
        if !places.contains(place) {
            places.push(*place);
        }
    }
}

/// Where rows of any table of a schema are counted.
pub fn of_schema(shared: &Shared, schema: &str) -> Places {
    let mut out = Places::new();
    let list = shared.watch.list();
    let published = shared.published();
    for table in published.values().filter(|table| table.schema == schema) {
        add(&mut out, &[Place::of(shared.tags.any(table.oid))]);
        for watched in list.of(table.oid) {
            add(&mut out, &[Place::of(shared.tags.wild(&watched.signature))]);
        }
    }
    out
}

impl Written {
    /// Where a run of the statement is counted.
    pub fn places(&self, asked: &Asked<'_>, shared: &Shared) -> Places {
        let (published, parts) = (shared.published(), shared.parts());
        let mut out = Places::new();
        let ancestors = match published.get(&self.table) {
            Some(table) => &table.ancestors[..],
            // It may be a new part of any that has parts; else nothing is kept of it.
            None if !parts.is_empty() => {
                out.push(Place::ANYTHING);
                return out;
            }
            None => return out,
        };
        let tags = &shared.tags;
        let list = shared.watch.list();
        let below = parts.get(&self.table).into_iter().flatten();
        for oid in std::iter::once(&self.table).chain(ancestors).chain(below) {
            add(&mut out, &[Place::of(tags.any(*oid))]);
            for signature in list.of(*oid).iter().map(|watched| &watched.signature) {
                if !self.put_rows(signature, asked, tags, &mut out) {
                    add(&mut out, &[Place::of(tags.wild(signature))]);
                }
            }
        }
        out
    }

    /// False: it is not known which rows they are under this signature.
    fn put_rows(
        &self,
        signature: &Signature,
        asked: &Asked<'_>,
        tags: &Tags,
        out: &mut Places,
    ) -> bool {
        let Some(values) = self.values(signature, asked) else { return false };
        if signature.columns.iter().any(|(name, _)| self.assigned.contains(name)) {
            return false;
        }
        if signature.form == Form::Equal {
            add(out, &[Place::of(tags.value(signature, &values))]);
            return true;
        }
        let [(_, kind)] = signature.columns[..] else { return false };
        // The value itself is behind its length.
        let value = values.get(4..).and_then(|value| as_i64(kind, value));
        let Some(value) = value else { return false };
        for (level, place) in ancestors(value) {
            add(out, &[Place::of(tags.node(signature, level, place))]);
        }
        true
    }

    /// The values that rows have under a signature, if the statement says them.
    fn values(&self, signature: &Signature, asked: &Asked<'_>) -> Option<Canonical> {
        let mut out = Canonical::new();
        for (name, kind) in &signature.columns {
            let (_, source) = self.fixed.iter().find(|(fixed, _)| fixed == name)?;
            // Others may be rounded, cut or padded on their way into the column.
            if self.inserts && !matches!(kind, Kind::Int | Kind::Bool | Kind::Uuid) {
                return None;
            }
            put_given(*kind, *source, asked, &mut out)?;
        }
        Some(out)
    }
}

/// Appends the canonical bytes of a value that comes with a statement. None: it is NULL, or not
/// known for certain.
pub fn put_given(kind: Kind, source: Source, asked: &Asked<'_>, out: &mut Canonical) -> Option<()> {
    let mut text = Vec::new();
    let (value, type_oid) = match source {
        Source::Literal(at) => {
            let literal = asked.literals.get(at as usize)?;
            literal.put_value(asked.text, &mut text);
            (Value::Text(&text), literal.kind.oid())
        }
        Source::Parameter(number) => {
            let (bind, types) = asked.bind?;
            let at = (number as usize).checked_sub(1)?;
            let declared = types.get(2 + at * 4..6 + at * 4);
            let declared =
                declared.and_then(|oid| oid.try_into().ok()).map_or(0, u32::from_be_bytes);
            match bind.values().nth(at)? {
                (_, None) => return None,
                (true, Some(bytes)) => (Value::Binary(bytes), typed(kind, declared, bytes)),
                (false, Some(bytes)) => (Value::Text(bytes), declared),
            }
        }
    };
    let readable = match value {
        Value::Text(bytes) | Value::Binary(bytes) => asked.utf8 || bytes.is_ascii(),
        Value::Null => false,
    };
    (readable && put_counted(out, |out| put_value(kind, type_oid, value, out))).then_some(())
}

/// The type of a binary value: the declared one, or else that of the column.
fn typed(kind: Kind, declared: u32, bytes: &[u8]) -> u32 {
    if declared != 0 {
        return declared;
    }
    match (kind, bytes.len()) {
        (Kind::Int, 2) => oid::INT2,
        (Kind::Int, 4) => oid::INT4,
        (Kind::Int, _) => oid::INT8,
        (Kind::Bool, _) => oid::BOOL,
        (Kind::Bytes, _) => oid::TEXT,
        (Kind::Padded, _) => oid::BPCHAR,
        (Kind::Uuid, _) => oid::UUID,
        (Kind::Numeric, _) => oid::NUMERIC,
        (Kind::Date, _) => oid::DATE,
        (Kind::Timestamp, _) => oid::TIMESTAMP,
        (Kind::TimestampTz, _) => oid::TIMESTAMPTZ,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use backend::replication::PublishedTable;
    use sql::Scan;
    use wire::pg::frontend::{bind_tail, put_bind};

    use super::*;
    use crate::plan::Family;
    use crate::recipe::{Precise, Recipe, TableDeps};

    const TABLE: u32 = 7;

    fn signature(columns: &[(&str, Kind)], form: Form) -> Arc<Signature> {
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        Arc::new(Signature::new(TABLE, columns, form))
    }

    /// A database that watches these.
    fn watching(signatures: &[Arc<Signature>]) -> (Arc<Shared>, Vec<Family>) {
        let shared = Arc::new(Shared::new(Tags::new(1 << 20, 3), Box::new(|| {})));
        let table = PublishedTable {
            oid: TABLE,
            schema: "public".to_owned(),
            name: "t".to_owned(),
            partitioned: false,
            ancestors: vec![9],
        };
        shared.begin(1, HashMap::from([(TABLE, table)]));
        let family = |signature: &Arc<Signature>| {
            let restriction = match signature.form {
                Form::Equal => {
                    Precise::AnyOf { signature: signature.clone(), array: Source::Parameter(1) }
                }
                Form::Range => {
                    Precise::Range { signature: signature.clone(), low: None, high: None }
                }
            };
            let tables = vec![TableDeps { oid: TABLE, restriction: Some(restriction) }];
            Family::new(shared.clone(), 1, Recipe { tables }, false, None)
        };
        let families = signatures.iter().map(family).collect();
        (shared, families)
    }

    fn update(fixed: &[(&str, Source)], assigned: &[&str]) -> Written {
        let fixed = fixed.iter().map(|(name, source)| ((*name).to_owned(), *source)).collect();
        let assigned = assigned.iter().map(|name| (*name).to_owned()).collect();
        Written { table: TABLE, inserts: false, fixed, assigned }
    }

    fn value(shared: &Shared, signature: &Signature, id: i64) -> Place {
        let mut bytes = vec![0, 0, 0, 8];
        bytes.extend_from_slice(&id.to_be_bytes());
        Place::of(shared.tags.value(signature, &bytes))
    }

    fn by_text(written: &Written, shared: &Shared, text: &str) -> Places {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()));
        let literals = scan.literals();
        let asked = Asked { text: text.as_bytes(), literals, utf8: true, bind: None };
        written.places(&asked, shared)
    }

    #[test]
    fn rows_that_are_named_are_counted_where_answers_with_them_look() {
        let id = signature(&[("id", Kind::Int)], Form::Equal);
        let ranges = signature(&[("id", Kind::Int)], Form::Range);
        let other = signature(&[("id", Kind::Int), ("k", Kind::Int)], Form::Equal);
        let (shared, _families) = watching(&[id.clone(), ranges.clone(), other.clone()]);
        let tags = &shared.tags;
        let wild = |signature| Place::of(tags.wild(signature));
        let written = update(&[("id", Source::Literal(1))], &["k"]);
        let text = "update t set k = 3 where id = 42";
        let places = by_text(&written, &shared, text);
        for expected in
            [Place::of(tags.any(TABLE)), Place::of(tags.any(9)), value(&shared, &id, 42)]
        {
            assert!(places.contains(&expected), "{places:?}");
        }
        assert!(places.contains(&wild(&other)), "k is not said");
        assert!(!places.contains(&wild(&id)) && !places.contains(&value(&shared, &id, 43)));
        let node = |place| Place::of(tags.node(&ranges, 0, place));
        let at = |value: i64| ancestors(value).next().map(|(_, place)| node(place));
        assert!(places.contains(&at(42).unwrap()) && !places.contains(&at(1 << 40).unwrap()));
        let moved = update(&[("id", Source::Literal(1))], &["id"]);
        let places = by_text(&moved, &shared, text);
        assert!(places.contains(&wild(&id)) && places.contains(&wild(&ranges)), "{places:?}");
        let unknown = by_text(&update(&[], &[]), &shared, "delete from t");
        assert!(unknown.contains(&wild(&id)) && unknown.contains(&wild(&ranges)), "{unknown:?}");
    }

    #[test]
    fn parameters_are_read_in_both_formats_and_by_their_types() {
        let id = signature(&[("id", Kind::Int)], Form::Equal);
        let (shared, _families) = watching(std::slice::from_ref(&id));
        let written = update(&[("id", Source::Parameter(1))], &[]);
        let ask = |value: Option<&[u8]>, binary: bool, types: &[u8]| {
            let mut message = Vec::new();
            put_bind(&mut message, b"", b"", &[value]);
            // Behind the header and two empty names.
            let mut tail = message[7..].to_vec();
            if binary {
                tail.splice(0..2, [0, 1, 0, 1]);
            }
            let bind = Some((bind_tail(&tail).expect("a whole one"), types));
            let asked = Asked { text: b"", literals: &[], utf8: true, bind };
            written.places(&asked, &shared)
        };
        let named = value(&shared, &id, 42);
        let wild = Place::of(shared.tags.wild(&id));
        let int8 = [0, 1, 0, 0, 0, oid::INT8 as u8];
        let float8 = [&[0, 1][..], &701_u32.to_be_bytes()].concat();
        assert!(ask(Some(b"42"), false, &[0, 0]).contains(&named));
        assert!(ask(Some(&42_i32.to_be_bytes()), true, &[0, 0]).contains(&named));
        assert!(ask(Some(&42_i64.to_be_bytes()), true, &int8).contains(&named));
        for places in [
            ask(None, false, &[0, 0]),
            ask(Some(b"42"), false, &float8),
            ask(Some(b"now"), false, &[0, 0]),
            ask(Some(&[1, 2, 3]), true, &[0, 0]),
        ] {
            assert!(places.contains(&wild) && !places.contains(&named), "{places:?}");
        }
    }

    #[test]
    fn what_is_rounded_on_its_way_into_a_column_is_not_believed() {
        let price = signature(&[("price", Kind::Numeric)], Form::Equal);
        let (shared, _families) = watching(std::slice::from_ref(&price));
        let wild = Place::of(shared.tags.wild(&price));
        let mut written = update(&[("price", Source::Literal(0))], &[]);
        let text = "insert into t (price) values (1.234)";
        assert!(!by_text(&written, &shared, text).contains(&wild));
        written.inserts = true;
        assert!(by_text(&written, &shared, text).contains(&wild));
    }

    #[test]
    fn what_a_table_is_a_part_of_and_its_parts_are_written_with_it() {
        let (shared, _families) = watching(&[]);
        let mut written = update(&[], &[]);
        let any = |oid| Place::of(shared.tags.any(oid));
        assert_eq!(by_text(&written, &shared, "delete from t")[..], [any(TABLE), any(9)]);
        let mut tables = HashMap::clone(&shared.published());
        let whole = PublishedTable { oid: 9, ancestors: Vec::new(), ..tables[&TABLE].clone() };
        tables.insert(9, PublishedTable { partitioned: true, ..whole });
        shared.publish(tables);
        written.table = 9;
        assert_eq!(by_text(&written, &shared, "delete from t")[..], [any(9), any(TABLE)]);
        written.table = 8;
        assert_eq!(by_text(&written, &shared, "delete from t")[..], [Place::ANYTHING], "a new one");
        shared.publish(HashMap::new());
        assert!(by_text(&written, &shared, "delete from t").is_empty(), "nothing is kept of it");
    }

    #[test]
    fn a_transaction_that_writes_a_lot_has_written_anything() {
        let tags = Tags::new(1 << 20, 3);
        let mut places = Places::new();
        (0..200).for_each(|table| add(&mut places, &[Place::of(tags.any(table))]));
        assert!(places.len() > 190 && !places.contains(&Place::ANYTHING));
        (200..400).for_each(|table| add(&mut places, &[Place::of(tags.any(table))]));
        assert_eq!(places[..], [Place::ANYTHING]);
        add(&mut places, &[Place::of(tags.any(7))]);
        assert_eq!(places[..], [Place::ANYTHING]);
    }
}
