//! Connections to PostgreSQL and their lending, as state machines without sockets or clock.

pub mod login;
pub mod moment;
