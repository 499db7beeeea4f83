//! Trap 22: what a client that has not logged in may reach, and who may do what.

use super::batch::{tags, Batch};
use crate::kit::cluster::{APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::gateway::ADMIN_PASSWORD;
use crate::kit::{cluster, Config, Database, Gateway, WireClient};

/// A gateway that asks `lookup` for users it does not know; what `lookup` finds is kept in `seen`.
fn with_auth_query() -> (Database, Gateway) {
    let database = cluster().database();
    database.run(
        "create table seen(name text, search_path text, application_name text, who text, \
           n int generated always as identity); \
         create schema evil; \
         create function evil.lookup(text) returns table(a name, b text) language sql as \
           $$ select 'app'::name, 'trusted by nobody' $$; \
         create function public.lookup(text) returns table(a name, b text, c timestamptz) \
           language plpgsql security definer as \
           $$ begin \
             insert into public.seen values ($1, current_setting('search_path'), \
               current_setting('application_name'), session_user); \
             return query select rolname, rolpassword::text, rolvaliduntil \
               from pg_catalog.pg_authid where rolname = $1 and rolcanlogin; \
           end $$",
    );
    let config = Config::of(&database)
        .set("auth.query", LOOKUP)
        .set("auth.query_user", SUPERUSER)
        .set("users.postgres.password", SUPERUSER_PASSWORD)
        // Their secrets are known as verifiers, with which nobody can log in to a server.
        .set(&format!("databases.{}.user", database.name), APP)
        .set(&format!("databases.{}.password", database.name), APP_PASSWORD);
    (database, Gateway::start(config))
}

const LOOKUP: &str = "select * from public.lookup($1)";

#[test]
fn trap_22_start_up_parameters_of_a_stranger_never_reach_the_auth_query() {
    let (database, gateway) = with_auth_query();
    database.run("create role \"auth one\" login password 'right'");
    let ask = |password: &str| {
        let parameters = [
            ("user", "auth one"),
            ("database", database.name.as_str()),
            ("search_path", "evil"),
            ("application_name", "stranger"),
            ("options", "-c search_path=evil,public -c row_security=off"),
        ];
        WireClient::try_login(&gateway.address(), password, &parameters)
    };
    for _ in 0..2 {
        let refused = ask("wrong").err().expect("a wrong password");
        assert_eq!((refused.severity.as_str(), refused.code.as_str()), ("FATAL", "28P01"));
    }
    let rows = cluster().superuser(&database.name).rows(
        "select distinct search_path like '%evil%', application_name like '%stranger%', who \
         from seen where name = 'auth one'",
    );
    let no = Some("f".to_owned());
    assert_eq!(rows, [[no.clone(), no, Some(SUPERUSER.to_owned())]]);
    // With the right password the parameters are the client's own, on its own server.
    let mut client = ask("right").unwrap_or_else(|refused| panic!("{refused:?}"));
    assert_eq!(client.one("show application_name"), "stranger");
    assert_eq!(client.one("show search_path"), "evil,public");
    database.run("drop role \"auth one\"");
}

#[test]
fn trap_22_user_names_are_bound_and_never_pasted() {
    let (database, gateway) = with_auth_query();
    let evil =
        ["o'brien", "a\"b", "x'); drop table seen; --", "\\'; select 1 --", "$1", "app' or '1"];
    for name in evil {
        let refused = WireClient::try_login(
            &gateway.address(),
            "whatever",
            &[("user", name), ("database", &database.name)],
        );
        assert_eq!(refused.err().expect("no such user").code, "28P01", "{name}");
    }
    let seen = cluster().superuser(&database.name).rows("select name from seen order by n");
    let seen: Vec<String> = seen.into_iter().flatten().flatten().collect();
    assert_eq!(seen, evil, "each asked for as it is, once");
    // One with quotes that does exist gets in.
    database.run("create role \"o'brien \"\"x\"\"\" login password 'right'");
    let parameters = [("user", "o'brien \"x\""), ("database", database.name.as_str())];
    let mut client = WireClient::login_with(&gateway.address(), "right", &parameters);
    assert_eq!(client.one("select 'let in'"), "let in");
    drop(client);
    drop(gateway);
    database.run("drop role \"o'brien \"\"x\"\"\"");
}

#[test]
fn trap_22_valid_until_is_honoured() {
    let (database, gateway) = with_auth_query();
    for (until, lets_in) in [
        ("'2001-01-01'", false),
        ("'-infinity'", false),
        ("now() - interval '1 second'", false),
        ("'infinity'", true),
        ("'2999-12-31 23:59:59+05'", true),
    ] {
        database.run(&format!(
            "do $$ begin execute format(\
               'create role expiring login password ''right'' valid until %L', {until}); end $$"
        ));
        let parameters = [("user", "expiring"), ("database", database.name.as_str())];
        match WireClient::try_login(&gateway.address(), "right", &parameters) {
            Ok(mut client) => {
                assert!(lets_in, "let in though valid until {until}");
                assert_eq!(client.one("select 'let in'"), "let in");
            }
            Err(refused) => {
                assert!(!lets_in, "refused though valid until {until}: {refused:?}");
                assert_eq!(refused.code, "28P01");
            }
        }
        database.run("drop role expiring");
    }
}

#[test]
fn trap_22_the_default_auth_query_asks_pg_authid() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("auth.query_user", SUPERUSER)
        .set("users.postgres.password", SUPERUSER_PASSWORD)
        .set(&format!("databases.{}.user", database.name), APP)
        .set(&format!("databases.{}.password", database.name), APP_PASSWORD);
    let gateway = Gateway::start(config);
    database.run("create role \"by default\" login password 'right'; create role nologin");
    for (user, password, code) in [
        ("by default", "wrong", "28P01"),
        ("nologin", "right", "28P01"),
        ("nobody at all", "right", "28P01"),
    ] {
        let parameters = [("user", user), ("database", database.name.as_str())];
        let refused = WireClient::try_login(&gateway.address(), password, &parameters).err();
        assert_eq!(refused.expect("a refusal").code, code, "{user}");
    }
    let parameters = [("user", "by default"), ("database", database.name.as_str())];
    let mut client = WireClient::login_with(&gateway.address(), "right", &parameters);
    assert_eq!(client.one("select 'let in'"), "let in");
    drop(client);
    drop(gateway);
    database.run("drop role \"by default\"; drop role nologin");
}

#[test]
fn trap_22_kill_client_needs_admin() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("auth.stats_users", ["watcher"])
        .set("users.watcher.password", "watcher secret");
    let gateway = Gateway::start(config);
    let mut victim = gateway.client(&database);
    let clients = gateway.show("clients");
    let row = clients.iter().find(|row| row["database"] == database.name).expect("the client");
    let kill = format!("kill_client {}", row["id"]);
    let address = gateway.address();
    let mut watcher = WireClient::login(&address, "watcher", "watcher secret", "pondage");
    for sql in [&kill, "pause", "kill", "reload", "shutdown", "reconnect", "wait_close"] {
        assert_eq!(watcher.error(sql).code, "42501", "{sql}");
        let refused = Batch::new().parse("", sql).bind("", &[]).execute().sync();
        assert!(tags(&refused.answer(&mut watcher)).contains('E'), "{sql}");
    }
    assert!(!watcher.rows("show clients").is_empty());
    assert_eq!(victim.one("select 'alive'"), "alive");
    // Others do not get to the console at all, whatever it is called.
    for name in ["pondage", "pgbouncer", "admin"] {
        let parameters = [("user", APP), ("database", name)];
        let refused = WireClient::try_login(&address, APP_PASSWORD, &parameters).err();
        assert_eq!(refused.expect("no admin").severity, "FATAL");
        WireClient::login(&address, "admin", ADMIN_PASSWORD, name).run("show version");
    }
    gateway.console().run(&kill);
    let last = victim.until_closed();
    assert_eq!(last.last().expect("a reason").complaint().severity, "FATAL");
}
