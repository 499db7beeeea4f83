//! One command while it runs.

use crate::args::{Args, Words};
use crate::command::{self, Command};
use crate::failure::{Failure, Outcome};
use crate::keyspace::Keyspace;
use crate::query::{Answer, Query};
use crate::reply::Reply;
use crate::server::Server;
use crate::session::{Blocked, Otherwise, Session};

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
                until: (timeout_ms > 0).then(|| self.keys.now().saturating_add(timeout_ms)),
                otherwise,
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

    /// A keyspace notification, told when the unit has committed. `class` is its letter in
    /// `notify-keyspace-events`.
    ///
    /// <https://redis.io/docs/latest/develop/use/keyspace-notifications/>
    pub fn event(&mut self, class: u8, name: &'static str, key: &[u8]) {
        let classes = self.server.settings.notify_keyspace_events.as_bytes();
        if classes.is_empty() {
            return;
        }
        let has = |letter: u8| memchr::memchr(letter, classes).is_some();
        if !has(class) && !(has(b'A') && !matches!(class, b'm' | b'n')) {
            return;
        }
        let db = self.keys.db();
        if has(b'K') {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
            self.keys.tell_after(key, channel.into(), name.as_bytes().into());
        }
        if has(b'E') {
            let channel = format!("__keyevent@{db}__:{name}").into_bytes();
            self.keys.tell_after(key, channel.into(), key.into());
        }
    }

    /// Runs another command as a part of this one, as EXEC and scripts do.
    pub fn run(&mut self, command: &Command, args: Args<'_>, reply: &mut dyn Reply) -> Outcome {
        let mut call = Call {
            args,
            reply,
            keys: self.keys,
            session: self.session,
            server: self.server,
            nested: true,
        };
        (command.run)(&mut call)
    }
}

/// The command of these words, with the right number of them; or Redis's complaint.
pub fn find(args: Args<'_>) -> Result<&'static Command, Failure> {
    let Some(command) = command::find(args.at(0)) else {
        return Err(unknown(args));
    };
    if !command.takes(args.len()) {
        return Err(Failure::said(format!(
            "ERR wrong number of arguments for '{}' command",
            command.name
        )));
    }
    Ok(command)
}

/// `server.c`, `commandCheckExistence`.
fn unknown(args: Args<'_>) -> Failure {
    let mut words = String::new();
    for word in args.from(1).iter() {
        if words.len() >= 128 {
            break;
        }
        let room = 128 - words.len();
        let shown = &word[..word.len().min(room)];
        words.push_str(&format!("'{}' ", String::from_utf8_lossy(shown)));
    }
    let name = args.at(0);
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    Failure::said(format!("ERR unknown command '{name}', with args beginning with: {words}"))
}
