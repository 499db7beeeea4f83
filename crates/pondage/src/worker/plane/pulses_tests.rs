use backend::replication::Changes;
use cache::apply::Applier;
use cache::tags::Tags;

use super::*;
use crate::console::fixture;

const NOW: Moment = Moment(1_000_000);

/// Transaction 7 is told, and no snapshot has shown yet that it is visible.
fn told() -> DatabaseCache {
    let shared = Arc::new(Shared::new(Tags::new(1024, 1), Box::new(|| {})));
    let mut applier = Applier::new(shared.clone());
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
    database.answered(snapshot.as_bytes(), 300);
}

#[test]
fn what_nobody_reads_is_asked_for_seldom() {
    let mut database = told();
    pulse(&mut database, "7:7:");
    assert_eq!(database.due(), Some(NOW.after(UNREAD_PACE)));
    // A reader has found it.
    database.settle(NOW);
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
