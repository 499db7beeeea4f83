//! What the catalogues say of names: the queries, and their answers as values.
//!
//! Nothing that a user has defined may be hit by these queries, whatever the search_path is: every
//! type, function, table and operator is named with its schema, and `IN`, `<>` and their like,
//! which can't be, are not used. `unnest` with several arrays only works without a schema, hence
//! `ROWS FROM`.

use std::collections::{BTreeSet, HashMap};

use super::connection::{Connection, Failure, Row};

/// Most bytes of a view's definition; a row with it has to fit into one message.
const DEFINITION_BYTES_MAX: usize = 32_768;

/// Most expressions of one written table (and of what is written with it).
pub const EXPRESSIONS_MAX: usize = 256;

/// Each name's relation, if it is visible: oid, schema, name, kind, whether it is temporary, has
/// row security, is a view that asks with the rights of who asks, has something else than tables
/// below it.
const RELATIONS: &str = r"
SELECT q.i, c.oid, n.nspname, c.relname, c.relkind,
  c.relpersistence OPERATOR(pg_catalog.=) 't'::pg_catalog.char,
  c.relrowsecurity,
  pg_catalog.array_to_string(c.reloptions, ' ') OPERATOR(pg_catalog.~*)
    'security_invoker=(t|y|on|1)',
  EXISTS (
    WITH RECURSIVE below(oid) AS (
      SELECT h.inhrelid FROM pg_catalog.pg_inherits h
      WHERE c.relhassubclass AND h.inhparent OPERATOR(pg_catalog.=) c.oid
      UNION
      SELECT h.inhrelid FROM below b
      JOIN pg_catalog.pg_inherits h ON h.inhparent OPERATOR(pg_catalog.=) b.oid)
    SELECT 1 FROM below b
    JOIN pg_catalog.pg_class k ON k.oid OPERATOR(pg_catalog.=) b.oid
    WHERE k.relkind OPERATOR(pg_catalog.<>) ALL (ARRAY['r','p','i','I']::pg_catalog.char[]))
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  WITH ORDINALITY AS q(schema, name, i)
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) CASE
  WHEN q.schema IS NULL THEN
    pg_catalog.to_regclass(pg_catalog.quote_ident(q.name))::pg_catalog.oid
  ELSE (
    SELECT r.oid FROM pg_catalog.pg_class r
    JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) r.relnamespace
    WHERE s.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name
      AND r.relname OPERATOR(pg_catalog.=) q.name::pg_catalog.name)
  END
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace";

/// Views by oid, with their definitions if those are not too long.
const DEFINITIONS: &str = r"
SELECT v.oid, CASE
  WHEN pg_catalog.octet_length(v.definition) OPERATOR(pg_catalog.<=) $2::pg_catalog.int4
  THEN v.definition END
FROM (
  SELECT o.oid, pg_catalog.pg_get_viewdef(o.oid)
  FROM pg_catalog.unnest($1::pg_catalog.oid[]) o(oid) OFFSET 0
) v(oid, definition)";

/// Until the end of the round trip. With it the server qualifies every name that it writes, but
/// for its own; and its own queries about views (in ruleutils.c) find no operator but its own.
const PINNED: &str = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)";

/// All functions of each name, wherever they are: how many; the schema of a volatile one that a
/// user made, whether a volatile one is built in; the schema of one that takes a domain, whose
/// check runs then; whether `name(x)` may be a cast that runs something.
///
/// An aggregate is as volatile as what it is made of, and a function as the defaults of its
/// arguments, which are a part of its call. They are read as PostgreSQL stores them. (Without the
/// brackets in the name of a node, a test would find a word there that is not allowed.)
const FUNCTIONS: &str = r"
SELECT q.i, f.many, f.volatile_at, f.volatile_builtin, f.domain_at,
  EXISTS (
    SELECT 1 FROM pg_catalog.pg_type d
    WHERE d.typname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
      AND (d.typtype OPERATOR(pg_catalog.=) 'd'::pg_catalog.char OR EXISTS (
        SELECT 1 FROM pg_catalog.pg_cast c
        JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) c.castfunc
        WHERE c.casttarget OPERATOR(pg_catalog.=) d.oid
          AND p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char)))
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  WITH ORDINALITY AS q(schema, name, i)
CROSS JOIN LATERAL (
  SELECT pg_catalog.count(*),
    pg_catalog.min(n.nspname::pg_catalog.text) FILTER (WHERE a.volatile AND NOT a.builtin),
    pg_catalog.bool_or(a.volatile AND a.builtin),
    pg_catalog.min(n.nspname::pg_catalog.text) FILTER (WHERE EXISTS (
      SELECT 1 FROM pg_catalog.pg_type d
      WHERE d.oid OPERATOR(pg_catalog.=) ANY (p.proargtypes::pg_catalog.oid[])
        AND d.typtype OPERATOR(pg_catalog.=) 'd'::pg_catalog.char))
  FROM pg_catalog.pg_proc p
  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
  CROSS JOIN LATERAL (
    SELECT
      p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char OR EXISTS (
        SELECT 1 FROM pg_catalog.pg_aggregate g
        JOIN pg_catalog.pg_proc t ON t.oid OPERATOR(pg_catalog.=) ANY (ARRAY[
          g.aggtransfn, g.aggfinalfn, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn,
          g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::pg_catalog.oid[])
        WHERE g.aggfnoid::pg_catalog.oid OPERATOR(pg_catalog.=) p.oid
          AND t.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char)
        OR p.proargdefaults::pg_catalog.text OPERATOR(pg_catalog.~) 'COERCETO[D]OMAIN|:opfuncid 0 '
        OR EXISTS (
          SELECT 1 FROM pg_catalog.regexp_matches(
            p.proargdefaults::pg_catalog.text, ':(?:op)?funcid (\d+)', 'g') d(called)
          JOIN pg_catalog.pg_proc t ON t.oid OPERATOR(pg_catalog.=) d.called[1]::pg_catalog.oid
          WHERE t.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char),
      n.nspname OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.name
        AND p.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8
  ) a(volatile, builtin)
  WHERE p.proname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
    AND (q.schema IS NULL OR n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name)
) f(many, volatile_at, volatile_builtin, domain_at)";

/// All operators of each name that are known: the schema of one whose function is volatile.
const OPERATORS: &str = r"
SELECT q.i,
  pg_catalog.min(n.nspname::pg_catalog.text)
    FILTER (WHERE p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char)
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  WITH ORDINALITY AS q(schema, name, i)
JOIN pg_catalog.pg_operator o ON o.oprname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) o.oprnamespace
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) o.oprcode::pg_catalog.oid
WHERE q.schema IS NULL OR n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name
GROUP BY q.i";

/// Each name's type, if it is visible: schema, name, kind; whether something of it is a domain;
/// a volatile function that makes values of it.
const TYPES: &str = r"
SELECT q.i, n.nspname, t.typname, t.typtype, t.oid, t.typarray,
  EXISTS (
    SELECT 1 FROM pg_catalog.pg_type e
    WHERE e.typtype OPERATOR(pg_catalog.=) ANY (ARRAY['d','c']::pg_catalog.char[])
      AND (e.oid OPERATOR(pg_catalog.=) t.typelem OR e.oid OPERATOR(pg_catalog.=) (
        SELECT r.rngsubtype FROM pg_catalog.pg_range r
        WHERE r.rngtypid OPERATOR(pg_catalog.=) t.oid))),
  (SELECT pg_catalog.min(p.proname::pg_catalog.text)
    FROM (
      SELECT t.typinput::pg_catalog.oid UNION ALL
      SELECT c.castfunc FROM pg_catalog.pg_cast c
      WHERE c.casttarget OPERATOR(pg_catalog.=) t.oid
    ) made(by)
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) made.by
    WHERE p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char)
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  WITH ORDINALITY AS q(schema, name, i)
JOIN pg_catalog.pg_type t ON t.typname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace
WHERE CASE WHEN q.schema IS NULL THEN pg_catalog.pg_type_is_visible(t.oid)
  ELSE n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name END";

/// `t.f` may stand for `f(t)`: volatile functions of such names that take a row.
const COLUMNS: &str = r"
SELECT p.proname, pg_catalog.min(n.nspname::pg_catalog.text) FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) p.proargtypes[0]
WHERE p.proname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]::pg_catalog.name[])
  AND p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char
  AND (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults) OPERATOR(pg_catalog.<=) 1
  AND t.typtype OPERATOR(pg_catalog.=) ANY (ARRAY['c','p','d']::pg_catalog.char[])
GROUP BY p.proname";

/// A cast that nobody writes down, by a volatile function: whether an assignment is needed for
/// it, from, to. Those that are built in have none.
const CASTS: &str = r"
SELECT pg_catalog.bool_and(c.castcontext OPERATOR(pg_catalog.=) 'a'::pg_catalog.char),
  pg_catalog.min(pg_catalog.format_type(c.castsource, NULL)),
  pg_catalog.min(pg_catalog.format_type(c.casttarget, NULL))
FROM pg_catalog.pg_cast c
JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) c.castfunc
WHERE p.provolatile OPERATOR(pg_catalog.=) 'v'::pg_catalog.char
  AND c.castcontext OPERATOR(pg_catalog.<>) 'e'::pg_catalog.char
  AND c.oid::pg_catalog.int8 OPERATOR(pg_catalog.>=) 16384::pg_catalog.int8
HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 0::pg_catalog.int8";

/// What a type `t` is made of, as `m`: SQL behind the FROM of a recursion.
macro_rules! parts_of_a_type {
    () => {
        r"
  CROSS JOIN LATERAL (
    SELECT t.typbasetype UNION ALL
    SELECT t.typelem UNION ALL
    SELECT r.rngsubtype FROM pg_catalog.pg_range r
    WHERE r.rngtypid OPERATOR(pg_catalog.=) t.oid UNION ALL
    SELECT a.atttypid FROM pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) t.typrelid
      AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped
  ) m(oid)
  WHERE m.oid OPERATOR(pg_catalog.<>) 0::pg_catalog.oid
"
    };
}
pub(super) use parts_of_a_type;

/// What runs when a table is written: on itself, on what inherits from it, and on the tables that
/// foreign keys change with it (`$2`: rows of it are deleted). And whether it has columns or
/// domains of type interval with a modifier. Rows are (what, table's schema, table, name or
/// expression). `OFFSET 0` keeps `text IS NOT NULL` from being tried on every
/// expression of the database before the joins.
const WRITTEN: &str = concat!(
    r"
WITH RECURSIVE touched(oid) AS (
  SELECT $1::pg_catalog.oid
  UNION
  SELECT e.child FROM touched t
  JOIN (
    SELECT h.inhparent, h.inhrelid FROM pg_catalog.pg_inherits h
    UNION ALL
    SELECT k.confrelid, k.conrelid FROM pg_catalog.pg_constraint k
    WHERE k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog.char
      AND (k.confupdtype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[])
        OR $2::pg_catalog.bool
          AND k.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[]))
  ) e(parent, child) ON e.parent OPERATOR(pg_catalog.=) t.oid
), types(oid) AS (
  SELECT a.atttypid FROM touched t
  JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) t.oid
  WHERE a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped
  UNION
  SELECT m.oid FROM types o
  JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) o.oid
",
    parts_of_a_type!(),
    r"), found(what, class, text) AS (
  SELECT 'interval', $1::pg_catalog.oid, i.name FROM (
    SELECT a.attname::pg_catalog.text FROM pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid
      AND a.atttypid OPERATOR(pg_catalog.=) 1186::pg_catalog.oid
      AND a.atttypmod OPERATOR(pg_catalog.<>) (-1)::pg_catalog.int4
    UNION ALL
    SELECT d.typname::pg_catalog.text FROM types o
    JOIN pg_catalog.pg_type d ON d.oid OPERATOR(pg_catalog.=) o.oid
    WHERE d.typbasetype OPERATOR(pg_catalog.=) 1186::pg_catalog.oid
      AND d.typtypmod OPERATOR(pg_catalog.<>) (-1)::pg_catalog.int4
  ) i(name)
  UNION ALL
  SELECT 'trigger', g.tgrelid, g.tgname::pg_catalog.text FROM touched t
  JOIN pg_catalog.pg_trigger g ON g.tgrelid OPERATOR(pg_catalog.=) t.oid
  WHERE NOT g.tgisinternal
  UNION ALL
  SELECT 'cascade', $1::pg_catalog.oid, k.conname::pg_catalog.text FROM touched t
  JOIN pg_catalog.pg_constraint k ON k.confrelid OPERATOR(pg_catalog.=) t.oid
  WHERE k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog.char
    AND (k.confupdtype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[])
      OR $2::pg_catalog.bool
        AND k.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[]))
  UNION ALL
  SELECT 'rule', r.ev_class, r.rulename::pg_catalog.text FROM touched t
  JOIN pg_catalog.pg_rewrite r ON r.ev_class OPERATOR(pg_catalog.=) t.oid
  UNION ALL
  SELECT 'kind', c.oid, c.relkind::pg_catalog.text FROM touched t
  JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.oid
  WHERE c.relkind OPERATOR(pg_catalog.<>) ALL (ARRAY['r','p']::pg_catalog.char[])
  UNION ALL
  SELECT 'expression', d.adrelid, pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM touched t
  JOIN pg_catalog.pg_attrdef d ON d.adrelid OPERATOR(pg_catalog.=) t.oid
  UNION ALL
  SELECT 'expression', k.conrelid, pg_catalog.pg_get_expr(k.conbin, k.conrelid) FROM touched t
  JOIN pg_catalog.pg_constraint k ON k.conrelid OPERATOR(pg_catalog.=) t.oid
  WHERE k.conbin IS NOT NULL
  UNION ALL
  SELECT 'expression', x.indrelid, e.text FROM touched t
  JOIN pg_catalog.pg_index x ON x.indrelid OPERATOR(pg_catalog.=) t.oid
  CROSS JOIN LATERAL (
    SELECT pg_catalog.pg_get_expr(x.indexprs, x.indrelid) UNION ALL
    SELECT pg_catalog.pg_get_expr(x.indpred, x.indrelid)
  ) e(text)
  UNION ALL
  SELECT 'expression', $1::pg_catalog.oid, pg_catalog.pg_get_expr(k.conbin, 0::pg_catalog.oid)
  FROM types o
  JOIN pg_catalog.pg_constraint k ON k.contypid OPERATOR(pg_catalog.=) o.oid
  WHERE k.conbin IS NOT NULL
  UNION ALL
  SELECT 'expression', $1::pg_catalog.oid, pg_catalog.pg_get_expr(y.typdefaultbin, 0::pg_catalog.oid)
  FROM types o
  JOIN pg_catalog.pg_type y ON y.oid OPERATOR(pg_catalog.=) o.oid
  OFFSET 0
)
SELECT f.what, pg_catalog.min(n.nspname::pg_catalog.text), pg_catalog.min(c.relname::pg_catalog.text),
  f.text
FROM found f
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) f.class
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE f.text IS NOT NULL
GROUP BY f.what, f.text
ORDER BY f.what DESC, f.text
LIMIT $3::pg_catalog.int4"
);

/// The statements that a connection prepares, by their names.
pub const STATEMENTS: [(&str, &str); 9] = [
    ("relations", RELATIONS),
    ("functions", FUNCTIONS),
    ("operators", OPERATORS),
    ("types", TYPES),
    ("columns", COLUMNS),
    ("casts", CASTS),
    ("pinned", PINNED),
    ("definitions", DEFINITIONS),
    ("written", WRITTEN),
];

/// A name with its schema, if one was written.
pub type Key = (Option<String>, String);

/// Names to look up.
#[derive(Default)]
pub struct Names {
    pub relations: BTreeSet<Key>,
    pub functions: BTreeSet<Key>,
    pub operators: BTreeSet<Key>,
    pub types: BTreeSet<Key>,
    /// Columns with something in front of them.
    pub columns: BTreeSet<String>,
}

pub struct Relation {
    pub oid: String,
    pub schema: String,
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: u8,
    pub temporary: bool,
    pub row_security: bool,
    /// A view that reads with the rights of who asks.
    pub invoker: bool,
    /// Something that is not a table inherits from it or is a partition of it.
    pub foreign_below: bool,
}

/// The functions of one name.
pub struct Functions {
    pub known: bool,
    /// The schema of a volatile one that is not built in.
    pub volatile_at: Option<String>,
    pub volatile_builtin: bool,
    /// The schema of one that takes a domain.
    pub domain_at: Option<String>,
    /// A call may be a cast to a domain, or by a volatile function.
    pub cast: bool,
}

pub struct Type {
    pub schema: String,
    pub name: String,
    /// `pg_type.typtype`.
    pub kind: u8,
    pub oid: u32,
    /// Of arrays of it; 0 for none.
    pub array: u32,
    /// Its elements, or what it is a range of, are of a domain or a row type.
    pub of_domain: bool,
    /// A function that makes values of it.
    pub volatile: Option<String>,
}

/// A cast by a volatile function that happens unasked.
pub struct Cast {
    /// Only where a value is assigned to a column.
    pub assignment: bool,
    pub from: String,
    pub to: String,
}

/// What is known of names; who is not in it is not known.
#[derive(Default)]
pub struct Answers {
    pub relations: HashMap<Key, Relation>,
    pub functions: HashMap<Key, Functions>,
    /// The schema of one with a volatile function.
    pub operators: HashMap<Key, Option<String>>,
    pub types: HashMap<Key, Type>,
    /// The schema of a volatile function that `t.column` may mean.
    pub columns: HashMap<String, String>,
    pub cast: Option<Cast>,
}

/// The texts of views by their oids.
pub type Definitions = HashMap<String, String>;

/// What runs when a table is written.
pub struct Touched {
    pub what: What,
    /// Of the table.
    pub schema: String,
    pub table: String,
    /// The name of the trigger or rule; the relation's kind; the expression.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Trigger,
    Rule,
    /// Not a table.
    Kind,
    /// A default, a check, an index.
    Expression,
    /// A column or domain of type interval with a modifier, which is nothing that runs.
    Interval,
    /// A foreign key by which rows of other tables are written.
    Cascade,
}

impl Names {
    pub fn count(&self) -> usize {
        self.relations.len()
            + self.functions.len()
            + self.operators.len()
            + self.types.len()
            + self.columns.len()
    }
}

impl Connection {
    /// Looks all of them up, in one round trip.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn look_up(&mut self, names: &Names) -> Result<Answers, Failure> {
        let pair = |keys: &BTreeSet<Key>| {
            let schemas = array(keys.iter().map(|(schema, _)| schema.as_deref()));
            [schemas, array(keys.iter().map(|(_, name)| Some(name.as_str())))]
        };
        let columns = array(names.columns.iter().map(|name| Some(name.as_str())));
        let answers = self
            .ask(&[
                ("relations", &pair(&names.relations)),
                ("functions", &pair(&names.functions)),
                ("operators", &pair(&names.operators)),
                ("types", &pair(&names.types)),
                ("columns", &[columns]),
                ("casts", &[]),
            ])
            .await?;
        let mut answers = answers.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        Ok(Answers {
            relations: by_name(&names.relations, next(), |row| Relation {
                oid: row.text(),
                schema: row.text(),
                name: row.text(),
                kind: row.byte(),
                temporary: row.bool(),
                row_security: row.bool(),
                invoker: row.bool(),
                foreign_below: row.bool(),
            }),
            functions: by_name(&names.functions, next(), |row| Functions {
                known: row.text() != "0",
                volatile_at: row.take(),
                volatile_builtin: row.bool(),
                domain_at: row.take(),
                cast: row.bool(),
            }),
            operators: by_name(&names.operators, next(), Row::take),
            types: by_name(&names.types, next(), |row| Type {
                schema: row.text(),
                name: row.text(),
                kind: row.byte(),
                oid: row.number(),
                array: row.number(),
                of_domain: row.bool(),
                volatile: row.take(),
            }),
            columns: next().into_iter().map(|mut row| (row.text(), row.text())).collect(),
            cast: next().into_iter().next().map(|mut row| Cast {
                assignment: row.bool(),
                from: row.text(),
                to: row.text(),
            }),
        })
    }

    /// What runs when the relation with this oid is written; `deletes`: rows of it are deleted.
    /// One row more than [`EXPRESSIONS_MAX`] at the most. Names in expressions are qualified, but
    /// for those of pg_catalog.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn written(&mut self, oid: &str, deletes: bool) -> Result<Vec<Touched>, Failure> {
        let values = [oid.to_owned(), deletes.to_string(), (EXPRESSIONS_MAX + 1).to_string()];
        let answers = self.ask(&[("pinned", &[]), ("written", &values)]).await?;
        let touched = |mut row: Row| Touched {
            what: match row.text().as_str() {
                "trigger" => What::Trigger,
                "rule" => What::Rule,
                "interval" => What::Interval,
                "cascade" => What::Cascade,
                "expression" => What::Expression,
                _ => What::Kind,
            },
            schema: row.text(),
            table: row.text(),
            text: row.text(),
        };
        Ok(answers.into_iter().skip(1).flatten().map(touched).collect())
    }

    /// The definitions of these views, by oid, without those that are too long. Names in them are
    /// qualified, but for those of pg_catalog.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn definitions(&mut self, views: &[String]) -> Result<Definitions, Failure> {
        let values =
            [array(views.iter().map(|oid| Some(oid.as_str()))), DEFINITION_BYTES_MAX.to_string()];
        let answers = self.ask(&[("pinned", &[]), ("definitions", &values)]).await?;
        let rows = answers.into_iter().skip(1).flatten();
        Ok(rows.filter_map(|mut row| Some((row.take()?, row.take()?))).collect())
    }
}

/// Rows begin with the place of their name in `keys`, from 1 on.
fn by_name<T>(
    keys: &BTreeSet<Key>,
    rows: Vec<Row>,
    mut read: impl FnMut(&mut Row) -> T,
) -> HashMap<Key, T> {
    let keys: Vec<&Key> = keys.iter().collect();
    let mut found = HashMap::with_capacity(rows.len());
    for mut row in rows {
        let place = row.text().parse::<usize>().unwrap_or(0);
        if let Some(key) = place.checked_sub(1).and_then(|place| keys.get(place)) {
            found.insert((*key).clone(), read(&mut row));
        }
    }
    found
}

/// The text form of a `text[]`.
///
/// Source: PostgreSQL documentation, "Array Input and Output Syntax".
pub fn array<'a>(items: impl Iterator<Item = Option<&'a str>>) -> String {
    let mut text = String::from("{");
    for item in items {
        if text.len() > 1 {
            text.push(',');
        }
        let Some(item) = item else {
            text.push_str("NULL");
            continue;
        };
        text.push('"');
        for c in item.chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::array;

    #[test]
    fn odd_names_keep_their_characters_in_an_array() {
        let items = [None, Some("a\"b"), Some("c\\"), Some("NULL"), Some("")];
        assert_eq!(array(items.into_iter()), r#"{NULL,"a\"b","c\\","NULL",""}"#);
        assert_eq!(array(std::iter::empty()), "{}");
    }
}
