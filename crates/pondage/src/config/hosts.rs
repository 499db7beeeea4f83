//! Several hosts of one database: which they are, which of them will do, whose turn it is.

use std::path::PathBuf;

use super::options::default;
use super::report::{Code, Problem};
use super::Host;

/// Most hosts of one database.
pub const HOSTS_MAX: usize = 16;

/// What a database with a list of hosts has beyond the first one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Several {
    /// The others, by name or address; empty with one host.
    pub others: Vec<(Host, u16)>,
    pub target: SessionAttrs,
    /// New servers go to the hosts in turn, not to the one that did last time.
    pub in_turn: bool,
}

/// libpq's `target_session_attrs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SessionAttrs {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl SessionAttrs {
    pub const WORDS: &'static [&'static str] =
        &["any", "read-write", "read-only", "primary", "standby", "prefer-standby"];

    pub fn from_name(name: &str) -> Option<SessionAttrs> {
        Some(match name {
            "any" => SessionAttrs::Any,
            "read-write" => SessionAttrs::ReadWrite,
            "read-only" => SessionAttrs::ReadOnly,
            "primary" => SessionAttrs::Primary,
            "standby" => SessionAttrs::Standby,
            "prefer-standby" => SessionAttrs::PreferStandby,
            _ => return None,
        })
    }

    pub const fn name(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// The hosts of a database with their ports, at least one.
pub(super) fn read(hosts: Option<&str>, ports: Option<&str>) -> Result<Vec<(Host, u16)>, Problem> {
    let hosts: Vec<&str> = hosts.unwrap_or(default::SERVER_HOST).split(',').collect();
    let ports: Vec<u16> = match ports {
        Some(ports) => ports.split(',').filter_map(|port| port.parse().ok()).collect(),
        None => vec![default::SERVER_PORT],
    };
    if ports.len() != 1 && ports.len() != hosts.len() {
        let message = format!("`port` has {} ports for {} hosts", ports.len(), hosts.len());
        return Err(Problem::new(Code::BadValue, message)
            .help("say one port for all hosts, or one for each"));
    }
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(default::SERVER_PORT);
    Ok(hosts.iter().enumerate().map(|(at, host)| (of(host), port(at))).collect())
}

fn of(text: &str) -> Host {
    match text.starts_with('/') {
        true => Host::Unix(PathBuf::from(text)),
        false => Host::Tcp(text.to_owned()),
    }
}
