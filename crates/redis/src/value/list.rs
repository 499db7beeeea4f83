//! Lists: elements at positions that grow to both sides.
//!
//! An element's position is that of its row. What is put into the middle or removed from it gives
//! new positions to one side only, the shorter one; where several are removed, the longest run
//! between two of them stays where it is.

use std::collections::VecDeque;

use super::{Track, Tracked};
use crate::rows::Rows;
use crate::server::Settings;

#[derive(Debug, Clone, Default)]
pub struct List {
    elements: VecDeque<Box<[u8]>>,
    /// The position of the first element.
    first: i64,
    /// Positions that have rows now; none when the first is greater than the last.
    stored: Option<(i64, i64)>,
    bytes: usize,
    track: Track<i64, Undo>,
}

#[derive(Debug, Clone)]
enum Undo {
    PopFront,
    PopBack,
    PushFront(Box<[u8]>),
    PushBack(Box<[u8]>),
    Set(usize, Box<[u8]>),
    /// Removes the element at this place; the first position was this.
    Remove(usize, i64),
    /// Puts elements back to their places, in ascending order; the first position was this.
    Return(Vec<(usize, Box<[u8]>)>, i64),
}

/// What an element costs beside its bytes.
const ELEMENT_BYTES: usize = 24;

/// So many elements are put back one by one.
const RETURNED_MAX: usize = 8;

impl List {
    /// As its rows have it, in order of position.
    pub fn load<'a>(kid: i64, first: i64, rows: impl IntoIterator<Item = &'a [u8]>) -> List {
        let mut list = List { first, ..List::default() };
        list.track.kid = kid;
        list.elements = rows.into_iter().map(Box::from).collect();
        list.bytes = list.elements.iter().map(|element| weight(element)).sum();
        list.stored = Some((first, first + list.elements.len() as i64 - 1));
        list
    }

    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.elements.get(at).map(|element| &**element)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.elements.iter().map(|element| &**element)
    }

    /// The elements from one place to before another, which is not beyond the end.
    pub fn range(
        &self,
        from: usize,
        to: usize,
    ) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.elements.range(from..to).map(|element| &**element)
    }

    pub fn push_front(&mut self, element: &[u8]) {
        self.first -= 1;
        self.bytes += weight(element);
        self.elements.push_front(element.into());
        self.track.change(self.first, || Undo::PopFront);
    }

    pub fn push_back(&mut self, element: &[u8]) {
        self.bytes += weight(element);
        self.elements.push_back(element.into());
        self.track.change(self.last(), || Undo::PopBack);
    }

    pub fn pop_front(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_front()?;
        self.first += 1;
        self.bytes -= weight(&element);
        self.track.step(|| Undo::PushFront(element.clone()));
        Some(element)
    }

    pub fn pop_back(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_back()?;
        self.bytes -= weight(&element);
        self.track.step(|| Undo::PushBack(element.clone()));
        Some(element)
    }

    /// False when there is no such element.
    pub fn set(&mut self, at: usize, element: &[u8]) -> bool {
        let Some(place) = self.elements.get_mut(at) else { return false };
        let before = std::mem::replace(place, element.into());
        self.bytes = self.bytes + element.len() - before.len();
        self.track.change(self.first + at as i64, || Undo::Set(at, before));
        true
    }

    /// Puts an element before the one at `at`.
    pub fn insert(&mut self, at: usize, element: &[u8]) {
        let first = self.first;
        self.track.step(|| Undo::Remove(at, first));
        self.elements.insert(at, element.into());
        self.bytes += weight(element);
        if at < self.elements.len() / 2 {
            self.first -= 1;
            self.moved(0, at + 1);
        } else {
            self.moved(at, self.elements.len());
        }
    }

    /// Removes the elements at these places, which ascend.
    pub fn remove(&mut self, places: &[usize]) {
        let Some(stays) = longest_run(places, self.elements.len()) else { return };
        let first = self.first;
        let removed = match places {
            [at] => self.elements.remove(*at).map(|element| (*at, element)).into_iter().collect(),
            _ => self.take_out(places),
        };
        self.bytes -= removed.iter().map(|(_, gone)| weight(gone)).sum::<usize>();
        // As many as were removed before the run, so that it keeps its positions.
        self.first += stays as i64;
        self.track.step(|| Undo::Return(removed, first));
        let before = match stays.checked_sub(1) {
            Some(last) => places[last] + 1 - stays,
            None => 0,
        };
        let behind = places.get(stays).map_or(self.elements.len(), |next| next - stays);
        self.moved(0, before);
        self.moved(behind, self.elements.len());
    }

    fn take_out(&mut self, places: &[usize]) -> Vec<(usize, Box<[u8]>)> {
        let mut removed = Vec::with_capacity(places.len());
        let mut next = places.iter().copied().peekable();
        let mut kept = VecDeque::with_capacity(self.elements.len() - places.len());
        for (at, element) in std::mem::take(&mut self.elements).into_iter().enumerate() {
            if next.next_if_eq(&at).is_some() {
                removed.push((at, element));
            } else {
                kept.push_back(element);
            }
        }
        self.elements = kept;
        removed
    }

    /// The elements at these places have other positions than before.
    fn moved(&mut self, from: usize, to: usize) {
        for at in from..to {
            self.track.moved(self.first + at as i64);
        }
    }

    fn last(&self) -> i64 {
        self.first + self.elements.len() as i64 - 1
    }

    /// As OBJECT ENCODING tells it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let content = self.bytes - self.len() * ELEMENT_BYTES;
        // A list pack has a header of 7 bytes and about 2 for each element.
        let packed = content + 2 * self.len() + 7;
        let (bytes, count) = match settings.list_max_listpack_size {
            0.. => (8192, settings.list_max_listpack_size as usize),
            -1 => (4096, usize::MAX),
            -2 => (8192, usize::MAX),
            -3 => (16384, usize::MAX),
            -4 => (32768, usize::MAX),
            _ => (65536, usize::MAX),
        };
        match packed <= bytes && self.len() <= count {
            true => "listpack",
            false => "quicklist",
        }
    }

    fn take_back(&mut self, step: Undo) {
        let gone = match step {
            Undo::PopFront => {
                self.first += 1;
                self.elements.pop_front()
            }
            Undo::PopBack => self.elements.pop_back(),
            Undo::PushFront(element) => {
                self.bytes += weight(&element);
                self.elements.push_front(element);
                self.first -= 1;
                None
            }
            Undo::PushBack(element) => {
                self.bytes += weight(&element);
                self.elements.push_back(element);
                None
            }
            Undo::Set(at, element) => {
                self.bytes += weight(&element);
                Some(std::mem::replace(&mut self.elements[at], element))
            }
            Undo::Remove(at, first) => {
                self.first = first;
                self.elements.remove(at)
            }
            Undo::Return(gone, first) => {
                self.bytes += gone.iter().map(|(_, element)| weight(element)).sum::<usize>();
                self.put_back(gone);
                self.first = first;
                None
            }
        };
        self.bytes -= gone.map_or(0, |gone| weight(&gone));
    }

    fn put_back(&mut self, gone: Vec<(usize, Box<[u8]>)>) {
        if gone.len() <= RETURNED_MAX {
            gone.into_iter().for_each(|(at, element)| self.elements.insert(at, element));
            return;
        }
        let len = self.elements.len() + gone.len();
        let mut kept = std::mem::take(&mut self.elements).into_iter();
        let mut gone = gone.into_iter().peekable();
        self.elements = (0..len)
            .filter_map(|at| match gone.next_if(|(place, _)| *place == at) {
                Some((_, element)) => Some(element),
                None => kept.next(),
            })
            .collect();
    }
}

fn weight(element: &[u8]) -> usize {
    element.len() + ELEMENT_BYTES
}

/// Behind how many of the removed places the longest run of elements lies that stay. None when
/// nothing is removed.
fn longest_run(places: &[usize], len: usize) -> Option<usize> {
    if places.is_empty() {
        return None;
    }
    let run = |at: usize| {
        let from = at.checked_sub(1).map_or(0, |before| places[before] + 1);
        places.get(at).copied().unwrap_or(len) - from
    };
    (0..=places.len()).max_by_key(|at| run(*at))
}

impl Tracked for List {
    fn kid(&self) -> i64 {
        self.track.kid
    }

    fn set_kid(&mut self, kid: i64) {
        self.track.kid = kid;
    }

    fn len(&self) -> usize {
        self.elements.len()
    }

    fn weight(&self) -> usize {
        self.bytes
    }

    fn edits(&self) -> u64 {
        self.track.edits()
    }

    fn ends(&self) -> (i64, i64) {
        (self.first, self.last())
    }

    fn drain(&mut self, rows: &mut dyn Rows) {
        let (first, last) = self.ends();
        if self.stored.is_some_and(|(from, to)| from < first || to > last) {
            rows.list_trim(self.track.kid, first, last);
        }
        for pos in self.track.take() {
            if let Some(element) = usize::try_from(pos - first).ok().and_then(|at| self.get(at)) {
                rows.list_put(self.track.kid, pos, element);
            }
        }
        self.stored = Some((first, last));
    }

    fn renew(&mut self) {
        self.stored = None;
        self.moved(0, self.elements.len());
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    /// Every element is where it was again, and nothing has been written in between.
    fn undo(&mut self) {
        self.track.undo().into_iter().rev().for_each(|step| self.take_back(step));
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
