//! A table that somebody wants mirrored, as the catalogues have it. The rules for the texts of
//! queries are those of `catalogue.rs`.

use std::collections::BTreeSet;

use backend::replication::missing::identifier;
use cache::mirror::definition::Definition;
use wire::pg::sqlstate;

use super::connection::{Connection, Failure, Row};
use super::mirrored::tables::Known;
use super::mirrored::{check, definition};
use crate::config::MirrorDefinition;
use crate::control::mirrors::Unfit;

/// What has this name, in this schema or, if that is empty, where the search_path finds it. Rows
/// are copied with a condition on `ctid`, for which rights on single columns are not enough.
pub const STATEMENT: (&str, &str) = (
    "mirror_table",
    r"
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity,
  pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
  pg_catalog.has_table_privilege(c.oid, 'SELECT')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.=) $2::pg_catalog.name
  AND CASE WHEN $1::pg_catalog.text OPERATOR(pg_catalog.=) ''::pg_catalog.text
    THEN pg_catalog.pg_table_is_visible(c.oid)
    ELSE n.nspname OPERATOR(pg_catalog.=) ($1::pg_catalog.text)::pg_catalog.name
  END
LIMIT 1::pg_catalog.int8",
);

/// What is known of it before its columns are.
struct Found {
    oid: u32,
    schema: String,
    name: String,
    kind: u8,
    persistence: u8,
    identity: u8,
    row_security: bool,
    schema_right: bool,
    right: bool,
}

impl Found {
    fn new(row: &mut Row) -> Found {
        Found {
            oid: row.number(),
            schema: row.text(),
            name: row.text(),
            kind: row.byte(),
            persistence: row.byte(),
            identity: row.byte(),
            row_security: row.bool(),
            schema_right: row.bool(),
            right: row.bool(),
        }
    }

    /// For people.
    fn title(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// For SQL.
    fn identifier(&self) -> String {
        format!("{}.{}", identifier(&self.schema), identifier(&self.name))
    }

    /// # Errors
    /// Why it can't be mirrored, whatever its columns are.
    fn check(&self, user: &str) -> Result<(), Unfit> {
        let (title, sql) = (self.title(), self.identifier());
        let wrong = |what: &str| {
            Err(Unfit::new(sqlstate::WRONG_OBJECT_TYPE, format!("{title} is {what}"))
                .hint("Plain tables can be mirrored."))
        };
        match self.kind {
            b'r' => {}
            b'p' => {
                return Err(Unfit::new(
                    sqlstate::FEATURE_NOT_SUPPORTED,
                    format!("table {title} is partitioned"),
                )
                .hint("Its partitions can be cached, not mirrored: CREATE CACHE FROM SELECT ..."))
            }
            b'v' => return wrong("a view"),
            b'm' => return wrong("a materialized view"),
            b'f' => return wrong("a foreign table"),
            _ => return wrong("no table"),
        }
        let unfit =
            |why: &str| Unfit::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("table {title} {why}"));
        match self.persistence {
            b'p' => {}
            b'u' => return Err(unfit("is unlogged").hint(format!("ALTER TABLE {sql} SET LOGGED;"))),
            _ => return Err(unfit("is temporary")),
        }
        if self.row_security {
            return Err(unfit("has row-level security")
                .hint("Which of its rows are there for whom, only PostgreSQL decides."));
        }
        let denied = |grant: String| {
            let message = format!("{user} may not read table {title}, and so can't copy it");
            Err(Unfit::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).hint(grant))
        };
        let role = identifier(user);
        if !self.schema_right {
            let schema = identifier(&self.schema);
            return denied(format!("GRANT USAGE ON SCHEMA {schema} TO {role};"));
        }
        if !self.right {
            return denied(format!("GRANT SELECT ON {sql} TO {role};"));
        }
        Ok(())
    }

    /// # Errors
    /// Nothing tells its rows apart.
    fn has_identity(&self, known: &Known) -> Result<(), Unfit> {
        if known.columns.iter().any(|column| column.in_key.is_some()) {
            return Ok(());
        }
        let (title, sql) = (self.title(), self.identifier());
        let (why, mends) = match self.identity {
            b'n' => ("its replica identity is NOTHING", "REPLICA IDENTITY DEFAULT"),
            b'i' => (
                "the index of its replica identity is gone or can't be used",
                "REPLICA IDENTITY DEFAULT",
            ),
            _ => ("it has no primary key that is not deferrable", "ADD PRIMARY KEY (...)"),
        };
        let message = format!("rows of table {title} can't be told apart: {why}");
        Err(Unfit::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .hint(format!("ALTER TABLE {sql} {mends};")))
    }
}

impl Connection {
    /// What a mirror is made for. `user` is whose connection it is.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn table(
        &mut self,
        wanted: &MirrorDefinition,
        user: &str,
    ) -> Result<Result<Definition, Unfit>, Failure> {
        let schema = wanted.table.schema.clone().unwrap_or_default();
        let values = [schema, wanted.table.name.clone()];
        let answers = self.ask(&[(STATEMENT.0, &values)]).await?;
        let found = answers.into_iter().flatten().next().as_mut().map(Found::new);
        let Some(found) = found else {
            let message = format!("there is no table {}", wanted.table);
            let unfit = Unfit::new(sqlstate::UNDEFINED_TABLE, message);
            return Ok(Err(match &wanted.table.schema {
                Some(_) => unfit,
                None => unfit.hint(format!("Is it on the search_path of {user}? Say its schema.")),
            }));
        };
        if let Err(unfit) = found.check(user) {
            return Ok(Err(unfit));
        }
        let tables = self.mirrorable(&BTreeSet::from([found.oid])).await?;
        Ok(match tables.get(&found.oid) {
            Some(known) => defined(&found, known, wanted.columns.as_deref()),
            None => {
                let message = format!("table {} has no columns", found.title());
                Err(Unfit::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
            }
        })
    }
}

fn defined(found: &Found, known: &Known, columns: Option<&[String]>) -> Result<Definition, Unfit> {
    let title = found.title();
    let refused = |why| Unfit::new(sqlstate::FEATURE_NOT_SUPPORTED, why);
    found.has_identity(known)?;
    check(known).map_err(refused)?;
    let needed = match columns {
        Some(columns) => {
            let there = |name: &String| known.columns.iter().any(|one| one.column.name == *name);
            if let Some(missing) = columns.iter().find(|name| !there(name)) {
                let message = format!("table {title} has no column {missing}");
                return Err(Unfit::new(sqlstate::UNDEFINED_COLUMN, message));
            }
            columns.iter().cloned().collect()
        }
        // The stream does not have what is computed.
        None => {
            let stored = known.columns.iter().filter(|one| !one.generated);
            stored.map(|one| one.column.name.clone()).collect()
        }
    };
    definition(found.oid, known, &needed).map_err(refused)
}
