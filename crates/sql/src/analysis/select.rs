//! A SELECT that is simple enough to be answered without PostgreSQL, or why it is not.
//!
//! Whatever is not named here is refused: fields of a node are looked at one by one, so that a
//! clause that a later version of the parser knows is not taken for nothing.

use super::reads::Constants;
use super::tree::{Node, Value};
use super::walk::{constant, is_column, name, relation, DEPTH_MAX};
use super::Source;
use crate::scan::{Literal, LiteralKind};
use crate::select::{Filter, Key, Output, Selected, Sort, Target, Written};

mod conditions;
mod words;

use words::{what, REFUSED_CALLS, REFUSED_CLAUSES};

/// Numbers of enums of nodes.h and parsenodes.h, plus one as in pg_query.proto.
const JOIN_INNER: i64 = 1;
const SETOP_NONE: i64 = 1;
const LIMIT_WITH_TIES: i64 = 3;
const SORT_DESCENDING: i64 = 3;
const SORT_USING: i64 = 4;
const NULLS_FIRST: i64 = 2;
const NULLS_LAST: i64 = 3;

/// Tables, columns of the result, keys of an order: more of them are refused.
const ITEMS_MAX: usize = 256;

impl Selected {
    /// `literals` are those of the text, or none if they are not known to be.
    pub(super) fn of(statement: &Node, literals: &[Literal]) -> Result<Selected, String> {
        if statement.kind != "SelectStmt" {
            return Err("it is not a SELECT".to_owned());
        }
        let reader = Reader { constants: Constants::new(statement, literals) };
        reader.select(statement)
    }
}

struct Reader<'a> {
    constants: Constants<'a>,
}

impl Reader<'_> {
    fn select(&self, select: &Node) -> Result<Selected, String> {
        if select.number("op") != SETOP_NONE {
            return Err("it has UNION, INTERSECT or EXCEPT".to_owned());
        }
        for (clause, words) in REFUSED_CLAUSES {
            if !is_empty(select.field(clause)) {
                return Err(format!("it has {words}"));
            }
        }
        if select.number("limit_option") == LIMIT_WITH_TIES {
            return Err("it has WITH TIES".to_owned());
        }
        let clauses = ["target_list", "from_clause", "group_clause", "sort_clause"];
        if clauses.iter().any(|clause| select.list(clause).len() > ITEMS_MAX) {
            return Err(format!("it has more than {ITEMS_MAX} columns or tables"));
        }
        let mut tables = Vec::new();
        let mut conditions = Vec::new();
        for item in select.nodes("from_clause") {
            self.item(item, &mut tables, &mut conditions, 0)?;
        }
        if tables.is_empty() {
            return Err("it reads no table".to_owned());
        }
        if let Some(quals) = select.child("where_clause") {
            conditions.push(self.filter(quals, true, 0)?);
        }
        let filter = match conditions.len() {
            1 => conditions.remove(0),
            _ => Filter::And(conditions),
        };
        let targets = select.nodes("target_list").map(|target| self.target(target));
        let mut fixed = Vec::new();
        let mut key = |node: &Node, clause| self.key(node, clause, &mut fixed);
        let group: Result<_, String> =
            select.nodes("group_clause").map(|node| key(node, "GROUP BY")).collect();
        let order = select.nodes("sort_clause").map(|sort| {
            let by = sort.child("node").ok_or("it orders by nothing")?;
            let (descending, nulls_first) = direction(sort)?;
            Ok(Sort { key: key(by, "ORDER BY")?, descending, nulls_first })
        });
        let order = order.collect::<Result<_, String>>()?;
        Ok(Selected {
            tables,
            distinct: distinct(select)?,
            targets: targets.collect::<Result<_, String>>()?,
            filter,
            group: group?,
            order,
            limit: self.count(select, "limit_count", "LIMIT")?,
            offset: self.count(select, "limit_offset", "OFFSET")?,
            fixed,
        })
    }

    /// An item of FROM. What is in ON may name only tables of its join, and if PostgreSQL
    /// understands a name at all, it is that of the one column in all tables that has it.
    fn item(
        &self,
        item: &Node,
        tables: &mut Vec<(crate::Name, String)>,
        conditions: &mut Vec<Filter<Written>>,
        depth: usize,
    ) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err("its tree is too deep".to_owned());
        }
        match item.kind {
            "RangeVar" => {
                let relation = relation(item);
                let alias = item.child("alias");
                if alias.is_some_and(|alias| !alias.list("colnames").is_empty()) {
                    return Err(format!("it gives other names to columns of {relation}"));
                }
                let alias = alias.map(|alias| alias.text("aliasname").to_owned());
                let alias = alias.unwrap_or_else(|| relation.name.clone());
                if tables.len() == ITEMS_MAX {
                    return Err(format!("it reads more than {ITEMS_MAX} tables"));
                }
                tables.push((relation, alias));
                Ok(())
            }
            "JoinExpr" => {
                if item.number("jointype") != JOIN_INNER {
                    return Err("it has an outer join".to_owned());
                }
                if item.number("is_natural") != 0 || !item.list("using_clause").is_empty() {
                    return Err("it has NATURAL or USING".to_owned());
                }
                if item.child("alias").is_some() {
                    return Err("it gives a name to a join".to_owned());
                }
                for side in ["larg", "rarg"] {
                    let side = item.child(side).ok_or("it joins nothing")?;
                    self.item(side, tables, conditions, depth + 1)?;
                }
                if let Some(quals) = item.child("quals") {
                    conditions.push(self.filter(quals, true, 0)?);
                }
                Ok(())
            }
            kind => Err(format!("it has {} in FROM", what(kind))),
        }
    }

    fn target(&self, target: &Node) -> Result<Target, String> {
        let value = target.child("val").ok_or("it has no columns")?;
        if let ("ColumnRef", [fields @ .., Value::Node(last)]) = (value.kind, value.list("fields"))
        {
            if last.kind == "AStar" {
                return match fields {
                    [] => Ok(Target::All(None)),
                    [Value::Node(table)] if table.kind == "String" => {
                        Ok(Target::All(Some(table.text("sval").to_owned())))
                    }
                    _ => Err("it names a table with its schema".to_owned()),
                };
            }
        }
        let output = self.output(value, "the select list")?;
        let alias = target.text("name");
        let name = match (&output, alias) {
            (Output::Column(column), "") => column.name.clone(),
            (Output::CountRows | Output::Count(_), "") => "count".to_owned(),
            (Output::Sum(_), "") => "sum".to_owned(),
            (Output::Min(_), "") => "min".to_owned(),
            (Output::Max(_), "") => "max".to_owned(),
            (Output::Avg(_), "") => "avg".to_owned(),
            (_, alias) => alias.to_owned(),
        };
        Ok(Target::One(output, name))
    }

    /// A column or an aggregate.
    fn output(&self, node: &Node, clause: &str) -> Result<Output<Written>, String> {
        match node.kind {
            "ColumnRef" => column(node).map(Output::Column),
            "FuncCall" => aggregate(node),
            kind => Err(format!("it has {} in {clause}", what(kind))),
        }
    }

    fn key(
        &self,
        node: &Node,
        clause: &str,
        fixed: &mut Vec<(Source, usize)>,
    ) -> Result<Key, String> {
        if node.kind != "AConst" {
            return self.output(node, clause).map(Key::One);
        }
        let place = node.child("val").filter(|value| value.kind == "Integer");
        let place = place.and_then(|value| usize::try_from(value.number("ival")).ok());
        match (place.filter(|place| *place > 0), self.constants.literal(node)) {
            (Some(place), Some((source, _))) => {
                fixed.push((source, place));
                Ok(Key::Place(place - 1))
            }
            _ => Err(format!("it has a constant in {clause}")),
        }
    }

    fn count(&self, select: &Node, field: &str, clause: &str) -> Result<Option<Source>, String> {
        let Some(node) = select.child(field) else { return Ok(None) };
        // Digits behind the point are rounded away, and what is in quotes is read first.
        let whole = is_whole(node) || node.kind == "ParamRef";
        let source = self.constants.source(node).filter(|_| whole);
        source.map(Some).ok_or_else(|| format!("its {clause} is not a plain number"))
    }
}

fn column(node: &Node) -> Result<Written, String> {
    let fields: Vec<&str> = node.nodes("fields").map(|field| field.text("sval")).collect();
    let (table, name) = match fields[..] {
        _ if !is_column(node) => return Err("it uses a whole row".to_owned()),
        [name] => (None, name),
        [table, name] => (Some(table.to_owned()), name),
        _ => return Err("it names a column with its schema".to_owned()),
    };
    Ok(Written { table, name: name.to_owned() })
}

fn aggregate(call: &Node) -> Result<Output<Written>, String> {
    let function = name(call.list("funcname")).map_err(|e| e.to_string())?;
    let make: fn(Written) -> Output<Written> = match function.name.as_str() {
        _ if !matches!(function.schema.as_deref(), None | Some("pg_catalog")) => {
            return Err(format!("it calls {function}"));
        }
        "count" => Output::Count,
        "sum" => Output::Sum,
        "min" => Output::Min,
        "max" => Output::Max,
        "avg" => Output::Avg,
        _ => return Err(format!("it calls {function}")),
    };
    for (field, words) in REFUSED_CALLS {
        if !is_empty(call.field(field)) {
            return Err(format!("it calls {function} with {words}"));
        }
    }
    let star = call.number("agg_star") != 0;
    match call.list("args") {
        [] if star && function.name == "count" => Ok(Output::CountRows),
        [Value::Node(of)] if of.kind == "ColumnRef" => column(of).map(make),
        // What is not NULL in any row counts them.
        [Value::Node(of)] if function.name == "count" && (is_whole(of) || truth(of).is_some()) => {
            Ok(Output::CountRows)
        }
        _ => Err(format!("it calls {function} of something that is not a column")),
    }
}

fn is_whole(node: &Node) -> bool {
    constant(node).is_some_and(|(_, kind)| matches!(kind, LiteralKind::Int4 | LiteralKind::Int8))
}

/// What TRUE or FALSE says.
fn truth(node: &Node) -> Option<bool> {
    let value = node.child("val").filter(|value| node.kind == "AConst" && value.kind == "Boolean");
    value.map(|value| value.number("boolval") != 0)
}

/// Whether it descends, and whether NULLs come first.
fn direction(sort: &Node) -> Result<(bool, bool), String> {
    let direction = sort.number("sortby_dir");
    if direction == SORT_USING || !sort.list("use_op").is_empty() {
        return Err("it orders with USING".to_owned());
    }
    let descending = direction == SORT_DESCENDING;
    let nulls_first = match sort.number("sortby_nulls") {
        NULLS_FIRST => true,
        NULLS_LAST => false,
        _ => descending,
    };
    Ok((descending, nulls_first))
}

/// A plain DISTINCT is a list of one thing that is not there.
fn distinct(select: &Node) -> Result<bool, String> {
    match select.list("distinct_clause") {
        [] => Ok(false),
        [Value::Nothing] => Ok(true),
        // An empty envelope.
        [Value::Node(only)] if only.fields.is_empty() => Ok(true),
        _ => Err("it has DISTINCT ON".to_owned()),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Nothing | Value::Number(0) => true,
        Value::List(items) => items.is_empty(),
        Value::Text(text) => text.is_empty(),
        Value::Number(_) | Value::Node(_) => false,
    }
}
