//! Cursors of SCAN: a number stands for "behind this key", which the next call goes on from.

use std::collections::BTreeMap;

use hashbrown::HashMap;

/// Cursors that are remembered. One that is not known any more starts over: all keys still come,
/// some of them twice.
pub const CURSORS_MAX: usize = 65_536;

/// Bytes of keys in cursors.
const BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
struct Cursor {
    db: u16,
    after: Box<[u8]>,
    used: u64,
}

#[derive(Debug, Default)]
pub struct Cursors {
    by_number: HashMap<u64, Cursor, foldhash::fast::RandomState>,
    /// Numbers in the order of their last use.
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    last: u64,
    bytes: usize,
}

impl Cursors {
    /// A number that no other cursor of this or an earlier run of the gateway has had, as long as
    /// they don't come faster than a million in a millisecond.
    pub fn add(&mut self, db: u16, after: &[u8], now: i64) -> u64 {
        let least = u64::try_from(now).unwrap_or(0) << 20;
        self.last = (self.last + 1).max(least);
        self.uses += 1;
        self.bytes += after.len();
        self.by_use.insert(self.uses, self.last);
        let cursor = Cursor { db, after: after.into(), used: self.uses };
        self.by_number.insert(self.last, cursor);
        while self.by_number.len() > CURSORS_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(cursor) = self.by_number.remove(&oldest) {
                self.bytes -= cursor.after.len();
            }
        }
        self.last
    }

    /// The key behind which the cursor goes on, if it is known. It stays: a client may ask again.
    pub fn find(&mut self, number: u64, db: u16) -> Option<Box<[u8]>> {
        let cursor = self.by_number.get_mut(&number).filter(|cursor| cursor.db == db)?;
        self.uses += 1;
        self.by_use.remove(&cursor.used);
        self.by_use.insert(self.uses, number);
        cursor.used = self.uses;
        Some(cursor.after.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_cursor_goes_first() {
        let mut cursors = Cursors::default();
        let first = cursors.add(0, b"a", 1_000);
        let second = cursors.add(0, b"b", 1_000);
        for _ in 2..CURSORS_MAX {
            cursors.add(0, b"c", 1_000);
        }
        assert_eq!(cursors.find(first, 0).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.find(first, 1), None, "another database");
        cursors.add(0, b"d", 1_000);
        assert_eq!(cursors.find(second, 0), None);
        assert_eq!(cursors.find(first, 0).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.by_number.len(), cursors.by_use.len());
    }

    #[test]
    fn long_keys_leave_room_for_fewer_cursors() {
        let mut cursors = Cursors::default();
        for _ in 0..100 {
            cursors.add(0, &vec![0; 1 << 20], 0);
        }
        assert_eq!(cursors.by_number.len(), 16);
        assert!(cursors.bytes <= BYTES_MAX);
    }
}
