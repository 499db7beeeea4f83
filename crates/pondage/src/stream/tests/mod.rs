//! Streams from a real PostgreSQL: a cluster of its own for each test.

mod copied;
mod copying;
mod following;
mod mirror;
mod mishaps;
mod publishing;
mod rig;
