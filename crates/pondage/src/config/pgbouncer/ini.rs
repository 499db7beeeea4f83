//! The text of PgBouncer's ini files: sections, `key = value` up to the end of the line, comments
//! that take a whole line, and `%include`. All that is wrong is collected.
//!
//! Source: PgBouncer 1.25's documentation, doc/config.md.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::super::files::{self, FILE_MAX};
use super::super::nearest::nearest;
use super::super::report::{Code, Place, Problem};
use super::super::value::escaped;

/// PgBouncer's bound, too.
const INCLUDE_DEPTH_MAX: usize = 10;

/// A file that includes itself twice would be read 2^10 times.
const FILES_MAX: usize = 100;

pub(super) const PROBLEMS_MAX: usize = 1000;

/// A section of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    Main,
    Databases,
    Users,
    Peers,
}

impl Part {
    const ALL: [(&'static str, Part); 4] = [
        ("pgbouncer", Part::Main),
        ("databases", Part::Databases),
        ("users", Part::Users),
        ("peers", Part::Peers),
    ];
}

/// A line that says something.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub part: Part,
    pub key: String,
    pub value: String,
    pub place: Place,
}

#[derive(Debug, Clone, Default)]
pub struct Ini {
    /// In the order of the file; what is said twice stands here once, as it was said last.
    pub(super) items: Vec<Item>,
    pub(super) problems: Vec<Problem>,
}

impl Ini {
    /// Reads a file and those that it includes.
    pub fn read(path: &Path) -> Ini {
        let mut reader = Reader::default();
        if let Err(why) = reader.file(path, 0) {
            let message = format!("can't read {}: {why}", path.display());
            reader.ini.problems.push(Problem::new(Code::ConfigurationUnreadable, message));
        } else if !reader.has_main {
            let place = Place::File { file: name(path), line: 1, column: 1 };
            reader.complain(
                Problem::new(Code::MissingValue, "there is no section [pgbouncer]")
                    .help("an ini file of PgBouncer has one, even if it is empty"),
                place,
            );
        }
        let mut said = HashSet::new();
        let items = &mut reader.ini.items;
        items.reverse();
        items.retain(|item| said.insert((item.part, item.key.clone())));
        items.reverse();
        reader.ini
    }
}

fn name(path: &Path) -> Arc<str> {
    Arc::from(path.display().to_string())
}

#[derive(Default)]
struct Reader {
    ini: Ini,
    /// Where a line belongs; an included file goes on where it was included. None in a section
    /// that is unknown.
    part: Option<Part>,
    in_section: bool,
    has_main: bool,
    files: usize,
    bytes: u64,
}

impl Reader {
    /// Reads one file, or tells why it can't be read at all.
    fn file(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(format!("it is one of more than {FILES_MAX} files"));
        }
        let text = files::read(path)?;
        self.bytes += text.len() as u64;
        if self.bytes > FILE_MAX {
            return Err(format!("all files together are longer than {} MB", FILE_MAX >> 20));
        }
        let file = name(path);
        for (index, line) in text.lines().enumerate() {
            let content = line.trim();
            let before = line.chars().count() - line.trim_start().chars().count();
            let place = Place::File { file: file.clone(), line: index + 1, column: before + 1 };
            self.line(content, &place, depth);
        }
        Ok(())
    }

    fn line(&mut self, content: &str, place: &Place, depth: usize) {
        if content.is_empty() || content.starts_with([';', '#']) {
            return;
        }
        if let Some(included) =
            content.strip_prefix("%include").filter(|rest| rest.starts_with([' ', '\t']))
        {
            return self.include(included.trim(), place, depth);
        }
        if let Some(header) = content.strip_prefix('[') {
            let Some((section, rest)) = header.split_once(']') else {
                let message = "the section's name has no `]` behind it";
                return self.complain(Problem::new(Code::Syntax, message), place.clone());
            };
            self.section(section, place);
            return self.line(rest.trim(), place, depth);
        }
        let Some((key, value)) = key_and_value(content) else {
            let problem = Problem::new(Code::Syntax, "the line is not `key = value`").help(
                "a name with characters beside letters, digits and _.-* is written in quotes",
            );
            return self.complain(problem, place.clone());
        };
        if !self.in_section {
            let message = format!("`{}` stands before the first section", escaped(&key));
            return self.complain(Problem::new(Code::Syntax, message), place.clone());
        }
        let Some(part) = self.part else { return };
        let value = value.to_owned();
        self.ini.items.push(Item { part, key, value, place: place.clone() });
    }

    fn include(&mut self, included: &str, place: &Place, depth: usize) {
        // The name starts at the directory the process runs in, as in PgBouncer.
        let read = match depth {
            INCLUDE_DEPTH_MAX => Err(format!("files include one another {depth} deep")),
            _ => self.file(Path::new(included), depth + 1),
        };
        if let Err(why) = read {
            let message = format!("can't include {}: {why}", escaped(included));
            self.complain(Problem::new(Code::ConfigurationUnreadable, message), place.clone());
        }
    }

    fn section(&mut self, section: &str, place: &Place) {
        self.in_section = true;
        let known = Part::ALL.iter().find(|(name, _)| *name == section);
        self.part = known.map(|(_, part)| *part);
        self.has_main |= self.part == Some(Part::Main);
        if known.is_none() {
            let message = format!("unknown section `{}`", escaped(section));
            let problem = Problem::new(Code::UnknownSection, message);
            let problem = match nearest(section, Part::ALL.map(|(name, _)| name)) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are [pgbouncer], [databases], [users] and [peers]"),
            };
            self.complain(problem, place.clone());
        }
    }

    fn complain(&mut self, problem: Problem, place: Place) {
        if self.ini.problems.len() < PROBLEMS_MAX {
            self.ini.problems.push(problem.at(place));
        }
    }
}

/// The name, perhaps in quotes, and what follows `=`.
fn key_and_value(line: &str) -> Option<(String, &str)> {
    let (key, rest) = match line.chars().next()? {
        quote @ ('\'' | '"') => quoted(&line[1..], quote)?,
        _ => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.-*".contains(c);
            let end = line.find(|c| !plain(c)).unwrap_or(line.len());
            (line[..end].to_owned(), &line[end..])
        }
    };
    let value = rest.trim_start_matches([' ', '\t']).strip_prefix('=')?;
    (!key.is_empty()).then(|| (key, value.trim()))
}

/// What stands before the closing quote, doubled ones once, and the rest.
pub(super) fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut unquoted = String::new();
    let mut rest = text;
    loop {
        let (piece, after) = rest.split_once(quote)?;
        unquoted.push_str(piece);
        match after.strip_prefix(quote) {
            Some(after) => {
                unquoted.push(quote);
                rest = after;
            }
            None => return Some((unquoted, after)),
        }
    }
}

/// The pairs of a connection string: `host=h password='it''s' pool_size=5`. The last of one name
/// counts.
///
/// # Errors
/// What is wrong with it, without its values.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ', '\t']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let value = after.trim_start().strip_prefix('=').filter(|_| !key.is_empty());
        let Some(value) = value.map(str::trim_start) else {
            return Err("a part of the connection string is not `key=value`".to_owned());
        };
        let key = escaped(key);
        let (value, after) = match value.strip_prefix('\'') {
            Some(open) => quoted(open, '\'').ok_or_else(|| {
                format!(
                    "the value of `{key}` has no closing quote; a quote inside is written twice"
                )
            })?,
            None => {
                let end = value.find([' ', '\t']).unwrap_or(value.len());
                (value[..end].to_owned(), &value[end..])
            }
        };
        if value.is_empty() {
            return Err(format!("`{key}` has no value"));
        }
        pairs.push((key, value));
        rest = after.trim_start();
    }
    Ok(pairs)
}
