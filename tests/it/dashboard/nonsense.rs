//! What is no good request is refused with a reason, and nothing is executed.

use std::io::Write;
use std::net::Shutdown;

use serde_json::json;

use super::config;
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::httpclient::{answer, connect, exchange, request, Answer, Visitor};
use crate::kit::{cluster, Database, Gateway};

fn started() -> (Database, Gateway, Visitor) {
    let database = cluster().database();
    let gateway = Gateway::start(config(&database));
    let visitor = Visitor::log_in(gateway.http_port, ADMIN, ADMIN_PASSWORD);
    (database, gateway, visitor)
}

/// Of a PAUSE that nobody was allowed to say, nothing is to be seen.
#[track_caller]
fn nothing_is_paused(database: &Database, gateway: &Gateway) {
    assert_eq!(gateway.show("state")[0]["value"], "yes", "active");
    assert!(gateway.show("databases").iter().all(|row| row["paused"] == "0"));
    gateway.client(database).run("select 1");
}

/// Nor has the console been asked for anything.
#[track_caller]
fn nothing_is_executed(database: &Database, gateway: &Gateway) {
    nothing_is_paused(database, gateway);
    for event in ["http_command", "console_command"] {
        assert!(!gateway.said().contains(event), "{}", gateway.said().text());
    }
}

/// A POST of a PAUSE by this visitor, with other headers and body than it should have.
fn pause(visitor: &Visitor, change: impl FnOnce(&mut Vec<String>, &mut String)) -> Answer {
    let mut headers = visitor.headers();
    headers.push("Content-Type: application/json".to_owned());
    let mut body = json!({ "command": "PAUSE" }).to_string();
    change(&mut headers, &mut body);
    let text = request("POST /api/v1/command", &headers, &body);
    exchange(visitor.port, text.as_bytes()).expect("an answer")
}

#[test]
fn a_request_that_lacks_something_is_refused_with_a_reason() {
    let (database, gateway, visitor) = started();
    type Change = fn(&mut Vec<String>, &mut String);
    let cases: [(&str, Change, u16, &str); 11] = [
        ("no token", |headers, _| drop(headers.remove(1)), 403, "P0505"),
        (
            "a wrong token",
            |headers, _| headers[1] = format!("X-Pondage-CSRF: {}", "0".repeat(32)),
            403,
            "P0505",
        ),
        ("no session", |headers, _| drop(headers.remove(0)), 401, "P0501"),
        (
            "a name that leads here",
            |headers, _| headers.push("Host: evil.example".into()),
            403,
            "P0504",
        ),
        (
            "another site",
            |headers, _| headers.push("Origin: http://evil.example".into()),
            403,
            "P0505",
        ),
        ("a form", |headers, _| headers[2] = "Content-Type: text/plain".into(), 400, "P0509"),
        ("no type", |headers, _| drop(headers.remove(2)), 400, "P0509"),
        ("no object", |_, body| *body = "\"PAUSE\"".into(), 400, "P0509"),
        ("half of an object", |_, body| body.truncate(body.len() - 1), 400, "P0509"),
        ("no command", |_, body| *body = "{}".into(), 400, "P0509"),
        (
            "two commands",
            |_, body| *body = json!({ "command": "PAUSE; PAUSE" }).to_string(),
            400,
            "P0509",
        ),
    ];
    for (what, change, status, code) in cases {
        let refused = pause(&visitor, change).refusal();
        assert_eq!(refused, (status, code.to_owned()), "{what}");
    }
    nothing_is_executed(&database, &gateway);
    // Else none of them says anything about what it lacks.
    assert_eq!(pause(&visitor, |_, _| ()).status, 200);
    assert_eq!(visitor.command("RESUME").status, 200);
}

#[test]
fn a_body_that_is_too_long_is_refused_whether_its_length_is_told_or_not() {
    let (database, gateway, visitor) = started();
    let long = json!({ "command": "PAUSE", "padding": "x".repeat(1 << 20) }).to_string();
    let told = pause(&visitor, |_, body| *body = long.clone());
    assert_eq!(told.refusal(), (413, "P0509".to_owned()));
    let chunked = format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    let untold = pause(&visitor, |headers, body| {
        headers.push("Transfer-Encoding: chunked".into());
        headers.push("Content-Length:".into());
        *body = chunked;
    });
    assert_eq!(untold.refusal(), (413, "P0509".to_owned()));
    nothing_is_executed(&database, &gateway);
}

#[test]
fn an_unknown_command_path_or_method_is_told_with_what_there_is() {
    let (database, gateway, visitor) = started();
    for (command, status, code) in [
        ("PAUSSE", 400, "42601"),
        ("SHOW EVERYTHING", 400, "42601"),
        ("PAUSE nowhere", 400, "3D000"),
        ("KILL_CLIENT 99999", 400, "42704"),
        ("SELECT * FROM pg_authid", 400, "42601"),
        ("PAUSE \u{0}", 400, "42601"),
    ] {
        let refused = visitor.command(command).refusal();
        assert_eq!(refused, (status, code.to_owned()), "{command}");
    }
    for (line, status) in [
        ("GET /api/v1/stat", 404),
        ("GET /api/v2/state", 404),
        ("GET /../../etc/passwd", 404),
        ("GET /assets/%2e%2e/config", 404),
        ("PUT /api/v1/command", 405),
        ("GET /api/v1/command", 405),
        ("POST /api/v1/state", 405),
        ("POST /", 405),
        ("POST /metrics", 405),
    ] {
        let answer = visitor.ask(line);
        assert_eq!(answer.refusal(), (status, "P0507".to_owned()), "{line}");
        let allows = answer.head.contains("\r\nallow: ");
        assert_eq!(allows, status == 405, "{line}: {}", answer.head);
    }
    nothing_is_paused(&database, &gateway);
}

#[test]
fn half_a_request_does_nothing() {
    let (database, gateway, visitor) = started();
    let mut headers = visitor.headers();
    headers.push("Content-Type: application/json".to_owned());
    let body = json!({ "command": "PAUSE" }).to_string();
    headers.push(format!("Content-Length: {}", body.len() + 1));
    let text = request("POST /api/v1/command", &headers, &body);
    let head = text.find("\r\n\r\n").expect("a head");
    // All of the command is there, but for a byte that was announced.
    for (what, end) in
        [("a line", 20), ("a head", head), ("no body", head + 4), ("all", text.len())]
    {
        let mut stream = connect(visitor.port);
        stream.write_all(&text.as_bytes()[..end]).expect("sent");
        stream.shutdown(Shutdown::Write).expect("half closed");
        if let Some(answer) = answer(stream) {
            assert!((400..500).contains(&answer.status), "{what}: {answer:?}");
        }
    }
    nothing_is_executed(&database, &gateway);
    // Who keeps it open gets a word in time.
    let mut stream = connect(visitor.port);
    stream.write_all(text.as_bytes()).expect("sent");
    let answer = answer(stream).expect("an answer");
    assert_eq!(answer.refusal(), (408, "P0509".to_owned()));
    nothing_is_executed(&database, &gateway);
}
