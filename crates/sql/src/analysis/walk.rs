//! From the tree to what it names.
//!
//! Every node of a tree is visited, whatever field it is in. While going down, the walk remembers
//! whether it is still in a place where a constant of the right form may become a parameter. Those
//! places are listed ([`transparent`]), all others are not: PostgreSQL compares expressions of the
//! select list, GROUP BY, DISTINCT, ORDER BY and of an index with one another, and there `a = $1`
//! and `a = $2` differ where `a = 1` and `a = 1` did not.

use super::tree::{Node, Value};
use super::{Analysis, Name, Unparsed, LOCKS_ROWS};
use crate::scan::LiteralKind;

pub struct Walk<'a> {
    analysis: &'a mut Analysis,
    /// Names that WITH gives, of the innermost scope last.
    with: Vec<String>,
    /// Constants that may become parameters, because of what they are compared with.
    pub compared: Vec<Constant>,
    /// The same, because of where they are assigned.
    pub assigned: Vec<Constant>,
}

/// Where a constant is in the text, and its type.
pub type Constant = (u32, LiteralKind);

/// Numbers of A_Expr_Kind, parsenodes.h, plus one as in pg_query.proto.
pub const AEXPR_OP: i64 = 1;
pub const AEXPR_IN: i64 = 7;
pub const AEXPR_BETWEEN: i64 = 11;
pub const AEXPR_NOT_BETWEEN: i64 = 12;
const AEXPR_BETWEEN_SYM: i64 = 13;
const AEXPR_NOT_BETWEEN_SYM: i64 = 14;

/// Numbers of SubLinkType, primnodes.h, plus one.
const ALL_SUBLINK: i64 = 2;
const ANY_SUBLINK: i64 = 3;

/// The depth of a tree: the parser's library gives up at 100 messages, each two of ours at most.
pub const DEPTH_MAX: usize = 400;

impl<'a> Walk<'a> {
    pub fn new(analysis: &'a mut Analysis) -> Walk<'a> {
        Walk { analysis, with: Vec::new(), compared: Vec::new(), assigned: Vec::new() }
    }

    pub fn statement(&mut self, statement: &Node) -> Result<(), Unparsed> {
        if statement.kind != "SelectStmt" {
            self.analysis.written = statement.child("relation").map(relation);
        }
        self.node(statement, true, 0)
    }

    fn value(&mut self, value: &Value, provable: bool, depth: usize) -> Result<(), Unparsed> {
        match value {
            Value::Node(node) => self.node(node, provable, depth),
            Value::List(items) => {
                items.iter().try_for_each(|item| self.value(item, provable, depth))
            }
            Value::Nothing | Value::Number(_) | Value::Text(_) => Ok(()),
        }
    }

    fn node(&mut self, node: &Node, provable: bool, depth: usize) -> Result<(), Unparsed> {
        if depth > DEPTH_MAX {
            return Err(Unparsed("the tree is too deep".to_owned()));
        }
        self.note(node)?;
        if provable {
            self.prove(node);
        }
        let scope = self.with.len();
        if let Some(with) = node.child("with_clause") {
            self.with_clause(with, provable, depth)?;
        }
        let transparent = transparent(node.kind);
        for (name, value) in &node.fields {
            let passed = match (node.kind, *name) {
                (_, "with_clause") => true,
                // What INTO makes and what a lock names is no relation that is read.
                ("SelectStmt", "into_clause" | "locking_clause") => true,
                ("InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt", "relation") => true,
                _ => false,
            };
            if !passed {
                self.value(value, provable && transparent.contains(name), depth + 1)?;
            }
        }
        self.with.truncate(scope);
        Ok(())
    }

    /// A name is known to the statement and to the WITH queries after its own; with RECURSIVE to
    /// all of them.
    fn with_clause(&mut self, with: &Node, provable: bool, depth: usize) -> Result<(), Unparsed> {
        let recursive = with.number("recursive") != 0;
        if recursive {
            self.with.extend(with.nodes("ctes").map(|query| query.text("ctename").to_owned()));
        }
        for query in with.nodes("ctes") {
            if let Some(inner) = query.child("ctequery") {
                if inner.kind != "SelectStmt" {
                    self.analysis.obstacles.push("WITH changes data");
                    self.analysis.relations.extend(inner.child("relation").map(relation));
                }
            }
            self.node(query, provable, depth + 1)?;
            if !recursive {
                self.with.push(query.text("ctename").to_owned());
            }
        }
        Ok(())
    }

    /// Writes down what this node by itself tells.
    fn note(&mut self, node: &Node) -> Result<(), Unparsed> {
        match node.kind {
            "SelectStmt" => self.select(node),
            "RangeVar" => {
                let relation = relation(node);
                if relation.schema.is_some() || !self.with.contains(&relation.name) {
                    self.analysis.relations.push(relation);
                }
            }
            "FuncCall" => self.analysis.functions.push(name(node.list("funcname"))?),
            "RangeTableSample" => self.analysis.functions.push(name(node.list("method"))?),
            "TypeName" => self.analysis.types.push(name(node.list("names"))?),
            "AExpr" => self.expression(node)?,
            "SubLink" => match node.list("oper_name") {
                [] if [ANY_SUBLINK, ALL_SUBLINK].contains(&node.number("sub_link_type")) => {
                    self.operator("=");
                }
                [] => {}
                operator => self.analysis.operators.push(name(operator)?),
            },
            "SortBy" if !node.list("use_op").is_empty() => {
                self.analysis.operators.push(name(node.list("use_op"))?);
            }
            "CaseExpr" if node.child("arg").is_some() => self.operator("="),
            "JoinExpr"
                if node.number("is_natural") != 0 || !node.list("using_clause").is_empty() =>
            {
                self.operator("=");
            }
            "CteCycleClause" => {
                self.operator("=");
                self.operator("<>");
            }
            "ColumnRef" if node.list("fields").len() > 1 => {
                let last = node.nodes("fields").last().filter(|last| last.kind == "String");
                self.analysis.columns.extend(last.map(|last| last.text("sval").to_owned()));
            }
            "AIndirection" => {
                let fields = node.nodes("indirection").filter(|field| field.kind == "String");
                self.analysis.columns.extend(fields.map(|field| field.text("sval").to_owned()));
            }
            "ParamRef" => {
                let number = u32::try_from(node.number("number")).unwrap_or(u32::MAX);
                self.analysis.parameters = self.analysis.parameters.max(number);
            }
            "XmlExpr" | "XmlSerialize" | "RangeTableFunc" | "RangeTableFuncCol" => {
                self.analysis.obstacles.push("an XML expression");
            }
            kind if kind.starts_with("Json") => {
                self.analysis.obstacles.push("an SQL/JSON expression");
            }
            kind if NOTHING_TO_NOTE.contains(&kind) => {}
            kind => return Err(Unparsed(format!("{kind} is not known here"))),
        }
        Ok(())
    }

    fn select(&mut self, select: &Node) {
        if select.child("into_clause").is_some() {
            self.analysis.obstacles.push("INTO makes a table");
        }
        if !select.list("locking_clause").is_empty() {
            self.analysis.obstacles.push(LOCKS_ROWS);
        }
    }

    fn operator(&mut self, name: &str) {
        self.analysis.operators.push(Name { schema: None, name: name.to_owned() });
    }

    fn expression(&mut self, node: &Node) -> Result<(), Unparsed> {
        match node.number("kind") {
            AEXPR_BETWEEN => ["<=", ">="].map(|name| self.operator(name)),
            AEXPR_NOT_BETWEEN => ["<", ">"].map(|name| self.operator(name)),
            AEXPR_BETWEEN_SYM => ["<=", ">="].map(|name| self.operator(name)),
            AEXPR_NOT_BETWEEN_SYM => ["<", ">"].map(|name| self.operator(name)),
            _ => {
                self.analysis.operators.push(name(node.list("name"))?);
                return Ok(());
            }
        };
        Ok(())
    }

    /// Writes down which constants this node proves to be parameters.
    fn prove(&mut self, node: &Node) {
        match node.kind {
            "AExpr" => self.prove_expression(node),
            "InsertStmt" => self.prove_values(node),
            // Only those of UPDATE and ON CONFLICT are reached with a proof.
            "ResTarget" if node.list("indirection").is_empty() => {
                self.assigned.extend(node.child("val").and_then(constant));
            }
            _ => {}
        }
    }

    fn prove_expression(&mut self, node: &Node) {
        let (Some(left), right) = (node.child("lexpr"), node.field("rexpr")) else { return };
        match (node.number("kind"), right) {
            (AEXPR_OP, Value::Node(right)) => {
                let [Value::Node(operator)] = node.list("name") else { return };
                let operator = operator.text("sval");
                let constant = match (is_column(left), is_column(right)) {
                    (true, false) => constant(right),
                    (false, true) => constant(left),
                    _ => None,
                };
                let Some(constant) = constant else { return };
                // A number has its type by itself, so arithmetic finds the same operator. What a
                // text in quotes is would be guessed from the operator.
                let proven = match operator {
                    "=" | "<>" | "<" | ">" | "<=" | ">=" => true,
                    "+" | "-" | "*" | "/" | "%" => constant.1 != LiteralKind::Text,
                    _ => false,
                };
                if proven {
                    self.compared.push(constant);
                }
            }
            (AEXPR_IN | AEXPR_BETWEEN | AEXPR_NOT_BETWEEN, Value::Node(list)) => {
                let items = list.list("items");
                let all = items.iter().all(|item| is_kind(item, "AConst"));
                if all && is_column(left) {
                    let constants = items.iter().filter_map(Value::node).filter_map(constant);
                    self.compared.extend(constants);
                }
            }
            _ => {}
        }
    }

    /// The rows of `INSERT INTO t VALUES (1, 'a'), (2, 'b')`. PostgreSQL coerces each value to its
    /// column's type, unless something makes a query of the VALUES (`isGeneralSelect` in
    /// `transformInsertStmt`, analyze.c).
    fn prove_values(&mut self, insert: &Node) {
        let Some(values) = insert.child("select_stmt") else { return };
        let general =
            ["sort_clause", "locking_clause"].iter().any(|clause| !values.list(clause).is_empty())
                || ["limit_offset", "limit_count", "with_clause"]
                    .iter()
                    .any(|clause| values.child(clause).is_some());
        let parts = insert.nodes("cols").any(|column| !column.list("indirection").is_empty());
        if general || parts || values.kind != "SelectStmt" {
            return;
        }
        for row in values.nodes("values_lists") {
            self.assigned.extend(row.nodes("items").filter_map(constant));
        }
    }
}

/// The fields behind which a constant is in no place where expressions are compared with one
/// another.
fn transparent(kind: &str) -> &'static [&'static str] {
    match kind {
        "SelectStmt" => &["where_clause", "from_clause", "larg", "rarg"],
        "InsertStmt" => &["select_stmt", "on_conflict_clause"],
        "UpdateStmt" => &["target_list", "where_clause", "from_clause"],
        "DeleteStmt" => &["where_clause", "using_clause"],
        // Not `infer`: it is compared with the expressions of indexes.
        "OnConflictClause" => &["target_list", "where_clause"],
        "CommonTableExpr" => &["ctequery"],
        "JoinExpr" => &["larg", "rarg", "quals"],
        "RangeSubselect" => &["subquery"],
        "ResTarget" => &["val"],
        "AExpr" => &["lexpr", "rexpr"],
        "List" => &["items"],
        "BoolExpr" | "CoalesceExpr" | "FuncCall" => &["args"],
        "NullTest" | "BooleanTest" | "TypeCast" => &["arg"],
        "SubLink" => &["testexpr", "subselect"],
        "CaseExpr" => &["arg", "args", "defresult"],
        "CaseWhen" => &["expr", "result"],
        _ => &[],
    }
}

/// Nodes that by themselves name nothing that could be called or read. Their fields are visited
/// like those of all others.
const NOTHING_TO_NOTE: [&str; 48] = [
    "AArrayExpr",
    "AConst",
    "AIndices",
    "AStar",
    "Alias",
    "BitString",
    "BoolExpr",
    "Boolean",
    "BooleanTest",
    "CaseExpr",
    "CaseWhen",
    "CoalesceExpr",
    "CollateClause",
    "ColumnDef",
    "ColumnRef",
    "CommonTableExpr",
    "CteSearchClause",
    "CurrentOfExpr",
    "DeleteStmt",
    "Float",
    "GroupingFunc",
    "GroupingSet",
    "IndexElem",
    "InferClause",
    "InsertStmt",
    "Integer",
    "JoinExpr",
    "List",
    "MergeStmt",
    "MergeWhenClause",
    "MinMaxExpr",
    "MultiAssignRef",
    "NamedArgExpr",
    "NullTest",
    "OnConflictClause",
    "RangeFunction",
    "RangeSubselect",
    "ResTarget",
    "ReturningClause",
    "ReturningOption",
    "RowExpr",
    "SetToDefault",
    "SortBy",
    "SqlValueFunction",
    "String",
    "TypeCast",
    "UpdateStmt",
    "WindowDef",
];

pub fn relation(node: &Node) -> Name {
    let schema = Some(node.text("schemaname")).filter(|schema| !schema.is_empty());
    Name { schema: schema.map(str::to_owned), name: node.text("relname").to_owned() }
}

/// Of parts; a database's name in front says nothing.
pub fn name(parts: &[Value]) -> Result<Name, Unparsed> {
    let part = |value: &Value| {
        value.node().filter(|part| part.kind == "String").map(|part| part.text("sval").to_owned())
    };
    let parts: Option<Vec<String>> = parts.iter().map(part).collect();
    let mut parts = parts.unwrap_or_default();
    let name = parts.pop().ok_or_else(|| Unparsed("a name that is none".to_owned()))?;
    Ok(Name { schema: parts.pop(), name })
}

fn is_kind(value: &Value, kind: &str) -> bool {
    value.node().is_some_and(|node| node.kind == kind)
}

pub fn is_column(node: &Node) -> bool {
    node.kind == "ColumnRef" && node.nodes("fields").all(|field| field.kind == "String")
}

/// Where a constant is, and what type it has by itself (`make_const` in parse_node.c).
pub fn constant(node: &Node) -> Option<Constant> {
    if node.kind != "AConst" {
        return None;
    }
    let value = node.child("val")?;
    let kind = match value.kind {
        "Integer" => LiteralKind::Int4,
        "String" => LiteralKind::Text,
        "Float" => match value.text("fval").parse::<i64>() {
            Ok(number) if i32::try_from(number).is_ok() => LiteralKind::Int4,
            Ok(_) => LiteralKind::Int8,
            Err(_) => LiteralKind::Numeric,
        },
        _ => return None,
    };
    Some((u32::try_from(node.number("location")).ok()?, kind))
}
