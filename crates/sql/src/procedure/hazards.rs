//! What keeps a call from riding with others, with words for people.

use std::fmt;

use super::types::Words;
use super::{Definition, Mode};
use crate::analysis::{Name, Node};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HazardKind {
    /// An advisory lock of the session.
    SessionLock,
    Listen,
    /// A cursor WITH HOLD.
    HoldCursor,
    /// It outlives the transaction.
    TemporaryObject,
    /// A cursor is handed to the caller.
    Cursor,
    /// SET without LOCAL, PREPARE, and whatever else stays in the session.
    SessionSetting,
    /// COMMIT or ROLLBACK inside.
    Commit,
    /// EXECUTE of a text that nobody has seen.
    Dynamic,
    /// It sleeps, and whoever rides behind it waits.
    Sleep,
    LockTable,
    /// Other servers, files, programs.
    Outside,
    /// Something that is not understood.
    Unknown,
}

/// How calls may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ride {
    /// Also with others in one transaction.
    Shared,
    /// In a train, in a transaction of its own.
    Train,
    /// As the last of a train or alone, with a synchronous commit.
    Last,
    /// As any other statement.
    Never,
}

impl HazardKind {
    /// How calls with this hazard may travel.
    pub fn ride(self) -> Ride {
        match self {
            HazardKind::SessionLock
            | HazardKind::Listen
            | HazardKind::HoldCursor
            | HazardKind::TemporaryObject
            | HazardKind::Cursor
            | HazardKind::SessionSetting => Ride::Never,
            HazardKind::Commit => Ride::Last,
            HazardKind::Dynamic
            | HazardKind::Sleep
            | HazardKind::LockTable
            | HazardKind::Outside
            | HazardKind::Unknown => Ride::Train,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hazard {
    pub kind: HazardKind,
    /// Of the body it is in, the last of `via`.
    pub line: u32,
    /// `pg_advisory_lock() takes a lock of the session`
    pub words: String,
    /// The functions, views and triggers by which it is reached, the outermost first.
    pub via: Vec<Name>,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.via {
            write!(f, "{name}: ")?;
        }
        match self.line {
            0 => f.write_str(&self.words),
            line => write!(f, "line {line}: {}", self.words),
        }
    }
}

pub(super) fn hazard(kind: HazardKind, line: u32, words: impl Into<String>) -> Hazard {
    Hazard { kind, line, words: words.into(), via: Vec::new() }
}

/// Of what goes out of the function.
pub(super) fn of_signature(definition: &Definition) -> Option<Hazard> {
    let goes_out = |mode: Mode| matches!(mode, Mode::Out | Mode::InOut | Mode::Table);
    let mut outputs = definition.arguments.iter().filter(|argument| goes_out(argument.mode));
    let is_cursor = |type_name: &str| type_name.to_ascii_lowercase().contains("refcursor");
    let returned = is_cursor(&definition.returns);
    let handed = returned || outputs.any(|argument| is_cursor(&argument.type_name));
    handed.then(|| hazard(HazardKind::Cursor, 0, "it hands an open cursor to its caller"))
}

/// Of a function call by its name and arguments.
pub(super) fn of_call(name: &str, call: &Node, line: u32) -> Option<Hazard> {
    let (kind, words) = match name {
        "set_config" => {
            let local = call.nodes("args").nth(2).and_then(boolean);
            if local == Some(true) {
                return None;
            }
            (HazardKind::SessionSetting, "changes a setting of the session")
        }
        "setseed" => (HazardKind::SessionSetting, "changes the random numbers of the session"),
        "query_to_xml" | "query_to_xml_and_xmlschema" | "ts_stat" | "query_to_xmlschema" => {
            (HazardKind::Dynamic, "runs a text that is made up while it runs")
        }
        "lo_import" | "lo_export" | "pg_stat_file" => (HazardKind::Outside, "uses files"),
        _ if name.contains("advisory") && !name.contains("xact") => {
            (HazardKind::SessionLock, "takes or frees a lock of the session")
        }
        _ if name.starts_with("pg_sleep") => {
            (HazardKind::Sleep, "sleeps; all that ride behind it wait")
        }
        _ if name.starts_with("dblink") => (HazardKind::Outside, "uses another server"),
        _ if ["pg_read_", "pg_ls_", "pg_file_"].iter().any(|start| name.starts_with(start)) => {
            (HazardKind::Outside, "uses files")
        }
        _ => return None,
    };
    Some(hazard(kind, line, format!("{name}() {words}")))
}

fn boolean(node: &Node) -> Option<bool> {
    let node = if node.kind == "TypeCast" { node.child("arg")? } else { node };
    let value = node.child("val")?;
    match value.kind {
        "Boolean" => Some(value.number("boolval") != 0),
        "String" => Some(["t", "true", "on", "yes", "1"].contains(&value.text("sval"))),
        _ => None,
    }
}

/// Of a statement that is none on rows, by its words.
pub(super) fn of_utility(words: &Words, line: u32) -> Option<Hazard> {
    let first = words.list.first().map_or("", String::as_str);
    let has = |parts: &[&str]| words.list.windows(parts.len()).any(|window| window == parts);
    let (kind, words) = match first {
        "listen" | "unlisten" => (HazardKind::Listen, "changes what the session listens to"),
        "set" => {
            let second = words.list.get(1).map_or("", String::as_str);
            let session = second == "session" && words.is(2, "characteristics");
            if ["local", "constraints"].contains(&second) || (second == "transaction" && !session) {
                return None;
            }
            (HazardKind::SessionSetting, "SET without LOCAL changes a setting of the session")
        }
        "reset" => (HazardKind::SessionSetting, "changes a setting of the session"),
        "prepare" | "deallocate" | "execute" | "load" => {
            (HazardKind::SessionSetting, "changes what the session has prepared or loaded")
        }
        "discard" => (HazardKind::TemporaryObject, "drops what the session has"),
        "create" => {
            let temporary = words.list.iter().take(5).any(|w| w == "temp" || w == "temporary");
            if !(temporary || has(&["pg_temp", "."])) || has(&["on", "commit", "drop"]) {
                return None;
            }
            (HazardKind::TemporaryObject, "makes a temporary object that outlives the call")
        }
        "declare" if has(&["with", "hold"]) => {
            (HazardKind::HoldCursor, "opens a cursor that outlives the transaction")
        }
        "lock" => (HazardKind::LockTable, "locks a whole table"),
        "copy" => (HazardKind::Outside, "COPY moves data to or from elsewhere"),
        "do" | "explain" | "import" => (HazardKind::Unknown, "runs what is not looked into"),
        "commit" | "rollback" | "begin" | "start" | "end" | "abort" => {
            (HazardKind::Commit, "ends the transaction")
        }
        _ => return None,
    };
    Some(hazard(kind, line, format!("{}: {words}", first.to_uppercase())))
}

/// Whether one of these conditions of an exception handler catches 55P03, by name, by class or as
/// one of all.
///
/// Source: "Trapping Errors" in PostgreSQL's chapter on PL/pgSQL, and its appendix of error codes.
pub(super) fn catches_lock_timeout(conditions: &[String]) -> bool {
    const CATCHING: [&str; 5] =
        ["others", "lock_not_available", "object_not_in_prerequisite_state", "55p03", "55000"];
    conditions.iter().any(|condition| CATCHING.contains(&condition.as_str()))
}
