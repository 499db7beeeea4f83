//! C17: a standby takes over, with all that it had of the log.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::super::place::{Cached, Place};
use super::forwarder::{Forwarder, COPIES, STREAM};
use super::losses::{steps, ALL, POINT, SET_UP};
use super::{Ends, Mirrored};
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{wait, WireClient};

/// Rows that are lost with the old server have more than this.
const LOST: i64 = 1_000_000;

/// Some megabytes of the log.
const LOG: &str = "create table log as select g, repeat('l', 1000) from generate_series(1, 3000) g";

/// A server, its standby, and the address that they have one after the other.
struct Pair {
    place: Place,
    address: Forwarder,
    standby: &'static Cluster,
}

impl Pair {
    fn start() -> Pair {
        let primary: &Cluster = Box::leak(Box::new(Cluster::start("primary", &[])));
        let standby = Box::leak(Box::new(primary.standby()));
        let address = Forwarder::start(primary.port);
        let place = Place::start_behind(primary, address.port, SET_UP);
        Pair { place, address, standby }
    }

    /// Waits until the standby has all that was committed.
    fn is_replayed(&self) {
        let end = self.place.superuser().one("select pg_current_wal_flush_lsn()");
        let mut standby = self.standby.superuser("postgres");
        let replayed = format!("select pg_last_wal_replay_lsn() >= '{end}'");
        wait::until("a standby that has come so far", || standby.one(&replayed) == "t");
    }

    /// The standby gets nothing more, and something is written that is lost with its server.
    fn loses(&self, writer: &mut WireClient) {
        self.is_replayed();
        let mut standby = self.standby.superuser("postgres");
        standby.run("alter system set primary_conninfo = ''");
        standby.run("select pg_reload_conf()");
        let receivers = "select count(*) from pg_stat_wal_receiver";
        wait::until("the end of the log's receiver", || standby.one(receivers) == "0");
        self.place.beside().run(LOG);
        writer.run(&format!("update t set n = {LOST} + n where id <= 100"));
    }

    /// The server is gone at once, and the standby takes its place.
    fn takes_over(&self) {
        self.place.cluster().crash();
        self.standby.superuser("postgres").run("select pg_promote()");
        self.address.moves_to(self.standby.port);
    }

    /// Waits for a gateway that serves, and for clients that were there before.
    fn is_back(&self, clients: [&mut WireClient; 2]) {
        wait::until("a gateway that serves", || {
            let answered = self.place.client().try_query(&super::unheard(POINT));
            answered.is_some_and(|replies| replies.iter().any(|reply| reply.tag == b'D'))
        });
        for client in clients {
            client.query("select 1");
        }
    }

    fn is_copying(&self) -> bool {
        self.place.gateway.show("mirrors").iter().any(|row| row["state"] == "copying")
    }
}

/// When the old server goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Stands,
    Copied,
}

/// When the stream falls silent, of which nobody is told that its server has gone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Silent {
    Never,
    BeforeTheLoss,
    BehindIt,
}

fn fails_over(when: When, loses: bool, silent: Silent) {
    let what = format!("{when:?}, loses: {loses}, silent: {silent:?}");
    let mut pair = Pair::start();
    let (mut writer, mut reader) = (pair.place.client(), pair.place.client());
    if when == When::Copied {
        pair.address.hold(COPIES, 64 << 10);
    }
    writer.run("mirror table t");
    match when {
        When::Stands => pair.place.mirrors(&[POINT, ALL]),
        When::Copied => wait::until("a copy that gets no further", || pair.is_copying()),
    }
    let last = steps(&pair.place, [&mut writer, &mut reader], 0, 10);
    if silent == Silent::BeforeTheLoss {
        pair.address.hold(STREAM, 0);
    }
    match loses {
        true => pair.loses(&mut writer),
        false => pair.is_replayed(),
    }
    if silent == Silent::BehindIt {
        let lost = [[Some((LOST + last).to_string())]];
        assert_eq!(reader.mirror(POINT), lost);
        pair.address.hold(STREAM, 0);
    }
    reader.unheard_one(POINT);
    pair.takes_over();
    pair.place.moves_to(pair.standby);
    pair.is_back([&mut writer, &mut reader]);
    let got = reader.unheard_one(POINT);
    assert_eq!(got, last.to_string(), "{what}, hit: {}", reader.was_hit());
    let last = steps(&pair.place, [&mut writer, &mut reader], last, 20);
    pair.address.release();
    pair.place.mirrors_again(&[POINT, ALL], &what);
    reader.mirror(POINT);
    steps(&pair.place, [&mut writer, &mut reader], last, 20);
}

#[test]
fn trap_c17_a_standby_takes_over_while_a_mirror_stands() {
    fails_over(When::Stands, false, Silent::Never);
}

#[test]
fn trap_c17_a_standby_takes_over_that_lacks_the_last_commits() {
    fails_over(When::Stands, true, Silent::Never);
}

#[test]
fn trap_c17_a_standby_takes_over_while_a_mirror_is_copied() {
    fails_over(When::Copied, false, Silent::Never);
}

#[test]
fn trap_c17_a_standby_takes_over_while_a_mirror_is_copied_of_what_is_lost() {
    fails_over(When::Copied, true, Silent::Never);
}

#[test]
fn trap_c17_a_standby_takes_over_and_the_stream_has_told_more_than_it_has() {
    fails_over(When::Stands, true, Silent::BehindIt);
}

#[test]
fn trap_c17_a_standby_takes_over_and_the_stream_had_told_too_little() {
    fails_over(When::Stands, true, Silent::BeforeTheLoss);
}

/// A client of a gateway whose server may be away.
fn client(place: &Place) -> WireClient {
    let parameters = [("user", APP), ("database", place.database.name.as_str())];
    wait::for_some("a gateway that lets clients in", || {
        WireClient::try_login(&place.gateway.address(), APP_PASSWORD, &parameters).ok()
    })
}

/// What was acknowledged, and by which server: the first has 0, the second 2.
struct Told {
    n: AtomicI64,
    server: AtomicI64,
    stop: AtomicBool,
}

impl Told {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    fn server(&self) -> i64 {
        self.server.load(Ordering::SeqCst)
    }

    /// Writes as long as it goes on.
    fn writes(&self, place: &Place) {
        let (mut writer, mut n) = (client(place), 0);
        while self.goes_on() {
            n += 1;
            let server = self.server();
            let done = writer.try_query(&format!("update t set n = {n} where id = 1"));
            match done.is_some_and(|replies| replies.iter().all(|reply| reply.tag != b'E')) {
                true if self.server() == server => self.n.store(n, Ordering::SeqCst),
                true => {}
                false => writer = client(place),
            }
        }
    }

    /// Reads as long as it goes on; how many answers of the second server's time were a mirror's.
    fn reads(&self, place: &Place) -> usize {
        let (mut reader, mut hits) = (client(place), 0);
        while self.goes_on() {
            let server = self.server();
            let least = self.n.load(Ordering::SeqCst);
            let replies = reader.try_query(&super::unheard(POINT)).unwrap_or_default();
            let Some(row) = replies.iter().find(|reply| reply.tag == b'D') else {
                reader = client(place);
                continue;
            };
            let got = row.values()[0].clone();
            let n: i64 = got.expect("a number").parse().expect("a number");
            let hit = reader.try_query("explain last statement").unwrap_or_default();
            let hit = format!("{hit:?}").contains("Way: cache");
            // While one takes over, what was acknowledged may be lost with the other.
            if server != 1 && self.server() == server {
                assert!(n >= least, "{n} where {least} was told, server {server}, hit: {hit}");
                hits += usize::from(hit && server == 2);
            }
        }
        hits
    }
}

#[test]
fn trap_c17_a_standby_takes_over_while_everybody_reads_and_writes() {
    let pair = Pair::start();
    pair.place.client().run("mirror table t");
    pair.place.mirrors(&[POINT]);
    let [n, server] = [0, 0].map(AtomicI64::new);
    let told = Told { n, server, stop: AtomicBool::new(false) };
    let hits: usize = std::thread::scope(|scope| {
        let ends = Ends(&told.stop);
        scope.spawn(|| told.writes(&pair.place));
        let readers = [(); 3].map(|()| scope.spawn(|| told.reads(&pair.place)));
        wait::until("some writes", || told.n.load(Ordering::SeqCst) >= 50);
        told.server.store(1, Ordering::SeqCst);
        pair.takes_over();
        told.n.store(0, Ordering::SeqCst);
        told.server.store(2, Ordering::SeqCst);
        wait::until("writes to the other server", || told.n.load(Ordering::SeqCst) > 0);
        let from = pair.place.figure("mirrored_total");
        wait::until("mirrors of the other server", || {
            pair.place.figure("mirrored_total") > from + 100
        });
        drop(ends);
        readers.into_iter().map(|reader| reader.join().expect("a reader")).sum()
    });
    assert!(hits > 50, "only {hits} answers by mirrors");
    assert_eq!(pair.place.figure("mismatches_total"), 0);
}
