//! The traps of pooling, each by its number: what poolers before this one got wrong.
//!
//! Every test runs against a real Pondage and a real PostgreSQL. Which server a client gets is
//! not left to chance: see [`servers::TwoServers`].

pub mod batch;
mod beginnings;
mod copying;
mod lifecycle;
mod listening;
mod parameters;
mod pinned_listeners;
mod pinned_programs;
mod pins;
mod plans;
mod prepares;
mod replies;
mod secrets;
pub mod servers;
mod sessions;
mod statements;
mod succeeding;
mod transport;
mod versions;
