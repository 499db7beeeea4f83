//! A connection of Pondage's own that calls prepared statements: written as binary parameters
//! straight into the bytes to send, answered as binary rows straight from the bytes that came.
//!
//! How it is driven, over a connection that is logged in and idle:
//!
//! 1. [`Calls::prepare`], [`Calls::call`] and [`Calls::query`] append to [`Calls::out`];
//!    [`Calls::sync`] ends a *group*. Any number may be appended before anything is answered.
//! 2. The driver sends `out` and empties it as far as it was sent.
//! 3. What arrives goes to [`Calls::receive`], cut anywhere, which tells what it means in the
//!    order of the calls.
//!
//! A group is one implicit transaction: what is `Done` is committed only when the group's
//! [`Heard::Synced`] says so, and one failure undoes the calls before it and skips those after it.
//! A simple query is a group of its own.

use std::collections::VecDeque;
use std::fmt;

use wire::pg::backend::{self, tag, TxStatus};
use wire::pg::frame::{header, WireError, HEADER_BYTES, MESSAGE_BYTES_MAX};
use wire::pg::frontend;

mod columns;
mod params;

pub use columns::{float8, int2, int4, int8, Columns, Elements};
pub use params::{Array, Params};

/// The oids of the types that parameters and elements have.
///
/// Source: `src/include/catalog/pg_type.dat`.
pub mod oid {
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const FLOAT8: u32 = 701;
    pub const BYTEA_ARRAY: u32 = 1001;
    pub const CHAR_ARRAY: u32 = 1002;
    pub const INT2_ARRAY: u32 = 1005;
    pub const INT8_ARRAY: u32 = 1016;
    pub const FLOAT8_ARRAY: u32 = 1022;
}

/// Most calls and Syncs that may be unanswered at a time.
pub const UNANSWERED_MAX: usize = 65_536;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Calls {
    /// Bytes to send, in order. The driver takes them from the front.
    pub out: Vec<u8>,
    unanswered: VecDeque<Unanswered>,
    /// The start of a message whose rest has not arrived.
    input: Vec<u8>,
    /// Whether something has failed since the last ReadyForQuery.
    failed: bool,
    /// Whether something may have been appended since the last Sync.
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unanswered {
    Prepare { tag: u64 },
    Call { tag: u64, bound: bool },
    Query { tag: u64 },
    Sync,
}

/// What has been answered.
#[derive(Debug)]
pub enum Heard<'a> {
    /// A row of a call; simple queries give text, all else is binary.
    Row {
        tag: u64,
        columns: Columns<'a>,
    },
    /// A statement is prepared (`command` is empty), or a call has given all its rows. A simple
    /// query of several statements is done once for each.
    Done {
        tag: u64,
        command: &'a [u8],
    },
    /// `tag` is `None` when the commit at the end of a group failed, and when the server ends the
    /// connection while nothing is unanswered.
    Failed {
        tag: Option<u64>,
        error: Failure<'a>,
    },
    /// Not executed, because something before it in its group failed.
    Skipped {
        tag: u64,
    },
    /// The end of a group; `committed` if nothing in it failed.
    Synced {
        committed: bool,
        status: TxStatus,
    },
    Notification {
        channel: &'a [u8],
        payload: &'a [u8],
    },
    Notice {
        notice: Failure<'a>,
    },
}

/// What an error or notice says; empty where the server left it out or it is no UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// `ERROR`, or `FATAL` and `PANIC`, after which the connection ends.
    pub severity: &'a str,
    pub sqlstate: &'a str,
    pub message: &'a str,
    pub detail: &'a str,
    pub hint: &'a str,
}

/// The stream of replies can't be followed any more. The connection has to be given up; nothing
/// is known about what is unanswered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    Wire(WireError),
    /// A message that is not the next one by the protocol.
    Unexpected(u8),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Wire(error) => error.fmt(f),
            Broken::Unexpected(tag) => write!(f, "unexpected message '{}'", tag.escape_ascii()),
        }
    }
}

impl std::error::Error for Broken {}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Broken {
        Broken::Wire(error)
    }
}

/// Why something was not appended; nothing of it has been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// [`UNANSWERED_MAX`] are unanswered.
    TooMany,
    /// A message would have more than [`MESSAGE_BYTES_MAX`] bytes, or more than 65535 parameters.
    TooLong,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::TooMany => write!(f, "{UNANSWERED_MAX} calls are unanswered"),
            Refused::TooLong => write!(f, "a call exceeds what PostgreSQL takes in one message"),
        }
    }
}

impl std::error::Error for Refused {}

impl Calls {
    pub fn new() -> Calls {
        Calls::default()
    }

    /// Prepares `sql` under `name` (without NUL) with parameters of these types.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn prepare(
        &mut self,
        tag: u64,
        name: &str,
        sql: &str,
        types: &[u32],
    ) -> Result<(), Refused> {
        let mut raw = Vec::with_capacity(2 + 4 * types.len());
        let count = u16::try_from(types.len()).map_err(|_| Refused::TooLong)?;
        raw.extend_from_slice(&count.to_be_bytes());
        raw.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
        if HEADER_BYTES + name.len() + sql.len() + raw.len() + 2 > MESSAGE_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        self.expect(Unanswered::Prepare { tag })?;
        frontend::put_parse(&mut self.out, name.as_bytes(), sql.as_bytes(), &raw);
        Ok(())
    }

    /// Calls the statement `name` with the parameters that `write` writes, all of them.
    ///
    /// # Errors
    /// [`Refused`]; what was written is taken back.
    pub fn call(
        &mut self,
        tag: u64,
        name: &str,
        write: impl FnOnce(&mut Params<'_>),
    ) -> Result<(), Refused> {
        let start = self.out.len();
        if !params::put_bind(&mut self.out, name.as_bytes(), write) {
            self.out.truncate(start);
            return Err(Refused::TooLong);
        }
        if let Err(refused) = self.expect(Unanswered::Call { tag, bound: false }) {
            self.out.truncate(start);
            return Err(refused);
        }
        frontend::put_execute(&mut self.out, b"", 0);
        Ok(())
    }

    /// Sends a text of one or several statements. A group that is open is ended first.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn query(&mut self, tag: u64, sql: &str) -> Result<(), Refused> {
        if HEADER_BYTES + sql.len() + 1 > MESSAGE_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        if self.unanswered.len() + 2 > UNANSWERED_MAX {
            return Err(Refused::TooMany);
        }
        if self.open {
            self.sync()?;
        }
        self.expect(Unanswered::Query { tag })?;
        self.open = false;
        frontend::put_query(&mut self.out, sql);
        Ok(())
    }

    /// Ends a group.
    ///
    /// # Errors
    /// [`Refused::TooMany`].
    pub fn sync(&mut self) -> Result<(), Refused> {
        self.expect(Unanswered::Sync)?;
        self.open = false;
        frontend::put_sync(&mut self.out);
        Ok(())
    }

    /// How many calls and Syncs are unanswered.
    pub fn unanswered(&self) -> usize {
        self.unanswered.len()
    }

    fn expect(&mut self, what: Unanswered) -> Result<(), Refused> {
        if self.unanswered.len() >= UNANSWERED_MAX {
            return Err(Refused::TooMany);
        }
        self.unanswered.push_back(what);
        self.open = true;
        Ok(())
    }

    /// Takes bytes of the server, cut anywhere, and tells `on` what they mean.
    ///
    /// # Errors
    /// [`Broken`], after which this connection is of no use.
    pub fn receive(&mut self, bytes: &[u8], on: &mut dyn FnMut(Heard<'_>)) -> Result<(), Broken> {
        if self.input.is_empty() {
            let taken = self.messages(bytes, on)?;
            self.input.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let taken = self.messages(&input, on)?;
        input.drain(..taken);
        self.input = input;
        Ok(())
    }

    /// Takes the messages that are whole; gives how many bytes that were.
    fn messages(&mut self, bytes: &[u8], on: &mut dyn FnMut(Heard<'_>)) -> Result<usize, Broken> {
        let mut taken = 0;
        while let Some(head) = header(&bytes[taken..])? {
            let Some(message) = bytes[taken..].get(..head.total) else {
                break;
            };
            self.message(head.tag, &message[HEADER_BYTES..], on)?;
            taken += head.total;
        }
        Ok(taken)
    }

    fn message(
        &mut self,
        kind: u8,
        body: &[u8],
        on: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), Broken> {
        use Unanswered::{Call, Prepare, Query, Sync};
        match kind {
            tag::NOTIFICATION => {
                let (_, channel, payload) = backend::notification(body)?;
                on(Heard::Notification { channel, payload });
                return Ok(());
            }
            tag::NOTICE => {
                on(Heard::Notice { notice: failure(body)? });
                return Ok(());
            }
            tag::PARAMETER_STATUS => return Ok(()),
            tag::ERROR => return self.error(body, on),
            _ => {}
        }
        match (kind, self.unanswered.front_mut()) {
            (tag::PARSE_COMPLETE, Some(Prepare { tag })) => {
                on(Heard::Done { tag: *tag, command: b"" });
                self.unanswered.pop_front();
            }
            (tag::BIND_COMPLETE, Some(Call { bound, .. })) if !*bound => *bound = true,
            (tag::DATA_ROW, Some(Call { tag, bound: true } | Query { tag })) => {
                on(Heard::Row { tag: *tag, columns: Columns::new(body)? });
            }
            (tag::COMMAND_COMPLETE, Some(Call { tag, bound: true })) => {
                on(Heard::Done { tag: *tag, command: backend::command_tag(body)? });
                self.unanswered.pop_front();
            }
            (tag::EMPTY_QUERY, Some(Call { tag, bound: true })) => {
                on(Heard::Done { tag: *tag, command: b"" });
                self.unanswered.pop_front();
            }
            (tag::COMMAND_COMPLETE, Some(Query { tag })) if !self.failed => {
                on(Heard::Done { tag: *tag, command: backend::command_tag(body)? });
            }
            (tag::EMPTY_QUERY, Some(Query { tag })) => {
                on(Heard::Done { tag: *tag, command: b"" });
            }
            (tag::ROW_DESCRIPTION, Some(Query { .. })) => {}
            (tag::READY_FOR_QUERY, Some(Sync | Query { .. })) => {
                let status = backend::ready(body)?;
                self.unanswered.pop_front();
                let committed = !std::mem::take(&mut self.failed);
                on(Heard::Synced { committed, status });
            }
            _ => return Err(Broken::Unexpected(kind)),
        }
        Ok(())
    }

    fn error(&mut self, body: &[u8], on: &mut dyn FnMut(Heard<'_>)) -> Result<(), Broken> {
        use Unanswered::{Call, Prepare, Query, Sync};
        let error = failure(body)?;
        self.failed = true;
        match self.unanswered.front() {
            Some(Prepare { tag } | Call { tag, .. }) => {
                on(Heard::Failed { tag: Some(*tag), error });
                self.unanswered.pop_front();
                // The server reads on to the Sync and answers nothing before it.
                while let Some(Prepare { tag } | Call { tag, .. }) = self.unanswered.front() {
                    on(Heard::Skipped { tag: *tag });
                    self.unanswered.pop_front();
                }
            }
            Some(Query { tag }) => on(Heard::Failed { tag: Some(*tag), error }),
            Some(Sync) | None => on(Heard::Failed { tag: None, error }),
        }
        Ok(())
    }
}

fn failure(body: &[u8]) -> Result<Failure<'_>, WireError> {
    let fields = backend::error_fields(body)?;
    Ok(Failure {
        severity: fields.severity().unwrap_or_default(),
        sqlstate: fields.code().unwrap_or_default(),
        message: fields.message().unwrap_or_default(),
        detail: fields.detail().unwrap_or_default(),
        hint: fields.hint().unwrap_or_default(),
    })
}
