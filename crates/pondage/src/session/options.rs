//! The start-up parameter `options`: command-line arguments for the server, of which clients use
//! `-c name=value` and `--name=value`.
//!
//! Source: PostgreSQL docs, "Connection Parameters: options"; `pg_split_opts` in postinit.c.

/// Settings in `options`, in order, or the word that is no setting.
///
/// Words are separated by white space; a backslash takes the next character as it is.
pub fn parse(options: &str) -> Result<Vec<(String, String)>, String> {
    let mut settings = Vec::new();
    let mut words = words(options).into_iter();
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next().ok_or_else(|| word.clone())?
        } else if let Some(rest) = word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            rest.to_owned()
        } else {
            return Err(word);
        };
        match assignment.split_once('=') {
            // In this place, and only here, PostgreSQL takes a dash for an underscore.
            Some((name, value)) if is_name(&name.replace('-', "_")) => {
                settings.push((name.replace('-', "_"), value.to_owned()));
            }
            _ => return Err(word),
        }
    }
    Ok(settings)
}

/// A setting's name: identifiers joined by dots. Such a name can stand in a RESET as it is.
pub fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let first = part.bytes().next();
        first.is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
            && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'$')
    };
    name.len() <= 128 && name.split('.').all(part)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => word.get_or_insert_default().extend(characters.next()),
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(options: &str) -> Result<Vec<(String, String)>, String> {
        parse(options)
    }

    #[test]
    fn settings_are_taken_in_each_of_their_forms() {
        let expected = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            pairs(r"-c geqo=off  -cwork_mem=4MB --search-path=a,\ b -c a.b=c=d"),
            Ok(vec![
                expected("geqo", "off"),
                expected("work_mem", "4MB"),
                expected("search_path", "a, b"),
                expected("a.b", "c=d"),
            ])
        );
        assert_eq!(pairs("   "), Ok(vec![]));
    }

    #[test]
    fn what_is_no_setting_is_named() {
        assert_eq!(pairs("-c geqo=off -N"), Err("-N".to_owned()));
        assert_eq!(pairs("-c"), Err("-c".to_owned()));
        assert_eq!(pairs("-c geqo"), Err("-c".to_owned()));
        assert_eq!(pairs("--a;b=1"), Err("--a;b=1".to_owned()));
    }
}
