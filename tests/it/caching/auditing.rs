//! The auditor: it compares, and stops what is wrong.

use super::place::{Cached, Place};
use crate::kit::wait;

/// More than one of so many hits is audited.
const ENOUGH: usize = 3000;

#[test]
fn what_is_kept_is_compared_now_and_then() {
    let place =
        Place::start("create table t(id int primary key, v text); insert into t values (1, 'a')");
    let mut client = place.client();
    client.warm("select v from t where id = 1");
    let audited = wait::within(wait::DEADLINE, || {
        client.warm("select v from t where id = 1");
        (place.figure("audits_total") > 0).then_some(())
    });
    assert_eq!(audited, Some(()), "nothing was audited");
    assert_eq!(place.figure("mismatches_total"), 0);
}

#[test]
fn a_function_that_is_not_what_it_says_is_found_out_and_its_statement_stopped() {
    // Immutable it is not: PostgreSQL believes that, and so does the judge.
    let place = Place::start(
        "create table t(id int primary key); insert into t values (1);
         create table hidden(v int primary key); insert into hidden values (1);
         create function lie(int) returns int immutable language sql
           as 'select v + $1 - $1 from hidden'",
    );
    let mut client = place.client();
    let sql = "select lie(id) from t where id = 1";
    client.warm(sql);
    place.beside().run("update hidden set v = 2");
    let stopped = wait::within(wait::DEADLINE, || {
        (0..ENOUGH).for_each(|_| drop(client.rows(sql)));
        (place.figure("mismatches_total") > 0).then_some(())
    });
    assert_eq!(stopped, Some(()), "nobody noticed");
    client.never_hits(sql);
    assert_eq!(client.one(sql), "2");
}
