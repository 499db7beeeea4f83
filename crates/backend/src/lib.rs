//! Connections to PostgreSQL and their lending.
//!
//! Everything here is a state machine without sockets and without a clock: bytes and events go
//! in, bytes and events come out, time is an argument ([`moment::Moment`]). The worker drives it
//! with epoll, the tests with a seeded simulator.
//!
//! - [`server::Server`] is one live connection: its reply queue says to whom each reply goes.
//! - [`pool::Pool`] lends servers to those who wait; [`pool::Budget`] is shared by all workers.
//! - [`settings`] follows what a session has set, and what differs between two of them.
//! - [`statement`] names prepared statements and knows which of them a server has.
//! - [`login`] is the log-in at PostgreSQL as a chain of states.
//! - [`replication`] follows the changes of a database.
//! - [`calls`] is a connection of Pondage's own, which calls prepared statements.

pub mod calls;
pub mod carrier;
pub mod climb;
pub mod fair;
pub mod keys;
pub mod lanes;
pub mod login;
pub mod moment;
pub mod pool;
pub mod replication;
pub mod reply;
pub mod residents;
pub mod server;
pub mod settings;
pub mod statement;

/// What reading a column can go wrong with: all that rooms above need of `wire`.
pub use wire::pg::frame::WireError;
