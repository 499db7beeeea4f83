//! Users whose secrets the database is asked for: what was found is used again only for as long as
//! it is said, and a wrong proof asks again.

use rustix::process::Signal;
use wire::pg::backend::tag;
use wire::pg::startup;

use crate::kit::cluster::{APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// A role of this test's own, and the gateway that looks it up in a query that counts itself.
struct LookedUp {
    database: Database,
    role: String,
    gateway: Gateway,
    encryption: &'static str,
}

impl LookedUp {
    fn new(method: &str, cache: &str) -> LookedUp {
        let database = cluster().database();
        let role = format!("of_{}", database.name);
        let mut superuser = cluster().superuser(&database.name);
        superuser.run("create sequence public.asked start 0 minvalue 0; select nextval('asked')");
        let encryption = if method == "scram" { "scram-sha-256" } else { "md5" };
        superuser.run(&format!(
            "set password_encryption = '{encryption}'; create role {role} login password 'one'"
        ));
        let config = Config::of(&database)
            .set("auth.method", method)
            .set(
                "auth.query",
                "select rolname, rolpassword, rolvaliduntil from pg_catalog.pg_authid \
                 where rolname = $1 and rolcanlogin and nextval('public.asked') > 0",
            )
            .set("auth.query_user", SUPERUSER)
            .set("auth.query_cache", cache)
            .set("users.postgres.password", SUPERUSER_PASSWORD)
            .set(&format!("databases.{}.user", database.name), APP)
            .set(&format!("databases.{}.password", database.name), APP_PASSWORD);
        let gateway = Gateway::start(config);
        LookedUp { database, role, gateway, encryption }
    }

    fn log_in(&self, password: &str) -> Result<WireClient, Complaint> {
        let parameters = [("user", self.role.as_str()), ("database", self.database.name.as_str())];
        WireClient::try_login(&self.gateway.address(), password, &parameters)
    }

    #[track_caller]
    fn refused(&self, password: &str) -> Complaint {
        self.log_in(password).err().expect("refused")
    }

    fn change(&self, sql: &str) {
        let mut superuser = cluster().superuser(&self.database.name);
        superuser.run(&format!("set password_encryption = '{}'", self.encryption));
        superuser.run(&sql.replace("ROLE", &self.role));
    }

    /// Queries that the database has seen.
    fn asked(&self) -> String {
        cluster().superuser(&self.database.name).one("select last_value from asked")
    }
}

impl Drop for LookedUp {
    fn drop(&mut self) {
        let mut superuser = cluster().superuser("postgres");
        superuser.run(&format!("drop role if exists {}", self.role));
    }
}

#[test]
fn a_password_that_was_changed_is_asked_for_again_before_a_client_is_refused() {
    let looked_up = LookedUp::new("scram", "600s");
    looked_up.log_in("one").expect("right").run("select 1");
    looked_up.log_in("one").expect("known").run("select 1");
    assert_eq!(looked_up.asked(), "1");
    assert_eq!(looked_up.refused("wrong").code, "28P01");
    assert_eq!(looked_up.asked(), "2", "it might have changed");
    looked_up.change("alter role ROLE password 'two'");
    // Its proof is made with the old salt.
    let complaint = looked_up.refused("two");
    assert_eq!(complaint.code, "57P03", "{complaint:?}");
    assert_eq!(complaint.hint, "Connect again. [P0324]");
    looked_up.log_in("two").expect("it is known by now").run("select 1");
    assert_eq!(looked_up.refused("one").code, "28P01");
}

#[test]
fn an_md5_response_is_held_against_the_changed_password_at_once() {
    let looked_up = LookedUp::new("md5", "600s");
    looked_up.log_in("one").expect("right").run("select 1");
    looked_up.change("alter role ROLE password 'two'");
    looked_up.log_in("two").expect("asked for again").run("select 1");
    assert_eq!(looked_up.refused("one").code, "28P01");
}

#[test]
fn without_a_time_nothing_is_known_a_moment_later() {
    let looked_up = LookedUp::new("scram", "0s");
    for password in ["two", "three", "four"] {
        looked_up.change(&format!("alter role ROLE password '{password}'"));
        looked_up.log_in(password).expect("as it is now").run("select 1");
    }
    looked_up.change("drop role ROLE");
    assert_eq!(looked_up.refused("four").code, "28P01");
}

#[test]
fn a_stampede_of_log_ins_is_one_query_and_a_reload_forgets() {
    let looked_up = LookedUp::new("scram", "600s");
    let parameters =
        [("user", looked_up.role.as_str()), ("database", looked_up.database.name.as_str())];
    let mut crowd: Vec<WireClient> = (0..200)
        .map(|_| {
            let mut client = WireClient::connect(&looked_up.gateway.address());
            client.put(|out| startup::put_startup(out, 0, &parameters));
            client
        })
        .collect();
    for client in &mut crowd {
        client.expect(tag::AUTHENTICATION);
    }
    assert_eq!(looked_up.asked(), "1");
    // A role that is dropped is known for as long as it is said, or until a reload.
    looked_up.change("drop role ROLE");
    looked_up.log_in("one").expect("known").run("select 1");
    looked_up.gateway.signal(Signal::HUP);
    wait::until("the reload", || looked_up.gateway.said().contains("event=reload"));
    assert_eq!(looked_up.refused("one").code, "28P01");
}
