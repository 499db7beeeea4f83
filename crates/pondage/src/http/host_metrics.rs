//! The metrics of hosts, for databases that have several.

use super::exposition::{Exposition, Kind};
use crate::console::hosts::state;
use crate::control::spots::Standing;

type Family = (&'static str, Kind, &'static str, fn(&Standing) -> Option<u64>);

const FAMILIES: [Family; 7] = [
    ("pondage_host_up", Kind::Gauge, "1 while the host answers, as far as is known.", |host| {
        Some(u64::from(state(host) == "up"))
    }),
    ("pondage_host_banned", Kind::Gauge, "1 while the host is tried last.", |host| {
        Some(u64::from(host.banned_until.is_some()))
    }),
    (
        "pondage_host_connections",
        Kind::Gauge,
        "Server connections that this process has at the host, for any database.",
        |host| Some(u64::from(host.connections)),
    ),
    (
        "pondage_host_lag_bytes",
        Kind::Gauge,
        "Log of the primary that a standby has not replayed.",
        |host| host.lag_bytes,
    ),
    ("pondage_host_probes_total", Kind::Counter, "Times that the host was asked.", |host| {
        Some(host.probes)
    }),
    ("pondage_host_probe_failures_total", Kind::Counter, "Times that it gave no answer.", |host| {
        Some(host.failed_probes)
    }),
    ("pondage_host_bans_total", Kind::Counter, "Times that it was banned.", |host| Some(host.bans)),
];

/// Writes the families; none while no database has several hosts.
pub fn families(page: &mut Exposition, hosts: &[Standing]) {
    if hosts.is_empty() {
        return;
    }
    for (name, kind, help, figure) in FAMILIES {
        page.family(name, kind, help);
        for host in hosts {
            if let Some(figure) = figure(host) {
                with_labels(host, |labels| page.sample(labels, figure));
            }
        }
    }
    page.family("pondage_host_role", Kind::Gauge, "1, labelled with what the host is.");
    for host in hosts {
        let role = host.role.map_or("unknown", |role| role.word());
        with_labels(host, |labels| {
            let labels = [labels, &[("role", role)]].concat();
            page.sample(&labels, 1);
        });
    }
}

fn with_labels(host: &Standing, write: impl FnOnce(&[(&str, &str)])) {
    let port = host.port.to_string();
    let address = host.address.map_or_else(String::new, |address| address.ip().to_string());
    write(&[
        ("database", &host.database),
        ("host", &host.host),
        ("port", &port),
        ("address", &address),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::fixture;

    #[test]
    fn hosts_have_their_figures_and_their_role() {
        let mut page = Exposition::default();
        families(&mut page, &[fixture::host("app")]);
        let text = page.into_text();
        let labels = "database=\"app\",host=\"db2\",port=\"5433\",address=\"10.0.0.7\"";
        for line in [
            format!("pondage_host_up{{{labels}}} 0"),
            format!("pondage_host_banned{{{labels}}} 1"),
            format!("pondage_host_connections{{{labels}}} 3"),
            format!("pondage_host_lag_bytes{{{labels}}} 4096"),
            format!("pondage_host_probes_total{{{labels}}} 9"),
            format!("pondage_host_role{{{labels},role=\"standby\"}} 1"),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
        let mut none = Exposition::default();
        families(&mut none, &[]);
        assert!(none.into_text().is_empty());
    }
}
