//! One client's protocol state: how it logs in, what it has prepared, what it is waiting for.
//!
//! Nothing here has a socket or a clock; a worker's plane owns the sessions and moves the bytes.

pub mod address_name;
pub mod cache_commands;
pub mod cancel_key;
pub mod client;
pub mod encoding;
pub mod explain;
pub mod listens;
pub mod login;
pub mod names;
pub mod options;
pub mod replan;
pub mod trace;
pub mod unit;
mod words;
