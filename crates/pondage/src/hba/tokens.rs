//! The words of a line. A field is words with commas between them.
//!
//! Source: `next_token` in `src/backend/libpq/hba.c`.

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub text: String,
    /// It begins with a quote, and so is no keyword.
    pub quoted: bool,
    /// Of its first character, from 1.
    pub column: usize,
}

impl Token {
    /// Whether it is this word, and not the name that is spelt alike.
    pub fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// The fields of a line; none: it is empty, or a comment.
pub(super) fn fields(line: &str) -> Vec<Vec<Token>> {
    let mut reader = Reader { rest: line.chars().collect(), at: 0 };
    let mut fields = Vec::new();
    loop {
        let mut field = Vec::new();
        while let Some((token, comma)) = reader.token() {
            field.push(token);
            if !comma {
                break;
            }
        }
        match field.is_empty() {
            true => return fields,
            false => fields.push(field),
        }
    }
}

struct Reader {
    rest: Vec<char>,
    at: usize,
}

impl Reader {
    /// A word, and whether a comma follows it at once.
    fn token(&mut self) -> Option<(Token, bool)> {
        while self.peek().is_some_and(|c| is_blank(c) || c == ',') {
            self.at += 1;
        }
        let mut token = Token { text: String::new(), quoted: false, column: self.at + 1 };
        let (mut in_quotes, mut was_quote, mut saw_quote, mut comma) = (false, false, false, false);
        while let Some(c) = self.peek().filter(|c| in_quotes || !is_blank(*c)) {
            if c == '#' && !in_quotes {
                self.at = self.rest.len();
                break;
            }
            self.at += 1;
            if c == ',' && !in_quotes {
                comma = true;
                break;
            }
            if c != '"' || was_quote {
                token.text.push(c);
            }
            // Two quotes inside of quotes are one.
            was_quote = in_quotes && c == '"' && !was_quote;
            if c == '"' {
                in_quotes = !in_quotes;
                saw_quote = true;
                token.quoted |= token.text.is_empty();
            }
        }
        (saw_quote || !token.text.is_empty()).then_some((token, comma))
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }
}

/// Source: `pg_isblank`.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}
