//! What comes while nobody waits for it is read together: single commits would wake the thread one
//! by one, and each time cost several times what there is to do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// What comes in so long is read together.
const PACE: Duration = Duration::from_millis(1);

/// Who has waited a moment ago may wait again: so long everything is read at once.
const HASTE: Duration = Duration::from_millis(20);

/// When the thread of the streams rests.
pub struct Pace {
    thread: OnceLock<Thread>,
    zero: Instant,
    /// Something was read since the last rest.
    read: AtomicBool,
    /// Microseconds since `zero`.
    hasty_until: AtomicU64,
}

impl Pace {
    pub fn new() -> Pace {
        Pace {
            thread: OnceLock::new(),
            zero: Instant::now(),
            read: AtomicBool::new(false),
            hasty_until: AtomicU64::new(0),
        }
    }

    /// The thread that rests.
    pub fn is_of(&self, thread: Thread) {
        // There is one.
        let _ = self.thread.set(thread);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Something was read for which nobody waits, as far as the reader knows; more may follow.
    pub fn read(&self) {
        self.read.store(true, Ordering::Relaxed);
    }

    /// Somebody waits.
    pub fn hurry(&self) {
        let until = self.now().saturating_add(HASTE.as_micros() as u64);
        self.hasty_until.store(until, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The thread has nothing more to do: it rests before it looks again, if it may.
    pub fn rest(&self) {
        if self.may_rest() {
            std::thread::park_timeout(PACE);
        }
    }

    fn may_rest(&self) -> bool {
        let read = self.read.swap(false, Ordering::Relaxed);
        read && self.hasty_until.load(Ordering::Acquire) <= self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rests_once_after_reading_and_not_while_somebody_waits() {
        let pace = Pace::new();
        assert!(!pace.may_rest(), "nothing was read");
        pace.read();
        assert!(pace.may_rest());
        assert!(!pace.may_rest(), "what comes next is waited for by the system");
        pace.read();
        pace.hasty_until.store(u64::MAX, Ordering::Release);
        assert!(!pace.may_rest());
    }
}
