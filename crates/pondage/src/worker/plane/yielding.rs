//! Reads that a standby gives up: it cancels what is in the way of what it has to replay, or is lost.
//!
//! Where the client has heard nothing of the answer yet, it does not hear of that either: the
//! primary is asked. A transaction goes there with its first statement only, for what that has read
//! was of a snapshot that the primary may not have. PostgreSQL fills a buffer of 8 KiB before it
//! sends a row, so the beginning of an answer is held back here for as long.
//!
//! Source: PostgreSQL docs, "Handling Query Conflicts"; PQ_SEND_BUFFER_SIZE in pqcomm.c.

use backend::reply::Owner;
use backend::server::LastWords;
use wire::pg::backend as reply;

use super::replanning::KEPT_BYTES_MAX;
use super::replies::queue_out;
use super::{Place, Plane};
use crate::session::client::{Begun, Client, Hold, NONE};

/// So much of an answer is held back; then its client is told, also of a conflict.
const HELD_BYTES_MAX: usize = 16 << 10;

/// What a client has asked a standby.
#[derive(Debug, Default)]
pub(super) struct Read {
    bytes: Vec<u8>,
    /// The transaction that it begins.
    pub(super) begun: Option<Box<Begun>>,
}

impl Plane {
    /// A request was taken. If it was one that only reads, and a standby has it now, it is kept.
    pub(super) fn keep_read(&mut self, slot: u32, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let Some(sight) = client.sight.as_mut().filter(|sight| sight.reads > 0) else { return };
        let Some(conn) = self.servers.get_mut(client.server) else { return };
        if client.hold == Hold::SetUp {
            return;
        }
        let whole = std::mem::take(&mut sight.reads);
        let unheard = client.out.is_empty() && !client.queued_out;
        let away = self.pools[client.pool as usize].home != NONE;
        if !away || !unheard || whole > KEPT_BYTES_MAX || conn.server.is_quiet() {
            conn.read.begun = None;
            return;
        }
        conn.read.bytes.clear();
        conn.read.bytes.extend_from_slice(&bytes[..whole.min(bytes.len())]);
        conn.server.yields = true;
        client.corked = true;
    }

    /// A transaction has begun on its server, with a statement that is about to be sent.
    pub(super) fn keep_begun(&mut self, slot: u32, begun: Box<Begun>) {
        let client = &self.clients[slot];
        let reads = client.sight.as_ref().is_some_and(|sight| sight.reads > 0);
        let away = self.pools[client.pool as usize].home != NONE;
        if let Some(conn) = self.servers.get_mut(client.server).filter(|_| reads && away) {
            conn.read.begun = Some(begun);
        }
    }

    /// An answer that is too long is told as it comes, and can't be had from elsewhere any more.
    pub(super) fn check_held(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let slot = conn.client;
        if self.clients.get(slot).is_some_and(|client| client.out.len() > HELD_BYTES_MAX) {
            self.hold_no_more(slot);
        }
    }

    /// The client hears what its server has answered so far.
    pub(super) fn hold_no_more(&mut self, slot: u32) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        if client.sight.is_none() || client.unit.is_some() || !std::mem::take(&mut client.corked) {
            return;
        }
        if let Some(conn) = self.servers.get_mut(client.server) {
            conn.server.yields = false;
            conn.read.begun = None;
        }
        if !client.out.is_empty() {
            queue_out(client, slot, &mut self.written_clients);
        }
    }

    /// A standby has cancelled what its client has heard nothing of.
    pub(super) fn ask_at_home(&mut self, slot: u32, server: u32) {
        let (client, conn) = (&self.clients[slot], &mut self.servers[server]);
        let error = conn.server.take_withheld();
        let more = client.rest > 0 || client.batch_open || !conn.server.is_quiet();
        if !client.corked || more {
            // It has been told a part, or more has come that the standby has to answer.
            let status = conn.server.status();
            self.pools[client.pool as usize].totals.errors += 1;
            self.tell(slot, |out| {
                out.extend_from_slice(&error);
                reply::put_ready(out, status);
            });
            return self.answered(slot, status);
        }
        self.take_read_back(slot, server);
        self.release(server);
    }

    /// Whether the client of a server that is lost can ask elsewhere.
    pub(super) fn may_ask_at_home(&self, server: u32) -> bool {
        let Some(conn) = self.servers.get(server) else { return false };
        let more = |client: &Client| client.rest > 0 || client.batch_open;
        conn.server.yields
            && conn.place == Place::Lent
            && *conn.server.last_words() != LastWords::ToldTo(Owner(conn.client))
            && self.clients.get(conn.client).is_some_and(|client| !more(client))
    }

    /// A standby is lost, with a statement of which its client has heard nothing.
    pub(super) fn lost_reading(&mut self, server: u32, slot: u32) {
        self.take_read_back(slot, server);
        self.go_home(slot);
        self.close_server(server, "server lost");
        self.resume_later(slot);
    }

    /// It is as if the client had only just asked, and this time it stays at home.
    fn take_read_back(&mut self, slot: u32, server: u32) {
        let (client, conn) = (&mut self.clients[slot], &mut self.servers[server]);
        conn.server.yields = false;
        client.out.clear();
        (client.corked, client.answered) = (false, 0);
        (client.copies_in, client.namings) = (false, None);
        if matches!(client.hold, Hold::Uncertain | Hold::ServerFull) {
            client.hold = Hold::No;
        }
        if let Some(names) = &mut client.names {
            names.lost();
        }
        client.begun = conn.read.begun.take();
        let mut input = conn.read.bytes.clone();
        input.extend_from_slice(&client.input);
        client.input = input;
        if let Some(sight) = &mut client.sight {
            sight.stays = true;
        }
        let home = self.pools[client.pool as usize].home;
        if let Some(home) = self.pools.get_mut(home as usize) {
            home.totals.split_returned += 1;
        }
    }
}
