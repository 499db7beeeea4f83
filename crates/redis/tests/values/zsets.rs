//! Sorted sets.

use std::collections::BTreeMap;

use redis::random::Random;
use redis::server::Settings;
use redis::value::{Tracked, Zset};

use crate::rig::Tables;

type Model = BTreeMap<Vec<u8>, f64>;

fn in_order(model: &Model) -> Vec<(Vec<u8>, f64)> {
    let mut members: Vec<_> = model.iter().map(|(name, score)| (name.clone(), *score)).collect();
    members.sort_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| a.cmp(b)));
    members
}

fn contents(zset: &Zset) -> Vec<(Vec<u8>, f64)> {
    zset.iter().map(|(name, score)| (name.to_vec(), score)).collect()
}

fn change(zset: &mut Zset, model: &mut Model, random: &mut Random, names: usize) {
    let name = random.below(names).to_string().into_bytes();
    match random.below(8) {
        0..=4 => {
            let score = random.below(names) as f64 / 4.0 - 3.0;
            assert_eq!(zset.insert(&name, score), model.insert(name, score));
        }
        5 | 6 => assert_eq!(zset.remove(&name), model.remove(&name)),
        _ => {
            let from = random.below(zset.len() + 1);
            let to = (from + random.below(5)).min(zset.len());
            for (name, _) in &in_order(model)[from..to] {
                model.remove(name);
            }
            assert_eq!(zset.remove_range(from, to), to - from);
        }
    }
}

#[track_caller]
fn check(zset: &Zset, model: &Model, random: &mut Random) {
    let members = in_order(model);
    assert_eq!(contents(zset), members);
    let mut back: Vec<_> = zset.iter().rev().map(|(name, score)| (name.to_vec(), score)).collect();
    back.reverse();
    assert_eq!(back, members);
    for (rank, (name, score)) in members.iter().enumerate() {
        assert_eq!(zset.score(name), Some(*score));
        if random.below(8) == 0 {
            assert_eq!(zset.rank(name), Some((rank, *score)));
            assert_eq!(zset.at(rank), Some((&name[..], *score)));
            let from = zset.range(rank, rank + 3).map(|(name, _)| name.to_vec());
            let expected = members[rank..].iter().take(3).map(|(name, _)| name.clone());
            assert_eq!(from.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            let below = members.iter().filter(|(_, other)| other < score).count();
            assert_eq!(zset.count_while(|_, other| other < *score), below);
        }
    }
    let mut both = zset.iter();
    let mut seen = 0;
    while both.next().is_some() {
        seen += 1 + usize::from(both.next_back().is_some());
        assert_eq!(both.len(), members.len() - seen);
    }
    assert_eq!(seen, members.len());
}

#[test]
fn rows_are_what_a_sorted_set_is_and_undoing_gives_back_what_was() {
    let mut random = Random::new(11);
    for (rounds, names, steps) in [(60, 12, 8), (20, 60, 40), (1, 2_000, 600)] {
        for _ in 0..rounds {
            let (mut zset, mut model) = (Zset::default(), Model::new());
            let mut tables = Tables::default();
            for _ in 0..30 {
                let undone = random.below(3) == 0;
                let (before, weight) = (model.clone(), zset.weight());
                if undone {
                    zset.remember();
                }
                for _ in 0..random.below(steps) {
                    change(&mut zset, &mut model, &mut random, names);
                }
                if undone && random.below(2) == 0 {
                    zset.undo();
                    assert_eq!(zset.weight(), weight);
                    model = before;
                } else if undone {
                    zset.keep();
                }
                check(&zset, &model, &mut random);
                if random.below(2) == 0 {
                    zset.drain(&mut tables);
                    let rows = tables.zset.iter().map(|((_, name), score)| (&name[..], *score));
                    let loaded = Zset::load(0, rows);
                    check(&loaded, &model, &mut random);
                    assert_eq!(loaded.weight(), zset.weight());
                }
            }
        }
    }
}

#[test]
fn a_scan_finds_what_stays() {
    let mut random = Random::new(3);
    let mut zset = Zset::default();
    for n in 0..5_000 {
        zset.insert(format!("{n}").as_bytes(), random.below(100) as f64);
    }
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = zset.scan(cursor, 10, |name, _| seen.push(name.to_vec()));
        if cursor == 0 {
            break;
        }
        for _ in 0..20 {
            let n = 1_000 + random.below(9_000);
            match random.below(2) {
                0 => zset.insert(format!("{n}").as_bytes(), random.below(100) as f64),
                _ => zset.remove(format!("{n}").as_bytes()),
            };
        }
    }
    seen.sort();
    seen.dedup();
    (0..1_000).for_each(|n| {
        assert!(seen.binary_search(&format!("{n}").into_bytes()).is_ok(), "{n}");
    });
}

#[test]
fn names_and_encodings_are_those_of_redis() {
    let settings = Settings::default();
    let mut zset = Zset::default();
    for n in 0..128i32 {
        zset.insert(&n.to_le_bytes(), f64::from(n));
    }
    assert_eq!(zset.encoding(&settings), "listpack");
    zset.insert(b"more", 0.0);
    assert_eq!(zset.encoding(&settings), "skiplist");
    zset.remove(b"more");
    zset.remove(&0i32.to_le_bytes());
    zset.insert(&[b'x'; 65], 0.0);
    assert_eq!(zset.encoding(&settings), "skiplist");
}
