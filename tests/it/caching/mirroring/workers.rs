//! Several workers answer from one mirror.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use super::super::place::{Cached, Place, Rows};
use super::{Ends, Mirrored};
use crate::kit::WireClient;

const SET_UP: &str = "create table t(id int primary key, n int not null, s text);
    insert into t select g, 0, 'x' || g from generate_series(1, 1000) g";

const POINT: &str = "select n from t where id = 1 and id < {}";
const RANGE: &str = "select max(n), count(*) from t where id between 1 and 10 and n < {}";

/// Many enough that no worker is left without some.
const CLIENTS: usize = 16;

/// Of them, those that read while somebody writes.
const READERS: usize = 6;
const WRITES: i64 = 100;

/// Reads beside these writes that a mirror answers.
const HITS: usize = 30;

fn start(workers: i64) -> (Place, Vec<WireClient>) {
    let place = Place::start_with(SET_UP, |config| config.set("runtime.workers", workers));
    place.client().run("mirror table t");
    let clients: Vec<WireClient> = (0..CLIENTS).map(|_| place.client()).collect();
    let rows = place.gateway.show("clients");
    // As SHOW CLIENTS points to them: 0xc1, the worker, and more.
    let workers: HashSet<String> = rows.iter().map(|row| row["ptr"][4..6].to_owned()).collect();
    assert!(workers.len() > 1, "all clients have one worker: {workers:?}");
    (place, clients)
}

/// One mirror, copied once.
fn is_alone(place: &Place) {
    let rows = place.gateway.show("mirrors");
    let states: Vec<&str> = rows.iter().map(|row| row["state"].as_str()).collect();
    assert_eq!(states, ["ready"]);
    assert_eq!(place.gateway.said().text().matches("mirror_copied").count(), 1);
    assert_eq!(place.figure("mismatches_total"), 0);
}

fn seen(n: i64) -> Rows {
    vec![vec![Some(n.to_string()), Some("10".to_owned())]]
}

#[test]
fn clients_of_all_workers_are_answered_by_one_mirror_and_see_each_other_s_writes() {
    for workers in [2, 4] {
        let (place, mut clients) = start(workers);
        for client in &mut clients {
            for read in [POINT, RANGE] {
                client.mirror(read);
            }
        }
        let mut hits = [0; CLIENTS];
        for n in 1..=2 * CLIENTS as i64 {
            let writer = n as usize % CLIENTS;
            clients[writer].run(&format!("update t set n = {n} where id = 1"));
            for (at, client) in clients.iter_mut().enumerate() {
                let point = client.unheard_one(POINT);
                let hit = client.was_hit();
                assert_eq!(point, n.to_string(), "{at} behind a write of {writer}, hit: {hit}");
                let range = client.unheard_rows(RANGE);
                let again = client.was_hit();
                assert_eq!(range, seen(n), "{at} behind a write of {writer}, hit: {again}");
                hits[at] += usize::from(hit) + usize::from(again);
            }
        }
        assert!(hits.iter().all(|hits| *hits > 0), "some are never answered by it: {hits:?}");
        is_alone(&place);
    }
}

#[test]
fn what_a_client_of_one_worker_was_told_all_others_see_from_then_on() {
    let (place, clients) = start(4);
    let (told, stop) = (AtomicI64::new(0), AtomicBool::new(false));
    let hits = AtomicUsize::new(0);
    let mut writer = place.client();
    std::thread::scope(|scope| {
        let ends = Ends(&stop);
        let readers = clients.into_iter().take(READERS).map(|mut reader| {
            let (told, stop, hits) = (&told, &stop, &hits);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let least = told.load(Ordering::SeqCst);
                    let rows = reader.unheard_rows(RANGE);
                    let hit = reader.was_hit();
                    let n: i64 = rows[0][0].as_ref().expect("a number").parse().expect("a number");
                    assert!(n >= least, "{n} where {least} was told, hit: {hit}");
                    hits.fetch_add(usize::from(hit), Ordering::Relaxed);
                }
            })
        });
        let readers: Vec<_> = readers.collect();
        // How many reads find the mirror up to date is up to the machine.
        let enough = |n: i64| n > WRITES && hits.load(Ordering::Relaxed) >= HITS;
        for n in (1..=50 * WRITES).take_while(|n| !enough(*n)) {
            writer.run(&format!("update t set n = {n} where id = 1"));
            told.store(n, Ordering::SeqCst);
        }
        drop(ends);
        readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
    });
    let hits = hits.into_inner();
    assert!(hits >= HITS, "only {hits} answers by mirrors");
    place.mirrors_again(&[POINT, RANGE], "many writes");
    is_alone(&place);
}
