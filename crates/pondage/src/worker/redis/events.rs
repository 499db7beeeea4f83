//! The engine's turn, and what comes of it for this worker's clients.

use std::time::Duration;

use ::redis::engine::Engine;
use ::redis::server::Event;
use cache::written;
use wire::resp::Parser;

use super::client::Hold;
use super::running::{Lost, Turn};
use super::{links, queue, Effect, RedisPlane};
use crate::control::messages::{Ref, ToWorker};

/// Where the engine's tables are; see `schema/tables.sql` of the crate `redis`.
const SCHEMA: &str = "redis";

impl RedisPlane {
    pub(super) fn engine_turn(&mut self) {
        let wall = self.wall();
        let shared = self.shared.clone();
        let mut engine = shared.engine();
        engine.turn(wall);
        self.tell_written(&engine);
        self.take_link_work(engine.store().links());
        let events = engine.take_events(self.worker);
        let others = engine.others_with_events(self.worker);
        for worker in (0..64).filter(|worker| others & (1 << worker) != 0) {
            self.effects.push(Effect::Peer(worker, ToWorker::RedisEvents));
        }
        for event in events {
            self.event(&mut engine, event);
        }
        if self.worker == links::WORKER {
            self.report(&engine);
        }
        let due = engine.next_due();
        let due = due.map(|at| self.now.after(Duration::from_millis((at - wall).max(0) as u64)));
        let links = match self.worker {
            links::WORKER => engine.store().links().next_due(),
            _ => None,
        };
        self.due = [due, links].into_iter().flatten().min();
    }

    /// Rows have been written: who reads them by SQL behind the replies sees them.
    fn tell_written(&mut self, engine: &Engine) {
        let committed = engine.server.stats.batches.committed;
        if std::mem::replace(&mut self.committed, committed) == committed {
            return;
        }
        let pool = self.pool.as_ref().filter(|_| self.caches.is_used());
        if let Some(kept) = pool.and_then(|pool| self.caches.known(&pool.database)) {
            kept.acks.tell(&written::of_schema(&kept, SCHEMA));
        }
    }

    /// Tells the log when the tables can be used, and when and why not any more.
    fn report(&mut self, engine: &Engine) {
        let why = engine.server.away.as_ref().map(|(why, _)| why.as_str());
        if why == self.reported.as_deref() {
            return;
        }
        match why {
            Some(why) => tracing::warn!(event = "redis_away", "Redis data can't be used: {why}"),
            None => tracing::info!(event = "redis_ready", "Redis data can be used"),
        }
        self.reported = why.map(str::to_owned);
    }

    fn event(&mut self, engine: &mut Engine, event: Event) {
        let Some(slot) = self.by_conn.get(&event.conn()).copied() else { return };
        let limit = usize::try_from(self.config.redis.output_limit).unwrap_or(usize::MAX);
        let Some(client) = self.clients.get_mut(slot) else { return };
        let outcome = match event {
            Event::Release(_) => client.release(engine),
            Event::Resume(_) => {
                if matches!(client.hold, Hold::Parked) {
                    client.hold = Hold::No;
                }
                self.redo(engine, slot)
            }
            Event::Redo { refused, .. } => {
                client.begin_redo(engine, refused);
                self.redo(engine, slot)
            }
            Event::Answer { reply, barrier, .. } => {
                client.answered(engine, &reply, barrier);
                self.redo(engine, slot)
            }
            Event::Push { message, .. } => {
                if client.out.len() + client.held.bytes.len() > limit {
                    tracing::warn!(event = "redis_output_limit", slot, "closed: it does not read");
                    self.cut(slot);
                } else {
                    client.say(0, |to| message.tell(to));
                }
                Ok(())
            }
            Event::Close(_) => {
                client.leaving = true;
                Ok(())
            }
        };
        if outcome.is_err() {
            tracing::warn!(event = "redis_lost", slot, "closed: its writes may be done or not");
            self.cut(slot);
        }
        if let Some(client) = self.clients.get_mut(slot) {
            if matches!(client.hold, Hold::Full) && !client.is_full() {
                client.hold = Hold::No;
            }
            if client.may_run() && client.input.len() > client.held.commands {
                queue(&mut self.resumable, client, slot);
            }
        }
        self.settle(slot);
    }

    /// Goes on with commands that were undone.
    fn redo(&mut self, engine: &mut Engine, slot: u32) -> Result<(), Lost> {
        let now = self.wall();
        let Some(client) = self.clients.get_mut(slot) else { return Ok(()) };
        if client.redo.is_none() {
            return Ok(());
        }
        let mut turn = Turn {
            engine,
            config: &self.config,
            pool: self.pool.as_ref(),
            client: Ref { worker: self.worker, slot, generation: client.generation },
            now,
            moment: self.now,
            common: &self.common,
            delayed: &mut self.delayed,
            effects: &mut self.effects,
        };
        self.touched = true;
        client.redo(&mut turn, &mut Parser::default())
    }
}
