//! Which tables can be told, which are, and how the publication becomes what it should be.
//!
//! A table without a usable replica identity must not be published: its owner's UPDATEs and
//! DELETEs would fail. So tables are named one by one. A partitioned table is named itself only if
//! it has a primary key, for then every partition that comes later has one; its partitions are
//! told under their own names, because statements may name them and TRUNCATE of one would not be
//! told otherwise.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::catalogue::{Publication, Server, Table};
use super::missing::{self, identifier, Missing};
use super::PublishedTable;

/// Most tables that one statement adds or drops.
pub const BATCH_MAX: usize = 256;

/// Most steps from a table up to its root.
const DEPTH_MAX: usize = 64;

/// Why changes of a table are not told, or not all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    NoPrimaryKey,
    /// REPLICA IDENTITY NOTHING.
    Nothing,
    /// The index of REPLICA IDENTITY USING INDEX is gone.
    IndexGone,
    /// The identity has a generated column, which is not told.
    Generated,
    Unlogged,
    Foreign,
    /// A partition or child can't be told.
    Part(String),
    /// It has partitions with identities, but later ones may have none.
    NoKeyForPartitions,
    /// The publication has only some of its rows or columns.
    Narrowed,
    /// It could be told, and is not yet.
    Unpublished,
    /// It could be told if its owner, or a superuser, ran this.
    Foreigner {
        sql: String,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NoPrimaryKey => f.write_str("it has no primary key that is not deferrable"),
            Unfit::Nothing => f.write_str("its replica identity is NOTHING"),
            Unfit::IndexGone => f.write_str("the index of its replica identity is gone"),
            Unfit::Generated => f.write_str("its replica identity has a generated column"),
            Unfit::Unlogged => f.write_str("it is unlogged"),
            Unfit::Foreign => f.write_str("it is a foreign table"),
            Unfit::Part(name) => write!(f, "its part {name} can't be told"),
            Unfit::NoKeyForPartitions => {
                f.write_str("without a primary key of its own later partitions may have none")
            }
            Unfit::Narrowed => f.write_str("the publication has only some of its rows or columns"),
            Unfit::Unpublished => f.write_str("it is not in the publication yet"),
            Unfit::Foreigner { .. } => {
                f.write_str("it is not in the publication and another role's")
            }
        }
    }
}

/// A table as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStanding {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// Every change of it is told; or why not.
    pub told: Result<(), Unfit>,
}

impl TableStanding {
    /// What its owner can run so that it is told, where SQL can mend it.
    pub fn mend(&self, publication: &str) -> Option<String> {
        let table = format!("{}.{}", identifier(&self.schema), identifier(&self.name));
        let alter = |what: &str| Some(format!("ALTER TABLE {table} {what};"));
        match self.told.as_ref().err()? {
            Unfit::NoPrimaryKey | Unfit::IndexGone => alter("REPLICA IDENTITY FULL"),
            Unfit::Nothing => alter("REPLICA IDENTITY DEFAULT"),
            Unfit::Unlogged => alter("SET LOGGED"),
            Unfit::Narrowed => {
                let name = identifier(publication);
                Some(format!(
                    "ALTER PUBLICATION {name} DROP TABLE {table}; \
                     ALTER PUBLICATION {name} ADD TABLE {table};"
                ))
            }
            Unfit::Foreigner { sql } => Some(sql.clone()),
            // The others say what is wrong elsewhere, or are on their way.
            Unfit::Generated
            | Unfit::Foreign
            | Unfit::Part(_)
            | Unfit::NoKeyForPartitions
            | Unfit::Unpublished => None,
        }
    }
}

/// What the catalogues say, put together.
#[derive(Debug, Clone, Default)]
pub struct Look {
    pub server: Server,
    pub name: String,
    pub publication: Option<Publication>,
    pub tables: Vec<Table>,
    parents: HashMap<u32, Vec<u32>>,
    children: HashMap<u32, Vec<u32>>,
    index: HashMap<u32, usize>,
}

/// A statement that changes the publication, and the tables that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub tables: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Create,
    /// All kinds of changes are told.
    Whole,
    /// Partitions are told under their own names.
    Partitions,
    Add,
    Drop,
}

impl Look {
    pub fn new(
        server: Server,
        name: &str,
        publication: Option<Publication>,
        tables: Vec<Table>,
        inherits: &[(u32, u32)],
    ) -> Look {
        let index: HashMap<u32, usize> =
            tables.iter().enumerate().map(|(at, table)| (table.oid, at)).collect();
        let mut look = Look { server, name: name.to_owned(), publication, ..Look::default() };
        for (child, parent) in inherits {
            // The others are indexes, or temporary.
            if index.contains_key(child) && index.contains_key(parent) {
                look.parents.entry(*child).or_default().push(*parent);
                look.children.entry(*parent).or_default().push(*child);
            }
        }
        Look { tables, index, ..look }
    }

    fn table(&self, oid: u32) -> Option<&Table> {
        self.index.get(&oid).map(|at| &self.tables[*at])
    }

    /// The tables above, nearest first.
    pub fn ancestors(&self, oid: u32) -> Vec<u32> {
        reach(&self.parents, oid)
    }

    /// The tables below.
    fn descendants(&self, oid: u32) -> impl Iterator<Item = &Table> {
        reach(&self.children, oid).into_iter().filter_map(|oid| self.table(oid))
    }

    /// The partitioned tables that it is a part of.
    fn roots<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a Table> {
        let above = if table.partition { self.ancestors(table.oid) } else { Vec::new() };
        above.into_iter().filter_map(|oid| self.table(oid))
    }

    /// Whether its own changes can be told without harm.
    fn fit(&self, table: &Table) -> Result<(), Unfit> {
        if table.kind == b'f' {
            return Err(Unfit::Foreign);
        }
        if table.persistence != b'p' {
            return Err(Unfit::Unlogged);
        }
        match table.identity {
            b'n' => return Err(Unfit::Nothing),
            b'd' if !table.primary => return Err(Unfit::NoPrimaryKey),
            b'i' if !table.marked => return Err(Unfit::IndexGone),
            // Source: release notes of 18, "publish_generated_columns".
            b'f' if table.generated && self.server.version >= 180_000 => {
                return Err(Unfit::Generated)
            }
            b'f' => {}
            _ if table.generated_key => return Err(Unfit::Generated),
            _ => {}
        }
        Ok(())
    }

    /// Whether a partitioned table can be named, so that partitions which come later are told
    /// from their beginning.
    fn fit_root(&self, root: &Table) -> Result<(), Unfit> {
        self.fit(root)?;
        if !root.primary {
            return Err(Unfit::NoKeyForPartitions);
        }
        match self.descendants(root.oid).find(|part| self.fit(part).is_err()) {
            Some(part) => Err(Unfit::Part(part.sql())),
            None => Ok(()),
        }
    }

    fn fit_at_all(&self, table: &Table) -> Result<(), Unfit> {
        match table.kind {
            b'p' => self.fit_root(table),
            _ => self.fit(table),
        }
    }

    /// The publication names it, a partitioned table above it, its schema, or everything.
    fn is_named(&self, table: &Table) -> bool {
        let all = self.publication.as_ref().is_some_and(|publication| publication.all);
        let named = |table: &Table| table.named || table.by_schema;
        all || named(table) || self.roots(table).any(named)
    }

    /// Whether every change of the table and of all below it is told.
    fn complete(&self, table: &Table) -> Result<(), Unfit> {
        self.fit_at_all(table)?;
        let unpublished = || match table.owned && self.may_change() {
            true => Unfit::Unpublished,
            false => Unfit::Foreigner {
                sql: format!(
                    "ALTER PUBLICATION {} ADD TABLE {};",
                    identifier(&self.name),
                    one(table)
                ),
            },
        };
        if table.narrowed || self.roots(table).any(|root| root.narrowed) {
            return Err(Unfit::Narrowed);
        }
        match table.kind {
            b'p' if !self.is_named(table) => return Err(unpublished()),
            b'p' => {}
            _ if !table.told => return Err(unpublished()),
            _ => {}
        }
        let untold = |part: &&Table| {
            self.fit(part).is_err() || part.narrowed || (part.kind != b'p' && !part.told)
        };
        match self.descendants(table.oid).find(untold) {
            Some(part) => Err(Unfit::Part(part.sql())),
            None => Ok(()),
        }
    }

    fn may_change(&self) -> bool {
        self.publication.as_ref().map_or(self.server.may_create, |publication| publication.owned)
    }

    /// The tables of which every change is told.
    pub fn published(&self) -> Vec<PublishedTable> {
        let complete = self.tables.iter().filter(|table| self.complete(table).is_ok());
        complete
            .map(|table| PublishedTable {
                oid: table.oid,
                schema: table.schema.clone(),
                name: table.name.clone(),
                partitioned: table.kind == b'p',
                ancestors: self.ancestors(table.oid),
            })
            .collect()
    }

    pub fn standing(&self) -> Vec<TableStanding> {
        let standing = |table: &Table| TableStanding {
            oid: table.oid,
            schema: table.schema.clone(),
            name: table.name.clone(),
            told: self.complete(table),
        };
        self.tables.iter().map(standing).collect()
    }

    /// The tables that the publication should name.
    fn wanted(&self) -> Vec<&Table> {
        let roots: HashSet<u32> = self
            .tables
            .iter()
            .filter(|table| table.kind == b'p' && self.fit_root(table).is_ok())
            .map(|table| table.oid)
            .collect();
        let covered = |table: &Table| self.roots(table).any(|root| roots.contains(&root.oid));
        self.tables
            .iter()
            .filter(|table| match table.kind {
                b'p' => roots.contains(&table.oid),
                _ => self.fit(table).is_ok(),
            })
            .filter(|table| !covered(table))
            .collect()
    }

    /// What has to be changed, as far as the role may.
    ///
    /// # Errors
    /// When nothing can be told before somebody else has changed something.
    pub fn changes(&self) -> Result<Vec<Change>, Missing> {
        let wanted = self.wanted();
        let bare = |kind| Change { kind, tables: Vec::new() };
        let Some(publication) = &self.publication else {
            if !self.server.may_create {
                let tables: Vec<String> = wanted.iter().map(|table| one(table)).collect();
                return Err(Missing::publication(&self.server, &self.name, &tables));
            }
            let add = wanted.iter().filter(|table| table.owned).map(|table| table.oid);
            let mut changes = vec![bare(Kind::Create)];
            changes.extend(batches(Kind::Add, add));
            return Ok(changes);
        };
        if !publication.owned {
            return match publication {
                Publication { whole: false, .. } => Err(Missing::kinds(&self.name)),
                Publication { via_root: true, .. } => Err(Missing::via_root(&self.name)),
                _ => Ok(Vec::new()),
            };
        }
        let mut changes = Vec::new();
        if !publication.whole {
            changes.push(bare(Kind::Whole));
        }
        if publication.via_root {
            changes.push(bare(Kind::Partitions));
        }
        let named = self.tables.iter().filter(|table| table.named);
        let (stay, drop): (Vec<&Table>, Vec<&Table>) =
            named.partition(|table| self.fit_at_all(table).is_ok());
        let stay: HashSet<u32> = stay.iter().map(|table| table.oid).collect();
        let stays = |table: &Table| table.by_schema || stay.contains(&table.oid);
        let covered =
            |table: &Table| publication.all || stays(table) || self.roots(table).any(stays);
        let add = wanted.iter().filter(|table| table.owned && !covered(table));
        changes.extend(batches(Kind::Add, add.map(|table| table.oid)));
        // Behind what is added, so that partitions are told while their root is dropped.
        changes.extend(batches(Kind::Drop, drop.iter().map(|table| table.oid)));
        Ok(changes)
    }

    /// The tables that may be told no longer when these changes are made.
    pub fn endangered(&self, changes: &[Change]) -> HashSet<u32> {
        let dropped = changes.iter().filter(|change| change.kind == Kind::Drop);
        let dropped: Vec<u32> = dropped.flat_map(|change| change.tables.clone()).collect();
        let below = dropped.iter().flat_map(|oid| self.descendants(*oid));
        let below = below.filter(|table| !table.named && !table.by_schema);
        below.map(|table| table.oid).chain(dropped.iter().copied()).collect()
    }

    /// The statement; tables that are gone meanwhile are left out.
    pub fn sql(&self, change: &Change) -> String {
        let names = || {
            let tables = change.tables.iter().filter_map(|oid| self.table(*oid));
            tables.map(one).collect::<Vec<_>>().join(", ")
        };
        let name = identifier(&self.name);
        match change.kind {
            Kind::Create => missing::create_publication(&self.server, &self.name, &[]),
            Kind::Whole => missing::publish_all(&self.name),
            Kind::Partitions => missing::tell_partitions(&self.name),
            Kind::Add => format!("ALTER PUBLICATION {name} ADD TABLE {};", names()),
            Kind::Drop => format!("ALTER PUBLICATION {name} DROP TABLE {};", names()),
        }
    }
}

/// As a publication's statement names it: children are named themselves.
fn one(table: &Table) -> String {
    match table.kind {
        b'p' => table.sql(),
        _ => format!("ONLY {}", table.sql()),
    }
}

fn batches(kind: Kind, tables: impl Iterator<Item = u32>) -> Vec<Change> {
    let tables: Vec<u32> = tables.collect();
    tables.chunks(BATCH_MAX).map(|part| Change { kind, tables: part.to_vec() }).collect()
}

/// Everything that edges lead to, each once.
fn reach(edges: &HashMap<u32, Vec<u32>>, from: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([from]);
    let mut layer = vec![from];
    for _ in 0..DEPTH_MAX {
        let next = layer.iter().filter_map(|oid| edges.get(oid)).flatten();
        let next: Vec<u32> = next.copied().filter(|oid| seen.insert(*oid)).collect();
        if next.is_empty() {
            break;
        }
        found.extend_from_slice(&next);
        layer = next;
    }
    found
}
