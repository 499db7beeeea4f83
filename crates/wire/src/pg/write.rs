//! What all builders share: a message's frame, and strings that can't break out of it.

use super::frame::MESSAGE_BYTES_MAX;

/// Appends a tagged message whose body `fill` appends.
pub(super) fn message(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    counted(out, fill);
}

/// Appends a length word that counts itself, and what `fill` appends.
pub(super) fn counted(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let len = out.len() - start;
    debug_assert!(len <= MESSAGE_BYTES_MAX, "a message of {len} bytes");
    out[start..start + 4].copy_from_slice(&(len as u32).to_be_bytes());
}

/// A message without a body.
pub(super) fn empty(out: &mut Vec<u8>, tag: u8) {
    out.extend_from_slice(&[tag, 0, 0, 0, 4]);
}

/// A NUL-terminated string. Ends at the first NUL of `text`, so that no text can start a field
/// of its own.
pub(super) fn cstr(out: &mut Vec<u8>, text: &[u8]) {
    let end = memchr::memchr(0, text).unwrap_or(text.len());
    out.extend_from_slice(&text[..end]);
    out.push(0);
}

/// A 16-bit count of things; the caller's limit is PostgreSQL's (65535).
pub(super) fn count(out: &mut Vec<u8>, n: usize) {
    debug_assert!(n <= usize::from(u16::MAX), "{n} things in one message");
    out.extend_from_slice(&(n as u16).to_be_bytes());
}

/// A value with its length in front; `None` is NULL (length -1).
pub(super) fn value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}
