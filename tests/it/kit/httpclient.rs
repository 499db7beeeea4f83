//! A client of the HTTP door that speaks HTTP byte by byte: as the dashboard does, and as it should
//! not be spoken.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{json, Value};

use super::wait::DEADLINE;

/// What came back, whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// In small letters.
    pub head: String,
    pub body: String,
}

/// Somebody who has logged in: the cookie, and the token that commands have to carry.
#[derive(Debug, Clone)]
pub struct Visitor {
    pub port: u16,
    pub cookie: String,
    pub csrf: String,
}

/// Server-sent events of one visitor.
pub struct Events {
    reader: BufReader<TcpStream>,
    head: String,
}

impl Answer {
    /// Of bytes; `None` where the head is not whole.
    fn of(bytes: &[u8]) -> Option<Answer> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The status and the code of an error. It has to have a message, and a hint if it is the
    /// door's own; the console's may be without.
    #[track_caller]
    pub fn refusal(&self) -> (u16, String) {
        let error = self.json()["error"].clone();
        let part = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        let code = part("code");
        assert!(!part("message").is_empty(), "{self:?}");
        assert!(!part("hint").is_empty() || !code.starts_with("P05"), "{self:?}");
        (self.status, code)
    }
}

/// Sends bytes, however they are, and reads to the end; `None` where no whole head came.
#[track_caller]
pub fn exchange(port: u16, bytes: &[u8]) -> Option<Answer> {
    let mut stream = connect(port);
    // Who refuses may close before all is written.
    let _ = stream.write_all(bytes);
    answer(stream)
}

#[track_caller]
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the HTTP door");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// All that comes until the door closes.
#[track_caller]
pub fn answer(mut stream: TcpStream) -> Option<Answer> {
    let mut got = Vec::new();
    let mut part = [0; 65536];
    loop {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => got.extend_from_slice(&part[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(e) => panic!("{e} after {}", got.escape_ascii()),
        }
    }
    Answer::of(&got)
}

/// A request as text; `Host` is added where `headers` have none.
pub fn request(line: &str, headers: &[String], body: &str) -> String {
    let named = |name: &str| headers.iter().any(|header| header.starts_with(name));
    let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
    if !named("Host:") {
        text += "Host: localhost\r\n";
    }
    if !body.is_empty() && !named("Content-Length:") {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    for header in headers {
        text += &format!("{header}\r\n");
    }
    text + "\r\n" + body
}

const JSON: &str = "Content-Type: application/json";

/// POSTs a log-in.
#[track_caller]
pub fn log_in(port: u16, user: &str, password: &str) -> Answer {
    let given = json!({ "user": user, "password": password }).to_string();
    let text = request("POST /api/v1/session", &[JSON.to_owned()], &given);
    exchange(port, text.as_bytes()).expect("an answer")
}

impl Visitor {
    #[track_caller]
    pub fn log_in(port: u16, user: &str, password: &str) -> Visitor {
        let answer = log_in(port, user, password);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).expect("a cookie");
        let csrf = answer.json()["csrf"].as_str().expect("a token").to_owned();
        Visitor { port, cookie: cookie.to_owned(), csrf }
    }

    /// What a browser sends along.
    pub fn headers(&self) -> Vec<String> {
        vec![format!("Cookie: {}", self.cookie), format!("X-Pondage-CSRF: {}", self.csrf)]
    }

    #[track_caller]
    pub fn ask(&self, line: &str) -> Answer {
        let text = request(line, &self.headers(), "");
        exchange(self.port, text.as_bytes()).expect("an answer")
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"))
    }

    /// Has the door run a command of the console.
    #[track_caller]
    pub fn command(&self, command: &str) -> Answer {
        let mut headers = self.headers();
        headers.push(JSON.to_owned());
        let body = json!({ "command": command }).to_string();
        let text = request("POST /api/v1/command", &headers, &body);
        exchange(self.port, text.as_bytes()).expect("an answer")
    }

    /// Opens the stream of states.
    #[track_caller]
    pub fn events(&self) -> Events {
        let mut stream = connect(self.port);
        let text = request("GET /api/v1/stream", &self.headers(), "");
        stream.write_all(text.as_bytes()).expect("sent");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.read_line(&mut head).expect("a line");
            assert!(read > 0, "closed within the head: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        Events { reader, head: head.to_lowercase() }
    }
}

impl Events {
    /// The next state as it was written; `None` at the end, which has to be an orderly one.
    #[track_caller]
    pub fn next(&mut self) -> Option<String> {
        assert!(self.head.contains("transfer-encoding: chunked"), "{}", self.head);
        let chunk = self.chunk();
        if chunk.is_empty() {
            return None;
        }
        let data = chunk.lines().find_map(|line| line.strip_prefix("data: "));
        let data = data.unwrap_or_else(|| panic!("no data in {chunk}")).to_owned();
        assert!(chunk.contains("\nevent: state\n"), "{chunk}");
        Some(data)
    }

    /// Waits for its end.
    #[track_caller]
    pub fn ended(mut self) {
        let end = std::time::Instant::now() + DEADLINE;
        while self.next().is_some() {
            assert!(std::time::Instant::now() < end, "it goes on");
        }
    }

    #[track_caller]
    fn chunk(&mut self) -> String {
        let mut size = String::new();
        self.reader.read_line(&mut size).expect("the size of a chunk");
        let size = usize::from_str_radix(size.trim(), 16).expect("a number of bytes");
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).expect("a chunk");
        String::from_utf8_lossy(&chunk[..size]).into_owned()
    }
}
