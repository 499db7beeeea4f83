//! Reads that a standby gives up: the primary is asked, and their clients do not notice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::client;
use super::splitting::{everywhere, splitting, table};
use crate::kit::cluster::{Cluster, APP};
use crate::kit::gateway::Gateway;
use crate::kit::wireclient::Message;
use crate::kit::{wait, WireClient};

/// What sleeps on a standby and nowhere else. It says that it is stable, so that it may be read with.
const SLOW: &str = "create function slow(seconds int) returns text language plpgsql stable as $$ \
                    begin \
                      if pg_is_in_recovery() then perform pg_sleep(seconds); end if; \
                      return current_setting('port'); \
                    end $$";

struct Pair {
    primary: Cluster,
    standby: Cluster,
    gateway: Gateway,
}

/// A standby that waits for nobody.
fn pair() -> Pair {
    let primary = Cluster::start("primary", &["max_standby_streaming_delay = 0"]);
    let standby = primary.standby();
    table(&primary);
    let mut superuser = primary.superuser("postgres");
    superuser.run(SLOW);
    superuser.run("create table long (n int, pad text)");
    superuser.run("insert into long select n, repeat('x', 1000) from generate_series(1, 200) n");
    superuser.run(&format!("grant all on long to {APP}"));
    everywhere(&primary, &[&standby]);
    let gateway = Gateway::start(splitting(&[primary.port, standby.port]));
    Pair { primary, standby, gateway }
}

impl Pair {
    fn returned(&self) -> u64 {
        self.gateway.figure("pondage_split_returned_total")
    }

    /// Until a statement like this one, with 0 for its question mark, is asked at the standby.
    fn is_known(&self, text: &str) {
        let mut client = client(&self.gateway);
        let before = self.gateway.figure("pondage_split_reads_total");
        wait::until("a verdict", || {
            client.run(&text.replace('?', "0"));
            std::thread::sleep(Duration::from_millis(100));
            self.gateway.figure("pondage_split_reads_total") > before
        });
    }

    fn sleeping(&self) -> bool {
        let count = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        self.standby.superuser("postgres").one(count) != "0"
    }

    /// What came of it when `ask` slept at the standby and `happens` to that. It may have been asked
    /// of the primary for no fault of its own: then it is asked again.
    fn during<T: Send>(
        &self,
        mut ask: impl FnMut(&mut WireClient) -> T + Send,
        happens: impl FnOnce(),
    ) -> T {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let mut client = client(&self.gateway);
                loop {
                    let answer = ask(&mut client);
                    if over.load(Ordering::SeqCst) {
                        return answer;
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
            });
            wait::until("somebody who sleeps", || self.sleeping());
            over.store(true, Ordering::SeqCst);
            happens();
            asked.join().expect("a client")
        })
    }

    /// The primary takes a lock, which the standby has to replay.
    fn lock(&self, table: &str) {
        let mut superuser = self.primary.superuser("postgres");
        superuser.run(&format!("begin; lock table {table} in access exclusive mode; commit"));
    }
}

fn value(replies: &[Message]) -> Option<String> {
    replies.iter().find(|reply| reply.tag == b'D')?.values().remove(0)
}

fn code(replies: &[Message]) -> Option<String> {
    replies.iter().find(|reply| reply.tag == b'E').map(|reply| reply.complaint().code)
}

#[test]
fn a_read_that_conflicts_with_recovery_is_answered_by_the_primary() {
    let pair = pair();
    let home = pair.primary.port.to_string();
    let text = "select slow(?), n from t where who = 0";
    pair.is_known(text);
    let slow = text.replace('?', "600");
    let answer = pair.during(|client| client.query(&slow), || pair.lock("t"));
    assert_eq!((code(&answer), value(&answer)), (None, Some(home.clone())));
    let tags: Vec<u8> = answer.iter().map(|reply| reply.tag).collect();
    assert_eq!(tags, *b"TDCZ", "nothing of the standby's answer");
    assert_eq!(pair.returned(), 1);

    // Extended, behind a Parse of its own.
    let text = "select slow($1::int), n from t where who = 1";
    let extended =
        |client: &mut WireClient, seconds: &[u8]| client.extended(text, &[Some(seconds)]);
    let mut warm = client(&pair.gateway);
    let before = pair.gateway.figure("pondage_split_reads_total");
    wait::until("a verdict", || {
        extended(&mut warm, b"0");
        std::thread::sleep(Duration::from_millis(100));
        pair.gateway.figure("pondage_split_reads_total") > before
    });
    let answer = pair.during(|client| extended(client, b"600"), || pair.lock("t"));
    assert_eq!((code(&answer), value(&answer)), (None, Some(home)));
    let tags: Vec<u8> = answer.iter().map(|reply| reply.tag).collect();
    assert_eq!(tags, *b"12DCZ");
    assert_eq!(pair.returned(), 2);
    // What it has left behind is in order.
    extended(&mut warm, b"0");
    assert_eq!(client(&pair.gateway).one("select 1"), "1");
}

#[test]
fn a_read_whose_answer_has_begun_is_told_of_the_conflict() {
    let pair = pair();
    let text = "select pad, case when n = 200 then slow(?) end from long";
    pair.is_known(text);
    let slow = text.replace('?', "600");
    let answer = pair.during(|client| client.query(&slow), || pair.lock("long"));
    assert_eq!(code(&answer).as_deref(), Some("40001"));
    assert!(answer.iter().filter(|reply| reply.tag == b'D').count() > 100);
    assert_eq!(pair.returned(), 0);
}

#[test]
fn a_read_only_transaction_goes_to_the_primary_with_its_first_statement_only() {
    let pair = pair();
    let (home, away) = (pair.primary.port.to_string(), pair.standby.port.to_string());
    let text = "select slow(?), n from t where who = 0";
    pair.is_known(text);
    let slow = text.replace('?', "600");
    let port = "select current_setting('port')";
    let ask = |client: &mut WireClient| {
        client.run("begin isolation level repeatable read read only");
        let replies = client.query(&slow);
        let there = client.one(port);
        client.run("commit");
        (replies, there)
    };
    let (answer, there) = pair.during(ask, || pair.lock("t"));
    assert_eq!((code(&answer), value(&answer)), (None, Some(home.clone())));
    assert_eq!(there, home, "all of it");
    assert_eq!(answer.last().map(|ready| ready.body.as_slice()), Some(&b"T"[..]));
    assert_eq!(pair.returned(), 1);

    let ask = |client: &mut WireClient| {
        client.run("begin read only");
        let there = client.one(port);
        let replies = client.query(&slow);
        client.run("rollback");
        (replies, there)
    };
    let (answer, there) = pair.during(ask, || pair.lock("t"));
    assert_eq!(there, away);
    assert_eq!(code(&answer).as_deref(), Some("40001"));
    assert_eq!(pair.returned(), 1);
}

#[test]
fn a_read_on_a_standby_that_crashes_is_answered_by_the_primary() {
    let pair = pair();
    let text = "select slow(?), n from t where who = 0";
    pair.is_known(text);
    let slow = text.replace('?', "600");
    let answer = pair.during(|client| client.query(&slow), || pair.standby.crash());
    assert_eq!((code(&answer), value(&answer)), (None, Some(pair.primary.port.to_string())));
    assert_eq!(pair.returned(), 1);
}

#[test]
fn a_read_that_is_cancelled_or_terminated_by_somebody_is_told() {
    let pair = pair();
    let text = "select slow(?), n from t where who = 0";
    pair.is_known(text);
    let slow = text.replace('?', "600");
    let ends = |how: &str| {
        let end = format!("select {how}(pid) from pg_stat_activity where wait_event = 'PgSleep'");
        pair.standby.superuser("postgres").run(&end);
    };
    let answer = pair.during(|client| client.query(&slow), || ends("pg_cancel_backend"));
    assert_eq!(code(&answer).as_deref(), Some("57014"));
    let ask = |client: &mut WireClient| {
        client.put(|out| wire::pg::frontend::put_query(out, &slow));
        let mut heard = Vec::new();
        while let Some(message) = client.try_message_or_cut() {
            let last = matches!(message.tag, b'E' | b'Z');
            heard.push(message);
            if last {
                break;
            }
        }
        heard
    };
    let answer = pair.during(ask, || ends("pg_terminate_backend"));
    assert_eq!(code(&answer).as_deref(), Some("57P01"), "{answer:?}");
    assert_eq!(pair.returned(), 0);
}
