//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod connection;
mod pubsub;
mod server;
mod units;
