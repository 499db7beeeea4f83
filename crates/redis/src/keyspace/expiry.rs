//! Keys in memory whose time is over are removed, so that their rows are, too.
//!
//! Reads don't need it: an expired key is not seen. A heap has at least one reminder for each
//! entry that expires, not later than it does. Putting an expiry off costs nothing: the reminder
//! that comes too early is put off then.

use std::cmp::Reverse;

use super::{Done, Expiry, Keyspace, NEVER};

/// Reminders in vain that are kept, beside as many as there are entries.
const STALE_MAX: usize = 1024;

/// Milliseconds since 1970, and an entry.
pub(super) type Reminders = std::collections::BinaryHeap<Reverse<(i64, u32)>>;

impl Keyspace {
    /// The entry's value or expiry is another one.
    pub(super) fn remind(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        if entry.value.is_some() && entry.expires < entry.due {
            entry.due = entry.expires;
            self.reminders.push(Reverse((entry.expires, at)));
            if self.reminders.len() > 2 * self.entries.len() + STALE_MAX {
                self.sort_reminders();
            }
        }
    }

    /// One reminder for each entry that expires, and no other.
    fn sort_reminders(&mut self) {
        let entries = self.entries.iter_mut().enumerate();
        self.reminders = entries
            .filter_map(|(at, entry)| {
                entry.due = if entry.value.is_some() { entry.expires } else { NEVER };
                (entry.due != NEVER).then_some(Reverse((entry.due, at as u32)))
            })
            .collect();
    }

    /// When [`Keyspace::expire_one`] may have something to do: milliseconds since 1970.
    pub fn next_expiry(&self) -> Option<i64> {
        self.reminders.peek().map(|Reverse((when, _))| *when)
    }

    /// Removes a key whose time is over, as a unit of its own.
    pub fn expire_one(&mut self, now: i64) -> Option<Done> {
        loop {
            let Reverse((when, at)) = *self.reminders.peek()?;
            if when > now {
                return None;
            }
            self.reminders.pop();
            let entry = &mut self.entries[at as usize];
            if entry.due != when {
                continue;
            }
            entry.due = NEVER;
            if entry.value.is_none() {
                continue;
            }
            if entry.expires > now {
                self.remind(at);
                continue;
            }
            let db = entry.db;
            self.begin(db, now, true, false);
            self.expired(at);
            self.replace(at, None, Expiry::Never);
            return Some(self.end(None));
        }
    }

    /// A key is found to have expired, and is about to be removed or overwritten.
    pub(super) fn expired(&mut self, at: u32) {
        self.stats.expired += 1;
        if self.notify.tells(b'x') {
            let entry = &self.entries[at as usize];
            let (db, key) = (entry.db, entry.key.clone());
            self.unit.after.push(crate::flow::After::Event { db, name: "expired", key });
        }
    }
}
