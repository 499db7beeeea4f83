//! Reads of the simulated database: what they find, and what their answers depend on.
//!
//! ```text
//! look | lookz   t1 | t2 | both   key N | in N N .. | from N to N | group N | all
//! ```
//! `lookz` shows a setting of the session as well. A number may be a parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cache::recipe::{Form, Precise, Recipe, Signature, Source, TableDeps};
use cache::value::Kind;
use pondage::route::{Cacheable, Slot};

use super::{Change, Database, Row, TABLES};

/// Source: `src/include/catalog/pg_type.dat`.
const INT4: u32 = 23;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Test {
    Keys(Vec<i32>),
    Range(i32, i32),
    Group(i32),
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) zone: bool,
    pub(crate) tables: Vec<usize>,
    pub(crate) test: Test,
}

pub(crate) fn tables(word: &str) -> Vec<usize> {
    match TABLES.iter().position(|name| *name == word) {
        Some(at) => vec![at],
        None => (0..TABLES.len()).collect(),
    }
}

impl Read {
    pub(crate) fn parse(words: &[&str]) -> Read {
        let numbers = words.iter().skip(3).filter_map(|word| word.parse().ok());
        let numbers: Vec<i32> = numbers.collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        let test = match words.get(2).copied().unwrap_or("") {
            "key" => Test::Keys(vec![number(0)]),
            "in" => Test::Keys(numbers.clone()),
            "from" => Test::Range(number(0), number(1)),
            "group" => Test::Group(number(0)),
            _ => Test::All,
        };
        Read { zone: words[0] == "lookz", tables: tables(words.get(1).unwrap_or(&"")), test }
    }

    pub(crate) fn may_find(&self, key: i32) -> bool {
        match &self.test {
            Test::Keys(keys) => keys.contains(&key),
            Test::Range(low, high) => (*low..=*high).contains(&key),
            Test::Group(_) | Test::All => true,
        }
    }

    /// Those of so many that it may find, in order.
    fn keys(&self, all: i32) -> Vec<i32> {
        match &self.test {
            Test::Keys(keys) => keys.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
            Test::Range(low, high) => (*low..=*high).collect(),
            Test::Group(_) | Test::All => (0..all).collect(),
        }
    }

    fn finds(&self, key: i32, row: &Row) -> bool {
        self.may_find(key)
            && match self.test {
                Test::Group(group) => row.group == group,
                _ => true,
            }
    }
}

impl Database {
    /// What a read finds in some state, over which its transaction has made changes.
    pub(crate) fn at(&self, read: &Read, state: u64, own: &[Change]) -> String {
        let mut found = Vec::new();
        for &table in &read.tables {
            let mut over: BTreeMap<i32, Option<&Row>> = BTreeMap::new();
            let mut emptied = false;
            for change in own {
                match change {
                    Change::Put { table: of, key, row } if *of == table => {
                        over.insert(*key, Some(row));
                    }
                    Change::Delete { table: of, key } if *of == table => {
                        over.insert(*key, None);
                    }
                    Change::Truncate { table: of } if *of == table => {
                        over.clear();
                        emptied = true;
                    }
                    _ => {}
                }
            }
            for key in read.keys(self.keys()) {
                let below = || self.row_at(table, key, state).filter(|_| !emptied);
                let row = over.get(&key).copied().unwrap_or_else(below);
                if let Some(row) = row.filter(|row| read.finds(key, row)) {
                    let name = TABLES[table];
                    found.push(format!("{name}.{key}.{}.{}", row.group, row.mark));
                }
            }
        }
        found.join(",")
    }
}

pub(crate) fn oid(table: usize) -> u32 {
    9_001 + table as u32
}

fn signature(table: usize, column: &str, form: Form) -> Arc<Signature> {
    Arc::new(Signature::new(oid(table), vec![(column.to_owned(), Kind::Int)], form))
}

/// What the answers to a text depend on.
pub(crate) fn cacheable(text: &str, lacks_tables: bool, lacks_settings: bool) -> Arc<Cacheable> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut literals = 0;
    let sources = words.iter().skip(3).filter_map(|word| {
        if let Some(number) = word.strip_prefix('$') {
            return number.parse().ok().map(Source::Parameter);
        }
        word.parse::<i32>().ok()?;
        literals += 1;
        Some(Source::Literal(literals - 1))
    });
    let sources: Vec<Source> = sources.collect();
    let restriction = |table: usize| match words.get(2).copied().unwrap_or("") {
        "key" | "in" => Some(Precise::Equal {
            signature: signature(table, "k", Form::Equal),
            values: vec![sources.clone()],
        }),
        "group" => Some(Precise::Equal {
            signature: signature(table, "g", Form::Equal),
            values: vec![sources.clone()],
        }),
        "from" => Some(Precise::Range {
            signature: signature(table, "k", Form::Range),
            low: sources.first().map(|low| (*low, true)),
            high: sources.get(1).map(|high| (*high, true)),
        }),
        _ => None,
    };
    let of = tables(words.get(1).unwrap_or(&""));
    let read = of.iter().take(if lacks_tables { 1 } else { of.len() });
    let deps = read.map(|table| TableDeps { oid: oid(*table), restriction: restriction(*table) });
    let slot = |source: &Source| Slot { source: *source, type_oid: INT4, timely: false };
    Arc::new(Cacheable {
        recipe: Recipe { tables: deps.collect() },
        settings: words.first() == Some(&"lookz") && !lacks_settings,
        slots: sources.iter().map(slot).collect(),
        lines: Vec::new(),
        mirror: Err("there are no mirrors".to_owned()),
    })
}
