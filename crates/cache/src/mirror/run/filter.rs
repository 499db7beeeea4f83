//! Whether rows pass.

use std::cmp::Ordering;

use sql::Comparison;

use super::super::class::Class;
use super::super::key::{prefix, put_key};
use super::super::plan::At;
use super::constants::{Constants, Key};
use super::rows::Rows;

/// A filter. What compares as NULL does not pass, and there is no NOT around others: so it is
/// false.
#[derive(Debug, Clone)]
pub(in super::super) enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Never,
    /// With one of the values of a leaf; where it is not equality it has one at most.
    Is {
        column: At,
        comparison: Comparison,
        leaf: usize,
    },
    /// With none of the values of a leaf, of which none is NULL.
    IsNot {
        column: At,
        leaf: usize,
    },
    /// Whether it is so by the pattern of a leaf; NULL is neither.
    Like {
        column: At,
        leaf: usize,
        wanted: bool,
    },
    Null(At),
    NotNull(At),
    Same(At, At),
}

/// Where keys are built that are not told by their beginnings.
#[derive(Debug, Default)]
pub(in super::super) struct Buffers {
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Buffers {
    /// The order of two values' keys.
    pub fn compare(&mut self, a: (Class, &[u8]), b: (Class, &[u8])) -> Ordering {
        if has_prefix(a.0) && has_prefix(b.0) {
            let first = prefix(a.0, a.1).cmp(&prefix(b.0, b.1));
            if first.is_ne() || a.0.is_key_whole() && b.0.is_key_whole() {
                return first;
            }
        }
        self.one.clear();
        self.other.clear();
        put_key(a.0, a.1, &mut self.one);
        put_key(b.0, b.1, &mut self.other);
        self.one.cmp(&self.other)
    }
}

/// Whether a key's first bytes are had for less than the whole key.
fn has_prefix(class: Class) -> bool {
    !matches!(class, Class::Bytea | Class::Numeric | Class::TimeTz | Class::Interval)
}

impl Test {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self, Test::And(parts) if parts.is_empty())
    }

    pub fn holds(&self, rows: &Rows<'_>, constants: &Constants, buffers: &mut Buffers) -> bool {
        match self {
            Test::And(parts) => parts.iter().all(|part| part.holds(rows, constants, buffers)),
            Test::Or(parts) => parts.iter().any(|part| part.holds(rows, constants, buffers)),
            Test::Never => false,
            Test::Is { column, comparison, leaf } => {
                let keys = constants.keys(*leaf);
                if keys.is_empty() {
                    return false;
                }
                let Some(stored) = rows.field(*column) else { return false };
                let class = rows.class(*column);
                is(class, stored, *comparison, keys, constants, &mut buffers.one)
            }
            Test::IsNot { column, leaf } => {
                let Some(stored) = rows.field(*column) else { return false };
                let class = rows.class(*column);
                let keys = constants.keys(*leaf);
                !constants.has_null(*leaf)
                    && !is(class, stored, Comparison::Equal, keys, constants, &mut buffers.one)
            }
            Test::Like { column, leaf, wanted } => {
                let [low, high] = constants.keys(*leaf) else { return false };
                let Some(stored) = rows.field(*column) else { return false };
                let class = rows.class(*column);
                let mut is = |comparison, key: &Key| {
                    let keys = std::slice::from_ref(key);
                    is(class, stored, comparison, keys, constants, &mut buffers.one)
                };
                *wanted == (is(Comparison::GreaterEqual, low) && is(Comparison::Less, high))
            }
            Test::Null(column) => rows.field(*column).is_none(),
            Test::NotNull(column) => rows.field(*column).is_some(),
            Test::Same(a, b) => {
                let (Some(one), Some(other)) = (rows.field(*a), rows.field(*b)) else {
                    return false;
                };
                buffers.compare((rows.class(*a), one), (rows.class(*b), other)).is_eq()
            }
        }
    }

    /// Calls `each` with every column that is spoken of.
    pub fn columns(&self, each: &mut impl FnMut(At)) {
        match self {
            Test::And(parts) | Test::Or(parts) => parts.iter().for_each(|part| part.columns(each)),
            Test::Never => {}
            Test::Is { column, .. }
            | Test::IsNot { column, .. }
            | Test::Like { column, .. }
            | Test::Null(column)
            | Test::NotNull(column) => each(*column),
            Test::Same(a, b) => {
                each(*a);
                each(*b);
            }
        }
    }
}

fn is(
    class: Class,
    stored: &[u8],
    comparison: Comparison,
    keys: &[Key],
    constants: &Constants,
    buffer: &mut Vec<u8>,
) -> bool {
    let first = has_prefix(class).then(|| prefix(class, stored));
    let whole = class.is_key_whole();
    let mut built = false;
    let mut against = |key: &Key| {
        let order = first.map_or(Ordering::Equal, |first| first.cmp(&key.prefix));
        if order.is_ne() || whole {
            return order;
        }
        if !built {
            buffer.clear();
            put_key(class, stored, buffer);
            built = true;
        }
        buffer.as_slice().cmp(constants.bytes(key))
    };
    match (comparison, keys) {
        (Comparison::Equal, [key]) => against(key).is_eq(),
        (Comparison::Equal, _) => keys.binary_search_by(|key| against(key).reverse()).is_ok(),
        (Comparison::Less, [key, ..]) => against(key).is_lt(),
        (Comparison::LessEqual, [key, ..]) => against(key).is_le(),
        (Comparison::Greater, [key, ..]) => against(key).is_gt(),
        (Comparison::GreaterEqual, [key, ..]) => against(key).is_ge(),
        (_, []) => false,
    }
}
