//! From a definition to bytes: the step that may end the process.

use pg_query::protobuf::ScanToken;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::types::{self, Words};
use super::{Argument, Definition, Mode};

/// Longer bodies are refused, in bytes.
pub const SOURCE_MAX: usize = 1 << 20;

/// What goes from the process that parses to the one that reads.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Tree {
    PlPgSql(PlPgSql),
    Sql { statements: Vec<SqlStatement> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PlPgSql {
    /// As libpg_query writes it.
    pub function: Json,
    pub conflict: Conflict,
    /// `new ALIAS FOR old`: the parser resolves them and forgets their names.
    pub aliases: Vec<(String, String)>,
    pub labels: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SqlStatement {
    pub line: u32,
    pub text: String,
}

/// What a name is that both a column and a variable have.
///
/// Source: "Variable Substitution" in PostgreSQL's chapter on PL/pgSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Conflict {
    Error,
    Column,
    Variable,
}

/// Understands a body as far as that takes PostgreSQL's PL/pgSQL parser. What it returns is for
/// [`super::read`], in this process or another one.
///
/// Some bodies end the process here: run it where that does no harm.
///
/// # Errors
///
/// Why the body can't be parsed, in words for people.
pub fn parse(definition: &Definition) -> Result<Vec<u8>, String> {
    if definition.source.len() > SOURCE_MAX {
        return Err(format!("the body has more than {SOURCE_MAX} bytes"));
    }
    let tree = match definition.language.as_str() {
        "plpgsql" => Tree::PlPgSql(plpgsql(definition)?),
        "sql" => Tree::Sql { statements: sql(&definition.source)? },
        other => return Err(format!("bodies in language {other} are not understood")),
    };
    serde_json::to_vec(&tree).map_err(|error| error.to_string())
}

pub(super) fn open(bytes: &[u8]) -> Result<Tree, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("the parsed body is damaged: {error}"))
}

/// Without comments.
pub(super) fn tokens(text: &str) -> Result<Vec<ScanToken>, String> {
    // The library can't return an empty list of tokens.
    if text.bytes().all(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
        return Ok(Vec::new());
    }
    use pg_query::protobuf::Token;
    let mut tokens = pg_query::scan_tokens(text).map_err(|error| error.to_string())?;
    tokens.retain(|token| ![Token::SqlComment, Token::CComment].contains(&token.token()));
    Ok(tokens)
}

fn plpgsql(definition: &Definition) -> Result<PlPgSql, String> {
    let tokens = tokens(&definition.source)?;
    let words = Words::of(&definition.source, &tokens);
    let source = types::replaced(&words);
    let text = create_function(definition, &words, &source);
    let parsed = pg_query::parse_plpgsql(&text).map_err(|error| error.to_string())?;
    let function = match parsed {
        Json::Array(mut functions) if functions.len() == 1 => functions.remove(0),
        _ => return Err("the body ends the function early".to_owned()),
    };
    let (aliases, labels) = (words.aliases(), words.labels());
    Ok(PlPgSql { function, conflict: conflict(&words), aliases, labels })
}

fn conflict(words: &Words) -> Conflict {
    let mut options = words.list.windows(3).filter(|w| w[0] == "#" && w[1] == "variable_conflict");
    match options.next_back().map(|option| option[2].as_str()) {
        Some("use_column") => Conflict::Column,
        Some("use_variable") => Conflict::Variable,
        _ => Conflict::Error,
    }
}

/// The library parses CREATE FUNCTION only. It has no catalogue, so all types but a few become
/// others that mean the same to the parser; a trigger's variables become arguments, because the
/// library's output is no JSON where they are what they are.
fn create_function(definition: &Definition, words: &Words, source: &str) -> String {
    let trigger = TRIGGER_VARIABLES.iter().map(|(name, type_name)| Argument {
        name: (*name).to_owned(),
        type_name: (*type_name).to_owned(),
        mode: Mode::In,
    });
    let is_trigger = ["trigger", "event_trigger"].contains(&definition.returns.as_str());
    let arguments = definition.arguments.iter().cloned();
    let arguments: Vec<Argument> = match is_trigger {
        true => arguments.chain(trigger).collect(),
        false => arguments.collect(),
    };
    let written: Vec<String> = arguments.iter().map(|argument| written(argument, words)).collect();
    let kind = if definition.is_procedure { "PROCEDURE" } else { "FUNCTION" };
    let returns = returns(definition, &arguments, words);
    let quote = dollar_quote(source);
    format!(
        "CREATE {kind} {}({}) {returns} LANGUAGE plpgsql AS {quote}{source}{quote}",
        quoted(&definition.name),
        written.join(", "),
    )
}

/// Source: "Trigger Procedures" in PostgreSQL's chapter on PL/pgSQL.
const TRIGGER_VARIABLES: [(&str, &str); 15] = [
    ("new", "record"),
    ("old", "record"),
    ("tg_name", "text"),
    ("tg_when", "text"),
    ("tg_level", "text"),
    ("tg_op", "text"),
    ("tg_relid", "text"),
    ("tg_relname", "text"),
    ("tg_table_name", "text"),
    ("tg_table_schema", "text"),
    ("tg_nargs", "text"),
    ("tg_argv", "text"),
    ("tg_event", "text"),
    ("tg_tag", "text"),
    ("tg_extra", "text"),
];

fn written(argument: &Argument, words: &Words) -> String {
    let mode = match argument.mode {
        // To the body it is an array like any other, and the library knows no arrays.
        Mode::In | Mode::Variadic => "IN",
        Mode::Out | Mode::Table => "OUT",
        Mode::InOut => "INOUT",
    };
    let type_name = types::stand_in(&argument.type_name, words.has_fields(&argument.name));
    match argument.name.is_empty() {
        true => format!("{mode} {type_name}"),
        false => format!("{mode} {} {type_name}", quoted(&argument.name)),
    }
}

fn returns(definition: &Definition, arguments: &[Argument], words: &Words) -> String {
    if definition.is_procedure {
        return String::new();
    }
    let result = definition.returns.to_ascii_lowercase();
    let outputs: Vec<&Argument> = arguments
        .iter()
        .filter(|argument| matches!(argument.mode, Mode::Out | Mode::InOut | Mode::Table))
        .collect();
    let set = result.starts_with("setof ") || result.starts_with("table");
    match (set, outputs.as_slice()) {
        (false, [_, ..]) => String::new(),
        (true, [only]) => {
            let one = types::stand_in(&only.type_name, words.has_fields(&only.name));
            format!("RETURNS SETOF {one}")
        }
        (true, [_, ..]) => "RETURNS SETOF record".to_owned(),
        (true, []) => "RETURNS SETOF text".to_owned(),
        (false, []) if result == "void" || result == "event_trigger" => "RETURNS void".to_owned(),
        (false, []) => "RETURNS text".to_owned(),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn dollar_quote(source: &str) -> String {
    let tags = (0..).map(|number| format!("$body{number}$"));
    let mut free = tags.filter(|tag| !source.contains(tag.as_str()));
    free.next().unwrap_or_default()
}

/// The statements of a body in SQL: `prosrc`, or CREATE FUNCTION with an SQL-standard body.
fn sql(source: &str) -> Result<Vec<SqlStatement>, String> {
    let tokens = tokens(source)?;
    let words = Words::of(source, &tokens);
    if words.starts_with(&["create", "or", "replace"]) {
        return Ok(standard(&words));
    }
    let pieces = pg_query::split_with_parser(source).map_err(|error| error.to_string())?;
    let base = source.as_ptr() as usize;
    let statement = |text: &str| {
        let start = text.as_ptr() as usize - base + (text.len() - text.trim_start().len());
        SqlStatement { line: line(source, start), text: text.trim().to_owned() }
    };
    Ok(pieces.into_iter().map(statement).filter(|one| !one.text.is_empty()).collect())
}

/// `... BEGIN ATOMIC a; b; END` or `... RETURN x`, as `pg_get_functiondef` writes it. Semicolons
/// separate statements and nothing else there.
fn standard(words: &Words) -> Vec<SqlStatement> {
    let list = &words.list;
    let text = |from: usize, to: usize| {
        let (start, end) = (words.starts[from], words.ends[to - 1]);
        SqlStatement {
            line: line(words.text, start),
            text: words.text.get(start..end).unwrap_or_default().to_owned(),
        }
    };
    let atomic = list.windows(2).position(|pair| pair[0] == "begin" && pair[1] == "atomic");
    let Some(begin) = atomic else {
        let Some(at) = list.iter().position(|word| word == "return") else { return Vec::new() };
        if at + 1 >= list.len() {
            return Vec::new();
        }
        let mut statement = text(at + 1, list.len());
        statement.text = format!("SELECT {}", statement.text.trim_end_matches(';'));
        return vec![statement];
    };
    let end = list.iter().rposition(|word| word == "end").unwrap_or(list.len());
    let mut statements = Vec::new();
    let mut from = begin + 2;
    for (at, word) in list.iter().enumerate().take(end).skip(begin + 2) {
        if word == ";" {
            if at > from {
                statements.push(text(from, at));
            }
            from = at + 1;
        }
    }
    if end > from {
        statements.push(text(from, end));
    }
    statements
}

/// Counted from 1.
fn line(text: &str, position: usize) -> u32 {
    let before = &text.as_bytes()[..position.min(text.len())];
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks + 1).unwrap_or(u32::MAX)
}
