//! The auditor: now and then a read that could have been answered with what is kept is asked of
//! PostgreSQL all the same. When the stream has come as far as that answer may have seen, and what
//! was kept is still valid, both must be equal. If they are not, nothing of that statement is kept
//! any more until definitions change, and the log says so.

use std::collections::VecDeque;
use std::sync::Arc;

use cache::entry::Entry;
use cache::fill::Fill;
use cache::position::{Pulses, Seen};
use cache::shared::Shared;

use super::Plane;

/// One of so many hits of a shape is audited; the first one is.
pub const ONE_OF: u64 = 1024;

/// Audits that wait for the stream; more are not begun.
const WAITING_MAX: usize = 256;

/// What was kept, and what PostgreSQL has answered since.
#[derive(Debug)]
struct Audit {
    /// What the answer may have seen.
    seen: Seen,
    /// Of [`Shared::definitions`].
    definitions: u64,
    pool: u32,
    shape: u32,
    kept: Arc<Entry>,
    answer: Arc<Entry>,
}

/// The audits of one database that are not decided yet, oldest first.
#[derive(Debug, Default)]
pub struct Audits(VecDeque<Audit>);

/// How one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub pool: u32,
    pub shape: u32,
    /// None: something has changed meanwhile.
    pub equal: Option<bool>,
}

impl Audits {
    /// `fill` has the answer to what is kept in its `audits`.
    pub fn add(
        &mut self,
        seen: Seen,
        definitions: u64,
        pool: u32,
        fill: &Fill,
        answer: Arc<Entry>,
    ) {
        let Some(kept) = fill.audits.clone().filter(|_| self.0.len() < WAITING_MAX) else { return };
        let shape = fill.shape;
        self.0.push_back(Audit { seen, definitions, pool, shape, kept, answer });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The oldest one, if it can be decided.
    pub fn decide(&mut self, pulses: &Pulses, shared: &Shared) -> Option<Verdict> {
        let lsn = pulses.resolve(self.0.front()?.seen)?;
        if lsn > shared.applied().lsn {
            return None;
        }
        let Audit { definitions, pool, shape, kept, answer, .. } = self.0.pop_front()?;
        let same = shared.is_following() && shared.definitions() == definitions;
        let valid = same && kept.is_valid(&shared.tags);
        Some(Verdict { pool, shape, equal: valid.then(|| kept.has_rows_of(&answer)) })
    }
}

impl Plane {
    /// Looks at audits that can be decided now.
    pub(super) fn audit(&mut self) {
        for at in 0..self.caches.len() {
            while let Some(verdict) = self.caches[at].decide_audit() {
                self.audited(verdict);
            }
        }
    }

    fn audited(&mut self, Verdict { pool, shape, equal }: Verdict) {
        let Some(pool) = self.pools.get_mut(pool as usize) else { return };
        let Some(equal) = equal else { return };
        pool.totals.cached.audits += 1;
        if equal {
            return;
        }
        pool.totals.cached.mismatches += 1;
        let Some(shape) = pool.shapes.get_mut(shape) else { return };
        let mirrored = shape.kept.as_ref().and_then(|plan| plan.mirrored());
        if let (Some(mirrored), Some(cache)) = (mirrored, &pool.cache) {
            let tables: Vec<u32> = mirrored.tables().collect();
            let mirrors = &self.caches[cache.at].shared.mirrors;
            mirrors.distrust(&tables, "an answer differed from PostgreSQL's", self.now);
        }
        shape.distrust();
        tracing::error!(event = "cache_mismatch", db = %pool.name.database,
            user = %pool.name.user, statement = %shape.plain_text(),
            "what was kept differed from PostgreSQL's answer; it is not kept any more");
    }
}
