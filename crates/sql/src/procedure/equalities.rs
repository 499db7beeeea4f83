//! What a WHERE requires: `column = argument`, one of several conditions that all hold.

use super::names::Names;
use super::{Equality, Kept, Lacks, Operand};
use crate::analysis::{walk, Name, Node, Value};

/// Something in a FROM.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub alias: String,
    /// None for a subquery, a function, a name of WITH: its columns are not known.
    pub relation: Option<Name>,
    /// Its columns have other names here.
    pub renamed: bool,
}

/// What names can mean in an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub names: &'a Names,
    pub items: &'a [Item],
    /// Of the queries around this one.
    pub outer: &'a [Item],
}

/// A value, and what must be so that it is the same for the whole call.
#[derive(Debug)]
pub(super) struct Same {
    pub operand: Operand,
    pub provided: Vec<Lacks>,
    pub kept: Vec<Kept>,
}

impl Same {
    /// The value, if nothing has to be so.
    pub fn certain(self) -> Option<Operand> {
        (self.provided.is_empty() && self.kept.is_empty()).then_some(self.operand)
    }
}

/// Number of AND in BoolExprType, primnodes.h, plus one as in pg_query.proto.
const AND: i64 = 1;

impl Scope<'_> {
    /// The conditions that hold for each row of `self.items[target]`.
    pub fn equalities(&self, conditions: &[&Node], target: usize) -> Vec<Equality> {
        let mut found = Vec::new();
        for condition in conditions {
            self.condition(condition, target, &mut found);
        }
        found
    }

    fn condition(&self, condition: &Node, target: usize, found: &mut Vec<Equality>) {
        if condition.kind == "BoolExpr" && condition.number("boolop") == AND {
            condition.nodes("args").for_each(|one| self.condition(one, target, found));
            return;
        }
        let equal = match condition.list("name") {
            [Value::Node(operator)] => operator.text("sval") == "=",
            _ => false,
        };
        let (Some(left), Some(right)) = (condition.child("lexpr"), condition.child("rexpr")) else {
            return;
        };
        if condition.kind != "AExpr" || !equal {
            return;
        }
        match (condition.number("kind"), right.list("items")) {
            (walk::AEXPR_OP, _) => self.pair(left, right, target, found),
            (walk::AEXPR_IN, [Value::Node(only)]) => self.pair(left, only, target, found),
            _ => {}
        }
    }

    fn pair(&self, left: &Node, right: &Node, target: usize, found: &mut Vec<Equality>) {
        if left.kind == "RowExpr" && right.kind == "RowExpr" {
            let (left, right) = (left.list("args"), right.list("args"));
            if left.len() == right.len() {
                let pairs = left.iter().zip(right);
                for (left, right) in pairs.filter_map(|(l, r)| Some((l.node()?, r.node()?))) {
                    self.pair(left, right, target, found);
                }
            }
            return;
        }
        for (column, value) in [(left, right), (right, left)] {
            let Some((column, mut provided)) = self.column(column, target) else { continue };
            let Some(same) = self.operand(value, false) else { continue };
            provided.extend(same.provided);
            let Same { operand, kept, .. } = same;
            found.push(Equality { column, operand, provided, kept });
            return;
        }
    }

    /// The name of a column of the target, and what must be so that it is one.
    fn column(&self, node: &Node, target: usize) -> Option<(String, Vec<Lacks>)> {
        let item = self.items.get(target).filter(|item| !item.renamed)?;
        match parts(node)?.as_slice() {
            [name] => {
                if self.names.is_variable(name) && !self.names.prefers_columns() {
                    return None;
                }
                let others = self.items.iter().enumerate().filter(|(place, _)| *place != target);
                Some(((*name).to_owned(), lacking(others.map(|(_, item)| item), name)?))
            }
            [alias, name] => (item.alias == *alias).then(|| ((*name).to_owned(), Vec::new())),
            [schema, table, name] => {
                let relation = item.relation.as_ref()?;
                let meant = relation.schema.as_deref() == Some(*schema)
                    && relation.name == *table
                    && item.alias == *table;
                meant.then(|| ((*name).to_owned(), Vec::new()))
            }
            _ => None,
        }
    }

    /// A value that is the same for the whole call. `passed`: of a CALL.
    pub fn operand(&self, node: &Node, passed: bool) -> Option<Same> {
        let argument = |name: &str, provided: Vec<Lacks>| {
            let (place, kept) = match passed {
                true => (self.names.passed(name)?, Vec::new()),
                false => self.names.argument(name)?,
            };
            Some(Same { operand: Operand::Argument(place), provided, kept })
        };
        match node.kind {
            "TypeCast" => self.operand(node.child("arg")?, passed),
            "AConst" => {
                let operand = Operand::Constant(constant(node)?);
                Some(Same { operand, provided: Vec::new(), kept: Vec::new() })
            }
            "ParamRef" => argument(&format!("${}", node.number("number")), Vec::new()),
            "ColumnRef" => match parts(node)?.as_slice() {
                [name] => {
                    let absent = match self.names.prefers_columns() {
                        true => lacking(self.items.iter().chain(self.outer), name)?,
                        false => Vec::new(),
                    };
                    argument(name, absent)
                }
                [qualifier, name] if self.names.is_function(qualifier) => {
                    let mut items = self.items.iter().chain(self.outer);
                    let hidden = items.any(|item| item.alias == *qualifier);
                    argument(name, Vec::new()).filter(|_| !hidden)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// None if one of them may have any columns.
fn lacking<'a>(items: impl Iterator<Item = &'a Item>, column: &str) -> Option<Vec<Lacks>> {
    let lacks = |item: &Item| {
        let relation = item.relation.clone().filter(|_| !item.renamed)?;
        Some(Lacks { relation, column: column.to_owned() })
    };
    items.map(lacks).collect()
}

fn parts(node: &Node) -> Option<Vec<&str>> {
    if !walk::is_column(node) {
        return None;
    }
    Some(node.nodes("fields").map(|field| field.text("sval")).collect())
}

fn constant(node: &Node) -> Option<String> {
    let value = node.child("val")?;
    match value.kind {
        "Integer" => Some(value.number("ival").to_string()),
        "Float" => Some(value.text("fval").to_owned()),
        "String" => Some(format!("'{}'", value.text("sval"))),
        "Boolean" => Some((value.number("boolval") != 0).to_string()),
        _ => None,
    }
}
