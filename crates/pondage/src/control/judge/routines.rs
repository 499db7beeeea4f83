//! What the catalogues say of functions and procedures, and of the relations that their bodies
//! use. The rules for the texts of queries are those of `catalogue.rs`.
//!
//! Every row is a piece of an object as JSON, because bodies and lists of columns are longer than
//! a message of this connection may be.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use sql::procedure::{Definition, ForeignKey, Mode, Relation, RelationKind};
use sql::Name;

use super::catalogue::array;
use super::connection::{Connection, Failure, Row};

/// Longer bodies are not fetched, in bytes.
pub const BODY_BYTES_MAX: usize = 256 << 10;

/// An object in pieces: rows of (place of its name, oid, piece), from `told(i, oid, json)`.
macro_rules! in_pieces {
    ($told:literal) => {
        concat!(
            "SELECT t.i, t.oid, pg_catalog.substr(t.json, s.at, 10000) FROM (",
            $told,
            "OFFSET 0) t(i, oid, json)
CROSS JOIN LATERAL pg_catalog.generate_series(
  1::pg_catalog.int4, GREATEST(pg_catalog.length(t.json), 1::pg_catalog.int4),
  10000::pg_catalog.int4) s(at)
ORDER BY t.i, t.oid, s.at"
        )
    };
}

/// Everything of these names that a call may mean: visible in the search_path, or in the schema.
/// What is built in is told without a word of it.
///
/// `prokind` is there from 11 on, `prosqlbody` from 14 on. Comments are read from their table:
/// `obj_description` is in SQL, and finds operators by the search_path.
const ROUTINES: &str = in_pieces!(
    r"
SELECT q.i, p.oid, CASE
  WHEN n.nspname OPERATOR(pg_catalog.=)
      ANY (ARRAY['pg_catalog','information_schema']::pg_catalog.name[])
    AND p.oid::pg_catalog.int8 OPERATOR(pg_catalog.<) 16384::pg_catalog.int8 THEN ''
  ELSE pg_catalog.json_build_object(
    'kind', k.kind,
    'immutable', p.provolatile OPERATOR(pg_catalog.=) 'i'::pg_catalog.char,
    'variadic', p.provariadic OPERATOR(pg_catalog.<>) 0::pg_catalog.oid,
    'defaults', p.pronargdefaults,
    'types', COALESCE(p.proallargtypes, p.proargtypes::pg_catalog.oid[]),
    'comment', (
      SELECT d.description FROM pg_catalog.pg_description d
      WHERE d.objoid OPERATOR(pg_catalog.=) p.oid
        AND d.classoid OPERATOR(pg_catalog.=)
          'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid
        AND d.objsubid OPERATOR(pg_catalog.=) 0::pg_catalog.int4),
    'path', (
      SELECT pg_catalog.substr(c.setting, 13) FROM pg_catalog.unnest(p.proconfig) c(setting)
      WHERE pg_catalog.substr(c.setting, 1, 12) OPERATOR(pg_catalog.=) 'search_path='),
    'long', pg_catalog.octet_length(b.source) OPERATOR(pg_catalog.>) $3::pg_catalog.int4,
    'definition', pg_catalog.json_build_object(
      'schema', n.nspname,
      'name', p.proname,
      'language', l.lanname,
      'source', CASE
        WHEN pg_catalog.octet_length(b.source) OPERATOR(pg_catalog.<=) $3::pg_catalog.int4
        THEN b.source ELSE '' END,
      'arguments', COALESCE((
        SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
          'name', COALESCE(p.proargnames[a.place::pg_catalog.int4], ''),
          'type_name', pg_catalog.format_type(a.type, NULL),
          'mode', COALESCE(p.proargmodes[a.place::pg_catalog.int4], 'i'::pg_catalog.char))
          ORDER BY a.place)
        FROM pg_catalog.unnest(COALESCE(p.proallargtypes, p.proargtypes::pg_catalog.oid[]))
          WITH ORDINALITY a(type, place)), '[]'::pg_catalog.json),
      'returns', COALESCE(pg_catalog.pg_get_function_result(p.oid), ''),
      'is_procedure', k.kind OPERATOR(pg_catalog.=) 'p'))::pg_catalog.text
  END
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]))
  WITH ORDINALITY AS q(schema, name, i)
JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) q.name::pg_catalog.name
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) p.prolang
CROSS JOIN LATERAL (
  SELECT CASE
    WHEN pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'prosqlbody' IS NOT NULL
    THEN pg_catalog.pg_get_functiondef(p.oid) ELSE p.prosrc END
) b(source)
CROSS JOIN LATERAL (
  SELECT COALESCE(pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'prokind',
    CASE WHEN pg_catalog.to_jsonb(p) OPERATOR(pg_catalog.->>) 'proisagg'
      OPERATOR(pg_catalog.=) 'true' THEN 'a' ELSE 'f' END)
) k(kind)
WHERE CASE WHEN q.schema IS NULL THEN pg_catalog.pg_function_is_visible(p.oid)
  ELSE n.nspname OPERATOR(pg_catalog.=) q.schema::pg_catalog.name END
"
);

/// Each name's relation, if it is visible. The triggers are those of all that is written with it:
/// what inherits from it, and what foreign keys change.
const USED: &str = in_pieces!(
    r"
SELECT q.i, c.oid, pg_catalog.json_build_object(
  'schema', n.nspname,
  'name', c.relname,
  'kind', c.relkind,
  'temporary', c.relpersistence OPERATOR(pg_catalog.=) 't'::pg_catalog.char,
  'columns', (
    SELECT pg_catalog.json_agg(a.attname ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid
      AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped),
  'unique', (
    SELECT pg_catalog.json_agg(u.columns ORDER BY u.first DESC, u.oid)
    FROM (
      SELECT x.indisprimary, x.indexrelid, (
        SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
        FROM pg_catalog.unnest(x.indkey::pg_catalog.int2[]) WITH ORDINALITY k(number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) x.indrelid
          AND a.attnum OPERATOR(pg_catalog.=) k.number
        WHERE k.place OPERATOR(pg_catalog.<=) COALESCE(
          (pg_catalog.to_jsonb(x) OPERATOR(pg_catalog.->>) 'indnkeyatts')::pg_catalog.int8,
          x.indnatts::pg_catalog.int8))
      FROM pg_catalog.pg_index x
      WHERE x.indrelid OPERATOR(pg_catalog.=) c.oid AND x.indisunique AND x.indisvalid
        AND x.indpred IS NULL AND x.indexprs IS NULL
    ) u(first, oid, columns)),
  'foreign_keys', (
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
      'columns', (
        SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
        FROM pg_catalog.unnest(f.conkey) WITH ORDINALITY k(number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.conrelid
          AND a.attnum OPERATOR(pg_catalog.=) k.number),
      'schema', s.nspname,
      'name', r.relname,
      'target_columns', (
        SELECT pg_catalog.json_agg(a.attname ORDER BY k.place)
        FROM pg_catalog.unnest(f.confkey) WITH ORDINALITY k(number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.confrelid
          AND a.attnum OPERATOR(pg_catalog.=) k.number)) ORDER BY f.oid)
    FROM pg_catalog.pg_constraint f
    JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) f.confrelid
    JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) r.relnamespace
    WHERE f.conrelid OPERATOR(pg_catalog.=) c.oid
      AND f.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog.char),
  'triggers', (
    WITH RECURSIVE touched(oid) AS (
      SELECT c.oid
      UNION
      SELECT e.child FROM touched t
      JOIN (
        SELECT h.inhparent, h.inhrelid FROM pg_catalog.pg_inherits h
        UNION ALL
        SELECT k.confrelid, k.conrelid FROM pg_catalog.pg_constraint k
        WHERE k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog.char
          AND (k.confupdtype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[])
            OR k.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c','n','d']::pg_catalog.char[]))
      ) e(parent, child) ON e.parent OPERATOR(pg_catalog.=) t.oid
    )
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object('schema', g.schema, 'name', g.name))
    FROM (
      SELECT DISTINCT s.nspname, p.proname FROM touched t
      JOIN pg_catalog.pg_trigger g ON g.tgrelid OPERATOR(pg_catalog.=) t.oid
      JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) g.tgfoid
      JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) p.pronamespace
      WHERE NOT g.tgisinternal AND g.tgenabled OPERATOR(pg_catalog.<>) 'D'::pg_catalog.char
    ) g(schema, name)),
  'rules', EXISTS (
    SELECT 1 FROM pg_catalog.pg_rewrite r
    WHERE r.ev_class OPERATOR(pg_catalog.=) c.oid
      AND r.rulename OPERATOR(pg_catalog.<>) '_RETURN'::pg_catalog.name))::pg_catalog.text
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
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
"
);

/// Those of these functions and procedures that are no more.
const GONE: &str = r"
SELECT o.oid FROM pg_catalog.unnest($1::pg_catalog.oid[]) o(oid)
WHERE NOT EXISTS (
  SELECT 1 FROM pg_catalog.pg_proc p WHERE p.oid OPERATOR(pg_catalog.=) o.oid)";

/// Until the end of the round trip: what a function that has a search_path of its own sees.
const PATH: &str = "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)";

/// Prepared by every connection, like those of `catalogue.rs`.
pub const STATEMENTS: [(&str, &str); 4] =
    [("called", ROUTINES), ("used", USED), ("gone", GONE), ("path", PATH)];

/// A function or procedure that somebody has made.
#[derive(Debug, Clone)]
pub struct Routine {
    pub oid: u32,
    /// `pg_proc.prokind`.
    pub kind: u8,
    pub definition: Definition,
    /// Of all arguments.
    pub types: Vec<u32>,
    /// How many of those that go in have one, the last of them.
    pub defaults: usize,
    pub variadic: bool,
    pub immutable: bool,
    /// Its body was not fetched.
    pub long: bool,
    pub comment: Option<String>,
    /// Its own search_path.
    pub path: Option<String>,
}

/// What a name of a function or procedure may mean.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// Something that is a part of PostgreSQL, too.
    pub builtin: bool,
    pub routines: Vec<Routine>,
}

/// What names mean; those that mean nothing are not there.
#[derive(Debug, Default)]
pub struct Meanings {
    pub routines: HashMap<Name, Named>,
    pub relations: HashMap<Name, Relation>,
}

impl Connection {
    /// What these names mean, in one round trip, or two where views are among them. `path`: seen by
    /// a function that has this search_path of its own.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn meanings(
        &mut self,
        path: Option<&str>,
        routines: &[Name],
        relations: &[Name],
    ) -> Result<Meanings, Failure> {
        let pair = |names: &[Name]| {
            let schemas = array(names.iter().map(|name| name.schema.as_deref()));
            [schemas, array(names.iter().map(|name| Some(name.name.as_str())))]
        };
        let [schemas, names] = pair(routines);
        let routines_of = [schemas, names, BODY_BYTES_MAX.to_string()];
        let relations_of = pair(relations);
        let path = path.map(|path| [path.to_owned()]);
        let mut asks: Vec<(&str, &[String])> = Vec::with_capacity(3);
        asks.extend(path.as_ref().map(|path| ("path", &path[..])));
        asks.extend([("called", &routines_of[..]), ("used", &relations_of[..])]);
        let answers = self.ask(&asks).await?;
        let mut answers = answers.into_iter().skip(usize::from(path.is_some()));
        let mut next = || objects(answers.next().unwrap_or_default());
        let mut meanings = Meanings::default();
        for (place, oid, json) in next() {
            let Some(name) = routines.get(place) else { continue };
            let named = meanings.routines.entry(name.clone()).or_default();
            match json.is_empty() {
                true => named.builtin = true,
                false => named.routines.extend(routine(oid, &json)),
            }
        }
        let mut views: Vec<(String, Name)> = Vec::new();
        for (place, oid, json) in next() {
            let Some(name) = relations.get(place) else { continue };
            let Some(relation) = relation(&json) else { continue };
            if relation.kind == RelationKind::View {
                views.push((oid.to_string(), name.clone()));
            }
            meanings.relations.insert(name.clone(), relation);
        }
        if !views.is_empty() {
            let oids: Vec<String> = views.iter().map(|(oid, _)| oid.clone()).collect();
            let definitions = self.definitions(&oids).await?;
            for (oid, name) in views {
                if let Some(relation) = meanings.relations.get_mut(&name) {
                    relation.view = definitions.get(&oid).cloned();
                }
            }
        }
        Ok(meanings)
    }

    /// Those of these functions and procedures that have been dropped.
    ///
    /// # Errors
    /// When the server refuses or the connection is lost.
    pub async fn gone(&mut self, oids: &[u32]) -> Result<Vec<u32>, Failure> {
        let oids: Vec<String> = oids.iter().map(u32::to_string).collect();
        let values = [array(oids.iter().map(|oid| Some(oid.as_str())))];
        let answers = self.ask(&[("gone", &values)]).await?;
        Ok(answers.into_iter().flatten().map(|mut row| row.number()).collect())
    }
}

/// Objects whole, by the places of their names, from 0, and by oid.
fn objects(rows: Vec<Row>) -> Vec<(usize, u32, String)> {
    let mut whole: BTreeMap<(usize, u32), String> = BTreeMap::new();
    for mut row in rows {
        let place = row.text().parse::<usize>().unwrap_or(0);
        let oid = row.number();
        if let Some(place) = place.checked_sub(1) {
            whole.entry((place, oid)).or_default().push_str(&row.text());
        }
    }
    whole.into_iter().map(|((place, oid), json)| (place, oid, json)).collect()
}

fn routine(oid: u32, json: &str) -> Option<Routine> {
    let mut told: Value = serde_json::from_str(json).ok()?;
    let definition = &mut told["definition"];
    for argument in definition["arguments"].as_array_mut().into_iter().flatten() {
        let mode = match argument["mode"].as_str() {
            Some("o") => Mode::Out,
            Some("b") => Mode::InOut,
            Some("v") => Mode::Variadic,
            Some("t") => Mode::Table,
            _ => Mode::In,
        };
        argument["mode"] = serde_json::to_value(mode).ok()?;
    }
    let definition = serde_json::from_value(definition.take()).ok()?;
    let flag = |name: &str| told[name].as_bool().unwrap_or(false);
    let words = |name: &str| told[name].as_str().map(str::to_owned);
    let (variadic, immutable, long) = (flag("variadic"), flag("immutable"), flag("long"));
    let numbers = told["types"].as_array().into_iter().flatten();
    let number = |value: &Value| {
        // An oid is a text or a number in JSON, by what PostgreSQL thinks of its type.
        value.as_u64().and_then(|oid| oid.try_into().ok()).or_else(|| value.as_str()?.parse().ok())
    };
    Some(Routine {
        oid,
        kind: told["kind"].as_str()?.bytes().next()?,
        types: numbers.map(|oid| number(oid).unwrap_or(0)).collect(),
        defaults: told["defaults"].as_u64()?.try_into().ok()?,
        variadic,
        immutable,
        long,
        comment: words("comment"),
        path: words("path"),
        definition,
    })
}

fn relation(json: &str) -> Option<Relation> {
    let told: Value = serde_json::from_str(json).ok()?;
    let title = |told: &Value| {
        let schema = told["schema"].as_str().map(str::to_owned);
        Some(Name { schema, name: told["name"].as_str()?.to_owned() })
    };
    let items = |told: &Value| told.as_array().cloned().unwrap_or_default();
    let names = |told: &Value| -> Vec<String> {
        items(told).iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let foreign_key = |told: &Value| ForeignKey {
        columns: names(&told["columns"]),
        target: title(told),
        target_columns: names(&told["target_columns"]),
    };
    let kind = match told["kind"].as_str()? {
        "r" => RelationKind::Table,
        "p" => RelationKind::Partitioned,
        "v" => RelationKind::View,
        "m" => RelationKind::MaterializedView,
        "f" => RelationKind::Foreign,
        _ => RelationKind::Other,
    };
    Some(Relation {
        title: title(&told),
        kind,
        temporary: told["temporary"].as_bool()?,
        columns: names(&told["columns"]),
        unique: items(&told["unique"]).iter().map(names).collect(),
        foreign_keys: items(&told["foreign_keys"]).iter().map(foreign_key).collect(),
        triggers: items(&told["triggers"]).iter().filter_map(title).collect(),
        view: None,
        has_rules: told["rules"].as_bool()?,
    })
}
