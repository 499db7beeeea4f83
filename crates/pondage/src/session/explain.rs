//! `EXPLAIN LAST STATEMENT`: how a client's last statement travelled, and why. The worker answers
//! it; PostgreSQL does not know it.

use wire::pg::backend::{self, Column};

use crate::route::{Way, Why};

/// How a client's last statement travelled. Every client has one: keep it small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    /// The worker's number of the shape; none: it has none, as several statements in one text.
    pub shape: Option<u32>,
    pub way: Way,
    pub why: Why,
    /// Statements of others that were on their way with it.
    pub company: u16,
    /// It came as a simple query and was sent as a prepared statement.
    pub prepared: bool,
    /// From the request to the last byte of its answer, in microseconds.
    pub took_us: u32,
}

/// Type oid of `text`, which is what EXPLAIN answers with.
///
/// Source: `src/include/catalog/pg_type.dat`; `ExplainResultDesc` in
/// `src/backend/commands/explain.c`.
const TEXT: u32 = 25;

/// Whether the text of a simple query is `EXPLAIN LAST STATEMENT`. Looks at the first letter of
/// other texts only; a text that begins with a comment is an other one.
#[inline]
pub fn is_request(text: &[u8]) -> bool {
    match text.trim_ascii_start().first() {
        Some(b'e' | b'E') => sql::says(text, &["explain", "last", "statement"]),
        _ => false,
    }
}

/// Appends the answer of the simple protocol, up to CommandComplete.
///
/// `text` is the statement's shape, `reason` the words of the verdict on it.
pub fn put_answer(
    out: &mut Vec<u8>,
    last: Option<&Last>,
    text: Option<&str>,
    reason: Option<&str>,
) {
    let column = Column { name: "QUERY PLAN", oid: TEXT, size: -1, format: 0 };
    backend::put_row_description(out, &[column]);
    let mut line = |text: &str| backend::put_data_row(out, &[Some(text.as_bytes())]);
    match last {
        Some(last) => {
            line(&format!("Statement: {}", one_line(text)));
            line(&format!("Way: {}", way(last)));
            line(&format!("Why: {}", last.why.told(reason.unwrap_or_default())));
            line(match (last.way, last.prepared) {
                (Way::Kept, _) => "Sent as: not at all",
                (_, true) => "Sent as: prepared statement",
                (_, false) => "Sent as: it came",
            });
            line(&format!("Took: {} us", last.took_us));
        }
        None => line("No statement has been run on this connection."),
    }
    backend::put_command_complete(out, "EXPLAIN");
}

fn one_line(text: Option<&str>) -> String {
    match text {
        Some(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        None => "one whose shape is not followed".to_owned(),
    }
}

fn way(last: &Last) -> String {
    let way = last.way.word();
    match (last.way, last.company) {
        (Way::Alone | Way::Kept, _) => way.to_owned(),
        (_, 0) => format!("{way}, with no others at that moment"),
        (_, 1) => format!("{way}, with 1 other"),
        (_, others) => format!("{way}, with {others} others"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::pg::backend::tag;
    use wire::pg::{header, HEADER_BYTES};

    use super::*;

    const LAST: Last = Last {
        shape: Some(7),
        way: Way::Batch,
        why: Why::Free,
        company: 12,
        prepared: true,
        took_us: 85,
    };

    /// The lines of a whole answer.
    fn answer(last: Option<&Last>, text: Option<&str>, reason: Option<&str>) -> Vec<String> {
        let mut bytes = b"before".to_vec();
        put_answer(&mut bytes, last, text, reason);
        let mut rest = bytes.strip_prefix(b"before").expect("it appends");
        let mut lines = Vec::new();
        let mut tags = Vec::new();
        while let Some(head) = header(rest).expect("a header") {
            let body = &rest[HEADER_BYTES..head.total];
            match head.tag {
                tag::ROW_DESCRIPTION => assert_eq!(
                    body,
                    b"\0\x01QUERY PLAN\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
                ),
                tag::DATA_ROW => {
                    let (head, line) = body.split_at(6);
                    assert_eq!(head[..2], [0, 1], "one column");
                    assert_eq!(head[2..], (line.len() as u32).to_be_bytes());
                    lines.push(String::from_utf8(line.to_vec()).expect("UTF-8"));
                }
                _ => assert_eq!(backend::command_tag(body), Ok(&b"EXPLAIN"[..])),
            }
            tags.push(head.tag);
            rest = &rest[head.total..];
        }
        assert!(rest.is_empty(), "whole messages");
        let mut expected = vec![tag::DATA_ROW; lines.len() + 2];
        expected[0] = tag::ROW_DESCRIPTION;
        expected[lines.len() + 1] = tag::COMMAND_COMPLETE;
        assert_eq!(tags, expected);
        lines
    }

    #[test]
    fn the_request_is_found_in_any_dress() {
        for text in [
            "explain last statement",
            "EXPLAIN LAST STATEMENT;",
            " \n Explain\tLast -- my\n/* own */ Statement ; -- thanks",
            "explain/**/last/**/statement;;",
        ] {
            assert!(is_request(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "e",
            "explain",
            "explain last",
            "explain last statement select 1",
            "explain last statement; select 1",
            "explain select last from statement",
            "explain lasting statement",
            "explain last statements",
            "explainlast statement",
            "explain \"last\" statement",
            "execute last statement",
            "-- explain last statement",
            "/* mine */ explain last statement",
            "select 'explain last statement'",
        ] {
            assert!(!is_request(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_statement_that_joined_tells_with_how_many() {
        assert_eq!(
            answer(Some(&LAST), Some("select abalance\n  from accounts where aid = ? "), None),
            [
                "Statement: select abalance from accounts where aid = ?",
                "Way: batch, with 12 others",
                "Why: nothing stands against it",
                "Sent as: prepared statement",
                "Took: 85 us",
            ]
        );
        let way = |way, company| answer(Some(&Last { way, company, ..LAST }), None, None).remove(1);
        assert_eq!(way(Way::Pipeline, 1), "Way: pipeline, with 1 other");
        assert_eq!(way(Way::Train, 0), "Way: train, with no others at that moment");
        assert_eq!(way(Way::Alone, 3), "Way: alone");
    }

    #[test]
    fn a_statement_that_was_answered_from_memory_was_not_sent() {
        let last = Last { way: Way::Kept, company: 0, prepared: false, ..LAST };
        let told = answer(Some(&last), Some("select 1"), None);
        assert_eq!((&*told[1], &*told[3]), ("Way: cache", "Sent as: not at all"));
    }

    #[test]
    fn a_statement_that_travelled_alone_tells_what_stood_against_it() {
        let last = Last { way: Way::Alone, why: Why::Judged, prepared: false, ..LAST };
        assert_eq!(
            answer(Some(&last), Some("select next_id()"), Some("function next_id() is volatile")),
            [
                "Statement: select next_id()",
                "Way: alone",
                "Why: parser or catalogues found something against it: function next_id() is \
                 volatile",
                "Sent as: it came",
                "Took: 85 us",
            ]
        );
        let last = Last { shape: None, why: Why::Unreadable, ..last };
        assert_eq!(
            answer(Some(&last), None, None)[0],
            "Statement: one whose shape is not followed"
        );
    }

    #[test]
    fn without_a_statement_it_says_so() {
        assert_eq!(answer(None, None, None), ["No statement has been run on this connection."]);
    }

    #[test]
    fn every_client_can_afford_one() {
        assert!(size_of::<Option<Last>>() <= 20);
    }

    proptest! {
        #[test]
        fn whatever_a_statement_and_a_reason_hold_the_answer_has_five_lines(
            text in "\\PC{0,30}|[ \n\r\t\u{2028}a-c]{0,30}",
            reason in "\\PC{0,30}|[ \n\r\ta-c]{0,30}",
        ) {
            prop_assert_eq!(answer(Some(&LAST), Some(&text), Some(&reason)).len(), 5);
        }

        #[test]
        fn no_bytes_make_the_request_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            is_request(&text);
        }
    }
}
