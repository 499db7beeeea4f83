//! The metrics of hosts, for databases that have several.

use super::exposition::Exposition;
use super::families::{self, Family};
use crate::console::hosts::state;
use crate::control::spots::Standing;

type Figure = (&'static Family, fn(&Standing) -> Option<u64>);

const FAMILIES: [Figure; 7] = [
    (families::hosts::UP, |host| Some(u64::from(state(host) == "up"))),
    (families::hosts::BANNED, |host| Some(u64::from(host.banned_until.is_some()))),
    (families::hosts::CONNECTIONS, |host| Some(u64::from(host.connections))),
    (families::hosts::LAG, |host| host.lag_bytes),
    (families::hosts::PROBES, |host| Some(host.probes)),
    (families::hosts::PROBE_FAILURES, |host| Some(host.failed_probes)),
    (families::hosts::BANS, |host| Some(host.bans)),
];

/// Writes the families; none while no database has several hosts.
pub fn families(page: &mut Exposition, hosts: &[Standing]) {
    if hosts.is_empty() {
        return;
    }
    for (family, figure) in FAMILIES {
        page.family(family);
        for host in hosts {
            if let Some(figure) = figure(host) {
                with_labels(host, |labels| page.sample(labels, figure));
            }
        }
    }
    page.family(families::hosts::ROLE);
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
