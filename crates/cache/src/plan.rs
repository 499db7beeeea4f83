//! What is known of a statement whose results may be kept.

use crate::recipe::{Recipe, Source};

/// A literal or parameter, and the type that PostgreSQL gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub source: Source,
    pub type_oid: u32,
}

/// Made once for a statement as one user sees it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Tells it from every other, also from an earlier one of the same text after its tables have
    /// changed.
    pub id: u64,
    pub recipe: Recipe,
    /// All literals and parameters, in one order for all texts of this statement.
    pub slots: Vec<Slot>,
    /// Its results depend on settings such as TimeZone.
    pub settings: bool,
    /// What the applier must have seen before an answer may be kept.
    pub generation: u64,
}
