//! The order of writes: shards, open batches, what is committed.
//!
//! Every key belongs to a shard. A shard's batches are numbered without gaps; what commands change
//! goes into its *open* batch until that is *sealed* and sent. A batch is one transaction. A unit
//! (a command, an EXEC, a script) that concerns several shards *fuses* their open batches into one,
//! which then has a number in each of them and is sent when all of them have nothing in flight.
//!
//! Keys of databases in journal mode have a shard of their own, the last. Its batches are committed
//! when they are in the journal; when they are in the tables, too, they are *settled*. What is
//! committed in another shard is settled at once.

use std::collections::VecDeque;

use crate::pubsub::Space;
use crate::session::ConnId;

/// Shards, at most: they are bits of a mask.
pub const SHARDS_MAX: usize = 32;

/// Terms whose ends are remembered.
const TERMS_MAX: usize = 64;

/// What a reply waits for: a batch of a shard, in one term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    pub shard: u8,
    pub term: u32,
    pub seq: u64,
}

/// What has become of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Pending,
    Committed,
    /// Undone, nothing of it is in the tables: its units have to run again.
    Undone,
    /// Nobody can know any more: it is too long ago, or another gateway has taken over.
    Lost,
}

/// Something that happens when a batch has committed, or at once when there is nothing to wait for.
#[derive(Debug)]
pub enum After {
    /// A published message.
    Publish { space: Space, channel: Box<[u8]>, message: Box<[u8]> },
    /// A keyspace notification.
    Event { db: u16, name: &'static str, key: Box<[u8]> },
    /// A key is another one, because of this connection: for CLIENT TRACKING.
    Changed { key: Box<[u8]>, by: Option<ConnId> },
    /// A database has been emptied: for CLIENT TRACKING.
    Flushed,
}

/// What has gathered for one transaction.
#[derive(Debug, Default)]
pub struct Open {
    pub shards: u32,
    /// Entries whose rows are to be written, each once.
    pub dirty: Vec<u32>,
    /// Keys that EXEC relies on though it does not write them: database, key, the row's version, 0
    /// when there must be none.
    pub checks: Vec<(u16, Box<[u8]>, i64)>,
    pub flushes: Vec<u16>,
    /// Connections whose replies wait for it, some twice.
    pub waiters: Vec<ConnId>,
    pub after: Vec<After>,
    /// Bytes of values that were changed, roughly.
    pub bytes: usize,
}

impl Open {
    pub fn is_empty(&self) -> bool {
        self.dirty.is_empty()
            && self.checks.is_empty()
            && self.flushes.is_empty()
            && self.waiters.is_empty()
            && self.after.is_empty()
    }
}

#[derive(Debug, Default)]
struct Shard {
    committed: u64,
    sealed: u64,
    /// Index into `Flow::opens`.
    open: usize,
    /// Batches on their way, and whether one is of several shards.
    in_flight: VecDeque<(u64, bool)>,
}

/// A sealed batch on its way.
#[derive(Debug)]
pub struct Sealed {
    /// Names it; grows.
    pub number: u64,
    pub open: Open,
    /// Its number in each of its shards.
    pub seqs: Vec<(u8, u64)>,
}

#[derive(Debug)]
pub struct Flow {
    shards: Vec<Shard>,
    opens: Vec<Open>,
    term: u32,
    /// The last batch of each shard that was sent in a term, the latest term last.
    ends: VecDeque<(u32, Option<Vec<u64>>)>,
    batches: u64,
    /// Up to where the journal's batches are in the tables, if there is a journal.
    folded: Option<u64>,
}

impl Flow {
    /// `applied`: the number of each shard's last batch in the tables.
    pub fn new(applied: &[u64]) -> Flow {
        let shards = applied.iter().enumerate().map(|(at, applied)| Shard {
            committed: *applied,
            sealed: *applied,
            open: at,
            in_flight: VecDeque::new(),
        });
        let opens = (0..applied.len()).map(|at| Open { shards: 1 << at, ..Open::default() });
        Flow {
            shards: shards.collect(),
            opens: opens.collect(),
            term: 1,
            ends: VecDeque::new(),
            batches: 0,
            folded: None,
        }
    }

    /// The last shard is the journal's.
    pub fn with_journal(mut self) -> Flow {
        self.folded = self.shards.last().map(|shard| shard.committed);
        self
    }

    /// The journal's shard.
    pub fn journal(&self) -> Option<u8> {
        self.folded.map(|_| (self.shards.len() - 1) as u8)
    }

    /// All shards but the journal's.
    pub fn row_shards(&self) -> usize {
        self.shards.len() - usize::from(self.folded.is_some())
    }

    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The number that the shard's open batch will have.
    pub fn open_seq(&self, shard: u8) -> u64 {
        self.shards[usize::from(shard)].sealed + 1
    }

    pub fn committed(&self, shard: u8) -> u64 {
        self.shards[usize::from(shard)].committed
    }

    /// Up to where the shard's batches are in the tables, where all can see them.
    pub fn settled(&self, shard: u8) -> u64 {
        match self.folded {
            Some(folded) if self.journal() == Some(shard) => folded,
            _ => self.committed(shard),
        }
    }

    /// The journal is in the tables up to here.
    pub fn folded(&mut self, seq: u64) {
        if let Some(folded) = &mut self.folded {
            *folded = seq.max(*folded);
        }
    }

    /// The number of the journal's last batch that has something in it, 0 without a journal.
    pub fn journal_end(&self) -> u64 {
        let state = self.journal().map(|journal| &self.shards[usize::from(journal)]);
        state.map_or(0, |state| state.sealed + u64::from(!self.opens[state.open].is_empty()))
    }

    /// Whether all the journal's batches up to this one are in the tables, or never will be.
    pub fn is_folded(&self, seq: u64) -> bool {
        self.journal()
            .is_none_or(|journal| self.settled(journal) >= seq.min(self.committed(journal)))
    }

    pub fn open(&mut self, shard: u8) -> &mut Open {
        let at = self.shards[usize::from(shard)].open;
        &mut self.opens[at]
    }

    /// Bytes of values that were changed in the fullest of the open batches, roughly.
    pub fn open_bytes(&self) -> usize {
        self.opens.iter().map(|open| open.bytes).max().unwrap_or(0)
    }

    pub fn barrier(&self, shard: u8, seq: u64) -> Barrier {
        Barrier { shard, term: self.term, seq }
    }

    pub fn fate(&self, barrier: Barrier) -> Fate {
        if barrier.term == self.term {
            let committed = self.shards.get(usize::from(barrier.shard)).map(|s| s.committed);
            return match committed {
                Some(committed) if barrier.seq <= committed => Fate::Committed,
                _ => Fate::Pending,
            };
        }
        match self.ends.iter().find(|(term, _)| *term == barrier.term) {
            Some((_, Some(ends))) => match ends.get(usize::from(barrier.shard)) {
                Some(end) if barrier.seq <= *end => {
                    let shard = &self.shards[usize::from(barrier.shard)];
                    if barrier.seq <= shard.committed {
                        Fate::Committed
                    } else {
                        Fate::Pending
                    }
                }
                _ => Fate::Undone,
            },
            _ => Fate::Lost,
        }
    }

    /// Makes the open batches of these shards one, and gives the barrier of that.
    pub fn fuse(&mut self, mask: u32) -> Barrier {
        let mut shards = bits(mask);
        let first = shards.next().unwrap_or(0);
        let into = self.shards[first].open;
        for shard in shards {
            let from = self.shards[shard].open;
            if from == into {
                continue;
            }
            let mut other = std::mem::take(&mut self.opens[from]);
            bits(other.shards).for_each(|shard| self.shards[shard].open = into);
            let open = &mut self.opens[into];
            open.shards |= other.shards;
            open.dirty.append(&mut other.dirty);
            open.checks.append(&mut other.checks);
            open.flushes.append(&mut other.flushes);
            open.waiters.append(&mut other.waiters);
            open.after.append(&mut other.after);
            open.bytes += other.bytes;
        }
        self.barrier(first as u8, self.shards[first].sealed + 1)
    }

    /// Shards whose open batch has something in it and may be sealed now: fewer than `depth` are in
    /// flight, and none for a batch of several shards. One shard of each batch. `held`: shards that
    /// have to wait.
    pub fn sendable(&self, depth: usize, held: u32) -> impl Iterator<Item = u8> + '_ {
        (0..self.shards.len()).filter_map(move |shard| {
            let open = &self.opens[self.shards[shard].open];
            if open.shards & held != 0 {
                return None;
            }
            let first = open.shards.trailing_zeros() as usize == shard;
            let limit = if open.shards.count_ones() > 1 { 1 } else { depth };
            // A batch of several shards goes by one of their connections: nothing may overtake it
            // on another.
            let free = bits(open.shards).all(|shard| {
                let flying = &self.shards[shard].in_flight;
                flying.len() < limit && flying.iter().all(|(_, several)| !several)
            });
            (first && free && !open.is_empty()).then_some(shard as u8)
        })
    }

    /// Closes the shard's open batch.
    pub fn seal(&mut self, shard: u8) -> Sealed {
        let at = self.shards[usize::from(shard)].open;
        let open = std::mem::take(&mut self.opens[at]);
        self.batches += 1;
        let several = open.shards.count_ones() > 1;
        let mut seqs = Vec::new();
        for shard in bits(open.shards) {
            let state = &mut self.shards[shard];
            state.sealed += 1;
            state.in_flight.push_back((self.batches, several));
            seqs.push((shard as u8, state.sealed));
            state.open = shard;
            self.opens[shard] = Open { shards: 1 << shard, ..Open::default() };
        }
        Sealed { number: self.batches, open, seqs }
    }

    /// The batch is in the tables.
    pub fn commit(&mut self, sealed: &Sealed) {
        for (shard, seq) in &sealed.seqs {
            let state = &mut self.shards[usize::from(*shard)];
            state.in_flight.retain(|(number, _)| *number != sealed.number);
            state.committed = state.committed.max(*seq);
        }
    }

    pub fn is_idle(&self) -> bool {
        self.shards.iter().all(|shard| shard.in_flight.is_empty())
    }

    /// Whether something waits to be sent.
    pub fn has_open(&self) -> bool {
        self.opens.iter().any(|open| !open.is_empty())
    }

    /// Whether nothing is in flight and nothing waits to be sent.
    pub fn is_drained(&self) -> bool {
        self.is_idle() && !self.has_open()
    }

    /// Barriers of all that has been done until now.
    pub fn everything(&self) -> Vec<Barrier> {
        let shards = (0..self.shards.len()).filter_map(|shard| {
            let state = &self.shards[shard];
            let open = !self.opens[state.open].is_empty();
            let seq = state.sealed + u64::from(open);
            (seq > state.committed).then(|| self.barrier(shard as u8, seq))
        });
        shards.collect()
    }

    /// Nothing that is not committed will be: a new term begins. Gives what was open. `known`:
    /// whether it is sure that nothing of it is in the tables.
    pub fn restart(&mut self, known: bool) -> Vec<Open> {
        for (at, shard) in self.shards.iter_mut().enumerate() {
            shard.sealed = shard.committed;
            shard.in_flight.clear();
            // Their numbers are given again.
            for (_, ends) in &mut self.ends {
                if let Some(end) = ends.as_mut().and_then(|ends| ends.get_mut(at)) {
                    *end = shard.committed.min(*end);
                }
            }
        }
        if !known {
            self.ends.iter_mut().for_each(|(_, ends)| *ends = None);
        }
        self.give_up_open(known)
    }

    /// What is open will not be sent: a new term begins. What is in flight is not concerned.
    pub fn abandon(&mut self) -> Vec<Open> {
        self.give_up_open(true)
    }

    fn give_up_open(&mut self, known: bool) -> Vec<Open> {
        let ends = self.shards.iter().map(|shard| shard.sealed).collect();
        self.ends.push_back((self.term, known.then_some(ends)));
        if self.ends.len() > TERMS_MAX {
            self.ends.pop_front();
        }
        self.term += 1;
        let mut given = Vec::new();
        for (at, shard) in self.shards.iter_mut().enumerate() {
            shard.open = at;
            given.push(std::mem::replace(
                &mut self.opens[at],
                Open { shards: 1 << at, ..Open::default() },
            ));
        }
        given
    }

    /// Another's batches may be in the tables: numbers go on from there.
    pub fn renumber(&mut self, applied: &[u64]) {
        for (shard, applied) in self.shards.iter_mut().zip(applied) {
            shard.committed = *applied;
            shard.sealed = *applied;
        }
        if self.folded.is_some() {
            self.folded = self.shards.last().map(|shard| shard.committed);
        }
    }
}

pub fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..SHARDS_MAX).filter(move |bit| mask & (1 << bit) != 0)
}
