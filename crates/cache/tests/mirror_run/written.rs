//! Random statements that are only written, and taken apart by the parser: NOT around anything,
//! truth values, patterns, signs, places of columns.

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::Column;
use sql::{LiteralKind, Parser, PostgresParser, Scan};

use crate::random::Random;
use crate::statement::{Parameter, Statement};
use crate::world::{Made, World};

pub fn random(world: &World, random: &mut Random) -> Statement {
    let made = &world.tables[0];
    let mut write = Write { made, random, parameters: Vec::new() };
    let text = write.statement();
    let parameters = write.parameters;
    let mut scan = Scan::new();
    assert!(scan.scan(text.as_bytes()), "{text}");
    let selected = PostgresParser.select(&text, scan.literals());
    let selected = selected.unwrap_or_else(|why| panic!("{text}: {why}"));
    let columns = &made.definition.columns;
    let names = |_| columns.iter().map(|column| column.name.clone()).collect();
    let select = selected.resolved(&names).unwrap_or_else(|why| panic!("{text}: {why}"));
    let place = |(table, name): (usize, String)| {
        let place = columns.iter().position(|column| column.name == name);
        place.map(|place| (table as u16, place as u16)).ok_or(name)
    };
    let select = select.map(&mut { place }).expect("columns of the table");
    let value = |literal: &sql::Literal| {
        let mut value = Vec::new();
        literal.put_value(text.as_bytes(), &mut value);
        (String::from_utf8(value).expect("UTF-8"), literal.kind.oid())
    };
    assert!(scan.literals().iter().all(|literal| literal.kind != LiteralKind::Numeric));
    let plain = vec![false; select.outputs.len()];
    Statement {
        select,
        tables: vec![0],
        parameters,
        literals: scan.literals().iter().map(value).collect(),
        plain,
        text,
        window: String::new(),
    }
}

struct Write<'a> {
    made: &'a Made,
    random: &'a mut Random,
    parameters: Vec<Parameter>,
}

impl Write<'_> {
    fn statement(&mut self) -> String {
        let condition = self.condition(3);
        let table = &self.made.name;
        match self.random.below(4) {
            0 => format!("SELECT count(1), count(*), count(c1) FROM {table} WHERE {condition}"),
            1 => {
                let column = self.column(|column| column.class != Class::Opaque);
                format!(
                    "SELECT {column}, count(true) FROM {table} WHERE {condition} \
                     GROUP BY 1 ORDER BY 2 DESC, 1"
                )
            }
            2 => {
                let order = self.column(is_ordered);
                format!(
                    "SELECT {order} AS a, c0, c1 FROM {table} WHERE {condition} \
                     ORDER BY a DESC, 2, 3 LIMIT 20"
                )
            }
            _ => format!("SELECT c0, c1 FROM {table} WHERE {condition} ORDER BY 1, 2"),
        }
    }

    fn column(&mut self, fits: impl Fn(&Column) -> bool) -> String {
        let columns = &self.made.definition.columns;
        let found: Vec<&Column> = columns.iter().filter(|column| fits(column)).collect();
        match found.is_empty() {
            // There is one of integers.
            true => "c0".to_owned(),
            false => self.random.of(&found).name.clone(),
        }
    }

    fn condition(&mut self, depth: usize) -> String {
        let all = |write: &mut Self, word: &str| {
            let parts = (0..1 + write.random.below(3)).map(|_| write.condition(depth - 1));
            let parts: Vec<String> = parts.collect();
            format!("({})", parts.join(word))
        };
        match self.random.below(10) {
            0 | 1 if depth > 0 => all(self, " AND "),
            2 | 3 if depth > 0 => all(self, " OR "),
            4..=6 if depth > 0 => format!("NOT ({})", self.condition(depth - 1)),
            7 if self.random.one_in(4) => {
                (*self.random.of(&["true", "false", "NOT true", "c0 IS NULL"])).to_owned()
            }
            7 | 8 => self.truth(),
            _ => self.comparison(),
        }
    }

    /// A column that is a condition by itself, or a pattern.
    fn truth(&mut self) -> String {
        let has = |write: &Self, class| {
            write.made.definition.columns.iter().any(|column| column.class == class)
        };
        if has(self, Class::Bool) && self.random.one_in(2) {
            let of = self.column(|column| column.class == Class::Bool);
            let forms = [
                "{}",
                "NOT {}",
                "{} = true",
                "false = {}",
                "{} <> true",
                "{} != false",
                "{} IS TRUE",
                "{} IS NOT TRUE",
                "{} IS FALSE",
                "{} IS NOT FALSE",
                "{} IS UNKNOWN",
                "{} IS NOT UNKNOWN",
            ];
            return self.random.of(&forms).replace("{}", &of);
        }
        if !has(self, Class::Text) {
            return self.comparison();
        }
        let of = self.column(|column| column.class == Class::Text);
        let patterns = [
            "%",
            "",
            "a",
            "a%",
            "ab%%",
            "abcdefgh%",
            "abcdefghi%",
            "é%",
            "b",
            "a %",
            "a_",
            "%b",
            "z%",
        ];
        let pattern = *self.random.of(&patterns);
        if self.random.one_in(2) {
            let not = if self.random.one_in(4) { "NOT " } else { "" };
            return format!("{of} {not}LIKE '{pattern}'");
        }
        let escaped = ["a\\%", "\\a%", "ab\\"];
        let pattern = if self.random.one_in(10) { *self.random.of(&escaped) } else { pattern };
        let value = (!self.random.one_in(8)).then(|| pattern.as_bytes().to_vec());
        format!("{of} LIKE {}", self.parameter(25, value))
    }

    fn comparison(&mut self) -> String {
        let at = loop {
            let at = self.random.below(self.made.types.len());
            if self.made.definition.columns[at].class != Class::Opaque {
                break at;
            }
        };
        let column = &self.made.definition.columns[at];
        let name = &column.name;
        match self.random.below(6) {
            0 => format!("{name} IS NOT NULL"),
            1 => format!("{name} <> {}", self.value(at)),
            2 | 3 => {
                let many = 1 + self.random.below(4);
                let values: Vec<String> = (0..many).map(|_| self.value(at)).collect();
                let values = values.join(", ");
                match self.random.below(4) {
                    0 => format!("{name} IN ({values})"),
                    _ => format!("{name} NOT IN ({values})"),
                }
            }
            _ if !is_ordered(column) => format!("{} != {name}", self.value(at)),
            4 => {
                let not = if self.random.one_in(2) { "NOT " } else { "" };
                format!("{name} {not}BETWEEN {} AND {}", self.value(at), self.value(at))
            }
            _ => {
                let operator = *self.random.of(&["<", "<=", ">", ">=", "=", "<>"]);
                match self.random.one_in(4) {
                    true => format!("{} {operator} {name}", self.value(at)),
                    false => format!("{name} {operator} {}", self.value(at)),
                }
            }
        }
    }

    fn value(&mut self, at: usize) -> String {
        let column = &self.made.definition.columns[at];
        let is_int = matches!(column.class, Class::Int2 | Class::Int4 | Class::Int8);
        let text = match self.random.one_in(2) && at == 0 {
            true => (self.random.below(60) as i64 - 25).to_string(),
            false => (*self.random.of(self.made.types[at].values)).to_owned(),
        };
        match self.random.below(4) {
            0 | 1 if is_int => match text.strip_prefix('-') {
                Some(digits) if self.random.one_in(3) => format!("- {digits}"),
                _ => text,
            },
            // A backslash in quotes is not scanned.
            0..=2 if !text.contains('\\') => format!("'{}'", text.replace('\'', "''")),
            _ => {
                let value = (!self.random.one_in(8)).then(|| text.into_bytes());
                let type_oid = column.type_oid;
                self.parameter(type_oid, value)
            }
        }
    }

    fn parameter(&mut self, type_oid: u32, value: Option<Vec<u8>>) -> String {
        self.parameters.push(Parameter { type_oid, binary: false, value });
        format!("${}", self.parameters.len())
    }
}

fn is_ordered(column: &Column) -> bool {
    column.class != Class::Opaque && column.collation == Collation::Ordered
}
