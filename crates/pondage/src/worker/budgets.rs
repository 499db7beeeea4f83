//! Servers that several pools share are divided among them, over all workers.
//!
//! Each worker tells what its part of a pool needs ([`backend::pool::Demand`]). When a limit keeps a
//! pool whose clients wait from opening a server, whichever worker comes first looks at all pools and
//! divides anew ([`backend::fair`]); the others find in [`backend::pool::Shared`] what that means for
//! theirs. While nobody lacks anything, nothing is looked at.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend::fair::{self, Need, Part};
use backend::moment::Moment;
use backend::pool::{Budget, Scope, Shared};

use crate::control::messages::PoolName;

/// Nothing is divided again sooner. With [`moves`] it bounds how many servers change hands.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The log says of one budget that it is short no more often.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Servers of one budget that are to be given up at a time: within two seconds all may change hands.
fn moves(limit: u32) -> u32 {
    1 + limit / 16
}

#[derive(Debug, Default)]
pub struct Budgets {
    /// A pool was kept from a server, or pools are limited to their shares.
    short: AtomicBool,
    /// When it may be looked at again, as a [`Moment`].
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the pool's address: at standbys several have one name.
    standings: HashMap<usize, Standing>,
    /// When the log was told, by the budget's address.
    told: HashMap<usize, Moment>,
}

/// Since when a pool has had servers, or none.
#[derive(Debug, Clone, Copy)]
struct Standing {
    has: bool,
    since: Moment,
}

/// Pools that share a budget.
struct Group {
    scope: Scope,
    limit: u32,
    /// Places in the list of all pools.
    pools: Vec<usize>,
}

impl Budgets {
    /// A limit keeps a pool from a server that its clients wait for, or was changed. Where others
    /// have to tell first what they need, they get the time for it.
    pub fn is_short(&self, alone: bool, now: Moment) {
        if !self.short.swap(true, Ordering::Relaxed) && !alone {
            self.next.fetch_max(now.after(LOOK_EVERY).0, Ordering::Relaxed);
        }
    }

    /// While it is so, every worker tells with every tick what its pools need.
    pub fn asks(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Whether there is something to divide and it is time.
    pub fn is_due(&self, now: Moment) -> bool {
        self.asks() && now.0 >= self.next.load(Ordering::Relaxed)
    }

    /// Divides every budget anew that is short.
    pub fn divide(&self, pools: &[(PoolName, Arc<Shared>)], now: Moment) {
        // Another worker is at it.
        let Ok(mut state) = self.state.try_lock() else { return };
        if !self.is_due(now) {
            return;
        }
        self.next.store(now.after(LOOK_EVERY).0, Ordering::Relaxed);
        let needs: Vec<Need> = pools.iter().map(|(_, shared)| state.need(shared, now)).collect();
        let mut parts: Vec<Option<Part>> = vec![None; pools.len()];
        for (budget, group) in groups(pools) {
            let of_group: Vec<Need> = group.pools.iter().map(|at| needs[*at]).collect();
            let Some(divided) = fair::divide(group.limit, &of_group, moves(group.limit), now)
            else {
                continue;
            };
            state.tell(budget, &group, pools, now);
            for (at, part) in group.pools.iter().zip(divided) {
                let before = parts[*at].unwrap_or(part);
                // One that is given up is given up in all its budgets.
                let share = before.share.min(part.share);
                parts[*at] = Some(Part { share, owes: before.owes.max(part.owes) });
            }
        }
        for ((_, shared), part) in pools.iter().zip(&parts) {
            shared.limit(*part);
        }
        if parts.iter().all(Option::is_none) {
            self.short.store(false, Ordering::Relaxed);
            state.standings.clear();
        }
    }
}

fn groups(pools: &[(PoolName, Arc<Shared>)]) -> HashMap<usize, Group> {
    let mut groups: HashMap<usize, Group> = HashMap::new();
    for (at, (_, shared)) in pools.iter().enumerate() {
        for ceiling in shared.ceilings().iter() {
            let budget: *const Budget = Arc::as_ptr(&ceiling.budget);
            let (scope, limit) = (ceiling.scope, ceiling.limit);
            let group =
                groups.entry(budget as usize).or_insert(Group { scope, limit, pools: Vec::new() });
            group.pools.push(at);
        }
    }
    groups
}

impl State {
    fn need(&mut self, shared: &Arc<Shared>, now: Moment) -> Need {
        let demand = shared.demand();
        let has = shared.servers.taken().saturating_sub(demand.leaving);
        let address = Arc::as_ptr(shared) as usize;
        let standing =
            self.standings.entry(address).or_insert(Standing { has: has > 0, since: now });
        if standing.has != (has > 0) {
            *standing = Standing { has: has > 0, since: now };
        }
        let wants = demand.works.saturating_add(demand.waits).min(demand.most);
        Need { has, wants, waits: demand.waits > 0, since: standing.since }
    }

    fn tell(
        &mut self,
        budget: usize,
        group: &Group,
        pools: &[(PoolName, Arc<Shared>)],
        now: Moment,
    ) {
        let recent = |told: &Moment| now.since(*told) < TELL_EVERY;
        if self.told.get(&budget).is_some_and(recent) {
            return;
        }
        self.told.retain(|_, told| recent(told));
        self.told.insert(budget, now);
        let Some((name, _)) = group.pools.first().and_then(|at| pools.get(*at)) else { return };
        let (db, user) = match group.scope {
            Scope::Process => (None, None),
            Scope::Database => (Some(name.database.as_str()), None),
            Scope::User => (None, Some(name.user.as_str())),
        };
        tracing::warn!(
            event = "servers_short",
            limit = group.limit,
            db,
            user,
            pools = group.pools.len(),
            "clients wait for servers that other pools have: {} is reached",
            group.scope.option()
        );
    }
}

#[cfg(test)]
mod tests {
    use backend::pool::{Ceiling, Demand};

    use super::*;

    fn pools(limit: u32, count: usize) -> (Arc<Budget>, Vec<(PoolName, Arc<Shared>)>) {
        let budget = Arc::new(Budget::default());
        let pool = |number: usize| {
            let shared = Arc::new(Shared::default());
            let budget = budget.clone();
            shared.share_with(vec![Ceiling { scope: Scope::Process, budget, limit }]);
            let name =
                PoolName { database: format!("db{number}"), user: "web".to_owned(), replica: None };
            (name, shared)
        };
        let pools = (0..count).map(pool).collect();
        (budget, pools)
    }

    fn demand(works: u32, waits: u32) -> Demand {
        Demand { works, waits, leaving: 0, most: 100 }
    }

    fn take(shared: &Shared, budget: &Budget, count: u32) {
        for _ in 0..count {
            assert!(shared.servers.take(100) && budget.take(100));
        }
    }

    #[test]
    fn what_the_workers_need_adds_up_and_who_has_too_much_owes_some() {
        let (budget, pools) = pools(4, 2);
        let [(_, crowd), (_, single)] = &pools[..] else { panic!("two") };
        take(crowd, &budget, 4);
        crowd.tell_demand(0, demand(2, 500));
        crowd.tell_demand(1, demand(2, 500));
        single.tell_demand(1, demand(0, 1));
        let budgets = Budgets::default();
        assert!(!budgets.is_due(Moment(5)), "nobody has said that it is short");
        budgets.is_short(true, Moment(5));
        budgets.divide(&pools, Moment(5));
        assert_eq!((crowd.share(), single.share()), (3, 1));
        assert!(crowd.pay() && !crowd.pay(), "one, whichever worker has it");
        assert!(!single.pay());
        // Not again so soon.
        crowd.tell_demand(0, demand(4, 0));
        budgets.divide(&pools, Moment(6));
        assert_eq!(single.share(), 1);
        // With what is given up nobody lacks any.
        crowd.servers.give_back();
        budget.give_back();
        take(single, &budget, 1);
        single.tell_demand(1, demand(1, 0));
        let later = Moment(5).after(LOOK_EVERY);
        assert!(budgets.is_due(later));
        budgets.divide(&pools, later);
        assert_eq!((crowd.share(), single.share()), (u32::MAX, u32::MAX));
        assert!(!budgets.is_due(later.after(LOOK_EVERY)));
    }

    #[test]
    fn what_is_leaving_already_is_not_asked_for_again() {
        let (budget, pools) = pools(2, 2);
        let [(_, crowd), (_, single)] = &pools[..] else { panic!("two") };
        take(crowd, &budget, 2);
        crowd.tell_demand(0, Demand { leaving: 1, ..demand(1, 9) });
        single.tell_demand(0, demand(0, 1));
        let budgets = Budgets::default();
        budgets.is_short(true, Moment(5));
        budgets.divide(&pools, Moment(5));
        assert!(!crowd.pay());
        assert_eq!((crowd.share(), single.share()), (1, 1));
    }

    #[test]
    fn other_workers_have_the_time_of_a_tick_to_tell_what_they_need() {
        let budgets = Budgets::default();
        budgets.is_short(false, Moment(5));
        assert!(budgets.asks() && !budgets.is_due(Moment(5)));
        let tick = Moment(5).after(LOOK_EVERY);
        budgets.is_short(false, tick);
        assert!(budgets.is_due(tick), "it was known before");
    }

    #[test]
    fn two_workers_do_not_divide_at_the_same_time() {
        let (budget, pools) = pools(1, 2);
        take(&pools[0].1, &budget, 1);
        pools[1].1.tell_demand(0, demand(0, 1));
        let budgets = Budgets::default();
        budgets.is_short(true, Moment(5));
        let held = budgets.state.lock().expect("not poisoned");
        budgets.divide(&pools, Moment(5));
        assert_eq!(pools[0].1.share(), u32::MAX);
        drop(held);
        budgets.divide(&pools, Moment(5));
        assert_eq!(pools[0].1.share(), 0);
    }
}
