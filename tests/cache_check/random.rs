//! Random tables (`schema.rs`), reads of many shapes (`reads.rs`) and writes of all sorts: behind
//! every commit each read gives through a warm cache what PostgreSQL gives itself.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::wireclient::Message;
use crate::kit::WireClient;
use crate::reads::{self, Read};
use crate::schema::{Table, TYPES_SET_UP};

/// How long it goes on where nobody has said for how many rounds.
const TIME: Duration = Duration::from_secs(12);

/// Reads and commits of one set of tables.
const TABLES: usize = 2;
const READS: usize = 20;
const COMMITS: usize = 20;

/// Commits behind which something is defined otherwise.
const REDEFINED: f64 = 0.05;

/// Plays rounds, each with tables of its own.
pub fn play(cluster: &'static Cluster, seed: u64, rounds: Option<u64>) {
    let end = Instant::now() + TIME;
    let (mut done, mut asked, mut hits) = (0, 0, 0);
    while rounds.map_or_else(|| Instant::now() < end, |rounds| done < rounds) {
        let (more_asked, more_hits) = round(cluster, seed.wrapping_add(done));
        (asked, hits, done) = (asked + more_asked, hits + more_hits, done + 1);
    }
    println!("{done} sets of tables, {asked} answers, {hits} from the cache");
    assert!(hits * 4 > asked, "hardly anything came from the cache");
}

fn was_hit(client: &mut WireClient) -> bool {
    let told = client.rows("explain last statement");
    told.iter().flatten().flatten().any(|line| line.starts_with("Way: cache"))
}

fn ask(read: &Read, client: &mut WireClient) -> Vec<Message> {
    match &read.values {
        None => client.query(&read.sql),
        Some(values) => {
            let values: Vec<_> = values.iter().map(|value| Some(value.as_bytes())).collect();
            client.extended(&read.sql, &values)
        }
    }
}

fn is_error(replies: &[Message]) -> bool {
    replies.iter().any(|reply| reply.tag == b'E')
}

/// Tables with their views, and some rows.
fn set_up(direct: &mut WireClient, dice: &mut StdRng) -> Vec<Table> {
    direct.run(TYPES_SET_UP);
    let tables: Vec<(Table, String)> =
        (0..TABLES).map(|number| Table::create(number, dice)).collect();
    for (table, sql) in &tables {
        direct.run(sql);
        direct.query(&table.fill(dice));
        direct.run(&reads::views(table, dice));
    }
    tables.into_iter().map(|(table, _)| table).collect()
}

/// Reads that PostgreSQL understands.
fn readable(direct: &mut WireClient, tables: &[Table], dice: &mut StdRng) -> Vec<Read> {
    let mut reads = Vec::new();
    while reads.len() < READS {
        let read = reads::read(tables, dice);
        if !is_error(&ask(&read, direct)) {
            reads.push(read);
        }
    }
    reads
}

fn round(cluster: &'static Cluster, seed: u64) -> (u64, u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let database = cluster.database();
    let login = || WireClient::login(&cluster.address(), APP, APP_PASSWORD, &database.name);
    let (mut direct, mut beside) = (login(), login());
    let tables = set_up(&mut direct, &mut dice);
    let reads = readable(&mut direct, &tables, &mut dice);
    let gateway = crate::gateway(cluster, &database);
    let mut writer = gateway.client(&database);
    let mut reader = gateway.client(&database);
    crate::kit::wait::until("the stream", || {
        gateway.show("streams").iter().any(|row| row["state"] == "following")
    });
    let (mut asked, mut hits) = (0, 0);
    for number in 0..COMMITS {
        let commit = commit(&tables, &mut dice);
        let by = if dice.random_bool(0.5) { &mut beside } else { &mut writer };
        if is_error(&by.query(&commit)) {
            by.run("rollback");
        }
        if dice.random_bool(REDEFINED) {
            // Beside the gateway it would be known a moment later.
            reader.run(&tables.choose(&mut dice).expect("tables").redefine(number, &mut dice));
        }
        // From here on the reader may see nothing older.
        reader.run("select random()");
        // Twice to be kept, then from memory.
        for _ in 0..4 {
            for read in &reads {
                let expected = ask(read, &mut direct);
                let got = ask(read, &mut reader);
                let hit = was_hit(&mut reader);
                assert_eq!(
                    got, expected,
                    "PONDAGE_CHECK_SEED={seed} PONDAGE_CHECK_ROUNDS=1: {read:?} behind {commit}, hit: {hit}"
                );
                asked += 1;
                hits += u64::from(hit);
            }
        }
    }
    (asked, hits)
}

fn commit(tables: &[Table], dice: &mut StdRng) -> String {
    let mut writes = Vec::new();
    for _ in 0..dice.random_range(1..5) {
        let table = tables.choose(dice).expect("tables");
        let other = tables.choose(dice).expect("tables");
        let write = table.write(other, dice);
        match dice.random_bool(0.1) {
            true => writes.push(format!("savepoint s; {write}; rollback to s")),
            false => writes.push(write),
        }
    }
    let end = if dice.random_bool(0.15) { "rollback" } else { "commit" };
    format!("begin; {}; {end}", writes.join("; "))
}
