//! A directory of published files, each played in databases that are empty before it.
//!
//! `tests/suites/skipped-logic.txt` says which files are not played, and of which PostgreSQL
//! refuses statements: `WHAT -- REASON` and `refused WHAT -- REASON`, where WHAT is a file, or a
//! folder with a slash behind it. A file that PostgreSQL refuses and that is not named there is a
//! failure, like an answer that differs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use crate::answer::Answer;
use crate::kit::cluster::Cluster;
use crate::kit::place::workspace;
use crate::kit::{Database, Gateway, WireClient};
use crate::pair::{Form, Pair, Totals, Way};
use crate::published::{self, What};

/// Files that are played at the same time.
const AT_ONCE: usize = 10;

/// Files behind which it is told how many were played.
const PROGRESS: usize = 50;

/// Most files ask their queries again themselves.
const WAY: Way = Way {
    forms: &[Form::Simple, Form::Text],
    warm_within: Duration::from_secs(8),
    strict: false,
    earlier_max: 8,
};

/// Of what can be cached, so much of a hundred has to come from the cache.
const WARMED_PERCENT: u64 = 98;

/// What became of a file.
enum Fate {
    Played,
    /// It is on the list.
    LeftOut,
    /// PostgreSQL refuses a statement of it: what follows is not played.
    Refused(String),
    Different(String),
}

/// What is not played, with reasons.
struct Skipped(Vec<(String, bool, String)>);

impl Skipped {
    fn read() -> Skipped {
        let path = workspace().join("tests/suites/skipped-logic.txt");
        let text = std::fs::read_to_string(&path).expect("the list of what is not played");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = |line: &str| {
            let (what, reason) = line.split_once(" -- ").expect("WHAT -- REASON");
            let refused = what.strip_prefix("refused ");
            (refused.unwrap_or(what).to_owned(), refused.is_some(), reason.to_owned())
        };
        Skipped(lines.map(line).collect())
    }

    fn reason(&self, name: &str, refused: bool) -> Option<&str> {
        let is_it = |what: &str| what == name || (what.ends_with('/') && name.starts_with(what));
        let found = self.0.iter().find(|(what, of, _)| *of == refused && is_it(what));
        found.map(|(_, _, reason)| reason.as_str())
    }
}

/// Plays the files below a directory: of those whose names contain `part` one of `one_of`.
pub fn play(cluster: &'static Cluster, directory: &Path, part: &str, one_of: usize) {
    let skipped = Skipped::read();
    let mut files = Vec::new();
    list(directory, &mut files);
    files.sort();
    let name = |file: &Path| file.strip_prefix(directory).unwrap_or(file).display().to_string();
    let files: Vec<(PathBuf, String)> =
        files.into_iter().map(|file| (file.clone(), name(&file))).collect();
    let files: Vec<_> =
        files.into_iter().filter(|(_, name)| name.contains(part)).step_by(one_of).collect();
    assert!(!files.is_empty(), "no file below {} with {part:?}", directory.display());
    let pairs: Vec<[Database; 2]> =
        (0..AT_ONCE).map(|_| [cluster.database(), cluster.database()]).collect();
    let config = pairs.iter().fold(crate::caching(cluster, &pairs[0][1]), |config, [_, cached]| {
        config
            .database(&cached.name)
            .set(&format!("databases.{}.port", cached.name), i64::from(cluster.port))
    });
    let gateway = Gateway::start(config);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(String, Fate, Totals)>> = Mutex::default();
    std::thread::scope(|scope| {
        for [direct, cached] in &pairs {
            let (files, skipped, gateway) = (&files, &skipped, &gateway);
            let (next, done) = (&next, &done);
            scope.spawn(move || loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((path, name)) = files.get(at) else { break };
                let mut pair = Pair::new(cluster, gateway, [direct, cached], WAY);
                let fate = match skipped.reason(name, false) {
                    Some(_) => Fate::LeftOut,
                    None => play_file(path, &mut pair),
                };
                if let Fate::Different(what) = &fate {
                    println!("DIFFERENT {name}: {what}");
                }
                let mut done = done.lock().expect("no panic while held");
                done.push((name.clone(), fate, pair.totals));
                if done.len() % PROGRESS == 0 {
                    println!("{} of {} files", done.len(), files.len());
                }
            });
        }
    });
    report(&skipped, &done.into_inner().expect("no panic while held"));
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory);
    let entries = entries.unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        if path.is_dir() && !hidden {
            list(&path, files);
        } else if path.extension().is_some_and(|e| e == "test" || e == "slt") {
            files.push(path);
        }
    }
}

fn report(skipped: &Skipped, done: &[(String, Fate, Totals)]) {
    let mut all = Totals::default();
    let mut folders: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, fate, totals) in done {
        all.add(totals);
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let place = match fate {
            Fate::Played => 0,
            Fate::LeftOut => 1,
            Fate::Refused(why) => {
                if skipped.reason(name, true).is_none() {
                    wrong.push(format!("refused {name} -- {why}"));
                }
                2
            }
            Fate::Different(what) => {
                wrong.push(format!("{name}: {}", what.lines().next().unwrap_or_default()));
                3
            }
        };
        folders.entry(folder).or_default()[place] += 1;
    }
    println!("folder: files played, left out, refused by PostgreSQL, different");
    for (folder, [played, left_out, refused, different]) in &folders {
        println!("{folder:.<60} {played:5} {left_out:5} {refused:5} {different:5}");
    }
    println!("{all}");
    let names =
        |what: &str, name: &str| what == name || (what.ends_with('/') && name.starts_with(what));
    for (what, _, _) in &skipped.0 {
        if !done.iter().any(|(name, ..)| names(what, name)) {
            println!("not among these files: {what}");
        }
    }
    assert!(wrong.is_empty(), "{} files:\n{}", wrong.len(), wrong.join("\n"));
    crate::assert_hits(&all, WARMED_PERCENT);
}

fn play_file(path: &Path, pair: &mut Pair) -> Fate {
    let text = match std::fs::read(path) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => return Fate::Different(error.to_string()),
    };
    let steps = match published::read(&text) {
        Ok(steps) => steps,
        Err(why) => return Fate::Different(format!("not readable: {why}")),
    };
    empty(pair);
    for step in &steps {
        let line = step.line;
        let played = match &step.what {
            What::Query(asked) => pair.query(asked).map(|_| None),
            What::Statement { sql, fails } => {
                let answer = pair.statement(sql);
                if sql.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("create"))
                {
                    identify(pair);
                }
                answer.map(|answer| answer.error.filter(|_| !fails))
            }
        };
        match played {
            Ok(None) => {}
            Ok(Some(refused)) => return Fate::Refused(format!("line {line}: {refused}")),
            Err(different) => return Fate::Different(format!("line {line}: {}", different.0)),
        }
    }
    Fate::Played
}

/// Without anything in them, whatever the last file has left.
fn empty(pair: &mut Pair) {
    const SCHEMAS: &str = "select quote_ident(nspname) from pg_namespace \
                           where nspname !~ '^pg_' and nspname <> 'information_schema'";
    for client in [&mut pair.direct, &mut pair.reader] {
        let schemas = client.rows(SCHEMAS);
        for schema in schemas.into_iter().flatten().flatten() {
            client.run(&format!("drop schema {schema} cascade"));
        }
        client.run("create schema public");
    }
}

/// A table without a key is followed as a whole row.
fn identify(pair: &mut Pair) {
    const WITHOUT: &str = "select c.oid::regclass from pg_class c \
         where c.relkind in ('r', 'p') and c.relpersistence = 'p' and c.relreplident = 'd' \
         and c.relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_' or nspname = 'information_schema') \
         and not exists (select 1 from pg_index i where i.indrelid = c.oid and i.indisprimary)";
    let alter = |client: &mut WireClient| {
        if client.status != b'I' {
            return;
        }
        for table in Answer::of(&client.query(WITHOUT)).rows.into_iter().flatten().flatten() {
            let table = String::from_utf8_lossy(&table).into_owned();
            client.query(&format!("alter table {table} replica identity full"));
        }
    };
    alter(&mut pair.direct);
    alter(&mut pair.reader);
}
