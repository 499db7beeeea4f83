//! C15: who may not read a table is not answered by its mirror.

use super::super::place::{Cached, Place, KNOWN_WITHIN};
use super::{unheard, Mirrored};
use crate::kit::wait;

const READ: &str = "select n from t where id = 1 and id < {}";

/// Refusals in a row that make sure of it.
const REPEATED: usize = 300;

const REFUSED: &str = "42501";

#[test]
fn trap_c15_mirrors_answer_nobody_whose_right_is_revoked() {
    let place = Place::start(
        "create table t(id int primary key, n int not null);
         insert into t select g, 10 from generate_series(1, 50) g",
    );
    place.mirrors(&[READ]);
    let (mut owner, mut plain) = (place.client(), place.plain());
    for _ in 0..600 {
        assert_eq!(plain.error(&unheard(READ)).code, REFUSED);
    }
    for (grant, revoke) in [
        ("grant select on t to plain", "revoke select on t from plain"),
        ("grant select (id, n) on t to plain", "revoke select (n) on t from plain"),
    ] {
        for through in [true, false] {
            let mut beside = place.beside();
            let by = if through { &mut owner } else { &mut beside };
            by.run(grant);
            let rows = wait::for_some("a mirror for another role", || {
                let replies = plain.query(&unheard(READ));
                let row = replies.iter().find(|reply| reply.tag == b'D')?.values();
                plain.was_hit().then_some(row)
            });
            assert_eq!(rows, [Some("10".to_owned())]);
            by.run(revoke);
            // What the gateway has seen counts at once.
            let mut in_a_row = if through { REPEATED } else { 0 };
            let ended = wait::within(KNOWN_WITHIN, || {
                let replies = plain.query(&unheard(READ));
                let is_refused = replies.iter().any(|reply| reply.tag == b'E');
                in_a_row = if is_refused { in_a_row + 1 } else { 0 };
                (in_a_row > REPEATED).then_some(())
            });
            assert!(ended.is_some(), "{revoke}: it is answered all the same");
            for at in 0..REPEATED {
                let replies = plain.query(&unheard(READ));
                let is_refused = replies.iter().any(|reply| reply.tag == b'E');
                let hit = plain.was_hit();
                assert!(is_refused, "{revoke}, through: {through}, {at}, hit: {hit}");
            }
        }
    }
    assert_eq!(owner.mirror(READ), [[Some("10".to_owned())]]);
}
