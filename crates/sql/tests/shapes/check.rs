//! Everything that is claimed about a text.

use std::collections::BTreeSet;

use pg_query::protobuf::Token;
use sql::{Analysis, Literal, LiteralKind, Name, Parser, PostgresParser, Scan, Statement, Use};

use crate::dice::Dice;
use crate::trees::{blanked, constants, names, tree};

pub enum Outcome {
    /// By the scanner.
    Refused,
    /// By the parser, of whatever the scanner made a shape.
    Unparsed,
    /// One statement, without a tree to compare.
    Utility,
    /// One statement, all claims are true.
    Plain { parameters: usize, shape: Vec<u8>, tree: serde_json::Value },
}

pub fn check(text: &str, dice: &mut Dice) -> Outcome {
    let mut scan = Scan::new();
    if !scan.scan(text.as_bytes()) {
        // The analysis is not to panic for such a text either.
        let _ = PostgresParser.analyse(text, &[]);
        return Outcome::Refused;
    }
    let Ok(analysis) = PostgresParser.analyse(text, scan.literals()) else {
        return Outcome::Unparsed;
    };
    assert_eq!(analysis.statements, 1, "{text}");
    literals_are_those_of_the_lexer(text, &scan);
    if matches!(analysis.statement, Statement::Other(_)) {
        return Outcome::Utility;
    }
    let parsed = tree(text);
    constants_have_their_values(text, &scan, &constants(&parsed));
    no_name_is_missed(text, &analysis);

    let blank = blanked(parsed, &[]);
    let back = put_back(&scan, |_, literal| text[range(literal)].to_owned());
    assert!(blanked(tree(&back), &[]) == blank, "{text}\n{back}");
    for _ in 0..2 {
        other_values_change_nothing(text, &scan, &analysis, &blank, dice);
    }

    let mut kinds = Vec::new();
    let prepared = put_back(&scan, |number, literal| match analysis.literals[number] {
        Use::Fixed => text[range(literal)].to_owned(),
        Use::Parameter(oid) => {
            assert_eq!(oid, literal.kind.oid(), "{text}");
            kinds.push(literal.kind);
            format!("${}", kinds.len())
        }
    });
    assert!(blanked(tree(&prepared), &kinds) == blank, "{text}\n{prepared}");
    Outcome::Plain { parameters: kinds.len(), shape: scan.shape().to_vec(), tree: blank }
}

fn range(literal: &Literal) -> std::ops::Range<usize> {
    literal.start as usize..literal.end as usize
}

/// The shape with something in place of each literal.
fn put_back(scan: &Scan, mut put: impl FnMut(usize, &Literal) -> String) -> String {
    let mut text = Vec::new();
    let mut from = 0;
    for (number, literal) in scan.literals().iter().enumerate() {
        text.extend_from_slice(&scan.shape()[from..literal.at as usize]);
        text.extend_from_slice(put(number, literal).as_bytes());
        from = literal.at as usize + 1;
    }
    text.extend_from_slice(&scan.shape()[from..]);
    String::from_utf8(text).expect("UTF-8")
}

fn literals_are_those_of_the_lexer(text: &str, scan: &Scan) {
    let tokens = pg_query::scan_tokens(text).expect("tokens");
    let lexed: Vec<(usize, usize, bool)> = tokens
        .iter()
        .filter(|token| [Token::Iconst, Token::Fconst, Token::Sconst].contains(&token.token()))
        .map(|token| (token.start as usize, token.end as usize, token.token() == Token::Sconst))
        .collect();
    let scanned: Vec<(usize, usize, bool)> = scan
        .literals()
        .iter()
        .map(|literal| {
            let written = &text[range(literal)];
            let number = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
            let sign = match written.starts_with('-') {
                true => {
                    let rest = written.trim_end_matches(number).len();
                    rest + usize::from(written[rest..].starts_with('-'))
                }
                false => 0,
            };
            let text = literal.kind == LiteralKind::Text;
            (literal.start as usize + sign, literal.end as usize, text)
        })
        .collect();
    assert_eq!(scanned, lexed, "{text}");
}

/// Each constant of the tree where a literal begins is that literal.
fn constants_have_their_values(text: &str, scan: &Scan, constants: &[(u32, LiteralKind, String)]) {
    for literal in scan.literals() {
        let found = constants.iter().find(|(location, _, _)| *location == literal.start);
        let Some((_, kind, value)) = found else { continue };
        assert_eq!(literal.kind, *kind, "{text}");
        let mut ours = Vec::new();
        literal.put_value(text.as_bytes(), &mut ours);
        let ours = String::from_utf8(ours).expect("UTF-8");
        let same = match kind {
            LiteralKind::Int4 => ours.parse::<i64>().ok() == value.parse::<i64>().ok(),
            _ => ours == *value,
        };
        assert!(same, "{text}: {ours} is {value}");
    }
}

fn no_name_is_missed(text: &str, analysis: &Analysis) {
    let all = names(&tree(text));
    let shown = |names: &[Name]| names.iter().map(Name::to_string).collect::<BTreeSet<_>>();
    let missed = |all: &BTreeSet<String>, found: BTreeSet<String>| {
        let missed: Vec<String> = all.difference(&found).cloned().collect();
        assert!(missed.is_empty(), "{text}\nmisses {missed:?}");
    };
    missed(&all.functions, shown(&analysis.functions));
    missed(&all.operators, shown(&analysis.operators));
    missed(&all.types, shown(&analysis.types));
    let mut relations = shown(&analysis.relations);
    relations.extend(analysis.written.as_ref().map(Name::to_string));
    // Those that a lock or INTO names; such a statement is no read.
    if analysis.obstacles.is_empty() {
        missed(&all.relations, &relations | &all.with);
    }
    // The parser's own iterators, as far as they go.
    let parsed = pg_query::parse(text, 0).expect("a tree");
    let last_two = |name: &str| {
        let from = name.rmatch_indices('.').nth(1).map_or(0, |(dot, _)| dot + 1);
        name[from..].to_owned()
    };
    let calls = parsed.functions.iter().map(|(name, _)| last_two(name)).collect();
    missed(&calls, shown(&analysis.functions));
}

fn other_values_change_nothing(
    text: &str,
    scan: &Scan,
    analysis: &Analysis,
    blank: &serde_json::Value,
    dice: &mut Dice,
) {
    let mut border = false;
    let other = put_back(scan, |_, literal| {
        let signed = text[range(literal)].starts_with('-');
        let value = other_value(literal.kind, signed, dice);
        // The numbers whose type depends on a sign that may not be next to them.
        border |= ["2147483648", "9223372036854775808"].contains(&value.trim_start_matches('-'));
        value
    });
    let mut again = Scan::new();
    if !again.scan(other.as_bytes()) {
        assert!(border, "{text}\n{other}");
        return;
    }
    assert_eq!(again.shape(), scan.shape(), "{text}\n{other}");
    assert!(blanked(tree(&other), &[]) == *blank, "{text}\n{other}");
    let other_analysis = PostgresParser.analyse(&other, again.literals()).expect("an analysis");
    assert_eq!(other_analysis, *analysis, "{text}\n{other}");
}

fn other_value(kind: LiteralKind, signed: bool, dice: &mut Dice) -> String {
    let sign = if signed { dice.one_of(&["", "-"]) } else { "" };
    let number = match (kind, sign) {
        (LiteralKind::Int4, "-") => dice.one_of(&["0", "1", "00042", "2147483647", "2147483648"]),
        (LiteralKind::Int4, _) => dice.one_of(&["0", "1", "00042", "2147483647"]),
        (LiteralKind::Int8, "-") => {
            dice.one_of(&["2147483649", "9223372036854775807", "9223372036854775808"])
        }
        (LiteralKind::Int8, _) => {
            dice.one_of(&["2147483648", "0099999999999", "9223372036854775807"])
        }
        (LiteralKind::Numeric, _) => {
            dice.one_of(&["1.5", "2.", ".25", "1e3", "4.E-2", "99999999999999999999"])
        }
        (LiteralKind::Text, _) => {
            return dice
                .one_of(&[
                    "''",
                    "'a'",
                    "'it''s'",
                    "'; select 1'",
                    "' -- '",
                    "'/*'",
                    "'\u{fc}\n\"$1'",
                ])
                .to_owned()
        }
    };
    format!("{sign}{number}")
}
