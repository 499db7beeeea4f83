//! Calls over a connection of Pondage's own: what is written, and what is heard however the
//! replies are cut.

mod values;

use backend::calls::{Broken, Calls, Heard, Refused, UNANSWERED_MAX};
use wire::pg::backend::{self as server, ErrorReply, TxStatus};
use wire::pg::frontend;

/// What a server says.
type Script = Vec<u8>;

/// Hears `script` in one piece, in single bytes and cut at every place, which must be the same;
/// with what may come at any time between all messages as well.
fn hear(ask: impl Fn(&mut Calls), script: &[u8]) -> Vec<String> {
    let listen = |parts: &[&[u8]]| {
        let mut calls = Calls::new();
        ask(&mut calls);
        let mut heard = Vec::new();
        for part in parts {
            calls.receive(part, &mut |what| heard.push(told(what))).expect("a sound answer");
        }
        heard
    };
    let whole = listen(&[script]);
    for at in 0..=script.len() {
        let (head, rest) = script.split_at(at);
        assert_eq!(listen(&[head, rest]), whole, "cut at {at}");
    }
    assert_eq!(listen(&script.chunks(1).collect::<Vec<_>>()), whole, "in single bytes");
    let with_others = listen(&[&between(script)]);
    let others = ["heard redis k 0 61", "notice just so"];
    assert!(with_others.iter().any(|event| event == others[0]));
    let rest: Vec<_> =
        with_others.into_iter().filter(|event| !others.contains(&event.as_str())).collect();
    assert_eq!(rest, whole, "with others between");
    whole
}

/// The script with a notification, a setting and a notice before each message and at the end.
fn between(script: &[u8]) -> Script {
    let mut others = Vec::new();
    server::put_notification(&mut others, 1, "redis", "k 0 61");
    server::put_parameter_status(&mut others, "TimeZone", "UTC");
    server::put_notice(&mut others, &error("00000", "just so"));
    let mut out = others.clone();
    let mut rest = script;
    while let Some(head) = wire::pg::frame::header(rest).expect("a header") {
        let (message, after) = rest.split_at(head.total);
        out.extend_from_slice(message);
        out.extend_from_slice(&others);
        rest = after;
    }
    out
}

fn told(what: Heard<'_>) -> String {
    match what {
        Heard::Row { tag, mut columns } => {
            let mut row = format!("{tag} row");
            while columns.left() > 0 {
                let value = columns.raw().expect("a column");
                row += &value.map_or(" -".into(), |v| format!(" {}", v.escape_ascii()));
            }
            row
        }
        Heard::Done { tag, command } => format!("{tag} done {}", command.escape_ascii()),
        Heard::Failed { tag, error } => {
            let tag = tag.map_or("?".into(), |tag| tag.to_string());
            let detail = error.detail;
            format!("{tag} failed {} {} {detail}", error.sqlstate, error.message)
        }
        Heard::Skipped { tag } => format!("{tag} skipped"),
        Heard::Synced { committed, .. } => format!("synced {committed}"),
        Heard::Notification { channel, payload } => {
            format!("heard {} {}", channel.escape_ascii(), payload.escape_ascii())
        }
        Heard::Notice { notice } => format!("notice {}", notice.message),
    }
}

fn error<'a>(code: &'a str, message: &'a str) -> ErrorReply<'a> {
    ErrorReply { severity: "ERROR", code, message, detail: Some("why"), hint: None }
}

/// Says messages by letter: their usual kind bytes.
fn say(letters: &str) -> Script {
    let mut out = Vec::new();
    for letter in letters.bytes() {
        match letter {
            b'1' => server::put_parse_complete(&mut out),
            b'2' => server::put_bind_complete(&mut out),
            b'D' => server::put_data_row(&mut out, &[Some(b"v"), None]),
            b'C' => server::put_command_complete(&mut out, "SELECT 1"),
            b'I' => server::put_empty_query(&mut out),
            b'E' => server::put_error(&mut out, &error("RD002", "changed")),
            b'Z' => server::put_ready(&mut out, TxStatus::Idle),
            b'T' => server::put_row_description(&mut out, &[]),
            b's' => server::put_portal_suspended(&mut out),
            _ => unreachable!("no such message here"),
        }
    }
    out
}

fn prepare_and_call(calls: &mut Calls) {
    calls.prepare(1, "s", "select 1", &[]).expect("appended");
    calls.call(2, "s", |_| {}).expect("appended");
    calls.call(3, "s", |_| {}).expect("appended");
    calls.sync().expect("appended");
    calls.call(4, "s", |_| {}).expect("appended");
    calls.sync().expect("appended");
}

#[test]
fn pipelined_calls_are_answered_in_order() {
    assert_eq!(
        hear(prepare_and_call, &say("12DDC2CZ2IZ")),
        [
            "1 done ",
            "2 row v -",
            "2 row v -",
            "2 done SELECT 1",
            "3 done SELECT 1",
            "synced true",
            "4 done ",
            "synced true"
        ]
    );
}

#[test]
fn a_failure_skips_the_rest_of_its_group_only() {
    let failed = |tag| format!("{tag} failed RD002 changed why");
    let next = ["4 done SELECT 1".to_owned(), "synced true".to_owned()];
    let cases: [(&str, Vec<String>); 5] = [
        ("EZ2CZ", vec![failed(1), "2 skipped".into(), "3 skipped".into()]),
        ("1EZ2CZ", vec!["1 done ".into(), failed(2), "3 skipped".into()]),
        ("12EZ2CZ", vec!["1 done ".into(), failed(2), "3 skipped".into()]),
        ("12DEZ2CZ", vec!["1 done ".into(), "2 row v -".into(), failed(2), "3 skipped".into()]),
        ("12C2EZ2CZ", vec!["1 done ".into(), "2 done SELECT 1".into(), failed(3)]),
    ];
    for (script, mut expected) in cases {
        expected.push("synced false".into());
        expected.extend(next.iter().cloned());
        assert_eq!(hear(prepare_and_call, &say(script)), expected, "{script}");
    }
}

#[test]
fn a_commit_that_fails_is_nobodys_failure_and_not_committed() {
    assert_eq!(
        hear(prepare_and_call, &say("12C2CEZ2CZ"))[3..],
        ["? failed RD002 changed why", "synced false", "4 done SELECT 1", "synced true"]
    );
}

#[test]
fn what_ends_a_quiet_connection_is_heard() {
    assert_eq!(hear(|_| {}, &say("E")), ["? failed RD002 changed why"]);
}

#[test]
fn simple_queries_end_the_group_before_them() {
    let ask = |calls: &mut Calls| {
        calls.call(1, "s", |_| {}).expect("appended");
        calls.query(2, "begin; select 1").expect("appended");
        calls.query(3, "").expect("appended");
    };
    assert_eq!(
        hear(ask, &say("2CZCTDCZIZ")),
        [
            "1 done SELECT 1",
            "synced true",
            "2 done SELECT 1",
            "2 row v -",
            "2 done SELECT 1",
            "synced true",
            "3 done ",
            "synced true"
        ]
    );
    assert_eq!(
        hear(ask, &say("2CZCEZIZ"))[2..],
        ["2 done SELECT 1", "2 failed RD002 changed why", "synced false", "3 done ", "synced true"]
    );
}

#[test]
fn what_is_not_the_next_message_breaks_the_connection() {
    let fate = |script: &[u8]| {
        let mut calls = Calls::new();
        prepare_and_call(&mut calls);
        calls.receive(script, &mut |_| {})
    };
    for (script, culprit) in [
        ("2", b'2'),
        ("D", b'D'),
        ("Z", b'Z'),
        ("11", b'1'),
        ("1D", b'D'),
        ("122", b'2'),
        ("12s", b's'),
    ] {
        assert_eq!(fate(&say(script)), Err(Broken::Unexpected(culprit)), "{script}");
    }
    assert!(matches!(fate(b"1\0\0\0\x03"), Err(Broken::Wire(_))));
    assert!(matches!(fate(b"E\0\0\0\x04"), Err(Broken::Wire(_))));
    assert!(matches!(fate(b"A\0\0\0\x04"), Err(Broken::Wire(_))));
    assert_eq!(Calls::new().receive(&say("Z"), &mut |_| {}), Err(Broken::Unexpected(b'Z')));
}

#[test]
fn what_is_written_is_what_postgres_reads() {
    let mut calls = Calls::new();
    calls.prepare(1, "name", "select $1", &[20, 17]).expect("appended");
    calls
        .call(2, "name", |params| {
            params.int2(-2);
            params.int4(4);
            params.int8(8);
            params.char(b'h');
            params.bytea(b"\0\xff");
            params.text("t");
            params.null();
        })
        .expect("appended");
    calls.sync().expect("appended");
    let mut expected = Vec::new();
    frontend::put_parse(&mut expected, b"name", b"select $1", b"\0\x02\0\0\0\x14\0\0\0\x11");
    let rest = b"\0\x01\0\x01\0\x07\0\0\0\x02\xff\xfe\0\0\0\x04\0\0\0\x04\
        \0\0\0\x08\0\0\0\0\0\0\0\x08\0\0\0\x01h\0\0\0\x02\0\xff\0\0\0\x01t\xff\xff\xff\xff\
        \0\x01\0\x01";
    frontend::put_bind_head(&mut expected, rest.len(), b"", b"name");
    expected.extend_from_slice(rest);
    frontend::put_execute(&mut expected, b"", 0);
    frontend::put_sync(&mut expected);
    assert_eq!(calls.out, expected);
}

#[test]
fn too_much_is_refused_and_leaves_nothing_behind() {
    let mut calls = Calls::new();
    let many = |params: &mut backend::calls::Params<'_>| (0..65_536).for_each(|_| params.null());
    assert_eq!(calls.call(1, "s", many), Err(Refused::TooLong));
    assert_eq!(calls.prepare(1, "s", "", &[0; 65_536]), Err(Refused::TooLong));
    assert_eq!((calls.out.len(), calls.unanswered()), (0, 0));
    for tag in 0..UNANSWERED_MAX as u64 {
        calls.call(tag, "s", |_| {}).expect("appended");
    }
    let written = calls.out.len();
    assert_eq!(calls.call(1, "s", |_| {}), Err(Refused::TooMany));
    assert_eq!(calls.prepare(1, "s", "", &[]), Err(Refused::TooMany));
    assert_eq!(calls.query(1, ""), Err(Refused::TooMany));
    assert_eq!(calls.sync(), Err(Refused::TooMany));
    assert_eq!((calls.out.len(), calls.unanswered()), (written, UNANSWERED_MAX));
}
