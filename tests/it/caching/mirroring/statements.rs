//! The statements of sysbench's read tests, with random values, against PostgreSQL's own answers.

use std::collections::HashSet;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::pg::backend::tag;
use wire::pg::frontend;

use super::super::formats::bind;
use super::super::place::{Cached, Place, Rows};
use super::Mirrored;
use crate::kit::wireclient::Message;
use crate::kit::{wait, WireClient};

const ROWS: i32 = 10_000;

/// Times that each statement is asked in each way.
const ROUNDS: usize = 120;

const PLACES: usize = 10;

struct Shape {
    sql: String,
    ranges: bool,
    values: usize,
    /// PostgreSQL gives its rows in one order only.
    ordered: bool,
}

#[derive(Debug, Clone, Copy)]
enum How {
    Simple,
    /// Formats of the values and of the results.
    Bound(u16, u16),
}

const HOW: [How; 5] =
    [How::Simple, How::Bound(0, 0), How::Bound(1, 1), How::Bound(1, 0), How::Bound(0, 1)];

fn set_up() -> String {
    format!(
        "create table sbtest1(id int primary key, k int not null default 0,
             c char(120) not null default '', pad char(60) not null default '');
         create index on sbtest1 (k);
         insert into sbtest1 select g, 1 + (g::bigint * 7919) % {ROWS},
             md5((g % 500)::text) || '-' || g % 500, md5(g::text) from generate_series(1, {ROWS}) g;
         analyze sbtest1"
    )
}

fn shapes() -> Vec<Shape> {
    let of = |sql: &str, ranges, values, ordered| {
        let sql = sql.to_owned();
        Shape { sql, ranges, values, ordered }
    };
    let range = |sql: &str, ordered| of(sql, true, 2, ordered);
    let points: Vec<String> = (1..=PLACES).map(|at| format!("${at}")).collect();
    let ranges: Vec<String> =
        (0..PLACES).map(|at| format!("k BETWEEN ${} AND ${}", 2 * at + 1, 2 * at + 2)).collect();
    let points = format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})", points.join(", "));
    let ranges = format!("SELECT count(k) FROM sbtest1 WHERE {}", ranges.join(" OR "));
    vec![
        of("SELECT c FROM sbtest1 WHERE id=$1", false, 1, true),
        range("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2", false),
        range("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2", true),
        range("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c", true),
        range("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c", true),
        of(&points, false, PLACES, false),
        of(&ranges, true, 2 * PLACES, true),
    ]
}

impl Shape {
    fn draw(&self, dice: &mut StdRng) -> Vec<i32> {
        let mut values = Vec::new();
        while values.len() < self.values {
            // Some are beyond both ends.
            let first = dice.random_range(-50..ROWS + 50);
            values.push(first);
            if self.ranges {
                values.push(first + dice.random_range(-1..100));
            }
        }
        values
    }

    fn text(&self, values: &[i32]) -> String {
        let all = values.iter().enumerate().rev();
        all.fold(self.sql.clone(), |sql, (at, value)| {
            sql.replace(&format!("${}", at + 1), &value.to_string())
        })
    }

    /// All replies; rows that have no order are sorted.
    fn ask(&self, client: &mut WireClient, how: How, values: &[i32]) -> Vec<Message> {
        let mut replies = match how {
            How::Simple => client.query(&self.text(values)),
            How::Bound(given, results) => {
                let value = |value: &i32| match given {
                    0 => value.to_string().into_bytes(),
                    _ => value.to_be_bytes().to_vec(),
                };
                let bytes: Vec<Vec<u8>> = values.iter().map(value).collect();
                let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
                client.put(|out| {
                    frontend::put_parse(out, b"", self.sql.as_bytes(), &[]);
                    bind(out, "", [&[given], &[results]], &bytes);
                    frontend::put_describe(out, frontend::Target::Portal, b"");
                    frontend::put_execute(out, b"", 0);
                    frontend::put_sync(out);
                });
                client.until_ready()
            }
        };
        if !self.ordered {
            let is_row = |reply: &Message| reply.tag == tag::DATA_ROW;
            let first = replies.iter().position(is_row).unwrap_or(0);
            let rows = replies.iter().filter(|reply| is_row(reply)).count();
            replies[first..first + rows].sort_by(|a, b| a.body.cmp(&b.body));
        }
        replies
    }
}

/// Asks each statement with values that it has never had, beside PostgreSQL.
struct Play {
    shapes: Vec<Shape>,
    had: HashSet<String>,
    dice: StdRng,
}

impl Play {
    fn new(seed: u64) -> Play {
        Play { shapes: shapes(), had: HashSet::new(), dice: StdRng::seed_from_u64(seed) }
    }

    fn round(&mut self, how: How, client: &mut WireClient, beside: &mut WireClient) {
        let Play { shapes, had, dice } = self;
        for shape in shapes {
            let values = std::iter::repeat_with(|| shape.draw(dice))
                .take(1000)
                .find(|values| had.insert(shape.text(values)))
                .expect("some that were never asked");
            let got = shape.ask(client, how, &values);
            let expected = shape.ask(beside, how, &values);
            assert_eq!(got, expected, "{how:?}: {}", shape.text(&values));
        }
    }
}

fn seed() -> u64 {
    let seed = rand::random();
    println!("seed {seed}");
    seed
}

#[test]
fn sysbench_s_reads_are_answered_by_mirrors_byte_by_byte_as_postgresql_does() {
    let place = Place::start(&set_up());
    let (mut client, mut beside) = (place.client(), place.beside());
    let mut play = Play::new(seed());
    let shapes = play.shapes.len() as u64;
    for how in HOW {
        // By the first 256 of each they are wanted.
        let all = wait::within(wait::DEADLINE, || {
            let before = place.figure("hits_total");
            play.round(how, &mut client, &mut beside);
            (place.figure("hits_total") - before == shapes).then_some(())
        });
        assert!(all.is_some(), "{how:?}: not all are answered by mirrors");
        let before = place.figure("hits_total");
        for _ in 0..ROUNDS {
            play.round(how, &mut client, &mut beside);
        }
        let (hits, all) = (place.figure("hits_total") - before, ROUNDS as u64 * shapes);
        // Some are asked of PostgreSQL as well, to compare.
        assert!(hits * 100 >= all * 95, "{how:?}: {hits} of {all} are answered by mirrors");
    }
    assert_eq!(place.figure("mismatches_total"), 0);
}

#[test]
fn sysbench_s_reads_behind_its_writes() {
    let place = Place::start(&set_up());
    let (mut client, mut other) = (place.client(), place.client());
    let mut beside = place.beside();
    let mut play = Play::new(seed());
    let mut dice = StdRng::seed_from_u64(play.dice.random());
    let shapes = play.shapes.len() as u64;
    let ready = wait::within(wait::DEADLINE, || {
        let before = place.figure("hits_total");
        play.round(How::Simple, &mut client, &mut beside);
        (place.figure("hits_total") - before == shapes).then_some(())
    });
    assert!(ready.is_some(), "not all are answered by mirrors");
    let before = place.figure("hits_total");
    for round in 0..2 * ROUNDS {
        let [id, k] = [0, 1].map(|_| dice.random_range(1..=ROWS));
        let writer = if round % 2 == 0 { &mut client } else { &mut other };
        writer.run(&match dice.random_range(0..4) {
            0 => format!("UPDATE sbtest1 SET k=k+1 WHERE id={id}"),
            1 => format!("UPDATE sbtest1 SET c='{k}-{id}' WHERE id={id}"),
            2 => format!(
                "BEGIN; DELETE FROM sbtest1 WHERE id={id}; \
                 INSERT INTO sbtest1 (id, k, c, pad) VALUES ({id}, {k}, '{k}', '{id}'); COMMIT"
            ),
            _ => format!("UPDATE sbtest1 SET k=k-1 WHERE id BETWEEN {id} AND {}", id + 100),
        });
        play.round(HOW[round % HOW.len()], &mut client, &mut beside);
    }
    let (hits, all) = (place.figure("hits_total") - before, 2 * ROUNDS as u64 * shapes);
    assert!(hits * 2 >= all, "{hits} of {all} are answered by mirrors");
    assert_eq!(place.figure("mismatches_total"), 0);
}

#[test]
fn conditions_are_turned_round_and_columns_are_numbered() {
    let place = Place::start(
        "create table odd(id int primary key, k int, open bool, name text collate \"C\");
         insert into odd select g, g % 40 - 20, case when g % 7 <> 0 then g % 3 = 0 end,
             case when g % 11 <> 0 then chr(97 + g % 5) || g end from generate_series(1, 2000) g",
    );
    place.mirrors(&[
        "SELECT id, k FROM odd WHERE k BETWEEN -{} AND - 15 ORDER BY 1",
        "SELECT count(1) FROM odd WHERE open AND id < {}",
        "SELECT id FROM odd WHERE NOT open AND id <> {} ORDER BY id",
        "SELECT id FROM odd WHERE open IS NOT TRUE AND NOT (id = {} OR k > -3) ORDER BY id",
        "SELECT open, count(*) FROM odd WHERE k NOT IN ({}, -5) GROUP BY 1 ORDER BY 2 DESC, 1",
        "SELECT name AS a FROM odd WHERE name LIKE 'b1%' AND id NOT BETWEEN 7 AND 20 AND k < {} \
         ORDER BY a",
    ]);
    // The same shape, and another order.
    let (mut client, mut beside) = (place.client(), place.beside());
    let other = "SELECT id, k FROM odd WHERE k BETWEEN -{} AND - 15 ORDER BY 2";
    let rows = client.unheard_rows(other);
    assert!(!client.was_hit());
    let second = |rows: Rows| rows.into_iter().map(|mut row| row.remove(1)).collect::<Vec<_>>();
    assert_eq!(second(rows), second(beside.unheard_rows(other)));
    client.mirror("SELECT id, k FROM odd WHERE k BETWEEN -{} AND - 15 ORDER BY 1");
    assert_eq!(place.figure("mismatches_total"), 0);
}
