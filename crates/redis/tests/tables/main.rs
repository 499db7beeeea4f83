//! The schema `redis` in a real PostgreSQL: what the gateway writes and reads, and what SQL users
//! do beside it.

mod batches;
mod folding;
mod installing;
mod kit;
mod users;
mod writers;
