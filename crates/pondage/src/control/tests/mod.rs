//! The control plane against a real PostgreSQL: a cluster of its own for each test.

mod binding;
mod calls;
mod certificates;
mod direct;
mod judging;
mod judging_caches;
mod judging_mirrors;
mod judging_oracles;
mod lookups;
mod naming_mirrors;
mod opening;
mod restricting;
pub mod server;
mod tls;
