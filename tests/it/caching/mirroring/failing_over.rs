//! C17: a standby takes over, with all that it had of the log.

use super::super::place::{Cached, Place};
use super::forwarder::{Forwarder, COPIES, STREAM};
use super::losses::{steps, ALL, POINT, SET_UP};
use super::Mirrored;
use crate::kit::cluster::Cluster;
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
    fn fails_over(&mut self) {
        self.place.cluster().crash();
        self.standby.superuser("postgres").run("select pg_promote()");
        self.address.moves_to(self.standby.port);
        self.place.moves_to(self.standby);
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
    pair.fails_over();
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
