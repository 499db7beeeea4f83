//! COPY: what it reads, which Syncs it ignores, how it fails.
//!
//! Source: PostgreSQL docs, "COPY Operations"; `CopyGetData` in copyfromparse.c.

use backend::reply::Kind;

use crate::ask;
use crate::recorder::{at_every_split, server, Answer, Recorder, A, B};

#[test]
fn copy_out_passes_in_both_protocols() {
    let (_, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &[Kind::Query]);
            ask(server, to, B, &[Kind::Bind, Kind::Execute, Kind::Sync]);
        },
        Answer::new().say("HddcCZ", "a").say("2HddcCZ", "b"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("HddcCZ".to_owned(), "2HddcCZ".to_owned()));
}

#[test]
fn copy_in_holds_the_server_until_its_end() {
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &[Kind::Query]);
    server.receive(&Answer::new().say("G", "").0, &mut to).expect("an answer");
    assert!(server.copies_in() && !server.is_quiet());
    server.copy_done();
    assert!(!server.copies_in());
    server.receive(&Answer::new().complete("COPY 1").say("Z", "").0, &mut to).expect("an answer");
    assert_eq!(to.tags(A), "GCZ");
    assert_eq!(to.told(A), ["CopyIn { open: false }", "Ready(Idle)"]);
    assert!(server.is_quiet());
}

/// libpq sends a Sync right behind the Execute of a COPY, and another behind its CopyDone.
#[test]
fn syncs_before_the_copy_is_done_are_not_awaited() {
    for kinds in [&[Kind::Bind, Kind::Execute, Kind::Sync][..], &[Kind::Query, Kind::Sync]] {
        let (mut server, mut to) = (server(), Recorder::default());
        ask(&mut server, &mut to, A, kinds);
        let bound = if kinds.len() == 3 { "2" } else { "" };
        server.receive(&Answer::new().say(bound, "").say("G", "").0, &mut to).expect("G");
        server.sync_in_copy();
        server.copy_done();
        ask(&mut server, &mut to, A, &[Kind::SyncAfterCopy, Kind::Parse, Kind::Sync]);
        let ready = if kinds.len() == 3 { "" } else { "Z" };
        let answer = Answer::new().complete("COPY 0").say(ready, "").say("Z1Z", "");
        server.receive(&answer.0, &mut to).expect("the rest");
        assert!(server.is_quiet() && !server.owes_ready());
    }
}

/// Symptom: a client that sends COPY, its data and its end in one go lost its server with the next
/// batch. Cause: the CopyDone was sent before the server said that it copies in, so the server was
/// thought to copy still, and a later Sync to be ignored.
#[test]
fn a_copy_that_was_ended_before_it_began_reads_no_more() {
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &[Kind::Query]);
    server.copy_done();
    server.receive(&Answer::new().say("G", "").0, &mut to).expect("G");
    assert!(!server.copies_in());
    ask(&mut server, &mut to, A, &[Kind::Parse, Kind::Sync]);
    let answer = Answer::new().complete("COPY 3").say("Z1Z", "");
    server.receive(&answer.0, &mut to).expect("the rest");
    assert_eq!(to.tags(A), "GCZ1Z");
    assert!(server.is_quiet());
}

#[test]
fn a_copy_that_fails_skips_to_the_sync_and_late_data_is_of_no_account() {
    let (server, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &[Kind::Bind, Kind::Execute, Kind::SyncAfterCopy]);
            ask(server, to, B, &[Kind::Query]);
        },
        Answer::new().say("2GEZ", "bad row").say("CZ", "b"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("2GEZ".to_owned(), "CZ".to_owned()));
    assert!(to.told(A).contains(&"CopyOver"));
    assert!(!server.copies_in());
}

/// A COPY that fails before it has read a Sync answers it: nobody can count, so the server must be
/// fenced before another owner's replies are awaited.
#[test]
fn the_answer_to_a_sync_that_was_thought_to_be_ignored_reaches_its_owner_or_is_fenced_off() {
    let (mut server, mut to) = (server(), Recorder::default());
    server.lend(Some(A));
    ask(&mut server, &mut to, A, &[Kind::Bind, Kind::Execute, Kind::Sync]);
    server.receive(&Answer::new().say("2GE", "no rows today").0, &mut to).expect("G and E");
    assert!(server.owes_ready());
    server.receive(&Answer::new().say("Z", "").0, &mut to).expect("an answer to the Sync");
    assert_eq!(to.tags(A), "2GEZ");
    assert!(to.told(A).contains(&"ReadyUnasked(Idle)"));
    assert!(!server.owes_ready());

    ask(&mut server, &mut to, A, &[Kind::Bind, Kind::Execute, Kind::Sync]);
    server.receive(&Answer::new().say("2G", "").0, &mut to).expect("G");
    server.copy_done();
    ask(&mut server, &mut to, A, &[Kind::SyncAfterCopy]);
    server.receive(&Answer::new().say("EZ", "no rows").0, &mut to).expect("E and one Z");
    assert!(server.owes_ready(), "another Z may come, or not");
    server.lend(None);
    let before = to.of(A).len();
    server.fence(&mut to);
    server.receive(&Answer::new().say("Z3Z", "").0, &mut to).expect("the late one and the fence");
    assert!(!server.owes_ready() && server.is_quiet());
    assert_eq!(to.of(A).len(), before);
}

#[test]
fn a_copy_whose_owner_goes_is_nobodys() {
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &[Kind::Query]);
    server.receive(&Answer::new().say("G", "").0, &mut to).expect("G");
    server.disown(A);
    assert!(server.copies_in());
    server.receive(&Answer::new().say("EZ", "").0, &mut to).expect("the end");
    assert!(server.is_quiet() && !server.copies_in());
    assert_eq!(to.tags(A), "G");
}
