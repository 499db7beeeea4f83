//! One live connection to PostgreSQL: what is on its way to it, whose replies come back, and what
//! state its session is in.
//!
//! How it is driven: the caller appends messages to [`Server::out`] and announces each of them,
//! in the same order, with [`Server::push`]; it writes `out` to the socket when it likes; it hands
//! whatever it reads to [`Server::receive`], cut anywhere. Replies and events come out through
//! [`Replies`]. A server that is [`Server::is_quiet`] has nothing in flight.
//!
//! Messages that are only passed on are never assembled: a row of 1 GB goes through in the pieces
//! in which it arrives.

mod collecting;
mod copying;
mod errors;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use wire::pg::backend::{self as messages, tag, TxStatus};
use wire::pg::frame::{self, Header, HEADER_BYTES};
use wire::pg::WireError;

use crate::moment::Moment;
use crate::reply::{Again, Event, Fate, Kind, Made, Outcome, Owner, Replies, Request};
use crate::residents::{is_place, Residents};
use crate::settings::Settings;
use crate::statement::Prepared;
pub use collecting::{Row, ROWS_MAX};
use errors::{is_fatal, is_turned};

/// A reply that has to be looked at whole may have this many bytes. ParameterStatus is the only
/// one that can be long (a `search_path`, an `application_name`).
pub const LOOKED_AT_BYTES_MAX: usize = 1 << 20;

/// So much of an ErrorResponse is looked at; the rest is passed on as it comes.
const ERROR_HEAD_BYTES: usize = 8 << 10;

/// The server broke the protocol, or the pooler lost track of it: the connection must be closed,
/// since no reply on it can be given to anybody with certainty.
#[derive(Debug, PartialEq, Eq)]
pub enum Lost {
    Wire(WireError),
    /// This message can't be the answer to what is at the head of the queue.
    Unexpected {
        tag: u8,
        awaited: Option<Kind>,
    },
    TooLong {
        tag: u8,
        bytes: usize,
    },
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::Wire(error) => write!(f, "{error}"),
            Lost::Unexpected { tag, awaited } => {
                write!(f, "unexpected message '{}'", tag.escape_ascii())?;
                match awaited {
                    Some(kind) => write!(f, " in answer to {kind:?}"),
                    None => write!(f, " when nothing was asked"),
                }
            }
            Lost::TooLong { tag, bytes } => {
                write!(f, "message '{}' of {bytes} bytes is too long", tag.escape_ascii())
            }
        }
    }
}

impl std::error::Error for Lost {}

impl From<WireError> for Lost {
    fn from(error: WireError) -> Lost {
        Lost::Wire(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    No,
    /// CopyInResponse or CopyBothResponse: the server reads CopyData.
    In(Owner),
}

/// Which unnamed statement a server holds, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unnamed {
    Nothing,
    /// The pooler's own, or a client's that has left.
    Stale,
    /// The one with this stamp (of the client that parsed it).
    Of(u64),
}

/// The FATAL error after which a server closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastWords {
    Unsaid,
    /// This owner got it as the answer to a request.
    ToldTo(Owner),
    /// Nothing had been asked: the whole message, for whoever has the server when it closes; empty
    /// when it was too long to be kept.
    Kept(Vec<u8>),
}

#[derive(Debug)]
pub struct Server {
    /// Bytes for the socket.
    pub out: Vec<u8>,
    /// Statement mode: a ReadyForQuery inside a transaction is kept back, and the owner is told
    /// [`Event::LeftOpen`] instead.
    pub single: bool,
    /// Commands that have changed what is prepared and that nobody has explained: something may be
    /// there which the next client must not find.
    pub litter: u32,
    /// Notifications are no part of what owners are sent: the holder is told
    /// [`Event::Notification`] instead.
    pub apart: bool,
    /// The holder has heard nothing of what it asked, and can ask it elsewhere: a conflict with what
    /// the server has to replay is told as [`Event::Again`].
    pub yields: bool,
    /// A library was loaded by hand: it can't be unloaded.
    has_library: bool,
    /// And DISCARD ALL has not been said since.
    pub needs_library: bool,
    /// Definitions have been changed in the transaction that is open.
    redefines: bool,
    /// Tables have been created in it.
    creates: bool,
    queue: VecDeque<Request>,
    /// The beginning of a message that is not decided yet.
    held: Vec<u8>,
    /// Bytes of a message still to come that is being passed on, and to whom.
    rest: usize,
    rest_to: Option<Owner>,
    status: TxStatus,
    /// After an error in the extended protocol the server skips everything up to a Sync, and that
    /// Sync has not been sent yet.
    skipping: bool,
    copy: Copy,
    /// Syncs that were sent before the server began to copy in, or while it did, and so are not
    /// answered; unless the copy failed before it read a byte. [`Server::fence`] finds out.
    eaten_syncs: u32,
    /// A fence is in flight.
    fenced: bool,
    /// Who gets what the server says unasked.
    holder: Option<Owner>,
    setup_error: Option<Vec<u8>>,
    /// The owner at the head has been given a byte of its answer.
    begun: bool,
    /// The head's owner has not been told of an error, and will send its statement again.
    rejected: Option<Again>,
    /// That error, whole, for an owner who may have sent more behind it in the meantime.
    withheld: Option<Vec<u8>>,
    /// A ParameterDescription, told with what follows it: PostgreSQL sends it before it looks whether
    /// the statement's plan still fits.
    parameters: Vec<u8>,
    /// Whose cancel request is under way: what hits another was not meant.
    pub cancelling: Option<Owner>,
    broken: bool,
    last_words: LastWords,
    /// Counts batches; a batch ends with a Sync, a Query or a FunctionCall.
    batch: u64,
    reported: Vec<(String, String)>,
    /// The rows of a request with [`Fate::Setup`], where they are wanted.
    rows: Option<Vec<Row>>,
    /// Its settings are fewer than they were, and not shared with others that are equal.
    narrowed: bool,
    pub prepared: Prepared,
    pub residents: Residents,
    unnamed: Unnamed,
    /// The batch that made it so.
    unnamed_batch: u64,
    pub settings: Arc<Settings>,
    /// What the server reported when it logged in.
    pub defaults: Arc<Settings>,
    pub opened: Moment,
    /// When it became idle, or was lent.
    pub since: Moment,
}

enum Verdict {
    Pass(Owner),
    Drop,
}

impl Server {
    /// A server that has logged in and is idle.
    pub fn new(defaults: Arc<Settings>, now: Moment) -> Server {
        Server {
            out: Vec::new(),
            single: false,
            litter: 0,
            apart: false,
            yields: false,
            has_library: false,
            needs_library: false,
            redefines: false,
            creates: false,
            queue: VecDeque::new(),
            held: Vec::new(),
            rest: 0,
            rest_to: None,
            status: TxStatus::Idle,
            skipping: false,
            copy: Copy::No,
            eaten_syncs: 0,
            fenced: false,
            holder: None,
            setup_error: None,
            begun: false,
            rejected: None,
            withheld: None,
            parameters: Vec::new(),
            cancelling: None,
            broken: false,
            last_words: LastWords::Unsaid,
            batch: 1,
            reported: Vec::new(),
            rows: None,
            narrowed: false,
            prepared: Prepared::default(),
            residents: Residents::default(),
            unnamed: Unnamed::Nothing,
            unnamed_batch: 0,
            settings: defaults.clone(),
            defaults,
            opened: now,
            since: now,
        }
    }

    pub fn status(&self) -> TxStatus {
        self.status
    }

    /// Nothing is in flight.
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.rest == 0 && self.held.is_empty()
    }

    /// Its session is no longer what others expect.
    pub fn has_library(&self) -> bool {
        self.has_library
    }

    /// A library was loaded by hand, by LOAD or by what can't be looked into.
    pub fn library_loaded(&mut self) {
        (self.has_library, self.needs_library) = (true, true);
    }

    /// Answers with a ReadyForQuery that `owner` awaits.
    pub fn awaited_by(&self, owner: Owner) -> usize {
        let awaits = |request: &&Request| {
            request.owner == owner && request.fate == Fate::Forward && request.kind.ends_batch()
        };
        self.queue.iter().filter(awaits).count()
    }

    /// Requests in flight.
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// A command of the pooler's own failed: it can't be lent again.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// More ReadyForQuery could come than are awaited: it can't be lent before a fence.
    pub fn owes_ready(&self) -> bool {
        self.eaten_syncs > 0
    }

    /// Whose request it works on.
    pub fn works_for(&self) -> Option<Owner> {
        self.queue.front().map(|request| request.owner)
    }

    /// `owner` has got part of the answer to what it asked.
    pub fn has_begun(&self, owner: Owner) -> bool {
        self.begun && self.works_for() == Some(owner) || self.is_within_message(owner)
    }

    /// What is in flight belongs to nobody any more, and is not the pooler's own either.
    pub fn runs_for_nobody(&self) -> bool {
        let works = |request: &Request| request.fate == Fate::Hide && !request.kind.is_sync();
        self.queue.front().is_some_and(works)
    }

    /// What is sent now will not be looked at, for there was an error and no Sync since.
    pub fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// The transaction status in which the batch that is being sent begins; none while an earlier
    /// batch decides.
    pub fn batch_status(&self) -> Option<TxStatus> {
        let earlier = self.queue.iter().any(|request| request.kind.ends_batch());
        (!earlier).then_some(self.status)
    }

    /// It has said FATAL.
    pub fn is_dying(&self) -> bool {
        self.last_words != LastWords::Unsaid
    }

    pub fn last_words(&self) -> &LastWords {
        &self.last_words
    }

    /// It reads CopyData.
    pub fn copies_in(&self) -> bool {
        self.copy != Copy::No
    }

    /// Part of a message has been given to `owner`, the rest of it has not come yet.
    pub fn is_within_message(&self, owner: Owner) -> bool {
        self.rest > 0 && self.rest_to == Some(owner)
    }

    /// Whether that is its unnamed statement when it comes to the request that is being sent: not
    /// if an unanswered earlier batch decides.
    pub fn has_unnamed(&self, unnamed: Unnamed) -> bool {
        let decided = self.unnamed_batch == self.batch || self.batch_status().is_some();
        self.unnamed == unnamed && decided
    }

    /// What its unnamed statement is after the request that is being sent.
    pub fn set_unnamed(&mut self, unnamed: Unnamed) {
        if !self.skipping {
            (self.unnamed, self.unnamed_batch) = (unnamed, self.batch);
        }
    }

    /// The number of the batch that the next request belongs to.
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// Whoever it is lent to gets what it says unasked: notices, notifications, settings.
    pub fn lend(&mut self, holder: Option<Owner>) {
        self.holder = holder;
        self.yields = false;
    }

    /// ParameterStatus values since the last call, oldest first. Whoever takes them shares the
    /// settings that result with others that are equal.
    pub fn take_reported(&mut self) -> Vec<(String, String)> {
        self.narrowed = false;
        std::mem::take(&mut self.reported)
    }

    /// Whether the settings are others than they were at the last call of
    /// [`Server::take_reported`].
    pub fn has_other_settings(&self) -> bool {
        self.narrowed || !self.reported.is_empty()
    }

    /// Announces a request whose bytes were appended to [`Server::out`] (or, for
    /// [`Fate::Made`], one that needs none).
    pub fn push(&mut self, request: Request, replies: &mut impl Replies) {
        if request.kind.ends_batch() {
            self.batch += 1;
        }
        if let (Some(id), Kind::Parse | Kind::Close) = (on_server(&request), request.kind) {
            self.prepared.sent(id, request.kind == Kind::Parse, self.batch);
        }
        if request.kind.is_sync() {
            self.skipping = false;
        } else if self.skipping {
            self.settle(request, Outcome::Skipped, replies);
            return;
        }
        if request.kind == Kind::Query {
            // Source: `exec_simple_query` in postgres.c, drop_unnamed_stmt.
            (self.unnamed, self.unnamed_batch) = (Unnamed::Nothing, self.batch - 1);
        }
        self.queue.push_back(request);
        self.deliver_made(replies);
    }

    /// The client has gone: what it still has in flight is answered to nobody.
    pub fn disown(&mut self, owner: Owner) {
        for request in self.queue.iter_mut().filter(|request| request.owner == owner) {
            request.owner = Owner::NOBODY;
            request.told = false;
            if !matches!(request.fate, Fate::Made(_)) {
                request.fate = Fate::Hide;
            }
        }
        if self.rest_to == Some(owner) {
            self.rest_to = None;
        }
        if self.holder == Some(owner) {
            self.holder = None;
        }
        if self.copy == Copy::In(owner) {
            self.copy = Copy::In(Owner::NOBODY);
        }
    }

    /// Takes what was read from the socket.
    ///
    /// # Errors
    /// [`Lost`] when the server breaks the protocol; the connection must be closed.
    pub fn receive(&mut self, mut bytes: &[u8], replies: &mut impl Replies) -> Result<(), Lost> {
        if self.rest > 0 {
            let take = self.rest.min(bytes.len());
            flush(&bytes[..take], self.rest_to.unwrap_or(Owner::NOBODY), replies);
            self.rest -= take;
            bytes = &bytes[take..];
            self.deliver_made(replies);
        }
        while !self.held.is_empty() && !bytes.is_empty() {
            let wanted = match frame::header(&self.held)? {
                Some(header) => self.wanted(header)?,
                None => HEADER_BYTES,
            };
            let take = wanted.saturating_sub(self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            let held = std::mem::take(&mut self.held);
            let consumed = self.messages(&held, replies)?;
            if consumed == 0 {
                self.held = held;
            } else if self.rest > 0 {
                let take = self.rest.min(bytes.len());
                flush(&bytes[..take], self.rest_to.unwrap_or(Owner::NOBODY), replies);
                self.rest -= take;
                bytes = &bytes[take..];
                self.deliver_made(replies);
            }
        }
        if !bytes.is_empty() {
            let consumed = self.messages(bytes, replies)?;
            self.held.extend_from_slice(&bytes[consumed..]);
        }
        Ok(())
    }

    /// Takes every message at the beginning of `bytes` that can be decided; returns how many bytes
    /// that was. What is forwarded to one owner leaves in one piece.
    fn messages(&mut self, bytes: &[u8], replies: &mut impl Replies) -> Result<usize, Lost> {
        let mut at = 0;
        let (mut from, mut to, mut run_owner) = (0, 0, Owner::NOBODY);
        while let Some(header) = frame::header(&bytes[at..])? {
            let have = bytes.len() - at;
            if have < self.wanted(header)? {
                break;
            }
            let end = at + have.min(header.total);
            if self.withheld.is_some() {
                // If that is told after all, it is behind what came before it.
                flush(&bytes[from..to], run_owner, replies);
                (from, to) = (at, at);
            }
            let verdict = self.message(header.tag, &bytes[at + HEADER_BYTES..end], replies)?;
            if let Verdict::Pass(owner) = verdict {
                // ReadyForQuery, too, passes: what follows it is another's.
                self.begun = header.tag != tag::READY_FOR_QUERY;
                if owner != run_owner || to != at {
                    flush(&bytes[from..to], run_owner, replies);
                    (from, run_owner) = (at, owner);
                }
                to = end;
            }
            at = end;
            if have < header.total {
                self.rest = header.total - have;
                self.rest_to = match verdict {
                    Verdict::Pass(owner) => Some(owner),
                    Verdict::Drop => None,
                };
                break;
            }
            if self.made_is_due() {
                flush(&bytes[from..to], run_owner, replies);
                (from, to) = (end, end);
                self.deliver_made(replies);
            }
        }
        flush(&bytes[from..to], run_owner, replies);
        Ok(at)
    }

    fn made_is_due(&self) -> bool {
        matches!(self.queue.front(), Some(Request { fate: Fate::Made(_), .. }))
    }

    /// Not into the middle of a message.
    fn deliver_made(&mut self, replies: &mut impl Replies) {
        if self.rest > 0 {
            return;
        }
        while let Some(&request) = self.queue.front() {
            let Fate::Made(made) = request.fate else { break };
            self.queue.pop_front();
            if request.kind == Kind::Part {
                self.part_answered(request.owner, made, replies);
                continue;
            }
            // That a statement is prepared stays true when the rest is sent again.
            self.begun |= request.kind != Kind::Parse;
            flush(made.bytes(), request.owner, replies);
            self.settle(request, Outcome::Done, replies);
        }
    }

    /// All of an owner's part of a shared batch is answered.
    fn part_answered(&mut self, owner: Owner, made: Made, replies: &mut impl Replies) {
        self.begun = false;
        match self.rejected.take() {
            Some(again) => replies.event(owner, Event::Again(again)),
            None => {
                flush(made.bytes(), owner, replies);
                replies.event(owner, Event::Ready(TxStatus::Idle));
            }
        }
    }

    /// A request is answered, or will never be.
    fn settle(&mut self, request: Request, outcome: Outcome, replies: &mut impl Replies) {
        let done = outcome == Outcome::Done;
        if is_place(request.statement) {
            self.residents.settled(request.statement, done);
        } else if let (Some(id), Kind::Parse | Kind::Close) = (on_server(&request), request.kind) {
            self.prepared.settled(id, request.kind == Kind::Parse, done);
        }
        if request.told {
            replies.event(request.owner, Event::Settled(outcome));
        }
    }

    fn message(
        &mut self,
        tag: u8,
        body: &[u8],
        replies: &mut impl Replies,
    ) -> Result<Verdict, Lost> {
        let Some(&head) = self.queue.front() else {
            return self.unasked(tag, body, replies);
        };
        let verdict = match head.fate {
            Fate::Forward => Verdict::Pass(head.owner),
            // It belongs to no answer.
            _ if tag == tag::NOTIFICATION => self.holder.map_or(Verdict::Drop, Verdict::Pass),
            _ => Verdict::Drop,
        };
        let fits = match tag {
            tag::DATA_ROW => {
                self.collect(body, head)?;
                matches!(head.kind, Kind::Execute | Kind::Query)
            }
            tag::NOTIFICATION if self.apart => {
                let holder = self.holder.unwrap_or(Owner::NOBODY);
                replies.event(holder, Event::Notification(body));
                return Ok(Verdict::Drop);
            }
            tag::NOTICE | tag::NOTIFICATION | tag::COPY_DATA | tag::COPY_DONE => true,
            tag::PARAMETER_STATUS => {
                self.parameter_status(body, head, replies)?;
                true
            }
            tag::READY_FOR_QUERY => return self.ready(body, head, verdict, replies),
            tag::ERROR => return Ok(self.error(body, head, replies)),
            tag::COMMAND_COMPLETE => {
                self.command_complete(body, head, replies)?;
                self.ends(Kind::Execute, head, replies) || head.kind == Kind::Query
            }
            tag::EMPTY_QUERY => self.ends(Kind::Execute, head, replies) || head.kind == Kind::Query,
            tag::PORTAL_SUSPENDED => self.ends(Kind::Execute, head, replies),
            tag::PARSE_COMPLETE => self.ends(Kind::Parse, head, replies),
            tag::BIND_COMPLETE => self.ends(Kind::Bind, head, replies),
            tag::CLOSE_COMPLETE => {
                if std::mem::take(&mut self.fenced) {
                    self.eaten_syncs = 0;
                }
                self.ends(Kind::Close, head, replies)
            }
            tag::PARAMETER_DESCRIPTION if head.replans && head.kind == Kind::Describe => {
                self.parameters = errors::message(tag, body);
                return Ok(Verdict::Drop);
            }
            tag::PARAMETER_DESCRIPTION => head.kind == Kind::Describe,
            tag::NO_DATA => {
                self.tell_parameters(head, replies);
                self.ends(Kind::Describe, head, replies)
            }
            tag::ROW_DESCRIPTION => {
                self.tell_parameters(head, replies);
                self.ends(Kind::Describe, head, replies) || head.kind == Kind::Query
            }
            tag::FUNCTION_RESULT => head.kind == Kind::Function,
            tag::COPY_OUT => matches!(head.kind, Kind::Execute | Kind::Query),
            tag::COPY_IN | tag::COPY_BOTH => {
                self.copy_in(head, replies);
                matches!(head.kind, Kind::Execute | Kind::Query)
            }
            _ => false,
        };
        if fits {
            Ok(verdict)
        } else {
            Err(Lost::Unexpected { tag, awaited: Some(head.kind) })
        }
    }

    /// The head, if it is of this kind, is answered whole.
    fn ends(&mut self, kind: Kind, head: Request, replies: &mut impl Replies) -> bool {
        if head.kind != kind {
            return false;
        }
        self.queue.pop_front();
        self.settle(head, Outcome::Done, replies);
        true
    }

    /// Answers a Sync that was thought to be eaten.
    fn late_ready(&mut self, body: &[u8]) -> Result<(), Lost> {
        self.eaten_syncs -= 1;
        self.status = messages::ready(body)?;
        self.skipping = false;
        Ok(())
    }

    fn ready(
        &mut self,
        body: &[u8],
        head: Request,
        verdict: Verdict,
        replies: &mut impl Replies,
    ) -> Result<Verdict, Lost> {
        if !head.kind.ends_batch() {
            if self.eaten_syncs > 0 {
                self.late_ready(body)?;
                // Behind a fence: it is for who had the server when the fence was sent.
                return Ok(self.holder.map_or(verdict, Verdict::Pass));
            }
            return Err(Lost::Unexpected { tag: tag::READY_FOR_QUERY, awaited: Some(head.kind) });
        }
        self.status = messages::ready(body)?;
        self.copy = Copy::No;
        self.begun = false;
        self.yields &= head.fate != Fate::Forward;
        self.queue.pop_front();
        if self.status == TxStatus::Idle {
            let redefines = std::mem::take(&mut self.redefines);
            if redefines {
                // Others have seen the old ones up to now.
                replies.event(head.owner, Event::Redefined);
            }
            if std::mem::take(&mut self.creates) || redefines {
                replies.event(head.owner, Event::Defined);
            }
        }
        self.settle(head, Outcome::Done, replies);
        if let Some(again) = self.rejected.take() {
            if self.is_kept_back(head, replies) {
                replies.event(head.owner, Event::Again(again));
                return Ok(Verdict::Drop);
            }
        }
        match head.fate {
            Fate::Forward if self.single && self.status != TxStatus::Idle => {
                replies.event(head.owner, Event::LeftOpen);
            }
            Fate::Forward => {
                replies.event(head.owner, Event::Ready(self.status));
                return Ok(Verdict::Pass(head.owner));
            }
            Fate::Setup => match self.setup_error.take() {
                Some(error) => replies.event(head.owner, Event::SetupFailed(&error)),
                None => replies.event(head.owner, Event::SetupDone),
            },
            _ => {}
        }
        Ok(Verdict::Drop)
    }

    fn command_complete(
        &mut self,
        body: &[u8],
        head: Request,
        replies: &mut impl Replies,
    ) -> Result<(), Lost> {
        let command = messages::command_tag(body)?;
        if command == b"PREPARE" && !is_place(head.statement) {
            self.litter += 1;
            if head.fate == Fate::Forward {
                replies.event(head.owner, Event::Prepared);
            }
        }
        if command == b"LOAD" {
            self.library_loaded();
        }
        if self.eaten_syncs > 0 || self.copy != Copy::No {
            // It has read all up to the CopyDone.
            (self.copy, self.eaten_syncs) = (Copy::No, 0);
            replies.event(head.owner, Event::CopyOver);
        }
        self.creates |= command == b"CREATE TABLE";
        if redefines(command) {
            self.redefines = true;
            replies.event(head.owner, Event::Redefined);
        }
        if !command.starts_with(b"D") {
            return Ok(());
        }
        let all = command == b"DISCARD ALL" || command == b"DEALLOCATE ALL";
        if all {
            self.prepared.clear();
            self.residents.clear();
            self.litter = 0;
        } else if command == b"DEALLOCATE" {
            self.litter += 1;
            if head.fate != Fate::Forward {
                self.prepared.doubt();
                self.residents.doubt();
            }
        }
        if command == b"DISCARD ALL" {
            self.needs_library = false;
            self.unnamed = Unnamed::Nothing;
            let left = self.settings.restricted_to(&self.defaults);
            if left != *self.settings {
                self.settings = Arc::new(left);
                self.narrowed = true;
            }
        }
        if (all || command == b"DEALLOCATE") && head.fate == Fate::Forward {
            replies.event(head.owner, Event::Dropped(command));
        }
        Ok(())
    }

    fn parameter_status(
        &mut self,
        body: &[u8],
        head: Request,
        replies: &mut impl Replies,
    ) -> Result<(), Lost> {
        let (name, value) = messages::parameter_status(body)?;
        self.reported.push((name.to_owned(), value.to_owned()));
        if head.fate == Fate::Forward {
            replies.event(head.owner, Event::Setting { name, value });
        }
        Ok(())
    }

    /// Nothing is in flight: only what a server may say by itself is right.
    fn unasked(
        &mut self,
        tag: u8,
        body: &[u8],
        replies: &mut impl Replies,
    ) -> Result<Verdict, Lost> {
        let holder = self.holder.unwrap_or(Owner::NOBODY);
        match tag {
            tag::NOTICE => {}
            tag::NOTIFICATION if self.apart => {
                replies.event(holder, Event::Notification(body));
                return Ok(Verdict::Drop);
            }
            tag::NOTIFICATION => replies.event(holder, Event::Notified),
            tag::PARAMETER_STATUS => {
                let head = Request::forward(holder, Kind::Query);
                self.parameter_status(body, head, replies)?;
            }
            tag::ERROR if is_fatal(body) => {
                if is_turned(body) {
                    replies.event(holder, Event::Turned);
                }
                let whole = frame::HEADER_BYTES + body.len() < ERROR_HEAD_BYTES;
                let message = whole.then(|| errors::message(tag, body));
                self.last_words = LastWords::Kept(message.unwrap_or_default());
                return Ok(Verdict::Drop);
            }
            tag::ERROR => replies.event(holder, Event::Error),
            tag::READY_FOR_QUERY if self.eaten_syncs > 0 => {
                self.late_ready(body)?;
                replies.event(holder, Event::ReadyUnasked(self.status));
            }
            _ => return Err(Lost::Unexpected { tag, awaited: None }),
        }
        Ok(if holder == Owner::NOBODY { Verdict::Drop } else { Verdict::Pass(holder) })
    }
}

/// The statement that a request prepares or closes on the server itself.
fn on_server(request: &Request) -> Option<u64> {
    let sent = !matches!(request.fate, Fate::Made(_));
    (request.statement != 0 && sent && !is_place(request.statement)).then_some(request.statement)
}

/// Commands after which a statement may mean something else. New tables and indexes don't count: a
/// name that was known means what it meant, unless it is shadowed, which is noticed later. A comment
/// may say how calls travel.
fn redefines(command: &[u8]) -> bool {
    let harmless: [&[u8]; 5] =
        [b"CREATE TABLE", b"CREATE INDEX", b"DROP INDEX", b"CREATE SEQUENCE", b"CREATE DATABASE"];
    let verbs: [&[u8]; 7] =
        [b"CREATE ", b"ALTER ", b"DROP ", b"GRANT", b"REVOKE", b"IMPORT ", b"COMMENT"];
    verbs.iter().any(|verb| command.starts_with(verb)) && !harmless.contains(&command)
}

/// So many bytes of a message have to be there before it can be decided.
fn wanted(header: Header) -> Result<usize, Lost> {
    match header.tag {
        tag::DATA_ROW
        | tag::COPY_DATA
        | tag::ROW_DESCRIPTION
        | tag::PARAMETER_DESCRIPTION
        | tag::FUNCTION_RESULT
        | tag::NOTICE => Ok(HEADER_BYTES),
        tag::ERROR => Ok(header.total.min(ERROR_HEAD_BYTES)),
        tag if header.total > LOOKED_AT_BYTES_MAX => {
            Err(Lost::TooLong { tag, bytes: header.total })
        }
        _ => Ok(header.total),
    }
}

fn flush(bytes: &[u8], owner: Owner, replies: &mut impl Replies) {
    if !bytes.is_empty() && owner != Owner::NOBODY {
        replies.bytes(owner, bytes);
    }
}
