//! Several hosts of one database: which they are, which of them will do, whose turn it is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::options::default;
use super::report::{Code, Problem};
use super::Host;

/// Most hosts of one database.
pub const HOSTS_MAX: usize = 16;

/// Hosts with their ports.
pub type HostList = Vec<(Host, u16)>;

/// What a database with a list of hosts has beyond the first one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Several {
    /// The others, by name or address; empty with one host.
    pub others: Vec<(Host, u16)>,
    pub target: SessionAttrs,
    pub balance: Balance,
    /// Each host is asked so often what it is. Zero: never.
    pub check: Duration,
    /// Reads go to standbys.
    pub split: bool,
    /// Of servers for reads: the list that their host is of, and its place there.
    pub replica: Option<Arc<(HostList, usize)>>,
}

/// To which of several hosts new servers go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Balance {
    /// To the one that did last time.
    #[default]
    Disable,
    RoundRobin,
    LeastConnections,
}

impl Balance {
    pub const WORDS: &'static [&'static str] = &["disable", "round-robin", "least-connections"];

    pub fn from_name(name: &str) -> Option<Balance> {
        Some(match name {
            "disable" => Balance::Disable,
            "round-robin" => Balance::RoundRobin,
            "least-connections" => Balance::LeastConnections,
            _ => return None,
        })
    }

    pub const fn name(self) -> &'static str {
        Self::WORDS[self as usize]
    }
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

impl super::UpstreamOptions {
    /// All of them, in their order.
    pub fn hosts(&self) -> Vec<(Host, u16)> {
        all(&self.host, self.port, &self.several)
    }
}

impl super::Upstream {
    /// All of them, in their order.
    pub fn hosts(&self) -> Vec<(Host, u16)> {
        all(&self.host, self.port, &self.several)
    }
}

impl super::Upstream {
    /// The same with the host at `place` in the list as the first one.
    pub fn at(&self, place: usize) -> super::Upstream {
        let mut here = self.clone();
        if let Some(other) = place.checked_sub(1).and_then(|at| here.several.others.get_mut(at)) {
            std::mem::swap(&mut here.host, &mut other.0);
            std::mem::swap(&mut here.port, &mut other.1);
        }
        here
    }
}

fn all(host: &Host, port: u16, several: &Several) -> Vec<(Host, u16)> {
    let mut hosts = vec![(host.clone(), port)];
    hosts.extend(several.others.iter().cloned());
    hosts
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
