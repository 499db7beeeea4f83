//! SQL's own prepared statements: PREPARE, EXECUTE, DEALLOCATE.
//!
//! Texts go to PostgreSQL as they came, so what they name has to be on the server under that name.
//! What a client has prepared is in its names, whichever way it came there (`session::names`); what
//! a server has under names of that kind are its *residents* (`backend::residents`). Two rules:
//!
//! - Who is lent a server finds no resident that is not its own: others are closed first.
//! - Before a text goes to a server, what it names is there: by a Parse of the statement, or by the
//!   client's own PREPARE, run once more. That is hidden; its error is the client's.
//!
//! A client's names change when PostgreSQL says that its PREPARE or DEALLOCATE is done. Such a
//! command that nobody has expected (in a function, in a text that was not looked at) leaves litter:
//! it is there for this client on this server, and swept out before the next one gets that.
//!
//! Source: PostgreSQL docs, PREPARE, EXECUTE, DEALLOCATE; `FetchPreparedStatement` in prepare.c.

use std::sync::Arc;

use backend::reply::{Fate, Kind, Owner, Request};
use backend::statement::{Statement, PREFIX};
use sql::Mention;
use wire::pg::backend::{self as reply, TxStatus};
use wire::pg::frame::{self, Header};
use wire::pg::frontend::{self, Target};
use wire::pg::sqlstate;

use super::requests::NAMES_MAX;
use super::{Plane, Preparing, WHOLE_BYTES_MAX};
use crate::session::client::Hold;
use crate::session::login::Refused;
use crate::session::names::{Known, Naming};

/// What is done with a text that mentions a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// A simple query.
    Query,
    /// It becomes a statement, or is described.
    Parse,
    /// It will be executed.
    Bind,
}

/// Why a text does not go to the client's server now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    Held,
    /// The client was told an error; the message is to be dropped.
    Refused,
    /// The client is leaving.
    Gone,
}

/// What a name has to be on a server.
enum Need {
    Statement(Known),
    /// Something that is taken for a statement of this name, whatever it is.
    Anything,
    Nothing,
}

impl Plane {
    /// Sees to it that the client's server has what a text mentions. Some: it can't go there now.
    pub(super) fn see_to_mentions(&mut self, slot: u32, text: &[u8], does: Does) -> Option<Stays> {
        let server = self.clients[slot].server;
        let skips =
            |plane: &Plane| plane.servers.get(server).is_none_or(|conn| conn.server.is_skipping());
        if !sql::may_mention(text) || !self.follows(slot) || skips(self) {
            return None;
        }
        if does == Does::Query && self.clients[slot].batch_open {
            return None;
        }
        let mentions = sql::mentions(text);
        if let Some(refused) = self.refused_mention(slot, &mentions) {
            return Some(self.refuse_text(slot, &refused, does));
        }
        let changes = does != Does::Parse && mentions.iter().any(|one| !is_execute(one));
        if self.waits_for_names(slot, &mentions, changes && does == Does::Query) {
            return Some(Stays::Held);
        }
        let state = &self.servers[server].server;
        if changes && does == Does::Bind && state.batch_status().is_none() {
            // Whose error comes first has to be certain.
            self.hold_for_answers(slot);
            return Some(Stays::Held);
        }
        if state.batch_status() != Some(TxStatus::Failed) {
            let missing = self.missing(slot, &mentions, does);
            if !missing.is_empty() {
                let fate = if does == Does::Query { Fate::Setup } else { Fate::HideSuccess };
                missing.into_iter().for_each(|(name, need)| self.bring(slot, &name, need, fate));
                if does == Does::Query {
                    self.servers[server].preparing = Preparing::Bringing;
                    self.clients[slot].hold = Hold::SetUp;
                    let sync = Request::with_fate(Owner(slot), Kind::Sync, Fate::Setup);
                    self.send(server, sync, frontend::put_sync);
                    return Some(Stays::Held);
                }
                self.clients[slot].batch_open = true;
            }
        }
        if changes {
            let namings = self.clients[slot].namings.get_or_insert_default();
            namings.extend(mentions.into_iter().filter_map(naming));
        }
        None
    }

    /// A text that is too long to be kept is not taken for a PREPARE.
    pub(super) fn refuse_long_prepare(&mut self, slot: u32, head: &[u8]) -> Option<Stays> {
        if !sql::may_mention(head) || !self.follows(slot) {
            return None;
        }
        let prepares = |one: &Mention<'_>| matches!(one, Mention::Prepare { .. });
        let prepares = sql::mentions(head).iter().any(prepares);
        prepares.then(|| self.refuse_text(slot, &too_long(), Does::Query))
    }

    fn refused_mention(&mut self, slot: u32, mentions: &[Mention<'_>]) -> Option<Refused> {
        let has = self.clients[slot].names.as_ref().map_or(0, |names| names.len());
        let mut makes = 0;
        for mention in mentions {
            let (Mention::Prepare { name, .. }
            | Mention::Execute(name)
            | Mention::Deallocate(name)) = mention
            else {
                continue;
            };
            if name.starts_with(PREFIX) {
                let message = format!(
                    "the name \"{}\" of a prepared statement is reserved",
                    String::from_utf8_lossy(name)
                );
                return Some(
                    Refused::new(sqlstate::RESERVED_NAME, message)
                        .detail("What is called so on a server belongs to all clients.")
                        .hint("Use a name that does not begin with \"pondage_\". [P0426]"),
                );
            }
            if let Mention::Prepare { text, .. } = mention {
                makes += 1;
                if text.len() > WHOLE_BYTES_MAX {
                    return Some(too_long());
                }
            }
        }
        (makes > 0 && has + makes > NAMES_MAX).then(too_many)
    }

    /// A text is not sent. Where that leaves no doubt about the transaction the client stays.
    fn refuse_text(&mut self, slot: u32, refused: &Refused, does: Does) -> Stays {
        let idle = self.quiet_status(slot) == Some(TxStatus::Idle);
        if does == Does::Bind || !idle || self.clients[slot].begun.is_some() {
            self.close_client(slot, Some(refused));
            return Stays::Gone;
        }
        let client = &mut self.clients[slot];
        client.skips = does != Does::Query;
        self.tell(slot, |out| {
            refused.put_as(out, "ERROR");
            if does == Does::Query {
                reply::put_ready(out, TxStatus::Idle);
            }
        });
        // Nothing was sent to its server.
        let server = self.clients[slot].server;
        self.settle_server(server);
        Stays::Refused
    }

    /// The client is held until all that it has sent is answered.
    fn hold_for_answers(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        client.hold = Hold::Uncertain;
        if client.batch_open {
            // PostgreSQL keeps its answers until a Sync, which is behind what is held back here.
            let (server, mut flush) = (client.server, Vec::new());
            frontend::put_flush(&mut flush);
            self.send_bytes(server, &flush);
        }
    }

    /// Whether it is up to an answer if a transaction has failed; then the client is held.
    pub(super) fn waits_for_status(&mut self, slot: u32) -> bool {
        let server = self.servers.get(self.clients[slot].server);
        let waits = server.is_some_and(|conn| conn.server.batch_status().is_none());
        if waits {
            self.hold_for_answers(slot);
        }
        waits
    }

    /// Whether what a name means is up to an answer; then the client is held.
    pub(super) fn waits_for_name(&mut self, slot: u32, name: &[u8]) -> bool {
        if self.is_uncertain(slot, name) {
            self.clients[slot].hold = Hold::Uncertain;
            return true;
        }
        if name.is_empty() || !self.is_renaming(slot) {
            return false;
        }
        self.hold_for_answers(slot);
        true
    }

    /// A text in flight may change the client's names.
    fn is_renaming(&self, slot: u32) -> bool {
        let client = &self.clients[slot];
        let in_flight = || {
            let conn = self.servers.get(client.server);
            conn.is_some_and(|conn| !conn.server.is_quiet() && !conn.server.is_skipping())
        };
        client.namings.is_some() && in_flight()
    }

    /// The same for all that a text mentions. `alone`: nothing may be before it.
    fn waits_for_names(&mut self, slot: u32, mentions: &[Mention<'_>], alone: bool) -> bool {
        let server = self.clients[slot].server;
        let busy = self.servers.get(server).is_some_and(|conn| !conn.server.is_quiet());
        if self.is_renaming(slot) || alone && busy {
            self.hold_for_answers(slot);
            return true;
        }
        let uncertain = mentions.iter().filter_map(named).any(|name| self.is_uncertain(slot, name));
        if uncertain {
            self.hold_for_answers(slot);
        }
        uncertain
    }

    /// What the server lacks of what a text mentions. The first mention of a name decides.
    fn missing(&self, slot: u32, mentions: &[Mention<'_>], does: Does) -> Vec<(Box<[u8]>, Need)> {
        let client = &self.clients[slot];
        let state = &self.servers[client.server].server;
        let (residents, batch) = (&state.residents, state.batch());
        let mut missing: Vec<(Box<[u8]>, Need)> = Vec::new();
        for (at, mention) in mentions.iter().enumerate() {
            let Some(name) = named(mention) else { continue };
            let executes = is_execute(mention);
            let again = mentions[..at].iter().filter_map(named).any(|earlier| earlier == name);
            if again || !executes && does == Does::Parse {
                continue;
            }
            let known = client.names.as_ref().and_then(|names| names.known(name));
            let need = match known {
                None if residents.may_have(name) => Need::Nothing,
                None => continue,
                Some(known) if executes => match residents.has(name, &known.statement, batch) {
                    true => continue,
                    false => Need::Statement(known.clone()),
                },
                Some(_) if residents.is_taken(name, batch) => continue,
                Some(_) => Need::Anything,
            };
            missing.push((name.into(), need));
        }
        missing
    }

    /// Sends what makes a name on the client's server what it has to be.
    fn bring(&mut self, slot: u32, name: &[u8], need: Need, fate: Fate) {
        let server = self.clients[slot].server;
        let state = &mut self.servers[server].server;
        let batch = state.batch();
        let statement = match &need {
            Need::Statement(known) => &known.statement,
            Need::Anything => &self.nothing,
            Need::Nothing => return self.close_resident(server, name),
        };
        let statement = statement.clone();
        let number = state.residents.prepares(name, &statement, batch);
        let of = |kind| Request::with_fate(Owner(slot), kind, fate);
        let hidden = |kind| Request::with_fate(Owner::NOBODY, kind, Fate::Hide);
        self.count(slot, |totals| totals.server_parse_count += 1);
        self.send(server, hidden(Kind::Close), |out| {
            frontend::put_close(out, Target::Statement, name);
        });
        if !matches!(&need, Need::Statement(known) if known.sql) {
            self.send(server, of(Kind::Parse).of(number), |out| {
                frontend::put_parse(out, name, &statement.query, &statement.types);
            });
            return;
        }
        // No statement and no portal of another has this name: theirs have a number behind it.
        let close = |out: &mut Vec<u8>| frontend::put_close(out, Target::Statement, PREFIX);
        self.send(server, hidden(Kind::Close), close);
        self.send(server, of(Kind::Parse), |out| {
            frontend::put_parse(out, PREFIX, &statement.query, &[0, 0]);
        });
        self.send(server, of(Kind::Bind), |out| frontend::put_bind(out, PREFIX, PREFIX, &[]));
        self.send(server, of(Kind::Execute).of(number), |out| {
            frontend::put_execute(out, PREFIX, 0);
        });
        self.send(server, hidden(Kind::Close), |out| {
            frontend::put_close(out, Target::Portal, PREFIX);
        });
        self.send(server, hidden(Kind::Close), close);
    }

    /// What the client has by SQL is on its server, for a request that names it.
    pub(super) fn bring_statement(&mut self, slot: u32, name: &[u8], known: Known) {
        let state = &self.servers[self.clients[slot].server].server;
        if !state.is_skipping() && !state.residents.has(name, &known.statement, state.batch()) {
            self.bring(slot, name, Need::Statement(known), Fate::HideSuccess);
        }
    }

    /// There is some statement of this name on the client's server.
    pub(super) fn bring_anything(&mut self, slot: u32, name: &[u8]) {
        let state = &self.servers[self.clients[slot].server].server;
        // A text with nothing in it can be prepared in a failed transaction, too.
        if !state.is_skipping() && !state.residents.is_taken(name, state.batch()) {
            self.bring(slot, name, Need::Anything, Fate::HideSuccess);
        }
    }

    /// There is none.
    pub(super) fn close_resident(&mut self, server: u32, name: &[u8]) {
        let state = &mut self.servers[server].server;
        let batch = state.batch();
        let Some(number) = state.residents.closes(name, batch) else { return };
        let request = Request::with_fate(Owner::NOBODY, Kind::Close, Fate::Hide).of(number);
        self.send(server, request, |out| frontend::put_close(out, Target::Statement, name));
    }

    /// Closes what others have left under names of their own on a server that is lent to this client.
    pub(super) fn close_foreign(&mut self, slot: u32, server: u32) {
        let residents = &self.servers[server].server.residents;
        if residents.is_empty() {
            return;
        }
        let names = self.clients[slot].names.as_ref();
        let own = |name: &[u8], statement: &Arc<Statement>| {
            let known = names.and_then(|names| names.known(name));
            known.is_some_and(|known| Arc::ptr_eq(&known.statement, statement))
        };
        let foreign = residents.foreign(own);
        if foreign.is_empty() {
            return;
        }
        foreign.iter().for_each(|name| self.close_resident(server, name));
        // The client may have nothing to send in the end.
        let sync = Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide);
        self.send(server, sync, frontend::put_sync);
    }

    /// What a simple query mentions could not be prepared: it fails as it would have.
    pub(super) fn bringing_failed(&mut self, slot: u32, error: &[u8]) {
        let client = &mut self.clients[slot];
        client.hold = Hold::No;
        let status = self.servers.get(client.server).map_or(TxStatus::Idle, |c| c.server.status());
        if let Ok(Some(Header { total, .. })) = frame::header(&client.input) {
            client.input.drain(..total.min(client.input.len()));
        }
        if let Some(names) = &mut client.names {
            // As every simple query does, also one that fails.
            names.forget_unnamed();
        }
        self.count(slot, |totals| totals.errors += 1);
        self.tell(slot, |out| {
            out.push(reply::tag::ERROR);
            out.extend_from_slice(&(error.len() as u32 + 4).to_be_bytes());
            out.extend_from_slice(error);
            reply::put_ready(out, status);
        });
        self.answered(slot, status);
        self.resume_later(slot);
    }

    /// A PREPARE of the client's is done.
    pub(super) fn prepared_by_sql(&mut self, slot: u32, server: u32) {
        let client = &mut self.clients[slot];
        let Some(namings) = &mut client.namings else { return };
        if !matches!(namings.front(), Some(Naming::Prepare { .. })) {
            return;
        }
        let Some(Naming::Prepare { name, statement }) = namings.pop_front() else { return };
        if let Some(conn) = self.servers.get_mut(server) {
            conn.server.residents.made(&name, statement.clone());
            conn.server.litter = conn.server.litter.saturating_sub(1);
        }
        client.names().prepared_by_sql(name, statement);
    }

    /// A DEALLOCATE is. Without a name: of all.
    pub(super) fn deallocated(&mut self, slot: u32, server: u32, all: bool) {
        let client = &mut self.clients[slot];
        let conn = self.servers.get_mut(server);
        let expected = client.namings.as_ref().and_then(|namings| namings.front());
        match expected {
            Some(Naming::All) if all => {}
            Some(Naming::Deallocate(name)) if !all => {
                if let Some(conn) = conn {
                    conn.server.residents.gone(name);
                    conn.server.litter = conn.server.litter.saturating_sub(1);
                }
                if let Some(names) = &mut client.names {
                    names.forget(name);
                }
            }
            _ => {
                if let Some(conn) = conn.filter(|_| !all) {
                    conn.server.prepared.doubt();
                    conn.server.residents.doubt();
                }
                return;
            }
        }
        client.namings.as_mut().and_then(|namings| namings.pop_front());
    }

    /// PostgreSQL has listed what is prepared on a server.
    pub(super) fn compare_residents(&mut self, server: u32, listed: &[&str], whole: bool) {
        let state = &mut self.servers[server].server;
        if !whole || state.residents.compare(listed.iter().map(|name| name.as_bytes())) {
            state.litter += 1;
        }
    }
}

fn is_execute(mention: &Mention<'_>) -> bool {
    matches!(mention, Mention::Execute(_))
}

fn named<'m>(mention: &'m Mention<'_>) -> Option<&'m [u8]> {
    match mention {
        Mention::Prepare { name, .. } | Mention::Execute(name) | Mention::Deallocate(name) => {
            Some(name)
        }
        Mention::All | Mention::Unclear => None,
    }
}

/// What a mention changes, once it is done.
fn naming(mention: Mention<'_>) -> Option<Naming> {
    match mention {
        Mention::Prepare { name, text } => Some(Naming::Prepare {
            name: name.into_owned().into(),
            statement: Statement::unregistered(text, &[]),
        }),
        Mention::Deallocate(name) => Some(Naming::Deallocate(name.into_owned().into())),
        Mention::All => Some(Naming::All),
        Mention::Execute(_) | Mention::Unclear => None,
    }
}

fn too_long() -> Refused {
    let message = format!("a PREPARE may have {WHOLE_BYTES_MAX} bytes");
    Refused::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Prepare a long text by the extended protocol. [P0423]")
}

pub(super) fn too_many() -> Refused {
    let message = format!("this client has {NAMES_MAX} prepared statements");
    Refused::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Close those that are no longer needed. [P0424]")
}
