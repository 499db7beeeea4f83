//! Who holds the servers that others wait for, as the workers tell one another.
//!
//! A worker knows its own clients only. While clients wait anywhere, each tells with every tick who
//! has held a server of each of its pools for longest.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use backend::moment::Moment;

use crate::control::messages::PoolName;
use crate::link::Ends;

/// Who has a server, and what is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pool: PoolName,
    /// None: it carries statements of several, or its client has gone.
    pub client: Option<HoldingClient>,
    /// In a word or two, such as "idle in transaction".
    pub state: &'static str,
    /// Since when it does that.
    pub state_since: Moment,
    /// Since when it has the server.
    pub since: Moment,
    /// The shape of what runs, if it is followed.
    pub statement: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingClient {
    pub id: u64,
    /// As whom it has logged in.
    pub user: String,
    pub application_name: String,
    pub ends: Ends,
}

/// What the workers tell.
#[derive(Debug, Default)]
pub struct Holders {
    /// Bit `n`: clients of worker `n` wait.
    waiting: AtomicU64,
    /// By worker, the longest of each pool.
    told: Mutex<BTreeMap<u8, Vec<Holder>>>,
}

impl Holders {
    /// Whether clients wait anywhere; `here` says it of this worker.
    pub fn anybody_waits(&self, worker: u8, here: bool) -> bool {
        let mine = 1u64 << (worker % 64);
        let before = match here {
            true => self.waiting.fetch_or(mine, Ordering::Relaxed),
            false => self.waiting.fetch_and(!mine, Ordering::Relaxed) & !mine,
        };
        here || before != 0
    }

    /// What a worker's clients hold from now on; nothing while nobody waits.
    pub fn tell(&self, worker: u8, longest: Vec<Holder>) {
        let mut told = self.told();
        if longest.is_empty() {
            told.remove(&worker);
        } else {
            told.insert(worker, longest);
        }
    }

    /// Of what other workers have told, the holder that has had a server of such pools for longest.
    pub fn longest_elsewhere(
        &self,
        worker: u8,
        matches: impl Fn(&PoolName) -> bool,
    ) -> Option<Holder> {
        let told = self.told();
        let others = told.iter().filter(|(teller, _)| **teller != worker);
        let holders = others.flat_map(|(_, holders)| holders);
        holders.filter(|holder| matches(&holder.pool)).min_by_key(|holder| holder.since).cloned()
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<u8, Vec<Holder>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(database: &str, since: u64) -> Holder {
        Holder {
            pool: PoolName { database: database.to_owned(), user: "web".to_owned(), replica: None },
            client: None,
            state: "active",
            state_since: Moment(since),
            since: Moment(since),
            statement: None,
        }
    }

    #[test]
    fn the_longest_holder_of_all_other_workers_is_found() {
        let holders = Holders::default();
        holders.tell(0, vec![holder("app", 1)]);
        holders.tell(1, vec![holder("app", 30), holder("other", 2)]);
        holders.tell(2, vec![holder("app", 20)]);
        let longest = |worker| {
            let found = holders.longest_elsewhere(worker, |pool| pool.database == "app");
            found.map(|holder| holder.since.0)
        };
        assert_eq!(longest(0), Some(20));
        assert_eq!(longest(1), Some(1));
        holders.tell(0, Vec::new());
        assert_eq!(longest(1), Some(20));
        assert_eq!(holders.longest_elsewhere(0, |_| false), None);
    }

    #[test]
    fn somebody_waits_while_any_worker_says_so() {
        let holders = Holders::default();
        assert!(!holders.anybody_waits(0, false));
        assert!(holders.anybody_waits(63, true));
        assert!(holders.anybody_waits(0, false));
        assert!(!holders.anybody_waits(63, false));
        assert!(!holders.anybody_waits(0, false));
    }
}
