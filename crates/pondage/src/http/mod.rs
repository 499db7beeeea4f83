//! The HTTP door: metrics, health and state. It reads; commands and the dashboard come later.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | Prometheus text |
//! | `/healthz` | 200 while every worker turns, else 503 |
//! | `/readyz` | 200 while clients can be served, else 503, with reasons |
//! | `/api/v1/state` | pools, workers and the read cache as JSON |
//! | `/` | links |

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{header, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::console::{view, Process};

mod cache_metrics;
mod cache_state;
mod exposition;
mod host_metrics;
mod lookup_metrics;
mod metrics;
mod procedure_metrics;
mod process;
mod redis_metrics;
mod state;

use cache_metrics::Caches;

/// Connections at one time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// A request's head, in bytes and in headers. No request here has a body.
const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// For the head of a request to arrive, the pause between two included.
const HEAD_WAIT: Duration = Duration::from_secs(30);
/// A connection is closed at this age, whatever it does; scrapers open another.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(300);
/// Workers that take longer count as stuck.
const WORKER_WAIT: Duration = Duration::from_secs(1);
/// After an accept that failed for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type Door = Arc<dyn Process>;

/// The pages.
pub fn router(process: Arc<dyn Process>) -> Router {
    Router::new()
        .route("/", get(links))
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/api/v1/state", get(state_page))
        .fallback(not_found)
        .with_state(process)
}

/// Serves until dropped, when open connections are closed, or until `retired`: then the listener
/// is closed and those connections go on to their ends.
///
/// # Errors
/// Those of the listener that do not pass.
pub async fn serve(
    listener: TcpListener,
    process: Arc<dyn Process>,
    retired: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut retired = std::pin::pin!(retired);
    let router = router(process);
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut retired => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) if passes(&error) => {
                tracing::warn!(event = "http_accept", %error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let router = router.clone();
        connections.spawn(async move {
            let _place = place;
            if tokio::time::timeout(CONNECTION_AGE_MAX, connection(stream, router)).await.is_err() {
                tracing::debug!(event = "http_closed", "a connection reached its age");
            }
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

/// Errors of one connection or of a moment without file descriptors, not of the listener.
fn passes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    ) || matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

async fn connection(stream: TcpStream, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await;
    if let Err(error) = served {
        tracing::debug!(event = "http_connection", %error);
    }
}

const NO_STORE: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");
const NO_SNIFF: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");

fn page(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, kind), NO_STORE, NO_SNIFF], body).into_response()
}

fn json(status: StatusCode, value: &serde_json::Value) -> Response {
    page(status, "application/json", state::text(value))
}

async fn links() -> Response {
    const LINKS: &str = concat!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Pondage</title>\n",
        "<h1>Pondage ",
        env!("CARGO_PKG_VERSION"),
        "</h1>\n<ul>\n",
        "<li><a href=\"/metrics\">/metrics</a>: Prometheus metrics\n",
        "<li><a href=\"/healthz\">/healthz</a>: does the process run\n",
        "<li><a href=\"/readyz\">/readyz</a>: can it serve clients\n",
        "<li><a href=\"/api/v1/state\">/api/v1/state</a>: pools, workers and the read cache as JSON\n",
        "</ul>\n</html>\n"
    );
    page(StatusCode::OK, "text/html; charset=utf-8", LINKS.to_owned())
}

async fn metrics_page(State(process): State<Door>) -> Response {
    let view = view::look(&*process, WORKER_WAIT).await;
    // Reading /proc blocks; a page without those figures is better than none.
    let usage = tokio::task::spawn_blocking(process::usage).await.unwrap_or_default();
    let caches = Caches::of(&*process);
    let redis = process.redis(false);
    let rooms = metrics::Rooms {
        caches: &caches,
        hosts: &process.hosts(),
        look_ups: &process.look_ups(),
        procedures: &process.procedures().list(),
        redis: redis.as_ref(),
    };
    let body = metrics::page(&view, &rooms, process.condition(), &usage);
    page(StatusCode::OK, exposition::CONTENT_TYPE, body)
}

async fn healthz(State(process): State<Door>) -> Response {
    let view = view::look(&*process, WORKER_WAIT).await;
    verdict(state::health(&view))
}

async fn readyz(State(process): State<Door>) -> Response {
    let view = view::look(&*process, WORKER_WAIT).await;
    let redis = process.redis(false);
    verdict(state::readiness(&view, redis.as_ref(), process.condition(), &process.config()))
}

async fn state_page(State(process): State<Door>) -> Response {
    let view = view::look(&*process, WORKER_WAIT).await;
    let mut state = state::state(&view, process.condition());
    let caches = Caches::of(&*process);
    state["cache"] = cache_state::cache(&process.config(), &caches, &process.pins().all());
    json(StatusCode::OK, &state)
}

fn verdict(result: Result<serde_json::Value, serde_json::Value>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(value) => json(StatusCode::SERVICE_UNAVAILABLE, &value),
    }
}

async fn not_found() -> Response {
    let body = "There is no such page. See / for those there are.\n";
    page(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", body.to_owned())
}

#[cfg(test)]
mod tests;
