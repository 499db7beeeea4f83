//! The checker of what the Redis door promises (docs/redis-guarantees.md): clients do what clients
//! do, everything goes wrong that can, and nothing that was promised may be missing afterwards.
//!
//! A round has keys of its own. Clients and an SQL session change them and write down every
//! question and answer; another session looks for halves of batches; faults strike. Then all
//! settles, and three views are taken: of the gateway that has lived through it, of the tables, and
//! of a gateway that has just begun. They must be the same, and with them every key's history must
//! be linearizable: so no acknowledged write is missing, none was done twice, and no answer showed
//! what was gone later.
//!
//! `PONDAGE_KILLS_ROUNDS` rounds (as many as fit into 15 s), from `PONDAGE_KILLS_SEED`; with
//! `PONDAGE_KILLS_FAULT` all of one kind, with `PONDAGE_KILLS_MODE` into rows or by the journal. Threads race, so a seed makes a repetition likely and not
//! certain.

mod client;
#[path = "../redis_diff/connection.rs"]
#[allow(dead_code)]
mod connection;
mod history;
#[path = "../it/kit/mod.rs"]
mod kit;
mod linear;
mod model;
mod nemesis;
mod proxy;
#[path = "../redis_diff/reply.rs"]
#[allow(dead_code)]
mod reply;
mod round;
mod sql;
mod workload;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::SeedableRng;

use nemesis::{Fault, World};

/// How long it goes on where nobody has said for how many rounds.
const TIME: Duration = Duration::from_secs(15);

/// A round that takes longer is worth a line.
const SLOW: Duration = Duration::from_secs(12);

#[test]
#[ignore = "it finds what is not mended yet: make redis-kills"]
fn nothing_that_was_promised_is_missing() {
    let rounds = number("PONDAGE_KILLS_ROUNDS");
    let seed = number("PONDAGE_KILLS_SEED").unwrap_or_else(rand::random);
    let only = std::env::var("PONDAGE_KILLS_FAULT").ok();
    let only = only.map(|name| Fault::named(&name).unwrap_or_else(|| panic!("no fault {name}")));
    println!("PONDAGE_KILLS_SEED={seed}");
    let journal = match std::env::var("PONDAGE_KILLS_MODE").unwrap_or_default().as_str() {
        "" => None,
        "rows" => Some(false),
        "journal" => Some(true),
        other => panic!("PONDAGE_KILLS_MODE={other}: rows or journal"),
    };
    let mut world = World::start(&mut StdRng::seed_from_u64(seed), journal);
    let families = round::families(&world);
    println!("{} writers, journal: {}, {families:?}", world.writers, world.journal);
    round::load_ballast(&world);
    let end = Instant::now() + TIME;
    let mut faults: BTreeMap<String, u32> = BTreeMap::new();
    let mut done = 0;
    while rounds.map_or_else(|| Instant::now() < end, |rounds| done < rounds) {
        let mut dice = StdRng::seed_from_u64(seed.wrapping_add(done));
        let began = Instant::now();
        let report = round::play(&mut world, &mut dice, done, families, only);
        if began.elapsed() > SLOW {
            println!("round {done} took {:?}: {:?}", began.elapsed(), report.faults);
        }
        for fault in &report.faults {
            *faults.entry(format!("{fault:?}")).or_default() += 1;
        }
        if !report.wrong.is_empty() {
            println!("--- the gateway said last:\n{}", tail(&world.said(), 40));
            let log = world.cluster.directory.join("log");
            println!(
                "--- PostgreSQL:\n{}",
                tail(&std::fs::read_to_string(log).unwrap_or_default(), 40)
            );
            panic!(
                "PONDAGE_KILLS_SEED={seed}, round {done}, faults {:?}:\n{}",
                report.faults,
                report.wrong.join("\n")
            );
        }
        done += 1;
        if done % 20 == 0 {
            println!("{done} rounds; {faults:?}; {}", tally(&world));
        }
    }
    println!("{done} rounds; {faults:?}; {}", tally(&world));
    let (answered, unknown) = (&world.shared.answered, &world.shared.unknown);
    assert!(answered.load(Ordering::Relaxed) > 0, "nothing was answered");
    assert!(done < 5 || unknown.load(Ordering::Relaxed) > 0, "no fault struck anything");
}

fn tally(world: &World) -> String {
    let shared = &world.shared;
    let [answered, refused, unknown] = [&shared.answered, &shared.refused, &shared.unknown]
        .map(|counter| counter.load(Ordering::Relaxed));
    format!("{answered} operations answered, {refused} refused, {unknown} unknown")
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
