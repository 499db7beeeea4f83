//! Patterns as KEYS, SCAN and PSUBSCRIBE take them (`util.c`, `stringmatchlen`).

/// Whether the whole of `text` matches. `*`, `?`, `[a-z]`, `[^a]` and `\` to quote.
///
/// Of several `*` only the last is tried at another place: an earlier one that took more would
/// leave less to the rest. So it takes at most the product of both lengths.
pub fn matches(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on if the rest does not match: behind the last `*`, one byte later.
    let mut again: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            again = Some((p, t));
            continue;
        }
        if t == text.len() {
            // Only stars are left: an open class or a quote would have to take a byte.
            return p == pattern.len();
        }
        match one(pattern, p, text[t], ignore_case) {
            Some(next) => (p, t) = (next, t + 1),
            None => match &mut again {
                Some((star, from)) => {
                    *from += 1;
                    (p, t) = (*star, *from);
                }
                None => return false,
            },
        }
    }
}

/// Matches one byte with what is at `p`; gives where the pattern goes on.
fn one(pattern: &[u8], p: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    let same = |a: u8, b: u8| fold(a) == fold(b);
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => class(pattern, p + 1, byte, &same, &fold),
        b'\\' if p + 1 < pattern.len() => same(pattern[p + 1], byte).then_some(p + 2),
        other => same(other, byte).then_some(p + 1),
    }
}

/// What follows a `[`. One that is not closed ends with the pattern.
fn class(
    pattern: &[u8],
    mut p: usize,
    byte: u8,
    same: &dyn Fn(u8, u8) -> bool,
    fold: &dyn Fn(u8) -> u8,
) -> Option<usize> {
    let not = pattern.get(p) == Some(&b'^');
    p += usize::from(not);
    let mut found = false;
    loop {
        match pattern.get(p) {
            None => break,
            Some(b'\\') if p + 1 < pattern.len() => {
                p += 1;
                found |= same(pattern[p], byte);
            }
            Some(b']') => {
                p += 1;
                break;
            }
            Some(first) if p + 2 < pattern.len() && pattern[p + 1] == b'-' => {
                let (a, b) = (fold(*first), fold(pattern[p + 2]));
                found |= (a.min(b)..=a.max(b)).contains(&fold(byte));
                p += 2;
            }
            Some(other) => found |= same(*other, byte),
        }
        p += 1;
        if p > pattern.len() {
            break;
        }
    }
    (found != not).then_some(p.min(pattern.len()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("news.*", "news.art.figurative", true),
            ("*a*b*c", "xaxbxbxc", true),
            ("*a*b*c", "xaxbxbx", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern}");
        }
        assert!(matches(b"FOO*", b"foobar", true));
        let (pattern, text) = ("a*".repeat(200) + "b", "a".repeat(20_000));
        assert!(!matches(pattern.as_bytes(), text.as_bytes(), false), "and it ends soon");
    }
}
