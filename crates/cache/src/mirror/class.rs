//! What mirrors know of types.

use crate::value::oid;

/// How values of a column are stored and compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    Int2,
    Int4,
    Int8,
    Bool,
    /// `text`, `varchar`.
    Text,
    /// `character(n)`: blanks at the end do not count.
    Padded,
    Bytea,
    Uuid,
    Numeric,
    Float4,
    Float8,
    Date,
    Timestamp,
    TimestampTz,
    Time,
    TimeTz,
    Interval,
    /// By its place among the type's labels.
    Enum,
    /// It is carried as PostgreSQL prints it, and never looked at.
    Opaque,
}

/// What the order of texts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Collation {
    /// That of the bytes: C, POSIX, or values that have no collation.
    Ordered,
    /// Another one, in which different bytes are different values.
    EqualOnly,
}

/// Further object identifiers of types. Source: `src/include/catalog/pg_type.dat`.
pub(super) mod further {
    pub const BYTEA: u32 = 17;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const TIME: u32 = 1083;
    pub const INTERVAL: u32 = 1186;
    pub const TIMETZ: u32 = 1266;
}

impl Class {
    /// That of a built-in type. What is an enum, the catalogues say.
    pub fn of(type_oid: u32) -> Class {
        match type_oid {
            oid::INT2 => Class::Int2,
            oid::INT4 => Class::Int4,
            oid::INT8 => Class::Int8,
            oid::BOOL => Class::Bool,
            oid::TEXT | oid::VARCHAR => Class::Text,
            oid::BPCHAR => Class::Padded,
            further::BYTEA => Class::Bytea,
            oid::UUID => Class::Uuid,
            oid::NUMERIC => Class::Numeric,
            further::FLOAT4 => Class::Float4,
            further::FLOAT8 => Class::Float8,
            oid::DATE => Class::Date,
            oid::TIMESTAMP => Class::Timestamp,
            oid::TIMESTAMPTZ => Class::TimestampTz,
            further::TIME => Class::Time,
            further::TIMETZ => Class::TimeTz,
            further::INTERVAL => Class::Interval,
            _ => Class::Opaque,
        }
    }

    /// Bytes of the stored form, where all values have as many.
    pub fn width(self) -> Option<usize> {
        match self {
            Class::Bool => Some(1),
            Class::Int2 | Class::Enum => Some(2),
            Class::Int4 | Class::Float4 | Class::Date => Some(4),
            Class::Int8 | Class::Float8 | Class::Timestamp | Class::TimestampTz | Class::Time => {
                Some(8)
            }
            Class::TimeTz => Some(12),
            Class::Uuid | Class::Interval => Some(16),
            Class::Text | Class::Padded | Class::Bytea | Class::Numeric | Class::Opaque => None,
        }
    }

    /// Whether its keys have PostgreSQL's order, where the collation is [`Collation::Ordered`].
    pub fn is_ordered(self) -> bool {
        self != Class::Opaque
    }

    /// Whether the first eight bytes of a key are all of it.
    pub fn is_key_whole(self) -> bool {
        matches!(
            self,
            Class::Bool
                | Class::Int2
                | Class::Int4
                | Class::Int8
                | Class::Float4
                | Class::Float8
                | Class::Date
                | Class::Timestamp
                | Class::TimestampTz
                | Class::Time
                | Class::Enum
        )
    }

    /// Whether a column of this class, compared with a value of that type, is compared by its own
    /// operators: PostgreSQL then makes the value one of the column's type, or has an operator for
    /// the two that means the same. 0 and `unknown` become the column's own type.
    pub fn compares_with(self, type_oid: u32) -> bool {
        if matches!(type_oid, 0 | oid::UNKNOWN) {
            return self != Class::Opaque;
        }
        let ints = matches!(type_oid, oid::INT2 | oid::INT4 | oid::INT8);
        match self {
            Class::Int2 | Class::Int4 | Class::Int8 => ints,
            Class::Numeric => ints || type_oid == oid::NUMERIC,
            Class::Text => matches!(type_oid, oid::TEXT | oid::VARCHAR),
            Class::Timestamp => matches!(type_oid, oid::TIMESTAMP | oid::DATE),
            // All are compared as double precision.
            Class::Float4 | Class::Float8 => {
                ints || matches!(type_oid, oid::NUMERIC | further::FLOAT4 | further::FLOAT8)
            }
            // Enums have types of their own.
            Class::Enum | Class::Opaque => false,
            _ => Class::of(type_oid) == self,
        }
    }
}
