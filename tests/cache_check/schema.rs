//! Random tables: types of columns, keys, replica identities, partitions; and random writes to
//! them.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::Rng;

/// What the columns' types need; once for each database.
pub const TYPES_SET_UP: &str = "
    create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create collation marks (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    create domain little as int check (value between -100 and 100);
    create domain folded_text as text collate folded;
    create type mood as enum ('sad', 'ok', 'glad');";

/// A type, and constants of it that come again and again: equal ones that are written otherwise,
/// and those that are nearly the same.
#[derive(Debug)]
pub struct Type {
    pub name: &'static str,
    pub constants: &'static [&'static str],
    /// May stand in a key.
    key: bool,
}

/// Longer than what a row holds without TOAST.
const LONG: &str = "repeat('long ', 4000)";

const fn of(name: &'static str, constants: &'static [&'static str]) -> Type {
    Type { name, constants, key: true }
}

const fn loose(name: &'static str, constants: &'static [&'static str]) -> Type {
    Type { name, constants, key: false }
}

const LETTERS: &[&str] = &["'a'", "'A'", "'b'", "'a '", "'ab'", "'é'", "'É'", "'e'", "''"];
const NUMBERS: &[&str] = &["0", "1", "2", "-1", "7"];
const FLOATS: &[&str] = &["0", "'-0'", "1.5", "2", "1e10", "'NaN'", "'Infinity'", "'-Infinity'"];

pub const TYPES: &[Type] = &[
    of("int", NUMBERS),
    of("bigint", &["0", "5000000000", "2", "-1", "7"]),
    of("smallint", NUMBERS),
    of("numeric", &["0", "1", "1.0", "1.00", "2.50", "2.5", "-1", "'NaN'", "-0.0", "1e2", "100"]),
    of("numeric(6, 2)", &["0", "1", "1.005", "1.01", "2.5", "-1", "'NaN'"]),
    of("text", LETTERS),
    of("varchar(3)", LETTERS),
    of("char(4)", LETTERS),
    of("text collate \"C\"", LETTERS),
    of("text collate \"en-US-x-icu\"", LETTERS),
    of("text collate folded", LETTERS),
    of("char(4) collate marks", LETTERS),
    of("folded_text", LETTERS),
    of("name", LETTERS),
    loose("text", &["'a'", "'b'", LONG, "'a ' || 'b'", "''"]),
    of("bool", &["true", "false", "'t'", "'off'"]),
    of("date", &["'2024-01-01'", "'2024-1-2'", "'20231231'", "'2024-02-29'", "'infinity'"]),
    of("timestamp", &["'2024-01-01'", "'2024-01-01 00:00:00.0'", "'2024-02-29 12:00'"]),
    of(
        "timestamptz",
        &["'2024-01-01 00:00+00'", "'2024-01-01 02:00+02'", "'2024-02-29 12:00Z'", "'-infinity'"],
    ),
    of("uuid", &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'"]),
    of("interval", &["'1 day'", "'24 hours'", "'1 mon'", "'30 days'", "'0'"]),
    of("little", NUMBERS),
    of("mood", &["'sad'", "'ok'", "'glad'"]),
    loose("float8", FLOATS),
    loose("real", FLOATS),
    loose("bytea", &["'a'", "'A'", "''", "'abc'"]),
    loose("int[]", &["'{}'", "'{1,2}'", "'{2,1}'", "'{1,NULL}'"]),
    loose("jsonb", &["'{\"a\": 1}'", "'{\"a\": 1.0}'", "'[1]'", "'null'"]),
];

/// What tells a row when it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    Key,
    Full,
    /// A unique index that is not the key's.
    Index,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    None,
    Range,
    List,
    Hash,
    /// Rows are in a table that inherits as well.
    Child,
}

#[derive(Debug)]
pub struct Table {
    pub name: String,
    /// Besides `id`: their place in [`TYPES`].
    pub columns: Vec<usize>,
}

impl Table {
    /// The table, and the statements that make it.
    pub fn create(number: usize, dice: &mut StdRng) -> (Table, String) {
        let name = format!("t{number}");
        let columns: Vec<usize> =
            (0..dice.random_range(1..6)).map(|_| dice.random_range(0..TYPES.len())).collect();
        let table = Table { name, columns };
        let parts =
            *[Parts::None, Parts::None, Parts::Range, Parts::List, Parts::Hash, Parts::Child]
                .choose(dice)
                .expect("ways");
        let identities = match parts {
            // Each part would need its own.
            Parts::None => [Identity::Key, Identity::Full, Identity::Index],
            _ => [Identity::Key, Identity::Full, Identity::Full],
        };
        let identity = *identities.choose(dice).expect("identities");
        let sql = table.statements(parts, identity, dice);
        (table, sql)
    }

    fn statements(&self, parts: Parts, identity: Identity, dice: &mut StdRng) -> String {
        let name = &self.name;
        let list: Vec<String> =
            self.columns.iter().enumerate().map(|(at, of)| column(at, *of)).collect();
        let mut all = vec!["id int not null".to_owned()];
        all.extend(list);
        // With another column in it an UPDATE tells what that one was, too.
        let wide = parts == Parts::None && TYPES[self.columns[0]].key && dice.random_bool(0.3);
        let key = if wide { "primary key (id, c0)" } else { "primary key (id)" };
        if wide {
            all[1].push_str(" not null");
        }
        let by = match parts {
            Parts::Range => " partition by range (id)",
            Parts::List => " partition by list (id)",
            Parts::Hash => " partition by hash (id)",
            Parts::None | Parts::Child => "",
        };
        let mut sql = vec![format!("create table {name} ({}, {key}){by}", all.join(", "))];
        sql.extend(self.parts(parts, &all));
        let tables = match parts {
            Parts::None => vec![name.clone()],
            Parts::Child => vec![name.clone(), format!("{name}_a")],
            _ => vec![name.clone(), format!("{name}_a"), format!("{name}_b")],
        };
        match identity {
            Identity::Key => {}
            Identity::Full => sql.extend(
                tables.iter().map(|table| format!("alter table {table} replica identity full")),
            ),
            Identity::Index => {
                sql.push(format!("create unique index {name}_only on {name} (id)"));
                sql.push(format!("alter table {name} replica identity using index {name}_only"));
            }
        }
        if dice.random_bool(0.3) {
            sql.push(format!("create index on {name} (c0)"));
        }
        sql.join("; ")
    }

    fn parts(&self, parts: Parts, columns: &[String]) -> Vec<String> {
        let name = &self.name;
        // A part that was a table of its own has its columns in another order.
        let turned: Vec<&str> = columns.iter().rev().map(String::as_str).collect();
        let alone = format!("create table {name}_b ({})", turned.join(", "));
        let with = |first: &str, second: &str| {
            vec![
                format!("create table {name}_a partition of {name} {first}"),
                alone.clone(),
                format!("alter table {name} attach partition {name}_b {second}"),
            ]
        };
        match parts {
            Parts::None => Vec::new(),
            Parts::Range => {
                with("for values from (minvalue) to (6)", "for values from (6) to (maxvalue)")
            }
            Parts::List => with("for values in (1, 2, 3, 5, 8)", "default"),
            Parts::Hash => with(
                "for values with (modulus 2, remainder 0)",
                "for values with (modulus 2, remainder 1)",
            ),
            Parts::Child => {
                vec![format!(
                    "create table {name}_a (more int, primary key (id)) inherits ({name})"
                )]
            }
        }
    }

    pub fn constant(&self, column: usize, dice: &mut StdRng) -> &'static str {
        TYPES[self.columns[column]].constants.choose(dice).expect("constants")
    }

    /// A constant that may become a parameter: see [`crate::reads::Read`].
    fn value(&self, column: usize, dice: &mut StdRng) -> String {
        marked(self.constant(column, dice))
    }

    /// A condition on columns of the table, of those that are called so.
    pub fn condition(&self, prefix: &str, dice: &mut StdRng) -> String {
        let column = dice.random_range(0..self.columns.len());
        let mut one = || self.value(column, dice);
        let (first, second, third) = (one(), one(), one());
        let (name, at) = (format!("{prefix}c{column}"), dice.random_range(0..12));
        let (id, after) = (marked(&at.to_string()), marked(&(at + 3).to_string()));
        let array = TYPES[self.columns[column]].name == "int[]";
        match dice.random_range(0..16) {
            0..4 => format!("{name} = {first}"),
            4 => format!("{name} in ({first}, {second}, {third})"),
            5 => format!("{name} in ({first}, null)"),
            6 => format!("{name} >= {first}"),
            7 => format!("{name} between {first} and {second}"),
            8 => format!("({name} < {first} or {name} = {second})"),
            9 => format!("({name} between {first} and {second} or {name} <= {third})"),
            10 => format!("{name} is null"),
            11 => format!("{prefix}id = {id}"),
            12 => format!("{prefix}id between {id} and {after}"),
            13 => format!("({name} = {first} or {prefix}id = {id})"),
            14 if !array => format!("({name}, {prefix}id) in (({first}, {id}), ({second}, 1))"),
            _ => format!("{prefix}id in ({id}, {after}, null)"),
        }
    }

    /// A statement that changes rows, or none.
    pub fn write(&self, other: &Table, dice: &mut StdRng) -> String {
        unmarked(&self.marked_write(other, dice))
    }

    fn marked_write(&self, other: &Table, dice: &mut StdRng) -> String {
        let name = &self.name;
        let column = dice.random_range(0..self.columns.len());
        let constant = |dice: &mut StdRng| match dice.random_bool(0.1) {
            true => "null",
            false => self.constant(column, dice),
        };
        let id = dice.random_range(0..16);
        match dice.random_range(0..17) {
            0..4 => {
                let again = ["do nothing", "(id) do update set c0 = excluded.c0"];
                let again = again[usize::from(dice.random_bool(0.2))];
                let row = self.row(id, dice);
                format!("insert into {name} ({}) values {row} on conflict {again}", self.list())
            }
            4 => {
                let rows: Vec<String> = (id..id + 3).map(|id| self.row(id, dice)).collect();
                format!(
                    "insert into {name} ({}) values {} on conflict do nothing",
                    self.list(),
                    rows.join(", ")
                )
            }
            5..8 => format!("update {name} set c{column} = {} where id = {id}", constant(dice)),
            8 => {
                let value = constant(dice);
                format!("update {name} set c{column} = {value} where {}", self.condition("", dice))
            }
            // A row of partitions moves.
            9 => format!("update {name} set id = id + 100 where id = {id}"),
            10 => format!("update {name} set id = id - 100 where id >= 100"),
            11 => format!("delete from {name} where id = {id}"),
            12 => format!("delete from {name} where {}", self.condition("", dice)),
            13 => format!(
                "update {name} set c{column} = {} from {} y where y.id = {name}.id and {}",
                constant(dice),
                other.name,
                other.condition("y.", dice)
            ),
            14 => format!("delete from {name} using {} y where y.id + 1 = {name}.id", other.name),
            15 if dice.random_bool(0.3) => format!("truncate {name}"),
            _ => format!("update {name} set c{column} = c{column} where id < {id}"),
        }
    }

    /// Rows to begin with.
    pub fn fill(&self, dice: &mut StdRng) -> String {
        let rows: Vec<String> = (0..8).map(|id| self.row(id, dice)).collect();
        format!("insert into {} ({}) values {}", self.name, self.list(), rows.join(", "))
    }

    /// Another definition, for kept results to outlive.
    pub fn redefine(&self, number: usize, dice: &mut StdRng) -> String {
        let name = &self.name;
        match dice.random_range(0..5) {
            0 => format!("alter table {name} add column more{number} int default 5"),
            1 => format!("create or replace view c_{name} as select count(*) as n, max(id) as least from {name} group by c0"),
            2 => format!("alter table {name} replica identity full"),
            3 => format!("create index on {name} (c0)"),
            _ => format!("alter table {name} rename to away; alter table away rename to {name}"),
        }
    }

    fn list(&self) -> String {
        let columns: Vec<String> = (0..self.columns.len()).map(|at| format!("c{at}")).collect();
        format!("id, {}", columns.join(", "))
    }

    fn row(&self, id: i32, dice: &mut StdRng) -> String {
        let values: String =
            (0..self.columns.len()).map(|at| format!(", {}", self.constant(at, dice))).collect();
        format!("({id}{values})")
    }
}

/// Around a constant that may become a parameter.
pub const MARKS: [char; 2] = ['«', '»'];

fn marked(constant: &str) -> String {
    format!("{}{constant}{}", MARKS[0], MARKS[1])
}

pub fn unmarked(sql: &str) -> String {
    sql.replace(MARKS, "")
}

fn column(at: usize, of: usize) -> String {
    format!("c{at} {}", TYPES[of].name)
}
