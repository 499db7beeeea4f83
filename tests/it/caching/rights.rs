//! C15: who may not read a table is not answered from what others have read.

use std::time::Duration;

use super::place::{Cached, Place, KNOWN_WITHIN};
use crate::kit::{wait, WireClient};

/// What has left no row in the catalogues is counted by the server, some seconds later.
const COUNTED_WITHIN: Duration = Duration::from_secs(10 + KNOWN_WITHIN.as_secs());

const READ: &str = "select n from t where id = 1";

fn start() -> Place {
    Place::start(
        "create table t(id int primary key, n int); insert into t values (1, 10);
         create view v as select n from t where id = 1",
    )
}

#[test]
fn trap_c15_a_role_without_select_gets_no_cached_row() {
    let place = start();
    let mut owner = place.client();
    let mut plain = place.plain();
    owner.warm(READ);
    for _ in 0..30 {
        assert_eq!(plain.error(READ).code, "42501");
        assert_eq!(plain.error("select n from v").code, "42501");
        assert_eq!(owner.one(READ), "10");
    }
}

#[test]
fn trap_c15_revoke_ends_it() {
    let place = start();
    let mut owner = place.client();
    let mut plain = place.plain();
    let mut beside = place.beside();
    let superuser = || place.superuser();
    for (grant, revoke) in [
        ("grant select on t to plain", "revoke select on t from plain"),
        ("grant select (id, n) on t to plain", "revoke select (n) on t from plain"),
        ("grant select on t to public", "revoke select on t from public"),
        (
            "create role readers; grant select on t to readers; grant readers to plain",
            "revoke readers from plain; drop owned by readers; drop role readers",
        ),
    ] {
        for through in [true, false] {
            let as_superuser = grant.contains("role");
            if as_superuser && through {
                continue;
            }
            let within = if as_superuser { COUNTED_WITHIN } else { KNOWN_WITHIN };
            let mut run = |sql: &str| match (as_superuser, through) {
                (true, _) => superuser().run(sql),
                (_, true) => owner.run(sql),
                (_, false) => beside.run(sql),
            };
            run(grant);
            assert_eq!(plain.warm(READ), [[Some("10".to_owned())]], "{grant}");
            run(revoke);
            if through {
                assert_eq!(plain.error(READ).code, "42501", "{revoke}, through the gateway");
            }
            // One that is refused may have gone to PostgreSQL for another reason.
            let refused = wait::within(within, || {
                let is_refused =
                    |client: &mut WireClient| client.query(READ).iter().any(|it| it.tag == b'E');
                (0..20).all(|_| is_refused(&mut plain)).then_some(())
            });
            assert!(refused.is_some(), "{revoke}: still answered, hit: {}", plain.was_hit());
        }
    }
}

#[test]
fn trap_c15_a_view_s_owner_counts() {
    let place = start();
    let mut owner = place.client();
    owner.run("grant select on v to plain");
    let mut plain = place.plain();
    assert_eq!(plain.warm("select n from v"), [[Some("10".to_owned())]]);
    assert_eq!(plain.error(READ).code, "42501");
    owner.run("update t set n = 11");
    place.becomes(&mut plain, "select n from v", "11");
    owner.run("revoke select on v from plain");
    assert_eq!(plain.error("select n from v").code, "42501");
}

#[test]
fn trap_c15_set_role_is_another_one() {
    let place = Place::start_with(
        "create table t(id int primary key, n int); insert into t values (1, 10)",
        |config| config.set("pool.mode", "session"),
    );
    place.superuser().run("grant plain to app");
    let mut client = place.client();
    client.warm(READ);
    client.run("set role plain");
    for _ in 0..10 {
        assert_eq!(client.error(READ).code, "42501");
    }
    client.run("reset role; set session authorization default");
    assert_eq!(client.one(READ), "10");
    client.terminate();
    place.superuser().run("revoke plain from app");
}

/// In transaction mode a setting that PostgreSQL does not report stays on the server it was made
/// on, as with every pooler. With a cache that would be kept for all, so the server is reset.
#[test]
fn what_a_client_leaves_on_a_server_is_not_in_what_others_read() {
    let place = Place::start_with(
        "create schema other; create table t(id int primary key, v text);
         create table other.t(id int primary key, v text);
         insert into t values (1, 'right'); insert into other.t values (1, 'wrong')",
        |config| config.set("pool.pool_size", 1),
    );
    let mut littering = place.client();
    littering.run("set search_path = other");
    let mut client = place.client();
    let sql = "select v from t where id = 1";
    assert_eq!(client.one(sql), "right");
    assert_eq!(client.warm(sql), [[Some("right".to_owned())]]);
}
