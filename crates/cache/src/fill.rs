//! An answer on its way to its client, of which a copy is to be kept.

use std::sync::Arc;

use smallvec::SmallVec;
use wire::pg::backend::tag;
use wire::pg::frame::{header, HEADER_BYTES};

use crate::entry::{Entry, Parts};
use crate::lease::Lease;
use crate::plan::Plan;
use crate::tags::Tag;

/// Answers that are longer are not kept. Bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// See the module's documentation. Made when the statement goes to PostgreSQL, never later.
#[derive(Debug)]
pub struct Fill {
    pub plan: Arc<Plan>,
    pub hash: u64,
    /// The caller's number for the statement.
    pub shape: u32,
    /// What is kept already, to be compared with this.
    pub audits: Option<Arc<Entry>>,
    /// Nobody else asks for it meanwhile, but for those who do not want to wait.
    pub lease: Option<Lease>,
    key: Box<[u8]>,
    /// What was applied before the statement was sent.
    version: u64,
    tags: SmallVec<[Tag; 8]>,
    answer: Vec<u8>,
    too_long: bool,
}

impl Fill {
    pub fn new(
        plan: Arc<Plan>,
        hash: u64,
        shape: u32,
        key: &[u8],
        version: u64,
        tags: SmallVec<[Tag; 8]>,
    ) -> Fill {
        Fill {
            plan,
            hash,
            shape,
            audits: None,
            lease: None,
            key: key.into(),
            version,
            tags,
            answer: Vec::new(),
            too_long: false,
        }
    }

    /// Bytes that the client gets.
    pub fn take(&mut self, bytes: &[u8]) {
        if self.answer.len() + bytes.len() > ANSWER_BYTES_MAX {
            self.too_long = true;
            self.answer = Vec::new();
        }
        if !self.too_long {
            self.answer.extend_from_slice(bytes);
        }
    }

    /// What is kept, now that all of it has come. None: it is not a plain result.
    pub fn entry(&self) -> Option<Entry> {
        if self.too_long {
            return None;
        }
        let result = result(&self.answer)?;
        Some(Entry::new(&Parts {
            key: &self.key,
            version: self.version,
            tags: &self.tags,
            description: result.description,
            rows: result.rows,
        }))
    }
}

/// The parts of an answer that are kept.
#[derive(Debug, PartialEq, Eq)]
struct Result<'a> {
    description: Option<&'a [u8]>,
    /// Up to CommandComplete.
    rows: &'a [u8],
}

/// Takes an answer apart. With an error, a notice or anything else that belongs to this one run,
/// it is none.
fn result(answer: &[u8]) -> Option<Result<'_>> {
    let mut at = 0;
    let (mut description, mut rows, mut end) = (None, None, None);
    while at < answer.len() {
        let head = header(&answer[at..]).ok()??;
        let message = answer.get(at..at + head.total)?;
        match head.tag {
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE if rows.is_none() => {}
            tag::ROW_DESCRIPTION if description.is_none() && rows.is_none() => {
                description = Some(message);
            }
            tag::DATA_ROW if end.is_none() => {
                rows.get_or_insert(at);
            }
            tag::COMMAND_COMPLETE if end.is_none() => {
                if !message[HEADER_BYTES..].starts_with(b"SELECT ") {
                    return None;
                }
                rows.get_or_insert(at);
                end = Some(at + head.total);
            }
            tag::READY_FOR_QUERY if end.is_some() && message.get(HEADER_BYTES) == Some(&b'I') => {
                // Nothing is behind it.
                let rows = &answer[rows?..end?];
                return (at + head.total == answer.len()).then_some(Result { description, rows });
            }
            _ => return None,
        }
        at += head.total;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::pg::backend::{self, Column, ErrorReply, TxStatus};

    type Part<'a> = &'a dyn Fn(&mut Vec<u8>);

    fn answer(parts: &[Part<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        parts.iter().for_each(|part| part(&mut out));
        out
    }

    fn described(out: &mut Vec<u8>) {
        let column = Column { name: "a", oid: 23, size: 4, format: 0 };
        backend::put_row_description(out, &[column]);
    }

    fn row(out: &mut Vec<u8>) {
        backend::put_data_row(out, &[Some(b"7")]);
    }

    fn done(out: &mut Vec<u8>) {
        backend::put_command_complete(out, "SELECT 1");
    }

    fn ready(out: &mut Vec<u8>) {
        backend::put_ready(out, TxStatus::Idle);
    }

    #[test]
    fn a_result_is_taken_apart() {
        let whole = answer(&[&described, &row, &row, &done, &ready]);
        let (first, rows) = (answer(&[&described]), answer(&[&row, &row, &done]));
        let expected = Result { description: Some(&first), rows: &rows };
        assert_eq!(result(&whole), Some(expected));
        let bound = answer(&[
            &backend::put_parse_complete,
            &backend::put_bind_complete,
            &row,
            &row,
            &done,
            &ready,
        ]);
        assert_eq!(result(&bound), Some(Result { description: None, rows: &rows }));
        let none = answer(&[&described, &done, &ready]);
        assert_eq!(result(&none).map(|result| result.rows.len()), Some(answer(&[&done]).len()));
    }

    #[test]
    fn what_belongs_to_one_run_is_not_kept() {
        let error = |out: &mut Vec<u8>| {
            let reply = ErrorReply {
                severity: "ERROR",
                code: "22012",
                message: "division by zero",
                detail: None,
                hint: None,
            };
            backend::put_error(out, &reply);
        };
        let notice = |out: &mut Vec<u8>| {
            let reply = ErrorReply {
                severity: "NOTICE",
                code: "00000",
                message: "x",
                detail: None,
                hint: None,
            };
            backend::put_notice(out, &reply);
        };
        let other = |out: &mut Vec<u8>| backend::put_command_complete(out, "UPDATE 1");
        let open = |out: &mut Vec<u8>| backend::put_ready(out, TxStatus::InTransaction);
        for bad in [
            answer(&[&described, &row, &error, &ready]),
            answer(&[&notice, &described, &row, &done, &ready]),
            answer(&[&described, &row, &notice, &done, &ready]),
            answer(&[&described, &row, &other, &ready]),
            answer(&[&described, &row, &done, &open]),
            answer(&[&described, &row, &done, &described, &row, &done, &ready]),
            answer(&[&described, &row, &done, &ready, &ready]),
            answer(&[&ready]),
            Vec::new(),
        ] {
            assert_eq!(result(&bad), None, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn half_an_answer_is_none() {
        let whole = answer(&[&described, &row, &done, &ready]);
        for end in 0..whole.len() {
            assert_eq!(result(&whole[..end]), None, "cut at {end}");
        }
    }
}
