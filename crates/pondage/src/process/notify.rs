//! Telling systemd what state we are in.
//!
//! Source: sd_notify(3), "Description" and "Notes"; sd_watchdog_enabled(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// Another process is the service now: what becomes of this one is not the service's state.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Sends `state` ("READY=1") to whoever started us, if it asked for that.
pub fn tell(state: &str) {
    if LEFT.load(Ordering::Relaxed) {
        return;
    }
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let bytes = name.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(abstract_name) => SocketAddr::from_abstract_name(abstract_name),
        None => SocketAddr::from_pathname(&name),
    };
    let told = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = told {
        tracing::warn!(event = "notify_failed", %error, "cannot tell the service manager {state}");
    }
}

/// A reload begins; READY=1 ends it.
pub fn reloading() {
    let now = clock_gettime(ClockId::Monotonic);
    let microseconds = now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1000;
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
}

/// The service is another process from now on. Nothing is told after this.
pub fn leave(successor: u32) {
    tell(&format!("MAINPID={successor}\nSTATUS=Process {successor} takes over"));
    LEFT.store(true, Ordering::Relaxed);
}

/// How often a sign of life is expected, if at all. `inherited`: the process that this one takes
/// over from was the one that the variables are meant for.
pub fn watchdog(inherited: bool) -> Option<Duration> {
    let pid = std::env::var("WATCHDOG_PID").ok().and_then(|pid| pid.parse().ok());
    period(&std::env::var("WATCHDOG_USEC").ok()?, pid, inherited)
}

fn period(microseconds: &str, pid: Option<u32>, inherited: bool) -> Option<Duration> {
    let ours = inherited || pid.is_none_or(|pid| pid == std::process::id());
    let microseconds = microseconds.parse().ok().filter(|time| *time > 0 && ours)?;
    Some(Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watchdog_is_whose_process_it_names_and_who_takes_over_from_that() {
        let own = std::process::id();
        assert_eq!(period("5000000", Some(own), false), Some(Duration::from_secs(5)));
        assert_eq!(period("5000000", None, false), Some(Duration::from_secs(5)));
        assert_eq!(period("5000000", Some(own + 1), false), None);
        assert_eq!(period("5000000", Some(own + 1), true), Some(Duration::from_secs(5)));
        assert_eq!(period("0", None, false), None);
        assert_eq!(period("often", None, false), None);
    }
}
