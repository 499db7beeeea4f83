//! Reads of the simulated database: what they find, and what their answers depend on.
//!
//! ```text
//! look | lookz | find | count   t1 | t2 | both   key N | in N N .. | from N to N | group N | all
//! ```
//! `lookz` shows a setting of the session as well. A number may be a parameter. `look` finds one
//! text, `find` rows with columns, of both tables those with a key in common, and `count` what
//! these come to: what mirrors answer, see `catalogue.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cache::mirror::definition::Definition;
use cache::recipe::{Form as Compared, Precise, Recipe, Signature, Source, TableDeps};
use cache::value::{oid as types, Kind};
use pondage::route::{Cacheable, Slot};
use wire::pg::backend::Column;

use super::cell::{show, Cell};
use super::{catalogue, Change, Database, Row, TABLES};
use crate::postgres::OTHER;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Test {
    Keys(Vec<i32>),
    Range(i32, i32),
    Group(i32),
    All,
}

/// What an answer looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Rows,
    Sums,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) form: Form,
    pub(crate) zone: bool,
    pub(crate) tables: Vec<usize>,
    pub(crate) test: Test,
}

/// Whether a statement is one.
pub(crate) fn is_read(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or("");
    matches!(first, "look" | "lookz" | "find" | "count")
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
        let form = match words[0] {
            "find" => Form::Rows,
            "count" => Form::Sums,
            _ => Form::Text,
        };
        Read { form, zone: words[0] == "lookz", tables: tables(words.get(1).unwrap_or(&"")), test }
    }

    /// How an answer is described.
    pub(crate) fn columns(&self, format: i16) -> Vec<Column<'static>> {
        let int4 = |name| Column { name, oid: types::INT4, size: 4, format };
        let int8 = |name| Column { name, oid: types::INT8, size: 8, format };
        let text = |name| Column { name, oid: types::TEXT, size: -1, format };
        match self.form {
            Form::Text => vec![text("answer")],
            Form::Sums => vec![int8("count"), int8("sum"), int4("max")],
            Form::Rows => {
                let of_each = self.tables.iter().flat_map(|_| [int4("g"), text("v")]);
                [int4("k")].into_iter().chain(of_each).collect()
            }
        }
    }

    /// What it finds where names mean something else.
    pub(crate) fn other(&self) -> Vec<Cell> {
        let cell = |column: &Column<'_>| match column.oid {
            types::INT4 => Cell::Int4(-1),
            types::INT8 => Cell::Int8(-1),
            _ => Cell::Text(OTHER.to_owned()),
        };
        self.columns(0).iter().map(cell).collect()
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
        show(&self.cells(read, state, own))
    }

    /// The same as rows of cells.
    pub(crate) fn cells(&self, read: &Read, state: u64, own: &[Change]) -> Vec<Vec<Cell>> {
        let tables = read.tables.iter().map(|table| self.rows_at(read, *table, state, own));
        let tables: Vec<BTreeMap<i32, &Row>> = tables.collect();
        if read.form == Form::Text {
            let mut found = Vec::new();
            for (table, rows) in read.tables.iter().zip(&tables) {
                let name = TABLES[*table];
                let rows = rows.iter();
                found.extend(
                    rows.map(|(key, row)| format!("{name}.{key}.{}.{}", row.group, row.mark)),
                );
            }
            return vec![vec![Cell::Text(found.join(","))]];
        }
        let in_all = |key: &&i32| tables.iter().all(|rows| rows.contains_key(*key));
        let keys: Vec<i32> = tables[0].keys().filter(in_all).copied().collect();
        if read.form == Form::Sums {
            let sum = keys.iter().map(|key| i64::from(*key)).sum();
            let sum = if keys.is_empty() { Cell::Null } else { Cell::Int8(sum) };
            let last = tables.last();
            let groups = keys.iter().filter_map(|key| Some(last?.get(key)?.group));
            let max = groups.max().map_or(Cell::Null, Cell::Int4);
            return vec![vec![Cell::Int8(keys.len() as i64), sum, max]];
        }
        let row = |key: &i32| {
            let of_each = tables
                .iter()
                .filter_map(|rows| rows.get(key))
                .flat_map(|row| [Cell::Int4(row.group), Cell::Text(row.mark.clone())]);
            [Cell::Int4(*key)].into_iter().chain(of_each).collect()
        };
        keys.iter().map(row).collect()
    }

    /// Of one table.
    fn rows_at<'a>(
        &'a self,
        read: &Read,
        table: usize,
        state: u64,
        own: &'a [Change],
    ) -> BTreeMap<i32, &'a Row> {
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
        let found = |key: i32| {
            let below = || self.row_at(table, key, state).filter(|_| !emptied);
            let row = over.get(&key).copied().unwrap_or_else(below)?;
            read.finds(key, row).then_some((key, row))
        };
        read.keys(self.keys()).into_iter().filter_map(found).collect()
    }
}

pub(crate) fn oid(table: usize) -> u32 {
    9_001 + table as u32
}

fn signature(table: usize, column: &str, form: Compared) -> Arc<Signature> {
    Arc::new(Signature::new(oid(table), vec![(column.to_owned(), Kind::Int)], form))
}

/// What the answers to a text depend on.
pub(crate) fn cacheable(
    text: &str,
    lacks_tables: bool,
    lacks_settings: bool,
    tables_known: &[Definition],
) -> Arc<Cacheable> {
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
            signature: signature(table, "k", Compared::Equal),
            values: vec![sources.clone()],
        }),
        "group" => Some(Precise::Equal {
            signature: signature(table, "g", Compared::Equal),
            values: vec![sources.clone()],
        }),
        "from" => Some(Precise::Range {
            signature: signature(table, "k", Compared::Range),
            low: sources.first().map(|low| (*low, true)),
            high: sources.get(1).map(|high| (*high, true)),
        }),
        _ => None,
    };
    let of = tables(words.get(1).unwrap_or(&""));
    let read = of.iter().take(if lacks_tables { 1 } else { of.len() });
    let deps = read.map(|table| TableDeps { oid: oid(*table), restriction: restriction(*table) });
    let slot = |source: &Source| Slot { source: *source, type_oid: types::INT4, timely: false };
    Arc::new(Cacheable {
        recipe: Recipe { tables: deps.collect() },
        settings: words.first() == Some(&"lookz") && !lacks_settings,
        slots: sources.iter().map(slot).collect(),
        lines: Vec::new(),
        mirror: catalogue::mirrored(&Read::parse(&words), &sources, tables_known),
    })
}
