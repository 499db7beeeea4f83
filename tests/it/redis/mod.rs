//! The Redis door: protocol, log-in, TLS and limits, byte by byte; data; what an operator sees.

mod access;
mod carrying;
mod data;
mod monitoring;
mod operating;
mod protocol;

use crate::kit::{Config, Database};

/// A door where clients have to log in.
fn guarded(database: &Database) -> Config {
    Config::of(database)
        .set("listen.redis", "127.0.0.1:{redis_port}")
        .set("redis.user", "app")
        .set("redis.default_user", "app")
}

/// A door where everybody may come in.
pub fn open(database: &Database) -> Config {
    guarded(database).set("auth.method", "trust")
}
