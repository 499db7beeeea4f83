//! Files of `statement` and `query` records that others have published, in a dialect with
//! parameters: `? = 7` or `$1 = 7` below a query, an expected error behind its order, empty lines
//! within it.
//!
//! What they expect is not looked at: it is often another database's answer. PostgreSQL's own is
//! what counts.

use crate::answer::Order;
use crate::pair::Asked;

/// What is run of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub line: usize,
    pub what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// `fails`: the file expects an error.
    Statement {
        sql: String,
        fails: bool,
    },
    Query(Asked),
}

/// Engines that a record may be for; ours is PostgreSQL.
const OURS: [&str; 2] = ["postgres", "postgresql"];

/// The value of a line `$1 = value` or `? = value`; within: none for NULL.
pub fn value_of(line: &str) -> Option<Option<String>> {
    let (name, value) = line.split_once(" = ").or_else(|| Some((line.strip_suffix(" =")?, "")))?;
    let number = name.strip_prefix('$').is_some_and(|number| number.parse::<u16>().is_ok());
    (number || name == "?").then(|| match value {
        "NULL" => None,
        "(empty)" => Some(String::new()),
        value => Some(value.to_owned()),
    })
}

/// The records of a file that are for PostgreSQL, up to `halt`.
///
/// # Errors
/// A line that is none of the dialect, by its number.
pub fn read(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    let mut ours = true;
    while let Some((at, line)) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] | ["graphviz" | "hash-threshold" | "sleep" | "invert_no_upstream", ..] => continue,
            [word, ..] if word.starts_with('#') => continue,
            ["skipif", engine, ..] => ours &= !OURS.contains(engine),
            ["onlyif", engine, ..] => ours &= OURS.contains(engine),
            ["halt", ..] if ours => break,
            ["halt", ..] => ours = true,
            ["statement", expected, ..] => {
                let mut sql = Vec::new();
                while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
                    sql.push(line);
                }
                let what =
                    What::Statement { sql: sql.join("\n"), fails: expected.starts_with("error") };
                steps.extend(ours.then_some(Step { line: at + 1, what }));
                ours = true;
            }
            ["query", more @ ..] => {
                let mut sql = Vec::new();
                let mut values = Vec::new();
                loop {
                    let Some((_, line)) = lines.next() else {
                        return Err(format!("line {}: a query without results", at + 1));
                    };
                    if line.starts_with("----") {
                        break;
                    }
                    match value_of(line) {
                        Some(value) => values.push((line, value)),
                        None if values.is_empty() => sql.push(line),
                        None => return Err(format!("line {}: {line:?} among values", at + 1)),
                    }
                }
                while lines.next_if(|(_, line)| !line.is_empty()).is_some() {}
                let asked = asked(&sql.join("\n"), values, order(more));
                steps.extend(ours.then_some(Step { line: at + 1, what: What::Query(asked) }));
                ours = true;
            }
            _ => return Err(format!("line {}: {line:?}", at + 1)),
        }
    }
    Ok(steps)
}

fn order(words: &[&str]) -> Order {
    if words.contains(&"rowsort") {
        Order::Rows
    } else if words.contains(&"valuesort") {
        Order::Values
    } else {
        Order::Kept
    }
}

fn asked(sql: &str, values: Vec<(&str, Option<String>)>, order: Order) -> Asked {
    let positional = values.iter().any(|(line, _)| line.starts_with('?'));
    let sql = if positional { numbered(sql) } else { sql.to_owned() };
    let mut given: Vec<Option<String>> = Vec::new();
    for (at, (line, value)) in values.into_iter().enumerate() {
        let number = line.strip_prefix('$').and_then(|line| line.split(' ').next()?.parse().ok());
        let place: usize = number.map_or(at, |number: usize| number.saturating_sub(1));
        if given.len() <= place {
            given.resize(place + 1, None);
        }
        given[place] = value;
    }
    Asked { sql: sql.trim().trim_end_matches(';').to_owned(), values: given, order }
}

/// `?` as `$1` and so on, outside of strings and quoted names.
fn numbered(sql: &str) -> String {
    let mut numbered = String::new();
    let (mut quote, mut number) = (None, 0);
    for c in sql.chars() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            _ => {}
        }
        if c == '?' && quote.is_none() {
            number += 1;
            numbered.push_str(&format!("${number}"));
        } else {
            numbered.push(c);
        }
    }
    numbered
}

#[test]
fn a_file_of_the_dialect_is_read() {
    let text = "# a comment\nstatement ok\ncreate table t (a int)\n\n\nonlyif other\nquery I nosort\n\
                select 0\n----\n0\n\nquery IT rowsort\nselect a, '?'\n\nfrom t where a = ? or a = ?\n\
                ? = 7\n? = NULL\n----\n7\n?\n\nskipif other\nstatement error: no\nselect\n\n\
                query  nosort error: ERROR\\ \\ \\\nselect $2, $1\n$1 = x y\n$2 =\n----\n\nhalt\nx";
    let steps = read(text).expect("a file");
    let query = |line, sql: &str, values: &[Option<&str>], order| {
        let values = values.iter().map(|value| value.map(str::to_owned)).collect();
        Step { line, what: What::Query(Asked { sql: sql.to_owned(), values, order }) }
    };
    let statement = |line, sql: &str, fails| Step {
        line,
        what: What::Statement { sql: sql.to_owned(), fails },
    };
    let expected = [
        statement(2, "create table t (a int)", false),
        query(
            12,
            "select a, '?'\n\nfrom t where a = $1 or a = $2",
            &[Some("7"), None],
            Order::Rows,
        ),
        statement(23, "select", true),
        query(26, "select $2, $1", &[Some("x y"), Some("")], Order::Kept),
    ];
    assert_eq!(steps, expected);
    assert!(read("statement ok\nselect 1\n\nwhatever").is_err());
    assert!(read("query I\nselect 1\n").is_err());
}
