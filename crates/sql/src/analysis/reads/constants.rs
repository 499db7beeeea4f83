//! Constants: what gives them their values, and where a cast around them changes nothing.

use std::collections::HashMap;

use super::Source;
use crate::analysis::tree::{Node, Value};
use crate::analysis::walk::{constant, name};
use crate::analysis::Unparsed;
use crate::scan::Literal;

/// What is known of the constants of one statement.
pub struct Constants<'a> {
    literals: &'a [Literal],
    /// The type that each parameter is cast to wherever it stands; none: not everywhere to one.
    parameters: HashMap<u32, Option<CastName>>,
}

/// Of a cast: the type's name, and whether it is an array of it.
pub type CastName = (crate::Name, bool);

impl<'a> Constants<'a> {
    /// `literals` are those of the text, or none if they are not known to be.
    pub fn new(statement: &Node, literals: &'a [Literal]) -> Constants<'a> {
        let mut parameters = HashMap::new();
        note_parameters(statement, None, &mut parameters);
        Constants { literals, parameters }
    }

    /// A constant that may be the value of a condition.
    ///
    /// A parameter's type is that of its first use, so behind a cast it may be converted, unless
    /// all its uses are casts to the same type. A constant in quotes is read as the cast's type.
    /// Numbers may lose digits, but not among these types, or overflow, which is an error.
    pub fn source(&self, node: &Node) -> Option<Source> {
        match node.kind {
            "AConst" => self.literal(node).map(|(source, _)| source),
            "ParamRef" => match u32::try_from(node.number("number")) {
                Ok(number) if number > 0 => Some(Source::Parameter(number)),
                _ => None,
            },
            "TypeCast" => {
                let arg = node.child("arg")?;
                let to = type_name(node).ok()??;
                if !plain_type(node) {
                    return None;
                }
                match (arg.kind, self.source(arg)?) {
                    ("ParamRef", source @ Source::Parameter(number)) => {
                        let all = self.parameters.get(&number)?;
                        (all.as_ref() == Some(&to)).then_some(source)
                    }
                    ("AConst", source @ Source::Literal(_)) => {
                        let is_text = self.literal(arg)?.1;
                        let (to, array) = to;
                        let number = to.schema.as_deref() == Some("pg_catalog")
                            && ["int2", "int4", "int8", "numeric"].contains(&to.name.as_str())
                            && !array;
                        (is_text || number && self.is_whole(arg)).then_some(source)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_whole(&self, node: &Node) -> bool {
        use crate::scan::LiteralKind::{Int4, Int8};
        constant(node).is_some_and(|(_, kind)| matches!(kind, Int4 | Int8))
    }

    /// A literal of the scan, and whether it is a text in quotes.
    pub fn literal(&self, node: &Node) -> Option<(Source, bool)> {
        let (start, kind) = constant(node)?;
        let place = self.literals.binary_search_by_key(&start, |literal| literal.start).ok()?;
        let found = self.literals[place].kind == kind;
        let is_text = kind == crate::scan::LiteralKind::Text;
        found.then_some((Source::Literal(u32::try_from(place).ok()?), is_text))
    }
}

/// Of a cast; none: of a set, or by another way than a name.
pub fn type_name(cast: &Node) -> Result<Option<CastName>, Unparsed> {
    let Some(to) = cast.child("type_name") else { return Ok(None) };
    let array = !to.list("array_bounds").is_empty();
    Ok(Some((name(to.list("names"))?, array)))
}

/// No modifier, which could change a value: `varchar(3)`.
fn plain_type(cast: &Node) -> bool {
    cast.child("type_name").is_some_and(|to| {
        to.list("typmods").is_empty()
            && to.number("setof") == 0
            && to.number("pct_type") == 0
            && to.list("array_bounds").len() <= 1
    })
}

fn note_parameters(
    node: &Node,
    cast: Option<&CastName>,
    found: &mut HashMap<u32, Option<CastName>>,
) {
    if node.kind == "ParamRef" {
        let number = u32::try_from(node.number("number")).unwrap_or(0);
        let cast = cast.cloned();
        let all = found.entry(number).or_insert_with(|| cast.clone());
        if *all != cast {
            *all = None;
        }
        return;
    }
    let cast = match node.kind {
        "TypeCast" if plain_type(node) => type_name(node).ok().flatten(),
        _ => None,
    };
    for (_, value) in &node.fields {
        note_parameters_in(value, cast.as_ref(), found);
    }
}

fn note_parameters_in(
    value: &Value,
    cast: Option<&CastName>,
    found: &mut HashMap<u32, Option<CastName>>,
) {
    match value {
        Value::Node(node) => note_parameters(node, cast, found),
        Value::List(items) => items.iter().for_each(|item| note_parameters_in(item, cast, found)),
        Value::Nothing | Value::Number(_) | Value::Text(_) => {}
    }
}
