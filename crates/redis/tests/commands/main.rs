//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod hashes;
mod hyperloglog;
mod sort;
mod streams;
mod transcript;
mod units;
