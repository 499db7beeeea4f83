//! Exactly once: clients call a procedure that moves money and writes the call's token into a
//! ledger, while the gateway, PostgreSQL's processes and the postmaster are killed.
//!
//! Every client writes down what it was told of each call. Then all settles, and ledger and
//! balances are read: what was acknowledged is there once, what failed is not there, of what nobody
//! knows nothing is there twice, and no money is missing.
//!
//! `PONDAGE_LEDGER_ROUNDS` rounds (as many as fit into 45 s), from `PONDAGE_LEDGER_SEED`. Threads
//! race, so a seed makes a repetition likely and not certain.

mod client;
#[path = "../it/kit/mod.rs"]
mod kit;
mod ledger;
mod nemesis;
mod round;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::SeedableRng;

use ledger::Tally;
use nemesis::World;

/// How long it goes on where nobody has said for how many rounds.
const TIME: Duration = Duration::from_secs(45);

#[test]
fn every_call_is_done_once_or_not_at_all() {
    let rounds = number("PONDAGE_LEDGER_ROUNDS");
    let seed = number("PONDAGE_LEDGER_SEED").unwrap_or_else(rand::random);
    println!("PONDAGE_LEDGER_SEED={seed}");
    let mut world = World::start();
    let end = Instant::now() + TIME;
    let mut faults: BTreeMap<String, u32> = BTreeMap::new();
    let (mut tally, mut done) = (Tally::default(), 0);
    while rounds.map_or_else(|| Instant::now() < end, |rounds| done < rounds) {
        let mut dice = StdRng::seed_from_u64(seed.wrapping_add(done));
        let report = round::play(&mut world, &mut dice, done);
        for fault in &report.faults {
            *faults.entry(format!("{fault:?}")).or_default() += 1;
        }
        if !report.wrong.is_empty() {
            let log = std::fs::read_to_string(world.cluster.directory.join("log"));
            println!("--- the gateway said last:\n{}", tail(&world.said(), 40));
            println!("--- PostgreSQL:\n{}", tail(&log.unwrap_or_default(), 40));
            panic!(
                "PONDAGE_LEDGER_SEED={seed}, round {done}, faults {:?}, {}:\n{}",
                report.faults,
                report.options,
                report.wrong.join("\n")
            );
        }
        tally.add(&report.tally);
        done += 1;
        if done % 20 == 0 {
            println!("{done} rounds; {faults:?}; {tally}; {} on trains", world.trained);
        }
    }
    println!("{done} rounds; {faults:?}; {tally}; {} on trains", world.trained);
    assert!(tally.done > 0 && tally.failed > 0, "nothing was done, or nothing failed: {tally}");
    assert!(done < 5 || tally.unknown > 0, "no fault struck anything");
    assert!(done < 5 || world.trained > 0, "nothing travelled on a train");
}

/// The last lines.
fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}
