//! PostgreSQL's parser as a library, and the way to it and back.

use pg_query::protobuf::{ScanToken, Token};

use super::reads::Blocks;
use super::tree::{Node, Value};
use super::walk::Walk;
use super::{Analysis, Call, Parser, Reads, Statement, Unparsed, Use, Write};
use crate::scan::{Literal, LiteralKind, TEXT_MAX};
use crate::select::Selected;

/// libpg_query: the parser of PostgreSQL 18.
#[derive(Debug, Clone, Copy, Default)]
pub struct PostgresParser;

impl Parser for PostgresParser {
    fn analyse(&self, text: &str, literals: &[Literal]) -> Result<Analysis, Unparsed> {
        let nothing = |statement, statements| Analysis {
            statement,
            statements,
            obstacles: Vec::new(),
            relations: Vec::new(),
            written: None,
            functions: Vec::new(),
            operators: Vec::new(),
            types: Vec::new(),
            columns: Vec::new(),
            parameters: 0,
            literals: vec![Use::Fixed; literals.len()],
            assigns_texts: false,
        };
        if text.len() > TEXT_MAX {
            return Err(Unparsed(format!("more than {TEXT_MAX} bytes")));
        }
        // The library can't return an empty list of tokens.
        if text.bytes().all(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
            return Ok(nothing(Statement::Other(""), 0));
        }
        let tokens = pg_query::scan_tokens(text).map_err(unparsed)?;
        let statements = pg_query::split_with_parser(text).map_err(unparsed)?.len();
        let first = first_word(text, &tokens);
        // Trees of the other statements are of no use, and the library's parse() looks into them
        // with assertions that end the process.
        if statements != 1 || !WITH_TREE.contains(&first) {
            return Ok(nothing(Statement::Other(first), statements));
        }
        let statement = tree(text)?;
        let mut analysis = nothing(statement_of(&statement, first), 1);
        let mut walk = Walk::new(&mut analysis);
        walk.statement(&statement)?;
        let (compared, assigned) = (walk.compared, walk.assigned);
        if analysis.parameters == 0 && lines_up(&tokens, text, literals) {
            for (literal, r#use) in literals.iter().zip(&mut analysis.literals) {
                let constant = (literal.start, literal.kind);
                let is_assigned = assigned.contains(&constant);
                if is_assigned || compared.contains(&constant) {
                    *r#use = Use::Parameter(literal.kind.oid());
                    analysis.assigns_texts |= is_assigned && literal.kind == LiteralKind::Text;
                }
            }
        }
        tidy(&mut analysis);
        Ok(analysis)
    }

    fn reads(&self, text: &str, literals: &[Literal]) -> Result<Reads, Unparsed> {
        let analysis = self.analyse(text, &[])?;
        if (analysis.statements, analysis.statement) != (1, Statement::Select) {
            return Err(Unparsed("it is not one SELECT".to_owned()));
        }
        let tokens = pg_query::scan_tokens(text).map_err(unparsed)?;
        let known = lines_up(&tokens, text, literals);
        Blocks::read(&tree(text)?, if known { literals } else { &[] })
    }

    fn select(&self, text: &str, literals: &[Literal]) -> Result<Selected, String> {
        if text.len() > TEXT_MAX {
            return Err(format!("it has more than {TEXT_MAX} bytes"));
        }
        let Some((statement, literals)) = single(text, literals, &["SELECT", "TABLE"]) else {
            return Err("it is not one SELECT".to_owned());
        };
        Selected::of(&statement, literals)
    }

    fn write(&self, text: &str, literals: &[Literal]) -> Option<Write> {
        let (statement, literals) = single(text, literals, &WITH_TREE)?;
        Write::of(&statement, literals)
    }

    fn call(&self, text: &str, literals: &[Literal]) -> Option<Call> {
        let (statement, literals) = single(text, literals, &["CALL", "SELECT"])?;
        Call::of(&statement, literals)
    }
}

/// The tree of one statement that begins with one of these words, and its literals as far as they
/// are certain.
fn single<'l>(
    text: &str,
    literals: &'l [Literal],
    words: &[&str],
) -> Option<(Node, &'l [Literal])> {
    let tokens = pg_query::scan_tokens(text).ok()?;
    let one = pg_query::split_with_parser(text).is_ok_and(|statements| statements.len() == 1);
    if !one || !words.contains(&first_word(text, &tokens)) {
        return None;
    }
    let known = lines_up(&tokens, text, literals);
    Some((tree(text).ok()?, if known { literals } else { &[] }))
}

/// Of a text that is one statement.
pub(crate) fn tree(text: &str) -> Result<Node, Unparsed> {
    let parsed = pg_query::parse(text, 0).map_err(unparsed)?;
    let [statement] = parsed.protobuf.stmts.as_slice() else {
        return Err(Unparsed("the parser counts statements in two ways".to_owned()));
    };
    let tree = Node::of(statement).map_err(|e| Unparsed(e.to_string()))?;
    let Value::Node(raw) = tree else { return Err(Unparsed("the tree is empty".to_owned())) };
    let mut fields = raw.fields.into_iter();
    match fields.find(|(name, _)| *name == "stmt") {
        Some((_, Value::Node(statement))) => Ok(statement),
        _ => Err(Unparsed("the tree is empty".to_owned())),
    }
}

/// What begins with one of these has a tree that is looked at.
const WITH_TREE: [&str; 8] =
    ["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];

/// The first words of all other statements, so that they have names that last.
const WITHOUT_TREE: [&str; 45] = [
    "ABORT",
    "ALTER",
    "ANALYSE",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DISCARD",
    "DO",
    "DROP",
    "END",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "IMPORT",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SECURITY",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UNLISTEN",
    "VACUUM",
];

fn unparsed(error: pg_query::Error) -> Unparsed {
    Unparsed(error.to_string())
}

/// In upper case; past comments and opening parentheses. Empty for one that is not known.
fn first_word(text: &str, tokens: &[ScanToken]) -> &'static str {
    let passed = |token: &&ScanToken| {
        ![Token::SqlComment, Token::CComment, Token::Ascii40, Token::Ascii59]
            .contains(&token.token())
    };
    let Some(first) = tokens.iter().find(passed) else { return "" };
    let word = text.get(first.start as usize..first.end as usize).unwrap_or_default();
    let known = WITH_TREE.iter().chain(&WITHOUT_TREE);
    known.copied().find(|known| known.eq_ignore_ascii_case(word)).unwrap_or("")
}

fn statement_of(statement: &Node, first: &'static str) -> Statement {
    match statement.kind {
        "SelectStmt" => Statement::Select,
        "InsertStmt" => Statement::Insert,
        "UpdateStmt" => Statement::Update,
        "DeleteStmt" => Statement::Delete,
        "MergeStmt" => Statement::Merge,
        _ => Statement::Other(first),
    }
}

/// Whether PostgreSQL's own scanner has the same literals.
fn lines_up(tokens: &[ScanToken], text: &str, literals: &[Literal]) -> bool {
    let constants = tokens
        .iter()
        .filter(|token| [Token::Iconst, Token::Fconst, Token::Sconst].contains(&token.token()));
    let starts = constants.map(|token| (token.start as u32, token.end as u32));
    let start = |literal: &Literal| literal.token_start(text.as_bytes());
    starts.eq(literals.iter().map(|literal| (start(literal), literal.end)))
}

fn tidy(analysis: &mut Analysis) {
    fn sorted<T: Ord>(list: &mut Vec<T>) {
        list.sort();
        list.dedup();
    }
    sorted(&mut analysis.obstacles);
    sorted(&mut analysis.relations);
    sorted(&mut analysis.functions);
    sorted(&mut analysis.operators);
    sorted(&mut analysis.types);
    sorted(&mut analysis.columns);
}
