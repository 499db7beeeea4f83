use std::time::Duration;

use super::*;
use crate::console::fixture;
use crate::worker::snapshot::WorkerSnapshot;

const OPEN: Condition = Condition { listening: true, stopping: false };

fn view(pools: Vec<PoolSnapshot>) -> View {
    View { workers: vec![WorkerSnapshot { pools, ..Default::default() }], silent: Vec::new() }
}

fn failing(pool: &mut PoolSnapshot) {
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(77);
    pool.failing = Some((since, 3, "connection refused".to_owned()));
}

#[test]
fn a_silent_worker_is_named() {
    assert_eq!(health(&view(Vec::new())), Ok(json!({ "status": "ok" })));
    let silent = View { workers: Vec::new(), silent: vec![0, 3] };
    let reasons = health(&silent).unwrap_err()["reasons"].clone();
    assert_eq!(
        reasons,
        json!(["worker 0 did not answer within 1 s", "worker 3 did not answer within 1 s"])
    );
}

#[test]
fn a_process_is_ready_when_it_listens_and_no_tried_database_fails() {
    let config = fixture::config();
    assert!(readiness(&view(Vec::new()), None, OPEN, &config).is_ok());
    for (condition, reason) in [
        (Condition { listening: false, stopping: false }, "not listening yet"),
        (Condition { listening: true, stopping: true }, "shutting down"),
    ] {
        let answer = readiness(&view(Vec::new()), None, condition, &config).unwrap_err();
        assert_eq!(answer["reasons"], json!([reason]));
    }
}

#[test]
fn a_database_out_of_reach_makes_the_process_not_ready() {
    let config = fixture::config();
    let mut down = fixture::pool(&config, "app", "web");
    failing(&mut down);
    let answer = readiness(&view(vec![down.clone()]), None, OPEN, &config).unwrap_err();
    assert_eq!(answer["reasons"], json!(["database app: connection refused (after 3 tries)"]));

    // A server that works, be it another user's or another worker's.
    let mut other = fixture::pool(&config, "app", "batch");
    other.sv_idle = 1;
    assert!(readiness(&view(vec![down.clone(), other]), None, OPEN, &config).is_ok());
    let mut same = fixture::pool(&config, "app", "web");
    same.sv_active = 1;
    let mut two = view(vec![down.clone()]);
    two.workers.push(WorkerSnapshot { pools: vec![same], ..Default::default() });
    assert!(readiness(&two, None, OPEN, &config).is_ok());
}

#[test]
fn a_redis_door_without_its_tables_is_not_ready() {
    let (config, mut redis) = (fixture::config(), Snapshot::default());
    assert!(readiness(&view(Vec::new()), Some(&redis), OPEN, &config).is_ok());
    redis.figures.away = Some(("another gateway serves these tables".to_owned(), 7));
    let answer = readiness(&view(Vec::new()), Some(&redis), OPEN, &config).unwrap_err();
    assert_eq!(answer["reasons"], json!(["Redis door: another gateway serves these tables"]));
}

#[test]
fn a_guest_of_the_wildcard_does_not_count() {
    let config = fixture::config_and(fixture::WILDCARD);
    let mut guest = fixture::pool(&config, "typo", "web");
    failing(&mut guest);
    assert!(readiness(&view(vec![guest]), None, OPEN, &config).is_ok());
}

#[test]
fn the_state_has_every_pool() {
    let config = fixture::config();
    let mut pool = fixture::pool(&config, "app", "web");
    pool.cl_waiting = 2;
    pool.totals.query_count = 9;
    failing(&mut pool);
    let state = state(&view(vec![pool]), OPEN);
    assert_eq!(state["listening"], json!(true));
    let pool = &state["pools"][0];
    assert_eq!(pool["database"], "app");
    assert_eq!(pool["pool_mode"], "transaction");
    assert_eq!(pool["clients"]["waiting"], 2);
    assert_eq!(pool["totals"]["queries"], 9);
    assert_eq!(pool["failing"], json!({ "since": 77, "tries": 3, "error": "connection refused" }));
}
