//! `SET pondage.trace = on`: each answer comes with a NOTICE that says how long its statement has
//! waited, who has answered it, and how fresh that is.
//!
//! The setting is Pondage's own. As a statement by itself it is recognised here and PostgreSQL
//! does not hear of it, so that the client goes on sharing servers, trips and kept results with
//! those who have not set it: what is looked at stays what it was. In any other dress (among other
//! statements, by `set_config`) PostgreSQL takes it for a setting of an application, and it is
//! found when PostgreSQL is asked what is set.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use backend::moment::Moment;
use wire::pg::backend::{self as reply, tag, Column, ErrorReply, TxStatus};
use wire::pg::frame::{self, HEADER_BYTES};
use wire::pg::replication::Lsn;
use wire::pg::sqlstate;

use crate::export::parent::Parent;
use crate::export::{Code, Text};
use crate::link::Ends;

pub const NAME: &str = "pondage.trace";

/// Source: pg_type.dat.
const TEXT: u32 = 25;

/// Of one client: those that are sent behind so many are not sampled.
pub const STARTED_MAX: usize = 64;

/// What PostgreSQL sends at the end of an answer, and so how long that is.
pub const READY_BYTES: usize = HEADER_BYTES + 1;

/// A statement about the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// None: to what the client has come with.
    Set {
        value: Option<bool>,
        local: bool,
    },
    /// SET to what is neither on nor off.
    Invalid,
    Reset,
    /// Of all settings: PostgreSQL gets it as well.
    ResetAll,
    Show,
}

impl Command {
    pub fn tag(self) -> &'static str {
        match self {
            Command::Set { .. } | Command::Invalid => "SET",
            Command::Reset | Command::ResetAll => "RESET",
            Command::Show => "SHOW",
        }
    }
}

/// Whether a text may be one of the commands: looks at its first letters only. One that begins
/// with a comment is PostgreSQL's.
#[inline]
pub fn may_be_command(text: &[u8]) -> bool {
    matches!(
        text.trim_ascii_start(),
        [b's' | b'S', b'e' | b'E', b't' | b'T', ..]
            | [b's' | b'S', b'h' | b'H', b'o' | b'O', ..]
            | [b'r' | b'R', b'e' | b'E', b's' | b'S', ..]
    )
}

/// The command that a text is, and nothing beside it.
pub fn command(text: &[u8]) -> Option<Command> {
    let (verb, rest) = sql::next_word(text);
    match &*verb.to_ascii_lowercase() {
        b"set" => set(rest),
        b"reset" if sql::says(rest, &["all"]) => Some(Command::ResetAll),
        b"reset" => sql::says(name(rest)?, &[]).then_some(Command::Reset),
        b"show" => sql::says(name(rest)?, &[]).then_some(Command::Show),
        _ => None,
    }
}

fn set(text: &[u8]) -> Option<Command> {
    let local = sql::after(text, &["local"]);
    let rest = local.or_else(|| sql::after(text, &["session"])).unwrap_or(text);
    let rest = sql::blank(name(rest)?);
    let rest = match rest.strip_prefix(b"=") {
        Some(rest) => rest,
        None => sql::after(rest, &["to"])?,
    };
    let (value, rest) = value(sql::blank(rest))?;
    if !sql::says(rest, &[]) {
        return None;
    }
    if value.eq_ignore_ascii_case(b"default") {
        return Some(Command::Set { value: None, local: local.is_some() });
    }
    Some(match boolean(value) {
        None => Command::Invalid,
        value => Command::Set { value, local: local.is_some() },
    })
}

/// What follows the setting's name.
fn name(text: &[u8]) -> Option<&[u8]> {
    let rest = sql::after(text, &["pondage"])?.strip_prefix(b".")?;
    sql::after(rest, &["trace"])
}

fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"'") {
        let end = quoted.iter().position(|byte| *byte == b'\'')?;
        return Some((&quoted[..end], &quoted[end + 1..]));
    }
    let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Source: `parse_bool_with_len` in bool.c.
pub fn boolean(value: &[u8]) -> Option<bool> {
    let value = value.trim_ascii().to_ascii_lowercase();
    let begins = |word: &[u8]| !value.is_empty() && word.starts_with(&value);
    match &*value {
        b"on" | b"1" => Some(true),
        b"off" | b"of" | b"0" => Some(false),
        _ if begins(b"true") || begins(b"yes") => Some(true),
        _ if begins(b"false") || begins(b"no") => Some(false),
        _ => None,
    }
}

/// What answered, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A server of the client's own, for the session, transaction or statement.
    Pool,
    /// With so many others.
    Trip(u16),
    Train(u16),
    Cache(Fresh),
    Mirror(Fresh),
    /// Nobody but Pondage had to know of it.
    Here,
}

/// How fresh an answer from memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fresh {
    /// All before this position is in it.
    pub lsn: u64,
    /// Nothing that was committed longer ago is missing, if that is known.
    pub age: Option<Duration>,
}

impl Engine {
    pub fn name(self) -> &'static str {
        match self {
            Engine::Pool => "pool",
            Engine::Trip(_) => "trip",
            Engine::Train(_) => "train",
            Engine::Cache(_) => "cache",
            Engine::Mirror(_) => "mirror",
            Engine::Here => "pondage",
        }
    }
}

/// How a statement has come to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Journey {
    pub engine: Engine,
    /// Until what is kept was known to be new enough, or not to be.
    pub cache_wait: Duration,
    /// For a server.
    pub wait: Duration,
    /// Until that had been prepared for the client.
    pub set_up: Duration,
    /// Between the last byte to the server and the last of its answer, as the worker's turns tell.
    pub at_server: Duration,
    pub server: Option<(Ends, u32)>,
}

impl Journey {
    pub fn new(engine: Engine) -> Journey {
        let no = Duration::ZERO;
        Journey { engine, cache_wait: no, wait: no, set_up: no, at_server: no, server: None }
    }

    /// In one line.
    pub fn text(&self) -> String {
        let mut text = format!("pondage: waited {} for a server", millis(self.wait));
        // Writing to a String doesn't fail.
        if self.server.is_none() {
            text.truncate("pondage: ".len());
            text.push_str("no server");
        }
        if !self.cache_wait.is_zero() {
            let _ = write!(text, ", {} for what is kept", millis(self.cache_wait));
        }
        if !self.set_up.is_zero() {
            let _ = write!(text, ", {} to prepare it", millis(self.set_up));
        }
        if let Some((ends, pid)) = &self.server {
            let _ = write!(text, ", {} at server {ends} (pid {pid})", millis(self.at_server));
        }
        let _ = write!(text, ", engine: {}", self.engine.name());
        match self.engine {
            Engine::Trip(size) | Engine::Train(size) => {
                let _ = write!(text, " of {size}");
            }
            Engine::Cache(fresh) | Engine::Mirror(fresh) => {
                let _ = write!(text, " (fresh as of LSN {}", Lsn(fresh.lsn));
                if let Some(age) = fresh.age {
                    let _ = write!(text, ", {} old", millis(age));
                }
                text.push(')');
            }
            Engine::Pool | Engine::Here => {}
        }
        text
    }

    pub fn put_notice(&self, out: &mut Vec<u8>) {
        put_notice(out, "NOTICE", "00000", &self.text());
    }
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn put_notice(out: &mut Vec<u8>, severity: &str, code: &str, message: &str) {
    reply::put_notice(out, &ErrorReply { severity, code, message, detail: None, hint: None });
}

/// A request that was sampled.
#[derive(Debug)]
pub struct Started {
    /// So many others of the client's are answered before.
    pub behind: usize,
    pub began: Moment,
    pub parent: Option<Parent>,
    pub text: Text,
}

/// Where the end of an answer is, and the error that was in it.
#[derive(Debug, Clone, Copy)]
struct Ready {
    at: usize,
    code: Option<Code>,
}

/// What is known of the statements of a client that has the setting, or has had it.
#[derive(Debug, Default)]
pub struct Trace {
    /// What the client has come with.
    start: bool,
    session: Option<bool>,
    /// Until its transaction is over.
    local: Option<bool>,
    /// What PostgreSQL has been told in other words.
    found: Option<bool>,
    /// How long the statement has waited for its server, and for that to be prepared.
    pub wait: Duration,
    pub set_up: Duration,
    /// Where each ReadyForQuery is in what the client is to be sent, if it has not been told of it.
    ready: VecDeque<Ready>,
    /// The error in the answer that is coming.
    code: Option<Code>,
    /// Requests that were sampled and not answered yet.
    pub started: VecDeque<Started>,
    /// Bytes of a message that are still to come.
    rest: usize,
}

impl Trace {
    pub fn from_start() -> Trace {
        Trace { start: true, ..Trace::default() }
    }

    /// Whether the client is told.
    pub fn tells(&self) -> bool {
        self.local.or(self.session).or(self.found).unwrap_or(self.start)
    }

    /// Nothing of it is worth keeping.
    pub fn is_idle(&self) -> bool {
        let set = [self.local, self.session, self.found];
        !self.start && set.iter().all(Option::is_none) && self.started.is_empty()
    }

    pub fn follow(&mut self, command: Command, status: TxStatus) {
        match command {
            Command::Set { value, local: true } => {
                if status != TxStatus::Idle {
                    self.local = Some(value.unwrap_or(self.start));
                }
            }
            Command::Set { value: Some(value), .. } => {
                (self.session, self.local) = (Some(value), None);
            }
            Command::Set { .. } | Command::Reset | Command::ResetAll => self.reset(),
            Command::Invalid | Command::Show => {}
        }
    }

    pub fn reset(&mut self) {
        (self.session, self.local) = (None, None);
        // PostgreSQL may have it still, or not: it is asked.
        self.found = self.found.map(|_| self.start);
    }

    pub fn transaction_over(&mut self) {
        self.local = None;
    }

    pub fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// PostgreSQL was asked what is set.
    pub fn found(&mut self, value: Option<bool>) {
        self.found = value;
    }

    /// Replies are appended to what the client is to be sent, which is `at` bytes so far.
    pub fn take(&mut self, bytes: &[u8], at: usize) {
        let mut next = self.rest;
        while let Some(Ok(Some(header))) = bytes.get(next..).map(frame::header) {
            match header.tag {
                tag::READY_FOR_QUERY => {
                    self.ready.push_back(Ready { at: at + next, code: self.code.take() });
                }
                tag::ERROR => self.code = code(&bytes[next + HEADER_BYTES..]),
                _ => {}
            }
            next += header.total;
        }
        self.rest = next.saturating_sub(bytes.len());
    }

    /// An answer is whole: tells the client, in front of its ReadyForQuery, if it wants to know.
    /// Gives the error that was in it.
    pub fn tell(&mut self, journey: &Journey, out: &mut Vec<u8>) -> Option<Code> {
        let last = out.len().checked_sub(READY_BYTES);
        let (at, code) = match journey.engine {
            Engine::Pool => match self.ready.pop_front() {
                Some(ready) => (Some(ready.at), ready.code),
                None => (last, self.code.take()),
            },
            _ => {
                // Nothing else of its is in flight, and what was told before may have been taken
                // back.
                let code = self.ready.drain(..).next_back().and_then(|ready| ready.code);
                (last, code)
            }
        };
        if let Some(at) = at.filter(|_| self.tells()) {
            self.put_notice(journey, out, at);
        }
        code
    }

    fn put_notice(&mut self, journey: &Journey, out: &mut Vec<u8>, at: usize) {
        if out.get(at) != Some(&tag::READY_FOR_QUERY) || at + READY_BYTES > out.len() {
            return;
        }
        let behind = out.split_off(at);
        journey.put_notice(out);
        let longer = out.len() - at;
        out.extend_from_slice(&behind);
        self.ready.iter_mut().for_each(|ready| ready.at += longer);
    }

    /// The request that was sampled, if it is that which is answered now.
    pub fn answered(&mut self) -> Option<Started> {
        let first = self.started.front().is_some_and(|first| first.behind == 0);
        let started = if first { self.started.pop_front() } else { None };
        self.started.iter_mut().for_each(|later| later.behind = later.behind.saturating_sub(1));
        started
    }

    /// The statement is over.
    pub fn forget(&mut self) {
        (self.wait, self.set_up) = (Duration::ZERO, Duration::ZERO);
    }
}

/// The SQLSTATE in the body of an ErrorResponse, of which the end may be missing.
fn code(body: &[u8]) -> Option<Code> {
    let mut fields = body.split(|byte| *byte == 0);
    let code = fields.find_map(|field| field.strip_prefix(b"C"))?;
    code.try_into().ok()
}

/// Messages of one command, as far as they are there.
pub enum Messages {
    /// So many bytes.
    Whole(usize),
    More,
    /// It is prepared for later, or not all of one batch.
    Other,
}

/// A Query, or `Parse "" ... Execute ... Sync` with nothing else in between.
pub fn messages(bytes: &[u8]) -> Messages {
    use wire::pg::frontend::{self, tag};
    let (mut at, mut first) = (0, true);
    while let Ok(Some(header)) = frame::header(&bytes[at..]) {
        let Some(message) = bytes.get(at..at + header.total) else { return Messages::More };
        at += header.total;
        match (header.tag, std::mem::take(&mut first)) {
            (tag::QUERY, true) | (tag::SYNC, false) => return Messages::Whole(at),
            (tag::PARSE, true) => match frontend::parse(&message[HEADER_BYTES..]) {
                Ok(parse) if parse.name.is_empty() => {}
                _ => return Messages::Other,
            },
            (tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE, false) => {}
            _ => return Messages::Other,
        }
    }
    Messages::More
}

/// What PostgreSQL would answer to these messages. `on`: the value of the setting.
pub fn put_answer(out: &mut Vec<u8>, bytes: &[u8], command: Command, on: bool, status: TxStatus) {
    use wire::pg::frontend::{self, tag, Target};
    let column = Column { name: NAME, oid: TEXT, size: -1, format: 0 };
    let mut at = 0;
    let mut failed = false;
    while let Ok(Some(header)) = frame::header(&bytes[at..]) {
        let Some(message) = bytes.get(at..at + header.total) else { break };
        at += header.total;
        let describe = |out: &mut Vec<u8>| match command {
            Command::Show => reply::put_row_description(out, &[column]),
            _ => reply::put_no_data(out),
        };
        match header.tag {
            tag::SYNC => reply::put_ready(out, status),
            _ if failed => {}
            tag::PARSE => reply::put_parse_complete(out),
            tag::BIND => reply::put_bind_complete(out),
            tag::CLOSE => reply::put_close_complete(out),
            tag::DESCRIBE => {
                let target = frontend::describe(&message[HEADER_BYTES..]);
                if matches!(target, Ok((Target::Statement, _))) {
                    reply::put_parameter_description(out, &[]);
                }
                describe(out);
            }
            _ => {
                let simple = header.tag == tag::QUERY;
                if simple && command == Command::Show {
                    describe(out);
                }
                failed = !put_result(out, command, on, status);
                if simple {
                    reply::put_ready(out, status);
                }
            }
        }
    }
}

/// False: it was an error.
fn put_result(out: &mut Vec<u8>, command: Command, on: bool, status: TxStatus) -> bool {
    match command {
        Command::Invalid => {
            reply::put_error(
                out,
                &ErrorReply {
                    severity: "ERROR",
                    code: sqlstate::INVALID_PARAMETER_VALUE,
                    message: INVALID,
                    detail: None,
                    hint: Some(INVALID_HINT),
                },
            );
            return false;
        }
        Command::Show => {
            let value: &[u8] = if on { b"on" } else { b"off" };
            reply::put_data_row(out, &[Some(value)]);
        }
        // As PostgreSQL says it: `WarnNoTransactionBlock` in xact.c.
        Command::Set { local: true, .. } if status == TxStatus::Idle => {
            let message = "SET LOCAL can only be used in transaction blocks";
            put_notice(out, "WARNING", sqlstate::NO_ACTIVE_SQL_TRANSACTION, message);
        }
        _ => {}
    }
    reply::put_command_complete(out, command.tag());
    true
}

pub const INVALID: &str = "parameter \"pondage.trace\" requires a Boolean value";
pub const INVALID_HINT: &str = "It is on or off. [P0428]";

#[cfg(test)]
mod tests;
