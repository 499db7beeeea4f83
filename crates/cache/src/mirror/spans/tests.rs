use std::ops::RangeBounds;
use std::sync::Arc;

use sql::{Comparison, Source};

use super::super::class::{Class, Collation};
use super::super::definition::{Column, Definition};
use super::super::key::put_key;
use super::super::run::constants::{Among, Constants, Leaf};
use super::super::run::filter::Test;
use super::*;
use crate::recipe::{Value, Values};

const A: At = (0, 0);
const B: At = (0, 1);

/// Values are their own places, in text; 99 stands for NULL.
struct Numbers(Vec<String>);

impl Values for Numbers {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        let Source::Literal(at) = source else { return None };
        match self.0[at as usize].as_str() {
            "99" => Some((Value::Null, 0)),
            text => Some((Value::Text(text.as_bytes()), 0)),
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn number(&mut self) -> u32 {
        match self.below(20) {
            0 => 99,
            _ => self.below(10) as u32,
        }
    }

    fn test(&mut self, depth: u32, leaves: &mut Vec<Leaf>) -> Test {
        let column = if self.below(4) == 0 { B } else { A };
        let part = |random: &mut Random, leaves: &mut Vec<Leaf>| {
            (0..random.below(4)).map(|_| random.test(depth - 1, leaves)).collect()
        };
        match self.below(13) {
            0..=2 if depth > 0 => Test::And(part(self, leaves)),
            3..=5 if depth > 0 => Test::Or(part(self, leaves)),
            6 => Test::Null(column),
            7 => Test::NotNull(column),
            8 if depth < 3 => {
                [Test::Same(A, B), Test::Same(A, A), Test::Never][self.below(3) as usize].clone()
            }
            9 | 10 => {
                let many = 1 + self.below(3);
                let sources = (0..many).map(|_| Source::Literal(self.number())).collect();
                leaves.push(Leaf { column, among: Among::Each(sources) });
                Test::IsNot { column, leaf: leaves.len() - 1 }
            }
            _ => {
                use Comparison::*;
                let comparison =
                    [Equal, Less, LessEqual, Greater, GreaterEqual][self.below(5) as usize];
                let many = if comparison == Equal { self.below(4) } else { 1 };
                let sources = (0..many).map(|_| Source::Literal(self.number())).collect();
                leaves.push(Leaf { column, among: Among::Each(sources) });
                Test::Is { column, comparison, leaf: leaves.len() - 1 }
            }
        }
    }
}

fn table() -> Arc<Definition> {
    let column = |name: &str| Column {
        name: name.to_owned(),
        attnum: 1,
        type_oid: 23,
        type_modifier: -1,
        class: Class::Int4,
        collation: Collation::Ordered,
        not_null: false,
        labels: Arc::from([]),
    };
    Arc::new(Definition {
        oid: 1,
        filenode: 1,
        schema: String::new(),
        name: String::new(),
        columns: vec![column("a"), column("b")],
        identity: vec![0],
    })
}

/// What PostgreSQL would say; NULL is not true.
fn passes(test: &Test, leaves: &[Leaf], a: Option<i32>, b: Option<i32>) -> bool {
    let of = |column: &At| if *column == A { a } else { b };
    match test {
        Test::And(parts) => parts.iter().all(|part| passes(part, leaves, a, b)),
        Test::Or(parts) => parts.iter().any(|part| passes(part, leaves, a, b)),
        Test::Never => false,
        Test::Null(column) => of(column).is_none(),
        Test::NotNull(column) => of(column).is_some(),
        Test::Same(one, other) => of(one).is_some() && of(one) == of(other),
        Test::IsNot { column, leaf } => {
            let Among::Each(sources) = &leaves[*leaf].among else { return false };
            of(column).is_some_and(|value| {
                sources.iter().all(|source| {
                    let Source::Literal(number) = source else { return false };
                    *number != 99 && value != *number as i32
                })
            })
        }
        // Of texts, and there are none here.
        Test::Like { .. } => false,
        Test::Is { column, comparison, leaf } => {
            let Among::Each(sources) = &leaves[*leaf].among else { return false };
            sources.iter().any(|source| {
                let (Some(value), Source::Literal(number)) = (of(column), source) else {
                    return false;
                };
                let order = value.cmp(&(*number as i32));
                *number != 99
                    && match comparison {
                        Comparison::Equal => order.is_eq(),
                        Comparison::Less => order.is_lt(),
                        Comparison::LessEqual => order.is_le(),
                        Comparison::Greater => order.is_gt(),
                        Comparison::GreaterEqual => order.is_ge(),
                    }
            })
        }
    }
}

fn key(value: i32) -> Vec<u8> {
    let mut key = Vec::new();
    put_key(Class::Int4, &value.to_be_bytes(), &mut key);
    key
}

#[test]
fn spans_admit_what_passes_and_nothing_else_where_they_are_exact() {
    let numbers = Numbers((0..100).map(|number| number.to_string()).collect());
    let tables = [table()];
    let everything: Vec<Option<i32>> = (-1..=10).map(Some).chain([None]).collect();
    let (mut constants, mut spans) = (Constants::default(), Vec::new());
    let mut exact = 0;
    for seed in 1..20_000u64 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut leaves = Vec::new();
        let test = random.test(3, &mut leaves);
        constants.read(&leaves, &tables, &numbers).expect("numbers");
        // What is there before is left alone.
        spans.truncate(2);
        let start = spans.len();
        let told = restrict(&test, A, &constants, &mut spans);
        exact += usize::from(told.exact);
        for a in &everything {
            let admitted = match a {
                None => usize::from(told.nulls),
                Some(a) => {
                    let inside = |span: &&Span| {
                        let Range { low, high } = span.range(&constants);
                        RangeBounds::<[u8]>::contains(&(low, high), key(*a).as_slice())
                    };
                    spans[start..].iter().filter(inside).count()
                }
            };
            assert!(admitted <= 1, "{a:?} twice in {test:?}");
            for b in &everything {
                let passes = passes(&test, &leaves, *a, *b);
                assert!(!passes || admitted == 1, "{a:?} {b:?} {test:?} {leaves:?}");
                assert!(passes || admitted == 0 || !told.exact, "{a:?} {b:?} {test:?}");
            }
        }
        for pair in spans[start..].windows(2) {
            assert!(compare(&pair[0].high, &pair[1].low, &constants).is_lt(), "{test:?}");
        }
    }
    assert!(exact > 5_000, "{exact}");
}
