//! The rows of SHOW CHANNELS: what clients listen to over shared connections.

use std::collections::BTreeMap;

use super::table::Value;
use crate::worker::snapshot::WorkerSnapshot;

/// Rows at the most: the channels that come first by their names.
const ROWS_MAX: usize = 65_536;

/// One row for each channel of a database, over all workers.
pub fn rows(workers: &[WorkerSnapshot]) -> Vec<Vec<Value>> {
    let mut merged: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for channel in workers.iter().flat_map(|worker| &worker.channels) {
        let sum = merged.entry((&channel.database, &channel.channel)).or_default();
        sum.0 += channel.clients;
        sum.1 += channel.delivered;
    }
    let row = |((database, channel), (clients, delivered)): ((&str, &str), (u64, u64))| {
        vec![
            Value::text(database.to_owned()),
            Value::text(channel.to_owned()),
            Value::from(clients),
            Value::from(delivered),
        ]
    };
    merged.into_iter().take(ROWS_MAX).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::snapshot::ChannelSnapshot;

    #[test]
    fn workers_are_added_up() {
        let worker = |rows: &[(&str, &str, u64)]| WorkerSnapshot {
            channels: rows
                .iter()
                .map(|(database, channel, clients)| ChannelSnapshot {
                    database: (*database).to_owned(),
                    channel: (*channel).to_owned(),
                    clients: *clients,
                    delivered: clients * 10,
                })
                .collect(),
            ..WorkerSnapshot::default()
        };
        let workers = [worker(&[("b", "x", 1), ("a", "y", 2)]), worker(&[("b", "x", 4)])];
        let row = |database: &'static str, channel: &'static str, clients: u64| {
            vec![
                Value::text(database),
                Value::text(channel),
                Value::from(clients),
                Value::from(clients * 10),
            ]
        };
        assert_eq!(rows(&workers), [row("a", "y", 2), row("b", "x", 5)]);
    }
}
