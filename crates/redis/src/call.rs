//! One command while it runs.

use crate::args::{Args, Words};
use crate::command::{self, Command, Flags};
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::query::{Answer, Query};
use crate::reply::Reply;
use crate::server::Server;
use crate::session::{Blocked, Otherwise, Session};
use crate::stats::{Slow, SlowLog};
use crate::value::Kind;

/// Words of a command that takes no time worth measuring.
const FAST_WORDS_MAX: usize = 32;

/// What a command has at hand.
pub struct Call<'a> {
    pub args: Args<'a>,
    pub reply: &'a mut dyn Reply,
    pub keys: &'a mut Keyspace,
    pub session: &'a mut Session,
    pub server: &'a mut Server,
    /// Inside of EXEC or a script: a command that would block replies as if its time were over.
    pub nested: bool,
}

impl Call<'_> {
    /// Ends the command until one of the keys has something, or for `timeout_ms` (0: for ever).
    pub fn block(&mut self, keys: &[&[u8]], timeout_ms: i64, otherwise: Otherwise) -> Outcome {
        if self.nested {
            match otherwise {
                Otherwise::Null => self.reply.null(),
                Otherwise::NullArray => self.reply.null_array(),
            }
            return Ok(());
        }
        // A command that was blocked already keeps its place and its time.
        if self.session.blocked.is_none() {
            self.session.blocked = Some(Blocked {
                words: Words::from(self.args),
                db: self.keys.db(),
                keys: keys.iter().map(|key| Box::from(*key)).collect(),
                kind: awaited(self.args),
                number: 0,
                until: (timeout_ms > 0).then(|| self.keys.now().saturating_add(timeout_ms)),
                otherwise,
                barrier: None,
            });
        }
        Err(Failure::Blocked)
    }

    /// Asks PostgreSQL. The first time it ends the command, which then runs again and gets the
    /// answer here. A command may ask again: it runs once for each question, and must ask the same
    /// ones in the same order. One that may ask after it has changed something (inside of EXEC) has
    /// [`Flags::UNDOABLE`].
    pub fn ask(&mut self, query: Query) -> Result<Answer, Failure> {
        self.answered(query).map(|at| self.session.answers[at].clone())
    }

    /// As [`Call::ask`], but gives the answer's place in the session's `answers`: for large ones.
    pub fn answered(&mut self, query: Query) -> Result<usize, Failure> {
        let at = self.session.questions;
        self.session.questions += 1;
        match self.session.answers.get(at) {
            Some(Answer::Failed(why)) => Err(Failure::said(format!("ERR {why}"))),
            Some(_) => Ok(at),
            None => {
                self.server.queries.push((self.session.conn, query));
                Err(Failure::Wait)
            }
        }
    }

    /// A keyspace notification of a class, which is one letter of `notify-keyspace-events`. It is
    /// told when the change has committed.
    pub fn event(&mut self, class: u8, name: &'static str, key: &[u8]) {
        self.keys.event(class, name, key);
    }

    /// MONITOR: the command has run; or will now, if it runs others that are shown behind it.
    fn show(&mut self, command: &Command, in_script: bool) {
        if self.server.monitors.is_empty() || command.is_hidden(self.args) {
            return;
        }
        let (at, db) = (self.server.microseconds(), self.keys.db());
        let from = if in_script { "lua" } else { self.session.shown_address() };
        self.server.monitors.show(at, db, from, self.args);
    }

    /// Runs another command as a part of a script.
    pub fn run(&mut self, command: &Command, args: Args<'_>, reply: &mut dyn Reply) -> Outcome {
        let mut call = Call {
            args,
            reply,
            keys: self.keys,
            session: self.session,
            server: self.server,
            nested: true,
        };
        let number = command::number(command);
        let outcome = (command.run)(&mut call);
        call.note_reads(command, &outcome);
        call.show(command, true);
        match &outcome {
            Ok(()) => self.server.stats.of(number).calls += 1,
            Err(Failure::Said(text)) => self.server.stats.failed(number, text),
            Err(_) => {}
        }
        outcome
    }

    /// CLIENT TRACKING: the connection will hear of changes of what it has read.
    fn note_reads(&mut self, command: &Command, outcome: &Outcome) {
        if self.session.tracking.is_none()
            || outcome.is_err()
            || !command.flags.has(Flags::READONLY)
            // Of a script, what its commands read counts.
            || command.group == "scripting"
        {
            return;
        }
        for place in command.keys.places(self.args) {
            self.server.tracking.read(self.session, self.args.at(place));
        }
    }

    /// Runs the command, shows it, and takes its time.
    pub fn run_shown(&mut self, command: &Command, number: u16) -> Outcome {
        let first = command.runs_a_script();
        if first {
            self.show(command, false);
        }
        let outcome = self.run_timed(command, number);
        if !first {
            self.show(command, false);
        }
        outcome
    }

    /// Runs the command and takes its time, unless it is a fast one that has little to do and
    /// SLOWLOG does not want all of them.
    pub fn run_timed(&mut self, command: &Command, number: u16) -> Outcome {
        let limit = self.server.settings.slowlog_slower_than_us;
        let is_fast = command.flags.has(Flags::FAST) && self.args.len() <= FAST_WORDS_MAX;
        let Some(clock) = self.server.clock.filter(|_| !is_fast || limit == 0) else {
            let outcome = (command.run)(self);
            self.note_reads(command, &outcome);
            return outcome;
        };
        let begin = clock();
        let outcome = (command.run)(self);
        self.note_reads(command, &outcome);
        let took = clock().saturating_sub(begin).max(0);
        self.server.stats.of(number).microseconds += took as u64;
        let is_over = matches!(outcome, Ok(()) | Err(Failure::Said(_) | Failure::Undone(_)));
        if limit >= 0 && took >= limit && is_over && !command.flags.has(Flags::UNLOGGED) {
            let slow = Slow {
                number: 0,
                at: begin / 1_000_000,
                microseconds: took as u64,
                words: SlowLog::shorten(self.args),
                address: self.session.address.clone(),
                name: self.session.name.clone(),
            };
            self.server.stats.slow.add(slow, self.server.settings.slowlog_max_len);
        }
        outcome
    }
}

/// What a key has to hold for a blocked command to go on. A consumer group wants to hear when its
/// key is gone or something else.
fn awaited(args: Args<'_>) -> Option<Kind> {
    match command::find(args.at(0))? {
        Command { name: "xreadgroup", .. } => None,
        Command { group: "list", .. } => Some(Kind::List),
        Command { group: "sortedset", .. } => Some(Kind::Zset),
        Command { group: "stream", .. } => Some(Kind::Stream),
        _ => None,
    }
}

/// The command of these words, with the right number of them; or Redis's complaint.
pub fn find(args: Args<'_>) -> Result<&'static Command, Failure> {
    let Some((command, _)) = command::find_numbered(args.at(0)) else {
        return Err(unknown(args));
    };
    check(command, args)?;
    Ok(command)
}

/// Whether the command has as many words as it should, and a subcommand that there is.
pub fn check(command: &Command, args: Args<'_>) -> Result<(), Failure> {
    if !has_arity(command.arity, args) {
        return Err(Failure::said(format!(
            "ERR wrong number of arguments for '{}' command",
            command.name
        )));
    }
    match command::container(command) {
        Some(container) => container.find(args).map(|_| ()),
        None => Ok(()),
    }
}

pub fn has_arity(arity: i32, args: Args<'_>) -> bool {
    if arity < 0 {
        args.len() >= arity.unsigned_abs() as usize
    } else {
        args.len() == arity as usize
    }
}

/// `server.c`, `commandCheckExistence`: words are shown up to a zero byte.
pub fn unknown(args: Args<'_>) -> Failure {
    let mut words = Vec::new();
    for word in args.from(1).iter() {
        if words.len() >= 128 {
            break;
        }
        let room = 128 - words.len();
        words.push(b'\'');
        words.extend_from_slice(printed(word, room));
        words.extend_from_slice(b"' ");
    }
    let name = printed(args.at(0), 128);
    Failure::joined(&[b"ERR unknown command '", name, b"', with args beginning with: ", &words])
}

/// A word in an error, as C's `%.*s` prints it.
pub fn printed(word: &[u8], bytes_max: usize) -> &[u8] {
    let word = &word[..word.len().min(bytes_max)];
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// As C's `%s` prints it.
pub fn whole(word: &[u8]) -> &[u8] {
    printed(word, word.len())
}
