//! Requests whose answers are hidden or made up, and owners that go.

use std::sync::Arc;

use backend::moment::Moment;
use backend::reply::{Fate, Kind, Made, Owner, Request};
use backend::server::{Server, Unnamed};
use backend::settings::Settings;
use backend::statement::Need;
use wire::pg::backend::TxStatus;

use crate::ask;
use crate::recorder::{at_every_split, server, Answer, Recorder, A, B};

const MADE_PARSE: Fate = Fate::Made(Made::ParseComplete);
const MADE_CLOSE: Fate = Fate::Made(Made::CloseComplete);

#[test]
fn made_replies_come_in_their_place() {
    let (_, to) = at_every_split(
        |server, to| {
            server.push(Request::with_fate(A, Kind::Parse, MADE_PARSE).telling(true), to);
            ask(server, to, A, &[Kind::Bind]);
            server.push(Request::with_fate(A, Kind::Close, MADE_CLOSE).telling(true), to);
            ask(server, to, A, &[Kind::Execute]);
            server.push(Request::with_fate(A, Kind::Parse, MADE_PARSE), to);
            ask(server, to, A, &[Kind::Sync]);
        },
        Answer::new().say("2DCZ", "a"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "123DC1Z");
    assert_eq!(to.told(A), ["Settled(Done)", "Settled(Done)", "Ready(Idle)"]);
}

#[test]
fn a_made_reply_after_an_error_is_skipped_and_told_so() {
    let (_, to) = at_every_split(
        |server, to| {
            server.push(Request::forward(A, Kind::Parse).telling(true), to);
            server.push(Request::with_fate(A, Kind::Close, MADE_CLOSE).telling(true), to);
            ask(server, to, A, &[Kind::Sync]);
            server.push(Request::with_fate(A, Kind::Close, MADE_CLOSE).telling(true), to);
        },
        Answer::new().say("EZ", "a"),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "EZ3");
    assert_eq!(
        to.told(A),
        ["Error", "Settled(Failed)", "Settled(Skipped)", "Ready(Idle)", "Settled(Done)"]
    );
}

/// Symptom: a listener missed what came while the pooler asked something of its own. Cause: it was
/// taken for a part of that answer, which nobody sees.
#[test]
fn notifications_within_a_hidden_answer_reach_whoever_has_the_server() {
    for fate in [Fate::Setup, Fate::Hide, Fate::Must] {
        let asks = |holder| {
            move |server: &mut Server, to: &mut Recorder| {
                server.lend(holder);
                server.push(Request::with_fate(Owner::NOBODY, Kind::Query, fate), to);
            }
        };
        let answer = || Answer::new().say("TDAC", "x").say("AZ", "y");
        let (_, to) = at_every_split(asks(Some(A)), answer()).expect("a sound answer");
        assert_eq!(to.tags(A), "AA", "{fate:?}");
        let (_, to) = at_every_split(asks(None), answer()).expect("a sound answer");
        assert_eq!(to.tags(A), "", "{fate:?}");
    }
}

/// Symptom: clients that piped Describe and Parse got a ParseComplete within a RowDescription.
/// Cause: a made reply was due as soon as the message before it had begun.
#[test]
fn a_made_reply_waits_for_the_end_of_the_message_before_it() {
    let (_, to) = at_every_split(
        |server, to| {
            ask(server, to, A, &[Kind::Describe]);
            server.push(Request::with_fate(A, Kind::Parse, MADE_PARSE), to);
            ask(server, to, A, &[Kind::Sync]);
        },
        Answer::new().say("tTZ", ""),
    )
    .expect("a sound answer");
    assert_eq!(to.tags(A), "tT1Z");

    // And when it is announced only then.
    let (mut server, mut to) = (server(), Recorder::default());
    ask(&mut server, &mut to, A, &[Kind::Describe]);
    let answer = Answer::new().say("T", "").0;
    server.receive(&answer[..6], &mut to).expect("half a message");
    server.push(Request::with_fate(A, Kind::Parse, MADE_PARSE), &mut to);
    server.receive(&answer[6..], &mut to).expect("the other half");
    assert_eq!(to.tags(A), "T1");
}

#[test]
fn hidden_success_is_nobodys_and_its_error_the_owners() {
    let hidden = |server: &mut backend::server::Server, to: &mut Recorder| {
        let request = Request::with_fate(A, Kind::Parse, Fate::HideSuccess).of(7);
        server.push(request, to);
        ask(server, to, A, &[Kind::Bind, Kind::Execute, Kind::Sync]);
    };
    let (mut server, to) =
        at_every_split(hidden, Answer::new().say("12DCZ", "a")).expect("a sound answer");
    assert_eq!(to.tags(A), "2DCZ");
    assert_eq!(server.prepared.need(7, server.batch()), Need::Nothing);
    let (mut server, to) =
        at_every_split(hidden, Answer::new().say("EZ", "a")).expect("a sound answer");
    assert_eq!(to.tags(A), "EZ");
    assert_eq!(server.prepared.need(7, server.batch()), Need::Parse);
}

#[test]
fn set_up_is_hidden_and_its_outcome_told_once() {
    let set_up = |server: &mut backend::server::Server, to: &mut Recorder| {
        for kind in [Kind::Parse, Kind::Bind, Kind::Execute, Kind::Sync] {
            server.push(Request::with_fate(A, kind, Fate::Setup), to);
        }
        ask(server, to, A, &[Kind::Query]);
    };
    let done = Answer::new().notice("hidden").say("12", "").complete("SELECT 1");
    let done = done.parameter("TimeZone", "UTC").say("Z", "").say("CZ", "a");
    let (mut server, to) = at_every_split(set_up, done).expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), ("CZ".to_owned(), vec!["SetupDone", "Ready(Idle)"]));
    assert_eq!(server.take_reported().len(), 1);

    let failed = Answer::new().say("12EZ", "no such zone").say("CZ", "a");
    let (server, to) = at_every_split(set_up, failed).expect("a sound answer");
    assert_eq!((to.tags(A), to.told(A)), ("CZ".to_owned(), vec!["SetupFailed", "Ready(Idle)"]));
    assert!(!server.is_broken());
}

#[test]
fn an_error_of_the_poolers_own_command_breaks_the_server() {
    let must = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Must);
    let (server, to) =
        at_every_split(|server, to| server.push(must, to), Answer::new().say("EZ", "no"))
            .expect("a sound answer");
    assert!(server.is_broken() && to.bytes.is_empty() && to.events.is_empty());
    let hide = Request::with_fate(Owner::NOBODY, Kind::Query, Fate::Hide);
    let (server, _) =
        at_every_split(|server, to| server.push(hide, to), Answer::new().say("EZ", "no"))
            .expect("a sound answer");
    assert!(!server.is_broken());
}

#[test]
fn an_owner_that_goes_at_any_byte_gets_no_more_and_the_others_all() {
    let first = Answer::new().say("12TD", "a").notice("a").say("CZ", "a").say("EZ", "a").0;
    let second = Answer::new().say("12TDCZ", "b").0;
    for cut in 0..=first.len() {
        let (mut server, mut to) = (server(), Recorder::default());
        ask(&mut server, &mut to, A, &crate::BATCH);
        server.push(Request::with_fate(A, Kind::Parse, MADE_PARSE).telling(true), &mut to);
        ask(&mut server, &mut to, A, &[Kind::Bind, Kind::Sync]);
        ask(&mut server, &mut to, B, &crate::BATCH);
        server.receive(&first[..cut], &mut to).expect("the first part");
        let before = to.of(A).len();
        let events = to.told(A).len();
        server.disown(A);
        server.receive(&first[cut..], &mut to).expect("the rest");
        server.receive(&second, &mut to).expect("of the other");
        assert_eq!(to.of(A).len(), before, "gone at {cut}");
        assert_eq!(to.told(A).len(), events, "gone at {cut}");
        assert_eq!(to.tags(B), "12TDCZ");
        assert!(server.is_quiet() && server.status() == TxStatus::Idle);
    }
}

#[test]
fn deallocations_are_told_and_are_litter_until_they_are_explained() {
    let (mut server, to) = at_every_split(
        |server, to| {
            server.push(Request::forward(A, Kind::Parse).of(3), to);
            ask(server, to, A, &[Kind::Sync, Kind::Query, Kind::Query]);
        },
        Answer::new()
            .say("1Z", "")
            .complete("DEALLOCATE")
            .say("Z", "")
            .complete("DROP TABLE")
            .say("Z", ""),
    )
    .expect("a sound answer");
    assert!(to.told(A).contains(&"Dropped(DEALLOCATE)"));
    assert_eq!((server.prepared.need(3, server.batch()), server.litter), (Need::Nothing, 1));
    let mut to = Recorder::default();
    // Who asked for it has gone: nobody will explain it.
    ask(&mut server, &mut to, A, &[Kind::Query]);
    server.disown(A);
    let answer = Answer::new().complete("DEALLOCATE").complete("PREPARE").say("Z", "").0;
    server.receive(&answer, &mut to).expect("an answer");
    assert_eq!(server.prepared.need(3, server.batch()), Need::CloseAndParse);
    assert_eq!((server.litter, to.told(A).len()), (3, 0));
    ask(&mut server, &mut to, A, &[Kind::Query]);
    let answer = Answer::new().complete("DEALLOCATE ALL").say("Z", "").0;
    server.receive(&answer, &mut to).expect("an answer");
    assert_eq!((server.prepared.need(3, server.batch()), server.litter), (Need::Parse, 0));
}

#[test]
fn the_unnamed_statement_is_known_only_when_no_earlier_batch_decides() {
    let (mut server, mut to) = (server(), Recorder::default());
    server.push(Request::forward(A, Kind::Parse), &mut to);
    server.set_unnamed(Unnamed::Of(5));
    assert!(server.has_unnamed(Unnamed::Of(5)), "what follows in the batch is skipped with it");
    ask(&mut server, &mut to, A, &[Kind::Sync]);
    assert!(!server.has_unnamed(Unnamed::Of(5)));
    server.receive(&Answer::new().say("1Z", "").0, &mut to).expect("an answer");
    assert!(server.has_unnamed(Unnamed::Of(5)));
    ask(&mut server, &mut to, A, &[Kind::Bind, Kind::Sync]);
    server.receive(&Answer::new().say("EZ", "").0, &mut to).expect("an answer");
    assert!(server.has_unnamed(Unnamed::Stale), "after an error nobody can tell");
    ask(&mut server, &mut to, A, &[Kind::Query]);
    server.receive(&Answer::new().say("CZ", "").0, &mut to).expect("an answer");
    assert!(server.has_unnamed(Unnamed::Nothing), "a simple query drops it");
}

#[test]
fn definitions_are_told_when_they_are_made_and_when_others_see_them() {
    let (_, to) = at_every_split(
        |server, to| ask(server, to, A, &[Kind::Query; 6]),
        Answer::new()
            .complete("CREATE TABLE")
            .say("Z", "")
            .complete("ALTER TABLE")
            .say("Z", "")
            .complete("BEGIN")
            .complete("CREATE TABLE")
            .ready(TxStatus::InTransaction)
            .complete("GRANT")
            .ready(TxStatus::InTransaction)
            .complete("COMMIT")
            .say("Z", "")
            .say("CZ", ""),
    )
    .expect("a sound answer");
    let told: Vec<&str> =
        to.told(A).into_iter().filter(|event| event.ends_with("efined")).collect();
    let one = ["Defined", "Redefined", "Redefined", "Defined"];
    assert_eq!(told, [&one[..], &one[1..]].concat());
}

/// Symptom: behind a DISCARD ALL all calls travelled alone. Cause: what was left of the settings
/// was another allocation than what others with the same settings share.
#[test]
fn discard_all_leaves_what_is_shared_or_says_that_it_is_not() {
    let defaults: Arc<Settings> = Arc::new([("TimeZone", "UTC")].into_iter().collect());
    let answer = Answer::new().complete("DISCARD ALL").ready(TxStatus::Idle).0;
    let discard = |server: &mut Server| {
        let mut to = Recorder::default();
        ask(server, &mut to, A, &[Kind::Query]);
        server.receive(&answer, &mut to).expect("a sound answer");
    };
    let mut server = Server::new(defaults.clone(), Moment(0));
    discard(&mut server);
    assert!(Arc::ptr_eq(&server.settings, &defaults) && !server.has_other_settings());
    server.settings = Arc::new(defaults.overlaid([("statement_timeout", "5s")]));
    discard(&mut server);
    assert_eq!(server.settings, defaults);
    assert!(server.has_other_settings());
    assert!(server.take_reported().is_empty() && !server.has_other_settings());
}
