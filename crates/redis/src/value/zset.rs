//! Sorted sets: members by name ([`Index`]) and in order ([`Order`]).

use std::cmp::Ordering;

use super::index::{self, Index, Slot};
use super::order::{Order, Place};
use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

#[derive(Debug, Clone)]
struct Member {
    name: Box<[u8]>,
    /// NaN: the slot is free.
    score: f64,
}

/// A member and the score it had.
type Before = (Box<[u8]>, Option<f64>);

#[derive(Debug, Clone, Default)]
pub struct Zset {
    members: Vec<Member>,
    free: Vec<Slot>,
    /// Empty while there are so few members that looking at all is as fast.
    names: Index,
    order: Order,
    bytes: usize,
    track: Track<Box<[u8]>, Before>,
}

/// What a member costs beside its name: its slot, its place, its cell.
const MEMBER_BYTES: usize = 64;

/// Free slots that are kept in any case.
const FREE_MAX: usize = 64;

/// So many members are looked through one by one.
const UNINDEXED_MAX: usize = 16;

impl Zset {
    /// As its rows have it.
    pub fn load<'a>(kid: i64, rows: impl IntoIterator<Item = (&'a [u8], f64)>) -> Zset {
        let mut zset = Zset::from_members(rows.into_iter().map(|(name, score)| {
            let name: Box<[u8]> = name.into();
            (name, score)
        }));
        zset.track.kid = kid;
        zset
    }

    /// Members with their scores, each once and none NaN. Its rows have not been written.
    pub fn collect(members: impl IntoIterator<Item = (Box<[u8]>, f64)>) -> Zset {
        let mut zset = Zset::from_members(members);
        zset.renew();
        zset
    }

    fn from_members(members: impl IntoIterator<Item = (Box<[u8]>, f64)>) -> Zset {
        let members = members.into_iter().map(|(name, score)| Member { name, score: plain(score) });
        let mut zset = Zset { members: members.collect(), ..Zset::default() };
        let mut places: Vec<Place> = zset.members.iter().enumerate().map(place).collect();
        places.sort_unstable_by(|a, b| zset.compare(a, b.score, zset.name(b.slot)));
        zset.order = Order::build(&places);
        zset.bytes = zset.members.iter().map(|member| member.name.len() + MEMBER_BYTES).sum();
        zset.index();
        zset
    }

    pub fn score(&self, name: &[u8]) -> Option<f64> {
        self.find(name).map(|slot| self.members[slot as usize].score)
    }

    /// How many members come before it, and its score.
    pub fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(name)?;
        let rank = self.order.count_while(|place| self.compare(place, score, name).is_lt());
        Some((rank, score))
    }

    /// The member of this rank.
    pub fn at(&self, rank: usize) -> Option<(&[u8], f64)> {
        let (leaf, at) = self.order.leaf(rank);
        leaf.get(at).map(|place| (self.name(place.slot), place.score))
    }

    /// How many members, from the first on, `is` holds for: it holds for none behind the first that
    /// it does not hold for.
    pub fn count_while(&self, is: impl Fn(&[u8], f64) -> bool) -> usize {
        self.order.count_while(|place| is(self.name(place.slot), place.score))
    }

    /// In order.
    pub fn iter(&self) -> Members<'_> {
        self.range(0, self.len())
    }

    /// Members in order, from one rank to before another.
    pub fn range(&self, from: usize, to: usize) -> Members<'_> {
        let to = to.min(self.len());
        Members { zset: self, from: from.min(to), to, head: &[], tail: &[] }
    }

    /// The score before, if it was there. `score` is no NaN.
    pub fn insert(&mut self, name: &[u8], score: f64) -> Option<f64> {
        let before = self.put(name, Some(plain(score)));
        if before != Some(score) {
            self.track.change(name.into(), || (name.into(), before));
        }
        before
    }

    pub fn remove(&mut self, name: &[u8]) -> Option<f64> {
        let before = self.put(name, None)?;
        self.track.change(name.into(), || (name.into(), Some(before)));
        Some(before)
    }

    /// Removes the members from one rank to before another, and gives how many that were.
    pub fn remove_range(&mut self, from: usize, to: usize) -> usize {
        let names: Vec<Box<[u8]>> = self.range(from, to).map(|(name, _)| name.into()).collect();
        names.iter().for_each(|name| {
            self.remove(name);
        });
        names.len()
    }

    /// Calls `found` with about `count` members from `cursor` on and gives where to go on, as
    /// [`Index::scan`]. A small set is told at once, in order.
    pub fn scan<'a>(
        &'a self,
        cursor: u64,
        count: usize,
        mut found: impl FnMut(&'a [u8], f64),
    ) -> u64 {
        if self.names.is_empty() {
            self.iter().for_each(|(name, score)| found(name, score));
            return 0;
        }
        self.names.scan(cursor, count, |slot| {
            found(self.name(slot), self.members[slot as usize].score);
        })
    }

    /// As OBJECT ENCODING tells it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let small = self.len() <= settings.zset_max_listpack_entries
            && self.iter().all(|(name, _)| name.len() <= settings.zset_max_listpack_value);
        match small {
            true => "listpack",
            false => "skiplist",
        }
    }

    fn name(&self, slot: Slot) -> &[u8] {
        &self.members[slot as usize].name
    }

    /// By score, then by name. Scores are never NaN, and -0 equals 0.
    fn compare(&self, place: &Place, score: f64, name: &[u8]) -> Ordering {
        let scores = place.score.partial_cmp(&score).unwrap_or(Ordering::Equal);
        scores.then_with(|| self.name(place.slot).cmp(name))
    }

    fn find(&self, name: &[u8]) -> Option<Slot> {
        if self.names.is_empty() {
            let mut members = self.members.iter();
            let at = members.position(|member| !member.score.is_nan() && *member.name == *name);
            return at.map(|at| at as Slot);
        }
        self.names.find(index::hash(name), |slot| self.name(slot) == name)
    }

    fn put(&mut self, name: &[u8], score: Option<f64>) -> Option<f64> {
        let slot = self.find(name);
        let before = slot.map(|slot| self.members[slot as usize].score);
        if before == score {
            return before;
        }
        if let (Some(slot), Some(before)) = (slot, before) {
            self.unplace(before, name);
            match score {
                Some(score) => self.place(slot, score),
                None => self.clear(slot),
            }
        } else if let Some(score) = score {
            let slot = self.free.pop().unwrap_or(self.members.len() as Slot);
            let member = Member { name: name.into(), score };
            match self.members.get_mut(slot as usize) {
                Some(free) => *free = member,
                None => self.members.push(member),
            }
            self.place(slot, score);
            self.bytes += name.len() + MEMBER_BYTES;
            match self.names.is_empty() {
                true => self.index(),
                false => self.names.insert(index::hash(name), slot),
            }
        }
        before
    }

    fn place(&mut self, slot: Slot, score: f64) {
        self.members[slot as usize].score = score;
        let mut order = std::mem::take(&mut self.order);
        let name = self.name(slot);
        order.insert(Place { score, slot }, |place| self.compare(place, score, name));
        self.order = order;
    }

    fn unplace(&mut self, score: f64, name: &[u8]) {
        let mut order = std::mem::take(&mut self.order);
        order.remove(|place| self.compare(place, score, name));
        self.order = order;
    }

    fn clear(&mut self, slot: Slot) {
        let gone = Member { name: Box::default(), score: f64::NAN };
        let gone = std::mem::replace(&mut self.members[slot as usize], gone);
        self.bytes -= gone.name.len() + MEMBER_BYTES;
        if !self.names.is_empty() {
            self.names.remove(index::hash(&gone.name), slot);
        }
        self.free.push(slot);
        if self.free.len() > FREE_MAX && self.free.len() > self.members.len() / 4 * 3 {
            self.compact();
        }
    }

    /// Gives back what many removed members have left.
    fn compact(&mut self) {
        let members = std::mem::take(&mut self.members).into_iter();
        let there = members.filter(|member| !member.score.is_nan());
        let track = std::mem::take(&mut self.track);
        *self = Zset::from_members(there.map(|member| (member.name, member.score)));
        self.track = track;
    }

    /// Names are indexed once there are many.
    fn index(&mut self) {
        if self.len() > UNINDEXED_MAX {
            for (slot, member) in self.members.iter().enumerate() {
                if !member.score.is_nan() {
                    self.names.insert(index::hash(&member.name), slot as Slot);
                }
            }
        }
    }
}

/// -0 is kept as 0, as Redis does in a small set.
fn plain(score: f64) -> f64 {
    score + 0.0
}

fn place((slot, member): (usize, &Member)) -> Place {
    Place { score: member.score, slot: slot as Slot }
}

/// Members in order, from both ends.
#[derive(Clone)]
pub struct Members<'a> {
    zset: &'a Zset,
    from: usize,
    to: usize,
    /// What is left of the leaves in which `from` and `to` are; the other end may lie in the same.
    head: &'a [Place],
    tail: &'a [Place],
}

impl<'a> Members<'a> {
    fn member(&self, place: &Place) -> (&'a [u8], f64) {
        (self.zset.name(place.slot), place.score)
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], f64);

    fn next(&mut self) -> Option<(&'a [u8], f64)> {
        if self.from >= self.to {
            return None;
        }
        if self.head.is_empty() {
            let (leaf, at) = self.zset.order.leaf(self.from);
            self.head = leaf.get(at..)?;
        }
        let (place, rest) = self.head.split_first()?;
        self.head = rest;
        self.from += 1;
        Some(self.member(place))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.to - self.from;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Members<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from >= self.to {
            return None;
        }
        if self.tail.is_empty() {
            let (leaf, at) = self.zset.order.leaf(self.to - 1);
            self.tail = leaf.get(..=at)?;
        }
        let (place, rest) = self.tail.split_last()?;
        self.tail = rest;
        self.to -= 1;
        Some(self.member(place))
    }
}

impl ExactSizeIterator for Members<'_> {}

impl Tracked for Zset {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        for name in self.track.take() {
            match self.score(&name) {
                Some(score) => rows.zset_put(self.track.kid, &name, score),
                None => rows.zset_delete(self.track.kid, &name),
            }
        }
    }

    fn renew(&mut self) {
        for member in self.members.iter().filter(|member| !member.score.is_nan()) {
            let (name, score) = (&member.name, member.score);
            self.track.change(name.clone(), || (name.clone(), Some(score)));
        }
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for (name, before) in self.track.undo().into_iter().rev() {
            self.put(&name, before);
        }
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
