//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod bitmaps;
mod dumps;
mod hashes;
mod hyperloglog;
mod keys;
mod scans;
mod sort;
mod strings;
mod transcript;
mod units;
