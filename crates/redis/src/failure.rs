//! Why a command has no ordinary reply.

use std::borrow::Cow;

/// Why a command ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The client is told: an error reply, its code first, as Redis words it. It may quote what the
    /// client has sent, so it may be no UTF-8.
    Said(Cow<'static, [u8]>),
    /// A key is not in memory. It has been noted; the command runs again from its beginning when
    /// the key is there. A command may end so only before its first write.
    Miss,
    /// What has been committed of a large collection is not kept beside what has not: the command
    /// runs again on the latest state, and its reply waits for the commit.
    Uncommitted,
    /// There is nothing yet; the command runs again when one of its keys has something
    /// ([`crate::call::Call::block`]).
    Blocked,
    /// As said, and what the whole unit has changed is undone: a script that was ended.
    Undone(Cow<'static, [u8]>),
    /// Something was asked of PostgreSQL; the command runs again when the answer is there.
    Wait,
}

/// What a command gives: its reply has been written, or there is none.
pub type Outcome = Result<(), Failure>;

impl Failure {
    pub const WRONG_TYPE: Failure =
        Failure::text("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub const SYNTAX: Failure = Failure::text("ERR syntax error");
    pub const NOT_AN_INTEGER: Failure =
        Failure::text("ERR value is not an integer or out of range");
    pub const NOT_A_FLOAT: Failure = Failure::text("ERR value is not a valid float");
    pub const NO_SUCH_KEY: Failure = Failure::text("ERR no such key");
    pub const OUT_OF_RANGE: Failure = Failure::text("ERR index out of range");

    pub const fn text(text: &'static str) -> Failure {
        Failure::Said(Cow::Borrowed(text.as_bytes()))
    }

    pub fn undone(text: impl Into<Vec<u8>>) -> Failure {
        Failure::Undone(Cow::Owned(text.into()))
    }

    pub fn said(text: impl Into<Vec<u8>>) -> Failure {
        Failure::Said(Cow::Owned(text.into()))
    }

    /// One text of several parts, some of them a client's own bytes.
    pub fn joined(parts: &[&[u8]]) -> Failure {
        Failure::said(parts.concat())
    }
}
