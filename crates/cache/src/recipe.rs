//! What the answer to a statement depends on.

use std::sync::Arc;

pub use sql::Source;

use crate::value::Kind;

/// What the answer to a statement of some shape depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipe {
    pub tables: Vec<TableDeps>,
}

/// One occurrence of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDeps {
    pub oid: u32,
    /// Which of its rows can matter; None: any.
    pub restriction: Option<Precise>,
}

/// Rows that can matter.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, PartialEq, Eq)]
pub struct Signature {
    pub table: u32,
    pub columns: Vec<(String, Kind)>,
    pub form: Form,
}

impl Signature {
    pub fn new(table: u32, columns: Vec<(String, Kind)>, form: Form) -> Signature {
        Signature { table, columns, form }
    }
}
