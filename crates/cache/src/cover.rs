//! Ranges as nodes: 64-bit integers as the leaves of a tree in which each node has four children.
//!
//! A node of level `l` holds `4^l` neighbouring values; its place is their common upper bits. A
//! value lies in one node of each level, 32 in all; a range is covered exactly by at most six
//! nodes for each level that it spans, and with fewer if its ends may be blurred. So a value and a
//! range have a node in common exactly when the value lies in the range as it is covered.
//!
//! Open ranges would span all levels. For them there are half-lines beside the tree: the values
//! from `4^j` on, and from 0 on; below zero their mirror images. `x > 1000` is then the tree's
//! nodes up to 4095 and the half-line from 4096.

/// Levels of nodes, the leaves' included. The root, which would be the next, is never needed.
pub const LEVELS: u32 = 32;

/// Bits of a place that a level adds.
const RADIX_BITS: u32 = 2;

/// Half-lines to each side: from 0, and from `4^1` to `4^31`. Their levels follow the tree's.
const HALF_LINES: u32 = 32;

/// Places of half-lines.
const UPWARDS: u64 = 0;
const DOWNWARDS: u64 = 1;

/// The order of `i64` among `u64`.
fn ordered(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// A side of zero, and how far from its beginning a value is: 0 is the first upwards, -1 the first
/// downwards.
fn distance(value: i64) -> (u64, u64) {
    if value < 0 {
        (DOWNWARDS, !value as u64)
    } else {
        (UPWARDS, value as u64)
    }
}

/// Where half-line `number` begins.
fn beginning(number: u32) -> u64 {
    if number == 0 {
        0
    } else {
        1 << (number * RADIX_BITS)
    }
}

/// The nodes in which a value lies: level and place.
pub fn ancestors(value: i64) -> impl Iterator<Item = (u32, u64)> {
    let (side, distance) = distance(value);
    let tree = (0..LEVELS).map(move |level| (level, ordered(value) >> (level * RADIX_BITS)));
    let lines = (0..HALF_LINES).take_while(move |number| beginning(*number) <= distance);
    tree.chain(lines.map(move |number| (LEVELS + number, side)))
}

/// Nodes that hold all values from `low` to `high`, and as few others as can be had with at most
/// `most` nodes (8 or more). None when `low > high`.
pub fn cover(low: i64, high: i64, most: usize, mut each: impl FnMut(u32, u64)) {
    if low > high {
        return;
    }
    let (mut rest_low, mut rest_high, mut lines) = (low, high, 0);
    if high == i64::MAX {
        if let Some((line, end)) = half_line(low.max(0) as u64) {
            each(line, UPWARDS);
            lines += 1;
            rest_high = end.map_or(-1, |end| end as i64);
        }
    }
    if low == i64::MIN {
        if let Some((line, end)) = half_line(!high.min(-1) as u64) {
            each(line, DOWNWARDS);
            lines += 1;
            rest_low = end.map_or(0, |end| !(end as i64));
        }
    }
    if rest_low > rest_high {
        return;
    }
    let (low, high, most) = (ordered(rest_low), ordered(rest_high), most - lines);
    let mut finest = 0;
    while finest + 1 < LEVELS && nodes(low, high, finest, |_, _| {}) > most {
        finest += 1;
    }
    nodes(low, high, finest, &mut each);
}

/// The greatest half-line among the distances from `least` on, as a level, and the last distance
/// in front of it.
fn half_line(least: u64) -> Option<(u32, Option<u64>)> {
    let number = (0..HALF_LINES).find(|number| beginning(*number) >= least)?;
    Some((LEVELS + number, beginning(number).checked_sub(1)))
}

/// Covers with nodes of the level `finest` and above; how many there are.
fn nodes(low: u64, high: u64, finest: u32, mut each: impl FnMut(u32, u64)) -> usize {
    let mut count = 0;
    let (mut low, mut high) = (low >> (finest * RADIX_BITS), high >> (finest * RADIX_BITS));
    for level in finest..LEVELS {
        // Below the last level only what does not fill its parent.
        let last = level + 1 == LEVELS;
        while last || low & 3 != 0 {
            each(level, low);
            count += 1;
            if low == high {
                return count;
            }
            low += 1;
        }
        while high & 3 != 3 {
            each(level, high);
            count += 1;
            if low == high {
                return count;
            }
            high -= 1;
        }
        low >>= RADIX_BITS;
        high >>= RADIX_BITS;
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn covered(low: i64, high: i64, most: usize) -> HashSet<(u32, u64)> {
        let mut found = HashSet::new();
        cover(low, high, most, |level, place| {
            assert!(found.insert((level, place)), "twice: {level} {place}");
        });
        found
    }

    fn holds(nodes: &HashSet<(u32, u64)>, value: i64) -> bool {
        ancestors(value).any(|node| nodes.contains(&node))
    }

    fn near() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            -40i64..40,
            Just(i64::MAX),
            Just(i64::MIN),
            (0i64..40).prop_map(|n| i64::MAX - n),
            (0i64..40).prop_map(|n| i64::MIN + n),
            (0u32..63, -3i64..3).prop_map(|(bits, n)| (1i64 << bits) + n),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_cover_is_exact_when_nodes_suffice(a in near(), b in near(), value in near()) {
            let (low, high) = (a.min(b), a.max(b));
            let nodes = covered(low, high, 1000);
            prop_assert!(nodes.len() <= 6 * LEVELS as usize);
            for value in [value, low, high, low.saturating_sub(1), high.saturating_add(1)] {
                prop_assert_eq!(holds(&nodes, value), (low..=high).contains(&value));
            }
        }

        #[test]
        fn a_cover_with_few_nodes_misses_nothing(
            a in near(), b in near(), value in near(), most in 8usize..70,
        ) {
            let (low, high) = (a.min(b), a.max(b));
            let nodes = covered(low, high, most);
            prop_assert!(!nodes.is_empty() && nodes.len() <= most, "{} nodes", nodes.len());
            for value in [value, low, high] {
                prop_assert!(holds(&nodes, value) || !(low..=high).contains(&value));
            }
        }
    }

    #[test]
    fn open_ranges_are_exact_with_few_nodes() {
        for bits in 0..40 {
            for near in [-1, 0, 1, 5] {
                let end = (1i64 << bits) + near;
                for (low, high) in [(end, i64::MAX), (i64::MIN, -end), (i64::MIN, end)] {
                    let exact = covered(low, high, 1000);
                    assert!(exact.len() <= 62, "{} nodes", exact.len());
                    assert!(holds(&exact, low) && holds(&exact, high));
                }
                assert!(!holds(&covered(end, i64::MAX, 62), end - 1));
                assert!(!holds(&covered(i64::MIN, end, 62), end + 1));
            }
        }
    }

    #[test]
    fn a_range_without_values_has_no_nodes() {
        assert!(covered(5, 4, 64).is_empty());
        assert_eq!(covered(i64::MIN, i64::MAX, 64).len(), 2);
        assert_eq!(covered(7, 7, 64).len(), 1);
    }
}
