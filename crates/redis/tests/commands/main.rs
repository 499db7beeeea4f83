//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod hashes;
mod scripts;
mod sort;
mod transcript;
mod units;
