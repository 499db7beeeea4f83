//! One of many fails, is cancelled or loses its server: it is told so, and nobody else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use wire::pg::backend::tag;
use wire::pg::frontend;

use super::crowd::{counters, learn, patient, Crowd};
use crate::kit::{cluster, wait, Gateway, WireClient};
use crate::traps::batch::Batch;
use crate::traps::servers::direct;

const TABLES: &str = "
    create table numbers(id int primary key, n int);
    insert into numbers select g, g from generate_series(0, 999) g;
    create table gate(id int primary key);
    insert into gate values (1);
    create function slow(n int) returns int language plpgsql stable as
        $$ begin if n < 0 then perform pg_sleep(60); end if; return n; end $$;
    create table written(id bigint generated always as identity, mark text unique,
                         n int check (n >= 0));
";

/// The mark of client `number`'s query `serial`, and a divisor that is zero for one of ten.
fn marked(number: usize, serial: usize) -> (String, i32) {
    let fails = (number * 7 + serial * 3) % 10 == 0;
    (format!("client {number}, query {serial}"), i32::from(!fails))
}

fn one_of_ten_fails(coalesce: &str, prepare_simple: bool) {
    const CLIENTS: usize = 30;
    const ROUNDS: usize = 60;
    let database = cluster().database();
    direct(&database).run(TABLES);
    let config = patient(&database)
        .set("pool.pool_size", 3)
        .set("pool.coalesce", coalesce)
        .set("pool.prepare_simple", prepare_simple);
    let gateway = Gateway::start(config);
    // Those of one kind have the same shape for all clients.
    let sql = |mark: &str, divisor: i32| {
        format!("select '{mark}' as mark, 10 / n from numbers where n = {divisor}")
    };
    learn(&mut gateway.client(&database), &Batch::new().query(&sql("none", 1)), coalesce);
    let prepared = "select $1::text, 10 / n from numbers where n = $2";
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = gateway.client(&database);
            std::thread::spawn(move || {
                let ready = Batch::new().parse("s", prepared).sync().answer(&mut client);
                assert_eq!(ready.len(), 2);
                for serial in 0..ROUNDS {
                    let (mark, divisor) = marked(number, serial);
                    let text = divisor.to_string();
                    let batch = match (number + serial / 20) % 3 {
                        0 => Batch::new().query(&sql(&mark, divisor)),
                        1 => Batch::new().bind("s", &[&mark, &text]).execute().sync(),
                        _ => {
                            let batch = Batch::new().parse("", &sql(&mark, divisor));
                            batch.bind("", &[]).describe_portal("").execute().sync()
                        }
                    };
                    let answer = batch.answer(&mut client);
                    let error = answer.iter().find(|message| message.tag == tag::ERROR);
                    let row = answer.iter().find(|message| message.tag == tag::DATA_ROW);
                    let ready = answer.iter().filter(|m| m.tag == tag::READY_FOR_QUERY).count();
                    assert_eq!(ready, 1, "{answer:?}");
                    if divisor == 0 {
                        assert_eq!(error.expect("an error").complaint().code, "22012", "{mark}");
                        assert!(row.is_none(), "{mark}: {answer:?}");
                    } else {
                        assert!(error.is_none(), "{mark}: {answer:?}");
                        let expected = [Some(mark.clone()), Some("10".to_owned())];
                        assert_eq!(row.expect("a row").values(), expected);
                    }
                }
                client.terminate();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a client"));
    let counted = counters(&gateway, &database);
    assert!(counted["joined"] > (CLIENTS * ROUNDS) as u64 / 4, "{counted:?}");
    assert_eq!(counted["lost"], 0, "{counted:?}");
}

#[test]
fn one_of_ten_fails_and_everybody_gets_his_own_answer() {
    one_of_ten_fails("batch", true);
    one_of_ten_fails("batch", false);
    one_of_ten_fails("pipeline", true);
}

#[test]
fn those_behind_a_failure_in_a_batch_are_sent_again() {
    let mut crowd = Crowd::start(10, TABLES, |config| config);
    let ask = |n: usize| {
        let batch = Batch::new().parse("", "select 10 / n from numbers where id = $1");
        batch.bind("", &[&n.to_string()]).execute().sync()
    };
    crowd.learn(&ask(1), "batch");
    for round in 0..5 {
        let batches: Vec<Batch> = (0..10).map(|n| ask((n + 10 - round) % 10)).collect();
        let before = crowd.counters();
        let answers = crowd.together(&batches);
        let after = crowd.counters();
        for (at, answer) in answers.iter().enumerate() {
            let n = (at + 10 - round) % 10;
            match answer.iter().find(|message| message.tag == tag::DATA_ROW) {
                Some(row) => assert_eq!(row.values()[0], Some((10 / n).to_string())),
                None => assert_eq!((n, answer[2].complaint().code.as_str()), (0, "22012")),
            }
        }
        let skipped = after["skipped"] - before["skipped"];
        assert_eq!(skipped, 9 - round as u64, "those behind it: {before:?} {after:?}");
        assert_eq!(after["joined"] - before["joined"], 10, "{before:?} {after:?}");
        // So that it is not found to fail often.
        (0..10).for_each(|_| drop(crowd.together(&[ask(1), ask(2)])));
    }
}

/// Client 0 waits inside PostgreSQL, the others stand behind it on the same server.
fn one_is_cancelled(coalesce: &str) {
    let mut crowd = Crowd::start(6, TABLES, |config| config.set("pool.coalesce", coalesce));
    let ask = |n: i32| {
        let batch = Batch::new().parse("", "select slow(n - $1) from numbers where id = 5");
        batch.bind("", &[&n.to_string()]).execute().sync()
    };
    crowd.learn(&ask(1), coalesce);
    let address = crowd.gateway.address();
    // The one that runs, then one that stands behind it.
    for cancelled in [0, 3] {
        let before = crowd.counters();
        crowd.hold();
        for (number, client) in crowd.clients.iter_mut().enumerate() {
            // The first of them sleeps.
            ask(if number == 0 { 6 } else { -(number as i32) }).to(client);
        }
        crowd.gathered(6);
        crowd.release();
        wait::until("the statement to sleep", || {
            let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and \
                          datname = current_database()";
            crowd.database.one(sleeps) == "1"
        });
        crowd.clients[cancelled].cancel(&address);
        let error = crowd.clients[cancelled].until_ready();
        let error = error.iter().find(|message| message.tag == tag::ERROR).expect("an error");
        assert_eq!(error.complaint().code, "57014");
        if cancelled != 0 {
            crowd.clients[0].cancel(&address);
            let sleeper = crowd.clients[0].until_ready();
            assert!(sleeper.iter().any(|message| message.tag == tag::ERROR), "{sleeper:?}");
        }
        for number in (1..6).filter(|number| *number != cancelled) {
            let answer = crowd.clients[number].until_ready();
            let row = answer.iter().find(|message| message.tag == tag::DATA_ROW);
            let row = row.unwrap_or_else(|| panic!("client {number}: {answer:?}"));
            assert_eq!(row.values()[0], Some((5 + number).to_string()));
        }
        let after = crowd.counters();
        assert!(after["joined"] - before["joined"] >= 4, "{before:?} {after:?}");
        assert!(crowd.clients.iter_mut().all(|client| client.one("select 1") == "1"));
    }
}

#[test]
fn a_cancel_meets_its_own_statement_in_a_batch() {
    one_is_cancelled("batch");
}

#[test]
fn a_cancel_meets_its_own_statement_in_a_pipeline() {
    one_is_cancelled("pipeline");
}

/// Ends one server after the other that works in the database, until `stop`.
fn killer(database: &str, stop: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let mut superuser = cluster().superuser("postgres");
    let kill = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where datname = '{database}' and usename = 'app' and state = 'active' limit 1"
    );
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            superuser.run(&kill);
            std::thread::yield_now();
        }
    })
}

#[test]
fn reads_behind_one_whose_server_is_lost_are_answered() {
    let mut crowd = Crowd::start(8, TABLES, |config| config.set("pool.pool_size", 1));
    let ask = |n: i32| {
        let batch = Batch::new().parse("", "select slow(n - $1) from numbers where id = 5");
        batch.bind("", &[&n.to_string()]).execute().sync()
    };
    crowd.learn(&ask(1), "batch");
    let before = crowd.counters();
    crowd.hold();
    // The first of them sleeps.
    for (number, client) in crowd.clients.iter_mut().enumerate() {
        let sql = ask(if number == 0 { 6 } else { -(number as i32) });
        sql.to(client);
    }
    crowd.gathered(8);
    crowd.release();
    wait::until("the sleeping server to be ended", || {
        let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                   where wait_event = 'PgSleep' and datname = current_database()";
        crowd.database.one(end) == "1"
    });
    // Its answer had begun when it was ended: PostgreSQL sends what it has, and its last words.
    let told = std::iter::from_fn(|| crowd.clients[0].try_message_or_cut());
    let told: Vec<_> = told.filter(|message| message.tag == tag::ERROR).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].complaint().code, "57P01");
    for number in 1..8 {
        let answer = crowd.clients[number].until_ready();
        let row = answer.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
        assert_eq!(row.values()[0], Some((5 + number).to_string()));
    }
    let after = crowd.counters();
    let grown = |name: &str| after[name] - before[name];
    assert!(grown("lost") + grown("skipped") >= 7, "{before:?} {after:?}");
}

#[test]
fn writes_on_a_server_that_is_lost_are_told_so_and_none_is_done_twice() {
    const CLIENTS: usize = 12;
    let database = cluster().database();
    direct(&database).run(TABLES);
    let config = patient(&database).set("pool.pool_size", 2).set("pool.coalesce_writes", true);
    let gateway = Gateway::start(config);
    let insert =
        |mark: &str| Batch::new().query(&format!("insert into written(mark) values ('{mark}')"));
    let mut teacher = gateway.client(&database);
    let mut serial = 0;
    wait::until("the insert to travel in trains", || {
        serial += 1;
        insert(&format!("teacher {serial}")).answer(&mut teacher);
        super::crowd::explained(&mut teacher)[1].starts_with("Way: train")
    });
    let stop = Arc::new(AtomicBool::new(false));
    let killer = killer(&database.name, stop.clone());
    let lost = Arc::new(AtomicUsize::new(0));
    let address = gateway.address();
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (address, database) = (address.clone(), database.name.clone());
            let (stop, lost) = (stop.clone(), lost.clone());
            std::thread::spawn(move || {
                use crate::kit::cluster::{APP, APP_PASSWORD};
                let login = || WireClient::login(&address, APP, APP_PASSWORD, &database);
                let (mut client, mut done) = (login(), Vec::new());
                for serial in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let mark = format!("{number}/{serial}");
                    let sql = format!("insert into written(mark) values ('{mark}')");
                    client.put(|out| frontend::put_query(out, &sql));
                    let mut failed = None;
                    let complete = loop {
                        let Some(message) = client.try_message_or_cut() else { break false };
                        match message.tag {
                            tag::ERROR => failed = Some(message.complaint().code),
                            tag::COMMAND_COMPLETE => done.push(mark.clone()),
                            tag::READY_FOR_QUERY => break true,
                            _ => {}
                        }
                    };
                    if let Some(code) = &failed {
                        assert!(
                            ["08006", "08007", "57P01"].contains(&code.as_str()),
                            "{mark}: {code}"
                        );
                    }
                    if !complete {
                        assert!(failed.is_some(), "{mark}: closed without a word");
                        lost.fetch_add(1, Ordering::Relaxed);
                        client = login();
                    }
                }
                done
            })
        })
        .collect();
    wait::until("clients that lose their servers", || lost.load(Ordering::Relaxed) >= 20);
    stop.store(true, Ordering::Relaxed);
    let threads = threads.into_iter();
    let done: Vec<String> = threads.flat_map(|thread| thread.join().expect("a client")).collect();
    killer.join().expect("the killer");
    let rows = direct(&database).rows("select mark from written where mark not like 'teacher%'");
    let rows: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let distinct: std::collections::HashSet<&String> = rows.iter().collect();
    assert_eq!(distinct.len(), rows.len(), "none twice");
    for mark in &done {
        assert!(distinct.contains(mark), "{mark} was acknowledged");
    }
    assert!(counters(&gateway, &database)["trained"] > 0);
}
