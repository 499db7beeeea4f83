//! Reads that are answered by mirrors.

use std::sync::Arc;

use cache::entry::{Entry, Parts};
use cache::fill::Fill;
use cache::mirror::mirrored::Mirrored;
use cache::mirror::output::{Format, Session};
use cache::mirror::plan::Ties;
use cache::mirror::run::{run, Ran, Scratch, Terms};
use cache::plan::Plan;
use cache::position::Seen;
use cache::request::Request;
use smallvec::SmallVec;

use backend::moment::Moment;

use crate::route::MIRROR_LIMITS;

use super::auditing;
use super::caching::{Ask, Reads};
use super::pulses::DatabaseCache;
use super::standpoint::Promise;

/// So many looks found nothing kept before a mirror is wanted for a shape, and no fewer than found
/// something. What mirrors have answered counts as neither: one that is lost is wanted again.
const MISSES: u64 = 256;

/// Buffers of a run.
#[derive(Debug, Default)]
pub struct Running {
    scratch: Scratch,
    /// RowDescription, if it is asked for.
    pub description: Vec<u8>,
    /// DataRows and CommandComplete.
    pub rows: Vec<u8>,
}

/// A read whose shape mirrors can answer.
pub(super) struct Wanted<'a> {
    pub plan: &'a Arc<Plan>,
    pub request: &'a Request,
    pub ask: &'a Ask<'a>,
    pub session: &'a Session,
    pub promise: Promise,
    pub reads: &'a Reads,
    /// The shape's number and what it has been answered from memory.
    pub shape: u32,
    pub hits: u64,
}

/// What became of it.
pub(super) enum Looked {
    /// The answer is in the buffers.
    Answered,
    /// PostgreSQL is asked as well.
    Audited(Box<Fill>),
    /// The mirrors have to come so far first.
    Behind(Seen),
    /// They do not answer it.
    Not,
}

/// Whether mirrors are wanted for a shape of which so much was found.
fn is_worth(hits: u64, misses: u64) -> bool {
    misses >= MISSES && misses > hits
}

impl DatabaseCache {
    /// Whether mirrors are to answer a shape of which so much was found: what has been asked for by
    /// name is used at once.
    pub(super) fn wants_mirrors(&self, mirrored: &Mirrored, hits: u64, misses: u64) -> bool {
        if mirrored.wish().is_some() || !self.mirrors_can_be() {
            return false;
        }
        let tables = || self.shared.mirrors.read();
        let pinned = || tables().is_some_and(|all| mirrored.tables().all(|oid| all.is_pinned(oid)));
        is_worth(hits, misses) || pinned()
    }

    pub(super) fn look_mirrored(
        &mut self,
        wanted: &Wanted<'_>,
        running: &mut Running,
        now: Moment,
    ) -> Looked {
        let Some(mirrored) = wanted.plan.mirrored() else { return Looked::Not };
        let Some(wish) = mirrored.wish().filter(|_| mirrored.is_meant(wanted.request)) else {
            return Looked::Not;
        };
        wish.is_used(now);
        let mut tags = SmallVec::new();
        wanted.plan.recipe().tags(wanted.request, &self.shared.tags, &mut tags);
        let Wanted { promise, reads, .. } = wanted;
        if let Err(seen) = self.mirrors_are_new_enough(&tags, *promise, reads, now) {
            // Without its mirror there is nothing to wait for.
            let ready = self.shared.mirrors.read();
            let ready = ready.is_some_and(|tables| mirrored.placed(&tables).plan.is_some());
            return if ready { Looked::Behind(seen) } else { Looked::Not };
        }
        // What is committed later may be in the answer as well, or not.
        let version = self.shared.mirrors.number();
        if !self.run_mirrored(mirrored, wanted, running) {
            return Looked::Not;
        }
        if wanted.hits % auditing::ONE_OF != 0 || mirrored.ties() == Ties::Cut {
            return Looked::Answered;
        }
        let key = wanted.request.key();
        let description = Some(&running.description[..]).filter(|bytes| !bytes.is_empty());
        let kept =
            Entry::new(&Parts { key, version, tags: &tags, description, rows: &running.rows });
        let hash = self.store.hash(key);
        let mut fill = Fill::new(wanted.plan.clone(), hash, wanted.shape, key, version, tags);
        fill.audits = Some(Arc::new(kept));
        Looked::Audited(Box::new(fill))
    }

    fn run_mirrored(
        &self,
        mirrored: &Mirrored,
        wanted: &Wanted<'_>,
        running: &mut Running,
    ) -> bool {
        let Running { scratch, description, rows } = running;
        description.clear();
        rows.clear();
        let Some(tables) = self.shared.mirrors.read() else { return false };
        let placed = mirrored.placed(&tables);
        let Some(plan) = &placed.plan else { return false };
        let formats = formats(wanted.ask);
        let Wanted { request, session, .. } = wanted;
        let terms = Terms { formats: &formats, session, limits: MIRROR_LIMITS };
        let ran = run(plan, &tables, *request, terms, scratch, rows);
        drop(tables);
        if !matches!(ran, Ran::Rows(_)) {
            return false;
        }
        if wanted.ask.bound.as_ref().is_none_or(|bound| bound.describe) {
            mirrored.put_description(&formats, description);
        }
        true
    }
}

/// The formats of the results: none, one for all, or one for each.
fn formats(ask: &Ask<'_>) -> SmallVec<[Format; 16]> {
    let results = ask.bound.as_ref().map_or(&[][..], |bound| bound.tail.results);
    let format = |bytes: &[u8]| match bytes {
        [0, 0] => Format::Text,
        _ => Format::Binary,
    };
    results.chunks_exact(2).map(format).collect()
}
