use backend::replication::Changes;
use cache::apply::Applier;
use cache::tags::Tags;

use super::*;
use crate::console::fixture;

const NOW: Moment = Moment(1_000_000);

/// When the server was started that the stream comes from.
const STARTED: i64 = 5;

/// Transaction 7 is told, and no snapshot has shown yet that it is visible.
fn told() -> DatabaseCache {
    let shared = Arc::new(Shared::new(Tags::new(1024, 1), Box::new(|| {})));
    let mut applier = Applier::new(shared.clone());
    applier.comes_from(STARTED);
    applier.began(100, &[]);
    applier.begin(7);
    applier.commit(7, 200);
    let config = fixture::config().pool("app", "web").expect("the pool of the fixture");
    let store = Arc::new(Store::new(1 << 20));
    let mut database = DatabaseCache::new(shared, store, Arc::default(), config, None);
    database.link.state = State::Open;
    database
}

/// A pulse is sent, and answered by a server whose log ends at 300.
fn pulse(database: &mut DatabaseCache, snapshot: &str) {
    database.pulses.send();
    database.sent.push_back((NOW, database.shared.starts()));
    (database.due, database.last_sent) = (None, NOW);
    assert!(database.answered(snapshot.as_bytes(), 300, STARTED));
}

#[test]
fn what_nobody_reads_is_asked_for_seldom() {
    let mut database = told();
    pulse(&mut database, "7:7:");
    assert_eq!(database.due(), Some(NOW.after(UNREAD_PACE)));
    // A reader has found it, and others may.
    database.last_look = NOW;
    database.settle(NOW);
    assert_eq!(database.due(), Some(NOW.after(PACE)));
    pulse(&mut database, "7:7:");
    assert_eq!(database.due(), Some(NOW.after(PACE)));
    pulse(&mut database, "8:8:");
    assert_eq!(database.due(), None);
}

#[test]
fn who_waits_is_not_let_wait_longer() {
    let mut database = told();
    database.waiting.push(0);
    pulse(&mut database, "7:7:");
    assert_eq!(database.due(), Some(NOW.after(PACE)));
}

#[test]
fn a_server_that_has_taken_over_says_nothing_of_the_other_one_s_stream() {
    let mut database = told();
    let seen = database.pulses.now();
    database.pulses.send();
    database.sent.push_back((NOW, database.shared.starts()));
    assert!(!database.answered(b"8:8:", 150, STARTED + 1));
    assert_eq!(database.pulses.resolve(seen), None);
    assert_eq!(database.shared.settled(), 0);
}

#[test]
fn what_a_lost_server_told_is_not_waited_for() {
    let mut database = told();
    let recent =
        |database: &mut DatabaseCache| database.mirrors.is_recent(200, Duration::from_secs(5), NOW);
    pulse(&mut database, "7:7:");
    assert!(!recent(&mut database), "its log goes on to 300");
    database.lost(NOW);
    database.mirrors.will_reach(NOW, 180);
    assert!(recent(&mut database));
}
