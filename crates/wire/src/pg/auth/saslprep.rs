//! SASLprep as PostgreSQL does it, which is not quite RFC 4013: passwords of one account must give
//! the same keys here and there.
//!
//! Three differences: pure ASCII is taken as it is, control characters included; what is
//! prohibited is looked for *before* normalisation; a password that fails is used as it is.
//!
//! Source: `pg_saslprep` in `src/common/saslprep.c`, `scram_build_secret` in
//! `src/common/scram-common.c` and its callers.

use std::borrow::Cow;

use stringprep::tables;
use unicode_normalization::UnicodeNormalization;

/// The bytes that go into PBKDF2.
pub(super) fn prepared(password: &[u8]) -> Cow<'_, [u8]> {
    if password.is_ascii() {
        return Cow::Borrowed(password);
    }
    match std::str::from_utf8(password).ok().and_then(saslprep) {
        Some(text) => Cow::Owned(text.into_bytes()),
        None => Cow::Borrowed(password),
    }
}

fn saslprep(text: &str) -> Option<String> {
    let mapped: String = text
        .chars()
        .map(|c| if tables::non_ascii_space_character(c) { ' ' } else { c })
        .filter(|c| !tables::commonly_mapped_to_nothing(*c))
        .collect();
    if mapped.is_empty() || mapped.chars().any(is_prohibited) || !is_bidi_sound(&mapped) {
        return None;
    }
    Some(mapped.nfkc().collect())
}

/// Two tables are left out: other spaces are mapped by now, and a `char` is never a surrogate.
///
/// Source: RFC 4013, sections 2.3 and 2.5.
fn is_prohibited(c: char) -> bool {
    tables::ascii_control_character(c)
        || tables::non_ascii_control_character(c)
        || tables::private_use(c)
        || tables::non_character_code_point(c)
        || tables::inappropriate_for_plain_text(c)
        || tables::inappropriate_for_canonical_representation(c)
        || tables::change_display_properties_or_deprecated(c)
        || tables::tagging_character(c)
        || tables::unassigned_code_point(c)
}

/// A text with right-to-left characters has no left-to-right ones, and starts and ends with one.
///
/// Source: RFC 3454, section 6.
fn is_bidi_sound(text: &str) -> bool {
    let is_rtl = |c: Option<char>| c.is_some_and(tables::bidi_r_or_al);
    !text.chars().any(tables::bidi_r_or_al)
        || (!text.chars().any(tables::bidi_l)
            && is_rtl(text.chars().next())
            && is_rtl(text.chars().next_back()))
}
