//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod bitmaps;
mod dumps;
mod keys;
mod scans;
mod strings;
mod units;
