//! How far something has come that answers without PostgreSQL, and what is promised of it.

use std::collections::VecDeque;
use std::time::Duration;

use backend::moment::Moment;
use cache::acks::Acked;

use crate::config::Freshness;

/// Positions that are told and not yet reached; beyond it later ones are not remembered, and what is
/// served counts as older than it is.
const UNVERIFIED_MAX: usize = 4096;

/// What is promised of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Promise {
    pub freshness: Freshness,
    pub max_lag: Duration,
}

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Kept results, which the stream keeps right.
    Stream,
    Mirrors,
}

/// What one worker knows of it.
#[derive(Debug, Default)]
pub struct Standpoint {
    /// What others have written and were told of.
    pub acked: Acked,
    /// Positions that have been told and are not yet reached, with when they were asked for.
    unverified: VecDeque<(Moment, u64)>,
    /// All that was committed by then is in it.
    verified: Option<Moment>,
}

impl Standpoint {
    /// All that was committed when this was asked is before that position.
    pub fn will_reach(&mut self, asked: Moment, lsn: u64) {
        if self.unverified.len() < UNVERIFIED_MAX {
            self.unverified.push_back((asked, lsn));
        }
    }

    /// Nothing that was told before counts: it may have been of another server, whose log was longer.
    pub fn forget(&mut self) {
        self.unverified.clear();
    }

    /// It has come so far.
    pub fn verify(&mut self, position: u64) {
        while let Some((asked, _)) = self.unverified.front().filter(|(_, lsn)| *lsn <= position) {
            self.verified = Some(*asked);
            self.unverified.pop_front();
        }
    }

    /// All that was committed by then is in it; none: nobody has asked.
    pub fn verified(&self) -> Option<Moment> {
        self.verified
    }

    /// Whether nothing that was committed longer ago is missing.
    pub fn is_recent(&mut self, position: u64, max_lag: Duration, now: Moment) -> bool {
        let recent = |verified: Option<Moment>| {
            verified.is_some_and(|verified| now.since(verified) <= max_lag)
        };
        if !recent(self.verified) {
            self.verify(position);
        }
        recent(self.verified)
    }
}
