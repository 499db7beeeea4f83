//! The engine: runs commands in memory, gathers what they change into batches, and says when a
//! reply may go.
//!
//! It has no sockets, no threads, no clock, and never sees RESP: the door parses and writes. One
//! engine serves all workers, under a lock that is held for a command or a few.
//!
//! # How a worker drives it
//!
//! - [`Engine::connect`] when a client may give commands, [`Engine::disconnect`] when it has gone.
//! - [`Engine::run`] for each command, in order. It tells:
//!   - [`Ran::Done`] with no barrier: the reply has been written and may go, once all earlier
//!     replies of this connection have. With a barrier: it has been written and is *held* until
//!     [`Engine::fate`] says [`Fate::Committed`], and so are all later ones. The worker keeps the
//!     command's bytes as long as its reply is held, with the connection's state that
//!     [`Ran::Done`] gives as `before`.
//!   - [`Ran::Parked`]: nothing has been done, nothing written. The worker keeps the command and
//!     runs it again at [`Event::Resume`]; it runs no later command of this connection before. It
//!     may name the keys of commands that wait behind it by [`Engine::prefetch`].
//!   - [`Ran::Blocked`]: it waits for a key. The reply comes as [`Event::Answer`]; no later command
//!     runs before. The worker keeps its bytes as well: if the answer is undone, it runs again. A
//!     blocked command changes nothing of the connection's state, so there is none to restore.
//! - [`Engine::turn`] at the end of each turn: sends what has gathered, serves who was blocked,
//!   fires what is due. [`Engine::next_due`] says when it has to be called though nothing happens.
//! - [`Engine::take_events`] gives what concerns the worker's connections, in order. For
//!   [`Event::Redo`]: [`Engine::begin_redo`], then the held replies whose fate is undone are thrown
//!   away and their commands run again in order, from the state before ([`Engine::restore`]), or are
//!   replied to with the error that the event has; replies in between whose fate is committed stay.
//!   Until then nothing of the connection runs. A fate of [`Fate::Lost`]: the connection is closed,
//!   nobody knows.

mod after;
mod blocking;
mod connections;
mod due;
mod results;

use std::sync::Arc;

use hashbrown::HashMap;

use crate::args::{Args, Words};
use crate::call::{self, Call};
use crate::command::{self, Command, Flags, Keys};
use crate::failure::Failure;
use crate::flow::{Barrier, Fate, Flow, Sealed, SHARDS_MAX};
use crate::keyspace::{Done, Keyspace};
use crate::random::Random;
use crate::reply::Reply;
use crate::server::{Event, Server, Settings};
use crate::session::{ConnId, Multi, ReplyMode, Session};
use crate::store::Store;

/// Batches of a shard in flight at once: one is written while the other commits.
const DEPTH: usize = 2;

/// Commands and bytes that MULTI may queue for one connection.
const QUEUED_BYTES_MAX: usize = 64 << 20;

/// Why nothing can be done at the beginning.
pub const NOT_YET: &str = "no connection has been made yet";

#[derive(Debug)]
pub enum Ran {
    Done {
        barrier: Option<Barrier>,
        /// For [`Engine::restore`]; given with a barrier only.
        before: Option<Before>,
        /// The connection is to be closed once this reply is written (QUIT).
        close: bool,
    },
    Parked,
    Blocked,
}

/// A connection's state before a command, as far as it matters if that runs again.
#[derive(Debug, Clone)]
pub struct Before {
    db: u16,
    multi: Option<Box<Multi>>,
    watching: Vec<(u16, Box<[u8]>)>,
}

/// A question that waits until what was done before it has committed, and is in the tables as far as
/// it is asked about.
struct Asked {
    conn: ConnId,
    query: crate::query::Query,
    barriers: Vec<Barrier>,
    /// A batch of the journal's shard.
    folded: u64,
}

/// Who waits for a row.
type Waiting = HashMap<(u16, Box<[u8]>), Loading, foldhash::fast::RandomState>;

#[derive(Debug, Default)]
struct Loading {
    conns: Vec<ConnId>,
    /// The row has changed since it was asked for: ask again.
    stale: bool,
}

pub struct Engine {
    pub keys: Keyspace,
    pub server: Server,
    pub(crate) store: Box<dyn Store + Send>,
    loading: Waiting,
    /// Keys to be asked for at the end of the turn.
    wanted: Vec<(u16, Box<[u8]>)>,
    in_flight: Vec<Sealed>,
    asked: Vec<Asked>,
    /// Blocked connections.
    waiters: blocking::Waiters,
    /// Parked because too much waits to be written.
    throttled: Vec<ConnId>,
    /// A batch was refused: nothing is sent until the others have been answered, then all that is
    /// not committed is undone. The refusal's words, if it is for good.
    undoing: Option<Option<String>>,
    /// Those batches; more may come to wait for them until all is undone.
    undone: Vec<Sealed>,
    /// When batches in flight were sent, in microseconds.
    sent: Vec<(u64, i64)>,
    /// Copies of what is in flight have been forgotten: rows are not looked up until it has landed.
    unsettled: bool,
    /// The same of what is in the journal: up to here it has to be in the tables.
    unfolded: u64,
    now: i64,
}

impl Engine {
    /// `shards`: of the databases that are not in journal mode.
    pub fn new(
        settings: Settings,
        store: Box<dyn Store + Send>,
        shards: usize,
        now: i64,
    ) -> Engine {
        let shards = row_shards(shards);
        let flow = match settings.journal_databases.is_empty() {
            true => Flow::new(&vec![0; shards]),
            false => Flow::new(&vec![0; shards + 1]).with_journal(),
        };
        let mut keys = Keyspace::new(settings.databases, flow, &settings.journal_databases);
        keys.notify = settings.notify_keyspace_events;
        let away = Some((NOT_YET.to_owned(), now));
        Engine {
            keys,
            server: Server { settings, away, now, started: now, ..Server::default() },
            store,
            loading: HashMap::default(),
            wanted: Vec::new(),
            in_flight: Vec::new(),
            asked: Vec::new(),
            waiters: blocking::Waiters::default(),
            throttled: Vec::new(),
            undoing: None,
            undone: Vec::new(),
            sent: Vec::new(),
            unsettled: false,
            unfolded: 0,
            now,
        }
    }

    /// With a clock, in microseconds since 1970: the time of slow commands and of commits is taken.
    pub fn with_clock(mut self, clock: fn() -> i64) -> Engine {
        self.server.clock = Some(clock);
        self
    }

    /// With a seed for what is chosen at random; without one it is the same in every process.
    pub fn with_seed(mut self, seed: u64) -> Engine {
        self.server.random = Random::new(seed);
        self
    }

    pub fn fate(&self, barrier: Barrier) -> Fate {
        self.keys.flow.fate(barrier)
    }

    /// Runs one command. `now`: milliseconds since 1970.
    pub fn run(&mut self, conn: ConnId, args: Args<'_>, now: i64, reply: &mut dyn Reply) -> Ran {
        self.set_time(now);
        let Some(mut session) = self.server.sessions.take(conn) else {
            return Ran::Done { barrier: None, before: None, close: true };
        };
        if session.killed {
            self.server.sessions.put_back(session);
            return Ran::Done { barrier: None, before: None, close: true };
        }
        if session.must_redo {
            self.server.sessions.put_back(session);
            return Ran::Parked;
        }
        session.last_seen = now;
        let ran = self.run_for(&mut session, args, reply);
        let blocked = matches!(ran, Ran::Blocked);
        self.server.sessions.put_back(session);
        if blocked {
            self.enqueue(conn);
        }
        // Before anybody's next command, so that who has waited is served first.
        self.serve_ready();
        self.note_tripped();
        ran
    }

    fn run_for(&mut self, session: &mut Session, args: Args<'_>, reply: &mut dyn Reply) -> Ran {
        let mark = reply.mark();
        let Some((command, number)) = command::find_numbered(args.at(0)) else {
            session.last_command = "";
            if let Some(multi) = &mut session.multi {
                multi.failed = true;
            }
            return self.refuse(session, call::unknown(args), reply, mark);
        };
        session.last_command = command.name;
        if let Err(failure) = call::check(command, args) {
            self.server.stats.of(number).rejected += 1;
            if let Some(multi) = &mut session.multi {
                multi.failed = true;
            }
            let failure = match command.name {
                "exec" => command::transactions::refused(&mut self.keys, session, failure),
                _ => failure,
            };
            return self.refuse(session, failure, reply, mark);
        }
        if let Some(container) = command::container(command) {
            if let Ok(Some(sub)) = container.find(args) {
                session.last_command = sub.name;
            }
        }
        if self.is_paused(session, command, args) {
            self.server.paused.push(session.conn);
            return Ran::Parked;
        }
        if let Some(multi) = &mut session.multi {
            // Those without the flag of administrators control the transaction itself.
            if command.flags.has(Flags::NO_MULTI.and(Flags::ADMIN)) {
                multi.failed = true;
                let failure = Failure::text("ERR Command not allowed inside a transaction");
                return self.refuse(session, failure, reply, mark);
            }
        }
        if session.multi.is_some() && !command.flags.has(Flags::NO_MULTI) {
            return self.queue(session, args, reply, mark);
        }
        if session.protocol == 2
            && !session.subscriptions.is_empty()
            && !command.flags.has(Flags::WHILE_SUBSCRIBED)
        {
            let failure = Failure::said(format!(
                "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
                 RESET are allowed in this context",
                session.last_command
            ));
            self.server.stats.of(number).rejected += 1;
            return self.refuse(session, failure, reply, mark);
        }
        if let Some(why) = session.refused.take() {
            return self.refuse(session, Failure::said(format!("ERR {why}")), reply, mark);
        }
        if let Some(why) = self.hopeless() {
            if command.flags.may_write() && !command.flags.has(Flags::NO_MULTI) {
                return self.refuse(session, Failure::said(format!("ERR {why}")), reply, mark);
            }
        }
        if command.flags.may_write() && self.is_full() {
            self.throttled.push(session.conn);
            return Ran::Parked;
        }
        self.execute(session, (command, number), args, reply, mark)
    }

    fn refuse(
        &mut self,
        session: &mut Session,
        failure: Failure,
        reply: &mut dyn Reply,
        mark: usize,
    ) -> Ran {
        session.answers.clear();
        session.shown = false;
        if session.last_command == "exec" {
            // Whatever the reason, it ends the transaction.
            session.multi = None;
            crate::command::transactions::unwatch_all(&mut self.keys, session);
        }
        if let Failure::Said(text) = failure {
            self.server.stats.error(&text);
            reply.error(&text);
        }
        self.finish_reply(session, reply, mark);
        Ran::Done { barrier: None, before: None, close: false }
    }

    /// CLIENT REPLY OFF and SKIP: nothing is said.
    fn finish_reply(&mut self, session: &mut Session, reply: &mut dyn Reply, mark: usize) {
        let mark = if std::mem::take(&mut session.told_anyway) { reply.mark() } else { mark };
        match session.reply_mode {
            ReplyMode::On => {}
            ReplyMode::Off => reply.rewind(mark),
            ReplyMode::SkipNext => {
                reply.rewind(mark);
                session.reply_mode = ReplyMode::Skip;
            }
            ReplyMode::Skip => {
                reply.rewind(mark);
                session.reply_mode = ReplyMode::On;
            }
        }
    }

    fn queue(
        &mut self,
        session: &mut Session,
        args: Args<'_>,
        reply: &mut dyn Reply,
        mark: usize,
    ) -> Ran {
        if let Some(multi) = &mut session.multi {
            let words = Words::from(args);
            multi.bytes += words.weight();
            if multi.bytes > QUEUED_BYTES_MAX {
                multi.failed = true;
                let failure = Failure::text("ERR too much is queued since MULTI");
                return self.refuse(session, failure, reply, mark);
            }
            multi.commands.push(words);
        }
        reply.simple("QUEUED");
        self.finish_reply(session, reply, mark);
        Ran::Done { barrier: None, before: None, close: false }
    }

    fn execute(
        &mut self,
        session: &mut Session,
        (command, number): (&'static Command, u16),
        args: Args<'_>,
        reply: &mut dyn Reply,
        mark: usize,
    ) -> Ran {
        let before = Before {
            db: session.db,
            multi: match command.name {
                "exec" => session.multi.clone().map(Box::new),
                _ => None,
            },
            watching: session.watching.clone(),
        };
        session.held.retain(|held| self.keys.flow.fate(held.barrier) == Fate::Pending);
        let mut latest = command.flags.may_write()
            || !session.held.is_empty()
            || !session.watching.is_empty()
            || command.name == "watch";
        let undoable = is_undoable(command, session);
        self.keys.counts_lookups = command.flags.has(Flags::READONLY);
        self.keys.leaves_no_trace = session.no_touch && command.name != "touch";
        loop {
            self.keys.begin(session.db, self.now, latest, undoable);
            self.server.monitors.forget();
            session.questions = 0;
            let outcome = match self.find_keys(command, session, args) {
                Ok(()) => {
                    let mut call = Call {
                        args,
                        reply,
                        keys: &mut self.keys,
                        session,
                        server: &mut self.server,
                        nested: false,
                    };
                    call.run_shown(command, number)
                }
                miss => miss,
            };
            match outcome {
                Ok(()) => self.server.stats.of(number).calls += 1,
                Err(Failure::Said(text)) => {
                    reply.rewind(mark);
                    self.server.stats.failed(number, &text);
                    reply.error(&text);
                }
                Err(Failure::Undone(text)) => {
                    reply.rewind(mark);
                    self.keys.undo();
                    reply.error(&text);
                }
                Err(Failure::Uncommitted) => {
                    reply.rewind(mark);
                    self.keys.undo();
                    latest = true;
                    continue;
                }
                Err(Failure::Miss) => {
                    reply.rewind(mark);
                    self.keys.undo();
                    return self.want_missing(session, reply, mark);
                }
                Err(Failure::Wait) => {
                    reply.rewind(mark);
                    self.keys.undo();
                    session.outstanding += 1;
                    return Ran::Parked;
                }
                Err(Failure::Blocked) => {
                    reply.rewind(mark);
                    self.end_blocked(session);
                    self.tell_monitors(session);
                    return Ran::Blocked;
                }
            }
            session.answers.clear();
            if let (Some(tracking), None) = (&mut session.tracking, &session.multi) {
                tracking.caching &= command.name == "client";
            }
            self.server.stats.processed += 1;
            self.tell_monitors(session);
            self.sample(session.db, command, args);
            let done = self.end_unit(session);
            return self.done(session, done, before, reply, mark);
        }
    }

    fn done(
        &mut self,
        session: &mut Session,
        done: Done,
        before: Before,
        reply: &mut dyn Reply,
        mark: usize,
    ) -> Ran {
        self.finish_reply(session, reply, mark);
        let close = std::mem::take(&mut session.quitting);
        Ran::Done { barrier: done.barrier, before: done.barrier.map(|_| before), close }
    }

    /// A batch that is closed, and not known to be committed.
    fn sealed(&mut self, barrier: Barrier) -> Option<&mut Sealed> {
        let of = (barrier.shard, barrier.seq);
        let mut sealed = self.in_flight.iter_mut().chain(&mut self.undone);
        sealed.find(|sealed| sealed.seqs.contains(&of))
    }

    /// The connection hears of the end of a batch that is closed; of an open one's it will anyway.
    fn await_commit(&mut self, conn: ConnId, barrier: Barrier) {
        if let Some(sealed) = self.sealed(barrier) {
            if sealed.open.waiters.last() != Some(&conn) {
                sealed.open.waiters.push(conn);
            }
        }
    }

    /// All keys of a command that has several, or of those that EXEC runs, are looked for before
    /// the first of them changes.
    fn find_keys(
        &mut self,
        command: &Command,
        session: &Session,
        args: Args<'_>,
    ) -> Result<(), Failure> {
        if let (Some(multi), "exec") = (&session.multi, command.name) {
            let mut db = session.db;
            let mut all = Ok(());
            for words in &multi.commands {
                let args = words.args();
                if let Ok(command) = call::find(args) {
                    if command.name == "select" {
                        db = to_db(args).unwrap_or(db);
                    }
                    self.keys.select(db);
                    all = all.and(self.keys.every_known(command, args));
                }
            }
            self.keys.select(session.db);
            return all;
        }
        self.keys.all_known(command, args)
    }

    fn want_missing(&mut self, session: &mut Session, reply: &mut dyn Reply, mark: usize) -> Ran {
        if let Some(why) = self.hopeless() {
            return self.refuse(session, Failure::said(format!("ERR {why}")), reply, mark);
        }
        for (db, key) in self.keys.missing() {
            session.outstanding += 1;
            self.want(db, key, Some(session.conn));
        }
        Ran::Parked
    }

    fn want(&mut self, db: u16, key: Box<[u8]>, conn: Option<ConnId>) {
        let name = (db, key);
        match self.loading.get_mut(&name) {
            Some(loading) => loading.conns.extend(conn),
            None => {
                self.wanted.push(name.clone());
                let loading = Loading { conns: conn.into_iter().collect(), stale: false };
                self.loading.insert(name, loading);
            }
        }
    }

    /// Asks for the keys of a command that waits behind a parked one.
    pub fn prefetch(&mut self, conn: ConnId, args: Args<'_>) {
        let Some(db) = self.server.sessions.get(conn).map(|session| session.db) else { return };
        let Ok(command) = call::find(args) else { return };
        if command.is_blind(args) && !self.keys.tells_new() {
            return;
        }
        for place in command.keys.places(args) {
            if let Some(key) = args.get(place) {
                if self.keys.find(db, key).is_none() && !self.keys.is_flushing(db) {
                    self.want(db, key.into(), None);
                }
            }
        }
    }

    /// The connection's worker has come to [`Event::Redo`]: what runs now are the commands that were
    /// undone, in order.
    pub fn begin_redo(&mut self, conn: ConnId) {
        self.leave_queues(conn);
        if let Some(session) = self.server.sessions.get_mut(conn) {
            session.must_redo = false;
        }
    }

    /// Puts a connection back to where it was before a command, so that it can run again.
    pub fn restore(&mut self, conn: ConnId, before: Before) {
        let Some(session) = self.server.sessions.get_mut(conn) else { return };
        session.shown = true;
        session.db = before.db;
        session.multi = before.multi.map(|multi| *multi);
        // Between its first run and this one nobody looked after what it watches.
        session.tripped |= session.multi.is_some() && !before.watching.is_empty();
        for (db, key) in before.watching {
            self.keys.watched.add(db, &key, conn);
            if !session.watching.contains(&(db, key.clone())) {
                session.watching.push((db, key));
            }
        }
    }

    /// Too much waits for PostgreSQL: writers wait, too.
    fn is_full(&self) -> bool {
        self.keys.flow.open_bytes() > self.server.settings.queue_limit
    }

    fn set_time(&mut self, now: i64) {
        self.now = self.now.max(now);
        self.server.now = self.now;
    }

    /// Everything that can be sent is sent; whoever can go on goes on.
    pub fn turn(&mut self, now: i64) {
        self.set_time(now);
        // Before rows come, so that they are there when who waits for them runs.
        self.keys.evict(self.server.settings.memory);
        self.take_results();
        self.serve_ready();
        self.expire_blocked();
        self.end_pause();
        self.expire_keys();
        self.server.tell_gathered();
        if self.undoing.is_some() {
            if self.in_flight.is_empty() {
                self.undo_all();
            }
        } else if self.store.is_ready() {
            self.send_batches();
        }
        if self.hopeless().is_some() {
            self.stop_waiting();
        }
        self.unsettled &= !self.in_flight.is_empty();
        self.send_loads();
        self.send_questions();
        self.server.stats.folds.backlog = self.store.backlog();
        self.note_tripped();
    }

    fn send_batches(&mut self) {
        let journal = self.keys.flow.journal().map_or(0, |journal| 1u32 << journal);
        loop {
            let full = self.store.backlog() > self.server.settings.journal_limit;
            let held = if full { journal } else { 0 };
            let Some(shard) = self.keys.flow.sendable(DEPTH, held).next() else { return };
            let sealed = self.keys.flow.seal(shard);
            self.server.stats.sent(sealed.open.dirty.len());
            self.sent.push((sealed.number, self.server.microseconds()));
            self.store.send(&mut self.keys, &sealed);
            self.in_flight.push(sealed);
            self.end_throttling();
        }
    }

    /// There is room for changes again.
    fn end_throttling(&mut self) {
        for conn in std::mem::take(&mut self.throttled) {
            self.server.tell(Event::Resume(conn));
        }
    }

    fn send_loads(&mut self) {
        let mut later = Vec::new();
        let mut by_db: Vec<(u16, Vec<Box<[u8]>>)> = Vec::new();
        for (db, key) in std::mem::take(&mut self.wanted) {
            let in_journal = self.keys.is_journaled(db) && !self.keys.flow.is_folded(self.unfolded);
            if in_journal {
                self.store.hurry();
            }
            let flushing = self.keys.is_flushing(db);
            if flushing || in_journal || self.unsettled || !self.store.is_ready() {
                later.push((db, key));
                continue;
            }
            match by_db.iter_mut().find(|(other, _)| *other == db) {
                Some((_, keys)) => keys.push(key),
                None => by_db.push((db, vec![key])),
            }
        }
        self.wanted = later;
        for (db, keys) in by_db {
            self.server.stats.loads += 1;
            self.server.stats.loaded += keys.len() as u64;
            self.store.load(db, keys);
        }
    }

    fn send_questions(&mut self) {
        for (conn, query) in std::mem::take(&mut self.server.queries) {
            let barriers = self.keys.flow.everything();
            let journaled = query.db().is_none_or(|db| self.keys.is_journaled(db));
            let folded = if journaled { self.keys.flow.journal_end() } else { 0 };
            self.asked.push(Asked { conn, query, barriers, folded });
        }
        let flow = &self.keys.flow;
        let (mut ready, mut later) = (Vec::new(), Vec::new());
        for asked in std::mem::take(&mut self.asked) {
            let waits = asked.barriers.iter().any(|barrier| flow.fate(*barrier) == Fate::Pending);
            let in_journal = !flow.is_folded(asked.folded);
            if in_journal {
                self.store.hurry();
            }
            if waits || in_journal || !self.store.is_ready() {
                later.push(asked)
            } else {
                ready.push(asked)
            }
        }
        self.asked = later;
        for asked in ready {
            self.store.ask(asked.conn, asked.query);
        }
    }

    fn note_tripped(&mut self) {
        for conn in self.keys.watched.take_tripped() {
            if let Some(session) = self.server.sessions.get_mut(conn) {
                session.tripped = true;
            }
        }
    }

    /// What concerns this worker's connections.
    pub fn take_events(&mut self, worker: u8) -> Vec<Event> {
        if self.server.events.is_empty() {
            return Vec::new();
        }
        let all = std::mem::take(&mut self.server.events);
        let (mine, others) = all.into_iter().partition(|(of, _)| *of == worker);
        self.server.events = others;
        let mine: Vec<(u8, Event)> = mine;
        mine.into_iter().map(|(_, event)| event).collect()
    }

    /// Workers, other than this one, with events to take: bits by number.
    pub fn others_with_events(&self, worker: u8) -> u64 {
        let others = self.server.events.iter().filter(|(of, _)| *of != worker);
        others.fold(0, |mask, (of, _)| mask | 1 << (of & 63))
    }

    pub fn store(&mut self) -> &mut (dyn Store + Send) {
        &mut *self.store
    }

    fn answer(&mut self, conn: ConnId, reply: crate::reply::Recorded, barrier: Option<Barrier>) {
        self.server.tell(Event::Answer { conn, reply: Arc::new(reply), barrier });
    }
}

/// How many shards there are beside the journal's, of so many that are wanted.
pub fn row_shards(wanted: usize) -> usize {
    wanted.clamp(1, SHARDS_MAX - 1)
}

fn is_undoable(command: &Command, session: &Session) -> bool {
    let queued = session.multi.iter().flat_map(|multi| &multi.commands);
    command.flags.has(Flags::UNDOABLE)
        || (command.name == "exec"
            && queued.into_iter().any(|words| call::find(words.args()).is_ok_and(may_stop)))
}

/// Whether a queued command may have to wait for something behind the changes of others: a script
/// for a key, one that is about all keys for PostgreSQL.
fn may_stop(command: &Command) -> bool {
    let asks = command.flags.has(Flags::READONLY) && matches!(command.keys, Keys::None);
    asks || command.flags.has(Flags::UNDOABLE)
}

fn to_db(args: Args<'_>) -> Option<u16> {
    u16::try_from(crate::value::parse_integer(args.at(1))?).ok()
}
