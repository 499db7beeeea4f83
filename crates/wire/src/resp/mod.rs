//! RESP, the Redis protocol, versions 2 and 3, as a server speaks it.
//!
//! ```text
//! a command   *2\r\n $4\r\n ECHO\r\n $2\r\n hi\r\n     request.rs
//! or a line   ECHO "hi"\r\n                            inline.rs
//! a reply     +OK\r\n   :7\r\n   $2\r\n hi\r\n  ...     reply.rs
//! ```
//!
//! Where Redis is lenient so is this: it does not look at the byte behind a `\r`, nor at the two
//! behind a bulk.
//!
//! Source: "Redis serialization protocol specification", and `src/networking.c` of Redis 7.2 for
//! what it leaves open.

mod inline;
pub mod reply;
pub mod request;

pub use request::{Limits, Parser, ProtocolError, Span};

/// What a client speaks since its HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}
