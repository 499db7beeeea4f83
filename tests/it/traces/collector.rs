//! A collector of traces that speaks OTLP over HTTP, and holds what it gets against the
//! conventions.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::kit::wait;

/// Attributes of databases that the conventions have.
///
/// Source: OpenTelemetry semantic conventions, "Database" registry.
const DATABASE: [&str; 8] = [
    "db.collection.name",
    "db.namespace",
    "db.operation.name",
    "db.query.summary",
    "db.query.text",
    "db.response.status_code",
    "db.system.name",
    "db.operation.batch.size",
];

/// What it does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    Takes,
    Says(u16),
    /// The first so many get 503, then it takes.
    Busy(u32),
    /// It reads and never answers.
    Hangs,
}

#[derive(Debug)]
struct State {
    mood: Mood,
    spans: Vec<Span>,
    headers: Vec<String>,
    requests: usize,
}

/// One span, with plain attributes.
#[derive(Debug, Clone)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    pub kind: u64,
    pub failed: bool,
    pub nanos: (u128, u128),
    pub attributes: BTreeMap<String, String>,
}

pub struct Collector {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Collector {
    pub fn start(mood: Mood) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = State { mood, spans: Vec::new(), headers: Vec::new(), requests: 0 };
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Collector { port, state }
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn becomes(&self, mood: Mood) {
        self.state.lock().expect("a collector").mood = mood;
    }

    pub fn requests(&self) -> usize {
        self.state.lock().expect("a collector").requests
    }

    /// Heads of requests, lines in small letters.
    pub fn headers(&self) -> Vec<String> {
        self.state.lock().expect("a collector").headers.clone()
    }

    pub fn spans(&self) -> Vec<Span> {
        self.state.lock().expect("a collector").spans.clone()
    }

    /// Waits for a span of which this is true.
    #[track_caller]
    pub fn awaits(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        let found = wait::within(wait::DEADLINE, || self.spans().into_iter().find(&is_it));
        found.unwrap_or_else(|| panic!("no {what} in {:#?}", self.spans()))
    }

    /// The parts of a span, by name.
    pub fn parts(&self, of: &Span) -> BTreeMap<String, Span> {
        let parts = self.spans().into_iter().filter(|span| span.parent == of.id);
        parts.map(|span| (span.name.clone(), span)).collect()
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().expect("a length");
        }
        head.push_str(&line);
        head.push('\n');
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mood = {
        let mut state = state.lock().expect("a collector");
        state.requests += 1;
        state.headers.push(head);
        let mood = state.mood;
        match mood {
            Mood::Takes => state.spans.extend(read(&body)),
            Mood::Busy(0) => {
                state.mood = Mood::Takes;
                state.spans.extend(read(&body));
            }
            Mood::Busy(more) => state.mood = Mood::Busy(more - 1),
            Mood::Says(_) | Mood::Hangs => {}
        }
        mood
    };
    let status = match mood {
        Mood::Takes | Mood::Busy(0) => 200,
        Mood::Busy(_) => 503,
        Mood::Says(status) => status,
        Mood::Hangs => {
            std::thread::sleep(Duration::from_secs(120));
            return;
        }
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    let _ = (&stream).write_all(answer.as_bytes());
}

/// The spans of an ExportTraceServiceRequest; panics where it is not as it should be.
fn read(body: &[u8]) -> Vec<Span> {
    let request: Value = serde_json::from_slice(body).expect("JSON");
    let mut spans = Vec::new();
    for resource in request["resourceSpans"].as_array().expect("resourceSpans") {
        let about = attributes(&resource["resource"]["attributes"]);
        assert_eq!(about["service.name"], "pondage");
        assert!(!about["service.version"].is_empty());
        for scope in resource["scopeSpans"].as_array().expect("scopeSpans") {
            assert_eq!(scope["scope"]["name"], "pondage");
            spans.extend(scope["spans"].as_array().expect("spans").iter().map(span));
        }
    }
    spans
}

fn span(value: &Value) -> Span {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let nanos = |key: &str| text(key).parse().expect("nanoseconds, as a text");
    let span = Span {
        trace: text("traceId"),
        id: text("spanId"),
        parent: text("parentSpanId"),
        name: text("name"),
        kind: value["kind"].as_u64().expect("a kind"),
        failed: value["status"]["code"] == 2,
        nanos: (nanos("startTimeUnixNano"), nanos("endTimeUnixNano")),
        attributes: attributes(&value["attributes"]),
    };
    check(&span);
    span
}

fn attributes(list: &Value) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for pair in list.as_array().expect("attributes") {
        let key = pair["key"].as_str().expect("a key").to_owned();
        let value = pair["value"].as_object().expect("a value");
        let (kind, value) = value.iter().next().expect("one");
        let value = match (kind.as_str(), value) {
            ("stringValue", Value::String(text)) => text.clone(),
            ("intValue", Value::String(number)) => {
                number.parse::<i64>().expect("a number").to_string()
            }
            ("doubleValue", Value::Number(number)) => number.to_string(),
            _ => panic!("{pair}"),
        };
        let known = |byte: u8| byte.is_ascii_lowercase() || b"0123456789_.".contains(&byte);
        assert!(key.bytes().all(known), "{key}");
        assert!(all.insert(key, value).is_none(), "{pair} comes twice");
    }
    all
}

/// The conventions.
fn check(span: &Span) {
    let is_id = |id: &str, length| {
        id.len() == length
            && id.bytes().all(|byte| b"0123456789abcdef".contains(&byte))
            && id.bytes().any(|byte| byte != b'0')
    };
    assert!(is_id(&span.trace, 32) && is_id(&span.id, 16), "{span:?}");
    assert!(span.parent.is_empty() || is_id(&span.parent, 16), "{span:?}");
    assert!(!span.name.is_empty() && (1..=3).contains(&span.kind), "{span:?}");
    assert!(span.nanos.0 <= span.nanos.1 && span.nanos.0 > 1_600_000_000_000_000_000, "{span:?}");
    let all = &span.attributes;
    for key in all.keys().filter(|key| key.starts_with("db.")) {
        assert!(DATABASE.contains(&key.as_str()), "{key}");
    }
    if span.kind > 1 {
        assert_eq!(all["db.system.name"], "postgresql");
        assert!(!all["db.namespace"].is_empty());
        match all.get("db.query.summary") {
            Some(summary) => assert_eq!(*summary, span.name),
            None => assert_eq!(span.name, "postgresql"),
        }
    }
    if span.kind == 3 {
        assert_eq!(span.name, all.get("db.query.summary").map_or("postgresql", |name| name));
        assert!(all.contains_key("server.port"), "{span:?}");
    }
    assert_eq!(span.failed, all.contains_key("error.type"), "{span:?}");
    if let Some(code) = all.get("db.response.status_code") {
        assert_eq!((code.len(), Some(code)), (5, all.get("error.type")), "{span:?}");
    }
}
