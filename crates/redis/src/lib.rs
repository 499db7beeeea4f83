//! Redis commands on ordinary PostgreSQL tables: keys and values, commands, batches.
//!
//! State machines without sockets and clock. Begin with [`engine`].

pub mod args;
pub mod call;
pub mod command;
pub mod double;
pub mod engine;
pub mod failure;
pub mod flow;
pub mod geohash;
pub mod keyspace;
pub mod pubsub;
pub mod query;
pub mod random;
pub mod reply;
pub mod rows;
pub mod server;
pub mod session;
pub mod store;
pub mod value;
pub mod watch;
