//! The query blocks of a tree: what is in their FROM, and which conditions hold for it.

use super::constants::{type_name, Constants};
use super::{Cast, CastTo, Column, Condition, Reads, TableRead};
use crate::analysis::tree::{Node, Value};
use crate::analysis::walk::{name, relation, DEPTH_MAX};
use crate::analysis::Unparsed;
use crate::scan::Literal;

/// Numbers of JoinType, nodes.h, plus one.
const JOIN_INNER: i64 = 1;
const JOIN_LEFT: i64 = 2;
const JOIN_RIGHT: i64 = 4;

/// Columns of every table that change though nobody has changed the row.
const SYSTEM_COLUMNS: [&str; 5] = ["ctid", "xmin", "xmax", "cmin", "cmax"];

/// SQLValueFunctionOp, primnodes.h, each with what it tells.
const VALUE_FUNCTIONS: [(&str, &str); 15] = [
    ("CURRENT_DATE", "the time"),
    ("CURRENT_TIME", "the time"),
    ("CURRENT_TIME", "the time"),
    ("CURRENT_TIMESTAMP", "the time"),
    ("CURRENT_TIMESTAMP", "the time"),
    ("LOCALTIME", "the time"),
    ("LOCALTIME", "the time"),
    ("LOCALTIMESTAMP", "the time"),
    ("LOCALTIMESTAMP", "the time"),
    ("CURRENT_ROLE", "who asks"),
    ("CURRENT_USER", "who asks"),
    ("USER", "who asks"),
    ("SESSION_USER", "who asks"),
    ("CURRENT_CATALOG", "where it runs"),
    ("CURRENT_SCHEMA", "the search_path"),
];

/// Makes [`Reads`] of a tree.
pub struct Blocks<'a> {
    pub(super) constants: Constants<'a>,
    reads: Reads,
    /// Names that WITH gives, of the innermost scope last.
    with: Vec<String>,
    /// Places where `*` stands for columns, and those where it only makes columns of the result.
    stars: [usize; 2],
    /// Query blocks, and things in FROM that are no relations.
    blocks: usize,
    others: usize,
}

/// A relation in the FROM of a block, as far as the names of columns are concerned.
pub struct Entry {
    /// Its name in the block, and its schema if it has no alias.
    schema: Option<String>,
    alias: String,
    pub table: usize,
    /// Its columns have their own names, and can be named from where we are.
    visible: bool,
    /// Columns that are one with those of another side of a join, by USING: without a qualifier
    /// the other side's are meant.
    merged: Vec<String>,
    /// The other way round: with the tables that may have such a column on the other side.
    partners: Vec<(String, Vec<usize>)>,
    /// It may be so of any of its columns (NATURAL).
    natural: bool,
}

impl<'a> Blocks<'a> {
    /// `literals` are those of the text, or none if they are not known to be.
    pub fn read(statement: &Node, literals: &'a [Literal]) -> Result<Reads, Unparsed> {
        let mut blocks = Blocks {
            constants: Constants::new(statement, literals),
            reads: Reads::default(),
            with: Vec::new(),
            stars: [0; 2],
            blocks: 0,
            others: 0,
        };
        blocks.node(statement, 0)?;
        let [all, of_results] = blocks.stars;
        blocks.reads.whole |= all > of_results;
        blocks.reads.plain = blocks.blocks == 1 && blocks.others == 0 && !blocks.reads.whole;
        blocks.reads.obstacles.sort();
        blocks.reads.obstacles.dedup();
        Ok(blocks.reads)
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Unparsed> {
        match value {
            Value::Node(node) => self.node(node, depth),
            Value::List(items) => items.iter().try_for_each(|item| self.value(item, depth)),
            Value::Nothing | Value::Number(_) | Value::Text(_) => Ok(()),
        }
    }

    fn node(&mut self, node: &Node, depth: usize) -> Result<(), Unparsed> {
        if depth > DEPTH_MAX {
            return Err(Unparsed("the tree is too deep".to_owned()));
        }
        self.note(node)?;
        let scope = self.with.len();
        if let Some(with) = node.child("with_clause") {
            self.with_clause(with, depth)?;
        }
        if node.kind == "SelectStmt" {
            self.block(node, depth)?;
        }
        for (name, value) in &node.fields {
            match (node.kind, *name) {
                (_, "with_clause") | ("SelectStmt", "from_clause") => {}
                _ => self.value(value, depth + 1)?,
            }
        }
        self.with.truncate(scope);
        Ok(())
    }

    /// See `Walk::with_clause`.
    fn with_clause(&mut self, with: &Node, depth: usize) -> Result<(), Unparsed> {
        let recursive = with.number("recursive") != 0;
        if recursive {
            self.with.extend(with.nodes("ctes").map(|query| query.text("ctename").to_owned()));
        }
        for query in with.nodes("ctes") {
            self.node(query, depth + 1)?;
            if !recursive {
                self.with.push(query.text("ctename").to_owned());
            }
        }
        Ok(())
    }

    fn note(&mut self, node: &Node) -> Result<(), Unparsed> {
        match node.kind {
            "SqlValueFunction" => {
                let place = usize::try_from(node.number("op") - 1).unwrap_or(usize::MAX);
                let (name, what) = VALUE_FUNCTIONS.get(place).unwrap_or(&("it", "the moment"));
                self.reads.obstacles.push(format!("{name} tells {what}"));
            }
            "RangeTableSample" => {
                self.reads.obstacles.push("TABLESAMPLE takes rows by chance".to_owned());
            }
            "SelectStmt" => self.blocks += 1,
            "Alias" => self.reads.whole |= !node.list("colnames").is_empty(),
            "CommonTableExpr" => self.reads.whole |= !node.list("aliascolnames").is_empty(),
            "ResTarget" => {
                let star = node.child("val").is_some_and(|value| {
                    value.kind == "ColumnRef" && value.nodes("fields").any(|f| f.kind == "AStar")
                });
                self.stars[1] += usize::from(star);
            }
            "ColumnRef" => match node.nodes("fields").last() {
                Some(last) if last.kind == "AStar" => self.stars[0] += 1,
                Some(last) => self.column_name(last.text("sval")),
                None => {}
            },
            "AIndirection" => {
                for field in node.nodes("indirection") {
                    match field.kind {
                        "String" => self.column_name(field.text("sval")),
                        "AStar" => self.reads.whole = true,
                        _ => {}
                    }
                }
            }
            "TypeCast" => {
                if let Some((to, array)) = type_name(node)? {
                    let what = node.child("arg").map_or(Ok(Cast::Other), |arg| self.cast(arg))?;
                    self.reads.casts.push(CastTo { what, to, array, call: false });
                }
            }
            "FuncCall" => {
                if let [Value::Node(arg)] = node.list("args") {
                    let to = name(node.list("funcname"))?;
                    let what = self.cast(arg)?;
                    self.reads.casts.push(CastTo { what, to, array: false, call: true });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn column_name(&mut self, name: &str) {
        if SYSTEM_COLUMNS.contains(&name) {
            let reason = format!("{name} changes without a change of its row");
            self.reads.obstacles.push(reason);
        }
        self.reads.names.insert(name.to_owned());
    }

    fn cast(&self, arg: &Node) -> Result<Cast, Unparsed> {
        Ok(match arg.kind {
            "AConst" => Cast::Constant(self.constants.literal(arg).map(|(source, _)| source)),
            "ParamRef" => Cast::Constant(self.constants.source(arg)),
            "ColumnRef" => match arg.nodes("fields").last() {
                Some(last) if last.kind == "String" => Cast::Column(last.text("sval").to_owned()),
                _ => Cast::Other,
            },
            "FuncCall" => Cast::Call(name(arg.list("funcname"))?),
            "TypeCast" => match type_name(arg)? {
                Some((to, false)) => Cast::Type(to),
                _ => Cast::Other,
            },
            _ => Cast::Other,
        })
    }

    /// The FROM of one block, and what restricts it.
    fn block(&mut self, select: &Node, depth: usize) -> Result<(), Unparsed> {
        let mut entries = Vec::new();
        let mut always = Vec::new();
        for item in select.nodes("from_clause") {
            always.extend(self.item(item, &mut entries, depth + 1)?);
        }
        self.hold(&always, &entries);
        if let Some(quals) = select.child("where_clause") {
            let conditions = self.conditions(quals, &entries);
            let conditions = self.number(conditions);
            self.hold(&conditions, &entries);
        }
        Ok(())
    }

    /// An item of FROM. Entries that it adds are those behind all before. Gives the conditions that
    /// hold in whatever comes out of it: who is joined with it can count on them.
    fn item(
        &mut self,
        item: &Node,
        entries: &mut Vec<Entry>,
        depth: usize,
    ) -> Result<Vec<usize>, Unparsed> {
        if depth > DEPTH_MAX {
            return Err(Unparsed("the tree is too deep".to_owned()));
        }
        match item.kind {
            "RangeVar" => {
                self.relation(item, entries);
                Ok(Vec::new())
            }
            "JoinExpr" => self.join(item, entries, depth),
            "RangeTableSample" => {
                self.note(item)?;
                for (field, value) in &item.fields {
                    if *field != "relation" {
                        self.value(value, depth + 1)?;
                    }
                }
                match item.child("relation") {
                    Some(relation) => self.item(relation, entries, depth + 1),
                    None => Ok(Vec::new()),
                }
            }
            _ => {
                self.others += 1;
                self.node(item, depth)?;
                Ok(Vec::new())
            }
        }
    }

    fn relation(&mut self, node: &Node, entries: &mut Vec<Entry>) {
        let relation = relation(node);
        let renamed = node.child("alias").is_some_and(|alias| !alias.list("colnames").is_empty());
        self.reads.whole |= renamed;
        if relation.schema.is_none() && self.with.contains(&relation.name) {
            self.others += 1;
            return;
        }
        let table = self.reads.tables.len();
        let (schema, alias) = match node.child("alias") {
            Some(alias) => (None, alias.text("aliasname").to_owned()),
            None => (relation.schema.clone(), relation.name.clone()),
        };
        entries.push(Entry {
            schema,
            alias,
            table,
            visible: !renamed,
            merged: Vec::new(),
            partners: Vec::new(),
            natural: false,
        });
        self.reads.tables.push(TableRead { relation, conditions: Vec::new() });
    }

    /// Gives what holds in all that comes out of it. A condition of one side may be false where that
    /// side has been left out.
    fn join(
        &mut self,
        join: &Node,
        entries: &mut Vec<Entry>,
        depth: usize,
    ) -> Result<Vec<usize>, Unparsed> {
        let start = entries.len();
        let mut of_left = match join.child("larg") {
            Some(left) => self.item(left, entries, depth + 1)?,
            None => Vec::new(),
        };
        let middle = entries.len();
        let of_right = match join.child("rarg") {
            Some(right) => self.item(right, entries, depth + 1)?,
            None => Vec::new(),
        };
        let (left, right) = entries[start..].split_at(middle - start);
        let mut own = Vec::new();
        if let Some(quals) = join.child("quals") {
            self.node(quals, depth + 1)?;
            own = self.conditions(quals, &entries[start..]);
        }
        for column in join.nodes("using_clause").map(|column| column.text("sval")) {
            self.column_name(column);
            own.push(Condition::Same(unqualified(column, left), unqualified(column, right)));
        }
        let own = self.number(own);
        self.reads.whole |= join.number("is_natural") != 0;
        let always = match join.number("jointype") {
            JOIN_INNER => {
                for conditions in [&own, &of_right] {
                    self.hold(conditions, left);
                }
                for conditions in [&own, &of_left] {
                    self.hold(conditions, right);
                }
                of_left.extend(of_right);
                of_left.extend(own);
                of_left
            }
            JOIN_LEFT => {
                self.hold(&own, right);
                self.hold(&of_left, right);
                of_left
            }
            JOIN_RIGHT => {
                self.hold(&own, left);
                self.hold(&of_right, left);
                of_right
            }
            _ => Vec::new(),
        };
        merge(join, &mut entries[start..], middle - start);
        // `(a JOIN b ON ...) AS j (x, y)`: nothing outside can name `a`, and `x` is anybody's.
        if join.child("alias").is_some() {
            self.reads.whole = true;
            entries[start..].iter_mut().for_each(|entry| entry.visible = false);
        }
        Ok(always)
    }

    fn number(&mut self, conditions: Vec<Condition>) -> Vec<usize> {
        let all = &mut self.reads.conditions;
        let first = all.len();
        all.extend(conditions);
        (first..all.len()).collect()
    }

    fn hold(&mut self, conditions: &[usize], entries: &[Entry]) {
        for entry in entries {
            let held = &mut self.reads.tables[entry.table].conditions;
            for condition in conditions {
                if !held.contains(condition) {
                    held.push(*condition);
                }
            }
        }
    }
}

impl Entry {
    /// Whether a column with this qualifier is one of it.
    pub(super) fn is_called(&self, schema: Option<&str>, alias: &str) -> bool {
        self.visible
            && self.alias == alias
            && (schema.is_none() || self.schema.as_deref() == schema)
    }

    fn may_have(&self, column: &str) -> bool {
        self.visible && !self.natural && !self.merged.iter().any(|merged| merged == column)
    }
}

/// A column that is named without a qualifier where these can be seen.
pub(super) fn unqualified(name: &str, entries: &[Entry]) -> Column {
    let mut column = Column { of: Vec::new(), merged: Vec::new(), name: name.to_owned() };
    for entry in entries.iter().filter(|entry| entry.may_have(name)) {
        column.of.push(entry.table);
        for (_, partners) in entry.partners.iter().filter(|(partner, _)| partner == name) {
            if !column.merged.contains(partners) {
                column.merged.push(partners.clone());
            }
        }
    }
    column
}

/// What USING and NATURAL make of names. The merged column is that of the side that is always
/// there; of a FULL join it is neither's.
fn merge(join: &Node, entries: &mut [Entry], middle: usize) {
    let (left, right) = entries.split_at_mut(middle);
    let kind = join.number("jointype");
    for name in join.nodes("using_clause").map(|column| column.text("sval")) {
        let candidates = |side: &[Entry]| {
            side.iter().filter(|entry| entry.may_have(name)).map(|entry| entry.table).collect()
        };
        let (kept, gone) = match kind {
            JOIN_RIGHT => (&mut *right, &mut *left),
            _ => (&mut *left, &mut *right),
        };
        let partners: Vec<usize> = candidates(gone);
        for entry in gone.iter_mut() {
            entry.merged.push(name.to_owned());
        }
        for entry in kept.iter_mut() {
            match kind {
                JOIN_INNER | JOIN_LEFT | JOIN_RIGHT => {
                    entry.partners.push((name.to_owned(), partners.clone()));
                }
                _ => entry.merged.push(name.to_owned()),
            }
        }
    }
    if join.number("is_natural") != 0 {
        entries.iter_mut().for_each(|entry| entry.natural = true);
    }
}
