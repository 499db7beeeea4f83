//! The load of the first minute: the same work at PostgreSQL itself and through Pondage, in short
//! rounds by turns, so that what else the machine does meets both.
//!
//! Everything runs on one thread, on loopback. All connections are gone when [`run`] returns.

mod clients;
mod table;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the load needs beside the sample.
pub const SAMPLE: &str = include_str!("load.sql");

/// How often each row has its turn: the first figures are there soon, and get better.
const PASSES: u32 = 3;

/// How soon the load ends after it is told to.
const STOP_POLL: Duration = Duration::from_millis(20);

/// Where the clients go.
pub struct Places {
    pub direct: tokio_postgres::Config,
    pub through: tokio_postgres::Config,
    /// None: the door is closed, and the row is left out.
    pub redis: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Direct,
    Through,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A connection for each statement.
    Connect,
    Select,
    SameRead,
    /// By SQL; through Pondage, by the Redis door.
    Write,
    Pay,
}

/// A row of the table.
struct Round {
    what: &'static str,
    work: Work,
    clients: usize,
}

const ROUNDS: [Round; 5] = [
    Round { what: "connect, select, leave", work: Work::Connect, clients: 8 },
    Round { what: "400 clients, simple selects", work: Work::Select, clients: 400 },
    Round { what: "the same read again and again", work: Work::SameRead, clients: 16 },
    Round { what: "small writes, by Redis clients", work: Work::Write, clients: 32 },
    Round { what: "payment: calls for the same row", work: Work::Pay, clients: 64 },
];

/// What was measured of one side of a row.
#[derive(Default)]
struct Figure {
    done: u64,
    failed: u64,
    /// The first one.
    error: Option<String>,
    measured: Duration,
    latencies: Latencies,
}

impl Figure {
    fn per_second(&self) -> f64 {
        match self.measured.is_zero() {
            true => 0.0,
            false => self.done as f64 / self.measured.as_secs_f64(),
        }
    }

    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.error.get_or_insert(why);
    }
}

/// How many answers took how long. A bucket is some 6 % wide, so that any number of them fits.
struct Latencies([u32; 320]);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies([0; 320])
    }
}

impl Latencies {
    const STEPS: f64 = 16.0;

    fn add(&mut self, took: Duration) {
        let micros = (took.as_micros().max(1)) as f64;
        let bucket = ((micros.ln() * Latencies::STEPS) as usize).min(self.0.len() - 1);
        self.0[bucket] = self.0[bucket].saturating_add(1);
    }

    /// 99 of 100 took no longer than this.
    fn p99(&self) -> Option<Duration> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let mut seen = 0;
        let bucket = self.0.iter().position(|count| {
            seen += u64::from(*count);
            all > 0 && seen * 100 >= all * 99
        })?;
        let micros = ((bucket + 1) as f64 / Latencies::STEPS).exp();
        Some(Duration::from_secs_f64(micros / 1e6))
    }
}

/// A round and both of its figures.
struct Row {
    round: &'static Round,
    direct: RefCell<Figure>,
    through: RefCell<Figure>,
}

impl Row {
    fn figure(&self, side: Side) -> &RefCell<Figure> {
        match side {
            Side::Direct => &self.direct,
            Side::Through => &self.through,
        }
    }
}

/// Runs the load for about `total`, showing the table in `terminal`s after each turn and
/// elsewhere at the end. True: it was not stopped.
pub fn run(places: &Places, total: Duration, terminal: bool, stop: &AtomicBool) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("demo: no load: {error}");
            return false;
        }
    };
    let rows: Vec<Row> = ROUNDS
        .iter()
        .filter(|round| round.work != Work::Write || places.redis.is_some())
        .map(|round| Row { round, direct: RefCell::default(), through: RefCell::default() })
        .collect();
    let turns = PASSES * 2 * rows.len() as u32;
    let length = total / turns;
    let all = async {
        let mut shown = table::Shown::new(terminal);
        for _ in 0..PASSES {
            for row in &rows {
                for side in [Side::Direct, Side::Through] {
                    clients::turn(row.round, side, places, length, row.figure(side)).await;
                }
                shown.update(&rows);
            }
        }
        shown.end(&rows);
    };
    // What is still connected goes with the runtime.
    runtime.block_on(async {
        tokio::select! {
            () = all => true,
            () = told(stop) => false,
        }
    })
}

async fn told(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP_POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_of_100_is_found_within_a_bucket() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.p99(), None);
        for millis in 1..=100 {
            latencies.add(Duration::from_millis(millis));
        }
        let p99 = latencies.p99().expect("some").as_secs_f64();
        assert!((0.099..0.106).contains(&p99), "{p99}");
        latencies.add(Duration::from_secs(1 << 40));
    }
}
