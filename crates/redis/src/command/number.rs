//! Numbers in commands, as Redis reads and writes them.

use crate::failure::Failure;
use crate::value::parse_integer;

/// An integer argument.
pub fn integer(word: &[u8]) -> Result<i64, Failure> {
    parse_integer(word).ok_or(Failure::NOT_AN_INTEGER)
}

/// A float argument (`getDoubleFromObject`): what strtod reads whole, without blanks around it, and
/// no NaN.
pub fn float(word: &[u8]) -> Result<f64, Failure> {
    let text = std::str::from_utf8(word).map_err(|_| Failure::NOT_A_FLOAT)?;
    let value = match text.strip_prefix(['+', '-']).unwrap_or(text).to_ascii_lowercase().as_str() {
        "inf" | "infinity" if text.starts_with('-') => f64::NEG_INFINITY,
        "inf" | "infinity" => f64::INFINITY,
        "nan" => return Err(Failure::NOT_A_FLOAT),
        _ => text.parse().map_err(|_| Failure::NOT_A_FLOAT)?,
    };
    if value.is_nan() {
        Err(Failure::NOT_A_FLOAT)
    } else {
        Ok(value)
    }
}
