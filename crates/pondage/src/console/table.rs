//! Result sets of the console: columns with PostgreSQL types, values, and how both go on the wire.

use std::borrow::Cow;

use wire::pg::backend;

/// The types PgBouncer's console uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int4,
    Int8,
    Numeric,
    Text,
}

impl Kind {
    /// Type oid and size in bytes, -1 when it varies.
    ///
    /// Source: `src/include/catalog/pg_type.dat`.
    fn oid_and_size(self) -> (u32, i16) {
        match self {
            Kind::Int4 => (23, 4),
            Kind::Int8 => (20, 8),
            Kind::Numeric => (1700, -1),
            Kind::Text => (25, -1),
        }
    }

    /// PostgreSQL's name of the type.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Int4 => "int4",
            Kind::Int8 => "int8",
            Kind::Numeric => "numeric",
            Kind::Text => "text",
        }
    }
}

/// What a column's numbers count, where that is not plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, or a text.
    None,
    /// 0 or 1.
    Flag,
    Bytes,
    BytesPerSecond,
    Seconds,
    Millis,
    Micros,
    MillisPerSecond,
    Percent,
    PerSecond,
    /// A time, written as a text.
    Utc,
}

impl Unit {
    /// As the manual has it.
    pub fn word(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Flag => "0 or 1",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Seconds => "s",
            Unit::Millis => "ms",
            Unit::Micros => "µs",
            Unit::MillisPerSecond => "ms/s",
            Unit::Percent => "%",
            Unit::PerSecond => "1/s",
            Unit::Utc => "UTC",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    pub unit: Unit,
    /// What is in it, in the words of the manual: Markdown, links from `docs/`.
    pub about: &'static str,
}

impl Column {
    /// Of an answer that is no SHOW of ours, such as that of `SELECT 1`.
    pub const fn bare(name: &'static str, kind: Kind) -> Column {
        Column { name, kind, unit: Unit::None, about: "" }
    }
}

/// One field. A value fits its column's [`Kind`]: `Int` the three numeric ones, `Tenths` numeric,
/// `Text` the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Int(i64),
    /// With one decimal.
    Tenths(u64),
    Text(Cow<'static, str>),
}

impl Value {
    pub fn text(text: impl Into<Cow<'static, str>>) -> Value {
        Value::Text(text.into())
    }

    pub fn optional(text: Option<impl Into<Cow<'static, str>>>) -> Value {
        text.map_or(Value::Null, Value::text)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(number.into())
    }
}

impl From<u64> for Value {
    /// Counters past 2^63 stay there.
    fn from(number: u64) -> Value {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Int(flag.into())
    }
}

/// Rows as long as `columns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub columns: Cow<'static, [Column]>,
    pub rows: Vec<Vec<Value>>,
}

/// How a client wants its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Binary,
}

/// Result formats of a Bind, spread over the columns: none means text, one is for all.
///
/// Source: "Message Formats", Bind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Formats(pub Vec<Format>);

impl Formats {
    fn of(&self, column: usize) -> Format {
        let place = if self.0.len() == 1 { 0 } else { column };
        self.0.get(place).copied().unwrap_or(Format::Text)
    }
}

/// Appends a RowDescription.
pub fn put_columns(out: &mut Vec<u8>, columns: &[Column], formats: &Formats) {
    let described: Vec<backend::Column<'_>> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| {
            let (oid, size) = column.kind.oid_and_size();
            let format = i16::from(formats.of(place) == Format::Binary);
            backend::Column { name: column.name, oid, size, format }
        })
        .collect();
    backend::put_row_description(out, &described);
}

/// Appends a DataRow. A number that does not fit an int4 column becomes the nearest that does.
pub fn put_row(out: &mut Vec<u8>, columns: &[Column], row: &[Value], formats: &Formats) {
    let fields: Vec<Option<Cow<'_, [u8]>>> = columns
        .iter()
        .zip(row)
        .enumerate()
        .map(|(place, (column, value))| field(column.kind, value, formats.of(place)))
        .collect();
    let slices: Vec<Option<&[u8]>> = fields.iter().map(|field| field.as_deref()).collect();
    backend::put_data_row(out, &slices);
}

fn field(kind: Kind, value: &Value, format: Format) -> Option<Cow<'_, [u8]>> {
    let number = match value {
        Value::Null => return None,
        Value::Text(text) => return Some(Cow::Borrowed(text.as_bytes())),
        Value::Tenths(tenths) if kind == Kind::Numeric => {
            return Some(Cow::Owned(match format {
                Format::Text => format!("{}.{}", tenths / 10, tenths % 10).into_bytes(),
                Format::Binary => binary_tenths(*tenths),
            }));
        }
        Value::Tenths(tenths) => (tenths / 10) as i64,
        Value::Int(number) => *number,
    };
    let int4 = i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX });
    let bytes = match (kind, format) {
        (Kind::Int4, Format::Binary) => int4.to_be_bytes().to_vec(),
        (Kind::Int8, Format::Binary) => number.to_be_bytes().to_vec(),
        (Kind::Numeric, Format::Binary) => binary_numeric(number),
        (Kind::Int4, Format::Text) => int4.to_string().into_bytes(),
        _ => number.to_string().into_bytes(),
    };
    Some(Cow::Owned(bytes))
}

fn binary_numeric(number: i64) -> Vec<u8> {
    let digits = digits(number.unsigned_abs());
    let weight = digits.len().saturating_sub(1) as u16;
    numeric(&digits, weight, number < 0, 0)
}

fn binary_tenths(tenths: u64) -> Vec<u8> {
    let mut digits = digits(tenths / 10);
    // A fraction alone has the weight -1.
    let weight = (digits.len() as u16).wrapping_sub(1);
    match (tenths % 10) as u16 {
        0 if digits.is_empty() => return numeric(&[], 0, false, 1),
        0 => {}
        tenth => digits.push(tenth * 1_000),
    }
    numeric(&digits, weight, false, 1)
}

/// Of base 10000, most significant first; none for 0.
fn digits(mut rest: u64) -> Vec<u16> {
    let mut digits = Vec::new();
    while rest > 0 {
        digits.push((rest % 10_000) as u16);
        rest /= 10_000;
    }
    digits.reverse();
    digits
}

/// Count of digits, the power of 10000 of the first, sign, decimals; then the digits.
///
/// Source: `numeric_send` in `src/backend/utils/adt/numeric.c`.
fn numeric(digits: &[u16], weight: u16, negative: bool, scale: u16) -> Vec<u8> {
    let sign: u16 = if negative { 0x4000 } else { 0 };
    let head = [digits.len() as u16, weight, sign, scale];
    head.iter().chain(digits).flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(message: &[u8]) -> &[u8] {
        &message[5..]
    }

    fn words(bytes: &[u8]) -> Vec<u16> {
        bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numeric_goes_out_in_base_ten_thousand() {
        let words = |number: i64| words(&binary_numeric(number));
        assert_eq!(words(0), [0, 0, 0, 0]);
        assert_eq!(words(7), [1, 0, 0, 0, 7]);
        assert_eq!(words(10_000), [2, 1, 0, 0, 1, 0]);
        assert_eq!(words(123_456_789), [3, 2, 0, 0, 1, 2345, 6789]);
        assert_eq!(words(-5), [1, 0, 0x4000, 0, 5]);
    }

    #[test]
    fn tenths_have_one_decimal() {
        let text =
            |tenths| field(Kind::Numeric, &Value::Tenths(tenths), Format::Text).unwrap().to_vec();
        assert_eq!(text(0), b"0.0");
        assert_eq!(text(7), b"0.7");
        assert_eq!(text(125), b"12.5");
        let binary = |tenths| words(&binary_tenths(tenths));
        assert_eq!(binary(0), [0, 0, 0, 1]);
        assert_eq!(binary(7), [1, 0xffff, 0, 1, 7_000]);
        assert_eq!(binary(120), [1, 0, 0, 1, 12]);
        assert_eq!(binary(125), [2, 0, 0, 1, 12, 5_000]);
        assert_eq!(binary(100_005), [3, 1, 0, 1, 1, 0, 5_000]);
    }

    #[test]
    fn text_fields_are_the_same_in_both_formats() {
        let value = Value::text("größe");
        assert_eq!(
            field(Kind::Text, &value, Format::Text),
            field(Kind::Text, &value, Format::Binary)
        );
    }

    #[test]
    fn each_column_takes_its_own_format_and_one_format_is_for_all() {
        let columns = [Column::bare("a", Kind::Int4), Column::bare("b", Kind::Int8)];
        let row = [Value::Int(1), Value::Int(2)];
        let mut out = Vec::new();
        put_row(&mut out, &columns, &row, &Formats(vec![Format::Text, Format::Binary]));
        assert_eq!(body(&out), b"\0\x02\0\0\0\x011\0\0\0\x08\0\0\0\0\0\0\0\x02");
        out.clear();
        put_row(&mut out, &columns, &row, &Formats(vec![Format::Binary]));
        assert_eq!(body(&out), b"\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x02");
    }

    #[test]
    fn numbers_too_large_for_an_int4_column_stop_at_its_limit() {
        assert_eq!(
            field(Kind::Int4, &Value::Int(1 << 40), Format::Text).as_deref(),
            Some(&b"2147483647"[..])
        );
    }

    #[test]
    fn a_description_names_oids_sizes_and_formats() {
        let columns = [Column::bare("n", Kind::Numeric), Column::bare("t", Kind::Text)];
        let mut out = Vec::new();
        put_columns(&mut out, &columns, &Formats(vec![Format::Binary, Format::Text]));
        let mut expected =
            b"\0\x02n\0\0\0\0\0\0\0\0\0\x06\xa4\xff\xff\xff\xff\xff\xff\0\x01".to_vec();
        expected.extend_from_slice(b"t\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
        assert_eq!(body(&out), expected);
    }
}
