//! One Redis client of a worker. An idle one has no buffers.

use std::collections::VecDeque;
use std::sync::Arc;

use ::redis::engine::Before;
use ::redis::flow::Barrier;
use ::redis::session::{ConnId, Multi};
use backend::moment::Moment;
use wire::resp::{Parser, Protocol};

use super::login::Pending;
use crate::hba::Subject;
use crate::link::Ends;
use crate::worker::plane::OUT_BYTES_HIGH;

/// Replies that may be held for one client until a commit, and the bytes of them and of their
/// commands. With more the client waits.
const HELD_MAX: usize = 16_384;
const HELD_BYTES_MAX: usize = 4 << 20;

/// Bytes of commands that are read ahead while a client's next command waits.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// Bytes of commands that are read from a client which does not read its replies: one that sends a
/// whole pipeline first would wait for ever.
const UNREAD_BYTES_MAX: usize = 8 << 20;

/// Why the client's next command does not run now.
#[derive(Debug)]
pub(super) enum Hold {
    No,
    /// The engine has to fetch something first.
    Parked,
    /// Its command waits for a key; so many bytes are the command.
    Blocked(usize),
    /// Its password is being checked, or will be when it has waited for that.
    Login(Box<Pending>),
    /// It reads its replies, or PostgreSQL commits them, more slowly than it gives commands.
    Full,
}

/// A reply that waits for a commit, or behind one that does.
#[derive(Debug)]
pub(super) struct Entry {
    /// Bytes of the reply.
    pub reply: usize,
    /// Bytes of the command, with empty ones behind it.
    pub command: usize,
    pub barrier: Option<Barrier>,
    pub start: Start,
}

/// What the connection was like before a command, should it have to run again.
#[derive(Debug, Clone)]
pub(super) enum Start {
    /// It never does.
    Any,
    Before(Before),
    /// It had blocked in this database.
    Database(u16),
}

/// Replies in order, of which the first waits for its batch.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub entries: VecDeque<Entry>,
    pub bytes: Vec<u8>,
    /// Bytes of their commands: the input begins with them.
    pub commands: usize,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= HELD_MAX || self.bytes.len() + self.commands >= HELD_BYTES_MAX
    }

    /// What it takes when it is empty, in bytes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.bytes.capacity()
    }

    pub fn push(&mut self, entry: Entry) {
        self.commands += entry.command;
        self.entries.push_back(entry);
    }

    /// Where the command of an entry begins, and where its reply.
    pub fn offsets(&self, at: usize) -> (usize, usize) {
        let before = self.entries.iter().take(at);
        before
            .fold((0, 0), |(command, reply), entry| (command + entry.command, reply + entry.reply))
    }
}

/// Commands that run again, because what they did was undone.
#[derive(Debug)]
pub(super) struct Redo {
    /// The entry it has come to.
    pub at: usize,
    /// That entry's command has blocked.
    pub blocked: bool,
    /// As it was, and will be again when all is done.
    pub db: u16,
    pub multi: Option<Multi>,
    /// They don't run, but are answered so.
    pub refused: Option<Arc<str>>,
}

#[derive(Debug)]
pub struct Client {
    pub generation: u32,
    pub conn: ConnId,
    pub ends: Ends,
    pub tls: Option<Arc<str>>,
    /// Of the certificate that it has shown.
    pub(super) subject: Option<Box<Subject>>,
    /// It has logged in, or need not.
    pub(super) open: bool,
    pub(super) protocol: Protocol,
    pub(super) hold: Hold,
    /// Nothing has come from it yet, so it may still begin with TLS.
    pub(super) fresh: bool,
    /// It has closed its side: closed when all it has sent is answered.
    pub(super) ended: bool,
    /// What it sends is not looked at any more: closed when its replies are written.
    pub(super) leaving: bool,
    /// It has a place among `max_clients`.
    pub(super) counted: bool,
    pub(super) closing: bool,
    /// Bytes read and not yet done with: commands whose replies are held, then further ones.
    pub(super) input: Vec<u8>,
    /// While it is in the middle of a command.
    pub(super) parser: Option<Box<Parser>>,
    pub out: Vec<u8>,
    pub(super) held: Held,
    pub(super) redo: Option<Box<Redo>>,
    pub(super) queued_out: bool,
    pub(super) queued_resume: bool,
    pub(super) connected: Moment,
}

impl Client {
    /// When it connected.
    pub fn since(&self) -> Moment {
        self.connected
    }

    /// Its next command may run.
    pub(super) fn may_run(&self) -> bool {
        matches!(self.hold, Hold::No) && self.redo.is_none() && !self.leaving
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= OUT_BYTES_HIGH || self.held.is_full()
    }

    pub(super) fn may_read(&self) -> bool {
        let ahead = self.input.len() - self.held.commands.min(self.input.len());
        match self.hold {
            _ if self.leaving || self.ended => false,
            Hold::No if self.redo.is_none() => !self.queued_resume || ahead < AHEAD_BYTES_MAX,
            Hold::Full => !self.held.is_full() && ahead < UNREAD_BYTES_MAX,
            _ => ahead < AHEAD_BYTES_MAX,
        }
    }

    /// It is closed once what is left of it is written.
    pub(super) fn is_over(&self) -> bool {
        let idle = matches!(self.hold, Hold::No) && self.redo.is_none() && !self.queued_resume;
        self.held.is_empty() && (self.leaving || (self.ended && idle))
    }

    /// Where a reply goes: behind those that are held, if there are any.
    pub(super) fn replies(&mut self) -> &mut Vec<u8> {
        if self.held.is_empty() {
            &mut self.out
        } else {
            &mut self.held.bytes
        }
    }
}
