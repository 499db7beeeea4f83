//! The first line of a script, which says what it is: `#!lua flags=no-writes`.

/// What a script may do, and where it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permits {
    /// It has no such line: whatever the command that runs it permits.
    pub anything: bool,
    pub no_writes: bool,
}

/// Names of flags in the order in which FUNCTION LIST tells them. All but the first say what a
/// script may do where this server never is: out of memory, a stale replica, in a cluster.
pub const FLAGS: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// What a library's first line says.
#[derive(Debug, PartialEq, Eq)]
pub struct Library {
    pub engine: Vec<u8>,
    pub name: Vec<u8>,
}

/// Reads the first line of a script for EVAL; gives where the code begins. The line feed belongs
/// to the code, so that lines are counted from the first.
///
/// Source: `evalExtractShebangFlags` in `src/eval.c` of Redis 7.2.
pub fn of_script(text: &[u8]) -> Result<(Permits, usize), String> {
    if !text.starts_with(b"#!") {
        return Ok((Permits { anything: true, no_writes: false }, 0));
    }
    let end = memchr::memchr(b'\n', text).ok_or("Invalid script shebang")?;
    let parts = split(&text[..end]).filter(|parts| !parts.is_empty());
    let parts = parts.ok_or("Invalid engine in script shebang")?;
    if parts[0] != b"#!lua" {
        return Err(format!("Unexpected engine in script shebang: {}", lossy(&parts[0])));
    }
    let mut permits = Permits::default();
    for part in &parts[1..] {
        let Some(flags) = part.strip_prefix(b"flags=") else {
            return Err(format!("Unknown lua shebang option: {}", lossy(part)));
        };
        for flag in flags.split(|byte| *byte == b',').filter(|_| !flags.is_empty()) {
            match FLAGS.iter().position(|name| name.as_bytes() == flag) {
                Some(at) => permits.no_writes |= at == 0,
                None => return Err(format!("Unexpected flag in script shebang: {}", lossy(flag))),
            }
        }
    }
    Ok((permits, end))
}

/// As [`of_script`] for a library.
///
/// Source: `functionExtractLibMetaData` in `src/functions.c` of Redis 7.2.
pub fn of_library(text: &[u8]) -> Result<(Library, usize), String> {
    if !text.starts_with(b"#!") {
        return Err("Missing library metadata".into());
    }
    let end = memchr::memchr(b'\n', text).ok_or("Invalid library metadata")?;
    let parts = split(&text[..end]).filter(|parts| !parts.is_empty());
    let parts = parts.ok_or("Invalid library metadata")?;
    let mut name = None;
    for part in &parts[1..] {
        if part.len() < 5 || !part[..5].eq_ignore_ascii_case(b"name=") {
            return Err(format!("Invalid metadata value given: {}", lossy(part)));
        }
        if name.replace(part[5..].to_vec()).is_some() {
            let why = "Invalid metadata value, name argument was given multiple times";
            return Err(why.into());
        }
    }
    let name = name.ok_or("Library name was not given")?;
    Ok((Library { engine: parts[0][2..].to_vec(), name }, end))
}

fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Words between blanks, with "escapes" and 'quotes' (`sdssplitargs`); none when quotes are not
/// closed.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

fn word(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0 => return Some((word, &line[at..])),
            quote @ (b'"' | b'\'') => {
                at += quoted(&line[at..], *quote, &mut word)?;
                // What follows a closing quote must be a blank.
                if line.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                    return None;
                }
            }
            byte => word.push(*byte),
        }
    }
    Some((word, &[]))
}

/// Gives how many bytes the quoted text has with its closing quote.
fn quoted(text: &[u8], quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        if byte == quote {
            return Some(at);
        }
        if byte != b'\\' || (quote == b'\'' && text.get(at) != Some(&b'\'')) {
            word.push(byte);
            continue;
        }
        let escaped = *text.get(at)?;
        at += 1;
        let digits = text.get(at..at + 2).and_then(|two| std::str::from_utf8(two).ok());
        match (escaped, digits.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'x', Some(byte)) => {
                word.push(byte);
                at += 2;
            }
            (b'n', _) => word.push(b'\n'),
            (b'r', _) => word.push(b'\r'),
            (b't', _) => word.push(b'\t'),
            (b'b', _) => word.push(8),
            (b'a', _) => word.push(7),
            (other, _) => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_that_it_does_not_write() {
        let (permits, at) = of_script(b"#!lua flags=no-writes,allow-stale\nreturn 1").unwrap();
        assert_eq!(permits, Permits { anything: false, no_writes: true });
        assert_eq!(at, 33);
        assert!(of_script(b"return 1").unwrap().0.anything);
        assert_eq!(of_script(b"#!lua flags=\n").unwrap().0, Permits::default());
    }

    #[test]
    fn what_is_wrong_with_the_line_is_said_as_by_redis() {
        let wrong = |text: &[u8]| of_script(text).unwrap_err();
        assert_eq!(wrong(b"#!lua"), "Invalid script shebang");
        assert_eq!(wrong(b"#!not-lua\n"), "Unexpected engine in script shebang: #!not-lua");
        assert_eq!(wrong(b"#!lua badger=1\n"), "Unknown lua shebang option: badger=1");
        assert_eq!(wrong(b"#!lua flags=bad\n"), "Unexpected flag in script shebang: bad");
        assert_eq!(wrong(b"#!lua \"x\n"), "Invalid engine in script shebang");
        let wrong = |text: &[u8]| of_library(text).unwrap_err();
        assert_eq!(wrong(b"x"), "Missing library metadata");
        assert_eq!(wrong(b"#!lua name=a"), "Invalid library metadata");
        assert_eq!(wrong(b"#!lua\n"), "Library name was not given");
        assert_eq!(wrong(b"#!lua bad=1\n"), "Invalid metadata value given: bad=1");
        let twice = "Invalid metadata value, name argument was given multiple times";
        assert_eq!(wrong(b"#!lua name=a name=b\n"), twice);
    }

    #[test]
    fn words_may_be_quoted() {
        let (library, _) = of_library(b"#!lua name=\"a\\x41\"\n").unwrap();
        assert_eq!(library.name, b"aA");
        assert_eq!(library.engine, b"lua");
    }
}
