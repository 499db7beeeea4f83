//! What is wrong with a configuration, for people: every problem has a stable code, the place
//! (file, line and column, or the variable or flag), the source line, and what to do.
//!
//! ```text
//! error[P0103]: unknown key `pool_sise`
//!   --> pondage.toml:22:1
//!    |
//! 22 | pool_sise = …
//!    | ^^^^^^^^^
//!    = help: did you mean `pool_size`?
//! ```
//! No secret is ever part of a report: [`super::source`] covers values before a line gets here.

use std::fmt;
use std::sync::Arc;

/// Problems that a report prints; the rest is counted.
pub const PROBLEMS_PRINTED_MAX: usize = 50;

/// Stable numbers of configuration errors; their meanings stand in [`Code::meaning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    ConfigurationUnreadable,
    Syntax,
    UnknownSection,
    UnknownKey,
    WrongType,
    BadValue,
    MissingUnit,
    BadAddress,
    BadUrl,
    SaidTwice,
    Contradiction,
    MissingValue,
    FileUnreadable,
    BadUsersLine,
    DuplicateAddress,
    BadName,
    UnknownVariable,
    NoDatabase,
    BadSecret,
    TrustTooWide,
    BadHbaLine,
    BadIdentLine,
    OldTls,
    BadNetwork,
}

impl Code {
    pub const ALL: [Code; 24] = [
        Code::ConfigurationUnreadable,
        Code::Syntax,
        Code::UnknownSection,
        Code::UnknownKey,
        Code::WrongType,
        Code::BadValue,
        Code::MissingUnit,
        Code::BadAddress,
        Code::BadUrl,
        Code::SaidTwice,
        Code::Contradiction,
        Code::MissingValue,
        Code::FileUnreadable,
        Code::BadUsersLine,
        Code::DuplicateAddress,
        Code::BadName,
        Code::UnknownVariable,
        Code::NoDatabase,
        Code::BadSecret,
        Code::TrustTooWide,
        Code::BadHbaLine,
        Code::BadIdentLine,
        Code::OldTls,
        Code::BadNetwork,
    ];

    /// `P0100` and on.
    pub fn name(self) -> &'static str {
        self.entry().0
    }

    /// One sentence for the reference page.
    pub fn meaning(self) -> &'static str {
        self.entry().1
    }

    fn entry(self) -> (&'static str, &'static str) {
        match self {
            Code::ConfigurationUnreadable => {
                ("P0100", "The configuration file can't be read, is too large or is not UTF-8.")
            }
            Code::Syntax => {
                ("P0101", "The file is not TOML, or not what PgBouncer takes for an ini file.")
            }
            Code::UnknownSection => ("P0102", "There is no such section."),
            Code::UnknownKey => ("P0103", "There is no such key in this section."),
            Code::WrongType => ("P0104", "The value is of another type than the option."),
            Code::BadValue => ("P0105", "The value is outside of what the option takes."),
            Code::MissingUnit => ("P0106", "A duration is a bare number or its unit is unknown."),
            Code::BadAddress => ("P0107", "An address to listen on can't be understood."),
            Code::BadUrl => ("P0108", "A connection URL can't be understood."),
            Code::SaidTwice => ("P0109", "Two keys of one section say the same thing."),
            Code::Contradiction => ("P0110", "Two options don't go together."),
            Code::MissingValue => ("P0111", "An option needs another one that is absent."),
            Code::FileUnreadable => {
                ("P0112", "A file that the configuration names can't be read or used.")
            }
            Code::BadUsersLine => ("P0113", "A line of the users file can't be understood."),
            Code::DuplicateAddress => ("P0114", "An address to listen on is given twice."),
            Code::BadName => ("P0115", "A database, user or procedure can't have this name."),
            Code::UnknownVariable => {
                ("P0116", "An environment variable starts with PONDAGE_ and names no option.")
            }
            Code::NoDatabase => ("P0117", "No database is configured."),
            Code::BadSecret => ("P0118", "A stored secret is malformed."),
            Code::TrustTooWide => {
                ("P0119", "A URL without password, served on an address that others can reach.")
            }
            Code::BadHbaLine => (
                "P0120",
                "A line of the HBA file can't be understood, or asks for what is not supported.",
            ),
            Code::BadIdentLine => {
                ("P0121", "A line of the file of user name maps can't be understood.")
            }
            Code::OldTls => ("P0122", "A version of TLS that is not offered."),
            Code::BadNetwork => ("P0123", "A network can't be understood."),
        }
    }
}

/// Where a value stands. `Display` gives what follows `-->`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// What a URL of the command line implies.
    CommandLine,
    /// Line and column count from 1; columns count characters.
    File {
        file: Arc<str>,
        line: usize,
        column: usize,
    },
    Variable(String),
    Flag(&'static str),
    /// An ini file of PgBouncer says nothing else.
    PgbouncerDefault,
    /// SET on the console.
    Console,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::CommandLine => f.write_str("the URL on the command line"),
            Place::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Place::Variable(name) => write!(f, "environment variable {name}"),
            Place::Flag(name) => write!(f, "flag {name}"),
            Place::PgbouncerDefault => f.write_str("PgBouncer's default"),
            Place::Console => f.write_str("SET on the console"),
        }
    }
}

/// The source line of a problem, secrets covered, and the part of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub line: usize,
    pub text: String,
    /// Characters before the caret and under it; none when the part is covered.
    pub caret: Option<(usize, usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    /// One line, lower case, without full stop.
    pub message: String,
    pub place: Option<Box<Place>>,
    pub excerpt: Option<Box<Excerpt>>,
    pub help: Vec<String>,
    pub notes: Vec<String>,
}

impl Problem {
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into(),
            place: None,
            excerpt: None,
            help: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn at(mut self, place: Place) -> Problem {
        self.place = Some(Box::new(place));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help.push(help.into());
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Problem {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error[{}]: {}", self.code.name(), self.message)?;
        if let Some(place) = &self.place {
            writeln!(f, "  --> {place}")?;
        }
        let mut margin = 2;
        if let Some(excerpt) = &self.excerpt {
            let number = excerpt.line.to_string();
            margin = number.len();
            writeln!(f, "{:margin$} |", "")?;
            writeln!(f, "{number} | {}", excerpt.text)?;
            if let Some((before, width)) = excerpt.caret {
                writeln!(f, "{:margin$} | {:before$}{}", "", "", "^".repeat(width.max(1)))?;
            }
        }
        for help in &self.help {
            writeln!(f, "{:margin$} = help: {help}", "")?;
        }
        for note in &self.notes {
            writeln!(f, "{:margin$} = note: {note}", "")?;
        }
        Ok(())
    }
}

/// All problems of one configuration, in the order of their places; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub problems: Vec<Problem>,
}

impl Report {
    /// Adds a note to every problem.
    pub fn note(mut self, note: &str) -> Report {
        for problem in &mut self.problems {
            problem.notes.push(note.to_owned());
        }
        self
    }
}

impl From<Problem> for Report {
    fn from(problem: Problem) -> Report {
        Report { problems: vec![problem] }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(PROBLEMS_PRINTED_MAX).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().checked_sub(PROBLEMS_PRINTED_MAX) {
            Some(more) if more > 0 => writeln!(f, "\nand {more} more"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Report {}
