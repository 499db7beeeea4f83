//! Hosts of databases with several, as all threads see them: what each is at the moment, and how
//! many connections it has from here.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};
use std::sync::Arc;

use crate::config::{Host, SessionAttrs};

/// What a server says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Primary,
    /// A primary whose sessions begin read-only.
    ReadOnly,
    Standby,
}

impl Role {
    const ALL: [Role; 3] = [Role::Primary, Role::ReadOnly, Role::Standby];

    pub fn new(standby: bool, read_only: bool) -> Role {
        match (standby, read_only) {
            (true, _) => Role::Standby,
            (false, true) => Role::ReadOnly,
            (false, false) => Role::Primary,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Role::Primary => "primary",
            Role::ReadOnly => "read-only",
            Role::Standby => "standby",
        }
    }

    /// Why it is not what is wanted.
    ///
    /// Source: PostgreSQL documentation, "Parameter Key Words", target_session_attrs.
    pub fn unfit(self, wanted: SessionAttrs) -> Option<&'static str> {
        let standby = self == Role::Standby;
        let reads_only = self != Role::Primary;
        match wanted {
            SessionAttrs::ReadWrite if reads_only => Some("it is read-only"),
            SessionAttrs::ReadOnly if !reads_only => Some("it is not read-only"),
            SessionAttrs::Primary if standby => Some("it is a standby"),
            SessionAttrs::Standby if !standby => Some("it is not a standby"),
            _ => None,
        }
    }
}

/// One host, or one address of its name.
#[derive(Debug, Default)]
pub struct HostState {
    /// Its place in [`Role::ALL`], and one; 0: nobody knows.
    role: AtomicU8,
    /// Its name has this address no more.
    gone: AtomicBool,
    connections: AtomicU32,
    /// Of the probes of its list, the last whose primary's log this standby is known to have replayed;
    /// 0: of none.
    covers: AtomicU64,
    /// The number of the connection that the prober has here; no two of the process have the same.
    life: AtomicU64,
    /// Probes of this host that have begun, and the last of them that was answered.
    begun: AtomicU64,
    answered: AtomicU64,
}

/// The hosts of one list, for those who read from its standbys.
#[derive(Debug)]
pub struct Replicas {
    pub list: Vec<(Host, u16)>,
    /// Probes of hosts of this list that have begun.
    pub probes: Arc<AtomicU64>,
    /// By place; none: its name has several addresses.
    pub hosts: Vec<Option<Arc<HostState>>>,
}

impl Replicas {
    /// All that has been committed is in what a later probe of the primary tells.
    pub fn now(&self) -> u64 {
        self.probes.load(Ordering::Acquire)
    }
}

impl HostState {
    pub fn role(&self) -> Option<Role> {
        let at = usize::from(self.role.load(Ordering::Acquire)).checked_sub(1)?;
        Role::ALL.get(at).copied()
    }

    pub fn set_role(&self, role: Role) {
        self.role.store(role as u8 + 1, Ordering::Release);
    }

    /// All that was committed when the probes up to this one began is replayed here; 0: nobody knows.
    pub fn covers(&self) -> u64 {
        self.covers.load(Ordering::Acquire)
    }

    pub fn set_covers(&self, probe: u64) {
        self.covers.store(probe, Ordering::Release);
    }

    /// The prober's connection: two others here that were both open during it are of one life of the
    /// server, in which what is replayed stays.
    pub fn life(&self) -> u64 {
        self.life.load(Ordering::Acquire)
    }

    pub fn begin_life(&self) {
        static LIVES: AtomicU64 = AtomicU64::new(0);
        self.life.store(LIVES.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// A probe begins; its number is told when it is answered.
    pub fn begin_probe(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    pub fn probe_answered(&self, number: u64) {
        self.answered.store(number, Ordering::Release);
    }

    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Acquire)
    }

    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Of this process, those that are lent to nobody included.
    pub fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A connection's place at its host.
#[derive(Debug)]
pub struct Seat {
    host: Arc<HostState>,
    wanted: SessionAttrs,
}

impl Seat {
    pub fn new(host: Arc<HostState>, wanted: SessionAttrs) -> Seat {
        host.connections.fetch_add(1, Ordering::Relaxed);
        Seat { host, wanted }
    }

    /// The host is no longer what this connection is for. Where a standby is only preferred a
    /// primary will do.
    pub fn is_unfit(&self) -> bool {
        self.host.gone.load(Ordering::Acquire)
            || self.host.role().is_some_and(|role| role.unfit(self.wanted).is_some())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.host.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_unfit_once_its_host_is_another_thing() {
        let host = Arc::new(HostState::default());
        let seats = [SessionAttrs::Any, SessionAttrs::Primary, SessionAttrs::Standby]
            .map(|wanted| Seat::new(host.clone(), wanted));
        let unfit = || seats.iter().map(Seat::is_unfit).collect::<Vec<_>>();
        assert_eq!(unfit(), [false, false, false], "nobody knows");
        host.set_role(Role::Primary);
        assert_eq!(unfit(), [false, false, true]);
        host.set_role(Role::Standby);
        assert_eq!(unfit(), [false, true, false]);
        host.set_gone();
        assert_eq!(unfit(), [true, true, true]);
        assert_eq!(host.connections(), 3);
        drop(seats);
        assert_eq!(host.connections(), 0);
    }

    #[test]
    fn roles_are_what_is_asked_for_or_not() {
        use SessionAttrs::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
        for (role, fits) in [
            (Role::Primary, &[Any, ReadWrite, Primary, PreferStandby][..]),
            (Role::ReadOnly, &[Any, ReadOnly, Primary, PreferStandby]),
            (Role::Standby, &[Any, ReadOnly, Standby, PreferStandby]),
        ] {
            for wanted in [Any, ReadWrite, ReadOnly, Primary, Standby, PreferStandby] {
                let fit = role.unfit(wanted).is_none();
                assert_eq!(fit, fits.contains(&wanted), "{role:?} {wanted:?}");
            }
        }
    }
}
