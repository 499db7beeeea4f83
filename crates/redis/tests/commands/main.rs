//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod blocking;
mod units;
