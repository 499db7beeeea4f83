//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod units;
