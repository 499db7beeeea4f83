//! LZF, the compression of strings in RDB: runs of literals, and references to at most 8 KB before.
//!
//! ```text
//! 000LLLLL                      L + 1 literals follow
//! LLLooooo oooooooo             L + 2 bytes (L is 1 to 6) from o + 1 bytes before
//! 111ooooo LLLLLLLL oooooooo    L + 9 bytes from o + 1 bytes before
//! ```
//!
//! Source: liblzf, `lzf_d.c`.

/// Literals in a run, bytes of a reference, and how far back it goes, at most.
const LITERALS_MAX: usize = 32;
const COPIED_MAX: usize = 264;
const BACK_MAX: usize = 8192;

/// Bits of the table that finds where the same three bytes were.
const TABLE_BITS: u32 = 14;

/// None when that saves less than four bytes.
pub fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let most = bytes.len().checked_sub(4)?;
    let mut out = Vec::with_capacity(most);
    let mut table = vec![0u32; 1 << TABLE_BITS];
    let (mut at, mut literals) = (0, 0);
    while at + 2 < bytes.len() {
        let three = u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]]);
        let place = (three.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize;
        // Positions are kept plus one, so that 0 is nowhere.
        let before = std::mem::replace(&mut table[place], at as u32 + 1) as usize;
        let near = before > 0 && at + 1 - before <= BACK_MAX;
        if !near || bytes[before - 1..before + 2] != bytes[at..at + 3] {
            at += 1;
            continue;
        }
        let (from, rest) = (&bytes[before - 1..], &bytes[at..]);
        let same = rest.iter().zip(from).take(COPIED_MAX).take_while(|(a, b)| a == b).count();
        put_literals(&mut out, &bytes[literals..at]);
        let (back, len) = (at - before, same - 2);
        if len < 7 {
            out.push((len as u8) << 5 | (back >> 8) as u8);
        } else {
            out.extend_from_slice(&[7 << 5 | (back >> 8) as u8, (len - 7) as u8]);
        }
        out.push(back as u8);
        at += same;
        literals = at;
        if out.len() > most {
            return None;
        }
    }
    put_literals(&mut out, &bytes[literals..]);
    (out.len() <= most).then_some(out)
}

fn put_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        out.push(run.len() as u8 - 1);
        out.extend_from_slice(run);
    }
}

/// None when that does not give exactly `len` bytes.
pub fn decompress(mut bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    // Three bytes make at most 264.
    if len > bytes.len().saturating_mul(COPIED_MAX) {
        return None;
    }
    let mut out = Vec::with_capacity(len);
    while let Some((control, rest)) = bytes.split_first() {
        bytes = rest;
        let control = usize::from(*control);
        if control < LITERALS_MAX {
            let (literals, rest) = bytes.split_at_checked(control + 1)?;
            bytes = rest;
            out.extend_from_slice(literals);
        } else {
            let mut copied = (control >> 5) + 2;
            if copied == 9 {
                let (more, rest) = bytes.split_first()?;
                bytes = rest;
                copied += usize::from(*more);
            }
            let (low, rest) = bytes.split_first()?;
            bytes = rest;
            let back = ((control & 0x1f) << 8 | usize::from(*low)) + 1;
            let from = out.len().checked_sub(back)?;
            if out.len() + copied > len {
                return None;
            }
            // They may overlap, so it goes byte by byte.
            (from..from + copied).for_each(|at| out.push(out[at]));
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_back() {
        let mut noise = 1u64;
        for len in [0, 4, 5, 21, 33, 300, 10_000, 100_000] {
            for letters in [1, 2, 26, 256] {
                let next = || {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((noise >> 33) % letters) as u8
                };
                let text: Vec<u8> = std::iter::repeat_with(next).take(len).collect();
                if let Some(small) = compress(&text) {
                    assert!(small.len() + 4 <= len);
                    assert_eq!(decompress(&small, len), Some(text));
                }
            }
        }
        assert_eq!(compress(&[7; 1000]).map(|small| small.len() < 20), Some(true));
    }
}
