//! The language of caches; [`Verb`] has how each command is written. `IN DATABASE` is for the
//! console, which is in none.

use wire::pg::sqlstate;

use super::verbs::Verb;
use super::Failure;
use crate::config::{Definition, Head, MirrorDefinition, TableName};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheCommand {
    Create(Definition),
    Explain(Definition),
    Drop { name: String, database: Option<String> },
    DropAll { database: Option<String> },
    Mirror(MirrorDefinition),
    DropMirror { table: TableName, database: Option<String> },
}

impl CacheCommand {
    pub fn verb(&self) -> Verb {
        match self {
            CacheCommand::Create(_) => Verb::CreateCache,
            CacheCommand::Explain(_) => Verb::ExplainCreateCache,
            CacheCommand::Drop { .. } => Verb::DropCache,
            CacheCommand::DropAll { .. } => Verb::DropAllCaches,
            CacheCommand::Mirror(_) => Verb::MirrorTable,
            CacheCommand::DropMirror { .. } => Verb::DropMirror,
        }
    }

    pub fn tag(&self) -> &'static str {
        match self {
            CacheCommand::Explain(_) => "EXPLAIN",
            other => other.verb().words(),
        }
    }

    /// Of the cache or table that it is about; empty if it names none.
    pub fn name(&self) -> &str {
        match self {
            CacheCommand::Create(definition) | CacheCommand::Explain(definition) => {
                definition.name.as_deref().unwrap_or_default()
            }
            CacheCommand::Drop { name, .. } => name,
            CacheCommand::Mirror(mirror) => &mirror.table.name,
            CacheCommand::DropMirror { table, .. } => &table.name,
            CacheCommand::DropAll { .. } => "",
        }
    }
}

/// Reads a text that is one command about caches. None: it is something else.
pub fn parse(text: &str) -> Option<Result<CacheCommand, Failure>> {
    let after = |words| {
        let rest = sql::after(text.as_bytes(), words)?;
        text.get(text.len() - rest.len()..)
    };
    let syntax =
        |why: String, verb: Verb| Failure::new(sqlstate::SYNTAX_ERROR, why).hint(verb.usage());
    if let Some(rest) = after(&["create", "cache"]) {
        let command = Definition::parse(rest).map(CacheCommand::Create);
        return Some(command.map_err(|why| syntax(why, Verb::CreateCache)));
    }
    if let Some(rest) = after(&["explain", "create", "cache"]) {
        let command = Definition::parse(rest).map(CacheCommand::Explain);
        return Some(command.map_err(|why| syntax(why, Verb::ExplainCreateCache)));
    }
    if let Some(rest) = after(&["drop", "all", "caches"]) {
        let mut head = Head::new(rest);
        let command = head.database().filter(|_| head.is_done());
        let failed =
            || syntax("DROP ALL CACHES is followed by nothing".to_owned(), Verb::DropAllCaches);
        return Some(command.map(|database| CacheCommand::DropAll { database }).ok_or_else(failed));
    }
    if let Some(rest) = after(&["drop", "cache"]) {
        let mut head = Head::new(rest);
        let name = head.name();
        let database = head.database().filter(|_| head.is_done());
        let failed =
            || syntax("DROP CACHE takes the name of one cache".to_owned(), Verb::DropCache);
        let command = name.zip(database);
        return Some(
            command
                .map(|(name, database)| CacheCommand::Drop { name, database })
                .ok_or_else(failed),
        );
    }
    if let Some(rest) = after(&["mirror", "table"]) {
        let command = MirrorDefinition::parse(rest).map(CacheCommand::Mirror);
        return Some(command.map_err(|why| syntax(why, Verb::MirrorTable)));
    }
    let mut head = Head::new(after(&["drop", "mirror"])?);
    let table = TableName::take(&mut head).ok();
    let database = head.database().filter(|_| head.is_done());
    let command = table.zip(database);
    let failed = || syntax("DROP MIRROR takes the name of one table".to_owned(), Verb::DropMirror);
    Some(
        command
            .map(|(table, database)| CacheCommand::DropMirror { table, database })
            .ok_or_else(failed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CacheCommand {
        match parse(text) {
            Some(Ok(command)) => command,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_command_is_read() {
        let CacheCommand::Create(created) =
            read("create cache Orders in database app with (freshness = strict) from select 1;")
        else {
            panic!("a CREATE CACHE")
        };
        assert_eq!(created.name.as_deref(), Some("orders"));
        assert_eq!(created.database.as_deref(), Some("app"));
        assert!(matches!(read("EXPLAIN CREATE CACHE FROM SELECT 1"), CacheCommand::Explain(_)));
        let drop = |name: &str, database: Option<&str>| CacheCommand::Drop {
            name: name.to_owned(),
            database: database.map(str::to_owned),
        };
        assert_eq!(read("drop cache \"My one\" ;"), drop("My one", None));
        assert_eq!(read("DROP CACHE a IN DATABASE app"), drop("a", Some("app")));
        assert_eq!(read("drop all caches"), CacheCommand::DropAll { database: None });
        let database = Some("app".to_owned());
        assert_eq!(read("drop all caches in database app"), CacheCommand::DropAll { database });
        let CacheCommand::Mirror(mirror) = read("mirror table app.orders columns (a)") else {
            panic!("a MIRROR TABLE")
        };
        assert_eq!(mirror.table.to_string(), "app.orders");
        let CacheCommand::DropMirror { table, database } = read("DROP MIRROR t in database web")
        else {
            panic!("a DROP MIRROR")
        };
        assert_eq!((table.name.as_str(), database.as_deref()), ("t", Some("web")));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, why, verb) in [
            ("create cache", "expected a name, IN, WITH or FROM", Verb::CreateCache),
            ("create cache a from delete from t", "only a SELECT", Verb::CreateCache),
            ("explain create cache from", "the statement is not", Verb::ExplainCreateCache),
            ("drop cache", "DROP CACHE takes the name of one cache", Verb::DropCache),
            ("drop cache a b", "DROP CACHE takes the name of one cache", Verb::DropCache),
            ("drop cache a in app", "DROP CACHE takes the name of one cache", Verb::DropCache),
            ("mirror table", "expected the name of a table", Verb::MirrorTable),
            ("drop mirror t u", "DROP MIRROR takes the name of one table", Verb::DropMirror),
            ("drop all caches now", "DROP ALL CACHES is followed by nothing", Verb::DropAllCaches),
        ] {
            let Some(Err(failure)) = parse(text) else { panic!("{text}") };
            assert_eq!(failure.code, "42601");
            assert!(failure.message.contains(why), "{text}: {}", failure.message);
            assert_eq!(failure.hint.as_deref(), Some(verb.usage()));
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in ["", "create table t (a int)", "drop all", "show caches", "explain select 1"] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
