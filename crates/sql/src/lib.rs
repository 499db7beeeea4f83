//! What a statement is and touches.
//!
//! Three readers, from the cheapest to the dearest. [`leading()`] reads the first words of a text.
//! [`Scan`] reads all of it and tells its shape: the text without the values of its literals. Both
//! are for the hot path and never allocate at steady state. A [`Parser`] understands a text; it is
//! asked once for each shape.

mod analysis;
mod keeps;
mod leading;
mod mention;
mod normal;
pub mod procedure;
mod scan;
mod select;
mod session;
mod touch;

pub use analysis::{
    Analysis, Argument, Bound, Call, Cast, CastTo, Column, Columns, Condition, Name, Parser,
    PostgresParser, Reads, Restriction, Source, Statement, TableRead, Test, Unparsed, Use, Write,
    LOCKS_ROWS,
};
pub use keeps::{Deeds, Kept};
pub use leading::{after, blank, leading, next_word, says, Dropped, Leading};
pub use mention::{executed, may_mention, mentions, prepared, Mention};
pub use normal::{normal, normal_with};
pub use scan::{FirstWord, Literal, LiteralKind, Scan, LITERALS_MAX, TEXT_MAX};
pub use select::{Comparison, Filter, Order, Output, Select, Selected, Written};
pub use session::{begins_read_only, leaves, transaction, Isolation, Leaves, Transaction};
pub use touch::{dotted_names, touches, Touch};
