//! What the tests share: a private PostgreSQL, a gateway in front of it, a client that speaks the
//! protocol byte by byte, and waiting without sleeping.

// Two test binaries share it, and neither uses all of it.
#![allow(dead_code, unused_imports)]

pub mod certificates;
pub mod cluster;
pub mod config;
pub mod gateway;
pub mod place;
pub mod redisclient;
pub mod tool;
pub mod wait;
pub mod wireclient;

pub use cluster::{cluster, Database};
pub use config::Config;
pub use gateway::Gateway;
pub use redisclient::RedisClient;
pub use tool::Tool;
pub use wireclient::{Address, WireClient};
