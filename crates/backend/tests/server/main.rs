//! A server's reply queue: who gets which reply, whatever is in flight and however the bytes of
//! the replies are cut.

mod copy;
mod fates;
mod guests;
mod recorder;
mod stale;
mod yields;

use backend::reply::{Kind, Owner, Request};
use backend::server::{LastWords, Lost, Server};
use recorder::{at_every_split, server, Answer, Recorder, A, B};
use wire::pg::backend::TxStatus;

fn ask(server: &mut Server, to: &mut Recorder, owner: Owner, kinds: &[Kind]) {
    for kind in kinds {
        server.push(Request::forward(owner, *kind), to);
    }
}

const BATCH: [Kind; 5] = [Kind::Parse, Kind::Bind, Kind::Describe, Kind::Execute, Kind::Sync];

#[test]
fn batches_of_several_owners_in_flight_each_get_their_own_replies() {
    let (server, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &BATCH);
            ask(server, to, B, &[Kind::Query]);
            ask(server, to, A, &[Kind::Bind, Kind::Execute, Kind::Sync]);
            ask(server, to, B, &BATCH);
        },
        Answer::new()
            .say("12TDCZ", "a1")
            .say("TDCTDCZ", "b1")
            .say("2DDCZ", "a2")
            .say("12nCZ", "b2"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "12TDCZ2DDCZ");
    assert_eq!(to.tags(B), "TDCTDCZ12nCZ");
    assert_eq!(to.turns, [1, 2, 1, 2]);
    let has = |owner, mark: &[u8]| to.of(owner).windows(2).any(|window| window == mark);
    assert!(has(A, b"a2") && !has(A, b"b1") && has(B, b"b1") && !has(B, b"a1"));
    assert_eq!(to.told(A), ["Ready(Idle)", "Ready(Idle)"]);
    assert!(server.is_quiet() && server.depth() == 0);
}

#[test]
fn an_error_skips_only_its_own_batch() {
    let (_, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &BATCH);
            ask(server, to, B, &BATCH);
            ask(server, to, A, &BATCH);
        },
        Answer::new().say("1EZ", "a1").say("12TDCZ", "b1").say("EZ", "a2"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("1EZEZ".to_owned(), "12TDCZ".to_owned()));
    assert_eq!(to.told(A), ["Error", "Ready(Idle)", "Error", "Ready(Idle)"]);
}

#[test]
fn an_error_in_a_simple_query_skips_nothing() {
    let (_, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &[Kind::Query, Kind::Function]);
            ask(server, to, B, &[Kind::Query]);
        },
        Answer::new().say("TDCEZ", "a").say("EZ", "a").say("IZ", "b"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("TDCEZEZ".to_owned(), "IZ".to_owned()));
}

#[test]
fn an_error_at_the_sync_itself_skips_nothing_after_it() {
    let (_, to) = at_every_split(
        |server, to| ask(server, to, A, &[Kind::Execute, Kind::Sync, Kind::Parse, Kind::Sync]),
        Answer::new().say("CEZ1Z", "deferred"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "CEZ1Z");
}

/// Symptom: the server was lost, with "unexpected message '1'", when a client sent its next batch
/// after the error of the one before had come and its ReadyForQuery had not.
/// Cause: whatever was announced between the two was taken for skipped, even behind the Sync that
/// ends the skipping.
#[test]
fn what_is_sent_between_an_error_and_its_ready_is_not_skipped() {
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &BATCH);
    server.receive(&Answer::new().say("E", "a").0, &mut to).expect("an error");
    assert!(!server.is_skipping(), "the Sync is on its way");
    ask(&mut server, &mut to, A, &BATCH);
    server.receive(&Answer::new().say("Z12TDCZ", "a").0, &mut to).expect("both answers");
    assert_eq!(to.tags(A), "EZ12TDCZ");

    ask(&mut server, &mut to, A, &[Kind::Bind]);
    server.receive(&Answer::new().say("E", "a").0, &mut to).expect("an error");
    assert!(server.is_skipping());
    ask(&mut server, &mut to, A, &[Kind::Execute, Kind::Query]);
    assert_eq!(server.depth(), 0, "skipped before they are sent");
    ask(&mut server, &mut to, A, &[Kind::Sync, Kind::Parse, Kind::Sync]);
    server.receive(&Answer::new().say("Z1Z", "a").0, &mut to).expect("both answers");
    assert!(server.is_quiet());
}

#[test]
fn notices_go_to_who_asks_and_settings_are_told() {
    let (mut server, to) = at_every_split(
        |server, to| {
            server.lend(Some(B));
            ask(server, to, A, &[Kind::Query]);
        },
        Answer::new()
            .notice("for a")
            .complete("SET")
            .parameter("TimeZone", "Asia/Tokyo")
            .ready(TxStatus::InTransaction)
            .notice("for b"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("NCSZ".to_owned(), "N".to_owned()));
    let setting = "Setting { name: \"TimeZone\", value: \"Asia/Tokyo\" }";
    assert_eq!(to.told(A), [setting, "Ready(InTransaction)"]);
    let expected = [("TimeZone".to_owned(), "Asia/Tokyo".to_owned())];
    assert_eq!(server.take_reported(), expected);
}

#[test]
fn notifications_are_the_holders_or_the_poolers() {
    for apart in [false, true] {
        let (_, to) = at_every_split(
            |server, to| {
                server.lend(Some(B));
                server.apart = apart;
                ask(server, to, A, &[Kind::Query]);
            },
            Answer::new()
                .notification("a")
                .complete("NOTIFY")
                .notification("b")
                .ready(TxStatus::Idle)
                .notification("c"),
        )
        .expect("a sound answer");
        let told: Vec<String> =
            to.told(B).iter().map(|event| event.chars().take(12).collect()).collect();
        if apart {
            assert_eq!((to.tags(A), to.tags(B)), ("CZ".to_owned(), String::new()));
            assert_eq!(told, ["Notification"; 3]);
        } else {
            assert_eq!((to.tags(A), to.tags(B)), ("ACAZ".to_owned(), "A".to_owned()));
            assert_eq!(told, ["Notified"]);
        }
    }
}

#[test]
fn in_statement_mode_a_transaction_left_open_is_told_instead_of_its_ready() {
    let (_, to) = at_every_split(
        |server, to| {
            server.single = true;
            ask(server, to, A, &[Kind::Query]);
        },
        Answer::new().complete("BEGIN").ready(TxStatus::InTransaction),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), ("C".to_owned(), vec!["LeftOpen"]));
}

#[test]
fn a_message_that_answers_nothing_loses_the_server() {
    let lost = |ask_for: &'static [Kind], answer: Answer| {
        let outcome = at_every_split(|server, to| ask(server, to, A, ask_for), answer);
        outcome.err()
    };
    let unexpected = |tag, awaited| Some(Lost::Unexpected { tag, awaited });
    assert_eq!(lost(&[], Answer::new().say("1", "")), unexpected(b'1', None));
    assert_eq!(lost(&[], Answer::new().say("Z", "")), unexpected(b'Z', None));
    assert_eq!(
        lost(&[Kind::Parse], Answer::new().say("2", "")),
        unexpected(b'2', Some(Kind::Parse))
    );
    assert_eq!(lost(&[Kind::Bind], Answer::new().say("Z", "")), unexpected(b'Z', Some(Kind::Bind)));
    assert_eq!(lost(&[Kind::Sync], Answer::new().say("D", "")), unexpected(b'D', Some(Kind::Sync)));
    assert!(matches!(lost(&[Kind::Query], Answer(b"C\0\0\0\x01".to_vec())), Some(Lost::Wire(_))));
    assert!(matches!(lost(&[Kind::Query], Answer(b"Z\0\0\0\x05?".to_vec())), Some(Lost::Wire(_))));
    let long = lost(&[Kind::Query], Answer(b"C\x10\0\0\0".to_vec()));
    assert_eq!(long, Some(Lost::TooLong { tag: b'C', bytes: 0x1000_0001 }));
}

#[test]
fn a_row_of_a_gigabyte_passes_in_pieces_and_is_never_kept() {
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &[Kind::Query]);
    let length: usize = 0x3fff_ffff;
    let mut head = vec![b'D'];
    head.extend_from_slice(&(length as u32).to_be_bytes());
    server.receive(&head, &mut to).expect("a header");
    assert!(server.is_within_message(A));
    let piece = vec![7u8; 1 << 20];
    let mut left = length - 4;
    while left > 0 {
        let take = left.min(piece.len());
        server.receive(&piece[..take], &mut to).expect("a piece");
        let passed = to.bytes.remove(&A.0).map_or(0, |bytes| bytes.len());
        assert!(passed == take || passed == take + head.len());
        left -= take;
    }
    assert!(!server.is_within_message(A) && !server.is_quiet());
    server.receive(&Answer::new().say("CZ", "").0, &mut to).expect("the end");
    assert_eq!(to.tags(A), "CZ");
    assert!(server.is_quiet());
}

/// Symptom: a client whose transaction was over got the FATAL of a server that died right behind
/// it, and lived on with another server.
/// Cause: what came unasked went to whoever still counted as the holder.
#[test]
fn last_words_that_nobody_asked_for_are_kept_for_who_has_the_server_when_it_closes() {
    let fatal = Answer::new().error("FATAL", "terminating").0;
    let (server, to) = at_every_split(
        |server, to| {
            server.lend(Some(A));
            ask(server, to, A, &[Kind::Query]);
        },
        Answer::new().say("CZ", "").error("FATAL", "terminating"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "CZ");
    assert!(server.is_dying());
    assert_eq!(*server.last_words(), LastWords::Kept(fatal));

    let (server, to) = at_every_split(
        |server, to| ask(server, to, A, &[Kind::Query]),
        Answer::new().error("FATAL", "terminating"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "E");
    assert_eq!(*server.last_words(), LastWords::ToldTo(A));
}
