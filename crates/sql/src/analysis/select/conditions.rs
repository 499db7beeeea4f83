//! Conditions: which rows they are true for, and of those behind NOT, which they are false for.
//!
//! What compares with NULL is neither. So `NOT` goes inside: `NOT (a = 1 AND b < 2)` is
//! `a <> 1 OR b >= 2`, and a NULL that would make one part of it unknown makes the same part of
//! the other unknown. (Values of a type that are no numbers have their place in its order, so
//! what is not less is equal or greater.)

use super::words::{what, IN_ARITHMETIC};
use super::{column, truth, Reader};
use crate::analysis::reads::{operator, type_name, AEXPR_OP_ANY, AND, OR};
use crate::analysis::tree::{Node, Value};
use crate::analysis::walk::{
    constant, name, AEXPR_BETWEEN, AEXPR_IN, AEXPR_NOT_BETWEEN, AEXPR_OP, DEPTH_MAX,
};
use crate::analysis::Source;
use crate::scan::LiteralKind;
use crate::select::{Comparison, Filter, Written};

/// Numbers of enums of nodes.h, primnodes.h and parsenodes.h, plus one as in pg_query.proto.
const NOT: i64 = 3;
const AEXPR_LIKE: i64 = 8;
const IS_NULL: i64 = 1;
const IS_TRUE: i64 = 1;
const IS_NOT_TRUE: i64 = 2;
const IS_FALSE: i64 = 3;
const IS_NOT_FALSE: i64 = 4;
const IS_UNKNOWN: i64 = 5;
const IS_NOT_UNKNOWN: i64 = 6;

/// How two values are to be to each other.
#[derive(Clone, Copy)]
enum Relation {
    Is(Comparison),
    Differ,
}

impl Reader<'_> {
    /// The rows for which a condition is what is `wanted`: true, or false.
    pub(super) fn filter(
        &self,
        node: &Node,
        wanted: bool,
        depth: usize,
    ) -> Result<Filter<Written>, String> {
        if depth > DEPTH_MAX {
            return Err("its tree is too deep".to_owned());
        }
        match node.kind {
            "BoolExpr" => self.combined(node, wanted, depth),
            "AExpr" => self.expression(node, wanted),
            "ColumnRef" => Ok(Filter::Is(column(node)?, wanted)),
            "NullTest" => {
                let of = node.child("arg").filter(|arg| arg.kind == "ColumnRef");
                let of = of.ok_or("it has IS NULL of something that is not a column")?;
                let of = column(of)?;
                Ok(match (node.number("nulltesttype") == IS_NULL) == wanted {
                    true => Filter::Null(of),
                    false => Filter::NotNull(of),
                })
            }
            "BooleanTest" => tested(node, wanted),
            kind => match truth(node) {
                Some(value) if value == wanted => Ok(Filter::And(Vec::new())),
                Some(_) => Ok(Filter::Or(Vec::new())),
                None => Err(format!("it has {} as a condition", what(kind))),
            },
        }
    }

    /// AND, OR and NOT.
    fn combined(&self, node: &Node, wanted: bool, depth: usize) -> Result<Filter<Written>, String> {
        let is = node.number("boolop");
        let wanted = wanted != (is == NOT);
        let parts = node.nodes("args").map(|part| self.filter(part, wanted, depth + 1));
        let mut parts = parts.collect::<Result<Vec<_>, String>>()?;
        match (is, wanted) {
            (AND, true) | (OR, false) => Ok(Filter::And(parts)),
            (AND, false) | (OR, true) => Ok(Filter::Or(parts)),
            (NOT, _) if parts.len() == 1 => Ok(parts.remove(0)),
            _ => Err("it has something unusual as a condition".to_owned()),
        }
    }

    fn expression(&self, node: &Node, wanted: bool) -> Result<Filter<Written>, String> {
        let (Some(left), Some(right)) = (node.child("lexpr"), node.child("rexpr")) else {
            return Err("it has an operator with one operand".to_owned());
        };
        let unknown = || {
            let name = name(node.list("name")).map_or_else(|e| e.to_string(), |n| n.name);
            format!("it compares with {name}")
        };
        match (node.number("kind"), operator(node)) {
            (AEXPR_OP, Some(operator)) => {
                self.compared(left, relation(operator, wanted).ok_or_else(unknown)?, right)
            }
            (AEXPR_OP_ANY, Some("=")) => {
                let column = compared_column(left)?;
                match right.kind {
                    "AArrayExpr" => self.among(column, right.list("elements"), wanted),
                    // An empty one is a case of its own then.
                    _ if !wanted => Err("it has NOT with = ANY of an array".to_owned()),
                    _ => Ok(Filter::AnyOf(column, self.source(right)?)),
                }
            }
            (AEXPR_IN, Some(operator @ ("=" | "<>"))) => {
                let column = compared_column(left)?;
                self.among(column, right.list("items"), (operator == "=") == wanted)
            }
            (AEXPR_LIKE, Some(operator @ ("~~" | "!~~"))) => {
                let wanted = (operator == "~~") == wanted;
                Ok(Filter::Like(compared_column(left)?, self.source(right)?, wanted))
            }
            (kind @ (AEXPR_BETWEEN | AEXPR_NOT_BETWEEN), _) => {
                let column = compared_column(left)?;
                let [low, high] = self.sources(right.list("items"))?[..] else {
                    return Err("it has BETWEEN without two bounds".to_owned());
                };
                let is = |comparison, bound| Filter::Compare(column.clone(), comparison, bound);
                Ok(match (kind == AEXPR_BETWEEN) == wanted {
                    true => Filter::And(vec![
                        is(Comparison::GreaterEqual, low),
                        is(Comparison::LessEqual, high),
                    ]),
                    false => {
                        Filter::Or(vec![is(Comparison::Less, low), is(Comparison::Greater, high)])
                    }
                })
            }
            _ => Err(unknown()),
        }
    }

    /// IN, or NOT IN.
    fn among(
        &self,
        column: Written,
        items: &[Value],
        inside: bool,
    ) -> Result<Filter<Written>, String> {
        let sources = self.sources(items)?;
        Ok(match inside {
            true => Filter::In(column, sources),
            false => Filter::NotIn(column, sources),
        })
    }

    fn compared(
        &self,
        left: &Node,
        relation: Relation,
        right: &Node,
    ) -> Result<Filter<Written>, String> {
        let (of, value, relation) = match (left.kind == "ColumnRef", right.kind == "ColumnRef") {
            (true, true) => {
                return match relation {
                    Relation::Is(Comparison::Equal) => {
                        Ok(Filter::Same(column(left)?, column(right)?))
                    }
                    _ => Err("it compares two columns otherwise than by =".to_owned()),
                }
            }
            (true, false) => (left, right, relation),
            (false, true) => (right, left, turned(relation)),
            (false, false) => return compared_column(left).and_then(|_| not_constant()),
        };
        let column = column(of)?;
        match (relation, truth(value)) {
            (Relation::Is(Comparison::Equal), Some(value)) => Ok(Filter::Is(column, value)),
            (Relation::Differ, Some(value)) => Ok(Filter::Is(column, !value)),
            (Relation::Is(comparison), _) => {
                Ok(Filter::Compare(column, comparison, self.source(value)?))
            }
            (Relation::Differ, None) => Ok(Filter::NotIn(column, vec![self.source(value)?])),
        }
    }

    fn sources(&self, items: &[Value]) -> Result<Vec<Source>, String> {
        if items.is_empty() {
            return Err("it compares with an empty list".to_owned());
        }
        let source = |item: &Value| item.node().map_or_else(not_constant, |item| self.source(item));
        items.iter().map(source).collect()
    }

    fn source(&self, node: &Node) -> Result<Source, String> {
        if IN_ARITHMETIC.contains(&node.kind) {
            return Err(format!("it compares a column with {}", what(node.kind)));
        }
        // Where a number may not fit, the cast is an error.
        if let ("TypeCast", Some(arg)) = (node.kind, node.child("arg")) {
            let to = type_name(node).ok().flatten().map(|(to, _)| to.name);
            let kind = constant(arg).map(|(_, kind)| kind);
            let fits = match to.as_deref() {
                _ if matches!(kind, None | Some(LiteralKind::Text)) => true,
                Some("int4") => kind == Some(LiteralKind::Int4),
                Some("int8" | "numeric") => kind != Some(LiteralKind::Numeric),
                _ => false,
            };
            if !fits {
                return Err("it has a cast of a number that may not fit".to_owned());
            }
        }
        self.constants.source(node).map_or_else(not_constant, Ok)
    }
}

fn not_constant<T>() -> Result<T, String> {
    Err("it compares a column with something that is no plain constant".to_owned())
}

fn compared_column(node: &Node) -> Result<Written, String> {
    match node.kind {
        "ColumnRef" => column(node),
        kind => Err(format!("it has {} where a column is compared", what(kind))),
    }
}

/// IS TRUE and its like, which are never NULL.
fn tested(node: &Node, wanted: bool) -> Result<Filter<Written>, String> {
    let of = node.child("arg").filter(|arg| arg.kind == "ColumnRef");
    let of = column(of.ok_or("it has IS TRUE or its like of something that is not a column")?)?;
    let is = node.number("booltesttype");
    let value = match is {
        IS_TRUE | IS_NOT_TRUE => Some(true),
        IS_FALSE | IS_NOT_FALSE => Some(false),
        IS_UNKNOWN | IS_NOT_UNKNOWN => None,
        _ => return Err("it has something unusual as a condition".to_owned()),
    };
    let wanted = wanted != [IS_NOT_TRUE, IS_NOT_FALSE, IS_NOT_UNKNOWN].contains(&is);
    Ok(match (value, wanted) {
        (Some(value), true) => Filter::Is(of, value),
        (Some(value), false) => Filter::Or(vec![Filter::Is(of.clone(), !value), Filter::Null(of)]),
        (None, true) => Filter::Null(of),
        (None, false) => Filter::NotNull(of),
    })
}

/// What an operator says where it is true, or where it is false.
fn relation(operator: &str, wanted: bool) -> Option<Relation> {
    use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual};
    Some(match (operator, wanted) {
        ("=", true) | ("<>", false) => Relation::Is(Equal),
        ("=", false) | ("<>", true) => Relation::Differ,
        ("<", true) | (">=", false) => Relation::Is(Less),
        ("<=", true) | (">", false) => Relation::Is(LessEqual),
        (">", true) | ("<=", false) => Relation::Is(Greater),
        (">=", true) | ("<", false) => Relation::Is(GreaterEqual),
        _ => return None,
    })
}

/// With its sides exchanged.
fn turned(relation: Relation) -> Relation {
    let Relation::Is(comparison) = relation else { return relation };
    Relation::Is(match comparison {
        Comparison::Equal => Comparison::Equal,
        Comparison::Less => Comparison::Greater,
        Comparison::LessEqual => Comparison::GreaterEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterEqual => Comparison::LessEqual,
    })
}
