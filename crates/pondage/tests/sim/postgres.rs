//! A small PostgreSQL, true where a pooler depends on it: which message is answered by what, when
//! an error skips what, what a transaction takes with it, which names exist, what COPY ignores.
//!
//! It speaks a language of its own (see [`Postgres::statement`]) in which every statement carries
//! its client's mark, and its answer shows it. The simulated servers run it, and each client runs
//! one of its own beside them: what that one answers is what a direct connection would have got.
//!
//! Source: PostgreSQL docs, "Message Flow"; `PostgresMain` in postgres.c, `CopyGetData` in
//! copyfromparse.c.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use wire::pg::backend::{self as reply, tag as say, ErrorReply, TxStatus};
use wire::pg::frame;
use wire::pg::frontend::{self, tag, Target};

use crate::data::read::{is_read, Read};
use crate::data::{Change, Handle};
use crate::ledger::Deed;

/// What it reports, with its defaults.
pub const REPORTED: [(&str, &str); 6] = [
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("is_superuser", "off"),
    ("server_version", "15.1"),
    ("TimeZone", "Etc/UTC"),
];

pub type Values = BTreeMap<String, String>;

/// One message, header and all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub tag: u8,
    pub bytes: Vec<u8>,
}

impl Message {
    pub fn body(&self) -> &[u8] {
        &self.bytes[frame::HEADER_BYTES..]
    }
}

/// Takes the whole messages at the beginning of `bytes`.
pub fn take_messages(bytes: &mut Vec<u8>) -> Vec<Message> {
    let (mut messages, mut at) = (Vec::new(), 0);
    while let Some(header) = frame::header(&bytes[at..]).expect("a sound header") {
        if bytes.len() - at < header.total {
            break;
        }
        let bytes = bytes[at..at + header.total].to_vec();
        messages.push(Message { tag: header.tag, bytes });
        at += header.total;
    }
    bytes.drain(..at);
    messages
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It has read all there is.
    Waits,
    Did,
    /// A `sleep` of so many microseconds has begun; [`Postgres::wake`] ends it.
    Sleeps(u64),
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    No,
    /// Of a pipeline up to its Sync, or of one simple query.
    Implicit,
    Block,
    Failed,
}

#[derive(Debug, Clone)]
pub(crate) struct Portal {
    pub(crate) text: String,
    pub(crate) values: Vec<String>,
    /// The format of its result.
    pub(crate) format: i16,
    /// Rows sent.
    pub(crate) sent: usize,
    pub(crate) done: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct CopyIn {
    pub(crate) simple: bool,
    pub(crate) rows: usize,
}

pub(crate) enum Outcome {
    Done,
    Suspended,
    Failed,
    /// CopyInResponse was sent.
    Copies,
    Sleeps(u64, After),
}

/// What ends a `sleep`, or the wait for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum After {
    NoRow,
    Wrote(String),
    LockTimeout,
}

#[derive(Debug, Clone)]
pub(crate) struct Sleep {
    simple: bool,
    after: After,
}

/// Whether names in a session mean what they mean to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Other {
    No,
    /// It was made so on a server that it may have left since.
    Maybe,
    Yes,
}

/// A read that was done where there are no data: what has to be known to judge its answer.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) read: Read,
    /// What the session has made it show.
    pub(crate) shows: String,
    /// What its own transaction has changed before.
    pub(crate) own: Vec<Change>,
    pub(crate) other: Other,
    /// Of the result.
    pub(crate) format: i16,
    /// Which of the client's messages it was.
    pub(crate) message: u64,
}

/// Stands for the answer to a read where there are no data.
pub(crate) const UNKNOWN: &str = "\u{1}an answer";

/// What a read finds where names mean something else.
pub(crate) const OTHER: &str = "another table";

#[derive(Clone)]
pub struct Postgres {
    /// What reads find, if this is one of the servers.
    pub(crate) data: Option<Handle>,
    /// Writes that have been undone once because of what others did, if this is one of the servers.
    pub clashes: Option<HashSet<String>>,
    /// The next write of that kind will be.
    pub clash_next: bool,
    /// What SET LOCAL has changed, and what it was.
    pub(crate) local: Vec<(String, Option<String>)>,
    /// The transaction has this number.
    pub(crate) xid: Option<u64>,
    /// What it has changed.
    pub(crate) changes: Vec<Change>,
    /// Its commit is written; nothing is answered before others see it.
    pub(crate) committing: Option<u64>,
    /// The transaction has made its session unlike others.
    pub(crate) made_other: bool,
    /// It was made so by what cannot be noticed.
    pub(crate) became: bool,
    /// Messages taken from the input.
    pub(crate) taken: u64,
    pub(crate) asked: VecDeque<Asked>,
    pub(crate) values: Values,
    /// What RESET goes back to.
    pub(crate) session: Values,
    /// As they were before the transaction.
    pub(crate) before: Option<Values>,
    pub(crate) reported: Values,
    pub(crate) transaction: Transaction,
    /// A constraint that will fail at the commit.
    pub(crate) deferred: Option<String>,
    /// Rows that the transaction has written.
    pub(crate) writes: Vec<String>,
    /// The transaction has written something to the log that a flush has to follow.
    pub(crate) emitted: bool,
    /// What became of rows, for the world to look at.
    pub(crate) deeds: Vec<Deed>,
    pub(crate) statements: BTreeMap<Vec<u8>, String>,
    /// Those whose rows would look otherwise now.
    pub(crate) stale: BTreeSet<Vec<u8>>,
    pub(crate) portals: BTreeMap<Vec<u8>, Portal>,
    pub(crate) skips: bool,
    pub(crate) copy: Option<CopyIn>,
    /// The rest of a simple query.
    pub(crate) simple: Option<VecDeque<String>>,
    pub(crate) sleeps: Option<Sleep>,
    pub(crate) input: VecDeque<Message>,
    /// Answers not flushed yet.
    pub(crate) held: Vec<u8>,
    /// Answers on their way.
    pub out: Vec<u8>,
    pub dead: bool,
    /// As seen through a pool in statement mode.
    pub single: bool,
    /// The next message that can be cancelled is.
    pub cancel_next: bool,
    /// And the next Query that has this in it.
    pub cancel_at: Option<&'static str>,
}

impl Postgres {
    pub fn new(startup: &[(String, String)]) -> Postgres {
        let mut values: Values =
            REPORTED.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        for (name, value) in startup {
            set(&mut values, name, value);
        }
        Postgres {
            data: None,
            xid: None,
            changes: Vec::new(),
            committing: None,
            made_other: false,
            became: false,
            taken: 0,
            asked: VecDeque::new(),
            session: values.clone(),
            reported: values.clone(),
            values,
            before: None,
            transaction: Transaction::No,
            deferred: None,
            writes: Vec::new(),
            emitted: false,
            clashes: None,
            clash_next: false,
            local: Vec::new(),
            deeds: Vec::new(),
            statements: BTreeMap::new(),
            stale: BTreeSet::new(),
            portals: BTreeMap::new(),
            skips: false,
            copy: None,
            simple: None,
            sleeps: None,
            input: VecDeque::new(),
            held: Vec::new(),
            out: Vec::new(),
            dead: false,
            single: false,
            cancel_next: false,
            cancel_at: None,
        }
    }

    /// What it says of itself at the end of a log-in.
    pub fn parameters(&self) -> Vec<(String, String)> {
        self.reported.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub fn read(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.input.extend(messages);
    }

    /// Everything was answered that can be.
    pub fn is_quiet(&self) -> bool {
        self.dead
            || (self.input.is_empty()
                && self.simple.is_none()
                && self.sleeps.is_none()
                && self.committing.is_none()
                && self.copy.is_none())
    }

    pub fn is_clean(&self) -> bool {
        self.is_quiet() && self.transaction == Transaction::No && !self.skips
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        let mut found = self.values.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub fn statement_names(&self) -> usize {
        self.statements.keys().filter(|name| !name.is_empty()).count()
    }

    pub fn flush(&mut self) {
        if self.committing.is_none() {
            self.out.append(&mut self.held);
        }
    }

    /// Nobody uses it any more.
    pub fn abandon(&mut self) {
        if let (Some(xid), Some(data)) = (self.xid.take(), &self.data) {
            data.borrow_mut().abort(xid);
        }
    }

    /// pg_terminate_backend, or a crash.
    pub fn die(&mut self, says_so: bool) {
        self.abandon();
        self.committing = None;
        self.held.clear();
        if says_so {
            self.fatal("57P01", "terminating connection due to administrator command");
        }
        self.dead = true;
        self.sleeps = None;
    }

    fn fatal(&mut self, code: &str, message: &str) {
        reply::put_error(
            &mut self.held,
            &ErrorReply { severity: "FATAL", code, message, detail: None, hint: None },
        );
        self.flush();
        self.dead = true;
    }

    /// A CancelRequest: nothing happens when nothing runs.
    pub fn cancel(&mut self) {
        if self.sleeps.is_some() {
            self.wake(true);
        }
    }

    /// A `sleep` is over.
    pub fn wake(&mut self, cancelled: bool) {
        let Some(Sleep { simple, after }) = self.sleeps.take() else { return };
        if cancelled {
            return self.error("57014", "canceling statement due to user request", simple);
        }
        match after {
            After::NoRow => reply::put_command_complete(&mut self.held, "SELECT 0"),
            After::Wrote(mark) => self.wrote(mark),
            After::LockTimeout => {
                self.error("55P03", "canceling statement due to lock timeout", simple);
            }
        }
    }

    /// Takes the next message, or goes on with a simple query.
    pub fn step(&mut self) -> Step {
        if self.dead {
            return Step::Dead;
        }
        if self.sleeps.is_some() {
            return Step::Sleeps(0);
        }
        if let Some(xid) = self.committing {
            let visible = self.data.as_ref().is_none_or(|data| data.borrow().is_visible(xid));
            if !visible {
                return Step::Waits;
            }
            self.committing = None;
            self.flush();
        }
        if self.waits_for_table() {
            return Step::Waits;
        }
        if self.simple.is_some() && self.copy.is_none() {
            return self.step_simple();
        }
        let Some(message) = self.input.pop_front() else { return Step::Waits };
        self.taken += 1;
        if self.copy.is_some() {
            self.copy_message(&message);
            return Step::Did;
        }
        if self.skips && !matches!(message.tag, tag::SYNC | tag::TERMINATE) {
            return Step::Did;
        }
        let late = matches!(message.tag, tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL);
        if self.cancel_at.is_some_and(|part| message.tag == tag::QUERY && says(&message, part)) {
            (self.cancel_at, self.cancel_next) = (None, true);
        }
        if self.cancel_next && !late && !matches!(message.tag, tag::SYNC | tag::FLUSH) {
            self.cancel_next = false;
            let simple = matches!(message.tag, tag::QUERY | tag::FUNCTION_CALL);
            if message.tag == tag::QUERY {
                self.statements.remove(&b""[..]);
            }
            self.error("57014", "canceling statement due to user request", simple);
            return Step::Did;
        }
        self.message(&message)
    }

    /// Who empties a table has locked it until others see it as empty.
    fn waits_for_table(&self) -> bool {
        let emptied = self.data.as_ref().is_some_and(|data| data.borrow().is_emptied());
        if !emptied || self.copy.is_some() {
            return false;
        }
        let text = match (&self.simple, self.input.front()) {
            (Some(parts), _) => parts.front(),
            (None, Some(message)) if message.tag == tag::EXECUTE && !self.skips => {
                let (name, _) = frontend::execute(message.body()).expect("an Execute");
                self.portals.get(name).map(|portal| &portal.text)
            }
            _ => None,
        };
        text.is_some_and(|text| text.starts_with("put") || text.starts_with("del "))
    }

    fn message(&mut self, message: &Message) -> Step {
        let body = message.body();
        match message.tag {
            tag::QUERY => {
                self.statements.remove(&b""[..]);
                self.portals.remove(&b""[..]);
                let text = text(frontend::query(body).expect("a Query"));
                if self.single && text.starts_with("begin") {
                    reply::put_error(&mut self.held, &failure("0A000", "refused"));
                    self.ready();
                    return Step::Did;
                }
                let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
                let parts: VecDeque<String> = parts.map(str::to_owned).collect();
                if parts.is_empty() {
                    reply::put_empty_query(&mut self.held);
                }
                self.simple = Some(parts);
                if self.transaction == Transaction::No {
                    self.begin(Transaction::Implicit);
                }
            }
            tag::PARSE => self.parse(body),
            tag::BIND => self.bind(body),
            tag::DESCRIBE => self.describe(body),
            tag::EXECUTE => return self.execute(body),
            tag::CLOSE => {
                let (target, name) = frontend::close(body).expect("a Close");
                match target {
                    Target::Statement => drop(self.statements.remove(name)),
                    Target::Portal => drop(self.portals.remove(name)),
                }
                reply::put_close_complete(&mut self.held);
            }
            tag::SYNC => {
                self.skips = false;
                if self.transaction == Transaction::Implicit {
                    self.commit_implicit();
                }
                self.ready();
            }
            tag::FLUSH => self.flush(),
            tag::FUNCTION_CALL => {
                if self.transaction == Transaction::Failed {
                    self.error("25P02", ABORTED, true);
                } else {
                    frame_into(&mut self.held, say::FUNCTION_RESULT, body);
                    self.ready();
                }
            }
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => {}
            tag::TERMINATE => {
                self.abandon();
                self.dead = true;
            }
            other => panic!("the server was sent a message of type {other}"),
        }
        Step::Did
    }

    fn step_simple(&mut self) -> Step {
        let Some(text) = self.simple.as_mut().and_then(VecDeque::pop_front) else {
            self.simple = None;
            if self.transaction == Transaction::Implicit {
                // In real life its error takes the place of the last CommandComplete.
                self.commit_implicit();
            }
            self.ready();
            return Step::Did;
        };
        if self.transaction == Transaction::No {
            self.begin(Transaction::Implicit);
        }
        let mut portal = Portal { text, values: Vec::new(), format: 0, sent: 0, done: false };
        if self.transaction == Transaction::Failed && !ends_transaction(&portal.text) {
            self.error("25P02", ABORTED, true);
            return Step::Did;
        }
        if let Err((code, message)) = analyse(&portal.text, true) {
            self.error(code, &message, true);
            return Step::Did;
        }
        if has_rows(&portal.text) {
            self.row_description(&portal.text, 0);
        }
        match self.statement(&mut portal, 0, true) {
            Outcome::Done | Outcome::Suspended | Outcome::Failed | Outcome::Copies => Step::Did,
            Outcome::Sleeps(time, after) => {
                self.sleeps = Some(Sleep { simple: true, after });
                Step::Sleeps(time)
            }
        }
    }

    pub(crate) fn begin(&mut self, kind: Transaction) {
        if self.transaction == Transaction::No {
            self.before = Some(self.values.clone());
        }
        self.transaction = kind;
    }

    /// The transaction is committed: at once on disk, and all before it, or some time later.
    pub(crate) fn end(&mut self) {
        let logged = std::mem::take(&mut self.emitted) || !self.writes.is_empty();
        let waits = self.value("synchronous_commit").is_none_or(|value| value != "off");
        if let (Some(xid), Some(data)) = (self.xid.take(), &self.data) {
            let mut data = data.borrow_mut();
            data.commit(xid, self.writes.clone(), waits);
            self.committing = Some(xid).filter(|xid| !data.is_visible(*xid));
        }
        self.deeds.extend(self.writes.drain(..).map(Deed::Committed));
        if logged && waits {
            self.deeds.push(Deed::Flushed);
        }
        self.over();
    }

    fn over(&mut self) {
        for (name, value) in std::mem::take(&mut self.local) {
            match value {
                Some(value) => set(&mut self.values, &name, &value),
                None => self.values.retain(|known, _| *known != name),
            }
        }
        self.transaction = Transaction::No;
        self.before = None;
        self.deferred = None;
        self.changes.clear();
        self.made_other = false;
        self.portals.clear();
    }

    pub(crate) fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.values = before;
        }
        self.abandon();
        self.writes.clear();
        self.emitted = false;
        self.over();
    }

    fn commit_implicit(&mut self) {
        match self.deferred.take() {
            Some(mark) => {
                self.roll_back();
                reply::put_error(&mut self.held, &failure("23503", &format!("deferred {mark}")));
            }
            None => self.end(),
        }
    }

    pub(crate) fn error(&mut self, code: &str, message: &str, simple: bool) {
        reply::put_error(&mut self.held, &failure(code, message));
        self.failed(simple);
    }

    /// An error has been told.
    pub(crate) fn failed(&mut self, simple: bool) {
        self.flush();
        self.copy = None;
        match self.transaction {
            Transaction::Block | Transaction::Failed => {
                if let Some(before) = &self.before {
                    self.values = before.clone();
                }
                self.deferred = None;
                self.writes.clear();
                self.changes.clear();
                self.made_other = false;
                self.abandon();
                self.transaction = Transaction::Failed;
            }
            Transaction::Implicit | Transaction::No => self.roll_back(),
        }
        if simple {
            self.simple = None;
            self.ready();
        } else {
            self.skips = true;
        }
    }

    fn status(&self) -> TxStatus {
        match self.transaction {
            Transaction::No | Transaction::Implicit => TxStatus::Idle,
            Transaction::Block => TxStatus::InTransaction,
            Transaction::Failed => TxStatus::Failed,
        }
    }

    fn ready(&mut self) {
        for (name, value) in &self.values {
            let known = self.reported.get(name);
            if known.is_some() && known != Some(value) {
                reply::put_parameter_status(&mut self.held, name, value);
                self.reported.insert(name.clone(), value.clone());
            }
        }
        let mut status = self.status();
        if self.single && status != TxStatus::Idle {
            let refused = "transaction blocks are not allowed in statement pooling mode";
            reply::put_error(&mut self.held, &failure("0A000", refused));
            self.roll_back();
            status = TxStatus::Idle;
        }
        reply::put_ready(&mut self.held, status);
        self.flush();
    }

    fn parse(&mut self, body: &[u8]) {
        let parse = frontend::parse(body).expect("a Parse");
        let (name, query) = (parse.name.to_vec(), text(parse.query));
        if self.transaction == Transaction::No {
            self.begin(Transaction::Implicit);
        }
        if name.is_empty() {
            self.statements.remove(&name);
        }
        if query.starts_with("syntax") {
            return self.error("42601", &format!("syntax error at \"{query}\""), false);
        }
        let is_allowed = query.is_empty() || ends_transaction(&query);
        if self.transaction == Transaction::Failed && !is_allowed {
            return self.error("25P02", ABORTED, false);
        }
        if let Err((code, message)) = analyse(&query, false) {
            return self.error(code, &message, false);
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            let name = text(&name);
            let message = format!("prepared statement \"{name}\" already exists");
            return self.error("42P05", &message, false);
        }
        self.statements.insert(name, query);
        reply::put_parse_complete(&mut self.held);
    }

    fn bind(&mut self, body: &[u8]) {
        let head = frontend::bind_head(body).expect("a Bind").expect("a whole Bind");
        if self.transaction == Transaction::No {
            self.begin(Transaction::Implicit);
        }
        let Some(query) = self.statements.get(head.statement).cloned() else {
            return self.no_statement(head.statement);
        };
        if self.transaction == Transaction::Failed && !ends_transaction(&query) {
            return self.error("25P02", ABORTED, false);
        }
        if !head.portal.is_empty() && self.portals.contains_key(head.portal) {
            let message = format!("cursor \"{}\" already exists", text(head.portal));
            return self.error("42P03", &message, false);
        }
        let tail = frontend::bind_tail(&body[head.rest..]).expect("a sound Bind");
        let values: Vec<String> =
            tail.values().map(|(binary, value)| plain_value(binary, value)).collect();
        if let Some(wrong) = values.iter().find(|value| is_invalid(value) && query.contains('$')) {
            let message = format!("invalid input: \"{wrong}\", a parameter");
            return self.error("22P02", &message, false);
        }
        if query.starts_with("copy") && !values.is_empty() {
            let given = values.len();
            let message = format!("bind message supplies {given} parameters, where 0 are wanted");
            return self.error("08P01", &message, false);
        }
        let format = tail.results.chunks_exact(2).any(|code| code[1] == 1).into();
        let portal = Portal { text: query, values, format, sent: 0, done: false };
        self.portals.insert(head.portal.to_vec(), portal);
        reply::put_bind_complete(&mut self.held);
    }

    fn no_statement(&mut self, name: &[u8]) {
        let message = if name.is_empty() {
            "unnamed prepared statement does not exist".to_owned()
        } else {
            format!("prepared statement \"{}\" does not exist", text(name))
        };
        self.error("26000", &message, false);
    }

    fn describe(&mut self, body: &[u8]) {
        let (target, name) = frontend::describe(body).expect("a Describe");
        if self.transaction == Transaction::No {
            self.begin(Transaction::Implicit);
        }
        let portal = self.portals.get(name).filter(|_| target == Target::Portal);
        let format = portal.map_or(0, |portal| portal.format);
        let query = match target {
            Target::Statement => self.statements.get(name).cloned(),
            Target::Portal => portal.map(|portal| portal.text.clone()),
        };
        let Some(query) = query else {
            if target == Target::Statement {
                return self.no_statement(name);
            }
            return self.no_portal(name);
        };
        // Real PostgreSQL lets pass what has no rows; a pooler that has to prepare it first can't.
        if self.transaction == Transaction::Failed && !ends_transaction(&query) {
            return self.error("25P02", ABORTED, false);
        }
        if target == Target::Statement {
            reply::put_parameter_description(&mut self.held, &[25]);
            if self.stale.contains(name) {
                return self.refuse_plan();
            }
        }
        if has_rows(&query) {
            self.row_description(&query, format);
        } else {
            reply::put_no_data(&mut self.held);
        }
    }

    fn no_portal(&mut self, name: &[u8]) {
        let message = format!("portal \"{}\" does not exist", text(name));
        self.error("34000", &message, false);
    }

    fn execute(&mut self, body: &[u8]) -> Step {
        let (name, limit) = frontend::execute(body).expect("an Execute");
        if self.transaction == Transaction::No {
            self.begin(Transaction::Implicit);
        }
        let Some(mut portal) = self.portals.get(name).cloned() else {
            self.no_portal(name);
            return Step::Did;
        };
        if self.transaction == Transaction::Failed && !ends_transaction(&portal.text) {
            self.error("25P02", ABORTED, false);
            return Step::Did;
        }
        if portal.done && gives_more(&portal.text) {
            reply::put_command_complete(&mut self.held, "SELECT 0");
            return Step::Did;
        }
        if portal.done {
            let message = format!("portal \"{}\" cannot be run", text(name));
            self.error("55000", &message, false);
            return Step::Did;
        }
        let name = name.to_vec();
        let outcome = self.statement(&mut portal, limit.max(0) as usize, false);
        match outcome {
            Outcome::Done | Outcome::Copies => portal.done = true,
            Outcome::Suspended => {}
            Outcome::Failed => return Step::Did,
            Outcome::Sleeps(time, after) => {
                portal.done = true;
                self.portals.insert(name, portal);
                self.sleeps = Some(Sleep { simple: false, after });
                return Step::Sleeps(time);
            }
        }
        if self.portals.contains_key(&name) {
            self.portals.insert(name, portal);
        }
        Step::Did
    }

    fn copy_message(&mut self, message: &Message) {
        let Some(copy) = &mut self.copy else { return };
        let simple = copy.simple;
        match message.tag {
            tag::COPY_DATA => {
                copy.rows += 1;
                if message.body().starts_with(b"bad") {
                    self.error("22P04", &text(message.body()), simple);
                }
            }
            tag::COPY_DONE => {
                let rows = copy.rows;
                self.copy = None;
                reply::put_command_complete(&mut self.held, &format!("COPY {rows}"));
            }
            tag::COPY_FAIL => self.error("57014", "COPY from stdin failed: enough", simple),
            tag::SYNC | tag::FLUSH => {}
            _ => {
                reply::put_error(&mut self.held, &failure("08P01", "unexpected message type"));
                self.fatal("08P01", "protocol synchronization was lost");
            }
        }
    }
}

const ABORTED: &str =
    "current transaction is aborted, commands ignored until end of transaction block";

pub(crate) fn failure<'a>(code: &'a str, message: &'a str) -> ErrorReply<'a> {
    ErrorReply { severity: "ERROR", code, message, detail: None, hint: None }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What its parse analysis has against a text. A value that is bound is looked at later, and
/// refused in other words.
fn analyse(query: &str, simple: bool) -> Result<(), (&'static str, String)> {
    for word in query.split_whitespace() {
        if simple && word.starts_with('$') {
            return Err(("42P02", format!("there is no parameter {word}")));
        }
        if word.starts_with('\'') && is_invalid(word.trim_matches('\'')) {
            return Err(("22P02", format!("invalid input: {word}")));
        }
    }
    Ok(())
}

fn is_invalid(value: &str) -> bool {
    value.starts_with("invalid-")
}

/// A text with its constants out of their quotes and its values in their places; behind it the
/// values that it does not name.
pub(crate) fn plain(query: &str, values: &[String]) -> String {
    let mut left: Vec<&str> = values.iter().map(String::as_str).collect();
    let mut words = Vec::new();
    for word in query.split_whitespace() {
        let named = word.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        words.push(match named {
            Some(number) => {
                if let Some(place) = left.get_mut(number - 1) {
                    *place = "";
                }
                values.get(number - 1).map_or("", String::as_str)
            }
            None => word.trim_matches('\''),
        });
    }
    left.retain(|value| !value.is_empty());
    [words.join(" "), left.join(",")].join(" ")
}

fn ends_transaction(query: &str) -> bool {
    let first = query.split_whitespace().next().unwrap_or("");
    first.eq_ignore_ascii_case("commit") || first.eq_ignore_ascii_case("rollback")
}

fn has_rows(query: &str) -> bool {
    let first = query.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
    matches!(
        first.as_str(),
        "echo" | "rows" | "big" | "show" | "sleep" | "select" | "fail" | "notice" | "channels"
    ) || is_read(query)
}

/// Its portal may be executed again, and has no more rows: a SELECT's.
/// Source: `PortalRun` in pquery.c, PORTAL_ONE_SELECT.
fn gives_more(query: &str) -> bool {
    let first = query.split_whitespace().next().unwrap_or("");
    matches!(first, "echo" | "rows" | "big") || is_read(query)
}

/// A value that was bound; what is binary is a whole number.
fn plain_value(binary: bool, value: Option<&[u8]>) -> String {
    let value = value.unwrap_or_default();
    match (binary, value.len()) {
        (true, 4) => i32::from_be_bytes(value.try_into().expect("four bytes")).to_string(),
        (true, 8) => i64::from_be_bytes(value.try_into().expect("eight bytes")).to_string(),
        _ => text(value),
    }
}

pub(crate) fn set(values: &mut Values, name: &str, value: &str) {
    let value = match name.to_ascii_lowercase().as_str() {
        "datestyle" if !value.contains(',') => format!("{value}, MDY"),
        _ => value.to_owned(),
    };
    let known = values.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
    values.insert(known.unwrap_or_else(|| name.to_owned()), value);
}

pub(crate) fn frame_into(out: &mut Vec<u8>, tag: u8, body: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

fn says(query: &Message, part: &str) -> bool {
    query.body().windows(part.len()).any(|window| window == part.as_bytes())
}
