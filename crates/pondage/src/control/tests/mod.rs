//! The control plane against a real PostgreSQL: a cluster of its own for each test.

mod certificates;
mod judging;
mod judging_caches;
mod lookups;
mod opening;
pub mod server;
mod tls;
