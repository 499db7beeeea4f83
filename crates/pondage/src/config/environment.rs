//! Options from environment variables: `PONDAGE_RUNTIME__MAX_CLIENTS`,
//! `PONDAGE_DATABASES__APP__PASSWORD`; with `_FILE` at its end, a secret's variable names the file
//! that holds it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::files;
use super::nearest::nearest;
use super::options::{self, Row, Section, VARIABLE_PREFIX};
use super::report::{Code, Place, Problem};
use super::settings::{Entry, Layer, Scope, Setting, Settings};
use super::value::{Raw, Value};

/// Stands for the configuration of a single server where no database is configured.
pub const DATABASE_URL: &str = "DATABASE_URL";
const DATABASE_URL_FILE: &str = "DATABASE_URL_FILE";

/// The variables that concern Pondage, in the order of their names. `Debug` shows no values.
#[derive(Clone, Default)]
pub struct Environment {
    variables: Vec<(String, Option<String>)>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.variables.iter().map(|(name, _)| name)).finish()
    }
}

impl Environment {
    /// Takes the variables of Pondage out of all.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Environment {
        let mut variables: Vec<(String, Option<String>)> = variables
            .into_iter()
            .filter_map(|(name, value)| {
                let name = name.into().into_string().ok()?;
                let ours = name.starts_with(VARIABLE_PREFIX)
                    || name == DATABASE_URL
                    || name == DATABASE_URL_FILE;
                // A value that is not UTF-8 is a problem of the variable that has it.
                ours.then(|| (name, value.into().into_string().ok()))
            })
            .collect();
        variables.sort();
        Environment { variables }
    }

    /// With this value, unless the variable has one.
    pub fn or(mut self, name: &str, value: &str) -> Environment {
        if !self.has(name) {
            self.variables.push((name.to_owned(), Some(value.to_owned())));
            self.variables.sort();
        }
        self
    }

    /// The URL that stands for a whole configuration, and its variable.
    pub(super) fn database_url(&self) -> Result<Option<(String, Place)>, Problem> {
        for name in [DATABASE_URL, DATABASE_URL_FILE] {
            let Some((_, value)) = self.variables.iter().find(|(known, _)| known == name) else {
                continue;
            };
            let place = Place::Variable(name.to_owned());
            let value = value.as_deref().ok_or_else(|| not_utf8(name))?;
            let url = match name == DATABASE_URL_FILE {
                false => value.to_owned(),
                true => secret_file(value).map_err(|problem| problem.at(place.clone()))?,
            };
            return Ok(Some((url, place)));
        }
        Ok(None)
    }

    pub fn has_database_url(&self) -> bool {
        self.variables.iter().any(|(name, _)| name == DATABASE_URL || name == DATABASE_URL_FILE)
    }

    /// Whether there is a variable of this name.
    pub fn has(&self, name: &str) -> bool {
        self.variables.iter().any(|(known, _)| known == name)
    }

    /// Reads every variable. Sections that `known` has are found by their name in capitals with
    /// `_` for what is no letter or digit; other names are taken in lower case.
    pub(super) fn read(&self, known: &Settings) -> (Vec<Entry>, Vec<Problem>) {
        let mut entries = Vec::new();
        let mut problems = Vec::new();
        for (name, value) in &self.variables {
            let Some(rest) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
            if is_service_link(rest) {
                continue;
            }
            let place = Place::Variable(name.clone());
            let entry = target(rest, known).and_then(|(scope, target)| {
                let value = value.as_deref().ok_or_else(|| not_utf8(name))?;
                let (row, value) = match target {
                    Target::Option(row) => (row, row.kind.read(row.name, &Raw::Bare(value), None)?),
                    Target::SecretFile(row) => (row, Value::Secret(secret_file(value)?)),
                };
                let setting =
                    Setting { value, layer: Layer::Environment, place: place.clone(), span: None };
                Ok(Entry { scope, row, setting })
            });
            match entry {
                Ok(entry) if has(&entries, &entry) => {
                    let option = entry.row.name;
                    let message = format!("another variable says `{option}` already");
                    problems.push(Problem::new(Code::SaidTwice, message).at(place));
                }
                Ok(entry) => entries.push(entry),
                Err(problem) => problems.push(problem.at(place)),
            }
        }
        (entries, problems)
    }
}

fn has(entries: &[Entry], entry: &Entry) -> bool {
    entries.iter().any(|known| known.scope == entry.scope && known.row.name == entry.row.name)
}

fn not_utf8(name: &str) -> Problem {
    Problem::new(Code::BadValue, format!("the value of {name} is not UTF-8"))
        .at(Place::Variable(name.to_owned()))
}

fn secret_file(path: &str) -> Result<String, Problem> {
    files::read_secret(Path::new(path)).map_err(|why| unreadable(&PathBuf::from(path), &why))
}

pub(super) fn unreadable(path: &Path, why: &str) -> Problem {
    Problem::new(Code::FileUnreadable, format!("can't use {}: {why}", path.display()))
}

/// Kubernetes sets such variables for every Service of a namespace, so also for one that is
/// called `pondage` or `pondage-http`.
///
/// Source: Kubernetes documentation, "Service", environment variables.
fn is_service_link(rest: &str) -> bool {
    if rest.contains("__") {
        return false;
    }
    let rest = match rest.find("SERVICE_").or_else(|| rest.find("PORT")) {
        Some(0) => rest,
        Some(at) if rest[..at].ends_with('_') => &rest[at..],
        _ => return false,
    };
    let is_port = |text: &str| {
        text.split('_')
            .next()
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    match rest.strip_prefix("PORT") {
        Some("") => true,
        Some(more) => more.strip_prefix('_').is_some_and(is_port),
        None => {
            rest == "SERVICE_HOST" || rest == "SERVICE_PORT" || rest.starts_with("SERVICE_PORT_")
        }
    }
}

enum Target {
    Option(&'static Row),
    /// The variable names a file that holds the secret.
    SecretFile(&'static Row),
}

fn target(rest: &str, known: &Settings) -> Result<(Scope, Target), Problem> {
    let parts: Vec<&str> = rest.split("__").collect();
    let (scope, option) = match parts.as_slice() {
        ["LISTEN", "TLS", option] => (Scope::fixed(Section::ListenTls), option),
        ["DATABASES", database, "USERS", user, option] => {
            let database = existing(known, Section::Database, None, database)?;
            let user = existing(known, Section::DatabaseUser, Some(&database), user)?;
            (Scope::database_user(&database, &user), option)
        }
        ["DATABASES", database, option] => {
            (Scope::database(&existing(known, Section::Database, None, database)?), option)
        }
        ["PROCEDURES", name, option] => {
            (Scope::procedure(&existing(known, Section::Procedure, None, name)?), option)
        }
        ["USERS", user, option] => {
            (Scope::user(&existing(known, Section::User, None, user)?), option)
        }
        [section, option] => {
            let section = Section::ALL.into_iter().find(|candidate| {
                !candidate.has_name() && candidate.path().eq_ignore_ascii_case(section)
            });
            match section {
                Some(section) => (Scope::fixed(section), option),
                None => return Err(unknown(rest, &parts)),
            }
        }
        _ => return Err(unknown(rest, &parts)),
    };
    let option = option.to_ascii_lowercase();
    // The content of a secret's file counts here, so that it is as strong as the variable.
    let secret = option
        .strip_suffix("_file")
        .and_then(|name| options::find(scope.section, name))
        .filter(|row| row.kind.is_secret());
    if let Some(row) = secret {
        return Ok((scope, Target::SecretFile(row)));
    }
    match options::find(scope.section, &option) {
        Some(row) => Ok((scope, Target::Option(row))),
        None => Err(unknown(rest, &parts)),
    }
}

/// The name of a section that `part` of a variable means.
fn existing(
    known: &Settings,
    section: Section,
    database: Option<&str>,
    part: &str,
) -> Result<String, Problem> {
    let mut matches: Vec<&str> = known
        .of(section)
        .map(|(scope, _)| scope)
        .filter(|scope| database.is_none_or(|database| scope.database == database))
        .map(|scope| match section {
            Section::Database | Section::Procedure => scope.database.as_str(),
            _ => scope.user.as_str(),
        })
        .filter(|name| capitals(name) == part)
        .collect();
    match (matches.pop(), matches.pop()) {
        // What its schema is, capitals don't tell.
        (None, _) if section == Section::Procedure => Err(Problem::new(
            Code::UnknownVariable,
            format!("`{part}` stands for no procedure that the configuration file has"),
        )
        .help("name it there: `[procedures.\"schema.name\"]`")),
        (None, _) => Ok(part.to_ascii_lowercase()),
        (Some(name), None) => Ok(name.to_owned()),
        (Some(one), Some(other)) => Err(Problem::new(
            Code::UnknownVariable,
            format!("`{part}` stands for both `{other}` and `{one}`"),
        )
        .help("set this in the configuration file")),
    }
}

fn capitals(name: &str) -> String {
    let capital = |c: char| if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(capital).collect()
}

fn unknown(rest: &str, parts: &[&str]) -> Problem {
    let problem = Problem::new(
        Code::UnknownVariable,
        format!("environment variable {VARIABLE_PREFIX}{rest} names no option"),
    );
    let names = [parts.get(1).copied().unwrap_or("NAME"), parts.get(3).copied().unwrap_or("NAME")];
    let known: Vec<String> = Section::ALL
        .into_iter()
        .flat_map(|section| options::rows(section).map(move |row| row.variable(section)))
        .map(|variable| {
            names.iter().fold(variable, |variable, name| {
                variable.replacen("NAME__", &format!("{name}__"), 1)
            })
        })
        .collect();
    let stripped = known.iter().filter_map(|variable| variable.strip_prefix(VARIABLE_PREFIX));
    match nearest(rest, stripped) {
        Some(near) => problem.help(format!("did you mean {VARIABLE_PREFIX}{near}?")),
        None => problem.help("variables are called PONDAGE_SECTION__KEY"),
    }
}
