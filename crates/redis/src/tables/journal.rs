//! The journal: what has been appended comes into the tables, the last change of each row only.
//!
//! Batches of the journal's shard are appended by one link and *folded* by another: what has been
//! committed gathers in one batch, which is applied a few times a second and names the rows of
//! the journal that are in it. They are deleted in the same transaction, so nothing is folded
//! twice. A fold is never given up: what is in it has been acknowledged.
//!
//! In the tables the journal's shard has a number of its own, whatever the number of writers, and
//! is always taken: what another configuration has left in the journal is folded before anything
//! else happens.

use std::time::Duration;

use backend::calls::Heard;
use backend::moment::Moment;

use super::{Phase, Tables, LOADER};
use crate::batch::{Batch, Fence};
use crate::changes::STALE;
use crate::statements::JOURNAL;
use crate::store::Told;

/// The shard's number in the tables.
pub const SHARD: u8 = 255;

/// The fold among the groups of a link, where batches have their numbers.
pub const FOLD: u64 = u64::MAX;

/// Of the question for the journal's rows.
const PAGE: u64 = 7;

/// What has been committed waits so long for more to be folded with it, at most.
const EVERY: Duration = Duration::from_millis(250);

/// Bytes of what has been appended that are not kept waiting.
const BYTES: usize = 8 << 20;

/// Between two tries of a fold: at first, and at most.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Rows of the journal read in one go while it is replayed. All that there are fit memory: the
/// engine stops appending when too many bytes wait to be folded.
const ROWS_EACH: i64 = 64;

/// What has been committed and is not in the tables.
#[derive(Debug)]
struct Part {
    batch: Batch,
    /// The numbers of its last batch in the journal and in the engine's shard.
    end: u64,
    seq: u64,
    /// As it is in the journal.
    bytes: usize,
    since: Moment,
}

impl Part {
    fn new() -> Part {
        Part { batch: Batch::folding(), end: 0, seq: 0, bytes: 0, since: Moment(0) }
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.bytes = 0;
    }
}

#[derive(Debug)]
pub struct Journal {
    pub epoch: i64,
    /// The number of the last batch that was applied for this shard.
    pub applied: u64,
    /// The last one in the journal that is known to be committed, and its number in the engine's
    /// shard.
    pub landed: u64,
    pub landed_seq: u64,
    gathered: Part,
    folding: Part,
    /// Something has gathered; a fold has not succeeded yet, and is on its way.
    is_gathering: bool,
    is_folding: bool,
    is_sent: bool,
    is_urgent: bool,
    retry_at: Moment,
    delay: Duration,
    /// While the journal is replayed: rows of the page that is being answered, and whether it has
    /// been.
    page: Option<i64>,
    answered: bool,
    failed: Option<String>,
}

impl Journal {
    pub fn new() -> Journal {
        Journal {
            epoch: 0,
            applied: 0,
            landed: 0,
            landed_seq: 0,
            gathered: Part::new(),
            folding: Part::new(),
            is_gathering: false,
            is_folding: false,
            is_sent: false,
            is_urgent: false,
            retry_at: Moment(0),
            delay: Duration::ZERO,
            page: None,
            answered: false,
            failed: None,
        }
    }

    /// Whether all that is known to be in the journal is in the tables.
    pub fn is_folded(&self) -> bool {
        !self.is_gathering && !self.is_folding
    }

    pub fn backlog(&self) -> usize {
        self.gathered.bytes + self.folding.bytes
    }

    /// When something is to be folded that is not on its way.
    pub fn next_due(&self) -> Option<Moment> {
        match (self.is_folding, self.is_gathering) {
            (true, _) => (!self.is_sent).then_some(self.retry_at),
            (false, gathering) => gathering.then(|| self.gathered.since.after(EVERY)),
        }
    }

    pub fn hurry(&mut self) {
        self.is_urgent = true;
    }

    /// Adds a batch that is in the journal as its number `end`.
    fn gather(&mut self, end: u64, seq: u64, effects: &[u8], now: Moment) -> Result<(), String> {
        let part = &mut self.gathered;
        if !self.is_gathering {
            part.since = now;
            self.is_gathering = true;
        }
        (part.end, part.seq) = (end, seq);
        part.bytes += effects.len();
        part.batch.read_effects(effects).map_err(|malformed| malformed.to_string())
    }

    /// All is in the journal, and will be read from there.
    fn forget(&mut self) {
        self.gathered.clear();
        self.folding.clear();
        (self.is_gathering, self.is_folding, self.is_sent) = (false, false, false);
        self.delay = Duration::ZERO;
        self.failed = None;
        // The answer that it was about is of an earlier taking.
        (self.page, self.answered) = (None, false);
    }
}

impl Tables {
    /// A batch has come into the journal.
    pub(super) fn appended(&mut self, end: u64, seq: u64, effects: &[u8]) {
        (self.journal.landed, self.journal.landed_seq) = (end, seq);
        if self.phase != Phase::Ready {
            // It is among what has been replayed.
            return;
        }
        if let Err(why) = self.journal.gather(end, seq, effects, self.now) {
            self.doomed = Some(why);
        }
    }

    /// What has gathered is applied when it is time to.
    pub(super) fn fold(&mut self) {
        let journal = &mut self.journal;
        if !journal.is_folding {
            let late = self.now >= journal.gathered.since.after(EVERY);
            let due = late || journal.is_urgent || journal.gathered.bytes >= BYTES;
            let replays = self.phase == Phase::Replaying;
            if !journal.is_gathering || !(due || replays) {
                return;
            }
            std::mem::swap(&mut journal.gathered, &mut journal.folding);
            (journal.is_gathering, journal.is_folding) = (false, true);
            journal.is_urgent = false;
            journal.retry_at = Moment(0);
            journal.folding.since = self.now;
        }
        if !journal.is_sent && self.now >= journal.retry_at {
            self.send_fold();
        }
    }

    /// A fold of what is replayed has failed and is tried again.
    pub(super) fn fold_again(&mut self) {
        if self.journal.is_folding {
            self.fold();
        }
    }

    fn send_fold(&mut self) {
        let journal = &mut self.journal;
        let fence = Fence {
            shard: SHARD,
            epoch: journal.epoch,
            seq: journal.applied as i64 + 1,
            folded: Some(journal.folding.end as i64),
        };
        let link = self.folder;
        let calls = &mut self.links[link].calls;
        let written = journal.folding.batch.call(calls, FOLD, &[fence]);
        match written.and_then(|()| calls.sync()) {
            Ok(()) => {
                journal.is_sent = true;
                self.links[link].groups.push_back(FOLD);
            }
            Err(refused) => self.fold_failed(&refused.to_string()),
        }
    }

    pub(super) fn fold_ended(&mut self, error: Option<(String, String)>, committed: bool) {
        if !std::mem::take(&mut self.journal.is_sent) {
            return;
        }
        match error {
            None if committed => self.fold_landed(),
            None => self.fold_failed("the transaction was not committed"),
            Some((code, why)) if code == STALE => {
                self.doomed = Some(format!("another gateway has taken over: {why}"));
            }
            Some((code, why)) => self.fold_failed(&format!("{why} ({code})")),
        }
    }

    fn fold_landed(&mut self) {
        let journal = &mut self.journal;
        journal.applied += 1;
        journal.is_folding = false;
        journal.delay = Duration::ZERO;
        let part = &mut journal.folding;
        let took_us = self.now.since(part.since).as_micros() as u64;
        let keys = part.batch.len();
        part.clear();
        // What was replayed has no numbers in the engine's shard.
        let seq = if self.phase == Phase::Ready { part.seq } else { 0 };
        self.told.push(Told::Folded { seq, keys, took_us });
        if self.phase == Phase::Replaying {
            self.replay();
        }
    }

    fn fold_failed(&mut self, why: &str) {
        let journal = &mut self.journal;
        journal.delay = (journal.delay * 2).clamp(RETRY_MIN, RETRY_MAX);
        journal.retry_at = self.now.after(journal.delay);
        let why = format!("the journal can't be written into the tables: {why}");
        if self.phase == Phase::Replaying {
            self.told.push(Told::Away { why: why.clone() });
        }
        self.told.push(Told::NotFolded { why });
    }

    /// The shards are ours: what was left in the journal comes first.
    pub(super) fn begin_replay(&mut self) {
        self.phase = Phase::Replaying;
        self.journal.forget();
        self.journal.folding.end = 0;
        self.journal.page = Some(ROWS_EACH);
        self.replay();
    }

    /// The next step: a page of the journal, or the fold of one that was read.
    fn replay(&mut self) {
        match self.journal.page {
            Some(rows) if rows >= ROWS_EACH => self.read_page(),
            _ => self.replayed(),
        }
    }

    fn read_page(&mut self) {
        self.journal.page = Some(0);
        let after = self.journal.folding.end as i64;
        let calls = &mut self.links[LOADER].calls;
        let asked = calls.call(PAGE, JOURNAL.name, |params| {
            params.int2(i16::from(SHARD));
            params.int8(after);
            params.int8(ROWS_EACH);
        });
        let asked = asked.and_then(|()| calls.sync());
        self.check(LOADER, asked);
    }

    pub(super) fn hear_page(&mut self, heard: &mut Heard<'_>) {
        let journal = &mut self.journal;
        match heard {
            Heard::Row { tag: PAGE, columns } => {
                *journal.page.get_or_insert(0) += 1;
                let end = columns.int8();
                let read = match (end, columns.bytea()) {
                    (Ok(Some(end)), Ok(effects)) => {
                        journal.gather(end as u64, 0, effects, self.now)
                    }
                    (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
                    (Ok(None), _) => Err("a row of the journal has no number".to_owned()),
                };
                if let Err(why) = read {
                    journal.failed.get_or_insert(why);
                }
            }
            Heard::Failed { error, .. } => {
                let text = format!("{} ({})", error.message, error.sqlstate);
                journal.failed.get_or_insert(text);
            }
            Heard::Synced { .. } => journal.answered = true,
            _ => {}
        }
    }

    /// A page has been read.
    pub(super) fn replay_on(&mut self) {
        if self.phase != Phase::Replaying || !std::mem::take(&mut self.journal.answered) {
            return;
        }
        if let Some(why) = self.journal.failed.take() {
            self.drop_link(LOADER, &why);
        } else if self.journal.is_gathering {
            self.fold();
        } else {
            self.replayed();
        }
    }
}
