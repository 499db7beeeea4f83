//! From flags, environment, file and defaults to a valid [`Config`], or to every reason why not.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::Builder;
use super::document::{self, Sheet};
use super::environment::{unreadable, Environment};
use super::files;
use super::options::{self, Section};
use super::pgbouncer;
use super::postgres_url;
use super::report::{Code, Place, Problem, Report};
use super::settings::{Entry, Layer, Scope, Setting, Settings};
use super::source::Source;
use super::value::{Kind, Raw, Value};
use super::{Config, Origin};

/// What the command line says about options, in the words of the user.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub listen: Vec<String>,
    pub redis: Option<String>,
    pub http: Option<String>,
    pub workers: Option<String>,
    pub log_level: Option<String>,
    pub log_format: Option<String>,
}

/// All that a configuration was made from, so that RELOAD can make it again.
#[derive(Clone)]
pub struct Inputs {
    pub(super) text: Text,
    /// Stands for a whole configuration.
    url: Option<String>,
    environment: Environment,
    flags: Flags,
    /// What SET on the console has said since: names and values. Each name stands there once.
    console: Vec<(String, String)>,
    /// As it was read last: SET does not read files again that may be half edited.
    read: Option<Arc<Read>>,
}

/// What is in a configuration's file.
pub(super) enum Read {
    Toml(String),
    Ini(pgbouncer::Ini),
}

#[derive(Clone)]
pub(super) enum Text {
    None,
    File(PathBuf),
    /// PgBouncer's.
    Ini(PathBuf),
    Given(String),
}

impl Inputs {
    /// PgBouncer's way of things.
    pub(crate) fn is_ini(&self) -> bool {
        matches!(self.text, Text::Ini(_))
    }

    /// A URL says everything that matters, and nobody has written a file.
    pub(super) fn are_a_url(&self) -> bool {
        let by_variable = || self.environment.has_database_url();
        self.url.is_some() || matches!(self.text, Text::None) && by_variable()
    }

    fn new(text: Text, environment: Environment, flags: Flags) -> Inputs {
        Inputs { text, url: None, environment, flags, console: Vec::new(), read: None }
    }
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs")
            .field("environment", &self.environment)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// The name of a text that is in no file.
const UNNAMED: &str = "pondage.toml";

impl Config {
    /// From a file, or without one from the environment alone.
    pub fn load(
        file: Option<&Path>,
        environment: Environment,
        flags: Flags,
    ) -> Result<Config, Report> {
        let text = file.map_or(Text::None, |path| Text::File(path.to_owned()));
        load(Inputs::new(text, environment, flags))
    }

    /// From an ini file of PgBouncer.
    pub fn from_ini(file: &Path, environment: Environment, flags: Flags) -> Result<Config, Report> {
        load(Inputs::new(Text::Ini(file.to_owned()), environment, flags))
    }

    /// One server and every database on it. Clients log in with the user and password of the URL,
    /// who may use the console too; without a password everybody may come in, and only from this
    /// machine.
    pub fn from_url(url: &str, environment: Environment, flags: Flags) -> Result<Config, Report> {
        load(Inputs { url: Some(url.to_owned()), ..Inputs::new(Text::None, environment, flags) })
    }

    /// From TOML alone.
    pub fn from_text(text: &str) -> Result<Config, Report> {
        Config::from_text_and(text, Environment::default(), Flags::default())
    }

    /// From TOML, environment and flags.
    pub fn from_text_and(
        text: &str,
        environment: Environment,
        flags: Flags,
    ) -> Result<Config, Report> {
        load(Inputs::new(Text::Given(text.to_owned()), environment, flags))
    }
}

/// Reads again what `config` was made from, with the flags and variables of the start. What the
/// console has said since is over, as with PgBouncer.
///
/// # Errors
/// Everything that is wrong; `config` stays in force.
pub fn reload(config: &Config) -> Result<Config, Report> {
    load(Inputs { console: Vec::new(), read: None, ..config.inputs.clone() })
        .map_err(|report| report.note("the running configuration is unchanged; reload refused"))
}

/// What `config` was made from, with what the console has said and this option. `name` is one of SHOW CONFIG, or
/// PgBouncer's of `[pgbouncer]` with a value in its units.
///
/// # Errors
/// Everything that is wrong; `config` stays in force.
pub fn set(config: &Config, name: &str, value: &str) -> Result<Config, Report> {
    let mut inputs = config.inputs.clone();
    let ours = |name: &str| pgbouncer::ours(name).unwrap_or_else(|| name.to_owned());
    inputs.console.retain(|(known, _)| ours(known) != ours(name));
    inputs.console.push((name.to_owned(), value.to_owned()));
    load(inputs)
}

fn read(text: &Text) -> Result<Read, Report> {
    Ok(match text {
        Text::None => Read::Toml(String::new()),
        Text::Given(text) => Read::Toml(text.clone()),
        Text::Ini(path) => Read::Ini(pgbouncer::Ini::read(path)),
        Text::File(path) => Read::Toml(files::read(path).map_err(|why| {
            let message = format!("can't read {}: {why}", path.display());
            Problem::new(Code::ConfigurationUnreadable, message)
        })?),
    })
}

fn load(mut inputs: Inputs) -> Result<Config, Report> {
    let read = match inputs.read.take() {
        Some(read) => read,
        None => Arc::new(read(&inputs.text)?),
    };
    inputs.read = Some(read.clone());
    let (name, base) = match &inputs.text {
        Text::None => (String::new(), None),
        Text::Ini(path) => (path.display().to_string(), None),
        Text::Given(_) => (UNNAMED.to_owned(), None),
        Text::File(path) => (path.display().to_string(), path.parent().map(Path::to_owned)),
    };
    let text = match &*read {
        Read::Toml(text) => text,
        Read::Ini(_) => "",
    };
    let mut source = Source::new(&name, text);
    let (sheet, mut notices) = match &*read {
        Read::Ini(ini) => pgbouncer::read(ini, &inputs.console),
        Read::Toml(_) => (document::read(&mut source, base.as_deref()), Vec::new()),
    };
    let (console, console_notices) = console_sheet(&inputs);
    notices.extend(console_notices);
    let (mut settings, mut problems) = layers(sheet, console, &inputs, &source);
    if problems.iter().any(|problem| problem.code == Code::Syntax) {
        // What the file would have said is unknown, so nothing can be said about the whole.
        return Err(Report { problems });
    }
    match implied_url(&inputs, &settings) {
        Ok(None) => {}
        Ok(Some((url, place))) => match imply(&url, &place, &mut notices) {
            Ok(implied) => merge(&mut settings, implied, &source, &mut problems),
            Err(problem) => problems.push(problem.at(place)),
        },
        Err(problem) => problems.push(problem),
    }
    if problems.is_empty() && settings.of(Section::Database).next().is_none() {
        problems.push(
            Problem::new(Code::NoDatabase, "no database is configured")
                .help("add a section `[databases.NAME]` with the `host` of its server")
                .help("or set DATABASE_URL=postgres://user:password@host:5432/dbname"),
        );
    }
    let origin = match &inputs.text {
        Text::File(path) | Text::Ini(path) => Origin::File(path.clone()),
        Text::None | Text::Given(_) => Origin::CommandLine,
    };
    let builder = Builder { settings: &settings, source: &source, problems, notices };
    let (parts, mut problems, notices) = builder.build();
    if !problems.is_empty() {
        problems.sort_by_key(|problem| match problem.place.as_deref() {
            Some(Place::File { file, line, column }) => (**file != *name, *line, *column),
            _ => (true, usize::MAX, 0),
        });
        return Err(Report { problems });
    }
    Ok(Config {
        listen: parts.listen,
        runtime: parts.runtime,
        auth: parts.auth,
        pool: parts.pool,
        databases: parts.databases,
        users: parts.users,
        cache: parts.cache,
        procedures: parts.procedures,
        redis: parts.redis,
        telemetry: parts.telemetry,
        origin,
        settings,
        notices,
        inputs,
    })
}

/// What file, environment and flags say, the stronger over the weaker.
fn layers(
    sheet: Sheet,
    console: Sheet,
    inputs: &Inputs,
    source: &Source<'_>,
) -> (Settings, Vec<Problem>) {
    let Sheet { entries, scopes, broken, mut problems } = sheet;
    let mut settings = Settings::default();
    for (scope, place, span) in scopes {
        settings.name(scope, place, span);
    }
    for (scope, name) in broken {
        settings.name_broken(scope, name);
    }
    merge(&mut settings, entries, source, &mut problems);
    // Variables find sections by the names that the file has.
    let (variables, variable_problems) = inputs.environment.read(&settings);
    problems.extend(variable_problems);
    merge(&mut settings, variables, source, &mut problems);
    let (flags, flag_problems) = flag_entries(&inputs.flags);
    problems.extend(flag_problems);
    merge(&mut settings, flags, source, &mut problems);
    problems.extend(console.problems);
    merge(&mut settings, console.entries, source, &mut problems);
    (settings, problems)
}

/// What the console has said, but for what belongs to an ini file.
fn console_sheet(inputs: &Inputs) -> (Sheet, Vec<String>) {
    let mut sheet = Sheet::default();
    let mut notices = Vec::new();
    for (name, value) in &inputs.console {
        let ours = Section::ALL.into_iter().filter(|section| !section.has_name()).find_map(|at| {
            let row = name.strip_prefix(at.path())?.strip_prefix('.')?;
            Some((at, options::find(at, row)?))
        });
        match (ours, &inputs.text) {
            (Some((section, row)), _) => match row.kind.read(name, &Raw::Bare(value), None) {
                Ok(value) => {
                    let (layer, place) = (Layer::Console, Place::Console);
                    let setting = Setting { value, layer, place, span: None };
                    sheet.entries.push(Entry { scope: Scope::fixed(section), row, setting });
                }
                Err(problem) => sheet.problems.push(problem.at(Place::Console)),
            },
            (None, Text::Ini(_)) if !name.contains('.') => {}
            (None, _) => {
                let (theirs, said) = pgbouncer::one(name, value);
                sheet.entries.extend(theirs.entries);
                sheet.problems.extend(theirs.problems);
                notices.extend(said);
            }
        }
    }
    (sheet, notices)
}

/// Takes the values of one source, with what URLs and password files stand for.
fn merge(
    settings: &mut Settings,
    entries: Vec<Entry>,
    source: &Source<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut complain = |problem: Problem, entry: &Entry| {
        problems.push(match &entry.setting.span {
            Some(span) => source.locate(problem, span),
            None => problem.at(entry.setting.place.clone()),
        });
    };
    let said = |scope: &Scope, name: &str| {
        entries.iter().any(|entry| entry.scope == *scope && entry.row.name == name)
    };
    let mut expanded = Vec::new();
    for entry in &entries {
        match (entry.row.kind, &entry.setting.value) {
            (Kind::Url, Value::Secret(url)) => match url_entries(url, entry) {
                Err(problem) => complain(problem, entry),
                Ok(parts) => {
                    for part in parts {
                        if said(&part.scope, part.row.name) {
                            let message = format!("`url` says `{}` already", part.row.name);
                            complain(Problem::new(Code::SaidTwice, message), entry);
                        } else {
                            expanded.push(part);
                        }
                    }
                }
            },
            (Kind::Path, Value::Path(path)) if entry.row.name == "password_file" => {
                let Some(row) = options::find(entry.scope.section, "password") else { continue };
                if said(&entry.scope, "password") {
                    let message = "`password` and `password_file` say the same thing";
                    complain(Problem::new(Code::SaidTwice, message), entry);
                    continue;
                }
                match files::read_secret(path) {
                    Err(why) => complain(unreadable(path, &why), entry),
                    Ok(secret) => {
                        let value = Value::Secret(secret);
                        let setting = Setting { value, ..entry.setting.clone() };
                        expanded.push(Entry { scope: entry.scope.clone(), row, setting });
                    }
                }
            }
            _ => {}
        }
    }
    let mut files = Vec::new();
    for entry in entries.into_iter().chain(expanded) {
        match entry.row.name {
            "url" => settings.name(entry.scope, entry.setting.place, entry.setting.span),
            "password_file" => files.push(entry),
            _ => settings.insert(entry),
        }
    }
    // After the passwords that they hold, which would replace them.
    files.into_iter().for_each(|entry| settings.insert(entry));
}

/// The options of a database that a URL says, in the place of `like`.
fn url_entries(url: &str, like: &Entry) -> Result<Vec<Entry>, Problem> {
    let said = postgres_url::parse(url)?;
    let section = like.scope.section;
    let mut entries = Vec::with_capacity(said.len());
    for (name, text) in said {
        let Some(row) = options::find(section, name) else { continue };
        // A problem's message would show a value, and a URL with an unescaped password is cut at
        // the wrong places.
        let value = row.kind.read(name, &Raw::Bare(&text), None).map_err(|_| {
            let (name, expected) = (postgres_url::parameter_of(name), row.kind.expected());
            Problem::new(Code::BadUrl, format!("`{name}` in the URL is not {expected}"))
                .help("in a password, write / as %2F, @ as %40 and ? as %3F")
        })?;
        let setting = Setting { value, ..like.setting.clone() };
        entries.push(Entry { scope: like.scope.clone(), row, setting });
    }
    Ok(entries)
}

/// The URL that stands for a whole configuration, if there is one.
fn implied_url(inputs: &Inputs, settings: &Settings) -> Result<Option<(String, Place)>, Problem> {
    match &inputs.url {
        Some(url) => Ok(Some((url.clone(), Place::CommandLine))),
        None if settings.of(Section::Database).next().is_some() => Ok(None),
        None => inputs.environment.database_url(),
    }
}

/// All options that follow from a URL that stands for a whole configuration.
fn imply(url: &str, place: &Place, notices: &mut Vec<String>) -> Result<Vec<Entry>, Problem> {
    let implied = |scope: &Scope, name: &str, value: Value| {
        let row = options::find(scope.section, name)?;
        let setting = Setting { value, layer: Layer::Implied, place: place.clone(), span: None };
        Some(Entry { scope: scope.clone(), row, setting })
    };
    let everything = Scope::database("*");
    let like = implied(&everything, "url", Value::Secret(url.to_owned()));
    let Some(like) = like else { return Ok(Vec::new()) };
    let mut entries = url_entries(url, &like)?;
    let said = |entries: &[Entry], name: &str| {
        entries.iter().find(|entry| entry.row.name == name).map(|entry| entry.setting.value.clone())
    };
    let database = said(&entries, "dbname");
    let user = said(&entries, "user");
    let password = said(&entries, "password");
    entries.retain(|entry| entry.row.name != "dbname");
    if let Some(Value::Text(name)) = database {
        if super::is_console(&name) {
            notices.push(format!(
                "database \"{name}\" of the server can't be reached: that name is the console's"
            ));
        } else {
            let scope = Scope::database(&name);
            let named: Vec<Entry> = entries
                .iter()
                .filter_map(|entry| implied(&scope, entry.row.name, entry.setting.value.clone()))
                .collect();
            entries.extend(named);
        }
    }
    let auth = Scope::fixed(Section::Auth);
    if let Some(Value::Text(user)) = user {
        entries.extend(implied(&auth, "admin_users", Value::Names(vec![user.clone()])));
        if let Some(password) = password {
            entries.extend(implied(&Scope::user(&user), "password", password));
            return Ok(entries);
        }
    }
    notices.push(
        "the URL has no password: everybody on this machine may log in without one".to_owned(),
    );
    entries.extend(implied(&auth, "method", Value::Text("trust".to_owned())));
    Ok(entries)
}

fn flag_entries(flags: &Flags) -> (Vec<Entry>, Vec<Problem>) {
    let listen = (!flags.listen.is_empty()).then(|| flags.listen.join(","));
    let given = [
        (Section::Listen, "postgres", "--listen", listen.as_ref()),
        (Section::Listen, "redis", "--redis", flags.redis.as_ref()),
        (Section::Listen, "http", "--http", flags.http.as_ref()),
        (Section::Runtime, "workers", "--workers", flags.workers.as_ref()),
        (Section::Telemetry, "log_level", "--log-level", flags.log_level.as_ref()),
        (Section::Telemetry, "log_format", "--log-format", flags.log_format.as_ref()),
    ];
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for (section, name, flag, text) in given {
        let (Some(row), Some(text)) = (options::find(section, name), text) else { continue };
        match row.kind.read(flag, &Raw::Bare(text), None) {
            Ok(value) => {
                let place = Place::Flag(flag);
                let setting = Setting { value, layer: Layer::Flag, place, span: None };
                entries.push(Entry { scope: Scope::fixed(section), row, setting });
            }
            Err(problem) => problems.push(problem.at(Place::Flag(flag))),
        }
    }
    (entries, problems)
}
