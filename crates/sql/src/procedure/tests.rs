//! Bodies and what is found in them.

mod arguments;
mod closure;
mod hazards;
mod lanes;
mod touches;

use std::sync::{Mutex, PoisonError};

use super::*;

/// The parser moves the process's standard error about while it works, so one at a time.
static PARSER: Mutex<()> = Mutex::new(());

pub fn parsed(definition: &Definition) -> Result<Vec<u8>, String> {
    let _alone = PARSER.lock().unwrap_or_else(PoisonError::into_inner);
    parse(definition)
}

/// `p_w int, INOUT p_d int`: arguments as CREATE FUNCTION has them; types have one word.
pub fn arguments(text: &str) -> Vec<Argument> {
    let one = |text: &str| {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mode = match words.first().copied() {
            Some("OUT") => Mode::Out,
            Some("INOUT") => Mode::InOut,
            Some("VARIADIC") => Mode::Variadic,
            Some("TABLE") => Mode::Table,
            _ => Mode::In,
        };
        if mode != Mode::In {
            words.remove(0);
        }
        let type_name = words.pop().unwrap_or_default().to_owned();
        let name = words.first().copied().unwrap_or_default().to_owned();
        Argument { name, type_name, mode }
    };
    text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(one).collect()
}

pub fn function(name: &str, list: &str, returns: &str, source: &str) -> Definition {
    Definition {
        schema: "public".to_owned(),
        name: name.to_owned(),
        language: "plpgsql".to_owned(),
        source: source.to_owned(),
        arguments: arguments(list),
        returns: returns.to_owned(),
        is_procedure: returns.is_empty(),
    }
}

/// With a body, or with statements for BEGIN and END.
pub fn procedure(list: &str, source: &str) -> Definition {
    let has_block = ["BEGIN", "DECLARE", "#", "<<"];
    let is_body = has_block.iter().any(|start| source.trim_start().starts_with(start));
    let source = if is_body { source.to_owned() } else { format!("\nBEGIN\n{source}\nEND") };
    function("f", list, "", &source)
}

pub fn sql(list: &str, source: &str) -> Definition {
    Definition { language: "sql".to_owned(), ..function("f", list, "void", source) }
}

#[track_caller]
pub fn analysed(definition: &Definition) -> Analysis {
    let bytes = parsed(definition).unwrap_or_else(|e| panic!("{e}: {}", definition.source));
    read(definition, &bytes).unwrap_or_else(|e| panic!("{e}: {}", definition.source))
}

pub fn name(text: &str) -> Name {
    match text.split_once('.') {
        Some((schema, name)) => Name { schema: Some(schema.to_owned()), name: name.to_owned() },
        None => Name { schema: None, name: text.to_owned() },
    }
}

/// `Update t a=p_w b=3`; `!u.a` for a table that must not have a column, `!g(0)` for a procedure
/// that must not write to what it is passed.
pub fn said(touch: &Touch, definition: &Definition) -> String {
    let operand = |operand: &Operand| match operand {
        Operand::Argument(place) => definition.argument_name(*place),
        Operand::Constant(value) => value.clone(),
    };
    let mut words = format!("{:?} {}", touch.kind, touch.name);
    for equality in &touch.equalities {
        words.push_str(&format!(" {}={}", equality.column, operand(&equality.operand)));
        for lacks in &equality.provided {
            words.push_str(&format!("!{}.{}", lacks.relation, lacks.column));
        }
        for kept in &equality.kept {
            words.push_str(&format!("!{}({})", kept.routine, kept.position));
        }
    }
    for passed in &touch.passed {
        let value = passed.as_ref().map_or("?".to_owned(), &operand);
        words.push_str(&format!(" <{value}>"));
    }
    words
}

/// All touches of these kinds.
#[track_caller]
pub fn all(definition: &Definition, kinds: &[TouchKind]) -> Vec<String> {
    let analysis = analysed(definition);
    let touches = analysis.touches.iter().filter(|touch| kinds.contains(&touch.kind));
    touches.map(|touch| said(touch, definition)).collect()
}

/// A table with a primary key.
pub fn table(columns: &str, unique: &str) -> Relation {
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    Relation { columns: list(columns), unique: vec![list(unique)], ..Relation::default() }
}
