//! Prepared statements on their servers: one name for one text, prepared where it is missing.

use std::sync::Arc;

use backend::reply::{Fate, Guest, Kind, Made, Owner, Request};
use backend::server::Unnamed as OnServer;
use backend::statement::{Need, ServerName, Statement, PREFIX};
use wire::pg::backend::TxStatus;
use wire::pg::frontend::{self, Target};

use super::mentions::Does;
use super::Plane;
use crate::session::names::Unnamed;

impl Plane {
    /// `first`: nothing is before it in its batch, nor in flight.
    pub(super) fn parse_named(
        &mut self,
        slot: u32,
        name: &[u8],
        statement: Arc<Statement>,
        first: bool,
    ) {
        let server = self.clients[slot].server;
        let state = &mut self.servers[server].server;
        let need = state.prepared.need(statement.id, state.batch());
        // In a failed transaction PostgreSQL refuses a Parse, so it has to see it.
        let sound = state.batch_status().is_some_and(|status| status != TxStatus::Failed);
        self.clients[slot].names().prepare(name, statement.clone());
        if need == Need::Nothing && sound {
            self.parsed_here(server, first);
            let made = Fate::Made(Made::ParseComplete);
            self.push(slot, Request::with_fate(Owner(slot), Kind::Parse, made).telling(true));
            return;
        }
        let request = Request::forward(Owner(slot), Kind::Parse).telling(true);
        self.send_parse(server, &statement, need, request);
    }

    /// Sends the Parse of a statement that the server lacks, or may lack, or may have.
    pub(super) fn send_parse(
        &mut self,
        server: u32,
        statement: &Statement,
        need: Need,
        request: Request,
    ) {
        match need {
            Need::Parse => {}
            Need::Nothing | Need::CloseAndParse => self.close_here(server, statement.id),
        }
        let pool = self.make_room(server);
        self.pools[pool as usize].totals.server_parse_count += 1;
        self.send(server, request.of(statement.id), |out| {
            frontend::put_parse(
                out,
                statement.name().as_bytes(),
                &statement.query,
                &statement.types,
            );
        });
    }

    /// The client has this name already. PostgreSQL shall say so, with its own words and with all
    /// that follows from an error: so there has to be a statement of this name.
    pub(super) fn parse_duplicate(&mut self, slot: u32, parse: &frontend::Parse<'_>) {
        let server = self.clients[slot].server;
        let own = own_name(parse.name);
        self.bring_anything(slot, &own);
        self.send(server, Request::forward(Owner(slot), Kind::Parse), |out| {
            frontend::put_parse(out, &own, parse.query, parse.types);
        });
    }

    /// What a Parse makes. A text that names statements of SQL's means what its client has.
    pub(super) fn statement_of(&mut self, query: &[u8], types: &[u8]) -> Arc<Statement> {
        match sql::may_mention(query) {
            true => self.statements.own(query, types),
            false => self.statements.intern(query, types),
        }
    }

    /// Makes sure that this server has the statement, by a Parse that the client does not see.
    fn prepare_here(&mut self, slot: u32, statement: &Arc<Statement>) {
        let server = self.clients[slot].server;
        self.prepare_on(server, statement, Owner(slot), Guest::No);
    }

    /// The same on a server that others may share.
    pub(super) fn prepare_on(
        &mut self,
        server: u32,
        statement: &Arc<Statement>,
        owner: Owner,
        guest: Guest,
    ) {
        let state = &mut self.servers[server].server;
        let need = state.prepared.need(statement.id, state.batch());
        if need != Need::Nothing {
            let request = Request::with_fate(owner, Kind::Parse, Fate::HideSuccess).guest(guest);
            self.send_parse(server, statement, need, request);
        }
    }

    /// Closes the least recently used statements of the server while it has too many.
    fn make_room(&mut self, server: u32) -> u32 {
        let pool = self.servers[server].pool;
        let limit = self.pools[pool as usize].config.max_prepared_statements as usize;
        loop {
            let state = &self.servers[server].server;
            let Some(id) = state.prepared.evict(limit, state.batch()) else { return pool };
            self.close_here(server, id);
        }
    }

    /// Closes a statement on a server by a Close that nobody sees.
    fn close_here(&mut self, server: u32, id: u64) {
        let request = Request::with_fate(Owner::NOBODY, Kind::Close, Fate::Hide).of(id);
        let name = ServerName::new(id);
        self.send(server, request, |out| {
            frontend::put_close(out, Target::Statement, name.as_bytes());
        });
    }

    /// What a request that names a statement becomes.
    pub(super) fn resolve(&mut self, slot: u32, name: &[u8], does: Does) -> Option<Named> {
        if !self.follows_name(slot, name) {
            return self.ensure_server(slot).then(|| Named::Own(name.to_vec()));
        }
        if self.waits_for_name(slot, name) || !self.ensure_server(slot) {
            return None;
        }
        let names = self.clients[slot].names.as_ref();
        if name.is_empty() {
            let text = names.and_then(|names| names.unnamed()?.text.clone());
            if text.is_some_and(|text| self.see_to_mentions(slot, &text.query, does).is_some()) {
                return None;
            }
            self.clients[slot].batch_open = true;
            self.resolve_unnamed(slot);
            return Some(Named::Own(Vec::new()));
        }
        let Some(known) = names.and_then(|names| names.known(name)) else {
            self.clients[slot].batch_open = true;
            let own = own_name(name);
            self.close_resident(self.clients[slot].server, &own);
            return Some(Named::Own(own));
        };
        let statement = known.statement.clone();
        if known.sql {
            let known = known.clone();
            self.clients[slot].batch_open = true;
            self.bring_statement(slot, name, known);
            return Some(Named::Sql(name.to_vec(), statement));
        }
        if self.see_to_mentions(slot, &statement.query, does).is_some() {
            return None;
        }
        self.clients[slot].batch_open = true;
        self.prepare_here(slot, &statement);
        Some(Named::Shared(statement))
    }

    /// The unnamed statement on the server is this client's own, or there is none.
    fn resolve_unnamed(&mut self, slot: u32) {
        let server = self.clients[slot].server;
        let state = &mut self.servers[server].server;
        let own = self.clients[slot].names.as_deref().and_then(|names| names.unnamed());
        if own.is_some_and(|own| state.has_unnamed(OnServer::Of(own.stamp))) {
            return;
        }
        let Some(Unnamed { stamp, text: Some(statement) }) = own else {
            if !state.has_unnamed(OnServer::Nothing) {
                // Another's must not be found under the empty name.
                state.set_unnamed(OnServer::Nothing);
                let request = Request::with_fate(Owner(slot), Kind::Close, Fate::HideSuccess);
                self.send(server, request, |out| frontend::put_close(out, Target::Statement, b""));
            }
            return;
        };
        state.set_unnamed(OnServer::Of(*stamp));
        let mut again = Vec::new();
        frontend::put_parse(&mut again, b"", &statement.query, &statement.types);
        let request = Request::with_fate(Owner(slot), Kind::Parse, Fate::HideSuccess);
        self.count(slot, |totals| totals.server_parse_count += 1);
        self.send(server, request, |out| out.extend_from_slice(&again));
    }
}

/// The name of a statement as a server knows it.
pub(super) enum Named {
    /// The client's own words: in session mode, the unnamed one, or one that does not exist.
    Own(Vec<u8>),
    Shared(Arc<Statement>),
    /// The client's own by SQL, with its PREPARE.
    Sql(Vec<u8>, Arc<Statement>),
}

impl Named {
    /// 0: it is not one that all share.
    pub(super) fn id(&self) -> u64 {
        match self {
            Named::Own(_) | Named::Sql(..) => 0,
            Named::Shared(statement) => statement.id,
        }
    }

    pub(super) fn with(&self, write: impl FnOnce(&[u8])) {
        match self {
            Named::Own(name) | Named::Sql(name, _) => write(name),
            Named::Shared(statement) => write(statement.name().as_bytes()),
        }
    }
}

/// A client's own name, made different from every name that the pooler gives.
pub(super) fn own_name(name: &[u8]) -> Vec<u8> {
    let mut own = name.to_vec();
    if own.starts_with(PREFIX) {
        own.push(b' ');
    }
    own
}
