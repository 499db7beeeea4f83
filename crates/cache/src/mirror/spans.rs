//! Which keys of one column a filter admits.
//!
//! A filter over several columns is narrowed to one of them: what is left is a superset of the
//! values of that column in all rows that pass, as spans between keys. Conditions that are joined
//! by AND narrow it; an OR does only where each of its branches speaks of the column. If nothing but
//! the column decides, the spans say all, and rows need not be looked at.
//!
//! Spans lie between *edges*, just before or just behind a key. So `<` and `<=` differ in their
//! edge only, and spans that touch become one: no row is counted twice.

use std::cmp::Ordering;
use std::ops::Bound;

use sql::Comparison;

use super::ordered::Range;
use super::plan::At;
use super::run::constants::{Constants, Key};
use super::run::filter::Test;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy)]
pub(super) enum Edge {
    Start,
    Before(Key),
    After(Key),
    End,
}

/// What lies between two edges, the first less than the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    low: Edge,
    high: Edge,
}

/// What spans do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Rows may pass in which the column is NULL.
    pub nulls: bool,
    /// All that is admitted passes.
    pub exact: bool,
}

impl Span {
    const ALL: Span = Span { low: Edge::Start, high: Edge::End };

    pub fn range<'k>(&self, constants: &'k Constants) -> Range<'k> {
        let low = match &self.low {
            Edge::Before(key) => Bound::Included(constants.bytes(key)),
            Edge::After(key) => Bound::Excluded(constants.bytes(key)),
            Edge::Start | Edge::End => Bound::Unbounded,
        };
        let high = match &self.high {
            Edge::Before(key) => Bound::Excluded(constants.bytes(key)),
            Edge::After(key) => Bound::Included(constants.bytes(key)),
            Edge::Start | Edge::End => Bound::Unbounded,
        };
        Range { low, high }
    }
}

/// Puts the spans of a column behind those that are in `spans`: disjoint and in order.
pub(super) fn restrict(
    test: &Test,
    column: At,
    constants: &Constants,
    spans: &mut Vec<Span>,
) -> Told {
    let start = spans.len();
    match test {
        Test::And(parts) => {
            spans.push(Span::ALL);
            let mut told = Told { nulls: true, exact: true };
            for part in parts {
                let other = spans.len();
                let more = restrict(part, column, constants, spans);
                intersect(spans, start, other, constants);
                told.nulls &= more.nulls;
                told.exact &= more.exact;
                if spans.len() == start && !told.nulls {
                    // Whatever else is asked for, no row has it.
                    return Told { nulls: false, exact: true };
                }
            }
            told
        }
        Test::Or(parts) => {
            let mut told = Told { nulls: false, exact: true };
            for part in parts {
                let other = spans.len();
                let more = restrict(part, column, constants, spans);
                unite(spans, start, other, constants);
                told.nulls |= more.nulls;
                told.exact &= more.exact;
            }
            told
        }
        Test::Never => Told { nulls: false, exact: true },
        Test::Is { column: of, .. }
        | Test::IsNot { column: of, .. }
        | Test::Like { column: of, .. } => match given(test, *of == column, constants, spans) {
            true if *of != column => {
                spans.push(Span::ALL);
                Told { nulls: true, exact: false }
            }
            _ => Told { nulls: false, exact: true },
        },
        Test::Null(of) if *of == column => Told { nulls: true, exact: true },
        Test::NotNull(of) if *of == column => {
            spans.push(Span::ALL);
            Told { nulls: false, exact: true }
        }
        Test::Same(a, b) if *a == column || *b == column => {
            spans.push(Span::ALL);
            Told { nulls: false, exact: a == b }
        }
        Test::Null(_) | Test::NotNull(_) | Test::Same(..) => {
            spans.push(Span::ALL);
            Told { nulls: true, exact: false }
        }
    }
}

/// Of what compares a column with given values: whether any row may pass. Its spans are put behind
/// the others if the column is the one that is `meant`.
fn given(test: &Test, meant: bool, constants: &Constants, spans: &mut Vec<Span>) -> bool {
    match test {
        Test::Is { comparison, leaf, .. } => {
            let keys = constants.keys(*leaf);
            if meant {
                compared(*comparison, keys, spans);
            }
            !keys.is_empty()
        }
        Test::IsNot { leaf, .. } => {
            let some = !constants.has_null(*leaf);
            if meant && some {
                beside(constants.keys(*leaf), spans);
            }
            some
        }
        Test::Like { leaf, wanted, .. } => {
            let [low, high] = constants.keys(*leaf) else { return false };
            let (low, high) = (Edge::Before(*low), Edge::Before(*high));
            match wanted {
                _ if !meant => {}
                true => spans.push(Span { low, high }),
                false => spans.extend([
                    Span { low: Edge::Start, high: low },
                    Span { low: high, high: Edge::End },
                ]),
            }
            true
        }
        _ => true,
    }
}

fn compared(comparison: Comparison, keys: &[Key], spans: &mut Vec<Span>) {
    let point = |key: &Key| Span { low: Edge::Before(*key), high: Edge::After(*key) };
    // Other comparisons have one value.
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return };
    match comparison {
        Comparison::Equal => spans.extend(keys.iter().map(point)),
        Comparison::Less => spans.push(Span { low: Edge::Start, high: Edge::Before(*last) }),
        Comparison::LessEqual => spans.push(Span { low: Edge::Start, high: Edge::After(*last) }),
        Comparison::Greater => spans.push(Span { low: Edge::After(*first), high: Edge::End }),
        Comparison::GreaterEqual => spans.push(Span { low: Edge::Before(*first), high: Edge::End }),
    }
}

/// All but these keys.
fn beside(keys: &[Key], spans: &mut Vec<Span>) {
    let mut low = Edge::Start;
    for key in keys {
        spans.push(Span { low, high: Edge::Before(*key) });
        low = Edge::After(*key);
    }
    spans.push(Span { low, high: Edge::End });
}

/// Puts what is in both `spans[start..other]` and `spans[other..]` in their place.
fn intersect(spans: &mut Vec<Span>, start: usize, other: usize, constants: &Constants) {
    let end = spans.len();
    let (mut a, mut b) = (start, other);
    while a < other && b < end {
        let (one, two) = (spans[a], spans[b]);
        let low = if compare(&one.low, &two.low, constants).is_ge() { one.low } else { two.low };
        let ends = compare(&one.high, &two.high, constants);
        let high = if ends.is_le() { one.high } else { two.high };
        if compare(&low, &high, constants).is_lt() {
            spans.push(Span { low, high });
        }
        if ends.is_le() {
            a += 1;
        } else {
            b += 1;
        }
    }
    spans.drain(start..end);
}

/// Puts what is in one of `spans[start..other]` and `spans[other..]` in their place.
fn unite(spans: &mut Vec<Span>, start: usize, other: usize, constants: &Constants) {
    let end = spans.len();
    let (mut a, mut b) = (start, other);
    while a < other || b < end {
        let first =
            b == end || a < other && compare(&spans[a].low, &spans[b].low, constants).is_le();
        let next = if first { spans[a] } else { spans[b] };
        if first {
            a += 1;
        } else {
            b += 1;
        }
        match spans[end..].last_mut() {
            Some(last) if compare(&next.low, &last.high, constants).is_le() => {
                if compare(&next.high, &last.high, constants).is_gt() {
                    last.high = next.high;
                }
            }
            _ => spans.push(next),
        }
    }
    spans.drain(start..end);
}

fn compare(a: &Edge, b: &Edge, constants: &Constants) -> Ordering {
    let rank = |edge: &Edge| match edge {
        Edge::Start => 0,
        Edge::Before(_) | Edge::After(_) => 1,
        Edge::End => 2,
    };
    let behind = |edge: &Edge| matches!(edge, Edge::After(_));
    match (a, b) {
        (Edge::Before(one) | Edge::After(one), Edge::Before(two) | Edge::After(two)) => {
            constants.compare(one, two).then_with(|| behind(a).cmp(&behind(b)))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}
