//! Version tags: for whatever an answer may depend on, the number of the last commit that touched
//! it.
//!
//! What can be depended on (tables, restrictions, values) is without bound, so it is hashed into
//! an array of fixed size. Two things that share a tag cost a miss now and then, never a stale
//! answer: a tag can only be too high.
//!
//! On the tags of tables and signatures depends a lot, and those of values are raised all the time.
//! So that they do not share, the array has parts:
//!
//! ```text
//! | epochs: 1/32 | any, wild: 1/32 | values, nodes: the rest |
//! ```

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::FixedState;

use crate::recipe::Signature;

/// Tags of an array, if nothing else is wanted: 8 MiB.
pub const TAGS_DEFAULT: usize = 1 << 20;

/// Limits of how many there can be.
pub const TAGS_MIN: usize = 1 << 10;
pub const TAGS_MAX: usize = 1 << 30;

/// Of the array, the part of the epochs and that of other tags of tables and signatures: one in so
/// many.
const SMALL_PART: usize = 32;

/// One of [`Tags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u32);

/// Read by all threads, raised by the one that applies the stream.
#[derive(Debug)]
pub struct Tags {
    cells: Box<[AtomicU64]>,
    hash: FixedState,
}

/// What is hashed together with its table or signature, so that the same value means something
/// else for each.
#[derive(Debug, Clone, Copy)]
enum Of {
    Epoch,
    Any,
    Wild,
    Value,
    Node,
}

impl Tag {
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

impl Tags {
    /// `count` is rounded up to a power of two. With a `seed` that nobody knows nobody can make
    /// values share tags on purpose.
    pub fn new(count: usize, seed: u64) -> Tags {
        let count = count.clamp(TAGS_MIN, TAGS_MAX).next_power_of_two();
        let cells = std::iter::repeat_with(AtomicU64::default).take(count).collect();
        Tags { cells, hash: FixedState::with_seed(seed) }
    }

    /// Bytes that the array takes.
    pub fn memory(&self) -> usize {
        std::mem::size_of_val(&*self.cells)
    }

    /// The number of the last commit that touched what belongs to `tag`.
    pub fn read(&self, tag: Tag) -> u64 {
        self.cell(tag).load(Ordering::Acquire)
    }

    /// Whether no commit after `version` has touched any of these.
    pub fn hold(&self, tags: &[Tag], version: u64) -> bool {
        tags.iter().all(|tag| self.read(*tag) <= version)
    }

    /// The greatest of several; 0 of none.
    pub fn newest(&self, tags: &[Tag]) -> u64 {
        tags.iter().map(|tag| self.read(*tag)).max().unwrap_or(0)
    }

    /// Commit `number` has touched it.
    pub fn bump(&self, tag: Tag, number: u64) {
        self.cell(tag).fetch_max(number, Ordering::Release);
    }

    /// Commit `number` may have touched anything.
    pub fn bump_all(&self, number: u64) {
        for cell in &self.cells {
            cell.fetch_max(number, Ordering::Release);
        }
    }

    /// Changes of a table as a whole: TRUNCATE, another definition.
    pub fn epoch(&self, table: u32) -> Tag {
        self.of_table(Of::Epoch, table)
    }

    /// Changes of any row of a table.
    pub fn any(&self, table: u32) -> Tag {
        self.of_table(Of::Any, table)
    }

    /// Changes of rows whose values under this signature are not all known.
    pub fn wild(&self, signature: &Signature) -> Tag {
        let mut hasher = self.hasher(Of::Wild);
        hasher.write_u64(signature.id());
        self.tag(Of::Wild, hasher.finish())
    }

    /// Changes of rows with these canonical values, each with its length in front.
    pub fn value(&self, signature: &Signature, values: &[u8]) -> Tag {
        let mut hasher = self.hasher(Of::Value);
        hasher.write_u64(signature.id());
        hasher.write(values);
        self.tag(Of::Value, hasher.finish())
    }

    /// Changes of rows with a value in a node; see [`crate::cover`].
    pub fn node(&self, signature: &Signature, level: u32, place: u64) -> Tag {
        let mut hasher = self.hasher(Of::Node);
        hasher.write_u64(signature.id());
        hasher.write_u64(place);
        hasher.write_u64(level.into());
        self.tag(Of::Node, hasher.finish())
    }

    fn of_table(&self, of: Of, table: u32) -> Tag {
        let mut hasher = self.hasher(of);
        hasher.write_u64(table.into());
        self.tag(of, hasher.finish())
    }

    fn hasher(&self, of: Of) -> impl Hasher {
        let mut hasher = self.hash.build_hasher();
        hasher.write_u64(of as u64);
        hasher
    }

    fn tag(&self, of: Of, hash: u64) -> Tag {
        let small = self.cells.len() / SMALL_PART;
        let (start, length) = match of {
            Of::Epoch => (0, small),
            Of::Any | Of::Wild => (small, small),
            Of::Value | Of::Node => (2 * small, self.cells.len() - 2 * small),
        };
        let within = (u128::from(hash) * length as u128) >> u64::BITS;
        Tag(start as u32 + within as u32)
    }

    fn cell(&self, tag: Tag) -> &AtomicU64 {
        // A tag of a larger array finds one as well: nothing here can panic.
        &self.cells[tag.0 as usize & (self.cells.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::recipe::Form;
    use crate::value::Kind;

    #[test]
    fn tags_share_no_more_than_chance_has_it() {
        let columns = vec![("id".to_owned(), Kind::Int)];
        let signature = Signature::new(7, columns, Form::Equal);
        let mut shared = 0;
        for seed in 0..60 {
            let tags = Tags::new(1 << 16, seed);
            let mut values = HashSet::new();
            for id in 0..4096i64 {
                let mut bytes = vec![0, 0, 0, 8];
                bytes.extend_from_slice(&id.to_be_bytes());
                values.insert(tags.value(&signature, &bytes));
            }
            shared += 4096 - values.len();
            let others = [tags.epoch(7), tags.any(7), tags.wild(&signature)];
            assert!(others.iter().all(|tag| !values.contains(tag)));
            assert!(others[0] != others[1] && others[0] != others[2]);
        }
        // 4096 of 61440: 134 pairs a seed.
        assert!((7200..8600).contains(&shared), "{shared} share a tag");
    }
}
