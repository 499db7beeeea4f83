//! What the catalogues say of server, publication and tables: queries, and rows as values.
//!
//! All are simple queries on a connection whose search_path is empty, so names need no schema.

use super::missing::literal;

/// The columns of a row in text form, taken from the left.
#[derive(Debug, Clone)]
pub struct Row(std::vec::IntoIter<Option<String>>);

impl Row {
    pub fn new(values: Vec<Option<String>>) -> Row {
        Row(values.into_iter())
    }

    /// The next value; NULL, and one that is not there, is none.
    pub fn take(&mut self) -> Option<String> {
        self.0.next().flatten()
    }

    pub fn text(&mut self) -> String {
        self.take().unwrap_or_default()
    }

    pub fn bool(&mut self) -> bool {
        self.take().is_some_and(|value| value == "t")
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take().and_then(|value| value.bytes().next()).unwrap_or(0)
    }

    pub fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.take()?.parse().ok()
    }
}

/// Microseconds since 2000, from what `timestamptz_send` gives, in hexadecimal digits.
pub fn moment(hex: &str) -> Option<i64> {
    u64::from_str_radix(hex, 16).ok().map(u64::cast_signed)
}

pub(super) const VERSION: &str = "SELECT current_setting('server_version_num')";

/// What the server is and what the role may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// As in `server_version_num`.
    pub version: u32,
    pub wal_level: String,
    pub standby: bool,
    pub user: String,
    pub database: String,
    pub replication: bool,
    pub may_create: bool,
    pub senders_max: u32,
    pub slots_max: u32,
    /// Bytes of a page of the log.
    pub wal_block: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Publication {
    pub oid: u32,
    /// FOR ALL TABLES.
    pub all: bool,
    /// It tells inserts, updates, deletes and truncates.
    pub whole: bool,
    pub via_root: bool,
    pub owned: bool,
}

pub(super) fn server(publication: &str) -> String {
    format!(
        "SELECT current_setting('server_version_num'), current_setting('wal_level'), \
         pg_is_in_recovery(), r.rolname, current_database(), r.rolreplication OR r.rolsuper, \
         has_database_privilege(current_database(), 'CREATE'), \
         current_setting('max_wal_senders'), current_setting('max_replication_slots'), \
         current_setting('wal_block_size'), p.oid, p.puballtables, p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate, \
         p.pubviaroot, pg_has_role(p.pubowner, 'USAGE') \
         FROM pg_roles r LEFT JOIN pg_publication p ON p.pubname = {} \
         WHERE r.rolname = current_user",
        literal(publication)
    )
}

pub(super) fn read_server(row: &mut Row) -> (Server, Option<Publication>) {
    let server = Server {
        version: row.number().unwrap_or(0),
        wal_level: row.text(),
        standby: row.bool(),
        user: row.text(),
        database: row.text(),
        replication: row.bool(),
        may_create: row.bool(),
        senders_max: row.number().unwrap_or(0),
        slots_max: row.number().unwrap_or(0),
        wal_block: row.number().unwrap_or(0),
    };
    let publication = row.number().map(|oid| Publication {
        oid,
        all: row.bool(),
        whole: row.bool(),
        via_root: row.bool(),
        owned: row.bool(),
    });
    (server, publication)
}

/// A table of the database that is no system's and not temporary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// `relkind`: `r` ordinary, `p` partitioned, `f` foreign.
    pub kind: u8,
    /// `relpersistence`: `p` permanent, `u` unlogged.
    pub persistence: u8,
    /// `relreplident`: `d`, `n`, `f`, `i`.
    pub identity: u8,
    pub partition: bool,
    pub owned: bool,
    /// There is a primary key that can be a replica identity.
    pub primary: bool,
    /// There is the index of REPLICA IDENTITY USING INDEX.
    pub marked: bool,
    /// The one or the other has a generated column.
    pub generated_key: bool,
    pub generated: bool,
    /// The publication names it.
    pub named: bool,
    /// With a row filter or a list of columns.
    pub narrowed: bool,
    /// The publication names its schema.
    pub by_schema: bool,
    /// The publication tells its changes.
    pub told: bool,
}

impl Table {
    /// `"schema"."name"`.
    pub fn sql(&self) -> String {
        use super::missing::identifier;
        format!("{}.{}", identifier(&self.schema), identifier(&self.name))
    }
}

pub(super) fn tables(version: u32, publication: &str, oid: u32) -> String {
    // Source: CreatePublication and the release notes of 15, "Publications".
    let (narrowed, by_schema) = match version >= 150_000 {
        true => (
            "coalesce(p.prqual IS NOT NULL OR p.prattrs IS NOT NULL, false)",
            format!(
                "EXISTS (SELECT 1 FROM pg_publication_namespace s \
                 WHERE s.pnpubid = {oid} AND s.pnnspid = n.oid)"
            ),
        ),
        false => ("false", "false".to_owned()),
    };
    let name = literal(publication);
    format!(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, \
         c.relispartition, pg_has_role(c.relowner, 'USAGE'), \
         coalesce(k.prim, false), coalesce(k.marked, false), coalesce(k.generated, false), \
         EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attgenerated <> ''), \
         p.prrelid IS NOT NULL, {narrowed}, {by_schema}, t.tablename IS NOT NULL \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN pg_publication_rel p ON p.prrelid = c.oid AND p.prpubid = {oid} \
         LEFT JOIN pg_publication_tables t ON t.pubname = {name} \
           AND t.schemaname = n.nspname AND t.tablename = c.relname \
         LEFT JOIN LATERAL ( \
           SELECT bool_or(i.indisprimary) AS prim, bool_or(i.indisreplident) AS marked, \
             bool_or(EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid \
               AND a.attgenerated <> '' AND a.attnum = ANY (i.indkey::int2[]))) AS generated \
           FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indisunique \
             AND i.indimmediate AND i.indpred IS NULL AND (i.indisprimary OR i.indisreplident) \
         ) k ON true \
         WHERE c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND c.oid >= 16384 \
           AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
         ORDER BY c.oid"
    )
}

pub(super) fn read_table(row: &mut Row) -> Table {
    Table {
        oid: row.number().unwrap_or(0),
        schema: row.text(),
        name: row.text(),
        kind: row.byte(),
        persistence: row.byte(),
        identity: row.byte(),
        partition: row.bool(),
        owned: row.bool(),
        primary: row.bool(),
        marked: row.bool(),
        generated_key: row.bool(),
        generated: row.bool(),
        named: row.bool(),
        narrowed: row.bool(),
        by_schema: row.bool(),
        told: row.bool(),
    }
}

/// Children and their parents, those of indexes among them.
pub(super) const INHERITS: &str =
    "SELECT inhrelid, inhparent FROM pg_inherits WHERE inhparent >= 16384";

/// One value that becomes another when something changes that decides what a statement means or
/// who may run it. `xmin` changes with every change of a row, and so tells what was changed and
/// changed back between two looks, such as a GRANT and its REVOKE. TRUNCATE and the like change a
/// table's row as well, but those of its indexes with it: where one of these is as old, nothing is
/// said. A column's row changes when its values are computed anew (`ALTER COLUMN ... TYPE ...
/// USING`), which nothing in the stream tells. A table that left the publication and came back
/// between two looks has another row there. Temporary tables come and go.
///
/// What was created and dropped between two looks has left no row, but the server has counted it,
/// if some seconds late: memberships, functions, policies, views and the like. Such counts rise
/// with every temporary table in the catalogues of tables and types, so they are not looked at
/// there.
pub(super) const DEFINITIONS: &str = r"SELECT concat_ws('/',
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', c.oid, c.relname, c.relnamespace, c.relowner,
  c.relkind, c.relacl, c.relrowsecurity, c.relforcerowsecurity, c.relnatts, c.relispartition,
  CASE WHEN NOT EXISTS (SELECT 1 FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
    WHERE i.indrelid = c.oid AND x.xmin = c.xmin) THEN c.xmin END)))
  FROM pg_class c WHERE c.relpersistence <> 't' AND c.relkind IN ('r', 'v', 'm', 'p', 'f', 'S')
  AND (c.oid >= 16384 OR c.relacl IS NOT NULL)),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid,
  a.atttypmod, a.attcollation, a.attgenerated, a.attisdropped, a.attacl, a.xmin)))
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relpersistence <> 't' AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
  AND c.oid >= 16384 AND a.attnum > 0),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', n.oid, n.xmin)))
  FROM pg_namespace n WHERE n.nspname !~ '^pg_(toast_)?temp_'),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', r.oid, r.rolname, r.rolsuper, r.rolinherit,
  r.rolbypassrls, r.rolcanlogin, r.rolconfig))) FROM pg_roles r),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', t.oid, t.xmin)))
  FROM pg_type t WHERE t.oid >= 16384 AND t.typtype IN ('d', 'e', 'r')),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', p.oid, p.xmin)))
  FROM pg_proc p WHERE p.oid >= 16384 OR p.proacl IS NOT NULL),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', w.oid, w.xmin)))
  FROM pg_rewrite w WHERE w.ev_class >= 16384),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', d.oid, d.xmin)))
  FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid WHERE c.relpersistence <> 't'),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', o.oid, o.xmin)))
  FROM pg_operator o WHERE o.oid >= 16384),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', s.oid, s.xmin)))
  FROM pg_cast s WHERE s.oid >= 16384),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', l.oid, l.xmin)))
  FROM pg_collation l WHERE l.oid >= 16384),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', p.oid, p.xmin))) FROM pg_policy p),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', e.oid, e.xmin))) FROM pg_enum e),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', i.inhrelid, i.inhparent, i.xmin)))
  FROM pg_inherits i),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', b.oid, b.xmin))) FROM pg_publication b),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', r.oid, r.xmin))) FROM pg_publication_rel r),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', m.roleid, m.member, m.xmin)))
  FROM pg_auth_members m),
(SELECT count(*) || ':' || sum(hashtext(concat_ws(' ', s.setdatabase, s.setrole, s.xmin)))
  FROM pg_db_role_setting s),
(SELECT sum(pg_stat_get_tuples_inserted(k.oid) + pg_stat_get_tuples_updated(k.oid)
  + pg_stat_get_tuples_deleted(k.oid)) FROM pg_class k WHERE k.relnamespace = 11 AND k.relname IN
  ('pg_auth_members', 'pg_cast', 'pg_collation', 'pg_operator', 'pg_policy', 'pg_proc',
   'pg_rewrite', 'pg_ts_config', 'pg_ts_config_map', 'pg_ts_dict')))";

/// How far the log is, which transactions run, and what the slot holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// Every transaction below has ended.
    pub xmin: u64,
    /// No transaction from here on had begun.
    pub xmax: u64,
    pub lsn: u64,
    /// COMMITs may wait for what we report. Who that is, is shown to few roles.
    pub synchronous: bool,
    pub slot: Option<SlotState>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotState {
    /// Bytes of the log that can't be removed because of it.
    pub held: u64,
    /// What it needs is gone.
    pub lost: bool,
}

pub(super) fn position(slot: &str) -> String {
    format!(
        "SELECT pg_snapshot_xmin(x.s), pg_snapshot_xmax(x.s), pg_current_wal_lsn(), \
         current_setting('synchronous_standby_names') <> '', \
         s.slot_name, pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint, \
         s.wal_status = 'lost' \
         FROM (SELECT pg_current_snapshot() AS s) x \
         LEFT JOIN pg_replication_slots s ON s.slot_name = {}",
        literal(slot)
    )
}

pub(super) fn read_position(row: &mut Row) -> Position {
    let xmin = row.number().unwrap_or(0);
    let xmax = row.number().unwrap_or(u64::MAX);
    let lsn = row.text().parse::<wire::pg::replication::Lsn>().unwrap_or_default().0;
    let synchronous = row.bool();
    let slot = row.take().map(|_| SlotState {
        held: row.number::<i64>().map_or(0, |held| u64::try_from(held).unwrap_or(0)),
        lost: row.bool(),
    });
    Position { xmin, xmax, lsn, synchronous, slot }
}
