//! What a statement was answered with, without what differs between two databases that are alike.

use std::fmt;

use wire::pg::backend::tag;

use crate::kit::wireclient::Message;

/// From here on numbers of types are those of one database.
///
/// Source: PostgreSQL's `src/include/access/transam.h`, `FirstNormalObjectId`.
const FIRST_OF_USERS: u32 = 16_384;

/// Values that are shown of an answer that is wrong.
const SHOWN_ROWS: usize = 30;

pub type Row = Vec<Option<Vec<u8>>>;

/// All that counts of an answer, up to ReadyForQuery.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub tags: Vec<String>,
    pub error: Option<Refused>,
    pub status: u8,
}

/// A column as RowDescription tells it, without the table's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub attribute: i16,
    /// Zero: a type that somebody has created.
    pub oid: u32,
    size: i16,
    modifier: i32,
    format: i16,
}

/// PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: String,
    pub message: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refused {}

/// Which order of rows counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they came.
    Kept,
    /// None.
    Rows,
    /// None, not even which row a value was in.
    Values,
}

impl Answer {
    pub fn of(messages: &[Message]) -> Answer {
        let mut answer = Answer {
            columns: Vec::new(),
            rows: Vec::new(),
            tags: Vec::new(),
            error: None,
            status: 0,
        };
        for message in messages {
            match message.tag {
                tag::ROW_DESCRIPTION => answer.columns = columns(&message.body),
                tag::DATA_ROW => answer.rows.push(row(&message.body)),
                tag::COMMAND_COMPLETE => answer.tags.push(message.command_tag()),
                tag::ERROR => {
                    let complaint = message.complaint();
                    let (code, message) = (complaint.code, complaint.message);
                    answer.error = Some(Refused { code, message });
                }
                tag::READY_FOR_QUERY => answer.status = message.body[0],
                _ => {}
            }
        }
        answer
    }

    /// The same with its rows in an order that is the same for all answers with these rows.
    pub fn ordered(mut self, order: Order) -> Answer {
        match order {
            Order::Kept => {}
            Order::Rows => self.rows.sort(),
            Order::Values => {
                let mut values: Vec<_> = self.rows.drain(..).flatten().collect();
                values.sort();
                self.rows = values.into_iter().map(|value| vec![value]).collect();
            }
        }
        self
    }

    /// Rows that the last statement's tag counts.
    pub fn count(&self) -> u64 {
        let last = self.tags.last().and_then(|tag| tag.rsplit(' ').next());
        last.and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            return write!(f, "{error} ({})", char::from(self.status));
        }
        let types: Vec<_> = self.columns.iter().map(|c| (&c.name, c.oid, c.format)).collect();
        writeln!(f, "{:?} {types:?}, {} rows", self.tags, self.rows.len())?;
        for row in self.rows.iter().take(SHOWN_ROWS) {
            let shown: Vec<String> = row.iter().map(|value| shown(value.as_deref())).collect();
            writeln!(f, "    {}", shown.join("|"))?;
        }
        Ok(())
    }
}

/// A value of a text result as the files have it: one word of one line, whatever it is.
pub fn shown(value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    if value.is_empty() {
        return "(empty)".to_owned();
    }
    let text = String::from_utf8_lossy(value);
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('|', "\\|");
    // Editors take blanks away at the ends of lines.
    let bare = text.trim_matches(' ');
    let before = text.len() - text.trim_start_matches(' ').len();
    let after = text.len() - before - bare.len();
    format!("{}{bare}{}", "·".repeat(before), "·".repeat(after))
}

fn columns(body: &[u8]) -> Vec<Column> {
    // Bytes of a column after its name: table, attribute, type, size, modifier, format.
    const AFTER_NAME: usize = 4 + 2 + 4 + 2 + 4 + 2;
    let mut rest = &body[2..];
    let mut columns = Vec::new();
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let (name, after) = (&rest[..end], &rest[end + 1..end + 1 + AFTER_NAME]);
        let short = |at: usize| i16::from_be_bytes([after[at], after[at + 1]]);
        let word = |at: usize| {
            let bytes = [after[at], after[at + 1], after[at + 2], after[at + 3]];
            u32::from_be_bytes(bytes)
        };
        let oid = word(6);
        columns.push(Column {
            name: String::from_utf8_lossy(name).into_owned(),
            attribute: short(4),
            oid: if oid < FIRST_OF_USERS { oid } else { 0 },
            size: short(10),
            modifier: word(12) as i32,
            format: short(16),
        });
        rest = &rest[end + 1 + AFTER_NAME..];
    }
    columns
}

fn row(body: &[u8]) -> Row {
    let mut rest = &body[2..];
    let mut values = Vec::new();
    while let Some((word, after)) = rest.split_first_chunk::<4>() {
        let len = i32::from_be_bytes(*word);
        let (value, after) = after.split_at(usize::try_from(len).unwrap_or(0));
        values.push((len >= 0).then(|| value.to_vec()));
        rest = after;
    }
    values
}
