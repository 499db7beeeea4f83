//! Patterns of KEYS, SCAN, PSUBSCRIBE and CONFIG GET, as `stringmatchlen` in Redis's `util.c` reads
//! them, its oddities included. A star that did not work out is never tried again once a later one
//! has been reached, so the time is at most the product of both lengths.

/// Stars that a text may be matched against; with more of them nothing matches.
const STARS_MAX: usize = 1_000;

/// Whether all of `text` matches. `nocase`: in any case, but for what is escaped within brackets.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last star's rest begins, and where it was last tried.
    let mut star: Option<(usize, usize)> = None;
    let mut stars = 0;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at = skip_stars(pattern, at);
            if at == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            star = Some((at, from));
            continue;
        }
        let next = if at < pattern.len() { one(pattern, at, text[from], nocase) } else { None };
        if let Some(next) = next {
            (at, from) = (next, from + 1);
            continue;
        }
        let Some((rest, tried)) = star else { return false };
        (at, from) = (rest, tried + 1);
        star = Some((rest, from));
    }
    // A star matches nothing, but not in an empty text.
    let end = if text.is_empty() { at } else { skip_stars(pattern, at) };
    end == pattern.len()
}

fn skip_stars(pattern: &[u8], at: usize) -> usize {
    at + pattern[at..].iter().take_while(|byte| **byte == b'*').count()
}

/// Matches one byte against what begins at `at`, which is no star: where the pattern goes on.
fn one(pattern: &[u8], at: usize, byte: u8, nocase: bool) -> Option<usize> {
    let same = |other: u8| other == byte || (nocase && other.eq_ignore_ascii_case(&byte));
    match pattern[at] {
        b'?' => Some(at + 1),
        b'[' => class(pattern, at + 1, byte, nocase),
        b'\\' if at + 1 < pattern.len() => same(pattern[at + 1]).then_some(at + 2),
        other => same(other).then_some(at + 1),
    }
}

/// What is in brackets, from behind the first one. One that is not closed ends with the pattern.
fn class(pattern: &[u8], mut at: usize, byte: u8, nocase: bool) -> Option<usize> {
    let lower = |byte: u8| if nocase { byte.to_ascii_lowercase() } else { byte };
    let not = pattern.get(at) == Some(&b'^');
    at += usize::from(not);
    let mut found = false;
    loop {
        match &pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                let (first, last) = (*first.min(last), *first.max(last));
                found |= (lower(first)..=lower(last)).contains(&lower(byte));
                at += 3;
            }
            [other, ..] => {
                found |= lower(*other) == lower(byte);
                at += 1;
            }
        }
    }
    (found != not).then_some(at)
}

/// What every text that matches begins with.
pub fn prefix(pattern: &[u8]) -> Vec<u8> {
    let (mut prefix, mut at) = (Vec::new(), 0);
    while let Some(byte) = pattern.get(at) {
        match byte {
            b'*' | b'?' | b'[' => break,
            b'\\' if at + 1 < pattern.len() => at += 1,
            _ => {}
        }
        prefix.push(pattern[at]);
        at += 1;
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(
            matches(pattern.as_bytes(), text.as_bytes(), false),
            expected,
            "{pattern} {text}"
        );
    }

    #[test]
    fn patterns_match_as_redis_has_it() {
        for (pattern, text, expected) in [
            ("*", "abc", true),
            ("*", "", false),
            ("", "", true),
            ("", "a", false),
            ("a*", "a", true),
            ("a**", "a", true),
            ("*a*", "bab", true),
            ("*a", "bab", false),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h[abc", "ha", true),
            ("[", "a", false),
            ("[^", "a", true),
            ("[a-]", "^", true),
            ("[a-]", "b", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("*?", "a", true),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
        ] {
            check(pattern, text, expected);
        }
        assert!(matches(b"MAX*", b"maxmemory", true));
        assert!(matches(b"[M-N]ax", b"max", true));
        assert!(!matches(b"[\\M]ax", b"max", true));
    }

    #[test]
    fn many_stars_take_no_time() {
        let (pattern, text) = ("a*".repeat(200) + "b", "a".repeat(100_000));
        check(&pattern, &text, false);
    }

    #[test]
    fn nothing_matches_a_pattern_of_too_many_stars() {
        let text = "a".repeat(2 * STARS_MAX);
        check(&("*?".repeat(STARS_MAX) + "*"), &text, true);
        check(&"*?".repeat(STARS_MAX + 1), &text, false);
    }

    #[test]
    fn a_prefix_is_what_comes_before_anything_special() {
        assert_eq!(prefix(b"user:\\*1*"), b"user:*1");
        assert_eq!(prefix(b"[a]b"), b"");
        assert_eq!(prefix(b"abc"), b"abc");
    }
}
