//! Pondage as its users meet it: the real binary in front of a real PostgreSQL.
//!
//! One binary for all, because linking is what a test build waits for. `kit` starts things and
//! speaks the protocol; every other module is one subject.

mod advice;
mod cache_commands;
mod caching;
mod cluster;
mod coalescing;
mod dashboard;
mod demo;
mod docs;
mod doctor;
mod drivers;
mod first_steps;
mod hosts;
mod kit;
mod pgbouncer_ini;
mod procedure_commands;
mod procedures;
mod redis;
mod rust_driver;
mod tidy;
mod tools;
mod top;
mod traces;
mod traps;
mod upgrade;
mod weather;
