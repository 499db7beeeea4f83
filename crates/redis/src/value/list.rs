//! Lists: elements at positions that grow to both sides.

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
    /// All elements, where positions have shifted.
    All(VecDeque<Box<[u8]>>, i64),
}

/// What an element costs beside its bytes.
const ELEMENT_BYTES: usize = 24;

impl List {
    /// As its rows have it, in order of position.
    pub fn load<'a>(kid: i64, first: i64, rows: impl IntoIterator<Item = &'a [u8]>) -> List {
        let mut list = List { first, ..List::default() };
        list.track.kid = kid;
        list.elements = rows.into_iter().map(Box::from).collect();
        list.bytes = list.elements.iter().map(|element| element.len() + ELEMENT_BYTES).sum();
        list.stored = Some((first, first + list.elements.len() as i64 - 1));
        list
    }

    pub fn get(&self, at: usize) -> Option<&[u8]> {
        self.elements.get(at).map(|element| &**element)
    }

    /// As Redis would keep it.
    pub fn encoding(&self, settings: &Settings) -> &'static str {
        let (bytes, count) = match settings.list_max_listpack_size {
            count @ 0.. => (8192, count as usize),
            size => (4096 << (-1 - size.max(-5)), usize::MAX),
        };
        if self.bytes <= bytes && self.elements.len() <= count {
            "listpack"
        } else {
            "quicklist"
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        self.elements.iter().map(|element| &**element)
    }

    pub fn push_front(&mut self, element: &[u8]) {
        self.first -= 1;
        self.bytes += element.len() + ELEMENT_BYTES;
        self.elements.push_front(element.into());
        self.track.change(self.first, || Undo::PopFront);
    }

    pub fn push_back(&mut self, element: &[u8]) {
        self.bytes += element.len() + ELEMENT_BYTES;
        self.elements.push_back(element.into());
        self.track.change(self.last(), || Undo::PopBack);
    }

    pub fn pop_front(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_front()?;
        self.first += 1;
        self.bytes -= element.len() + ELEMENT_BYTES;
        self.track.step(|| Undo::PushFront(element.clone()));
        Some(element)
    }

    pub fn pop_back(&mut self) -> Option<Box<[u8]>> {
        let element = self.elements.pop_back()?;
        self.bytes -= element.len() + ELEMENT_BYTES;
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

    /// Puts an element before the one at `at`: those behind it get new positions.
    pub fn insert(&mut self, at: usize, element: &[u8]) {
        self.shift(|elements| elements.insert(at, element.into()));
        (at..self.elements.len()).for_each(|at| self.moved(at));
    }

    /// Keeps the elements that `keep` says; those behind a removed one get new positions.
    pub fn retain(&mut self, mut keep: impl FnMut(usize, &[u8]) -> bool) {
        let (mut at, mut first_gone) = (0, None);
        let mut kept = VecDeque::with_capacity(self.elements.len());
        for element in &self.elements {
            if keep(at, element) {
                kept.push_back(element.clone());
            } else {
                first_gone.get_or_insert(at);
            }
            at += 1;
        }
        if let Some(gone) = first_gone {
            self.shift(|elements| *elements = kept);
            (gone..self.elements.len()).for_each(|at| self.moved(at));
        }
    }

    fn shift(&mut self, how: impl FnOnce(&mut VecDeque<Box<[u8]>>)) {
        let (elements, first) = (&self.elements, self.first);
        self.track.step(|| Undo::All(elements.clone(), first));
        how(&mut self.elements);
        self.weigh();
    }

    fn moved(&mut self, at: usize) {
        let element = &self.elements[at];
        self.track.change(self.first + at as i64, || Undo::Set(at, element.clone()));
    }

    fn weigh(&mut self) {
        self.bytes = self.elements.iter().map(|element| element.len() + ELEMENT_BYTES).sum();
    }

    fn last(&self) -> i64 {
        self.first + self.elements.len() as i64 - 1
    }
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
        (0..self.elements.len()).for_each(|at| self.moved(at));
    }

    fn remember(&mut self) {
        self.track.remember();
    }

    fn undo(&mut self) {
        for step in self.track.undo().into_iter().rev() {
            match step {
                Undo::PopFront => {
                    self.elements.pop_front();
                    self.first += 1;
                }
                Undo::PopBack => drop(self.elements.pop_back()),
                Undo::PushFront(element) => {
                    self.elements.push_front(element);
                    self.first -= 1;
                }
                Undo::PushBack(element) => self.elements.push_back(element),
                Undo::Set(at, element) => self.elements[at] = element,
                Undo::All(elements, first) => (self.elements, self.first) = (elements, first),
            }
        }
        // What was popped and is back may have lost its row in between.
        (0..self.elements.len()).for_each(|at| self.moved(at));
        self.weigh();
    }

    fn keep(&mut self) {
        self.track.keep();
    }
}
