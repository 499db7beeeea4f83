//! One console client's side of the protocol, without IO.
//!
//! Drive it so: [`Session::take`] a whole message; while [`Session::request`] gives a request, run it
//! and hand the [`Answer`] to [`Session::answer`]; then send what [`Session::output`] gives. No
//! message may be taken while a request is out.
//!
//! Both query protocols work. BEGIN and COMMIT only mark how long portals live, for drivers that
//! fetch by and by; commands take effect at once.
//!
//! Source: PostgreSQL documentation, "Message Flow".

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use wire::pg::backend::{self, ErrorReply, TxStatus};
use wire::pg::frontend::{self, Target};
use wire::pg::{header, sqlstate, WireError, HEADER_BYTES};

use super::command::{self, Request};
use super::table::{self, Column, Format, Formats, Table, Value};
use super::{columns, Failure};
use crate::config::Words;

/// Prepared statements of one client.
const STATEMENTS_MAX: usize = 256;
/// Portals of one client; each may hold the rows of a SHOW.
const PORTALS_MAX: usize = 16;
/// Replies are handed out when they have grown to this many bytes, Sync or not.
const OUTPUT_BYTES: usize = 64 << 10;

/// What came of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub notices: Vec<Notice>,
    /// A table when the request has columns, none when it has none.
    pub result: Result<Option<Table>, Failure>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// "NOTICE" or "WARNING".
    pub severity: &'static str,
    pub message: String,
    pub detail: Option<String>,
}

/// Bytes for the client; `close` ends the connection after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub bytes: Vec<u8>,
    pub close: bool,
}

#[derive(Debug, Default)]
pub struct Session {
    words: Words,
    /// By name; `None` is the empty query. The unnamed statement has the empty name.
    statements: HashMap<Vec<u8>, Option<Request>>,
    portals: HashMap<Vec<u8>, Portal>,
    work: Work,
    /// Between BEGIN and COMMIT or ROLLBACK.
    in_transaction: bool,
    /// After an error in the extended protocol, until Sync.
    skipping: bool,
    out: Vec<u8>,
    /// `out` is wanted now, not at the next Sync.
    flush: bool,
    closed: bool,
}

#[derive(Debug)]
struct Portal {
    request: Option<Request>,
    formats: Formats,
    /// Once it ran.
    result: Option<Remaining>,
}

/// Rows an Execute with a limit left over.
#[derive(Debug)]
struct Remaining {
    columns: Cow<'static, [Column]>,
    rows: std::vec::IntoIter<Vec<Value>>,
}

/// What is being done with the request that is out.
#[derive(Debug, Default)]
enum Work {
    #[default]
    None,
    /// Of a simple Query: the commands that are left, and the one that is out.
    Query {
        left: VecDeque<Request>,
        out: Option<Request>,
    },
    Execute {
        portal: Vec<u8>,
        limit: i32,
        request: Request,
        out: bool,
    },
}

impl Session {
    pub fn new(words: Words) -> Session {
        Session { words, ..Session::default() }
    }

    /// Takes one message with its header.
    pub fn take(&mut self, message: &[u8]) {
        if self.closed {
            return;
        }
        match header(message) {
            Ok(Some(header)) if header.total == message.len() => {
                self.dispatch(header.tag, &message[HEADER_BYTES..]);
            }
            _ => self.fatal(sqlstate::PROTOCOL_VIOLATION, "invalid message length"),
        }
    }

    /// The request to run now, if any.
    pub fn request(&mut self) -> Option<Request> {
        match &mut self.work {
            Work::None => None,
            Work::Query { left, out } => {
                *out = left.pop_front();
                let next = out.clone();
                if next.is_none() {
                    self.ready();
                }
                next
            }
            Work::Execute { request, out, .. } => {
                (!std::mem::replace(out, true)).then(|| request.clone())
            }
        }
    }

    /// What came of the request that [`Session::request`] gave.
    pub fn answer(&mut self, answer: Answer) {
        for notice in &answer.notices {
            self.notice(notice);
        }
        match std::mem::take(&mut self.work) {
            Work::None => {}
            Work::Query { out: None, .. } => {}
            Work::Query { left, out: Some(request) } => match answer.result {
                Ok(result) => {
                    self.mark_transaction(&request);
                    self.whole_result(&request, result);
                    self.work = Work::Query { left, out: None };
                }
                Err(failure) => {
                    self.error("ERROR", &failure);
                    self.ready();
                }
            },
            Work::Execute { portal, limit, request, .. } => match answer.result {
                Ok(result) => {
                    // A command without rows is done too: another Execute does not run it again.
                    let (columns, rows) =
                        result.map_or_else(Default::default, |table| (table.columns, table.rows));
                    if let Some(entry) = self.portals.get_mut(&portal) {
                        entry.result = Some(Remaining { columns, rows: rows.into_iter() });
                    }
                    self.send_rows(&portal, limit);
                    self.mark_transaction(&request);
                }
                Err(failure) => self.fail(&failure),
            },
        }
    }

    /// What is to be sent now; empty while it can wait for the Sync to come.
    pub fn output(&mut self) -> Output {
        if !self.flush && self.out.len() < OUTPUT_BYTES {
            return Output::default();
        }
        self.flush = false;
        Output { bytes: std::mem::take(&mut self.out), close: self.closed }
    }

    /// Ends the connection for a reason of ours.
    pub fn fatal(&mut self, code: &'static str, message: &str) {
        self.error("FATAL", &Failure::new(code, message));
        self.close();
    }

    fn close(&mut self) {
        self.closed = true;
        self.flush = true;
        self.work = Work::None;
    }

    fn dispatch(&mut self, tag: u8, body: &[u8]) {
        use frontend::tag;
        match tag {
            tag::TERMINATE => return self.close(),
            tag::SYNC => return self.sync(),
            _ if self.skipping => return,
            _ => {}
        }
        let done = match tag {
            tag::QUERY => return self.query(body),
            tag::PARSE => self.parse(body),
            tag::BIND => self.bind(body),
            tag::DESCRIBE => self.describe(body),
            tag::EXECUTE => self.execute(body),
            tag::CLOSE => self.close_name(body),
            tag::FLUSH => {
                self.flush = true;
                Ok(())
            }
            // Left over from a COPY that failed; PostgreSQL drops them too.
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => Ok(()),
            tag::FUNCTION_CALL => {
                let message = "the console has no functions to call";
                self.error("ERROR", &Failure::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
                self.ready();
                Ok(())
            }
            other => {
                let message = format!("unexpected message '{}'", other.escape_ascii());
                return self.fatal(sqlstate::PROTOCOL_VIOLATION, &message);
            }
        };
        if let Err(failure) = done {
            self.fail(&failure);
        }
    }

    fn query(&mut self, body: &[u8]) {
        // Source: "Simple Query": it ends the unnamed statement and portal.
        self.statements.remove(&b""[..]);
        self.portals.remove(&b""[..]);
        self.end_portals();
        match frontend::query(body).map_err(malformed).and_then(command::parse) {
            Ok(requests) if requests.is_empty() => {
                backend::put_empty_query(&mut self.out);
                self.ready();
            }
            Ok(requests) => self.work = Work::Query { left: requests.into(), out: None },
            Err(failure) => {
                self.error("ERROR", &failure);
                self.ready();
            }
        }
    }

    fn parse(&mut self, body: &[u8]) -> Result<(), Failure> {
        let parse = frontend::parse(body).map_err(malformed)?;
        if !parse.name.is_empty() && self.statements.contains_key(parse.name) {
            let message =
                format!("prepared statement \"{}\" already exists", parse.name.escape_ascii());
            return Err(Failure::new(sqlstate::DUPLICATE_PREPARED_STATEMENT, message));
        }
        let mut requests = command::parse(parse.query)?;
        if requests.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Failure::new(sqlstate::SYNTAX_ERROR, message));
        }
        room_for_one_more(&self.statements, parse.name, STATEMENTS_MAX, "prepared statements")?;
        self.statements.insert(parse.name.to_vec(), requests.pop());
        backend::put_parse_complete(&mut self.out);
        Ok(())
    }

    fn bind(&mut self, body: &[u8]) -> Result<(), Failure> {
        let head = frontend::bind_head(body)
            .map_err(malformed)?
            .ok_or_else(|| malformed(WireError::Truncated("portal and statement names")))?;
        let request = self.statement(head.statement)?.clone();
        if !head.portal.is_empty() && self.portals.contains_key(head.portal) {
            let message = format!("portal \"{}\" already exists", head.portal.escape_ascii());
            return Err(Failure::new(sqlstate::DUPLICATE_CURSOR, message));
        }
        let formats = bind_formats(body.get(head.rest..).unwrap_or_default())?;
        let width = request.as_ref().and_then(columns::of).map_or(0, |columns| columns.len());
        if formats.0.len() > 1 && formats.0.len() != width {
            let count = formats.0.len();
            let message =
                format!("bind message has {count} result formats but query has {width} columns");
            return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message));
        }
        room_for_one_more(&self.portals, head.portal, PORTALS_MAX, "portals")?;
        self.portals.insert(head.portal.to_vec(), Portal { request, formats, result: None });
        backend::put_bind_complete(&mut self.out);
        Ok(())
    }

    fn describe(&mut self, body: &[u8]) -> Result<(), Failure> {
        let (request, formats) = match frontend::describe(body).map_err(malformed)? {
            (Target::Statement, name) => {
                let request = self.statement(name)?.clone();
                backend::put_parameter_description(&mut self.out, &[]);
                (request, Formats::default())
            }
            (Target::Portal, name) => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (portal.request.clone(), portal.formats.clone())
            }
        };
        match request.as_ref().and_then(columns::of) {
            Some(columns) => table::put_columns(&mut self.out, &columns, &formats),
            None => backend::put_no_data(&mut self.out),
        }
        Ok(())
    }

    fn execute(&mut self, body: &[u8]) -> Result<(), Failure> {
        let (name, limit) = frontend::execute(body).map_err(malformed)?;
        let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
        match (&portal.request, &portal.result) {
            (None, _) => backend::put_empty_query(&mut self.out),
            (Some(_), Some(_)) => self.send_rows(name, limit),
            (Some(request), None) => {
                let (request, portal) = (request.clone(), name.to_vec());
                self.work = Work::Execute { portal, limit, request, out: false };
            }
        }
        Ok(())
    }

    fn close_name(&mut self, body: &[u8]) -> Result<(), Failure> {
        match frontend::close(body).map_err(malformed)? {
            (Target::Statement, name) => drop(self.statements.remove(name)),
            (Target::Portal, name) => drop(self.portals.remove(name)),
        }
        backend::put_close_complete(&mut self.out);
        Ok(())
    }

    fn sync(&mut self) {
        self.end_portals();
        self.skipping = false;
        self.ready();
    }

    /// Portals end with their transaction, which outside of BEGIN and COMMIT is one message long.
    fn end_portals(&mut self) {
        if !self.in_transaction {
            self.portals.clear();
        }
    }

    fn mark_transaction(&mut self, request: &Request) {
        match request {
            Request::Ignored { tag: "BEGIN" | "START TRANSACTION", .. } => {
                self.in_transaction = true;
            }
            Request::Ignored { tag: "COMMIT" | "ROLLBACK", .. } => {
                self.in_transaction = false;
                self.end_portals();
            }
            _ => {}
        }
    }

    fn statement(&self, name: &[u8]) -> Result<&Option<Request>, Failure> {
        self.statements.get(name).ok_or_else(|| {
            let message = format!("prepared statement \"{}\" does not exist", name.escape_ascii());
            Failure::new(sqlstate::INVALID_SQL_STATEMENT_NAME, message)
        })
    }

    /// The reply of a simple Query to one command.
    fn whole_result(&mut self, request: &Request, result: Option<Table>) {
        let rows = result.as_ref().map_or(0, |table| table.rows.len());
        if let Some(table) = result {
            let formats = Formats::default();
            table::put_columns(&mut self.out, &table.columns, &formats);
            for row in &table.rows {
                table::put_row(&mut self.out, &table.columns, row, &formats);
            }
        }
        backend::put_command_complete(&mut self.out, &tag(request, rows));
    }

    /// Sends up to `limit` rows of a portal that ran; all when it is not positive.
    fn send_rows(&mut self, name: &[u8], limit: i32) {
        let Some(Portal { request: Some(request), formats, result: Some(left) }) =
            self.portals.get_mut(name)
        else {
            return;
        };
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let mut sent = 0;
        for row in left.rows.by_ref().take(limit) {
            table::put_row(&mut self.out, &left.columns, &row, formats);
            sent += 1;
        }
        if sent == limit {
            backend::put_portal_suspended(&mut self.out);
        } else {
            // Frees what held the rows.
            left.rows = Vec::new().into_iter();
            backend::put_command_complete(&mut self.out, &tag(request, sent));
        }
    }

    fn ready(&mut self) {
        let status = if self.in_transaction { TxStatus::InTransaction } else { TxStatus::Idle };
        backend::put_ready(&mut self.out, status);
        self.work = Work::None;
        self.flush = true;
    }

    /// An error in the extended protocol.
    fn fail(&mut self, failure: &Failure) {
        self.error("ERROR", failure);
        self.skipping = true;
        self.flush = true;
    }

    fn error(&mut self, severity: &str, failure: &Failure) {
        let Failure { code, message, detail, hint } = &failure.clone().in_words(self.words);
        let (detail, hint) = (detail.as_deref(), hint.as_deref());
        backend::put_error(&mut self.out, &ErrorReply { severity, code, message, detail, hint });
    }

    fn notice(&mut self, notice: &Notice) {
        let code = match notice.severity {
            "WARNING" => sqlstate::WARNING,
            _ => sqlstate::SUCCESSFUL_COMPLETION,
        };
        let Notice { severity, message, detail } = notice;
        let detail = detail.as_deref();
        backend::put_notice(
            &mut self.out,
            &ErrorReply { severity, code, message, detail, hint: None },
        );
    }
}

/// The command tag; `rows` are those of this reply.
pub fn tag(request: &Request, rows: usize) -> Cow<'static, str> {
    match request {
        Request::Show(_) | Request::ShowSetting(_) => Cow::Borrowed("SHOW"),
        Request::Select(_) => Cow::Owned(format!("SELECT {rows}")),
        Request::Ignored { tag, .. } => Cow::Borrowed(tag),
        Request::Act(act) => Cow::Borrowed(act.tag()),
        Request::Cache(command) => Cow::Borrowed(command.tag()),
        Request::Procedure(command) => Cow::Borrowed(command.tag()),
    }
}

/// What follows the names in a Bind: parameter formats, parameters (none are possible here),
/// result formats.
///
/// Source: "Message Formats", Bind.
fn bind_formats(rest: &[u8]) -> Result<Formats, Failure> {
    let mut words = rest.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let mut word = || words.next().ok_or_else(|| malformed(WireError::Truncated("Bind")));
    for _ in 0..word()? {
        word()?;
    }
    let parameters = word()?;
    if parameters != 0 {
        let message = format!(
            "bind message supplies {parameters} parameters, but console commands have none"
        );
        return Err(Failure::new(sqlstate::PROTOCOL_VIOLATION, message));
    }
    let count = word()?;
    let mut formats = Vec::new();
    for _ in 0..count {
        formats.push(match word()? {
            0 => Format::Text,
            1 => Format::Binary,
            other => {
                let message = format!("unsupported format code: {other}");
                return Err(Failure::new(sqlstate::INVALID_PARAMETER_VALUE, message));
            }
        });
    }
    if words.next().is_some() || rest.len() % 2 != 0 {
        return Err(malformed(WireError::Trailing("Bind")));
    }
    Ok(Formats(formats))
}

fn room_for_one_more<T>(
    names: &HashMap<Vec<u8>, T>,
    name: &[u8],
    max: usize,
    what: &str,
) -> Result<(), Failure> {
    if names.len() < max || names.contains_key(name) {
        return Ok(());
    }
    let message = format!("more than {max} {what}");
    Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).hint("Close some."))
}

fn no_portal(name: &[u8]) -> Failure {
    let message = format!("portal \"{}\" does not exist", name.escape_ascii());
    Failure::new(sqlstate::INVALID_CURSOR_NAME, message)
}

fn malformed(error: WireError) -> Failure {
    Failure::new(sqlstate::PROTOCOL_VIOLATION, error.to_string())
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
