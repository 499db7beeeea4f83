//! The data plane in a simulated world: clients, PostgreSQL servers, time and misfortune are all
//! made from a seed, and everything that a client hears is compared with what a direct connection
//! would have said. See `world.rs`.
//!
//! `PONDAGE_SIM_SEED=17` runs one seed, `PONDAGE_SIM_ROUNDS=5000` so many, from
//! `PONDAGE_SIM_FIRST=250` on, and `PONDAGE_SIM_MINUTES=60` as many as fit into that.

mod client;
mod data;
mod ears;
mod faults;
mod judge;
mod kept;
mod ledger;
mod plan;
mod postgres;
mod reader;
mod regressions;
mod standbys;
mod statements;
mod tally;
mod turn;
mod world;

use std::time::Instant;

use rand::Rng;

use plan::Plan;
use tally::Tally;
use world::World;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(seed: u64) -> Result<Tally, String> {
    let plan = Plan::of(seed);
    let shown = format!("{plan:?}");
    let outcome = std::panic::catch_unwind(|| {
        let mut world = World::new(seed, plan);
        world.run().map(|()| world.tally)
    });
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.unwrap_or_else(|| "a panic".to_owned()))
    });
    outcome.map_err(|error| format!("PONDAGE_SIM_SEED={seed}\n{shown}\n{error}"))
}

#[test]
fn every_client_hears_what_a_direct_connection_would_have_said() {
    if let Some(seed) = number("PONDAGE_SIM_SEED") {
        if let Err(error) = run(seed) {
            panic!("{error}");
        }
        return;
    }
    let (mut failures, mut tally) = (Vec::new(), Tally::default());
    let minutes = number("PONDAGE_SIM_MINUTES");
    let rounds =
        number("PONDAGE_SIM_ROUNDS").unwrap_or(if minutes.is_some() { u64::MAX } else { 250 });
    let first = number("PONDAGE_SIM_FIRST").unwrap_or(0);
    let began = Instant::now();
    let time_is_over = || minutes.is_some_and(|minutes| began.elapsed().as_secs() >= minutes * 60);
    let mut done = 0;
    while done < rounds && failures.len() <= 40 && !time_is_over() {
        match run(first + done) {
            Ok(one) => tally += one,
            Err(error) => failures.push(error),
        }
        done += 1;
    }
    for failure in &failures {
        let head: Vec<&str> = failure.lines().take(4).collect();
        eprintln!("{}\n", head.join("\n"));
    }
    assert!(failures.is_empty(), "{} seeds failed; the first:\n{}", failures.len(), failures[0]);
    tally.check(done);
}

/// What is found can be run again: a seed says everything.
#[test]
fn a_seed_is_the_same_world_every_time() {
    let end = |seed: u64, plan: &Plan| {
        let mut world = World::new(seed, plan.clone());
        let outcome = world.run();
        (outcome, world.now, world.random.random::<u64>())
    };
    for seed in 0..40 {
        let plan = Plan::of(seed);
        assert_eq!(end(seed, &plan), end(seed, &plan), "seed {seed}");
    }
}
