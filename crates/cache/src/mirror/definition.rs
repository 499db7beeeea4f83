//! What of a table is mirrored.

use std::sync::Arc;

use super::class::{Class, Collation};

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `pg_attribute.attnum`.
    pub attnum: i16,
    pub type_oid: u32,
    pub type_modifier: i32,
    pub class: Class,
    pub collation: Collation,
    pub not_null: bool,
    /// Of an enum, in the order of its values.
    pub labels: Arc<[String]>,
}

impl Column {
    /// As [`Class::compares_with`]; an enum with values of its own type.
    pub fn compares_with(&self, type_oid: u32) -> bool {
        let own = self.class != Class::Opaque && self.type_oid == type_oid;
        own || self.class.compares_with(type_oid)
    }
}

/// A table as it was when somebody looked at the catalogues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub oid: u32,
    /// `pg_class.relfilenode`: a rewritten table has another.
    pub filenode: u32,
    pub schema: String,
    pub name: String,
    /// Those that are mirrored, in order of `attnum`.
    pub columns: Vec<Column>,
    /// Places in `columns` of the replica identity's.
    pub identity: Vec<u16>,
}
