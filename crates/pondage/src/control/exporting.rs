//! Sends what was sampled to a collector: OTLP over HTTP, in JSON.
//!
//! What comes within [`GATHER`] goes together. While a collector is slow or away the queue fills,
//! and what does not fit into it is dropped and counted; nobody waits for it.
//!
//! Source: OpenTelemetry Protocol Specification, "OTLP/HTTP".

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::client_tls;
use super::transport::{Transport, Wire};
use super::Control;
use crate::config::otlp::Otlp;
use crate::config::{ChannelBinding, ServerTls, ServerTlsMode, TlsNegotiation, TlsVersions};
use crate::export::{otlp, Sampled};

/// How long the first of a batch waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// Statements that are sent together.
const BATCH_MAX: usize = 512;

/// How often a batch is sent that the collector could not take, and how long it waits before the
/// second time; twice as long before each more.
const TRIES: u32 = 4;
const BACK_OFF: Duration = Duration::from_secs(1);

/// Of what a collector answers no more is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

const AGENT: &str = concat!("pondage/", env!("CARGO_PKG_VERSION"));

/// What became of one try.
enum Tried {
    /// So many were not to its liking.
    Taken {
        rejected: usize,
    },
    /// It may be taken the next time.
    Busy(String),
    Refused(String),
}

/// What is kept between batches.
#[derive(Default)]
struct Exporter {
    tls: Option<Arc<ClientConfig>>,
    /// The last batch came to nothing, and somebody was told so.
    failing: bool,
}

impl Control {
    /// Sends batches for ever.
    pub(super) async fn keep_exporting(self: Arc<Self>) {
        let Some(mut outbox) = self.outbox.open() else { return };
        let mut exporter = Exporter::default();
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while let Some(first) = outbox.recv().await {
            batch.push(first);
            tokio::time::sleep(GATHER).await;
            while batch.len() < BATCH_MAX {
                let Ok(next) = outbox.try_recv() else { break };
                batch.push(next);
            }
            let to = self.config.load().telemetry.otlp.clone();
            match to {
                Some(to) => self.export(&mut exporter, &to, &batch).await,
                None => self.outbox.dropped(batch.len()),
            }
            batch.clear();
        }
    }

    async fn export(&self, exporter: &mut Exporter, to: &Otlp, batch: &[Box<Sampled>]) {
        let body = Bytes::from(otlp::request(batch).to_string());
        let mut pause = BACK_OFF;
        let mut why = String::new();
        for again in (0..TRIES).rev() {
            let tried = tokio::time::timeout(to.timeout, exporter.post(to, body.clone())).await;
            match tried.unwrap_or_else(|_| Tried::Busy("it takes too long".to_owned())) {
                Tried::Taken { rejected } => {
                    let rejected = rejected.min(batch.len());
                    self.outbox.failed(rejected);
                    self.outbox.sent(batch.len() - rejected);
                    exporter.works(to);
                    return;
                }
                Tried::Refused(reason) => {
                    why = reason;
                    break;
                }
                Tried::Busy(reason) => why = reason,
            }
            exporter.tls = None;
            if again > 0 {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
        self.outbox.failed(batch.len());
        exporter.fails(to, &why);
    }
}

impl Exporter {
    fn works(&mut self, to: &Otlp) {
        if std::mem::take(&mut self.failing) {
            let collector = to.authority();
            tracing::info!(event = "export_resumed", %collector, "traces are taken again");
        }
    }

    /// Said once, until it works again.
    fn fails(&mut self, to: &Otlp, why: &str) {
        if !std::mem::replace(&mut self.failing, true) {
            let collector = to.authority();
            tracing::warn!(event = "export_failed", %collector, "traces are lost: {why}");
        }
    }

    async fn post(&mut self, to: &Otlp, body: Bytes) -> Tried {
        let stream = match self.connect(to).await {
            Ok(stream) => stream,
            Err(error) => return Tried::Busy(format!("cannot connect: {error}")),
        };
        match send(to, stream, body).await {
            Ok(tried) => tried,
            Err(error) => Tried::Busy(error.to_string()),
        }
    }

    async fn connect(&mut self, to: &Otlp) -> io::Result<Transport> {
        let wire = Wire::Tcp(TcpStream::connect((&*to.host, to.port)).await?);
        if !to.https {
            return Ok(Transport::Plain(wire));
        }
        let config = match &self.tls {
            Some(config) => config.clone(),
            None => {
                let mut config = client_tls::build(&verified())
                    .map_err(|error| io::Error::other(format!("{} {}", error.what, error.why)))?;
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                self.tls.insert(Arc::new(config)).clone()
            }
        };
        let name = ServerName::try_from(to.host.clone()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(config).connect(name, wire).await?;
        Ok(Transport::Client(Box::new(stream)))
    }
}

/// By the authorities of the system.
fn verified() -> ServerTls {
    ServerTls {
        mode: ServerTlsMode::VerifyFull,
        ca: None,
        cert: None,
        key: None,
        binding: ChannelBinding::Disable,
        negotiation: TlsNegotiation::Direct,
        versions: TlsVersions::default(),
    }
}

async fn send(to: &Otlp, stream: Transport, body: Bytes) -> Result<Tried, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the sender.
    let driving = tokio::spawn(connection);
    let mut request = Request::post(&*to.path)
        .header(HOST, to.authority())
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json");
    for (name, value) in &to.headers {
        request = request.header(name, value);
    }
    let request = match request.body(Full::new(body)) {
        Ok(request) => request,
        Err(error) => return Ok(Tried::Refused(error.to_string())),
    };
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let said = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    driving.abort();
    Ok(match status {
        status if status.is_success() => {
            Tried::Taken { rejected: said.map_or(0, |said| rejected(&said.to_bytes())) }
        }
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Tried::Busy(format!("it says {status}")),
        status => Tried::Refused(format!("it says {status}")),
    })
}

/// Spans that an ExportTraceServiceResponse refuses.
fn rejected(answer: &[u8]) -> usize {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedSpans"];
    let text = count.as_str().and_then(|text| text.parse().ok());
    text.or_else(|| count.as_u64()).and_then(|count| count.try_into().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_collector_refuses_is_read_in_either_form() {
        for (answer, count) in [
            ("{}", 0),
            ("", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"7\"}}", 7),
            ("{\"partialSuccess\":{\"rejectedSpans\":7}}", 7),
            ("{\"partialSuccess\":{\"rejectedSpans\":-7}}", 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), count, "{answer}");
        }
    }
}
