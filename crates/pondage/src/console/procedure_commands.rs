//! The language of procedures; [`Verb`] has how each command is written. It is the console's own,
//! so several commands may share a message.
//!
//! Names are folded as PostgreSQL folds them, unless they are in double quotes.

use std::collections::BTreeSet;

use wire::pg::sqlstate;

use super::tokens::Token;
use super::verbs::Verb;
use super::Failure;
use crate::config::nearest::nearest;
use crate::config::ProcedureOptions;

/// Where a name says none.
pub const SCHEMA: &str = "public";
/// PostgreSQL's NAMEDATALEN leaves as many for a name.
const NAME_BYTES_MAX: usize = 63;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcedureCommand {
    Set {
        /// `public.payment`
        title: String,
        options: ProcedureOptions,
    },
    Reset {
        title: String,
    },
    Explain {
        /// None: as the search_path has it.
        schema: Option<String>,
        name: String,
        database: Option<String>,
    },
}

impl ProcedureCommand {
    pub fn verb(&self) -> Verb {
        match self {
            ProcedureCommand::Set { .. } => Verb::SetProcedure,
            ProcedureCommand::Reset { .. } => Verb::ResetProcedure,
            ProcedureCommand::Explain { .. } => Verb::ExplainProcedure,
        }
    }

    pub fn tag(&self) -> &'static str {
        match self {
            ProcedureCommand::Explain { .. } => "EXPLAIN",
            other => other.verb().words(),
        }
    }
}

/// Reads one command. None: it is about something else.
pub fn parse(tokens: &[Token<'_>]) -> Option<Result<ProcedureCommand, Failure>> {
    let [Token::Word(first), Token::Word(second), rest @ ..] = tokens else { return None };
    // `SET procedure = x` is about a setting, as any other `SET x = y`.
    if !second.eq_ignore_ascii_case("procedure") || rest.first() == Some(&Token::Equals) {
        return None;
    }
    let words = Words(rest);
    let verb = Verb::find(&format!("{first} {second}"))?;
    let command = match verb {
        Verb::SetProcedure => set(words),
        Verb::ResetProcedure => reset(words),
        Verb::ExplainProcedure => explain(words),
        _ => return None,
    };
    Some(command.map_err(|why| {
        let failure = Failure::new(sqlstate::SYNTAX_ERROR, why.message);
        match why.near {
            Some(near) => failure.detail(verb.usage()).hint(format!("Did you mean {near}?")),
            None => failure.hint(verb.usage()),
        }
    }))
}

/// What is wrong, and the word that was probably meant.
struct Wrong {
    message: String,
    near: Option<&'static str>,
}

fn wrong(message: impl Into<String>) -> Wrong {
    Wrong { message: message.into(), near: None }
}

fn set(mut words: Words<'_, '_>) -> Result<ProcedureCommand, Wrong> {
    let title = words.title()?;
    let mut options = ProcedureOptions::default();
    let mut said = BTreeSet::new();
    while let Some(option) = words.option()? {
        if !said.insert(option) {
            return Err(wrong(format!("{} is said twice", option.to_ascii_uppercase())));
        }
        match option {
            "key" => options.key = words.list(option)?,
            "also" => options.also = words.list(option)?,
            _ => options.set(option, &words.value(option)?).map_err(wrong)?,
        }
    }
    options.check().map_err(wrong)?;
    Ok(ProcedureCommand::Set { title, options })
}

fn reset(mut words: Words<'_, '_>) -> Result<ProcedureCommand, Wrong> {
    let title = words.title()?;
    words.end()?;
    Ok(ProcedureCommand::Reset { title })
}

fn explain(mut words: Words<'_, '_>) -> Result<ProcedureCommand, Wrong> {
    let (schema, name) = words.name()?;
    let database = match words.0 {
        [Token::Word(first), Token::Word(second), rest @ ..]
            if first.eq_ignore_ascii_case("in") && second.eq_ignore_ascii_case("database") =>
        {
            let [name @ (Token::Word(_) | Token::Quoted(_)), rest @ ..] = rest else {
                return Err(wrong("IN DATABASE takes the name of one database"));
            };
            words.0 = rest;
            Some(name.text().into_owned())
        }
        _ => None,
    };
    words.end()?;
    Ok(ProcedureCommand::Explain { schema, name, database })
}

const OPTIONS: [&str; 6] = ["key", "also", "mode", "durable_ack", "max_train", "retry"];

/// What is left of a command.
struct Words<'t, 'a>(&'t [Token<'a>]);

impl Words<'_, '_> {
    fn title(&mut self) -> Result<String, Wrong> {
        let (schema, name) = self.name()?;
        Ok(format!("{}.{name}", schema.as_deref().unwrap_or(SCHEMA)))
    }

    /// `name`, `schema.name`, `"Schema".name`: words have their dots in them, quotes beside them.
    fn name(&mut self) -> Result<(Option<String>, String), Wrong> {
        let mut parts: Vec<String> = Vec::new();
        let mut open = true;
        while let Some(token) = self.0.first() {
            match token {
                Token::Quoted(part) if open => {
                    parts.push(part.clone().into_owned());
                    open = false;
                }
                Token::Word(word) if open || word.starts_with('.') => {
                    let word = match open {
                        true => word,
                        false => &word[1..],
                    };
                    let dotted = word.strip_suffix('.');
                    let pieces = dotted.unwrap_or(word).split('.');
                    parts.extend(pieces.filter(|_| !word.is_empty()).map(str::to_lowercase));
                    open = dotted.is_some() || word.is_empty();
                }
                _ => break,
            }
            self.0 = &self.0[1..];
        }
        let fits = |part: &String| (1..=NAME_BYTES_MAX).contains(&part.len());
        if open || !parts.iter().all(fits) {
            return Err(wrong("the name of a procedure or function is required"));
        }
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), None, None) => Ok((None, name)),
            (Some(schema), Some(name), None) => Ok((Some(schema), name)),
            _ => Err(wrong("a name has at most a schema before it")),
        }
    }

    /// The next option's name; none at the end.
    fn option(&mut self) -> Result<Option<&'static str>, Wrong> {
        let Some(token) = self.0.first() else { return Ok(None) };
        let word = token.text();
        let known = OPTIONS.into_iter().find(|option| option.eq_ignore_ascii_case(&word));
        let Some(option) = known.filter(|_| matches!(token, Token::Word(_))) else {
            let near = nearest(&word, ["KEY", "ALSO", "MODE", "DURABLE_ACK", "MAX_TRAIN", "RETRY"]);
            let message = format!("SET PROCEDURE has no option \"{word}\"");
            return Err(Wrong { message, near });
        };
        self.0 = &self.0[1..];
        Ok(Some(option))
    }

    /// `(a, "B", $3)`
    fn list(&mut self, option: &str) -> Result<Vec<String>, Wrong> {
        let option = option.to_ascii_uppercase();
        let failed = || wrong(format!("{option} takes names of parameters in parentheses"));
        let [Token::Open, rest @ ..] = self.0 else { return Err(failed()) };
        let end = rest.iter().position(|token| *token == Token::Close).ok_or_else(failed)?;
        let name = |item: &[Token<'_>]| match item {
            [Token::Word(word)] => Ok(word.to_lowercase()),
            [Token::Quoted(name)] if !name.is_empty() => Ok(name.clone().into_owned()),
            _ => Err(failed()),
        };
        let names = rest[..end].split(|token| *token == Token::Comma).map(name);
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        self.0 = &rest[end + 1..];
        Ok(names)
    }

    fn value(&mut self, option: &str) -> Result<String, Wrong> {
        let [token @ (Token::Word(_) | Token::Quoted(_) | Token::Text(_)), rest @ ..] = self.0
        else {
            return Err(wrong(format!("{} takes a value", option.to_ascii_uppercase())));
        };
        self.0 = rest;
        Ok(token.text().to_lowercase())
    }

    fn end(&self) -> Result<(), Wrong> {
        match self.0.first() {
            None => Ok(()),
            Some(token) => Err(wrong(format!("\"{}\" does not belong there", token.text()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::scan;
    use super::*;
    use crate::config::{DurableAck, ProcedureMode};

    fn parsed(text: &str) -> Option<Result<ProcedureCommand, Failure>> {
        let tokens = scan(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
        parse(&tokens)
    }

    fn read(text: &str) -> ProcedureCommand {
        match parsed(text) {
            Some(Ok(command)) => command,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn everything_may_be_said_in_any_order_and_case() {
        let options = ProcedureOptions {
            key: names(&["p_w", "P d"]),
            also: names(&["p_cw", "$4"]),
            mode: Some(ProcedureMode::Lane),
            durable_ack: Some(DurableAck::Each),
            max_train: Some(8),
            retry: Some(0),
        };
        let title = "public.payment".to_owned();
        let command = ProcedureCommand::Set { title: title.clone(), options };
        for text in [
            "SET PROCEDURE public.payment KEY (p_w, \"P d\") ALSO (p_cw, $4) MODE lane \
             DURABLE_ACK each MAX_TRAIN 8 RETRY 0",
            "set procedure Payment retry 0 max_train '8' durable_ack Each mode LANE \
             also(P_CW,$4)key(p_w,\"P d\")",
        ] {
            assert_eq!(read(text), command, "{text}");
        }
        let options = ProcedureOptions::default();
        assert_eq!(read("set procedure payment"), ProcedureCommand::Set { title, options });
    }

    #[test]
    fn names_are_folded_unless_they_are_quoted() {
        let title = |text: &str| match read(&format!("reset procedure {text}")) {
            ProcedureCommand::Reset { title } => title,
            other => panic!("{other:?}"),
        };
        assert_eq!(title("Pay"), "public.pay");
        assert_eq!(title("Shop.Pay"), "shop.pay");
        for text in ["\"Shop\".\"Pay all\"", "\"Shop\" . \"Pay all\""] {
            assert_eq!(title(text), "Shop.Pay all", "{text}");
        }
        assert_eq!(title("\"Shop\".Pay"), "Shop.pay");
        assert_eq!(title("Shop.\"Pay\""), "shop.Pay");
        assert_eq!(title("\"a.b\""), "public.a.b");
    }

    #[test]
    fn an_explanation_may_say_of_which_database() {
        let explain = |schema: Option<&str>, database: Option<&str>| ProcedureCommand::Explain {
            schema: schema.map(str::to_owned),
            name: "payment".to_owned(),
            database: database.map(str::to_owned),
        };
        assert_eq!(read("explain procedure payment"), explain(None, None));
        let text = "EXPLAIN PROCEDURE shop.payment IN DATABASE \"App\"";
        assert_eq!(read(text), explain(Some("shop"), Some("App")));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, why, hint) in [
            ("set procedure", "name of a procedure", Verb::SetProcedure.usage()),
            ("set procedure public.", "name of a procedure", Verb::SetProcedure.usage()),
            ("set procedure a.b.c", "at most a schema", Verb::SetProcedure.usage()),
            ("set procedure pay keys (a)", "no option \"keys\"", "Did you mean KEY?"),
            ("set procedure pay moed lane", "no option \"moed\"", "Did you mean MODE?"),
            ("set procedure pay (a)", "no option \"(\"", Verb::SetProcedure.usage()),
            (
                "set procedure pay key a",
                "KEY takes names of parameters in parentheses",
                Verb::SetProcedure.usage(),
            ),
            ("set procedure pay key ()", "KEY takes names", Verb::SetProcedure.usage()),
            ("set procedure pay key (a b)", "KEY takes names", Verb::SetProcedure.usage()),
            ("set procedure pay key (a", "KEY takes names", Verb::SetProcedure.usage()),
            ("set procedure pay mode", "MODE takes a value", Verb::SetProcedure.usage()),
            (
                "set procedure pay mode fast",
                "expected one of off, lane, train, batch",
                Verb::SetProcedure.usage(),
            ),
            (
                "set procedure pay max_train 0",
                "expected a number from 1 to 256",
                Verb::SetProcedure.usage(),
            ),
            (
                "set procedure pay retry -1",
                "expected a number from 0 to 100",
                Verb::SetProcedure.usage(),
            ),
            (
                "set procedure pay retry 1 retry 2",
                "RETRY is said twice",
                Verb::SetProcedure.usage(),
            ),
            ("set procedure pay also (a)", "`also` needs a `key`", Verb::SetProcedure.usage()),
            (
                "set procedure pay key (a, b) also (c)",
                "needs 2 parameters",
                Verb::SetProcedure.usage(),
            ),
            ("reset procedure", "name of a procedure", Verb::ResetProcedure.usage()),
            ("reset procedure a b", "\"b\" does not belong there", Verb::ResetProcedure.usage()),
            ("explain procedure", "name of a procedure", Verb::ExplainProcedure.usage()),
            (
                "explain procedure a in app",
                "\"in\" does not belong there",
                Verb::ExplainProcedure.usage(),
            ),
            (
                "explain procedure a in database",
                "name of one database",
                Verb::ExplainProcedure.usage(),
            ),
        ] {
            let Some(Err(failure)) = parsed(text) else { panic!("{text}") };
            assert_eq!(failure.code, "42601", "{text}");
            assert!(failure.message.contains(why), "{text}: {}", failure.message);
            assert_eq!(failure.hint.as_deref(), Some(hint), "{text}");
        }
    }

    #[test]
    fn other_commands_are_left_alone() {
        for text in ["set procedure = 3", "set x = 3", "reset all", "explain create cache", "show"]
        {
            assert!(parsed(text).is_none(), "{text}");
        }
    }
}
