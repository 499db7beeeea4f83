//! The applier against a model that knows all rows.
//!
//! Random tables, restrictions, and transactions, told as a stream would tell them. The model says
//! which restrictions find another answer after a commit: each of those must have a raised tag.
//! That others have none is counted. Then the same with a stream or a cache that is broken on
//! purpose: every fault must be found, or the test would prove nothing.

mod random;
mod table;
mod world;

use world::{Fault, World};

const SEEDS: u64 = 240;
const STEPS: usize = 150;

/// Few, so that a world is made quickly.
const TAGS: usize = 1 << 16;

#[test]
fn an_answer_that_has_changed_has_a_raised_tag() {
    for seed in 0..SEEDS {
        if let Err(violation) = World::new(seed, TAGS, None).run(STEPS) {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn an_answer_that_no_change_could_concern_is_mostly_kept() {
    let (mut kept, mut dropped) = (0, 0);
    for seed in 0..SEEDS / 8 {
        let mut world = World::new(seed, TAGS << 3, None);
        world.settled_in = true;
        world.run(STEPS).expect("sound");
        kept += world.kept;
        dropped += world.dropped;
    }
    assert!(kept > 10_000, "only {kept} answers were not concerned");
    // Where old values are known nothing is raised in vain but for collisions of hashes.
    assert!(dropped * 100 < kept, "{dropped} of {kept} were dropped in vain");
}

#[test]
fn each_fault_is_found() {
    for fault in Fault::ALL {
        let found =
            (0..SEEDS).find(|seed| World::new(*seed, TAGS, Some(fault)).run(STEPS).is_err());
        assert!(found.is_some(), "{fault:?} goes unnoticed");
    }
}
