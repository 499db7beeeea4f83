//! Databases with several hosts: in which order they are tried, and which of them will do.
//!
//! Every new connection goes round the hosts until one accepts it and is what
//! `target_session_attrs` asks for. The first try is for the host that did last time (or, with
//! `load_balance_hosts = "round-robin"`, for the next one), so that a host that is down costs
//! others nothing; one that could not be reached is tried last for a while. What a server is, it
//! reports itself at log-in, from PostgreSQL 14 on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backend::login::{Credential, LoggedIn};
use tokio::time::Instant;

use super::dial::Dialer;
use super::messages::{OpenError, OpenKind};
use super::open::{Session, UNREACHED};
use crate::config::{Host, PoolConfig, SessionAttrs, Upstream};

/// Most lists of hosts that are remembered.
const LISTS_MAX: usize = 4096;

/// A host that could not be reached is tried last for a second, then twice as long after each
/// further failure, up to a minute.
const LAST_FOR: Duration = Duration::from_secs(1);
const LAST_FOR_MAX: Duration = Duration::from_secs(60);

/// What is known of each list of hosts. A plain mutex: never held across an await. A RELOAD
/// forgets nothing of it: an old primary that is back must not be the first again.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<Vec<(Host, u16)>, Hosts>>);

/// One list.
#[derive(Debug, Default)]
struct Hosts {
    /// The place of the first to try.
    first: usize,
    /// By place.
    health: Vec<Health>,
}

#[derive(Debug, Clone, Default)]
struct Health {
    /// In a row.
    failures: u32,
    last_until: Option<Instant>,
}

impl Hosts {
    fn new(count: usize) -> Hosts {
        Hosts { first: 0, health: vec![Health::default(); count] }
    }

    /// All places: none is left out, those that failed lately come last.
    fn order(&mut self, in_turn: bool, now: Instant) -> Vec<usize> {
        let count = self.health.len();
        let mut order: Vec<usize> = (0..count).map(|at| (self.first + at) % count).collect();
        if in_turn {
            self.first = (self.first + 1) % count;
        }
        order.sort_by_key(|at| self.health[*at].last_until.is_some_and(|until| now < until));
        order
    }

    fn failed(&mut self, place: usize, now: Instant) {
        let Some(health) = self.health.get_mut(place) else { return };
        let pause = LAST_FOR.saturating_mul(1 << health.failures.min(6)).min(LAST_FOR_MAX);
        health.failures = health.failures.saturating_add(1);
        health.last_until = Some(now + pause);
    }

    /// Whether it is another one than before.
    fn did(&mut self, place: usize, in_turn: bool) -> bool {
        let Some(health) = self.health.get_mut(place) else { return false };
        *health = Health::default();
        let other = !in_turn && self.first != place;
        if other {
            self.first = place;
        }
        other
    }
}

impl Turns {
    /// The places of the hosts in the order of this try.
    pub(super) fn order(&self, upstream: &Upstream, now: Instant) -> Vec<usize> {
        self.with(upstream, |hosts| hosts.order(upstream.several.in_turn, now))
    }

    fn with<T>(&self, upstream: &Upstream, work: impl FnOnce(&mut Hosts) -> T) -> T {
        let list = upstream.hosts();
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= LISTS_MAX && !turns.contains_key(&list) {
            turns.clear();
        }
        let count = list.len();
        work(turns.entry(list).or_insert_with(|| Hosts::new(count)))
    }
}

impl Upstream {
    pub(crate) fn hosts(&self) -> Vec<(Host, u16)> {
        let mut hosts = vec![(self.host.clone(), self.port)];
        hosts.extend(self.several.others.iter().cloned());
        hosts
    }

    /// The same with the host at `place` in the list as the first one.
    pub(super) fn at(&self, place: usize) -> Upstream {
        let mut here = self.clone();
        if let Some(other) = place.checked_sub(1).and_then(|at| here.several.others.get_mut(at)) {
            std::mem::swap(&mut here.host, &mut other.0);
            std::mem::swap(&mut here.port, &mut other.1);
        }
        here
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
        let target = upstream.several.target;
        if upstream.several.others.is_empty() && target == SessionAttrs::Any {
            return self.start_at(config, proven, kind).await;
        }
        let rounds: &[SessionAttrs] = match target {
            SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
            _ => &[target],
        };
        let order = self.turns.order(upstream, Instant::now());
        let mut failed: Option<OpenError> = None;
        for wanted in rounds {
            for place in &order {
                let mut here = config.clone();
                here.upstream = upstream.at(*place);
                let why = match self.start_at(&here, proven.clone(), kind).await {
                    Ok(session) => match unfit(*wanted, &session.logged_in) {
                        None => {
                            self.did(config, *place, &session.at);
                            return Ok(session);
                        }
                        Some(why) => refused(config, &session.at, why),
                    },
                    Err(error) if !elsewhere(&error) => return Err(error),
                    Err(error) => {
                        self.turns.with(upstream, |hosts| hosts.failed(*place, Instant::now()));
                        error
                    }
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

    fn did(&self, config: &PoolConfig, place: usize, at: &str) {
        let in_turn = config.upstream.several.in_turn;
        if self.turns.with(&config.upstream, |hosts| hosts.did(place, in_turn)) {
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
}

/// Whether another host may answer otherwise. As with libpq, who is refused by one that works is
/// not let in by the next.
///
/// Source: PostgreSQL documentation, "Specifying Multiple Hosts".
fn elsewhere(error: &OpenError) -> bool {
    // Not reached; or it starts, stops or recovers.
    error.code == UNREACHED || error.code.starts_with("57P")
}

/// Why a server is not what is wanted.
///
/// Source: PostgreSQL documentation, "Parameter Key Words", target_session_attrs.
fn unfit(wanted: SessionAttrs, logged_in: &LoggedIn) -> Option<&'static str> {
    if wanted == SessionAttrs::Any {
        return None;
    }
    let reported = |name: &str| {
        let found = logged_in.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value == "on")
    };
    let (Some(standby), Some(read_only)) =
        (reported("in_hot_standby"), reported("default_transaction_read_only"))
    else {
        return Some("it does not say what it is; target_session_attrs needs PostgreSQL 14");
    };
    let reads_only = standby || read_only;
    match wanted {
        SessionAttrs::ReadWrite if reads_only => Some("it is read-only"),
        SessionAttrs::ReadOnly if !reads_only => Some("it is not read-only"),
        SessionAttrs::Primary if standby => Some("it is a standby"),
        SessionAttrs::Standby | SessionAttrs::PreferStandby if !standby => {
            Some("it is not a standby")
        }
        _ => None,
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
        detail: None,
        hint: None,
        permanent: false,
        at: std::time::SystemTime::now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_host_that_did_is_the_first_of_the_next_try() {
        let (mut hosts, now) = (Hosts::new(3), Instant::now());
        assert_eq!(hosts.order(false, now), [0, 1, 2]);
        assert!(hosts.did(1, false), "another one");
        assert!(!hosts.did(1, false), "the same");
        assert_eq!(hosts.order(false, now), [1, 2, 0]);
    }

    #[test]
    fn hosts_in_turn_are_the_first_in_turn() {
        let (mut hosts, now) = (Hosts::new(2), Instant::now());
        let firsts: Vec<usize> = (0..4).map(|_| hosts.order(true, now)[0]).collect();
        assert_eq!(firsts, [0, 1, 0, 1]);
        assert!(!hosts.did(1, true));
    }

    #[test]
    fn a_host_that_failed_is_tried_last_for_longer_each_time_and_never_left_out() {
        let (mut hosts, start) = (Hosts::new(2), Instant::now());
        let mut now = start;
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            hosts.failed(0, now);
            assert_eq!(hosts.order(false, now + seconds(pause) - Duration::from_millis(1)), [1, 0]);
            now += seconds(pause);
            assert_eq!(hosts.order(false, now), [0, 1], "{pause}");
        }
        hosts.failed(0, now);
        hosts.failed(1, now);
        assert_eq!(hosts.order(false, now), [0, 1], "all failed: in their order");
        hosts.did(0, false);
        hosts.failed(0, now);
        assert_eq!(hosts.order(false, now + seconds(1)), [0, 1], "it starts anew");
    }

    #[test]
    fn servers_are_what_they_report() {
        let server = |standby: &str, read_only: &str| LoggedIn {
            parameters: vec![
                ("in_hot_standby".to_owned(), standby.to_owned()),
                ("default_transaction_read_only".to_owned(), read_only.to_owned()),
            ],
            ..LoggedIn::default()
        };
        use SessionAttrs::{Any, Primary, ReadOnly, ReadWrite, Standby};
        for (standby, read_only, fits) in [
            ("off", "off", &[Any, ReadWrite, Primary][..]),
            ("off", "on", &[Any, ReadOnly, Primary]),
            ("on", "off", &[Any, ReadOnly, Standby]),
        ] {
            for wanted in [Any, ReadWrite, ReadOnly, Primary, Standby] {
                let fit = unfit(wanted, &server(standby, read_only)).is_none();
                assert_eq!(fit, fits.contains(&wanted), "{standby} {read_only} {wanted:?}");
            }
        }
        let old = LoggedIn::default();
        assert!(unfit(Any, &old).is_none());
        assert!(unfit(Primary, &old).expect("unknown").contains("PostgreSQL 14"));
    }
}
