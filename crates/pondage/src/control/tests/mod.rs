//! The control plane against a real PostgreSQL: a cluster of its own for each test.

mod calls;
mod certificates;
mod judging;
mod judging_caches;
mod judging_oracles;
mod lookups;
mod opening;
mod restricting;
pub mod server;
mod tls;
