//! What was asked and what was answered, with times.

use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

use crate::model::{Answer, Op};

/// When there is no answer, its time.
pub const NEVER: u64 = u64::MAX;

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has happened.
    Answered(Answer),
    /// An error was answered: it has not happened.
    Refused(String),
    /// The connection was lost: it may have happened, and may still happen.
    Unknown,
}

/// One operation on one key. What a command does to several keys is an event of each.
#[derive(Debug, Clone)]
pub struct Event {
    /// The connection. Operations of a lane happen in the order in which they are recorded.
    pub lane: u32,
    pub key: String,
    pub op: Op,
    pub invoked: u64,
    pub answered: u64,
    pub outcome: Outcome,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(f, "{:>6} {:>12.3} ", self.lane, ms(self.invoked))?;
        match self.answered {
            NEVER => write!(f, "{:>12} ", "never")?,
            answered => write!(f, "{:>12.3} ", ms(answered))?,
        }
        write!(f, "{:?} -> {:?}", self.op, self.outcome)
    }
}
