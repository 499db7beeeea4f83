//! What a cache is, as `CREATE CACHE` and `caches` in the configuration say it:
//!
//! ```text
//! [name] [IN DATABASE name] [WITH (freshness = session|strict|bounded, max_lag = '5s')] FROM select
//! ```
//!
//! In the configuration the select alone will do.

use std::time::Duration;

use sql::{FirstWord, Scan};

use super::value::{is_name, Kind, Raw, Value};
use super::Freshness;

/// A statement whose results are cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: Option<String>,
    /// None: the one it was said in.
    pub database: Option<String>,
    /// None: the pool's.
    pub freshness: Option<Freshness>,
    pub max_lag: Option<Duration>,
    /// The statement as it was written.
    pub query: String,
    /// Its normal text.
    pub normal: Box<[u8]>,
}

impl Definition {
    /// Reads an entry of `caches`.
    ///
    /// # Errors
    /// What is wrong, in a few words.
    pub fn configured(text: &str) -> Result<Definition, String> {
        let text = text.trim_ascii_start();
        let (first, rest) = sql::next_word(text.as_bytes());
        let is = |word: &str| first.eq_ignore_ascii_case(word.as_bytes());
        let alone = is("select") || is("table") || is("values") || text.starts_with('(');
        // `WITH (` begins options, another WITH a query.
        let definition = match alone || is("with") && !sql::blank(rest).starts_with(b"(") {
            true => Definition::of(text)?,
            false => Definition::parse(text)?,
        };
        match &definition.database {
            None => Ok(definition),
            Some(_) => Err("its database is the one whose section it is in".to_owned()),
        }
    }

    /// Reads what follows `CREATE CACHE`.
    ///
    /// # Errors
    /// What is wrong, in a few words.
    pub fn parse(text: &str) -> Result<Definition, String> {
        let mut head = Head::new(text);
        let (mut name, mut database, mut freshness, mut max_lag) = (None, None, None, None);
        let mut with = false;
        loop {
            if head.takes("from") {
                break;
            } else if head.takes("with") && !with {
                with = true;
                (freshness, max_lag) = head.options()?;
            } else if head.takes("in") && database.is_none() {
                if !head.takes("database") {
                    return Err("IN is followed by DATABASE and a name".to_owned());
                }
                database = Some(head.name().ok_or("IN DATABASE needs a name")?);
            } else if name.is_none() && database.is_none() && !with {
                name = Some(head.name().ok_or("expected a name, IN, WITH or FROM")?);
            } else {
                return Err("expected FROM and a SELECT".to_owned());
            }
        }
        Ok(Definition { name, database, freshness, max_lag, ..Definition::of(head.rest)? })
    }

    /// Of a statement alone.
    ///
    /// # Errors
    /// It is not one plain SELECT.
    pub fn of(query: &str) -> Result<Definition, String> {
        let query = query.trim_ascii().trim_end_matches(';').trim_ascii_end();
        let mut scan = Scan::new();
        if !scan.scan(query.as_bytes()) {
            let why = "the statement is not one that can be followed: one plain text, without \
                       backslashes in strings, dollar quotes, or another statement behind it";
            return Err(why.to_owned());
        }
        use FirstWord::{Select, Table, Values, With};
        if !matches!(scan.first_word(), Select | Table | Values | With) {
            return Err("only a SELECT has results that can be cached".to_owned());
        }
        Ok(Definition {
            name: None,
            database: None,
            freshness: None,
            max_lag: None,
            query: query.to_owned(),
            normal: sql::normal(scan.shape()).into(),
        })
    }
}

/// Reads names, options and `IN DATABASE` of commands about caches.
pub struct Head<'a> {
    pub rest: &'a str,
}

impl<'a> Head<'a> {
    pub fn new(rest: &'a str) -> Head<'a> {
        Head { rest }
    }

    /// Takes this word, if it is the next.
    pub fn takes(&mut self, wanted: &str) -> bool {
        let (word, rest) = sql::next_word(self.rest.as_bytes());
        let is = word.eq_ignore_ascii_case(wanted.as_bytes());
        if is {
            self.rest = tail(self.rest, rest);
        }
        is
    }

    /// Takes this character.
    pub fn sign(&mut self, wanted: char) -> bool {
        let rest = tail(self.rest, sql::blank(self.rest.as_bytes()));
        let after = rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Takes a name: a word, which is made small, or anything in double quotes.
    pub fn name(&mut self) -> Option<String> {
        if let Some(name) = self.quoted('"') {
            return is_name(&name).then_some(name);
        }
        let (word, rest) = sql::next_word(self.rest.as_bytes());
        let name = std::str::from_utf8(word).ok()?.to_ascii_lowercase();
        let fits = is_name(&name) && !name.starts_with(|first: char| first.is_ascii_digit());
        if fits {
            self.rest = tail(self.rest, rest);
        }
        fits.then_some(name)
    }

    /// Takes `IN DATABASE name`, if it is next. None: it is begun and not right.
    pub fn database(&mut self) -> Option<Option<String>> {
        if !self.takes("in") {
            return Some(None);
        }
        self.takes("database").then(|| self.name()).flatten().map(Some)
    }

    /// Nothing but white space, comments and semicolons is left.
    pub fn is_done(&self) -> bool {
        sql::says(self.rest.as_bytes(), &[])
    }

    /// Takes a text in quotes, in which two stand for one.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let text = tail(self.rest, sql::blank(self.rest.as_bytes())).strip_prefix(quote)?;
        let mut value = String::new();
        let mut rest = text;
        loop {
            let (part, after) = rest.split_once(quote)?;
            value.push_str(part);
            match after.strip_prefix(quote) {
                Some(more) => {
                    value.push(quote);
                    rest = more;
                }
                None => {
                    self.rest = after;
                    return Some(value);
                }
            }
        }
    }

    fn options(&mut self) -> Result<(Option<Freshness>, Option<Duration>), String> {
        let (mut freshness, mut max_lag) = (None, None);
        if !self.sign('(') {
            return Err("WITH is followed by options in parentheses".to_owned());
        }
        loop {
            let key = self.name().unwrap_or_default();
            if !self.sign('=') {
                return Err("an option is written as key = value".to_owned());
            }
            let value = self.quoted('\'').or_else(|| self.name()).unwrap_or_default();
            match key.as_str() {
                "freshness" if freshness.is_none() => {
                    let words = Freshness::WORDS.join(", ");
                    let known = Freshness::from_name(&value.to_ascii_lowercase());
                    freshness = Some(known.ok_or(format!("freshness is one of {words}"))?);
                }
                "max_lag" if max_lag.is_none() => {
                    max_lag = Some(duration("max_lag", &value)?);
                }
                "freshness" | "max_lag" => return Err(format!("{key} is said twice")),
                _ => return Err("options are freshness and max_lag".to_owned()),
            }
            if self.sign(')') {
                return Ok((freshness, max_lag));
            }
            if !self.sign(',') {
                return Err("options end with a parenthesis".to_owned());
            }
        }
    }
}

fn duration(name: &str, text: &str) -> Result<Duration, String> {
    match (Kind::Duration { zero: None }).read(name, &Raw::Bare(text), None) {
        Ok(Value::Duration(duration)) => Ok(duration),
        Ok(_) => Err(format!("{name} is no duration")),
        Err(problem) => Err(problem.message),
    }
}

/// The part of `text` that `rest`, a tail of its bytes, is.
fn tail<'a>(text: &'a str, rest: &[u8]) -> &'a str {
    text.get(text.len() - rest.len()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn defined(text: &str) -> Definition {
        Definition::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn everything_may_be_said_and_nothing_but_the_select_must() {
        let bare = defined(" FROM select a from t where id = $1 ; ");
        assert_eq!(bare.query, "select a from t where id = $1");
        assert_eq!(*bare.normal, *b"select a from t where id=$1");
        assert_eq!((bare.name, bare.database, bare.freshness), (None, None, None));
        let all = defined(
            " Orders in database \"My app\" with (freshness = 'Strict', max_lag = '250ms') /* x */
              from with x as (select 1) select * from x",
        );
        assert_eq!(all.name.as_deref(), Some("orders"));
        assert_eq!(all.database.as_deref(), Some("My app"));
        assert_eq!(all.freshness, Some(Freshness::Strict));
        assert_eq!(all.max_lag, Some(Duration::from_millis(250)));
        assert_eq!(all.query, "with x as (select 1) select * from x");
        let other = defined("\"From\" with (max_lag='5s') in database app from (select 1)");
        assert_eq!((other.name.as_deref(), other.database.as_deref()), (Some("From"), Some("app")));
        assert_eq!(defined("a with (freshness=bounded) from table t").query, "table t");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "expected a name, IN, WITH or FROM"),
            ("a b from select 1", "expected FROM and a SELECT"),
            ("a with freshness from select 1", "WITH is followed by options in parentheses"),
            ("a with (freshness) from select 1", "an option is written as key = value"),
            (
                "with (freshness = fresh) from select 1",
                "freshness is one of session, strict, bounded",
            ),
            ("with (max_lag = '5') from select 1", "`max_lag` is 5 without a unit"),
            ("with (max_lag = '0s') from select 1", "`max_lag` is \"0s\""),
            ("with (max_lag='1s', max_lag='1s') from select 1", "max_lag is said twice"),
            ("with (always = on) from select 1", "options are freshness and max_lag"),
            ("with (max_lag = '1s' from select 1", "options end with a parenthesis"),
            ("in app from select 1", "IN is followed by DATABASE and a name"),
            ("in database from select 1", "expected FROM"),
            ("a from delete from t", "only a SELECT"),
            ("a from select 1; select 2", "the statement is not one that can be followed"),
            ("a from select E'\\n'", "the statement is not one that can be followed"),
            ("a from", "the statement is not one that can be followed"),
            ("1a from select 1", "expected a name"),
        ] {
            match Definition::parse(text) {
                Ok(definition) => panic!("{text}: {definition:?}"),
                Err(said) => assert!(said.contains(why), "{text}: {said}"),
            }
        }
    }

    #[test]
    fn an_entry_of_the_configuration_may_be_the_select_alone() {
        let query = |text: &str| Definition::configured(text).map(|defined| defined.query);
        for text in ["select 1", "WITH a AS (SELECT 1) TABLE a", "(select 1)", "values (1)"] {
            assert_eq!(query(text).as_deref(), Ok(text));
        }
        assert_eq!(query("a from select 1").as_deref(), Ok("select 1"));
        assert_eq!(query("with (freshness = strict) from select 1").as_deref(), Ok("select 1"));
        let named = Definition::configured("\"values\" from select 1").expect("valid");
        assert_eq!(named.name.as_deref(), Some("values"));
        assert!(query("a in database b from select 1").is_err());
        assert!(query("delete from t").is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(
            words in proptest::collection::vec(
                proptest::sample::select(&[
                    "a", "\"", "'", "with", "(", ")", "=", ",", "in", "database", "from", "select",
                    "1", "é", "/*", "--", "\n", "freshness", "max_lag", "5s", ";", " ",
                ][..]),
                0..12,
            ),
        ) {
            for text in [words.concat(), words.join(" ")] {
                let _ = Definition::parse(&text);
                let _ = Definition::configured(&text);
            }
        }
    }
}
