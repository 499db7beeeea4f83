//! Which names of a body mean an argument as it was passed.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{single_name, Body, PieceKind};
use super::source::{self, Conflict};
use super::statements;
use super::types::Words;
use super::{Definition, Kept};
use crate::analysis::{walk, Node, Value};

#[derive(Debug)]
pub(super) struct Names {
    /// Names, `$1` as well, with the argument whose value they always have.
    arguments: BTreeMap<String, usize>,
    /// What is passed to a CALL under any name of an argument.
    passed: BTreeMap<usize, Vec<Option<Kept>>>,
    variables: BTreeSet<String>,
    /// The name of the function, by which its parameters can be told from columns; none where
    /// something in the body has that name too.
    function: Option<String>,
    pub conflict: Conflict,
}

impl Names {
    pub fn of(definition: &Definition, body: &Body) -> Names {
        let arguments = known(definition, body);
        let mut passed: BTreeMap<usize, Vec<Option<Kept>>> = BTreeMap::new();
        for one in passed_to_calls(body) {
            if let Some(place) = arguments.get(&one.variable) {
                passed.entry(*place).or_default().push(one.to);
            }
        }
        let mut variables: BTreeSet<String> = body.variables.iter().cloned().collect();
        variables.extend(body.aliases.iter().map(|(alias, _)| alias.clone()));
        let taken = variables.contains(&definition.name) || body.labels.contains(&definition.name);
        Names {
            arguments,
            passed,
            variables,
            function: Some(definition.name.clone()).filter(|_| !taken),
            conflict: body.conflict,
        }
    }

    /// A name without a qualifier, or `$1`; and what must not write to it.
    pub fn argument(&self, name: &str) -> Option<(usize, Vec<Kept>)> {
        let place = *self.arguments.get(name)?;
        let passed = self.passed.get(&place).cloned().unwrap_or_default();
        let kept: Option<Vec<Kept>> = passed.into_iter().collect();
        Some((place, kept?))
    }

    /// As [`Names::argument`], for what a CALL itself is passed.
    pub fn passed(&self, name: &str) -> Option<usize> {
        self.arguments.get(name).copied()
    }

    pub fn is_function(&self, qualifier: &str) -> bool {
        self.function.as_deref() == Some(qualifier)
    }

    pub fn is_variable(&self, name: &str) -> bool {
        self.variables.contains(name)
    }

    /// A column comes before a variable of its name.
    pub fn prefers_columns(&self) -> bool {
        self.conflict == Conflict::Column
    }
}

/// A variable that is passed to a CALL. It writes to those that are OUT or INOUT; which that are,
/// only the catalogues know.
#[derive(Debug)]
struct Passed {
    variable: String,
    /// None where it can't be told by its place.
    to: Option<Kept>,
}

fn passed_to_calls(body: &Body) -> Vec<Passed> {
    let mut passed = Vec::new();
    for piece in body.pieces.iter().filter(|piece| piece.kind == PieceKind::Statement) {
        let Ok(tokens) = source::tokens(&piece.text) else { continue };
        let words = Words::of(&piece.text, &tokens);
        if !words.starts_with(&["call"]) {
            continue;
        }
        let text = piece.text.get(words.ends[0]..).unwrap_or_default();
        let tree = statements::query(&format!("SELECT {text}"));
        let target = tree.as_ref().and_then(|tree| tree.nodes("target_list").next());
        let call = target.and_then(|target| target.child("val"));
        let routine = call.and_then(|call| walk::name(call.list("funcname")).ok());
        let (Some(call), Some(routine)) = (call, routine) else {
            let all = words.names().into_iter();
            passed.extend(all.map(|variable| Passed { variable, to: None }));
            continue;
        };
        for (position, argument) in call.nodes("args").enumerate() {
            let by_place = argument.kind != "NamedArgExpr";
            let to = by_place.then(|| Kept { routine: routine.clone(), position });
            let mut names = BTreeSet::new();
            variables(argument, &mut names);
            passed.extend(names.into_iter().map(|variable| Passed { variable, to: to.clone() }));
        }
    }
    passed
}

/// Names that may be variables, with their fields or without.
fn variables(node: &Node, names: &mut BTreeSet<String>) {
    match node.kind {
        "ColumnRef" => {
            let fields = node.nodes("fields").filter(|field| field.kind == "String");
            names.extend(fields.map(|field| field.text("sval").to_owned()));
        }
        "ParamRef" => {
            names.insert(format!("${}", node.number("number")));
        }
        _ => {
            for (_, value) in &node.fields {
                match value {
                    Value::Node(node) => variables(node, names),
                    Value::List(list) => {
                        list.iter().filter_map(Value::node).for_each(|node| variables(node, names));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Names with the argument whose value they always have, if no CALL writes to them.
fn known(definition: &Definition, body: &Body) -> BTreeMap<String, usize> {
    let declared = |name: &str| body.variables.iter().filter(|other| *other == name).count();
    let assigned = |name: &str| body.assigned.get(name).copied().unwrap_or(0);
    let mut known = BTreeMap::new();
    let mut inputs = 0;
    for (place, argument) in definition.arguments.iter().enumerate() {
        if !argument.mode.is_input() {
            continue;
        }
        inputs += 1;
        // PL/pgSQL numbers all arguments, SQL those that go in.
        let number = if body.is_sql { inputs } else { place + 1 };
        let positional = format!("${number}");
        let name = if argument.name.is_empty() { &positional } else { &argument.name };
        let kept = assigned(name) == 0 && declared(name) <= 1;
        if kept {
            known.insert(name.clone(), place);
            known.insert(positional, place);
        }
    }
    let aliases = |alias: &str| body.aliases.iter().filter(|(other, _)| other == alias).count();
    // An alias may be one for an alias, and a variable may be given one of another.
    for _ in 0..CHAIN_MAX {
        let before = known.len();
        for (alias, target) in &body.aliases {
            let alone = aliases(alias) == 1 && declared(alias) == 0;
            if let Some(place) = known.get(target).copied().filter(|_| alone) {
                known.insert(alias.clone(), place);
            }
        }
        for (variable, value) in &body.values {
            let alone = assigned(variable) == 1 && declared(variable) == 1;
            let is_alias = aliases(variable) > 0 || variable.contains('.');
            if !alone || is_alias {
                continue;
            }
            let name = single_name(value).unwrap_or_default();
            let own = format!("{}.", definition.name);
            if let Some(place) = known.get(name.strip_prefix(&own).unwrap_or(&name)).copied() {
                known.insert(variable.clone(), place);
            }
        }
        if known.len() == before {
            break;
        }
    }
    known
}

/// Links from a variable to an argument that are followed.
const CHAIN_MAX: usize = 8;
