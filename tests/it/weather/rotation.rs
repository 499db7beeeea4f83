//! A password is changed while everything runs: who is connected stays, who comes needs the new
//! one, and servers opened from then on log in with it. Wherever the secret is kept.

use rustix::process::Signal;

use crate::kit::cluster::{SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// A role of this test's own with the password `one`.
struct Rotation {
    database: Database,
    role: String,
}

impl Rotation {
    fn new() -> Rotation {
        let database = cluster().database();
        let role = format!("of_{}", database.name);
        let mut superuser = cluster().superuser("postgres");
        superuser.run(&format!("create role {role} login password 'one'"));
        Rotation { database, role }
    }

    fn log_in(&self, gateway: &Gateway, password: &str) -> Result<WireClient, Complaint> {
        let parameters = [("user", self.role.as_str()), ("database", self.database.name.as_str())];
        WireClient::try_login(&gateway.address(), password, &parameters)
    }

    /// Changes the password in PostgreSQL, and by `change` where the gateway has it, while clients
    /// are connected, of which one is in a transaction.
    fn turn(&self, gateway: &Gateway, change: impl FnOnce()) {
        let mut idle = self.log_in(gateway, "one").expect("right");
        let mut busy = self.log_in(gateway, "one").expect("right");
        let backend = idle.one("select pg_backend_pid()");
        busy.run("begin");
        let held = busy.one("select pg_backend_pid()");
        let mut superuser = cluster().superuser("postgres");
        superuser.run(&format!("alter role {} password 'two'", self.role));
        change();
        gateway.signal(Signal::HUP);
        wait::until("the reload", || gateway.said().contains("event=reload"));
        // Who is connected goes on, in its transaction too.
        assert_eq!(busy.one("select pg_backend_pid()"), held);
        busy.run("commit");
        assert_eq!(idle.one("select 'in'"), "in");
        assert_eq!(self.log_in(gateway, "one").err().expect("the old one").code, "28P01");
        let mut new = self.log_in(gateway, "two").unwrap_or_else(|no| panic!("{no:?}"));
        // Servers that are opened from now on.
        gateway.console().run("reconnect");
        for client in [&mut new, &mut idle, &mut busy] {
            let server = client.one("select pg_backend_pid()");
            assert!(server != backend && server != held, "{server}");
        }
    }
}

impl Drop for Rotation {
    fn drop(&mut self) {
        let mut superuser = cluster().superuser("postgres");
        superuser.run(&format!("drop role if exists {}", self.role));
    }
}

#[test]
fn a_password_of_the_users_file_is_read_again() {
    let rotation = Rotation::new();
    let directory = Directory::new("rotation");
    let file = directory.path().join("users.txt");
    let write = |password: &str| {
        std::fs::write(&file, format!("\"{}\" \"{password}\"\n", rotation.role)).expect("a file");
    };
    for method in ["scram", "md5", "password"] {
        write("one");
        let sql = format!("alter role {} password 'one'", rotation.role);
        cluster().superuser("postgres").run(&sql);
        let config = Config::of(&rotation.database)
            .set("auth.method", method)
            .set("auth.users_file", file.display().to_string());
        let gateway = Gateway::start(config);
        rotation.turn(&gateway, || write("two"));
    }
}

#[test]
fn a_password_of_the_configuration_and_one_in_a_file_are_read_again() {
    let rotation = Rotation::new();
    let directory = Directory::new("rotation");
    let file = directory.path().join("password");
    let key = |name: &str| format!("users.{}.{name}", rotation.role);
    let base = || Config::of(&rotation.database);
    let gateway = Gateway::start(base().set(&key("password"), "one"));
    rotation.turn(&gateway, || gateway.rewrite(base().set(&key("password"), "two")));
    drop(gateway);
    let sql = format!("alter role {} password 'one'", rotation.role);
    cluster().superuser("postgres").run(&sql);
    let write = |password: &str| std::fs::write(&file, password).expect("a file");
    write("one\n");
    let config = base().set(&key("password_file"), file.display().to_string());
    let gateway = Gateway::start(config);
    rotation.turn(&gateway, || write("two\n"));
}

/// Servers are logged in to with the client's own proof.
#[test]
fn a_password_that_the_database_knows_is_asked_for_again_after_a_reload() {
    let rotation = Rotation::new();
    for cache in ["600s", "0s"] {
        let sql = format!("alter role {} password 'one'", rotation.role);
        cluster().superuser("postgres").run(&sql);
        let config = Config::of(&rotation.database)
            .set("auth.query_user", SUPERUSER)
            .set("auth.query_cache", cache)
            .set("users.postgres.password", SUPERUSER_PASSWORD);
        rotation.turn(&Gateway::start(config), || {});
    }
}

/// Clients log in with a password of the gateway's own, which stays.
#[test]
fn the_password_of_a_databases_user_is_read_again() {
    let rotation = Rotation::new();
    let section = format!("databases.{}", rotation.database.name);
    let config = |password: &str| {
        Config::of(&rotation.database)
            .set(&format!("{section}.user"), rotation.role.as_str())
            .set(&format!("{section}.password"), password)
    };
    let gateway = Gateway::start(config("one"));
    let mut idle = gateway.client(&rotation.database);
    let mut busy = gateway.client(&rotation.database);
    let backend = idle.one("select pg_backend_pid()");
    busy.run("begin");
    let held = busy.one("select pg_backend_pid()");
    let sql = format!("alter role {} password 'two'", rotation.role);
    cluster().superuser("postgres").run(&sql);
    gateway.rewrite(config("two"));
    gateway.signal(Signal::HUP);
    wait::until("the reload", || gateway.said().contains("event=reload"));
    assert_eq!(busy.one("select pg_backend_pid()"), held);
    busy.run("commit");
    gateway.console().run("reconnect");
    for client in [&mut idle, &mut busy, &mut gateway.client(&rotation.database)] {
        assert_eq!(client.one("select current_user"), rotation.role);
        let server = client.one("select pg_backend_pid()");
        assert!(server != backend && server != held, "{server}");
    }
}
