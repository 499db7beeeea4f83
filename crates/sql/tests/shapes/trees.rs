//! Trees as JSON, which is another way to them than that of the analysis.

use std::collections::BTreeSet;

use serde_json::{json, Value};
use sql::LiteralKind;

/// The tree of one plain statement.
pub fn tree(text: &str) -> Value {
    let parsed = pg_query::parse(text, 0).unwrap_or_else(|e| panic!("{text}: {e}"));
    serde_json::to_value(&parsed.protobuf).expect("JSON")
}

/// Without what may differ between texts of one shape: places in the text, and the values of
/// constants. A constant is its type; so is a parameter, the type of the one it stands for.
pub fn blanked(mut tree: Value, parameters: &[LiteralKind]) -> Value {
    blank(&mut tree, parameters);
    tree
}

const PLACES: [&str; 7] = [
    "location",
    "stmt_location",
    "stmt_len",
    "rexpr_list_start",
    "rexpr_list_end",
    "list_start",
    "list_end",
];

fn blank(value: &mut Value, parameters: &[LiteralKind]) {
    match value {
        Value::Object(fields) => {
            if let Some(constant) = fields.get("AConst").and_then(kind) {
                *value = json!({ "constant": format!("{constant:?}") });
                return;
            }
            if let Some(parameter) = fields.get("ParamRef") {
                let number = parameter["number"].as_u64().expect("a number") as usize;
                if let Some(kind) = number.checked_sub(1).and_then(|at| parameters.get(at)) {
                    *value = json!({ "constant": format!("{kind:?}") });
                    return;
                }
            }
            // The precision in `current_time(3)`.
            if let Some(Value::Object(function)) = fields.get_mut("SqlvalueFunction") {
                function.remove("typmod");
            }
            for place in PLACES {
                fields.remove(place);
            }
            fields.values_mut().for_each(|field| blank(field, parameters));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| blank(item, parameters)),
        _ => {}
    }
}

/// The type of a constant that may be a literal of a scan; none for NULL, TRUE and bit strings.
fn kind(constant: &Value) -> Option<LiteralKind> {
    let value = constant.get("val")?;
    if value.get("Ival").is_some() {
        return Some(LiteralKind::Int4);
    }
    if value.get("Sval").is_some() {
        return Some(LiteralKind::Text);
    }
    let number = value.get("Fval")?.get("fval")?.as_str()?;
    Some(match number.parse::<i128>() {
        Ok(number) if i32::try_from(number).is_ok() => LiteralKind::Int4,
        Ok(number) if i64::try_from(number).is_ok() => LiteralKind::Int8,
        _ => LiteralKind::Numeric,
    })
}

/// All constants of a tree: where they are, and their type and value as text.
pub fn constants(tree: &Value) -> Vec<(u32, LiteralKind, String)> {
    let mut constants = Vec::new();
    each_object(tree, &mut |fields| {
        let Some(constant) = fields.get("AConst") else { return };
        let Some(kind) = kind(constant) else { return };
        // What the grammar itself adds has no place.
        let location = constant["location"].as_i64().and_then(|place| u32::try_from(place).ok());
        let Some(location) = location else { return };
        let value = &constant["val"];
        let value = match value.get("Ival") {
            Some(number) => number["ival"].to_string(),
            None => {
                let text = value.get("Sval").map(|text| &text["sval"]);
                let text = text.or(value.get("Fval").map(|number| &number["fval"]));
                text.and_then(Value::as_str).expect("a text").to_owned()
            }
        };
        constants.push((location, kind, value));
    });
    constants
}

/// Names, found by looking at everything.
#[derive(Debug, Default)]
pub struct Names {
    pub functions: BTreeSet<String>,
    pub operators: BTreeSet<String>,
    pub types: BTreeSet<String>,
    pub relations: BTreeSet<String>,
    /// What WITH names anywhere.
    pub with: BTreeSet<String>,
}

pub fn names(tree: &Value) -> Names {
    let mut names = Names::default();
    each_object(tree, &mut |fields| {
        let joined = |list: &Value| {
            let part = |part: &Value| part["node"]["String"]["sval"].as_str().map(str::to_owned);
            let parts: Vec<String> =
                list.as_array().into_iter().flatten().filter_map(part).collect();
            parts[parts.len().saturating_sub(2)..].join(".")
        };
        if let Some(call) = fields.get("FuncCall") {
            names.functions.insert(joined(&call["funcname"]));
        }
        if let Some(expression) = fields.get("AExpr") {
            let operator = joined(&expression["name"]);
            // They are words and no operators.
            if !operator.contains("BETWEEN") {
                names.operators.insert(operator);
            }
        }
        if fields.contains_key("typmods") {
            names.types.insert(joined(&fields["names"]));
        }
        if let Some(Value::String(query)) = fields.get("ctename") {
            names.with.insert(query.clone());
        }
        if let Some(Value::String(relation)) = fields.get("relname") {
            let schema = fields["schemaname"].as_str().unwrap_or_default();
            let dot = if schema.is_empty() { "" } else { "." };
            names.relations.insert(format!("{schema}{dot}{relation}"));
        }
    });
    names
}

fn each_object(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            visit(fields);
            fields.values().for_each(|field| each_object(field, visit));
        }
        Value::Array(items) => items.iter().for_each(|item| each_object(item, visit)),
        _ => {}
    }
}
