//! Taking DER apart, as far as certificates need it.
//!
//! Source: X.690, 8.1.

pub const SEQUENCE: u8 = 0x30;
pub const OID: u8 = 0x06;

/// Takes an element: its tag, its value, and the whole.
pub fn any<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8], &'a [u8])> {
    let all = *rest;
    let (tag, after) = all.split_first()?;
    let (first, after) = after.split_first()?;
    let (length, after) = match first {
        0..=0x7f => (usize::from(*first), after),
        0x81 => {
            let (length, after) = after.split_first()?;
            (usize::from(*length), after)
        }
        0x82 => {
            let (length, after) = after.split_at_checked(2)?;
            (usize::from(length[0]) << 8 | usize::from(length[1]), after)
        }
        _ => return None,
    };
    let (value, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((*tag, value, &all[..all.len() - after.len()]))
}

/// The value of the next element, if it is of this kind.
pub fn element<'a>(rest: &mut &'a [u8], expected: u8) -> Option<&'a [u8]> {
    any(rest).filter(|(tag, ..)| *tag == expected).map(|(_, value, _)| value)
}
