//! What a statement is and touches.
//!
//! [`leading()`] is a scanner for the hot path: it reads the first words of a text and never
//! allocates. It knows just what the pooler has to know before a statement is sent.

mod analysis;
mod leading;

pub use analysis::Use;
pub use leading::{leading, says, Dropped, Leading};
