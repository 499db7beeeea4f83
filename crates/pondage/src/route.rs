//! Where a statement goes, and why: a pure function of what is known about its shape and of the
//! settings of its pool. The "why" is what `EXPLAIN LAST STATEMENT` and `SHOW QUERIES` print.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cache::mirror::run::Limits;

use crate::config::{Coalesce, PoolConfig};
use crate::procedures::{Call, Row};

/// With whom statements of a shape may travel, as far as parser and catalogues can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// With nobody.
    Alone,
    /// A single write that is its own transaction: in a train, where those are wanted.
    Write,
    /// A read that must not share its transaction: `random()`.
    Pipeline,
    /// A read of nothing but tables and functions that are not volatile.
    Batch,
}

/// What parser and catalogues say of a shape; see `control/judge.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub share: Share,
    /// What stands against more: `function app.next_id() is volatile`. Empty: nothing does.
    pub reason: String,
    /// What each literal may become in a prepared statement, in the order of the text; none: the
    /// text is sent as it comes.
    pub literals: Option<Box<[sql::Use]>>,
    /// What its answers depend on, or why they can't be kept, for people.
    pub cache: Result<Arc<Cacheable>, String>,
    pub writes: Writes,
    /// It is nothing but a call of this procedure.
    pub call: Option<Arc<Call>>,
    /// It writes one row.
    pub row: Option<Arc<Row>>,
}

/// What a statement may change of what reads answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writes {
    Nothing,
    /// Rows of one table.
    Rows(Arc<cache::written::Written>),
    /// Nobody can tell: it calls what is not looked into, or has triggers.
    Anything,
}

/// A read whose answers may be kept until what they depend on changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cacheable {
    pub recipe: cache::recipe::Recipe,
    /// A result or a value depends on settings that say how values are written: TimeZone,
    /// DateStyle, IntervalStyle, extra_float_digits, bytea_output.
    pub settings: bool,
    /// Every parameter and literal with the type that PostgreSQL has found for it. Who says
    /// another type for a parameter (but a whole number for a whole number, a text for a text)
    /// must not use this.
    pub slots: Vec<Slot>,
    /// One line for each table: `table app.orders: rows where customer_id = $1`.
    pub lines: Vec<String>,
    /// How mirrors answer it, or why they do not.
    pub mirror: Result<Arc<Mirrored>, String>,
}

/// What parser and catalogues say of a statement that mirrors can answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// A column is the place of its table and its place in the table's definition.
    pub select: sql::Select<(u16, u16)>,
    pub tables: Vec<cache::mirror::definition::Definition>,
    /// The body of the RowDescription, all formats text.
    pub description: Vec<u8>,
    pub output_types: Vec<u32>,
    /// Constants that decide what is meant, with their values: the 1 of `ORDER BY 1`.
    pub fixed: Vec<(sql::Source, usize)>,
}

/// What a worker does for one statement before it gives way to others. The rows take some
/// milliseconds.
pub const MIRROR_LIMITS: Limits = Limits { rows: 20_000, bytes: 1 << 20 };

impl Mirrored {
    fn weight(&self) -> usize {
        const COLUMN: usize = 128;
        let columns: usize = self.tables.iter().map(|table| table.columns.len()).sum();
        let outputs = self.select.outputs.len() + self.select.sources().count();
        columns * COLUMN + (outputs + self.fixed.len()) * 24 + self.description.len()
    }
}

impl Cacheable {
    /// The memory it takes, about. Bytes.
    pub fn weight(&self) -> usize {
        const TABLE: usize = 320;
        const VALUE: usize = 16;
        let lines: usize = self.lines.iter().map(|line| line.len() + 24).sum();
        let mirror = self.mirror.as_ref().map_or_else(String::len, |mirror| mirror.weight());
        self.recipe.tables.len() * TABLE + self.slots.len() * VALUE + lines + mirror
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub source: sql::Source,
    pub type_oid: u32,
    /// Text for it may be a word like `now` or `yesterday`, another moment each time.
    pub timely: bool,
}

/// How statements of a shape have run of late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct History {
    /// Runs with the server for itself, up to [`ALONE_FIRST`].
    alone: u32,
    /// How long they took, in microseconds, a moving average. It has the waiting for a processor
    /// in it, which on a busy machine is most of it.
    alone_us: u32,
    /// How long it took among others, in microseconds, a moving average.
    joined_us: u32,
    /// The shortest of late, in microseconds, of those on trains.
    least_us: u32,
    /// Runs among others that are remembered; the older ones count less and less.
    joined: u32,
    /// Those that took longer than `coalesce_short`.
    slow: u32,
    /// Those that took longer than `coalesce_stall`.
    stalled: u32,
    /// It travels alone for so many more runs.
    banned: u32,
}

/// A shape travels alone so often before it may join others.
pub const ALONE_FIRST: u32 = 5;

/// Runs that are remembered at the most.
const REMEMBERED: u32 = 1024;

/// One of so many runs may take longer than `coalesce_short`, and one of so many longer than
/// `coalesce_stall`. On a busy machine a statement of 30 us waits for a processor for milliseconds
/// now and then; it would gain nothing by travelling alone.
const SLOW_ONE_OF: u32 = 10;
const STALLED_ONE_OF: u32 = 100;

/// What was the shortest time grows by one of so many with each run that took longer.
const LEAST_RISES: u32 = 64;

/// A shape that was too slow travels alone so often before it is tried again.
const BANNED: u32 = 1000;

/// Alone it may take so many times `coalesce_short`, and still be tried among others, where its
/// time is measured without the waiting.
const ALONE_TIMES: u32 = 10;

impl History {
    pub fn ran_alone(&mut self, took: Duration, long_answer: bool) {
        self.alone_us = moved(self.alone_us, took, self.alone == 0);
        self.alone = (self.alone + 1).min(ALONE_FIRST);
        self.banned = if long_answer { BANNED } else { self.banned.saturating_sub(1) };
    }

    pub fn ran_among_others(&mut self, took: Duration, short: Duration, stall: Duration) {
        if self.joined >= REMEMBERED {
            self.joined /= 2;
            (self.slow, self.stalled) = (self.slow / 2, self.stalled / 2);
        }
        self.joined += 1;
        self.joined_us = moved(self.joined_us, took, self.joined == 1);
        self.slow += u32::from(took > short);
        self.stalled += u32::from(took > stall);
        // And one more of each, so that the first is not the last.
        let slow = self.slow * SLOW_ONE_OF > self.joined + SLOW_ONE_OF;
        let stalled = self.stalled * STALLED_ONE_OF > self.joined + STALLED_ONE_OF;
        if slow || stalled {
            *self = History { banned: BANNED, joined: 0, slow: 0, stalled: 0, ..*self };
        }
    }

    /// On a train: it is meant to be there however long it takes.
    pub fn rode(&mut self, took: Duration) {
        let us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.least_us = match self.joined {
            0 => us,
            _ => us.min(self.least_us.saturating_add(self.least_us / LEAST_RISES + 1)),
        };
        self.joined_us = moved(self.joined_us, took, self.joined == 0);
        self.joined = (self.joined + 1).min(REMEMBERED);
    }

    /// How long one of them on a train works, without what it waits for a processor.
    pub fn work(&self) -> Duration {
        Duration::from_micros(u64::from(self.least_us))
    }

    /// How long one of them among others keeps a server.
    pub fn pace(&self) -> Duration {
        Duration::from_micros(u64::from(self.joined_us))
    }

    /// How long one of them takes in PostgreSQL; zero: that is not known yet.
    pub fn usual(&self) -> Duration {
        let us = if self.joined > 0 { self.joined_us } else { self.alone_us };
        Duration::from_micros(u64::from(us))
    }

    fn is_short(&self, short: Duration) -> bool {
        let alone = Duration::from_micros(u64::from(self.alone_us));
        self.banned == 0 && alone <= short * ALONE_TIMES
    }
}

/// An average that has moved by an eighth of the way.
fn moved(average: u32, took: Duration, first: bool) -> u32 {
    let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    match first {
        true => took,
        false => (u64::from(average) * 7 / 8 + u64::from(took) / 8) as u32,
    }
}

/// How a statement travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With the server for itself.
    Alone,
    /// Behind others, in its own transaction.
    Pipeline,
    /// Behind others, in one transaction with them.
    Batch,
    /// In its own transaction, acknowledged with others after one flush.
    Train,
    /// Nowhere: it was answered with a result that had been kept.
    Kept,
}

impl Way {
    pub fn word(self) -> &'static str {
        match self {
            Way::Alone => "alone",
            Way::Pipeline => "pipeline",
            Way::Batch => "batch",
            Way::Train => "train",
            Way::Kept => "cache",
        }
    }
}

/// Why a statement travelled as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// It joined others, or would have: nothing stood against it.
    Free,
    /// `coalesce = "off"`, or the pool's mode is `session`.
    Off,
    /// Part of a transaction, or of several requests in a row.
    Transaction,
    /// The client sent more behind it without waiting.
    Pipelined,
    /// Several statements, COPY, a cursor, a protocol message that is not followed.
    Unreadable,
    /// It has not been seen often enough.
    New,
    /// Parser and catalogues have not answered yet.
    Unjudged,
    /// By the verdict's reason.
    Judged,
    /// A write, and `coalesce_writes` is off.
    WritesOff,
    /// More than 1 of 10 took longer than `coalesce_short`, or it answers at length.
    Slow,
    /// No server had the settings of its session.
    Settings,
    /// It was sent with others, came to nothing there and was sent again.
    Again,
}

impl Why {
    pub const ALL: [Why; 12] = [
        Why::Free,
        Why::Off,
        Why::Transaction,
        Why::Pipelined,
        Why::Unreadable,
        Why::New,
        Why::Unjudged,
        Why::Judged,
        Why::WritesOff,
        Why::Slow,
        Why::Settings,
        Why::Again,
    ];

    /// One word, for metrics.
    pub fn word(self) -> &'static str {
        match self {
            Why::Free => "free",
            Why::Off => "off",
            Why::Transaction => "transaction",
            Why::Pipelined => "pipelined",
            Why::Unreadable => "unreadable",
            Why::New => "new",
            Why::Unjudged => "unjudged",
            Why::Judged => "judged",
            Why::WritesOff => "writes_off",
            Why::Slow => "slow",
            Why::Settings => "settings",
            Why::Again => "again",
        }
    }

    /// For people: with the verdict's own words, if it has any.
    pub fn told(self, reason: &str) -> String {
        match self {
            _ if reason.is_empty() => self.to_string(),
            Why::Judged => format!("{self}: {reason}"),
            _ => format!("{self} (parser and catalogues: {reason})"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Free => "nothing stands against it",
            Why::Off => "coalesce is off for this pool, or its mode is session",
            Why::Transaction => "it is part of a transaction or of a series of requests",
            Why::Pipelined => "the client sent more behind it without waiting",
            Why::Unreadable => "it is not one plain statement",
            Why::New => "it has not been seen often enough",
            Why::Unjudged => "parser and catalogues have not judged it yet",
            Why::Judged => "parser or catalogues found something against it",
            Why::WritesOff => "it writes, and coalesce_writes is off",
            Why::Slow => {
                "more than 1 of 10 took longer than coalesce_short, or it answers at length"
            }
            Why::Settings => "no server had the settings of its session",
            Why::Again => "it was sent again after it had come to nothing among others",
        })
    }
}

/// How a lone autocommit statement of this shape travels.
pub fn route(config: &PoolConfig, verdict: Option<&Verdict>, history: &History) -> (Way, Why) {
    if config.coalesce == Coalesce::Off {
        return (Way::Alone, Why::Off);
    }
    if history.alone < ALONE_FIRST {
        return (Way::Alone, Why::New);
    }
    let Some(verdict) = verdict else { return (Way::Alone, Why::Unjudged) };
    let rides = || {
        let plan = verdict.call.as_ref().map(|call| call.procedure.plan());
        plan.is_some_and(|plan| plan.travel(config.procedures).is_some())
    };
    let way = match verdict.share {
        // However long it takes; but what answers at length would be held back.
        Share::Alone | Share::Write if rides() => match history.banned {
            0 => Way::Train,
            _ => return (Way::Alone, Why::Slow),
        },
        Share::Alone => return (Way::Alone, Why::Judged),
        Share::Write if !config.coalesce_writes => return (Way::Alone, Why::WritesOff),
        Share::Write => Way::Train,
        Share::Batch if config.coalesce == Coalesce::Batch => Way::Batch,
        Share::Batch | Share::Pipeline => Way::Pipeline,
    };
    // A write waits for its own flush when it travels alone, so it is slow by nature.
    if way != Way::Train && !history.is_short(config.coalesce_short) {
        return (Way::Alone, Why::Slow);
    }
    (way, Why::Free)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn run(history: &mut History, times: u32, micros: u64) {
        for _ in 0..times {
            history.ran_among_others(Duration::from_micros(micros), SHORT, SHORT * 20);
        }
    }

    #[test]
    fn one_slow_run_of_ten_is_forgiven_and_more_are_not() {
        let mut history = History::default();
        run(&mut history, 90, 30);
        run(&mut history, 11, 2_000);
        assert!(history.is_short(SHORT));
        run(&mut history, 2, 2_000);
        assert!(!history.is_short(SHORT));
    }

    #[test]
    fn one_stalled_run_of_a_hundred_is_forgiven_and_more_are_not() {
        let mut history = History::default();
        run(&mut history, 198, 30);
        run(&mut history, 2, 30_000);
        assert!(history.is_short(SHORT));
        run(&mut history, 2, 30_000);
        assert!(!history.is_short(SHORT));
    }

    #[test]
    fn a_shape_that_was_slow_is_tried_again_later() {
        let mut history = History::default();
        run(&mut history, 100, 5_000);
        assert!(!history.is_short(SHORT));
        for _ in 0..BANNED {
            assert!(!history.is_short(SHORT));
            history.ran_alone(Duration::from_micros(300), false);
        }
        assert!(history.is_short(SHORT));
    }

    #[test]
    fn a_long_answer_travels_alone() {
        let mut history = History::default();
        history.ran_alone(Duration::from_micros(30), true);
        assert!(!history.is_short(SHORT));
    }

    #[test]
    fn what_is_slow_alone_is_not_tried_among_others() {
        let mut history = History::default();
        history.ran_alone(Duration::from_millis(11), false);
        assert!(!history.is_short(SHORT));
        (0..20).for_each(|_| history.ran_alone(Duration::from_millis(2), false));
        assert!(history.is_short(SHORT));
    }
}
