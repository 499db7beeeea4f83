//! `coalesce_writes`: whoever is told that a write is done may rely on it, whatever happens to
//! PostgreSQL; and each write is done once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use wire::pg::backend::tag;
use wire::pg::frontend;

use super::crowd::{counters, explained, patient, Crowd};
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, WireClient};
use crate::traps::batch::{tags, Batch};
use crate::traps::servers::direct;

const TABLES: &str = "
    create table written(
        id bigint generated always as identity, mark text unique, n int check (n >= 0));
    create table parent(id int primary key);
    insert into parent values (1);
    create table child(id int references parent, mark text);
    create table counter(id int primary key, n int not null);
    insert into counter select g, 0 from generate_series(1, 100) g;
";

fn insert(mark: &str, n: i32) -> Batch {
    let sql =
        format!("insert into written(mark, n) values ('{mark}', {n}) returning mark, n, id > 0");
    Batch::new().query(&sql)
}

/// Repeats an insert with new marks until it travels in trains.
#[track_caller]
fn learn_insert(client: &mut WireClient, make: impl Fn(&str, i32) -> Batch) {
    let mut serial = 0;
    wait::until("inserts to travel in trains", || {
        serial += 1;
        make(&format!("teacher {serial}"), 0).answer(client);
        explained(client)[1].starts_with("Way: train")
    });
}

fn trains(config: Config) -> Config {
    config.set("pool.coalesce_writes", true)
}

#[test]
fn every_passenger_of_a_train_gets_its_own_answer() {
    let mut crowd = Crowd::start(12, TABLES, trains);
    learn_insert(&mut crowd.clients[0], insert);
    let before = crowd.counters();
    for round in 0..5 {
        let batches: Vec<Batch> = (0..12)
            .map(|number| match number {
                3 => insert(&format!("{round}"), -7),
                8 => insert("teacher 1", 1),
                _ => insert(&format!("{round}/{number}"), number),
            })
            .collect();
        let answers = crowd.together_by("train", &batches);
        for (number, answer) in answers.iter().enumerate() {
            let error = answer.iter().find(|message| message.tag == tag::ERROR);
            match number {
                3 => {
                    let error = error.expect("an error").complaint();
                    assert_eq!(error.code, "23514");
                    assert!(error.detail.contains(&format!(", {round}, -7)")), "{error:?}");
                }
                8 => {
                    let error = error.expect("an error").complaint();
                    assert_eq!(error.code, "23505");
                    assert_eq!(error.detail, "Key (mark)=(teacher 1) already exists.");
                }
                _ => {
                    assert_eq!(tags(answer), "TDCZ", "{answer:?}");
                    let expected = [format!("{round}/{number}"), number.to_string(), "t".into()];
                    assert_eq!(answer[1].values(), expected.map(Some));
                }
            }
        }
    }
    let after = crowd.counters();
    assert_eq!(after["trained"] - before["trained"], 60, "{before:?} {after:?}");
    let rows = "select count(*) || '/' || count(distinct mark) from written where mark like '%/%'";
    assert_eq!(crowd.database.one(rows), "50/50");
}

#[test]
fn updates_deletes_and_violations_in_trains_are_those_of_postgresql() {
    let mut crowd = Crowd::start(6, TABLES, trains);
    let writes = [
        "update counter set n = n + 1 where id = 7 returning n",
        "delete from counter where id = 99",
        "insert into child values (1, 'a') returning *",
        "insert into counter values (1, 5) on conflict (id) do update set n = 1000 returning n",
    ];
    for sql in writes {
        crowd.learn(&Batch::new().query(sql), "train");
    }
    crowd.database.run("update counter set n = 0");
    let batches: Vec<Batch> = writes
        .iter()
        .chain(&["insert into child values (2, 'b') returning *", writes[0]])
        .map(|sql| Batch::new().query(sql))
        .collect();
    let answers = crowd.together_by("train", &batches);
    let row = |at: usize| answers[at][1].values();
    assert_eq!(row(0), [Some("1".to_owned())]);
    assert_eq!(answers[1][0].command_tag(), "DELETE 0");
    assert_eq!(row(2), ["1", "a"].map(|text| Some(text.to_owned())));
    assert_eq!(row(3), [Some("1000".to_owned())]);
    let error = answers[4].iter().find(|message| message.tag == tag::ERROR).expect("an error");
    assert_eq!(error.complaint().code, "23503");
    assert_eq!(error.complaint().detail, "Key (id)=(2) is not present in table \"parent\".");
    assert_eq!(row(5), [Some("2".to_owned())]);
    // The session is as it was: nobody inherits the settings of a train.
    let mut client = crowd.gateway.client(&crowd.database);
    assert_eq!(client.one("show synchronous_commit"), "on");
    assert_eq!(client.one("show lock_timeout"), "0");
}

#[test]
fn counters_in_trains_lose_nothing_under_contention() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 60;
    let database = cluster().database();
    direct(&database).run(TABLES);
    let config =
        trains(patient(&database)).set("pool.pool_size", 4).set("pool.coalesce_stall", "20ms");
    let gateway = Gateway::start(config);
    super::crowd::learn(
        &mut gateway.client(&database),
        &Batch::new().query("update counter set n = n + 1 where id = 100"),
        "train",
    );
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = gateway.client(&database);
            std::thread::spawn(move || {
                for serial in 0..ROUNDS {
                    let id = (number + serial) % 3 + 1;
                    if serial % 10 == 9 {
                        // Holds a row while others in trains want it.
                        client.run("begin; select 1");
                        client.run(&format!("update counter set n = n + 1 where id = {id}"));
                        client.run("commit");
                    } else {
                        client.run(&format!("update counter set n = n + 1 where id = {id}"));
                    }
                }
                client.terminate();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a client"));
    let sum = database.one("select sum(n) from counter where id <= 3");
    assert_eq!(sum, (CLIENTS * ROUNDS).to_string());
    let counted = counters(&gateway, &database);
    assert!(counted["trained"] > counted["trips"] / 2, "{counted:?}");
}

/// What one client has been told.
struct Told {
    done: Vec<String>,
    refused: usize,
}

/// Inserts until `stop`; logs in again as often as it must.
fn writer(
    number: usize,
    round: usize,
    address: Address,
    database: String,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
) -> Told {
    let mut told = Told { done: Vec::new(), refused: 0 };
    let mut serial = 0;
    let parameters = [("user", APP), ("database", database.as_str())];
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = WireClient::try_login(&address, APP_PASSWORD, &parameters) else {
            std::thread::yield_now();
            continue;
        };
        'connected: while !stop.load(Ordering::Relaxed) {
            serial += 1;
            let mark = format!("{round}/{number}/{serial}");
            let sql = format!("insert into written(mark, n) values ('{mark}', 0)");
            let mut bytes = Vec::new();
            frontend::put_query(&mut bytes, &sql);
            if client.try_send(&bytes).is_err() {
                break 'connected;
            }
            loop {
                let Some(message) = client.try_message_or_cut() else { break 'connected };
                match message.tag {
                    tag::COMMAND_COMPLETE => {
                        told.done.push(mark.clone());
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                    tag::ERROR => told.refused += 1,
                    tag::READY_FOR_QUERY => break,
                    _ => {}
                }
            }
        }
    }
    told
}

/// With `alter role app set synchronous_commit = off`, which acknowledges too early, it loses a
/// hundred writes in the first round.
#[test]
fn no_acknowledged_write_of_a_train_is_lost_in_a_crash() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 3;
    // What nobody waits for reaches the disk late.
    let settings = ["fsync = on", "wal_writer_delay = '10s'", "wal_writer_flush_after = 0"];
    let own = Cluster::start("crash", &settings);
    own.superuser("postgres").run("create database crashed owner app");

    let straight = || WireClient::login(&own.address(), APP, APP_PASSWORD, "crashed");
    straight().run(TABLES);
    let database = Database { name: "crashed".to_owned() };
    let config = trains(patient(&database))
        .set("databases.crashed.port", i64::from(own.port))
        .set("auth.method", "md5")
        .set("pool.pool_size", 2);
    let gateway = Gateway::start(config);
    let mut done: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let mut teacher = gateway.client(&database);
        let plain = |mark: &str, n: i32| {
            let mark = format!("{round} {mark}");
            Batch::new().query(&format!("insert into written(mark, n) values ('{mark}', {n})"))
        };
        learn_insert(&mut teacher, plain);
        let trained = counters(&gateway, &database)["trained"];
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (stop, acknowledged) = (stop.clone(), acknowledged.clone());
                let (address, name) = (gateway.address(), database.name.clone());
                std::thread::spawn(move || writer(number, round, address, name, stop, acknowledged))
            })
            .collect();
        wait::until("many acknowledged writes", || acknowledged.load(Ordering::Relaxed) > 500);
        own.crash();
        stop.store(true, Ordering::Relaxed);
        own.launch();
        for thread in threads {
            done.extend(thread.join().expect("a writer").done);
        }
        let counted = counters(&gateway, &database);
        assert!(counted["trained"] > trained + 250, "{counted:?}");
        let rows = straight().rows("select mark from written");
        let rows: Vec<String> = rows.into_iter().flatten().flatten().collect();
        let kept: HashSet<&String> = rows.iter().collect();
        assert_eq!(kept.len(), rows.len(), "none twice");
        let lost: Vec<&String> = done.iter().filter(|mark| !kept.contains(mark)).collect();
        assert!(
            lost.is_empty(),
            "{} of {} acknowledged are lost: {lost:?}",
            lost.len(),
            done.len()
        );
    }
}
