use std::sync::atomic::AtomicUsize;

use super::*;

fn snapshot(text: &str) -> Snapshot {
    Snapshot::parse(text.as_bytes()).expect("a snapshot")
}

fn shared() -> Shared {
    Shared::new(Tags::new(1024, 1), Box::new(|| {}))
}

/// With a stream that has begun as commit 1 and is settled.
fn followed() -> Shared {
    let shared = shared();
    shared.begin(1, HashMap::new());
    shared.settle(snapshot("900:900:"), shared.starts());
    assert_eq!(shared.settled(), 1);
    shared
}

fn commit(shared: &Shared, xid: u32) -> u64 {
    let number = shared.next_number();
    shared.applied_commit(number, Some(xid));
    number
}

#[test]
fn a_snapshot_is_read_and_nothing_else() {
    assert_eq!(snapshot("10:20:10,15,14"), Snapshot { next: 20, running: vec![10, 14, 15] });
    assert_eq!(snapshot("7:7:"), Snapshot { next: 7, running: vec![] });
    for wrong in ["", "1", "1:2", "2:1:", "1:2:,", "1:2:1,", "1:2:x", "1:2:1:3", "-1:2:", "1:2: 1"]
    {
        assert_eq!(Snapshot::parse(wrong.as_bytes()), None, "{wrong:?}");
    }
}

#[test]
fn numbers_of_transactions_go_round() {
    let wide = 3u64 << 32;
    let text = format!("{}:{}:{}", wide - 9, wide + 5, wide - 9);
    let snapshot = snapshot(&text);
    assert!(snapshot.has_ended(3), "of this round");
    assert!(!snapshot.has_ended(5) && !snapshot.has_ended(6), "yet to come");
    assert!(snapshot.has_ended(u32::MAX) && snapshot.has_ended(u32::MAX - 7), "of the last round");
    assert!(!snapshot.has_ended(u32::MAX - 8), "runs");
    assert!(!snapshot.has_ended(1000), "yet to come");
    assert!(snapshot.has_ended(4 | 1 << 31 | 1 << 30), "of the last round");
    assert!(snapshot.have_ended(u32::MAX - 7, 4) && !snapshot.have_ended(u32::MAX - 8, 4));
    assert!(!snapshot.have_ended(u32::MAX - 7, 5));
}

#[test]
fn commits_are_settled_in_order_and_when_they_are_seen() {
    let shared = followed();
    let (one, two, three) = (commit(&shared, 901), commit(&shared, 905), commit(&shared, 902));
    assert_eq!((one, three, shared.settled()), (2, 4, 1));
    let start = shared.starts();
    shared.settle(snapshot("905:906:905"), start);
    assert_eq!(shared.settled(), one, "902 is seen, but 905 comes first");
    shared.settle(snapshot("901:905:901"), start);
    assert_eq!(shared.settled(), one, "an older snapshot takes nothing back");
    shared.settle(snapshot("906:906:"), start);
    assert_eq!((shared.settled(), two), (three, 3));
    let now = shared.next_number();
    shared.applied_commit(now, None);
    assert_eq!(shared.settled(), now, "what everybody sees already is settled at once");
}

#[test]
fn a_full_queue_loses_nothing() {
    let shared = followed();
    let count = UNSETTLED_MAX as u32 + 100;
    let start = u32::MAX - 200;
    let wide = 1u64 << 32;
    let first = (0..count).map(|n| commit(&shared, start.wrapping_add(n))).min().expect("some");
    shared.applied_commit(shared.next_number(), None);
    let last = shared.applied().number;
    let end = u64::from(start) + u64::from(count);
    assert!(end > wide);
    assert_eq!(shared.unsettled_count(), UNSETTLED_MAX + 1);
    let running = u64::from(start) + UNSETTLED_MAX as u64 + 50;
    let settle = |text: String| {
        shared.settle(snapshot(&text), shared.starts());
        shared.settled()
    };
    let of_queue = first + UNSETTLED_MAX as u64 - 1;
    assert_eq!(settle(format!("{running}:{end}:{running}")), of_queue, "one of the rest runs");
    let late = end - 1;
    assert_eq!(settle(format!("{late}:{late}:")), of_queue, "the last had not begun");
    let other = end + 7;
    assert_eq!(settle(format!("{other}:{}:{other}", end + 9)), last, "another one runs");
    assert_eq!(shared.unsettled_count(), 0);
}

#[test]
fn nothing_is_settled_while_those_run_that_may_have_committed_before_the_start() {
    let shared = shared();
    let before = shared.starts();
    shared.begin(77, HashMap::new());
    assert_eq!(shared.applied(), Applied { number: 1, lsn: 77 });
    commit(&shared, 910);
    shared.settle(snapshot("930:930:"), before);
    assert_eq!(shared.settled(), 0, "a snapshot from before the start says nothing");
    let start = shared.starts();
    shared.settle(snapshot("905:930:905,920"), start);
    shared.settle(snapshot("920:931:920,930"), start);
    assert_eq!(shared.settled(), 0, "920 was there in the first one");
    assert_eq!(shared.start_waits_for(), [920]);
    shared.settle(snapshot("930:931:930"), start);
    assert_eq!(shared.settled(), 2, "930 was not");
}

#[test]
fn a_new_stream_raises_all_tags_and_forgets_what_was_unsettled() {
    let shared = followed();
    commit(&shared, 901);
    shared.lose("the server has gone");
    assert!(!shared.is_following());
    assert_eq!(shared.why_lost().as_deref(), Some("the server has gone"));
    shared.begin(5, HashMap::new());
    assert!(shared.is_following() && shared.why_lost().is_none());
    assert_eq!(shared.applied(), Applied { number: 3, lsn: 5 });
    assert_eq!(shared.tags.read(shared.tags.any(42)), 3);
    shared.settle(snapshot("100:100:"), shared.starts());
    assert_eq!(shared.settled(), 3, "901 was another server's");
}

#[test]
fn who_wants_a_position_is_woken_when_it_is_reached() {
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    let wake = || {
        WOKEN.fetch_add(1, Ordering::Relaxed);
    };
    let woken = || WOKEN.swap(0, Ordering::Relaxed);
    let shared = Shared::new(Tags::new(1024, 1), Box::new(wake));
    shared.begin(10, HashMap::new());
    assert!(shared.want(10));
    assert!(!shared.want(30) && !shared.want(20));
    woken();
    shared.reach(19);
    assert_eq!(woken(), 0);
    shared.reach(20);
    assert_eq!(woken(), 1);
    shared.reach(31);
    assert_eq!(woken(), 0, "who waited for 30 has not said so again");
    assert!(!shared.want(50));
    shared.lose("gone");
    assert_eq!(woken(), 1);
}

#[test]
fn what_is_waited_for_is_told_to_the_stream() {
    static WANTED: AtomicU64 = AtomicU64::new(0);
    let shared = followed();
    shared.tell_wants(Box::new(|lsn| WANTED.store(lsn, Ordering::Relaxed)));
    shared.reach(20);
    assert!(shared.want(20));
    assert_eq!(WANTED.load(Ordering::Relaxed), 0, "it is there");
    assert!(!shared.want(30));
    assert_eq!(WANTED.load(Ordering::Relaxed), 30);
}

/// While a stream begins a snapshot may come that was asked for just now.
#[test]
fn a_server_with_a_shorter_log_does_not_show_up_to_where_the_last_one_was() {
    let shared = shared();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                shared.settle(snapshot("900:900:"), shared.starts());
            }
        });
        let mut furthest = 0;
        for _ in 0..5_000 {
            shared.begin(1_000, HashMap::new());
            shared.lose("it fails over");
            shared.begin(10, HashMap::new());
            furthest = furthest.max(shared.mirrors.shown());
            shared.lose("it fails back");
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(furthest, 10);
    });
}

#[test]
fn positions_are_compared_with_those_of_the_same_server_alone() {
    let shared = followed();
    shared.comes_from(7);
    assert!(shared.is_of(7) && !shared.is_of(8));
    shared.lose("it fails over");
    shared.comes_from(8);
    assert!(shared.is_of(8) && !shared.is_of(7));
}
