//! Who may come in: what every request to the dashboard and its API has to show.
//!
//! A browser sends requests for any page that is open in it, so being on this machine proves
//! nothing. `Host` has to be an address, `localhost` or a name that is configured: another site's
//! name that leads here (DNS rebinding) is neither. `Origin` has to be this door. What changes
//! something has to carry the session's CSRF token, which another site can't read.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::http::{header, HeaderMap, StatusCode};
use base64::prelude::{Engine, BASE64_STANDARD};
use subtle::ConstantTimeEq;
use wire::pg::auth::Secret;

use super::refusal::Refusal;
use super::sessions::{role, Visitor};
use super::site::Site;

/// What a command's request carries beside the cookie.
pub const CSRF: &str = "x-pondage-csrf";
/// Of user names and passwords.
const CREDENTIAL_BYTES_MAX: usize = 1_024;

/// How a request came.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub remote: SocketAddr,
    pub local: SocketAddr,
}

impl Way {
    /// Nobody on the way can read or change it.
    fn is_private(self) -> bool {
        self.local.ip().to_canonical().is_loopback()
    }

    /// Cookies know no ports: two gateways on one machine have cookies of their own.
    pub fn cookie(self) -> String {
        format!("pondage_{}", self.local.port())
    }
}

/// Whether the dashboard is served here and by this name. Its files may be linked to from anywhere.
pub fn is_here(site: &Site, way: Way, headers: &HeaderMap) -> Result<(), Refusal> {
    if !way.is_private() {
        let message = "the dashboard is served on a loopback address only";
        let hint = "Use ssh -L 6433:127.0.0.1:6433, or a proxy on this machine that speaks TLS. \
                    /metrics, /healthz and /readyz are served here.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "P0506", message, hint));
    }
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let config = site.process.config();
    let is_named = |name: &str| {
        name.eq_ignore_ascii_case("localhost")
            || config.listen.http_names.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    let name = name_of(host);
    if !is_address(name) && !is_named(name) {
        let message = format!("\"{}\" is no name of this gateway", name.escape_debug());
        let hint = "Use its address, or list the name in listen.http_names.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "P0504", message, hint));
    }
    Ok(())
}

/// The same for what is asked or told: by pages of its own only.
pub fn enter(site: &Site, way: Way, headers: &HeaderMap) -> Result<(), Refusal> {
    is_here(site, way, headers)?;
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let foreign = text(headers, header::ORIGIN.as_str()).is_some_and(|origin| {
        let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        from.is_none_or(|from| !from.eq_ignore_ascii_case(host))
    });
    let from = text(headers, "sec-fetch-site").unwrap_or("none");
    if foreign || !matches!(from, "none" | "same-origin") {
        let message = "the request comes from another site";
        let hint = "Open the dashboard itself; other pages may not use it.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "P0505", message, hint));
    }
    Ok(())
}

/// Who asks: by the session's cookie, or by a password that comes with the request.
pub async fn visitor(site: &Site, way: Way, headers: &HeaderMap) -> Result<Visitor, Refusal> {
    enter(site, way, headers)?;
    let config = site.process.config();
    if let Some(cookie) = cookie(headers, &way.cookie()) {
        if let Some(visitor) = site.sessions.visitor(cookie, &config, Instant::now()) {
            return Ok(visitor);
        }
    }
    let Some((user, password)) = basic(headers) else { return Err(Refusal::log_in()) };
    // Sent with each request: it must not make others' wrong ones forgotten.
    prove(site, way, &user, &password, Proves::Each).await?;
    let who = role(&config, &user).ok_or_else(|| Refusal::wrong_password(&user))?;
    Ok(Visitor { who, csrf: None })
}

/// What a stream was opened with, to be looked at again while it goes on.
pub enum Standing {
    Cookie(String),
    User(String, Option<Secret>),
}

impl Standing {
    /// Of a visitor who was let in with these headers.
    pub fn of(site: &Site, way: Way, headers: &HeaderMap, visitor: &Visitor) -> Standing {
        match cookie(headers, &way.cookie()).filter(|_| visitor.csrf.is_some()) {
            Some(cookie) => Standing::Cookie(cookie.to_owned()),
            None => {
                let user = visitor.who.user.clone();
                let secret = site.process.config().secret(&user).cloned();
                Standing::User(user, secret)
            }
        }
    }

    /// Whether it is still good. Looking on is no use of a session: it ends all the same.
    pub fn holds(&self, site: &Site) -> bool {
        let config = site.process.config();
        match self {
            Standing::Cookie(cookie) => site.sessions.is_open(cookie, &config, Instant::now()),
            Standing::User(user, secret) => {
                role(&config, user).is_some() && config.secret(user) == secret.as_ref()
            }
        }
    }
}

/// That what is to be changed is asked for by the page itself.
pub fn is_meant(visitor: &Visitor, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(csrf) = &visitor.csrf else { return Ok(()) };
    let shown = text(headers, CSRF).unwrap_or_default();
    if bool::from(shown.as_bytes().ct_eq(csrf.as_str().as_bytes())) {
        return Ok(());
    }
    let message = "the request does not carry its session's token";
    let hint = "Send the header X-Pondage-CSRF with what GET /api/v1/session gives as csrf.";
    Err(Refusal::new(StatusCode::FORBIDDEN, "P0505", message, hint))
}

/// How often a password is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proves {
    Once,
    /// With each request.
    Each,
}

/// That `password` is the user's, who waits longer with each wrong one.
pub async fn prove(
    site: &Site,
    way: Way,
    user: &str,
    password: &str,
    proves: Proves,
) -> Result<(), Refusal> {
    if user.len().max(password.len()) > CREDENTIAL_BYTES_MAX {
        return Err(Refusal::wrong_password("..."));
    }
    let Some(wait) = site.sessions.attempt(way.remote, user, Instant::now()) else {
        let message = "too many failed log-ins from this address";
        let hint = "Try again in a minute.";
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, "P0503", message, hint));
    };
    tokio::time::sleep(wait).await;
    let known = role(&site.process.config(), user).is_some();
    let right = site.process.check_password(user, password).await && known;
    if !right || proves == Proves::Once {
        site.sessions.tried(way.remote, user, right, Instant::now());
    }
    if right {
        return Ok(());
    }
    tracing::warn!(event = "http_login_failed", user, remote = %way.remote);
    Err(Refusal::wrong_password(user))
}

pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|one| one.to_str().ok());
    let mut pairs = all.flat_map(|one| one.split(';')).filter_map(|one| one.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let given = text(headers, header::AUTHORIZATION.as_str())?;
    let (scheme, encoded) = given.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// A Host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_addresses_and_ports() {
        for (host, name, address) in [
            ("127.0.0.1:6433", "127.0.0.1", true),
            ("[::1]:6433", "::1", true),
            ("[::1]", "::1", true),
            ("localhost", "localhost", false),
            ("evil.example:6433", "evil.example", false),
            ("127.0.0.1.evil.example", "127.0.0.1.evil.example", false),
            ("", "", false),
        ] {
            assert_eq!((name_of(host), is_address(name_of(host))), (name, address), "{host}");
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, "a=1; pondage_6433=x; b=".parse().expect("a value"));
        headers.append(header::COOKIE, "pondage_6434=y".parse().expect("a value"));
        assert_eq!(cookie(&headers, "pondage_6433"), Some("x"));
        assert_eq!(cookie(&headers, "pondage_6434"), Some("y"));
        assert_eq!((cookie(&headers, "b"), cookie(&headers, "c")), (Some(""), None));
    }
}
