//! Worlds that are broken on purpose: if no answer is found wrong there, the judgement of answers
//! proves nothing.

use crate::plan::{Caching, Fault, Plan};
use crate::world::World;

/// Within so many seeds each is found; mostly within a few.
const SEEDS: u64 = 150;

/// What the auditor has found is its own doing, and not the judgement's.
const AUDITED: &str = "an audit has found";

fn plan(seed: u64, fault: Option<Fault>, mirrors: u64) -> Plan {
    let mut plan = Plan::quiet("transaction", 1 + seed as usize % 2, 3);
    (plan.clients, plan.habits.sets, plan.habits.lone) = (8, true, true);
    let strange = fault == Some(Fault::StrangeUnseen);
    let freshness = ["session", "strict"][seed as usize / 2 % 2];
    let quiet = Caching::quiet();
    let usual = Caching { fault, freshness, strange, late: 0.5, slow: 0.5, mirrors, ..quiet };
    let caching = match fault {
        // What others have just written is missed where the stream is late, and strict readers
        // do not go by what was told.
        Some(Fault::WriteForgotten) => {
            Caching { slow: 0.8, freshness: "session", writes: 0.15, ..usual }
        }
        // Copies are ready long before the stream has come as far, and others would wait for it.
        Some(Fault::StandsTooSoon) => {
            Caching { slow: 0.95, freshness: "bounded", writes: 0.3, ..usual }
        }
        _ => usual,
    };
    plan.with(seed, caching)
}

/// What is wrong in a run, and whether the judgement says so.
fn wrong(seed: u64, fault: Option<Fault>) -> Option<String> {
    let error = World::new(seed, plan(seed, fault, 0)).run().err()?;
    (!error.contains(AUDITED)).then_some(error)
}

/// The same where there are mirrors, and have answered.
fn wrong_mirrored(seed: u64, fault: Option<Fault>) -> Option<String> {
    let mut world = World::new(seed, plan(seed, fault, 1 << 25));
    let error = world.run().err()?;
    (!error.contains(AUDITED) && world.mirrored() > 0).then_some(error)
}

#[test]
fn each_fault_is_found() {
    for fault in Fault::ALL {
        let found = (0..SEEDS).find(|seed| wrong(*seed, Some(fault)).is_some());
        eprintln!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} goes unnoticed");
    }
}

#[test]
fn each_fault_of_mirrors_is_found() {
    for fault in Fault::OF_MIRRORS {
        let found = (0..SEEDS).find(|seed| wrong_mirrored(*seed, Some(fault)).is_some());
        eprintln!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} goes unnoticed");
    }
}

/// A run of clients that listen, whose channels are forgotten or not: what is wrong, and how often
/// somebody was found to listen.
fn listening(seed: u64, forgets: bool) -> (Option<String>, u64) {
    let mut plan = Plan::quiet("transaction", 1 + seed as usize % 2, 3);
    plan.clients = 8;
    plan.more = "max_pinned = 8\nlisten = \"shared\"\n".to_owned();
    let habits = &mut plan.habits;
    (habits.operations, habits.lone) = (10..40, seed % 3 == 0);
    (habits.listens, habits.listens_shared) = (true, true);
    let mut world = World::new(seed, plan);
    world.ears.forgets = forgets;
    (world.run().err(), world.ears.found)
}

#[test]
fn a_channel_that_nobody_listens_to_is_found() {
    let found = (0..SEEDS).find(|seed| listening(*seed, true).0.is_some());
    eprintln!("{found:?}");
    assert!(found.is_some(), "a forgotten channel goes unnoticed");
    let mut times = 0;
    for seed in 0..10 {
        let (error, found) = listening(seed, false);
        assert_eq!(error, None, "seed {seed}");
        times += found;
    }
    assert!(times > 100, "who listens is looked at: {times} times");
}

#[test]
fn without_a_fault_none_is_found() {
    for seed in 0..20 {
        if let Some(error) = wrong(seed, None).or_else(|| wrong_mirrored(seed, None)) {
            panic!("seed {seed}: {error}");
        }
    }
}
