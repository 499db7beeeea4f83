//! What happened to the rows of mirrors, one change behind the other in one buffer.
//!
//! ```text
//! change:  mirror u64 | kind u8 | length of the identity u32 | identity | length u32 | fields
//! field:   0 NULL, 1 unchanged, or 2 | length u32 | the stored value
//! ```

use super::table::Field;

/// In order. The bytes are this module's own.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<u8>);

/// One change. Identities are keys, fields as [`put_field`] writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Insert(Fields<'a>),
    Update { identity: &'a [u8], fields: Fields<'a> },
    Delete { identity: &'a [u8] },
    Truncate,
}

/// The fields of a row, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

const INSERT: u8 = 0;
const UPDATE: u8 = 1;
const DELETE: u8 = 2;
const TRUNCATE: u8 = 3;

const NULL: u8 = 0;
const UNCHANGED: u8 = 1;
const VALUE: u8 = 2;

/// Appends a field of a row.
pub(crate) fn put_field(field: Field<'_>, out: &mut Vec<u8>) {
    match field {
        Field::Null => out.push(NULL),
        Field::Unchanged => out.push(UNCHANGED),
        Field::Value(value) => {
            out.push(VALUE);
            put_counted(value, out);
        }
    }
}

fn put_counted(bytes: &[u8], out: &mut Vec<u8>) {
    // No value of PostgreSQL has more than a gigabyte.
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

impl Changes {
    pub(crate) fn put(&mut self, mirror: u64, change: Change<'_>) {
        let (kind, identity, fields) = match change {
            Change::Insert(fields) => (INSERT, &[][..], fields.0),
            Change::Update { identity, fields } => (UPDATE, identity, fields.0),
            Change::Delete { identity } => (DELETE, identity, &[][..]),
            Change::Truncate => (TRUNCATE, &[][..], &[][..]),
        };
        self.0.extend_from_slice(&mirror.to_le_bytes());
        self.0.push(kind);
        put_counted(identity, &mut self.0);
        put_counted(fields, &mut self.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Each with the number of its mirror.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Change<'_>)> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || take(&mut rest))
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = Field<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (kind, behind) = rest.split_first()?;
            rest = behind;
            match *kind {
                NULL => Some(Field::Null),
                UNCHANGED => Some(Field::Unchanged),
                _ => take_counted(&mut rest).map(Field::Value),
            }
        })
    }
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<(u64, Change<'a>)> {
    let (mirror, behind) = rest.split_first_chunk::<8>()?;
    let (kind, behind) = behind.split_first()?;
    *rest = behind;
    let identity = take_counted(rest)?;
    let fields = Fields(take_counted(rest)?);
    let change = match *kind {
        INSERT => Change::Insert(fields),
        UPDATE => Change::Update { identity, fields },
        DELETE => Change::Delete { identity },
        _ => Change::Truncate,
    };
    Some((u64::from_le_bytes(*mirror), change))
}

fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let (bytes, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = behind;
    Some(bytes)
}
