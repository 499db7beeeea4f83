//! Waiting for a condition. No test decides by sleeping for a fixed time.

use std::time::{Duration, Instant};

/// Long enough for a loaded machine with two cores; a test that waits this long fails anyway.
pub const DEADLINE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// Polls until `condition` gives a value, and returns it. `what` completes "waited 60 s for".
///
/// Panics when the [`DEADLINE`] passes.
#[track_caller]
pub fn for_some<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    match within(DEADLINE, condition) {
        Some(value) => value,
        None => panic!("waited {DEADLINE:?} for {what}"),
    }
}

/// Polls until `condition` holds. Panics when the [`DEADLINE`] passes.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for_some(what, || condition().then_some(()));
}

/// Polls until `condition` gives a value, or `limit` has passed.
pub fn within<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}
