//! What the engine counts.

use std::collections::{BTreeMap, VecDeque};

use crate::args::{Args, Words};

/// Codes of errors that are told apart.
const ERRORS_MAX: usize = 128;

/// Upper bounds of the histogram of rows in a batch; one more bucket has what is above.
pub const BATCH_ROWS: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];

/// Upper bounds of the histogram of commits, in microseconds; one more bucket has what is above.
pub const COMMIT_US: [u64; 14] = [
    50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600,
    1_638_400,
];

/// Of so many commands with a key, one is looked at to find the keys used most.
const SAMPLED: u64 = 61;

/// Keys among which the ones used most are.
const HOT_MAX: usize = 64;

/// Words of a slow command that are kept, and bytes of each (`slowlog.h`).
const SLOW_WORDS_MAX: usize = 32;
const SLOW_BYTES_MAX: usize = 128;

/// One command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    pub calls: u64,
    /// Of those whose time is taken: fast ones are not.
    pub microseconds: u64,
    /// Refused before they ran.
    pub rejected: u64,
    pub failed: u64,
}

/// Batches sent to PostgreSQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct Batches {
    pub sent: u64,
    pub rows: u64,
    pub committed: u64,
    /// An SQL writer was there first.
    pub conflicts: u64,
    pub refused: u64,
    /// From sending to the answer to COMMIT, together, in microseconds.
    pub commit_us: u64,
    pub last_commit_us: u64,
    /// By [`BATCH_ROWS`].
    pub sizes: [u64; BATCH_ROWS.len() + 1],
    /// By [`COMMIT_US`].
    pub commits: [u64; COMMIT_US.len() + 1],
}

/// Writing the journal into the tables.
#[derive(Debug, Clone, Default)]
pub struct Folds {
    /// Bytes that wait for it.
    pub backlog: usize,
    pub folds: u64,
    /// Keys written.
    pub keys: u64,
    pub last_keys: usize,
    pub last_us: u64,
    pub failed: u64,
    /// Why the last try failed, if none has succeeded since.
    pub error: Option<String>,
}

#[derive(Debug, Default)]
pub struct Stats {
    /// By the number of the command in the table.
    pub commands: Vec<Calls>,
    /// By code.
    pub errors: BTreeMap<Box<str>, u64>,
    pub processed: u64,
    /// Errors replied.
    pub errors_replied: u64,
    /// The error that the command is about to end with is one of a script's commands, which has
    /// been counted.
    pub is_counted: bool,
    pub batches: Batches,
    pub folds: Folds,
    /// Look-ups of rows: questions, and keys in them.
    pub loads: u64,
    pub loaded: u64,
    pub hot: Hot,
    pub slow: SlowLog,
}

impl Stats {
    pub fn of(&mut self, command: u16) -> &mut Calls {
        let at = usize::from(command);
        if self.commands.len() <= at {
            self.commands.resize(at + 1, Calls::default());
        }
        &mut self.commands[at]
    }

    /// The command has run and ended with this error.
    pub fn failed(&mut self, command: u16, text: &str) {
        let calls = self.of(command);
        calls.calls += 1;
        calls.failed += 1;
        if !std::mem::take(&mut self.is_counted) {
            self.error(text);
        }
    }

    /// An error is replied.
    pub fn error(&mut self, text: &str) {
        self.errors_replied += 1;
        let code = text.split(' ').next().unwrap_or_default();
        if let Some(count) = self.errors.get_mut(code) {
            *count += 1;
        } else if self.errors.len() < ERRORS_MAX {
            self.errors.insert(code.into(), 1);
        }
    }

    pub fn sent(&mut self, rows: usize) {
        self.batches.sent += 1;
        self.batches.rows += rows as u64;
        let bucket = BATCH_ROWS.iter().position(|bound| rows <= *bound);
        self.batches.sizes[bucket.unwrap_or(BATCH_ROWS.len())] += 1;
    }

    pub fn committed(&mut self, microseconds: u64) {
        self.batches.committed += 1;
        self.batches.commit_us += microseconds;
        self.batches.last_commit_us = microseconds;
        let bucket = COMMIT_US.iter().position(|bound| microseconds <= *bound);
        self.batches.commits[bucket.unwrap_or(COMMIT_US.len())] += 1;
    }

    pub fn folded(&mut self, keys: usize, microseconds: u64) {
        let folds = &mut self.folds;
        folds.folds += 1;
        folds.keys += keys as u64;
        (folds.last_keys, folds.last_us) = (keys, microseconds);
        folds.error = None;
    }

    /// CONFIG RESETSTAT. What was slow stays, and what is wrong.
    pub fn reset(&mut self) {
        let (slow, folds) = (std::mem::take(&mut self.slow), std::mem::take(&mut self.folds));
        let folds = Folds { backlog: folds.backlog, error: folds.error, ..Folds::default() };
        *self = Stats { slow, folds, ..Stats::default() };
    }
}

/// The keys used most among many, in little memory: the one counted least makes room for a new
/// one, which takes over its count (Metwally, Agrawal, El Abbadi: space-saving).
#[derive(Debug, Default)]
pub struct Hot {
    seen: u64,
    keys: Vec<(u16, Box<[u8]>, u64)>,
}

impl Hot {
    /// Whether this command is one to be looked at.
    pub fn samples(&mut self) -> bool {
        self.seen += 1;
        self.seen % SAMPLED == 0
    }

    pub fn saw(&mut self, db: u16, key: &[u8]) {
        let known = self.keys.iter_mut().find(|(of, other, _)| *of == db && **other == *key);
        if let Some((_, _, count)) = known {
            *count += 1;
        } else if self.keys.len() < HOT_MAX {
            self.keys.push((db, key.into(), 1));
        } else if let Some(least) = self.keys.iter_mut().min_by_key(|(_, _, count)| *count) {
            *least = (db, key.into(), least.2 + 1);
        }
    }

    /// Database, key, and about how often it was named; the one named most first.
    pub fn keys(&self) -> Vec<(u16, Box<[u8]>, u64)> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        keys.iter_mut().for_each(|(_, _, count)| *count *= SAMPLED);
        keys
    }
}

/// A command that took long.
#[derive(Debug, Clone)]
pub struct Slow {
    pub number: u64,
    /// Seconds since 1970.
    pub at: i64,
    pub microseconds: u64,
    pub words: Words,
    pub address: Box<str>,
    pub name: Box<[u8]>,
}

/// The latest first.
#[derive(Debug, Default)]
pub struct SlowLog {
    pub entries: VecDeque<Slow>,
    numbers: u64,
}

impl SlowLog {
    pub fn add(&mut self, slow: Slow, limit: usize) {
        self.entries.push_front(Slow { number: self.numbers, ..slow });
        self.numbers += 1;
        self.entries.truncate(limit);
    }

    /// A command's words, shortened as Redis does (`slowlogCreateEntry`).
    pub fn shorten(args: Args<'_>) -> Words {
        let kept = if args.len() > SLOW_WORDS_MAX { SLOW_WORDS_MAX - 1 } else { args.len() };
        let mut words = Words::default();
        for word in args.iter().take(kept) {
            if word.len() <= SLOW_BYTES_MAX {
                words.push(word);
                continue;
            }
            let more = format!("... ({} more bytes)", word.len() - SLOW_BYTES_MAX);
            words.push(&[&word[..SLOW_BYTES_MAX], more.as_bytes()].concat());
        }
        if kept < args.len() {
            words.push(format!("... ({} more arguments)", args.len() - kept).as_bytes());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_used_often_is_found_among_many() {
        let mut hot = Hot::default();
        for at in 0..10_000u32 {
            hot.saw(0, format!("key{}", at % 997).as_bytes());
            if at % 3 == 0 {
                hot.saw(1, b"often");
            }
        }
        let keys = hot.keys();
        assert_eq!((keys[0].0, &*keys[0].1), (1, &b"often"[..]));
        assert!(keys.len() <= HOT_MAX);
    }

    #[test]
    fn slow_commands_are_shortened() {
        let many: Words = (0..40).map(|at| vec![b'x'; 100 + at]).collect();
        let short = SlowLog::shorten(many.args());
        assert_eq!(short.args().len(), SLOW_WORDS_MAX);
        assert_eq!(short.args().at(31), b"... (9 more arguments)");
        assert!(short.args().at(30).ends_with(b"... (2 more bytes)"));
    }
}
