//! What the kernel knows about this process, from `/proc`.
//!
//! Source: proc_pid_stat(5), proc_pid_status(5), proc_pid_limits(5), proc_stat(5).

use std::fs;

/// Ticks of `/proc/*/stat` in a second: USER_HZ, 100 on every architecture Rust's tier 1 and 2
/// know.
const TICKS_PER_SECOND: u64 = 100;

/// A figure is missing where the kernel does not tell.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Usage {
    pub cpu_us: Option<u64>,
    pub resident_bytes: Option<u64>,
    pub virtual_bytes: Option<u64>,
    pub threads: Option<u64>,
    /// Seconds of Unix time.
    pub start_time: Option<u64>,
    pub open_fds: Option<u64>,
    pub max_fds: Option<u64>,
}

/// Reads files of `/proc`: call it where blocking for a millisecond is fine.
pub fn usage() -> Usage {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let boot = read("/proc/stat").lines().find_map(|line| number(line.strip_prefix("btime ")?));
    let mut usage = from_text(&read("/proc/self/stat"), &read("/proc/self/status"), boot);
    usage.open_fds = fs::read_dir("/proc/self/fd").ok().map(|list| list.count() as u64);
    usage.max_fds = read("/proc/self/limits").lines().find_map(|line| {
        // "unlimited" is no number and leaves it out.
        number(line.strip_prefix("Max open files")?.split_whitespace().next()?)
    });
    usage
}

fn from_text(stat: &str, status: &str, boot: Option<u64>) -> Usage {
    // The second field is a name in parentheses that may hold anything; the third follows it.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let field = |place: usize| fields.get(place - 3).and_then(|text| number(text));
    let kilobytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        number(line.split_whitespace().next()?)?.checked_mul(1024)
    };
    let ticks = |ticks: u64| ticks.saturating_mul(1_000_000 / TICKS_PER_SECOND);
    Usage {
        cpu_us: field(14).zip(field(15)).map(|(user, system)| ticks(user.saturating_add(system))),
        resident_bytes: kilobytes("VmRSS:"),
        virtual_bytes: kilobytes("VmSize:"),
        threads: field(20),
        start_time: boot.zip(field(22)).map(|(boot, start)| boot + start / TICKS_PER_SECOND),
        open_fds: None,
        max_fds: None,
    }
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 7 0 12345 999 88";
        let status = "Name:\tx\nVmSize:\t    2000 kB\nVmRSS:\t    1000 kB\n";
        assert_eq!(
            from_text(stat, status, Some(1_000)),
            Usage {
                cpu_us: Some(3_000_000),
                resident_bytes: Some(1_024_000),
                virtual_bytes: Some(2_048_000),
                threads: Some(7),
                start_time: Some(1_123),
                open_fds: None,
                max_fds: None,
            }
        );
        assert_eq!(from_text("", "", None), Usage::default());
    }

    #[test]
    fn this_process_has_all_of_them() {
        let usage = usage();
        assert!(usage.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{usage:?}");
        assert!(usage.threads.is_some_and(|threads| threads >= 1), "{usage:?}");
        assert!(usage.open_fds.is_some_and(|fds| fds >= 3), "{usage:?}");
        assert!(usage.start_time.is_some_and(|at| at > 1_500_000_000), "{usage:?}");
        assert!(usage.cpu_us.is_some(), "{usage:?}");
    }
}
