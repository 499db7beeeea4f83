//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod connection;
mod hashes;
mod pubsub;
mod server;
mod sort;
mod transcript;
mod units;
