//! Lua values as JSON.

use mlua::{Table, Value};

use super::{Invalid, Settings, DEPTH_MAX};
use crate::script::host::{ending, type_name, Complaint, Control, TEXT_BYTES_MAX};

pub(super) fn encode(
    value: &Value,
    settings: Settings,
    control: &Control,
) -> Result<Vec<u8>, Complaint> {
    let mut encoder = Encoder { settings, out: Vec::new(), complaint: None };
    encoder.value(value, 0)?;
    control.spend_bytes(encoder.out.len() * 16);
    Ok(encoder.out)
}

struct Encoder {
    settings: Settings,
    out: Vec<u8>,
    /// What was wrong inside of a table, while that is left.
    complaint: Option<Complaint>,
}

impl Encoder {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Complaint> {
        if self.out.len() > TEXT_BYTES_MAX {
            return Err("Cannot serialise, resulting string too large".into());
        }
        match value {
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Number(number) => self.number(*number, value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => {
                self.out.extend_from_slice(b"null");
            }
            Value::Table(table) => self.table(table, depth + 1)?,
            other => return Err(unserialisable(other, "type not supported")),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<(), Complaint> {
        if depth > self.settings.encode_depth.min(DEPTH_MAX) {
            return Err(format!("Cannot serialise, excessive nesting ({depth})").into());
        }
        match self.array_length(table)? {
            Some(len @ 1..) => {
                self.out.push(b'[');
                for at in 1..=len {
                    if at > 1 {
                        self.out.push(b',');
                    }
                    let element: Value = table.raw_get(at)?;
                    self.value(&element, depth)?;
                }
                self.out.push(b']');
            }
            _ => self.object(table, depth)?,
        }
        Ok(())
    }

    /// The greatest index of a table whose keys are all whole and positive.
    fn array_length(&self, table: &Table) -> Result<Option<i64>, Complaint> {
        let (mut most, mut items, mut pure) = (0, 0, true);
        let walked = table.for_each(|key: Value, _: Value| {
            match key {
                Value::Integer(at) if (1..=i64::from(i32::MAX)).contains(&at) => {
                    most = at.max(most);
                    items += 1;
                    Ok(())
                }
                // The first other key settles it.
                _ => {
                    pure = false;
                    Err(ending())
                }
            }
        });
        if !pure {
            return Ok(None);
        }
        walked?;
        let settings = &self.settings;
        let sparse = settings.sparse_ratio > 0
            && most > items * settings.sparse_ratio
            && most > settings.sparse_safe;
        match (sparse, settings.sparse_convert) {
            (true, false) => Err("Cannot serialise table: excessively sparse array".into()),
            (true, true) => Ok(None),
            _ => Ok(Some(most)),
        }
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<(), Complaint> {
        self.out.push(b'{');
        let mut first = true;
        let walked = table.for_each(|key: Value, value: Value| {
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            let put = self.key(&key).and_then(|()| self.value(&value, depth));
            put.map_err(|complaint| {
                self.complaint = Some(complaint);
                ending()
            })
        });
        if let Some(complaint) = self.complaint.take() {
            return Err(complaint);
        }
        walked?;
        self.out.push(b'}');
        Ok(())
    }

    fn key(&mut self, key: &Value) -> Result<(), Complaint> {
        match key {
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                self.value(key, 0)?;
                self.out.push(b'"');
            }
            Value::String(text) => self.string(&text.as_bytes()),
            other => {
                return Err(unserialisable(other, "table key must be a number or string"));
            }
        }
        self.out.push(b':');
        Ok(())
    }

    fn string(&mut self, text: &[u8]) {
        self.out.push(b'"');
        for byte in text {
            match byte {
                b'"' | b'\\' | b'/' => self.out.extend_from_slice(&[b'\\', *byte]),
                8 => self.out.extend_from_slice(b"\\b"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                0..32 | 127 => {
                    self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                }
                byte => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
    }

    fn number(&mut self, number: f64, value: &Value) -> Result<(), Complaint> {
        if !number.is_finite() {
            let text: &[u8] = match self.settings.encode_invalid {
                Invalid::Refused => {
                    return Err(unserialisable(value, "must not be NaN or Inf"));
                }
                Invalid::Null => b"null",
                Invalid::Written if number.is_nan() => b"nan",
                Invalid::Written if number > 0.0 => b"inf",
                Invalid::Written => b"-inf",
            };
            self.out.extend_from_slice(text);
            return Ok(());
        }
        // Below this no digit is lost to the precision.
        if number.trunc() == number && number.abs() < 10f64.powi(self.settings.precision as i32) {
            let mut digits = itoa::Buffer::new();
            self.out.extend_from_slice(digits.format(number as i64).as_bytes());
            return Ok(());
        }
        general(number, self.settings.precision, &mut self.out);
        Ok(())
    }
}

fn unserialisable(value: &Value, why: &str) -> Complaint {
    format!("Cannot serialise {}: {why}", type_name(value)).into()
}

/// C's `%.*g` of a finite number.
fn general(number: f64, precision: usize, out: &mut Vec<u8>) {
    let text = format!("{number:.*e}", precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let shown = if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    } else {
        let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{number:.decimals$}"))
    };
    out.extend_from_slice(shown.as_bytes());
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_written_with_a_precision() {
        let text = |number: f64, precision| {
            let mut out = Vec::new();
            super::general(number, precision, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0.1, 14), "0.1");
        assert_eq!(text(std::f64::consts::PI, 14), "3.1415926535898");
        assert_eq!(text(std::f64::consts::PI, 3), "3.14");
        assert_eq!(text(1e15, 14), "1e+15");
        assert_eq!(text(123456789012345678.0, 14), "1.2345678901235e+17");
        assert_eq!(text(0.00001, 14), "1e-05");
        assert_eq!(text(0.0001, 14), "0.0001");
        assert_eq!(text(99999.9, 3), "1e+05");
        assert_eq!(text(-1.5e-300, 14), "-1.5e-300");
    }
}
