//! Commands that wait for a key.
//!
//! A client that finds nothing is put into the queue of each of its keys, with a number that says
//! when it came. Whatever changes such a key makes it *ready*, and after the unit its clients run
//! their commands again, first come first served, as long as the key holds what they wait for. A
//! client that finds nothing again keeps its number. Rows that its command needs and that memory
//! has lost are loaded first; meanwhile nobody behind it is served from that key.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::Engine;
use crate::call::Call;
use crate::command;
use crate::failure::Failure;
use crate::reply::{Recorded, Reply};
use crate::session::{Blocked, ConnId, Otherwise};
use crate::value::Kind;

/// A key, with its database.
type Name = (u16, Box<[u8]>);

#[derive(Debug, Default)]
pub(super) struct Waiters {
    queues: HashMap<Name, Queue, foldhash::fast::RandomState>,
    /// Whose time is over when: milliseconds since 1970.
    deadlines: BTreeSet<(i64, ConnId)>,
    /// The number of the last that came.
    last: u64,
    /// Keys whose first client waits for rows.
    stalled: Vec<Name>,
}

#[derive(Debug, Default)]
struct Queue {
    /// By the number.
    clients: BTreeMap<u64, ConnId>,
    /// How many of them want to hear of any change, whatever the key holds.
    of_any: usize,
}

enum Tried {
    Served,
    /// There is still nothing for it.
    InVain,
    /// Rows have been asked for.
    Missing,
}

impl Engine {
    /// The connection's command has ended with [`Failure::Blocked`].
    pub(super) fn enqueue(&mut self, conn: ConnId) {
        let Some(session) = self.server.sessions.get_mut(conn) else { return };
        let Some(blocked) = &mut session.blocked else { return };
        self.waiters.last += 1;
        blocked.number = self.waiters.last;
        for key in &blocked.keys {
            let name = (blocked.db, key.clone());
            self.keys.awaited.insert(name.clone());
            let queue = self.waiters.queues.entry(name).or_default();
            let new = queue.clients.insert(blocked.number, conn).is_none();
            queue.of_any += usize::from(new && blocked.kind.is_none());
        }
        if let Some(until) = blocked.until {
            self.waiters.deadlines.insert((until, conn));
        }
    }

    /// It waits no more: it has gone, or runs its command again by itself.
    pub fn leave_queues(&mut self, conn: ConnId) -> Option<Blocked> {
        let blocked = self.server.sessions.get_mut(conn)?.blocked.take()?;
        if let Some(until) = blocked.until {
            self.waiters.deadlines.remove(&(until, conn));
        }
        for key in &blocked.keys {
            let name = (blocked.db, key.clone());
            let Some(queue) = self.waiters.queues.get_mut(&name) else { continue };
            let was = queue.clients.remove(&blocked.number).is_some();
            queue.of_any -= usize::from(was && blocked.kind.is_none());
            if queue.clients.is_empty() {
                self.waiters.queues.remove(&name);
                self.keys.awaited.remove(&name);
            }
        }
        Some(blocked)
    }

    /// Whoever waits for a key that has changed runs again.
    pub(super) fn serve_ready(&mut self) {
        while !self.keys.ready.is_empty() {
            for name in std::mem::take(&mut self.keys.ready) {
                self.serve(name);
            }
        }
        for (conn, with_error) in std::mem::take(&mut self.server.unblocked) {
            self.end_wait(conn, with_error);
        }
    }

    /// A key may have changed in any way: everybody looks again.
    pub(super) fn wake_all(&mut self) {
        self.waiters.stalled.clear();
        self.keys.ready.extend(self.keys.awaited.iter().cloned());
    }

    /// Rows have come, or will not.
    pub(super) fn wake_stalled(&mut self) {
        self.keys.ready.append(&mut self.waiters.stalled);
    }

    fn serve(&mut self, name: Name) {
        let mut next = 0;
        loop {
            let Some(queue) = self.waiters.queues.get(&name) else { return };
            let Some((number, conn)) = queue.clients.range(next..).next() else { return };
            let (conn, of_any) = (*conn, queue.of_any);
            next = number + 1;
            let Ok(kind) = self.kind_now(&name) else {
                self.waiters.stalled.push(name);
                return;
            };
            if kind.is_none() && of_any == 0 {
                return;
            }
            let session = self.server.sessions.get(conn);
            let Some(blocked) = session.and_then(|session| session.blocked.as_ref()) else {
                continue;
            };
            if blocked.kind.is_some() && blocked.kind != kind {
                continue;
            }
            match self.try_again(conn) {
                Tried::Served | Tried::InVain => {}
                Tried::Missing => {
                    self.waiters.stalled.push(name);
                    return;
                }
            }
        }
    }

    /// What the key holds, with all that is not committed; if it is not in memory, it is asked for.
    fn kind_now(&mut self, name: &Name) -> Result<Option<Kind>, Failure> {
        self.keys.begin(name.0, self.now, true, false);
        let kind = self.keys.kind(&name.1);
        if kind.is_err() {
            self.want_rows();
        }
        kind
    }

    fn want_rows(&mut self) {
        for (db, key) in self.keys.missing() {
            self.want(db, key, None);
        }
    }

    fn try_again(&mut self, conn: ConnId) -> Tried {
        let Some(mut session) = self.server.sessions.take(conn) else { return Tried::InVain };
        let again = session.blocked.as_ref().map(|blocked| (blocked.words.clone(), blocked.db));
        let found =
            again.as_ref().and_then(|(words, _)| command::find_numbered(words.args().at(0)));
        let (Some((words, db)), Some((command, number))) = (again, found) else {
            self.server.sessions.put_back(session);
            return Tried::InVain;
        };
        let mut reply = Recorded::new(session.protocol);
        self.keys.begin(db, self.now, true, false);
        let mut outcome = self.keys.all_known(command, words.args());
        if outcome.is_ok() {
            outcome = Call {
                args: words.args(),
                reply: &mut reply,
                keys: &mut self.keys,
                session: &mut session,
                server: &mut self.server,
                nested: false,
            }
            .run_timed(command, number);
        }
        let mut error = None;
        if let Err(Failure::Said(text)) = outcome {
            reply.rewind(0);
            reply.error(&text);
            error = Some(text);
            outcome = Ok(());
        }
        let tried = match outcome {
            Ok(()) => {
                let barrier = self.end_unit(&mut session).barrier;
                self.finish_reply(&mut session, &mut reply, 0);
                self.server.sessions.put_back(session);
                if let Some(blocked) = self.leave_queues(conn) {
                    self.count(&blocked, error.as_deref());
                }
                self.answer(conn, reply, barrier);
                return Tried::Served;
            }
            Err(Failure::Miss) => {
                self.keys.undo();
                self.want_rows();
                Tried::Missing
            }
            Err(_) => {
                self.keys.undo();
                Tried::InVain
            }
        };
        self.server.sessions.put_back(session);
        tried
    }

    /// Those whose time is over are told so.
    pub(super) fn expire_blocked(&mut self) {
        while let Some((until, conn)) = self.waiters.deadlines.first().copied() {
            if until > self.now {
                return;
            }
            self.waiters.deadlines.remove(&(until, conn));
            self.end_wait(conn, false);
        }
    }

    /// It is answered as if its time were over, or with an error as CLIENT UNBLOCK wants it.
    fn end_wait(&mut self, conn: ConnId, with_error: bool) {
        let Some(blocked) = self.leave_queues(conn) else { return };
        let Some(mut session) = self.server.sessions.take(conn) else { return };
        let mut reply = Recorded::new(session.protocol);
        let error = with_error.then_some(&b"UNBLOCKED client unblocked via CLIENT UNBLOCK"[..]);
        match (error, blocked.otherwise) {
            (Some(text), _) => reply.error(text),
            (None, Otherwise::Null) => reply.null(),
            (None, Otherwise::NullArray) => reply.null_array(),
        }
        self.count(&blocked, error);
        self.finish_reply(&mut session, &mut reply, 0);
        self.server.sessions.put_back(session);
        self.answer(conn, reply, blocked.barrier);
    }

    /// A command that has blocked is counted once, at its end.
    fn count(&mut self, blocked: &Blocked, error: Option<&[u8]>) {
        let stats = &mut self.server.stats;
        let Some((_, number)) = command::find_numbered(blocked.words.args().at(0)) else { return };
        match error {
            Some(text) => stats.failed(number, text),
            None => stats.of(number).calls += 1,
        }
        stats.processed += 1;
    }

    /// When the first of them has waited for long enough: milliseconds since 1970.
    pub(super) fn next_unblocked(&self) -> Option<i64> {
        self.waiters.deadlines.first().map(|(until, _)| *until)
    }
}
