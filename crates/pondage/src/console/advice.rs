//! SHOW ADVICE: what would gain most, each with what was measured. Nothing is measured for it:
//! it reads what SHOW QUERIES, PROCEDURES, POOLS and BLOCKERS are made of.
//!
//! A gain is milliseconds a second: of PostgreSQL's time that reads would no longer take, or of
//! clients' time that they would no longer wait. Figures are since the start.

use std::time::Duration;

use super::procedures::suggestion;
use super::queries::merge;
use super::show::Facts;
use super::table::Value;
use crate::config::{CacheMode, Config, PoolOptions, Scope};
use crate::worker::snapshot::{PoolSnapshot, QuerySnapshot};

/// Before so much time has passed nothing is said.
pub const EARLIEST: Duration = Duration::from_secs(120);
/// Rows at the most.
const ROWS_MAX: usize = 50;
/// What gains less, in milliseconds a second, is not worth a word.
const GAIN_MIN: f64 = 1.0;
/// Reads of a database that does not cache are worth looking at from here on.
const READS_MIN: f64 = 50.0;
/// A pool is too big when so many times the servers that work would be enough.
const SPARE: f64 = 4.0;
const POOL_BIG: u32 = 8;
/// A pool is full when so much of it works all the time.
const FULL: f64 = 0.7;
/// A transaction that waits for its client for so long keeps others waiting.
const IDLE_MIN: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq)]
struct Advice {
    gain: f64,
    kind: &'static str,
    database: String,
    user: String,
    subject: String,
    advice: String,
    /// For the console, or lines of the configuration.
    command: String,
    basis: String,
}

pub fn rows(facts: &Facts<'_>, running: Duration) -> Vec<Vec<Value>> {
    if running < EARLIEST {
        let (passed, needed) = (running.as_secs(), EARLIEST.as_secs());
        let basis = format!("{passed} s of {needed} s have passed");
        let said = [Value::Null, Value::text("none"), Value::Null, Value::Null, Value::Null];
        let rest = [Value::text("wait for more traffic"), Value::Null, Value::text(basis)];
        return vec![[Value::Null].into_iter().chain(said).chain(rest).collect()];
    }
    let shapes = merge(facts.workers);
    let mut all = caches(&shapes, facts, running);
    all.extend(procedures(facts, running));
    all.extend(facts.pools.iter().filter_map(|pool| size(pool, facts.config, running)));
    all.extend(open_transactions(facts));
    all.retain(|one| one.gain >= GAIN_MIN || one.kind == "pool");
    all.sort_by(|a, b| b.gain.total_cmp(&a.gain).then_with(|| a.subject.cmp(&b.subject)));
    all.truncate(ROWS_MAX);
    all.into_iter().enumerate().map(|(at, one)| row(at + 1, one)).collect()
}

fn row(rank: usize, one: Advice) -> Vec<Value> {
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    vec![
        Value::from(rank),
        Value::Tenths((one.gain * 10.0).round().max(0.0) as u64),
        Value::text(one.kind),
        Value::text(one.database),
        Value::optional(some(one.user)),
        Value::text(one.subject),
        Value::text(one.advice),
        Value::optional(some(one.command)),
        Value::text(one.basis),
    ]
}

/// Of this many microseconds since the start, milliseconds a second.
fn per_second(micros: u64, running: Duration) -> f64 {
    micros as f64 / 1e3 / running.as_secs_f64()
}

/// Reads that would be answered from memory, as counted in mode `advise`; where no read is counted,
/// databases whose reads take long.
fn caches(shapes: &[QuerySnapshot], facts: &Facts<'_>, running: Duration) -> Vec<Advice> {
    let mut all = Vec::new();
    for shape in shapes {
        let Some(read) = shape.read.as_ref().filter(|read| !read.named && read.hits == 0) else {
            continue;
        };
        if read.cacheable != Some(Ok(())) || read.advised == 0 || shape.calls == 0 {
            continue;
        }
        let share = read.advised.min(shape.calls) as f64 / shape.calls as f64;
        let database = named(&shape.database);
        all.push(Advice {
            gain: per_second(shape.time.sum_us, running) * share,
            kind: "cache",
            database: shape.database.clone(),
            user: shape.user.clone(),
            subject: read.normal.clone(),
            advice: "cache it, in mode manual or auto: its answers were asked for again before \
                     their rows changed"
                .to_owned(),
            // A text that is shown in part only is none to run.
            command: match read.normal.ends_with(" ...") {
                true => String::new(),
                false => format!("CREATE CACHE IN DATABASE {database} FROM {}", read.normal),
            },
            basis: format!(
                "{} of {} calls would have been answered from memory; {:.1} ms a second in all",
                read.advised,
                shape.calls,
                per_second(shape.time.sum_us, running)
            ),
        });
    }
    for pool in facts.pools {
        all.extend(match pool.config.cache {
            CacheMode::Off => counting(pool, &shapes_of(shapes, pool), facts, running),
            CacheMode::Advise => serving(pool, &shapes_of(shapes, pool), facts, running),
            CacheMode::Manual | CacheMode::Auto => None,
        });
    }
    all
}

fn shapes_of<'s>(shapes: &'s [QuerySnapshot], pool: &PoolSnapshot) -> Vec<&'s QuerySnapshot> {
    let is_of = |shape: &&QuerySnapshot| {
        shape.read.is_some() && (&shape.database, &shape.user) == (&pool.database, &pool.user)
    };
    shapes.iter().filter(is_of).collect()
}

/// Of reads that nobody counts, but that take long.
fn counting(
    pool: &PoolSnapshot,
    shapes: &[&QuerySnapshot],
    facts: &Facts<'_>,
    running: Duration,
) -> Option<Advice> {
    let calls: u64 = shapes.iter().map(|shape| shape.calls).sum();
    let reads = per_second(shapes.iter().map(|shape| shape.time.sum_us).sum(), running);
    (reads >= READS_MIN).then(|| Advice {
        // Nobody has counted; as little as is worth a word.
        gain: GAIN_MIN,
        kind: "cache",
        database: pool.database.clone(),
        user: pool.user.clone(),
        subject: "reads of this pool".to_owned(),
        advice: "count which of them would be answered from memory: mode advise changes no answer"
            .to_owned(),
        command: lines(facts.config, pool, "cache = \"advise\"", |own| own.cache.is_some()),
        basis: format!("{calls} reads take {reads:.0} ms of PostgreSQL's time a second"),
    })
}

/// Of reads that are named already, where the mode has them go to PostgreSQL all the same.
fn serving(
    pool: &PoolSnapshot,
    shapes: &[&QuerySnapshot],
    facts: &Facts<'_>,
    running: Duration,
) -> Option<Advice> {
    let named = shapes.iter().filter(|shape| shape.read.as_ref().is_some_and(|read| read.named));
    let (mut gain, mut advised, mut calls) = (0.0, 0, 0);
    for shape in named.filter(|shape| shape.calls > 0) {
        let hits = shape.read.as_ref().map_or(0, |read| read.advised.min(shape.calls));
        gain += per_second(shape.time.sum_us, running) * hits as f64 / shape.calls as f64;
        (advised, calls) = (advised + hits, calls + shape.calls);
    }
    (advised > 0).then(|| Advice {
        gain,
        kind: "cache",
        database: pool.database.clone(),
        user: pool.user.clone(),
        subject: "cached statements of this pool".to_owned(),
        advice: "answer them from memory: mode advise only counts".to_owned(),
        command: lines(facts.config, pool, "cache = \"manual\"", |own| own.cache.is_some()),
        basis: format!(
            "{advised} of {calls} calls of statements that have a cache would have been answered \
             from memory"
        ),
    })
}

/// Calls that wait for one another, and have an argument in common that nobody has named as key.
fn procedures(facts: &Facts<'_>, running: Duration) -> Vec<Advice> {
    let advised = facts.procedures.iter().filter_map(|procedure| {
        let plan = procedure.plan();
        let (why, command) = suggestion(procedure, &plan)?;
        let fared = procedure.fared();
        let waited = procedure.waits().share().unwrap_or(0);
        let gain = per_second(fared.time.sum_us, running) * waited as f64 / 100.0;
        Some(Advice {
            gain,
            kind: "procedure",
            database: procedure.database.clone(),
            user: String::new(),
            subject: procedure.title.clone(),
            advice: why,
            command,
            basis: format!(
                "{waited} % of the calls that were seen waited for a lock; {} calls, {:.1} ms a \
                 second in all",
                fared.calls,
                per_second(fared.time.sum_us, running)
            ),
        })
    });
    advised.collect()
}

/// A pool in which clients wait while all of it works, or of which most never works.
fn size(pool: &PoolSnapshot, config: &Config, running: Duration) -> Option<Advice> {
    let waits = per_second(pool.totals.wait_time_us, running);
    // Servers at work on the average, by the time that transactions took.
    let busy = per_second(pool.totals.xact_time_us, running) / 1e3;
    let size = pool.config.pool_size;
    let (advice, wanted, gain) = if waits >= GAIN_MIN && busy >= FULL * f64::from(size) {
        let wanted = ((busy * 1.5).ceil() as u32).max(size + 1);
        ("raise the pool's size, if the server has processors to spare", wanted, waits)
    } else if size >= POOL_BIG && waits < GAIN_MIN && busy * SPARE < f64::from(size) {
        let wanted = ((busy * SPARE / 2.0).ceil() as u32).max(2);
        ("a smaller pool would do: PostgreSQL works best with few connections", wanted, 0.0)
    } else {
        return None;
    };
    if pool.totals.xact_count == 0 {
        return None;
    }
    let line = format!("pool_size = {wanted}");
    Some(Advice {
        gain,
        kind: "pool",
        database: pool.database.clone(),
        user: pool.user.clone(),
        subject: format!("pool_size {size}"),
        advice: advice.to_owned(),
        command: lines(config, pool, &line, |own| own.pool_size.is_some()),
        basis: format!(
            "{busy:.2} servers of {size} were in transactions on the average; clients waited \
             {waits:.1} ms a second"
        ),
    })
}

/// Clients that do nothing in a transaction while others wait for their server.
fn open_transactions(facts: &Facts<'_>) -> Vec<Advice> {
    let mut all = Vec::new();
    for worker in facts.workers {
        for holder in &worker.holders {
            let idle = worker.now.since(holder.state_since);
            let Some(client) = &holder.client else { continue };
            let waiting = facts.pools.iter().filter(|pool| pool.database == holder.pool.database);
            let waiting: u32 = waiting.map(|pool| pool.cl_waiting).sum();
            if holder.state != "idle in transaction" || idle < IDLE_MIN || waiting == 0 {
                continue;
            }
            all.push(Advice {
                // Each that waits waits all the time.
                gain: f64::from(waiting) * 1e3,
                kind: "transaction",
                database: holder.pool.database.clone(),
                user: client.user.clone(),
                subject: format!(
                    "client {} \"{}\" from {}",
                    client.id, client.application_name, client.ends
                ),
                advice: "it does nothing in an open transaction; the application should end it \
                         before it does something else, or idle_transaction_timeout ends it"
                    .to_owned(),
                command: format!("KILL_CLIENT {}", client.id),
                basis: format!(
                    "idle in transaction for {:.1} s; {waiting} clients wait for a server",
                    idle.as_secs_f64()
                ),
            });
        }
    }
    all
}

/// Lines of the configuration that put an option into force for a pool: in the section of its
/// database, or of its user there where something says otherwise for that user. `says`: whether a
/// section has the option.
fn lines(
    config: &Config,
    pool: &PoolSnapshot,
    line: &str,
    says: impl Fn(&PoolOptions) -> bool,
) -> String {
    // One that has come through the wildcard has no section; a new one would lead elsewhere.
    let name = match config.databases.contains_key(&pool.database) {
        true => pool.database.as_str(),
        false => "*",
    };
    let there = config.databases.get(name).and_then(|section| section.users.get(&pool.user));
    let everywhere = config.users.get(&pool.user).map(|user| &user.options);
    let section = match there.into_iter().chain(everywhere).any(says) {
        true => Scope::database_user(name, &pool.user),
        false => Scope::database(name),
    };
    format!("[{}]\n{line}", section.path())
}

/// A name as SQL takes it.
fn named(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !name.is_empty()
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit())
    {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
