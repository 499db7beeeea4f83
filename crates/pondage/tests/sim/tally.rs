//! How often what is to be proven has happened.

use std::ops::AddAssign;
use std::time::Duration;

use pondage::route::Why;
use pondage::worker::snapshot::{Cached, Coalesced};

use crate::data::copying::Copies;
use crate::kept::Counts;

/// So much time passes in the worlds of so many seeds.
const SIMULATED_MIN: Duration = Duration::from_secs(3600);
const SIMULATED_BY: u64 = 250;

/// What statements came to, over all pools.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub alone: u64,
    pub why: [u64; Why::ALL.len()],
    pub joined: u64,
    pub trips: u64,
    pub batched: u64,
    pub trained: u64,
    pub prepared: u64,
    pub skipped: u64,
    pub stalled: u64,
    pub lost: u64,
    pub cached: Cached,
    pub counts: Counts,
    /// The time that has passed in the worlds.
    pub simulated: Duration,
}

impl Tally {
    pub fn add(&mut self, one: &Coalesced, cached: Cached) {
        let joined = one.why[Why::Free as usize];
        *self += Tally {
            alone: one.why.iter().sum::<u64>() - joined,
            joined,
            why: one.why,
            trips: one.trips,
            batched: one.batched,
            trained: one.trained,
            prepared: one.prepared,
            skipped: one.skipped,
            stalled: one.stalled,
            lost: one.lost,
            cached,
            ..Tally::default()
        };
    }

    /// A run of so many seeds that proves something has seen all of it, and more than once.
    pub fn check(&self, seeds: u64) {
        let minutes = self.simulated.as_secs() / 60;
        eprintln!("{seeds} seeds, {} h {} min: {self:?}", minutes / 60, minutes % 60);
        assert!(
            self.simulated >= SIMULATED_MIN || seeds < SIMULATED_BY,
            "in {seeds} seeds too little time has passed: {minutes} min"
        );
        let company = self.joined.saturating_sub(self.trips);
        let often = [self.alone, self.joined, self.batched, self.trained, self.prepared];
        // A read whose result is kept is seldom refused, and stands behind nobody who is: where
        // many seeds keep results, fewer of their statements are skipped.
        let seldom = [self.skipped * 2, self.stalled];
        let enough = often.iter().all(|count| *count >= seeds)
            && company >= seeds / 2
            && seldom.iter().all(|count| *count >= seeds / 10)
            && self.lost >= seeds / 200
            && self.has_kept_enough(seeds);
        assert!(enough || seeds < 200, "in {seeds} seeds too little has happened: {self:?}");
    }
}

impl Tally {
    fn has_kept_enough(&self, seeds: u64) -> bool {
        let (cached, counts) = (&self.cached, &self.counts);
        let kept = cached.hits - cached.mirrored;
        let often = [kept, cached.fills, cached.waits, cached.unsettled, counts.dropped];
        let half = [cached.leased, cached.too_old, cached.unserved, counts.late_begins];
        let seldom = [cached.audits, cached.advised, counts.losses, counts.broken_links];
        let Copies { done, failed, too_large } = counts.copies;
        often.iter().all(|count| *count >= seeds)
            && half.iter().all(|count| *count >= seeds / 2)
            && seldom.iter().all(|count| *count >= seeds / 10)
            && [counts.older, counts.late_commits].iter().all(|count| *count >= seeds)
            && [cached.mirrored, done].iter().all(|count| *count >= seeds)
            && [failed, too_large].iter().all(|count| *count >= seeds / 10)
            && counts.judged >= seeds * 20
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, one: Tally) {
        self.alone += one.alone;
        self.joined += one.joined;
        for (sum, count) in self.why.iter_mut().zip(one.why) {
            *sum += count;
        }
        self.trips += one.trips;
        self.batched += one.batched;
        self.trained += one.trained;
        self.prepared += one.prepared;
        self.skipped += one.skipped;
        self.stalled += one.stalled;
        self.lost += one.lost;
        let (all, cached) = (&mut self.cached, one.cached);
        all.hits += cached.hits;
        all.advised += cached.advised;
        all.misses += cached.misses;
        all.fills += cached.fills;
        all.waits += cached.waits;
        all.too_old += cached.too_old;
        all.unsettled += cached.unsettled;
        all.leased += cached.leased;
        all.unserved += cached.unserved;
        all.audits += cached.audits;
        all.mismatches += cached.mismatches;
        all.mirrored += cached.mirrored;
        self.counts += one.counts;
        self.simulated += one.simulated;
    }
}
