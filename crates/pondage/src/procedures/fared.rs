//! How calls of a procedure have fared. Workers count by shape, and tell what has come since they
//! last told.

use crate::worker::snapshot::Histogram;

/// Counters of calls since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fared {
    pub calls: u64,
    /// From the request to the last byte of its answer.
    pub time: Histogram,
    /// Those that were sent together with others' or might have been.
    pub joined: u64,
    /// Statements on their way with them, summed over `joined`.
    pub company: u64,
    /// Sent again after a deadlock or a serialization failure.
    pub retried: u64,
    /// Those that ended in an error.
    pub errors: u64,
}

impl Fared {
    pub fn add(&mut self, more: &Fared) {
        // Taken apart so that a new counter is not forgotten here.
        let Fared { calls, time, joined, company, retried, errors } = more;
        self.calls += calls;
        self.joined += joined;
        self.company += company;
        self.retried += retried;
        self.errors += errors;
        for (count, more) in self.time.buckets.iter_mut().zip(time.buckets) {
            *count += more;
        }
        self.time.count += time.count;
        self.time.sum_us += time.sum_us;
    }

    /// What has come since `before`, of the same counters.
    #[must_use]
    pub fn since(mut self, before: &Fared) -> Fared {
        let Fared { calls, time, joined, company, retried, errors } = before;
        self.calls -= calls;
        self.joined -= joined;
        self.company -= company;
        self.retried -= retried;
        self.errors -= errors;
        for (count, less) in self.time.buckets.iter_mut().zip(time.buckets) {
            *count -= less;
        }
        self.time.count -= time.count;
        self.time.sum_us -= time.sum_us;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_since_and_what_was_before_are_all() {
        let mut before = Fared { calls: 1, joined: 1, company: 4, ..Fared::default() };
        before.time.record(70);
        let mut now = before;
        (now.calls, now.joined, now.company, now.retried, now.errors) = (3, 2, 9, 1, 1);
        now.time.record(1_000_000);
        let mut sum = now.since(&before);
        assert_eq!((sum.calls, sum.company, sum.time.count, sum.time.sum_us), (2, 5, 1, 1_000_000));
        sum.add(&before);
        assert_eq!(sum, now);
    }
}
