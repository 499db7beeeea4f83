//! Where sampled statements are told, and how many.

use std::fmt;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use hyper::Uri;

/// What every collector has behind its base address.
///
/// Source: OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP".
const PATH: &str = "/v1/traces";

#[derive(Clone, PartialEq, Eq)]
pub struct Otlp {
    pub https: bool,
    pub host: String,
    pub port: u16,
    pub path: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub timeout: Duration,
    /// One statement of so many; 0: none but those whose `traceparent` asks for it.
    pub one_in: u32,
}

/// Headers may be secrets.
impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("path", &self.path)
            .field("https", &self.https)
            .field("timeout", &self.timeout)
            .field("one_in", &self.one_in)
            .finish_non_exhaustive()
    }
}

impl Otlp {
    /// # Errors
    /// It is not the address of a collector.
    pub fn at(url: &str) -> Result<Otlp, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
        let https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it has to begin with http:// or https://"),
        };
        let authority = uri.authority().ok_or("it has no host")?;
        if authority.as_str().contains('@') {
            return Err("a name and a password belong into otlp_headers");
        }
        if uri.query().is_some() {
            return Err("it may have no query");
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let base = uri.path().trim_end_matches('/');
        let path = match base.ends_with(PATH) {
            true => base.to_owned(),
            false => format!("{base}{PATH}"),
        };
        Ok(Otlp {
            https,
            host,
            port: authority.port_u16().unwrap_or(if https { 443 } else { 80 }),
            path,
            headers: Vec::new(),
            timeout: Duration::ZERO,
            one_in: 0,
        })
    }

    /// As a Host header has it.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// `name=value,name=value`, with `%` in front of two hexadecimal digits for other bytes.
///
/// Source: OpenTelemetry Protocol Exporter, "Specifying headers via environment variables".
pub fn headers(text: &str) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            let mut value = HeaderValue::from_bytes(&decoded(value.trim())?).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        })
        .collect()
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(rest.as_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_what_it_lacks() {
        for (url, expected) in [
            ("http://collector:4318", ("collector:4318", "/v1/traces", false)),
            ("http://collector:4318/", ("collector:4318", "/v1/traces", false)),
            ("https://otlp.example/base/", ("otlp.example:443", "/base/v1/traces", true)),
            ("http://10.0.0.1/v1/traces", ("10.0.0.1:80", "/v1/traces", false)),
            ("http://[::1]:4318", ("[::1]:4318", "/v1/traces", false)),
        ] {
            let otlp = Otlp::at(url).expect(url);
            assert_eq!((&*otlp.authority(), &*otlp.path, otlp.https), expected, "{url}");
        }
        for url in ["", "collector:4318", "grpc://c:4317", "http://u:p@c", "http://c/?a=b", "/x"] {
            assert!(Otlp::at(url).is_err(), "{url}");
        }
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let read = headers(" api-key = a%20b==, x-tenant=7 ,").expect("headers");
        let pairs: Vec<_> =
            read.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(pairs, [("api-key", &b"a b=="[..]), ("x-tenant", b"7")]);
        let mut otlp = Otlp::at("http://c").expect("a URL");
        otlp.headers = read;
        assert!(!format!("{otlp:?}").contains("a b"));
        for text in ["a", "a b=c", "a=%2", "a=%zz", "a=%0a"] {
            assert!(headers(text).is_none(), "{text}");
        }
    }
}
