//! Values as they are sent, and as a judge reads them.

use cache::value::oid as types;
use wire::pg::backend::Column;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Int4(i32),
    Int8(i64),
    Text(String),
}

impl Cell {
    /// Its field in a DataRow.
    pub(crate) fn bytes(&self, format: i16) -> Option<Vec<u8>> {
        match (self, format) {
            (Cell::Null, _) => None,
            (Cell::Int4(value), 1) => Some(value.to_be_bytes().to_vec()),
            (Cell::Int8(value), 1) => Some(value.to_be_bytes().to_vec()),
            (other, _) => Some(other.show().into_bytes()),
        }
    }

    fn show(&self) -> String {
        match self {
            Cell::Null => "-".to_owned(),
            Cell::Int4(value) => value.to_string(),
            Cell::Int8(value) => value.to_string(),
            Cell::Text(text) => text.clone(),
        }
    }

    fn of(bytes: Option<&[u8]>, column: &Column<'_>) -> Option<Cell> {
        let Some(bytes) = bytes else { return Some(Cell::Null) };
        let text = || std::str::from_utf8(bytes).ok();
        Some(match (column.oid, column.format) {
            (types::INT4, 1) => Cell::Int4(i32::from_be_bytes(bytes.try_into().ok()?)),
            (types::INT8, 1) => Cell::Int8(i64::from_be_bytes(bytes.try_into().ok()?)),
            (types::INT4, _) => Cell::Int4(text()?.parse().ok()?),
            (types::INT8, _) => Cell::Int8(text()?.parse().ok()?),
            _ => Cell::Text(text()?.to_owned()),
        })
    }
}

/// Rows in one text.
pub(crate) fn show(rows: &[Vec<Cell>]) -> String {
    let row = |row: &Vec<Cell>| row.iter().map(Cell::show).collect::<Vec<_>>().join(".");
    rows.iter().map(row).collect::<Vec<_>>().join(",")
}

/// The cells of a DataRow's body. None: it is not of these columns.
pub(crate) fn parse(body: &[u8], columns: &[Column<'_>]) -> Option<Vec<Cell>> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut cells = Vec::new();
    for column in columns {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let (bytes, behind) = match length {
            Some(length) => behind.split_at_checked(length).map(|(a, b)| (Some(a), b))?,
            None => (None, behind),
        };
        cells.push(Cell::of(bytes, column)?);
        rest = behind;
    }
    let all = usize::from(u16::from_be_bytes(*count)) == columns.len() && rest.is_empty();
    all.then_some(cells)
}
