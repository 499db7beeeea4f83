//! The PostgreSQL frontend/backend protocol, version 3.
//!
//! ```text
//! first packets of a client   | length i32 | code i32 | payload ...      startup.rs
//! every other message         | tag u8 | length i32 | body ...           frame.rs
//!                                        ^ counts itself, not the tag
//! ```
//!
//! `frontend` reads and writes what clients send, `backend` what servers send, `auth` holds the
//! steps of md5 and SCRAM-SHA-256, `sqlstate` the error codes a pooler uses, `replication` what
//! travels in CopyData while a server streams its changes, `pgoutput` those changes. Parsers take
//! the *body*: the bytes after the length word.
//!
//! Source: PostgreSQL documentation, "Frontend/Backend Protocol".

pub mod auth;
pub mod backend;
pub mod frame;
pub mod frontend;
pub mod pgoutput;
pub mod replication;
pub mod sqlstate;
pub mod startup;

mod read;
mod write;

pub use frame::{header, Header, WireError, HEADER_BYTES, MESSAGE_BYTES_MAX};
