//! Commands typed as a line: words between blanks, quoted as in a shell.
//!
//! In double quotes `\n \r \t \b \a` and `\xHH` mean bytes and any other `\c` is `c`; in single
//! quotes only `\'` is more than itself. A closing quote ends the word.
//!
//! Source: `sdssplitargs` in `src/sds.c` of Redis 7.2.

use super::request::{span, Span};

/// A quote is not closed, or something is glued to a closing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unbalanced;

/// Whether the words of `line` are not simply pieces of it, but to be had from [`unquote`].
pub(super) fn is_quoted(line: &[u8]) -> bool {
    memchr::memchr2(b'"', b'\'', line).is_some()
}

/// The words of a line without quotes.
pub(super) fn split(line: &[u8], words: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(start) = word_start(line, at) {
        let len = line[start..].iter().position(|byte| ends_word(*byte));
        at = len.map_or(line.len(), |len| start + len);
        words.push(span(start, at));
    }
}

/// The words of a line with quotes, as spans of `text`.
pub(super) fn unquote(
    line: &[u8],
    words: &mut Vec<Span>,
    text: &mut Vec<u8>,
) -> Result<(), Unbalanced> {
    let mut at = 0;
    while let Some(start) = word_start(line, at) {
        let begin = text.len();
        at = word(line, start, text)?;
        words.push(span(begin, text.len()));
    }
    Ok(())
}

fn word_start(line: &[u8], at: usize) -> Option<usize> {
    let blanks = line.get(at..)?.iter().position(|byte| !is_space(*byte))?;
    Some(at + blanks)
}

/// Appends the word that begins at `at`; says where it ends.
fn word(line: &[u8], mut at: usize, text: &mut Vec<u8>) -> Result<usize, Unbalanced> {
    while let Some(byte) = line.get(at).copied() {
        match byte {
            b'"' => return double_quoted(line, at + 1, text),
            b'\'' => return single_quoted(line, at + 1, text),
            byte if ends_word(byte) => break,
            byte => text.push(byte),
        }
        at += 1;
    }
    Ok(at)
}

fn double_quoted(line: &[u8], mut at: usize, text: &mut Vec<u8>) -> Result<usize, Unbalanced> {
    loop {
        match line.get(at..).unwrap_or_default() {
            [] => return Err(Unbalanced),
            [b'"', ..] => return closed(line, at + 1),
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                text.push(hex_digit(*high) << 4 | hex_digit(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                text.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                at += 2;
            }
            [byte, ..] => {
                text.push(*byte);
                at += 1;
            }
        }
    }
}

fn single_quoted(line: &[u8], mut at: usize, text: &mut Vec<u8>) -> Result<usize, Unbalanced> {
    loop {
        match line.get(at..).unwrap_or_default() {
            [] => return Err(Unbalanced),
            [b'\'', ..] => return closed(line, at + 1),
            [b'\\', b'\'', ..] => {
                text.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                text.push(*byte);
                at += 1;
            }
        }
    }
}

/// Behind a closing quote comes a blank, or nothing.
fn closed(line: &[u8], at: usize) -> Result<usize, Unbalanced> {
    match line.get(at) {
        Some(byte) if !is_space(*byte) => Err(Unbalanced),
        _ => Ok(at),
    }
}

/// As C's `isspace`.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Fewer than may stand between words: a vertical tab within a word is a part of it.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
