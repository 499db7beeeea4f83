//! A client's commands: taken out of its input, run, their replies held as long as they must be.
//!
//! The input begins with the commands whose replies are held, so that they can run again; behind
//! them is what has yet to run. A command that waits (parked, blocked, a log-in) stays there.

use std::sync::Arc;

use ::redis::args::Args;
use ::redis::engine::{Engine, Ran};
use ::redis::flow::{Barrier, Fate};
use ::redis::reply::{Recorded, Reply};
use backend::moment::Moment;
use wire::resp::{Limits, Parser, Span};

use super::client::{Client, Entry, Held, Hold, Redo, Start};
use super::writer::Writer;
use super::Effect;
use crate::config::{Config, PoolConfig};
use crate::control::messages::Ref;
use crate::worker::plane::Common;

/// Commands of one client in a turn; then others have theirs.
const COMMANDS_PER_TURN: usize = 512;

/// Commands behind a parked one whose keys are looked up with its own.
const LOOKED_AHEAD_MAX: usize = 256;

/// What running a client's commands takes.
pub(super) struct Turn<'a> {
    pub engine: &'a mut Engine,
    pub config: &'a Config,
    /// The database that knows the users, if it is asked.
    pub pool: Option<&'a Arc<PoolConfig>>,
    pub client: Ref,
    /// Milliseconds since 1970.
    pub now: i64,
    pub moment: Moment,
    /// Who has failed to log in lately, over all workers and doors.
    pub common: &'a Common,
    /// Log-ins that wait for their turn.
    pub delayed: &'a mut Vec<(Moment, Ref)>,
    pub effects: &'a mut Vec<Effect>,
}

/// What has become of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// It is done with.
    Next,
    /// It stays in the input, and no other runs.
    Stay,
    /// It is done with, and no other runs ever.
    Last,
    /// As [`Flow::Last`], and what has not been written yet never is.
    Cut,
}

impl Client {
    /// Runs the commands of `input`, of which the first bytes are those of held replies. Says how
    /// many bytes at its beginning are done with, and whether there may be more to run at once.
    pub(super) fn advance(
        &mut self,
        turn: &mut Turn<'_>,
        parser: &mut Parser,
        input: &[u8],
    ) -> (usize, bool) {
        let mut at = self.held.commands;
        let mut left = COMMANDS_PER_TURN;
        while self.may_run() {
            if self.is_full() {
                self.hold = Hold::Full;
                break;
            }
            if left == 0 {
                return (at - self.held.commands, true);
            }
            left -= 1;
            let rest = input.get(at..).unwrap_or_default();
            match parser.next(rest, self.limits(turn.config)) {
                Ok(None) => break,
                Ok(Some(taken)) => {
                    let args = Args::new(parser.source(rest), parser.arguments());
                    match self.command(turn, args, taken) {
                        Flow::Next => at += taken,
                        Flow::Stay => {
                            if matches!(self.hold, Hold::Parked) {
                                let behind = input.get(at + taken..).unwrap_or_default();
                                self.look_ahead(turn, behind);
                            }
                            break;
                        }
                        Flow::Last => {
                            at += taken;
                            self.leaving = true;
                        }
                        Flow::Cut => {
                            self.out.clear();
                            self.held = Held::default();
                            self.leaving = true;
                            return (0, false);
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(event = "redis_protocol_error", "{error}");
                    let mut told = Vec::new();
                    error.put(&mut told);
                    self.say(0, |to| to.out.extend_from_slice(&told));
                    self.leaving = true;
                }
            }
        }
        (at - self.held.commands, false)
    }

    /// Names the keys of commands that wait behind a parked one, so that rows which have to be
    /// looked up come together.
    fn look_ahead(&self, turn: &mut Turn<'_>, behind: &[u8]) {
        // A parser of its own: the client's goes on where it is.
        let (mut parser, mut at) = (Parser::default(), 0);
        for _ in 0..LOOKED_AHEAD_MAX {
            let rest = behind.get(at..).unwrap_or_default();
            let Ok(Some(taken)) = parser.next(rest, self.limits(turn.config)) else { return };
            turn.engine.prefetch(self.conn, Args::new(parser.source(rest), parser.arguments()));
            at += taken;
        }
    }

    fn limits(&self, config: &Config) -> Limits {
        Limits { bulk_bytes: config.redis.value_limit, must_log_in: !self.open }
    }

    fn command(&mut self, turn: &mut Turn<'_>, args: Args<'_>, taken: usize) -> Flow {
        if args.is_empty() {
            self.pass_over(taken);
            return Flow::Next;
        }
        if let Some(flow) = self.own_command(turn, args, taken) {
            return flow;
        }
        let held = !self.held.is_empty();
        let (conn, protocol) = (self.conn, self.protocol);
        let out = self.replies();
        let mark = out.len();
        let mut writer = Writer { out, protocol };
        let ran = turn.engine.run(conn, args, turn.now, &mut writer);
        self.protocol = writer.protocol;
        match ran {
            Ran::Done { barrier, before, close } => {
                let barrier = barrier.filter(|b| turn.engine.fate(*b) != Fate::Committed);
                if held || barrier.is_some() {
                    if !held {
                        self.held.bytes.extend_from_slice(&self.out[mark..]);
                        self.out.truncate(mark);
                    }
                    let reply = match held {
                        true => self.held.bytes.len() - mark,
                        false => self.held.bytes.len(),
                    };
                    let start = before.map_or(Start::Any, Start::Before);
                    self.held.push(Entry { reply, command: taken, barrier, start });
                }
                if close {
                    Flow::Last
                } else {
                    Flow::Next
                }
            }
            Ran::Parked => {
                self.hold = Hold::Parked;
                Flow::Stay
            }
            Ran::Blocked => {
                self.hold = Hold::Blocked(taken);
                Flow::Stay
            }
        }
    }

    /// An empty command: its bytes go with those before it.
    fn pass_over(&mut self, taken: usize) {
        if let Some(last) = self.held.entries.back_mut() {
            last.command += taken;
            self.held.commands += taken;
        }
    }

    /// Replies to a command of `command` bytes that waits for nothing but its turn.
    pub(super) fn say(&mut self, command: usize, put: impl FnOnce(&mut Writer<'_>)) {
        self.say_at(command, None, Start::Any, put);
    }

    fn say_at(
        &mut self,
        command: usize,
        barrier: Option<Barrier>,
        start: Start,
        put: impl FnOnce(&mut Writer<'_>),
    ) {
        let protocol = self.protocol;
        if self.held.is_empty() && barrier.is_none() {
            let mut writer = Writer { out: &mut self.out, protocol };
            put(&mut writer);
            self.protocol = writer.protocol;
            return;
        }
        let mark = self.held.bytes.len();
        let mut writer = Writer { out: &mut self.held.bytes, protocol };
        put(&mut writer);
        self.protocol = writer.protocol;
        let reply = self.held.bytes.len() - mark;
        self.held.push(Entry { reply, command, barrier, start });
    }

    /// A command that waited is replied to: its bytes are done with, or go with the reply.
    pub(super) fn say_waited(&mut self, command: usize, put: impl FnOnce(&mut Writer<'_>)) {
        self.say_waited_at(command, None, Start::Any, put);
    }

    fn say_waited_at(
        &mut self,
        command: usize,
        barrier: Option<Barrier>,
        start: Start,
        put: impl FnOnce(&mut Writer<'_>),
    ) {
        self.hold = Hold::No;
        if self.held.is_empty() && barrier.is_none() {
            self.input.drain(..command.min(self.input.len()));
        }
        self.say_at(command, barrier, start, put);
    }

    /// The reply of a command that had blocked.
    pub(super) fn answered(
        &mut self,
        engine: &mut Engine,
        reply: &Recorded,
        barrier: Option<Barrier>,
    ) {
        let barrier = barrier.filter(|barrier| engine.fate(*barrier) != Fate::Committed);
        let start = match engine.session(self.conn) {
            Some(session) if barrier.is_some() => Start::Database(session.db),
            _ => Start::Any,
        };
        if let Some(redo) = self.redo.as_mut().filter(|redo| redo.blocked) {
            redo.blocked = false;
            let at = redo.at;
            redo.at += 1;
            let mut told = Vec::new();
            let mut writer = Writer { out: &mut told, protocol: self.protocol };
            reply.tell(&mut writer);
            self.protocol = writer.protocol;
            return self.replace(at, &told, barrier, start);
        }
        if let Hold::Blocked(command) = self.hold {
            self.say_waited_at(command, barrier, start, |to| reply.tell(to));
        }
    }

    /// Moves replies that wait no more to what is written. An error: nobody can know any more what
    /// has become of one.
    pub(super) fn release(&mut self, engine: &Engine) -> Result<(), Lost> {
        let (mut replies, mut commands) = (0, 0);
        while let Some(entry) = self.held.entries.front() {
            match entry.barrier.map_or(Fate::Committed, |barrier| engine.fate(barrier)) {
                Fate::Committed => {}
                Fate::Pending | Fate::Undone => break,
                Fate::Lost => return Err(Lost),
            }
            replies += entry.reply;
            commands += entry.command;
            self.held.entries.pop_front();
            if let Some(redo) = &mut self.redo {
                redo.at = redo.at.saturating_sub(1);
            }
        }
        if replies == self.held.bytes.len() && self.out.is_empty() {
            std::mem::swap(&mut self.out, &mut self.held.bytes);
        } else {
            self.out.extend(self.held.bytes.drain(..replies));
        }
        self.held.commands -= commands;
        self.input.drain(..commands.min(self.input.len()));
        Ok(())
    }

    /// Batches were undone: begins to run again what was in them.
    pub(super) fn begin_redo(&mut self, engine: &mut Engine, refused: Option<Arc<str>>) {
        engine.begin_redo(self.conn);
        if matches!(self.hold, Hold::Blocked(_)) {
            // It runs again when all before it has.
            self.hold = Hold::No;
        }
        match &mut self.redo {
            Some(redo) => {
                redo.blocked = false;
                redo.at = 0;
                redo.refused = refused;
            }
            None => {
                let Some(session) = engine.session(self.conn) else { return };
                let (db, multi) = (session.db, session.multi.take());
                self.redo = Some(Box::new(Redo { at: 0, blocked: false, db, multi, refused }));
            }
        }
    }

    /// Runs undone commands again, as far as that goes now.
    pub(super) fn redo(&mut self, turn: &mut Turn<'_>, parser: &mut Parser) -> Result<(), Lost> {
        while let Some(redo) = self.redo.as_mut().filter(|redo| !redo.blocked) {
            let Some(entry) = self.held.entries.get(redo.at) else { break };
            match entry.barrier.map_or(Fate::Committed, |barrier| turn.engine.fate(barrier)) {
                Fate::Lost => return Err(Lost),
                Fate::Committed | Fate::Pending => redo.at += 1,
                Fate::Undone => {
                    let (at, start) = (redo.at, entry.start.clone());
                    if let Some(why) = redo.refused.clone() {
                        redo.at += 1;
                        let mut told = Vec::new();
                        let mut writer = Writer { out: &mut told, protocol: self.protocol };
                        writer.error(format!("ERR {why}").as_bytes());
                        self.replace(at, &told, None, Start::Any);
                    } else if !self.run_again(turn, parser, at, start) {
                        return Ok(());
                    }
                }
            }
        }
        if self.redo.as_ref().is_some_and(|redo| redo.blocked) {
            return Ok(());
        }
        if let (Some(redo), Some(session)) = (self.redo.take(), turn.engine.session(self.conn)) {
            session.db = redo.db;
            session.multi = redo.multi;
        }
        if matches!(self.hold, Hold::Parked) {
            // The one that waited before this began; if it still has to, it will.
            self.hold = Hold::No;
        }
        self.release(turn.engine)
    }

    /// Runs the command of an entry again; false if it has to wait.
    fn run_again(
        &mut self,
        turn: &mut Turn<'_>,
        parser: &mut Parser,
        at: usize,
        start: Start,
    ) -> bool {
        let database = match &start {
            Start::Before(before) => {
                turn.engine.restore(self.conn, before.clone());
                None
            }
            Start::Database(db) => Some(*db),
            Start::Any => None,
        };
        if let (Some(db), Some(session)) = (database, turn.engine.session(self.conn)) {
            session.db = db;
            // An EXEC that had begun to run again may have been stopped.
            session.multi = None;
        }
        let (mut from, _) = self.held.offsets(at);
        let mut told = Vec::new();
        let limits = Limits::default();
        let ran = loop {
            let bytes = self.input.get(from..).unwrap_or_default();
            // It was parsed before, so it is there.
            let Ok(Some(taken)) = parser.next(bytes, limits) else { break None };
            if parser.arguments().is_empty() {
                from += taken;
                continue;
            }
            let words: &[Span] = parser.arguments();
            let args = Args::new(parser.source(bytes), words);
            let mut writer = Writer { out: &mut told, protocol: self.protocol };
            let ran = turn.engine.run(self.conn, args, turn.now, &mut writer);
            self.protocol = writer.protocol;
            break Some(ran);
        };
        match ran {
            Some(Ran::Parked) => return false,
            Some(Ran::Blocked) => {
                if let Some(redo) = &mut self.redo {
                    redo.blocked = true;
                }
                return false;
            }
            Some(Ran::Done { barrier, before, .. }) => {
                let barrier = barrier.filter(|b| turn.engine.fate(*b) != Fate::Committed);
                self.replace(at, &told, barrier, before.map_or(Start::Any, Start::Before));
            }
            None => self.leaving = true,
        }
        if let Some(redo) = &mut self.redo {
            redo.at = at + 1;
        }
        true
    }

    /// Another reply for an entry.
    fn replace(&mut self, at: usize, told: &[u8], barrier: Option<Barrier>, start: Start) {
        let (_, from) = self.held.offsets(at);
        let Some(entry) = self.held.entries.get_mut(at) else { return };
        self.held.bytes.splice(from..from + entry.reply, told.iter().copied());
        entry.reply = told.len();
        entry.barrier = barrier;
        entry.start = start;
    }
}

/// Nobody can say what has become of a command: its client is cut off rather than told anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;
