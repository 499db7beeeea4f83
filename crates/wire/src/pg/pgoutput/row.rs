//! Tables and their rows.
//!
//! Source: "Logical Replication Message Formats", Relation and TupleData.

use crate::pg::frame::WireError;
use crate::pg::read::Reader;
use crate::pg::write::{count, cstr};

/// A table as the stream describes it before its first row, and again when it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub oid: u32,
    /// Empty for `pg_catalog`.
    pub schema: String,
    pub name: String,
    /// `relreplident`: `d` (primary key), `n` (nothing), `f` (whole rows) or `i` (an index).
    pub identity: u8,
    pub columns: Vec<RelationColumn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationColumn {
    pub name: String,
    pub type_oid: u32,
    pub modifier: i32,
    /// It is part of the replica identity.
    pub key: bool,
}

/// A column with this flag is part of the replica identity.
const KEY: u8 = 1;

impl Relation {
    /// Takes a Relation off the front. A name that is not UTF-8 (the database may have no
    /// encoding) gets marks where it is not.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Relation, WireError> {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let oid = reader.u32("oid of a relation")?;
        let schema = text(reader.cstr("schema of a relation")?);
        let name = text(reader.cstr("name of a relation")?);
        let identity = reader.u8("replica identity")?;
        let mut columns = Vec::new();
        for _ in 0..reader.u16("columns of a relation")? {
            columns.push(RelationColumn {
                key: reader.u8("flags of a column")? & KEY != 0,
                name: text(reader.cstr("name of a column")?),
                type_oid: reader.u32("type of a column")?,
                modifier: reader.i32("type modifier of a column")?,
            });
        }
        Ok(Relation { oid, schema, name, identity, columns })
    }
}

pub(super) fn put_relation(out: &mut Vec<u8>, relation: &Relation) {
    out.extend_from_slice(&relation.oid.to_be_bytes());
    cstr(out, relation.schema.as_bytes());
    cstr(out, relation.name.as_bytes());
    out.push(relation.identity);
    count(out, relation.columns.len());
    for column in &relation.columns {
        out.push(if column.key { KEY } else { 0 });
        cstr(out, column.name.as_bytes());
        out.extend_from_slice(&column.type_oid.to_be_bytes());
        out.extend_from_slice(&column.modifier.to_be_bytes());
    }
}

/// One column of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field<'a> {
    Null,
    /// A large value that the change has left as it was, and that is not told.
    Unchanged,
    Text(&'a [u8]),
}

/// A row: the columns of its relation, in order. It has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuple<'a> {
    columns: u16,
    fields: &'a [u8],
}

impl<'a> Tuple<'a> {
    /// A row from its TupleData, as [`put_tuple`] writes it.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn parse(data: &'a [u8]) -> Result<Tuple<'a>, WireError> {
        let mut reader = Reader::new(data);
        let tuple = Tuple::read(&mut reader)?;
        reader.end("a row")?;
        Ok(tuple)
    }

    /// Takes a TupleData off the front.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Tuple<'a>, WireError> {
        let columns = reader.u16("columns of a row")?;
        let all = reader.rest();
        for _ in 0..columns {
            field(reader)?;
        }
        let fields = &all[..all.len() - reader.rest().len()];
        Ok(Tuple { columns, fields })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.columns.to_be_bytes());
        out.extend_from_slice(self.fields);
    }

    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        let mut reader = Reader::new(self.fields);
        (0..self.columns).map_while(move |_| field(&mut reader).ok())
    }
}

fn field<'a>(reader: &mut Reader<'a>) -> Result<Field<'a>, WireError> {
    match reader.u8("kind of a column")? {
        b'n' => Ok(Field::Null),
        b'u' => Ok(Field::Unchanged),
        b't' => {
            let length = reader.u32("length of a column")? as usize;
            reader.bytes(length, "value of a column").map(Field::Text)
        }
        got => Err(WireError::Unexpected { what: "kind of a column", got: got.into() }),
    }
}

/// Appends a TupleData; at most 65535 fields.
pub fn put_tuple(out: &mut Vec<u8>, fields: &[Field<'_>]) {
    count(out, fields.len());
    for field in fields {
        match field {
            Field::Null => out.push(b'n'),
            Field::Unchanged => out.push(b'u'),
            Field::Text(text) => {
                out.push(b't');
                out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                out.extend_from_slice(text);
            }
        }
    }
}
