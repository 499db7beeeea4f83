//! What a standby cancels for what it has to replay: its owner asks elsewhere and hears nothing.

use backend::reply::Kind;
use backend::server::{LastWords, Server};
use wire::pg::backend::tag;

use super::recorder::{at_every_split, Answer, Recorder, A};
use super::{ask, BATCH};

/// An error with this code.
fn error(mut answer: Answer, severity: &str, code: &str) -> Answer {
    let fields = format!("S{severity}\0V{severity}\0C{code}\0Mcanceling statement\0\0");
    answer.0.push(tag::ERROR);
    answer.0.extend((fields.len() as u32 + 4).to_be_bytes());
    answer.0.extend(fields.as_bytes());
    answer
}

fn batch(server: &mut Server, to: &mut Recorder) {
    server.yields = true;
    ask(server, to, A, &BATCH);
}

#[test]
fn a_conflict_with_recovery_is_told_to_nobody_whatever_came_before_it() {
    for (code, before) in [("40001", "12"), ("40001", "12TDD"), ("40P01", "12T")] {
        let answer = error(Answer::new().say(before, "rows"), "ERROR", code).say("Z", "");
        let (mut server, to) = at_every_split(batch, answer).expect("a sound answer");
        assert_eq!(to.tags(A), before, "the owner drops that");
        assert_eq!(to.told(A), ["Again(Elsewhere)"]);
        assert!(server.is_quiet());
        assert_eq!(server.take_withheld()[0], tag::ERROR);
    }
}

#[test]
fn other_errors_are_its_owners() {
    for code in ["57014", "25006", "22012"] {
        let answer = error(Answer::new().say("12T", "rows"), "ERROR", code).say("Z", "");
        let (_, to) = at_every_split(batch, answer).expect("a sound answer");
        assert_eq!(to.tags(A), "12TEZ");
    }
    let told = |server: &mut Server, to: &mut Recorder| ask(server, to, A, &BATCH);
    let answer = error(Answer::new().say("12T", "rows"), "ERROR", "40001").say("Z", "");
    let (_, to) = at_every_split(told, answer).expect("a sound answer");
    assert_eq!(to.tags(A), "12TEZ", "who can't ask elsewhere");
}

#[test]
fn who_has_sent_more_behind_it_is_told_after_all() {
    let asked = |server: &mut Server, to: &mut Recorder| {
        batch(server, to);
        ask(server, to, A, &[Kind::Query]);
    };
    let answer = error(Answer::new().say("12TD", "rows"), "ERROR", "40001").say("Z", "");
    let (_, to) = at_every_split(asked, answer.say("TDCZ", "next")).expect("a sound answer");
    assert_eq!(to.tags(A), "12TDEZTDCZ");
}

#[test]
fn the_end_of_its_session_by_a_conflict_is_not_told_either() {
    let answer = error(Answer::new().say("12T", "rows"), "FATAL", "40001");
    let (server, to) = at_every_split(batch, answer).expect("a sound answer");
    assert_eq!(to.tags(A), "12T");
    assert!(!matches!(server.last_words(), LastWords::ToldTo(owner) if *owner == A));
    assert!(server.is_dying());
}
