//! The words of one command, borrowed from wherever they arrived.

use std::ops::Range;

/// Where a word lies in its buffer.
pub type Span = Range<u32>;

/// The words of a command; the first is its name.
#[derive(Debug, Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// Every span lies within `bytes`; one that does not is read as an empty word.
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Args<'a> {
        Args { bytes, spans }
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The word at `at`; an empty one beyond the end. A command's arity is checked before it runs.
    pub fn at(&self, at: usize) -> &'a [u8] {
        self.get(at).unwrap_or_default()
    }

    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(at)?;
        Some(self.bytes.get(span.start as usize..span.end as usize).unwrap_or_default())
    }

    /// The words from `at` on.
    pub fn from(&self, at: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(at..).unwrap_or_default() }
    }

    /// The first `count` words.
    pub fn to(&self, count: usize) -> Args<'a> {
        Args { bytes: self.bytes, spans: self.spans.get(..count).unwrap_or(self.spans) }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + '_ {
        let bytes = self.bytes;
        self.spans
            .iter()
            .map(move |span| bytes.get(span.start as usize..span.end as usize).unwrap_or_default())
    }

    /// Whether the word at `at` is `word` in any case.
    pub fn is(&self, at: usize, word: &str) -> bool {
        self.at(at).eq_ignore_ascii_case(word.as_bytes())
    }
}

/// A command that has to outlive the buffer it came in: queued by MULTI, blocked, made by a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl Words {
    pub fn push(&mut self, word: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(word);
        self.spans.push(start..self.bytes.len() as u32);
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }

    /// In bytes.
    pub fn weight(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<Span>()
    }
}

impl From<Args<'_>> for Words {
    fn from(args: Args<'_>) -> Words {
        let mut words = Words::default();
        args.iter().for_each(|word| words.push(word));
        words
    }
}

impl<W: AsRef<[u8]>> FromIterator<W> for Words {
    fn from_iter<I: IntoIterator<Item = W>>(iter: I) -> Words {
        let mut words = Words::default();
        iter.into_iter().for_each(|word| words.push(word.as_ref()));
        words
    }
}
