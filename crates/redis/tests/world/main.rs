//! The engine and its tables in a real PostgreSQL, over sockets: what is acknowledged is there,
//! whatever happens to the connections.

mod journal;
#[path = "../tables/kit.rs"]
#[allow(dead_code)]
mod kit;
mod libraries;
mod losses;
mod world;
mod writers;
