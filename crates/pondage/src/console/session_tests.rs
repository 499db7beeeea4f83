use super::*;
use crate::console::command::{Act, Show};
use wire::pg::backend::tag as reply;

/// Tag and body of every message in `bytes`.
fn messages(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while let Some(header) = header(rest).unwrap() {
        let (message, after) = rest.split_at(header.total);
        messages.push((header.tag, message[HEADER_BYTES..].to_vec()));
        rest = after;
    }
    assert!(rest.is_empty());
    messages
}

fn tags(bytes: &[u8]) -> String {
    messages(bytes).iter().map(|(tag, _)| char::from(*tag)).collect()
}

fn done(result: Result<Option<Table>, Failure>) -> Answer {
    Answer { notices: Vec::new(), result }
}

fn states() -> Table {
    let columns = columns::of_show(Show::State).unwrap();
    let row = |key, value| vec![Value::text(key), Value::text(value)];
    let rows = vec![row("active", "yes"), row("paused", "no"), row("suspended", "no")];
    Table { columns: columns.into(), rows }
}

/// Answers SHOW STATE with three rows, other requests with nothing; returns all that was sent.
fn drive(session: &mut Session, sent: &[u8]) -> Output {
    let mut rest = sent;
    let mut all = Output::default();
    while let Some(header) = header(rest).unwrap() {
        let (message, after) = rest.split_at(header.total);
        rest = after;
        session.take(message);
        while let Some(request) = session.request() {
            let table = (request == Request::Show(Show::State)).then(states);
            session.answer(done(Ok(table)));
        }
        let output = session.output();
        all.bytes.extend(output.bytes);
        all.close |= output.close;
    }
    all
}

fn query(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, text);
    out
}

/// Parse, Bind, Describe of the portal, Execute, Sync: what a driver sends.
fn extended(text: &str, limit: i32) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::put_parse(&mut out, b"", text.as_bytes(), b"");
    frontend::put_bind(&mut out, b"", b"", &[]);
    frontend::put_describe(&mut out, Target::Portal, b"");
    frontend::put_execute(&mut out, b"", limit);
    frontend::put_sync(&mut out);
    out
}

fn error(body: &[u8]) -> (String, String) {
    let fields = backend::error_fields(body).unwrap();
    (fields.code().unwrap().to_owned(), fields.message().unwrap().to_owned())
}

#[test]
fn a_simple_query_answers_byte_by_byte_as_postgresql_does() {
    let mut session = Session::default();
    let output = drive(&mut session, &query("SHOW STATE"));
    assert!(!output.close);
    let messages = messages(&output.bytes);
    assert_eq!(tags(&output.bytes), "TDDDCZ");
    assert_eq!(
        messages[0].1,
        b"\0\x02key\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0\
          value\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0"
    );
    assert_eq!(messages[1].1, b"\0\x02\0\0\0\x06active\0\0\0\x03yes");
    assert_eq!(messages[4].1, b"SHOW\0");
    assert_eq!(messages[5].1, b"I");
}

#[test]
fn several_commands_in_a_query_run_in_turn_and_end_with_one_ready() {
    let mut session = Session::default();
    session.take(&query("PAUSE a; SHOW STATE; RESUME a"));
    assert_eq!(session.request(), Some(Request::Act(Act::Pause(Some("a".into())))));
    session.answer(done(Ok(None)));
    assert_eq!(session.request(), Some(Request::Show(Show::State)));
    session.answer(done(Ok(Some(states()))));
    assert_eq!(session.request(), Some(Request::Act(Act::Resume(Some("a".into())))));
    session.answer(done(Ok(None)));
    assert_eq!(session.request(), None);
    assert_eq!(tags(&session.output().bytes), "CTDDDCCZ");
}

#[test]
fn an_error_in_a_query_ends_it_but_not_the_session() {
    let mut session = Session::default();
    session.take(&query("PAUSE a; RESUME a"));
    session.request().unwrap();
    session.answer(done(Err(Failure::new("3D000", "no such database: a").hint("Look."))));
    assert_eq!(session.request(), None);
    let output = session.output();
    assert_eq!(tags(&output.bytes), "EZ");
    assert_eq!(
        messages(&output.bytes)[0].1,
        b"SERROR\0VERROR\0C3D000\0Mno such database: a\0HLook.\0\0"
    );
    assert_eq!(tags(&drive(&mut session, &query("SHOW STATE")).bytes), "TDDDCZ");
}

#[test]
fn a_syntax_error_runs_nothing_of_the_message() {
    let mut session = Session::default();
    session.take(&query("PAUSE a; NONSENSE"));
    assert_eq!(session.request(), None);
    let output = session.output();
    assert_eq!(tags(&output.bytes), "EZ");
    assert_eq!(error(&messages(&output.bytes)[0].1).0, "42601");
}

#[test]
fn an_empty_query_says_so() {
    let mut session = Session::default();
    assert_eq!(tags(&drive(&mut session, &query(" ; ")).bytes), "IZ");
    assert_eq!(tags(&drive(&mut session, &extended("", 0)).bytes), "12nIZ");
}

#[test]
fn notices_come_before_the_result() {
    let mut session = Session::default();
    session.take(&query("RELOAD"));
    session.request().unwrap();
    let notice =
        Notice { severity: "WARNING", message: "workers needs a restart".into(), detail: None };
    session.answer(Answer { notices: vec![notice], result: Ok(None) });
    assert_eq!(session.request(), None);
    let output = session.output();
    assert_eq!(tags(&output.bytes), "NCZ");
    let fields = messages(&output.bytes).remove(0).1;
    assert_eq!(backend::error_fields(&fields).unwrap().code(), Some("01000"));
}

#[test]
fn the_extended_protocol_answers_at_the_sync() {
    let mut session = Session::default();
    let sent = extended("SHOW STATE", 0);
    let (before_sync, sync) = sent.split_at(sent.len() - HEADER_BYTES);
    assert_eq!(drive(&mut session, before_sync), Output::default());
    assert_eq!(tags(&drive(&mut session, sync).bytes), "12TDDDCZ");
}

#[test]
fn a_flush_is_answered_without_a_ready() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"s", b"SHOW STATE", b"");
    frontend::put_describe(&mut sent, Target::Statement, b"s");
    frontend::put_flush(&mut sent);
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "1tT");
}

#[test]
fn a_named_statement_serves_again_and_is_gone_after_close() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"s1", b"SHOW STATE", b"");
    frontend::put_sync(&mut sent);
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "1Z");
    let mut again = Vec::new();
    frontend::put_bind(&mut again, b"p", b"s1", &[]);
    frontend::put_execute(&mut again, b"p", 0);
    frontend::put_sync(&mut again);
    for _ in 0..2 {
        assert_eq!(tags(&drive(&mut session, &again).bytes), "2DDDCZ");
    }
    let output = drive(&mut session, &sent);
    assert_eq!(error(&messages(&output.bytes)[0].1).0, "42P05");
    let mut close = Vec::new();
    frontend::put_close(&mut close, Target::Statement, b"s1");
    frontend::put_sync(&mut close);
    assert_eq!(tags(&drive(&mut session, &close).bytes), "3Z");
    let output = drive(&mut session, &again);
    assert_eq!(tags(&output.bytes), "EZ");
    assert_eq!(error(&messages(&output.bytes)[0].1).0, "26000");
}

#[test]
fn a_row_limit_suspends_the_portal_and_the_next_execute_goes_on() {
    let mut session = Session::default();
    let mut sent = extended("SHOW STATE", 2);
    sent.truncate(sent.len() - HEADER_BYTES);
    frontend::put_execute(&mut sent, b"", 2);
    frontend::put_execute(&mut sent, b"", 2);
    frontend::put_sync(&mut sent);
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "12TDDsDCCZ");
}

#[test]
fn a_portal_ends_with_its_sync() {
    let mut session = Session::default();
    drive(&mut session, &extended("SHOW STATE", 2));
    let mut sent = Vec::new();
    frontend::put_execute(&mut sent, b"", 0);
    frontend::put_sync(&mut sent);
    let output = drive(&mut session, &sent);
    assert_eq!(tags(&output.bytes), "EZ");
    assert_eq!(error(&messages(&output.bytes)[0].1).0, "34000");
}

#[test]
fn a_command_runs_once_however_often_its_portal_is_executed() {
    let mut session = Session::default();
    let mut sent = extended("RELOAD", 0);
    sent.truncate(sent.len() - HEADER_BYTES);
    drive(&mut session, &sent);
    let mut again = Vec::new();
    frontend::put_execute(&mut again, b"", 0);
    session.take(&again);
    assert_eq!(session.request(), None);
    let mut sync = Vec::new();
    frontend::put_sync(&mut sync);
    assert_eq!(tags(&drive(&mut session, &sync).bytes), "12nCCZ");
}

#[test]
fn an_error_in_the_extended_protocol_skips_to_the_sync() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"", b"NONSENSE", b"");
    frontend::put_bind(&mut sent, b"", b"", &[]);
    frontend::put_execute(&mut sent, b"", 0);
    frontend::put_query(&mut sent, "SHOW STATE");
    frontend::put_sync(&mut sent);
    sent.extend(extended("SHOW STATE", 0));
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "EZ12TDDDCZ");
}

#[test]
fn an_error_is_sent_before_the_sync_arrives() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"", b"NONSENSE", b"");
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "E");
}

#[test]
fn a_driver_may_ask_for_binary_results() {
    // SELECT 1 as asyncpg binds it: one result format, binary.
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"", b"SELECT 1", b"");
    let bind = b"\0\0\0\0\0\0\0\x01\0\x01";
    sent.push(frontend::tag::BIND);
    sent.extend((bind.len() as u32 + 4).to_be_bytes());
    sent.extend(bind);
    frontend::put_execute(&mut sent, b"", 0);
    for message in split(&sent) {
        session.take(&message);
    }
    assert!(matches!(session.request(), Some(Request::Select(_))));
    let columns = vec![Column::bare("?column?", table::Kind::Int4)];
    let table = Table { columns: columns.into(), rows: vec![vec![Value::Int(1)]] };
    session.answer(done(Ok(Some(table))));
    assert_eq!(session.request(), None);
    let mut sync = Vec::new();
    frontend::put_sync(&mut sync);
    session.take(&sync);
    let output = session.output();
    assert_eq!(tags(&output.bytes), "12DCZ");
    assert_eq!(messages(&output.bytes)[2].1, b"\0\x01\0\0\0\x04\0\0\0\x01");
    assert_eq!(messages(&output.bytes)[3].1, b"SELECT 1\0");
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut messages = Vec::new();
    while let Some(header) = header(rest).unwrap() {
        messages.push(rest[..header.total].to_vec());
        rest = &rest[header.total..];
    }
    messages
}

#[test]
fn parameters_wrong_formats_and_cut_binds_are_errors() {
    for (bind, code) in [
        (&b"\0\0\0\0\0\x01\0\0\0\x011\0\0"[..], "08P01"),
        (b"\0\0\0\0\0\0\0\x01\0\x02", "22023"),
        (b"\0\0\0\0\0\0\0\x03\0\0\0\0\0\0", "08P01"),
        (b"\0\0\0\0\0\0\0\x01", "08P01"),
        (b"\0\0\0\0\0\0\0\0\0", "08P01"),
        (b"\0\0\0\x09", "08P01"),
        (b"\0", "08P01"),
        (b"", "08P01"),
    ] {
        let mut session = Session::default();
        let mut sent = Vec::new();
        frontend::put_parse(&mut sent, b"", b"SHOW STATE", b"");
        sent.push(frontend::tag::BIND);
        sent.extend((bind.len() as u32 + 4).to_be_bytes());
        sent.extend(bind);
        let output = drive(&mut session, &sent);
        assert_eq!(tags(&output.bytes), "1E", "{bind:?}");
        assert_eq!(error(&messages(&output.bytes)[1].1).0, code, "{bind:?}");
    }
}

#[test]
fn a_portal_lives_as_long_as_its_transaction() {
    // As pgjdbc fetches with autocommit off.
    let mut session = Session::default();
    let ready = |bytes: &[u8]| messages(bytes).pop().map(|(_, body)| body);
    let output = drive(&mut session, &query("BEGIN"));
    assert_eq!(ready(&output.bytes), Some(b"T".to_vec()));
    let mut sent = Vec::new();
    frontend::put_parse(&mut sent, b"", b"SHOW STATE", b"");
    frontend::put_bind(&mut sent, b"c1", b"", &[]);
    frontend::put_execute(&mut sent, b"c1", 2);
    frontend::put_sync(&mut sent);
    assert_eq!(tags(&drive(&mut session, &sent).bytes), "12DDsZ");
    let mut fetch = Vec::new();
    frontend::put_execute(&mut fetch, b"c1", 2);
    frontend::put_sync(&mut fetch);
    assert_eq!(tags(&drive(&mut session, &fetch).bytes), "DCZ");
    let output = drive(&mut session, &query("COMMIT"));
    assert_eq!(ready(&output.bytes), Some(b"I".to_vec()));
    assert_eq!(tags(&drive(&mut session, &fetch).bytes), "EZ");
}

#[test]
fn statements_and_portals_have_a_ceiling() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    for number in 0..=STATEMENTS_MAX {
        frontend::put_parse(&mut sent, number.to_string().as_bytes(), b"SHOW STATE", b"");
    }
    let output = drive(&mut session, &sent);
    let last = messages(&output.bytes).pop().unwrap();
    assert_eq!(last.0, reply::ERROR);
    assert_eq!(error(&last.1), ("54000".into(), "more than 256 prepared statements".into()));
    sent.clear();
    frontend::put_sync(&mut sent);
    for number in 0..=PORTALS_MAX {
        frontend::put_bind(&mut sent, number.to_string().as_bytes(), b"0", &[]);
    }
    let last = messages(&drive(&mut session, &sent).bytes).pop().unwrap();
    assert_eq!(error(&last.1), ("54000".into(), "more than 16 portals".into()));
}

#[test]
fn terminate_closes_without_a_word() {
    let mut session = Session::default();
    let mut sent = Vec::new();
    frontend::put_terminate(&mut sent);
    assert_eq!(drive(&mut session, &sent), Output { bytes: Vec::new(), close: true });
}

#[test]
fn what_is_no_message_is_fatal() {
    for sent in [&b"Q\0\0\0\x03"[..], b"Q\0\0\0\xff", b"?\0\0\0\x04", b""] {
        let mut session = Session::default();
        session.take(sent);
        assert_eq!(session.request(), None);
        let output = session.output();
        assert!(output.close);
        let body = &messages(&output.bytes)[0].1;
        assert_eq!(error(body).0, "08P01");
        assert_eq!(backend::error_fields(body).unwrap().severity(), Some("FATAL"));
    }
}

mod anything {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            tags in proptest::collection::vec(
                (prop::sample::select(b"QPBDESHCdcfFXp?".to_vec()),
                 proptest::collection::vec(prop::sample::select(b"\0\0\x01PSshow stateRELOAD;'\"".to_vec()), 0..24)),
                0..12),
        ) {
            let mut session = Session::default();
            for (tag, body) in tags {
                let mut message = vec![tag];
                message.extend((body.len() as u32 + 4).to_be_bytes());
                message.extend(body);
                session.take(&message);
                while let Some(request) = session.request() {
                    let table = columns::of(&request).map(|columns| {
                        let row = vec![Value::Null; columns.len()];
                        Table { columns, rows: vec![row] }
                    });
                    session.answer(done(Ok(table)));
                }
                messages(&session.output().bytes);
            }
        }
    }
}
