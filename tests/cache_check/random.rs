//! Random tables, reads of many shapes and writes of all sorts: behind every commit each read gives
//! through a warm cache what PostgreSQL gives itself.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::WireClient;

/// How long it goes on where nobody has said for how many rounds.
const TIME: Duration = Duration::from_secs(12);

/// Reads and commits of one set of tables.
const READS: usize = 14;
const COMMITS: usize = 25;

/// Types, and constants of them that come again and again.
const TYPES: [(&str, [&str; 5]); 9] = [
    ("int", ["0", "1", "2", "-1", "7"]),
    ("bigint", ["0", "5000000000", "2", "-1", "7"]),
    ("smallint", ["0", "1", "2", "-1", "7"]),
    ("numeric", ["0", "1.0", "1.00", "2.50", "-1"]),
    ("text", ["''", "'a'", "'b'", "'a '", "'ab'"]),
    ("char(4)", ["''", "'a'", "'b'", "'a '", "'ab'"]),
    ("bool", ["true", "false", "true", "false", "true"]),
    ("date", ["'2024-01-01'", "'2024-01-02'", "'2023-12-31'", "'2024-02-29'", "'2024-03-01'"]),
    ("float8", ["0", "1.5", "-0.0", "2", "1e10"]),
];

struct Table {
    name: String,
    /// Besides `id`: their place in [`TYPES`].
    columns: Vec<usize>,
}

impl Table {
    fn create(number: usize, dice: &mut StdRng) -> (Table, String) {
        let name = format!("t{number}");
        let columns: Vec<usize> =
            (0..dice.random_range(1..5)).map(|_| dice.random_range(0..TYPES.len())).collect();
        let list: String = columns
            .iter()
            .enumerate()
            .map(|(at, of)| format!(", c{at} {}", TYPES[*of].0))
            .collect();
        let full = if dice.random_bool(0.5) { "full" } else { "default" };
        let sql = format!(
            "create table {name}(id int primary key{list}); alter table {name} replica identity {full};"
        );
        (Table { name, columns }, sql)
    }

    fn constant(&self, column: usize, dice: &mut StdRng) -> &'static str {
        TYPES[self.columns[column]].1.choose(dice).expect("constants")
    }

    fn condition(&self, prefix: &str, dice: &mut StdRng) -> String {
        let column = dice.random_range(0..self.columns.len());
        let mut one = || self.constant(column, dice);
        let (first, second, third) = (one(), one(), one());
        let (name, id) = (format!("{prefix}c{column}"), dice.random_range(0..12));
        match dice.random_range(0..11) {
            0..3 => format!("{name} = {first}"),
            3 => format!("{name} in ({first}, {second}, {third})"),
            4 => format!("{name} >= {first}"),
            5 => format!("{name} between {first} and {second}"),
            6 => format!("({name} < {first} or {name} = {second})"),
            7 => format!("{name} is null"),
            8 => format!("{prefix}id = {id}"),
            9 => format!("{prefix}id between {id} and {}", id + 3),
            _ => format!("{prefix}id in ({id}, {}, null)", id + 2),
        }
    }

    fn write(&self, dice: &mut StdRng) -> String {
        let name = &self.name;
        let column = dice.random_range(0..self.columns.len());
        let constant = |dice: &mut StdRng| match dice.random_bool(0.1) {
            true => "null",
            false => self.constant(column, dice),
        };
        let id = dice.random_range(0..16);
        match dice.random_range(0..12) {
            0..4 => {
                let values: String = (0..self.columns.len())
                    .map(|at| format!(", {}", self.constant(at, dice)))
                    .collect();
                format!("insert into {name} values ({id}{values}) on conflict (id) do nothing")
            }
            4..7 => format!("update {name} set c{column} = {} where id = {id}", constant(dice)),
            7 => {
                let value = constant(dice);
                format!("update {name} set c{column} = {value} where {}", self.condition("", dice))
            }
            8 => format!("update {name} set id = id + 100 where id = {id}"),
            9 => format!("delete from {name} where id = {id}"),
            10 => format!("delete from {name} where {}", self.condition("", dice)),
            _ if dice.random_bool(0.2) => format!("truncate {name}"),
            _ => format!("delete from {name} where id > 100"),
        }
    }
}

fn read(tables: &[Table], dice: &mut StdRng) -> String {
    let table = tables.choose(dice).expect("tables");
    let name = &table.name;
    let mut wheres = table.condition("", dice);
    if dice.random_bool(0.3) {
        wheres = format!("{wheres} and {}", table.condition("", dice));
    }
    match dice.random_range(0..9) {
        0..3 => format!("select * from {name} where {wheres} order by id"),
        3 => format!("select count(*), min(id), max(c0) from {name} where {wheres}")
            .replace("max(c0)", "count(distinct c0)"),
        4 => format!("select c0, count(*) from {name} where {wheres} group by c0 order by c0"),
        5 => format!("select id from {name} where {wheres} order by id desc limit 3"),
        6 => {
            let other = tables.choose(dice).expect("tables");
            let (mine, theirs) = (table.condition("x.", dice), other.condition("y.", dice));
            let kind = ["join", "left join", "full join"].choose(dice).expect("kinds");
            format!(
                "select x.id, y.id from {name} x {kind} {} y on x.id = y.id and {mine} where {theirs} \
                 or x.id is null or {mine} order by 1, 2",
                other.name
            )
        }
        7 => {
            let other = tables.choose(dice).expect("tables");
            let theirs = other.condition("", dice);
            format!(
                "select id from {name} where {wheres} and id in (select id from {} where {theirs}) order by id",
                other.name
            )
        }
        _ => format!("select sum(id) from {name} where {wheres}"),
    }
}

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

fn round(cluster: &'static Cluster, seed: u64) -> (u64, u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let database = cluster.database();
    let login = || WireClient::login(&cluster.address(), APP, APP_PASSWORD, &database.name);
    let (mut direct, mut beside) = (login(), login());
    let tables: Vec<Table> = (0..2)
        .map(|number| {
            let (table, sql) = Table::create(number, &mut dice);
            direct.run(&sql);
            table
        })
        .collect();
    let gateway = crate::gateway(cluster, &database);
    let mut writer = gateway.client(&database);
    let mut reader = gateway.client(&database);
    let reads: Vec<String> = (0..READS).map(|_| read(&tables, &mut dice)).collect();
    crate::kit::wait::until("the stream", || {
        gateway.show("streams").iter().any(|row| row["state"] == "following")
    });
    let (mut asked, mut hits) = (0, 0);
    for _ in 0..COMMITS {
        let many = dice.random_range(1..5);
        let writes: Vec<String> =
            (0..many).map(|_| tables.choose(&mut dice).expect("tables").write(&mut dice)).collect();
        let end = if dice.random_bool(0.15) { "rollback" } else { "commit" };
        let commit = format!("begin; {}; {end}", writes.join("; "));
        let by = if dice.random_bool(0.5) { &mut beside } else { &mut writer };
        if by.query(&commit).iter().any(|reply| reply.tag == b'E') {
            by.run("rollback");
        }
        // From here on the reader may see nothing older.
        reader.run("select random()");
        // Twice to be kept, then from memory.
        for _ in 0..4 {
            for sql in &reads {
                let expected = direct.query(sql);
                let got = reader.query(sql);
                let hit = was_hit(&mut reader);
                assert_eq!(
                    got, expected,
                    "PONDAGE_CHECK_SEED={seed} PONDAGE_CHECK_ROUNDS=1: {sql} behind {commit}, hit: {hit}"
                );
                asked += 1;
                hits += u64::from(hit);
            }
        }
    }
    (asked, hits)
}
