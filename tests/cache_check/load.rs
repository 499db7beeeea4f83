//! Tables with invariants, writers that keep them, and faults.
//!
//! - Rows of a group in `a` and `b` have the same `n`, and `m = -n`: each commit raises all of them.
//! - Counters in `c` and the batch number in `e` only grow; `e` always has [`BATCH_ROWS`] rows of
//!   one batch, and is emptied and filled again in one transaction.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::door::Door;
use crate::kit::cluster::Cluster;
use crate::kit::Database;
use crate::reader::Reader;

pub const GROUPS: usize = 4;
pub const IDS: usize = 8;
pub const COUNTERS: usize = 5;
pub const BATCH_ROWS: i64 = 10;

const READERS: usize = 5;
const WRITERS: usize = 3;

/// Between two commits of a writer: readers have to meet what is kept as well.
const PAUSES_MS: std::ops::Range<u64> = 10..120;

#[derive(Debug)]
pub struct Plan {
    pub time: Duration,
    /// Senders of the stream and servers are killed.
    pub kills: bool,
    pub seed: u64,
}

#[derive(Debug, Default)]
pub struct Report {
    pub wrong: Vec<String>,
    pub asked: u64,
    pub hits: u64,
    pub mirrored: u64,
}

pub fn set_up(cluster: &Cluster, database: &Database) {
    let owner = crate::kit::cluster::APP;
    cluster.superuser(&database.name).run(&format!(
        "set role {owner};
         create table a(id int primary key, grp int not null, n bigint not null, m bigint not null);
         create table b(id int primary key, grp int not null, n bigint not null, m bigint not null);
         create table c(id int primary key, n bigint not null);
         create table e(id int primary key, batch bigint not null); create sequence batches;
         create table z(id int primary key, n int, at timestamptz);
         create table junk(id bigserial primary key, s text);
         insert into a select g, g % {GROUPS}, 0, 0 from generate_series(0, {IDS} - 1) g;
         insert into b select * from a; insert into c select g, 0 from generate_series(0, {COUNTERS}) g;
         insert into e select g, 0 from generate_series(1, {BATCH_ROWS}) g;
         insert into z values (1, 0, '2024-02-29 12:00+00');
         alter table b replica identity full"
    ));
}

/// One more for a group, in one of the ways in which that can be.
pub fn group_commit(group: usize, dice: &mut StdRng) -> Vec<String> {
    let raise = |table: &str, by: i64| {
        format!("update {table} set n = n + {by}, m = m - {by} where grp = {group}")
    };
    let mut statements = vec!["begin".to_owned()];
    if dice.random_bool(0.2) {
        statements.push("set local synchronous_commit = off".to_owned());
    }
    statements.push(format!("select pg_advisory_xact_lock({group})"));
    if dice.random_bool(0.3) {
        statements.extend(["savepoint s".to_owned(), raise("a", 1000), raise("b", 77)]);
        statements.push("rollback to s".to_owned());
    }
    statements.push(raise("a", 1));
    if dice.random_bool(0.1) {
        statements.push(
            "insert into junk(s) select repeat('j', 300) from generate_series(1, 2000)".to_owned(),
        );
    }
    if dice.random_bool(0.3) {
        statements.extend(["savepoint t".to_owned(), raise("b", 1), "release t".to_owned()]);
    } else {
        statements.push(raise("b", 1));
    }
    statements.push("commit".to_owned());
    statements
}

/// What everybody may know: all that somebody was told of as done, through the door.
#[derive(Debug, Default)]
pub struct Told {
    groups: [AtomicI64; GROUPS],
    counters: [AtomicI64; COUNTERS],
}

/// What a commit makes one more.
#[derive(Debug, Clone, Copy)]
pub enum Raised {
    Group(usize),
    Counter(usize),
    Nothing,
}

impl Told {
    fn now(door: &Door) -> Told {
        let told = Told::default();
        let mut superuser = door.cluster.superuser(&door.database.name);
        let mut all = |sql: &str, known: &[AtomicI64]| {
            for (at, known) in known.iter().enumerate() {
                let value = superuser.one(&format!("{sql} = {at}")).parse().expect("a number");
                known.store(value, Ordering::SeqCst);
            }
        };
        all("select min(n) from a where grp", &told.groups);
        all("select n from c where id", &told.counters);
        told
    }

    pub fn group(&self, group: usize) -> i64 {
        self.groups[group].load(Ordering::SeqCst)
    }

    pub fn counter(&self, counter: usize) -> i64 {
        self.counters[counter].load(Ordering::SeqCst)
    }

    /// To be called by who was told.
    pub fn raised(&self, raised: Raised) {
        match raised {
            Raised::Group(group) => self.groups[group].fetch_add(1, Ordering::SeqCst),
            Raised::Counter(counter) => self.counters[counter].fetch_add(1, Ordering::SeqCst),
            Raised::Nothing => 0,
        };
    }
}

fn commit(dice: &mut StdRng) -> (Vec<String>, Raised) {
    let group = dice.random_range(0..GROUPS);
    let nothing = |statements| (statements, Raised::Nothing);
    match dice.random_range(0..10) {
        0 | 1 => {
            let counter = dice.random_range(0..COUNTERS);
            let update = format!("update c set n = n + 1 where id = {counter}");
            (vec![update], Raised::Counter(counter))
        }
        2 => nothing(vec![
            "begin".to_owned(),
            "truncate e".to_owned(),
            format!(
                "insert into e select g, b from (select nextval('batches') as b) x, \
                 generate_series(1, {BATCH_ROWS}) g"
            ),
            "commit".to_owned(),
        ]),
        3 => {
            let mut statements = group_commit(group, dice);
            statements.pop();
            statements.push("rollback".to_owned());
            nothing(statements)
        }
        4 => nothing(vec!["truncate junk".to_owned()]),
        _ => (group_commit(group, dice), Raised::Group(group)),
    }
}

/// Runs all of it for a while.
pub fn play(door: &Door, plan: &Plan) -> Report {
    let stop = AtomicBool::new(false);
    let seeded = |number: usize| StdRng::seed_from_u64(plan.seed.wrapping_add(number as u64));
    let mut report = Report::default();
    let told = Told::now(door);
    std::thread::scope(|scope| {
        let (stop, told) = (&stop, &told);
        for number in 0..WRITERS {
            let mut dice = seeded(number);
            let mut writer = if number == 0 { door.client() } else { door.beside() };
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let (statements, raised) = commit(&mut dice);
                    match writer.write(&statements) {
                        // Of what is done beside the door others know a moment later.
                        Some(_) if number == 0 => told.raised(raised),
                        Some(_) => {}
                        None => writer.again(),
                    }
                    std::thread::sleep(Duration::from_millis(dice.random_range(PAUSES_MS)));
                }
            });
        }
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                let mut reader = Reader::new(door.client(), told, seeded(100 + number));
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) && reader.wrong.is_empty() {
                        reader.step();
                    }
                    if !reader.wrong.is_empty() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    reader
                })
            })
            .collect();
        let mut dice = seeded(200);
        let end = Instant::now() + plan.time;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(dice.random_range(50..700)));
            if plan.kills {
                kill(door, &mut dice);
            }
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            let mut reader = reader.join().expect("a reader");
            report.wrong.append(&mut reader.wrong);
            report.asked += reader.asked;
            report.hits += reader.hits;
            report.mirrored += reader.mirrored;
        }
    });
    report
}

fn kill(door: &Door, dice: &mut StdRng) {
    let whom = match dice.random_range(0..4) {
        0 => "backend_type = 'walsender'",
        1 => "backend_type = 'client backend' and random() < 0.5",
        2 => "backend_type = 'client backend' and query like '%pg_current_snapshot%'",
        _ => return,
    };
    let kill = format!(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}' \
         and pid <> pg_backend_pid() and {whom}",
        door.database.name
    );
    door.cluster.superuser("postgres").run(&kill);
}
