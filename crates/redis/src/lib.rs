//! Redis commands on ordinary PostgreSQL tables: keys and values, commands, batches.
//!
//! State machines without sockets and clock. Begin with [`engine`].

pub mod args;
pub mod call;
pub mod command;
pub mod engine;
pub mod failure;
pub mod figures;
pub mod flow;
pub mod keyspace;
pub mod notify;
pub mod pubsub;
pub mod query;
pub mod reply;
pub mod rows;
pub mod server;
pub mod session;
pub mod stats;
pub mod store;
pub mod tracking;
pub mod value;
pub mod watch;
