//! From TOML to settings: which key is which option, and what keys there are not.

use std::ops::Range;
use std::path::Path;

use toml_edit::{Document, Item, TableLike};

use super::nearest::nearest;
use super::options::{self, Section, TABLE};
use super::report::{Code, Place, Problem};
use super::settings::{Entry, Layer, Scope, Setting};
use super::source::Source;
use super::value::{escaped, Raw};

/// Problems that are collected before the rest of a file is left unread.
const PROBLEMS_MAX: usize = 1000;

/// What a file says.
#[derive(Default)]
pub(super) struct Sheet {
    pub entries: Vec<Entry>,
    /// Sections with a name in the order of the file.
    /// Without a range where the text is not TOML.
    pub scopes: Vec<(Scope, Place, Option<Range<usize>>)>,
    /// Options whose values could not be read.
    pub broken: Vec<(Scope, &'static str)>,
    pub problems: Vec<Problem>,
}

/// Reads all of `source`; `base` is what relative files start from.
pub(super) fn read(source: &mut Source<'_>, base: Option<&Path>) -> Sheet {
    let document = match Document::parse(source.text()) {
        Ok(document) => document,
        Err(error) => {
            let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
            let span = error.span().unwrap_or(0..0);
            let problem = source.locate_unparsed(Problem::new(Code::Syntax, message), &span);
            return Sheet { problems: vec![problem], ..Sheet::default() };
        }
    };
    let mut walk = Walk { source, base, sheet: Sheet::default(), findings: Vec::new() };
    walk.table(&Node::Root, document.as_table());
    let Walk { mut sheet, findings, .. } = walk;
    let located = findings.into_iter().map(|(problem, span)| match span {
        Some(span) => source.locate(problem, &span),
        None => problem,
    });
    sheet.problems.extend(located);
    sheet
}

/// Where the walk is, and so what keys may come.
enum Node {
    Root,
    Databases,
    DatabaseUsers(String),
    Users,
    Procedures,
    Section(Scope),
}

impl Node {
    fn child(&self, key: &str) -> Option<Node> {
        let fixed = |section| Some(Node::Section(Scope::fixed(section)));
        match (self, key) {
            (Node::Root, "listen") => fixed(Section::Listen),
            (Node::Root, "runtime") => fixed(Section::Runtime),
            (Node::Root, "auth") => fixed(Section::Auth),
            (Node::Root, "pool") => fixed(Section::Pool),
            (Node::Root, "cache") => fixed(Section::Cache),
            (Node::Root, "redis") => fixed(Section::Redis),
            (Node::Root, "telemetry") => fixed(Section::Telemetry),
            (Node::Root, "databases") => Some(Node::Databases),
            (Node::Root, "users") => Some(Node::Users),
            (Node::Root, "procedures") => Some(Node::Procedures),
            (Node::Databases, name) => Some(Node::Section(Scope::database(name))),
            (Node::Procedures, name) => Some(Node::Section(Scope::procedure(name))),
            (Node::Users, name) => Some(Node::Section(Scope::user(name))),
            (Node::DatabaseUsers(database), name) => {
                Some(Node::Section(Scope::database_user(database, name)))
            }
            (Node::Section(scope), "tls") if scope.section == Section::Listen => {
                fixed(Section::ListenTls)
            }
            (Node::Section(scope), "users") if scope.section == Section::Database => {
                Some(Node::DatabaseUsers(scope.database.clone()))
            }
            _ => None,
        }
    }

    fn children(&self) -> &'static [&'static str] {
        match self {
            Node::Root => &[
                "listen",
                "runtime",
                "auth",
                "pool",
                "databases",
                "users",
                "cache",
                "procedures",
                "redis",
                "telemetry",
            ],
            Node::Section(scope) => match scope.section {
                Section::Listen => &["tls"],
                Section::Database => &["users"],
                _ => &[],
            },
            Node::Databases | Node::DatabaseUsers(_) | Node::Users | Node::Procedures => &[],
        }
    }
}

struct Walk<'w, 'text> {
    source: &'w mut Source<'text>,
    base: Option<&'w Path>,
    sheet: Sheet,
    findings: Vec<(Problem, Option<Range<usize>>)>,
}

impl Walk<'_, '_> {
    fn table(&mut self, node: &Node, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            if item.is_none() {
                continue;
            }
            let key = table.key(name).and_then(|key| key.span());
            let scope = match node {
                Node::Section(scope) => Some(scope),
                _ => None,
            };
            let row = scope.and_then(|scope| Some((scope, options::find(scope.section, name)?)));
            if let Some((scope, row)) = row {
                self.option(scope, row, item, key);
            } else if let Some(child) = node.child(name) {
                self.section(&child, name, item, key);
            } else {
                self.cover(item);
                self.finding(unknown(node, name, item.is_table_like()), key);
            }
        }
    }

    fn section(&mut self, child: &Node, name: &str, item: &Item, key: Option<Range<usize>>) {
        let Some(table) = item.as_table_like() else {
            self.cover(item);
            let message = match item {
                Item::ArrayOfTables(_) => format!("`{name}` is a list of sections; expected one"),
                _ => format!("`{name}` is a section, not a value"),
            };
            return self.finding(Problem::new(Code::WrongType, message), key);
        };
        if let Node::Section(scope) = child {
            if scope.section.has_name() {
                let span = key.unwrap_or(0..0);
                let place = self.source.place(span.start);
                self.sheet.scopes.push((scope.clone(), place, Some(span)));
            }
        }
        self.table(child, table);
    }

    fn option(
        &mut self,
        scope: &Scope,
        row: &'static options::Row,
        item: &Item,
        key: Option<Range<usize>>,
    ) {
        let Some(value) = item.as_value() else {
            self.cover(item);
            self.sheet.broken.push((scope.clone(), row.name));
            let message = format!("`{}` is a value, not a section", row.name);
            return self.finding(Problem::new(Code::WrongType, message), key);
        };
        let span = value.span();
        if let Some(span) = &span {
            self.source.value_ends_at(span.end);
        }
        if row.kind.is_secret() || value.is_inline_table() {
            self.cover(item);
        }
        let raw = raw(value, self.source.text());
        match row.kind.read(row.name, &raw, self.base) {
            Ok(value) => {
                let place = self.source.place(key.or(span.clone()).unwrap_or(0..0).start);
                let setting = Setting { value, layer: Layer::File, place, span };
                self.sheet.entries.push(Entry { scope: scope.clone(), row, setting });
            }
            Err(problem) => {
                self.sheet.broken.push((scope.clone(), row.name));
                self.finding(problem, span);
            }
        }
    }

    fn finding(&mut self, problem: Problem, span: Option<Range<usize>>) {
        if self.findings.len() < PROBLEMS_MAX {
            self.findings.push((problem, span));
        }
    }

    /// Keeps every value in `item` out of excerpts.
    fn cover(&mut self, item: &Item) {
        match item {
            Item::ArrayOfTables(tables) => {
                for table in tables.iter() {
                    table.iter().for_each(|(_, item)| self.cover(item));
                }
            }
            Item::Table(table) => table.iter().for_each(|(_, item)| self.cover(item)),
            Item::Value(value) => {
                if let Some(span) = value.span() {
                    self.source.cover(span);
                } else if let Some(table) = value.as_inline_table() {
                    // A dotted key makes an inline table without a place of its own.
                    for (_, value) in table.iter() {
                        self.cover(&Item::Value(value.clone()));
                    }
                }
            }
            Item::None => {}
        }
    }
}

/// The problem of a key that its section does not have.
fn unknown(node: &Node, name: &str, is_section: bool) -> Problem {
    let options = |section| options::rows(section).map(|row| row.name);
    let mut known: Vec<&str> = node.children().to_vec();
    if let Node::Section(scope) = node {
        known.extend(options(scope.section));
    }
    let shown = escaped(name);
    let problem = match is_section {
        true => Problem::new(Code::UnknownSection, format!("unknown section `{shown}`")),
        false => Problem::new(Code::UnknownKey, format!("unknown key `{shown}`")),
    };
    if matches!(node, Node::Section(scope) if scope.section == Section::DatabaseUser)
        && matches!(name, "password" | "password_file")
    {
        return problem.help("a user has one password for all databases: `[users.NAME]`");
    }
    if let Some(near) = nearest(name, known) {
        return problem.help(format!("did you mean `{near}`?"));
    }
    if let Some(row) = TABLE.iter().find(|row| row.pgbouncer.contains(&name)) {
        let Some(section) = row.sections.first() else { return problem };
        let place = section.path();
        return problem.help(format!("PgBouncer's `{name}` is `{}` in `[{place}]`", row.name));
    }
    let elsewhere: Vec<String> = Section::ALL
        .iter()
        .filter(|section| options::find(**section, name).is_some())
        .map(|section| format!("`[{}]`", section.written()))
        .collect();
    match elsewhere.is_empty() {
        true => problem,
        false => problem.help(format!("`{name}` may stand in {}", elsewhere.join(", "))),
    }
}

fn raw<'a>(value: &'a toml_edit::Value, text: &str) -> Raw<'a> {
    use toml_edit::Value;
    match value {
        Value::String(string) => Raw::Text(string.value()),
        Value::Integer(integer) => {
            let written = value.span().and_then(|span| text.get(span)).unwrap_or_default();
            Raw::Integer { value: *integer.value(), octal: written.starts_with("0o") }
        }
        Value::Boolean(on) => Raw::Flag(*on.value()),
        Value::Array(array) => Raw::List(array.iter().map(|value| raw(value, text)).collect()),
        Value::Float(_) => Raw::Other("a number with a fraction"),
        Value::Datetime(_) => Raw::Other("a date or time"),
        Value::InlineTable(_) => Raw::Other("a section"),
    }
}
