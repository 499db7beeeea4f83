//! The connection that holds locks and snapshot of a copy while others use them.
//!
//! The caller has an ordinary connection with [`super::super::SETTINGS`] and [`super::SETTINGS`].
//! It asks [`Holder::begin`], gives each answer to [`Holder::answer`] and asks what that says,
//! until the snapshot is held. From then on it asks [`Holder::look`] again and again, until all is
//! copied.

use std::collections::HashMap;

use super::{Found, FoundColumn, Source, SOURCES_MAX};
use crate::replication::catalogue::Row;
use crate::replication::keeper::Answer;

/// Somebody waits for a lock in this many looks, one behind the other: that is no chance.
const LOOKS_UNTIL_WAY_IS_GIVEN: u32 = 2;

/// What the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// Run this as a simple query and give its answer.
    Ask(String),
    /// The snapshot is held, and the tables are what they should be.
    Copy(Held),
}

/// What is copied, and under which snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// As it was exported.
    pub name: String,
    /// `pg_current_snapshot` as text.
    pub snapshot: String,
    /// As in `server_version_num`.
    pub version: u32,
    /// Whatever the snapshot sees ends before this position of the log.
    pub lsn: u64,
    pub tables: Vec<Found>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Tables,
    Columns,
}

/// See the head of this file.
pub struct Holder {
    sources: Vec<Source>,
    phase: Phase,
    held: Held,
    /// Looks in a row in which somebody waited for a lock.
    waiting: u32,
}

impl Holder {
    /// # Errors
    /// Nothing to copy, or too much.
    pub fn new(sources: Vec<Source>) -> Result<Holder, String> {
        if sources.is_empty() || sources.iter().any(|source| source.columns.is_empty()) {
            return Err("a copy of nothing".to_owned());
        }
        if sources.len() > SOURCES_MAX {
            return Err(format!("a copy of more than {SOURCES_MAX} tables"));
        }
        Ok(Holder { sources, phase: Phase::Begin, held: Held::default(), waiting: 0 })
    }

    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// What is asked first. LOCK TABLE takes no snapshot, the SELECT behind it does.
    ///
    /// Source: "LOCK", Notes.
    pub fn begin(&mut self) -> String {
        self.phase = Phase::Begin;
        let names: Vec<String> =
            self.sources.iter().map(|source| format!("ONLY {}", source.sql())).collect();
        format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
             LOCK TABLE {} IN ACCESS SHARE MODE; \
             SELECT pg_export_snapshot(), pg_current_snapshot(), \
             current_setting('server_version_num'), pg_current_wal_insert_lsn() - '0/0'",
            names.join(", ")
        )
    }

    /// Takes the answer to what was asked last.
    ///
    /// # Errors
    /// The tables can't be copied, or are not what they were.
    pub fn answer(&mut self, answer: Answer) -> Result<Todo, String> {
        let rows = answer.map_err(|error| match self.phase {
            Phase::Begin => format!("the tables can't be locked: {error}"),
            _ => format!("the catalogues are not readable: {error}"),
        })?;
        match self.phase {
            Phase::Begin => {
                let mut row = rows.into_iter().next().unwrap_or_else(|| Row::new(Vec::new()));
                self.held.name = row.text();
                self.held.snapshot = row.text();
                self.held.version = row.number().unwrap_or(0);
                let lsn = row.number();
                self.held.lsn = lsn.ok_or("the server does not say how far its log is")?;
                self.phase = Phase::Tables;
                Ok(Todo::Ask(tables(&self.oids())))
            }
            Phase::Tables => {
                let mut found: HashMap<u32, Table> = rows.into_iter().map(read_table).collect();
                for source in &self.sources {
                    let table = found.remove(&source.oid).unwrap_or_default();
                    self.held.tables.push(table.checked(source)?);
                }
                self.phase = Phase::Columns;
                Ok(Todo::Ask(columns(&self.oids())))
            }
            Phase::Columns => {
                let mut found: HashMap<(u32, i16), Column> =
                    rows.into_iter().map(read_column).collect();
                for (source, table) in self.sources.iter().zip(&mut self.held.tables) {
                    for (attnum, name) in &source.columns {
                        let column = found.remove(&(source.oid, *attnum)).unwrap_or_default();
                        table.columns.push(column.checked(name, source)?);
                    }
                }
                Ok(Todo::Copy(self.held.clone()))
            }
        }
    }

    /// Asks who waits for what only a lock on the tables, or on their indexes, keeps away. All
    /// others who want the table wait behind that.
    pub fn look(&self) -> String {
        let oids = self.oids();
        format!(
            "SELECT count(*) FROM pg_locks l WHERE l.locktype = 'relation' AND NOT l.granted \
             AND l.mode = 'AccessExclusiveLock' \
             AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()) \
             AND (l.relation IN ({oids}) \
               OR l.relation IN (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid IN ({oids})))"
        )
    }

    /// Takes the answer to [`Holder::look`].
    ///
    /// # Errors
    /// Somebody waits: the copy gives way.
    pub fn looked(&mut self, answer: Answer) -> Result<(), String> {
        let rows = answer.map_err(|error| format!("the snapshot is held no more: {error}"))?;
        let count = rows.into_iter().next().and_then(|mut row| row.number::<u64>());
        self.waiting = match count {
            Some(0) => 0,
            _ => self.waiting + 1,
        };
        match self.waiting >= LOOKS_UNTIL_WAY_IS_GIVEN {
            true => Err("a statement that changes the table waits for the copy".to_owned()),
            false => Ok(()),
        }
    }

    fn oids(&self) -> String {
        let oids: Vec<String> = self.sources.iter().map(|source| source.oid.to_string()).collect();
        oids.join(", ")
    }
}

fn tables(oids: &str) -> String {
    format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relfilenode, \
         pg_relation_size(c.oid) / current_setting('block_size')::bigint, \
         (SELECT array_to_string((i.indkey::int2[])[:i.indnkeyatts - 1], ',') FROM pg_index i \
           WHERE i.indrelid = c.oid AND i.indisvalid AND i.indisunique AND i.indimmediate \
           AND i.indpred IS NULL AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false \
             ELSE i.indisprimary END) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid IN ({oids})"
    )
}

fn columns(oids: &str) -> String {
    format!(
        "SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull, \
         a.attcollation, a.attgenerated <> '' \
         FROM pg_attribute a WHERE a.attrelid IN ({oids}) AND a.attnum > 0 AND NOT a.attisdropped"
    )
}

#[derive(Default)]
struct Table {
    schema: String,
    name: String,
    kind: u8,
    found: Found,
}

fn read_table(mut row: Row) -> (u32, Table) {
    let oid = row.number().unwrap_or(0);
    let (schema, name, kind) = (row.text(), row.text(), row.byte());
    let filenode = row.number().unwrap_or(0);
    let blocks = row.number().unwrap_or(0);
    let identity = row.text().split(',').filter_map(|attnum| attnum.parse().ok()).collect();
    let found = Found { oid, filenode, blocks, columns: Vec::new(), identity };
    (oid, Table { schema, name, kind, found })
}

impl Table {
    fn checked(self, source: &Source) -> Result<Found, String> {
        let sql = source.sql();
        if self.found.oid != source.oid || self.schema != source.schema || self.name != source.name
        {
            return Err(format!("{sql} is another table, or gone"));
        }
        if self.kind != b'r' {
            return Err(format!("{sql} is no ordinary table"));
        }
        if self.found.filenode != source.filenode {
            return Err(format!("{sql} was rewritten or emptied"));
        }
        Ok(self.found)
    }
}

#[derive(Default)]
struct Column {
    generated: bool,
    found: FoundColumn,
}

fn read_column(mut row: Row) -> ((u32, i16), Column) {
    let table = row.number().unwrap_or(0);
    let found = FoundColumn {
        attnum: row.number().unwrap_or(0),
        name: row.text(),
        type_oid: row.number().unwrap_or(0),
        type_modifier: row.number().unwrap_or(-1),
        not_null: row.bool(),
        collation: row.number().unwrap_or(0),
    };
    ((table, found.attnum), Column { generated: row.bool(), found })
}

impl Column {
    fn checked(self, name: &str, source: &Source) -> Result<FoundColumn, String> {
        let place = || format!("column \"{name}\" of {}", source.sql());
        if self.found.name != name {
            return Err(format!("{} is another one, or gone", place()));
        }
        if self.generated {
            return Err(format!("{} is generated, so its changes are not told", place()));
        }
        Ok(self.found)
    }
}
