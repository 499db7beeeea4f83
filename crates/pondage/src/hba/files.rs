//! A file and those that it includes, as lines of fields.
//!
//! Source: `tokenize_auth_file` in `src/backend/libpq/hba.c`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tokens::{fields, Token};
use super::{At, Fault};

/// Bytes of one file.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Files in all.
const FILES_MAX: usize = 256;

/// How deep files may include one another. Source: `CONF_FILE_MAX_DEPTH`.
const DEPTH_MAX: usize = 10;

/// Words in all, so also what a log-in may be compared with.
const TOKENS_MAX: usize = 100_000;

/// A line that says something.
#[derive(Debug)]
pub(super) struct Line {
    pub file: Arc<str>,
    pub number: usize,
    pub fields: Vec<Vec<Token>>,
}

impl Line {
    /// Where `token` stands.
    pub fn at(&self, token: &Token) -> At {
        At { file: self.file.clone(), line: self.number, column: token.column }
    }

    /// The end of the line, of which something is missing.
    pub fn end(&self) -> At {
        let last = self.fields.last().and_then(|field| field.last());
        let column = last.map_or(1, |token| token.column + token.text.chars().count());
        At { file: self.file.clone(), line: self.number, column }
    }
}

/// Everything that `file` says, what it includes in its place, and what is wrong.
pub(super) fn read(file: &Path) -> (Vec<Line>, Vec<Fault>) {
    let mut reading = Reading::default();
    let start = At { file: file.display().to_string().into(), line: 1, column: 1 };
    match reading.open(file) {
        Err(error) => reading.fault(start, unreadable(file, &error)),
        Ok(text) => reading.take(file, &text, 0),
    }
    (reading.lines, reading.faults)
}

#[derive(Default)]
struct Reading {
    lines: Vec<Line>,
    faults: Vec<Fault>,
    files: usize,
    tokens: usize,
}

impl Reading {
    fn fault(&mut self, place: At, message: impl Into<String>) {
        self.faults.push(Fault::new(place, message));
    }

    fn open(&mut self, file: &Path) -> io::Result<String> {
        let other = |why: String| io::Error::other(why);
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(other(format!("more than {FILES_MAX} files are included")));
        }
        let mut text = String::new();
        let taken = File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(
            |error| match error.kind() {
                io::ErrorKind::InvalidData => other("it is not UTF-8".to_owned()),
                _ => error,
            },
        )?;
        if taken as u64 > FILE_BYTES_MAX {
            return Err(other(format!("it is longer than {} MB", FILE_BYTES_MAX >> 20)));
        }
        if text.contains('\0') {
            return Err(other("it has a NUL byte".to_owned()));
        }
        Ok(text)
    }

    fn take(&mut self, file: &Path, text: &str, depth: usize) {
        let name: Arc<str> = file.display().to_string().into();
        for (number, line) in whole_lines(text) {
            let mut line = Line { file: name.clone(), number, fields: fields(&line) };
            self.tokens += line.fields.iter().map(Vec::len).sum::<usize>();
            if self.tokens > TOKENS_MAX {
                return self.fault(line.end(), format!("more than {TOKENS_MAX} words in all"));
            }
            self.expand(&mut line, file, depth);
            if line.fields.is_empty() || self.included(&line, file, depth) {
                continue;
            }
            self.lines.push(line);
        }
    }

    /// Puts the words of files that are named `@file` in the place of their names.
    fn expand(&mut self, line: &mut Line, file: &Path, depth: usize) {
        let named =
            |token: &Token| !token.quoted && token.text.len() > 1 && token.text.starts_with('@');
        if !line.fields.iter().flatten().any(named) {
            return;
        }
        for field in std::mem::take(&mut line.fields) {
            let mut words = Vec::new();
            for token in field {
                if !named(&token) {
                    words.push(token);
                    continue;
                }
                let place = line.at(&token);
                let path = beside(file, &token.text[1..]);
                let column = token.column;
                let found = self.words(&path, &place, depth + 1);
                words.extend(found.into_iter().map(|word| Token { column, ..word }));
            }
            if !words.is_empty() {
                line.fields.push(words);
            }
        }
    }

    /// All words of a file, in whatever lines.
    fn words(&mut self, file: &Path, place: &At, depth: usize) -> Vec<Token> {
        if depth > DEPTH_MAX {
            self.fault(place.clone(), format!("files include one another {DEPTH_MAX} deep"));
            return Vec::new();
        }
        let text = match self.open(file) {
            Ok(text) => text,
            Err(error) => {
                self.fault(place.clone(), unreadable(file, &error));
                return Vec::new();
            }
        };
        let name: Arc<str> = file.display().to_string().into();
        let mut words = Vec::new();
        for (number, line) in whole_lines(&text) {
            let mut line = Line { file: name.clone(), number, fields: fields(&line) };
            self.tokens += line.fields.iter().map(Vec::len).sum::<usize>();
            if self.tokens > TOKENS_MAX {
                self.fault(line.end(), format!("more than {TOKENS_MAX} words in all"));
                break;
            }
            self.expand(&mut line, file, depth);
            words.extend(line.fields.into_iter().flatten());
        }
        words
    }

    /// Whether the line was one that includes others.
    fn included(&mut self, line: &Line, file: &Path, depth: usize) -> bool {
        let [first, second] = &line.fields[..] else { return false };
        let (Some(directive), Some(named)) = (first.first(), second.first()) else { return false };
        let optional = match directive.text.as_str() {
            "include" | "include_dir" => false,
            "include_if_exists" => true,
            _ => return false,
        };
        let place = line.at(named);
        if depth + 1 > DEPTH_MAX {
            self.fault(place, format!("files include one another {DEPTH_MAX} deep"));
            return true;
        }
        let path = beside(file, &named.text);
        if directive.text == "include_dir" {
            match directory(&path) {
                Ok(files) => files.iter().for_each(|each| self.include(each, &place, depth, false)),
                Err(error) => self.fault(place, unreadable(&path, &error)),
            }
        } else {
            self.include(&path, &place, depth, optional);
        }
        true
    }

    fn include(&mut self, file: &Path, place: &At, depth: usize, optional: bool) {
        match self.open(file) {
            Ok(text) => self.take(file, &text, depth + 1),
            Err(error) if optional && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.fault(place.clone(), unreadable(file, &error)),
        }
    }
}

/// Lines with those that end in a backslash joined to the next, and the number of their first.
fn whole_lines(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (first, line) = lines.next()?;
        let mut whole = line.trim_end_matches('\r').to_owned();
        // Of two backslashes that come to stand side by side in this way, only one was at an end.
        let mut joined = 0;
        while whole.len() > joined && whole.ends_with('\\') {
            whole.pop();
            joined = whole.len();
            match lines.next() {
                Some((_, more)) => whole.push_str(more.trim_end_matches('\r')),
                None => break,
            }
        }
        Some((first + 1, whole))
    })
}

/// The files `*.conf` of a directory, by name, but for hidden ones.
///
/// Source: `GetConfFilesInDir`.
fn directory(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let counts =
            name.len() > ".conf".len() && !name.starts_with('.') && name.ends_with(".conf");
        if counts && !path.is_dir() {
            if found.len() >= FILES_MAX {
                return Err(io::Error::other(format!("more than {FILES_MAX} files are in it")));
            }
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A path as `file` means it.
fn beside(file: &Path, named: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(named)
}

fn unreadable(file: &Path, error: &io::Error) -> String {
    let text = error.to_string();
    // Without the number of the operating system.
    let why = text.split(" (os error").next().unwrap_or_default();
    format!("can't use {}: {why}", file.display())
}
