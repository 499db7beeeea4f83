//! The words of a PL/pgSQL body, and its declarations with types that the parser knows.
//!
//! The parser's library has no catalogue. It takes the types of `pg_catalog` and mistakes others,
//! so each type becomes one of three that make no difference to how the body is parsed: `record`
//! for what has fields, `refcursor`, and `text` for all else. A type of another name is one with
//! fields if its variable is ever used with one.

use std::collections::BTreeSet;

use pg_query::protobuf::ScanToken;

/// The tokens of a text.
pub(super) struct Words<'a> {
    pub text: &'a str,
    /// Each token as it is compared: names folded and without their quotes. What was quoted
    /// begins with a quote so that it is no keyword.
    pub list: Vec<String>,
    pub starts: Vec<usize>,
    pub ends: Vec<usize>,
}

impl<'a> Words<'a> {
    pub fn of(text: &'a str, tokens: &[ScanToken]) -> Words<'a> {
        let range = |token: &ScanToken| (token.start.max(0) as usize, token.end.max(0) as usize);
        let (starts, ends): (Vec<usize>, Vec<usize>) = tokens.iter().map(range).unzip();
        let word = |(start, end): (&usize, &usize)| {
            let word = text.get(*start..*end).unwrap_or_default();
            if word.starts_with('"') {
                word.to_owned()
            } else {
                word.to_lowercase()
            }
        };
        let list = starts.iter().zip(&ends).map(word).collect();
        Words { text, list, starts, ends }
    }

    pub fn starts_with(&self, words: &[&str]) -> bool {
        self.list.len() >= words.len() && self.list.iter().zip(words).all(|(a, b)| a == b)
    }

    pub fn is(&self, at: usize, word: &str) -> bool {
        self.list.get(at).is_some_and(|other| other == word)
    }

    /// Whether the variable stands before a dot anywhere.
    pub fn has_fields(&self, variable: &str) -> bool {
        let before_dot = |pair: &[String]| pair[1] == "." && plain(&pair[0]) == variable;
        !variable.is_empty() && self.list.windows(2).any(before_dot)
    }

    /// `<<label>>`.
    pub fn labels(&self) -> Vec<String> {
        let labels = self.list.windows(3).filter(|w| w[0] == "<<" && w[2] == ">>");
        labels.map(|w| plain(&w[1])).collect()
    }

    /// Aliases and what they are for.
    pub fn aliases(&self) -> Vec<(String, String)> {
        let windows = self.list.windows(4).filter(|w| w[1] == "alias" && w[2] == "for");
        windows.map(|w| (plain(&w[0]), plain(&w[3]))).collect()
    }

    /// Every name in the text that may be one of a variable: `a`, and `a.b` for the field of one.
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for at in 0..self.list.len() {
            if at > 0 && self.is(at - 1, ".") {
                continue;
            }
            let word = &self.list[at];
            let named = word.starts_with(|c: char| c.is_alphabetic() || "_\"$".contains(c));
            if !named {
                continue;
            }
            match (self.is(at + 1, "."), self.list.get(at + 2)) {
                (true, Some(field)) => names.insert(format!("{}.{}", plain(word), plain(field))),
                _ => names.insert(plain(word)),
            };
        }
        names
    }
}

/// A name without its quotes.
pub(super) fn plain(word: &str) -> String {
    match word.strip_prefix('"').and_then(|word| word.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => word.to_owned(),
    }
}

/// Types that have no fields, whatever table has the name of their variable.
const SCALARS: [&str; 34] = [
    "bigint",
    "bit",
    "bool",
    "boolean",
    "bpchar",
    "bytea",
    "char",
    "character",
    "citext",
    "date",
    "decimal",
    "double",
    "float",
    "float4",
    "float8",
    "inet",
    "int",
    "int2",
    "int4",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "name",
    "numeric",
    "oid",
    "real",
    "smallint",
    "text",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
];

/// A type that means to the parser what this one does.
pub(super) fn stand_in(type_name: &str, has_fields: bool) -> &'static str {
    let name = type_name.trim().to_ascii_lowercase();
    let first = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let array = name.ends_with(']') || name.contains(" array");
    match first {
        _ if array => "text",
        "refcursor" => "refcursor",
        "record" => "record",
        _ if name.ends_with("%rowtype") => "record",
        _ if SCALARS.contains(&first) && !name.contains('.') && !name.contains('%') => "text",
        "varchar" => "text",
        _ if has_fields => "record",
        _ => "text",
    }
}

/// The text with other types in its DECLARE sections. Lines stay where they are.
pub(super) fn replaced(words: &Words) -> String {
    let mut out = String::with_capacity(words.text.len());
    let mut copied = 0;
    for (from, to, variable) in declared_types(words) {
        let (start, end) = (words.starts[from], words.ends[to - 1]);
        let old = words.text.get(start..end).unwrap_or_default();
        out.push_str(words.text.get(copied..start).unwrap_or_default());
        out.push_str(stand_in(old, words.has_fields(&variable)));
        out.extend(old.chars().filter(|letter| *letter == '\n'));
        copied = end;
    }
    out.push_str(words.text.get(copied..).unwrap_or_default());
    out
}

/// First and last (exclusive) token of each type, and what has it.
fn declared_types(words: &Words) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.list.len() {
        if !words.is(at, "declare") {
            at += 1;
            continue;
        }
        at += 1;
        while at < words.list.len() && !words.is(at, "begin") {
            at = declaration(words, at, &mut found);
        }
    }
    found
}

/// From the name of a variable to behind its semicolon.
fn declaration(words: &Words, at: usize, found: &mut Vec<(usize, usize, String)>) -> usize {
    let variable = plain(&words.list[at]);
    let end = until(words, at, &[";"]);
    let mut from = at + 1;
    if words.is(at, "declare") || words.is(at, "<<") {
        return at + 1;
    }
    if words.is(from, "constant") {
        from += 1;
    }
    let cursor = ["cursor", "scroll", "no"].iter().any(|word| words.is(from, word));
    if cursor {
        let open = (from..end).find(|place| words.is(*place, "("));
        let query = until(words, from, &["for", "is", ";"]);
        if let Some(open) = open.filter(|open| *open < query) {
            cursor_arguments(words, open, query, found);
        }
    } else if !words.is(from, "alias") {
        let stop = until(words, from, &[";", ":=", "=", "default", "not"]);
        if stop > from && stop <= words.list.len() {
            found.push((from, stop, variable));
        }
    }
    end + 1
}

fn cursor_arguments(
    words: &Words,
    open: usize,
    query: usize,
    found: &mut Vec<(usize, usize, String)>,
) {
    let mut at = open + 1;
    while at + 1 < query {
        let stop = until(words, at, &[",", ")"]).min(query);
        if stop > at + 1 {
            found.push((at + 1, stop, plain(&words.list[at])));
        }
        at = stop + 1;
    }
}

/// The first of these outside of parentheses and brackets, or the end.
fn until(words: &Words, from: usize, stops: &[&str]) -> usize {
    let mut depth = 0usize;
    for at in from..words.list.len() {
        let word = words.list[at].as_str();
        if depth == 0 && stops.contains(&word) {
            return at;
        }
        match word {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words.list.len()
}
