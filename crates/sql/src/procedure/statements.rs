//! From the SQL of a body to what it touches.

use std::collections::BTreeSet;

use super::body::{Body, Piece, PieceKind};
use super::equalities::{Item, Same, Scope};
use super::hazards::{self, hazard, HazardKind};
use super::names::Names;
use super::source;
use super::types::{plain, Words};
use super::{Analysis, Definition, Equality, Operand, Step, Touch, TouchKind};
use crate::analysis::{parsed, walk, Name, Node, Value};

/// More uses of tables in one body are refused.
const TOUCHES_MAX: usize = 20_000;

/// What begins with one of these has a tree that is looked at.
const WITH_TREE: [&str; 8] =
    ["select", "with", "values", "table", "insert", "update", "delete", "merge"];

pub(super) fn analyse(definition: &Definition, body: &Body) -> Result<Analysis, String> {
    let names = Names::of(definition, body);
    let mut analysis = Analysis::default();
    analysis.hazards.extend(hazards::of_signature(definition));
    analysis.handles_errors = body.handlers.first().map(|handler| handler.line);
    analysis.catches_lock_timeout =
        body.handlers.iter().any(|handler| hazards::catches_lock_timeout(&handler.conditions));
    analysis.steps = body.steps.iter().map(step).collect();
    for piece in &body.pieces {
        let first = analysis.touches.len();
        Look { analysis: &mut analysis, body, names: &names, piece }.piece();
        if analysis.touches.len() > TOUCHES_MAX {
            return Err("the body touches too many tables to be understood".to_owned());
        }
        let touches = first..analysis.touches.len();
        let Some(step) = analysis.steps.get_mut(piece.step) else { continue };
        step.touches.extend(touches);
        step.assigns.extend(piece.assigns.iter().cloned());
        step.uses.extend(names_in(&piece.text));
    }
    Ok(analysis)
}

fn step(shape: &super::body::StepShape) -> Step {
    let mut uses = BTreeSet::new();
    if shape.asks {
        uses.insert("found".to_owned());
    }
    Step { line: shape.line, plain: shape.plain, leaves: shape.leaves, uses, ..Step::default() }
}

fn names_in(text: &str) -> BTreeSet<String> {
    let Ok(tokens) = source::tokens(text) else { return BTreeSet::new() };
    Words::of(text, &tokens).names()
}

/// Of a query by itself, as that of a view.
pub(super) fn of_query(text: &str) -> Result<Analysis, String> {
    let definition = Definition { language: "sql".to_owned(), ..Definition::default() };
    let statement = source::SqlStatement { line: 1, text: text.to_owned() };
    let body = Body::of(&definition, &source::Tree::Sql { statements: vec![statement] })?;
    analyse(&definition, &body)
}

/// One piece of the body is looked at.
struct Look<'a> {
    analysis: &'a mut Analysis,
    body: &'a Body,
    names: &'a Names,
    piece: &'a Piece,
}

/// What is known on the way down a tree.
#[derive(Clone, Default)]
struct Around {
    /// Names that WITH gives.
    with: Vec<String>,
    /// What the queries around this one have in their FROM.
    outer: Vec<Item>,
    /// A lock of the query around this one is one on its rows as well.
    locked: bool,
    depth: usize,
}

impl Look<'_> {
    fn piece(&mut self) {
        match self.piece.kind {
            PieceKind::Commit | PieceKind::Rollback => {
                self.hazard(HazardKind::Commit, "it ends the transaction and begins another one");
            }
            PieceKind::Dynamic => {
                self.touch(TouchKind::Dynamic, Name { schema: None, name: String::new() });
                self.hazard(
                    HazardKind::Dynamic,
                    "EXECUTE runs a text that is made up while it runs",
                );
                let text = format!("SELECT {}", self.piece.text);
                self.tree(&text, false);
            }
            _ => {
                let text = self.piece.text.clone();
                self.text(&text);
            }
        }
    }

    fn hazard(&mut self, kind: HazardKind, words: &str) {
        self.analysis.hazards.push(hazard(kind, self.piece.line, words));
    }

    /// A statement of any kind.
    fn text(&mut self, text: &str) {
        let Ok(tokens) = source::tokens(text) else {
            return self.hazard(HazardKind::Unknown, "a statement that is not understood");
        };
        let words = Words::of(text, &tokens);
        let past = words.list.iter().take_while(|word| *word == "(").count();
        let first = words.list.get(past).map_or("", String::as_str);
        if first == "call" {
            let call = words.ends[past];
            let text = format!("SELECT {}", text.get(call..).unwrap_or_default());
            self.tree(&text, true);
        } else if WITH_TREE.contains(&first) {
            self.tree(text, false);
        } else if !first.is_empty() {
            self.utility(&words);
        }
    }

    fn utility(&mut self, words: &Words) {
        self.analysis.hazards.extend(hazards::of_utility(words, self.piece.line));
        let first = words.list.first().map_or("", String::as_str);
        match first {
            "lock" | "truncate" => {
                let kind = if first == "lock" { TouchKind::LockTable } else { TouchKind::Truncate };
                for name in listed(words) {
                    self.analysis.relations.insert(name.clone());
                    self.touch(kind, name);
                }
            }
            "create" | "alter" | "drop" | "comment" | "grant" | "revoke" | "refresh"
            | "reindex" | "cluster" | "analyze" | "vacuum" | "security" | "import" => {
                let name = first.to_uppercase();
                self.touch(TouchKind::Ddl, Name { schema: None, name });
            }
            _ => {}
        }
        // The query of CREATE TABLE AS, of a cursor or an EXPLAIN.
        let begins = ["as", "for", "explain"];
        let query = words.list.windows(2).position(|pair| {
            begins.contains(&pair[0].as_str()) && WITH_TREE.contains(&pair[1].as_str())
        });
        if let Some(query) = query.filter(|_| first != "comment") {
            let text = words.text.get(words.starts[query + 1]..).unwrap_or_default().to_owned();
            let end = text.rfind("WITH NO DATA").unwrap_or(text.len());
            self.tree(&text[..end], false);
        }
    }

    fn tree(&mut self, text: &str, is_call: bool) {
        match query(text) {
            Some(tree) => {
                let around = Around::default();
                if is_call {
                    self.call_statement(&tree, &around);
                } else {
                    self.statement(&tree, &around);
                }
            }
            None => self.hazard(HazardKind::Unknown, "a statement that is not understood"),
        }
    }

    fn touch(&mut self, kind: TouchKind, name: Name) -> &mut Touch {
        self.analysis.touches.push(Touch {
            kind,
            name,
            line: self.piece.line,
            order: self.piece.order,
            in_loop: self.piece.in_loop,
            in_branch: self.piece.in_branch,
            equalities: Vec::new(),
            passed: Vec::new(),
        });
        let last = self.analysis.touches.len() - 1;
        &mut self.analysis.touches[last]
    }

    /// CALL, in the form of a SELECT.
    fn call_statement(&mut self, tree: &Node, around: &Around) {
        let call = tree.nodes("target_list").next().and_then(|target| target.child("val"));
        match call.filter(|call| call.kind == "FuncCall") {
            Some(call) => self.function(call, &[], around, true),
            None => self.hazard(HazardKind::Unknown, "a CALL that is not understood"),
        }
    }

    fn statement(&mut self, node: &Node, around: &Around) {
        if around.depth > walk::DEPTH_MAX {
            return self.hazard(HazardKind::Unknown, "a statement that is too deep");
        }
        let mut around = around.clone();
        around.depth += 1;
        if let Some(with) = node.child("with_clause") {
            let recursive = with.number("recursive") != 0;
            let name = |query: &Node| query.text("ctename").to_owned();
            if recursive {
                around.with.extend(with.nodes("ctes").map(name));
            }
            for query in with.nodes("ctes") {
                if let Some(inner) = query.child("ctequery") {
                    let inside = Around { locked: false, ..around.clone() };
                    self.statement(inner, &inside);
                }
                around.with.push(name(query));
            }
        }
        match node.kind {
            "SelectStmt" => self.select(node, &around),
            "InsertStmt" => self.insert(node, &around),
            "UpdateStmt" => self.change(TouchKind::Update, node, "from_clause", &around),
            "DeleteStmt" => self.change(TouchKind::Delete, node, "using_clause", &around),
            "MergeStmt" => self.merge(node, &around),
            kind => self.hazard(HazardKind::Unknown, &format!("{kind} is not known here")),
        }
    }

    fn select(&mut self, node: &Node, around: &Around) {
        if let Some(made) = node.child("into_clause").and_then(|into| into.child("rel")) {
            if made.text("relpersistence") == "t" {
                let words = "SELECT INTO makes a temporary object that outlives the call";
                self.hazard(HazardKind::TemporaryObject, words);
            }
            self.touch(TouchKind::Ddl, Name { schema: None, name: "CREATE".to_owned() });
        }
        for side in ["larg", "rarg"] {
            if let Some(side) = node.child(side) {
                self.statement(side, around);
            }
        }
        let mut from = From::default();
        from.gather(node.list("from_clause"), &around.with);
        from.conditions.extend(node.child("where_clause"));
        let locks: Vec<&Node> = node.nodes("locking_clause").collect();
        let everything = locks.iter().any(|lock| lock.list("locked_rels").is_empty());
        let named = |alias: &str| {
            let mut relations = locks.iter().flat_map(|lock| lock.nodes("locked_rels"));
            relations.any(|relation| relation.text("relname") == alias)
        };
        let scope = Scope { names: self.names, items: &from.items, outer: &around.outer };
        let touches: Vec<(TouchKind, Name, Vec<Equality>)> = (from.items.iter().enumerate())
            .filter_map(|(place, item)| {
                let locked = around.locked || everything || named(&item.alias);
                let kind = if locked { TouchKind::Lock } else { TouchKind::Read };
                Some((kind, item.relation.clone()?, scope.equalities(&from.conditions, place)))
            })
            .collect();
        for (kind, name, equalities) in touches {
            self.relation(kind, name, equalities);
        }
        for (alias, query) in &from.queries {
            let mut inside = around.inside(&from.items);
            inside.locked = around.locked || everything || named(alias);
            self.statement(query, &inside);
        }
        self.rest(node, &["larg", "rarg", "with_clause", "into_clause"], &from.items, around);
    }

    fn relation(&mut self, kind: TouchKind, name: Name, equalities: Vec<Equality>) {
        self.analysis.relations.insert(name.clone());
        self.touch(kind, name).equalities = equalities;
    }

    fn insert(&mut self, node: &Node, around: &Around) {
        let Some(target) = node.child("relation") else { return };
        let name = walk::relation(target);
        let scope = Scope { names: self.names, items: &[], outer: &around.outer };
        // There is nothing in scope that could have a column.
        let operand = |value: &Node| scope.operand(value, false);
        let select = node.child("select_stmt");
        let rows: Vec<&Node> = select.map_or(Vec::new(), |s| s.nodes("values_lists").collect());
        let mut values: Vec<Option<Same>> = Vec::new();
        if let [row] = rows.as_slice() {
            values = row.list("items").iter().map(|value| operand(value.node()?)).collect();
        } else if let Some(select) = select.filter(|select| select.list("from_clause").is_empty()) {
            let targets = select.nodes("target_list");
            values = targets.map(|target| operand(target.child("val")?)).collect();
        }
        let columns: Vec<&str> = node.nodes("cols").map(|column| column.text("name")).collect();
        let mut equalities: Vec<Equality> = Vec::new();
        let mut passed: Vec<Option<Operand>> = Vec::new();
        if columns.is_empty() {
            passed = values.into_iter().map(|same| same?.certain()).collect();
        } else {
            for (column, same) in columns.iter().zip(values) {
                let Some(Same { operand, provided, kept }) = same else { continue };
                let column = (*column).to_owned();
                equalities.push(Equality { column, operand, provided, kept });
            }
        }
        let conflict = node.child("on_conflict_clause");
        let updates = conflict.filter(|clause| !clause.list("target_list").is_empty());
        // The row that is there already has the new one's values where they conflict, no others.
        let same = updates.map(|clause| {
            let columns = clause.child("infer").map_or(&[][..], |infer| infer.list("index_elems"));
            let columns = columns.iter().filter_map(Value::node).map(|one| one.text("name"));
            let columns: Vec<&str> = columns.collect();
            let mut same = equalities.clone();
            same.retain(|equality| columns.contains(&equality.column.as_str()));
            same
        });
        self.relation(TouchKind::Insert, name.clone(), equalities);
        if let Some(touch) = self.analysis.touches.last_mut() {
            touch.passed = passed;
        }
        if let Some(same) = same {
            self.relation(TouchKind::Update, name, same);
        }
        if let Some(select) = select {
            self.statement(select, around);
        }
        let item = item_of(target, &around.with);
        self.rest(node, &["select_stmt", "with_clause", "relation"], &[item], around);
    }

    /// UPDATE and DELETE.
    fn change(&mut self, kind: TouchKind, node: &Node, others: &str, around: &Around) {
        let Some(target) = node.child("relation") else { return };
        let mut from = From::default();
        from.items.push(Item { relation: Some(walk::relation(target)), ..item_of(target, &[]) });
        from.gather(node.list(others), &around.with);
        let condition = node.child("where_clause");
        from.conditions.extend(condition);
        let scope = Scope { names: self.names, items: &from.items, outer: &around.outer };
        let current = condition.filter(|condition| condition.kind == "CurrentOfExpr");
        let mut equalities = scope.equalities(&from.conditions, 0);
        if let Some(cursor) = current {
            equalities = self.current_of(cursor.text("cursor_name"), &walk::relation(target));
        }
        let reads: Vec<(Name, Vec<Equality>)> = (from.items.iter().enumerate().skip(1))
            .filter_map(|(place, item)| {
                Some((item.relation.clone()?, scope.equalities(&from.conditions, place)))
            })
            .collect();
        self.relation(kind, walk::relation(target), equalities);
        for (name, equalities) in reads {
            self.relation(TouchKind::Read, name, equalities);
        }
        for (_, query) in &from.queries {
            self.statement(query, &around.inside(&from.items));
        }
        self.rest(node, &["with_clause", "relation"], &from.items, around);
    }

    /// What the cursor's query requires of the rows of this table.
    fn current_of(&self, cursor: &str, table: &Name) -> Vec<Equality> {
        let query = self.body.cursors.get(cursor).and_then(Option::as_deref);
        let Some(tree) = query.and_then(self::query) else { return Vec::new() };
        let mut from = From::default();
        from.gather(tree.list("from_clause"), &[]);
        from.conditions.extend(tree.child("where_clause"));
        let scope = Scope { names: self.names, items: &from.items, outer: &[] };
        let mut places = (0..from.items.len())
            .filter(|place| from.items[*place].relation.as_ref() == Some(table));
        match (places.next(), places.next()) {
            (Some(place), None) => scope.equalities(&from.conditions, place),
            _ => Vec::new(),
        }
    }

    fn merge(&mut self, node: &Node, around: &Around) {
        let Some(target) = node.child("relation") else { return };
        let mut from = From::default();
        from.items.push(Item { relation: Some(walk::relation(target)), ..item_of(target, &[]) });
        if let Some(source) = node.child("source_relation") {
            from.one(source, true, &around.with);
        }
        from.conditions.extend(node.child("join_condition"));
        let scope = Scope { names: self.names, items: &from.items, outer: &around.outer };
        let equalities = scope.equalities(&from.conditions, 0);
        self.relation(TouchKind::Merge, walk::relation(target), equalities);
        let sources = from.items.iter().skip(1).filter_map(|item| item.relation.clone());
        for name in sources.collect::<Vec<_>>() {
            self.relation(TouchKind::Read, name, Vec::new());
        }
        for (_, query) in &from.queries {
            self.statement(query, &around.inside(&from.items));
        }
        let passed = ["with_clause", "relation"];
        self.rest(node, &passed, &from.items, around);
    }

    /// Calls and subqueries in all fields but these. What is in FROM as a query has been seen.
    fn rest(&mut self, node: &Node, passed: &[&str], items: &[Item], around: &Around) {
        for (name, value) in &node.fields {
            if !passed.contains(name) {
                self.expression(value, items, around);
            }
        }
    }

    fn expression(&mut self, value: &Value, items: &[Item], around: &Around) {
        let node = match value {
            Value::Node(node) => node,
            Value::List(list) => {
                return list.iter().for_each(|value| self.expression(value, items, around));
            }
            _ => return,
        };
        match node.kind {
            "RangeSubselect" => {}
            "SelectStmt" => self.statement(node, &around.inside(items)),
            "FuncCall" => self.function(node, items, around, false),
            _ => self.rest(node, &[], items, around),
        }
    }

    fn function(&mut self, call: &Node, items: &[Item], around: &Around, is_call: bool) {
        if let Ok(name) = walk::name(call.list("funcname")) {
            let found = hazards::of_call(&name.name, call, self.piece.line);
            self.analysis.hazards.extend(found);
            let scope = Scope { names: self.names, items, outer: &around.outer };
            let operand = |value: &Value| scope.operand(value.node()?, is_call)?.certain();
            let passed = call.list("args").iter().map(operand).collect();
            self.touch(TouchKind::Call, name.clone()).passed = passed;
            self.analysis.functions.insert(name);
        }
        self.rest(call, &[], items, around);
    }
}

impl Around {
    fn inside(&self, items: &[Item]) -> Around {
        let outer = items.iter().chain(&self.outer).cloned().collect();
        Around { outer, locked: false, depth: self.depth + 1, with: self.with.clone() }
    }
}

/// What a FROM holds.
#[derive(Default)]
struct From<'a> {
    items: Vec<Item>,
    /// Subqueries and their aliases.
    queries: Vec<(String, &'a Node)>,
    /// They hold for all that comes out of it.
    conditions: Vec<&'a Node>,
}

/// Number of JOIN_INNER in JoinType, nodes.h, plus one as in pg_query.proto.
const INNER: i64 = 1;

impl<'a> From<'a> {
    fn gather(&mut self, list: &'a [Value], with: &[String]) {
        for node in list.iter().filter_map(Value::node) {
            self.one(node, true, with);
        }
    }

    /// `inner`: no join around it may leave rows of it out of its condition.
    fn one(&mut self, node: &'a Node, inner: bool, with: &[String]) {
        match node.kind {
            "RangeVar" => self.items.push(item_of(node, with)),
            "JoinExpr" => {
                let inner = inner && node.number("jointype") == INNER;
                for side in ["larg", "rarg"] {
                    if let Some(side) = node.child(side) {
                        self.one(side, inner, with);
                    }
                }
                if inner {
                    self.conditions.extend(node.child("quals"));
                }
            }
            "RangeSubselect" => {
                let alias = alias(node).unwrap_or_default();
                self.queries.extend(node.child("subquery").map(|query| (alias.clone(), query)));
                self.items.push(Item { alias, relation: None, renamed: false });
            }
            _ => {
                let alias = alias(node).unwrap_or_default();
                self.items.push(Item { alias, relation: None, renamed: false });
            }
        }
    }
}

fn alias(node: &Node) -> Option<String> {
    node.child("alias").map(|alias| alias.text("aliasname").to_owned())
}

fn item_of(node: &Node, with: &[String]) -> Item {
    let name = walk::relation(node);
    let alias = alias(node).unwrap_or_else(|| name.name.clone());
    let given = name.schema.is_none() && with.contains(&name.name);
    let renamed = node.child("alias").is_some_and(|alias| !alias.list("colnames").is_empty());
    Item { alias, relation: Some(name).filter(|_| !given), renamed }
}

/// The tree of one statement on rows. The library looks into other statements with assertions that
/// end the process, so there must be none behind it.
pub(super) fn query(text: &str) -> Option<Node> {
    let alone = pg_query::split_with_parser(text).is_ok_and(|list| list.len() == 1);
    if alone {
        parsed(text).ok()
    } else {
        None
    }
}

/// The tables of LOCK and TRUNCATE.
fn listed(words: &Words) -> Vec<Name> {
    let mut names = Vec::new();
    let mut at = 1;
    while at < words.list.len() {
        let word = words.list[at].as_str();
        match word {
            "table" | "only" | "," | "*" => at += 1,
            "in" | "nowait" | "restart" | "continue" | "cascade" | "restrict" | ";" => break,
            _ => {
                let mut name = Name { schema: None, name: plain(word) };
                while words.is(at + 1, ".") && at + 2 < words.list.len() {
                    at += 2;
                    name = Name { schema: Some(name.name), name: plain(&words.list[at]) };
                }
                names.push(name);
                at += 1;
            }
        }
    }
    names
}
