//! Databases with several hosts: in which order they are tried, and which of them will do.
//!
//! Every new connection goes round the hosts until one accepts it and is what
//! `target_session_attrs` asks for. The first try is for the host that did last time, for the next
//! one, or for the one with the fewest connections, as `load_balance_hosts` says; one that is known
//! to be something else comes later, and one that is banned last. What a server is, it reports
//! itself at log-in, from PostgreSQL 14 on, and to the prober (see `probing.rs`).

use std::net::SocketAddr;
use std::time::Duration;

use backend::login::{Credential, LoggedIn};
use tokio::time::Instant;

use super::dial::Dialer;
use super::messages::{OpenError, OpenKind};
use super::open::{Session, UNREACHED};
use super::spots::{Asker, List, Spot};
use crate::config::{PoolConfig, SessionAttrs, Upstream};
use crate::hosts::{Role, Seat};

/// How long and how often is looked whether the prober has heard of a host.
const CONFIRM_MAX: Duration = Duration::from_secs(5);
const CONFIRM_EVERY: Duration = Duration::from_millis(5);

/// Names of a list are resolved again for a new connection when the last time is so long ago.
const RESOLVED_FOR: Duration = Duration::from_secs(1);

impl Upstream {
    /// Whether which host it is matters.
    fn chooses(&self) -> bool {
        !self.several.others.is_empty() || self.several.target != SessionAttrs::Any
    }
}

impl Dialer {
    /// As [`Dialer::open`], for who stays on this thread.
    pub(crate) async fn start(
        &self,
        config: &PoolConfig,
        proven: Option<Credential>,
        kind: &OpenKind,
    ) -> Result<Session, OpenError> {
        let upstream = &config.upstream;
        if let Some(replica) = &upstream.several.replica {
            return self.start_standby(config, replica, proven, kind).await;
        }
        if !upstream.chooses() {
            return self.start_at(config, None, proven, kind).await;
        }
        let target = upstream.several.target;
        let rounds: &[SessionAttrs] = match target {
            SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
            _ => &[target],
        };
        self.resolve(config).await;
        self.spots.ask_as(upstream, || Asker { config: config.clone(), proven: proven.clone() });
        let mut failed: Option<OpenError> = None;
        for wanted in rounds {
            for spot in self.spots.order(upstream, *wanted, Instant::now()) {
                let why = match self.start_on(config, &spot, proven.clone(), kind, *wanted).await {
                    Ok(session) => return Ok(session),
                    Err(Refusal::Final(error)) => return Err(error),
                    Err(Refusal::Here(error)) => error,
                };
                // One that may be gone at the next try says more than one that stays.
                failed = Some(match failed {
                    Some(before) if !before.permanent && why.permanent => before,
                    _ => why,
                });
            }
        }
        Err(failed.unwrap_or_else(|| refused(config, &upstream.place(), "there is no host")))
    }

    async fn start_on(
        &self,
        config: &PoolConfig,
        spot: &Spot,
        proven: Option<Credential>,
        kind: &OpenKind,
        wanted: SessionAttrs,
    ) -> Result<Session, Refusal> {
        let mut here = config.clone();
        here.upstream = config.upstream.at(spot.place);
        match self.start_at(&here, spot.address, proven, kind).await {
            Ok(mut session) => {
                let role = reported(&session.logged_in);
                if let Some(role) = role {
                    spot.state.set_role(role);
                }
                if let Some(why) = unfit(wanted, role) {
                    return Err(Refusal::Here(refused(config, &session.at, why)));
                }
                self.did(config, spot, &session.at);
                let wanted = config.upstream.several.target;
                session.seat = Some(Seat::new(spot.state.clone(), wanted));
                Ok(session)
            }
            Err(error) if !elsewhere(&error) => Err(Refusal::Final(error)),
            Err(error) => {
                self.spots.failed(&config.upstream, spot, &error.message, Instant::now());
                Err(Refusal::Here(error))
            }
        }
    }

    /// At this one host, for reads. The session knows in which life of the server it is: the prober's
    /// connection there has answered after it was opened.
    async fn start_standby(
        &self,
        config: &PoolConfig,
        (list, place): &(List, usize),
        proven: Option<Credential>,
        kind: &OpenKind,
    ) -> Result<Session, OpenError> {
        let gone = || refused(config, &config.upstream.place(), "it is no host of the list");
        let spot = self.spots.at(list, *place).ok_or_else(gone)?;
        let mut session = self.start_at(config, None, proven, kind).await?;
        if let Some(why) = unfit(SessionAttrs::Standby, reported(&session.logged_in)) {
            return Err(refused(config, &session.at, why));
        }
        let later = spot.state.begun();
        self.spots.doubt_list(list);
        let answered = async {
            while spot.state.answered() <= later {
                tokio::time::sleep(CONFIRM_EVERY).await;
            }
        };
        if tokio::time::timeout(CONFIRM_MAX, answered).await.is_err() {
            return Err(refused(config, &session.at, "it does not answer what it is"));
        }
        session.life = spot.state.life();
        session.seat = Some(Seat::new(spot.state.clone(), SessionAttrs::Standby));
        Ok(session)
    }

    fn did(&self, config: &PoolConfig, spot: &Spot, at: &str) {
        if self.spots.did(&config.upstream, spot) {
            let target = config.upstream.several.target.name();
            tracing::info!(
                event = "host_changed",
                db = config.database,
                at,
                target,
                "new connections go to another host"
            );
        }
    }

    /// Finds out which addresses the names of a list have, unless that was done lately. A name that
    /// can't be resolved keeps those that it had.
    pub(super) async fn resolve(&self, config: &PoolConfig) {
        let upstream = &config.upstream;
        let Some(names) = self.spots.to_resolve(upstream, Instant::now(), RESOLVED_FOR) else {
            return;
        };
        let limit = match config.connect_timeout {
            Duration::ZERO => Duration::MAX,
            limit => limit,
        };
        for (place, name, port) in names {
            let asked = tokio::net::lookup_host((name, port));
            if let Ok(Ok(found)) = tokio::time::timeout(limit, asked).await {
                self.spots.resolved(upstream, place, several_hosts(found.collect()));
            }
        }
    }
}

/// Why a host was not taken.
enum Refusal {
    /// Another may do.
    Here(OpenError),
    Final(OpenError),
}

/// The addresses of a name that stands for several servers; empty: it stands for one, which may have
/// an address of each kind.
fn several_hosts(mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut seen = std::collections::HashSet::new();
    addresses.retain(|address| seen.insert(*address));
    let old = addresses.iter().filter(|address| address.is_ipv4()).count();
    if old.max(addresses.len() - old) < 2 {
        addresses.clear();
    }
    addresses
}

/// Whether another host may answer otherwise. As with libpq, who is refused by one that works is
/// not let in by the next.
///
/// Source: PostgreSQL documentation, "Specifying Multiple Hosts".
fn elsewhere(error: &OpenError) -> bool {
    // Not reached; or it starts, stops or recovers.
    error.code == UNREACHED || error.code.starts_with("57P")
}

/// What a server says at log-in that it is, from PostgreSQL 14 on.
fn reported(logged_in: &LoggedIn) -> Option<Role> {
    let reported = |name: &str| {
        let found = logged_in.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value == "on")
    };
    Some(Role::new(reported("in_hot_standby")?, reported("default_transaction_read_only")?))
}

/// Why a server is not what is wanted.
fn unfit(wanted: SessionAttrs, role: Option<Role>) -> Option<&'static str> {
    match role {
        _ if wanted == SessionAttrs::Any => None,
        None => Some("it does not say what it is; target_session_attrs needs PostgreSQL 14"),
        Some(role) => role.unfit(wanted),
    }
}

fn refused(config: &PoolConfig, at: &str, why: &str) -> OpenError {
    let target = config.upstream.several.target.name();
    OpenError {
        code: UNREACHED.to_owned(),
        message: format!(
            "no server of database \"{}\" is what target_session_attrs = {target} asks for; the \
             last one tried, {at}: {why}",
            config.database
        ),
        theirs: why.to_owned(),
        detail: None,
        hint: None,
        permanent: false,
        at: std::time::SystemTime::now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_what_they_report() {
        let server = |standby: &str, read_only: &str| LoggedIn {
            parameters: vec![
                ("in_hot_standby".to_owned(), standby.to_owned()),
                ("default_transaction_read_only".to_owned(), read_only.to_owned()),
            ],
            ..LoggedIn::default()
        };
        assert_eq!(reported(&server("off", "off")), Some(Role::Primary));
        assert_eq!(reported(&server("off", "on")), Some(Role::ReadOnly));
        assert_eq!(reported(&server("on", "off")), Some(Role::Standby));
        let old = reported(&LoggedIn::default());
        assert!(unfit(SessionAttrs::Any, old).is_none());
        assert!(unfit(SessionAttrs::Primary, old).expect("unknown").contains("PostgreSQL 14"));
    }

    #[test]
    fn a_name_is_several_hosts_if_it_has_several_addresses_of_a_kind() {
        let of = |all: &[&str]| {
            several_hosts(all.iter().map(|one| one.parse().expect("an address")).collect())
        };
        assert!(of(&["10.0.0.1:1"]).is_empty());
        assert!(of(&["[::1]:1", "127.0.0.1:1"]).is_empty(), "one server with both kinds");
        assert!(of(&["10.0.0.1:1", "10.0.0.1:1"]).is_empty());
        assert_eq!(of(&["10.0.0.1:1", "10.0.0.2:1"]).len(), 2);
    }
}
