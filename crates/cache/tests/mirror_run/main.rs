//! Statements over tables in memory against a real PostgreSQL that has the same rows: the answers
//! are the same bytes.

#[allow(dead_code)] // Sessions in text alone are another test's.
#[path = "../values/kit.rs"]
mod kit;
#[path = "../model/random.rs"]
mod random;
mod server;
mod statement;
mod world;
mod written;

use cache::mirror::output::{Format, Session};
use cache::mirror::plan::{Plan, Ties};
use cache::mirror::run::{run, Limits, Ran, Refused, Scratch, Terms};
use random::Random;
use server::{rows, Answer, Server};
use sql::Source;
use statement::{Shape, Statement};
use world::World;

const LIMITS: Limits = Limits { rows: 2_000_000, bytes: 64 << 20 };

fn session() -> Session {
    Session::of(&|name| {
        let all = backend::replication::SETTINGS;
        let found = all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| (*value).to_owned())
    })
}

/// What came of the statements of a test.
#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    unplanned: usize,
    refused: usize,
    failed: usize,
}

/// Statements of a world, on both sides.
struct Judge {
    server: Server,
    scratch: Scratch,
    tally: Tally,
}

impl Judge {
    fn try_one(&mut self, world: &World, statement: &Statement, random: &mut Random) {
        let types = |source: Source| statement.type_of(source);
        let planned = Plan::new(statement.select.clone(), world.definitions(statement), &types);
        let Ok(plan) = planned else {
            self.tally.unplanned += 1;
            return;
        };
        let shown = statement.select.shown;
        let formats = match random.below(4) {
            0 => vec![Format::Binary],
            1 => (0..shown).map(|_| *random.of(&[Format::Text, Format::Binary])).collect(),
            2 => vec![Format::Text],
            _ => vec![],
        };
        let mut out = Vec::new();
        let session = session();
        let terms = Terms { formats: &formats, session: &session, limits: LIMITS };
        let ran = run(&plan, world, statement, terms, &mut self.scratch, &mut out);
        let expected = self.server.run(&statement.sql(true), statement, &formats);
        let count = match (ran, &expected) {
            (Ran::Rows(count), Answer::Rows { .. }) => count,
            (Ran::Refused(Refused::Value), Answer::Failed(_)) => {
                self.tally.failed += 1;
                return;
            }
            (Ran::Refused(Refused::Value), _) => {
                assert!(out.is_empty());
                self.tally.refused += 1;
                return;
            }
            (ran, _) => panic!("{ran:?} and {expected:?}\n{statement}"),
        };
        let Answer::Rows { rows: expected, tag } = expected else { unreachable!() };
        let (found, end) = rows(&out);
        assert_eq!((end, count), (tag, found.len() as u64), "{statement}");
        self.tally.answered += 1;
        self.compare(&plan, statement, &formats, found, expected);
    }

    fn compare(
        &mut self,
        plan: &Plan,
        statement: &Statement,
        formats: &[Format],
        found: Vec<Vec<u8>>,
        expected: Vec<Vec<u8>>,
    ) {
        let ties = plan.ties();
        if ties == Ties::Total {
            assert_eq!(shown(&found), shown(&expected), "{statement}");
            return;
        }
        let of_order = |rows: &[Vec<u8>]| -> Vec<Vec<Option<Vec<u8>>>> {
            let told = |row: &Vec<u8>| {
                let fields = server::fields(row);
                let orders = statement.select.order.iter().map(|order| order.output);
                orders
                    .take_while(|output| *output < statement.select.shown)
                    .take_while(|output| statement.is_plain(*output))
                    .map(|output| fields[output].clone())
                    .collect()
            };
            rows.iter().map(told).collect()
        };
        assert_eq!(of_order(&found), of_order(&expected), "{statement}");
        let sorted = |mut rows: Vec<Vec<u8>>| {
            rows.sort();
            rows
        };
        if ties == Ties::Free {
            assert_eq!(shown(&sorted(found)), shown(&sorted(expected)), "{statement}");
            return;
        }
        assert_eq!(found.len(), expected.len(), "{statement}");
        let all = self.server.run(&statement.sql(false), statement, formats);
        let Answer::Rows { rows: all, .. } = all else { panic!("{all:?}\n{statement}") };
        let mut all = sorted(all);
        for row in found {
            let at = all.binary_search(&row).unwrap_or_else(|_| {
                panic!("{} is in no answer\n{statement}", row.escape_ascii());
            });
            all.remove(at);
        }
    }
}

fn shown(rows: &[Vec<u8>]) -> Vec<String> {
    rows.iter().map(|row| row.escape_ascii().to_string()).collect()
}

/// Several worlds with statements of one shape.
fn judge(seed: u64, shape: &Shape, worlds: usize, statements: usize) -> Tally {
    // Others than those of every day are tried by setting this.
    let offset = std::env::var("MIRROR_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    let seed = seed + offset.unwrap_or(0) * 1000;
    let mut random = Random(seed);
    let mut judge =
        Judge { server: Server::open(), scratch: Scratch::default(), tally: Tally::default() };
    let schema = format!("s{seed}");
    for _ in 0..worlds {
        let mut world = World::make(&mut judge.server, &mut random, shape, &schema);
        for at in 0..statements {
            if at % 50 == 0 {
                world.choose_indexes(&mut judge.server, &mut random);
            }
            if at % 5 == 0 {
                world.change(&mut judge.server, &mut random);
            }
            let statement = match shape.written {
                true => written::random(&world, &mut random),
                false => Statement::random(&world, &mut random, shape),
            };
            judge.try_one(&world, &statement, &mut random);
        }
    }
    println!("seed {seed}, {shape:?}: {:?}", judge.tally);
    judge.tally
}

#[track_caller]
fn mostly_answered(tally: &Tally) {
    let all = tally.answered + tally.unplanned + tally.refused + tally.failed;
    assert!(tally.answered * 3 > all, "{tally:?}");
}

#[test]
fn filtered_rows_are_those_of_postgres() {
    mostly_answered(&judge(1, &Shape { order: false, ..Shape::default() }, 6, 500));
}

#[test]
fn ordered_rows_are_those_of_postgres() {
    mostly_answered(&judge(2, &Shape::default(), 6, 500));
}

#[test]
fn totals_are_those_of_postgres() {
    mostly_answered(&judge(3, &Shape { totals: true, ..Shape::default() }, 6, 500));
}

#[test]
fn groups_are_those_of_postgres() {
    mostly_answered(&judge(4, &Shape { groups: true, ..Shape::default() }, 6, 400));
}

#[test]
fn distinct_rows_are_those_of_postgres() {
    mostly_answered(&judge(5, &Shape { distinct: true, ..Shape::default() }, 6, 400));
    let groups = judge(9, &Shape { distinct: true, groups: true, ..Shape::default() }, 4, 400);
    assert!(groups.answered > 200, "{groups:?}");
    let totals = Shape { distinct: true, totals: true, ..Shape::default() };
    mostly_answered(&judge(10, &totals, 2, 200));
}

#[test]
fn joined_rows_are_those_of_postgres() {
    mostly_answered(&judge(6, &Shape { tables: 3, ..Shape::default() }, 6, 400));
}

#[test]
fn what_is_written_means_what_it_means_to_postgres() {
    mostly_answered(&judge(11, &Shape { written: true, ..Shape::default() }, 8, 500));
}

#[test]
fn groups_of_joined_rows_are_those_of_postgres() {
    let shape = Shape { tables: 2, groups: true, ..Shape::default() };
    mostly_answered(&judge(7, &shape, 6, 300));
    let shape = Shape { tables: 2, totals: true, ..Shape::default() };
    mostly_answered(&judge(8, &shape, 4, 300));
}
