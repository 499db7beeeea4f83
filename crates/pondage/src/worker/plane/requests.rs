//! From clients to servers.
//!
//! A message is taken when all of it that has to be looked at is there. Short messages are looked
//! at whole; of a long one (a Query, Bind, FunctionCall or CopyData of more than
//! [`WHOLE_BYTES_MAX`]) the head is, and the rest is passed on as it comes.

use backend::reply::{Fate, Kind, Made, Owner, Request};
use backend::server::Unnamed as OnServer;
use backend::statement::Statement;
use sql::{leading, Dropped, Leading, Mention};
use wire::pg::backend::TxStatus;
use wire::pg::frame::{self, Header, HEADER_BYTES};
use wire::pg::frontend::{self, tag, Target, NAME_BYTES_MAX};
use wire::pg::{backend as reply, sqlstate};

use super::mentions::{too_many, Does, Stays};
use super::statements::own_name;
use super::{Effect, Plane, ServerConn, OUT_BYTES_HIGH, STATEMENT_BYTES_MAX, WHOLE_BYTES_MAX};
use crate::config::PoolMode;
use crate::control::messages::ToControl;
use crate::session::client::{Hold, Phase, Rest, NONE};
use crate::session::explain;
use crate::session::login::Refused;
use crate::session::names::Unnamed;
use crate::session::replan;

/// The head of a long message: a statement name and a portal name have to be within it.
const HEAD_BYTES: usize = 3 * NAME_BYTES_MAX;

/// A message for the console may have this many bytes.
const CONSOLE_BYTES_MAX: usize = 64 << 10;

/// Requests of one client that may be in flight on its server.
const REQUESTS_MAX: usize = 8 << 10;

/// Statements that one client may have prepared at a time.
pub(super) const NAMES_MAX: usize = 1 << 16;

/// What became of a message.
pub(super) enum Taken {
    /// So many bytes were taken.
    Bytes(usize),
    /// More of it has to be there first.
    More,
    /// It has to wait; `hold` says for what.
    Held,
    /// The client is gone or leaving.
    Gone,
}

impl Plane {
    /// Takes messages as far as they are complete and may be taken; says how many bytes that was.
    pub(super) fn take_input(&mut self, slot: u32, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let Some(client) = self.clients.get(slot) else { return bytes.len() };
            if client.hold != Hold::No {
                break;
            }
            if client.out.len() >= OUT_BYTES_HIGH && !matches!(client.phase, Phase::Leaving) {
                self.clients[slot].hold = Hold::Unread;
                break;
            }
            let taken = match &client.phase {
                Phase::Leaving => Taken::Gone,
                Phase::AwaitWelcome(_) => Taken::Held,
                Phase::LoggingIn(_) => match self.login_input(slot, &bytes[at..]) {
                    0 => Taken::More,
                    taken => Taken::Bytes(taken),
                },
                Phase::Pooled if client.rest > 0 => self.pass_rest(slot, &bytes[at..]),
                Phase::Pooled if self.sampler.is_some() => self.sampled_message(slot, &bytes[at..]),
                Phase::Pooled | Phase::Console(_) => self.next_message(slot, &bytes[at..]),
            };
            if !self.events.is_empty() {
                let server = self.clients.get(slot).map_or(NONE, |client| client.server);
                self.happen(server);
            }
            match taken {
                Taken::Bytes(taken) => at += taken,
                Taken::More | Taken::Held => break,
                Taken::Gone => return bytes.len(),
            }
        }
        at
    }

    fn pass_rest(&mut self, slot: u32, bytes: &[u8]) -> Taken {
        let client = &mut self.clients[slot];
        let take = bytes.len().min(client.rest as usize);
        let (server, goes) = (client.server, client.rest_goes);
        if goes == Rest::ToServer {
            if self.is_full(slot, server) {
                return Taken::Held;
            }
            self.send_bytes(server, &bytes[..take]);
        }
        let client = &mut self.clients[slot];
        client.rest -= take as u32;
        if client.rest == 0 && goes == Rest::ToServer {
            // The server may have answered before it had all: a COPY that failed.
            self.settle_server(server);
        }
        Taken::Bytes(take)
    }

    /// Whether the server takes bytes, or answers, too slowly; then the client is held until it has
    /// caught up.
    fn is_full(&mut self, slot: u32, server: u32) -> bool {
        let Some(conn) = self.servers.get(server) else { return false };
        if !is_full(conn) {
            return false;
        }
        self.clients[slot].hold = Hold::ServerFull;
        if conn.server.depth() >= REQUESTS_MAX && self.clients[slot].batch_open {
            // PostgreSQL keeps its answers until a Sync, which is behind what is held back here.
            let mut flush = Vec::new();
            frontend::put_flush(&mut flush);
            self.send_bytes(server, &flush);
        }
        true
    }

    /// A server that was full may have caught up: then its client goes on.
    pub(super) fn no_longer_full(&mut self, server: u32) {
        let Some(conn) = self.servers.get(server) else { return };
        let slot = conn.client;
        if is_full(conn) {
            return;
        }
        if let Some(client) = self.clients.get_mut(slot) {
            if client.hold == Hold::ServerFull {
                client.hold = Hold::No;
                self.resume_later(slot);
            }
        }
    }

    pub(super) fn next_message(&mut self, slot: u32, bytes: &[u8]) -> Taken {
        let header = match frame::header(bytes) {
            Ok(Some(header)) => header,
            Ok(None) => return Taken::More,
            Err(error) => return self.malformed(slot, &format!("invalid message: {error}")),
        };
        if header.tag == tag::TERMINATE {
            self.close_client(slot, None);
            return Taken::Gone;
        }
        if let Phase::Console(who) = &self.clients[slot].phase {
            let who = who.clone();
            if header.total > CONSOLE_BYTES_MAX {
                return self.malformed(slot, "message is too long for the console");
            }
            if bytes.len() < header.total {
                return Taken::More;
            }
            let (client, message) = (self.reference(slot), bytes[..header.total].to_vec());
            self.effects.push(Effect::Control(ToControl::Console { client, who, message }));
            return Taken::Bytes(header.total);
        }
        if header.tag == tag::QUERY && self.refuses_simple(slot) {
            return Taken::Gone;
        }
        if let Some(taken) = self.cache_command(slot, header, bytes) {
            return taken;
        }
        if self.waits_its_turn(slot, header.tag) {
            self.clients[slot].hold = Hold::Uncertain;
            return Taken::Held;
        }
        if self.clients[slot].sight.is_some() {
            self.choose(slot, header, bytes);
        }
        // A request that was held or refused took no answer along.
        if self.clients[slot].fill.is_some() && self.quiet_status(slot).is_some() {
            self.clients[slot].fill = None;
        }
        if let Some(taken) = self.join(slot, header, bytes) {
            return taken;
        }
        if let Some(missing) = self.wanted_bytes(slot, header) {
            if bytes.len() < missing {
                return Taken::More;
            }
        } else {
            return Taken::Gone;
        }
        if self.begins_again(slot) {
            return Taken::Held;
        }
        let server = self.clients[slot].server;
        if server != NONE && self.is_full(slot, server) {
            return Taken::Held;
        }
        if self.clients[slot].skips && header.tag != tag::SYNC {
            return self.drop_message(slot, header, bytes);
        }
        let taken = self.request(slot, header, bytes);
        self.keep_read(slot, bytes);
        taken
    }

    /// Whether the pool does without the simple protocol; then the client is told and closed.
    fn refuses_simple(&mut self, slot: u32) -> bool {
        let pool = self.pools.get(self.clients[slot].pool as usize);
        if !pool.is_some_and(|pool| pool.config.refuse_simple) {
            return false;
        }
        let refused =
            Refused::new(sqlstate::PROTOCOL_VIOLATION, "the simple query protocol is switched off")
                .detail(
                    "refuse_simple (PgBouncer's disable_pqexec) is set for this database or user.",
                )
                .hint("Let the driver use the extended protocol. [P0325]");
        self.close_client(slot, Some(&refused));
        true
    }

    /// So many bytes of a message have to be there. None: it is refused.
    fn wanted_bytes(&mut self, slot: u32, header: Header) -> Option<usize> {
        let streamed = matches!(
            header.tag,
            tag::QUERY | tag::BIND | tag::FUNCTION_CALL | tag::COPY_DATA | tag::COPY_FAIL
        );
        if header.total <= WHOLE_BYTES_MAX {
            return Some(if header.tag == tag::COPY_DATA { HEADER_BYTES } else { header.total });
        }
        if streamed {
            return Some(HEAD_BYTES);
        }
        if header.tag == tag::PARSE && header.total <= STATEMENT_BYTES_MAX {
            return Some(header.total);
        }
        let refused = Refused::new(
            sqlstate::PROGRAM_LIMIT_EXCEEDED,
            format!("message '{}' of {} bytes is too long", header.tag.escape_ascii(), header.total),
        )
        .detail(format!(
            "A Parse may have {STATEMENT_BYTES_MAX} bytes, another message that is not streamed {WHOLE_BYTES_MAX}."
        ))
        .hint("Send a long text as a simple query or its data as parameters. [P0423]");
        self.close_client(slot, Some(&refused));
        None
    }

    fn malformed(&mut self, slot: u32, message: &str) -> Taken {
        self.close_client(slot, Some(&Refused::new(sqlstate::PROTOCOL_VIOLATION, message)));
        Taken::Gone
    }

    /// A message that does not go to the server now.
    fn stays(&mut self, slot: u32, stays: Stays, header: Header, bytes: &[u8]) -> Taken {
        match stays {
            Stays::Held => Taken::Held,
            Stays::Refused => self.drop_message(slot, header, bytes),
            Stays::Gone => Taken::Gone,
        }
    }

    pub(super) fn drop_message(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        let have = bytes.len().min(header.total);
        let client = &mut self.clients[slot];
        client.rest = (header.total - have) as u32;
        client.rest_goes = Rest::Dropped;
        Taken::Bytes(have)
    }

    /// Passes on as much of a message as is there, the rest when it comes.
    fn forward(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        let have = bytes.len().min(header.total);
        let client = &mut self.clients[slot];
        client.rest = (header.total - have) as u32;
        client.rest_goes = Rest::ToServer;
        let server = client.server;
        self.send_bytes(server, &bytes[..have]);
        Taken::Bytes(have)
    }

    fn request(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        let have = bytes.len().min(header.total);
        let body = &bytes[HEADER_BYTES..have];
        match header.tag {
            tag::QUERY => self.query(slot, header, bytes, body),
            tag::PARSE => self.parse(slot, header, bytes, body),
            tag::BIND => self.bind(slot, header, bytes, body),
            tag::DESCRIBE => self.describe(slot, header, bytes, body),
            tag::CLOSE => self.close(slot, header, bytes, body),
            tag::EXECUTE => {
                if !self.ensure_server(slot) {
                    return Taken::Held;
                }
                self.clients[slot].copy_ended = false;
                if frontend::execute(body).is_ok_and(|(portal, _)| portal.is_empty()) {
                    self.bring_portal(slot);
                }
                self.extended(slot, Kind::Execute, header, bytes)
            }
            tag::SYNC => self.sync(slot, header, bytes),
            tag::FLUSH => {
                if self.clients[slot].has_server() {
                    return self.forward(slot, header, bytes);
                }
                Taken::Bytes(have)
            }
            tag::FUNCTION_CALL => {
                if !self.ensure_server(slot) {
                    return Taken::Held;
                }
                self.note_unknown(slot);
                self.touch_unseen(slot);
                self.push(slot, Request::forward(Owner(slot), Kind::Function));
                self.forward(slot, header, bytes)
            }
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL => self.copy(slot, header, bytes),
            other => self.malformed(slot, &format!("invalid frontend message type {other}")),
        }
    }

    pub(super) fn push(&mut self, slot: u32, request: Request) {
        let server = self.clients[slot].server;
        self.send(server, request, |_| {});
    }

    /// A request of the extended protocol that goes as it is.
    fn extended(&mut self, slot: u32, kind: Kind, header: Header, bytes: &[u8]) -> Taken {
        self.clients[slot].batch_open = true;
        self.push(slot, Request::forward(Owner(slot), kind));
        self.forward(slot, header, bytes)
    }

    /// Whether statement names are followed, or the server is the client's own for the session.
    pub(super) fn follows(&self, slot: u32) -> bool {
        let config = &self.pools[self.clients[slot].pool as usize].config;
        let replication =
            self.servers.get(self.clients[slot].server).is_some_and(|conn| conn.replication);
        config.mode != PoolMode::Session && config.max_prepared_statements > 0 && !replication
    }

    /// Whether this name is followed. In session mode the unnamed statement is where reads are
    /// kept: the session's server does not know what was answered from memory.
    pub(super) fn follows_name(&self, slot: u32, name: &[u8]) -> bool {
        let client = &self.clients[slot];
        let replicates = self.servers.get(client.server).is_some_and(|conn| conn.replication);
        let unnamed = name.is_empty() && client.reads.is_some() && !replicates;
        self.follows(slot) || unnamed && self.mode(slot) == PoolMode::Session
    }

    fn mode(&self, slot: u32) -> PoolMode {
        self.pools[self.clients[slot].pool as usize].config.mode
    }

    /// The transaction status, when nothing of the client's is in flight.
    pub(super) fn quiet_status(&self, slot: u32) -> Option<TxStatus> {
        let client = &self.clients[slot];
        match self.servers.get(client.server) {
            None => Some(client.status()),
            Some(conn) if conn.server.is_quiet() && !client.batch_open => {
                Some(conn.server.status())
            }
            Some(_) => None,
        }
    }

    /// Whether it has to wait what an earlier batch makes of this name. Not when the request will
    /// be skipped: the Sync that ends the skipping is behind it.
    pub(super) fn is_uncertain(&self, slot: u32, name: &[u8]) -> bool {
        let client = &self.clients[slot];
        let skipped =
            || self.servers.get(client.server).is_some_and(|conn| conn.server.is_skipping());
        client.names.as_ref().is_some_and(|names| names.is_uncertain(name)) && !skipped()
    }

    fn query(&mut self, slot: u32, header: Header, bytes: &[u8], body: &[u8]) -> Taken {
        let text = body.strip_suffix(b"\0").unwrap_or(body);
        if explain::is_request(text) && header.total <= bytes.len() {
            if let Some(status) = self.quiet_status(slot) {
                self.explain_last(slot, status);
                return Taken::Bytes(header.total);
            }
        }
        let begins = leading(text);
        match begins {
            Leading::Other => {}
            Leading::Begin => {
                if self.mode(slot) == PoolMode::Statement && self.quiet_status(slot).is_some() {
                    let refused = no_transactions();
                    let told = refused.in_words(self.config.listen.errors);
                    self.tell(slot, |out| {
                        told.put_as(out, "ERROR");
                        reply::put_ready(out, TxStatus::Idle);
                    });
                    return self.drop_message(slot, header, bytes);
                }
            }
            Leading::Deallocate(dropped) if header.total <= bytes.len() => {
                match self.deallocate(slot, &dropped) {
                    Some(true) => return Taken::Bytes(header.total),
                    Some(false) => return Taken::Held,
                    None => {}
                }
            }
            Leading::Deallocate(_) => {}
        }
        if header.total > bytes.len() {
            if let Some(stays) = self.refuse_long_prepare(slot, text) {
                return self.stays(slot, stays, header, bytes);
            }
        }
        if !self.ensure_server(slot) {
            return Taken::Held;
        }
        if header.total <= bytes.len() {
            if let Some(stays) = self.see_to_mentions(slot, text, Does::Query) {
                return self.stays(slot, stays, header, bytes);
            }
        }
        self.follow(slot, text);
        self.note_session(slot, text);
        match header.total <= bytes.len() {
            true => self.touch(slot, text, None),
            false => self.touch_unseen(slot),
        }
        match header.total <= bytes.len() {
            true => self.note_writes(slot, text, None),
            false => self.note_unknown(slot),
        }
        self.forget_portal(slot);
        let now = self.now;
        let client = &mut self.clients[slot];
        client.copy_ended = false;
        client.active = now;
        let mut told = false;
        if let Some(names) = &mut client.names {
            told = names.queried(drops_all(text));
            names.next_batch();
        }
        self.push(slot, Request::forward(Owner(slot), Kind::Query).telling(told));
        self.forward(slot, header, bytes)
    }

    /// EXPLAIN LAST STATEMENT is answered here.
    fn explain_last(&mut self, slot: u32, status: TxStatus) {
        let client = &self.clients[slot];
        let last = client.last;
        let shapes = &self.pools[client.pool as usize].shapes;
        let shape = last.and_then(|last| shapes.get(last.shape?));
        let text = shape.map(|shape| shape.plain_text());
        let reason = shape.map(|shape| shape.reason().to_owned());
        self.tell(slot, |out| {
            explain::put_answer(out, last.as_ref(), text.as_deref(), reason.as_deref());
            reply::put_ready(out, status);
        });
        self.trace_here(slot, status);
    }

    /// DEALLOCATE of a name that was prepared by the protocol: on the servers it has another name
    /// and others use it, so it is only forgotten here. In a failed transaction it goes to the
    /// server, which refuses it. False when it has to wait until all before it is answered; none
    /// when it is the server's.
    fn deallocate(&mut self, slot: u32, dropped: &Dropped<'_>) -> Option<bool> {
        if !self.follows(slot) || *dropped == Dropped::All {
            return None;
        }
        let client = &self.clients[slot];
        let name = client.names.as_ref()?.find(|name| dropped.names(name))?;
        let conn = self.servers.get(client.server);
        let there = conn.is_some_and(|conn| conn.server.residents.may_have(&name));
        if client.batch_open || there || client.namings.is_some() {
            return None;
        }
        let Some(status) = self.quiet_status(slot) else {
            self.clients[slot].hold = Hold::Uncertain;
            return Some(false);
        };
        if status == TxStatus::Failed {
            return None;
        }
        let names = self.clients[slot].names();
        names.forget(&name);
        // As every simple query does.
        names.forget_unnamed();
        self.forget_portal(slot);
        self.tell(slot, |out| {
            reply::put_command_complete(out, "DEALLOCATE");
            reply::put_ready(out, status);
        });
        self.trace_here(slot, status);
        Some(true)
    }

    fn parse(&mut self, slot: u32, header: Header, bytes: &[u8], body: &[u8]) -> Taken {
        let parse = match frontend::parse(body) {
            Ok(parse) => parse,
            Err(error) => return self.malformed(slot, &format!("invalid Parse message: {error}")),
        };
        let follows = self.follows(slot);
        self.note_session(slot, parse.query);
        self.learn(slot, parse.query);
        if follows && !parse.name.is_empty() {
            if self.waits_for_name(slot, parse.name) || !self.ensure_server(slot) {
                return Taken::Held;
            }
            if let Some(stays) = self.see_to_mentions(slot, parse.query, Does::Parse) {
                return self.stays(slot, stays, header, bytes);
            }
            let known = self.clients[slot].names().known(parse.name).is_some();
            if known && self.waits_for_status(slot) {
                return Taken::Held;
            }
            self.count(slot, |totals| totals.client_parse_count += 1);
            let first = self.is_first(slot);
            self.clients[slot].batch_open = true;
            if self.clients[slot].names().len() >= NAMES_MAX {
                self.close_client(slot, Some(&too_many()));
                return Taken::Gone;
            }
            if known {
                self.parse_duplicate(slot, &parse);
                return Taken::Bytes(header.total);
            }
            let statement = self.statement_of(parse.query, parse.types);
            self.parse_named(slot, parse.name, statement, first);
            return Taken::Bytes(header.total);
        }
        if !self.ensure_server(slot) {
            return Taken::Held;
        }
        if let Some(stays) = self.see_to_mentions(slot, parse.query, Does::Parse) {
            return self.stays(slot, stays, header, bytes);
        }
        self.count(slot, |totals| totals.client_parse_count += 1);
        if !self.follows_name(slot, parse.name) {
            return self.extended(slot, Kind::Parse, header, bytes);
        }
        self.next_stamp += 1;
        let stamp = self.next_stamp;
        let text = (header.total <= WHOLE_BYTES_MAX)
            .then(|| Statement::unregistered(parse.query, parse.types));
        let client = &mut self.clients[slot];
        client.batch_open = true;
        client.names().set_unnamed(Some(Box::new(Unnamed { stamp, text })));
        let server = client.server;
        self.servers[server].server.set_unnamed(OnServer::Of(stamp));
        self.push(slot, Request::forward(Owner(slot), Kind::Parse).telling(true));
        self.forward(slot, header, bytes)
    }

    pub(super) fn count(
        &mut self,
        slot: u32,
        change: impl FnOnce(&mut crate::worker::snapshot::Totals),
    ) {
        let pool = self.clients[slot].pool as usize;
        change(&mut self.pools[pool].totals);
    }

    fn bind(&mut self, slot: u32, header: Header, bytes: &[u8], body: &[u8]) -> Taken {
        let head = match frontend::bind_head(body) {
            Ok(Some(head)) => head,
            Ok(None) => return self.malformed(slot, "invalid Bind message: a name is too long"),
            Err(error) => return self.malformed(slot, &format!("invalid Bind message: {error}")),
        };
        let first = self.is_first(slot);
        let Some(named) = self.resolve(slot, head.statement, Does::Bind) else {
            return Taken::Held;
        };
        let replans = first && self.keep_request(slot, head.statement, &named, bytes);
        let whole = header.total == HEADER_BYTES + body.len();
        let tail = body.get(head.rest..).filter(|_| whole);
        self.touch_bound(slot, &named, tail);
        self.note_bound(slot, &named, tail);
        self.count(slot, |totals| totals.bind_count += 1);
        if head.portal.is_empty() {
            self.forget_portal(slot);
        }
        let client = &mut self.clients[slot];
        client.batch_open = true;
        let server = client.server;
        let rest = &body[head.rest..];
        let total_rest = header.total - HEADER_BYTES - head.rest;
        client.rest = (total_rest - rest.len()) as u32;
        client.rest_goes = Rest::ToServer;
        let request = Request::forward(Owner(slot), Kind::Bind).of(named.id()).replanning(replans);
        self.send(server, request, |out| {
            named.with(|name| frontend::put_bind_head(out, total_rest, head.portal, name));
            out.extend_from_slice(rest);
        });
        Taken::Bytes(HEADER_BYTES + body.len())
    }

    fn describe(&mut self, slot: u32, header: Header, bytes: &[u8], body: &[u8]) -> Taken {
        match frontend::describe(body) {
            Err(error) => self.malformed(slot, &format!("invalid Describe message: {error}")),
            Ok((Target::Portal, portal)) => {
                if !self.ensure_server(slot) {
                    return Taken::Held;
                }
                if portal.is_empty() {
                    self.bring_portal(slot);
                }
                self.extended(slot, Kind::Describe, header, bytes)
            }
            Ok((Target::Statement, name)) => {
                let first = self.is_first(slot);
                let Some(named) = self.resolve(slot, name, Does::Parse) else { return Taken::Held };
                let replans = first && self.keep_request(slot, name, &named, bytes);
                let client = &mut self.clients[slot];
                client.batch_open = true;
                if let Some(names) = &mut client.names {
                    names.described(name);
                }
                let server = self.clients[slot].server;
                let flushes = replans && replan::flushes(bytes);
                let request = Request::forward(Owner(slot), Kind::Describe).of(named.id());
                self.send(server, request.replanning(replans).flushing(flushes), |out| {
                    named.with(|name| frontend::put_describe(out, Target::Statement, name));
                });
                Taken::Bytes(header.total)
            }
        }
    }

    /// A statement of the client's is only forgotten here; others may use it on the server.
    fn close(&mut self, slot: u32, header: Header, bytes: &[u8], body: &[u8]) -> Taken {
        let (target, name) = match frontend::close(body) {
            Ok(close) => close,
            Err(error) => return self.malformed(slot, &format!("invalid Close message: {error}")),
        };
        let follows = self.follows(slot);
        if target == Target::Statement && follows && !name.is_empty() {
            if self.waits_for_name(slot, name) {
                return Taken::Held;
            }
            let names = self.clients[slot].names.as_ref();
            let known = names.is_some_and(|names| names.known(name).is_some());
            if !self.clients[slot].has_server() {
                if let Some(names) = &mut self.clients[slot].names {
                    names.forget(name);
                }
                self.tell(slot, reply::put_close_complete);
                return Taken::Bytes(header.total);
            }
            if known {
                self.clients[slot].names().close(name);
            }
            self.clients[slot].batch_open = true;
            let (server, own) = (self.clients[slot].server, own_name(name));
            let state = &mut self.servers[server].server;
            let batch = state.batch();
            if let Some(number) = state.residents.closes(&own, batch) {
                let request = Request::forward(Owner(slot), Kind::Close).telling(known).of(number);
                self.send(server, request, |out| {
                    frontend::put_close(out, Target::Statement, &own);
                });
                return Taken::Bytes(header.total);
            }
            let made = Fate::Made(Made::CloseComplete);
            self.push(slot, Request::with_fate(Owner(slot), Kind::Close, made).telling(known));
            return Taken::Bytes(header.total);
        }
        if !self.ensure_server(slot) {
            return Taken::Held;
        }
        let mut request = Request::forward(Owner(slot), Kind::Close);
        if target == Target::Portal {
            self.touch(slot, b"close", None);
            if name.is_empty() {
                self.forget_portal(slot);
            }
        }
        if target == Target::Statement && self.follows_name(slot, name) {
            self.clients[slot].names().set_unnamed(None);
            let server = self.clients[slot].server;
            self.servers[server].server.set_unnamed(OnServer::Nothing);
            request = request.telling(true);
        }
        self.clients[slot].batch_open = true;
        self.push(slot, request);
        self.forward(slot, header, bytes)
    }

    fn sync(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        let client = &mut self.clients[slot];
        client.skips = false;
        if !client.has_server() {
            let status = client.status();
            self.tell(slot, |out| reply::put_ready(out, status));
            return Taken::Bytes(header.total);
        }
        // The statements before it may have been dropped.
        if client.begun.is_some() {
            self.begin_now(slot);
        }
        let client = &mut self.clients[slot];
        let server = client.server;
        let ended = client.copy_ended;
        if self.servers[server].server.copies_in() && !ended {
            // While it copies in the server takes no notice of a Sync.
            self.servers[server].server.sync_in_copy();
            return self.forward(slot, header, bytes);
        }
        client.batch_open = false;
        if let Some(names) = &mut client.names {
            names.next_batch();
        }
        let kind = if ended { Kind::SyncAfterCopy } else { Kind::Sync };
        self.send(server, Request::forward(Owner(slot), kind), frontend::put_sync);
        Taken::Bytes(header.total)
    }

    /// CopyData that comes when nothing is in flight belongs to a COPY that has failed already:
    /// PostgreSQL takes no notice of it, and its server may be another's by now.
    fn copy(&mut self, slot: u32, header: Header, bytes: &[u8]) -> Taken {
        let client = &mut self.clients[slot];
        let server = client.server;
        let in_flight = self.servers.get(server).is_some_and(|conn| !conn.server.is_quiet());
        if !in_flight {
            return self.drop_message(slot, header, bytes);
        }
        if header.tag != tag::COPY_DATA {
            client.copy_ended = true;
            client.copies_in = false;
            self.servers[server].server.copy_done();
        }
        self.forward(slot, header, bytes)
    }
}

/// Its bytes or its requests in flight are at their ceiling.
fn is_full(conn: &ServerConn) -> bool {
    conn.server.out.len() >= OUT_BYTES_HIGH || conn.server.depth() >= REQUESTS_MAX
}

/// The query drops all prepared statements, as far as that can be seen at once.
fn drops_all(text: &[u8]) -> bool {
    sql::may_mention(text) && sql::mentions(text).contains(&Mention::All)
}

/// A BEGIN in statement mode.
pub(super) fn no_transactions() -> Refused {
    let message = "transaction blocks are not allowed in statement pooling mode";
    Refused::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .hint("Set mode = \"transaction\" for this database or user. [P0421]")
        .theirs("transaction blocks not allowed in statement pooling mode")
}
