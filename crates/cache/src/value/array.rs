//! The elements of arrays with one dimension, as the right side of `= ANY`.
//!
//! Source: PostgreSQL docs, "Array Input and Output Syntax"; `array_in` and `array_recv` in
//! `src/backend/utils/adt/arrayfuncs.c`.

use super::{is_space, Canonical};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element<'a> {
    Null,
    Value(&'a [u8]),
}

/// It is no array, or one of several dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUnderstood;

/// Hands over the elements of an array in text. Those before a mistake are handed over as well.
pub fn elements(text: &[u8], mut each: impl FnMut(Element<'_>)) -> Result<(), NotUnderstood> {
    let mut rest = skip_space(text);
    if rest.first() == Some(&b'[') {
        // Bounds do not matter for ANY.
        let end = rest.iter().position(|byte| *byte == b'=').ok_or(NotUnderstood)?;
        let bounds = &rest[1..end];
        let closed = bounds.iter().position(|byte| *byte == b']').ok_or(NotUnderstood)?;
        if bounds[closed + 1..].iter().any(|byte| !is_space(*byte)) {
            return Err(NotUnderstood);
        }
        rest = skip_space(&rest[end + 1..]);
    }
    let Some((b'{', after)) = rest.split_first() else {
        return Err(NotUnderstood);
    };
    rest = skip_space(after);
    if let Some((b'}', after)) = rest.split_first() {
        return end(after);
    }
    let mut unescaped = Canonical::new();
    loop {
        rest = skip_space(rest);
        rest = match rest.split_first() {
            Some((b'"', after)) => {
                let after = quoted(after, &mut unescaped)?;
                each(Element::Value(&unescaped));
                skip_space(after)
            }
            _ => bare(rest, &mut each)?,
        };
        match rest.split_first() {
            Some((b',', after)) => rest = after,
            Some((b'}', after)) => return end(after),
            _ => return Err(NotUnderstood),
        }
    }
}

fn end(rest: &[u8]) -> Result<(), NotUnderstood> {
    if skip_space(rest).is_empty() {
        Ok(())
    } else {
        Err(NotUnderstood)
    }
}

fn skip_space(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    &text[start..]
}

/// Up to the closing quote, without backslashes; gives what is behind it.
fn quoted<'a>(mut rest: &'a [u8], out: &mut Canonical) -> Result<&'a [u8], NotUnderstood> {
    out.clear();
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(NotUnderstood)?;
        out.extend_from_slice(&rest[..end]);
        match &rest[end..] {
            [b'\\', escaped, after @ ..] => {
                out.push(*escaped);
                rest = after;
            }
            [b'"', after @ ..] => return Ok(after),
            _ => return Err(NotUnderstood),
        }
    }
}

/// A word without quotes, up to a comma or a brace. One with a backslash is refused: blanks at
/// its end may count then.
fn bare<'a>(text: &'a [u8], each: &mut impl FnMut(Element<'_>)) -> Result<&'a [u8], NotUnderstood> {
    let end = text
        .iter()
        .position(|byte| matches!(byte, b',' | b'{' | b'}' | b'"' | b'\\'))
        .ok_or(NotUnderstood)?;
    let word = super::trimmed(&text[..end]);
    if word.is_empty() {
        return Err(NotUnderstood);
    }
    each(if word.eq_ignore_ascii_case(b"null") { Element::Null } else { Element::Value(word) });
    Ok(&text[end..])
}

/// The same in binary format, each element with the object identifier of its type.
pub fn elements_binary(
    bytes: &[u8],
    mut each: impl FnMut(u32, Element<'_>),
) -> Result<(), NotUnderstood> {
    let mut rest = bytes;
    let dimensions = word(&mut rest)?;
    let _has_nulls = word(&mut rest)?;
    let of = word(&mut rest)?;
    if dimensions == 0 && rest.is_empty() {
        return Ok(());
    }
    if dimensions != 1 {
        return Err(NotUnderstood);
    }
    let count = word(&mut rest)?;
    let _first = word(&mut rest)?;
    for _ in 0..count {
        let length = word(&mut rest)?;
        if length == u32::MAX {
            each(of, Element::Null);
            continue;
        }
        let (value, after) = rest.split_at_checked(length as usize).ok_or(NotUnderstood)?;
        each(of, Element::Value(value));
        rest = after;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(NotUnderstood)
    }
}

fn word(rest: &mut &[u8]) -> Result<u32, NotUnderstood> {
    let (word, after) = rest.split_first_chunk().ok_or(NotUnderstood)?;
    *rest = after;
    Ok(u32::from_be_bytes(*word))
}
