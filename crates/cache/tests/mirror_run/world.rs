//! Tables with the same rows on both sides.

use std::collections::HashMap;
use std::sync::Arc;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::{Column, Definition};
use cache::mirror::plan::View;
use cache::mirror::stored::store;
use cache::mirror::table::{Field, Table};

use crate::random::Random;
use crate::server::Server;
use crate::statement::{Shape, Statement};

/// A type of columns, and values of it.
#[derive(Debug)]
pub struct Type {
    pub sql: &'static str,
    pub array: u32,
    pub values: &'static [&'static str],
}

const LABELS: [&str; 4] = ["low", "high", "alpha", "omega"];

pub const TYPES: &[Type] = &[
    Type {
        sql: "int4",
        array: 1007,
        values: &["0", "1", "2", "3", "4", "5", "7", "9", "-3", "2147483647"],
    },
    Type {
        sql: "int8",
        array: 1016,
        values: &["0", "1", "2", "3", "-7", "9223372036854775807", "5", "6"],
    },
    Type { sql: "int2", array: 1005, values: &["0", "1", "2", "3", "4", "-32768", "32767"] },
    Type {
        sql: "text",
        array: 1009,
        values: &["", "a", "ab", "b", "B", "abcdefgh", "abcdefghi", "abcdefghij", "é", "a b"],
    },
    Type { sql: "text COLLATE \"und-x-icu\"", array: 1009, values: &["a", "A", "b", "ab", "é"] },
    Type { sql: "varchar(12)", array: 1015, values: &["", "a", "abcdefgh", "abcdefghi", "z", "Z"] },
    Type { sql: "char(5)", array: 1014, values: &["", "a", "ab", "abcde", "b"] },
    Type {
        sql: "numeric(8,2)",
        array: 1231,
        values: &["0", "1", "1.5", "-2.25", "100000.01", "3", "NaN"],
    },
    Type {
        sql: "numeric",
        array: 1231,
        values: &["0", "1.0", "1.00", "-1", "2.5", "12345678901234567890.123", "NaN"],
    },
    Type {
        sql: "float8",
        array: 0,
        values: &["0", "-0", "1.5", "-1", "1e10", "NaN", "Infinity", "0.1"],
    },
    Type { sql: "float4", array: 0, values: &["0", "1.5", "-1", "0.1", "3e8"] },
    Type { sql: "bool", array: 1000, values: &["t", "f"] },
    Type {
        sql: "date",
        array: 1182,
        values: &["2024-02-29", "2000-01-01", "1999-12-31", "infinity", "2024-03-01"],
    },
    Type {
        sql: "timestamp",
        array: 1115,
        values: &[
            "2024-02-29 12:30:00",
            "2000-01-01 00:00:00",
            "1999-12-31 23:59:59.5",
            "infinity",
        ],
    },
    Type {
        sql: "timestamptz",
        array: 1185,
        values: &["2024-02-29 12:30:00+00", "2000-01-01 00:00:00+00", "1999-12-31 23:59:59.5+00"],
    },
    Type { sql: "time", array: 0, values: &["00:00:00", "12:30:00", "23:59:59.999"] },
    Type {
        sql: "interval",
        array: 0,
        values: &["1 day", "24:00:00", "1 mon", "30 days", "-00:00:01"],
    },
    Type {
        sql: "uuid",
        array: 2951,
        values: &[
            "00000000-0000-0000-0000-000000000000",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12",
        ],
    },
    Type { sql: "bytea", array: 0, values: &["\\x", "\\x00", "\\x0001", "\\xff", "\\x6162"] },
    Type { sql: "mood", array: 0, values: &LABELS },
    Type { sql: "point", array: 0, values: &["(1,2)", "(3,4)"] },
];

#[derive(Debug)]
pub struct Made {
    pub name: String,
    pub definition: Arc<Definition>,
    /// Of each column.
    pub types: Vec<&'static Type>,
}

pub struct World {
    pub tables: Vec<Made>,
    mirrors: HashMap<u32, Table>,
}

impl View for World {
    fn table(&self, oid: u32) -> Option<&Table> {
        self.mirrors.get(&oid)
    }
}

impl World {
    pub fn make(server: &mut Server, random: &mut Random, shape: &Shape, schema: &str) -> World {
        server.text(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
        server.text(&format!("CREATE SCHEMA {schema}"));
        server.text(&format!("SET search_path = {schema}"));
        server.text(&format!("CREATE TYPE mood AS ENUM ('{}')", LABELS.join("', '")));
        let tables = (0..shape.tables.max(1))
            .map(|at| make_table(server, random, &format!("t{at}"), shape))
            .collect();
        let mut world = World { tables, mirrors: HashMap::new() };
        world.choose_indexes(server, random);
        world
    }

    pub fn definitions(&self, statement: &Statement) -> Vec<Arc<Definition>> {
        statement.tables.iter().map(|at| self.tables[*at].definition.clone()).collect()
    }

    /// Changes some rows on both sides.
    pub fn change(&mut self, server: &mut Server, random: &mut Random) {
        for _ in 0..random.below(8) {
            let made = random.of(&self.tables);
            let table = self.mirrors.get_mut(&made.definition.oid).expect("a mirror");
            made.change(table, server, random);
        }
    }

    /// Loads the mirrors anew, with other indexes.
    pub fn choose_indexes(&mut self, server: &mut Server, random: &mut Random) {
        for made in &self.tables {
            let mut table = Table::new(made.definition.clone());
            for row in copy(server, &made.name, &made.definition) {
                let fields: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
                table.load(&fields).expect("a row");
            }
            table.finish().expect("no row twice");
            let columns = &made.definition.columns;
            let sums: Vec<u16> = (0..columns.len() as u16)
                .filter(|at| {
                    let class = columns[usize::from(*at)].class;
                    matches!(class, Class::Int2 | Class::Int4 | Class::Int8)
                })
                .collect();
            for (at, column) in columns.iter().enumerate() {
                if column.class != Class::Opaque && !random.one_in(3) {
                    let sums: &[u16] = if random.one_in(3) { &[] } else { &sums };
                    table.add_index(at as u16, sums);
                }
            }
            self.mirrors.insert(made.definition.oid, table);
        }
    }
}

impl Made {
    fn change(&self, table: &mut Table, server: &mut Server, random: &mut Random) {
        let Made { name, definition, types, .. } = self;
        let skip = random.below(table.len() as usize + 1);
        let some = format!("SELECT * FROM {name} OFFSET {skip} LIMIT 1");
        let Some(row) = server.text(&some).pop() else { return };
        let stored: Vec<Option<Vec<u8>>> =
            definition.columns.iter().zip(&row).map(stored_form).collect();
        let fields: Vec<Option<&[u8]>> = stored.iter().map(Option::as_deref).collect();
        let mut identity = Vec::new();
        table.put_identity(&fields, &mut identity);
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let is = |at: &u16| {
            let text = row[usize::from(*at)].as_deref().expect("an identity");
            format!("c{at} = {}", quoted(text))
        };
        let condition: Vec<String> = definition.identity.iter().map(is).collect();
        let condition = condition.join(" AND ");
        if random.one_in(3) {
            server.text(&format!("DELETE FROM {name} WHERE {condition}"));
            table.delete(&identity).expect("it is there");
            if random.one_in(2) {
                let values = row.iter().map(|value| match value {
                    Some(value) => quoted(value),
                    None => "NULL".to_owned(),
                });
                let values: Vec<String> = values.collect();
                server.text(&format!("INSERT INTO {name} VALUES ({})", values.join(", ")));
                table.insert(&fields).expect("it is not there");
            }
            return;
        }
        let at = types.len() - 1 - random.below(types.len() - definition.identity.len());
        let column = &definition.columns[at];
        let new = (column.not_null || !random.one_in(5))
            .then(|| (*random.of(types[at].values)).to_owned());
        let text = new.as_deref().map_or("NULL".to_owned(), quoted);
        let update = format!("UPDATE {name} SET c{at} = {text} WHERE {condition}");
        let returned = server.text(&format!("{update} RETURNING c{at}")).remove(0).remove(0);
        let value = stored_form((column, &returned));
        let mut fields = vec![Field::Unchanged; types.len()];
        fields[at] = value.as_deref().map_or(Field::Null, Field::Value);
        table.update(&identity, &fields).expect("it is there");
    }
}

/// Of what PostgreSQL prints.
fn stored_form((column, text): (&Column, &Option<String>)) -> Option<Vec<u8>> {
    text.as_ref().map(|text| {
        let mut out = Vec::new();
        assert!(store(column, text.as_bytes(), &mut out), "{text} of {column:?}");
        out
    })
}

fn make_table(server: &mut Server, random: &mut Random, name: &str, shape: &Shape) -> Made {
    // Of tables that are joined some columns have to have one type.
    let mut types: Vec<&'static Type> = match shape.tables {
        0 | 1 => vec![random.of(&TYPES[..3])],
        _ => vec![&TYPES[0], &TYPES[0], &TYPES[3], &TYPES[1]],
    };
    while types.len() < 8 {
        types.push(random.of(TYPES));
    }
    let two = random.one_in(3);
    let identity: &[usize] = if two { &[0, 1] } else { &[0] };
    if two {
        types[1] = &TYPES[3];
    }
    let not_null: Vec<bool> =
        (0..types.len()).map(|at| identity.contains(&at) || random.one_in(3)).collect();
    let columns = types.iter().zip(&not_null).enumerate().map(|(at, (of, not_null))| {
        format!("c{at} {}{}", of.sql, if *not_null { " NOT NULL" } else { "" })
    });
    let columns: Vec<String> = columns.collect();
    let key: Vec<String> = identity.iter().map(|at| format!("c{at}")).collect();
    let (columns, key) = (columns.join(", "), key.join(", "));
    server.text(&format!("CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))"));
    let rows = if shape.tables > 1 { 40 } else { *random.of(&[0, 3, 150, 150, 400]) };
    for number in 0..rows {
        let mut values = Vec::new();
        for (at, (of, not_null)) in types.iter().zip(&not_null).enumerate() {
            let value = match at {
                // Together with another column it may come again.
                0 if two => (number as i64 / 5 - 3).to_string(),
                0 => (number as i64 * 3 % 1000 - 20).to_string(),
                _ if !not_null && random.one_in(6) => {
                    values.push("NULL".to_owned());
                    continue;
                }
                _ => (*random.of(of.values)).to_owned(),
            };
            values.push(format!("'{value}'"));
        }
        let values = values.join(", ");
        server.text(&format!("INSERT INTO {name} VALUES ({values}) ON CONFLICT DO NOTHING"));
    }
    let definition = Arc::new(define(server, name, identity));
    Made { name: name.to_owned(), definition, types }
}

fn define(server: &mut Server, name: &str, identity: &[usize]) -> Definition {
    let rows = server.text(&format!(
        "SELECT a.attname, a.attnum, a.atttypid, a.atttypmod, a.attnotnull, t.typtype, \
         c.collname, a.attrelid FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
         LEFT JOIN pg_collation c ON c.oid = a.attcollation AND t.typcollation <> 0 \
         WHERE a.attrelid = '{name}'::regclass AND a.attnum > 0 ORDER BY a.attnum"
    ));
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
    let columns = rows.iter().map(|row| {
        let is_enum = row[5].as_deref() == Some("e");
        let type_oid: i64 = number(&row[2]).expect("an oid");
        let other = row[6].as_ref().is_some_and(|name| name != "default" && name != "C");
        Column {
            name: row[0].clone().expect("a name"),
            attnum: number(&row[1]).expect("a number") as i16,
            type_oid: type_oid as u32,
            type_modifier: number(&row[3]).expect("a modifier") as i32,
            class: if is_enum { Class::Enum } else { Class::of(type_oid as u32) },
            collation: if other { Collation::EqualOnly } else { Collation::Ordered },
            not_null: row[4].as_deref() == Some("t"),
            labels: if is_enum { LABELS.map(str::to_owned).into() } else { Arc::from([]) },
        }
    });
    let columns = columns.collect();
    Definition {
        oid: number(&rows[0][7]).expect("an oid") as u32,
        filenode: 1,
        schema: String::new(),
        name: name.to_owned(),
        columns,
        identity: identity.iter().map(|at| *at as u16).collect(),
    }
}

fn copy(server: &mut Server, name: &str, definition: &Definition) -> Vec<Vec<Option<Vec<u8>>>> {
    let rows = server.text(&format!("SELECT * FROM {name}"));
    rows.iter().map(|row| definition.columns.iter().zip(row).map(stored_form).collect()).collect()
}
