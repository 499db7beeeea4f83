//! Commands against tables in memory.

#[path = "../rig/mod.rs"]
mod rig;

mod bitmaps;
mod blocking;
mod connection;
mod dumps;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod libraries;
mod lists;
mod monitors;
mod pubsub;
mod scans;
mod scripts;
mod server;
mod sort;
mod streams;
mod strings;
mod transcript;
mod units;
mod zsets;

/// Runs the commands and compares their replies: from memory, and with each one's keys loaded anew.
#[track_caller]
fn check(protocol: u8, table: &[(&str, &str)]) {
    for forgets in [false, true] {
        let mut rig = rig::Rig::new();
        let conn = rig.conn;
        rig.engine.session(conn).expect("it is there").protocol = protocol;
        for (line, expected) in table {
            if forgets {
                rig.forget();
            }
            assert_eq!(rig.run(line), *expected, "{line}");
        }
    }
}
