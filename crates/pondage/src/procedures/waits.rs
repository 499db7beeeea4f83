//! What lock waits tell of a procedure's calls: which argument those share that wait for one
//! another.
//!
//! Looks at PostgreSQL's lock table are compared with what the workers have sent: pairs of calls
//! of which one waits for the other, and, for comparison, pairs of calls that just run at the same
//! time. An argument that is equal in nearly all of the first and not in most of the second is
//! what they fight for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::Running;

/// Pairs of calls that just run at the same time, of one look.
const BESIDE_MAX: usize = 256;

/// Pairs before anything is said.
const PAIRS_MIN: u32 = 20;

/// Pairs that are remembered; the older ones count less and less.
const PAIRS_MAX: u32 = 2_000;

/// A key is equal in so many of a hundred waiting pairs,
const EQUAL_MIN: u32 = 90;

/// and in at most so many of a hundred others.
const COMMON_MAX: u32 = 60;

/// Of pairs, how many there were and in how many of them each argument was equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pairs {
    count: u32,
    equal: Vec<u32>,
}

impl Pairs {
    fn add(&mut self, one: &[u64], other: &[u64]) {
        if self.count >= PAIRS_MAX {
            self.count /= 2;
            self.equal.iter_mut().for_each(|equal| *equal /= 2);
        }
        self.count += 1;
        self.equal.resize(self.equal.len().max(one.len()), 0);
        for (equal, (one, other)) in self.equal.iter_mut().zip(one.iter().zip(other)) {
            *equal += u32::from(one == other && *one != UNKNOWN);
        }
    }

    /// In how many of a hundred the argument was equal.
    fn share(&self, place: usize) -> u32 {
        let equal = self.equal.get(place).copied().unwrap_or(0);
        (equal * 100).checked_div(self.count).unwrap_or(0)
    }
}

/// The value of an argument that is not known.
pub const UNKNOWN: u64 = 0;

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub struct Waits {
    /// Calls that were seen, and those of them that waited for a lock.
    pub seen: u64,
    pub waited: u64,
    /// One call waits for another of the same procedure.
    waiting: Pairs,
    /// They run at the same time.
    running: Pairs,
}

impl Waits {
    pub fn waits_for(&mut self, one: &[u64], other: &[u64]) {
        self.waiting.add(one, other);
    }

    pub fn runs_beside(&mut self, one: &[u64], other: &[u64]) {
        self.running.add(one, other);
    }

    /// Places of arguments that would keep apart those that wait for one another. Empty: it is not
    /// known, or there is nothing to gain.
    pub fn suggested(&self) -> Vec<usize> {
        if self.waiting.count < PAIRS_MIN {
            return Vec::new();
        }
        let telling = |place: &usize| {
            self.waiting.share(*place) >= EQUAL_MIN && self.running.share(*place) <= COMMON_MAX
        };
        (0..self.waiting.equal.len()).filter(telling).collect()
    }

    /// Of a hundred calls that were seen, those that waited; none: too few were seen.
    pub fn share(&self) -> Option<u64> {
        (self.seen >= u64::from(PAIRS_MIN)).then(|| self.waited * 100 / self.seen)
    }

    /// How many calls were seen to wait for others with another key, if that is not by chance.
    pub fn despite(&self, key: &[usize]) -> Option<u32> {
        let equal = key.iter().map(|place| self.waiting.share(*place)).min()?;
        let apart = self.waiting.count >= PAIRS_MIN && equal < 100 - EQUAL_MIN;
        apart.then_some(self.waiting.count)
    }
}

/// Takes one look: the calls that run, by PostgreSQL's process, and who waits for a lock of whom.
pub fn observe(running: &HashMap<u32, Running>, blocked: &[(u32, u32)]) {
    let waiting: BTreeSet<u32> = blocked.iter().map(|(waiting, _)| *waiting).collect();
    for (process, call) in running {
        let mut waits = call.procedure.waits();
        waits.seen += 1;
        waits.waited += u64::from(waiting.contains(process));
    }
    for (waiting, holding) in blocked {
        let Some((one, other)) = running.get(waiting).zip(running.get(holding)) else { continue };
        if Arc::ptr_eq(&one.procedure, &other.procedure) {
            one.procedure.waits().waits_for(&one.values, &other.values);
        }
    }
    let calls: Vec<(&u32, &Running)> = running.iter().collect();
    let pairs = calls.iter().enumerate().flat_map(|(at, one)| {
        let others = calls[at + 1..].iter();
        others.map(move |other| (one, other))
    });
    let beside = pairs.filter(|((one, a), (other, b))| {
        let meet = [(**one, **other), (**other, **one)];
        Arc::ptr_eq(&a.procedure, &b.procedure) && !meet.iter().any(|pair| blocked.contains(pair))
    });
    for ((_, one), (_, other)) in beside.take(BESIDE_MAX) {
        one.procedure.waits().runs_beside(&one.values, &other.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::{Known, Procedures};

    #[test]
    fn calls_are_compared_with_those_they_wait_for() {
        let known = Known {
            oid: 1,
            definition: sql::procedure::Definition::default(),
            types: Vec::new(),
            comment: None,
            body: Err(String::new()),
        };
        let procedure = Procedures::default().learn("app", known).expect("room");
        // Three warehouses, and each caller its own number.
        let call = |number: u32| {
            let values = [u64::from(number % 3) + 1, u64::from(number) + 1].into_iter().collect();
            (number, Running { procedure: procedure.clone(), values })
        };
        let running: HashMap<u32, Running> = (0..12).map(call).collect();
        let blocked: Vec<(u32, u32)> = (3..12).map(|number| (number, number % 3)).collect();
        (0..3).for_each(|_| observe(&running, &blocked));
        let waits = procedure.waits();
        assert_eq!((waits.seen, waits.waited), (36, 27));
        assert_eq!((waits.suggested(), waits.share()), (vec![0], Some(75)));
    }

    #[test]
    fn what_waiting_calls_share_is_their_key() {
        let mut waits = Waits::default();
        for at in 0..40 {
            // The first argument is the same in all calls, the second in those that wait.
            waits.waits_for(&[7, at % 3 + 1, at], &[7, at % 3 + 1, at + 1]);
            waits.runs_beside(&[7, 1, at], &[7, at % 3 + 1, at + 1]);
            let expected: &[usize] = if at + 1 < PAIRS_MIN.into() { &[] } else { &[1] };
            assert_eq!(waits.suggested(), expected, "after {at}");
        }
        assert_eq!(waits.despite(&[1]), None);
        assert_eq!(waits.despite(&[2]), Some(40));
    }

    #[test]
    fn values_that_are_not_known_are_not_equal() {
        let mut waits = Waits::default();
        (0..40).for_each(|_| waits.waits_for(&[UNKNOWN], &[UNKNOWN]));
        assert!(waits.suggested().is_empty());
        assert_eq!(waits.share(), None);
    }

    #[test]
    fn old_pairs_count_less() {
        let mut waits = Waits::default();
        (0..PAIRS_MAX * 2).for_each(|at| waits.waits_for(&[1, u64::from(at) + 1], &[1, 1]));
        (0..PAIRS_MAX * 4).for_each(|at| waits.waits_for(&[u64::from(at) + 2, 1], &[1, 1]));
        assert_eq!(waits.suggested(), [1]);
    }
}
