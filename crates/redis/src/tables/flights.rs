//! Batches on their way.

use backend::moment::Moment;

use super::journal::{FOLD, SHARD};
use super::links::State;
use super::{Phase, Tables};
use crate::batch::{Batch, Expect, Fence};
use crate::changes::{CONFLICT, STALE, WATCHED};
use crate::flow::Sealed;
use crate::keyspace::{Changed, Keyspace};
use crate::statements::{APPEND, HURRY};
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
    /// It is in the tables or in the journal, and that is told when the shards are ready.
    Landed,
}

#[derive(Debug)]
pub struct Flight {
    number: u64,
    seqs: Vec<(u8, u64)>,
    shards: u32,
    batch: Batch,
    /// Its commit does not wait for the flush.
    hurried: bool,
    /// What is appended to the journal, instead of the batch.
    effects: Option<Vec<u8>>,
    /// Its number in the journal's shard, in which it is appended or applied, when it was last sent.
    journaled: Option<u64>,
    /// Nothing else of its shards may be on its way: it goes by one link for several shards, or
    /// into the tables past what is in the journal.
    alone: bool,
    stage: Stage,
    since: Moment,
}

impl Flight {
    /// The writer that carries it: its first shard's.
    fn link(&self) -> usize {
        1 + self.shards.trailing_zeros() as usize
    }

    /// Its number in the engine's shard of that number.
    fn seq_in(&self, shard: Option<usize>) -> Option<u64> {
        let of = self.seqs.iter().find(|(of, _)| Some(usize::from(*of)) == shard);
        of.map(|(_, seq)| *seq)
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
        let journal = self.journal_shard();
        let named = |shard: u8| if Some(usize::from(shard)) == journal { SHARD } else { shard };
        let orphans = keys.write_rows(sealed, |changed| {
            batch.changed(Changed { shard: named(changed.shard), ..changed });
        });
        for (kid, letter) in orphans {
            if let Some(kind) = Kind::from_letter(letter) {
                batch.orphan(kid, kind);
            }
        }
        let hurried = |db: &u16| self.identity.hurried.contains(db);
        let hurried = !self.identity.hurried.is_empty()
            && sealed.open.flushes.iter().all(hurried)
            && batch.databases().all(|db| hurried(&db));
        let shards = sealed.seqs.iter().fold(0u32, |mask, (shard, _)| mask | 1 << shard);
        let several = shards.count_ones() > 1;
        // The journal keeps neither what is expected nor that readers have to wait for a flush.
        let plain = sealed.open.checks.is_empty() && sealed.open.flushes.is_empty();
        let in_journal = journal.is_some_and(|journal| shards & 1 << journal != 0);
        let effects = (in_journal && !several && plain).then(|| {
            let mut effects = Vec::new();
            batch.write_effects(&mut effects);
            effects
        });
        Flight {
            number: sealed.number,
            seqs: sealed.seqs.clone(),
            shards,
            alone: several || (in_journal && effects.is_none()),
            batch,
            hurried,
            effects,
            journaled: None,
            stage: Stage::Waiting { from: Moment(0) },
            since: self.now,
        }
    }

    /// The engine's shard whose batches go to the journal.
    fn journal_shard(&self) -> Option<usize> {
        self.identity.journal.then_some(self.epochs.len())
    }

    fn is_in_journal(&self, shards: u32) -> bool {
        self.journal_shard().is_some_and(|journal| shards & 1 << journal != 0)
    }

    /// Sends what can be sent now.
    pub(super) fn pump(&mut self) {
        match self.phase {
            Phase::Ready => self.fold(),
            Phase::Replaying => return self.fold_again(),
            Phase::Away | Phase::Taking => return,
        }
        // Shards in which something earlier is not known to be done, and those where it has not
        // even been sent on the same connection.
        let (mut earlier, mut blocked) = (0, 0);
        for at in 0..self.flights.len() {
            let flight = &self.flights[at];
            let (shards, alone) = (flight.shards, flight.alone);
            let hindered = if alone { earlier } else { blocked };
            match flight.stage {
                Stage::Waiting { from } if from <= self.now && shards & hindered == 0 => {
                    if alone && self.is_in_journal(shards) && !self.journal.is_folded() {
                        self.journal.hurry();
                        blocked |= shards;
                    } else if !self.send_flight(at) {
                        // Others are gone with it.
                        return;
                    } else if alone {
                        blocked |= shards;
                    }
                }
                Stage::Sent if !alone => {}
                _ => blocked |= shards,
            }
            earlier |= shards;
        }
    }

    /// False when it was given up.
    fn send_flight(&mut self, at: usize) -> bool {
        let journal = self.journal_shard();
        let before = self.flights[..at].iter().filter(|flight| flight.effects.is_some()).count();
        let flight = &mut self.flights[at];
        let (link, number) = (flight.link(), flight.number);
        let calls = &mut self.links[link].calls;
        let mut hurry = Ok(());
        if flight.hurried {
            hurry = calls.call(number, HURRY.name, |_| {});
        }
        let written = match &flight.effects {
            None => {
                let fences = flight.seqs.iter().map(|(shard, seq)| {
                    let at = usize::from(*shard);
                    let (shard, epoch, seq) = if Some(at) == journal {
                        flight.journaled = Some(self.journal.applied + 1);
                        (SHARD, self.journal.epoch, self.journal.applied + 1)
                    } else {
                        (*shard, self.epochs[at], *seq)
                    };
                    Fence { shard, epoch, seq: seq as i64, folded: None }
                });
                let fences: Vec<_> = fences.collect();
                flight.batch.call(calls, number, &fences)
            }
            Some(effects) => {
                let next = self.journal.landed + before as u64 + 1;
                flight.journaled = Some(next);
                calls.call(number, APPEND.name, |params| {
                    params.int2(i16::from(SHARD));
                    params.int8(self.journal.epoch);
                    params.int8(next as i64);
                    params.bytea(effects);
                })
            }
        };
        match hurry.and(written).and_then(|()| calls.sync()) {
            Ok(()) => {
                flight.stage = Stage::Sent;
                self.links[link].groups.push_back(number);
                true
            }
            Err(refused) => {
                self.give_up(number, Some(refused.to_string()));
                false
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
                let error = self.links[link].error.take();
                if number == FOLD {
                    self.fold_ended(error, committed);
                    return;
                }
                match error {
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
        self.figures.commit_us += self.now.since(flight.since).as_micros() as u64;
        self.told.push(Told::Committed { number });
        let seq = flight.seq_in(self.journal_shard());
        match (&flight.effects, seq, flight.journaled) {
            (Some(effects), Some(seq), Some(end)) => self.appended(end, seq, effects),
            (None, Some(seq), _) => {
                // It has waited for all that was in the journal.
                self.journal.landed_seq = seq;
                if self.phase == Phase::Ready {
                    self.journal.applied += 1;
                }
                self.told.push(Told::Folded { seq, keys: 0, took_us: 0 });
            }
            _ => {}
        }
        self.figures.rows += flight.batch.len() as u64;
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
            self.flights[at].journaled = None;
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

    /// The shards have been taken: if nobody else had them, `applied` says which batches landed, and
    /// for those of the journal's shard alone `appended` and `folds`.
    pub(super) fn resolve(&mut self, applied: &[u64], appended: u64, folds: u64) {
        let landed = |flight: &Flight| {
            let (shard, seq) = flight.seqs[0];
            match (applied.get(usize::from(shard)), &flight.effects) {
                (Some(applied), _) => seq <= *applied,
                (None, Some(_)) => flight.journaled.is_some_and(|n| n <= appended),
                (None, None) => flight.journaled.is_some_and(|n| n <= folds),
            }
        };
        for flight in &mut self.flights {
            if flight.stage != Stage::Landed {
                let waiting = Stage::Waiting { from: Moment(0) };
                flight.stage = if landed(flight) { Stage::Landed } else { waiting };
            }
            // Its number may be given to another now.
            flight.journaled = flight.journaled.filter(|_| flight.stage == Stage::Landed);
        }
    }

    pub(super) fn tell_resolved(&mut self) {
        let landed = self.flights.iter().filter(|flight| flight.stage == Stage::Landed);
        for number in landed.map(|flight| flight.number).collect::<Vec<_>>() {
            self.landed(number);
        }
    }

    /// Somebody else had the shards: nobody knows what has become of these.
    pub(super) fn forget_flights(&mut self) {
        self.flights.clear();
        self.undone = 0;
    }

    /// When a batch has to be sent again. Those whose time has come wait for others.
    pub(super) fn next_retry(&self) -> Option<Moment> {
        let waiting = self.flights.iter().filter_map(|flight| match flight.stage {
            Stage::Waiting { from } => Some(from),
            _ => None,
        });
        waiting.filter(|from| *from > self.now).min()
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
