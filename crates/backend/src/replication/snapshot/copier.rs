//! A connection that copies pieces, without socket: bytes in, bytes out, calls of [`Rows`].
//!
//! ```text
//! Starting -> Free --copy--> Asked -> Told -> Counted -> Free ... --end--> Ending -> over
//! ```
//!
//! It begins when the connection has logged in with [`super::super::SETTINGS`] and
//! [`super::SETTINGS`]. The caller sends what is in [`Copier::out`] after every call, gives it what
//! comes ([`Copier::receive`]), and closes the connection at the first error.
//!
//! Source: "Protocol Flow", COPY Operations.

use std::mem::take;

use wire::pg::backend::{self, tag, TxStatus};
use wire::pg::{frontend, header, WireError, HEADER_BYTES};

use super::pieces::Piece;
use super::{line, Rows, Source};
use crate::login::ServerError;
use crate::replication::client::MESSAGE_BYTES_MAX;
use crate::replication::missing::literal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The snapshot is being taken over.
    Starting,
    Free,
    /// A piece was asked for.
    Asked,
    /// Its rows come.
    Told,
    /// They have come, and were as many as the server says.
    Counted,
    Ending,
}

/// What the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Give it what comes.
    Await,
    /// This piece has been copied, unless it is the beginning: go on with [`Copier::copy`] or
    /// [`Copier::end`].
    Free(Option<Piece>),
    /// Close the connection.
    Over,
}

/// See the head of this file.
pub struct Copier {
    phase: Phase,
    out: Vec<u8>,
    piece: Option<Piece>,
    /// The name of its table, for messages, and how many columns are copied.
    table: String,
    columns: usize,
    /// Rows of this piece that have come.
    rows: u64,
}

impl Copier {
    /// `snapshot` as it was exported.
    pub fn start(snapshot: &str) -> Copier {
        let mut out = Vec::new();
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
            literal(snapshot)
        );
        frontend::put_query(&mut out, begin);
        Copier {
            phase: Phase::Starting,
            out,
            piece: None,
            table: String::new(),
            columns: 0,
            rows: 0,
        }
    }

    /// Bytes for the server; the caller takes them away.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Asks for a piece of this table. Only while it is free.
    pub fn copy(&mut self, piece: Piece, source: &Source) {
        debug_assert_eq!(self.phase, Phase::Free);
        frontend::put_query(&mut self.out, piece.sql(source));
        (self.table, self.columns) = (source.sql(), source.columns.len());
        self.piece = Some(piece);
        self.rows = 0;
        self.phase = Phase::Asked;
    }

    /// Nothing is left to be copied. Only while it is free.
    pub fn end(&mut self) {
        debug_assert_eq!(self.phase, Phase::Free);
        frontend::put_query(&mut self.out, "COMMIT");
        self.phase = Phase::Ending;
    }

    /// Takes every whole message out of what came; the beginning of the next one stays.
    ///
    /// # Errors
    /// Nothing more is copied on this connection.
    pub fn receive(&mut self, received: &mut Vec<u8>, rows: &mut dyn Rows) -> Result<Step, String> {
        let (mut used, mut step) = (0, Step::Await);
        let mut rest = received.as_mut_slice();
        let mut fields = Vec::with_capacity(self.columns);
        while let Some(head) = header(rest).map_err(malformed)? {
            if head.total > MESSAGE_BYTES_MAX {
                return Err(format!("a row of more than {} MB", MESSAGE_BYTES_MAX >> 20));
            }
            let Some((message, tail)) = take(&mut rest).split_at_mut_checked(head.total) else {
                break;
            };
            (used, rest) = (used + head.total, tail);
            let body = message.get_mut(HEADER_BYTES..).unwrap_or_default();
            match (head.tag, self.phase, &self.piece) {
                (tag::COPY_DATA, Phase::Told, Some(piece)) => {
                    fields.clear();
                    line::split(body, &mut fields).map_err(str::to_owned)?;
                    if fields.len() != self.columns {
                        return Err(format!("a row of {} has other columns", self.table));
                    }
                    rows.row(piece.table, &fields)?;
                    self.rows += 1;
                }
                _ => {
                    if let Some(next) = self.message(head.tag, body)? {
                        step = next;
                    }
                }
            }
        }
        received.drain(..used);
        Ok(step)
    }

    /// A message that is no row.
    fn message(&mut self, kind: u8, body: &[u8]) -> Result<Option<Step>, String> {
        match (kind, self.phase) {
            (tag::NOTICE | tag::PARAMETER_STATUS | tag::NOTIFICATION, _)
            | (tag::COPY_DONE, Phase::Told)
            | (tag::COMMAND_COMPLETE, Phase::Starting | Phase::Ending) => {}
            (tag::ERROR, _) => {
                let error = ServerError::read(body).map_err(malformed)?;
                return Err(match self.phase {
                    Phase::Starting => format!("the snapshot can't be taken over: {error}"),
                    _ => format!("{} can't be copied: {error}", self.table),
                });
            }
            (tag::COPY_OUT, Phase::Asked) => self.phase = Phase::Told,
            (tag::COMMAND_COMPLETE, Phase::Told) => {
                let count = backend::command_tag(body).map_err(malformed)?;
                let told = format!("COPY {}", self.rows);
                if count != told.as_bytes() {
                    let count = count.escape_ascii();
                    return Err(format!("{told} rows of {} came of {count}", self.table));
                }
                self.phase = Phase::Counted;
            }
            (tag::READY_FOR_QUERY, phase) => {
                let status = backend::ready(body).map_err(malformed)?;
                match (phase, status) {
                    (Phase::Starting | Phase::Counted, TxStatus::InTransaction) => {
                        self.phase = Phase::Free;
                        return Ok(Some(Step::Free(self.piece.take())));
                    }
                    (Phase::Ending, _) => return Ok(Some(Step::Over)),
                    _ => return Err(unexpected(kind, phase)),
                }
            }
            (kind, phase) => return Err(unexpected(kind, phase)),
        }
        Ok(None)
    }
}

fn malformed(error: WireError) -> String {
    error.to_string()
}

fn unexpected(kind: u8, phase: Phase) -> String {
    format!("an unexpected message '{}' ({phase:?})", kind.escape_ascii())
}
