//! What can be asked of the console, and the parser of it.
//!
//! The language is PgBouncer's: one word or two, an optional name in double quotes when it holds
//! unusual letters, any case, `;` between commands. Around it the little SQL that drivers send
//! unasked (`SET extra_float_digits`, `SELECT 1`, `RESET ALL`, `BEGIN`) is taken and has no effect.

use std::borrow::Cow;
use std::fmt;

use wire::pg::sqlstate;

use super::cache_commands::{self, CacheCommand};
use super::procedure_commands::{self, ProcedureCommand};
use super::settings::{self, Setting};
pub use super::shows::Show;
use super::tokens::{self, Token};
use super::verbs::Verb;
use super::Failure;
use crate::config::nearest::nearest;
use crate::control::messages::Shutdown;

/// Most commands in one message.
pub const COMMANDS_MAX: usize = 100;
/// Longest name of a database, in bytes: PostgreSQL's NAMEDATALEN leaves 63, but aliases may be
/// longer.
const NAME_BYTES_MAX: usize = 255;

/// One command of the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Show(Show),
    /// `SHOW client_encoding` and the like.
    ShowSetting(&'static Setting),
    /// `SELECT 1, 'x', version()`: constants only.
    Select(Vec<Constant>),
    /// Taken for the sake of drivers.
    Ignored {
        tag: &'static str,
        notice: Option<&'static str>,
    },
    Act(Act),
    Cache(Box<CacheCommand>),
    Procedure(Box<ProcedureCommand>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    pub name: &'static str,
    pub value: ConstantValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstantValue {
    Int(i32),
    Text(String),
    User,
    Database,
    Version,
}

/// Commands that change something; for administrators. `None` means every database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Reload,
    Pause(Option<String>),
    Resume(Option<String>),
    Reconnect(Option<String>),
    Disable(String),
    Enable(String),
    Kill(Option<String>),
    KillClient(u64),
    WaitClose(Option<String>),
    Suspend,
    Shutdown(Shutdown),
    /// `SET key = value` of a setting of Pondage.
    Set {
        name: String,
        value: Unlogged,
    },
}

/// A value that may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Unlogged(pub String);

impl fmt::Debug for Unlogged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

impl Act {
    pub fn verb(&self) -> Verb {
        match self {
            Act::Reload => Verb::Reload,
            Act::Pause(_) => Verb::Pause,
            Act::Resume(_) => Verb::Resume,
            Act::Reconnect(_) => Verb::Reconnect,
            Act::Disable(_) => Verb::Disable,
            Act::Enable(_) => Verb::Enable,
            Act::Kill(_) => Verb::Kill,
            Act::KillClient(_) => Verb::KillClient,
            Act::WaitClose(_) => Verb::WaitClose,
            Act::Suspend => Verb::Suspend,
            Act::Shutdown(_) => Verb::Shutdown,
            Act::Set { .. } => Verb::Set,
        }
    }

    pub fn tag(&self) -> &'static str {
        self.verb().words()
    }

    /// The one database that it is about.
    pub fn database(&self) -> Option<&str> {
        match self {
            Act::Pause(name)
            | Act::Resume(name)
            | Act::Reconnect(name)
            | Act::Kill(name)
            | Act::WaitClose(name) => name.as_deref(),
            Act::Disable(name) | Act::Enable(name) => Some(name),
            Act::Reload | Act::KillClient(_) | Act::Suspend | Act::Shutdown(_) => None,
            Act::Set { .. } => None,
        }
    }
}

/// Reads every command of a message; an empty list when there is none.
///
/// # Errors
/// 42601 with the nearest command as hint, 22021 for text that is not UTF-8, 54000 beyond
/// [`COMMANDS_MAX`]. As with PostgreSQL, one bad command keeps the whole message from running.
pub fn parse(text: &[u8]) -> Result<Vec<Request>, Failure> {
    let text = std::str::from_utf8(text)
        .map_err(|_| Failure::new("22021", "the command is not valid UTF-8"))?;
    // What is cached is written in SQL, not in the console's language, so it is the whole text.
    if let Some(command) = cache_commands::parse(text) {
        return Ok(vec![Request::Cache(Box::new(command?))]);
    }
    let tokens = tokens::scan(text)?;
    let mut requests = Vec::new();
    for command in tokens.split(|token| *token == Token::Semicolon) {
        if command.is_empty() {
            continue;
        }
        if requests.len() == COMMANDS_MAX {
            let message = format!("more than {COMMANDS_MAX} commands in one message");
            return Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        requests.push(parse_one(command)?);
    }
    Ok(requests)
}

fn parse_one(tokens: &[Token<'_>]) -> Result<Request, Failure> {
    if let Some(command) = procedure_commands::parse(tokens) {
        return command.map(|command| Request::Procedure(Box::new(command)));
    }
    let Some((Token::Word(first), rest)) = tokens.split_first() else {
        return Err(unknown(tokens));
    };
    let word = first.to_ascii_uppercase();
    match word.as_str() {
        "SHOW" => return show(rest),
        "SELECT" => return select(rest),
        _ => {}
    }
    let Some(verb) = Verb::find(&word) else {
        return ignored(&word).ok_or_else(|| unknown(tokens));
    };
    let act = match verb {
        Verb::Set => return set(rest),
        Verb::Reload => nothing(verb, rest).map(|()| Act::Reload)?,
        Verb::Suspend => nothing(verb, rest).map(|()| Act::Suspend)?,
        Verb::Pause => Act::Pause(optional_name(verb, rest)?),
        Verb::Resume => Act::Resume(optional_name(verb, rest)?),
        Verb::Reconnect => Act::Reconnect(optional_name(verb, rest)?),
        Verb::Kill => Act::Kill(optional_name(verb, rest)?),
        Verb::WaitClose => Act::WaitClose(optional_name(verb, rest)?),
        Verb::Disable => Act::Disable(name(verb, rest)?),
        Verb::Enable => Act::Enable(name(verb, rest)?),
        Verb::KillClient => Act::KillClient(client_id(rest)?),
        Verb::Shutdown => Act::Shutdown(shutdown(rest)?),
        // Two words and more, which have parsers of their own.
        Verb::CreateCache
        | Verb::ExplainCreateCache
        | Verb::DropCache
        | Verb::DropAllCaches
        | Verb::MirrorTable
        | Verb::DropMirror
        | Verb::SetProcedure
        | Verb::ResetProcedure
        | Verb::ExplainProcedure => return Err(unknown(tokens)),
    };
    Ok(Request::Act(act))
}

fn show(rest: &[Token<'_>]) -> Result<Request, Failure> {
    if let [Token::Word(_) | Token::Quoted(_)] = rest {
        let word = rest[0].text();
        if let Some(show) = Show::find(&word) {
            return Ok(Request::Show(show));
        }
        if let Some(setting) = settings::find(&word) {
            return Ok(Request::ShowSetting(setting));
        }
    }
    // An alias of two words.
    if let [Token::Word(first), Token::Word(second)] = rest {
        if let Some(show) = Show::find(&format!("{first} {second}")) {
            return Ok(Request::Show(show));
        }
    }
    // pgjdbc's getTransactionIsolation.
    if words(rest) == ["TRANSACTION", "ISOLATION", "LEVEL"] {
        if let Some(setting) = settings::find("transaction_isolation") {
            return Ok(Request::ShowSetting(setting));
        }
    }
    let list: Vec<&str> = Show::ALL.iter().map(|show| show.word()).collect();
    let asked = tokens::render(rest);
    let message = if rest.is_empty() {
        "SHOW needs to be told what".to_owned()
    } else {
        format!("there is no SHOW \"{asked}\"")
    };
    let mut failure = Failure::new(sqlstate::SYNTAX_ERROR, message)
        .detail(format!("SHOW knows {}.", list.join(", ")));
    if let Some(word) = nearest(&asked, list.iter().copied()) {
        failure = failure.hint(format!("Did you mean SHOW {word}?"));
    }
    Err(failure)
}

fn select(rest: &[Token<'_>]) -> Result<Request, Failure> {
    // PgBouncer takes `SELECT pools` for `SHOW POOLS`.
    if let [Token::Word(word)] = rest {
        if let Some(show) = Show::find(word) {
            return Ok(Request::Show(show));
        }
    }
    let mut constants = Vec::new();
    for item in rest.split(|token| *token == Token::Comma) {
        constants.push(constant(item).ok_or_else(|| {
            Failure::new(sqlstate::SYNTAX_ERROR, "the console selects constants only")
                .hint("Use SHOW HELP for what the console can do.")
        })?);
    }
    Ok(Request::Select(constants))
}

fn constant(item: &[Token<'_>]) -> Option<Constant> {
    let text = |text: &str| ConstantValue::Text(text.to_owned());
    let (name, value) = match item {
        [Token::Word(word)] if word.bytes().all(|letter| letter.is_ascii_digit()) => {
            ("?column?", ConstantValue::Int(word.parse().ok()?))
        }
        [Token::Text(string)] => ("?column?", text(string)),
        [Token::Word(word)] if is(word, "current_user") => ("current_user", ConstantValue::User),
        [Token::Word(word)] if is(word, "session_user") => ("session_user", ConstantValue::User),
        [Token::Word(word), Token::Open, Token::Close] => match () {
            () if is(word, "version") => ("version", ConstantValue::Version),
            () if is(word, "current_database") => ("current_database", ConstantValue::Database),
            // A part of what drivers send to clean a connection.
            () if is(word, "pg_advisory_unlock_all") => ("pg_advisory_unlock_all", text("")),
            () => return None,
        },
        _ => return None,
    };
    Some(Constant { name, value })
}

/// `SET [SESSION|LOCAL] key {=|TO} value`, `SET TIME ZONE x`, `SET NAMES x`,
/// `SET [SESSION CHARACTERISTICS AS] TRANSACTION ...`.
fn set(rest: &[Token<'_>]) -> Result<Request, Failure> {
    let ignored = Request::Ignored { tag: "SET", notice: Some("SET ignored") };
    let rest = match rest {
        [Token::Word(scope), tail @ ..] if is(scope, "session") || is(scope, "local") => tail,
        _ => rest,
    };
    match rest {
        [Token::Word(word), _, ..] if is(word, "names") || is(word, "time") => Ok(ignored),
        [Token::Word(word), _, ..] if is(word, "transaction") || is(word, "characteristics") => {
            Ok(ignored)
        }
        [Token::Word(key) | Token::Quoted(Cow::Borrowed(key)), middle, first, more @ ..]
            if *middle == Token::Equals || matches!(middle, Token::Word(to) if is(to, "to")) =>
        {
            if settings::is_postgres(key) {
                return Ok(ignored);
            }
            if !more.is_empty() {
                return Err(Failure::new(sqlstate::SYNTAX_ERROR, "SET takes one value")
                    .hint("Put it in quotes: SET key = 'a, b'"));
            }
            let value = Unlogged(first.text().into_owned());
            Ok(Request::Act(Act::Set { name: key.to_ascii_lowercase(), value }))
        }
        _ => Err(Failure::new(sqlstate::SYNTAX_ERROR, "SET needs a key and a value")
            .hint(Verb::Set.usage())),
    }
}

const NO_TRANSACTIONS: Option<&str> =
    Some("the console has no transactions: each command takes effect at once");

/// Statements of SQL that mean nothing here and do no harm: their first word, their tag, and what
/// is said to them.
pub const IGNORED: [(&str, &str, Option<&str>); 11] = [
    ("BEGIN", "BEGIN", NO_TRANSACTIONS),
    ("START", "START TRANSACTION", NO_TRANSACTIONS),
    ("COMMIT", "COMMIT", None),
    ("END", "COMMIT", None),
    ("ROLLBACK", "ROLLBACK", None),
    ("ABORT", "ROLLBACK", None),
    ("RESET", "RESET", None),
    ("DISCARD", "DISCARD ALL", None),
    ("DEALLOCATE", "DEALLOCATE", None),
    ("CLOSE", "CLOSE CURSOR ALL", None),
    ("UNLISTEN", "UNLISTEN", None),
];

fn ignored(word: &str) -> Option<Request> {
    let (_, tag, notice) = *IGNORED.iter().find(|(first, ..)| *first == word)?;
    Some(Request::Ignored { tag, notice })
}

fn nothing(verb: Verb, rest: &[Token<'_>]) -> Result<(), Failure> {
    if rest.is_empty() {
        return Ok(());
    }
    let message = format!("{} takes no argument", verb.words());
    Err(Failure::new(sqlstate::SYNTAX_ERROR, message))
}

fn name(verb: Verb, rest: &[Token<'_>]) -> Result<String, Failure> {
    optional_name(verb, rest)?.ok_or_else(|| {
        Failure::new(sqlstate::SYNTAX_ERROR, "a database is required").hint(verb.usage())
    })
}

fn optional_name(verb: Verb, rest: &[Token<'_>]) -> Result<Option<String>, Failure> {
    match rest {
        [] => Ok(None),
        [Token::Word(_) | Token::Quoted(_)] => {
            let name = rest[0].text();
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                let message = format!("a name has 1 to {NAME_BYTES_MAX} bytes");
                return Err(Failure::new(sqlstate::SYNTAX_ERROR, message));
            }
            Ok(Some(name.into_owned()))
        }
        _ => {
            let message = format!("{} takes the name of one database", verb.words());
            Err(Failure::new(sqlstate::SYNTAX_ERROR, message)
                .hint("Put a name with unusual letters in double quotes."))
        }
    }
}

fn client_id(rest: &[Token<'_>]) -> Result<u64, Failure> {
    match rest {
        [Token::Word(_) | Token::Quoted(_) | Token::Text(_)] => rest[0].text().parse().ok(),
        _ => None,
    }
    .ok_or_else(|| {
        Failure::new(sqlstate::SYNTAX_ERROR, "invalid client pointer supplied")
            .hint("KILL_CLIENT id, the column \"id\" of SHOW CLIENTS")
    })
}

fn shutdown(rest: &[Token<'_>]) -> Result<Shutdown, Failure> {
    match words(rest).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] | ["IMMEDIATE"] => Ok(Shutdown::Immediate),
        ["WAIT_FOR_SERVERS"] => Ok(Shutdown::WaitForServers),
        ["WAIT_FOR_CLIENTS"] => Ok(Shutdown::WaitForClients),
        _ => Err(Failure::new(sqlstate::SYNTAX_ERROR, "SHUTDOWN of an unknown kind")
            .hint(Verb::Shutdown.usage())),
    }
}

fn is(word: &str, name: &str) -> bool {
    word.eq_ignore_ascii_case(name)
}

fn words(tokens: &[Token<'_>]) -> Vec<String> {
    tokens.iter().map(|token| token.text().to_ascii_uppercase()).collect()
}

fn unknown(tokens: &[Token<'_>]) -> Failure {
    let asked = tokens::render(tokens);
    let failure =
        Failure::new(sqlstate::SYNTAX_ERROR, format!("invalid command '{asked}', use SHOW HELP;"));
    let first = tokens.first().map(Token::text).unwrap_or_default();
    match nearest(&first, Verb::first_words()) {
        Some(command) => failure.hint(format!("Did you mean {command}?")),
        // `pools` for `SHOW POOLS`.
        None => match Show::find(&first) {
            Some(show) => failure.hint(format!("Did you mean SHOW {}?", show.word())),
            None => failure,
        },
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
