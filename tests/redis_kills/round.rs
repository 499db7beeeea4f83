//! A round: load and faults, then what is left of it, then the judgement.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::Rng;

use crate::client::Client;
use crate::history::{now, Event, Outcome, NEVER};
use crate::kit::wait;
use crate::linear::{judge, shortest_broken, Verdict};
use crate::model::{Answer, Op, Value};
use crate::nemesis::{Fault, World};
use crate::sql;
use crate::workload::{Families, Keys};

const CLIENTS: u64 = 7;

/// Until a gateway serves after a fault was mended.
const RECOVERY: Duration = Duration::from_secs(30);

/// Until memory has heard what SQL has written last.
const NEWS: Duration = Duration::from_secs(5);

/// Values that are only read, so that others have to leave memory.
const BALLAST: usize = 80;
const BALLAST_BYTES: usize = 32 << 10;

/// Lines of a broken history that are shown.
const SHOWN: usize = 60;

#[derive(Debug, Default)]
pub struct Report {
    pub faults: Vec<Fault>,
    pub wrong: Vec<String>,
}

/// What the gateway can do.
pub fn families(world: &World) -> Families {
    let mut client =
        Client::new(&world.shared, Keys { round: 0, families: Families::default() }, 0);
    let mut knows = |words: &[&str]| wait::for_some("a gateway", || client.knows(words));
    Families {
        lists: knows(&["BLPOP", "l:none", "0.001"]),
        zsets: knows(&["ZRANGE", "z:none", "0", "-1"]),
    }
}

fn ballast(number: usize) -> String {
    format!("s:ballast:{number}")
}

pub fn load_ballast(world: &World) {
    let value = "x".repeat(BALLAST_BYTES);
    sql::block_on(async {
        let client = sql::connect(&world.place).await.expect("PostgreSQL");
        for number in 0..BALLAST {
            let sql = format!("select redis.set('{}', '{value}')", ballast(number));
            client.batch_execute(&sql).await.expect("the schema is there");
        }
    });
}

/// Plays it and judges it.
pub fn play(
    world: &mut World,
    dice: &mut StdRng,
    round: u64,
    families: Families,
    only: Option<Fault>,
) -> Report {
    let keys = Keys { round, families };
    let mut report = Report::default();
    let mut events = load(world, dice, keys, only, &mut report);
    let settled = now();
    // What SQL has written is seen by readers some time after its commit.
    for event in &mut events {
        if matches!(event.outcome, Outcome::Answered(_)) {
            event.answered = event.answered.min(settled);
        }
    }
    if !world.gateway_lives() {
        report.wrong.push("the gateway has ended by itself".to_owned());
        return report;
    }
    match views(world, dice, keys) {
        Ok(views) => events.extend(views),
        Err(what) => report.wrong.push(what),
    }
    let mut wrong = world.shared.wrong.lock().expect("no panic while held");
    report.wrong.append(&mut wrong);
    drop(wrong);
    let mut by_key: BTreeMap<&str, Vec<Event>> = BTreeMap::new();
    for event in &events {
        by_key.entry(&event.key).or_default().push(event.clone());
    }
    for (key, history) in by_key {
        match judge(&history) {
            Verdict::Linearizable => {}
            Verdict::Open => println!("round {round}: the history of {key} is too long to judge"),
            Verdict::Broken => report.wrong.push(shown(key, &history)),
        }
    }
    report
}

fn shown(key: &str, history: &[Event]) -> String {
    let shortest = shortest_broken(history);
    let moment = shortest.iter().map(|event| event.invoked.max(event.answered % NEVER)).max();
    let later = history.iter().filter(|event| Some(event.invoked) > moment).cloned();
    let lines = |mut events: Vec<Event>| {
        events.sort_by_key(|event| event.invoked);
        events.iter().map(Event::to_string).collect::<Vec<_>>()
    };
    let (mut before, mut after) = (lines(shortest), lines(later.collect()));
    let left_out = before.len().saturating_sub(SHOWN);
    before.drain(..left_out);
    after.truncate(SHOWN / 3);
    format!(
        "{key} is not linearizable (lane, asked at ms, answered at ms, what), {left_out} earlier \
         lines left out:\n{}\nand after that:\n{}",
        before.join("\n"),
        after.join("\n")
    )
}

/// Clients, SQL sessions and faults, until all clients have gone.
fn load(
    world: &mut World,
    dice: &mut StdRng,
    keys: Keys,
    only: Option<Fault>,
    report: &mut Report,
) -> Vec<Event> {
    world.shared.stop.store(false, Ordering::Relaxed);
    let clients = (0..CLIENTS).map(|_| {
        let client = Client::new(&world.shared, keys, dice.random());
        std::thread::spawn(move || client.run())
    });
    let clients: Vec<_> = clients.collect();
    let (place, shared, seed) = (world.place.clone(), world.shared.clone(), dice.random());
    let writer = (!world.journal)
        .then(|| std::thread::spawn(move || sql::write(&place, &shared, keys, seed)));
    let (place, shared) = (world.place.clone(), world.shared.clone());
    let watcher = std::thread::spawn(move || sql::watch(&place, &shared, keys));
    let (shared, seed) = (world.shared.clone(), dice.random());
    let reader = std::thread::spawn(move || {
        let mut client = Client::new(&shared, keys, seed);
        let mut at = 0;
        while !shared.stopped() {
            let names: Vec<String> = (0..8).map(|more| ballast((at + more) % BALLAST)).collect();
            at += names.len();
            client.look_at(&names);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    std::thread::sleep(Duration::from_millis(dice.random_range(20..250)));
    for _ in 0..if dice.random_bool(0.3) { 2 } else { 1 } {
        let fault = only.unwrap_or_else(|| Fault::by_chance(dice));
        if world.strike(fault, dice) {
            report.faults.push(fault);
        }
        std::thread::sleep(Duration::from_millis(dice.random_range(20..250)));
    }
    world.shared.stop.store(true, Ordering::Relaxed);
    let mut events: Vec<Event> = Vec::new();
    for client in clients {
        events.extend(client.join().expect("a client"));
    }
    if let Some(writer) = writer {
        events.extend(writer.join().expect("the SQL writer"));
    }
    watcher.join().expect("the SQL reader");
    reader.join().expect("the reader of ballast");
    events
}

/// What the gateway has, what the tables have, what a new gateway has: as events of their own.
fn views(world: &mut World, dice: &mut StdRng, keys: Keys) -> Result<Vec<Event>, String> {
    let names = keys.all();
    let shared = Arc::clone(&world.shared);
    let memory = |limit: Duration| {
        let mut client = Client::new(&shared, keys, 0);
        wait::within(limit, || client.look_at(&names))
            .ok_or_else(|| format!("no gateway serves {limit:?} after the last fault"))
    };
    let place = world.place.clone();
    let tables = || {
        wait::within(RECOVERY, || {
            sql::block_on(async {
                let client = sql::connect(&place).await.ok()?;
                sql::tables(&client, &names).await.ok()
            })
        })
        .ok_or_else(|| "the tables can't be read".to_owned())
    };
    memory(RECOVERY)?;
    let end = Instant::now() + NEWS;
    let (mut old, mut rows) = (memory(RECOVERY)?, tables()?);
    while differs(&old, &rows).is_some() && Instant::now() < end {
        (old, rows) = (memory(RECOVERY)?, tables()?);
    }
    if let Some(what) = differs(&old, &rows) {
        return Err(format!("memory differs from the tables: {what}"));
    }
    world.kill_gateway();
    world.start_gateway(dice);
    let new = memory(RECOVERY)?;
    let rows = tables()?;
    if let Some(what) = differs(&new, &rows) {
        return Err(format!("a new gateway differs from the tables: {what}"));
    }
    let lanes = [shared.lane(), shared.lane()];
    let events = [(lanes[0], old), (lanes[1], new)].into_iter().flat_map(|(lane, seen)| {
        seen.into_iter().map(move |(key, value, invoked, answered)| {
            let outcome = Outcome::Answered(Answer::Whole(value));
            Event { lane, key, op: Op::Read, invoked, answered, outcome }
        })
    });
    Ok(events.collect())
}

type Seen = (String, Value, u64, u64);

fn differs(memory: &[Seen], tables: &[(String, Value)]) -> Option<String> {
    let pairs = memory.iter().zip(tables);
    let mut other = pairs.filter(|((_, seen, _, _), (_, row))| seen != row);
    other.next().map(|((key, seen, _, _), (_, row))| format!("{key}: {seen:?}, tables: {row:?}"))
}
