//! Sorted sets.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

/// A member in its order: by score, then by bytes.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    score: f64,
    member: Box<[u8]>,
}

impl Eq for Place {}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        // Scores are never NaN, and -0 equals 0.
        let scores = self.score.partial_cmp(&other.score).unwrap_or(Ordering::Equal);
        scores.then_with(|| self.member.cmp(&other.member))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A member and the score it had.
type Before = (Box<[u8]>, Option<f64>);

#[derive(Debug, Clone, Default)]
pub struct Zset {
    scores: HashMap<Box<[u8]>, f64, foldhash::fast::RandomState>,
    order: BTreeSet<Place>,
    bytes: usize,
    track: Track<Box<[u8]>, Before>,
}

/// What a member costs beside its bytes, which are kept twice.
const MEMBER_BYTES: usize = 64;

impl Zset {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = (&'a [u8], f64)>) -> Zset {
        let mut zset = Zset::default();
        zset.track.kid = kid;
        for (member, score) in rows {
            zset.put(member, Some(score));
        }
        zset
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// As Redis would keep it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let small = self.scores.len() <= settings.zset_max_listpack_entries
            && self.iter().all(|(name, _)| name.len() <= settings.zset_max_listpack_value);
        if small {
            "listpack"
        } else {
            "skiplist"
        }
    }

    /// In order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + ExactSizeIterator {
        self.order.iter().map(|place| (&*place.member, place.score))
    }

    /// The score before, if it was there. `score` is no NaN.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let before = self.put(member, Some(score));
        if before != Some(score) {
            self.track.change(member.into(), || (member.into(), before));
        }
        before
    }

    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let before = self.put(member, None)?;
        self.track.change(member.into(), || (member.into(), Some(before)));
        Some(before)
    }

    fn put(&mut self, member: &[u8], score: Option<f64>) -> Option<f64> {
        let before = self.scores.get(member).copied();
        if before == score {
            return before;
        }
        if let Some(before) = before {
            self.order.remove(&Place { score: before, member: member.into() });
            self.scores.remove(member);
            self.bytes -= 2 * member.len() + MEMBER_BYTES;
        }
        if let Some(score) = score {
            self.order.insert(Place { score, member: member.into() });
            self.scores.insert(member.into(), score);
            self.bytes += 2 * member.len() + MEMBER_BYTES;
        }
        before
    }
}

impl Tracked for Zset {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.scores.len()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for member in self.track.take() {
            match self.scores.get(&member) {
                Some(score) => rows.zset_put(self.track.kid, &member, *score),
                None => rows.zset_delete(self.track.kid, &member),
            }
        }
    }

    fn renew(&mut self) {
        for (member, score) in &self.scores {
            self.track.change(member.clone(), || (member.clone(), Some(*score)));
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (member, before) in self.track.undo().into_iter().rev() {
            self.put(&member, before);
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
