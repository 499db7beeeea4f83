//! From an expression to the conditions that it is, or to none.

use super::blocks::{unqualified, Blocks, Entry};
use super::{Bound, Column, Condition, Source, Test};
use crate::analysis::tree::{Node, Value};
use crate::analysis::walk::{is_column, AEXPR_BETWEEN, AEXPR_IN, AEXPR_OP};

/// Numbers of BoolExprType, primnodes.h, plus one.
pub const AND: i64 = 1;
pub const OR: i64 = 2;

/// Of A_Expr_Kind, parsenodes.h, plus one.
pub const AEXPR_OP_ANY: i64 = 2;

/// The operands of an AND or OR.
pub fn boolean_parts(node: &Node, kind: i64) -> Option<impl Iterator<Item = &Node>> {
    (node.kind == "BoolExpr" && node.number("boolop") == kind).then(|| node.nodes("args"))
}

impl Blocks<'_> {
    /// `quals` in its conjuncts, each as what it says of the columns of `entries`.
    pub(super) fn conditions(&self, quals: &Node, entries: &[Entry]) -> Vec<Condition> {
        let mut found = Vec::new();
        let mut open = vec![quals];
        while let Some(conjunct) = open.pop() {
            match boolean_parts(conjunct, AND) {
                Some(parts) => open.extend(parts),
                None => self.condition(conjunct, entries, &mut found),
            }
        }
        found
    }

    fn condition(&self, node: &Node, entries: &[Entry], found: &mut Vec<Condition>) {
        if let Some(branches) = boolean_parts(node, OR) {
            return found.extend(self.any_branch(branches, entries));
        }
        if node.kind != "AExpr" {
            return;
        }
        let (Some(left), Some(right)) = (node.child("lexpr"), node.child("rexpr")) else { return };
        match (node.number("kind"), operator(node)) {
            (AEXPR_OP, Some("=")) if left.kind == "RowExpr" && right.kind == "RowExpr" => {
                let (lefts, rights) = (left.list("args"), right.list("args"));
                if lefts.len() == rights.len() {
                    let pairs = lefts.iter().zip(rights);
                    let pairs = pairs.filter_map(|(l, r)| Some((l.node()?, r.node()?)));
                    found.extend(pairs.filter_map(|(l, r)| self.compared("=", l, r, entries)));
                }
            }
            (AEXPR_OP, Some(operator)) => {
                found.extend(self.compared(operator, left, right, entries));
            }
            (AEXPR_OP_ANY, Some("=")) => {
                let Some(column) = column(left, entries) else { return };
                let test = match right.kind {
                    "AArrayExpr" => self.all_of(right.list("elements")).map(Test::Equal),
                    _ => self.constants.source(right).map(Test::AnyOf),
                };
                found.extend(test.map(|test| Condition::Is(column, test)));
            }
            (AEXPR_IN, Some("=")) if left.kind == "RowExpr" => {
                self.rows_in(left, right, entries, found);
            }
            (AEXPR_IN, Some("=")) => {
                let Some(column) = column(left, entries) else { return };
                let values = self.all_of(right.list("items")).map(Test::Equal);
                found.extend(values.map(|test| Condition::Is(column, test)));
            }
            (AEXPR_BETWEEN, _) => {
                let (Some(column), [low, high]) = (column(left, entries), right.list("items"))
                else {
                    return;
                };
                let bound = |value: &Value| Some((self.constants.source(value.node()?)?, true));
                found.extend(range(column, bound(low), bound(high)));
            }
            _ => {}
        }
    }

    fn compared(
        &self,
        operator: &str,
        left: &Node,
        right: &Node,
        entries: &[Entry],
    ) -> Option<Condition> {
        let (column, constant, turned) = match (column(left, entries), column(right, entries)) {
            (Some(left), Some(right)) => {
                return (operator == "=").then_some(Condition::Same(left, right));
            }
            (Some(column), None) => (column, right, false),
            (None, Some(column)) => (column, left, true),
            (None, None) => return None,
        };
        let value = self.constants.source(constant)?;
        let (below, included) = match operator {
            "=" => return Some(Condition::Is(column, Test::Equal(vec![value]))),
            "<" => (!turned, false),
            "<=" => (!turned, true),
            ">" => (turned, false),
            ">=" => (turned, true),
            _ => return None,
        };
        let bound = Some((value, included));
        match below {
            true => range(column, None, bound),
            false => range(column, bound, None),
        }
    }

    /// `(a, b) IN ((1, 2), (3, 4))`: each column by itself has one of its values.
    fn rows_in(&self, left: &Node, list: &Node, entries: &[Entry], found: &mut Vec<Condition>) {
        let rows: Vec<&[Value]> = list.nodes("items").map(|row| row.list("args")).collect();
        for (place, part) in left.list("args").iter().enumerate() {
            let Some(column) = part.node().and_then(|part| column(part, entries)) else { continue };
            let value = |row: &&[Value]| self.constants.source(row.get(place)?.node()?);
            let values: Option<Vec<Source>> = rows.iter().map(value).collect();
            let values = values.filter(|values| !values.is_empty());
            found.extend(values.map(|values| Condition::Is(column, Test::Equal(values))));
        }
    }

    /// Columns that each branch of an OR says are equal to something.
    fn any_branch<'b>(
        &self,
        branches: impl Iterator<Item = &'b Node>,
        entries: &[Entry],
    ) -> Vec<Condition> {
        let mut all: Option<Vec<(Column, Vec<Source>)>> = None;
        for branch in branches {
            let equal: Vec<_> = self
                .conditions(branch, entries)
                .into_iter()
                .filter_map(|condition| match condition {
                    Condition::Is(column, Test::Equal(values)) => Some((column, values)),
                    _ => None,
                })
                .collect();
            let before = match all {
                None => {
                    all = Some(equal);
                    continue;
                }
                Some(before) => before,
            };
            let both = before.into_iter().filter_map(|(column, mut values)| {
                let (_, more) = equal.iter().find(|(other, _)| *other == column)?;
                values.extend(more);
                Some((column, values))
            });
            all = Some(both.collect());
        }
        let all = all.unwrap_or_default().into_iter();
        all.map(|(column, values)| Condition::Is(column, Test::Equal(values))).collect()
    }

    fn all_of(&self, items: &[Value]) -> Option<Vec<Source>> {
        let all: Option<Vec<Source>> =
            items.iter().map(|item| self.constants.source(item.node()?)).collect();
        all.filter(|all| !all.is_empty())
    }
}

/// Its name, if it has no schema but that of the built-in ones.
pub fn operator(node: &Node) -> Option<&str> {
    let part = |value| Value::node(value).map_or("", |part| part.text("sval"));
    match node.list("name") {
        [name] => Some(part(name)),
        [schema, name] if part(schema) == "pg_catalog" => Some(part(name)),
        _ => None,
    }
}

fn range(column: Column, low: Option<Bound>, high: Option<Bound>) -> Option<Condition> {
    let bounded = low.is_some() || high.is_some();
    bounded.then_some(Condition::Is(column, Test::Range { low, high }))
}

/// A column of one of these relations, for all that the text says.
fn column(node: &Node, entries: &[Entry]) -> Option<Column> {
    if !is_column(node) {
        return None;
    }
    let fields: Vec<&str> = node.nodes("fields").map(|field| field.text("sval")).collect();
    let (schema, alias, name) = match fields[..] {
        [name] => {
            return Some(unqualified(name, entries)).filter(|column| !column.of.is_empty());
        }
        [alias, name] => (None, alias, name),
        [schema, alias, name] => (Some(schema), alias, name),
        _ => return None,
    };
    let mut called = entries.iter().filter(|entry| entry.is_called(schema, alias));
    match (called.next(), called.next()) {
        (Some(entry), None) => {
            Some(Column { of: vec![entry.table], merged: Vec::new(), name: name.to_owned() })
        }
        _ => None,
    }
}
