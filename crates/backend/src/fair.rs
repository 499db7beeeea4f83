//! How servers that several pools share are divided: max-min fairness.
//!
//! A pool that wants no more than its share gets all of that, and what it leaves is divided among
//! the others, so that nobody can have more unless somebody with less gives some up. Where there
//! are more pools than servers they take turns.
//!
//! [`divide`] is a pure function of what the pools have and want. It says how many each may have,
//! and how many it has to give up now: those that it gets free first.

use std::time::Duration;

use crate::moment::Moment;

/// How long a pool keeps its only server at the least while others have none.
pub const TURN: Duration = Duration::from_secs(1);

/// What a pool has and wants, over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Connections that exist or are being opened.
    pub has: u32,
    /// Those that work or have lately, and one for each client that waits.
    pub wants: u32,
    /// Clients wait.
    pub waits: bool,
    /// Since when it has had servers without a break; if it has none, since when it has had none.
    pub since: Moment,
}

/// What is to become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// It may have so many.
    pub share: u32,
    /// It gives so many up as they become free.
    pub owes: u32,
}

/// Divides `limit` servers. None: nobody who waits lacks one that would be his, so nobody is
/// limited. At most `moves` servers are given up at a time.
pub fn divide(limit: u32, needs: &[Need], moves: u32, now: Moment) -> Option<Vec<Part>> {
    let shares = shares(limit, needs, now);
    let lack = |(need, share): (&Need, &u32)| match need.waits {
        true => share.saturating_sub(need.has),
        false => 0,
    };
    let lacking: u64 = needs.iter().zip(&shares).map(|pair| u64::from(lack(pair))).sum();
    let taken: u64 = needs.iter().map(|need| u64::from(need.has)).sum();
    let too_many = taken.saturating_sub(u64::from(limit));
    if lacking == 0 && too_many == 0 {
        return None;
    }
    let free = u64::from(limit).saturating_sub(taken);
    let mut owed = (lacking.saturating_sub(free) + too_many).min(u64::from(moves));
    let mut parts: Vec<Part> = shares.iter().map(|share| Part { share: *share, owes: 0 }).collect();
    while owed > 0 {
        let excess =
            |at: &usize| needs[*at].has.saturating_sub(shares[*at]).saturating_sub(parts[*at].owes);
        let most = (0..needs.len()).max_by_key(excess).filter(|at| excess(at) > 0);
        let Some(most) = most else { break };
        parts[most].owes += 1;
        owed -= 1;
    }
    Some(parts)
}

/// How many each may have: all that it wants, or a level that is the same for all who want more.
/// What is left over goes to some of those, one each.
fn shares(limit: u32, needs: &[Need], now: Moment) -> Vec<u32> {
    let mut level = 0;
    let mut left = limit;
    loop {
        let above = needs.iter().filter(|need| need.wants > level).count() as u32;
        // As far as all of them can rise together before the next has what it wants.
        let next = needs.iter().map(|need| need.wants).filter(|wants| *wants > level).min();
        let (Some(next), true) = (next, above <= left) else { break };
        let rise = (next - level).min(left / above);
        level += rise;
        left -= rise * above;
    }
    let mut shares: Vec<u32> = needs.iter().map(|need| need.wants.min(level)).collect();
    let mut more: Vec<usize> = (0..needs.len()).filter(|at| needs[*at].wants > level).collect();
    more.sort_by_key(|at| turn(&needs[*at], level, now));
    for at in more.into_iter().take(left as usize) {
        shares[at] += 1;
    }
    shares
}

/// Who comes first for what is left over. Whoever has more already keeps it, so that nothing moves
/// without need; but where not everybody gets one, it is kept for a [`TURN`] only, and then it is
/// the turn of who has had none for longest. Of those whose turn is over, the last begun goes on.
fn turn(need: &Need, level: u32, now: Moment) -> (u8, u64) {
    match (level, need.has) {
        (0, 0) => (1, need.since.0),
        (0, _) if now.since(need.since) < TURN => (0, need.since.0),
        (0, _) => (2, u64::MAX - need.since.0),
        (level, has) => (u8::from(has <= level), 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Moment = Moment(1_000_000_000);

    fn need(has: u32, wants: u32) -> Need {
        Need { has, wants, waits: wants > has, since: NOW }
    }

    fn parts(limit: u32, needs: &[Need]) -> Vec<(u32, u32)> {
        let parts = divide(limit, needs, u32::MAX, NOW).expect("somebody lacks some");
        parts.iter().map(|part| (part.share, part.owes)).collect()
    }

    #[test]
    fn a_crowd_gives_up_what_a_single_client_lacks_and_no_more() {
        assert_eq!(parts(10, &[need(10, 1_000), need(0, 1)]), [(9, 1), (1, 0)]);
        assert_eq!(parts(10, &[need(10, 1_000), need(0, 1_000)]), [(5, 5), (5, 0)]);
        assert_eq!(parts(9, &[need(4, 9), need(5, 9), need(0, 2)]), [(4, 0), (3, 2), (2, 0)]);
    }

    #[test]
    fn nobody_is_limited_while_nobody_lacks_what_would_be_his() {
        assert_eq!(divide(10, &[need(9, 1_000), need(1, 1)], 9, NOW), None);
        assert_eq!(divide(10, &[need(5, 5), need(4, 4)], 9, NOW), None);
        // It waits, but has its share.
        assert_eq!(divide(10, &[need(5, 900), need(5, 6)], 9, NOW), None);
        assert_eq!(divide(10, &[], 9, NOW), None);
    }

    #[test]
    fn what_is_idle_is_given_up_first() {
        // The second has ten and uses two.
        assert_eq!(parts(20, &[need(10, 50), need(10, 2)]), [(18, 0), (2, 8)]);
    }

    #[test]
    fn what_is_free_is_not_asked_of_anybody() {
        assert_eq!(parts(10, &[need(8, 100), need(0, 5)]), [(5, 3), (5, 0)]);
        assert_eq!(parts(10, &[need(5, 100), need(2, 5)]), [(5, 0), (5, 0)]);
    }

    #[test]
    fn a_budget_that_was_made_smaller_is_reached_from_above() {
        assert_eq!(parts(4, &[need(6, 6), need(4, 4)]), [(2, 4), (2, 2)]);
    }

    #[test]
    fn not_more_is_moved_at_a_time_than_allowed() {
        let parts = divide(10, &[need(10, 1_000), need(0, 1_000)], 2, NOW).expect("lacking");
        assert_eq!(parts.iter().map(|part| part.owes).collect::<Vec<_>>(), [2, 0]);
    }

    #[test]
    fn who_has_one_more_than_others_keeps_it() {
        let needs = [need(3, 9), need(3, 9), need(4, 9), need(0, 1)];
        let needs = needs.map(|need| Need { waits: need.wants == 1, ..need });
        let parts = divide(11, &needs, 9, NOW).expect("lacking");
        assert_eq!(parts.iter().map(|part| part.share).collect::<Vec<_>>(), [3, 3, 4, 1]);
    }

    #[test]
    fn with_more_pools_than_servers_they_take_turns() {
        let ago = |micros: u64| Moment(NOW.0 - micros);
        let keeps = Need { since: ago(999_999), ..need(1, 9) };
        let over = Need { since: ago(1_000_000), ..need(1, 9) };
        let waits = |micros| Need { since: ago(micros), ..need(0, 9) };
        assert_eq!(divide(1, &[keeps, waits(5_000_000)], 1, NOW), None, "it is its turn");
        assert_eq!(parts(1, &[over, waits(7), waits(9)]), [(0, 1), (0, 0), (1, 0)]);
        // Of two whose turn is over the last begun goes on.
        let longer = Need { since: ago(3_000_000), ..need(1, 9) };
        assert_eq!(parts(2, &[over, longer, waits(1)]), [(1, 0), (0, 1), (1, 0)]);
    }

    fn needs() -> impl Strategy<Value = Vec<Need>> {
        let need = (0..40u32, 0..60u32, any::<bool>(), 0..3_000_000u64).prop_map(
            |(has, wants, waits, ago)| Need { has, wants, waits, since: Moment(NOW.0 - ago) },
        );
        proptest::collection::vec(need, 0..12)
    }

    proptest! {
        #[test]
        fn shares_are_within_the_limit_and_nobody_can_have_more_but_from_who_has_less(
            limit in 0..100u32,
            needs in needs(),
        ) {
            let shares = shares(limit, &needs, NOW);
            let wanted: u32 = needs.iter().map(|need| need.wants).sum();
            prop_assert_eq!(shares.iter().sum::<u32>(), limit.min(wanted), "all is given out");
            for (need, share) in needs.iter().zip(&shares) {
                prop_assert!(*share <= need.wants);
                let most = shares.iter().max().copied().unwrap_or(0);
                prop_assert!(*share == need.wants || share + 1 >= most, "{:?}", shares);
            }
        }

        #[test]
        fn nobody_gives_up_more_than_others_lack_or_so_much_that_it_lacks_some_itself(
            limit in 0..100u32,
            needs in needs(),
            moves in 0..20u32,
        ) {
            let Some(parts) = divide(limit, &needs, moves, NOW) else { return Ok(()) };
            prop_assert!(parts.iter().map(|part| part.owes).sum::<u32>() <= moves);
            for (need, part) in needs.iter().zip(&parts) {
                prop_assert!(part.owes <= need.has.saturating_sub(part.share));
            }
        }

        /// Pools want the same for ever; what is free is taken by who may have it.
        #[test]
        fn it_comes_to_rest_at_shares_that_are_fair(
            limit in 12..60u32,
            wants in proptest::collection::vec(1..60u32, 1..12),
        ) {
            let mut pools: Vec<Need> = wants.iter().map(|wants| need(0, *wants)).collect();
            pools[0].has = limit;
            for _ in 0..limit {
                let Some(parts) = divide(limit, &pools, 1, NOW) else { break };
                step(limit, &mut pools, &parts);
            }
            prop_assert_eq!(divide(limit, &pools, 1, NOW), None);
            let least = pools.iter().filter(|pool| pool.has < pool.wants).map(|pool| pool.has);
            let least = least.min().unwrap_or(u32::MAX);
            let rich = |pool: &&Need| pool.has <= pool.wants && pool.has > least.saturating_add(1);
            prop_assert!(!pools.iter().any(|pool| rich(&pool)), "{:?}", pools);
        }

        /// More pools than servers, all of them crowds: everybody has its turn.
        #[test]
        fn nobody_starves_and_servers_change_hands_no_more_than_once_a_turn(
            limit in 1..6u32,
            others in 1..10usize,
        ) {
            let count = limit as usize + others;
            let crowd = |_| Need { has: 0, wants: 1_000, waits: true, since: Moment(0) };
            let mut pools: Vec<Need> = (0..count).map(crowd).collect();
            pools[0].has = limit;
            let mut served = vec![0u32; count];
            let mut given_up = 0;
            let looks = 10 * 4 * count as u64;
            for look in 1..=looks {
                let now = Moment(look * 100_000);
                let parts = divide(limit, &pools, limit, now);
                let had: Vec<bool> = pools.iter().map(|pool| pool.has > 0).collect();
                if let Some(parts) = parts {
                    given_up += parts.iter().map(|part| part.owes).sum::<u32>();
                    step(limit, &mut pools, &parts);
                }
                for ((pool, had), served) in pools.iter_mut().zip(had).zip(&mut served) {
                    if had != (pool.has > 0) {
                        pool.since = now;
                    }
                    *served += u32::from(pool.has > 0);
                }
                prop_assert!(pools.iter().map(|pool| pool.has).sum::<u32>() <= limit);
            }
            prop_assert!(served.iter().all(|served| *served > 0), "{:?}", served);
            let turns = (looks / 10 + 1) as u32;
            prop_assert!(given_up <= limit * turns, "{} in {} turns", given_up, turns);
        }
    }

    /// What is owed is given up, what is free is opened.
    fn step(limit: u32, pools: &mut [Need], parts: &[Part]) {
        for (pool, part) in pools.iter_mut().zip(parts) {
            pool.has -= part.owes;
        }
        let mut free = limit.saturating_sub(pools.iter().map(|pool| pool.has).sum());
        for (pool, part) in pools.iter_mut().zip(parts) {
            let more = part.share.saturating_sub(pool.has).min(free);
            pool.has += more;
            free -= more;
            pool.waits = pool.has < pool.wants;
        }
    }
}
