//! Clients with `pondage.trace = on` are told how their statements have travelled. All others have
//! no [`Trace`], which is looked at where the figures are at hand, and cost nothing else.

use std::time::Duration;

use wire::pg::backend::TxStatus;
use wire::pg::frame::{Header, HEADER_BYTES};
use wire::pg::frontend::{self, tag};
use wire::pg::sqlstate;

use super::requests::Taken;
use super::standpoint::Tier;
use super::{Plane, Preparing, WHOLE_BYTES_MAX};
use crate::route::Way;
use crate::session::client::Hold;
use crate::session::login::{Refused, Wish};
use crate::session::trace::{self, Command, Engine, Fresh, Journey, Messages, Trace};

impl Wish {
    /// Takes `pondage.trace` out of what PostgreSQL is to be told at the start.
    ///
    /// # Errors
    /// It is neither on nor off.
    pub(super) fn take_trace(&mut self) -> Result<bool, Refused> {
        let is_it = |name: &str| name.eq_ignore_ascii_case(trace::NAME);
        let last = self.settings.iter().rev().find(|(name, _)| is_it(name));
        let Some(value) = last.map(|(_, value)| trace::boolean(value.as_bytes())) else {
            return Ok(false);
        };
        self.settings.retain(|(name, _)| !is_it(name));
        value.ok_or_else(|| {
            Refused::new(sqlstate::INVALID_PARAMETER_VALUE, trace::INVALID)
                .hint(trace::INVALID_HINT)
        })
    }
}

impl Plane {
    /// Takes a statement about `pondage.trace`. None: it is something else, or PostgreSQL's.
    pub(super) fn trace_command(
        &mut self,
        slot: u32,
        header: Header,
        bytes: &[u8],
    ) -> Option<Taken> {
        let whole = bytes.get(HEADER_BYTES..header.total);
        let Some(body) = whole else {
            return (header.total <= WHOLE_BYTES_MAX).then_some(Taken::More);
        };
        let text = match header.tag {
            tag::QUERY => body.strip_suffix(b"\0")?,
            _ => frontend::parse(body).ok()?.query,
        };
        let command = trace::command(text)?;
        let client = &self.clients[slot];
        let replicates = self.servers.get(client.server).is_some_and(|conn| conn.replication);
        if client.batch_open || client.skips || replicates {
            return None;
        }
        let status = match self.quiet_status(slot) {
            Some(TxStatus::Failed) => return None,
            Some(status) => status,
            None => {
                self.clients[slot].hold = Hold::Uncertain;
                return Some(Taken::Held);
            }
        };
        let length = match trace::messages(bytes) {
            Messages::Whole(length) => length,
            Messages::More if bytes.len() < WHOLE_BYTES_MAX => return Some(Taken::More),
            Messages::More | Messages::Other => return None,
        };
        let known = self.clients[slot].trace.take();
        // PostgreSQL has been told of it in other words: it has to hear the rest as well.
        let elsewhere = known.as_ref().is_some_and(|trace| trace.is_found());
        let mut trace = known.unwrap_or_default();
        trace.follow(command, status);
        let on = trace.tells();
        self.keep_trace(slot, trace);
        if elsewhere || command == Command::ResetAll {
            return None;
        }
        let now = self.now;
        let client = &mut self.clients[slot];
        client.active = now;
        if let Some(names) = &mut client.names {
            names.forget_unnamed();
        }
        self.tell(slot, |out| trace::put_answer(out, &bytes[..length], command, on, status));
        Some(Taken::Bytes(length))
    }

    fn keep_trace(&mut self, slot: u32, trace: Box<Trace>) {
        self.clients[slot].trace = Some(trace).filter(|trace| !trace.is_idle());
    }

    /// DISCARD ALL.
    pub(super) fn trace_discarded(&mut self, slot: u32) {
        if let Some(mut trace) = self.clients[slot].trace.take() {
            trace.reset();
            self.keep_trace(slot, trace);
        }
    }

    /// PostgreSQL has said what else than it reports is set.
    pub(super) fn trace_surveyed(&mut self, slot: u32, found: &[(&str, &str)]) {
        let of_it = found.iter().find(|(name, _)| name.eq_ignore_ascii_case(trace::NAME));
        let found = of_it.and_then(|(_, value)| trace::boolean(value.as_bytes()));
        let client = &mut self.clients[slot];
        if found.is_none() && client.trace.is_none() {
            return;
        }
        let mut trace = client.trace.take().unwrap_or_default();
        trace.found(found);
        self.keep_trace(slot, trace);
    }

    /// A client that is told has got its server.
    pub(super) fn trace_set_up(&mut self, slot: u32, server: u32) {
        let now = self.now;
        let (Some(client), Some(conn)) = (self.clients.get_mut(slot), self.servers.get(server))
        else {
            return;
        };
        if let Some(trace) =
            client.trace.as_mut().filter(|_| conn.preparing != Preparing::Surveying)
        {
            trace.set_up += now.since(conn.server.since.max(client.asked));
        }
    }

    /// How the statement has travelled that is answered by a server now.
    pub(super) fn journey(&self, slot: u32) -> Option<Journey> {
        let client = &self.clients[slot];
        let trace = client.trace.as_ref()?;
        let cache_wait = client.reads.as_ref().and_then(|reads| reads.awaits.as_ref());
        let began = |since| match &client.unit {
            Some(unit) => unit.arrived.since(since),
            None => client.asked.since(since),
        };
        let (engine, server, at_server) = match &client.unit {
            None => {
                let conn = self.servers.get(client.server);
                let since = conn.map_or(client.asked, |conn| conn.server.since.max(client.asked));
                (Engine::Pool, client.server, self.now.since(since))
            }
            Some(unit) => {
                let size = unit.company.saturating_add(1);
                let engine = match unit.way {
                    Way::Train => Engine::Train(size),
                    _ => Engine::Trip(size),
                };
                (engine, unit.server, self.now.since(unit.arrived).saturating_sub(trace.wait))
            }
        };
        let conn = self.servers.get(server);
        Some(Journey {
            engine,
            cache_wait: cache_wait.map_or(Duration::ZERO, |waits| began(waits.since)),
            wait: trace.wait,
            set_up: trace.set_up,
            at_server,
            server: conn.map(|conn| (conn.ends, conn.pid)),
        })
    }

    /// The statement of a client that is looked at is answered.
    pub(super) fn trace_answered(&mut self, slot: u32, journey: &Journey, status: TxStatus) {
        let client = &mut self.clients[slot];
        let Some(mut trace) = client.trace.take() else { return };
        let code = trace.tell(journey, &mut client.out);
        client.trace = Some(trace);
        self.sample_answered(slot, journey, code);
        let Some(mut trace) = self.clients[slot].trace.take() else { return };
        trace.forget();
        if status == TxStatus::Idle {
            trace.transaction_over();
        }
        self.keep_trace(slot, trace);
    }

    /// It was answered without a server.
    pub(super) fn trace_kept(&mut self, slot: u32, tier: Tier, waited: Duration) {
        let client = &self.clients[slot];
        if client.trace.is_none() {
            return;
        }
        let (status, now) = (client.status(), self.now);
        let cache = self.pools[client.pool as usize].cache.as_ref();
        let Some(database) = cache.and_then(|cache| self.caches.get(cache.at)) else { return };
        let (lsn, verified) = database.standing(tier);
        let fresh = Fresh { lsn, age: verified.map(|verified| now.since(verified)) };
        let engine = match tier {
            Tier::Stream => Engine::Cache(fresh),
            Tier::Mirrors => Engine::Mirror(fresh),
        };
        let journey = Journey { cache_wait: waited, ..Journey::new(engine) };
        self.trace_answered(slot, &journey, status);
    }

    /// It was answered here, and nobody else has to know of it.
    pub(super) fn trace_here(&mut self, slot: u32, status: TxStatus) {
        if self.clients[slot].trace.is_some() {
            self.trace_answered(slot, &Journey::new(Engine::Here), status);
        }
    }
}
