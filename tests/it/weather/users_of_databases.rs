//! Databases that have a query of their own for who may log in.

use rustix::process::Signal;

use crate::kit::cluster::{APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

const QUERY: &str = "select name, secret, until from public.secrets where name = $1";

/// A database with a table of secrets, `ann`'s among them.
fn with_users(secret: &str) -> Database {
    let database = cluster().database();
    database.run(&format!(
        "create table secrets(name text, secret text, until timestamptz); \
         insert into secrets values ('ann', '{secret}', 'infinity'), \
           ('past', '{secret}', 'yesterday'), ('twice', 'a', null), ('twice', 'b', null)"
    ));
    database
}

/// Adds the database, whose clients all work as `app`.
fn add(config: Config, database: &Database) -> Config {
    let section = format!("databases.{}", database.name);
    config
        .database(&database.name)
        .set(&format!("{section}.user"), APP)
        .set(&format!("{section}.password"), APP_PASSWORD)
}

fn base() -> Config {
    Config::base().set("users.postgres.password", SUPERUSER_PASSWORD)
}

fn try_login(
    gateway: &Gateway,
    (user, password): (&str, &str),
    database: &str,
) -> Result<WireClient, Complaint> {
    let parameters = [("user", user), ("database", database)];
    WireClient::try_login(&gateway.address(), password, &parameters)
}

#[track_caller]
fn refused(gateway: &Gateway, who: (&str, &str), database: &str) -> Complaint {
    try_login(gateway, who, database).err().expect("refused")
}

#[track_caller]
fn let_in(gateway: &Gateway, who: (&str, &str), database: &str) {
    match try_login(gateway, who, database) {
        Ok(mut client) => assert_eq!(client.one("select current_user"), APP),
        Err(complaint) => panic!("{database}: {complaint:?}"),
    }
}

#[test]
fn each_database_knows_its_own_users_and_their_dates() {
    let (one, two, none) = (with_users("one"), with_users("two"), with_users("none"));
    for method in ["scram", "md5", "password"] {
        let config = add(add(add(base(), &one), &two), &none)
            .set("auth.method", method)
            .set("auth.query", QUERY)
            .set(&format!("databases.{}.auth_query_user", one.name), SUPERUSER)
            .set(&format!("databases.{}.auth_query_user", two.name), SUPERUSER)
            .set(&format!("databases.{}.auth_query_cache", two.name), "600s")
            .set(
                &format!("databases.{}.auth_query", two.name),
                "select name, secret from \
                public.secrets where name = $1 and name <> 'past'",
            );
        let gateway = Gateway::start(config);
        for (database, right, wrong) in [(&one, "one", "two"), (&two, "two", "one")] {
            let_in(&gateway, ("ann", right), &database.name);
            for who in [("ann", wrong), ("past", right), ("nobody", right)] {
                let complaint = refused(&gateway, who, &database.name);
                assert_eq!(complaint.code, "28P01", "{who:?} {complaint:?}");
            }
        }
        // Nobody runs the query for this one.
        assert_eq!(refused(&gateway, ("ann", "none"), &none.name).code, "28P01");
        // What one keeps is not the other's: the first looks again, the second does not.
        for (database, secret) in [(&one, "one"), (&two, "two")] {
            database.run("update secrets set secret = 'new' where name = 'ann'");
            let known = database.name == two.name;
            let (right, wrong) = if known { (secret, "new") } else { ("new", secret) };
            let_in(&gateway, ("ann", right), &database.name);
            if !known {
                assert_eq!(refused(&gateway, ("ann", wrong), &database.name).code, "28P01");
            }
            database.run(&format!("update secrets set secret = '{secret}' where name = 'ann'"));
        }
        let rows = gateway.show("LOOKUPS");
        let row = |database: &Database| {
            rows.iter().find(|row| row["database"] == database.name).expect("a row")
        };
        assert_eq!(
            (row(&one)["query_user"].as_str(), row(&one)["known"].as_str()),
            (SUPERUSER, "0")
        );
        assert_eq!(row(&two)["cache_ms"], "600000");
        assert!(row(&two)["known"] != "0", "{:?}", row(&two));
        assert!(rows.iter().all(|row| row["database"] != none.name), "{rows:?}");
        assert!(gateway.figure("pondage_lookups_total") > 0);
    }
}

/// As one that has a certificate instead, say.
#[test]
fn a_role_without_a_password_comes_in_where_none_is_asked_for() {
    let database = with_users("one");
    database
        .run("insert into secrets values ('bare', null, 'infinity'), ('old', null, 'yesterday')");
    for method in ["trust", "scram", "md5", "password"] {
        let config = add(base(), &database)
            .set("auth.method", method)
            .set("auth.known_only", true)
            .set("auth.query", QUERY)
            .set("auth.query_user", SUPERUSER);
        let gateway = Gateway::start(config);
        let_in(&gateway, ("ann", "one"), &database.name);
        let trusts = method == "trust";
        match trusts {
            true => let_in(&gateway, ("bare", ""), &database.name),
            false => {
                for password in ["x", "one", "md5"] {
                    let complaint = refused(&gateway, ("bare", password), &database.name);
                    let stranger = refused(&gateway, ("nobody", password), &database.name);
                    assert_eq!(complaint.code, "28P01", "{method}: {complaint:?}");
                    let told = complaint.message.replace("bare", "nobody");
                    assert_eq!(told, stranger.message, "it says nothing about who exists");
                }
            }
        }
        for who in ["nobody", "past", "old"] {
            let complaint = refused(&gateway, (who, "one"), &database.name);
            assert_eq!(complaint.hint.contains("P0331"), trusts, "{complaint:?}");
        }
    }
}

#[test]
fn what_is_wrong_with_one_databases_query_is_told_and_is_no_others_trouble() {
    let good = with_users("good");
    let mut config = add(base(), &good)
        .set("auth.query", QUERY)
        .set("auth.query_user", SUPERUSER)
        .set("databases.nowhere.host", "127.0.0.1")
        .set("databases.nowhere.port", i64::from(free_port()));
    let queries = [
        ("columns", "select name from public.secrets where name = $1"),
        ("numbers", "select name, 1 from public.secrets where name = $1"),
        ("table", "select name, secret from public.secret where name = $1"),
        ("away", QUERY),
        ("stranger", QUERY),
    ];
    for (name, query) in queries {
        let of = |key: &str| format!("databases.{name}.{key}");
        config = config
            .database(name)
            .set(&of("dbname"), good.name.as_str())
            .set(&of("user"), APP)
            .set(&of("password"), APP_PASSWORD)
            .set(&of("auth_query"), query);
    }
    let config = config
        .set("databases.away.auth_query_database", "nowhere")
        .set("databases.stranger.auth_query_user", "nobody at all");
    let gateway = Gateway::start(config);
    for (name, user, part) in [
        ("columns", "ann", "auth.query must give two columns"),
        ("numbers", "ann", "of auth.query is int4, not text"),
        ("table", "ann", "42P01: relation \"public.secret\" does not exist"),
        ("away", "ann", "no connection to the database"),
        ("stranger", "ann", "no connection to the database"),
        (&good.name, "twice", "auth.query gave 2 rows, not one"),
    ] {
        let complaint = refused(&gateway, (user, "good"), name);
        assert_eq!(complaint.code, "08006", "{name}: {complaint:?}");
        assert!(complaint.detail.contains(part), "{name}: {complaint:?}");
        assert!(complaint.hint.contains("P0315"), "{complaint:?}");
        let_in(&gateway, ("ann", "good"), &good.name);
    }
    let rows = gateway.show("LOOKUPS");
    let away = rows.iter().find(|row| row["database"] == "away").expect("a row");
    assert_eq!((away["failed"].as_str(), away["query_database"].as_str()), ("1", "nowhere"));
    assert!(away["last_error"].contains("no connection to the database"), "{away:?}");
}

/// Who was looked up was told which databases there are, before he had proven who he is.
#[test]
fn a_stranger_is_not_told_that_a_database_does_not_exist() {
    let database = with_users("right");
    let config = add(base(), &database).set("auth.query", QUERY).set("auth.query_user", SUPERUSER);
    let gateway = Gateway::start(config);
    for name in [database.name.as_str(), "no_such_database"] {
        let complaint = refused(&gateway, ("stranger", "x"), name);
        assert_eq!(complaint.code, "28P01", "{name}");
        assert_eq!(complaint.message, "password authentication failed for user \"stranger\"");
    }
}

#[test]
fn another_database_may_know_the_users_of_all_and_of_the_console() {
    let (users, other) = (with_users("right"), cluster().database());
    let config = |console: bool| {
        let at = "databases.\"the users\"";
        let config = add(base(), &other)
            .set(&format!("{at}.host"), "127.0.0.1")
            .set(&format!("{at}.port"), i64::from(cluster().port))
            .set(&format!("{at}.dbname"), users.name.as_str())
            .set("auth.query", QUERY)
            .set("auth.query_user", SUPERUSER)
            .set("auth.admin_users", ["admin", "ann"])
            .set("auth.stats_users", ["past"]);
        match console {
            true => config.set("auth.query_database", "the users"),
            false => {
                let key = format!("databases.{}.auth_query_database", other.name);
                config.set(&key, "the users")
            }
        }
    };
    let gateway = Gateway::start(config(true));
    let_in(&gateway, ("ann", "right"), &other.name);
    let mut console = try_login(&gateway, ("ann", "right"), "pondage").expect("an administrator");
    let rows = console.table("show lookups");
    assert_eq!(rows.iter().filter(|row| row["database"] == "pondage").count(), 1, "{rows:?}");
    for who in [("ann", "wrong"), ("past", "right")] {
        assert_eq!(refused(&gateway, who, "pondage").code, "28P01");
    }
    // Users of one database are none of the console's.
    gateway.rewrite(config(false));
    gateway.signal(Signal::HUP);
    wait::until("the reload", || gateway.said().contains("event=reload"));
    let_in(&gateway, ("ann", "right"), &other.name);
    assert_eq!(refused(&gateway, ("ann", "right"), "pondage").code, "28P01");
    console.run("show version");
}
