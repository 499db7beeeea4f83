//! Regular expressions: `/` and what PostgreSQL calls an advanced regular expression.
//!
//! They are run by an engine whose time is linear, for a worker asks them. It has no
//! back-references and no look-around, and what it would read otherwise than PostgreSQL is refused.
//!
//! Source: PostgreSQL's documentation, "POSIX Regular Expressions".

use regex::{Regex, RegexBuilder};

/// Bytes of one compiled.
const COMPILED_BYTES_MAX: usize = 256 << 10;

/// Bytes of one as it is written.
const WRITTEN_BYTES_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct Pattern(Regex);

impl Pattern {
    /// The pattern of a word that begins with `/`.
    ///
    /// # Errors
    /// Why it can't be used, in one line.
    pub fn new(written: &str) -> Result<Pattern, String> {
        if written.len() > WRITTEN_BYTES_MAX {
            return Err(format!("it is longer than {WRITTEN_BYTES_MAX} bytes"));
        }
        reads_alike(written)?;
        RegexBuilder::new(written)
            .dot_matches_new_line(true)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map(Pattern)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                error => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or_default();
                    last.trim_start_matches("error: ").to_owned()
                }
            })
    }

    pub fn fits(&self, name: &str) -> bool {
        self.0.is_match(name)
    }

    /// Whether it fits, and what its first group has taken.
    pub fn first_group<'a>(&self, name: &'a str) -> Option<Option<&'a str>> {
        let found = self.0.captures(name)?;
        Some(found.get(1).map(|group| group.as_str()))
    }

    pub fn has_group(&self) -> bool {
        self.0.captures_len() > 1
    }
}

/// What means one thing in PostgreSQL and another here.
fn reads_alike(written: &str) -> Result<(), String> {
    let mut chars = written.chars().peekable();
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match c {
            '\\' => {
                chars.next();
                if let Some(escaped @ ('b' | 'B' | '<' | '>' | 'p' | 'P' | 'u' | 'U' | 'x')) = next
                {
                    return Err(format!("\\{escaped} is not supported"));
                }
            }
            '[' if !in_brackets => {
                in_brackets = true;
                // A bracket that comes first is one of the characters.
                if next == Some('^') {
                    chars.next();
                }
                if chars.peek() == Some(&']') {
                    chars.next();
                }
            }
            '[' => match next {
                Some(':') => drop(chars.by_ref().find(|c| *c == ']')),
                _ => return Err("write [ inside of brackets as \\[".to_owned()),
            },
            ']' => in_brackets = false,
            '&' | '~' | '-' if in_brackets && next == Some(c) => {
                return Err(format!("{c}{c} inside of brackets is not supported"));
            }
            _ => {}
        }
    }
    match written.starts_with("***") {
        true => Err("*** at the beginning is not supported".to_owned()),
        false => Ok(()),
    }
}
