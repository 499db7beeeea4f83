//! How the values of a column are compared.

/// How the values of a column are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `smallint`, `integer`, `bigint`.
    Int,
    Bool,
    /// `text` and `varchar`, of a deterministic collation.
    Bytes,
    /// `character(n)`: blanks at the end do not count.
    Padded,
    Uuid,
    Numeric,
    Date,
    /// Without time zone.
    Timestamp,
    /// `timestamp with time zone`.
    Instant,
}

/// Object identifiers of types. Source: `src/include/catalog/pg_type.dat`.
pub mod oid {
    pub const BOOL: u32 = 16;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const TEXT: u32 = 25;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const NUMERIC: u32 = 1700;
    pub const UUID: u32 = 2950;
}

/// The type of the elements of an array type with one of [`Kind`]'s. 0 and `unknown` give 0: the
/// elements then take the type that they are compared with.
pub fn element_oid(array_oid: u32) -> Option<u32> {
    match array_oid {
        0 | oid::UNKNOWN => Some(0),
        1000 => Some(oid::BOOL),
        1005 => Some(oid::INT2),
        1007 => Some(oid::INT4),
        1009 => Some(oid::TEXT),
        1014 => Some(oid::BPCHAR),
        1015 => Some(oid::VARCHAR),
        1016 => Some(oid::INT8),
        1115 => Some(oid::TIMESTAMP),
        1182 => Some(oid::DATE),
        1185 => Some(oid::TIMESTAMPTZ),
        1231 => Some(oid::NUMERIC),
        2951 => Some(oid::UUID),
        _ => None,
    }
}

impl Kind {
    /// None: values of this type are not compared here.
    pub fn of(type_oid: u32) -> Option<Kind> {
        match type_oid {
            oid::INT2 | oid::INT4 | oid::INT8 => Some(Kind::Int),
            oid::BOOL => Some(Kind::Bool),
            oid::TEXT | oid::VARCHAR => Some(Kind::Bytes),
            oid::BPCHAR => Some(Kind::Padded),
            oid::UUID => Some(Kind::Uuid),
            oid::NUMERIC => Some(Kind::Numeric),
            oid::DATE => Some(Kind::Date),
            oid::TIMESTAMP => Some(Kind::Timestamp),
            oid::TIMESTAMPTZ => Some(Kind::Instant),
            _ => None,
        }
    }

    /// Whether values have a place among the `i64` ([`as_i64`]), so that ranges can be told.
    pub fn is_ordered(self) -> bool {
        matches!(self, Kind::Int | Kind::Date | Kind::Timestamp | Kind::Instant)
    }

    /// Whether a column of this kind, compared with a value of that type, finds a row only if
    /// their canonical bytes are equal. Not so for `double precision`, for example: `numeric` is
    /// then compared as that. 0 and `unknown` become the column's own type.
    pub fn compares_with(self, type_oid: u32) -> bool {
        if matches!(type_oid, 0 | oid::UNKNOWN) {
            return true;
        }
        match self {
            Kind::Int => matches!(type_oid, oid::INT2 | oid::INT4 | oid::INT8),
            Kind::Bool => type_oid == oid::BOOL,
            // Not bpchar: it loses its blanks on the way to text.
            Kind::Bytes => matches!(type_oid, oid::TEXT | oid::VARCHAR),
            // As text, blanks of the value count; then fewer rows are found, not others.
            Kind::Padded => matches!(type_oid, oid::BPCHAR | oid::TEXT | oid::VARCHAR),
            Kind::Uuid => type_oid == oid::UUID,
            Kind::Numeric => {
                matches!(type_oid, oid::NUMERIC | oid::INT2 | oid::INT4 | oid::INT8)
            }
            Kind::Date => type_oid == oid::DATE,
            Kind::Timestamp => matches!(type_oid, oid::TIMESTAMP | oid::DATE),
            Kind::Instant => type_oid == oid::TIMESTAMPTZ,
        }
    }
}
