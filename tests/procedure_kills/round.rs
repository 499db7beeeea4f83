//! A round: calls and faults, then what is left of it, then the judgement.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::Rng;

use crate::client::{connect, Client, ACCOUNTS};
use crate::kit::{wait, Address};
use crate::ledger::{judge, Payment, Tables, Tally};
use crate::nemesis::{pause, Fault, World};

const CLIENTS: u64 = 18;

/// What each account has at first.
const OPENING: i64 = 1_000_000;

/// Until PostgreSQL and the gateway serve after the last fault.
const RECOVERY: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Report {
    pub faults: Vec<Fault>,
    pub options: String,
    pub tally: Tally,
    pub wrong: Vec<String>,
}

/// Plays it and judges it.
pub fn play(world: &mut World, dice: &mut StdRng, round: u64) -> Report {
    world.begin_round(dice);
    let first = round as i32 * ACCOUNTS;
    let open = format!(
        "insert into account select g, {OPENING} from generate_series({first}, {}) g",
        first + ACCOUNTS - 1
    );
    wait::for_some("PostgreSQL", || world.superuser()).run(&open);
    let stop = Arc::new(AtomicBool::new(false));
    let clients = (0..CLIENTS).map(|number| {
        let client = Client::new(world.port, round, number, dice.random(), &stop);
        std::thread::spawn(move || client.run())
    });
    let clients: Vec<_> = clients.collect();
    let mut faults = Vec::new();
    // So that trains run before the first fault, which makes the gateway learn again.
    pause(dice, 300, 900);
    for _ in 0..dice.random_range(1..=3) {
        let fault = Fault::by_chance(dice);
        world.strike(fault, dice);
        faults.push(fault);
        pause(dice, 50, 700);
    }
    stop.store(true, Ordering::Relaxed);
    let calls = clients.into_iter().flat_map(|client| client.join().expect("a client"));
    let calls: Vec<_> = calls.collect();
    let mut wrong = Vec::new();
    if !world.gateway_lives() {
        wrong.push("the gateway has ended by itself".to_owned());
    }
    let address = Address::tcp("127.0.0.1", world.port);
    let serves = || {
        connect(&address, "app", "ledger")?
            .try_query("select 1")
            .filter(|replies| replies.iter().any(|message| message.tag == b'D'))
    };
    if wait::within(RECOVERY, serves).is_none() {
        wrong.push(format!("the gateway does not serve {RECOVERY:?} after the last fault"));
    }
    wrong.extend(judge(&calls, &tables(world, round), OPENING));
    Report { faults, options: world.options.clone(), tally: Tally::of(&calls), wrong }
}

/// Ledger and balances of the round, when nobody works at them any more.
fn tables(world: &World, round: u64) -> Tables {
    let mut superuser = wait::for_some("PostgreSQL", || world.superuser());
    wait::until("the end of all calls", || {
        let busy = "select count(*) from pg_stat_activity where state <> 'idle' \
                    and usename = 'app' and datname = 'ledger'";
        superuser.one(busy) == "0"
    });
    let mut tables = Tables::default();
    superuser.run("begin isolation level repeatable read");
    let number = |text: &Option<String>| -> i64 {
        text.as_deref().and_then(|text| text.parse().ok()).expect("a number")
    };
    let ledger = format!("select * from ledger where token like '{round}/%'");
    for row in superuser.rows(&ledger) {
        let [from, to] = [&row[1], &row[2]].map(|id| number(id) as i32);
        let payment = Payment { from, to, amount: number(&row[3]) };
        tables.ledger.push((row[0].clone().expect("a token"), payment));
    }
    let (first, after) =
        (round as i64 * i64::from(ACCOUNTS), (round as i64 + 1) * i64::from(ACCOUNTS));
    let balances = format!("select id, balance from account where id >= {first} and id < {after}");
    let rows = superuser.rows(&balances);
    let balances = rows.iter().map(|row| (number(&row[0]) as i32, number(&row[1])));
    tables.balances = balances.collect::<BTreeMap<i32, i64>>();
    superuser.run("commit");
    tables
}
