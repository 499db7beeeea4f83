//! Samples as OTLP/HTTP has them in JSON.
//!
//! ```text
//! SELECT accounts             SERVER    what the client has asked for
//! ├─ cache                    INTERNAL  it was waited for, or has answered
//! ├─ wait                     INTERNAL  for a server
//! ├─ set up                   INTERNAL  that server was prepared
//! └─ SELECT accounts          CLIENT    from there to the end of the answer
//! ```
//!
//! Source: opentelemetry-proto, trace.proto and "JSON Protobuf Encoding"; OpenTelemetry's semantic
//! conventions, "Database client spans" and "PostgreSQL".

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{json, Value};
use wire::pg::replication::Lsn;

use super::{End, Sampled, TEXT_BYTES_MAX};
use crate::link::Ends;
use crate::session::trace::{Engine, Fresh};

/// Values of SpanKind.
const INTERNAL: u32 = 1;
const SERVER: u32 = 2;
const CLIENT: u32 = 3;

/// The status of what has failed.
const ERROR: u32 = 2;

/// The error of a statement whose connection has ended.
const LOST: &str = "connection_lost";

/// A summary is to be of low cardinality, and so short.
const SUMMARY_BYTES_MAX: usize = 255;

/// An ExportTraceServiceRequest.
pub fn request(samples: &[Box<Sampled>]) -> Value {
    let spans: Vec<Value> = samples.iter().flat_map(|sampled| spans(sampled)).collect();
    let version = env!("CARGO_PKG_VERSION");
    let resource = attributes([
        ("service.name", text("pondage")),
        ("service.version", text(version)),
        ("process.pid", number(std::process::id().into())),
    ]);
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": { "name": "pondage", "version": version }, "spans": spans }],
    }] })
}

fn text(text: impl Into<String>) -> Value {
    json!({ "stringValue": text.into() })
}

/// Numbers of 64 bits are texts.
fn number(number: i64) -> Value {
    json!({ "intValue": number.to_string() })
}

fn seconds(time: Duration) -> Value {
    json!({ "doubleValue": time.as_secs_f64() })
}

fn attributes(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let pair = |(key, value): (&str, Value)| json!({ "key": key, "value": value });
    pairs.into_iter().map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// Of which trace, below which span.
struct Place {
    trace: String,
    parent: String,
}

struct Part {
    name: String,
    kind: u32,
    began: SystemTime,
    ended: SystemTime,
    attributes: Vec<(&'static str, Value)>,
    error: Option<String>,
}

impl Part {
    fn span(self, id: &str, place: &Place) -> Value {
        let mut all = self.attributes;
        let mut status = json!({});
        if let Some(error) = self.error {
            status = json!({ "code": ERROR });
            if error != LOST {
                all.push(("db.response.status_code", text(&*error)));
            }
            all.push(("error.type", text(error)));
        }
        json!({
            "traceId": place.trace,
            "spanId": id,
            "parentSpanId": place.parent,
            "flags": 1,
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": nanos(self.began),
            "endTimeUnixNano": nanos(self.ended),
            "attributes": attributes(all),
            "status": status,
        })
    }
}

/// The statement, and what it was made of.
fn spans(sampled: &Sampled) -> Vec<Value> {
    let id = hex(&rand::random::<[u8; 8]>());
    let (trace, parent) = match &sampled.parent {
        Some(parent) => (hex(&parent.trace), hex(&parent.span)),
        None => (hex(&rand::random::<[u8; 16]>()), String::new()),
    };
    let whole = whole(sampled);
    let parts = parts(sampled, &whole);
    let below = Place { trace: trace.clone(), parent: id.clone() };
    let mut all = vec![whole.span(&id, &Place { trace, parent })];
    all.extend(parts.into_iter().map(|part| part.span(&hex(&rand::random::<[u8; 8]>()), &below)));
    all
}

/// What the conventions say of any operation of a database.
fn operation(sampled: &Sampled) -> (String, Vec<(&'static str, Value)>) {
    let mut all =
        vec![("db.system.name", text("postgresql")), ("db.namespace", text(&*sampled.database))];
    let normal = normal(sampled.text.bytes());
    let summary = normal.as_deref().and_then(summary);
    if let Some((operation, summary)) = &summary {
        all.push(("db.operation.name", text(&**operation)));
        all.push(("db.query.summary", text(&**summary)));
    }
    all.extend(normal.map(|normal| ("db.query.text", text(normal))));
    (summary.map_or_else(|| "postgresql".to_owned(), |(_, summary)| summary), all)
}

fn server(sampled: &Sampled) -> Vec<(&'static str, Value)> {
    let Some((ends, pid)) = &sampled.journey.server else { return Vec::new() };
    let mut all = match ends {
        Ends::Tcp { remote, .. } => address(["server.address", "server.port"], remote),
        Ends::Unix { port, .. } => vec![("server.port", number((*port).into()))],
    };
    all.push(("pondage.server_pid", number((*pid).into())));
    all
}

fn address(names: [&'static str; 2], address: &SocketAddr) -> Vec<(&'static str, Value)> {
    let host = address.ip().to_canonical().to_string();
    vec![(names[0], text(host)), (names[1], number(address.port().into()))]
}

fn error(end: End) -> Option<String> {
    match end {
        End::Done => None,
        End::Failed(code) => Some(String::from_utf8_lossy(&code).into_owned()),
        End::Lost => Some(LOST.to_owned()),
    }
}

fn whole(sampled: &Sampled) -> Part {
    let journey = &sampled.journey;
    let (name, mut all) = operation(sampled);
    all.extend(server(sampled));
    if let Ends::Tcp { remote, .. } = &sampled.client {
        all.extend(address(["client.address", "client.port"], remote));
    }
    all.push(("pondage.user", text(&*sampled.user)));
    all.push(("pondage.client_id", number(sampled.client_id.cast_signed())));
    all.push(("pondage.engine", text(journey.engine.name())));
    all.push(("pondage.wait_seconds", seconds(journey.wait + journey.cache_wait)));
    match journey.engine {
        Engine::Trip(size) | Engine::Train(size) => {
            all.push(("pondage.company", number(size.into())));
        }
        Engine::Cache(fresh) | Engine::Mirror(fresh) => all.extend(freshness(fresh)),
        Engine::Pool | Engine::Here => {}
    }
    Part {
        name,
        kind: SERVER,
        began: sampled.began,
        ended: sampled.began + sampled.took,
        attributes: all,
        error: error(sampled.end),
    }
}

fn freshness(fresh: Fresh) -> Vec<(&'static str, Value)> {
    let mut all = vec![("pondage.fresh_lsn", text(Lsn(fresh.lsn).to_string()))];
    all.extend(fresh.age.map(|age| ("pondage.fresh_seconds", seconds(age))));
    all
}

/// One behind the other, the last one up to the end.
fn parts(sampled: &Sampled, whole: &Part) -> Vec<Part> {
    let journey = &sampled.journey;
    let mut parts = Vec::new();
    let mut until = whole.ended;
    let mut part = |name: &str, kind, took: Duration, attributes, error| {
        // What is told of a part is never before the whole.
        let began = until.checked_sub(took).unwrap_or(until).max(whole.began);
        let name = name.to_owned();
        parts.push(Part { name, kind, began, ended: until, attributes, error });
        until = began;
    };
    let answers = matches!(journey.engine, Engine::Cache(_) | Engine::Mirror(_));
    if journey.server.is_some() {
        let (name, mut all) = operation(sampled);
        all.extend(server(sampled));
        part(&name, CLIENT, journey.at_server, all, error(sampled.end));
        if !journey.set_up.is_zero() {
            part("set up", INTERNAL, journey.set_up, Vec::new(), None);
        }
        part("wait", INTERNAL, journey.wait, Vec::new(), None);
    }
    if answers || !journey.cache_wait.is_zero() {
        let all = match journey.engine {
            Engine::Cache(fresh) | Engine::Mirror(fresh) => freshness(fresh),
            _ => Vec::new(),
        };
        part("cache", INTERNAL, journey.cache_wait, all, None);
    }
    parts
}

/// The text without values; none: it can't be read, or is too long.
fn normal(text: &[u8]) -> Option<String> {
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let mut scan = sql::Scan::default();
    scan.scan(text).then(|| String::from_utf8_lossy(&sql::normal(scan.shape())).into_owned())
}

/// The operation, and with what it works on: `SELECT accounts`.
fn summary(normal: &str) -> Option<(String, String)> {
    let parts = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$'));
    let mut words = normal.split(parts).filter(|word| !word.is_empty());
    let operation =
        words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
    let target = match operation {
        "select" | "delete" => words.skip_while(|word| *word != "from").nth(1),
        "insert" => words.skip_while(|word| *word != "into").nth(1),
        "merge" => words.skip_while(|word| *word != "into").nth(1),
        "update" | "call" => words.find(|word| *word != "only"),
        _ => None,
    };
    let is_name = |target: &&str| {
        let first = target.chars().next();
        first.is_some_and(|first| first.is_alphabetic() || matches!(first, '_' | '"'))
            // A name with blanks has been cut.
            && target.matches('"').count() % 2 == 0
            && !["select", "lateral", "only"].contains(target)
    };
    let operation = operation.to_ascii_uppercase();
    let summary = match target.filter(is_name) {
        Some(target) => format!("{operation} {target}"),
        None => operation.clone(),
    };
    (summary.len() <= SUMMARY_BYTES_MAX).then_some((operation, summary))
}

#[cfg(test)]
mod tests;
