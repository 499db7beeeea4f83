//! Batches on their way.

use backend::moment::Moment;

use super::links::State;
use super::{Phase, Tables};
use crate::batch::{Batch, Expect, Fence};
use crate::changes::{CONFLICT, STALE, WATCHED};
use crate::flow::Sealed;
use crate::keyspace::Keyspace;
use crate::statements;
use crate::store::Told;
use crate::value::Kind;

/// Between two tries of a batch that failed for a reason that may pass.
const RETRY: std::time::Duration = std::time::Duration::from_millis(20);

/// Batches whose buffers are kept.
const SPARE_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To be sent, from this moment on.
    Waiting {
        from: Moment,
    },
    Sent,
    /// The connection was lost: PostgreSQL knows.
    Unknown,
}

#[derive(Debug)]
pub struct Flight {
    number: u64,
    seqs: Vec<(u8, u64)>,
    shards: u32,
    batch: Batch,
    /// Its commit does not wait for the flush.
    hurried: bool,
    stage: Stage,
    since: Moment,
}

impl Flight {
    /// The writer that carries it: its first shard's.
    fn link(&self) -> usize {
        1 + self.shards.trailing_zeros() as usize
    }
}

impl Tables {
    /// Writes a sealed batch's rows.
    pub(super) fn write(&mut self, keys: &mut Keyspace, sealed: &Sealed) -> Flight {
        let mut batch = self.spare.pop().unwrap_or_default();
        for db in &sealed.open.flushes {
            batch.flush(*db);
        }
        for (db, key, version) in &sealed.open.checks {
            batch.check(*db, key, Expect::known(*version));
        }
        let orphans = keys.write_rows(sealed, |changed| batch.changed(changed));
        for (kid, letter) in orphans {
            if let Some(kind) = Kind::from_letter(letter) {
                batch.orphan(kid, kind);
            }
        }
        let shards = sealed.seqs.iter().fold(0, |mask, (shard, _)| mask | 1 << shard);
        let hurried = |db: &u16| self.identity.hurried.contains(db);
        let hurried = !self.identity.hurried.is_empty()
            && sealed.open.flushes.iter().all(hurried)
            && batch.databases().all(|db| hurried(&db));
        Flight {
            number: sealed.number,
            seqs: sealed.seqs.clone(),
            shards,
            batch,
            hurried,
            stage: Stage::Waiting { from: Moment(0) },
            since: self.now,
        }
    }

    /// Sends what can be sent now.
    pub(super) fn pump(&mut self) {
        if self.phase != Phase::Ready {
            return;
        }
        // Shards in which something earlier is not known to be done, and those where it has not
        // even been sent on the same connection.
        let (mut earlier, mut blocked) = (0, 0);
        for at in 0..self.flights.len() {
            let flight = &self.flights[at];
            let several = flight.shards.count_ones() > 1;
            let hindered = if several { earlier } else { blocked };
            match flight.stage {
                Stage::Waiting { from } if from <= self.now && flight.shards & hindered == 0 => {
                    self.send_flight(at);
                    if several {
                        blocked |= self.flights[at].shards;
                    }
                }
                Stage::Sent if !several => {}
                _ => blocked |= flight.shards,
            }
            earlier |= self.flights[at].shards;
        }
    }

    fn send_flight(&mut self, at: usize) {
        let flight = &mut self.flights[at];
        let link = flight.link();
        let fences = flight.seqs.iter().map(|(shard, seq)| Fence {
            shard: *shard,
            epoch: self.epochs[usize::from(*shard)],
            seq: *seq as i64,
            folded: None,
        });
        let fences: Vec<_> = fences.collect();
        let calls = &mut self.links[link].calls;
        let mut written = Ok(());
        if flight.hurried {
            written = calls.call(flight.number, statements::HURRY.name, |_| {});
        }
        let written = written
            .and_then(|()| flight.batch.call(calls, flight.number, &fences))
            .and_then(|()| calls.sync());
        match written {
            Ok(()) => {
                flight.stage = Stage::Sent;
                self.links[link].groups.push_back(flight.number);
            }
            Err(refused) => {
                let number = flight.number;
                self.give_up(number, Some(refused.to_string()));
            }
        }
    }

    /// What a writer has answered.
    pub(super) fn hear_writer(&mut self, link: usize, heard: backend::calls::Heard<'_>) {
        use backend::calls::Heard;
        match heard {
            Heard::Failed { error, .. } => {
                let text = match error.detail {
                    "" => error.message.to_owned(),
                    detail => format!("{} ({detail})", error.message),
                };
                self.links[link].error.get_or_insert((error.sqlstate.to_owned(), text));
            }
            Heard::Synced { committed, .. } => {
                let Some(number) = self.links[link].groups.pop_front() else { return };
                match self.links[link].error.take() {
                    None if committed => self.landed(number),
                    None => self.retry(number, "the transaction was not committed"),
                    Some((code, why)) => self.not_landed(number, &code, &why),
                }
            }
            _ => {}
        }
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.flights.iter().position(|flight| flight.number == number)
    }

    fn landed(&mut self, number: u64) {
        let Some(at) = self.position(number) else { return };
        let flight = self.flights.remove(at);
        self.figures.batches += 1;
        self.figures.rows += flight.batch.len() as u64;
        self.figures.commit_us += self.now.since(flight.since).as_micros() as u64;
        self.told.push(Told::Committed { number });
        self.recycle(flight.batch);
        if self.flights.is_empty() {
            self.undone = 0;
        }
    }

    fn recycle(&mut self, mut batch: Batch) {
        if self.spare.len() < SPARE_MAX {
            batch.clear();
            self.spare.push(batch);
        }
    }

    /// PostgreSQL has undone the batch.
    fn not_landed(&mut self, number: u64, code: &str, why: &str) {
        let Some(at) = self.position(number) else { return };
        let shards = self.flights[at].shards;
        let behind = self.flights[..at].iter().any(|flight| flight.shards & shards != 0);
        match code {
            // Something was there first.
            CONFLICT | WATCHED => {
                self.figures.conflicts += 1;
                self.give_up(number, None);
            }
            // It could not be the next one, since one before it has failed.
            STALE if self.undone & shards != 0 => self.give_up(number, None),
            STALE if behind => self.retry(number, why),
            STALE => self.doomed = Some("another gateway has taken over".to_owned()),
            code if may_pass(code) => {
                let waited = self.now.since(self.flights[at].since);
                if waited > self.identity.patience {
                    self.give_up(number, Some(format!("{why} ({code})")));
                } else {
                    self.retry(number, why);
                }
            }
            code => self.give_up(number, Some(format!("{why} ({code})"))),
        }
    }

    fn retry(&mut self, number: u64, _why: &str) {
        self.figures.retries += 1;
        let from = self.now.after(RETRY);
        if let Some(at) = self.position(number) {
            self.flights[at].stage = Stage::Waiting { from };
        }
    }

    /// It is not in the tables and will not be; nor will be what comes behind it in its shards.
    fn give_up(&mut self, number: u64, refused: Option<String>) {
        let Some(at) = self.position(number) else { return };
        let flight = self.flights.remove(at);
        self.undone |= flight.shards;
        self.told.push(match refused {
            Some(why) => Told::Refused { number, why },
            None => Told::Conflict { number },
        });
        self.recycle(flight.batch);
        // Those that wait will never be sent.
        let waiting = self.flights.iter().filter(|flight| {
            flight.shards & self.undone != 0 && matches!(flight.stage, Stage::Waiting { .. })
        });
        for number in waiting.map(|flight| flight.number).collect::<Vec<_>>() {
            self.give_up(number, None);
        }
        if self.flights.is_empty() {
            self.undone = 0;
        }
    }

    pub(super) fn any_sent(&self) -> bool {
        self.flights.iter().any(|flight| flight.stage == Stage::Sent)
    }

    /// A connection is gone: what was sent on it may be in the tables.
    pub(super) fn flights_lost(&mut self, link: usize) {
        for flight in &mut self.flights {
            if flight.stage == Stage::Sent && flight.link() == link {
                flight.stage = Stage::Unknown;
            }
        }
    }

    /// The shards have been taken, and nobody else had them: `applied` says which batches landed.
    pub(super) fn resolve(&mut self, applied: &[u64]) {
        let landed = |flight: &Flight| {
            let (shard, seq) = flight.seqs[0];
            seq <= applied[usize::from(shard)]
        };
        let done = self.flights.iter().filter(|flight| landed(flight));
        for number in done.map(|flight| flight.number).collect::<Vec<_>>() {
            self.landed(number);
        }
        for flight in &mut self.flights {
            flight.stage = Stage::Waiting { from: Moment(0) };
        }
    }

    /// Somebody else had the shards: nobody knows what has become of these.
    pub(super) fn forget_flights(&mut self) {
        self.flights.clear();
        self.undone = 0;
    }

    /// When a batch has to be sent again.
    pub fn next_retry(&self) -> Option<Moment> {
        let waiting = self.flights.iter().filter_map(|flight| match flight.stage {
            Stage::Waiting { from } => Some(from),
            _ => None,
        });
        waiting.min()
    }

    /// Links that are ready, for the console.
    pub fn ready_links(&self) -> usize {
        self.links.iter().filter(|link| link.state == State::Ready).count()
    }
}

/// Errors that a later try may not have: class 40 (serialization, deadlock), 53 (disk full, memory,
/// connections), 57 (cancelled, shutting down), 55 (locks), 08, 58 and 25006 (a standby).
fn may_pass(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "55" | "57" | "58")) || code == "25006"
}
