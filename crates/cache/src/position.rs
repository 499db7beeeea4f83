//! How far a client, or an entry, may have seen, and how one finds out.
//!
//! Whoever was answered by PostgreSQL may have seen everything that was committed by then. How far
//! that was in the log nobody told it. A *pulse* asks: one query for the snapshot and the end of
//! the log, on a connection of the worker's own, for all who want to know. A pulse that is sent
//! after an answer has arrived covers whatever that answer can have seen.
//!
//! Log that is no commit (hint bits, vacuum, checkpoints) moves the end of the log, too, and is
//! not flushed for a while. A snapshot that equals an earlier one says that nothing has been
//! committed since, so the earlier position still counts.

use std::collections::VecDeque;

/// Answered pulses that are remembered.
const REMEMBERED: usize = 64;

/// How far somebody has seen at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Everything before this LSN.
    Lsn(u64),
    /// What a pulse with a higher number than this will tell.
    Open(u64),
}

impl Default for Seen {
    fn default() -> Seen {
        Seen::Lsn(0)
    }
}

#[derive(Debug, Clone, Copy)]
struct Answered {
    number: u64,
    lsn: u64,
}

/// The pulses of one worker in one database.
#[derive(Debug, Default)]
pub struct Pulses {
    sent: u64,
    in_flight: VecDeque<u64>,
    /// Oldest first; numbers and LSNs grow.
    answered: VecDeque<Answered>,
    /// The last answer whose position had been applied when it was looked at.
    covered: Option<(Box<[u8]>, u64)>,
    /// The last answer.
    last: Option<(Box<[u8]>, u64)>,
}

impl Pulses {
    /// How far somebody has seen who is answered now.
    pub fn now(&self) -> Seen {
        Seen::Open(self.sent)
    }

    /// The number of the one that is sent now.
    pub fn send(&mut self) -> u64 {
        self.sent += 1;
        self.in_flight.push_back(self.sent);
        self.sent
    }

    /// One that is sent already will tell how far that is.
    pub fn is_asked(&self, seen: Seen) -> bool {
        match seen {
            Seen::Lsn(_) => true,
            Seen::Open(number) => self.sent > number,
        }
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The oldest pulse is answered. `applied` is how far the stream has been applied. Gives the
    /// position that counts.
    pub fn answer(&mut self, snapshot: &[u8], lsn: u64, applied: u64) -> Option<u64> {
        let number = self.in_flight.pop_front()?;
        if let Some((snapshot, lsn)) = self.last.take_if(|(_, lsn)| *lsn <= applied) {
            self.covered = Some((snapshot, lsn));
        }
        let quiet = |known: &Option<(Box<[u8]>, u64)>| {
            known.as_ref().filter(|(known, _)| **known == *snapshot).map(|(_, lsn)| *lsn)
        };
        // Nothing has been committed since.
        let earlier = quiet(&self.covered).or_else(|| quiet(&self.last));
        let floor = self.answered.back().map_or(0, |answered| answered.lsn);
        let lsn = earlier.unwrap_or(lsn).max(floor);
        self.last = Some((snapshot.into(), lsn));
        if self.answered.len() == REMEMBERED {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { number, lsn });
        Some(lsn)
    }

    /// How far somebody has seen who has seen so much, and everything before `lsn`.
    pub fn later(&self, seen: Seen, lsn: u64) -> Seen {
        match self.resolve(seen) {
            Some(known) => Seen::Lsn(known.max(lsn)),
            // Whatever answers that will not tell less than has been told.
            None if self.answered.back().is_some_and(|told| told.lsn >= lsn) => seen,
            // Another worker may have been told more than a pulse that is on its way will tell.
            None => self.now(),
        }
    }

    /// The connection is lost: what was asked will not be answered.
    pub fn lost(&mut self) {
        *self = Pulses { sent: self.sent, ..Pulses::default() };
    }

    /// How far that is in the log, as soon as it is known.
    pub fn resolve(&self, seen: Seen) -> Option<u64> {
        match seen {
            Seen::Lsn(lsn) => Some(lsn),
            Seen::Open(number) => {
                let first = self.answered.partition_point(|answered| answered.number <= number);
                self.answered.get(first).map(|answered| answered.lsn)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pulse_sent_afterwards_tells() {
        let mut pulses = Pulses::default();
        pulses.send();
        let seen = pulses.now();
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(pulses.resolve(seen), None, "it was sent before");
        assert!(!pulses.is_asked(seen));
        pulses.send();
        assert!(pulses.is_asked(seen));
        pulses.answer(b"6:6:", 120, 0);
        assert_eq!(pulses.resolve(seen), Some(120));
        assert_eq!(pulses.resolve(Seen::Lsn(7)), Some(7));
    }

    #[test]
    fn who_has_seen_two_things_has_seen_the_later_one() {
        let mut pulses = Pulses::default();
        assert_eq!(pulses.later(Seen::Lsn(7), 5), Seen::Lsn(7));
        assert_eq!(pulses.later(Seen::Lsn(7), 9), Seen::Lsn(9));
        pulses.send();
        pulses.answer(b"5:5:", 100, 0);
        let open = pulses.now();
        pulses.send();
        assert_eq!(pulses.later(open, 100), open);
        // What was sent may have found less than that.
        let later = pulses.later(open, 101);
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(pulses.resolve(later), None);
        pulses.send();
        pulses.answer(b"6:6:", 120, 0);
        assert_eq!(pulses.resolve(later), Some(120));
        assert_eq!(pulses.later(open, 101), Seen::Lsn(101));
    }

    #[test]
    fn the_first_that_was_sent_afterwards_is_enough() {
        let mut pulses = Pulses::default();
        let seen = pulses.now();
        for n in 0..3 {
            pulses.send();
            pulses.answer(format!("{n}:{n}:").as_bytes(), 100 + n, 0);
        }
        assert_eq!(pulses.resolve(seen), Some(100));
    }

    #[test]
    fn one_that_is_forgotten_is_as_late_as_the_oldest_that_is_known() {
        let mut pulses = Pulses::default();
        let seen = pulses.now();
        for n in 0..REMEMBERED as u64 + 5 {
            pulses.send();
            pulses.answer(format!("{n}:{n}:").as_bytes(), 100 + n, 0);
        }
        assert_eq!(pulses.resolve(seen), Some(105));
    }

    #[test]
    fn log_without_commits_does_not_count() {
        let mut pulses = Pulses::default();
        pulses.send();
        pulses.answer(b"5:5:", 100, 0);
        let seen = pulses.now();
        pulses.send();
        pulses.answer(b"5:5:", 180, 100);
        assert_eq!(pulses.resolve(seen), Some(100));
        let seen = pulses.now();
        pulses.send();
        pulses.answer(b"5:6:5", 200, 100);
        assert_eq!(pulses.resolve(seen), Some(200), "something has begun, and may be over");
        pulses.send();
        let later = pulses.now();
        pulses.send();
        pulses.answer(b"5:6:5", 210, 100);
        pulses.answer(b"5:6:5", 220, 100);
        assert_eq!(pulses.resolve(later), Some(200));
    }

    #[test]
    fn a_lost_connection_answers_nothing_and_numbers_go_on() {
        let mut pulses = Pulses::default();
        let seen = pulses.now();
        pulses.send();
        pulses.lost();
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(pulses.resolve(seen), None);
        assert_eq!(pulses.send(), 2);
        pulses.answer(b"5:5:", 100, 0);
        assert_eq!(pulses.resolve(seen), Some(100));
    }
}
