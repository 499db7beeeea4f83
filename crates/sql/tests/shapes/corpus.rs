//! PostgreSQL's regression SQL as a list of statements.

use std::fs;
use std::path::Path;

/// Every statement of the corpus, as psql would send it.
pub fn statements() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/regress");
    let entries = fs::read_dir(&directory).expect("the corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    paths.sort();
    let mut statements = Vec::new();
    for path in paths {
        let text = fs::read(&path).expect("a file of the corpus");
        split(&String::from_utf8_lossy(&text), &mut statements);
    }
    statements
}

/// What a text is made of, so far as a splitter has to know.
enum Part {
    Semicolon,
    /// Up to the end of its line, and no part of the statement.
    MetaCommand,
    Other,
}

/// Splits as psql does: at semicolons outside of strings, comments and parentheses. What is left
/// of psql's own language (`:variable`, data behind COPY) makes statements that do not parse, and
/// those are not counted.
fn split(text: &str, statements: &mut Vec<String>) {
    let mut rest = text;
    let mut statement = String::new();
    let mut depth = 0_i32;
    while !rest.is_empty() {
        let (part, length) = part(rest);
        match part {
            Part::MetaCommand => {
                // `\gset`, `\g` and their like send what is there.
                finish(&mut statement, statements);
                depth = 0;
            }
            Part::Semicolon if depth <= 0 => {
                statement.push(';');
                finish(&mut statement, statements);
                depth = 0;
            }
            Part::Semicolon | Part::Other => {
                match &rest[..length] {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                statement.push_str(&rest[..length]);
            }
        }
        rest = &rest[length..];
    }
    finish(&mut statement, statements);
}

fn finish(statement: &mut String, statements: &mut Vec<String>) {
    if !statement.trim_matches([' ', '\t', '\n', ';']).is_empty() {
        statements.push(statement.trim_start().to_owned());
    }
    statement.clear();
}

/// The first part of a text that is not empty, and its length.
fn part(text: &str) -> (Part, usize) {
    let until = |from: usize, end: &str| {
        text[from..].find(end).map_or(text.len(), |found| from + found + end.len())
    };
    let first = text.chars().next().expect("a text that is not empty");
    let length = match first {
        ';' => return (Part::Semicolon, 1),
        '\\' => return (Part::MetaCommand, until(0, "\n")),
        '\'' | '"' => until(1, &first.to_string()),
        '-' if text.starts_with("--") => until(2, "\n"),
        '/' if text.starts_with("/*") => comment(text),
        '$' => dollar_quoted(text).unwrap_or(1),
        letter if letter.is_alphabetic() || letter == '_' => word(text),
        _ => first.len_utf8(),
    };
    (Part::Other, length)
}

/// A word, with the string behind it if it is one with backslashes.
fn word(text: &str) -> usize {
    let in_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let end = text.find(|letter| !in_word(letter)).unwrap_or(text.len());
    if !text[..end].eq_ignore_ascii_case("e") || !text[end..].starts_with('\'') {
        return end;
    }
    let mut escaped = false;
    for (at, letter) in text[end + 1..].char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' => return end + 1 + at + 1,
            _ => {}
        }
    }
    text.len()
}

fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn dollar_quoted(text: &str) -> Option<usize> {
    let tag = text[1..].find('$')? + 2;
    let name = &text[1..tag - 1];
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        && !name.starts_with(|letter: char| letter.is_ascii_digit());
    let end = text[tag..].find(&text[..tag]).filter(|_| is_name)?;
    Some(tag + end + tag)
}
