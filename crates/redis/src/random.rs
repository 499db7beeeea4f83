//! Numbers for commands that choose: SPOP, SRANDMEMBER, HRANDFIELD and the like.

/// A small generator (SplitMix64). Nobody's secret may depend on it.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

/// What a process that has not given a seed begins with.
const SEED: u64 = 0x5eed_0f09_07da_6e00;

impl Default for Random {
    fn default() -> Random {
        Random::new(SEED)
    }
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..end`, all as likely; 0 when there is none.
    pub fn below(&mut self, end: usize) -> usize {
        let end = end as u64;
        if end == 0 {
            return 0;
        }
        // The upper half of a product is fair but for the lowest `2^64 mod end` lower halves.
        let unfair = end.wrapping_neg() % end;
        loop {
            let product = u128::from(self.number()) * u128::from(end);
            if product as u64 >= unfair {
                return (product >> 64) as usize;
            }
        }
    }

    /// `count` different ones of `0..end`, in ascending order; every choice is as likely.
    pub fn distinct(&mut self, count: usize, end: usize) -> Vec<usize> {
        let count = count.min(end);
        // What is left out is fewer, and is chosen instead.
        if count > end / 2 {
            let out = self.distinct(end - count, end);
            let mut out = out.into_iter().peekable();
            return (0..end).filter(|at| out.next_if_eq(at).is_none()).collect();
        }
        // Floyd's: an index that is taken already is replaced by the round's last one.
        let mut chosen: hashbrown::HashSet<usize, foldhash::fast::RandomState> =
            hashbrown::HashSet::default();
        for last in end - count..end {
            let at = self.below(last + 1);
            if !chosen.insert(at) {
                chosen.insert(last);
            }
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        chosen.sort_unstable();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_below_are_as_likely() {
        let mut random = Random::default();
        let mut seen = [0; 7];
        for _ in 0..70_000 {
            seen[random.below(7)] += 1;
        }
        assert!(seen.iter().all(|times| (9_500..10_500).contains(times)), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn different_ones_are_different_and_as_likely() {
        let mut random = Random::default();
        for count in 0..=9 {
            let mut seen = [0; 9];
            for _ in 0..9_000 {
                let chosen = random.distinct(count, 9);
                assert_eq!(chosen.len(), count);
                assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "{chosen:?}");
                chosen.iter().for_each(|at| seen[*at] += 1);
            }
            let right = count * 1_000;
            let near = right.saturating_sub(150)..=right + 150;
            assert!(seen.iter().all(|times| near.contains(times)), "{count}: {seen:?}");
        }
    }
}
