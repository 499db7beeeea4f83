//! The dashboard: its files, its log-in, its stream of states, its commands.
//!
//! | path | |
//! |---|---|
//! | `/`, `/assets/...` | the pages |
//! | `GET /api/v1/session` | who is logged in |
//! | `POST /api/v1/session` | logs in, by user and password or by a link's token |
//! | `DELETE /api/v1/session` | logs out |
//! | `GET /api/v1/state` | everything, as JSON |
//! | `GET /api/v1/stream` | the same once a second, as server-sent events |
//! | `GET /api/v1/history` | the figures of the last minutes |
//! | `POST /api/v1/command` | runs a command of the console |

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{header, HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::Router;
use http_body_util::LengthLimitError;
use serde_json::{json, Value};
use tokio::sync::watch;

use super::gate::{self, Proves, Standing, Way};
use super::live::{self, Text};
use super::refusal::Refusal;
use super::sessions::{role, Visitor, LINK_USER};
use super::site::Site;
use super::{assets, NO_SNIFF, NO_STORE};
use crate::console::command;
use crate::console::session;

/// Of a request's body.
const BODY_BYTES_MAX: usize = 64 << 10;
/// For it to arrive.
const BODY_WAIT: Duration = Duration::from_secs(10);

type Door = State<Arc<Site>>;
type Answer = Result<Response, Refusal>;

pub fn router() -> Router<Arc<Site>> {
    let session = get(who).post(log_in).delete(log_out);
    Router::new()
        .route("/api/v1/session", session)
        .route("/api/v1/state", get(state))
        .route("/api/v1/stream", get(stream))
        .route("/api/v1/history", get(history))
        .route("/api/v1/command", post(run))
        .fallback(file)
}

async fn file(
    State(site): Door,
    Extension(way): Extension<Way>,
    method: axum::http::Method,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let there = assets::serve(uri.path(), &headers);
    let Some(response) = there else {
        let hint = "/ is the dashboard; /metrics, /healthz and /readyz are for machines.";
        return Err(Refusal::new(StatusCode::NOT_FOUND, "P0507", "no such page", hint));
    };
    if method != axum::http::Method::GET && method != axum::http::Method::HEAD {
        return Ok(([(header::ALLOW, "GET,HEAD")], Refusal::wrong_method()).into_response());
    }
    gate::is_here(&site, way, &headers)?;
    Ok(response)
}

async fn who(State(site): Door, Extension(way): Extension<Way>, headers: HeaderMap) -> Answer {
    let visitor = gate::visitor(&site, way, &headers).await?;
    Ok(super::json(StatusCode::OK, &told(&visitor)))
}

fn told(visitor: &Visitor) -> Value {
    json!({
        "user": visitor.who.user,
        "role": if visitor.who.admin { "admin" } else { "stats" },
        "csrf": visitor.csrf.as_ref().map(|token| token.as_str()),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

async fn log_in(
    State(site): Door,
    Extension(way): Extension<Way>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    gate::enter(&site, way, &headers)?;
    let given = object(&headers, body).await?;
    let text = |name: &str| given[name].as_str();
    let config = site.process.config();
    let now = Instant::now();
    let cookie = match (text("token"), text("user"), text("password")) {
        (Some(token), None, None) => {
            if !site.sessions.take_link(token, now) {
                let message = "this link is not good, or not any more";
                let hint = "A link is good once, for 15 minutes. Log in with a password, or start \
                            `pondage` in a terminal, which prints one.";
                return Err(Refusal::new(StatusCode::UNAUTHORIZED, "P0502", message, hint));
            }
            site.sessions.open(LINK_USER, None, now)
        }
        (None, Some(user), Some(password)) => {
            gate::prove(&site, way, user, password, Proves::Once).await?;
            // It has been shown to be known, so there is one.
            let secret = config.secret(user).cloned();
            let secret = secret.filter(|_| role(&config, user).is_some());
            let secret = secret.ok_or_else(|| Refusal::wrong_password(user))?;
            site.sessions.open(user, Some(secret), now)
        }
        _ => {
            let hint = "Send {\"user\": ..., \"password\": ...} or {\"token\": ...}.";
            return Err(unfit("a log-in needs a user and a password, or a token", hint));
        }
    };
    let visitor = site.sessions.visitor(cookie.as_str(), &config, now);
    let visitor = visitor.ok_or_else(Refusal::log_in)?;
    tracing::info!(event = "http_login", user = %visitor.who.user, remote = %way.remote);
    let mut response = super::json(StatusCode::OK, &told(&visitor));
    set_cookie(&mut response, way, cookie.as_str(), None);
    Ok(response)
}

async fn log_out(State(site): Door, Extension(way): Extension<Way>, headers: HeaderMap) -> Answer {
    let visitor = gate::visitor(&site, way, &headers).await?;
    gate::is_meant(&visitor, &headers)?;
    if let Some(cookie) = gate::cookie(&headers, &way.cookie()) {
        site.sessions.close(cookie);
    }
    let mut response = (StatusCode::NO_CONTENT, [NO_STORE, NO_SNIFF]).into_response();
    set_cookie(&mut response, way, "", Some(0));
    Ok(response)
}

fn set_cookie(response: &mut Response, way: Way, value: &str, max_age: Option<u64>) {
    let age = max_age.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
    let name = way.cookie();
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{age}");
    // A token has hexadecimal digits only.
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
}

async fn state(State(site): Door, Extension(way): Extension<Way>, headers: HeaderMap) -> Answer {
    gate::visitor(&site, way, &headers).await?;
    Ok(super::json(StatusCode::OK, &live::now(&site).await))
}

async fn history(State(site): Door, Extension(way): Extension<Way>, headers: HeaderMap) -> Answer {
    gate::visitor(&site, way, &headers).await?;
    Ok(super::json(StatusCode::OK, &site.live.history()))
}

/// Ends with the session, with the connection's age, and when another process takes over; browsers
/// connect again.
async fn stream(State(site): Door, Extension(way): Extension<Way>, headers: HeaderMap) -> Answer {
    let visitor = gate::visitor(&site, way, &headers).await?;
    let Some(watch) = site.live.watch() else {
        let message = "too many watch already, or the process is about to end";
        let hint = "Close another window, or read /api/v1/state now and then.";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "P0508", message, hint));
    };
    let standing = Standing::of(&site, way, &headers, &visitor);
    let events = futures_util::stream::unfold(Watcher { site, standing, watch }, next);
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    Ok(([kind, NO_STORE, NO_SNIFF], Body::from_stream(events)).into_response())
}

struct Watcher {
    site: Arc<Site>,
    standing: Standing,
    watch: watch::Receiver<Option<Text>>,
}

async fn next(mut watcher: Watcher) -> Option<(Result<String, Infallible>, Watcher)> {
    watcher.watch.changed().await.ok()?;
    let text = watcher.watch.borrow_and_update().clone()?;
    // Whose session has ended sees no more.
    if !watcher.standing.holds(&watcher.site) {
        return None;
    }
    Some((Ok(format!("retry: 1000\nevent: state\ndata: {text}\n\n")), watcher))
}

async fn run(
    State(site): Door,
    Extension(way): Extension<Way>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let visitor = gate::visitor(&site, way, &headers).await?;
    gate::is_meant(&visitor, &headers)?;
    let given = object(&headers, body).await?;
    let hint = "Send {\"command\": \"SHOW POOLS\"}; SHOW HELP lists what there is.";
    let Some(text) = given["command"].as_str() else {
        return Err(unfit("a command is a text", hint));
    };
    let mut requests = command::parse(text.as_bytes())?.into_iter();
    let (Some(request), None) = (requests.next(), requests.next()) else {
        return Err(unfit("one command at a time", hint));
    };
    let (user, tag) = (&visitor.who.user, session::tag(&request, 0));
    tracing::info!(event = "http_command", user, remote = %way.remote, command = %tag);
    let answer = site.operator.run(&visitor.who, request).await;
    let table = answer.result?;
    let rows = table.as_ref().map_or(0, |table| table.rows.len());
    let mut told = table.as_ref().map_or_else(|| json!({}), live::table);
    told["tag"] = json!(if rows > 0 { format!("{tag} {rows}") } else { tag.into_owned() });
    let notices: Vec<&str> = answer.notices.iter().map(|notice| notice.message.as_str()).collect();
    told["notices"] = json!(notices);
    Ok(super::json(StatusCode::OK, &told))
}

/// A body of JSON. A page of another site could send a form without asking, but not this.
async fn object(headers: &HeaderMap, body: Body) -> Result<Value, Refusal> {
    let whole = axum::body::to_bytes(body, BODY_BYTES_MAX);
    // Who is slow to send it holds one of the door's places.
    let Ok(whole) = tokio::time::timeout(BODY_WAIT, whole).await else {
        let (message, hint) = ("the body did not come in time", "It has 10 s to come.");
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "P0509", message, hint));
    };
    let body = whole.map_err(|error| match error.source() {
        Some(why) if why.is::<LengthLimitError>() => {
            let (message, hint) = ("the body is too long", "64 KiB at the most.");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "P0509", message, hint)
        }
        _ => unfit("the body broke off", "Send as many bytes as Content-Length says."),
    })?;
    let kind = gate::text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json");
    let given = serde_json::from_slice(&body).ok().filter(|given: &Value| given.is_object());
    given.filter(|_| is_json).ok_or_else(|| {
        unfit("the body is no JSON object", "Send Content-Type: application/json and an object.")
    })
}

fn unfit(message: &str, hint: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "P0509", message, hint)
}
