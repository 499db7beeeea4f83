//! From servers to clients.

use backend::reply::{Again, Event, Outcome, Owner, Replies};
use backend::server::LastWords;
use wire::pg::backend as reply;
use wire::pg::backend::TxStatus;

use super::requests::no_transactions;
use super::trains::NOT_COMPLETED;
use super::trips::LONG_ANSWER_BYTES;
use super::{Place, Plane, Preparing, BUFFER_BYTES};
use crate::config::{Coalesce, PoolMode};
use crate::route::{Way, Why};
use crate::session::client::{Client, Hold, NONE};
use crate::session::explain::Last;
use crate::worker::slots::Slots;

/// An [`Event`] kept until the server that told it is no longer borrowed.
#[derive(Debug)]
pub(super) enum Happened {
    Ready(TxStatus),
    ReadyUnasked(TxStatus),
    LeftOpen,
    Settled(Outcome),
    CopyIn { open: bool },
    CopyOver,
    Setting(String, String),
    Prepared,
    Dropped { all: bool, discard: bool },
    Again(Again),
    Unended,
    Redefined,
    Defined,
    Notified,
    Notification(Box<[u8]>),
    Turned,
    Error,
    Stale(u64),
    Misread(u64),
    SetupDone,
    SetupFailed(Vec<u8>),
}

/// Puts replies where their owners' bytes wait.
pub(super) struct Sink<'a> {
    pub clients: &'a mut Slots<Client>,
    pub buffers: &'a mut Vec<Vec<u8>>,
    pub written: &'a mut Vec<u32>,
    pub events: &'a mut Vec<(Owner, Happened)>,
    pub sent: u64,
}

impl Replies for Sink<'_> {
    fn bytes(&mut self, owner: Owner, bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(owner.0) {
            ensure_out(&mut client.out, self.buffers);
            if let Some(trace) = &mut client.trace {
                trace.take(bytes, client.out.len());
            }
            client.out.extend_from_slice(bytes);
            client.answered += bytes.len();
            if let Some(fill) = &mut client.fill {
                fill.take(bytes);
            }
            queue_out(client, owner.0, self.written);
            self.sent += bytes.len() as u64;
        }
    }

    fn event(&mut self, owner: Owner, event: Event<'_>) {
        let happened = match event {
            Event::Ready(status) => Happened::Ready(status),
            Event::LeftOpen => Happened::LeftOpen,
            Event::ReadyUnasked(status) => Happened::ReadyUnasked(status),
            Event::Settled(outcome) => Happened::Settled(outcome),
            Event::CopyIn { open } => Happened::CopyIn { open },
            Event::CopyOver => Happened::CopyOver,
            Event::Setting { name, value } => Happened::Setting(name.to_owned(), value.to_owned()),
            Event::Prepared => Happened::Prepared,
            Event::Dropped(tag) => {
                Happened::Dropped { all: tag != b"DEALLOCATE", discard: tag == b"DISCARD ALL" }
            }
            Event::Again(again) => Happened::Again(again),
            Event::Unended => Happened::Unended,
            Event::Redefined => Happened::Redefined,
            Event::Defined => Happened::Defined,
            Event::Notified => Happened::Notified,
            Event::Notification(body) => Happened::Notification(body.into()),
            Event::Turned => Happened::Turned,
            Event::Error => Happened::Error,
            Event::Stale(statement) => Happened::Stale(statement),
            Event::Misread(statement) => Happened::Misread(statement),
            Event::SetupDone => Happened::SetupDone,
            Event::SetupFailed(error) => Happened::SetupFailed(error.to_vec()),
        };
        self.events.push((owner, happened));
    }
}

/// Gives a client that has nothing to be written a buffer.
pub(super) fn ensure_out(out: &mut Vec<u8>, buffers: &mut Vec<Vec<u8>>) {
    if out.capacity() == 0 {
        *out = buffers.pop().unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES));
    }
}

pub(super) fn queue_out(client: &mut Client, slot: u32, written: &mut Vec<u32>) {
    if !client.corked && !std::mem::replace(&mut client.queued_out, true) {
        written.push(slot);
    }
}

impl Plane {
    /// Bytes that were read from a server, cut anywhere.
    pub fn server_bytes(&mut self, slot: u32, bytes: &[u8]) {
        let Some(conn) = self.servers.get_mut(slot) else { return };
        let mut sink = Sink {
            clients: &mut self.clients,
            buffers: &mut self.buffers,
            written: &mut self.written_clients,
            events: &mut self.events,
            sent: 0,
        };
        let received = conn.server.receive(bytes, &mut sink);
        let sent = sink.sent;
        self.pools[conn.pool as usize].totals.sent += sent;
        if conn.server.has_other_settings() {
            let reported = conn.server.take_reported();
            let pairs = reported.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            conn.server.settings = self.settings.intern(conn.server.settings.overlaid(pairs));
        }
        self.happen(slot);
        if let Err(lost) = received {
            tracing::error!(event = "server_protocol", server = slot, "server lost: {lost}");
            self.server_lost(slot, &format!("the server broke the protocol: {lost}"));
            return;
        }
        if !self.paced.is_empty() {
            self.pace(slot);
        }
        match self.servers.get(slot).is_some_and(|conn| conn.server.yields) {
            true => self.check_held(slot),
            false => self.check_corked(slot),
        }
        self.no_longer_full(slot);
        self.settle_server(slot);
    }

    /// Deals with what a server's replies have told.
    pub(super) fn happen(&mut self, server: u32) {
        if self.events.is_empty() {
            return;
        }
        let mut events = std::mem::take(&mut self.events);
        for (owner, happened) in events.drain(..) {
            // Whose it was may have gone meanwhile.
            match happened {
                Happened::Redefined => {
                    self.redefined_on(server);
                    continue;
                }
                Happened::Defined => {
                    self.defined_on(server);
                    continue;
                }
                Happened::Turned => {
                    self.doubt(server);
                    continue;
                }
                _ => {}
            }
            if let Some(train) = Plane::train_of(owner) {
                match happened {
                    Happened::SetupDone => self.train_arrived(train, false),
                    Happened::SetupFailed(error) => self.tail_failed(train, &error),
                    _ => self.server_lost(train, NOT_COMPLETED),
                }
                continue;
            }
            // One that was closed by an earlier event has no pool any more.
            if self.clients.get(owner.0).is_some_and(|client| client.pool != NONE) {
                self.happened(owner.0, server, happened);
            }
        }
        events.append(&mut self.events);
        self.events = events;
    }

    fn happened(&mut self, slot: u32, server: u32, happened: Happened) {
        let now = self.now;
        let client = &mut self.clients[slot];
        match happened {
            Happened::Ready(status) => self.answered(slot, status),
            Happened::LeftOpen => self.left_open(slot, server),
            Happened::ReadyUnasked(status) => {
                client.batch_open = false;
                self.answered(slot, status);
            }
            Happened::Settled(outcome) => {
                if let Some(unit) = &mut client.unit {
                    unit.unparsed = outcome != Outcome::Done;
                    return;
                }
                client.names().settled(outcome);
                // After an error a Query does not end the batch but is skipped with it, so a name
                // can become certain before any ReadyForQuery, and the Sync may be held back.
                if client.hold == Hold::Uncertain {
                    client.hold = Hold::No;
                    self.resume_later(slot);
                }
            }
            Happened::CopyIn { open } => {
                client.copies_in = true;
                client.batch_open |= open;
                // What waited for an answer may be what the COPY waits for.
                if client.hold == Hold::Uncertain && client.listens.is_some() {
                    client.hold = Hold::No;
                    self.resume_later(slot);
                }
            }
            Happened::CopyOver => client.copies_in = false,
            Happened::Setting(name, value) => {
                let settings = client.settings.overlaid([(name.as_str(), value.as_str())]);
                client.settings = self.settings.intern(settings);
            }
            Happened::Prepared => self.prepared_by_sql(slot, server),
            Happened::Dropped { all, discard } => self.dropped(slot, server, all, discard),
            Happened::Again(Again::Stale) if client.unit.is_none() => self.replan(slot, server),
            Happened::Unended => self.end_flushed(slot, server),
            Happened::Again(Again::Elsewhere) => self.ask_at_home(slot, server),
            Happened::Again(again) => self.unit_again(slot, again),
            Happened::Stale(statement) => self.went_stale(slot, statement),
            Happened::Misread(statement) => self.statements.retire(statement),
            // It is no client's; see `happen`.
            Happened::Redefined | Happened::Defined | Happened::Turned => {}
            Happened::Notified => self.read_notified(slot),
            Happened::Notification(body) => self.notified_by_server(slot, &body),
            Happened::Error => {
                self.pools[client.pool as usize].totals.errors += 1;
                client.copies_in = false;
                client.namings = None;
                if let Some(unit) = &mut client.unit {
                    unit.failed = true;
                } else if let Some(shape) =
                    self.pools[client.pool as usize].shapes.get_mut(client.asking)
                {
                    shape.errors += 1;
                }
            }
            Happened::SetupDone => {
                self.trace_set_up(slot, server);
                let client = &mut self.clients[slot];
                client.asked = now;
                client.hold = Hold::No;
                let surveyed = self.servers.get(server).map(|conn| conn.preparing);
                self.set_up(slot, server);
                if surveyed != Some(Preparing::Surveying) {
                    self.resume_later(slot);
                }
            }
            Happened::SetupFailed(error) => self.set_up_failed(slot, &error),
        }
    }

    /// A Sync, Query or FunctionCall of the client's is answered.
    pub(super) fn answered(&mut self, slot: u32, status: TxStatus) {
        let now = self.now;
        self.note_seen(slot);
        self.hold_no_more(slot);
        let traced = self.clients[slot].trace.is_some();
        let journey = if traced { self.journey(slot) } else { None };
        let unit = self.clients[slot].unit.as_ref();
        if unit.is_none_or(|unit| !unit.tail || unit.done) {
            self.read_answered(slot);
            self.tell_written(slot, status);
        }
        let client = &mut self.clients[slot];
        if client.unit.is_some() {
            self.unit_answered(slot);
            if self.clients[slot].unit.is_some() {
                // It is done, but not yet safe.
                return;
            }
        } else if client.asking != NONE {
            self.answered_alone(slot);
        } else {
            self.answered_unseen(slot, status);
        }
        let client = &mut self.clients[slot];
        let totals = &mut self.pools[client.pool as usize].totals;
        let took = now.since(client.asked).as_micros() as u64;
        totals.query_count += 1;
        totals.query_time_us += took;
        totals.query_time.record(took);
        if status == TxStatus::Idle {
            totals.xact_count += 1;
            let lasted = now.since(client.began).as_micros() as u64;
            totals.xact_time_us += lasted;
            totals.xact_time.record(lasted);
            client.began = now;
            if let (None, Some(reads)) = (&client.begun, &mut client.reads) {
                reads.portal = None;
            }
        }
        client.answered = 0;
        client.asked = now;
        client.active = now;
        let listens = client.listens.is_some() && status == TxStatus::Idle;
        client.copies_in = false;
        client.namings = None;
        if let Some(names) = &mut client.names {
            names.answered();
        }
        if client.hold == Hold::Uncertain {
            client.hold = Hold::No;
            self.resume_later(slot);
        }
        if let Some(journey) = journey {
            self.trace_answered(slot, &journey, status);
        }
        if listens {
            self.keep_ready(slot);
        }
    }

    /// A statement that had a server for itself is answered.
    fn answered_alone(&mut self, slot: u32) {
        let client = &mut self.clients[slot];
        let id = std::mem::replace(&mut client.asking, NONE);
        client.alone = None;
        client.running = None;
        let took = self.now.since(client.asked);
        let Some(conn) = self.servers.get(client.server) else { return };
        let long = client.answered >= LONG_ANSWER_BYTES;
        let pool = &mut self.pools[client.pool as usize];
        let Some(shape) = pool.shapes.get_mut(id) else { return };
        client.last = Some(Last {
            shape: Some(id),
            way: Way::Alone,
            why: shape.why,
            company: 0,
            prepared: false,
            took_us: u32::try_from(took.as_micros()).unwrap_or(u32::MAX),
        });
        shape.calls += 1;
        shape.time.record(took.as_micros() as u64);
        shape.history.ran_alone(self.now.since(conn.server.since.max(client.asked)), long);
    }

    /// A statement is answered whose shape nobody has looked at.
    fn answered_unseen(&mut self, slot: u32, status: TxStatus) {
        let client = &mut self.clients[slot];
        let pool = &mut self.pools[client.pool as usize];
        let off = pool.config.coalesce == Coalesce::Off || pool.config.mode == PoolMode::Session;
        let why = match status {
            _ if off => Why::Off,
            TxStatus::Idle => Why::Unreadable,
            _ => Why::Transaction,
        };
        if off {
            pool.totals.coalesced.why[why as usize] += 1;
        }
        let took_us = self.now.since(client.asked).as_micros();
        client.last = Some(Last {
            shape: None,
            way: Way::Alone,
            why,
            company: 0,
            prepared: false,
            took_us: u32::try_from(took_us).unwrap_or(u32::MAX),
        });
    }

    /// Statement mode: a transaction was left open, by a BEGIN that the first look did not find.
    fn left_open(&mut self, slot: u32, server: u32) {
        self.rollback(server);
        let refused = no_transactions().detail("The transaction was rolled back.");
        let told = refused.in_words(self.config.listen.errors);
        self.tell(slot, |out| {
            told.put_as(out, "ERROR");
            reply::put_ready(out, TxStatus::Idle);
        });
        self.answered(slot, TxStatus::Idle);
    }

    fn dropped(&mut self, slot: u32, server: u32, all: bool, discard: bool) {
        self.deallocated(slot, server, all);
        let client = &mut self.clients[slot];
        if let (true, Some(names)) = (all, &mut client.names) {
            names.clear();
        }
        if discard {
            self.trace_discarded(slot);
            let client = &mut self.clients[slot];
            if let Some(names) = &mut client.names {
                names.forget_unnamed();
            }
            let Some(conn) = self.servers.get_mut(server) else { return };
            conn.server.settings = self.settings.intern(conn.server.settings.overlaid([]));
            client.settings = conn.server.settings.clone();
        }
    }

    /// After replies: is the server free, or does it need something?
    pub(super) fn settle_server(&mut self, slot: u32) {
        let Some(conn) = self.servers.get(slot) else { return };
        match conn.place {
            Place::Idle => {
                if conn.server.is_dying() {
                    self.retire(slot);
                }
            }
            Place::Cleaning => self.clean(slot),
            Place::Carrying => self.settle_carrier(slot),
            Place::Lent => {
                let holder = conn.client;
                if conn.server.is_quiet() && self.clients[holder].hold == Hold::Uncertain {
                    self.clients[holder].hold = Hold::No;
                    self.resume_later(holder);
                }
                let Some(conn) = self.servers.get(slot) else { return };
                if conn.server.status() != TxStatus::Idle || !conn.server.is_quiet() {
                    return;
                }
                let Some(client) = self.clients.get(holder) else { return };
                let mode = self.pools[conn.pool as usize].config.mode;
                // A client that waits to be resumed has not used its server yet: without it two
                // clients with different settings would take it from one another for ever.
                let done = !client.batch_open
                    && client.rest == 0
                    && client.hold != Hold::SetUp
                    && client.listens.as_ref().is_none_or(|listens| !listens.begins)
                    && !client.queued_resume
                    && !conn.server.copies_in();
                if !done || mode == PoolMode::Session || conn.replication {
                    return;
                }
                if conn.server.owes_ready() {
                    // The client may have a ReadyForQuery to come that would be lost to it.
                    self.fence(slot);
                } else if !self.survey(slot) {
                    match self.is_pinned(holder) {
                        false => self.release(slot),
                        true if self.clients[holder].listens.is_some() => {
                            self.rest_pinned(holder);
                        }
                        true => {}
                    }
                }
            }
        }
    }

    /// A server's socket is at its end or broken.
    pub fn server_closed(&mut self, slot: u32, why: &str) {
        self.server_lost(slot, why);
    }

    /// The connection is gone, or can no longer be trusted. Whoever had it is told once and
    /// closed, unless nothing of his had been sent.
    pub(super) fn server_lost(&mut self, slot: u32, why: &str) {
        self.doubt(slot);
        let Some(conn) = self.servers.get(slot) else { return };
        let holder = conn.client;
        // In a transaction what was done before is lost.
        let open = conn.preparing == Preparing::Bringing && conn.server.status() != TxStatus::Idle;
        let loses = open || self.would_lose(conn);
        let begins = |client: &Client| client.listens.as_ref().is_some_and(|all| all.begins);
        let prepared = |client: &Client| !loses && (client.hold == Hold::SetUp || begins(client));
        if self.clients.get(holder).is_some_and(prepared) {
            self.lost_in_set_up(slot, holder);
            return;
        }
        let place = self.pools[conn.pool as usize].config.upstream.place();
        let idle = conn.server.is_quiet() && conn.server.status() == TxStatus::Idle;
        let refused = match loses && (idle || conn.preparing == Preparing::Surveying) {
            true => self.pin_lost(conn, &place, why),
            false => Plane::lost_words(&place, why),
        };
        if conn.place == Place::Carrying {
            self.carrier_lost(slot, &refused);
            return;
        }
        if self.may_ask_at_home(slot) {
            return self.lost_reading(slot, holder);
        }
        let Some(conn) = self.servers.get(slot) else { return };
        let within = conn.server.is_within_message(Owner(holder));
        let last_words = conn.server.last_words().clone();
        self.hold_no_more(holder);
        self.close_server(slot, why);
        if holder == NONE {
            return;
        }
        match last_words {
            LastWords::ToldTo(owner) if owner == Owner(holder) => {}
            // In the middle of a row the client would take the reason for a part of it.
            _ if within => {}
            LastWords::Kept(words) if !words.is_empty() => {
                self.tell(holder, |out| out.extend_from_slice(&words));
            }
            _ => return self.close_client(holder, Some(&refused)),
        }
        self.close_told(holder, why);
    }
}
