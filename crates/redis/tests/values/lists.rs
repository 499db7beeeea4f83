//! Lists.

use redis::random::Random;
use redis::value::{List, Tracked};

use crate::rig::Tables;

/// Writes what has changed to the tables; gives how many rows that were.
fn drain(list: &mut List, tables: &mut Tables) -> usize {
    let mut written = Tables::default();
    list.drain(&mut written);
    let (first, last) = list.ends();
    let count = written.list.len();
    tables.list.extend(written.list);
    tables.list.retain(|(_, pos), _| (first..=last).contains(pos));
    count
}

fn loaded(list: &List, tables: &Tables) -> List {
    let rows: Vec<&[u8]> = tables.list.values().map(|value| &value[..]).collect();
    let first = tables.list.keys().next().map_or(list.ends().0, |(_, pos)| *pos);
    assert!(rows.is_empty() || first == list.ends().0);
    List::load(list.kid(), first, rows)
}

fn contents(list: &List) -> Vec<Vec<u8>> {
    list.iter().map(<[u8]>::to_vec).collect()
}

fn change(list: &mut List, model: &mut Vec<Vec<u8>>, random: &mut Random) {
    let element = random.below(5).to_string().into_bytes();
    let at = random.below(model.len());
    match random.below(9) {
        0 | 1 => {
            list.push_front(&element);
            model.insert(0, element);
        }
        2 | 3 => {
            list.push_back(&element);
            model.push(element);
        }
        4 if !model.is_empty() => {
            assert_eq!(list.pop_front().as_deref(), Some(&model.remove(0)[..]));
        }
        5 => assert_eq!(list.pop_back().map(Vec::from), model.pop()),
        6 if !model.is_empty() => {
            assert!(list.set(at, &element));
            model[at] = element;
        }
        7 => {
            list.insert(at, &element);
            model.insert(at, element);
        }
        8 => {
            let places: Vec<usize> = match random.below(2) {
                0 => (0..model.len()).filter(|at| model[*at] == element).collect(),
                _ => (0..model.len()).filter(|at| *at == 3 || *at % 7 == 5).collect(),
            };
            list.remove(&places);
            places.iter().rev().for_each(|at| drop(model.remove(*at)));
        }
        _ => {}
    }
}

#[test]
fn rows_are_what_a_list_is_and_undoing_gives_back_what_was() {
    let mut random = Random::new(7);
    for _ in 0..200 {
        let (mut list, mut model, mut tables) = (List::default(), Vec::new(), Tables::default());
        for _ in 0..40 {
            let undone = random.below(3) == 0;
            let (before, weight) = (model.clone(), list.weight());
            if undone {
                list.remember();
            }
            for _ in 0..random.below(6) {
                change(&mut list, &mut model, &mut random);
            }
            if undone && random.below(2) == 0 {
                list.undo();
                assert_eq!(list.weight(), weight);
                model = before;
            } else if undone {
                list.keep();
            }
            assert_eq!(contents(&list), model);
            if random.below(2) == 0 {
                drain(&mut list, &mut tables);
                assert_eq!(contents(&loaded(&list, &tables)), model);
                assert_eq!(loaded(&list, &tables).weight(), list.weight());
            }
        }
    }
}

#[test]
fn a_change_in_the_middle_writes_the_shorter_side() {
    let mut tables = Tables::default();
    let mut list = List::default();
    (0..1000).for_each(|n: u32| list.push_back(&n.to_le_bytes()));
    assert_eq!(drain(&mut list, &mut tables), 1000);
    list.insert(10, b"x");
    assert_eq!(drain(&mut list, &mut tables), 11);
    list.insert(990, b"y");
    assert_eq!(drain(&mut list, &mut tables), 12);
    list.remove(&[10]);
    assert_eq!(drain(&mut list, &mut tables), 10);
    list.remove(&[995]);
    assert_eq!(drain(&mut list, &mut tables), 5);
    list.remove(&[3, 5, 997]);
    assert_eq!(drain(&mut list, &mut tables), 4 + 2, "the long run between stays");
    let places: Vec<usize> = (0..100).chain(900..990).collect();
    list.remove(&places);
    assert_eq!(drain(&mut list, &mut tables), list.len() - 800, "trimmed without a row");
    assert_eq!(contents(&loaded(&list, &tables)), contents(&list));
}

#[test]
fn undoing_a_pop_of_a_huge_list_touches_nothing_else() {
    let mut tables = Tables::default();
    let mut list = List::default();
    (0..100_000).for_each(|n: u32| list.push_back(&n.to_le_bytes()));
    drain(&mut list, &mut tables);
    list.remember();
    list.pop_front();
    list.push_back(b"x");
    list.push_front(b"y");
    list.undo();
    assert_eq!(drain(&mut list, &mut tables), 1, "the element that another was put upon");
    assert_eq!(list.get(0), Some(&0u32.to_le_bytes()[..]));
    assert_eq!(contents(&loaded(&list, &tables)), contents(&list));
}
