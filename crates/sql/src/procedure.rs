//! What a function or procedure does to tables, so that calls that would fight for the same rows
//! can travel in one lane.
//!
//! ```text
//! Definition --parse()--> bytes --read()--> Analysis ---.
//!              (a child process)                        |
//! Facts (catalogues), called functions --> Closure -----+--> derive() --> Derived: key, words
//! ```
//!
//! [`parse`] is the only step that calls PostgreSQL's PL/pgSQL parser. Some bodies make that
//! parser end the process, and it moves the process's standard error about while it works, so its
//! caller runs it in a process of its own and sends the bytes back. [`read`] and all that follows
//! call only what [`crate::PostgresParser`] calls for every statement.
//!
//! Nothing here decides whether an answer is right: a key that is wrong or missing costs speed. So
//! what is not understood for certain is no condition, and no footprint comes of it. With hazards
//! it is the other way around: what is not understood is told.
//!
//! # When a name is an argument
//!
//! A parameter counts if it keeps the value it was called with: it is never assigned (`:=`, INTO,
//! FOR, FETCH, GET DIAGNOSTICS), and no other variable of the body has its name. Whether a CALL
//! writes to what it is passed, its definition says: [`Equality::kept`]. A variable that is assigned once, from a parameter alone, counts as that parameter; so does an
//! ALIAS. Where a column may have the name as well, the language decides (`#variable_conflict`;
//! LANGUAGE sql prefers columns), and where that means the column, the condition holds only if the
//! catalogues say that there is none: [`Equality::provided`].

mod advice;
mod body;
mod closure;
mod equalities;
mod facts;
mod footprints;
mod hazards;
mod lanes;
mod names;
mod source;
mod statements;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::analysis::Name;

pub use closure::{Closure, Summary, Wanted, DEPTH_MAX, OBJECTS_MAX};
pub use facts::{Facts, ForeignKey, Relation, RelationKind};
pub use footprints::{footprints, Footprint};
pub use hazards::{Hazard, HazardKind, Ride};
pub use lanes::{derive, dimensions, Derived, Procedure};
pub use source::{parse, SOURCE_MAX};

/// A function or procedure as `pg_proc` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub schema: String,
    pub name: String,
    /// `plpgsql` or `sql`; others are refused.
    pub language: String,
    /// `prosrc`. For an SQL-standard body (`prosqlbody`) the text of `pg_get_functiondef`.
    pub source: String,
    /// All of them, OUT and TABLE included, in order.
    pub arguments: Vec<Argument>,
    /// As `pg_get_function_result` has it: `SETOF integer`, `trigger`. Empty for a procedure.
    pub returns: String,
    pub is_procedure: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Empty if it has none.
    pub name: String,
    /// As `format_type` has it.
    pub type_name: String,
    pub mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    #[default]
    In,
    Out,
    InOut,
    Variadic,
    Table,
}

impl Mode {
    /// A value comes in with the call.
    pub fn is_input(self) -> bool {
        matches!(self, Mode::In | Mode::InOut | Mode::Variadic)
    }
}

impl Definition {
    pub fn title(&self) -> Name {
        Name { schema: Some(self.schema.clone()), name: self.name.clone() }
    }

    /// `p_w`, or `$1` for one without a name.
    pub fn argument_name(&self, argument: usize) -> String {
        match self.arguments.get(argument) {
            Some(Argument { name, .. }) if !name.is_empty() => name.clone(),
            _ => format!("${}", argument + 1),
        }
    }

    /// Which argument the `position`th expression of a call is, counted from 0. A CALL has one for
    /// each argument, a function only for what goes in.
    pub fn argument_at(&self, position: usize) -> Option<usize> {
        let written = |argument: &Argument| self.is_procedure || argument.mode.is_input();
        let mut places = (0..self.arguments.len()).filter(|place| written(&self.arguments[*place]));
        places.nth(position)
    }
}

/// What a body does, by its text alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// In the order of the body.
    pub touches: Vec<Touch>,
    pub hazards: Vec<Hazard>,
    /// The line of the first exception handler. One may catch the error of a `lock_timeout`, so
    /// that its caller never hears of it.
    pub handles_errors: Option<u32>,
    /// One of the handlers catches 55P03: WHEN OTHERS, `lock_not_available` or its class.
    pub catches_lock_timeout: bool,
    /// Functions and procedures that are called, those of operators and casts not included.
    pub functions: BTreeSet<Name>,
    /// Every relation that is named, however it is used: one may be a view or have triggers.
    pub relations: BTreeSet<Name>,
    /// The statements of the outermost level, for advice about their order.
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TouchKind {
    Read,
    /// FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE, FOR KEY SHARE.
    Lock,
    Insert,
    Update,
    Delete,
    Merge,
    Truncate,
    LockTable,
    /// CREATE, ALTER, DROP and all else that is no statement on rows.
    Ddl,
    /// Of a function or procedure.
    Call,
    /// EXECUTE of a text that is made up while it runs.
    Dynamic,
}

/// One use of a table, or a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    pub kind: TouchKind,
    /// The table, the function. Empty for [`TouchKind::Dynamic`].
    pub name: Name,
    /// Of its statement, counted from 1 at the first line of the body.
    pub line: u32,
    /// Which statement of the body it belongs to, counted from 0.
    pub order: u32,
    pub in_loop: bool,
    /// Under IF, CASE or an exception handler: it may not happen.
    pub in_branch: bool,
    /// Hold for every row that is touched.
    pub equalities: Vec<Equality>,
    /// Of a call: what its expressions are, by position. Of an INSERT without a list of columns:
    /// the values of its only row.
    pub passed: Vec<Option<Operand>>,
}

/// `column = operand`, one of several that all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equality {
    pub column: String,
    pub operand: Operand,
    /// Columns that must not exist, else something else is meant.
    pub provided: Vec<Lacks>,
    /// What must not be written to, else the argument has another value. A [`Closure`] knows.
    pub kept: Vec<Kept>,
}

/// The procedure does not write to what it is passed here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kept {
    pub routine: Name,
    /// Of the expression in the CALL, from 0.
    pub position: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operand {
    /// The value that the argument at this place in [`Definition::arguments`] was called with.
    Argument(usize),
    /// As the text has it.
    Constant(String),
}

/// `relation` has no column of this name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lacks {
    pub relation: Name,
    pub column: String,
}

/// A statement of the outermost level, with all that is inside of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    pub line: u32,
    /// Places in [`Analysis::touches`].
    pub touches: Vec<usize>,
    /// It is one SQL statement, not IF, LOOP or a block.
    pub plain: bool,
    /// Names that may be variables, `r.f` for a field.
    pub uses: BTreeSet<String>,
    pub assigns: BTreeSet<String>,
    /// It may end the call: RETURN, or an EXIT of a block.
    pub leaves: bool,
}

/// Understands what [`parse`] made of this definition.
///
/// # Errors
///
/// The bytes are not those of [`parse`], or a statement in the body is not understood; in words
/// for people.
pub fn read(definition: &Definition, bytes: &[u8]) -> Result<Analysis, String> {
    let tree = source::open(bytes)?;
    let body = body::Body::of(definition, &tree)?;
    statements::analyse(definition, &body)
}
