//! One row of each table.

use super::super::class::Class;
use super::super::plan::At;
use super::super::table::Table;

/// Columns are those of a [`Plan`](super::Plan), which has seen that they are there.
#[derive(Clone, Copy)]
pub(in super::super) struct Rows<'a> {
    pub tables: &'a [&'a Table],
    /// By the table's place; of those that are not looked at yet it means nothing.
    pub ids: &'a [u32],
}

impl<'a> Rows<'a> {
    pub fn field(&self, (table, column): At) -> Option<&'a [u8]> {
        let table = usize::from(table);
        self.tables[table].field(self.ids[table], column)
    }

    pub fn class(&self, at: At) -> Class {
        class(self.tables, at)
    }
}

pub(super) fn class(tables: &[&Table], (table, column): At) -> Class {
    tables[usize::from(table)].definition().columns[usize::from(column)].class
}
