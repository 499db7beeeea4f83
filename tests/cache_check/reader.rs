//! One client that reads, writes a little, and remembers how far it has seen.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::Rng;

use crate::door::{Client, Rows};
use crate::load::{self, Raised, Told, COUNTERS, GROUPS, IDS};

/// Whether an answer came from the cache is asked for once in so many.
pub const LOOKS_ONE_OF: u64 = 8;

/// Before a number that is greater than all and never was there.
pub const UNHEARD: &str = " and id < ";

static UNUSED: AtomicU64 = AtomicU64::new(1_000_000_000);

/// What every later answer must at least show.
#[derive(Debug, Default)]
struct Floor {
    groups: [i64; GROUPS],
    counters: [i64; COUNTERS],
    batch: i64,
}

pub struct Reader<'a> {
    client: Client,
    told: &'a Told,
    dice: StdRng,
    floor: Floor,
    pub wrong: Vec<String>,
    pub asked: u64,
    pub hits: u64,
    /// Those of them that were a mirror's.
    pub mirrored: u64,
}

impl<'a> Reader<'a> {
    pub fn new(client: Client, told: &'a Told, dice: StdRng) -> Reader<'a> {
        let (floor, wrong) = (Floor::default(), Vec::new());
        Reader { client, told, dice, floor, wrong, asked: 0, hits: 0, mirrored: 0 }
    }

    /// One thing that clients do.
    pub fn step(&mut self) {
        match self.dice.random_range(0..200) {
            0..3 => self.write_group(),
            3..6 => self.write_counter(),
            6..8 => self.write_and_look(),
            8..12 => self.set_time_zone(),
            12..32 => {
                let begun = self.client.pass("begin").is_some();
                for _ in 0..self.dice.random_range(0..4) {
                    self.read();
                }
                if !begun || self.client.pass("commit").is_none() {
                    self.client.again();
                }
            }
            _ => self.read(),
        }
    }

    fn read(&mut self) {
        let group = self.dice.random_range(0..GROUPS);
        let id = group + GROUPS * self.dice.random_range(0..IDS / GROUPS);
        let counter = self.dice.random_range(0..COUNTERS);
        let kind = self.dice.random_range(0..15);
        // Volatile: PostgreSQL itself answers.
        let fresh = if self.dice.random_bool(0.05) { " and random() < 2" } else { "" };
        let sql = match kind {
            0 => format!(
                "select sum(n + m), min(n), max(n) from (select n, m from a where grp = {group} \
                 union all select n, m from b where grp = {group}) x where true{fresh}"
            ),
            1 => format!("select 0, a.n, b.n from a join b on b.id = a.id where a.id = {id}{fresh}"),
            2 => format!("select n + m, n, n from a where id = {id}{fresh}"),
            3 => format!("select n + m, n, n from b where id = {id}{fresh}"),
            4 => format!(
                "select sum(n + m), min(n), max(n) from b where grp in ({group}, 99) and id between 0 and 90{fresh}"
            ),
            5 => format!("select n from c where id = {counter}{fresh}"),
            6 => format!("select min(batch), max(batch), count(*) from e where id > 0{fresh}"),
            7 => format!("select max(n) from c where id >= {counter} and id <= {counter}{fresh}"),
            9.. => self.of_mirrors(kind, group, id, counter),
            _ => format!("select at::text, extract(epoch from at)::bigint from z where id = 1 and n = 0{fresh}"),
        };
        // Whatever anybody was told by now.
        let known = (self.told.group(group), self.told.counter(counter));
        let Some(rows) = self.client.read(&sql) else { return self.client.again() };
        self.floor.groups[group] = self.floor.groups[group].max(known.0);
        self.floor.counters[counter] = self.floor.counters[counter].max(known.1);
        self.asked += 1;
        let looks = self.client.tells_hits() && self.asked % LOOKS_ONE_OF == 0;
        if looks {
            let hit = u64::from(self.client.was_hit());
            self.hits += hit;
            self.mirrored += if kind >= 9 { hit } else { 0 };
        }
        let before = self.wrong.len();
        match kind {
            5 | 7 | 13 => self.judge_counter(&rows, counter),
            6 | 14 => self.judge_batch(&rows),
            9..=11 => self.judge_group(&summed(&rows), group),
            12 => self.judge_pair(&rows, group),
            8 => self.judge_zone(&rows),
            _ => self.judge_group(&rows, group),
        }
        if self.wrong.len() > before && self.client.tells_hits() {
            let hit = self.client.was_hit();
            self.wrong.push(format!("  that was {sql}, the answer {rows:?}, hit: {hit}"));
        }
    }

    /// What only a mirror can answer from memory: a value in it never comes again.
    fn of_mirrors(&mut self, kind: u32, group: usize, id: usize, counter: usize) -> String {
        let unused = UNUSED.fetch_add(1, Ordering::Relaxed);
        match kind {
            9 => format!("select n, m from a where grp = {group}{UNHEARD}{unused}"),
            10 => format!("select n, m from b where grp = {group}{UNHEARD}{unused}"),
            11 => format!("select n, m from b where id between {id} and {id}{UNHEARD}{unused}"),
            12 => format!(
                "select a.n, b.n from a join b on b.id = a.id where a.id = {id} and \
                 a.m <= 0 and b.n < {unused}"
            ),
            13 => format!("select n from c where id = {counter}{UNHEARD}{unused}"),
            _ => format!(
                "select min(batch), max(batch), count(*) from e where id > 0{UNHEARD}{unused}"
            ),
        }
    }

    fn judge_pair(&mut self, rows: &Rows, group: usize) {
        let both =
            rows.first().map(|row| vec![Some("0".to_owned()), row[0].clone(), row[1].clone()]);
        self.judge_group(&both.into_iter().collect(), group);
    }

    fn judge_group(&mut self, rows: &Rows, group: usize) {
        let [sum, low, high] = [0, 1, 2].map(|at| value(rows, at));
        if sum != Some(0) || low != high || low.is_none() {
            return self.wrong.push(format!("half a commit: {rows:?}"));
        }
        let now = low.unwrap_or_default();
        let floor = &mut self.floor.groups[group];
        if now < *floor {
            self.wrong.push(format!("group {group} went from {floor} back to {now}"));
        }
        *floor = now.max(*floor);
    }

    fn judge_counter(&mut self, rows: &Rows, counter: usize) {
        let now = value(rows, 0).unwrap_or(-1);
        let floor = &mut self.floor.counters[counter];
        if now < *floor {
            self.wrong.push(format!("counter {counter} went from {floor} back to {now}"));
        }
        *floor = now.max(*floor);
    }

    fn judge_batch(&mut self, rows: &Rows) {
        let [low, high, count] = [0, 1, 2].map(|at| value(rows, at));
        if low != high || count != Some(load::BATCH_ROWS) {
            return self.wrong.push(format!("half a refill: {rows:?}"));
        }
        let now = low.unwrap_or_default();
        if now < self.floor.batch {
            self.wrong.push(format!("the batch went from {} back to {now}", self.floor.batch));
        }
        self.floor.batch = now.max(self.floor.batch);
    }

    fn judge_zone(&mut self, rows: &Rows) {
        let text = rows.first().and_then(|row| row[0].clone()).unwrap_or_default();
        let expected = match &*self.client.setting {
            "Asia/Tokyo" => "2024-02-29 21:00:00+09",
            "America/New_York" => "2024-02-29 07:00:00-05",
            _ => "2024-02-29 12:00:00+00",
        };
        if text != expected {
            self.wrong.push(format!("{text} and not {expected}, with {:?}", self.client.setting));
        }
    }

    fn set_time_zone(&mut self) {
        let zone = ["UTC", "Asia/Tokyo", "America/New_York"][self.dice.random_range(0..3)];
        match self.client.pass(&format!("set timezone = '{zone}'")) {
            Some(_) => zone.clone_into(&mut self.client.setting),
            None => {
                self.client.again();
                // Nobody knows whether it counts.
                if self.client.pass("set timezone = 'UTC'").is_some() {
                    self.client.setting.clear();
                }
            }
        }
    }

    fn write_group(&mut self) {
        let group = self.dice.random_range(0..GROUPS);
        let statements = load::group_commit(group, &mut self.dice);
        match self.client.write(&statements) {
            Some(_) => {
                // At least one more than what was known.
                self.floor.groups[group] += 1;
                self.told.raised(Raised::Group(group));
            }
            None => self.client.again(),
        }
    }

    fn write_counter(&mut self) {
        let counter = self.dice.random_range(0..COUNTERS);
        let sql = format!("update c set n = n + 1 where id = {counter} returning n");
        match self.client.write(&[sql]) {
            Some(rows) => {
                self.judge_counter(&rows, counter);
                self.told.raised(Raised::Counter(counter));
            }
            None => self.client.again(),
        }
    }

    /// What it has written it sees before it commits, and nobody does when it does not.
    fn write_and_look(&mut self) {
        let counter = self.dice.random_range(0..COUNTERS);
        let read = format!("select n from c where id = {counter}");
        let update = format!("update c set n = n + 1000000 where id = {counter}");
        let seen = [
            self.client.pass("begin").and_then(|_| self.client.read(&read)),
            self.client.pass(&update).and_then(|_| self.client.read(&read)),
        ];
        if self.client.pass("rollback").is_none() {
            return self.client.again();
        }
        if let [Some(_), Some(after)] = &seen {
            let after = value(after, 0).unwrap_or_default();
            if after < 1_000_000 {
                self.wrong.push(format!("counter {counter}: its own change is not seen: {after}"));
            }
        }
        if let Some(rows) = self.client.read(&read) {
            let now = value(&rows, 0).unwrap_or_default();
            if now >= 1_000_000 {
                self.wrong.push(format!("counter {counter}: {now} was never committed"));
            } else {
                self.judge_counter(&rows, counter);
            }
        }
    }
}

/// Rows of `n` and `m` as one with what the sum of all is, and the least and the greatest `n`.
fn summed(rows: &Rows) -> Rows {
    let number = |value: &Option<String>| value.as_ref()?.parse::<i64>().ok();
    let all: Option<Vec<[i64; 2]>> =
        rows.iter().map(|row| Some([number(&row[0])?, number(&row[1])?])).collect();
    let all = all.unwrap_or_default();
    let sum = all.iter().flatten().sum::<i64>();
    let [low, high] = [all.iter().map(|row| row[0]).min(), all.iter().map(|row| row[0]).max()];
    let text = |value: Option<i64>| value.map(|value| value.to_string());
    vec![vec![text(Some(sum)), text(low), text(high)]]
}

fn value(rows: &Rows, column: usize) -> Option<i64> {
    rows.first()?.get(column)?.as_ref()?.parse().ok()
}
