//! The dashboard's requests over sockets, as browsers and as others send them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{json, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::sessions::LINK_USER;
use super::tests::{open_with, split, talk};
use super::Site;
use crate::console::fixture;
use crate::worker::snapshot::WorkerSnapshot;

const PATIENCE: Duration = Duration::from_secs(20);
const USERS: &str = "[users.root]\npassword = \"secret\"\n[users.watch]\npassword = \"glance\"\n\
                     [users.other]\npassword = \"other\"\n";

struct Door {
    address: SocketAddr,
    site: Arc<Site>,
    _task: tokio::task::JoinHandle<std::io::Result<()>>,
}

struct Got {
    status: u16,
    head: String,
    body: Value,
}

async fn door() -> Door {
    let (address, fake, inbox, site, _task) =
        open_with("127.0.0.1:0", fixture::config_and(USERS)).await;
    let pools = vec![fixture::pool(&fake.config, "app", "web")];
    fixture::answer_snapshots(inbox, WorkerSnapshot { pools, ..Default::default() });
    Door { address, site, _task }
}

impl Door {
    /// With headers of one line each, and a body.
    async fn send(&self, request: &str, headers: &[String], body: &str) -> Got {
        let host = match headers.iter().any(|line| line.starts_with("Host:")) {
            true => String::new(),
            false => format!("Host: {}\r\n", self.address),
        };
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{request} HTTP/1.1\r\n{host}Connection: close\r\nContent-Length: {length}\r\n\
             {lines}\r\n{body}"
        );
        let (status, head, body) = split(&talk(self.address, request.as_bytes()).await);
        Got { status, head, body: serde_json::from_str(&body).unwrap_or(Value::Null) }
    }

    async fn post(&self, path: &str, headers: &[String], body: Value) -> Got {
        let mut headers = headers.to_vec();
        headers.push("Content-Type: application/json".to_owned());
        self.send(&format!("POST {path}"), &headers, &body.to_string()).await
    }

    /// Logs in: headers of the session, with its token.
    async fn session(&self, user: &str, password: &str) -> Vec<String> {
        let given = json!({ "user": user, "password": password });
        let got = self.post("/api/v1/session", &[], given).await;
        assert_eq!(got.status, 200, "{}", got.body);
        session(&got)
    }

    async fn command(&self, headers: &[String], command: &str) -> Got {
        self.post("/api/v1/command", headers, json!({ "command": command })).await
    }
}

fn session(got: &Got) -> Vec<String> {
    let cookie = got.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.and_then(|cookie| cookie.split(';').next()).expect("a cookie");
    let csrf = got.body["csrf"].as_str().expect("a token");
    vec![format!("Cookie: {cookie}"), format!("X-Pondage-CSRF: {csrf}")]
}

fn code(got: &Got) -> (u16, &str) {
    (got.status, got.body["error"]["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_session_is_opened_told_of_and_closed() {
    let door = door().await;
    for path in ["session", "state", "stream", "history"] {
        let got = door.send(&format!("GET /api/v1/{path}"), &[], "").await;
        assert_eq!(code(&got), (401, "P0501"), "{path}");
    }
    let given = json!({ "user": "root", "password": "secret" });
    let got = door.post("/api/v1/session", &[], given).await;
    assert_eq!((got.status, &got.body["role"]), (200, &json!("admin")));
    let port = door.address.port();
    assert!(got.head.contains(&format!("set-cookie: pondage_{port}=")), "{}", got.head);
    assert!(got.head.contains("; path=/; httponly; samesite=strict"), "{}", got.head);
    assert!(got.head.contains("cache-control: no-store"), "{}", got.head);
    let headers = session(&got);
    let got = door.send("GET /api/v1/session", &headers, "").await;
    assert_eq!((got.status, &got.body["user"]), (200, &json!("root")));
    let got = door.send("DELETE /api/v1/session", &headers[..1], "").await;
    assert_eq!(code(&got), (403, "P0505"), "without its token");
    assert_eq!(door.send("DELETE /api/v1/session", &headers, "").await.status, 204);
    assert_eq!(door.send("GET /api/v1/session", &headers, "").await.status, 401);
}

#[tokio::test]
async fn wrong_passwords_unknown_users_and_no_users_of_the_console_are_told_alike() {
    let door = door().await;
    for (user, password) in [("root", "wrong"), ("nobody", "x"), ("other", "other"), ("root", "")] {
        let given = json!({ "user": user, "password": password });
        let got = door.post("/api/v1/session", &[], given).await;
        assert_eq!(code(&got), (401, "P0502"), "{user}");
        let message = format!("password authentication failed for user \"{user}\"");
        assert_eq!(got.body["error"]["message"], json!(message));
    }
    for body in ["", "[]", "{\"user\":\"root\"}", "{\"user\":1,\"password\":2}", "{"] {
        let headers = ["Content-Type: application/json".to_owned()];
        let got = door.send("POST /api/v1/session", &headers, body).await;
        assert_eq!(code(&got), (400, "P0509"), "{body}");
    }
    let form = ["Content-Type: text/plain".to_owned()];
    let body = "{\"user\":\"root\",\"password\":\"secret\"}";
    assert_eq!(code(&door.send("POST /api/v1/session", &form, body).await), (400, "P0509"));
    let long = "x".repeat(70_000);
    let got = door.post("/api/v1/session", &[], json!({ "user": long, "password": "" })).await;
    assert_eq!(got.status, 413);
}

#[tokio::test]
async fn guessing_is_slowed_and_then_refused() {
    let door = door().await;
    let from: SocketAddr = "127.0.0.1:1".parse().expect("an address");
    for _ in 0..40 {
        door.site.sessions.tried(from, "root", false, Instant::now());
    }
    // Whoever would have to queue for longer than is allowed is told so at once.
    while door.site.sessions.attempt(from, "root", Instant::now()).is_some() {}
    let given = json!({ "user": "root", "password": "secret" });
    let got = door.post("/api/v1/session", &[], given).await;
    assert_eq!(code(&got), (429, "P0503"));
    assert!(got.head.contains("retry-after: "), "{}", got.head);
}

#[tokio::test]
async fn a_link_logs_in_once() {
    let door = door().await;
    let link = door.site.sessions.link(Instant::now());
    let token = || json!({ "token": link.as_str() });
    let got = door.post("/api/v1/session", &[], token()).await;
    assert_eq!((got.status, &got.body["user"]), (200, &json!(LINK_USER)));
    assert_eq!(door.command(&session(&got), "SHOW VERSION").await.status, 200);
    assert_eq!(code(&door.post("/api/v1/session", &[], token()).await), (401, "P0502"));
}

#[tokio::test]
async fn other_sites_get_nothing() {
    let door = door().await;
    let headers = door.session("root", "secret").await;
    let with = |more: &str| {
        let mut headers = headers.clone();
        headers.push(more.to_owned());
        headers
    };
    for host in ["evil.example", "evil.example:6433", "127.0.0.1.evil.example", ""] {
        let got = door.send("GET /api/v1/state", &with(&format!("Host: {host}")), "").await;
        assert_eq!(code(&got), (403, "P0504"), "{host}");
        let got = door.send("GET /", &with(&format!("Host: {host}")), "").await;
        assert_eq!(code(&got), (403, "P0504"), "{host}");
    }
    for line in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let got = door.command(&with(line), "PAUSE").await;
        assert_eq!(code(&got), (403, "P0505"), "{line}");
        let given = json!({ "user": "root", "password": "secret" });
        let got = door.post("/api/v1/session", &[line.to_owned()], given).await;
        assert_eq!(code(&got), (403, "P0505"), "{line}");
        // A link to it from elsewhere is fine.
        assert_eq!(door.send("GET /", &[line.to_owned()], "").await.status, 200, "{line}");
    }
    let own = format!("Origin: http://{}", door.address);
    assert_eq!(door.command(&with(&own), "SHOW VERSION").await.status, 200);
    assert_eq!(code(&door.command(&headers[..1], "PAUSE").await), (403, "P0505"), "no token");
    let forged = [headers[0].clone(), format!("X-Pondage-CSRF: {}", "0".repeat(32))];
    assert_eq!(code(&door.command(&forged, "PAUSE").await), (403, "P0505"));
}

#[tokio::test]
async fn commands_are_the_consoles_and_stats_users_only_look() {
    let door = door().await;
    let root = door.session("root", "secret").await;
    let got = door.command(&root, "SHOW POOLS").await;
    assert_eq!(got.body["columns"][0], json!("database"));
    assert_eq!((&got.body["rows"][0][0], &got.body["tag"]), (&json!("app"), &json!("SHOW 1")));
    for (command, wanted) in [
        ("PAUSE nowhere", (400, "3D000")),
        ("SHOW POLS", (400, "42601")),
        ("SHOW POOLS; SHOW POOLS", (400, "P0509")),
        ("", (400, "P0509")),
    ] {
        let got = door.command(&root, command).await;
        assert_eq!(code(&got), wanted, "{command}: {}", got.body);
        assert!(!got.body["error"]["hint"].as_str().unwrap_or_default().is_empty(), "{command}");
    }
    let watch = door.session("watch", "glance").await;
    assert_eq!(door.command(&watch, "SHOW POOLS").await.status, 200);
    for command in ["PAUSE", "RELOAD", "SHUTDOWN", "KILL app", "SET log_level = 'debug'"] {
        assert_eq!(door.command(&watch, command).await.status, 403, "{command}");
    }
    let basic = ["Authorization: Basic d2F0Y2g6Z2xhbmNl".to_owned()];
    let got = door.send("GET /api/v1/session", &basic, "").await;
    assert_eq!((&got.body["user"], &got.body["csrf"]), (&json!("watch"), &Value::Null));
    let wrong = ["Authorization: Basic d2F0Y2g6d3Jvbmc=".to_owned()];
    assert_eq!(code(&door.send("GET /api/v1/state", &wrong, "").await), (401, "P0502"));
}

#[tokio::test]
async fn the_state_has_the_tables_of_the_console() {
    let door = door().await;
    let headers = door.session("watch", "glance").await;
    let state = door.send("GET /api/v1/state", &headers, "").await.body;
    assert_eq!(state["health"]["ok"], json!(true), "{state}");
    assert_eq!(state["tables"]["pools"]["rows"][0][0], json!("app"));
    assert_eq!(state["pools"][0]["database"], json!("app"));
    assert!(state["tables"]["queries"]["columns"].is_array(), "{state}");
    assert!(state["overview"]["p99_seconds"].is_object(), "{state}");
    let history = door.send("GET /api/v1/history", &headers, "").await.body;
    assert_eq!(history["interval_seconds"], json!(1));
}

#[tokio::test]
async fn who_is_slow_with_a_body_is_judged_before_it_comes() {
    let door = door().await;
    let mut stream = TcpStream::connect(door.address).await.expect("a connection");
    let request = format!(
        "POST /api/v1/command HTTP/1.1\r\nHost: {}\r\nContent-Length: 60000\r\n\r\n",
        door.address
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    assert!(read_until(&mut stream, "P0501").await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn nobody_watches_a_process_that_has_handed_over() {
    let door = door().await;
    let headers = door.session("root", "secret").await;
    door.site.live.end();
    let got = door.send("GET /api/v1/stream", &headers, "").await;
    assert_eq!(code(&got), (503, "P0508"));
}

/// Reads until `wanted` was seen, or to the end.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut got = String::new();
    let mut part = [0; 4096];
    while wanted.is_empty() || !got.contains(wanted) {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut part)).await.expect("in time");
        let length = read.expect("a connection");
        if length == 0 {
            break;
        }
        got.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    got
}

#[tokio::test]
async fn the_stream_goes_on_until_the_session_or_the_process_ends() {
    let door = door().await;
    for ends_by_session in [true, false] {
        let headers = door.session("root", "secret").await;
        let mut stream = TcpStream::connect(door.address).await.expect("a connection");
        let lines = headers.join("\r\n");
        let request =
            format!("GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\n{lines}\r\n\r\n", door.address);
        stream.write_all(request.as_bytes()).await.expect("sent");
        let got = read_until(&mut stream, "\"tables\"").await;
        assert!(got.contains("content-type: text/event-stream"), "{got}");
        assert!(got.contains("event: state\ndata: {"), "{got}");
        match ends_by_session {
            true => {
                assert_eq!(door.send("DELETE /api/v1/session", &headers, "").await.status, 204);
            }
            false => door.site.live.end(),
        }
        // The last chunk of the body has no bytes.
        assert!(read_until(&mut stream, "\r\n0\r\n\r\n").await.ends_with("0\r\n\r\n"));
    }
}

#[tokio::test]
async fn elsewhere_than_on_loopback_there_are_metrics_only() {
    let own = local_address().await;
    let (address, _, inbox, ..) = open_with(&format!("{own}:0"), fixture::config_and(USERS)).await;
    fixture::answer_snapshots(inbox, WorkerSnapshot::default());
    for (path, wanted) in [("/metrics", 200), ("/healthz", 200), ("/", 403), ("/api/v1/state", 403)]
    {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
        let (status, _, body) = split(&talk(address, request.as_bytes()).await);
        assert_eq!(status, wanted, "{path}: {body}");
    }
}

/// An address of this machine that is none of loopback; the unspecified one if it has none.
async fn local_address() -> std::net::IpAddr {
    let socket = tokio::net::UdpSocket::bind("0.0.0.0:0").await.expect("a socket");
    // No packet is sent by this.
    let _ = socket.connect("192.0.2.1:9").await;
    socket.local_addr().expect("an address").ip()
}
