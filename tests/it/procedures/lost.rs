//! The server of a train is lost, or its flush does not come: who was sent is told that nobody
//! knows, nobody is acknowledged before the flush, and nothing is sent again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wire::pg::backend::tag;

use super::books::{
    balanced, cut_off, done, lock_gate, lock_waits, pay, payers, paying, times, TABLES,
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

#[test]
fn all_of_a_train_whose_server_is_lost_are_told_that_nobody_knows() {
    for settings in [|config: Config| config, each] {
        let mut crowd = payers(6, settings);
        let (mut beside, mut superuser) = (crowd.beside(), crowd.superuser());
        lock_gate(&mut beside, 1);
        // The third waits for the gate; those behind it have not begun.
        let batches: Vec<Batch> = (0..6)
            .map(|number| pay(&format!("t{number}"), 1, 2, 10, i32::from(number == 2)))
            .collect();
        crowd.leave_together(&batches);
        lock_waits(&mut superuser, 1);
        assert_eq!(end_waiting(&mut superuser, "Lock"), "1");
        let mut acknowledged = [false; 6];
        for (number, client) in crowd.clients.iter_mut().enumerate() {
            // With a flush of its own, who was answered before is not among the lost.
            let first = client.message();
            if first.tag == tag::COMMAND_COMPLETE {
                acknowledged[number] = true;
                client.expect(tag::READY_FOR_QUERY);
                continue;
            }
            let told = first.complaint();
            assert_eq!(told.code, "08007", "{told:?}");
            assert_eq!(told.severity, "FATAL");
            assert!(client.until_closed().is_empty());
        }
        beside.run("commit");
        wait::until("the end of what the server did", || {
            let busy = "select count(*) from pg_stat_activity where state = 'active' and \
                        datname = current_database() and pid <> pg_backend_pid()";
            superuser.one(busy) == "0"
        });
        let known: Vec<usize> =
            (0..6).map(|number| times(&mut beside, &format!("t{number}"))).collect();
        assert_eq!(known[2..], [0; 4], "nothing is sent again");
        for (number, acknowledged) in acknowledged.iter().enumerate() {
            assert!(!acknowledged || known[number] == 1, "{acknowledged:?} {known:?}");
        }
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
    let settings = |config| settings(paying(config));
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

/// So long nothing may come.
const QUIET: Duration = Duration::from_millis(30);

#[test]
fn nobody_is_acknowledged_before_the_flush_and_all_are_behind_it() {
    let mut crowd = held(|config| config);
    let mut superuser = crowd.superuser();
    let all = "select count(*) from ledger where token like 't_'";
    assert_eq!(superuser.one(all), "6", "others see what is not safe yet");
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
    assert_eq!(superuser.one(all), "6", "done, and nobody was told");
    balanced(&mut superuser);
    drop(crowd);
    // Each with a flush of its own.
    let mut crowd = held(each);
    let mut superuser = crowd.superuser();
    assert_eq!(superuser.one(all), "0", "nobody sees what is not safe yet");
    crowd.clients.iter_mut().for_each(|client| client.expect_silence(QUIET));
    assert_eq!(end_waiting(&mut superuser, "IPC"), "1");
    for client in &mut crowd.clients {
        let told = cut_off(client);
        assert_eq!(told.code, "08007", "{told:?}");
    }
    standby("");
    wait::until("the end of the server", || standby_waits(&mut superuser) == "0");
    assert_eq!(superuser.one(all), "1", "the others had not begun");
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
