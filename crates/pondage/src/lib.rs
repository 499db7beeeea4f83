//! The process: command line, configuration, workers and their turns, doors, sessions, the
//! console and the HTTP door, streams of changes. `ARCHITECTURE.md` follows one query through
//! these files.

pub mod caches;
pub mod cli;
pub mod config;
pub mod console;
pub mod control;
pub mod demo;
mod der;
pub mod doctor;
pub mod export;
mod first_version;
pub mod hba;
pub mod hosts;
pub mod http;
pub mod link;
pub mod logging;
pub mod procedures;
pub mod process;
pub mod route;
pub mod session;
pub mod stream;
pub mod top;
pub mod worker;
#[cfg(test)]
mod written;
