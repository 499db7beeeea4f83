//! Built-in functions and types that are no more than stable, and yet give the same answer as long
//! as data and settings are the same.
//!
//! PostgreSQL calls stable whatever is not the same for ever: what reads the clock or the session,
//! but also what writes a date, because a setting says how. What is named here depends on settings
//! that are a part of a kept answer's key, and on nothing else. Everything else that is not
//! immutable is refused, `to_char` (`lc_time`), `age` (the clock) and text search
//! (`default_text_search_config`) among it.
//!
//! Source: pg_proc.dat and pg_type.dat of PostgreSQL 10 to 18, and the functions themselves.

/// Which settings a function depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// TimeZone: it takes moments for days or the other way round.
    Zone,
    /// How values are written: it makes text or JSON of anything.
    Output,
}

const ZONE: &[&str] = &[
    "date",
    "date_part",
    "date_trunc",
    "extract",
    "generate_series",
    "make_timestamptz",
    "overlaps",
    "time",
    "timestamp",
    "timestamptz",
    // Those of operators.
    "date_eq_timestamptz",
    "date_ge_timestamptz",
    "date_gt_timestamptz",
    "date_le_timestamptz",
    "date_lt_timestamptz",
    "date_ne_timestamptz",
    "interval_pl_timestamptz",
    "timestamp_eq_timestamptz",
    "timestamp_ge_timestamptz",
    "timestamp_gt_timestamptz",
    "timestamp_le_timestamptz",
    "timestamp_lt_timestamptz",
    "timestamp_ne_timestamptz",
    "timestamptz_eq_date",
    "timestamptz_eq_timestamp",
    "timestamptz_ge_date",
    "timestamptz_ge_timestamp",
    "timestamptz_gt_date",
    "timestamptz_gt_timestamp",
    "timestamptz_le_date",
    "timestamptz_le_timestamp",
    "timestamptz_lt_date",
    "timestamptz_lt_timestamp",
    "timestamptz_mi_interval",
    "timestamptz_ne_date",
    "timestamptz_ne_timestamp",
    "timestamptz_pl_interval",
];

const OUTPUT: &[&str] = &[
    "anytextcat",
    "array_to_json",
    "array_to_string",
    "concat",
    "concat_ws",
    "format",
    "json_agg",
    "json_agg_strict",
    "json_build_array",
    "json_build_object",
    "json_object_agg",
    "json_object_agg_strict",
    "json_object_agg_unique",
    "json_object_agg_unique_strict",
    "jsonb_agg",
    "jsonb_agg_strict",
    "jsonb_build_array",
    "jsonb_build_object",
    "jsonb_object_agg",
    "jsonb_object_agg_strict",
    "jsonb_object_agg_unique",
    "jsonb_object_agg_unique_strict",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "textanycat",
    "to_json",
    "to_jsonb",
];

/// What a built-in function depends on, if on nothing but settings of a kept answer's key.
pub fn depends(function: &str) -> Option<Depends> {
    if ZONE.contains(&function) {
        return Some(Depends::Zone);
    }
    OUTPUT.contains(&function).then_some(Depends::Output)
}

/// Why values of this built-in type make an answer depend on more than data and settings of its
/// key.
pub fn refused_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "regproc" | "regprocedure" | "regoper" | "regoperator" | "regclass" | "regcollation"
        | "regtype" | "regrole" | "regnamespace" | "regconfig" | "regdictionary"
        | "regdatabase" => "which is a name in the catalogues",
        "timetz" => "which may depend on the date",
        "money" => "which is written by lc_monetary",
        "xml" => "which is read by xmloption",
        "aclitem" => "which has names of roles",
        _ => return None,
    })
}

/// Built-in types whose text may be a word that stands for another moment each time: `now`.
pub fn is_timely(name: &str) -> bool {
    matches!(name, "date" | "time" | "timestamp" | "timestamptz")
}

/// Built-in types whose meaning as a moment depends on TimeZone, or may.
pub fn is_zoned(name: &str) -> bool {
    matches!(name, "date" | "timestamp" | "timestamptz")
}

/// Built-in types whose values are read or written as settings say.
pub fn is_set(name: &str) -> bool {
    is_zoned(name)
        || matches!(name, "interval" | "float4" | "float8" | "bytea" | "record" | "_record")
        || matches!(name, "point" | "lseg" | "path" | "box" | "polygon" | "line" | "circle")
        || matches!(name, "datemultirange" | "tsmultirange" | "tstzmultirange")
}

/// Functions that read and write values of types that are made of others, whose own functions are
/// looked at.
pub fn of_container(function: &str) -> bool {
    ["array_", "range_", "multirange_", "record_", "enum_", "domain_"]
        .iter()
        .any(|container| function.starts_with(container))
}

/// The same as oids of types, with their arrays and ranges: results of functions.
const SET_OIDS: &[u32] = &[
    17, 600, 601, 602, 603, 604, 628, 700, 701, 718, 1001, 1021, 1022, 1082, 1114, 1115, 1182,
    1184, 1185, 1186, 1187, 2249, 2287, 3908, 3909, 3910, 3911, 3912, 3913, 4533, 4534, 4535,
];

/// Dates and moments, with their arrays and ranges.
const ZONED_OIDS: &[u32] =
    &[1082, 1114, 1115, 1182, 1184, 1185, 3908, 3909, 3910, 3911, 3912, 3913, 4533, 4534, 4535];

pub const TIMESTAMPTZ: u32 = 1184;
pub const TIMETZ: u32 = 1266;

/// Types of which there are no values where those are refused, because nothing becomes one unasked:
/// money, xml, aclitem.
pub const NEVER: [u32; 3] = [790, 142, 1033];

/// Whether a function makes values that are read or written as settings say (users' types may be)
/// of such that are not. Only numbers and times become some of those types unasked.
pub fn makes_set(takes: &[u32], gives: &[u32]) -> bool {
    const UNASKED: [u32; 3] = [700, 701, 1186];
    let of_set = takes.iter().any(|oid| SET_OIDS.contains(oid) && !UNASKED.contains(oid));
    !of_set && gives.iter().any(|oid| SET_OIDS.contains(oid) || *oid >= FIRST_NORMAL_OID)
}

/// Built-in operators that make a value which settings change of none but such: there is one for
/// each of the other types, so none of them becomes a `double precision` on the way.
pub fn keeps(operator: &str) -> bool {
    matches!(operator, "+" | "-" | "*" | "/" | "%" | "||")
}

/// Whether it has dates or moments in it.
pub fn has_zoned(oids: &[u32]) -> bool {
    oids.iter().any(|oid| ZONED_OIDS.contains(oid))
}

/// Objects with lower oids are PostgreSQL's own. Source: access/transam.h.
const FIRST_NORMAL_OID: u32 = 16384;
