//! The HTTP door: metrics and health for machines, the [`dashboard`] for people.
//!
//! | path | answer |
//! |---|---|
//! | `/metrics` | Prometheus text |
//! | `/healthz` | 200 while every worker turns, else 503 |
//! | `/readyz` | 200 while clients can be served, else 503, with reasons |
//! | all others | the dashboard and its API |

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{header, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, Semaphore};

use crate::console::view;
use crate::worker::snapshot::Detail;

mod assets;
mod cache_metrics;
mod cache_state;
mod dashboard;
mod exposition;
pub mod families;
mod gate;
mod host_metrics;
mod live;
mod lookup_metrics;
mod metrics;
mod overview;
mod procedure_metrics;
mod process;
mod redis_metrics;
mod refusal;
mod sessions;
mod site;
mod state;
mod trace_metrics;

use cache_metrics::Caches;
use gate::Way;
use refusal::Refusal;
pub use site::Site;

/// Connections at one time; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// A request's head, in bytes and in headers.
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

type Door = State<Arc<Site>>;

/// The pages.
fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/metrics", get(metrics_page))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .merge(dashboard::router())
        .method_not_allowed_fallback(|| async { Refusal::wrong_method() })
        .with_state(site)
}

/// Serves until dropped, when open connections are closed, or until `retired`: then the listener
/// is closed, and those connections end with the requests they are in.
///
/// # Errors
/// Those of the listener that do not pass.
pub async fn serve(
    listener: TcpListener,
    site: Arc<Site>,
    retired: impl Future<Output = ()>,
) -> io::Result<()> {
    let mut retired = std::pin::pin!(retired);
    let router = router(site.clone());
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (leaving, _) = watch::channel(false);
    let mut connections = tokio::task::JoinSet::new();
    let mut keeper = tokio::task::JoinSet::new();
    keeper.spawn(live::keep(site.clone()));
    loop {
        while connections.try_join_next().is_some() {}
        // Also while it is full: connections may be held open for minutes.
        let place = tokio::select! {
            place = room.clone().acquire_owned() => place,
            () = &mut retired => break,
        };
        let Ok(place) = place else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut retired => break,
        };
        let accepted = accepted.and_then(|(stream, remote)| {
            let way = Way { remote, local: stream.local_addr()? };
            Ok((stream, way))
        });
        let (stream, way) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if passes(&error) => {
                tracing::warn!(event = "http_accept", %error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let (router, leave) = (router.clone().layer(Extension(way)), leaving.subscribe());
        connections.spawn(async move {
            let _place = place;
            let served = connection(stream, router, leave);
            if tokio::time::timeout(CONNECTION_AGE_MAX, served).await.is_err() {
                tracing::debug!(event = "http_closed", "a connection reached its age");
            }
        });
    }
    drop(listener);
    keeper.abort_all();
    site.live.end();
    leaving.send_replace(true);
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

async fn connection(stream: TcpStream, router: Router, mut leave: watch::Receiver<bool>) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    let leaves = async move {
        let _ = leave.wait_for(|leave| *leave).await;
    };
    let ended = tokio::select! {
        ended = &mut served => ended,
        // The next request is for the process that has taken over.
        () = leaves => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
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

async fn metrics_page(State(site): Door) -> Response {
    let process = &*site.process;
    let view = view::look(process, WORKER_WAIT, Detail::POOLS).await;
    // Reading /proc blocks; a page without those figures is better than none.
    let usage = tokio::task::spawn_blocking(process::usage).await.unwrap_or_default();
    let caches = Caches::of(process);
    let redis = process.redis(false);
    let rooms = metrics::Rooms {
        caches: &caches,
        hosts: &process.hosts(),
        look_ups: &process.look_ups(),
        procedures: &process.procedures().list(),
        traces: process.traces(),
        redis: redis.as_ref(),
    };
    let body = metrics::page(&view, &rooms, process.condition(), &usage);
    page(StatusCode::OK, exposition::CONTENT_TYPE, body)
}

async fn healthz(State(site): Door) -> Response {
    let process = &*site.process;
    let view = view::look(process, WORKER_WAIT, Detail::POOLS).await;
    verdict(state::health(&view))
}

async fn readyz(State(site): Door) -> Response {
    let process = &*site.process;
    let view = view::look(process, WORKER_WAIT, Detail::POOLS).await;
    let redis = process.redis(false);
    verdict(state::readiness(&view, redis.as_ref(), process.condition(), &process.config()))
}

fn verdict(result: Result<serde_json::Value, serde_json::Value>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(value) => json(StatusCode::SERVICE_UNAVAILABLE, &value),
    }
}

#[cfg(test)]
mod dashboard_tests;
#[cfg(test)]
mod tests;
