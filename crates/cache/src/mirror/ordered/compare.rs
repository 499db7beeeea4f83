//! A row's key beside another one, without building it where that can be avoided.

use std::cell::Cell;
use std::cmp::Ordering;

use super::super::class::Class;
use super::super::key::{prefix, put_key, unpadded};
use super::super::rows::Fields;

thread_local! {
    static OWN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(super) fn compare(
    rows: &impl Fields,
    columns: &[(u16, Class)],
    id: u32,
    key: &[u8],
) -> Ordering {
    let mut rest = key;
    for (column, class) in columns {
        let stored = rows.field(id, *column).unwrap_or_default();
        match part(*class, stored, rest) {
            (Ordering::Equal, length) => rest = &rest[length..],
            (order, _) => return order,
        }
    }
    match rest {
        [] => Ordering::Equal,
        _ => Ordering::Less,
    }
}

/// A value beside the beginning of a key; where they are equal, how long that is.
fn part(class: Class, stored: &[u8], key: &[u8]) -> (Ordering, usize) {
    match class {
        Class::Text | Class::Opaque => text(stored, key),
        Class::Padded => text(unpadded(stored), key),
        Class::Bool | Class::Uuid | Class::Enum => bytes(stored, key),
        class if class.is_key_whole() => bytes(&prefix(class, stored).to_be_bytes(), key),
        _ => OWN.with(|scratch| {
            let mut own = scratch.take();
            own.clear();
            put_key(class, stored, &mut own);
            let found = bytes(&own, key);
            scratch.set(own);
            found
        }),
    }
}

fn bytes(own: &[u8], key: &[u8]) -> (Ordering, usize) {
    let head = key.get(..own.len()).unwrap_or(key);
    (own.cmp(head), head.len())
}

/// The key of a text is its bytes and a zero.
fn text(own: &[u8], key: &[u8]) -> (Ordering, usize) {
    let (order, length) = bytes(own, key);
    match key.get(length) {
        _ if order != Ordering::Equal => (order, 0),
        Some(0) => (Ordering::Equal, length + 1),
        Some(_) => (Ordering::Less, 0),
        None => (Ordering::Greater, 0),
    }
}
