//! A text that is nothing but one call of a procedure or a function, in the forms that people and
//! drivers write.

use super::tree::{Node, Value};
use super::walk::{constant, name};
use super::{Name, Source};
use crate::scan::Literal;

/// `CALL f(...)`, `SELECT f(...)`, or `SELECT ... FROM f(...)` with columns of it and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: Name,
    /// By CALL, so it is a procedure; else a function.
    pub procedure: bool,
    pub arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// `f(amount => 5)`.
    pub name: Option<String>,
    /// The literal or parameter that it is, casts left aside; none: NULL, or an expression.
    pub value: Option<Source>,
}

/// SETOP_NONE of parsenodes.h, plus one as in pg_query.proto.
const SETOP_NONE: i64 = 1;

/// What a SELECT that is a call does not have.
const NO_PARTS: [&str; 14] = [
    "distinct_clause",
    "into_clause",
    "where_clause",
    "group_clause",
    "having_clause",
    "window_clause",
    "values_lists",
    "sort_clause",
    "limit_offset",
    "limit_count",
    "locking_clause",
    "with_clause",
    "larg",
    "rarg",
];

/// And what a plain call of a function does not have: it is an aggregate's, or VARIADIC.
const NO_EXTRAS: [&str; 7] = [
    "agg_order",
    "agg_filter",
    "over",
    "agg_within_group",
    "agg_star",
    "agg_distinct",
    "func_variadic",
];

impl Call {
    pub(super) fn of(statement: &Node, literals: &[Literal]) -> Option<Call> {
        match statement.kind {
            "CallStmt" => read(statement.child("funccall")?, true, literals),
            "SelectStmt" => read(called(statement)?, false, literals),
            _ => None,
        }
    }
}

/// The call that a SELECT consists of.
fn called(select: &Node) -> Option<&Node> {
    let plain = NO_PARTS.iter().all(|part| is_empty(select.field(part)));
    if select.number("op") != SETOP_NONE || !plain {
        return None;
    }
    match (select.list("target_list"), select.list("from_clause")) {
        ([target], []) => target.node()?.child("val").filter(|value| value.kind == "FuncCall"),
        (columns, [Value::Node(from)]) if from.kind == "RangeFunction" => {
            let column = |target: &Value| {
                let value = target.node().and_then(|target| target.child("val"));
                value.is_some_and(|value| value.kind == "ColumnRef")
            };
            let plain = ["lateral", "ordinality", "is_rowsfrom"];
            let plain = plain.iter().all(|part| is_empty(from.field(part)));
            if !plain || !columns.iter().all(column) {
                return None;
            }
            let [Value::Node(function)] = from.list("functions") else { return None };
            // The function, and the columns that it is said to have.
            let [Value::Node(call), ..] = function.list("items") else { return None };
            Some(call).filter(|call| call.kind == "FuncCall")
        }
        _ => None,
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

fn read(call: &Node, procedure: bool, literals: &[Literal]) -> Option<Call> {
    if !NO_EXTRAS.iter().all(|extra| is_empty(call.field(extra))) {
        return None;
    }
    let argument = |node: &Node| match node.kind {
        "NamedArgExpr" => Argument {
            name: Some(node.text("name").to_owned()),
            value: node.child("arg").and_then(|arg| source(arg, literals)),
        },
        _ => Argument { name: None, value: source(node, literals) },
    };
    let arguments = call.nodes("args").map(argument).collect();
    Some(Call { name: name(call.list("funcname")).ok()?, procedure, arguments })
}

fn source(node: &Node, literals: &[Literal]) -> Option<Source> {
    match node.kind {
        "TypeCast" => source(node.child("arg")?, literals),
        "ParamRef" => u32::try_from(node.number("number")).ok().map(Source::Parameter),
        _ => {
            let (start, kind) = constant(node)?;
            let place = literals.binary_search_by_key(&start, |literal| literal.start).ok()?;
            let found = literals[place].kind == kind;
            found.then_some(Source::Literal(u32::try_from(place).ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parser, PostgresParser, Scan};

    /// `f(1, $2, -, name: 3)`; a number in brackets is a literal's place.
    fn told(text: &str) -> Option<String> {
        let mut scan = Scan::new();
        assert!(scan.scan(text.as_bytes()), "{text}");
        let call = PostgresParser.call(text, scan.literals())?;
        let arguments = call.arguments.iter().map(|argument| {
            let name = argument.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            match argument.value {
                Some(Source::Literal(place)) => format!("{name}[{place}]"),
                Some(Source::Parameter(number)) => format!("{name}${number}"),
                None => format!("{name}-"),
            }
        });
        let word = if call.procedure { "call " } else { "" };
        let arguments: Vec<String> = arguments.collect();
        Some(format!("{word}{}({})", call.name, arguments.join(", ")))
    }

    #[test]
    fn calls_are_known_in_all_forms() {
        for (text, expected) in [
            ("call pay(1, 'x', 2.5)", "call pay([0], [1], [2])"),
            ("CALL app.pay($1, $2)", "call app.pay($1, $2)"),
            ("/* a */ call pay(-5, $1::int, cast($2 as text));", "call pay([0], $1, $2)"),
            ("call pay(amount => 5, who => $1)", "call pay(amount: [0], who: $1)"),
            ("call pay(null, 1 + 2, now(), true, array[1])", "call pay(-, -, -, -, -)"),
            ("call pay()", "call pay()"),
            ("select pay(7)", "pay([0])"),
            ("select pay($1) as paid", "pay($1)"),
            ("select * from pay($1, $2)", "pay($1, $2)"),
            ("select * from pay($1, $2) as result", "pay($1, $2)"),
            ("SELECT paid, r.rest FROM \"App\".pay(1) AS r", "App.pay([0])"),
            ("select * from pay($1) as r(a int, b text)", "pay($1)"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_more_than_a_call_is_none() {
        for text in [
            "select 1",
            "select pay(1), 2",
            "select pay(1) + 1",
            "select pay(1) where true",
            "select pay(1) from t",
            "select pay(1) limit 1",
            "select pay(1) union select pay(2)",
            "select (pay(1)).*",
            "select distinct pay(1)",
            "select count(*) from pay(1)",
            "select *, 1 from pay(1)",
            "select * from pay(1), pay(2)",
            "select * from pay(1) where a = 2",
            "select * from pay(1) order by 1",
            "select * from pay(1) with ordinality",
            "select * from rows from (pay(1), pay(2))",
            "select count(*)",
            "select sum(a) over ()",
            "select pay(variadic array[1])",
            "with a as (select 1) select pay(1)",
            "insert into t values (1)",
            "begin",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
