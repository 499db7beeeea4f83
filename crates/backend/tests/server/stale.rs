//! Plans that do not fit any more: who is told, and who may send his request again.

use backend::reply::{Fate, Guest, Kind, Made, Owner, Request};
use backend::server::Server;
use wire::pg::backend::tag;

use super::ask;
use super::recorder::{at_every_split, Answer, Recorder, A, B};

/// As PostgreSQL says it.
fn stale(answer: Answer, routine: &str) -> Answer {
    refused(answer, "0A000", "cached plan must not change result type", routine)
}

fn refused(mut answer: Answer, code: &str, message: &str, routine: &str) -> Answer {
    let fields = [("S", "ERROR"), ("V", "ERROR"), ("C", code), ("M", message), ("R", routine)];
    let body: Vec<u8> = fields.iter().fold(Vec::new(), |mut body, (field, value)| {
        body.extend([field.as_bytes(), value.as_bytes(), b"\0"].concat());
        body
    });
    answer.0.push(tag::ERROR);
    answer.0.extend((body.len() as u32 + 5).to_be_bytes());
    answer.0.extend(body);
    answer.0.push(0);
    answer
}

const ROUTINE: &str = "RevalidateCachedQuery";

fn bind(server: &mut Server, to: &mut Recorder, replans: bool) {
    server.push(Request::forward(A, Kind::Bind).of(7).replanning(replans), to);
    ask(server, to, A, &[Kind::Describe, Kind::Execute, Kind::Sync]);
}

#[test]
fn a_request_that_may_be_sent_again_is_told_to_nobody() {
    let asked = |server: &mut Server, to: &mut Recorder| bind(server, to, true);
    let answer = stale(Answer::new(), ROUTINE).say("Z", "");
    let (mut server, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!(to.tags(A), "");
    assert_eq!(to.told(A), ["Stale(7)", "Again(Stale)"]);
    assert!(server.is_quiet());
    assert_eq!(server.take_withheld()[0], tag::ERROR);
    assert!(server.take_withheld().is_empty());
}

#[test]
fn a_description_that_comes_to_nothing_is_told_to_nobody() {
    let asked = |server: &mut Server, to: &mut Recorder| {
        let made = Fate::Made(Made::ParseComplete);
        server.push(Request::with_fate(A, Kind::Parse, made), to);
        server.push(Request::forward(A, Kind::Describe).of(7).replanning(true), to);
        ask(server, to, A, &[Kind::Sync]);
    };
    let answer = stale(Answer::new().say("t", ""), ROUTINE).say("Z", "");
    let (_, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), ("1".to_owned(), vec!["Stale(7)", "Again(Stale)"]));
    let (_, to) = at_every_split(asked, Answer::new().say("tTZ", "")).expect("a sound answer");
    assert_eq!(to.tags(A), "1tTZ");
    let (_, to) = at_every_split(asked, Answer::new().say("tEZ", "")).expect("a sound answer");
    assert_eq!(to.tags(A), "1tEZ", "another error");
}

/// A Describe and a Flush: the owner sends the Sync when it is told to.
#[test]
fn a_description_that_was_flushed_waits_for_a_sync_that_its_client_does_not_know_of() {
    let describe = || Request::forward(A, Kind::Describe).of(7).replanning(true).flushing(true);
    let asked = |server: &mut Server, to: &mut Recorder| {
        let made = Fate::Made(Made::ParseComplete);
        server.push(Request::with_fate(A, Kind::Parse, made), to);
        server.push(describe(), to);
    };
    let answer = stale(Answer::new().say("t", ""), ROUTINE);
    let (mut server, mut to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), ("1".to_owned(), vec!["Stale(7)", "Unended"]));
    assert!(server.is_quiet() && server.is_skipping());
    ask(&mut server, &mut to, A, &[Kind::Sync]);
    server.receive(&Answer::new().say("Z", "").0, &mut to).expect("a sound answer");
    assert_eq!(to.tags(A), "1");
    assert_eq!(to.told(A), ["Stale(7)", "Unended", "Again(Stale)"]);
    assert_eq!(server.take_withheld()[0], tag::ERROR);

    // Its own Sync, or more, is on its way already: it is told.
    for more in [Kind::Sync, Kind::Execute] {
        let asked = |server: &mut Server, to: &mut Recorder| {
            server.push(describe(), to);
            ask(server, to, A, &[more]);
        };
        let answer = stale(Answer::new(), ROUTINE);
        let answer = if more == Kind::Sync { answer.say("Z", "") } else { answer };
        let (_, to) = at_every_split(asked, answer).expect("a sound answer");
        assert!(to.tags(A).starts_with('E'), "{more:?}");
        assert_eq!(to.told(A)[..2], ["Stale(7)", "Error"], "{more:?}");
    }
}

#[test]
fn with_more_behind_it_its_owner_is_told_after_all() {
    let asked = |server: &mut Server, to: &mut Recorder| {
        bind(server, to, true);
        ask(server, to, A, &[Kind::Query]);
    };
    let answer = stale(Answer::new(), ROUTINE).say("Z", "").say("TDCZ", "next");
    let (_, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!(to.tags(A), "EZTDCZ");
    assert_eq!(to.told(A), ["Stale(7)", "Error", "Ready(Idle)", "Ready(Idle)"]);
}

#[test]
fn what_may_not_be_sent_again_is_told_and_known_to_be_stale() {
    let asked = |server: &mut Server, to: &mut Recorder| bind(server, to, false);
    let answer = stale(Answer::new(), ROUTINE).say("Z", "");
    let (_, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!(to.tags(A), "EZ");
    assert_eq!(to.told(A), ["Stale(7)", "Error", "Ready(Idle)"]);
}

#[test]
fn another_error_with_this_code_is_another_error() {
    let asked = |server: &mut Server, to: &mut Recorder| bind(server, to, true);
    let answer = stale(Answer::new(), "transformSomething").say("Z", "");
    let (_, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!(to.told(A), ["Error", "Ready(Idle)"]);
}

#[test]
fn a_part_of_a_shared_batch_is_sent_again_and_those_behind_it_too() {
    let asked = |server: &mut Server, to: &mut Recorder| {
        for owner in [A, B] {
            let bind = Request::forward(owner, Kind::Bind).of(7).replanning(owner == A);
            server.push(bind.guest(Guest::Plain), to);
            server.push(Request::forward(owner, Kind::Execute).guest(Guest::Plain), to);
            let part = Fate::Made(Made::ReadyForQuery);
            server.push(Request::with_fate(owner, Kind::Part, part), to);
        }
        server.push(Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide), to);
    };
    let answer = stale(Answer::new(), ROUTINE).say("Z", "");
    let (_, to) = at_every_split(asked, answer).expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), (String::new(), vec!["Stale(7)", "Again(Stale)"]));
    assert_eq!(to.told(B), ["Again(Skipped)"]);
}

/// What needs something that was dropped is as stale as what has other rows; what can't be read any
/// more is told; what says nothing of the statement is neither.
#[test]
fn what_postgresql_says_of_a_statement_tells_what_has_become_of_it() {
    let again = ["Stale(7)", "Again(Stale)"];
    let told = |first: &'static str| [first, "Error", "Ready(Idle)"];
    let type_lost = "cache lookup failed for type 16385";
    let misread = "operator does not exist: text = integer";
    for (code, message, routine, expected) in [
        ("XX000", type_lost, "getTypeInputInfo", &again[..]),
        ("XX000", type_lost, "TupleDescInitEntry", &again),
        ("XX000", "cache lookup failed for collation 7", "lookup_collation_cache", &again),
        ("42704", "Typ mit OID 7 existiert nicht", "lookup_type_cache", &again),
        ("42883", misread, "op_error", &told("Misread(7)")),
        ("42P01", "relation \"t\" does not exist", "parserOpenTable", &told("Misread(7)")),
        ("42501", "permission denied for table t", "aclcheck_error", &told("")[1..]),
        ("XX000", "something else", "getTypeInputInfo", &told("")[1..]),
        ("22P02", type_lost, "enum_in", &told("")[1..]),
    ] {
        let asked = |server: &mut Server, to: &mut Recorder| bind(server, to, true);
        let answer = refused(Answer::new(), code, message, routine).say("Z", "");
        let (_, to) = at_every_split(asked, answer).expect("a sound answer");
        assert_eq!(to.told(A), expected, "{code} {message}");
        assert_eq!(to.tags(A), if expected == again { "" } else { "EZ" }, "{code} {message}");
    }
}
