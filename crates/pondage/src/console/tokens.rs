//! Words of a console command.

use std::borrow::Cow;

use wire::pg::sqlstate;

use super::Failure;

/// Most tokens in one message.
const TOKENS_MAX: usize = 2_000;
/// Longest piece of a command that an error repeats, in characters.
const RENDERED_CHARS_MAX: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token<'a> {
    /// A bare word or number, its case kept: `app`, `my-db`, `42`, `-1`, `pg_catalog.x`.
    Word(&'a str),
    /// `"My ""db"""`, unquoted.
    Quoted(Cow<'a, str>),
    /// `'it''s'`, unquoted.
    Text(Cow<'a, str>),
    Semicolon,
    Comma,
    Equals,
    Open,
    Close,
    /// Any other character.
    Other(char),
}

impl Token<'_> {
    /// What it says, without quotes.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Token::Word(word) => Cow::Borrowed(word),
            Token::Quoted(text) | Token::Text(text) => Cow::Borrowed(text),
            Token::Semicolon => Cow::Borrowed(";"),
            Token::Comma => Cow::Borrowed(","),
            Token::Equals => Cow::Borrowed("="),
            Token::Open => Cow::Borrowed("("),
            Token::Close => Cow::Borrowed(")"),
            Token::Other(letter) => Cow::Owned(letter.to_string()),
        }
    }
}

/// Tokens as people wrote them, more or less, cut to a readable length.
pub fn render(tokens: &[Token<'_>]) -> String {
    let words: Vec<Cow<'_, str>> =
        tokens.iter().take(RENDERED_CHARS_MAX).map(Token::text).collect();
    let text = words.join(" ");
    match text.char_indices().nth(RENDERED_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Cuts `text` into tokens; blanks and comments are dropped.
///
/// # Errors
/// 42601 for a quote or comment that does not end, 54000 beyond 2,000 tokens.
pub fn scan(text: &str) -> Result<Vec<Token<'_>>, Failure> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = skip_blanks(rest)?;
        let Some(first) = rest.chars().next() else {
            return Ok(tokens);
        };
        if tokens.len() == TOKENS_MAX {
            let message = format!("more than {TOKENS_MAX} words in one message");
            return Err(Failure::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let (token, length) = match first {
            '"' => quoted(rest, '"').map(|(text, length)| (Token::Quoted(text), length))?,
            '\'' => quoted(rest, '\'').map(|(text, length)| (Token::Text(text), length))?,
            ';' => (Token::Semicolon, 1),
            ',' => (Token::Comma, 1),
            '=' => (Token::Equals, 1),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            letter if is_word(letter) => {
                let length = word_length(rest);
                (Token::Word(&rest[..length]), length)
            }
            letter => (Token::Other(letter), letter.len_utf8()),
        };
        tokens.push(token);
        rest = &rest[length..];
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '$' | '*')
}

/// A word ends before a comment as before any other thing.
fn word_length(text: &str) -> usize {
    let end = text.find(|letter| !is_word(letter)).unwrap_or(text.len());
    match text[..end].find("--") {
        Some(comment) if comment > 0 => comment,
        _ => end,
    }
}

fn skip_blanks(mut text: &str) -> Result<&str, Failure> {
    loop {
        text = text.trim_start();
        if text.starts_with("--") {
            text = text.find('\n').map_or("", |end| &text[end..]);
        } else if text.starts_with("/*") {
            text = &text[comment_length(text)?..];
        } else {
            return Ok(text);
        }
    }
}

/// Comments nest.
fn comment_length(text: &str) -> Result<usize, Failure> {
    let mut depth = 0usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Ok(at);
        }
    }
    Err(Failure::new(sqlstate::SYNTAX_ERROR, "unterminated comment"))
}

/// The text between two `quote`s, of which two in a row stand for one, and its length with both.
fn quoted(text: &str, quote: char) -> Result<(Cow<'_, str>, usize), Failure> {
    let inner = &text[1..];
    let mut at = 0;
    let mut doubled = false;
    while let Some(found) = inner[at..].find(quote) {
        let end = at + found;
        if inner[end + 1..].starts_with(quote) {
            doubled = true;
            at = end + 2;
            continue;
        }
        let content = &inner[..end];
        let content = match doubled {
            true => Cow::Owned(content.replace(&format!("{quote}{quote}"), &quote.to_string())),
            false => Cow::Borrowed(content),
        };
        return Ok((content, end + 2));
    }
    Err(Failure::new(sqlstate::SYNTAX_ERROR, format!("unterminated {quote}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_quotes_comments_and_signs_are_told_apart() {
        let tokens =
            scan("PAUSE my-db-- now\n; set \"a \"\"b\"\"\" = 'it''s' /* x /* y */ */ ,(é)%");
        assert_eq!(
            tokens.unwrap(),
            [
                Token::Word("PAUSE"),
                Token::Word("my-db"),
                Token::Semicolon,
                Token::Word("set"),
                Token::Quoted("a \"b\"".into()),
                Token::Equals,
                Token::Text("it's".into()),
                Token::Comma,
                Token::Open,
                Token::Word("é"),
                Token::Close,
                Token::Other('%'),
            ]
        );
    }

    #[test]
    fn what_does_not_end_is_a_syntax_error() {
        for text in ["\"abc", "'abc", "'abc''", "/* abc", "/* /* */"] {
            assert_eq!(scan(text).unwrap_err().code, "42601", "{text}");
        }
    }

    #[test]
    fn too_many_words_are_refused() {
        assert_eq!(scan(&"a ".repeat(TOKENS_MAX)).unwrap().len(), TOKENS_MAX);
        assert_eq!(scan(&"a ".repeat(TOKENS_MAX + 1)).unwrap_err().code, "54000");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,60}|[-'\"/*;a \n]{0,40}") {
            if let Ok(tokens) = scan(&text) {
                prop_assert!(render(&tokens).chars().count() <= RENDERED_CHARS_MAX + 3);
            }
        }
    }
}
