//! Where a statement goes, and why: a pure function of what is known about its shape and of the
//! settings of its pool. The "why" is what `EXPLAIN LAST STATEMENT` and `SHOW QUERIES` print.

use std::fmt;
use std::time::Duration;

use crate::config::{Coalesce, PoolConfig};

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

/// What parser and catalogues say of a shape; see `control/classify.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub share: Share,
    /// What stands against more: `function app.next_id() is volatile`. Empty: nothing does.
    pub reason: String,
    /// What each literal may become in a prepared statement, in the order of the text; none: the
    /// text is sent as it comes.
    pub literals: Option<Box<[sql::Use]>>,
}

/// How statements of a shape have run of late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct History {
    /// Runs that are remembered; the older ones count less and less.
    pub runs: u32,
    /// Those that took longer than `coalesce_short`, or whose answer was long.
    pub slow: u32,
    /// Typical duration in microseconds, a moving average.
    pub mean_us: u32,
}

/// A shape travels alone so often before it may join others.
pub const ALONE_FIRST: u32 = 5;

/// Runs that are remembered at the most.
const REMEMBERED: u32 = 1024;

impl History {
    pub fn record(&mut self, took: Duration, short: Duration, long_answer: bool) {
        if self.runs >= REMEMBERED {
            (self.runs, self.slow) = (self.runs / 2, self.slow / 2);
        }
        self.runs += 1;
        self.slow += u32::from(took > short || long_answer);
        let took = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        self.mean_us = match self.runs {
            1 => took,
            _ => (u64::from(self.mean_us) * 7 / 8 + u64::from(took) / 8) as u32,
        };
    }

    /// 99 of 100 were short.
    fn is_short(&self) -> bool {
        u64::from(self.slow) * 100 <= u64::from(self.runs)
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
}

impl Way {
    pub fn word(self) -> &'static str {
        match self {
            Way::Alone => "alone",
            Way::Pipeline => "pipeline",
            Way::Batch => "batch",
            Way::Train => "train",
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
    /// More than 1 of 100 took longer than `coalesce_short`, or answers at length.
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
            Why::Slow => "more than 1 of 100 took longer than coalesce_short, or answer at length",
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
    if history.runs < ALONE_FIRST {
        return (Way::Alone, Why::New);
    }
    let Some(verdict) = verdict else { return (Way::Alone, Why::Unjudged) };
    let way = match verdict.share {
        Share::Alone => return (Way::Alone, Why::Judged),
        Share::Write if !config.coalesce_writes => return (Way::Alone, Why::WritesOff),
        Share::Write => Way::Train,
        Share::Batch if config.coalesce == Coalesce::Batch => Way::Batch,
        Share::Batch | Share::Pipeline => Way::Pipeline,
    };
    // A write waits for its own flush when it travels alone, so it is slow by nature.
    if way != Way::Train && !history.is_short() {
        return (Way::Alone, Why::Slow);
    }
    (way, Why::Free)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);

    fn ran(times: u32, micros: u64) -> History {
        let mut history = History::default();
        for _ in 0..times {
            history.record(Duration::from_micros(micros), SHORT, false);
        }
        history
    }

    #[test]
    fn one_slow_run_of_a_hundred_is_forgiven_and_two_are_not() {
        let mut history = ran(198, 30);
        for _ in 0..2 {
            history.record(Duration::from_millis(30), SHORT, false);
        }
        assert!(history.is_short());
        history.record(Duration::from_millis(30), SHORT, false);
        assert!(!history.is_short());
    }

    #[test]
    fn a_shape_that_was_slow_becomes_short_again() {
        let mut history = ran(2_000, 5_000);
        assert!(!history.is_short());
        for _ in 0..10_000 {
            history.record(Duration::from_micros(30), SHORT, false);
        }
        assert!(history.is_short());
        assert!(history.mean_us < 40);
    }

    #[test]
    fn a_long_answer_counts_as_slow() {
        let mut history = ran(20, 30);
        history.record(Duration::from_micros(30), SHORT, true);
        assert!(!history.is_short());
    }
}
