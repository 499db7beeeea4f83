//! The rows of SHOW HOSTS: the hosts of databases that have several.

use std::time::Duration;

use super::show;
use super::streams::position;
use super::table::Value;
use crate::control::spots::Standing;

pub fn row(host: &Standing) -> Vec<Value> {
    let count = |count: u64| Value::from(count);
    let micros = |time: Duration| count(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    let millis = |time: Duration| count(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    vec![
        Value::text(host.database.clone()),
        Value::text(host.host.clone()),
        Value::from(u32::from(host.port)),
        Value::optional(host.address.map(|address| address.ip().to_string())),
        Value::text(host.role.map_or("unknown", |role| role.word())),
        Value::text(state(host)),
        Value::optional(host.banned_until.map(show::time)),
        Value::optional((!host.why.is_empty()).then(|| host.why.clone())),
        Value::from(host.connections),
        Value::optional((host.position > 0).then(|| position(host.position))),
        host.lag_bytes.map_or(Value::Null, count),
        host.lag.map_or(Value::Null, millis),
        Value::optional(host.probed.map(show::time)),
        micros(host.probe_took),
        count(host.probes),
        count(host.failed_probes),
        count(host.bans),
    ]
}

/// One word, in tables and metrics.
pub fn state(host: &Standing) -> &'static str {
    match (host.banned_until, host.role) {
        (Some(_), _) => "banned",
        (None, Some(_)) => "up",
        (None, None) => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::columns;
    use crate::console::command::Show;
    use crate::console::fixture;

    #[test]
    fn a_row_has_every_column_and_says_why_a_host_is_banned() {
        let host = fixture::host("app");
        let row = row(&host);
        let columns = columns::of_show(Show::Hosts).expect("columns");
        assert_eq!(row.len(), columns.len());
        let value = |name: &str| {
            let at = columns.iter().position(|column| column.name == name).expect("a column");
            row[at].clone()
        };
        assert_eq!(value("state"), Value::text("banned"));
        assert_eq!(value("role"), Value::text("standby"));
        assert_eq!(value("why"), Value::text("no answer within 5000 ms"));
        assert_eq!(value("position"), Value::text("1/A0".to_owned()));
        let unseen = Standing { role: None, banned_until: None, ..host };
        assert_eq!(state(&unseen), "unknown");
    }
}
