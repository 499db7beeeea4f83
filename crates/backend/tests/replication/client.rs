//! The connection that streams.

use std::time::Duration;

use backend::moment::Moment;
use backend::replication::client::{Phase, ASK_PAUSE, ASK_PAUSE_MAX, MESSAGE_BYTES_MAX};
use backend::replication::Ended;
use proptest::prelude::*;
use wire::pg::pgoutput::{Message, Oids, Old, Prepared, Tuple};
use wire::pg::replication::StatusUpdate;

use super::recorder::Recorder;
use super::script::{
    change, copy_both, data, error, keepalive, relation, slot, Rig, SILENCE, START,
};

const SECOND: u64 = 1_000_000;

fn lost(result: Result<(), Ended>) -> String {
    match result {
        Err(Ended::Lost(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Streams of all kinds mixed, and what is told of them.
fn everything() -> (Vec<u8>, Vec<&'static str>) {
    let (one, two) = (data(&[Some("1"), Some("a")]), data(&[Some("2"), Some("same")]));
    let key = data(&[Some("1"), None]);
    let row = |bytes: &'static [u8]| Tuple::parse(bytes).expect("a row");
    // Leaked: the messages borrow from them, and they are few.
    let (one, two, key) = (row(one.leak()), row(two.leak()), row(key.leak()));
    let oids = [7u32.to_be_bytes(), 8u32.to_be_bytes()].concat().leak();
    let relations = Oids::of(oids).expect("oids");
    let prepared = |at, end| Prepared { at, end, time: 0, xid: 30, gid: b"gid" };
    let gone = Prepared { xid: 31, ..prepared(1, 2) };
    let none = None::<u32>;
    let messages = [
        Message::Begin { commit: 200, time: 0, xid: 10 },
        Message::Origin { commit: 1, name: b"there" },
        Message::Type { xid: none, oid: 9, schema: b"public", name: b"mood" },
        Message::Relation { xid: none, relation: relation(7, 2) },
        Message::Insert { xid: none, relation: 7, new: one },
        Message::Update { xid: none, relation: 7, old: Old::Key(key), new: two },
        Message::Update { xid: none, relation: 7, old: Old::Unknown, new: two },
        Message::Delete { xid: none, relation: 7, old: Old::Whole(one) },
        Message::Truncate { xid: none, options: 0, relations },
        Message::Commit { commit: 200, end: 210, time: 5 },
        Message::StreamStart { xid: 20, first: true },
        Message::Relation { xid: Some(20), relation: relation(8, 2) },
        Message::Insert { xid: Some(20), relation: 8, new: one },
        Message::Insert { xid: Some(21), relation: 8, new: one },
        Message::StreamStop,
        Message::StreamAbort { xid: 20, sub: 21, place: None },
        Message::Begin { commit: 300, time: 0, xid: 11 },
        Message::Commit { commit: 300, end: 310, time: 6 },
        Message::StreamStart { xid: 22, first: true },
        Message::Truncate { xid: Some(22), options: 1, relations },
        Message::StreamStop,
        Message::StreamAbort { xid: 22, sub: 22, place: Some((1, 1)) },
        Message::StreamStart { xid: 20, first: false },
        Message::Delete { xid: Some(20), relation: 8, old: Old::Key(key) },
        Message::StreamStop,
        Message::StreamCommit { xid: 20, commit: 400, end: 410, time: 7 },
        Message::BeginPrepare(prepared(420, 430)),
        Message::Insert { xid: none, relation: 7, new: one },
        Message::Prepare(prepared(420, 430)),
        Message::StreamPrepare(gone),
        Message::RollbackPrepared { prepared: gone, rolled_back: 1 },
        Message::CommitPrepared(prepared(440, 450)),
        Message::Emitted { xid: none, transactional: false, at: 1, prefix: b"p", content: b"" },
    ];
    let told = vec![
        "began 100 t",
        "begin 10",
        "relation 7 c0,c1",
        "row 10 7 ? -> 1,a",
        "row 10 7 key 1,- -> 2,same",
        "row 10 7 ? -> 2,same",
        "row 10 7 whole 1,a -> gone",
        "truncate 10 [7, 8]",
        "commit 10 210",
        "streaming 20",
        "relation 8 c0,c1",
        "row 20 8 ? -> 1,a",
        "row 21 8 ? -> 1,a",
        "abort 20 21",
        "begin 11",
        "commit 11 310",
        "streaming 22",
        "truncate 22 [7, 8]",
        "abort 22 22",
        "streaming 20",
        "row 20 8 key 1,- -> gone",
        "commit 20 410",
        "streaming 30",
        "row 30 7 ? -> 1,a",
        "abort 31 31",
        "commit 30 450",
    ];
    let bytes = messages.iter().flat_map(change).chain(keepalive(500, true)).collect();
    (bytes, told)
}

#[test]
fn a_stream_is_told_the_same_however_its_bytes_are_cut() {
    let (stream, expected) = everything();
    let whole = [slot(), copy_both(), stream].concat();
    for cut in 0..=whole.len() {
        let mut rig = Rig::new(150_000);
        rig.hear(&whole[..cut], 0).expect("the first part");
        rig.hear(&whole[cut..], 0).expect("the rest");
        assert_eq!(rig.told.lines, expected, "cut at {cut}");
        assert_eq!((rig.told.progress, rig.client.told()), (500, 500));
    }
    let mut rig = Rig::new(150_000);
    for byte in &whole {
        rig.hear(&[*byte], 0).expect("a byte");
    }
    assert_eq!(rig.told.lines, expected);
    assert_eq!(rig.told.progress, 500);
}

#[test]
fn the_slot_is_made_and_the_stream_starts_at_its_point() {
    for (version, ending) in [
        (130_004, "(proto_version '1', publication_names '\"it''s \"\"ours\"\"\"')"),
        (
            140_000,
            "(proto_version '2', publication_names '\"it''s \"\"ours\"\"\"', streaming 'on')",
        ),
        (
            150_018,
            "(proto_version '3', publication_names '\"it''s \"\"ours\"\"\"', streaming 'on')",
        ),
        (
            180_001,
            "(proto_version '4', publication_names '\"it''s \"\"ours\"\"\"', streaming 'on')",
        ),
    ] {
        let mut rig = Rig::new(version);
        let create = "CREATE_REPLICATION_SLOT \"pondage_1_1\" TEMPORARY LOGICAL pgoutput \
                      NOEXPORT_SNAPSHOT";
        assert_eq!(rig.asked(), [create]);
        assert_eq!(rig.client.next_tick(), None, "transactions may run for long");
        rig.hear(&slot(), 5).expect("a slot");
        let start = format!("START_REPLICATION SLOT \"pondage_1_1\" LOGICAL 0/64 {ending}");
        assert_eq!(rig.asked(), [start]);
        assert!(rig.told.lines.is_empty());
        rig.hear(&copy_both(), 5).expect("a stream");
        assert_eq!(rig.told.lines, ["began 100 t"]);
        assert_eq!(rig.client.phase(), Phase::Streaming);
        // How far the server is, is asked at once.
        let update = StatusUpdate {
            written: START,
            flushed: START,
            applied: START,
            time: 1_000_005,
            reply: true,
        };
        assert_eq!(rig.reported(), [update]);
    }
}

#[test]
fn positions_are_reported_in_time_when_asked_and_eagerly() {
    let mut rig = Rig::streaming(150_000);
    rig.hear(&keepalive(200, false), SECOND).expect("a keepalive");
    assert_eq!((rig.told.progress, rig.reported().len()), (200, 0));
    rig.hear(&keepalive(200, true), 2 * SECOND).expect("a keepalive");
    let told: Vec<_> = rig.reported().iter().map(|update| (update.flushed, update.reply)).collect();
    assert_eq!(told, [(200, false)], "asked for");
    assert_eq!(rig.client.next_tick(), Some(Moment(12 * SECOND)));
    rig.client.tick(Moment(11 * SECOND)).expect("no loss");
    assert_eq!(rig.reported(), []);
    rig.client.tick(Moment(12 * SECOND)).expect("no loss");
    let told: Vec<_> = rig.reported().iter().map(|update| (update.flushed, update.reply)).collect();
    assert_eq!(told, [(200, true)], "nothing was heard meanwhile: it has to answer");
    rig.hear(&keepalive(300, false), 13 * SECOND).expect("a keepalive");
    rig.client.tick(Moment(22 * SECOND)).expect("no loss");
    let told: Vec<_> = rig.reported().iter().map(|update| (update.flushed, update.reply)).collect();
    assert_eq!(told, [(300, false)]);
    rig.client.eager = true;
    let begin = change(&Message::Begin { commit: 400, time: 0, xid: 1 });
    rig.hear(&begin, 23 * SECOND).expect("a begin");
    assert_eq!(rig.reported(), []);
    let commit = change(&Message::Commit { commit: 400, end: 410, time: 0 });
    rig.hear(&commit, 23 * SECOND).expect("a commit");
    assert_eq!(rig.reported()[0].flushed, 410);
}

#[test]
fn one_ping_is_under_way_and_one_more_stands_for_all_later_ones() {
    let mut rig = Rig::streaming(150_000);
    rig.hear(&keepalive(START, false), 1).expect("the first answer");
    rig.said();
    rig.client.ping(Moment(2));
    rig.client.ping(Moment(3));
    rig.client.ping(Moment(4));
    assert_eq!(rig.reported().len(), 1);
    rig.hear(&keepalive(200, false), 5).expect("an answer");
    assert!(rig.reported()[0].reply, "asked again for those that came later");
    rig.hear(&keepalive(300, false), 6).expect("an answer");
    assert_eq!(rig.reported(), []);
    assert_eq!((rig.told.progress, rig.told.progressed), (300, 3));
    // An idle server is where it was, and that is worth to be known.
    rig.client.ping(Moment(7));
    rig.hear(&keepalive(300, false), 8).expect("an answer");
    assert_eq!((rig.told.progress, rig.told.progressed), (300, 4));
}

#[test]
fn a_position_that_somebody_waits_for_is_asked_for_until_it_is_there() {
    let mut rig = Rig::streaming(150_000);
    rig.hear(&keepalive(START, false), 1).expect("the first answer");
    rig.said();
    let pause = u64::try_from(ASK_PAUSE.as_micros()).expect("short");
    let quiet = rig.client.next_tick();
    rig.client.want(START, Moment(2));
    assert_eq!((rig.reported(), rig.client.next_tick()), (vec![], quiet), "it is there");

    rig.client.want(300, Moment(2));
    assert_eq!(rig.reported(), [], "it has just said how far it is");
    let mut due = 1 + pause;
    assert_eq!(rig.client.next_tick(), Some(Moment(due)));
    rig.client.want(250, Moment(3));
    rig.client.tick(Moment(due)).expect("time to ask");
    assert!(rig.reported()[0].reply);
    rig.client.want(400, Moment(due + 1));
    rig.client.tick(Moment(due + 10 * pause)).expect("no answer yet");
    assert_eq!(rig.reported(), [], "one question is under way");

    // It is asked again, and more and more seldom.
    for doublings in 0..20 {
        rig.hear(&keepalive(200, false), due).expect("not far enough");
        due += (pause << doublings).min(u64::try_from(ASK_PAUSE_MAX.as_micros()).expect("short"));
        assert_eq!(rig.client.next_tick(), Some(Moment(due)));
        rig.client.tick(Moment(due - 1)).expect("too early");
        assert_eq!(rig.reported(), []);
        rig.client.tick(Moment(due)).expect("time to ask");
        assert_eq!(rig.reported().len(), 1);
    }
    rig.hear(&keepalive(400, false), due).expect("there it is");
    assert!(rig.client.next_tick() > Some(Moment(due + SECOND)), "nobody waits any more");
    // After a while of silence at once.
    rig.client.want(500, Moment(due + pause));
    assert!(rig.reported()[0].reply);
}

#[test]
fn silence_is_a_loss_and_anything_heard_is_none() {
    let mut rig = Rig::streaming(150_000);
    let silence = u64::try_from(SILENCE.as_micros()).expect("short");
    rig.client.tick(Moment(silence - 1)).expect("no loss");
    // A part of a message is a sign of life.
    rig.hear(&keepalive(200, false)[..3], silence - 1).expect("a part");
    rig.client.tick(Moment(silence)).expect("no loss");
    let why = lost(rig.client.tick(Moment(2 * silence)));
    assert_eq!(why, "nothing was heard of the server for 30s");
    // While the server starts the stream as well, but not while it waits for transactions.
    let mut rig = Rig::new(150_000);
    rig.client.tick(Moment(10 * silence)).expect("no loss");
    rig.hear(&slot(), 10 * silence).expect("a slot");
    assert_eq!(rig.client.next_tick(), Some(Moment(11 * silence)));
    lost(rig.client.tick(Moment(11 * silence)));
}

#[test]
fn the_end_of_a_page_is_the_begin_of_the_next() {
    let mut rig = Rig::streaming(150_000);
    rig.hear(&keepalive(8192, true), 1).expect("a keepalive");
    assert_eq!((rig.told.progress, rig.reported()[0].flushed), (8192 + 40, 8192));
    rig.hear(&keepalive(8192 + 48, false), 2).expect("a keepalive");
    assert_eq!(rig.told.progress, 8192 + 48);
}

#[test]
fn delays_are_measured_at_commits() {
    let mut rig = Rig::streaming(150_000);
    assert_eq!(rig.client.delay(), None);
    rig.hear(&change(&Message::Begin { commit: 400, time: 0, xid: 1 }), 0).expect("a begin");
    let commit = Message::Commit { commit: 400, end: 410, time: 1_000_040 };
    rig.hear(&change(&commit), 100).expect("a commit");
    assert_eq!(rig.client.delay(), Some(Duration::from_micros(60)));
}

#[test]
fn what_a_slot_lacks_is_named() {
    for (code, message, sql) in [
        ("42501", "permission denied", "ALTER ROLE \"app\" REPLICATION;"),
        ("53400", "all replication slots", "ALTER SYSTEM SET max_replication_slots = 20;"),
        ("55000", "requires wal_level >= logical", "ALTER SYSTEM SET wal_level = 'logical';"),
    ] {
        let mut rig = Rig::new(150_000);
        match rig.hear(&error(code, message), 0) {
            Err(Ended::Refused(missing)) => assert_eq!(missing.sql[0], sql),
            other => panic!("{other:?}"),
        }
    }
    let mut rig = Rig::new(150_000);
    let why = lost(rig.hear(&error("42710", "slot exists"), 0));
    assert_eq!(why, "ERROR 42710: slot exists");
    let mut rig = Rig::streaming(150_000);
    assert_eq!(lost(rig.hear(&error("42501", "now"), 0)), "ERROR 42501: now");
}

#[test]
fn what_makes_no_sense_ends_the_stream() {
    let row = data(&[Some("1")]);
    let new = Tuple::parse(&row).expect("a row");
    let begin = change(&Message::Begin { commit: 2, time: 0, xid: 1 });
    let described = change(&Message::Relation { xid: None, relation: relation(7, 2) });
    let insert = change(&Message::Insert { xid: None, relation: 7, new });
    let mut huge = b"d".to_vec();
    huge.extend_from_slice(&(MESSAGE_BYTES_MAX as u32).to_be_bytes());
    for (what, bytes, words) in [
        ("no description", [&begin[..], &insert].concat(), "not described"),
        ("columns", [&described[..], &begin, &insert].concat(), "a row of 1 columns"),
        ("no transaction", insert.clone(), "outside of a transaction"),
        ("two begins", [&begin[..], &begin].concat(), "is open"),
        ("no begin", change(&Message::Commit { commit: 1, end: 2, time: 0 }), "is open"),
        ("a stop", change(&Message::StreamStop), "is open"),
        (
            "no such change",
            b"d\0\0\0\x1ew\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0?".to_vec(),
            "kind of a change",
        ),
        ("the end", b"c\0\0\0\x04".to_vec(), "ended the stream"),
        ("a row of a query", b"D\0\0\0\x06\0\0".to_vec(), "unexpected message 'D'"),
        ("a length", b"d\0\0\0\x03".to_vec(), "invalid length"),
        ("a huge message", huge, "more than 256 MB"),
    ] {
        let mut rig = Rig::streaming(150_000);
        let why = lost(rig.hear(&bytes, 0));
        assert!(why.contains(words), "{what}: {why}");
    }
    let mut rig = Rig::new(150_000);
    lost(rig.hear(&copy_both(), 0));
}

#[test]
fn a_table_that_is_described_for_the_first_time_is_noticed_once() {
    let mut rig = Rig::streaming(150_000);
    assert!(!rig.client.new_table());
    let described = change(&Message::Relation { xid: None, relation: relation(9, 2) });
    rig.hear(&described, 0).expect("a relation");
    assert!(rig.client.new_table() && !rig.client.new_table());
    rig.hear(&described, 0).expect("the same");
    assert!(!rig.client.new_table());
}

#[test]
fn what_was_told_before_an_error_counts() {
    let mut rig = Rig::streaming(150_000);
    let bytes = [keepalive(900, false), error("57P01", "shut down")].concat();
    lost(rig.hear(&bytes, 0));
    assert_eq!(rig.told.progress, 900);
}

/// A transaction of a random stream: its subtransactions, parts, rows, and whether it is streamed.
#[derive(Debug, Clone)]
enum Step {
    Plain { rows: u8 },
    Start,
    Part { which: u8, subs: Vec<u8> },
    Undo { which: u8, sub: u8 },
    Finish { which: u8, commits: bool },
    Keepalive,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4u8).prop_map(|rows| Step::Plain { rows }),
        Just(Step::Start),
        (any::<u8>(), prop::collection::vec(0..3u8, 0..4))
            .prop_map(|(which, subs)| Step::Part { which, subs }),
        (any::<u8>(), 1..3u8).prop_map(|(which, sub)| Step::Undo { which, sub }),
        (any::<u8>(), any::<bool>()).prop_map(|(which, commits)| Step::Finish { which, commits }),
        Just(Step::Keepalive),
    ];
    prop::collection::vec(step, 0..40)
}

/// The bytes of a stream, what is told of it, and its last position.
fn play(steps: &[Step]) -> (Vec<u8>, Vec<String>, u64) {
    let row = data(&[Some("1"), None]);
    let new = Tuple::parse(&row).expect("a row");
    let (mut bytes, mut told) = (Vec::new(), vec!["began 100 t".to_owned()]);
    let (mut lsn, mut xid, mut open) = (START, 1000, Vec::new());
    let describe = change(&Message::Begin { commit: 101, time: 0, xid: 1 });
    bytes.extend(describe);
    bytes.extend(change(&Message::Relation { xid: None, relation: relation(7, 2) }));
    bytes.extend(change(&Message::Commit { commit: 101, end: 102, time: 0 }));
    told.extend(["begin 1", "relation 7 c0,c1", "commit 1 102"].map(str::to_owned));
    lsn = lsn.max(102);
    for step in steps {
        lsn += 10;
        let chosen = |which: &u8, open: &Vec<u32>| {
            (!open.is_empty()).then(|| usize::from(*which) % open.len())
        };
        match step {
            Step::Plain { rows } => {
                xid += 10;
                bytes.extend(change(&Message::Begin { commit: lsn, time: 0, xid }));
                told.push(format!("begin {xid}"));
                for _ in 0..*rows {
                    bytes.extend(change(&Message::Insert { xid: None, relation: 7, new }));
                    told.push(format!("row {xid} 7 ? -> 1,-"));
                }
                bytes.extend(change(&Message::Commit { commit: lsn, end: lsn + 1, time: 0 }));
                told.push(format!("commit {xid} {}", lsn + 1));
                lsn += 1;
            }
            Step::Start => {
                xid += 10;
                open.push(xid);
            }
            Step::Part { which, subs } => {
                let Some(at) = chosen(which, &open) else { continue };
                let top = open[at];
                bytes.extend(change(&Message::StreamStart { xid: top, first: false }));
                told.push(format!("streaming {top}"));
                for sub in subs {
                    let xid = top + u32::from(*sub);
                    bytes.extend(change(&Message::Insert { xid: Some(xid), relation: 7, new }));
                    told.push(format!("row {xid} 7 ? -> 1,-"));
                }
                bytes.extend(change(&Message::StreamStop));
            }
            Step::Undo { which, sub } => {
                let Some(at) = chosen(which, &open) else { continue };
                let (xid, sub) = (open[at], open[at] + u32::from(*sub));
                bytes.extend(change(&Message::StreamAbort { xid, sub, place: None }));
                told.push(format!("abort {xid} {sub}"));
            }
            Step::Finish { which, commits } => {
                let Some(at) = chosen(which, &open) else { continue };
                let xid = open.swap_remove(at);
                if *commits {
                    let (commit, end) = (lsn, lsn + 1);
                    bytes.extend(change(&Message::StreamCommit { xid, commit, end, time: 0 }));
                    told.push(format!("commit {xid} {end}"));
                    lsn += 1;
                } else {
                    let abort = Message::StreamAbort { xid, sub: xid, place: None };
                    bytes.extend(change(&abort));
                    told.push(format!("abort {xid} {xid}"));
                    lsn -= 10;
                }
            }
            Step::Keepalive => bytes.extend(keepalive(lsn, false)),
        }
        if matches!(step, Step::Start | Step::Part { .. } | Step::Undo { .. }) {
            lsn -= 10;
        }
    }
    (bytes, told, lsn)
}

proptest! {
    #[test]
    fn random_streams_are_told_as_they_are(
        steps in steps(),
        cuts in prop::collection::vec(1..200usize, 1..50),
    ) {
        let (bytes, told, _) = play(&steps);
        let mut rig = Rig::streaming(150_000);
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            rig.hear(piece, 0).expect("a piece");
            rest = after;
        }
        prop_assert_eq!(&rig.told.lines, &told);
        prop_assert!(rig.told.progress == rig.client.told() || rig.client.told() % 8192 == 0);
        let mut whole = Rig::streaming(150_000);
        whole.hear(&bytes, 0).expect("the stream");
        prop_assert_eq!(&whole.told.lines, &rig.told.lines);
        prop_assert_eq!(whole.told.progress, rig.told.progress);
    }

    #[test]
    fn no_bytes_are_too_strange(
        steps in steps(),
        wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (mut bytes, ..) = play(&steps);
        for (at, value) in wrong {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut rig = Rig::streaming(150_000);
        // It may end; it must not panic, and tell nothing before it has begun.
        let _ = rig.hear(&bytes, 0);
        prop_assert_eq!(rig.told.lines[0].as_str(), "began 100 t");
        let Recorder { progress, .. } = rig.told;
        prop_assert!(progress >= START);
    }
}
