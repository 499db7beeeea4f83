//! What follows from a unit: what its reply waits for, messages and notifications, figures.

use super::Engine;
use crate::args::Args;
use crate::command::{Command, Keys};
use crate::flow::Barrier;
use crate::keyspace::Done;
use crate::session::Session;

impl Engine {
    /// What has changed is part of a batch, and what follows from it will happen when that commits.
    pub(super) fn end_unit(&mut self, session: &mut Session) -> Done {
        let shards = self.keys.unit_shards();
        for held in session.held.iter().filter(|held| held.shards & shards != 0) {
            self.keys.depend_on(held.barrier);
        }
        let done = self.keys.end(Some(session.conn));
        if let Some(barrier) = done.barrier {
            session.waits_for(barrier, shards);
            self.await_commit(session.conn, barrier);
        }
        self.follow_up(done.barrier);
        done
    }

    /// The same of a unit that has blocked. It keeps its place in the queue whatever becomes of what
    /// it has only seen.
    pub(super) fn end_blocked(&mut self, session: &mut Session) {
        let shards = self.keys.unit_shards();
        let done = self.keys.end(None);
        let Some(barrier) = done.barrier.filter(|_| done.changed > 0) else { return };
        session.waits_for(barrier, shards);
        self.keys.flow.open(barrier.shard).waiters.push(session.conn);
        self.follow_up(Some(barrier));
        if let Some(blocked) = &mut session.blocked {
            blocked.barrier = Some(barrier);
        }
    }

    /// Messages and notifications of the unit that has ended.
    pub(super) fn follow_up(&mut self, barrier: Option<Barrier>) {
        let after = self.keys.take_after();
        if after.is_empty() {
            return;
        }
        let Some(barrier) = barrier else {
            after.into_iter().for_each(|after| self.server.follow(after, self.keys.notify));
            return;
        };
        match self.sealed(barrier) {
            Some(sealed) => sealed.open.after.extend(after),
            None => self.keys.flow.open(barrier.shard).after.extend(after),
        }
    }

    /// What the unit has shown, if it has not been told before.
    pub(super) fn tell_monitors(&mut self, session: &mut Session) {
        if std::mem::take(&mut session.shown) {
            self.server.monitors.forget();
        } else if !self.server.monitors.is_empty() {
            self.server.tell_monitors();
        }
    }

    /// Now and then a command's key is counted, to know which are named most.
    pub(super) fn sample(&mut self, db: u16, command: &Command, args: Args<'_>) {
        let Keys::Range(first, ..) = command.keys else { return };
        if self.server.stats.hot.samples() {
            self.server.stats.hot.saw(db, args.at(first));
        }
    }

    /// How long the commit took.
    pub(super) fn note_committed(&mut self, number: u64) {
        let Some(at) = self.sent.iter().position(|(other, _)| *other == number) else { return };
        let (_, sent) = self.sent.swap_remove(at);
        let took = self.server.microseconds().saturating_sub(sent);
        self.server.stats.committed(took.max(0) as u64);
    }

    /// Batches sent and not answered.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }
}
