//! The rows of SHOW BLOCKERS: who holds the servers that others wait for.

use std::time::Duration;

use backend::moment::Moment;

use super::table::Value;
use crate::control::messages::PoolName;
use crate::link::Ends;
use crate::worker::holders::Holder;
use crate::worker::snapshot::{PoolSnapshot, Shortage, WorkerSnapshot};

/// Rows at the most: those of the pools whose clients wait most, longest holders first.
const ROWS_MAX: usize = 1_000;

/// For each pool in which clients wait, who has the servers that it lacks; a row without a holder
/// where nobody has them.
pub fn rows(pools: &[PoolSnapshot], workers: &[WorkerSnapshot]) -> Vec<Vec<Value>> {
    let mut holders: Vec<(&Holder, Moment)> = Vec::new();
    for worker in workers {
        holders.extend(worker.holders.iter().map(|holder| (holder, worker.now)));
    }
    holders.sort_by_key(|(holder, _)| holder.since);
    let waiting = pools.iter().filter_map(|pool| Some((pool, pool.shortage?)));
    let mut waiting: Vec<(&PoolSnapshot, Shortage)> = waiting.collect();
    waiting.sort_by_key(|(pool, _)| std::cmp::Reverse(effect(pool)));
    let mut rows = Vec::new();
    for (pool, shortage) in waiting {
        let name =
            PoolName { database: pool.database.clone(), user: pool.user.clone(), replica: None };
        let due = holders.iter().filter(|(holder, _)| shortage.is_due_to(&holder.pool, &name));
        let before = rows.len();
        rows.extend(due.take(ROWS_MAX - before).map(|(holder, now)| {
            let mut row = waiter(pool, shortage);
            row.extend(blocker(holder, *now));
            row
        }));
        if rows.len() == ROWS_MAX {
            break;
        }
        if rows.len() == before {
            let mut row = waiter(pool, shortage);
            row.resize_with(row.len() + BLOCKER_COLUMNS, || Value::Null);
            rows.push(row);
        }
    }
    rows
}

/// What waiting comes to: as if all of a pool's clients had waited as long as the first.
fn effect(pool: &PoolSnapshot) -> Duration {
    pool.maxwait.saturating_mul(pool.cl_waiting)
}

fn waiter(pool: &PoolSnapshot, shortage: Shortage) -> Vec<Value> {
    vec![
        Value::text(pool.database.clone()),
        Value::text(pool.user.clone()),
        Value::from(pool.cl_waiting),
        seconds(pool.maxwait),
        Value::text(shortage.option()),
    ]
}

const BLOCKER_COLUMNS: usize = 10;

fn blocker(holder: &Holder, now: Moment) -> [Value; BLOCKER_COLUMNS] {
    let client = holder.client.as_ref();
    let (addr, port) = match client.map(|client| client.ends) {
        Some(Ends::Tcp { remote, .. }) => {
            (Value::text(remote.ip().to_string()), Value::from(u32::from(remote.port())))
        }
        Some(Ends::Unix { port, .. }) => (Value::text("unix"), Value::from(u32::from(port))),
        None => (Value::Null, Value::Null),
    };
    [
        client.map_or(Value::Null, |client| Value::from(client.id)),
        Value::text(holder.pool.database.clone()),
        Value::text(client.map_or(&holder.pool.user, |client| &client.user).clone()),
        Value::optional(client.map(|client| client.application_name.clone())),
        addr,
        port,
        Value::text(holder.state),
        seconds(now.since(holder.state_since)),
        seconds(now.since(holder.since)),
        Value::optional(holder.statement.clone()),
    ]
}

fn seconds(time: Duration) -> Value {
    Value::Tenths(u64::try_from(time.as_millis() / 100).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use backend::pool::Scope;

    use super::*;
    use crate::console::fixture;
    use crate::worker::holders::HoldingClient;

    fn pool(database: &str, waiting: u32, maxwait: u64, shortage: Shortage) -> PoolSnapshot {
        let mut pool = fixture::pool(&fixture::config(), database, "web");
        (pool.cl_waiting, pool.maxwait) = (waiting, Duration::from_secs(maxwait));
        pool.shortage = Some(shortage);
        pool
    }

    fn holder(database: &str, client: u64, since: u64) -> Holder {
        let ends = fixture::connection(0, client, "active").ends;
        let application_name = "nightly".to_owned();
        Holder {
            pool: PoolName { database: database.to_owned(), user: "web".to_owned(), replica: None },
            client: Some(HoldingClient {
                id: client,
                user: "ann".to_owned(),
                application_name,
                ends,
            }),
            state: "idle in transaction",
            state_since: Moment(since + 500_000),
            since: Moment(since),
            statement: None,
        }
    }

    fn at(worker: u8, holders: Vec<Holder>) -> WorkerSnapshot {
        WorkerSnapshot { worker, holders, now: Moment(10_000_000), ..WorkerSnapshot::default() }
    }

    /// Who waits, why, and for which client.
    fn shown(pools: &[PoolSnapshot], workers: &[WorkerSnapshot]) -> Vec<String> {
        let rows = rows(pools, workers);
        let word = |value: &Value| match value {
            Value::Int(number) => number.to_string(),
            Value::Text(text) => text.to_string(),
            _ => "-".to_owned(),
        };
        rows.iter().map(|row| [0, 2, 4, 5].map(|at| word(&row[at])).join(" ")).collect()
    }

    #[test]
    fn who_has_held_for_longest_comes_first_whatever_worker_it_is_at() {
        let workers = [
            at(0, vec![holder("app", 1, 3_000_000), holder("reports", 2, 0)]),
            at(1, vec![holder("app", 3, 1_000_000)]),
        ];
        let pools = [pool("app", 2, 5, Shortage::PoolSize)];
        assert_eq!(shown(&pools, &workers), ["app 2 pool_size 3", "app 2 pool_size 1"]);
        let rows = rows(&pools, &workers);
        assert_eq!(rows[0][12..14], [Value::Tenths(85), Value::Tenths(90)]);
        assert_eq!(rows[0][6..8], [Value::text("app"), Value::text("ann")]);
        assert_eq!(rows[0][9..11], [Value::text("10.0.0.9"), Value::Int(40_000)]);
    }

    #[test]
    fn pools_whose_clients_wait_most_come_first_and_without_a_holder_the_reason_is_shown() {
        let mut resting = pool("app", 0, 0, Shortage::Opening);
        resting.shortage = None;
        let pools = [
            resting,
            pool("reports", 1, 5, Shortage::Paused),
            pool("app", 9, 5, Shortage::Opening),
        ];
        let workers = [at(0, vec![holder("other", 1, 0)])];
        assert_eq!(shown(&pools, &workers), ["app 9 opening -", "reports 1 paused -"]);
    }

    #[test]
    fn of_a_limit_that_pools_share_all_their_holders_are_shown() {
        let workers = [at(0, vec![holder("app", 1, 0), holder("reports", 2, 1)])];
        let short = |scope| {
            let pools = [pool("app", 1, 1, Shortage::Shared(scope, 2))];
            shown(&pools, &workers).len()
        };
        assert_eq!((short(Scope::User), short(Scope::Database)), (2, 1));
    }

    #[test]
    fn there_are_not_more_rows_than_a_person_reads() {
        let many = (0..2_000).map(|client| holder("app", client, client)).collect();
        let pools =
            [pool("app", 1, 1, Shortage::PoolSize), pool("reports", 1, 0, Shortage::Paused)];
        assert_eq!(rows(&pools, &[at(0, many)]).len(), ROWS_MAX);
    }
}
