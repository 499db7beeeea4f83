//! Tables of four columns, their rows, and restrictions of them.

use std::sync::Arc;

use cache::recipe::{Form, Precise, Recipe, Signature, Source, TableDeps, Value, Values};
use cache::value::{oid, Kind};
use wire::pg::pgoutput::{Relation, RelationColumn};

use crate::random::Random;

/// None is NULL.
pub type Row = Vec<Option<String>>;

pub const COLUMNS: [(&str, u32, Kind); 4] = [
    ("k", oid::INT4, Kind::Int),
    ("b", oid::INT8, Kind::Int),
    ("t", oid::TEXT, Kind::Bytes),
    ("n", oid::NUMERIC, Kind::Numeric),
];

/// Values that begin so are long: the stream does not tell them when they have not changed.
const LONG: char = 'L';

pub fn is_long(value: &str) -> bool {
    value.starts_with(LONG)
}

pub fn value(random: &mut Random, column: usize, nulls: bool) -> Option<String> {
    if nulls && random.one_in(6) {
        return None;
    }
    let value = match column {
        0 => (random.below(12) as i64 - 4).to_string(),
        1 if random.one_in(4) => (random.next() as i64 >> random.below(60)).to_string(),
        1 => (random.below(20) as i64 - 6).to_string(),
        2 => random.of(&["", "a", "b", "a ", "Lone", "Ltwo", "Lthree"]).to_string(),
        _ => random.of(&["1.0", "1.00", "1", "-0.5", "0", "0.0", "12.30", "NaN"]).to_string(),
    };
    Some(value)
}

pub fn relation(random: &mut Random, oid: u32) -> Relation {
    let keys = 1 + random.below(3);
    let identity = *random.of(b"ddffi");
    let columns = COLUMNS.iter().enumerate().map(|(at, (name, type_oid, _))| RelationColumn {
        name: name.to_string(),
        type_oid: *type_oid,
        modifier: -1,
        key: identity == b'f' || at < keys,
    });
    Relation {
        oid,
        schema: "public".to_owned(),
        name: format!("t{oid}"),
        identity,
        columns: columns.collect(),
    }
}

/// With FULL all columns are marked as the key's.
pub fn nullable(relation: &Relation, column: usize) -> bool {
    column > 0 && (relation.identity == b'f' || !relation.columns[column].key)
}

/// A restriction of one table with its values, for the model and for the recipe.
#[derive(Debug)]
pub struct Restriction {
    pub table: u32,
    /// None: every row can matter.
    pub test: Option<Test>,
    pub given: Given,
}

#[derive(Debug)]
pub enum Test {
    /// Columns and the values of each.
    Equal(Vec<(usize, Vec<Option<String>>)>),
    Range(usize, Option<(i64, bool)>, Option<(i64, bool)>),
}

/// Parameters: type and value, in text or binary.
#[derive(Debug, Default)]
pub struct Given(Vec<(u32, Option<Vec<u8>>, bool)>);

impl Given {
    fn add(&mut self, type_oid: u32, value: Option<Vec<u8>>, binary: bool) -> Source {
        self.0.push((type_oid, value, binary));
        Source::Parameter(self.0.len() as u32)
    }

    fn text(&mut self, value: &Option<String>) -> Source {
        self.add(oid::UNKNOWN, value.as_ref().map(|text| text.clone().into_bytes()), false)
    }
}

impl Values for Given {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Parameter(number) = source else {
            return None;
        };
        let (type_oid, value, binary) = self.0.get(number as usize - 1)?;
        let value = match value {
            None => Value::Null,
            Some(bytes) if *binary => Value::Binary(bytes),
            Some(bytes) => Value::Text(bytes),
        };
        Some((value, *type_oid))
    }
}

/// Values that are equal in PostgreSQL.
fn same(column: usize, left: &str, right: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().expect("a number");
    match column {
        3 if left == "NaN" || right == "NaN" => left == right,
        3 => number(left) == number(right),
        _ => left == right,
    }
}

impl Restriction {
    pub fn new(random: &mut Random, table: u32) -> (Restriction, Recipe) {
        let mut given = Given::default();
        let (test, precise) = match random.below(8) {
            0 => (None, None),
            1..=2 => range(random, table, &mut given),
            3 => any_of(random, table, &mut given),
            kind => equal(random, table, kind, &mut given),
        };
        let recipe = Recipe { tables: vec![TableDeps { oid: table, restriction: precise }] };
        (Restriction { table, test, given }, recipe)
    }

    pub fn finds(&self, row: &Row) -> bool {
        match &self.test {
            None => true,
            Some(Test::Equal(columns)) => columns.iter().all(|(column, values)| {
                let Some(have) = &row[*column] else {
                    return false;
                };
                values.iter().flatten().any(|value| same(*column, have, value))
            }),
            Some(Test::Range(column, low, high)) => {
                let Some(have) = &row[*column] else {
                    return false;
                };
                let have: i64 = have.parse().expect("an integer");
                low.is_none_or(|(low, inclusive)| have > low || inclusive && have == low)
                    && high.is_none_or(|(high, inclusive)| have < high || inclusive && have == high)
            }
        }
    }
}

type Made = (Option<Test>, Option<Precise>);

fn range(random: &mut Random, table: u32, given: &mut Given) -> Made {
    let column = random.below(2);
    let mut bound = |random: &mut Random| {
        if random.one_in(4) {
            return (None, None);
        }
        let value: i64 = value(random, column, false).expect("no NULL").parse().expect("a number");
        let inclusive = random.one_in(2);
        let source = given.add(oid::INT8, Some(value.to_be_bytes().to_vec()), true);
        (Some((value, inclusive)), Some((source, inclusive)))
    };
    let (low, low_source) = bound(random);
    let (high, high_source) = bound(random);
    let signature = signature(table, &[column], Form::Range);
    let precise = Precise::Range { signature, low: low_source, high: high_source };
    (Some(Test::Range(column, low, high)), Some(precise))
}

fn any_of(random: &mut Random, table: u32, given: &mut Given) -> Made {
    let column = random.below(4);
    let values: Vec<_> = (0..random.below(4)).map(|_| value(random, column, true)).collect();
    let words: Vec<String> = values
        .iter()
        .map(|value| value.as_ref().map_or("NULL".to_owned(), |text| format!("\"{text}\"")))
        .collect();
    let array = format!("{{{}}}", words.join(","));
    let array = given.text(&Some(array));
    let signature = signature(table, &[column], Form::Equal);
    (Some(Test::Equal(vec![(column, values)])), Some(Precise::AnyOf { signature, array }))
}

fn equal(random: &mut Random, table: u32, kind: usize, given: &mut Given) -> Made {
    let first = random.below(4);
    let mut columns = vec![first];
    if kind > 5 {
        columns.push((first + 1 + random.below(3)) % 4);
    }
    let tested: Vec<_> = columns
        .iter()
        .map(|column| {
            let some = 1 + random.below(2) * random.below(3);
            (*column, (0..some).map(|_| value(random, *column, kind == 4)).collect())
        })
        .collect::<Vec<(usize, Vec<Option<String>>)>>();
    let values = tested
        .iter()
        .map(|(_, values)| values.iter().map(|value| given.text(value)).collect())
        .collect();
    let signature = signature(table, &columns, Form::Equal);
    (Some(Test::Equal(tested)), Some(Precise::Equal { signature, values }))
}

fn signature(table: u32, columns: &[usize], form: Form) -> Arc<Signature> {
    let columns = columns.iter().map(|at| (COLUMNS[*at].0.to_owned(), COLUMNS[*at].2)).collect();
    Arc::new(Signature::new(table, columns, form))
}
