//! What a statement is and touches, by PostgreSQL's own parser. Run once for each new shape.
//!
//! The analysis knows the text and not the database: it says which names a statement uses, and the
//! catalogues say what they are. What it does not know for certain it does not guess: a statement
//! with a kind of node that is not known here is [`Unparsed`].
//!
//! The parser is that of one version of PostgreSQL, and the server may have another. That does no
//! harm: a text that both understand they understand the same way, and what only the server
//! understands is unparsed here.

use std::fmt;

use crate::scan::{Literal, LiteralKind};
use crate::select::Selected;

mod calls;
mod postgres;
mod reads;
mod select;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod walk;
mod writes;

pub use calls::{Argument, Call};
pub(crate) use postgres::tree as parsed;
pub use postgres::PostgresParser;
pub use reads::{
    Bound, Cast, CastTo, Column, Columns, Condition, Reads, Restriction, Source, TableRead, Test,
};
pub(crate) use tree::{Node, Value};
pub use writes::Write;

/// Something that understands SQL.
pub trait Parser {
    /// What `text` is and touches. `literals` are those that [`crate::Scan`] found in it; they may
    /// be left out when nobody asks for [`Analysis::literals`].
    fn analyse(&self, text: &str, literals: &[Literal]) -> Result<Analysis, Unparsed>;

    /// What `text`, one SELECT, reads, and which rows of it can matter. `literals` as above; those
    /// that are left out are no values of conditions.
    fn reads(&self, text: &str, literals: &[Literal]) -> Result<Reads, Unparsed>;

    /// What `text`, one SELECT, asks for, if it is so simple that it can be answered without
    /// PostgreSQL. `literals` as above; those that are left out are no constants.
    ///
    /// # Errors
    /// Why it is not, in words for people.
    fn select(&self, text: &str, literals: &[Literal]) -> Result<Selected, String>;

    /// Which rows `text`, one INSERT, UPDATE or DELETE, writes. `literals` as above. None: it is
    /// something else.
    fn write(&self, text: &str, literals: &[Literal]) -> Option<Write>;

    /// The call that `text` consists of. `literals` as above. None: it is something else, or more.
    fn call(&self, text: &str, literals: &[Literal]) -> Option<Call>;
}

/// The text is no SQL, or none that this version of the parser knows. The parser's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unparsed(pub String);

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unparsed {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statement {
    /// VALUES and TABLE as well.
    Select,
    Insert,
    Update,
    Delete,
    Merge,
    /// Its first word in upper case, `CREATE`; nothing else is known about it. Empty for no
    /// statement at all.
    Other(&'static str),
}

/// A name as the text has it, folded to lower case unless it was quoted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    pub schema: Option<String>,
    pub name: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// One of [`Analysis::obstacles`].
pub const LOCKS_ROWS: &str = "FOR UPDATE or FOR SHARE locks rows";

/// Lists are sorted and name everything once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// Of the one statement. Of several, the first word of the first as [`Statement::Other`].
    pub statement: Statement,
    pub statements: usize,
    /// Why this can't be a plain read, whatever the catalogues say, in words for people: `FOR
    /// UPDATE or FOR SHARE locks rows`.
    pub obstacles: Vec<&'static str>,
    /// What is read, without the names that WITH gives. What WITH changes is here as well.
    pub relations: Vec<Name>,
    /// The target of INSERT, UPDATE, DELETE, MERGE.
    pub written: Option<Name>,
    /// Whatever is called like a function, also by another syntax: `EXTRACT` is
    /// `pg_catalog.extract`, a sampling method is one. CURRENT_TIMESTAMP and its like are not
    /// here; they are harmless.
    pub functions: Vec<Name>,
    /// Whatever is looked up as an operator, also through IN, LIKE, BETWEEN, USING and others. Those
    /// that come with a type's default order (GROUP BY, ORDER BY, UNION) are not looked up by name.
    pub operators: Vec<Name>,
    /// Of casts and of column definitions.
    pub types: Vec<Name>,
    /// The last names of column references with a qualifier and of field selections: `t.f` is
    /// `f(t)` if `t` has no column `f`.
    pub columns: Vec<String>,
    /// The highest number of a parameter, `$1`; 0 for none.
    pub parameters: u32,
    /// For each literal that was passed, in order: may it become a parameter?
    pub literals: Vec<Use>,
    /// Some of those that may are texts that INSERT or UPDATE assigns. If the target has a column
    /// of type `interval` with a modifier (`interval day`), they may not: PostgreSQL reads the
    /// literal `'5'` as 5 days then, and a parameter as 5 seconds (`coerce_type`, parse_coerce.c).
    pub assigns_texts: bool,
}

/// Whether a literal may become a parameter without a difference in what the statement does.
///
/// What is wrong with a value or its type may be found at another moment, and so be told in other
/// words or behind another error. That is always before the statement runs: who prepared it, and
/// gets an error for Parse or Bind, can still send it as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// A parameter of the type with this oid. 0: of unknown type, to be inferred from its
    /// surroundings like that of a literal in quotes.
    Parameter(u32),
    /// It has to stay what it is.
    Fixed,
}

impl LiteralKind {
    /// The type's oid in pg_type; 0 for `unknown`.
    pub const fn oid(self) -> u32 {
        match self {
            LiteralKind::Int4 => 23,
            LiteralKind::Int8 => 20,
            LiteralKind::Numeric => 1700,
            LiteralKind::Text => 0,
        }
    }
}
