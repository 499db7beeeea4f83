//! Connection URLs as libpq reads them, as far as Pondage has options for what they say.
//!
//! Source: PostgreSQL documentation, "Connection URIs" and "Parameter Key Words".

use super::report::{Code, Problem};

/// What a URL says, by the names of the options in `[databases.NAME]`, values in clear text.
pub(super) type Said = Vec<(&'static str, String)>;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

const PARAMETERS: &[(&str, &str)] = &[
    ("host", "host"),
    ("port", "port"),
    ("dbname", "dbname"),
    ("user", "user"),
    ("password", "password"),
    ("sslmode", "tls_mode"),
    ("sslnegotiation", "tls_negotiation"),
    ("ssl_min_protocol_version", "tls_min_version"),
    ("ssl_max_protocol_version", "tls_max_version"),
    ("sslrootcert", "tls_ca"),
    ("sslcert", "tls_cert"),
    ("sslkey", "tls_key"),
    ("channel_binding", "channel_binding"),
    ("application_name", "application_name"),
    ("connect_timeout", "connect_timeout"),
    ("max_protocol_version", "max_protocol_version"),
    ("target_session_attrs", "target_session_attrs"),
];

/// What libpq calls an option.
pub(super) fn parameter_of(option: &'static str) -> &'static str {
    PARAMETERS.iter().find(|(_, ours)| *ours == option).map_or(option, |(theirs, _)| theirs)
}

pub fn has_scheme(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// Splits a URL. Messages never repeat any part that could belong to a password.
pub(super) fn parse(url: &str) -> Result<Said, Problem> {
    let wrong = |why: &str| Problem::new(Code::BadUrl, format!("the URL {why}"));
    let rest = SCHEMES
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .ok_or_else(|| wrong("does not start with postgres:// or postgresql://"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if path.contains(['@', '/']) {
        return Err(wrong("has an @ or a second / after its host")
            .help("in a password, write / as %2F, @ as %40 and ? as %3F"));
    }
    let mut said: Vec<(&'static str, String)> = Vec::new();
    let (login, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, port) = hosts_and_ports(place).ok_or_else(|| wrong("has a malformed host"))?;
    let parts = [
        ("host", host.as_str()),
        ("port", &port),
        ("dbname", path),
        ("user", user),
        ("password", password),
    ];
    for (name, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
        let value = decode(text)
            .ok_or_else(|| wrong(&format!("has a malformed % sequence in its {name}")))?;
        said.push((name, value));
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, text) = pair.split_once('=').unwrap_or((pair, ""));
        let Some((key, option)) = PARAMETERS.iter().find(|(known, _)| *known == key) else {
            let known: Vec<&str> = PARAMETERS.iter().map(|(known, _)| *known).collect();
            return Err(wrong("has a parameter that is not supported")
                .help(format!("supported are {}", known.join(", "))));
        };
        let value = decode(text)
            .ok_or_else(|| wrong(&format!("has a malformed % sequence in its {key}")))?;
        if said.iter().any(|(name, _)| name == option) {
            return Err(wrong(&format!("says {key} twice")));
        }
        match (*option, value.as_str()) {
            // The system's certificates are the default here.
            ("tls_ca", "system") => {}
            // `allow` is `prefer` with the tries in the other order.
            ("tls_mode", "allow") => said.push((option, "prefer".to_owned())),
            ("connect_timeout", seconds) => said.push((option, format!("{seconds}s"))),
            _ => said.push((option, value)),
        }
    }
    // A URL names a whole place: a port from elsewhere would belong to another server.
    let has = |said: &Said, name: &str| said.iter().any(|(known, _)| *known == name);
    for (name, value) in [("host", "localhost"), ("port", "5432")] {
        if !has(&said, name) {
            said.push((name, value.to_owned()));
        }
    }
    if has(&said, "password") && !has(&said, "user") {
        return Err(wrong("has a password but no user"));
    }
    Ok(said)
}

/// The hosts and ports of `host:port,host,[address]:port`, each as a list: where one host of
/// several says a port, the others have the usual one.
fn hosts_and_ports(place: &str) -> Option<(String, String)> {
    let places: Vec<(&str, &str)> = place.split(',').map(host_and_port).collect::<Option<_>>()?;
    let hosts: Vec<&str> = places.iter().map(|(host, _)| *host).collect();
    let ports: Vec<&str> = match places.iter().all(|(_, port)| port.is_empty()) {
        true => Vec::new(),
        false if places.len() == 1 => vec![places[0].1],
        false => {
            places.iter().map(|(_, port)| if port.is_empty() { "5432" } else { port }).collect()
        }
    };
    Some((hosts.join(","), ports.join(",")))
}

/// `host`, `host:port` or `[address]:port`, still percent-encoded.
fn host_and_port(place: &str) -> Option<(&str, &str)> {
    match place.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            match port.is_empty() {
                true => Some((address, "")),
                false => Some((address, port.strip_prefix(':')?)),
            }
        }
        None => Some(place.split_once(':').unwrap_or((place, ""))),
    }
}

/// Undoes percent-encoding; none if it is malformed or no UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
