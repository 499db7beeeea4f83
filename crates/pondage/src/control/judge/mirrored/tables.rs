//! What the catalogues say of tables that may be mirrored. The rules for the texts of queries are
//! those of `catalogue.rs`.

use std::collections::{BTreeSet, HashMap};

use cache::mirror::class::{Class, Collation};
use cache::mirror::definition::Column;

use super::super::connection::{Connection, Failure, Row};
use super::super::facts::oids;

/// The columns of tables in their order. For each table: its name, its kind, its file, whether it
/// inherits or is inherited from (partitions too). For each column: its number, name, type, modifier,
/// whether NULLs and computed values are possible, its collation, what that does with texts (`n`: equal
/// ones may be different; `o`: their order is that of their bytes in UTF-8; `e`: another), whether its type is
/// an enum, its place in the key that tells rows apart, and whether who asks may read it.
///
/// That key is the primary key or the replica identity, if it is checked at once and its columns
/// are plain ones: columns that an index only includes come behind `indnkeyatts`.
const MIRROR_COLUMNS: &str = r"
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relfilenode,
  EXISTS (
    SELECT 1 FROM pg_catalog.pg_inherits h
    WHERE h.inhparent OPERATOR(pg_catalog.=) c.oid OR h.inhrelid OPERATOR(pg_catalog.=) c.oid),
  a.attnum, a.attname, a.atttypid, a.atttypmod, a.attnotnull,
  COALESCE(pg_catalog.to_jsonb(a) OPERATOR(pg_catalog.->>) 'attgenerated', '')
    OPERATOR(pg_catalog.<>) '',
  a.attcollation,
  CASE
    WHEN NOT l.deterministic THEN 'n'
    WHEN l.provider OPERATOR(pg_catalog.=) 'b' AND d.utf8 THEN 'o'
    WHEN l.provider OPERATOR(pg_catalog.=) 'c' AND d.utf8
      AND l.locale OPERATOR(pg_catalog.=) ANY (ARRAY['C','POSIX']::pg_catalog.text[]) THEN 'o'
    WHEN l.provider OPERATOR(pg_catalog.=) 'd' AND d.utf8 AND d.bytes THEN 'o'
    ELSE 'e'
  END,
  t.typtype OPERATOR(pg_catalog.=) 'e'::pg_catalog.char,
  pg_catalog.array_position(k.columns, a.attnum),
  pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'::pg_catalog.text)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
CROSS JOIN (
  SELECT
    pg_catalog.pg_encoding_to_char(b.encoding) OPERATOR(pg_catalog.=) 'UTF8'::pg_catalog.name,
    CASE COALESCE(pg_catalog.to_jsonb(b) OPERATOR(pg_catalog.->>) 'datlocprovider', 'c')
      WHEN 'b' THEN true
      WHEN 'c' THEN b.datcollate::pg_catalog.text
        OPERATOR(pg_catalog.=) ANY (ARRAY['C','POSIX']::pg_catalog.text[])
      ELSE false
    END
  FROM pg_catalog.pg_database b
  WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
) d(utf8, bytes)
LEFT JOIN LATERAL (
  SELECT o.collprovider::pg_catalog.text, o.collcollate::pg_catalog.text,
    COALESCE(
      (pg_catalog.to_jsonb(o) OPERATOR(pg_catalog.->>) 'collisdeterministic')::pg_catalog.bool,
      true)
  FROM pg_catalog.pg_collation o WHERE o.oid OPERATOR(pg_catalog.=) a.attcollation
) l(provider, locale, deterministic) ON true
LEFT JOIN LATERAL (
  SELECT ARRAY(
    SELECT u.attnum
    FROM pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY AS u(attnum, place)
    WHERE u.place OPERATOR(pg_catalog.<=) COALESCE(
      (pg_catalog.to_jsonb(i) OPERATOR(pg_catalog.->>) 'indnkeyatts')::pg_catalog.int8,
      i.indnatts::pg_catalog.int8)
    ORDER BY u.place)
  FROM pg_catalog.pg_index i
  WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid
    AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indpred IS NULL AND i.indexprs IS NULL
    AND CASE c.relreplident
      WHEN 'i'::pg_catalog.char THEN i.indisreplident
      WHEN 'n'::pg_catalog.char THEN false
      ELSE i.indisprimary
    END
  LIMIT 1::pg_catalog.int8
) k(columns) ON true
WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
  AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped
ORDER BY c.oid, a.attnum";

/// The labels of enums that are types of columns, in their order.
const MIRROR_LABELS: &str = r"
SELECT e.enumtypid, e.enumlabel FROM pg_catalog.pg_enum e
WHERE e.enumtypid OPERATOR(pg_catalog.=) ANY (ARRAY(
  SELECT a.atttypid FROM pg_catalog.pg_attribute a
  WHERE a.attrelid OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.oid[])
    AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped))
ORDER BY e.enumtypid, e.enumsortorder";

/// Prepared by every connection.
pub const STATEMENTS: [(&str, &str); 2] =
    [("mirror_columns", MIRROR_COLUMNS), ("mirror_labels", MIRROR_LABELS)];

/// A table as the catalogues have it.
#[derive(Default)]
pub struct Known {
    pub schema: String,
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: u8,
    pub filenode: u32,
    /// It has parts, or is one.
    pub inherits: bool,
    /// All of them, in the order of their numbers.
    pub columns: Vec<KnownColumn>,
}

pub struct KnownColumn {
    pub column: Column,
    /// The replication stream may not have it.
    pub generated: bool,
    /// The oid of its collation.
    pub collation: u32,
    /// Its place in the key.
    pub in_key: Option<u32>,
    /// Whoever asks may read it. PostgreSQL looks with each statement; a mirror does not ask it.
    pub readable: bool,
}

impl Connection {
    /// Tables by their oids, in one round trip.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn mirrorable(
        &mut self,
        tables: &BTreeSet<u32>,
    ) -> Result<HashMap<u32, Known>, Failure> {
        let tables = [oids(tables)];
        let answers = self.ask(&[("mirror_columns", &tables), ("mirror_labels", &tables)]).await?;
        let mut answers = answers.into_iter();
        let columns = answers.next().unwrap_or_default();
        let mut labels: HashMap<u32, Vec<String>> = HashMap::new();
        for mut row in answers.next().unwrap_or_default() {
            labels.entry(row.number()).or_default().push(row.text());
        }
        let mut found: HashMap<u32, Known> = HashMap::new();
        for mut row in columns {
            let table = found.entry(row.number()).or_default();
            (table.schema, table.name) = (row.text(), row.text());
            (table.kind, table.filenode) = (row.byte(), row.number());
            table.inherits = row.bool();
            table.columns.push(column(&mut row, &labels));
        }
        Ok(found)
    }
}

fn column(row: &mut Row, labels: &HashMap<u32, Vec<String>>) -> KnownColumn {
    let (attnum, name) = (signed(row), row.text());
    let (type_oid, type_modifier) = (row.number(), signed(row));
    let (not_null, generated) = (row.bool(), row.bool());
    let (collation, order, is_enum) = (row.number(), row.byte(), row.bool());
    let in_key = row.take().and_then(|place| place.parse().ok());
    let readable = row.bool();
    let own = labels.get(&type_oid).filter(|_| is_enum);
    let class = match own {
        // Texts that are equal and different are compared by nobody but PostgreSQL.
        _ if order == b'n' => Class::Opaque,
        Some(labels) if u16::try_from(labels.len()).is_ok() => Class::Enum,
        _ => Class::of(type_oid),
    };
    let is_text = matches!(class, Class::Text | Class::Padded);
    let labels = own.filter(|_| class == Class::Enum);
    let column = Column {
        name,
        attnum: i16::try_from(attnum).unwrap_or_default(),
        type_oid,
        type_modifier,
        class,
        collation: match order {
            b'e' if is_text => Collation::EqualOnly,
            _ => Collation::Ordered,
        },
        not_null,
        labels: labels.cloned().unwrap_or_default().into(),
    };
    KnownColumn { column, generated, collation, in_key, readable }
}

fn signed(row: &mut Row) -> i32 {
    row.take().and_then(|value| value.parse().ok()).unwrap_or(0)
}
