//! What the tests share: a private PostgreSQL, a gateway in front of it, a client that speaks the
//! protocol byte by byte, and waiting without sleeping.

// Three test binaries share it, and none uses all of it.
#![allow(dead_code, unused_imports)]

pub mod certificates;
pub mod cluster;
pub mod config;
pub mod gateway;
pub mod httpclient;
pub mod place;
pub mod redis_server;
pub mod redisclient;
pub mod terminal;
pub mod tlsclient;
pub mod tool;
pub mod wait;
pub mod wireclient;

pub use cluster::{cluster, Database};
pub use config::Config;
pub use gateway::Gateway;
pub use redis_server::RedisServer;
pub use redisclient::RedisClient;
pub use tlsclient::TlsClient;
pub use tool::Tool;
pub use wireclient::{Address, WireClient};
