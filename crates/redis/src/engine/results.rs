//! What the tables have told.

use super::Engine;
use crate::server::Event;
use crate::session::ConnId;
use crate::store::Told;
use std::sync::Arc;

impl Engine {
    pub(super) fn take_results(&mut self) {
        for told in self.store.told() {
            match told {
                Told::Committed { number } => self.batch_committed(number),
                Told::Folded { seq, keys, took_us } => {
                    self.keys.folded(seq);
                    if keys > 0 {
                        self.server.stats.folded(keys, took_us);
                    }
                }
                Told::NotFolded { why } => {
                    self.server.stats.folds.failed += 1;
                    self.server.stats.folds.error = Some(why);
                }
                Told::Conflict { number } => self.batch_undone(number, None),
                Told::Refused { number, why } => self.batch_undone(number, Some(why)),
                Told::Loaded { db, key, row } => {
                    let Some(loading) = self.loading.remove(&(db, key.clone())) else { continue };
                    // What a FLUSHDB is about to remove is not let in.
                    let stale = loading.stale || self.keys.is_flushing(db);
                    if stale && self.keys.find(db, &key).is_none() {
                        self.wanted.push((db, key.clone()));
                        let again = super::Loading { stale: false, ..loading };
                        self.loading.insert((db, key), again);
                        continue;
                    }
                    let row = row.map(|row| (row.value, row.expires, row.version));
                    self.keys.loaded(db, &key, row);
                    self.arrived(loading.conns);
                }
                // The next round finds them again.
                Told::Expired { keys } if self.keeps_expired() => drop(keys),
                Told::Expired { keys } => {
                    for (db, key, version) in keys {
                        // By way of the journal it would be removed whatever it is by now.
                        if self.keys.is_journaled(db) && self.keys.find(db, &key).is_none() {
                            self.want(db, key, None);
                            continue;
                        }
                        self.keys.begin(db, self.now, true, false);
                        self.keys.remove_expired(&key, version);
                        let done = self.keys.end(None);
                        self.follow_up(done.barrier);
                    }
                }
                Told::Postponed { db, keys } => {
                    self.wanted.extend(keys.into_iter().map(|key| (db, key)));
                }
                Told::NotLoaded { db, keys, why } => {
                    for key in keys {
                        let loading = self.loading.remove(&(db, key));
                        for conn in loading.map(|loading| loading.conns).unwrap_or_default() {
                            self.fail_parked(conn, &why);
                        }
                    }
                    self.wake_stalled();
                }
                Told::Answered { conn, answer } => {
                    if let Some(session) = self.server.sessions.get_mut(conn) {
                        session.answers.push(answer);
                    }
                    self.one_less(conn);
                }
                Told::Changed { db, key } => {
                    if let Some(loading) = self.loading.get_mut(&(db, key.clone())) {
                        loading.stale = true;
                    }
                    self.keys.changed_by_sql(db, &key);
                    self.server.invalidate(&key, None);
                    self.keys.begin(db, self.now, true, false);
                    self.keys.signal(&key);
                }
                Told::ChangedMany { db } => {
                    for ((of, _), loading) in &mut self.loading {
                        loading.stale |= db.is_none_or(|db| db == *of);
                    }
                    self.keys.forget_all(db);
                    self.server.invalidate_all();
                    self.wake_all();
                }
                Told::Taken { applied, kids, same } => self.taken(&applied, kids, same),
                Told::Away { why } => {
                    self.keys.forget_all(None);
                    self.server.invalidate_all();
                    for loading in self.loading.values_mut() {
                        loading.stale = true;
                    }
                    let since = self.server.away.take().map_or(self.now, |(_, since)| since);
                    self.server.away = Some((why, since));
                }
            }
        }
    }

    fn batch_committed(&mut self, number: u64) {
        let Some(at) = self.in_flight.iter().position(|sealed| sealed.number == number) else {
            return;
        };
        let sealed = self.in_flight.remove(at);
        if !self.loading.is_empty() {
            // A row that was looked up before may come when the copy here has been evicted.
            for (db, key) in self.keys.written(&sealed) {
                if let Some(loading) = self.loading.get_mut(&(db, Box::from(key))) {
                    loading.stale = true;
                }
            }
            for ((db, _), loading) in &mut self.loading {
                loading.stale |= sealed.open.flushes.contains(db);
            }
        }
        self.keys.committed_batch(&sealed);
        self.note_committed(number);
        for after in sealed.open.after {
            self.server.follow(after, self.keys.notify);
        }
        let mut waiters = sealed.open.waiters;
        waiters.dedup();
        for conn in waiters {
            self.server.tell(Event::Release(conn));
        }
    }

    fn batch_undone(&mut self, number: u64, why: Option<String>) {
        let batches = &mut self.server.stats.batches;
        match why {
            None => batches.conflicts += 1,
            Some(_) => batches.refused += 1,
        }
        self.sent.retain(|(other, _)| *other != number);
        if let Some(at) = self.in_flight.iter().position(|sealed| sealed.number == number) {
            // Its waiters hear of it when all is undone.
            self.undone.push(self.in_flight.remove(at));
            let known = self.undoing.take().flatten();
            self.undoing = Some(known.or(why));
        }
    }

    /// Nothing is in flight any more, and what is not committed will not be: its commands run
    /// again.
    pub(super) fn undo_all(&mut self) {
        let refused = self.undoing.take().flatten();
        let mut opens = self.keys.flow.restart(true);
        opens.extend(self.undone.drain(..).map(|sealed| sealed.open));
        self.give_up(opens, refused.map(Arc::from));
    }

    fn give_up(&mut self, opens: Vec<crate::flow::Open>, refused: Option<Arc<str>>) {
        let mut waiters: Vec<ConnId> =
            opens.iter().flat_map(|open| open.waiters.iter().copied()).collect();
        waiters.sort_unstable();
        waiters.dedup();
        self.keys.forget(opens);
        self.end_throttling();
        // Changes that are in the journal may have been forgotten as well.
        self.unfolded = self.keys.flow.journal_end();
        self.wake_all();
        for conn in waiters {
            // It runs again all that it waits for: an answer now would come too early.
            self.leave_queues(conn);
            if let Some(session) = self.server.sessions.get_mut(conn) {
                session.must_redo = true;
            }
            self.server.tell(Event::Redo { conn, refused: refused.clone() });
        }
    }

    /// PostgreSQL has been away for longer than anybody wants to wait.
    pub(super) fn hopeless(&self) -> Option<String> {
        let (why, since) = self.server.away.as_ref()?;
        let over = self.now.saturating_sub(*since) >= self.server.settings.patience_ms;
        over.then(|| format!("PostgreSQL can't be reached: {why}"))
    }

    /// Whoever waits for PostgreSQL is told why it is in vain. What is in flight stays so: only
    /// PostgreSQL knows what has become of it.
    pub(super) fn stop_waiting(&mut self) {
        let Some(why) = self.hopeless() else { return };
        // Each time a term ends, and only so many are remembered.
        if self.keys.flow.has_open() {
            let opens = self.keys.flow.abandon();
            self.unsettled = !self.in_flight.is_empty();
            self.give_up(opens, Some(Arc::from(&*why)));
        }
        let mut parked = Vec::new();
        for name in std::mem::take(&mut self.wanted) {
            parked.extend(self.loading.remove(&name).map(|loading| loading.conns));
        }
        // What has been asked for may still come, and be old by then.
        for loading in self.loading.values_mut() {
            loading.stale = true;
            parked.push(std::mem::take(&mut loading.conns));
        }
        for conn in parked.into_iter().flatten() {
            self.fail_parked(conn, &why);
        }
        for asked in std::mem::take(&mut self.asked) {
            self.fail_parked(asked.conn, &why);
        }
        self.end_throttling();
    }

    /// The tables are ours, again or for the first time.
    fn taken(&mut self, applied: &[u64], kids: i64, same: bool) {
        self.server.away = None;
        self.keys.set_kids(kids);
        self.wake_all();
        if same {
            return;
        }
        // Another gateway was there: what has become of what was sent before is not known here. What
        // was never sent, as before the first taking, runs again.
        let known = self.in_flight.is_empty();
        let mut opens = self.keys.flow.restart(known);
        opens.extend(self.in_flight.drain(..).map(|sealed| sealed.open));
        self.keys.flow.renumber(applied);
        self.give_up(opens, None);
        self.keys.forget_all(None);
    }

    fn arrived(&mut self, conns: Vec<ConnId>) {
        self.wake_stalled();
        for conn in conns {
            self.one_less(conn);
        }
    }

    /// One of the things that a parked connection waits for is there.
    fn one_less(&mut self, conn: ConnId) {
        let Some(session) = self.server.sessions.get_mut(conn) else { return };
        session.outstanding = session.outstanding.saturating_sub(1);
        if session.outstanding == 0 && session.blocked.is_none() {
            self.server.tell(Event::Resume(conn));
        }
    }

    fn fail_parked(&mut self, conn: ConnId, why: &str) {
        if let Some(session) = self.server.sessions.get_mut(conn) {
            session.refused = Some(why.to_owned());
        }
        self.one_less(conn);
    }
}
