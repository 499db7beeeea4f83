//! Plans that do not fit any more: "cached plan must not change result type", and "cache lookup
//! failed for type 16385".
//!
//! PostgreSQL says the one of a prepared statement whose rows would look otherwise than when it was
//! prepared, the other of one that needs a type that was dropped, though another of its name may be
//! there; and it goes on until that is prepared anew. Here a statement is shared, so it is
//! retired: its text gets another number, and with it another plan on every server. Who has the old
//! one is told once, as by PostgreSQL, and has the new one from then on; or is not told at all, where
//! the request can be sent again and its client can't tell the difference (`session::replan`).
//!
//! A statement whose text can't be read any more with the types that its values were given (42883:
//! "operator does not exist: text = integer") is retired as well, since who prepares the text again
//! could not do better with the old one. But who has it keeps it: its client may have been told of
//! those types, and goes on to send values of them.

use backend::reply::{Kind, Owner, Request};
use backend::statement::Statement;
use wire::pg::backend::{self as reply, TxStatus};
use wire::pg::frontend;

use super::statements::Named;
use super::{Plane, ServerConn};
use crate::session::client::Hold;
use crate::session::replan;

/// Longer requests are not kept.
pub(super) const KEPT_BYTES_MAX: usize = 16 << 10;

/// A request that a client has sent to its server, to be sent again if need be.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// It is being sent again, and is not kept once more.
    again: bool,
    /// Before it, in its batch, is only a Parse that was answered here.
    behind_parse: bool,
}

impl Plane {
    /// Whether what comes is the first that its server has to do outside of a transaction, with
    /// nothing in flight.
    pub(super) fn is_first(&self, slot: u32) -> bool {
        let client = &self.clients[slot];
        if client.begun.is_some() {
            return false;
        }
        let behind_parse = |conn: &ServerConn| {
            conn.request.behind_parse
                && conn.server.is_quiet()
                && conn.server.status() == TxStatus::Idle
        };
        self.quiet_status(slot) == Some(TxStatus::Idle)
            || self.servers.get(client.server).is_some_and(behind_parse)
    }

    /// A Parse was answered here; whether it was the first request of its batch.
    pub(super) fn parsed_here(&mut self, server: u32, first: bool) {
        self.servers[server].request.behind_parse = first;
    }

    /// Keeps a request that is there as a whole and may be sent again. `name`: the client's.
    pub(super) fn keep_request(
        &mut self,
        slot: u32,
        name: &[u8],
        named: &Named,
        bytes: &[u8],
    ) -> bool {
        let Named::Shared(statement) = named else { return false };
        let safe = bytes.len() <= KEPT_BYTES_MAX && self.may_repeat(slot, name, bytes, statement);
        let server = self.clients[slot].server;
        let Some(conn) = self.servers.get_mut(server) else { return false };
        let kept = &mut conn.request;
        kept.behind_parse = false;
        if std::mem::take(&mut kept.again) || !safe {
            return false;
        }
        kept.bytes.clear();
        kept.bytes.extend_from_slice(bytes);
        true
    }

    /// Whether a whole request means the same to its client with the statement planned anew.
    pub(super) fn may_repeat(
        &self,
        slot: u32,
        name: &[u8],
        bytes: &[u8],
        statement: &Statement,
    ) -> bool {
        let names = self.clients[slot].names.as_ref();
        let described = || names.is_none_or(|names| names.is_described(name));
        replan::is_safe(bytes, &statement.types, described)
    }

    /// The client gets the new statement in place of the one that went stale.
    pub(super) fn went_stale(&mut self, slot: u32, id: u64) {
        self.statements.retire(id);
        let client = &self.clients[slot];
        self.pools[client.pool as usize].totals.stale += 1;
        let of_unit = client.unit.as_ref().and_then(|unit| unit.statement.as_ref());
        let of_unit = of_unit.filter(|statement| statement.id == id);
        let named = client.names.as_ref().and_then(|names| names.numbered(id));
        let Some(old) = named.or(of_unit).cloned() else { return };
        let new = self.statement_of(&old.query, &old.types);
        let client = &mut self.clients[slot];
        let of_unit = client.unit.as_mut().and_then(|unit| unit.statement.as_mut());
        let of_unit = of_unit.filter(|statement| statement.id == id);
        if let Some(statement) = of_unit {
            *statement = new.clone();
        }
        if let Some(names) = &mut client.names {
            names.replace(id, &new);
        }
    }

    /// The client has flushed what is to be sent again, and hears nothing of its error. PostgreSQL
    /// looks at nothing before a Sync, so one is sent that is none of the client's; nothing of the
    /// client's gets behind it.
    pub(super) fn end_flushed(&mut self, slot: u32, server: u32) {
        let client = &mut self.clients[slot];
        client.batch_open = false;
        client.hold = Hold::Uncertain;
        self.send(server, Request::forward(Owner(slot), Kind::Sync), frontend::put_sync);
    }

    /// The client's request is sent again on the same server.
    pub(super) fn replan(&mut self, slot: u32, server: u32) {
        let (client, conn) = (&mut self.clients[slot], &mut self.servers[server]);
        let waits = client.rest > 0 || client.batch_open || client.hold == Hold::SetUp;
        let flushes = replan::flushes(&conn.request.bytes);
        if flushes && client.hold == Hold::Uncertain {
            client.hold = Hold::No;
        }
        let error = conn.server.take_withheld();
        if waits || !conn.server.is_quiet() {
            // What has come behind it in the meantime is not put in front of it.
            self.pools[client.pool as usize].totals.errors += 1;
            if flushes {
                // Its own Sync is still to come.
                client.skips = true;
                self.tell(slot, |out| out.extend_from_slice(&error));
                return self.resume_later(slot);
            }
            self.tell(slot, |out| {
                out.extend_from_slice(&error);
                reply::put_ready(out, TxStatus::Idle);
            });
            return self.answered(slot, TxStatus::Idle);
        }
        self.pools[client.pool as usize].totals.replanned += 1;
        conn.request.again = true;
        let mut input = conn.request.bytes.clone();
        input.extend_from_slice(&client.input);
        client.input = input;
        self.resume_later(slot);
    }
}
