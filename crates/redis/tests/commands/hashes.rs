//! Hashes and sets: commands, and values against models.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redis::random::Random;
use redis::rows::Rows;
use redis::value::{Hash, Set, Tracked};

use crate::rig::{Rig, Tables};
use crate::transcript;

#[test]
fn commands_of_hashes_reply_as_redis_does() {
    transcript::check(include_str!("transcripts/hashes.txt"));
}

#[test]
fn commands_of_sets_reply_as_redis_does() {
    transcript::check(include_str!("transcripts/sets.txt"));
}

#[test]
fn pairs_are_flat_in_resp2() {
    let mut rig = Rig::new();
    rig.check("HSET h f v", "1");
    rig.check("HRANDFIELD h 5 WITHVALUES", "[\"f\" \"v\"]");
    rig.check("HRANDFIELD h -2 WITHVALUES", "[\"f\" \"v\" \"f\" \"v\"]");
}

#[test]
fn small_collections_keep_their_order() {
    let mut rig = Rig::new();
    rig.check("HSET h z 1 y 2 x 3", "3");
    rig.check("HSET h z changed", "0");
    rig.check("HDEL h y", "1");
    rig.check("HSET h y back", "1");
    rig.check("HGETALL h", "{\"z\" \"changed\" \"x\" \"3\" \"y\" \"back\"}");
    rig.check("SADD s z 10 2", "3");
    rig.check("SMEMBERS s", "~[\"z\" \"10\" \"2\"]");
    rig.check("SREM s 10", "1");
    rig.check("SADD s 10", "1");
    rig.check("SMEMBERS s", "~[\"z\" \"2\" \"10\"]");
}

/// Random changes, with draining, reloading, remembering and undoing between them.
struct Changes {
    random: Random,
    tables: Tables,
}

impl Changes {
    fn new(seed: u64) -> Changes {
        Changes { random: Random::new(seed), tables: Tables::default() }
    }

    fn name(&mut self, different: usize) -> Vec<u8> {
        let number = self.random.below(different);
        match number % 7 {
            0 => number.to_string().into_bytes(),
            1 => vec![b'x'; number % 90],
            2 => vec![0xff, 0, number as u8],
            _ => format!("name{number}").into_bytes(),
        }
    }
}

#[test]
fn a_hash_is_what_its_model_is() {
    for seed in 0..40 {
        let mut changes = Changes::new(seed);
        let different = [5, 60, 400][seed as usize % 3];
        let (mut hash, mut model) = (Hash::default(), BTreeMap::new());
        hash.set_kid(7);
        let mut saved = None;
        for _ in 0..1_500 {
            let name = changes.name(different);
            match changes.random.below(20) {
                0 if saved.is_none() => {
                    hash.drain(&mut changes.tables);
                    let rows = changes.tables.hash.iter();
                    let rows = rows.map(|((_, field), value)| (&field[..], &value[..]));
                    hash = Hash::load(7, rows);
                }
                1 if saved.is_none() => {
                    hash.remember();
                    saved = Some(model.clone());
                }
                2 if saved.is_some() => {
                    let before = saved.take();
                    match changes.random.below(2) {
                        0 => hash.keep(),
                        _ => {
                            hash.undo();
                            model = before.unwrap();
                        }
                    }
                }
                3..=9 => {
                    let before = model.remove(&name);
                    assert_eq!(hash.remove(&name).map(Vec::from), before);
                }
                _ => {
                    let value = changes.name(500);
                    let new = model.insert(name.clone(), value.clone()).is_none();
                    assert_eq!(hash.insert(&name, &value), new);
                }
            }
            let name = changes.name(different);
            assert_eq!(hash.get(&name), model.get(&name).map(|value| &value[..]));
            assert_eq!(hash.len(), model.len());
        }
        let all = hash.iter().map(|(field, value)| (field.to_vec(), value.to_vec()));
        assert_eq!(all.collect::<BTreeMap<_, _>>(), model, "seed {seed}");
        (0..hash.len()).for_each(|at| assert_eq!(hash.at(at), hash.iter().nth(at)));
    }
}

#[test]
fn a_set_is_what_its_model_is() {
    for seed in 0..60 {
        let mut changes = Changes::new(seed);
        let different = [5, 60, 700][seed as usize % 3];
        let only_ints = seed % 2 == 0;
        let (mut set, mut model) = (Set::default(), BTreeSet::new());
        set.set_kid(7);
        let mut saved = None;
        for round in 0..2_000 {
            let mut name = changes.name(different);
            if only_ints && round < 1_500 {
                name = (changes.random.below(different * 2) as i64 - 50).to_string().into_bytes();
            }
            match changes.random.below(20) {
                0 if saved.is_none() => {
                    set.drain(&mut changes.tables);
                    set = Set::load(7, changes.tables.set.keys().map(|(_, member)| &member[..]));
                }
                1 if saved.is_none() => {
                    set.remember();
                    saved = Some(model.clone());
                }
                2 if saved.is_some() => {
                    let before = saved.take();
                    match changes.random.below(2) {
                        0 => set.keep(),
                        _ => {
                            set.undo();
                            model = before.unwrap();
                        }
                    }
                }
                3..=7 => assert_eq!(set.remove(&name), model.remove(&name)),
                _ => assert_eq!(set.insert(&name), model.insert(name.clone())),
            }
            let name = changes.name(different);
            assert_eq!(set.contains(&name), model.contains(&name));
            assert_eq!(set.len(), model.len());
        }
        let all = set.iter().map(|member| member.to_vec());
        assert_eq!(all.collect::<BTreeSet<_>>(), model, "seed {seed}");
        let each = (0..set.len()).map(|at| set.at(at).unwrap().to_vec());
        assert_eq!(each.collect::<BTreeSet<_>>(), model);
    }
}

#[test]
fn a_copy_is_written_whole() {
    let mut tables = Tables::default();
    let mut set = Set::of(["a", "b", "3"]);
    set.set_kid(1);
    set.drain(&mut tables);
    assert!(tables.set.is_empty(), "nobody has said that it is new");
    set.renew();
    set.drain(&mut tables);
    assert_eq!(tables.set.len(), 3);
    let rows: &mut dyn Rows = &mut tables;
    rows.set_delete(1, b"a");
    set.drain(rows);
    assert_eq!(tables.set.len(), 2, "what has not changed is not written again");
}

#[test]
fn a_set_never_goes_back_to_a_smaller_encoding() {
    let mut rig = Rig::new();
    let fill = |rig: &mut Rig, key: &str, prefix: &str, count: usize| {
        for n in 0..count {
            rig.run(&format!("SADD {key} {prefix}{n}"));
        }
    };
    fill(&mut rig, "ints", "", 512);
    rig.check("OBJECT ENCODING ints", "\"intset\"");
    rig.check("SADD ints 1000", "1");
    rig.check("OBJECT ENCODING ints", "\"hashtable\"");
    rig.check("SREM ints 1000", "1");
    rig.check("OBJECT ENCODING ints", "\"hashtable\"");
    fill(&mut rig, "few", "", 128);
    rig.check("SREM few 0", "1");
    rig.check("SADD few x", "1");
    rig.check("OBJECT ENCODING few", "\"listpack\"");
    rig.check("SADD few y", "1");
    rig.check("OBJECT ENCODING few", "\"hashtable\"");
    fill(&mut rig, "some", "m", 128);
    rig.check("OBJECT ENCODING some", "\"listpack\"");
    rig.check("SREM some m0", "1");
    rig.check(&format!("SADD some {}", "x".repeat(65)), "1");
    rig.check("OBJECT ENCODING some", "\"hashtable\"");
}

fn elements(reply: &str) -> (u64, Vec<String>) {
    let inner = reply.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("]]")).unwrap();
    let (cursor, rest) = inner.split_once("\" [").unwrap();
    let words = rest.split(' ').filter(|word| !word.is_empty());
    (cursor.parse().unwrap(), words.map(|word| word.trim_matches('"').to_owned()).collect())
}

#[test]
fn a_scan_tells_what_stays_though_all_else_changes() {
    for (add, scan, remove, width) in
        [("SADD k", "SSCAN", "SREM k", 1), ("HSET k", "HSCAN", "HDEL k", 2)]
    {
        let mut rig = Rig::new();
        let value = if width == 2 { " v" } else { "" };
        (0..700).for_each(|n| drop(rig.run(&format!("{add} stay{n}{value}"))));
        let (mut cursor, mut told, mut calls) = (0, HashMap::<String, usize>::new(), 0);
        loop {
            let (next, found) = elements(&rig.run(&format!("{scan} k {cursor} COUNT 20")));
            for name in found.iter().step_by(width) {
                *told.entry(name.clone()).or_default() += 1;
            }
            calls += 1;
            for n in 0..40 {
                match calls % 4 {
                    0 => rig.run(&format!("{remove} other{}", (calls - 3) * 40 + n)),
                    _ => rig.run(&format!("{add} other{}{value}", calls * 40 + n)),
                };
            }
            if calls % 5 == 0 {
                rig.forget();
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        assert!((0..700).all(|n| told.contains_key(&format!("stay{n}"))), "{scan}");
        assert!(calls > 10, "it was told in pieces");
    }
}

#[test]
fn small_collections_are_told_in_one_go() {
    let mut rig = Rig::new();
    (0..100).for_each(|n| drop(rig.run(&format!("SADD s m{n}"))));
    let (cursor, found) = elements(&rig.run("SSCAN s 0 COUNT 3"));
    assert_eq!((cursor, found.len()), (0, 100));
    (0..500).for_each(|n| drop(rig.run(&format!("SADD ints {n}"))));
    let (cursor, found) = elements(&rig.run("SSCAN ints 99 COUNT 3"));
    assert_eq!((cursor, found.len()), (0, 500));
}

#[test]
fn random_members_are_fair_and_different() {
    let mut rig = Rig::new();
    for key in ["SADD ints", "SADD few a", "SADD many"] {
        let letter = if key.ends_with('s') { "" } else { "x" };
        let count = if key.ends_with("many") { 300 } else { 10 };
        (0..count).for_each(|n| drop(rig.run(&format!("{key} {letter}{n}"))));
    }
    for (key, len) in [("ints", 10), ("few", 11), ("many", 300)] {
        let mut seen = BTreeSet::new();
        for _ in 0..20 {
            let drawn = rig.run(&format!("SRANDMEMBER {key} -200"));
            seen.extend(drawn.trim_matches(['[', ']']).split(' ').map(str::to_owned));
        }
        assert_eq!(seen.len(), len, "{key}");
        for count in [1, len / 3, len - 1, len, len + 5] {
            let drawn = rig.run(&format!("SRANDMEMBER {key} {count}"));
            let drawn: Vec<&str> = drawn.trim_matches(['[', ']']).split(' ').collect();
            let different: BTreeSet<&str> = drawn.iter().copied().collect();
            assert_eq!((drawn.len(), different.len()), (count.min(len), count.min(len)), "{key}");
        }
        let mut popped = BTreeSet::new();
        for count in ["", " 2", " 1", " 5"] {
            let reply = rig.run(&format!("SPOP {key}{count}"));
            popped.extend(reply.trim_matches(['~', '[', ']']).split(' ').map(str::to_owned));
        }
        assert_eq!(popped.len(), 9);
        rig.reads(&format!("SCARD {key}"), &(len - 9).to_string());
        rig.run(&format!("SPOP {key} 1000"));
        rig.reads(&format!("GET {key}"), "(nil)");
    }
}
