//! The traps of caching, each by its number: what makes a kept answer wrong, or wrong for whoever
//! gets it.
//!
//! A test that is never answered from the cache proves nothing, so every one of them looks whether
//! it was: `EXPLAIN LAST STATEMENT` says so.

mod auditing;
mod beginnings;
mod collations;
mod cost;
mod definitions;
mod formats;
mod identity;
mod judgement;
mod mirroring;
pub mod place;
mod reloads;
mod rights;
mod sharing;
mod streams;
mod values;
mod visible;
mod waiting;
mod written;
