//! Connections come and go, and say HELLO.

use super::Engine;
use crate::args::Words;
use crate::command;
use crate::reply::Reply;
use crate::session::{ConnId, Peer, Session};

impl Engine {
    pub fn connect(&mut self, worker: u8, peer: Peer, now: i64) -> ConnId {
        self.server.sessions.open(worker, peer, now)
    }

    pub fn session(&mut self, conn: ConnId) -> Option<&mut Session> {
        self.server.sessions.get_mut(conn)
    }

    pub fn disconnect(&mut self, conn: ConnId) {
        self.leave_queues(conn);
        self.server.paused.retain(|other| *other != conn);
        if let Some(mut session) = self.server.sessions.close(conn) {
            command::transactions::unwatch_all(&mut self.keys, &mut session);
            self.server.hub.gone(conn, &session.subscriptions);
            self.server.tracking.off(&mut session);
            self.server.monitors.remove(conn);
            self.keys.is_tracked = !self.server.tracking.is_empty();
        }
    }

    /// MONITOR: a command that the door does itself, without its secrets.
    pub fn show(&mut self, conn: ConnId, words: &Words) {
        let Some(session) = self.server.sessions.get(conn) else { return };
        let (at, db) = (self.server.microseconds(), session.db);
        self.server.monitors.show(at, db, session.shown_address(), words.args());
        self.server.tell_monitors();
    }

    /// HELLO, once the door has authenticated whoever says it: another protocol from this reply on,
    /// another name.
    pub fn hello(
        &mut self,
        conn: ConnId,
        protocol: Option<u8>,
        name: Option<&[u8]>,
        reply: &mut dyn Reply,
    ) {
        let Some(session) = self.server.sessions.get_mut(conn) else { return };
        if let Some(name) = name {
            session.name = name.into();
        }
        session.protocol = protocol.unwrap_or(session.protocol);
        command::connection::greet(session, reply);
    }
}
