//! What the catalogues say of what a statement uses, as far as it decides whether its answer may
//! be kept. The rules for the texts of queries are those of `catalogue.rs`.

use std::collections::{BTreeSet, HashMap, HashSet};

use backend::replication::missing::identifier;

use super::catalogue::{array, parts_of_a_type, Key};
use super::connection::{Connection, Failure, Row};

/// The columns of relations: whether their collation tells apart what is not the same, whether
/// they are computed, and whether every change of a row tells them.
const TABLE_COLUMNS: &str = r"
SELECT a.attrelid, a.attname, a.atttypid,
  COALESCE((
    SELECT (pg_catalog.to_jsonb(l) OPERATOR(pg_catalog.->>) 'collisdeterministic')::pg_catalog.bool
    FROM pg_catalog.pg_collation l
    WHERE l.oid OPERATOR(pg_catalog.=) a.attcollation), true),
  COALESCE(pg_catalog.to_jsonb(a) OPERATOR(pg_catalog.->>) 'attgenerated', '')
    OPERATOR(pg_catalog.<>) '',
  EXISTS (
    SELECT 1 FROM pg_catalog.pg_class c
    WHERE c.oid OPERATOR(pg_catalog.=) a.attrelid
      AND (c.relreplident OPERATOR(pg_catalog.=) 'f'::pg_catalog.char OR EXISTS (
        SELECT 1 FROM pg_catalog.pg_index i
        WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid
          AND a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey::pg_catalog.int2[])
          AND (c.relreplident OPERATOR(pg_catalog.=) 'd'::pg_catalog.char AND i.indisprimary
            OR c.relreplident OPERATOR(pg_catalog.=) 'i'::pg_catalog.char AND i.indisreplident))))
FROM pg_catalog.pg_attribute a
WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
  AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped";

/// The tables that rows of a table come from: itself, its partitions, what inherits from it. With
/// their kind, how lasting they are, and whether changes of them tell which row has changed.
const PARTS: &str = r"
WITH RECURSIVE below(root, oid) AS (
  SELECT r.oid, r.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) r(oid)
  UNION
  SELECT b.root, h.inhrelid FROM below b
  JOIN pg_catalog.pg_inherits h ON h.inhparent OPERATOR(pg_catalog.=) b.oid)
SELECT b.root, c.oid, n.nspname, c.relname, c.relkind, c.relpersistence,
  c.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8,
  c.relreplident OPERATOR(pg_catalog.=) 'f'::pg_catalog.char OR EXISTS (
    SELECT 1 FROM pg_catalog.pg_index i
    WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid AND i.indisvalid AND i.indimmediate
      AND NOT i.indisexclusion
      AND (c.relreplident OPERATOR(pg_catalog.=) 'd'::pg_catalog.char AND i.indisprimary
        OR c.relreplident OPERATOR(pg_catalog.=) 'i'::pg_catalog.char AND i.indisreplident))
FROM below b
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) b.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
ORDER BY b.root, n.nspname, c.relname";

/// All functions of each name, wherever they are: schema, name, whether it is built in, volatility
/// (with that of what an aggregate is made of, and of defaults that are no constants), types of arguments and results.
const ROUTINES: &str = r"
SELECT n.nspname, p.proname,
  n.nspname OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.name
    AND p.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8,
  p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog.char AND NOT EXISTS (
      SELECT 1 FROM pg_catalog.pg_aggregate g
      JOIN pg_catalog.pg_proc t ON t.oid OPERATOR(pg_catalog.=) ANY (ARRAY[
        g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn,
        g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::pg_catalog.oid[])
      WHERE g.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) p.oid
        AND t.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog.char)
    AND (p.proargdefaults IS NULL
      OR n.nspname OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.name
      OR p.proargdefaults::pg_catalog.text OPERATOR(pg_catalog.!~) 'funcid|SQLVALUE|COERCE'),
  pg_catalog.array_to_string(p.proargtypes::pg_catalog.oid[], ' '),
  pg_catalog.array_to_string(
    pg_catalog.array_append(p.proallargtypes, p.prorettype), ' '),
  r.typcategory
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  AS q(schema, name)
JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_type r ON r.oid OPERATOR(pg_catalog.=) p.prorettype
WHERE q.schema IS NULL OR n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name
ORDER BY n.nspname, p.proname";

/// All operators of each name: schema, name, whether it is built in, its function, whether that
/// is immutable, types of operands and result.
const OPERATOR_ROUTINES: &str = r"
SELECT n.nspname, o.oprname,
  o.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8,
  p.proname,
  p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog.char,
  o.oprleft, o.oprright, o.oprresult
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  AS q(schema, name)
JOIN pg_catalog.pg_operator o ON o.oprname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) o.oprcode::pg_catalog.oid
WHERE q.schema IS NULL OR n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name
ORDER BY n.nspname, o.oprname";

/// Casts that a user has made with a function that is not immutable: target, whether they happen
/// unasked, both in words.
const USER_CASTS: &str = r"
SELECT c.casttarget, c.castcontext OPERATOR(pg_catalog.=) 'i'::pg_catalog.char,
  pg_catalog.format_type(c.castsource, NULL), pg_catalog.format_type(c.casttarget, NULL)
FROM pg_catalog.pg_cast c
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) c.castfunc
WHERE p.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog.char
  AND c.oid::pg_catalog.int8 OPERATOR(pg_catalog.>=) 16384::pg_catalog.int8";

/// `t.f` may stand for `f(t)`: functions of such names that take a row and are not immutable.
const ROW_FUNCTIONS: &str = r"
SELECT p.proname, n.nspname FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) p.proargtypes[0]
WHERE p.proname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]::pg_catalog.name[])
  AND p.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog.char
  AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) OPERATOR(pg_catalog.<=) 1
  AND t.typtype OPERATOR(pg_catalog.=) ANY (ARRAY['c','p','d']::pg_catalog.char[])";

/// Types by oid, as columns of relations and by name; each with all that values of it are made
/// of: name of the part, whether it is built in, its kind, a function that reads or writes it and
/// is not immutable. (Those for binary formats are stable because of client_encoding.)
const PARTS_OF_TYPES: &str = concat!(
    r"
WITH RECURSIVE roots(oid) AS (
  SELECT o.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) o(oid)
  UNION
  SELECT a.atttypid FROM pg_catalog.pg_attribute a
  WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.oid[])
    AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped
  UNION
  SELECT t.oid FROM pg_catalog.pg_type t
  WHERE t.typname OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.text[]::pg_catalog.name[])
), within(root, oid) AS (
  SELECT r.oid, r.oid FROM roots r
  UNION
  SELECT w.root, m.oid FROM within w
  JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) w.oid
",
    parts_of_a_type!(),
    r")
SELECT w.root, g.typname, t.typname, n.nspname,
  t.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8, t.typtype,
  (SELECT pg_catalog.min(p.proname::pg_catalog.text) FROM pg_catalog.pg_proc p
    WHERE p.oid OPERATOR(pg_catalog.=) ANY (ARRAY[t.typinput, t.typoutput]::pg_catalog.oid[])
        AND p.provolatile OPERATOR(pg_catalog.<>) 'i'::pg_catalog.char
      OR p.oid OPERATOR(pg_catalog.=) ANY (ARRAY[t.typreceive, t.typsend]::pg_catalog.oid[])
        AND p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char)
FROM within w
JOIN pg_catalog.pg_type g ON g.oid OPERATOR(pg_catalog.=) w.root
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) w.oid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace"
);

/// Prepared by every connection, like those of `catalogue.rs`.
pub const STATEMENTS: [(&str, &str); 7] = [
    ("table_columns", TABLE_COLUMNS),
    ("parts", PARTS),
    ("routines", ROUTINES),
    ("operator_routines", OPERATOR_ROUTINES),
    ("user_casts", USER_CASTS),
    ("row_functions", ROW_FUNCTIONS),
    ("parts_of_types", PARTS_OF_TYPES),
];

/// A column of a relation.
pub struct TableColumn {
    pub type_oid: u32,
    /// Values that are equal are the same.
    pub deterministic: bool,
    /// The replication stream may not have it.
    pub generated: bool,
    /// Part of the replica identity: its value before a change is always told.
    pub identity: bool,
}

/// A table that rows come from.
pub struct Part {
    pub root: u32,
    pub oid: u32,
    /// `app.orders`.
    pub name: String,
    /// The same for a statement.
    pub sql: String,
    /// `pg_class.relkind`.
    pub kind: u8,
    /// `pg_class.relpersistence`.
    pub persistence: u8,
    pub builtin: bool,
    /// It has a replica identity.
    pub identified: bool,
}

/// A function, or that of an operator.
pub struct Routine {
    pub schema: String,
    /// As it is called.
    pub name: String,
    /// Of the function.
    pub function: String,
    pub builtin: bool,
    pub immutable: bool,
    pub takes: Vec<u32>,
    /// Types of results, and of arguments where some of them are results.
    pub gives: Vec<u32>,
    /// `pg_type.typcategory` of the result.
    pub category: u8,
}

/// A cast by a user's function that is not immutable.
pub struct UserCast {
    pub target: u32,
    pub implicit: bool,
    pub words: String,
}

/// What values of a type are made of.
pub struct PartOf {
    pub name: String,
    pub schema: String,
    pub builtin: bool,
    /// `pg_type.typtype`.
    pub kind: u8,
    /// A function that reads or writes values and is not immutable.
    pub changing: Option<String>,
}

/// What to ask for.
#[derive(Default)]
pub struct Wanted {
    /// Relations, views as well.
    pub relations: BTreeSet<u32>,
    /// Those that are tables.
    pub tables: BTreeSet<u32>,
    pub functions: BTreeSet<Key>,
    pub operators: BTreeSet<Key>,
    /// Columns with a qualifier.
    pub columns: BTreeSet<String>,
    pub types: BTreeSet<u32>,
    /// Names that are types, perhaps.
    pub type_names: BTreeSet<String>,
}

#[derive(Default)]
pub struct Facts {
    pub columns: HashMap<u32, HashMap<String, TableColumn>>,
    pub parts: Vec<Part>,
    pub functions: Vec<Routine>,
    pub operators: Vec<Routine>,
    pub casts: Vec<UserCast>,
    /// Functions that take a row and are not immutable, as `schema.name`, by name.
    pub row_functions: HashMap<String, String>,
    pub types: HashMap<u32, Vec<PartOf>>,
    /// Types by the names that were asked for.
    pub named: HashMap<String, HashSet<u32>>,
}

impl Connection {
    /// All of it in one round trip.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn facts(&mut self, wanted: &Wanted) -> Result<Facts, Failure> {
        let pair = |keys: &BTreeSet<Key>| {
            let schemas = array(keys.iter().map(|(schema, _)| schema.as_deref()));
            [schemas, array(keys.iter().map(|(_, name)| Some(name.as_str())))]
        };
        let relations = oids(&wanted.relations);
        let names = |names: &BTreeSet<String>| array(names.iter().map(|name| Some(name.as_str())));
        let answers = self
            .ask(&[
                ("table_columns", std::slice::from_ref(&relations)),
                ("parts", &[oids(&wanted.tables)]),
                ("routines", &pair(&wanted.functions)),
                ("operator_routines", &pair(&wanted.operators)),
                ("user_casts", &[]),
                ("row_functions", &[names(&wanted.columns)]),
                (
                    "parts_of_types",
                    &[oids(&wanted.types), relations.clone(), names(&wanted.type_names)],
                ),
            ])
            .await?;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap_or_default().into_iter();
        let mut facts = Facts::default();
        for mut row in next() {
            let (relation, name) = (row.number(), row.text());
            let column = TableColumn {
                type_oid: row.number(),
                deterministic: row.bool(),
                generated: row.bool(),
                identity: row.bool(),
            };
            facts.columns.entry(relation).or_default().insert(name, column);
        }
        facts.parts = next().map(part).collect();
        facts.functions = next().map(function).collect();
        facts.operators = next().map(operator).collect();
        facts.casts = next()
            .map(|mut row| UserCast {
                target: row.number(),
                implicit: row.bool(),
                words: format!("the cast from {} to {}", row.text(), row.text()),
            })
            .collect();
        facts.row_functions = next()
            .map(|mut row| {
                let name = row.text();
                let shown = format!("{}{name}", super::statement::shown(&row.text()));
                (name, shown)
            })
            .collect();
        for mut row in next() {
            let (root, name) = (row.number(), row.text());
            if wanted.type_names.contains(&name) {
                facts.named.entry(name).or_default().insert(root);
            }
            facts.types.entry(root).or_default().push(PartOf {
                name: row.text(),
                schema: row.text(),
                builtin: row.bool(),
                kind: row.byte(),
                changing: row.take(),
            });
        }
        Ok(facts)
    }
}

pub fn oids(oids: &BTreeSet<u32>) -> String {
    let texts: Vec<String> = oids.iter().map(u32::to_string).collect();
    array(texts.iter().map(|oid| Some(oid.as_str())))
}

/// Oids with blanks between them.
fn list(text: &str) -> Vec<u32> {
    text.split(' ').filter_map(|oid| oid.parse().ok()).collect()
}

fn part(mut row: Row) -> Part {
    let (root, oid, schema, name) = (row.number(), row.number(), row.text(), row.text());
    Part {
        root,
        oid,
        name: format!("{}{name}", super::statement::shown(&schema)),
        sql: format!("{}.{}", identifier(&schema), identifier(&name)),
        kind: row.byte(),
        persistence: row.byte(),
        builtin: row.bool(),
        identified: row.bool(),
    }
}

fn function(mut row: Row) -> Routine {
    let (schema, name) = (row.text(), row.text());
    Routine {
        schema,
        function: name.clone(),
        name,
        builtin: row.bool(),
        immutable: row.bool(),
        takes: list(&row.text()),
        gives: list(&row.text()),
        category: row.byte(),
    }
}

fn operator(mut row: Row) -> Routine {
    let (schema, name, builtin) = (row.text(), row.text(), row.bool());
    Routine {
        schema,
        name,
        builtin,
        function: row.text(),
        immutable: row.bool(),
        takes: vec![row.number(), row.number()],
        gives: vec![row.number()],
        category: 0,
    }
}
