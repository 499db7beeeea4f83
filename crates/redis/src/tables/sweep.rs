//! What nobody asks for any more is removed in the background: keys whose time is over and that
//! are not in memory, rows of collections that have no key.

use std::time::Duration;

use backend::calls::Columns;
use backend::moment::Moment;
use backend::WireError;

use super::lookups::Lookup;
use super::{Phase, Tables, LOADER};
use crate::statements::{EXPIRED, PAGES, SWEEP};
use crate::store::Told;

/// Between two steps. A table of a gigabyte has been walked after about four minutes.
const EVERY: Duration = Duration::from_millis(250);

/// Between two walks.
const PAUSE: Duration = Duration::from_secs(5);

/// Pages of `redis.kv` looked at in one step.
const PAGES_EACH: i64 = 128;

/// Rows of orphans removed in one step.
const ROWS_EACH: i64 = 1000;

/// Expired keys that one step may give back.
const EXPIRED_MAX: usize = 20_000;

#[derive(Debug, Default)]
pub struct Sweep {
    next: Moment,
    /// Where the walk goes on, and where it ends.
    page: i64,
    pages: i64,
    /// A step is being answered.
    pub busy: bool,
}

impl Tables {
    /// Takes the next step when it is due. `wall`: milliseconds since 1970.
    pub(super) fn sweep(&mut self) {
        if self.next_sweep().is_none_or(|next| self.now < next) {
            return;
        }
        let tag = self.tag();
        let Sweep { page, pages, .. } = self.sweep;
        let last = page < pages && page + PAGES_EACH >= pages;
        self.sweep.next = self.now.after(if last { PAUSE } else { EVERY });
        let calls = &mut self.links[LOADER].calls;
        let (called, lookup) = if page >= pages {
            // Once around: how long the table has become, and orphans.
            self.sweep.page = 0;
            let called = calls.call(tag, PAGES.name, |_| {}).and_then(|()| {
                calls.sync()?;
                calls.call(0, SWEEP.name, |params| params.int8(ROWS_EACH))
            });
            (called, Lookup::Pages)
        } else {
            self.sweep.page += PAGES_EACH;
            let called = calls.call(tag, EXPIRED.name, |params| {
                params.int8(page);
                params.int8(page + PAGES_EACH);
            });
            (called, Lookup::Expired { keys: Vec::new() })
        };
        if called.and_then(|()| calls.sync()).is_ok() {
            self.sweep.busy = true;
            self.lookups.insert(tag, lookup);
        }
    }

    /// None while it is not the time for that.
    pub(super) fn next_sweep(&self) -> Option<Moment> {
        let idle = self.phase == Phase::Ready && !self.sweep.busy && self.lookups.is_empty();
        idle.then_some(self.sweep.next)
    }

    pub(super) fn swept(&mut self, lookup: Lookup) {
        self.sweep.busy = false;
        if let Lookup::Expired { keys } = lookup {
            if !keys.is_empty() {
                self.told.push(Told::Expired { keys });
            }
        }
    }

    pub(super) fn hear_pages(&mut self, mut columns: Columns<'_>) -> Result<(), WireError> {
        self.sweep.pages = columns.int8()?.unwrap_or(0);
        Ok(())
    }
}

/// An expired row: database, key, version.
pub fn read_expired(
    keys: &mut Vec<(u16, Box<[u8]>, i64)>,
    mut columns: Columns<'_>,
) -> Result<(), WireError> {
    if keys.len() < EXPIRED_MAX {
        let db = columns.int2()?.unwrap_or(0) as u16;
        let key = columns.bytea()?.into();
        keys.push((db, key, columns.int8()?.unwrap_or(0)));
    }
    Ok(())
}
