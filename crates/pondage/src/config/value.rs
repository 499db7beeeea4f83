//! Types of options: reading a value, saying what was expected, writing it back.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hosts::HOSTS_MAX;
use super::options::{default, limit};
use super::report::{Code, Problem};
use super::{Address, Definition, MirrorDefinition, TlsVersion};
use crate::hba::Net;

/// No configured duration is longer: ten years.
const DURATION_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);

/// The type of an option.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Flag,
    Count {
        least: u32,
        most: u32,
    },
    /// `"auto"` or a number.
    Workers,
    /// `zero`: what `0` means, if it is allowed.
    Duration {
        zero: Option<&'static str>,
    },
    Text,
    /// Of a database or user.
    Name,
    /// A name, an address, or a directory that starts with a slash.
    Host,
    /// A port, or a list with one for each host.
    Ports,
    Choice(&'static [&'static str]),
    /// A version of TLS.
    TlsVersion,
    /// Addresses, some with the number of leading bits that count.
    Networks,
    /// A file; a relative one starts at the directory of the configuration file.
    Path,
    /// Octal permission bits.
    Permissions,
    Addresses,
    /// An address or `"off"`.
    SocketAddress,
    /// Addresses, or `"off"`.
    SocketAddresses,
    Names,
    /// Definitions of caches.
    Caches,
    /// Tables with columns.
    Mirrors,
    /// Of Redis's logical databases.
    Numbers,
    /// Bytes, with a unit.
    Size {
        least: u64,
        most: u64,
    },
    /// Redis's `notify-keyspace-events`.
    KeyspaceEvents,
    Secret,
    /// A connection URL; it may hold a password.
    Url,
}

/// A valid value. Choices are [`Value::Text`].
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    Count(u32),
    /// None: `"auto"`.
    Workers(Option<u32>),
    Duration(Duration),
    Text(String),
    Path(PathBuf),
    Permissions(u32),
    Addresses(Vec<Address>),
    /// None: `"off"`.
    SocketAddress(Option<SocketAddr>),
    /// None at all: `"off"`.
    SocketAddresses(Vec<SocketAddr>),
    Names(Vec<String>),
    Numbers(Vec<u32>),
    Size(u64),
    /// A password or a URL.
    Secret(String),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_toml())
    }
}

/// A value as it was written.
#[derive(Debug, Clone)]
pub(super) enum Raw<'a> {
    /// From a variable or a flag: any type, without quotes; lists are separated by commas.
    Bare(&'a str),
    Text(&'a str),
    /// `octal`: written as `0o…`.
    Integer {
        value: i64,
        octal: bool,
    },
    Flag(bool),
    List(Vec<Raw<'a>>),
    /// Of a type that no option has.
    Other(&'static str),
}

impl Raw<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Raw::Bare(_) | Raw::Text(_) => "text",
            Raw::Integer { .. } => "a whole number",
            Raw::Flag(_) => "true or false",
            Raw::List(_) => "a list",
            Raw::Other(name) => name,
        }
    }

    /// For messages about values that are no secrets.
    fn shown(&self) -> String {
        match self {
            Raw::Bare(text) | Raw::Text(text) => quoted(text),
            Raw::Integer { value, .. } => value.to_string(),
            Raw::Flag(on) => on.to_string(),
            Raw::List(_) | Raw::Other(_) => self.type_name().to_owned(),
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Raw::Bare(text) | Raw::Text(text) => Some(text),
            _ => None,
        }
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Raw::Integer { value, .. } => Some(*value),
            Raw::Bare(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The elements of a list of numbers; one number stands for a list of one.
    fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Raw::Bare(_) => self.texts()?.into_iter().map(|text| text.parse().ok()).collect(),
            Raw::List(list) => list.iter().map(Raw::integer).collect(),
            number => Some(vec![number.integer()?]),
        }
    }

    /// The elements of a list; one text stands for a list of one.
    fn texts(&self) -> Option<Vec<&str>> {
        match self {
            Raw::Bare(text) => {
                Some(text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect())
            }
            Raw::Text(text) => Some(vec![text]),
            Raw::List(list) => list.iter().map(Raw::text).collect(),
            _ => None,
        }
    }
}

/// `text` for a message: control characters and quotes escaped, cut after 60 characters.
pub(super) fn escaped(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    let mut shown: String = text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        shown.push('…');
    }
    shown
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

impl Kind {
    /// Completes "expected …".
    pub fn expected(self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Workers => format!("\"auto\" or a whole number from 1 to {}", limit::WORKERS),
            Kind::Duration { zero: Some(meaning) } => {
                format!("a duration such as \"5s\", or 0 ({meaning})")
            }
            Kind::Duration { zero: None } => "a duration such as \"5s\"".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Name => "a name of 1 to 63 bytes".to_owned(),
            Kind::Host => "a host name, an address, or a directory that starts with /".to_owned(),
            Kind::Ports => "a port from 1 to 65535, or a list of ports".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::TlsVersion => format!("one of {}", TlsVersion::WORDS.join(", ")),
            Kind::Networks => "a list of networks such as \"10.0.0.0/8\"".to_owned(),
            Kind::Path => "a file name".to_owned(),
            Kind::Permissions => "octal permission bits such as \"0770\"".to_owned(),
            Kind::Addresses => "a list of addresses".to_owned(),
            Kind::SocketAddress => "an address such as \"127.0.0.1:6433\", or \"off\"".to_owned(),
            Kind::SocketAddresses => {
                "a list of addresses such as \"127.0.0.1:6379\", or \"off\"".to_owned()
            }
            Kind::Names => "a list of names".to_owned(),
            Kind::Caches => "a list of statements".to_owned(),
            Kind::Mirrors => "a list of tables".to_owned(),
            Kind::Numbers => {
                format!("a list of whole numbers from 0 to {}", limit::REDIS_DATABASES - 1)
            }
            Kind::Size { least, most } => {
                let (least, most) = (size_text(least), size_text(most));
                format!("a size such as \"256MiB\", from {least} to {most}")
            }
            Kind::KeyspaceEvents => format!("letters out of {KEYSPACE_EVENTS}"),
            Kind::Secret => "text".to_owned(),
            Kind::Url => "a URL such as postgres://user:password@host:5432/dbname".to_owned(),
        }
    }

    /// Neither the value nor the line it stands on may be shown.
    pub fn is_secret(self) -> bool {
        matches!(self, Kind::Secret | Kind::Url)
    }

    /// Reads a value for the option `name`; `base` is what relative files start from.
    pub(super) fn read(
        self,
        name: &str,
        raw: &Raw<'_>,
        base: Option<&Path>,
    ) -> Result<Value, Problem> {
        let unfit = || self.unfit(name, raw);
        match self {
            Kind::Flag => match raw {
                Raw::Flag(on) => Some(*on),
                Raw::Bare("true") => Some(true),
                Raw::Bare("false") => Some(false),
                _ => None,
            }
            .map(Value::Flag)
            .ok_or_else(unfit),
            Kind::Count { least, most } => raw
                .integer()
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| (least..=most).contains(value))
                .map(Value::Count)
                .ok_or_else(unfit),
            Kind::Workers if raw.text() == Some("auto") => Ok(Value::Workers(None)),
            Kind::Workers => raw
                .integer()
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| (1..=limit::WORKERS).contains(value))
                .map(|value| Value::Workers(Some(value)))
                .ok_or_else(unfit),
            Kind::Duration { zero } => read_duration(name, raw, zero, unfit),
            Kind::Permissions => read_permissions(raw).map(Value::Permissions).ok_or_else(unfit),
            Kind::Choice(words) => raw
                .text()
                .filter(|text| words.contains(text))
                .map(|text| Value::Text(text.to_owned()))
                .ok_or_else(unfit),
            Kind::TlsVersion => raw
                .text()
                .and_then(|text| TlsVersion::read(name, text))
                .unwrap_or_else(|| Err(unfit()))
                .map(|version| Value::Text(version.name().to_owned())),
            Kind::Networks => read_networks(name, raw, unfit),
            Kind::Text => plain_text(raw).map(Value::Text).ok_or_else(unfit),
            Kind::Name => raw
                .text()
                .filter(|text| is_name(text))
                .map(|text| Value::Text(text.to_owned()))
                .ok_or_else(unfit),
            Kind::Host => read_hosts(name, raw, unfit),
            Kind::Ports => read_ports(raw).map(Value::Text).ok_or_else(unfit),
            Kind::Secret | Kind::Url => {
                plain_text(raw).filter(|text| !text.is_empty()).map(Value::Secret).ok_or_else(unfit)
            }
            Kind::Path => plain_text(raw)
                .filter(|text| !text.is_empty())
                .map(|text| {
                    Value::Path(base.map_or_else(|| PathBuf::from(&text), |dir| dir.join(&text)))
                })
                .ok_or_else(unfit),
            Kind::Names => raw
                .texts()
                .filter(|names| names.iter().all(|name| is_name(name)))
                .map(|names| Value::Names(names.into_iter().map(str::to_owned).collect()))
                .ok_or_else(unfit),
            Kind::Caches => read_caches(name, raw, unfit),
            Kind::Mirrors => read_mirrors(name, raw, unfit),
            Kind::Numbers => read_numbers(raw).map(Value::Numbers).ok_or_else(unfit),
            Kind::Size { least, most } => read_size(name, raw, least..=most, unfit),
            Kind::KeyspaceEvents => raw
                .text()
                .filter(|text| text.chars().all(|c| KEYSPACE_EVENTS.contains(c)))
                .map(|text| Value::Text(text.to_owned()))
                .ok_or_else(unfit),
            Kind::Addresses => read_addresses(name, raw, unfit),
            Kind::SocketAddresses => match raw.text() {
                Some("off") => Ok(Value::SocketAddresses(Vec::new())),
                _ => read_socket_addresses(name, raw, unfit),
            },
            Kind::SocketAddress => match raw.text() {
                Some("off") => Ok(Value::SocketAddress(None)),
                Some(text) => {
                    tcp_address(name, text).map(|address| Value::SocketAddress(Some(address)))
                }
                None => Err(unfit()),
            },
        }
    }

    fn unfit(self, name: &str, raw: &Raw<'_>) -> Problem {
        let fits = match self {
            Kind::Flag => matches!(raw, Raw::Flag(_) | Raw::Bare(_)),
            Kind::Count { .. } => matches!(raw, Raw::Integer { .. } | Raw::Bare(_)),
            Kind::Workers
            | Kind::Ports
            | Kind::Duration { .. }
            | Kind::Size { .. }
            | Kind::Permissions => {
                matches!(raw, Raw::Integer { .. } | Raw::Bare(_) | Raw::Text(_))
            }
            Kind::Addresses
            | Kind::SocketAddresses
            | Kind::Names
            | Kind::Networks
            | Kind::Caches
            | Kind::Mirrors => raw.texts().is_some(),
            Kind::Numbers => raw.integers().is_some(),
            _ => raw.text().is_some(),
        };
        let code = if fits { Code::BadValue } else { Code::WrongType };
        let found = match self.is_secret() {
            true if raw.text() == Some("") => "empty".to_owned(),
            true => raw.type_name().to_owned(),
            false => raw.shown(),
        };
        Problem::new(code, format!("`{name}` is {found}; expected {}", self.expected()))
    }
}

/// Text without NUL, which no PostgreSQL message can carry.
fn plain_text(raw: &Raw<'_>) -> Option<String> {
    raw.text().filter(|text| !text.contains('\0')).map(str::to_owned)
}

/// Names of databases and users: PostgreSQL's are at most 63 bytes long (`NAMEDATALEN` - 1).
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 63 && !name.contains(|c: char| c.is_control())
}

/// A variable has them with semicolons in between.
fn definitions<'r>(raw: &'r Raw<'_>) -> Option<Vec<&'r str>> {
    match raw {
        Raw::Bare(text) => Some(text.split(';').filter(|part| !part.trim().is_empty()).collect()),
        _ => raw.texts(),
    }
}

fn read_mirrors(name: &str, raw: &Raw<'_>, unfit: impl Fn() -> Problem) -> Result<Value, Problem> {
    let texts = definitions(raw).ok_or_else(unfit)?;
    for text in &texts {
        if let Err(why) = MirrorDefinition::configured(text) {
            let message = format!("`{name}` has {}: {why}", quoted(text));
            return Err(Problem::new(Code::BadValue, message)
                .help("write what may follow MIRROR TABLE: \"orders COLUMNS (id, total)\""));
        }
    }
    Ok(Value::Names(texts.into_iter().map(str::to_owned).collect()))
}

fn read_caches(name: &str, raw: &Raw<'_>, unfit: impl Fn() -> Problem) -> Result<Value, Problem> {
    let texts = definitions(raw).ok_or_else(unfit)?;
    for text in &texts {
        if let Err(why) = Definition::configured(text) {
            let message = format!("`{name}` has {}: {why}", quoted(text));
            return Err(Problem::new(Code::BadValue, message).help(
                "write a SELECT, or what may follow CREATE CACHE: \
                 \"name WITH (freshness = strict) FROM SELECT ...\"",
            ));
        }
    }
    Ok(Value::Names(texts.into_iter().map(str::to_owned).collect()))
}

const UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

fn read_duration(
    name: &str,
    raw: &Raw<'_>,
    zero: Option<&str>,
    unfit: impl Fn() -> Problem,
) -> Result<Value, Problem> {
    let text = match raw {
        Raw::Integer { value, .. } => value.to_string(),
        Raw::Bare(text) | Raw::Text(text) => text.trim().to_owned(),
        _ => return Err(unfit()),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let Ok(number) = number.parse::<u64>() else { return Err(unfit()) };
    if number == 0 {
        return match zero {
            Some(_) => Ok(Value::Duration(Duration::ZERO)),
            None => Err(unfit()),
        };
    }
    if unit.is_empty() {
        let message = format!("`{name}` is {number} without a unit");
        return Err(Problem::new(Code::MissingUnit, message)
            .help(format!("write \"{number}s\" for seconds or \"{number}ms\" for milliseconds")));
    }
    let Some((_, milliseconds)) = UNITS.iter().find(|(known, _)| *known == unit) else {
        let message = format!("`{name}` is {}, whose unit is unknown", raw.shown());
        return Err(Problem::new(Code::MissingUnit, message)
            .help("units of durations are ms, s, m (or min), h and d"));
    };
    number
        .checked_mul(*milliseconds)
        .map(Duration::from_millis)
        .filter(|duration| *duration <= DURATION_MAX)
        .map(Value::Duration)
        .ok_or_else(|| unfit().note("the longest duration is 3650d"))
}

/// In the largest unit that divides it: `"90s"`, `"2m"`, `0`.
pub fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds == 0 {
        return "0".to_owned();
    }
    let (unit, size) = UNITS
        .iter()
        .rev()
        .find(|(unit, size)| *unit != "min" && milliseconds % u128::from(*size) == 0)
        .unwrap_or(&("ms", 1));
    format!("{}{unit}", milliseconds / u128::from(*size))
}

/// Every letter of `notify-keyspace-events`.
///
/// Source: Redis documentation, "Redis keyspace notifications".
const KEYSPACE_EVENTS: &str = "KEg$lshzxetdmnA";

fn read_numbers(raw: &Raw<'_>) -> Option<Vec<u32>> {
    let numbers = raw.integers()?.into_iter().map(|number| u32::try_from(number).ok());
    numbers.map(|number| number.filter(|number| *number < limit::REDIS_DATABASES)).collect()
}

const SIZE_UNITS: &[(&str, u64)] =
    &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

fn read_size(
    name: &str,
    raw: &Raw<'_>,
    range: std::ops::RangeInclusive<u64>,
    unfit: impl Fn() -> Problem,
) -> Result<Value, Problem> {
    let text = match raw {
        Raw::Integer { value, .. } => value.to_string(),
        Raw::Bare(text) | Raw::Text(text) => text.trim().to_owned(),
        _ => return Err(unfit()),
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let Ok(number) = number.parse::<u64>() else { return Err(unfit()) };
    let unit = unit.trim_start();
    let Some((_, size)) = SIZE_UNITS.iter().find(|(known, _)| *known == unit) else {
        let message = match unit {
            "" => format!("`{name}` is {number} without a unit"),
            _ => format!("`{name}` is {}, whose unit is unknown", raw.shown()),
        };
        return Err(Problem::new(Code::MissingUnit, message)
            .help("units of sizes are B, KiB, MiB, GiB and TiB"));
    };
    let bytes = number.checked_mul(*size).filter(|bytes| range.contains(bytes));
    bytes.map(Value::Size).ok_or_else(unfit)
}

/// In the largest unit that divides it.
pub fn size_text(bytes: u64) -> String {
    let fits = SIZE_UNITS.iter().rev().find(|(_, size)| bytes != 0 && bytes % size == 0);
    let (unit, size) = fits.unwrap_or(&("B", 1));
    format!("{}{unit}", bytes / size)
}

fn read_socket_addresses(
    name: &str,
    raw: &Raw<'_>,
    unfit: impl Fn() -> Problem,
) -> Result<Value, Problem> {
    let texts = raw.texts().filter(|texts| !texts.is_empty()).ok_or_else(&unfit)?;
    let mut addresses: Vec<SocketAddr> = Vec::with_capacity(texts.len());
    for text in texts {
        let address = tcp_address(name, text)?;
        if addresses.contains(&address) {
            let message = format!("`{name}` has {} twice", quoted(text));
            return Err(Problem::new(Code::DuplicateAddress, message));
        }
        addresses.push(address);
    }
    Ok(Value::SocketAddresses(addresses))
}

fn read_permissions(raw: &Raw<'_>) -> Option<u32> {
    let bits = match raw {
        Raw::Integer { value, octal: true } => u32::try_from(*value).ok()?,
        Raw::Bare(text) | Raw::Text(text) => {
            u32::from_str_radix(text.strip_prefix("0o").unwrap_or(text), 8).ok()?
        }
        _ => return None,
    };
    (bits <= 0o777).then_some(bits)
}

/// One host, or several with commas between them.
fn read_hosts(name: &str, raw: &Raw<'_>, unfit: impl Fn() -> Problem) -> Result<Value, Problem> {
    let text = plain_text(raw).ok_or_else(&unfit)?;
    let hosts: Vec<&str> = text.split(',').collect();
    if hosts.len() > HOSTS_MAX {
        return Err(unfit().note(format!("a database has at most {HOSTS_MAX} hosts")));
    }
    if hosts.len() > 1 && hosts.iter().any(|host| host.is_empty()) {
        return Err(unfit().note("a host of the list has no name"));
    }
    if hosts.len() > 1 && hosts.iter().any(|host| host.starts_with('/')) {
        return Err(unfit().note("a list has names and addresses, not directories of sockets"));
    }
    for host in hosts {
        check_host(name, host, &unfit)?;
    }
    Ok(Value::Text(text))
}

/// The numbers of ports, with commas between them.
fn read_ports(raw: &Raw<'_>) -> Option<String> {
    let text = match raw {
        Raw::Integer { value, octal: false } => value.to_string(),
        other => plain_text(other)?,
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    text.split(',').all(is_port).then_some(text)
}

fn check_host(name: &str, text: &str, unfit: impl Fn() -> Problem) -> Result<(), Problem> {
    let is_directory = text.starts_with('/');
    let is_address = text.parse::<IpAddr>().is_ok();
    if !is_directory && !is_address && text.contains(':') {
        return Err(unfit().help(format!("the port of `{name}` stands in `port`")));
    }
    let is_name = |c: char| !c.is_whitespace() && !c.is_control() && c != '/';
    match !text.is_empty() && (is_directory || text.chars().all(is_name)) {
        true => Ok(()),
        false => Err(unfit()),
    }
}

fn read_addresses(
    name: &str,
    raw: &Raw<'_>,
    unfit: impl Fn() -> Problem,
) -> Result<Value, Problem> {
    let texts = raw.texts().ok_or_else(&unfit)?;
    let mut addresses = Vec::with_capacity(texts.len());
    // Sockets named by directory alone take their port from the first TCP address.
    let mut portless = Vec::new();
    for text in texts {
        let address = match text.strip_prefix("unix:") {
            None => Address::Tcp(tcp_address(name, text)?),
            Some(place) => {
                let (directory, port) = unix_address(name, text, place)?;
                if port.is_none() {
                    portless.push(addresses.len());
                }
                Address::Unix { directory, port: port.unwrap_or(default::LISTEN_PORT) }
            }
        };
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err(Problem::new(Code::BadValue, format!("`{name}` is empty; expected addresses"))
            .help("without a PostgreSQL door nobody can come in"));
    }
    let implied = implied_port(&addresses);
    for index in portless {
        if let Some(Address::Unix { port, .. }) = addresses.get_mut(index) {
            *port = implied;
        }
    }
    for (index, address) in addresses.iter().enumerate() {
        if addresses.iter().take(index).any(|earlier| earlier == address) {
            let message = format!("`{name}` has {} twice", quoted(&address_text(address, implied)));
            return Err(Problem::new(Code::DuplicateAddress, message));
        }
    }
    Ok(Value::Addresses(addresses))
}

fn read_networks(name: &str, raw: &Raw<'_>, unfit: impl Fn() -> Problem) -> Result<Value, Problem> {
    let texts = raw.texts().ok_or_else(&unfit)?;
    let wrong = texts.iter().find(|text| Net::parse(text).is_none());
    if let Some(text) = wrong {
        let message = format!("`{name}` has {}, which is no network", quoted(text));
        return Err(Problem::new(Code::BadNetwork, message)
            .help("such as \"10.1.0.0/16\" or \"fd00::/8\", or \"10.1.2.3\" for one address"));
    }
    Ok(Value::Names(texts.into_iter().map(str::to_owned).collect()))
}

fn implied_port(addresses: &[Address]) -> u16 {
    addresses
        .iter()
        .find_map(|address| match address {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix { .. } => None,
        })
        .unwrap_or(default::LISTEN_PORT)
}

fn tcp_address(name: &str, text: &str) -> Result<SocketAddr, Problem> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    let address = match local {
        Some(port) => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => text.parse::<SocketAddr>().ok(),
    };
    address.filter(|address| address.port() != 0).ok_or_else(|| {
        let message = format!("`{name}` has {}, which is no address to listen on", quoted(text));
        let problem = Problem::new(Code::BadAddress, message);
        match text.strip_prefix("*:") {
            Some(port) => problem.help(format!("write \"0.0.0.0:{port}\" or \"[::]:{port}\"")),
            None => problem.help(
                "write an IP address and a port such as \"0.0.0.0:6432\" or \"[::]:6432\", or \
                 \"localhost:6432\"",
            ),
        }
    })
}

/// `/dir` or `/dir/.s.PGSQL.PORT`.
fn unix_address(name: &str, text: &str, place: &str) -> Result<(PathBuf, Option<u16>), Problem> {
    // Source: `sun_path` in unix(7) holds 108 bytes with the final NUL.
    const SOCKET_PATH_MAX: usize = 107;
    let wrong = |why: &str| {
        let message = format!("`{name}` has {}, {why}", quoted(text));
        Problem::new(Code::BadAddress, message)
    };
    if !place.starts_with('/') || place.contains('\0') {
        return Err(wrong("whose directory does not start with /")
            .help("write \"unix:/run/pondage\", or \"unix:/run/pondage/.s.PGSQL.6433\""));
    }
    if place.len() + "/.s.PGSQL.65535".len() > SOCKET_PATH_MAX {
        return Err(wrong("which is longer than the path of a Unix socket may be"));
    }
    match place.rsplit_once("/.s.PGSQL.") {
        None => Ok((PathBuf::from(place), None)),
        Some((directory, port)) => match port.parse::<u16>() {
            Ok(port) if port != 0 => {
                let directory = if directory.is_empty() { "/" } else { directory };
                Ok((PathBuf::from(directory), Some(port)))
            }
            _ => Err(wrong("whose port is no number from 1 to 65535")),
        },
    }
}

fn address_text(address: &Address, implied: u16) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix { directory, port } if *port == implied => {
            format!("unix:{}", directory.display())
        }
        Address::Unix { directory, port } => {
            format!("unix:{}/.s.PGSQL.{port}", directory.display())
        }
    }
}

impl Value {
    /// As `SHOW CONFIG` prints it; secrets as `***`.
    pub fn shown(&self) -> String {
        match self {
            Value::Flag(on) => on.to_string(),
            Value::Count(count) => count.to_string(),
            Value::Workers(None) => "auto".to_owned(),
            Value::Workers(Some(count)) => count.to_string(),
            Value::Duration(duration) => duration_text(*duration),
            Value::Text(text) => text.clone(),
            Value::Path(path) => path.display().to_string(),
            Value::Permissions(bits) => format!("{bits:04o}"),
            Value::Addresses(_) | Value::Names(_) | Value::Numbers(_) => self.texts().join(", "),
            Value::SocketAddresses(none) if none.is_empty() => "off".to_owned(),
            Value::SocketAddresses(_) => self.texts().join(", "),
            Value::Size(bytes) => size_text(*bytes),
            Value::SocketAddress(None) => "off".to_owned(),
            Value::SocketAddress(Some(address)) => address.to_string(),
            Value::Secret(_) => "***".to_owned(),
        }
    }

    /// As it stands in a file; secrets as `"***"`.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Flag(_) | Value::Count(_) | Value::Workers(Some(_)) => self.shown(),
            Value::Duration(Duration::ZERO) => self.shown(),
            Value::Numbers(_) => format!("[{}]", self.shown()),
            Value::SocketAddresses(none) if none.is_empty() => toml_text(&self.shown()),
            Value::Addresses(_) | Value::SocketAddresses(_) | Value::Names(_) => {
                let texts: Vec<String> = self.texts().iter().map(|text| toml_text(text)).collect();
                format!("[{}]", texts.join(", "))
            }
            _ => toml_text(&self.shown()),
        }
    }

    fn texts(&self) -> Vec<String> {
        match self {
            Value::Addresses(addresses) => {
                let implied = implied_port(addresses);
                addresses.iter().map(|address| address_text(address, implied)).collect()
            }
            Value::SocketAddresses(addresses) => {
                addresses.iter().map(ToString::to_string).collect()
            }
            Value::Names(names) => names.clone(),
            Value::Numbers(numbers) => numbers.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// In PgBouncer's units: durations in seconds, flags as 0 and 1.
    pub(super) fn pgbouncer(&self) -> String {
        match self {
            Value::Flag(on) => u8::from(*on).to_string(),
            Value::Duration(duration) => {
                let milliseconds = duration.as_millis();
                match milliseconds % 1000 {
                    0 => (milliseconds / 1000).to_string(),
                    rest => format!("{}.{rest:03}", milliseconds / 1000),
                }
            }
            _ => self.shown(),
        }
    }
}

/// `text` as a TOML string on one line.
pub(super) fn toml_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
