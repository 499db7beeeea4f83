//! Methods of logging in, by what is stored, on both sides.

use wire::pg::backend::{self, tag, Auth};
use wire::pg::startup;

use crate::kit::cluster::{APP, APP_PASSWORD, OTHER_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// What PostgreSQL has stored for a role.
fn stored(role: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
    cluster().superuser("postgres").one(&sql)
}

/// All clients work as `app`, whatever they log in as.
fn forced(database: &Database) -> Config {
    Config::of(database)
        .set(&format!("databases.{}.user", database.name), APP)
        .set(&format!("databases.{}.password", database.name), APP_PASSWORD)
}

/// Which method a client is asked for.
#[track_caller]
fn asked(gateway: &Gateway, user: &str, database: &Database) -> &'static str {
    let mut client = WireClient::connect(&gateway.address());
    let parameters = [("user", user), ("database", database.name.as_str())];
    client.put(|out| startup::put_startup(out, 0, &parameters));
    let message = client.expect(tag::AUTHENTICATION);
    match backend::auth(&message.body).expect("an Authentication message") {
        Auth::Ok => "trust",
        Auth::Cleartext => "password",
        Auth::Md5(_) => "md5",
        Auth::Sasl(_) => "scram",
        other => panic!("{other:?}"),
    }
}

/// Each method with each kind of secret: what the client is asked for.
const METHODS: [(&str, [&str; 3]); 4] = [
    // plain, md5, verifier
    ("scram", ["scram", "md5", "scram"]),
    ("md5", ["md5", "md5", "scram"]),
    ("password", ["password", "password", "password"]),
    ("trust", ["trust", "trust", "trust"]),
];

#[track_caller]
fn check_methods(method: &str, expected: [&str; 3], gateway: &Gateway, database: &Database) {
    let users =
        [("plain_user", "the password"), ("legacy", OTHER_PASSWORD), ("plain", OTHER_PASSWORD)];
    for ((user, password), expected) in users.into_iter().zip(expected) {
        assert_eq!(asked(gateway, user, database), expected, "{method}, {user}");
        let parameters = [("user", user), ("database", database.name.as_str())];
        let mut client = WireClient::login_with(&gateway.address(), password, &parameters);
        assert_eq!(client.one("select 'let in'"), "let in");
        if method == "trust" {
            continue;
        }
        for wrong in ["wrong", "", "the password "] {
            let refused = WireClient::try_login(&gateway.address(), wrong, &parameters).err();
            assert_eq!(refused.expect("a wrong password").code, "28P01", "{method}, {user}");
        }
    }
}

#[test]
fn every_method_takes_every_kind_of_secret_from_the_configuration() {
    let database = cluster().database();
    for (method, expected) in METHODS {
        let config = forced(&database)
            .set("auth.method", method)
            .set("users.plain_user.password", "the password")
            .set("users.legacy.password", stored("legacy"))
            .set("users.plain.password", stored("plain"));
        check_methods(method, expected, &Gateway::start(config), &database);
    }
}

#[test]
fn every_method_takes_every_kind_of_secret_from_a_users_file() {
    let database = cluster().database();
    let directory = Directory::new("users");
    let file = directory.path().join("userlist.txt");
    let text = format!(
        "; a comment\n\"plain_user\" \"the password\"\n\"legacy\" \"{}\"\n\"plain\" \"{}\"\n\
         \"with \"\"quotes\"\"\" \"say \"\"friend\"\"\"\n",
        stored("legacy"),
        stored("plain")
    );
    std::fs::write(&file, text).expect("a file");
    for (method, expected) in METHODS {
        let config = forced(&database)
            .set("auth.method", method)
            .set("auth.users_file", file.display().to_string());
        let gateway = Gateway::start(config);
        check_methods(method, expected, &gateway, &database);
        let parameters = [("user", "with \"quotes\""), ("database", database.name.as_str())];
        WireClient::login_with(&gateway.address(), "say \"friend\"", &parameters).run("select 1");
    }
}

#[test]
fn every_method_takes_what_the_auth_query_finds() {
    let database = cluster().database();
    database.run(
        "create table secrets(name text, secret text); \
         insert into secrets values ('plain_user', 'the password'); \
         insert into secrets select rolname, rolpassword from pg_authid \
           where rolname in ('legacy', 'plain')",
    );
    for (method, expected) in METHODS {
        let config = forced(&database)
            .set("auth.method", method)
            .set("auth.query", "select name, secret from public.secrets where name = $1")
            .set("auth.query_user", SUPERUSER)
            .set("users.postgres.password", SUPERUSER_PASSWORD);
        check_methods(method, expected, &Gateway::start(config), &database);
    }
}

#[test]
fn servers_are_logged_in_to_by_password_md5_scram_and_trust() {
    let database = cluster().database();
    let mut config = Config::of(&database).set("auth.method", "trust");
    let roles = [(APP, APP_PASSWORD), ("legacy", OTHER_PASSWORD), ("plain", OTHER_PASSWORD)];
    for (role, password) in roles {
        config = config.set(&format!("users.{role}.password"), password);
    }
    let gateway = Gateway::start(config);
    for (role, _) in roles.into_iter().chain([("trusting", "")]) {
        let mut client = WireClient::login(&gateway.address(), role, "", &database.name);
        assert_eq!(client.one("select session_user"), role);
    }
}

#[test]
fn an_md5_hash_logs_in_to_an_md5_server() {
    let database = cluster().database();
    let config = Config::of(&database).set("users.legacy.password", stored("legacy"));
    let gateway = Gateway::start(config);
    let mut client =
        WireClient::login(&gateway.address(), "legacy", OTHER_PASSWORD, &database.name);
    assert_eq!(client.one("select session_user"), "legacy");
}

#[test]
fn a_forced_user_and_a_wildcard_database_are_what_servers_see() {
    let (one, two) = (cluster().database(), cluster().database());
    let config = Config::of(&one)
        .set("databases.\"*\".host", "127.0.0.1")
        .set("databases.\"*\".port", i64::from(cluster().port))
        .set("users.visitor.password", "visitor secret")
        .set(&format!("databases.{}.user", one.name), APP)
        .set(&format!("databases.{}.password", one.name), APP_PASSWORD);
    let gateway = Gateway::start(config);
    let address = gateway.address();
    let mut visitor = WireClient::login(&address, "visitor", "visitor secret", &one.name);
    assert_eq!(visitor.one("select session_user"), APP);
    // Any other name is the server's own.
    let mut client = gateway.client(&two);
    assert_eq!(client.one("select current_database()"), two.name);
    let parameters = [("user", APP), ("database", "no_such_database")];
    let refused = WireClient::try_login(&address, APP_PASSWORD, &parameters).err();
    assert_eq!(refused.expect("PostgreSQL has none").code, "3D000");
    // Without a name it is the user's, as in PostgreSQL.
    let parameters = [("user", APP)];
    let refused = WireClient::try_login(&address, APP_PASSWORD, &parameters).err();
    assert!(refused.expect("there is no database app").message.contains("app"));
}

#[test]
fn clients_of_a_database_with_a_forced_user_share_one_pool() {
    let database = cluster().database();
    let name = &database.name;
    let gateway = Gateway::start(
        forced(&database)
            .set("pool.pool_size", 2)
            .set("users.ann.password", "a")
            .set("users.bob.password", "b")
            .set("users.bob.max_client_connections", 1)
            .set("users.eve.password", "e")
            .set(&format!("databases.{name}.users.eve.mode"), "session"),
    );
    let log_in =
        |user: &str, password: &str| WireClient::login(&gateway.address(), user, password, name);
    let (mut ann, mut bob) = (log_in("ann", "a"), log_in("bob", "b"));
    for client in [&mut ann, &mut bob] {
        assert_eq!(client.one("select current_user"), APP);
        client.run("set application_name = 'mine'");
    }
    // As many servers as one pool may have, whoever comes.
    let mut others: Vec<_> = (0..6).map(|_| log_in("ann", "a")).collect();
    for client in &mut others {
        client.put(|out| wire::pg::frontend::put_query(out, "select pg_sleep(0.05)"));
    }
    for client in &mut others {
        client.until_ready();
    }
    let servers = format!(
        "select count(*) from pg_stat_activity where datname = '{name}' and usename = '{APP}'"
    );
    assert_eq!(database.one(&servers), "2");
    let pools = gateway.show("pools");
    let of_it: Vec<_> = pools.iter().filter(|pool| pool["database"] == *name).collect();
    assert_eq!(of_it.len(), 1, "{of_it:?}");
    assert_eq!(of_it[0]["user"], APP);
    // Each is still who it is, and is counted as that.
    let clients = gateway.show("clients");
    let of = |user: &str| clients.iter().filter(|client| client["user"] == user).count();
    assert_eq!((of("ann"), of("bob")), (7, 1));
    let parameters = [("user", "bob"), ("database", name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), "b", &parameters).err().expect("one");
    assert_eq!(refused.code, "53300");
    assert!(refused.hint.contains("max_user_client_connections"), "{}", refused.hint);
    bob.terminate();
    wait::until("the place is free", || {
        WireClient::try_login(&gateway.address(), "b", &parameters).is_ok()
    });
    // A user with a section of its own has a pool of its own.
    let mut eve = log_in("eve", "e");
    eve.run("create temp table hers (n int)");
    assert_eq!(eve.one("select count(*) from hers"), "0");
    assert_eq!(gateway.show("pools").iter().filter(|pool| pool["user"] == "eve").count(), 1);
}

#[test]
fn which_databases_there_are_is_told_to_users_only() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let code = |password: &str, name: &str| {
        let parameters = [("user", APP), ("database", name)];
        let refused = WireClient::try_login(&gateway.address(), password, &parameters);
        refused.err().map(|complaint| complaint.code)
    };
    assert_eq!(code("wrong", "nosuchdb").as_deref(), Some("28P01"));
    assert_eq!(code("wrong", &database.name).as_deref(), Some("28P01"));
    assert_eq!(code(APP_PASSWORD, "nosuchdb").as_deref(), Some("3D000"));
    assert_eq!(code(APP_PASSWORD, &database.name), None);
}
