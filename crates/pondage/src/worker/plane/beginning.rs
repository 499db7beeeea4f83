//! BEGIN is answered here, and PostgreSQL gets it only when something comes that needs a server: in
//! front of that, and in the same write. A transaction that never does ends here, too.
//!
//! Reads that are kept need none. Only under READ COMMITTED, where every statement has its own
//! snapshot: what is read before the real BEGIN is what it would have read behind it.
//!
//! Such a read leaves its unnamed portal behind, as every one in a transaction does, and the client
//! may describe or execute it once more. Hardly any does; for the one that does the portal is made
//! on its server then.

use std::sync::Arc;

use backend::reply::{Fate, Kind, Owner, Request};
use backend::server::Unnamed as OnServer;
use backend::statement::Statement;
use sql::{Isolation, Transaction};
use wire::pg::backend::{self as reply, TxStatus};
use wire::pg::frontend;

use super::caching::Bound;
use super::{Plane, PoolState};
use crate::config::{CacheMode, PoolMode};
use crate::session::client::Begun;

/// Fails, and with it the transaction. The server's log says why.
const FAIL: &str = "ROLLBACK TO SAVEPOINT \"a read of this transaction has failed outside of it\"";

/// The unnamed portal of a transaction's read, of which no server knows.
#[derive(Debug)]
pub struct Portal {
    statement: Arc<Statement>,
    /// Formats and values, as in its Bind.
    values: Box<[u8]>,
}

impl Plane {
    /// Begins or ends a transaction of which no server has to know. False: it is PostgreSQL's.
    pub(super) fn transaction_here(
        &mut self,
        slot: u32,
        text: &[u8],
        bound: Option<&Bound<'_>>,
    ) -> bool {
        let Some(transaction) = sql::transaction(text) else { return false };
        let mut tag = transaction.tag();
        let status = match transaction {
            Transaction::Begin(isolation) | Transaction::Start(isolation) => {
                if self.clients[slot].begun.is_some() || !self.begins_late(slot) {
                    return false;
                }
                let reads = isolation == Isolation::Usual && self.reads_before(slot);
                let begun = Begun { text: text.into(), failed: false, reads };
                let client = &mut self.clients[slot];
                (client.begun, client.began) = (Some(Box::new(begun)), self.now);
                TxStatus::InTransaction
            }
            Transaction::Commit | Transaction::Rollback => {
                let Some(begun) = self.clients[slot].begun.take() else { return false };
                self.forget_portal(slot);
                if begun.failed {
                    tag = Transaction::Rollback.tag();
                }
                self.count(slot, |totals| totals.xact_count += 1);
                TxStatus::Idle
            }
        };
        self.tell(slot, |out| {
            if let Some(bound) = bound {
                if bound.parse.is_some() {
                    reply::put_parse_complete(out);
                }
                reply::put_bind_complete(out);
                if bound.describe {
                    reply::put_no_data(out);
                }
            }
            reply::put_command_complete(out, tag);
            reply::put_ready(out, status);
        });
        self.trace_here(slot, status);
        self.count(slot, |totals| totals.query_count += 1);
        match bound.map(|bound| &bound.parse) {
            None => {
                if let Some(names) = &mut self.clients[slot].names {
                    names.forget_unnamed();
                }
            }
            Some(Some(parse)) => self.unnamed_parsed(slot, parse, None),
            Some(None) => {}
        }
        true
    }

    /// Whether this client's BEGIN may wait.
    pub(super) fn begins_late(&self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let mode = self.pools[client.pool as usize].config.mode;
        // What is committed before it is told to one that listens, what is committed later is not.
        !client.has_server() && mode != PoolMode::Statement && client.listens.is_none()
    }

    /// Whether reads of its pool are kept, and this client's are like all others'.
    fn reads_before(&mut self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let PoolState { cache, config, welcome, .. } = &mut self.pools[client.pool as usize];
        let (Some(cache), Some(defaults)) = (cache, welcome) else { return false };
        let database = &self.caches[cache.at];
        matches!(config.cache, CacheMode::Manual | CacheMode::Auto)
            && cache.plans
            && database.serves()
            && client.reads.as_ref().is_some_and(|reads| !reads.strange)
            && cache.ground(&client.settings, defaults, &database.store).sound
    }

    /// The client has its server now: before anything else, what it was told.
    pub(super) fn begin_now(&mut self, slot: u32) {
        let Some(begun) = self.clients[slot].begun.take() else { return };
        let server = self.clients[slot].server;
        let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
        self.send(server, request, |out| frontend::put_query(out, &begun.text));
        if begun.failed {
            let request = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Hide);
            self.send(server, request, |out| frontend::put_query(out, FAIL));
        }
        self.keep_begun(slot, begun);
    }

    /// A read has been answered, with an error perhaps, before its transaction was any server's.
    /// Without a statement it is the client's unnamed one that was bound.
    pub(super) fn keep_portal(
        &mut self,
        slot: u32,
        statement: Option<&Arc<Statement>>,
        values: &[u8],
    ) {
        let client = &mut self.clients[slot];
        let unnamed = || client.names.as_ref()?.unnamed()?.text.as_ref();
        let Some(statement) = statement.or_else(unnamed).cloned() else { return };
        if let Some(reads) = &mut client.reads {
            reads.portal = Some(Box::new(Portal { statement, values: values.into() }));
        }
    }

    /// The client's unnamed portal is another one from now on, or none.
    pub(super) fn forget_portal(&mut self, slot: u32) {
        if let Some(reads) = &mut self.clients[slot].reads {
            reads.portal = None;
        }
    }

    /// What follows is about the client's unnamed portal: if its server does not know that, it is
    /// made there, and is executed, since that has been done.
    pub(super) fn bring_portal(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let Some(portal) = client.reads.as_mut().and_then(|reads| reads.portal.take()) else {
            return;
        };
        client.batch_open = true;
        let server = client.server;
        let Portal { statement, values } = *portal;
        self.next_stamp += 1;
        self.servers[server].server.set_unnamed(OnServer::Of(self.next_stamp));
        let hidden = |kind| Request::with_fate(Owner(slot), kind, Fate::HideSuccess);
        self.send(server, hidden(Kind::Parse), |out| {
            frontend::put_parse(out, b"", &statement.query, &statement.types);
        });
        self.send(server, hidden(Kind::Bind), |out| {
            frontend::put_bind_head(out, values.len(), b"", b"");
            out.extend_from_slice(&values);
        });
        self.send(server, hidden(Kind::Execute), |out| frontend::put_execute(out, b"", 0));
        self.count(slot, |totals| totals.server_parse_count += 1);
    }
}
