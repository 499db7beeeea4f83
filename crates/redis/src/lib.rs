//! Redis commands on ordinary PostgreSQL tables: keys and values, commands, batches.
//!
//! State machines without sockets and clock. Begin with [`engine`].

pub mod args;
pub mod batch;
pub mod call;
pub mod changes;
pub mod command;
pub mod cursors;
pub mod double;
pub mod engine;
pub mod extended;
pub mod failure;
pub mod figures;
pub mod flow;
pub mod geohash;
pub mod hyperloglog;
pub mod keyspace;
pub mod loaded;
pub mod monitor;
pub mod name;
pub mod notify;
pub mod pubsub;
pub mod query;
pub mod random;
pub mod rdb;
pub mod reply;
pub mod rows;
pub mod schema;
pub mod script;
pub mod server;
pub mod session;
pub mod statements;
pub mod stats;
pub mod store;
pub mod tables;
pub mod tracking;
pub mod value;
pub mod watch;
