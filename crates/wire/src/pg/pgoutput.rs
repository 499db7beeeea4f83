//! Rows as the output plugin `pgoutput` tells them.
//!
//! Source: PostgreSQL docs, "Logical Replication Message Formats", TupleData.

use super::frame::WireError;
use super::read::Reader;

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
