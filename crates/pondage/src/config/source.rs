//! The text of a configuration file, for places and excerpts. Excerpts end where a covered part
//! begins: secrets, and values of keys that nobody knows (a misspelt `password` holds a secret).

use std::ops::Range;
use std::sync::Arc;

use super::options::{Section, TABLE};
use super::report::{Excerpt, Place, Problem};

/// Longer lines are cut in excerpts, in characters.
const LINE_SHOWN_MAX: usize = 160;

pub(super) struct Source<'a> {
    name: Arc<str>,
    text: &'a str,
    /// Byte offset of the first character of each line.
    lines: Vec<usize>,
    /// Parts that are never shown.
    covered: Vec<Range<usize>>,
    /// Ends of all values; what follows them on a line is a comment.
    value_ends: Vec<usize>,
}

impl<'a> Source<'a> {
    pub fn new(name: &str, text: &'a str) -> Source<'a> {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Source {
            name: Arc::from(name),
            text,
            lines: std::iter::once(0).chain(starts).collect(),
            covered: Vec::new(),
            value_ends: Vec::new(),
        }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn cover(&mut self, part: Range<usize>) {
        self.covered.push(part);
    }

    pub fn value_ends_at(&mut self, end: usize) {
        self.value_ends.push(end);
    }

    pub fn place(&self, offset: usize) -> Place {
        let (line, range) = self.line(offset);
        let before = self.text.get(range.start..offset).unwrap_or_default();
        Place::File { file: self.name.clone(), line: line + 1, column: before.chars().count() + 1 }
    }

    /// Adds place and excerpt to a problem of a file that is TOML.
    pub fn locate(&self, problem: Problem, span: &Range<usize>) -> Problem {
        let (_, line) = self.line(span.start);
        let touched = |part: &&Range<usize>| part.start < line.end && part.end > line.start;
        let covered = self.covered.iter().filter(touched).map(|part| part.start.max(line.start));
        match covered.min() {
            Some(end) => self.with_excerpt(problem, span, end, true),
            None => self.with_excerpt(problem, span, self.comment(&line), false),
        }
    }

    /// Adds place and excerpt to a problem of a file that can't be parsed, where only the look of
    /// a line tells what it holds.
    pub fn locate_unparsed(&self, problem: Problem, span: &Range<usize>) -> Problem {
        let (_, line) = self.line(span.start);
        let before = self.text.get(..line.start).unwrap_or_default();
        let text = self.text.get(line.clone()).unwrap_or_default();
        if before.contains("\"\"\"") || before.contains("'''") {
            return problem.at(self.place(span.start));
        }
        let Some(equals) = text.find('=') else {
            // A section's header, or who knows what.
            let header = &text[..comment_start(text)];
            return match header.trim_start().starts_with('[') && is_plain(header) {
                true => self.with_excerpt(problem, span, line.start + header.len(), false),
                false => problem.at(self.place(span.start)),
            };
        };
        if !is_plain(&text[..equals]) {
            return problem.at(self.place(span.start));
        }
        let after = &text[equals + 1..];
        if !is_harmless(&text[..equals]) {
            let space = usize::from(after.starts_with(' '));
            return self.with_excerpt(problem, span, line.start + equals + 1 + space, true);
        }
        // A second `=` belongs to a key that has run into this line.
        match after.find('=') {
            Some(_) => problem.at(self.place(span.start)),
            None => self.with_excerpt(problem, span, line.start + comment_start(text), false),
        }
    }

    fn with_excerpt(
        &self,
        mut problem: Problem,
        span: &Range<usize>,
        shown_end: usize,
        covered: bool,
    ) -> Problem {
        let (index, line) = self.line(span.start);
        let shown_end = shown_end.clamp(line.start, line.end);
        let chars = |range: Range<usize>| self.text.get(range).unwrap_or_default().chars();
        let printable = |c: char| match c {
            '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        let shown: Vec<char> = chars(line.start..shown_end).map(printable).collect();
        let before = chars(line.start..span.start).count();
        let width = chars(span.start..span.end.min(line.end).max(span.start)).count().max(1);
        let mut text: String = shown.iter().take(LINE_SHOWN_MAX).collect();
        let visible = shown.len().min(LINE_SHOWN_MAX);
        let cut = covered || shown.len() > LINE_SHOWN_MAX;
        if cut {
            text.push('…');
        }
        let visible = visible + usize::from(cut);
        let caret = (before <= visible).then(|| (before, width.min((visible - before).max(1))));
        let text = text.trim_end().to_owned();
        problem.excerpt = Some(Box::new(Excerpt { line: index + 1, text, caret }));
        problem.at(self.place(span.start))
    }

    /// Index and range of the line that holds `offset`, without its end.
    fn line(&self, offset: usize) -> (usize, Range<usize>) {
        let index = self.lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.lines.get(index).copied().unwrap_or(0);
        let rest = self.text.get(start..).unwrap_or_default();
        let length = rest.find('\n').unwrap_or(rest.len());
        let length = rest.get(..length).map_or(0, |line| line.trim_end_matches('\r').len());
        (index, start..start + length)
    }

    /// Where the comment after the last value of a line starts, or the line's end.
    fn comment(&self, line: &Range<usize>) -> usize {
        let on_line = |end: &&usize| line.contains(end) || **end == line.end;
        let Some(end) = self.value_ends.iter().filter(on_line).max() else { return line.end };
        let rest = self.text.get(*end..line.end).unwrap_or_default();
        rest.find('#').map_or(line.end, |at| end + at)
    }
}

/// Where a comment starts, or one that only looks like it inside of quotes.
fn comment_start(line: &str) -> usize {
    line.find('#').unwrap_or(line.len())
}

/// Whether a text can't be the rest of a string: it has no quotes and no words beside keys.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " \t_-.[]".contains(c))
}

/// Whether what stands left of `=` names only options without secrets.
fn is_harmless(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or_default().trim();
    let mut rows = TABLE.iter().filter(|row| row.name == name).peekable();
    rows.peek().is_some() && rows.all(|row| !row.kind.is_secret())
}

/// As in a file: `databases."my app".users.report`.
pub(super) fn section_path(section: Section, database: &str, user: &str) -> String {
    let key = |name: &str| {
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match !name.is_empty() && name.chars().all(bare) {
            true => name.to_owned(),
            false => super::value::toml_text(name),
        }
    };
    match section {
        Section::Database => format!("databases.{}", key(database)),
        Section::DatabaseUser => format!("databases.{}.users.{}", key(database), key(user)),
        Section::User => format!("users.{}", key(user)),
        Section::Procedure => format!("procedures.{}", key(database)),
        _ => section.path().to_owned(),
    }
}
