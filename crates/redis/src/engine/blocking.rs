//! Commands that wait for a key.

use super::Engine;
use crate::call::{self, Call};
use crate::failure::Failure;
use crate::reply::{Recorded, Reply};
use crate::session::{ConnId, Otherwise};

impl Engine {
    /// The connection's command has ended with [`Failure::Blocked`].
    pub(super) fn enqueue(&mut self, conn: ConnId) {
        let Some(session) = self.server.sessions.get(conn) else { return };
        let Some(blocked) = &session.blocked else { return };
        for key in &blocked.keys {
            let name = (blocked.db, key.clone());
            let queue = self.queues.entry(name.clone()).or_default();
            if !queue.contains(&conn) {
                queue.push(conn);
                *self.keys.awaited.entry(name).or_default() += 1;
            }
        }
    }

    /// It waits no more.
    pub fn unblock(&mut self, conn: ConnId) {
        let Some(session) = self.server.sessions.get_mut(conn) else { return };
        let Some(blocked) = session.blocked.take() else { return };
        for key in blocked.keys {
            let name = (blocked.db, key);
            if let Some(queue) = self.queues.get_mut(&name) {
                queue.retain(|other| *other != conn);
                if queue.is_empty() {
                    self.queues.remove(&name);
                    self.keys.awaited.remove(&name);
                }
            }
        }
    }

    /// Who waits for a key that has something now runs again, first come first served.
    pub(super) fn serve_ready(&mut self) {
        while !self.keys.ready.is_empty() {
            for name in std::mem::take(&mut self.keys.ready) {
                for conn in self.queues.get(&name).cloned().unwrap_or_default() {
                    self.try_again(conn);
                }
            }
        }
    }

    fn try_again(&mut self, conn: ConnId) {
        let Some(mut session) = self.server.sessions.take(conn) else { return };
        let mut recorded = Recorded::new(session.protocol);
        let mut barrier = None;
        let mut served = false;
        if let Some(blocked) = &session.blocked {
            let (words, db) = (blocked.words.clone(), blocked.db);
            if let Ok(command) = call::find(words.args()) {
                self.keys.begin(db, self.now, true, false);
                let known = self.keys.all_known(command, words.args());
                let outcome = known.and_then(|()| {
                    let mut call = Call {
                        args: words.args(),
                        reply: &mut recorded,
                        keys: &mut self.keys,
                        session: &mut session,
                        server: &mut self.server,
                        nested: false,
                    };
                    (command.run)(&mut call)
                });
                match outcome {
                    Ok(()) => served = true,
                    Err(Failure::Said(text)) => {
                        recorded.rewind(0);
                        recorded.error(&text);
                        served = true;
                    }
                    Err(Failure::Miss) => {
                        self.keys.undo();
                        for (db, key) in self.keys.missing() {
                            self.want(db, key, Some(conn));
                        }
                    }
                    Err(_) => {}
                }
                if served {
                    barrier = self.end_unit(&mut session).barrier;
                }
            }
        }
        self.server.sessions.put_back(session);
        if served {
            self.unblock(conn);
            self.answer(conn, recorded, barrier);
        }
    }

    /// Those whose time is over are told so.
    pub(super) fn expire_blocked(&mut self) {
        if self.queues.is_empty() {
            return;
        }
        let now = self.now;
        let over = self.server.sessions.iter().filter_map(|session| {
            let blocked = session.blocked.as_ref()?;
            (blocked.until? <= now).then_some((session.conn, session.protocol, blocked.otherwise))
        });
        for (conn, protocol, otherwise) in over.collect::<Vec<_>>() {
            let mut reply = Recorded::new(protocol);
            match otherwise {
                Otherwise::Null => reply.null(),
                Otherwise::NullArray => reply.null_array(),
                Otherwise::Unblocked => {
                    reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK")
                }
            }
            self.unblock(conn);
            self.answer(conn, reply, None);
        }
    }

    /// When the first of them has waited for long enough: milliseconds since 1970.
    pub(super) fn next_unblocked(&self) -> Option<i64> {
        if self.queues.is_empty() {
            return None;
        }
        let sessions = self.server.sessions.iter();
        sessions.filter_map(|session| session.blocked.as_ref()?.until).min()
    }
}
