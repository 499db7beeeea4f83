//! A body as a list of its SQL, in order: control structures are flattened, and each piece knows
//! whether it was in a loop or under a condition.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::source::{self, Conflict, PlPgSql, Tree};
use super::types::{plain, Words};
use super::Definition;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// An SQL statement.
    Statement,
    /// The query of a cursor.
    Cursor,
    /// `SELECT` in front of an expression.
    Expression,
    /// The expression that makes up the text of a statement.
    Dynamic,
    Commit,
    Rollback,
}

#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub kind: PieceKind,
    pub text: String,
    pub line: u32,
    pub order: u32,
    pub in_loop: bool,
    pub in_branch: bool,
    pub step: usize,
    /// Variables, `r.f` for a field.
    pub assigns: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub line: u32,
    pub conditions: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct StepShape {
    pub line: u32,
    pub plain: bool,
    pub leaves: bool,
    /// GET DIAGNOSTICS reads what the statement before it left.
    pub asks: bool,
}

#[derive(Debug)]
pub(super) struct Body {
    pub pieces: Vec<Piece>,
    /// Of all variables, arguments included; a name that stands here twice is declared twice.
    pub variables: Vec<String>,
    /// How often each variable is given a value, a default included.
    pub assigned: BTreeMap<String, u32>,
    /// Values that variables are given, as SQL expressions.
    pub values: Vec<(String, String)>,
    /// Queries of cursors; none for one that is opened with more than one.
    pub cursors: BTreeMap<String, Option<String>>,
    pub handlers: Vec<Handler>,
    pub steps: Vec<StepShape>,
    pub conflict: Conflict,
    pub aliases: Vec<(String, String)>,
    pub labels: Vec<String>,
    pub is_sql: bool,
}

/// Deeper nesting is refused; the parser's output can't be deeper.
const NESTING_MAX: usize = 128;

/// More statements and expressions are refused.
const PIECES_MAX: usize = 20_000;

impl Body {
    pub fn of(definition: &Definition, tree: &Tree) -> Result<Body, String> {
        match tree {
            Tree::Sql { statements } => {
                let mut walk = Walk::new(&Json::Null, Conflict::Column);
                for statement in statements {
                    walk.step(statement.line, true);
                    let place = Place::default();
                    walk.piece(
                        PieceKind::Statement,
                        &statement.text,
                        statement.line,
                        place,
                        vec![],
                    );
                    walk.order += 1;
                }
                walk.body.is_sql = true;
                let named = definition.arguments.iter().map(|argument| argument.name.clone());
                walk.body.variables = named.filter(|name| !name.is_empty()).collect();
                Ok(walk.body)
            }
            Tree::PlPgSql(parsed) => plpgsql(parsed),
        }
    }
}

fn plpgsql(parsed: &PlPgSql) -> Result<Body, String> {
    let function = parsed.function.get("PLpgSQL_function").ok_or_else(strange)?;
    let datums = function.get("datums").unwrap_or(&Json::Null);
    let mut walk = Walk::new(datums, parsed.conflict);
    for datum in items(datums) {
        let Some((kind, datum)) = only(datum) else { continue };
        let name = text(datum, "refname");
        if !["PLpgSQL_var", "PLpgSQL_rec"].contains(&kind) || name.is_empty() {
            continue;
        }
        walk.body.variables.push(name.to_owned());
        if let Some(default) = expression(datum, "default_val") {
            walk.assign(name);
            walk.body.values.push((name.to_owned(), default.to_owned()));
            let place = Place::default();
            let line = number(datum, "lineno");
            walk.step(line, false);
            walk.expression(default, line, place, vec![name.to_owned()]);
        }
        if let Some(query) = expression(datum, "cursor_explicit_expr") {
            walk.cursor(name, query);
        }
    }
    walk.body.aliases = parsed.aliases.clone();
    walk.body.labels = parsed.labels.clone();
    let action = function.get("action").ok_or_else(strange)?;
    let block = action.get("PLpgSQL_stmt_block").ok_or_else(strange)?;
    walk.block(block, Place { outermost: true, ..Place::default() })?;
    Ok(walk.body)
}

fn strange() -> String {
    "the parsed body has another form than expected".to_owned()
}

/// Where a statement is.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    in_loop: bool,
    in_branch: bool,
    /// Each statement is a step of its own.
    outermost: bool,
    nesting: usize,
}

impl Place {
    fn inside(self) -> Place {
        Place { outermost: false, nesting: self.nesting + 1, ..self }
    }

    fn branch(self) -> Place {
        Place { in_branch: true, ..self.inside() }
    }

    fn body_of_loop(self) -> Place {
        Place { in_loop: true, ..self.inside() }
    }
}

struct Walk<'a> {
    body: Body,
    datums: &'a Json,
    order: u32,
}

impl<'a> Walk<'a> {
    fn new(datums: &'a Json, conflict: Conflict) -> Walk<'a> {
        let body = Body {
            pieces: Vec::new(),
            variables: Vec::new(),
            assigned: BTreeMap::new(),
            values: Vec::new(),
            cursors: BTreeMap::new(),
            handlers: Vec::new(),
            steps: Vec::new(),
            conflict,
            aliases: Vec::new(),
            labels: Vec::new(),
            is_sql: false,
        };
        Walk { body, datums, order: 0 }
    }

    fn step(&mut self, line: u32, plain: bool) {
        self.body.steps.push(StepShape { line, plain, ..StepShape::default() });
    }

    fn assign(&mut self, target: &str) {
        let variable = target.split('.').next().unwrap_or_default();
        *self.body.assigned.entry(variable.to_owned()).or_default() += 1;
    }

    fn cursor(&mut self, name: &str, query: &str) {
        let query = Some(query.to_owned());
        let known = self.body.cursors.entry(name.to_owned()).or_insert_with(|| query.clone());
        if *known != query {
            *known = None;
        }
    }

    fn piece(
        &mut self,
        kind: PieceKind,
        text: &str,
        line: u32,
        place: Place,
        assigns: Vec<String>,
    ) {
        assigns.iter().for_each(|target| self.assign(target));
        self.body.pieces.push(Piece {
            kind,
            text: text.to_owned(),
            line,
            order: self.order,
            in_loop: place.in_loop,
            in_branch: place.in_branch,
            step: self.body.steps.len().saturating_sub(1),
            assigns,
        });
    }

    /// Does not count what it assigns: its caller does.
    fn expression(&mut self, text: &str, line: u32, place: Place, assigns: Vec<String>) {
        self.piece(PieceKind::Expression, &format!("SELECT {text}"), line, place, Vec::new());
        if let Some(piece) = self.body.pieces.last_mut() {
            piece.assigns = assigns;
        }
    }

    fn block(&mut self, block: &Json, place: Place) -> Result<(), String> {
        let handlers = block.pointer("/exceptions/PLpgSQL_exception_block/exc_list");
        // What an error undoes is no sequence of steps any more.
        let place = match handlers {
            Some(_) if place.outermost => {
                self.step(number(block, "lineno"), false);
                place.inside()
            }
            _ => place,
        };
        self.list(block.get("body"), place)?;
        for handler in handlers.map_or(&[][..], items) {
            let Some((_, handler)) = only(handler) else { return Err(strange()) };
            let conditions = items(handler.get("conditions").unwrap_or(&Json::Null));
            let names = conditions.iter().filter_map(only);
            let conditions = names.map(|(_, one)| text(one, "condname").to_lowercase()).collect();
            self.body.handlers.push(Handler { line: number(block, "lineno"), conditions });
            self.list(handler.get("action"), place.branch())?;
        }
        Ok(())
    }

    fn list(&mut self, statements: Option<&Json>, place: Place) -> Result<(), String> {
        if place.nesting > NESTING_MAX || self.body.pieces.len() > PIECES_MAX {
            return Err("the body is too large to be understood".to_owned());
        }
        for statement in statements.map_or(&[][..], items) {
            let (kind, statement) = only(statement).ok_or_else(strange)?;
            let kind = kind.strip_prefix("PLpgSQL_stmt_").ok_or_else(strange)?;
            let line = number(statement, "lineno");
            let flat = kind == "block" && statement.get("exceptions").is_none();
            // The RETURN that the parser puts behind every body has no line.
            if kind == "return" && line == 0 {
                continue;
            }
            if place.outermost && !flat {
                let compound = ["block", "if", "case", "loop", "while"].contains(&kind);
                self.step(line, !compound && !kind.starts_with("for") && kind != "dynfors");
            }
            self.statement(kind, statement, line, place)?;
            self.order += 1;
        }
        Ok(())
    }

    fn statement(
        &mut self,
        kind: &str,
        statement: &Json,
        line: u32,
        place: Place,
    ) -> Result<(), String> {
        match kind {
            "block" => return self.block(statement, place),
            "if" | "case" => return self.branches(statement, line, place),
            "loop" | "while" | "fori" | "fors" | "forc" | "foreach_a" | "dynfors" => {
                return self.repeated(kind, statement, line, place)
            }
            "assign" => self.assignment(statement, line, place),
            "execsql" => {
                let targets = self.targets(statement, "target");
                let text = expression(statement, "sqlstmt").ok_or_else(strange)?;
                self.piece(PieceKind::Statement, text, line, place, targets);
            }
            "perform" | "call" => {
                let text = expression(statement, "expr").ok_or_else(strange)?;
                self.piece(PieceKind::Statement, text, line, place, Vec::new());
            }
            "dynexecute" => {
                let targets = self.targets(statement, "target");
                let text = expression(statement, "query").ok_or_else(strange)?;
                self.piece(PieceKind::Dynamic, text, line, place, targets);
                self.parameters(statement, line, place);
            }
            "open" => self.open(statement, line, place),
            "fetch" => {
                let targets = self.targets(statement, "target");
                let count = expression(statement, "expr").unwrap_or("1");
                targets.iter().for_each(|target| self.assign(target));
                self.expression(count, line, place, targets);
            }
            "getdiag" => self.diagnostics(statement, line, place)?,
            "return" | "return_next" | "return_query" | "exit" => {
                self.returned(kind, statement, line, place);
            }
            "raise" | "assert" => self.told(statement, line, place),
            "commit" => self.piece(PieceKind::Commit, "", line, place, Vec::new()),
            "rollback" => self.piece(PieceKind::Rollback, "", line, place, Vec::new()),
            "close" => {}
            other => return Err(format!("line {line}: a statement `{other}` is not known here")),
        }
        Ok(())
    }

    fn branches(&mut self, statement: &Json, line: u32, place: Place) -> Result<(), String> {
        for field in ["cond", "t_expr"] {
            if let Some(text) = expression(statement, field) {
                self.expression(text, line, place, Vec::new());
            }
        }
        self.list(statement.get("then_body"), place.branch())?;
        for list in ["elsif_list", "case_when_list"] {
            for branch in items(statement.get(list).unwrap_or(&Json::Null)) {
                let (_, branch) = only(branch).ok_or_else(strange)?;
                let line = number(branch, "lineno");
                for field in ["cond", "expr"] {
                    if let Some(text) = expression(branch, field) {
                        self.expression(text, line, place.branch(), Vec::new());
                    }
                }
                self.list(branch.get("stmts"), place.branch())?;
            }
        }
        self.list(statement.get("else_body"), place.branch())?;
        self.list(statement.get("else_stmts"), place.branch())
    }

    fn repeated(
        &mut self,
        kind: &str,
        statement: &Json,
        line: u32,
        place: Place,
    ) -> Result<(), String> {
        let mut targets = self.targets(statement, "var");
        if kind == "foreach_a" {
            targets.extend(self.named(number(statement, "varno")));
        }
        targets.iter().for_each(|target| self.assign(target));
        for field in ["cond", "lower", "upper", "step", "expr"] {
            if let Some(text) = expression(statement, field) {
                self.expression(text, line, place, targets.clone());
            }
        }
        match (kind, expression(statement, "query")) {
            ("fors", Some(query)) => {
                self.piece(PieceKind::Statement, query, line, place, Vec::new());
            }
            ("dynfors", Some(query)) => {
                self.piece(PieceKind::Dynamic, query, line, place, Vec::new());
                self.parameters(statement, line, place);
            }
            _ => {}
        }
        if kind == "forc" {
            self.opened(statement, line, place);
        }
        self.list(statement.get("body"), place.body_of_loop())
    }

    fn assignment(&mut self, statement: &Json, line: u32, place: Place) {
        let target = self.named(number(statement, "varno"));
        let text = expression(statement, "expr").unwrap_or_default();
        let value = assigned_value(text);
        target.iter().for_each(|target| self.assign(target));
        if let [target] = target.as_slice() {
            // Not where one item of an array is assigned.
            let whole = text.get(..text.len() - value.len()).unwrap_or_default();
            let value = if whole.contains('[') { "NULL" } else { value };
            self.body.values.push((target.clone(), value.to_owned()));
        }
        self.expression(value, line, place, target);
    }

    /// The cursor of FOR and OPEN, with the query it was declared with.
    fn opened(&mut self, statement: &Json, line: u32, place: Place) {
        let names = self.named(number(statement, "curvar"));
        if let Some(arguments) = expression(statement, "argquery") {
            self.expression(arguments, line, place, Vec::new());
        }
        let query = names.first().and_then(|name| self.body.cursors.get(name)).cloned().flatten();
        if let Some(query) = query {
            self.piece(PieceKind::Cursor, &query, line, place, Vec::new());
        }
    }

    fn open(&mut self, statement: &Json, line: u32, place: Place) {
        let names = self.named(number(statement, "curvar"));
        if let Some(query) = expression(statement, "query") {
            names.iter().for_each(|name| self.cursor(name, query));
            self.piece(PieceKind::Cursor, query, line, place, Vec::new());
        } else if let Some(query) = expression(statement, "dynquery") {
            names.iter().for_each(|name| self.cursor(name, ""));
            self.piece(PieceKind::Dynamic, query, line, place, Vec::new());
            self.parameters(statement, line, place);
        } else {
            self.opened(statement, line, place);
        }
    }

    fn diagnostics(&mut self, statement: &Json, line: u32, place: Place) -> Result<(), String> {
        let mut targets = Vec::new();
        for item in items(statement.get("diag_items").unwrap_or(&Json::Null)) {
            let (_, item) = only(item).ok_or_else(strange)?;
            targets.extend(self.named(number(item, "target")));
        }
        targets.iter().for_each(|target| self.assign(target));
        self.expression("NULL", line, place, targets);
        if let Some(step) = self.body.steps.last_mut() {
            step.asks = true;
        }
        Ok(())
    }

    fn returned(&mut self, kind: &str, statement: &Json, line: u32, place: Place) {
        for field in ["expr", "cond"] {
            if let Some(text) = expression(statement, field) {
                self.expression(text, line, place, Vec::new());
            }
        }
        if let Some(query) = expression(statement, "query") {
            self.piece(PieceKind::Statement, query, line, place, Vec::new());
        }
        if let Some(query) = expression(statement, "dynquery") {
            self.piece(PieceKind::Dynamic, query, line, place, Vec::new());
            self.parameters(statement, line, place);
        }
        let labelled = kind == "exit" && !text(statement, "label").is_empty();
        if let Some(step) = self.body.steps.last_mut() {
            step.leaves |= kind == "return" || labelled;
        }
    }

    fn told(&mut self, statement: &Json, line: u32, place: Place) {
        self.parameters(statement, line, place);
        for field in ["cond", "message"] {
            if let Some(text) = expression(statement, field) {
                self.expression(text, line, place, Vec::new());
            }
        }
        for option in items(statement.get("options").unwrap_or(&Json::Null)) {
            if let Some(text) = only(option).and_then(|(_, option)| expression(option, "expr")) {
                self.expression(text, line, place, Vec::new());
            }
        }
    }

    /// Of USING and RAISE.
    fn parameters(&mut self, statement: &Json, line: u32, place: Place) {
        for parameter in items(statement.get("params").unwrap_or(&Json::Null)) {
            if let Some(text) = parameter.pointer("/PLpgSQL_expr/query").and_then(Json::as_str) {
                self.expression(text, line, place, Vec::new());
            }
        }
    }

    /// What a row, record or variable in this field is called.
    fn targets(&self, statement: &Json, field: &str) -> Vec<String> {
        match statement.get(field).and_then(only) {
            Some(("PLpgSQL_row", row)) => fields(row),
            Some((_, one)) => vec![text(one, "refname").to_owned()],
            None => Vec::new(),
        }
    }

    /// The names of the variable with this number.
    fn named(&self, number: u32) -> Vec<String> {
        let datum = items(self.datums).get(number as usize).and_then(only);
        match datum {
            Some(("PLpgSQL_row", row)) => fields(row),
            Some(("PLpgSQL_recfield", field)) => {
                let parent = self::number(field, "recparentno") as usize;
                let parent = items(self.datums).get(parent).and_then(only);
                let record = parent.map_or("", |(_, record)| text(record, "refname"));
                vec![format!("{record}.{}", text(field, "fieldname"))]
            }
            Some((_, one)) => vec![text(one, "refname").to_owned()],
            None => Vec::new(),
        }
    }
}

fn fields(row: &Json) -> Vec<String> {
    let fields = items(row.get("fields").unwrap_or(&Json::Null)).iter();
    fields.map(|field| text(field, "name").to_owned()).filter(|name| !name.is_empty()).collect()
}

/// What stands behind `:=` or `=`.
fn assigned_value(text: &str) -> &str {
    let Ok(tokens) = source::tokens(text) else { return text };
    let words = Words::of(text, &tokens);
    let mut depth = 0usize;
    for (at, word) in words.list.iter().enumerate() {
        match word.as_str() {
            "[" | "(" => depth += 1,
            "]" | ")" => depth = depth.saturating_sub(1),
            ":=" | "=" if depth == 0 => return text.get(words.ends[at]..).unwrap_or_default(),
            _ => {}
        }
    }
    text
}

/// A value that is one name by itself: folded, without its quotes.
pub(super) fn single_name(text: &str) -> Option<String> {
    let tokens = source::tokens(text).ok()?;
    match Words::of(text, &tokens).list.as_slice() {
        [name] => Some(plain(name)),
        [function, dot, name] if dot == "." => Some(format!("{}.{}", plain(function), plain(name))),
        _ => None,
    }
}

fn items(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The one field of an object and its name.
fn only(value: &Json) -> Option<(&str, &Json)> {
    value.as_object()?.iter().next().map(|(name, value)| (name.as_str(), value))
}

fn text<'a>(value: &'a Json, field: &str) -> &'a str {
    value.get(field).and_then(Json::as_str).unwrap_or_default()
}

/// Fields that are 0 are left out.
fn number(value: &Json, field: &str) -> u32 {
    value.get(field).and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

fn expression<'a>(value: &'a Json, field: &str) -> Option<&'a str> {
    value.get(field)?.pointer("/PLpgSQL_expr/query")?.as_str()
}
