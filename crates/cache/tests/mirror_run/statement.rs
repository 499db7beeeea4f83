//! Random statements, as text and taken apart.

use std::fmt;

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::Column;
use cache::mirror::stored::store;
use cache::recipe::{Value, Values};
use sql::{Comparison, Filter, Order, Output, Select, Source};

use crate::random::Random;
use crate::world::{Type, World};

type At = (u16, u16);

/// What statements are like.
#[derive(Debug)]
pub struct Shape {
    pub tables: usize,
    pub order: bool,
    pub totals: bool,
    pub groups: bool,
    pub distinct: bool,
    /// As texts that the parser has to understand.
    pub written: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            tables: 1,
            order: true,
            totals: false,
            groups: false,
            distinct: false,
            written: false,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Parameter {
    pub type_oid: u32,
    pub binary: bool,
    pub value: Option<Vec<u8>>,
}

#[derive(Debug)]
pub struct Statement {
    pub select: Select<At>,
    /// Places in the world's tables.
    pub tables: Vec<usize>,
    pub parameters: Vec<Parameter>,
    pub literals: Vec<(String, u32)>,
    /// Outputs whose values look the same where they are equal.
    pub plain: Vec<bool>,
    pub text: String,
    pub window: String,
}

impl Values for Statement {
    fn get(&self, source: Source) -> Option<(Value<'_>, u32)> {
        Some(match source {
            Source::Literal(at) => {
                let (text, type_oid) = &self.literals[at as usize];
                (Value::Text(text.as_bytes()), *type_oid)
            }
            Source::Parameter(number) => {
                let parameter = &self.parameters[number as usize - 1];
                let value = match &parameter.value {
                    None => Value::Null,
                    Some(bytes) if parameter.binary => Value::Binary(bytes),
                    Some(text) => Value::Text(text),
                };
                (value, parameter.type_oid)
            }
        })
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sql(true))?;
        for parameter in &self.parameters {
            let value = parameter.value.as_ref().map(|value| value.escape_ascii().to_string());
            writeln!(f, "  {} {value:?} {}", parameter.type_oid, parameter.binary)?;
        }
        write!(f, "{:?}", self.select)
    }
}

impl Statement {
    pub fn random(world: &World, random: &mut Random, shape: &Shape) -> Statement {
        let many = if shape.tables == 1 { 1 } else { 2 + random.below(shape.tables - 1) };
        let tables: Vec<usize> = (0..many).map(|_| random.below(world.tables.len())).collect();
        let mut make =
            Make { world, random, tables, parameters: vec![], literals: vec![], only: None };
        make.statement(shape)
    }

    /// With LIMIT and OFFSET, or without.
    pub fn sql(&self, window: bool) -> String {
        let window = if window { &self.window } else { "" };
        format!("{}{window}", self.text)
    }

    pub fn type_of(&self, source: Source) -> u32 {
        self.get(source).expect("a value").1
    }

    pub fn is_plain(&self, output: usize) -> bool {
        self.plain[output]
    }
}

struct Make<'a> {
    world: &'a World,
    random: &'a mut Random,
    tables: Vec<usize>,
    parameters: Vec<Parameter>,
    literals: Vec<(String, u32)>,
    /// All conditions are of this column.
    only: Option<At>,
}

impl Make<'_> {
    fn statement(&mut self, shape: &Shape) -> Statement {
        let grouped = shape.groups || shape.totals;
        // An index can tell the totals of rows that one column decides on.
        if shape.totals && self.random.one_in(3) {
            self.only = Some(self.column()).filter(|at| self.of(*at).0.class != Class::Opaque);
        }
        let (mut filter, mut clause) = self.filter(2);
        let joins = self.joins();
        if !joins.is_empty() {
            let (mut parts, texts): (Vec<_>, Vec<_>) = joins.into_iter().unzip();
            parts.push(filter);
            filter = Filter::And(parts);
            clause = format!("{} AND ({clause})", texts.join(" AND "));
        }
        let group: Vec<At> = match shape.groups {
            true => (0..1 + self.random.below(2)).map(|_| self.column()).collect(),
            false => vec![],
        };
        let mut outputs = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let output = match grouped {
                true if !group.is_empty() && !self.random.one_in(3) => {
                    Output::Column(*self.random.of(&group))
                }
                true => self.aggregate(),
                false => Output::Column(self.column()),
            };
            outputs.push(output);
        }
        let shown = outputs.len();
        let mut order = Vec::new();
        if shape.order && !self.random.one_in(4) {
            for _ in 0..1 + self.random.below(3) {
                let output = match self.random.one_in(3) && !shape.distinct {
                    true => {
                        outputs.push(match grouped {
                            true if !group.is_empty() => Output::Column(*self.random.of(&group)),
                            true => self.aggregate(),
                            false => Output::Column(self.column()),
                        });
                        outputs.len() - 1
                    }
                    false => self.random.below(shown),
                };
                let descending = self.random.one_in(2);
                let nulls_first = if self.random.one_in(3) { !descending } else { descending };
                order.push(Order { output, descending, nulls_first });
            }
        }
        let text = self.text(shape, &outputs, shown, &group, &order, &clause);
        let mut window = String::new();
        let mut count = |make: &mut Make<'_>, word: &str, most: usize| {
            let number = make.random.below(most);
            window += &format!(" {word} {number}");
            Some(make.literal(&number.to_string(), 23))
        };
        let limit = if self.random.one_in(2) { count(self, "LIMIT", 30) } else { None };
        let offset = if self.random.one_in(3) { count(self, "OFFSET", 12) } else { None };
        let plain = outputs.iter().map(|output| self.is_plain(output)).collect();
        Statement {
            select: Select {
                distinct: shape.distinct,
                outputs,
                shown,
                filter,
                group,
                order,
                limit,
                offset,
            },
            tables: self.tables.clone(),
            parameters: std::mem::take(&mut self.parameters),
            literals: std::mem::take(&mut self.literals),
            plain,
            text,
            window,
        }
    }

    fn text(
        &self,
        shape: &Shape,
        outputs: &[Output<At>],
        shown: usize,
        group: &[At],
        order: &[Order],
        clause: &str,
    ) -> String {
        let of = |output: &Output<At>| match output {
            Output::Column(at) => self.name(*at),
            Output::CountRows => "count(*)".to_owned(),
            Output::Count(at) => format!("count({})", self.name(*at)),
            Output::Sum(at) => format!("sum({})", self.name(*at)),
            Output::Min(at) => format!("min({})", self.name(*at)),
            Output::Max(at) => format!("max({})", self.name(*at)),
            Output::Avg(at) => format!("avg({})", self.name(*at)),
        };
        let list = |parts: Vec<String>| parts.join(", ");
        let from = self.tables.iter().enumerate();
        let from = from.map(|(at, table)| format!("{} AS a{at}", self.world.tables[*table].name));
        let mut text = format!(
            "SELECT {}{} FROM {} WHERE {clause}",
            if shape.distinct { "DISTINCT " } else { "" },
            list(outputs[..shown].iter().map(of).collect()),
            list(from.collect()),
        );
        if !group.is_empty() {
            text += " GROUP BY ";
            text += &list(group.iter().map(|at| self.name(*at)).collect());
        }
        if !order.is_empty() {
            let of = |order: &Order| {
                let down = if order.descending { "DESC" } else { "ASC" };
                let nulls = match (order.nulls_first, order.descending) {
                    (true, false) => " NULLS FIRST",
                    (false, true) => " NULLS LAST",
                    _ => "",
                };
                format!("{} {down}{nulls}", of(&outputs[order.output]))
            };
            text += " ORDER BY ";
            text += &list(order.iter().map(of).collect());
        }
        text
    }

    fn is_plain(&self, output: &Output<At>) -> bool {
        match output {
            Output::Column(at) | Output::Min(at) | Output::Max(at) => {
                let column = self.of(*at).0;
                match column.class {
                    Class::Padded | Class::Numeric => column.type_modifier >= 0,
                    Class::Float4 | Class::Float8 | Class::Interval => false,
                    _ => true,
                }
            }
            Output::Sum(at) | Output::Avg(at) => self.of(*at).0.class != Class::Numeric,
            _ => true,
        }
    }

    fn name(&self, (table, column): At) -> String {
        format!("a{table}.c{column}")
    }

    fn of(&self, (table, column): At) -> (&Column, &'static Type) {
        let made = &self.world.tables[self.tables[usize::from(table)]];
        let column = usize::from(column);
        (&made.definition.columns[column], made.types[column])
    }

    /// One of which most things may be asked.
    fn column(&mut self) -> At {
        let table = self.random.below(self.tables.len());
        let made = &self.world.tables[self.tables[table]];
        loop {
            let column = self.random.below(made.definition.columns.len());
            let found = &made.definition.columns[column];
            let odd = found.class == Class::Opaque || found.collation == Collation::EqualOnly;
            if !odd || self.random.one_in(12) {
                return (table as u16, column as u16);
            }
        }
    }

    fn aggregate(&mut self) -> Output<At> {
        let at = self.column();
        let is_number =
            matches!(self.of(at).0.class, Class::Int2 | Class::Int4 | Class::Int8 | Class::Numeric);
        match self.random.below(6) {
            0 => Output::CountRows,
            1 => Output::Count(at),
            2 => Output::Min(at),
            3 => Output::Max(at),
            4 if is_number => Output::Sum(at),
            5 if is_number => Output::Avg(at),
            _ => Output::CountRows,
        }
    }

    /// Each table is joined to one before it.
    fn joins(&mut self) -> Vec<(Filter<At>, String)> {
        let mut joins = Vec::new();
        for table in 1..self.tables.len() as u16 {
            let before = self.random.below(usize::from(table)) as u16;
            let columns = |make: &Make<'_>, table: u16| {
                let made = &make.world.tables[make.tables[usize::from(table)]];
                (0..made.definition.columns.len() as u16).map(|at| (table, at)).collect::<Vec<_>>()
            };
            let is_int = |class| matches!(class, Class::Int2 | Class::Int4 | Class::Int8);
            let mut pairs = Vec::new();
            for one in columns(self, before) {
                for other in columns(self, table) {
                    let (a, b) = (self.of(one).0.class, self.of(other).0.class);
                    if is_int(a) && is_int(b) || a == b && matches!(a, Class::Text | Class::Date) {
                        pairs.push((one, other));
                    }
                }
            }
            for _ in 0..1 + self.random.below(5) / 4 {
                let (one, other) = *self.random.of(&pairs);
                let icu = |at: At| self.of(at).0.collation == Collation::EqualOnly;
                if icu(one) != icu(other) {
                    continue;
                }
                let text = format!("{} = {}", self.name(one), self.name(other));
                joins.push((Filter::Same(one, other), text));
            }
        }
        joins
    }

    fn filter(&mut self, depth: usize) -> (Filter<At>, String) {
        let some = |make: &mut Self, most: usize| {
            let parts = (0..1 + make.random.below(most)).map(|_| make.filter(depth - 1));
            let (parts, texts): (Vec<_>, Vec<_>) = parts.collect::<Vec<_>>().into_iter().unzip();
            (parts, texts)
        };
        match self.random.below(10) {
            0 if depth == 2 => (Filter::And(vec![]), "true".to_owned()),
            0..=4 if depth > 0 => {
                let (parts, texts) = some(self, 3);
                (Filter::And(parts), format!("({})", texts.join(" AND ")))
            }
            5 | 6 if depth > 0 => {
                let (parts, texts) = some(self, 3);
                (Filter::Or(parts), format!("({})", texts.join(" OR ")))
            }
            _ => self.condition(),
        }
    }

    fn condition(&mut self) -> (Filter<At>, String) {
        let mut at = self.column();
        while self.of(at).0.class == Class::Opaque {
            at = self.column();
        }
        // The identity is asked for more often than others.
        if self.random.one_in(3) {
            at.1 = 0;
        }
        at = self.only.unwrap_or(at);
        let name = self.name(at);
        let only_equal = self.of(at).0.collation == Collation::EqualOnly;
        let comparisons = [
            (Comparison::Equal, "="),
            (Comparison::Less, "<"),
            (Comparison::LessEqual, "<="),
            (Comparison::Greater, ">"),
            (Comparison::GreaterEqual, ">="),
        ];
        let class = self.of(at).0.class;
        match self.random.below(11) {
            0 => (Filter::Null(at), format!("{name} IS NULL")),
            1 => (Filter::NotNull(at), format!("{name} IS NOT NULL")),
            2 | 3 => {
                let many = 1 + self.random.below(5);
                let (sources, texts): (Vec<_>, Vec<_>) =
                    (0..many).map(|_| self.value(at)).collect::<Vec<_>>().into_iter().unzip();
                (Filter::In(at, sources), format!("{name} IN ({})", texts.join(", ")))
            }
            9 if class == Class::Bool => {
                let value = self.random.one_in(2);
                (Filter::Is(at, value), format!("{name} IS {value}"))
            }
            9 if class == Class::Text && self.random.one_in(2) => {
                let value = self.sample(at);
                let most = value.chars().count().min(self.random.below(11));
                let value: String = value.chars().take(most).collect();
                let (wanted, pattern) = (self.random.one_in(2), format!("{value}%"));
                let source = self.literal(&pattern, 25);
                let not = if wanted { "" } else { "NOT " };
                (Filter::Like(at, source, wanted), format!("{name} {not}LIKE '{pattern}'"))
            }
            9 => {
                let many = 1 + self.random.below(4);
                let (sources, texts): (Vec<_>, Vec<_>) =
                    (0..many).map(|_| self.value(at)).collect::<Vec<_>>().into_iter().unzip();
                (Filter::NotIn(at, sources), format!("{name} NOT IN ({})", texts.join(", ")))
            }
            4 if self.of(at).1.array != 0 => {
                let (source, text) = self.array(at);
                (Filter::AnyOf(at, source), format!("{name} = ANY ({text})"))
            }
            5 | 6 if !only_equal => {
                let (low, low_text) = self.value(at);
                let (high, high_text) = self.value(at);
                let parts = vec![
                    Filter::Compare(at, Comparison::GreaterEqual, low),
                    Filter::Compare(at, Comparison::LessEqual, high),
                ];
                (Filter::And(parts), format!("({name} BETWEEN {low_text} AND {high_text})"))
            }
            _ => {
                let (comparison, operator) = match only_equal {
                    true => comparisons[0],
                    false => *self.random.of(&comparisons),
                };
                let (source, text) = self.value(at);
                (Filter::Compare(at, comparison, source), format!("{name} {operator} {text}"))
            }
        }
    }

    fn literal(&mut self, text: &str, type_oid: u32) -> Source {
        self.literals.push((text.to_owned(), type_oid));
        Source::Literal(self.literals.len() as u32 - 1)
    }

    fn parameter(&mut self, parameter: Parameter) -> (Source, String) {
        self.parameters.push(parameter);
        let number = self.parameters.len();
        (Source::Parameter(number as u32), format!("${number}"))
    }

    fn sample(&mut self, at: At) -> String {
        if at.1 == 0 {
            let most = *self.random.of(&[20, 500]);
            return (self.random.below(most) as i64 - 5).to_string();
        }
        (*self.random.of(self.of(at).1.values)).to_owned()
    }

    /// Something to compare a column with.
    fn value(&mut self, at: At) -> (Source, String) {
        let text = self.sample(at);
        let column = self.of(at).0.clone();
        let is_int = matches!(column.class, Class::Int2 | Class::Int4 | Class::Int8);
        match self.random.below(6) {
            0 | 1 => (self.literal(&text, 0), format!("'{}'", text.replace('\'', "''"))),
            2 if is_int && !text.starts_with('-') => {
                let type_oid = if text.parse::<i32>().is_ok() { 23 } else { 20 };
                (self.literal(&text, type_oid), text)
            }
            2 | 3 => {
                let value = (!self.random.one_in(8)).then(|| text.into_bytes());
                let type_oid =
                    if is_int { *self.random.of(&[20, column.type_oid]) } else { column.type_oid };
                self.parameter(Parameter { type_oid, binary: false, value })
            }
            _ => {
                let mut stored = Vec::new();
                assert!(store(&column, text.as_bytes(), &mut stored), "{text}");
                if column.class == Class::Enum {
                    stored = text.into_bytes();
                }
                let type_oid = column.type_oid;
                self.parameter(Parameter { type_oid, binary: true, value: Some(stored) })
            }
        }
    }

    fn array(&mut self, at: At) -> (Source, String) {
        let array = self.of(at).1.array;
        let mut parts = Vec::new();
        for _ in 0..self.random.below(5) {
            parts.push(match self.random.one_in(8) {
                true => "NULL".to_owned(),
                false => format!("\"{}\"", self.sample(at)),
            });
        }
        let value = (!self.random.one_in(10)).then(|| format!("{{{}}}", parts.join(",")).into());
        self.parameter(Parameter { type_oid: array, binary: false, value })
    }
}
