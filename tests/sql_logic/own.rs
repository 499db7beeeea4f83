//! Our own files, in the words of the crate `sqllogictest`.
//!
//! A query with the label `upstream` is one that can't be cached, one with `once` writes; all others
//! can be cached. Lines `$1 = value` at the end of a query are the values of its parameters.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqllogictest::{
    strict_column_validator, ColumnType, DBOutput, DefaultColumnType, MakeConnection, Normalizer,
    QueryExpect, Record, Runner, SortMode, DB,
};

use crate::answer::{shown, Answer, Order, Refused};
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::place::workspace;
use crate::kit::{Database, Gateway, WireClient};
use crate::pair::{Asked, Form, Pair, Totals, Way};

/// Between the values of a row.
const SEPARATOR: &str = "|";

/// Of a query that can't be cached.
const UPSTREAM: &str = "upstream";

/// Of a query that is run once, because it does more than read.
const ONCE: &str = "once";

/// Files that are played at the same time: mostly they wait.
const AT_ONCE: usize = 16;

const WAY: Way = Way {
    forms: &[Form::Simple, Form::Text, Form::Binary],
    warm_within: Duration::from_secs(30),
    strict: true,
    earlier_max: 60,
};

type Kind = DefaultColumnType;

/// The record that is being run.
#[derive(Debug, Clone)]
struct Current {
    place: String,
    /// None: it is run once.
    order: Option<Order>,
    upstream: bool,
}

/// Both databases, as the crate wants them.
struct Both {
    pair: Pair,
    current: Arc<Mutex<Current>>,
    totals: Arc<Mutex<Totals>>,
}

/// PostgreSQL alone, for what is expected.
struct Oracle(WireClient);

pub fn files() -> Vec<PathBuf> {
    let directory = workspace().join("tests/sql_logic/slt");
    let entries = std::fs::read_dir(&directory).expect("the folder of our files");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    files.sort();
    files
}

/// Writes into the files what PostgreSQL answers.
pub fn update(cluster: &Cluster) {
    for file in files() {
        let database = cluster.database();
        let login =
            || Oracle(WireClient::login(&cluster.address(), APP, APP_PASSWORD, &database.name));
        let mut runner = Runner::new(|| std::future::ready(Ok(login())));
        let types = strict_column_validator;
        let updated = runner.update_test_file(&file, SEPARATOR, same, as_it_is, types);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(updated).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        println!("{} is as PostgreSQL has it", file.display());
    }
}

/// Plays all files, some at a time; the totals of each.
pub fn play(cluster: &'static Cluster) -> Vec<(String, Totals)> {
    let files = files();
    let pairs: Vec<[Database; 2]> =
        files.iter().map(|_| [cluster.database(), cluster.database()]).collect();
    let config = pairs.iter().fold(crate::caching(cluster, &pairs[0][1]), |config, [_, cached]| {
        config
            .database(&cached.name)
            .set(&format!("databases.{}.port", cached.name), i64::from(cluster.port))
    });
    let gateway = Gateway::start(config);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(files.len()) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else { break };
                let [direct, cached] = &pairs[at];
                let totals =
                    play_file(file, || Pair::new(cluster, &gateway, [direct, cached], WAY));
                let name = file.file_name().expect("a name").to_string_lossy().into_owned();
                println!("{name}: {totals}");
                done.lock().expect("no panic while held").push((name, totals));
            });
        }
    });
    done.into_inner().expect("no panic while held")
}

fn play_file(file: &Path, pair: impl Fn() -> Pair) -> Totals {
    let start = Current { place: String::new(), order: None, upstream: false };
    let current = Arc::new(Mutex::new(start));
    let totals = Arc::new(Mutex::new(Totals::default()));
    let both = || Both { pair: pair(), current: current.clone(), totals: totals.clone() };
    let mut runner = Runner::new(|| std::future::ready(Ok(both())));
    runner.with_normalizer(as_it_is);
    runner.with_validator(same);
    runner.with_column_validator(strict_column_validator);
    let records = sqllogictest::parse_file(file).unwrap_or_else(|e| panic!("{e}"));
    for record in records {
        *current.lock().expect("no panic while held") = Current::of(&record);
        play_record(&mut runner, record);
    }
    drop(runner);
    let totals = totals.lock().expect("no panic while held");
    *totals
}

fn play_record<M: MakeConnection<Conn = Both>>(runner: &mut Runner<Both, M>, record: Record<Kind>) {
    let ran = runner.run(record);
    ran.unwrap_or_else(|e| {
        panic!("{}\n(PONDAGE_LOGIC_UPDATE=1 writes what PostgreSQL answers)", e)
    });
}

impl Current {
    fn of(record: &Record<Kind>) -> Current {
        let statement = |place: String| Current { place, order: None, upstream: false };
        match record {
            Record::Query {
                loc,
                expected: QueryExpect::Results { label: Some(label), .. },
                ..
            } if label == ONCE => statement(loc.to_string()),
            Record::Query { loc, expected, .. } => {
                let (order, label) = match expected {
                    QueryExpect::Results { sort_mode, label, .. } => (*sort_mode, label.as_deref()),
                    QueryExpect::Error(_) => (None, None),
                };
                let order = match order {
                    None | Some(SortMode::NoSort) => Order::Kept,
                    Some(SortMode::RowSort) => Order::Rows,
                    Some(SortMode::ValueSort) => Order::Values,
                };
                let upstream = label == Some(UPSTREAM);
                Current { place: loc.to_string(), order: Some(order), upstream }
            }
            Record::Statement { loc, .. } => statement(loc.to_string()),
            _ => statement(String::new()),
        }
    }
}

impl DB for Both {
    type Error = Refused;
    type ColumnType = Kind;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Kind>, Refused> {
        let current = self.current.lock().expect("no panic while held").clone();
        let place = &current.place;
        let Some(order) = current.order else {
            let answer = self.pair.statement(sql);
            let answer = answer.unwrap_or_else(|different| panic!("{place}: {}", different.0));
            self.tell();
            return output(answer);
        };
        let asked = asked(sql, order);
        let (answer, cacheable) =
            self.pair.query(&asked).unwrap_or_else(|different| panic!("{place}: {}", different.0));
        match cacheable {
            Some(Err(why)) => {
                assert!(current.upstream, "{place}: {sql}: can't be cached: {why}");
            }
            Some(Ok(())) => assert!(!current.upstream, "{place}: {sql}: can be cached"),
            None => {}
        }
        self.tell();
        output(answer)
    }

    fn error_sql_state(refused: &Refused) -> Option<String> {
        Some(refused.code.clone())
    }
}

impl Both {
    fn tell(&self) {
        *self.totals.lock().expect("no panic while held") = self.pair.totals;
    }
}

impl DB for Oracle {
    type Error = Refused;
    type ColumnType = Kind;

    fn run(&mut self, sql: &str) -> Result<DBOutput<Kind>, Refused> {
        output(asked(sql, Order::Kept).ask(&mut self.0, Form::Simple))
    }
}

/// Takes the values of parameters off the end of a text.
fn asked(text: &str, order: Order) -> Asked {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut values = Vec::new();
    while let Some(value) = lines.last().and_then(|line| crate::published::value_of(line)) {
        values.push(value);
        lines.pop();
    }
    values.reverse();
    Asked { sql: lines.join("\n"), values, order }
}

fn output(answer: Answer) -> Result<DBOutput<Kind>, Refused> {
    if let Some(refused) = answer.error {
        return Err(refused);
    }
    if answer.columns.is_empty() {
        return Ok(DBOutput::StatementComplete(answer.count()));
    }
    let types = answer.columns.iter().map(|column| kind(column.oid)).collect();
    let row =
        |row: &Vec<Option<Vec<u8>>>| row.iter().map(|value| shown(value.as_deref())).collect();
    Ok(DBOutput::Rows { types, rows: answer.rows.iter().map(row).collect() })
}

/// Source: PostgreSQL's `src/include/catalog/pg_type.dat`.
fn kind(oid: u32) -> Kind {
    let letter = match oid {
        20 | 21 | 23 => 'I',
        700 | 701 | 1700 => 'R',
        _ => 'T',
    };
    Kind::from_char(letter).expect("a letter of the crate's")
}

#[expect(clippy::ptr_arg, reason = "the crate's type of a normaliser")]
fn as_it_is(value: &String) -> String {
    value.clone()
}

fn same(_: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let actual: Vec<String> = actual.iter().map(|row| row.join(SEPARATOR)).collect();
    actual == expected
}
