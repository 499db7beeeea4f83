//! Reads from standbys: what goes there, and that nobody sees less than he has written or read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{client, config};
use crate::kit::cluster::{Cluster, APP};
use crate::kit::config::Config;
use crate::kit::gateway::Gateway;
use crate::kit::{wait, WireClient};

const PORT: &str = "select current_setting('port')";

pub(super) fn splitting(ports: &[u16]) -> Config {
    config(ports, "primary")
        .set("databases.app.split_reads", true)
        .set("databases.app.host_check_interval", "50ms")
}

/// One row for each writer.
pub(super) fn table(primary: &Cluster) {
    let mut superuser = primary.superuser("postgres");
    superuser.run("create table t (who int primary key, n int)");
    superuser.run("insert into t select who, 0 from generate_series(0, 7) who");
    superuser.run(&format!("grant all on t to {APP}"));
}

/// Reads until a read comes from this server.
fn reads_at(client: &mut WireClient, port: u16) {
    wait::until("a read there", || client.one(PORT) == port.to_string());
}

pub(super) fn everywhere(primary: &Cluster, standbys: &[&Cluster]) {
    let at = primary.superuser("postgres").one("select pg_current_wal_insert_lsn()");
    for standby in standbys {
        let mut superuser = standby.superuser("postgres");
        let done = format!("select pg_last_wal_replay_lsn() >= '{at}'");
        wait::until("a standby that has all", || superuser.one(&done) == "t");
    }
}

#[test]
fn what_only_reads_goes_to_a_standby_and_all_else_to_the_primary() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    table(&primary);
    everywhere(&primary, &[&standby]);
    let (home, away) = (primary.port.to_string(), standby.port.to_string());
    let gateway = Gateway::start(splitting(&[primary.port, standby.port]));
    let mut client = client(&gateway);
    reads_at(&mut client, standby.port);
    assert_eq!(client.one(PORT), away, "it stays there");
    let values = client.extended("select current_setting($1)", &[Some(b"port")]);
    assert!(values.iter().any(|reply| reply.tag == b'D'), "{values:?}");
    // Transactions, but for those that say that they only read.
    client.run("begin");
    assert_eq!(client.one(PORT), home);
    client.run("commit");
    client.run("begin isolation level repeatable read read only");
    wait::until("a transaction there", || {
        let there = client.one(PORT) == away;
        client.run("commit");
        client.run("begin isolation level repeatable read read only");
        there
    });
    client.run("rollback");
    client.run("begin isolation level serializable read only");
    assert_eq!(client.one(PORT), home, "a standby has no such transactions");
    client.run("commit");
    // What is volatile, locks or writes.
    client.run("select current_setting('port'), random()");
    client.run("select n from t where who = 0 for update");
    client.run("update t set n = n + 1 where who = 0");
    assert_eq!(client.one("select pg_is_in_recovery()"), "f");
    // Settings come along.
    client.run("set application_name = 'somebody'");
    reads_at(&mut client, standby.port);
    assert_eq!(client.one("select current_setting('application_name')"), "somebody");
    let page = gateway.page("/metrics").expect("the metrics");
    assert!(page.contains("pondage_split_reads_total"), "{page}");
    assert!(gateway.figure("pondage_split_reads_total") > 0);
}

#[test]
fn a_standby_that_is_behind_is_not_asked_by_those_who_have_seen_more() {
    let primary = Cluster::start("primary", &[]);
    let standby = primary.standby();
    table(&primary);
    everywhere(&primary, &[&standby]);
    let gateway = Gateway::start(splitting(&[primary.port, standby.port]));
    let (mut writer, mut reader) = (client(&gateway), client(&gateway));
    let read = "select n from t where who = 1";
    for client in [&mut writer, &mut reader] {
        reads_at(client, standby.port);
        client.run(read);
        wait::until("a verdict", || {
            client.run(read);
            gateway.figure("pondage_split_reads_total") > 4
        });
    }
    standby.superuser("postgres").run("select pg_wal_replay_pause()");
    writer.run("update t set n = 1 where who = 1");
    for _ in 0..50 {
        assert_eq!(writer.one(read), "1", "what he has written himself");
        assert_eq!(writer.one(PORT), primary.port.to_string());
    }
    // Who has seen nothing of it may be told what was before, and again.
    reads_at(&mut reader, standby.port);
    assert_eq!(reader.one(read), "0");
    // Until he has read it at the primary.
    reader.run("begin");
    assert_eq!(reader.one(read), "1");
    reader.run("commit");
    for _ in 0..50 {
        assert_eq!(reader.one(read), "1");
    }
    standby.superuser("postgres").run("select pg_wal_replay_resume()");
    for client in [&mut writer, &mut reader] {
        // It has to be quiet for as long as a probe takes.
        wait::until("a read there", || {
            std::thread::sleep(Duration::from_millis(300));
            client.one(PORT) == standby.port.to_string()
        });
        assert_eq!(client.one(read), "1");
    }
}

#[test]
fn reads_go_on_at_the_primary_when_a_standby_is_gone_and_elsewhere_when_it_takes_over() {
    let primary = Cluster::start("primary", &[]);
    let (first, second) = (primary.standby(), primary.standby());
    table(&primary);
    everywhere(&primary, &[&first, &second]);
    let ports = [primary.port, first.port, second.port];
    let gateway = Gateway::start(splitting(&ports).set("pool.wait_timeout", "60s"));
    let mut client = client(&gateway);
    // It stays at the one that was known first to have all.
    let mut there = String::new();
    wait::until("a read at a standby", || {
        there = client.one(PORT);
        there != primary.port.to_string()
    });
    let (lost, heir) = match there == first.port.to_string() {
        true => (&first, &second),
        false => (&second, &first),
    };
    lost.crash();
    // Its connection is gone, which is no transaction's end: nothing was asked.
    for _ in 0..20 {
        assert_ne!(client.one(PORT), lost.port.to_string());
    }
    lost.launch();
    primary.crash();
    heir.superuser("postgres").run("select pg_promote()");
    // The other standby follows nobody: it is not asked by who has written to the new primary.
    client.run("update t set n = 7 where who = 2");
    for _ in 0..50 {
        assert_eq!(client.one("select n from t where who = 2"), "7");
        assert_eq!(client.one(PORT), heir.port.to_string());
    }
}

/// A small generator, so that a failure can be looked at again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Writes its own row and reads all; says what it saw that it must not have seen.
fn live(gateway: &Gateway, who: u64, ended: &AtomicBool) -> Result<u64, String> {
    let mut client = client(gateway);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (who + 1));
    let (mut seen, mut written, mut reads) = (BTreeMap::<u64, u64>::new(), 0, 0);
    while !ended.load(Ordering::SeqCst) {
        if chance.below(8) == 0 {
            written += 1;
            if client.try_query(&format!("update t set n = {written} where who = {who}")).is_none()
            {
                client = self::client(gateway);
            }
            // Whether it was done is not known if the connection was lost.
            let own = client.one(&format!("select n from t where who = {who}"));
            written = own.parse().map_err(|_| format!("{own} is no number"))?;
        }
        if chance.below(4) == 0 {
            std::thread::sleep(Duration::from_millis(chance.below(120)));
        }
        let begins = chance.below(4) == 0;
        let text = match begins {
            true => "begin read only; select who, n from t; commit",
            false => "select who, n from t",
        };
        let mut replies = Vec::new();
        for statement in text.split(';') {
            match client.try_query(statement) {
                Some(some) => replies.extend(some),
                None => {
                    client = self::client(gateway);
                    // A new client has seen nothing.
                    (replies, written) = (Vec::new(), 0);
                    seen.clear();
                    break;
                }
            }
        }
        for reply in replies.iter().filter(|reply| reply.tag == b'D') {
            let values = reply.values();
            let value = |at: usize| values[at].as_ref().and_then(|value| value.parse::<u64>().ok());
            let (Some(row), Some(n)) = (value(0), value(1)) else { continue };
            if row == who && n < written {
                return Err(format!("{who} has written {written} and read {n}"));
            }
            let before = seen.insert(row, n).unwrap_or(0);
            if n < before {
                return Err(format!("{who} has read {before} of {row}, and then {n}"));
            }
        }
        reads += 1;
    }
    Ok(reads)
}

#[test]
fn nobody_sees_less_than_he_has_written_or_read_however_far_behind_standbys_are() {
    let primary = Cluster::start("primary", &[]);
    let (first, second) = (primary.standby(), primary.standby());
    table(&primary);
    everywhere(&primary, &[&first, &second]);
    let ports = [primary.port, first.port, second.port];
    let gateway =
        Gateway::start(splitting(&ports).set("databases.app.load_balance_hosts", "round-robin"));
    let ended = AtomicBool::new(false);
    let reads: u64 = std::thread::scope(|scope| {
        let (gateway, ended) = (&gateway, &ended);
        let clients: Vec<_> =
            (0..4).map(|who| scope.spawn(move || live(gateway, who, ended))).collect();
        let mut chance = Chance(7);
        for round in 0..24 {
            let standby = [&first, &second][chance.below(2) as usize];
            let word = if chance.below(2) == 0 { "pause" } else { "resume" };
            standby.superuser("postgres").run(&format!("select pg_wal_replay_{word}()"));
            if round == 12 {
                // It begins again behind where it was.
                first.crash();
                first.launch();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        ended.store(true, Ordering::SeqCst);
        clients.into_iter().map(|client| client.join().expect("a client").expect("no less")).sum()
    });
    assert!(reads > 100, "{reads}");
    let split = gateway.figure("pondage_split_reads_total");
    assert!(split > 20, "{split} of {reads} reads went to standbys");
}
