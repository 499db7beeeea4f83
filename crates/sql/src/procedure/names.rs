//! Which names of a body mean an argument as it was passed.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{single_name, Body};
use super::source::{self, Conflict};
use super::types::Words;
use super::Definition;

#[derive(Debug)]
pub(super) struct Names {
    /// Names, `$1` as well, with the argument whose value they always have.
    arguments: BTreeMap<String, usize>,
    /// The same where a CALL that may write to its arguments does not count.
    before_calls: BTreeMap<String, usize>,
    variables: BTreeSet<String>,
    /// The name of the function, by which its parameters can be told from columns; none where
    /// something in the body has that name too.
    function: Option<String>,
    pub conflict: Conflict,
}

impl Names {
    pub fn of(definition: &Definition, body: &Body) -> Names {
        let written = written_by_calls(body);
        let arguments = known(definition, body, &written);
        let before_calls = known(definition, body, &BTreeSet::new());
        let mut variables: BTreeSet<String> = body.variables.iter().cloned().collect();
        variables.extend(body.aliases.iter().map(|(alias, _)| alias.clone()));
        let taken = variables.contains(&definition.name) || body.labels.contains(&definition.name);
        Names {
            arguments,
            before_calls,
            variables,
            function: Some(definition.name.clone()).filter(|_| !taken),
            conflict: body.conflict,
        }
    }

    /// A name without a qualifier, or `$1`.
    pub fn argument(&self, name: &str) -> Option<usize> {
        self.arguments.get(name).copied()
    }

    /// As [`Names::argument`], for what a CALL is passed.
    pub fn passed(&self, name: &str) -> Option<usize> {
        self.before_calls.get(name).copied()
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

/// A CALL writes to what it is passed for OUT and INOUT; which those are, only the catalogues
/// know.
fn written_by_calls(body: &Body) -> BTreeSet<String> {
    let mut written = BTreeSet::new();
    for piece in &body.pieces {
        let Ok(tokens) = source::tokens(&piece.text) else { continue };
        let words = Words::of(&piece.text, &tokens);
        if words.starts_with(&["call"]) {
            written.extend(words.names());
        }
    }
    written
}

fn known(
    definition: &Definition,
    body: &Body,
    written: &BTreeSet<String>,
) -> BTreeMap<String, usize> {
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
        if kept && !written.contains(name) && !written.contains(&positional) {
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
            if !alone || is_alias || written.contains(variable) {
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
