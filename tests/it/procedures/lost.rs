//! The server of a train is lost, or its flush does not come: who was sent is told that nobody
//! knows, nobody is acknowledged before the flush, and nothing is sent again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use wire::pg::backend::tag;

use super::books::{
    balanced, cut_off, done, lock_gate, lock_waits, on_one_train, pay, payers, paying, times,
    TABLES,
};
use crate::coalescing::crowd::Crowd;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{wait, Config, WireClient};
use crate::traps::batch::Batch;

/// Ends the server that waits so. Returns how many there were.
fn end_waiting(beside: &mut WireClient, wait_event_type: &str) -> String {
    beside.one(&format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity \
         where datname = current_database() and wait_event_type = '{wait_event_type}'"
    ))
}

/// Six calls, of which the third waits for a gate; then its server is ended.
fn lose_a_server(settings: fn(Config) -> Config) -> (Crowd, WireClient) {
    let mut crowd = payers(6, settings);
    let (mut beside, mut superuser) = (crowd.beside(), crowd.superuser());
    lock_gate(&mut beside, 1);
    let batches: Vec<Batch> =
        (0..6).map(|number| pay(&format!("t{number}"), 1, 2, 10, i32::from(number == 2))).collect();
    crowd.leave_together(&batches);
    lock_waits(&mut superuser, 1);
    assert_eq!(end_waiting(&mut superuser, "Lock"), "1");
    (crowd, beside)
}

#[test]
fn all_of_a_train_whose_server_is_lost_are_told_that_nobody_knows() {
    let (mut crowd, mut beside) = lose_a_server(|config| config);
    for client in &mut crowd.clients {
        let told = cut_off(client);
        assert_eq!((told.code.as_str(), told.severity.as_str()), ("08007", "FATAL"), "{told:?}");
    }
    beside.run("commit");
    wait::until("the pool to be idle", || crowd.pool()["sv_active"] == "0");
    let known: Vec<usize> =
        (0..6).map(|number| times(&mut beside, &format!("t{number}"))).collect();
    assert_eq!(known[2..], [0; 4], "nothing is sent again");
    balanced(&mut beside);
}

#[test]
fn with_flushes_of_their_own_only_who_was_under_way_is_lost() {
    let keyed = |config| each(paying(config));
    for settings in [each, keyed] {
        let (mut crowd, mut beside) = lose_a_server(settings);
        beside.run("commit");
        let mut lost = 0;
        for (number, client) in crowd.clients.iter_mut().enumerate() {
            let first = client.message();
            let times = times(&mut beside, &format!("t{number}"));
            if first.tag == tag::COMMAND_COMPLETE {
                client.expect(tag::READY_FOR_QUERY);
                assert_eq!(times, 1, "{number} was acknowledged");
                continue;
            }
            let told = first.complaint();
            assert_eq!(told.code, "08007", "{number}: {told:?}");
            assert!(client.until_closed().is_empty());
            assert!(number >= 2 && times == 0, "{number} is there {times} times");
            lost += 1;
        }
        assert!(lost > 0);
        balanced(&mut beside);
    }
}

fn each(config: Config) -> Config {
    config.set("procedures.\"public.pay\".durable_ack", "each")
}

/// Where commits can be made to wait for a standby that does not exist.
fn lonely() -> &'static Cluster {
    static LONELY: OnceLock<Cluster> = OnceLock::new();
    LONELY.get_or_init(|| Cluster::start("lonely", &[]))
}

/// Whoever has this one says whether commits wait.
static STANDBY: Mutex<()> = Mutex::new(());

/// From now on synchronous commits wait, or no more.
#[track_caller]
fn standby(name: &str) {
    let mut superuser = lonely().superuser("postgres");
    superuser.run(&format!("alter system set synchronous_standby_names = '{name}'"));
    superuser.run("select pg_reload_conf()");
    wait::until("PostgreSQL to have read its configuration", || {
        lonely().superuser("postgres").one("show synchronous_standby_names") == name
    });
}

/// Sessions that wait for the standby.
fn standby_waits(superuser: &mut WireClient) -> String {
    superuser.one(
        "select count(*) from pg_stat_activity \
         where datname = current_database() and wait_event = 'SyncRep'",
    )
}

/// Six calls on one train, whose flush waits for a standby.
#[track_caller]
fn held(settings: fn(Config) -> Config) -> Crowd {
    standby("");
    let settings = |config| settings(on_one_train(config, "pay"));
    let mut crowd = Crowd::start_in(lonely(), 6, TABLES, settings);
    crowd.learn(&pay("teacher", 19, 20, 0, 0), "train");
    standby("missing");
    let batches: Vec<Batch> =
        (0..6).map(|number| pay(&format!("t{number}"), 1, 2, 10, 0)).collect();
    crowd.leave_together(&batches);
    let mut superuser = crowd.superuser();
    wait::until("the flush to wait", || standby_waits(&mut superuser) == "1");
    crowd
}

const ALL: &str = "select count(*) from ledger where token like 't_'";

/// So long nothing may come.
const QUIET: Duration = Duration::from_millis(30);

#[test]
fn nobody_is_acknowledged_before_the_flush_and_all_are_behind_it() {
    let _turn = STANDBY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut crowd = held(|config| config);
    let mut superuser = crowd.superuser();
    assert_eq!(superuser.one(ALL), "6", "others see what is not safe yet");
    crowd.clients.iter_mut().for_each(|client| client.expect_silence(QUIET));
    standby("");
    for client in &mut crowd.clients {
        assert_eq!(done(&client.until_ready()), "CALL");
    }
    drop(crowd);
    // The same, and the server is ended while it waits.
    let mut crowd = held(|config| config);
    let mut superuser = crowd.superuser();
    assert_eq!(end_waiting(&mut superuser, "IPC"), "1");
    for client in &mut crowd.clients {
        let told = cut_off(client);
        assert_eq!(told.code, "08007", "{told:?}");
    }
    standby("");
    wait::until("the end of the server", || standby_waits(&mut superuser) == "0");
    assert_eq!(superuser.one(ALL), "6", "done, and nobody was told");
    balanced(&mut superuser);
    drop(crowd);
}

#[test]
fn with_a_flush_of_its_own_a_call_is_acknowledged_behind_it() {
    let _turn = STANDBY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut crowd = held(each);
    let mut superuser = crowd.superuser();
    assert_eq!(superuser.one(ALL), "0", "nobody sees what is not safe yet");
    crowd.clients.iter_mut().for_each(|client| client.expect_silence(QUIET));
    assert_eq!(end_waiting(&mut superuser, "IPC"), "1");
    let told = cut_off(&mut crowd.clients[0]);
    assert_eq!(told.code, "08007", "{told:?}");
    standby("");
    for client in &mut crowd.clients[1..] {
        assert_eq!(done(&client.until_ready()), "CALL");
    }
    assert_eq!(superuser.one(ALL), "6");
    balanced(&mut superuser);
}

/// What one client has been told.
#[derive(Default)]
struct Told {
    done: Vec<String>,
    refused: Vec<String>,
}

/// Pays until `stop`; logs in again as often as it must.
fn payer(
    number: usize,
    login: impl Fn() -> WireClient,
    stop: &AtomicBool,
    lost: &AtomicUsize,
) -> Told {
    let (mut client, mut told) = (login(), Told::default());
    for serial in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let token = format!("{number}/{serial}");
        let amount = if serial % 9 == 8 { 100_000 } else { 1 };
        let (from, to) = (1 + (number + serial) % 4, 5 + serial % 4);
        pay(&token, from as i32, to as i32, amount, 0).to(&mut client);
        let (mut complete, mut error) = (false, None);
        let ready = loop {
            let Some(message) = client.try_message_or_cut() else { break false };
            match message.tag {
                tag::COMMAND_COMPLETE => complete = true,
                tag::ERROR => error = Some(message.complaint().code),
                tag::READY_FOR_QUERY => break true,
                _ => {}
            }
        };
        match error.as_deref() {
            None => assert!(complete && ready, "{token}: no word"),
            Some("23514") => told.refused.push(token.clone()),
            Some(code) => assert!(["08006", "08007", "57P01"].contains(&code), "{token}: {code}"),
        }
        if complete && error.is_none() {
            told.done.push(token);
        }
        if !ready {
            lost.fetch_add(1, Ordering::Relaxed);
            client = login();
        }
    }
    told
}

#[test]
fn under_load_with_servers_that_are_lost_each_call_is_done_once_or_not_at_all() {
    const CLIENTS: usize = 12;
    let crowd = payers(0, |config| config.set("pool.pool_size", 3));
    let stop = Arc::new(AtomicBool::new(false));
    let lost = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (address, database) = (crowd.gateway.address(), crowd.database.name.clone());
            let (stop, lost) = (stop.clone(), lost.clone());
            std::thread::spawn(move || {
                let login = || WireClient::login(&address, APP, APP_PASSWORD, &database);
                payer(number, login, &stop, &lost)
            })
        })
        .collect();
    let mut superuser = crowd.superuser();
    wait::until("clients that lose their servers", || {
        superuser.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' \
             and datname = current_database() and state = 'active' limit 1",
        );
        lost.load(Ordering::Relaxed) >= 20
    });
    stop.store(true, Ordering::Relaxed);
    let threads = threads.into_iter();
    let told: Vec<Told> = threads.map(|thread| thread.join().expect("a client")).collect();
    let rows = superuser.rows("select token from ledger where token <> 'teacher'");
    let rows: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let kept: std::collections::HashSet<&String> = rows.iter().collect();
    for told in &told {
        told.done.iter().for_each(|token| assert!(kept.contains(token), "{token} is lost"));
        told.refused.iter().for_each(|token| assert!(!kept.contains(token), "{token} is there"));
    }
    assert!(told.iter().any(|told| told.done.len() > 10), "something was done");
    balanced(&mut superuser);
    assert!(crowd.counters()["trained"] > 0);
}
