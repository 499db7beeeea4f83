//! The shape of a text: all of it but the values of its literals.
//!
//! A scanner for the hot path. It knows PostgreSQL's lexical rules and nothing of its grammar. Two
//! texts of the same shape have the same parse tree but for constants, and those have the same
//! types; so what the parser and the catalogues say about one holds for the other. What can't be
//! told for certain from tokens alone makes [`Scan::scan`] say no, and the text is left alone.
//!
//! In a shape each literal is one byte below 0x20 that names its kind ([`LiteralKind::byte`]); no
//! text with such bytes is accepted. White space and comments between two tokens are one blank. A
//! blank also parts a literal from a word or a literal next to it, so that `$1` can take its place.
//!
//! A minus sign before a number belongs to it where the token before shows that it can't be a
//! subtraction: PostgreSQL's grammar folds it into the constant (`doNegate` in gram.y), so `a = -1`
//! and `a = 1` have the same tree. `-1::int` is not such a case, because `::` binds tighter; it is
//! refused.
//!
//! The text must be in an encoding whose multi-byte characters have no byte below 0x80, as UTF-8
//! and all server encodings have.
//!
//! Source: PostgreSQL docs, "Lexical Structure"; src/backend/parser/scan.l; `doNegate` in gram.y;
//! `make_const` in parse_node.c.

#[cfg(test)]
mod tests;

/// Longer texts are left alone. Bytes.
pub const TEXT_MAX: usize = 64 * 1024;

/// Texts with more literals are left alone.
pub const LITERALS_MAX: usize = 1024;

/// Words up to this length are copied at once. Bytes.
const WORD_CHUNK: usize = 16;

/// Reads texts one after the other, into buffers that it keeps: at steady state it never
/// allocates. After [`Scan::scan`] said yes, [`Scan::shape`], [`Scan::literals`] and
/// [`Scan::first_word`] tell about that text.
#[derive(Debug, Default)]
pub struct Scan {
    shape: Vec<u8>,
    literals: Vec<Literal>,
    /// Where the last operator begins in the shape.
    operator_at: usize,
    /// White space since the last token.
    blank: bool,
    /// A minus that was not folded was seen; it may be a sign all the same, as in `-(5)`.
    minus: bool,
    /// The end in the shape of the last minus that is a sign, but not of the number behind it.
    sign_end: usize,
}

/// A constant in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    /// Where it begins in the text: its quote, its sign or its first digit.
    pub start: u32,
    /// Behind its last byte.
    pub end: u32,
    pub kind: LiteralKind,
    /// Where its byte is in the shape.
    pub at: u32,
}

/// The type that PostgreSQL gives to a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// A whole number that fits `integer`.
    Int4,
    /// A whole number that fits `bigint`.
    Int8,
    /// Any other number.
    Numeric,
    /// In quotes: of unknown type until its surroundings tell.
    Text,
}

impl LiteralKind {
    /// What stands for such a literal in a shape.
    pub const fn byte(self) -> u8 {
        match self {
            LiteralKind::Int4 => 1,
            LiteralKind::Int8 => 2,
            LiteralKind::Numeric => 3,
            LiteralKind::Text => 4,
        }
    }
}

impl Literal {
    /// Where its own token begins: behind its sign and what parts the two. `text` is what was
    /// scanned.
    pub(crate) fn token_start(&self, text: &[u8]) -> u32 {
        match text.get(self.start as usize..self.end as usize) {
            Some(signed @ [b'-', ..]) => self.end - unsigned(signed).len() as u32,
            _ => self.start,
        }
    }

    /// Appends the value as a parameter's in text format. `text` is what was scanned.
    pub fn put_value(&self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text.get(self.start as usize..self.end as usize).unwrap_or_default();
        if self.kind != LiteralKind::Text {
            out.extend(rest.first().filter(|byte| **byte == b'-'));
            out.extend_from_slice(unsigned(rest));
            return;
        }
        rest = rest.get(1..rest.len().saturating_sub(1)).unwrap_or_default();
        while let Some(quote) = rest.iter().position(|byte| *byte == b'\'') {
            out.extend_from_slice(&rest[..=quote]);
            // The second one of a doubled quote.
            rest = rest.get(quote + 2..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }
}

/// What a text begins with, past opening parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstWord {
    Select,
    With,
    Values,
    Table,
    Insert,
    Update,
    Delete,
    Merge,
    Other,
}

impl FirstWord {
    fn of(shape: &[u8]) -> FirstWord {
        let start = shape.iter().position(|byte| !matches!(byte, b'(' | b' '));
        let text = &shape[start.unwrap_or(0)..];
        let end = text.iter().position(|byte| class(*byte) != Class::Word).unwrap_or(text.len());
        let is = |word: &[u8]| text[..end].eq_ignore_ascii_case(word);
        match end {
            4 if is(b"with") => FirstWord::With,
            5 if is(b"table") => FirstWord::Table,
            5 if is(b"merge") => FirstWord::Merge,
            6 if is(b"select") => FirstWord::Select,
            6 if is(b"insert") => FirstWord::Insert,
            6 if is(b"update") => FirstWord::Update,
            6 if is(b"delete") => FirstWord::Delete,
            6 if is(b"values") => FirstWord::Values,
            _ => FirstWord::Other,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// No token begins with it.
    Bad,
    Blank,
    /// Begins a word.
    Word,
    Digit,
    /// A token by itself.
    Alone,
    /// Part of an operator.
    Operator,
    Dot,
    Colon,
    Semicolon,
    Dollar,
    Quote,
    DoubleQuote,
}

const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Bad; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => Class::Blank,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b',' | b'(' | b')' | b'[' | b']' => Class::Alone,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'+' | b'-' | b'*'
            | b'/' | b'%' | b'<' | b'>' | b'=' => Class::Operator,
            b'.' => Class::Dot,
            b':' => Class::Colon,
            b';' => Class::Semicolon,
            b'$' => Class::Dollar,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            _ => Class::Bad,
        };
        byte += 1;
    }
    classes
}

fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

fn class_at(text: &[u8], at: usize) -> Class {
    text.get(at).map_or(Class::Bad, |byte| class(*byte))
}

/// A table of its own: most bytes of a text are asked this and no more.
const IN_WORD: [bool; 256] = {
    let mut in_word = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        in_word[byte] = matches!(CLASSES[byte], Class::Word | Class::Digit | Class::Dollar);
        byte += 1;
    }
    in_word
};

/// Another one for the inside of strings.
const IN_STRING: [bool; 256] = {
    let mut in_string = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let control = byte < 0x20 && !matches!(CLASSES[byte], Class::Blank);
        in_string[byte] = !control && byte != b'\'' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    in_string
};

fn in_word(byte: u8) -> bool {
    IN_WORD[byte as usize]
}

impl Scan {
    pub fn new() -> Scan {
        Scan::default()
    }

    /// Reads `text`. No: it holds something whose shape can't be told for certain, and there is
    /// nothing to be asked about it.
    pub fn scan(&mut self, text: &[u8]) -> bool {
        self.clear();
        let known = text.len() <= TEXT_MAX && self.read(text).is_some() && !self.shape.is_empty();
        if !known {
            self.clear();
        }
        known
    }

    /// The text with a byte for each literal; see the module's documentation.
    pub fn shape(&self) -> &[u8] {
        &self.shape
    }

    /// In the order of the text.
    pub fn literals(&self) -> &[Literal] {
        &self.literals
    }

    pub fn first_word(&self) -> FirstWord {
        FirstWord::of(&self.shape)
    }

    fn clear(&mut self) {
        self.shape.clear();
        self.literals.clear();
        self.operator_at = 0;
        self.blank = false;
        self.minus = false;
        self.sign_end = 0;
    }

    /// None: refused.
    fn read(&mut self, text: &[u8]) -> Option<()> {
        self.shape.reserve(text.len() + WORD_CHUNK);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at = match class(byte) {
                Class::Blank => {
                    self.blank = true;
                    at + 1
                }
                Class::Word => self.word(text, at)?,
                Class::Digit => self.number(text, at, at)?,
                Class::Alone => {
                    self.token(&[byte]);
                    at + 1
                }
                Class::Operator => self.operator(text, at)?,
                Class::Dot => self.dot(text, at)?,
                Class::Colon => self.colon(text, at)?,
                Class::Dollar => self.parameter(text, at)?,
                Class::Quote => self.string(text, at)?,
                Class::DoubleQuote => self.quoted_name(text, at)?,
                Class::Semicolon => return only_blank(&text[at + 1..]),
                Class::Bad => return None,
            };
        }
        Some(())
    }

    fn token(&mut self, token: &[u8]) {
        self.gap();
        self.shape.extend_from_slice(token);
    }

    fn gap(&mut self) {
        if self.blank {
            self.blank = false;
            if !self.shape.is_empty() {
                self.shape.push(b' ');
            }
        }
    }

    fn literal(&mut self, start: usize, end: usize, kind: LiteralKind) -> Option<usize> {
        if self.literals.len() == LITERALS_MAX {
            return None;
        }
        self.blank |= self.shape.last().is_some_and(|last| in_word(*last) || is_literal(*last));
        self.gap();
        let at = self.shape.len() as u32;
        self.literals.push(Literal { start: start as u32, end: end as u32, kind, at });
        self.shape.push(kind.byte());
        Some(end)
    }

    fn word(&mut self, text: &[u8], start: usize) -> Option<usize> {
        self.blank |= self.shape.last().is_some_and(|last| is_literal(*last));
        self.gap();
        let length = text[start..].iter().position(|byte| !in_word(*byte));
        let end = length.map_or(text.len(), |length| start + length);
        // A copy of fixed length, most of it for nothing, is much cheaper than an exact one.
        match text[start..].first_chunk::<WORD_CHUNK>() {
            Some(chunk) if end - start <= WORD_CHUNK => {
                let shape_end = self.shape.len() + (end - start);
                self.shape.extend_from_slice(chunk);
                self.shape.truncate(shape_end);
            }
            _ => self.shape.extend_from_slice(&text[start..end]),
        }
        // E'', B'', X'', N'', U&'' and U&"" have rules of their own.
        if end - start == 1 {
            let letter = text[start].to_ascii_lowercase();
            let next = class_at(text, end);
            let quoted = next == Class::Quote && matches!(letter, b'e' | b'b' | b'x' | b'n');
            let unicode = letter == b'u'
                && text.get(end) == Some(&b'&')
                && matches!(class_at(text, end + 1), Class::Quote | Class::DoubleQuote);
            if quoted || unicode {
                return None;
            }
        }
        Some(end)
    }

    /// A number whose first digit, or the point before it, is at `digits`. The sign before it, if
    /// it has one, is at `start`.
    fn number(&mut self, text: &[u8], start: usize, digits: usize) -> Option<usize> {
        let digits_from = |mut at: usize| {
            while class_at(text, at) == Class::Digit {
                at += 1;
            }
            at
        };
        let mut end = digits_from(digits);
        let mut whole = true;
        if text.get(end) == Some(&b'.') {
            whole = false;
            end = digits_from(end + 1);
        }
        if matches!(text.get(end), Some(b'e' | b'E')) {
            whole = false;
            let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
            if class_at(text, end + 1 + sign) != Class::Digit {
                return None;
            }
            end = digits_from(end + 1 + sign);
        }
        // 0x1f, 1_000, 5abc, 1.2.3, 1..2: what they are depends on the server's version.
        if text.get(end).is_some_and(|byte| in_word(*byte) || *byte == b'.') {
            return None;
        }
        if self.is_float_precision() {
            return None;
        }
        let kind = if whole {
            self.whole(&text[digits..end], start < digits)?
        } else {
            LiteralKind::Numeric
        };
        self.literal(start, end, kind)
    }

    fn whole(&self, digits: &[u8], negative: bool) -> Option<LiteralKind> {
        let int4_beyond = i32::MAX as u64 + 1;
        let int8_beyond = i64::MAX as u64 + 1;
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let digits = &digits[zeros..];
        if digits.len() <= 9 {
            return Some(LiteralKind::Int4);
        }
        if digits.len() > 19 {
            return Some(LiteralKind::Numeric);
        }
        let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        // The only numbers whose type depends on their sign: if a minus elsewhere could be that
        // sign, nothing is certain.
        if self.minus && (value == int4_beyond || value == int8_beyond) {
            return None;
        }
        let beyond = u64::from(negative);
        Some(if value < int4_beyond + beyond {
            LiteralKind::Int4
        } else if value < int8_beyond + beyond {
            LiteralKind::Int8
        } else {
            LiteralKind::Numeric
        })
    }

    /// `float(24)` and `float(25)` are different types by grammar (`opt_float` in gram.y).
    fn is_float_precision(&self) -> bool {
        let Some(before) = trim_blank(&self.shape).strip_suffix(b"(") else { return false };
        last_word(before).eq_ignore_ascii_case(b"float")
    }

    fn operator(&mut self, text: &[u8], start: usize) -> Option<usize> {
        match &text[start..] {
            [b'-', b'-', ..] | [b'/', b'*', ..] => {
                self.blank = true;
                return comment(text, start);
            }
            _ => {}
        }
        let mut end = start + 1;
        while class_at(text, end) == Class::Operator
            && !matches!(&text[end..], [b'-', b'-', ..] | [b'/', b'*', ..])
        {
            end += 1;
        }
        // An operator of several characters ends in + or - only if it has one of these as well.
        let special = |byte: &u8| b"~!@#^&|`?%".contains(byte);
        while end - start > 1
            && matches!(text[end - 1], b'+' | b'-')
            && !text[start..end - 1].iter().any(special)
        {
            end -= 1;
        }
        let token = &text[start..end];
        let mut is_sign = false;
        if token == b"-" {
            is_sign = self.is_sign_next();
            let number_at = past_blanks(text, end)?;
            let digit_at = number_at + usize::from(text.get(number_at) == Some(&b'.'));
            if is_sign && class_at(text, digit_at) == Class::Digit {
                // With a number that has no sign, the one before would be its own.
                let is_second = self.sign_end > 0 && trim_blank(&self.shape).len() == self.sign_end;
                return if is_second { None } else { self.number(text, start, number_at) };
            }
            self.minus = true;
        }
        self.gap();
        self.operator_at = self.shape.len();
        self.shape.extend_from_slice(token);
        if is_sign {
            self.sign_end = self.shape.len();
        }
        Some(end)
    }

    /// Whether a minus after what was read so far can only be a sign.
    fn is_sign_next(&self) -> bool {
        let shape = trim_blank(&self.shape);
        let Some(&last) = shape.last() else { return false };
        match class(last) {
            Class::Alone => matches!(last, b'(' | b',' | b'['),
            Class::Operator => matches!(
                shape.get(self.operator_at..).unwrap_or_default(),
                b"=" | b"<" | b">" | b"<=" | b">=" | b"<>" | b"!=" | b"+" | b"-" | b"/"
            ),
            Class::Word => is_sign_behind(shape) || is_between(shape),
            _ => false,
        }
    }

    fn dot(&mut self, text: &[u8], at: usize) -> Option<usize> {
        match class_at(text, at + 1) {
            Class::Digit => self.number(text, at, at),
            Class::Dot => None,
            _ => {
                self.token(b".");
                Some(at + 1)
            }
        }
    }

    fn colon(&mut self, text: &[u8], at: usize) -> Option<usize> {
        if text.get(at + 1) != Some(&b':') {
            self.token(b":");
            return Some(at + 1);
        }
        // The sign of a number before it was folded, and must not have been.
        let signed = self.literals.last().is_some_and(|literal| {
            text.get(literal.start as usize) == Some(&b'-')
                && literal.at as usize + 1 == trim_blank(&self.shape).len()
        });
        if signed {
            return None;
        }
        self.token(b"::");
        Some(at + 2)
    }

    fn parameter(&mut self, text: &[u8], start: usize) -> Option<usize> {
        let mut end = start + 1;
        while class_at(text, end) == Class::Digit {
            end += 1;
        }
        if end == start + 1 || text.get(end).is_some_and(|byte| in_word(*byte)) {
            return None;
        }
        self.blank |= self.shape.last().is_some_and(|last| is_literal(*last));
        self.token(&text[start..end]);
        Some(end)
    }

    fn string(&mut self, text: &[u8], start: usize) -> Option<usize> {
        // With a newline in between, two strings are one.
        if trim_blank(&self.shape).last() == Some(&LiteralKind::Text.byte()) {
            return None;
        }
        let mut end = start + 1;
        loop {
            end += text[end..].iter().position(|byte| !IN_STRING[*byte as usize])?;
            match text[end] {
                b'\'' if text.get(end + 1) == Some(&b'\'') => end += 2,
                b'\'' => return self.literal(start, end + 1, LiteralKind::Text),
                // A control byte, or a backslash, whose meaning depends on
                // standard_conforming_strings.
                _ => return None,
            }
        }
    }

    fn quoted_name(&mut self, text: &[u8], start: usize) -> Option<usize> {
        let mut end = start + 1;
        loop {
            match *text.get(end)? {
                b'"' if text.get(end + 1) == Some(&b'"') => end += 2,
                b'"' => break,
                byte if is_control(byte) => return None,
                _ => end += 1,
            }
        }
        self.token(&text[start..=end]);
        Some(end + 1)
    }
}

/// Reserved words that are followed by an expression: what comes after them is no operator.
const SIGN_FOLLOWS: [&[u8]; 14] = [
    b"select",
    b"and",
    b"or",
    b"not",
    b"where",
    b"on",
    b"when",
    b"then",
    b"else",
    b"case",
    b"having",
    b"limit",
    b"offset",
    b"returning",
];

/// Whether `shape` ends with one of [`SIGN_FOLLOWS`].
fn is_sign_behind(shape: &[u8]) -> bool {
    SIGN_FOLLOWS.iter().any(|word| ends_with_keyword(shape, word))
}

/// Whether `shape` ends with the BETWEEN of a range. A column may have that name, but not where an
/// operand has ended. Where it is one all the same, as in `distinct on (a) between -1`, no text
/// without the sign is SQL, so no two of this shape have different trees.
fn is_between(shape: &[u8]) -> bool {
    let without = |shape, word: &[u8]| match ends_with_keyword(shape, word) {
        true => shape.get(..shape.len() - word.len()).map(trim_blank),
        false => None,
    };
    let Some(before) = without(shape, b"between") else { return false };
    let before = without(before, b"not").unwrap_or(before);
    let Some(&last) = before.last() else { return false };
    let ends = in_word(last) || is_literal(last) || matches!(last, b'"' | b')' | b']');
    ends && !is_sign_behind(before)
}

/// A number without its sign, which may be some way before it.
fn unsigned(number: &[u8]) -> &[u8] {
    let within = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let start = number.iter().rposition(|byte| !within(byte)).map_or(0, |before| before + 1);
    number[start..].strip_prefix(b"-").unwrap_or(&number[start..])
}

/// Whether a byte of a shape stands for a literal.
fn is_literal(byte: u8) -> bool {
    byte <= LiteralKind::Text.byte()
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 && class(byte) != Class::Blank
}

fn trim_blank(shape: &[u8]) -> &[u8] {
    shape.strip_suffix(b" ").unwrap_or(shape)
}

/// The word that `shape` ends with, not in quotes.
fn last_word(shape: &[u8]) -> &[u8] {
    let shape = trim_blank(shape);
    let start = shape.iter().rposition(|byte| !in_word(*byte)).map_or(0, |before| before + 1);
    &shape[start..]
}

/// Whether `shape` ends with this word as a keyword: behind a point it would be a name.
fn ends_with_keyword(shape: &[u8], word: &[u8]) -> bool {
    let Some(before) = shape.len().checked_sub(word.len()) else { return false };
    let (before, last) = shape.split_at(before);
    last.eq_ignore_ascii_case(word)
        && !before.last().is_some_and(|byte| in_word(*byte))
        && trim_blank(before).last() != Some(&b'.')
}

/// The end of the comment that begins at `start`.
fn comment(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 2;
    if text[start] == b'-' {
        while !matches!(text.get(at), None | Some(b'\n' | b'\r')) {
            if is_control(text[at]) {
                return None;
            }
            at += 1;
        }
        return Some(at);
    }
    // Extensions read hints from such comments.
    if text.get(at) == Some(&b'+') {
        return None;
    }
    let mut depth = 1;
    loop {
        match text.get(at..)? {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            [byte, ..] if !is_control(*byte) => at += 1,
            _ => return None,
        }
    }
}

/// Some if nothing but white space and comments follows.
fn only_blank(text: &[u8]) -> Option<()> {
    (past_blanks(text, 0)? == text.len()).then_some(())
}

/// The end of the white space and comments that begin at `at`.
fn past_blanks(text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(&byte) = text.get(at) {
        at = match (byte, text.get(at + 1)) {
            (b'-', Some(b'-')) | (b'/', Some(b'*')) => comment(text, at)?,
            _ if class(byte) == Class::Blank => at + 1,
            _ => break,
        };
    }
    Some(at)
}
