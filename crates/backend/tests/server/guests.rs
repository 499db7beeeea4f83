//! Owners that share a server: one Sync for several, errors that are nobody's business.

use backend::reply::{Fate, Guest, Kind, Made, Owner, Request};
use backend::server::{LastWords, Server};

use super::ask;
use super::recorder::{at_every_split, Answer, Recorder, A, B};

const C: Owner = Owner(3);

/// One owner's part of a shared batch.
fn part(server: &mut Server, to: &mut Recorder, owner: Owner, guest: Guest) {
    for kind in [Kind::Bind, Kind::Describe, Kind::Execute] {
        let fate = match (guest, kind) {
            (Guest::StandIn, Kind::Bind) => Fate::HideSuccess,
            _ => Fate::Forward,
        };
        server.push(Request::with_fate(owner, kind, fate).guest(guest), to);
    }
    server.push(Request::with_fate(owner, Kind::Part, Fate::Made(Made::ReadyForQuery)), to);
}

fn sync(server: &mut Server, to: &mut Recorder) {
    server.push(Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide), to);
}

#[test]
fn one_sync_serves_several_and_each_gets_its_own_ready() {
    let (server, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::Plain);
            part(server, to, B, Guest::StandIn);
            sync(server, to);
            ask(server, to, A, &[Kind::Query]);
        },
        Answer::new().say("2TDC", "a1").say("2TDDC", "b1").say("Z", "").say("TDCZ", "a2"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("2TDCZTDCZ".to_owned(), "TDDCZ".to_owned()));
    assert_eq!(to.told(B), ["Ready(Idle)"]);
    assert_eq!(to.told(A), ["Ready(Idle)", "Ready(Idle)"]);
    assert!(server.is_quiet());
}

#[test]
fn behind_an_error_the_others_are_sent_again() {
    let (server, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::Plain);
            part(server, to, B, Guest::Plain);
            part(server, to, C, Guest::Plain);
            sync(server, to);
            part(server, to, C, Guest::Plain);
            sync(server, to);
        },
        Answer::new().say("2TDC", "a").say("2TDE", "b").say("Z", "").say("2TDCZ", "c"),
    )
    .expect("a sound answer");
    assert_eq!((to.tags(A), to.tags(B)), ("2TDCZ".to_owned(), "2TDEZ".to_owned()));
    assert_eq!(to.told(B), ["Error", "Ready(Idle)"]);
    assert_eq!(to.tags(C), "2TDCZ", "nothing of what was skipped");
    assert_eq!(to.told(C), ["Again(Skipped)", "Ready(Idle)"]);
    assert!(server.is_quiet());
}

#[test]
fn a_stand_in_that_fails_before_its_answer_is_told_to_nobody() {
    let (_, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::StandIn);
            part(server, to, B, Guest::Plain);
            sync(server, to);
            // Alone behind its own Sync.
            let bind = Request::with_fate(C, Kind::Bind, Fate::HideSuccess).guest(Guest::StandIn);
            server.push(bind, to);
            ask(server, to, C, &[Kind::Sync]);
        },
        Answer::new().say("EZ", "invalid input").say("EZ", "again"),
    )
    .expect("a sound answer");
    assert_eq!((to.of(A), to.of(B), to.of(C)), (&b""[..], &b""[..], &b""[..]));
    assert_eq!(to.told(A), ["Again(Refused)"]);
    assert_eq!(to.told(B), ["Again(Skipped)"]);
    assert_eq!(to.told(C), ["Again(Refused)"]);
}

#[test]
fn a_stand_in_that_fails_in_its_answer_is_told() {
    let (_, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::StandIn);
            sync(server, to);
        },
        Answer::new().say("2TDDEZ", "division by zero"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "TDDEZ");
    assert_eq!(to.told(A), ["Error", "Ready(Idle)"]);
}

#[test]
fn the_last_words_of_a_shared_server_are_not_for_who_has_no_answer_yet() {
    let fatal = |guest| {
        at_every_split(
            move |server, to| {
                part(server, to, A, guest);
                sync(server, to);
            },
            Answer::new().error("FATAL", "terminating connection"),
        )
        .expect("it may say so")
    };
    for guest in [Guest::Plain, Guest::StandIn] {
        let (server, to) = fatal(guest);
        assert_eq!((to.of(A), to.told(A).len()), (&b""[..], 0));
        assert_eq!(*server.last_words(), LastWords::ToldTo(Owner::NOBODY));
    }
    let (server, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::Plain);
            sync(server, to);
        },
        Answer::new().say("2TD", "a").error("FATAL", "terminating connection"),
    )
    .expect("it may say so");
    assert_eq!(to.tags(A), "2TDE");
    assert_eq!(*server.last_words(), LastWords::ToldTo(A));
}

#[test]
fn a_part_whose_owner_has_gone_is_answered_to_nobody_and_skips_the_others_all_the_same() {
    let (_, to) = at_every_split(
        |server, to| {
            part(server, to, A, Guest::Plain);
            part(server, to, B, Guest::Plain);
            sync(server, to);
            server.disown(A);
        },
        Answer::new().say("2TDE", "a").say("Z", ""),
    )
    .expect("a sound answer");
    assert_eq!(to.of(A), b"");
    assert_eq!(to.told(B), ["Again(Skipped)"]);
}

#[test]
fn it_is_known_who_has_begun_to_get_an_answer() {
    let (mut server, mut to) = (super::server(), Recorder::default());
    part(&mut server, &mut to, A, Guest::Plain);
    part(&mut server, &mut to, B, Guest::Plain);
    sync(&mut server, &mut to);
    let mut hear = |server: &mut Server, tags| {
        server.receive(&Answer::new().say(tags, "x").0, &mut to).expect("sound");
        (server.has_begun(A), server.has_begun(B))
    };
    assert_eq!(hear(&mut server, ""), (false, false));
    assert_eq!(hear(&mut server, "2T"), (true, false));
    assert_eq!(hear(&mut server, "C"), (false, false));
    assert_eq!(hear(&mut server, "2"), (false, true));
    assert_eq!(hear(&mut server, "TCZ"), (false, false));
}

#[test]
fn a_hurried_write_that_meets_a_lock_is_sent_again_and_other_errors_are_told() {
    for (code, foreign, again) in [
        ("55P03", false, true),
        ("57014", true, true),
        ("57014", false, false),
        ("23505", true, false),
    ] {
        let (_, to) = at_every_split(
            |server, to| {
                server.cancelling = Some(if foreign { B } else { A });
                let query = Request::forward(A, Kind::Query).guest(Guest::Hurried);
                server.push(query, to);
            },
            Answer::new().failure(code).say("Z", ""),
        )
        .expect("a sound answer");
        let told: &[&str] = if again { &["Again(Hurried)"] } else { &["Error", "Ready(Idle)"] };
        assert_eq!(to.told(A), told, "{code}");
    }
}
