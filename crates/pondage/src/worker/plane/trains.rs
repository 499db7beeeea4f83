//! Writes that share a flush. Each is its own transaction and commits without waiting for the
//! disk; a synchronous commit behind them waits for all. Nobody is answered before that one.
//!
//! ```text
//! SET synchronous_commit = off; SET lock_timeout = ...   the head
//! write, write, write                                    own transactions
//! RESET ...; SELECT pg_logical_emit_message(true, ...)   the tail: its commit flushes all before
//! ```
//!
//! A write that meets a lock gives up after `coalesce_stall` and is sent again alone, so that
//! nobody waits behind a lock that separate connections would not have waited for.

use ::backend::reply::{Fate, Guest, Kind, Owner, Request};
use wire::pg::sqlstate;
use wire::pg::{backend, frontend};

use super::{Plane, OUT_BYTES_HIGH};
use crate::procedures::Travel;
use crate::session::client::NONE;
use crate::session::login::Refused;

/// What is held back of one client's answer may have this many bytes. After one of a thousandth of
/// that its like travels alone for a while, so there are never many.
const CORKED_BYTES_MAX: usize = 64 * OUT_BYTES_HIGH;

/// The owner of a train's tail is the server: client slots are below this bit.
const SERVER: u32 = 1 << 31;

/// Of a shared transaction. COMMIT alone would say ROLLBACK, and no error, when one of those who
/// share it has failed, perhaps one whose client has gone; a statement before it is refused then.
/// Source: PostgreSQL docs, COMMIT; 25P02 in "PostgreSQL Error Codes".
const SHARED_TAIL: &str = "SELECT; COMMIT";

/// So often a tail is sent.
const TAILS_MAX: u8 = 5;

/// Why a server is given up whose tail fails.
pub(super) const NOT_COMPLETED: &str = "a train of writes could not be completed";

/// A transactional message is the smallest thing with a commit that is waited for.
/// Source: PostgreSQL docs, "Replication Management Functions"; `RecordTransactionCommit` in
/// xact.c waits when the transaction has an xid and has written WAL.
const TAIL: &str = "RESET synchronous_commit; RESET lock_timeout; \
                    SELECT pg_catalog.pg_logical_emit_message(true, 'pondage', '')";

impl Plane {
    pub(super) fn begin_train(&mut self, server: u32, travel: Travel) {
        let conn = &mut self.servers[server];
        conn.tails = 0;
        let limit = self.pools[conn.pool as usize].config.coalesce_stall.as_millis().max(1);
        let head = match travel {
            Travel::Batch => format!("BEGIN; SET LOCAL lock_timeout = {limit}"),
            Travel::Secluded => "SET synchronous_commit = off".to_owned(),
            Travel::Train | Travel::Each | Travel::Solo => {
                format!("SET synchronous_commit = off; SET lock_timeout = {limit}")
            }
        };
        let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
        self.send(server, request, |out| frontend::put_query(out, &head));
    }

    pub(super) fn end_train(&mut self, server: u32, travel: Travel) {
        self.servers[server].tails += 1;
        let owner = Owner(SERVER | server);
        let tail = if travel == Travel::Batch { SHARED_TAIL } else { TAIL };
        let request = Request::with_fate(owner, Kind::Query, Fate::Setup).guest(Guest::No);
        self.send(server, request, |out| frontend::put_query(out, tail));
    }

    /// The server whose train an owner is the tail of.
    pub(super) fn train_of(owner: Owner) -> Option<u32> {
        (owner != Owner::NOBODY && owner.0 & SERVER != 0).then_some(owner.0 & !SERVER)
    }

    /// What the train has done is safe: everybody is told. `undone`: it was a shared transaction that
    /// has failed, so nothing was done, and they ride again, each in its own.
    pub(super) fn train_arrived(&mut self, server: u32, undone: bool) {
        let Some(conn) = self.servers.get(server) else { return };
        let owners: Vec<Owner> = conn.carrier.owners().collect();
        for owner in owners {
            let Some(client) = self.clients.get_mut(owner.0) else { continue };
            let Some(unit) = client.unit.as_mut().filter(|unit| unit.done) else { continue };
            if undone {
                (unit.done, unit.failed, unit.travel) = (false, false, Travel::Train);
                client.out.clear();
                self.servers[server].carrier.leave(owner, true);
                self.requeue(owner.0);
                continue;
            }
            client.corked = false;
            super::replies::queue_out(client, owner.0, &mut self.written_clients);
            self.answered(owner.0, wire::pg::backend::TxStatus::Idle);
        }
    }

    /// A cancel that comes late, or twice, hits what is there: the tail is sent again. A shared
    /// transaction that can't commit has done nothing.
    pub(super) fn tail_failed(&mut self, server: u32, error: &[u8]) {
        let code =
            backend::error_fields(error).ok().and_then(|fields| fields.code().map(str::to_owned));
        let Some(conn) = self.servers.get_mut(server) else { return };
        let again = code.as_deref() == Some(sqlstate::QUERY_CANCELED) && conn.tails < TAILS_MAX;
        if self.is_batch(server) {
            self.train_arrived(server, true);
        } else if again {
            self.end_train(server, Travel::Train);
        } else {
            self.server_lost(server, NOT_COMPLETED);
        }
    }

    /// Those on this server share a transaction.
    pub(super) fn is_batch(&self, server: u32) -> bool {
        let Some(conn) = self.servers.get(server) else { return false };
        let mut units = conn
            .carrier
            .owners()
            .filter_map(|owner| self.clients.get(owner.0).and_then(|client| client.unit.as_ref()));
        units.any(|unit| unit.tail && unit.travel == Travel::Batch)
    }

    /// Answers that are held back are not held back without bound.
    pub(super) fn check_corked(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let Some(owner) = conn.server.works_for() else { return };
        let Some(client) = self.clients.get(owner.0) else { return };
        if !client.corked || client.out.len() < CORKED_BYTES_MAX {
            return;
        }
        debug_assert!(client.server == NONE);
        let refused = Refused::new(
            sqlstate::PROGRAM_LIMIT_EXCEEDED,
            format!("the answer has more than {CORKED_BYTES_MAX} bytes, and waits for a flush"),
        )
        .detail("It rides a train with others; it may have been done.")
        .hint("Set coalesce_writes = false, or mode = off for this procedure. [P0432]");
        self.close_client(owner.0, Some(&refused));
    }
}
