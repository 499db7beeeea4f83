//! Tables in memory do what ordered maps do, whatever happens to them.

#[path = "../model/random.rs"]
mod random;
mod world;

use cache::mirror::building::{Building, Next};
use cache::mirror::class::Class;

use random::Random;
use world::World;

/// Operations of a run.
const STEPS: usize = 6_000;

fn run(seed: u64, identity: &[u16], columns: &[(Class, bool)], first: usize) {
    let mut random = Random(seed);
    let mut world = World::new(columns, identity);
    world.load(first, &mut random);
    for column in 0..columns.len() as u16 {
        world.table.add_index(column, &world.sums());
    }
    world.check(&mut random);
    for step in 0..STEPS {
        world.change(&mut random);
        if step % (STEPS / 10) == 0 {
            world.check(&mut random);
        }
    }
    world.check(&mut random);
    while world.delete(&mut random) {
        world.insert_sometimes(&mut random);
    }
    world.check(&mut random);
}

#[test]
fn a_table_of_two_integers_is_a_map() {
    run(1, &[0], &[(Class::Int4, true), (Class::Int4, true)], 20_000);
}

#[test]
fn a_small_table_is_a_map() {
    for seed in 10..20 {
        run(seed, &[0], &[(Class::Int2, true), (Class::Int4, false)], 3);
    }
}

#[test]
fn a_table_of_values_of_all_lengths_is_a_map() {
    let columns = [
        (Class::Int8, true),
        (Class::Text, false),
        (Class::Int4, false),
        (Class::Uuid, true),
        (Class::Numeric, false),
        (Class::Padded, false),
        (Class::Bytea, false),
        (Class::Interval, false),
        (Class::Bool, true),
        (Class::TimeTz, false),
    ];
    for seed in 30..32 {
        run(seed, &[0], &columns, 3_000);
    }
}

#[test]
fn an_identity_of_several_columns_is_a_key() {
    let columns = [(Class::Int8, false), (Class::Text, true), (Class::Int4, true)];
    run(40, &[1, 2], &columns, 5_000);
    run(41, &[1], &columns, 500);
    let columns = [(Class::Bytea, true), (Class::Numeric, true), (Class::Int2, false)];
    run(42, &[0, 1], &columns, 2_000);
}

/// Does something for the index.
fn step(world: &mut World, building: &mut Building, random: &mut Random) {
    match building.next() {
        Next::Reading => building.read(&world.table, 1 + random.below(200)),
        Next::Working => building.work(),
        Next::Changing => world.table.build_index(building),
        Next::Done | Next::Gone => {}
    }
}

#[test]
fn an_index_is_built_while_rows_change() {
    let columns = [
        (Class::Int4, true),
        (Class::Int4, false),
        (Class::Text, false),
        (Class::Numeric, false),
        (Class::Int8, true),
    ];
    for seed in 50..62 {
        let mut random = Random(seed);
        let mut world = World::new(&columns, &[0]);
        world.load(*random.of(&[0, 1, 50, 4_000]), &mut random);
        for column in 0..columns.len() as u16 {
            let mut building =
                world.table.begin_index(column, &world.sums()).expect("nothing else is built");
            assert!(world.table.begin_index(column, &[]).is_none(), "one at a time");
            let often = *random.of(&[1, 5, 40]);
            while building.next() != Next::Done {
                assert_ne!(building.next(), Next::Gone);
                assert!(world.table.index(column).is_none() || column == 0);
                for _ in 0..random.below(often * 2) {
                    world.change(&mut random);
                }
                step(&mut world, &mut building, &mut random);
            }
            world.check(&mut random);
        }
        (0..500).for_each(|_| world.change(&mut random));
        world.check(&mut random);
    }
}

#[test]
fn an_index_that_is_begun_ends_with_truncation_and_with_forgetting() {
    let mut random = Random(90);
    let mut world = World::new(&[(Class::Int4, true), (Class::Int4, false)], &[0]);
    world.load(1_000, &mut random);
    let mut building = world.table.begin_index(1, &[]).expect("nothing else is built");
    building.read(&world.table, 100);
    world.truncate();
    building.read(&world.table, 100);
    assert_eq!(building.next(), Next::Gone);
    let mut building = world.table.begin_index(1, &[]).expect("nothing else is built");
    world.table.forget_index(&building);
    let other = world.table.begin_index(1, &[]).expect("nothing else is built");
    world.table.forget_index(&building);
    assert!(world.table.begin_index(1, &[]).is_none(), "the other goes on");
    building.read(&world.table, 100);
    assert_eq!(building.next(), Next::Gone);
    world.table.forget_index(&other);
    assert!(world.table.begin_index(1, &[]).is_some());
}

#[test]
fn an_index_takes_the_place_of_the_one_before() {
    let mut random = Random(91);
    let mut world = World::new(&[(Class::Int4, true), (Class::Int4, true)], &[0]);
    world.load(5_000, &mut random);
    world.table.add_index(0, &[]);
    let mut building = world.table.begin_index(0, &[1]).expect("nothing else is built");
    while building.next() != Next::Done {
        step(&mut world, &mut building, &mut random);
        world.change(&mut random);
    }
    assert!(world.table.index(0).is_some_and(|index| index.knows_sum(1)));
    assert_eq!(world.table.indexes().count(), 1);
    world.check(&mut random);
}

#[test]
fn what_can_not_be_is_refused_and_changes_nothing() {
    let mut random = Random(92);
    let mut world = World::new(&[(Class::Int4, true), (Class::Int4, true)], &[0]);
    world.load(100, &mut random);
    world.refusals();
    world.check(&mut random);
}
