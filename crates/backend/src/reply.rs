//! To whom a server's replies go.
//!
//! PostgreSQL answers in the order of the requests, so a server keeps a queue with an entry for
//! every request in flight: what was asked, by whom, and what becomes of the answer. Requests of
//! different owners may be in flight together; an owner's requests up to its Sync are one batch,
//! and batches of different owners never interleave.

use wire::pg::backend::TxStatus;

/// Who asked. This crate gives it no meaning: a worker's client, an engine, or nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub u32);

impl Owner {
    /// The pooler itself, or a client that has gone: replies are dropped.
    pub const NOBODY: Owner = Owner(u32::MAX);
}

/// What was asked, and so which replies end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Parse,
    Bind,
    Close,
    Describe,
    Execute,
    Sync,
    /// A Sync that was sent after the CopyDone or CopyFail of the Execute before it: PostgreSQL
    /// ignores those that come earlier while it copies in.
    /// Source: PostgreSQL docs, "COPY Operations"; `CopyGetData` in copyfromparse.c.
    SyncAfterCopy,
    Query,
    Function,
    /// The end of one owner's part of a batch that several share. Nothing is sent for it, the
    /// batch's Sync comes later: its ReadyForQuery is made.
    Part,
}

impl Kind {
    /// ReadyForQuery ends it, and a skip after an error.
    pub fn is_sync(self) -> bool {
        matches!(self, Kind::Sync | Kind::SyncAfterCopy)
    }

    /// ReadyForQuery ends it.
    pub fn ends_batch(self) -> bool {
        self.is_sync() || matches!(self, Kind::Query | Kind::Function)
    }
}

/// What becomes of the replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The owner gets them.
    Forward,
    /// Nobody sees them.
    Hide,
    /// Nobody sees success; an error is the owner's: a Parse that was put before its Bind.
    HideSuccess,
    /// Preparing a server for its owner, who is told [`Event::SetupDone`] or
    /// [`Event::SetupFailed`] at the end.
    Setup,
    /// The pooler's own: an error makes the server unusable.
    Must,
    /// Nothing was sent. The owner gets this when all before it is answered.
    Made(Made),
}

/// A reply that PostgreSQL would have given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    ParseComplete,
    BindComplete,
    CloseComplete,
    /// Outside of a transaction.
    ReadyForQuery,
}

impl Made {
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Made::ParseComplete => b"1\0\0\0\x04",
            Made::BindComplete => b"2\0\0\0\x04",
            Made::CloseComplete => b"3\0\0\0\x04",
            Made::ReadyForQuery => b"Z\0\0\0\x05I",
        }
    }
}

/// What an error may do to a request whose owner shares the server with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    /// The owner has the server for itself.
    No,
    /// Its errors are its owner's, but for a FATAL one before the first byte of an answer: that
    /// is the server's.
    Plain,
    /// It is sent in place of another: an error before the first byte of an answer makes its
    /// owner send that.
    StandIn,
    /// It may wait for a lock only for a moment that its owner has not chosen; hit by that, or by
    /// a cancel that was another's, it is sent again.
    Hurried,
}

/// One request in flight.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    pub owner: Owner,
    pub kind: Kind,
    pub fate: Fate,
    /// The owner wants [`Event::Settled`].
    pub told: bool,
    /// The statement that this Parse prepares, this Close closes, or this Bind or Describe needs on
    /// the server; 0: none.
    pub statement: u64,
    pub guest: Guest,
    /// After a deadlock or a serialization failure its owner sends it again.
    pub repeats: bool,
    /// If what it names was planned for something else, its owner has it prepared anew.
    pub replans: bool,
    /// For now it ends in a Flush: where it is to be sent again, its owner has to send a Sync first.
    pub flushes: bool,
    /// So many CopyDone or CopyFail were sent behind it before the server said that it copies in.
    pub(crate) copies_ended: u8,
}

impl Request {
    pub fn forward(owner: Owner, kind: Kind) -> Request {
        Request::with_fate(owner, kind, Fate::Forward)
    }

    pub fn with_fate(owner: Owner, kind: Kind, fate: Fate) -> Request {
        Request {
            owner,
            kind,
            fate,
            told: false,
            statement: 0,
            guest: Guest::No,
            repeats: false,
            replans: false,
            flushes: false,
            copies_ended: 0,
        }
    }

    /// Its owner gets [`Event::Settled`], if `told`.
    pub fn telling(self, told: bool) -> Request {
        Request { told, ..self }
    }

    /// Its owner shares the server.
    pub fn guest(self, guest: Guest) -> Request {
        Request { guest, ..self }
    }

    /// Its owner sends it again after a deadlock or a serialization failure.
    pub fn repeating(self, repeats: bool) -> Request {
        Request { repeats, ..self }
    }

    /// Its owner has the statement prepared anew when its plan does not fit any more.
    pub fn replanning(self, replans: bool) -> Request {
        Request { replans, ..self }
    }

    /// Nothing of its owner's is behind it but a Flush.
    pub fn flushing(self, flushes: bool) -> Request {
        Request { flushes, ..self }
    }

    /// It prepares, closes or needs this statement on the server.
    pub fn of(self, statement: u64) -> Request {
        Request { statement, ..self }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It was answered by an error.
    Failed,
    /// It came after an error: PostgreSQL has not looked at it.
    Skipped,
}

/// Why a statement came to nothing, without a trace, and can be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It was behind another's error in their shared batch.
    Skipped,
    /// A [`Guest::StandIn`] failed.
    Refused,
    /// A [`Guest::Hurried`] one met a lock, or a cancel that was another's.
    Hurried,
    /// PostgreSQL has undone it, because of what others did at the same time.
    Conflict,
    /// Its statement was planned for what is defined otherwise now.
    Stale,
    /// A standby has cancelled it for what it had to replay.
    /// Source: PostgreSQL docs, "Handling Query Conflicts"; `ProcessInterrupts` in postgres.c and
    /// `CheckRecoveryConflictDeadlock` in standby.c (40001, 40P01).
    Elsewhere,
}

/// What an owner learns beside the bytes of its replies.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A Sync, Query or FunctionCall is answered whole; its ReadyForQuery has been delivered.
    Ready(TxStatus),
    /// In place of `Ready`: its statement came to nothing.
    Again(Again),
    /// [`Event::Again`] will follow when the owner has sent a Sync, of which its client has not heard.
    Unended,
    /// A Sync of the owner's that a COPY was thought to ignore has been answered.
    ReadyUnasked(TxStatus),
    /// Statement mode: the batch is answered but a transaction is open; its ReadyForQuery was
    /// kept back.
    LeftOpen,
    /// What became of a request with `told`.
    Settled(Outcome),
    /// The server waits for CopyData. `open`: nothing that is in flight will be answered by a
    /// ReadyForQuery, so a Sync has to follow.
    CopyIn {
        open: bool,
    },
    /// It no longer does.
    CopyOver,
    /// A ParameterStatus that the owner has seen.
    Setting {
        name: &'a str,
        value: &'a str,
    },
    /// A CommandComplete of `PREPARE`.
    Prepared,
    /// A CommandComplete of `DEALLOCATE`, `DEALLOCATE ALL` or `DISCARD ALL`.
    Dropped(&'a [u8]),
    /// A notification came while nothing was asked: the owner has heard of a commit.
    Notified,
    /// The body of a NotificationResponse that the owner has not seen: see `Server::apart`.
    Notification(&'a [u8]),
    /// A command has changed what names mean, what functions do or who sees what; told again when
    /// its transaction is over, since others see it then. Whose command it was is of no interest.
    Redefined,
    /// Others see what has been defined, new tables among it. This, too, is no owner's business.
    Defined,
    /// The server has refused a write as one that only reads, or ends, starts or recovers: it may be
    /// another thing than it was. Whoever hears that, it is no owner's business.
    Turned,
    /// An ErrorResponse that the owner has seen.
    Error,
    /// What this statement was planned for is defined otherwise now. The owner is told so, or by
    /// [`Event::Again`] to send it again.
    Stale(u64),
    /// What this statement's text says can't be done with the types that it was prepared with. Who
    /// prepares the text again may have others. The owner is told.
    Misread(u64),
    SetupDone,
    /// The body of the ErrorResponse.
    SetupFailed(&'a [u8]),
}

/// Where a server's replies and events go.
pub trait Replies {
    /// `bytes` are whole messages, or parts of one that follow each other without a gap.
    fn bytes(&mut self, owner: Owner, bytes: &[u8]);
    fn event(&mut self, owner: Owner, event: Event<'_>);
}
