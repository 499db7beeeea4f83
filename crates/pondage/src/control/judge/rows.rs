//! Which row a plain write is about, so that writes of one row wait in one lane.

use std::sync::Arc;

use cache::value::Kind;
use sql::Source;

use super::connection::{Connection, Failure};
use crate::procedures::{Procedures, Row};

/// Columns of unique keys that are looked at.
const COLUMNS_MAX: usize = 256;

/// Columns of a table's unique keys, the primary one first: key, schema, table, column, type. Keys
/// of some rows only, or of expressions, are no keys here.
pub const STATEMENT: (&str, &str) = (
    "keys",
    r"
SELECT x.indexrelid, n.nspname, c.relname, a.attname, a.atttypid
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) x.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
CROSS JOIN LATERAL pg_catalog.unnest(x.indkey::pg_catalog.int2[]) WITH ORDINALITY k(number, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) x.indrelid
  AND a.attnum OPERATOR(pg_catalog.=) k.number
WHERE x.indrelid OPERATOR(pg_catalog.=) $1::pg_catalog.oid
  AND x.indisunique AND x.indisvalid AND x.indpred IS NULL AND x.indexprs IS NULL
  AND k.place OPERATOR(pg_catalog.<=) COALESCE(
    (pg_catalog.to_jsonb(x) OPERATOR(pg_catalog.->>) 'indnkeyatts')::pg_catalog.int8,
    x.indnatts::pg_catalog.int8)
ORDER BY x.indisprimary DESC, x.indexrelid, k.place
LIMIT $2::pg_catalog.int4",
);

/// The row of a table that has these values. None: it may be several, or their values can't be
/// compared here.
///
/// # Errors
/// When the server refuses or the connection is lost.
pub async fn row(
    connection: &mut Connection,
    procedures: &Procedures,
    database: &str,
    table: u32,
    values: &[(String, Source)],
) -> Result<Option<Arc<Row>>, Failure> {
    if values.is_empty() {
        return Ok(None);
    }
    let asked = [table.to_string(), COLUMNS_MAX.to_string()];
    let answers = connection.ask(&[(STATEMENT.0, &asked)]).await?;
    let mut keys: Vec<(u32, Vec<Column>)> = Vec::new();
    for mut row in answers.into_iter().flatten() {
        let key = row.number();
        let (schema, table, name) = (row.text(), row.text(), row.text());
        let title = format!("{schema}.{table}.{name}");
        let column = Column { name, title, type_oid: row.number() };
        match keys.last_mut() {
            Some((last, columns)) if *last == key => columns.push(column),
            _ => keys.push((key, vec![column])),
        }
    }
    let found = keys.iter().find_map(|(_, columns)| {
        let source = |column: &Column| {
            let value = values.iter().find(|(name, _)| *name == column.name);
            Some((value?.1, Kind::of(column.type_oid)?))
        };
        let key = columns.iter().map(source).collect::<Option<Vec<_>>>()?;
        let titles: Vec<String> = columns.iter().map(|column| column.title.clone()).collect();
        Some(Arc::new(Row { space: procedures.space(database, &titles), key }))
    });
    Ok(found)
}

struct Column {
    name: String,
    /// `public.warehouse.w_id`
    title: String,
    type_oid: u32,
}
