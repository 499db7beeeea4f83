//! Short strings one behind the other, in the order in which they came: the form of small hashes
//! and sets, as Redis's listpack is. Each is its length in one byte, then its bytes.

/// Bytes of a string that can be packed.
pub const ITEM_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Packed {
    bytes: Vec<u8>,
    items: usize,
}

impl Packed {
    /// Strings.
    pub fn len(&self) -> usize {
        self.items
    }

    /// Bytes it takes.
    pub fn weight(&self) -> usize {
        self.bytes.capacity()
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: &self.bytes, left: self.items }
    }

    /// Where a string begins, which is looked for at every `step`th place.
    pub fn find(&self, item: &[u8], step: usize) -> Option<usize> {
        let mut at = 0;
        while at < self.bytes.len() {
            let len = usize::from(self.bytes[at]);
            if len == item.len() && self.bytes[at + 1..at + 1 + len] == *item {
                return Some(at);
            }
            at += 1 + len;
            for _ in 1..step {
                at = self.after(at);
            }
        }
        None
    }

    /// The string that begins there.
    pub fn get(&self, at: usize) -> &[u8] {
        let len = usize::from(self.bytes[at]);
        &self.bytes[at + 1..at + 1 + len]
    }

    /// Where the string behind it begins.
    pub fn after(&self, at: usize) -> usize {
        at + 1 + usize::from(self.bytes[at])
    }

    /// At most [`ITEM_BYTES_MAX`] bytes.
    pub fn push(&mut self, item: &[u8]) {
        debug_assert!(item.len() <= ITEM_BYTES_MAX);
        let room = self.bytes.len() + 1 + item.len();
        if room > self.bytes.capacity() {
            // Grown by a quarter, not doubled: there are many of these.
            let more = 1 + item.len() + self.bytes.len() / 4;
            self.bytes.reserve_exact(more);
        }
        self.bytes.push(item.len() as u8);
        self.bytes.extend_from_slice(item);
        self.items += 1;
    }

    /// Puts another string where this one is.
    pub fn replace(&mut self, at: usize, item: &[u8]) {
        debug_assert!(item.len() <= ITEM_BYTES_MAX);
        let old = at + 1..self.after(at);
        if old.len() == item.len() {
            self.bytes[old].copy_from_slice(item);
        } else {
            self.bytes[at] = item.len() as u8;
            self.bytes.splice(old, item.iter().copied());
        }
    }

    /// Removes as many strings from there on.
    pub fn remove(&mut self, at: usize, count: usize) {
        let end = (0..count).fold(at, |at, _| self.after(at));
        self.bytes.drain(at..end);
        self.items -= count;
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

#[derive(Debug, Clone)]
pub struct Iter<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.rest.split_first()?;
        let (item, rest) = rest.split_at(usize::from(*len));
        self.rest = rest;
        self.left -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
