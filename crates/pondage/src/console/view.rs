//! Snapshots of all workers, asked for and put together.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{timeout_at, Instant};

use super::stats;
use super::Process;
use crate::control::messages::ToWorker;
use crate::worker::snapshot::{Detail, PoolSnapshot, Shortage, WorkerSnapshot};

/// What the workers said.
#[derive(Debug, Default)]
pub struct View {
    pub workers: Vec<WorkerSnapshot>,
    /// Workers that did not answer in time.
    pub silent: Vec<u8>,
}

/// Asks every worker at once and waits for `wait` at the most.
pub async fn look(process: &dyn Process, wait: Duration, detail: Detail) -> View {
    let until = Instant::now() + wait;
    let asked: Vec<_> = (0..process.workers())
        .map(|worker| {
            let (reply, answer) = oneshot::channel();
            process.send(worker, ToWorker::Snapshot { detail, reply });
            (worker, answer)
        })
        .collect();
    let mut view = View::default();
    for (worker, answer) in asked {
        match timeout_at(until, answer).await {
            Ok(Ok(snapshot)) => view.workers.push(*snapshot),
            // Too late, or dropped unanswered.
            Ok(Err(_)) | Err(_) => view.silent.push(worker),
        }
    }
    view
}

/// The pools of all workers, those of one database and user as one, in order of their names.
pub fn pools(workers: &[WorkerSnapshot]) -> Vec<PoolSnapshot> {
    let mut merged: BTreeMap<(&str, &str), PoolSnapshot> = BTreeMap::new();
    for pool in workers.iter().flat_map(|worker| &worker.pools) {
        merged
            .entry((&pool.database, &pool.user))
            .and_modify(|sum| merge(sum, pool))
            .or_insert_with(|| pool.clone());
    }
    merged.into_values().collect()
}

fn merge(sum: &mut PoolSnapshot, pool: &PoolSnapshot) {
    // Taken apart so that a new field is not forgotten here.
    let PoolSnapshot {
        database: _,
        user: _,
        config: _,
        mode: _,
        cl_active,
        cl_waiting,
        cl_active_cancel_req,
        cl_waiting_cancel_req,
        sv_active,
        sv_active_cancel,
        sv_being_canceled,
        sv_idle,
        sv_used,
        sv_tested,
        sv_login,
        maxwait,
        paused,
        disabled,
        listeners,
        totals,
        failing,
        share,
        shortage,
    } = pool;
    sum.cl_active += cl_active;
    sum.cl_waiting += cl_waiting;
    sum.cl_active_cancel_req += cl_active_cancel_req;
    sum.cl_waiting_cancel_req += cl_waiting_cancel_req;
    sum.sv_active += sv_active;
    sum.sv_active_cancel += sv_active_cancel;
    sum.sv_being_canceled += sv_being_canceled;
    sum.sv_idle += sv_idle;
    sum.sv_used += sv_used;
    sum.sv_tested += sv_tested;
    sum.sv_login += sv_login;
    sum.maxwait = sum.maxwait.max(*maxwait);
    sum.paused |= paused;
    sum.disabled |= disabled;
    sum.listeners += listeners;
    stats::add(&mut sum.totals, totals);
    sum.share = sum.share.or(*share);
    // A worker that lacks none at the moment may have them on the way.
    sum.shortage = match (sum.shortage, *shortage) {
        (None | Some(Shortage::Opening), other @ Some(_)) => other,
        (one, _) => one,
    };
    // The workers fail alike: the longest story is the fullest.
    sum.failing = match (sum.failing.take(), failing) {
        (Some(one), Some(other)) => Some(if one.1 >= other.1 { one } else { other.clone() }),
        (one, other) => one.or_else(|| other.clone()),
    };
}

/// Server connections of a pool, those that log in included.
pub fn servers(pool: &PoolSnapshot) -> u32 {
    working_servers(pool) + pool.sv_login
}

/// Server connections that have logged in.
pub fn working_servers(pool: &PoolSnapshot) -> u32 {
    pool.sv_active
        + pool.sv_active_cancel
        + pool.sv_being_canceled
        + pool.sv_idle
        + pool.sv_used
        + pool.sv_tested
}

/// Clients of a pool; cancel requests are none.
pub fn clients(pool: &PoolSnapshot) -> u32 {
    pool.cl_active + pool.cl_waiting
}
