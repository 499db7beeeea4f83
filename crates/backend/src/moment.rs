//! Time as an argument: nothing in this crate reads a clock.

use std::time::Duration;

/// A point of the process's monotonic clock, in microseconds since the process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Moment(pub u64);

impl Moment {
    /// Time from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    pub fn after(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)))
    }
}
