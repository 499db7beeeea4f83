//! Configurations that are wrong: at start, and at a reload.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::{free_port, Directory};
use crate::kit::{cluster, wait, Config, Gateway, WireClient};

#[test]
fn a_port_in_use_ends_with_77_and_says_which() {
    let port = free_port();
    let _taken = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    for door in ["postgres", "http"] {
        let address = format!("127.0.0.1:{port}");
        let config = Config::of(&cluster().database());
        let config = match door {
            "postgres" => config.set("listen.postgres", [address.as_str()]),
            _ => config.set("listen.http", address.as_str()),
        };
        let ended = Gateway::refused(config);
        assert_eq!(ended.status.code(), Some(77), "{ended:?}");
        assert!(ended.stderr.contains(&address), "{}", ended.stderr);
    }
}

#[test]
fn an_unknown_key_ends_with_78_and_shows_line_column_and_the_nearest_key() {
    let config = Config::of(&cluster().database()).set("pool.pool_sise", 3);
    let ended = Gateway::refused(config.clone());
    assert_eq!(ended.status.code(), Some(78), "{ended:?}");
    let text = config.toml();
    let line =
        1 + text.lines().position(|line| line.starts_with("pool_sise")).expect("it is there");
    // The kit adds its doors in front.
    let said = &ended.stderr;
    assert!(said.contains("unknown key `pool_sise`"), "{said}");
    assert!(said.contains("did you mean `pool_size`?"), "{said}");
    let place = said.lines().find(|line| line.contains("pondage.toml:")).expect("a place");
    let mut numbers = place.rsplit(':').map(|number| number.parse::<usize>());
    assert_eq!(numbers.next(), Some(Ok(1)), "{place}");
    assert!(numbers.next().expect("a line").expect("a number") >= line, "{place}");
}

#[test]
fn an_unreadable_certificate_or_users_file_is_named() {
    let directory = Directory::new("unreadable");
    let nonsense = directory.path().join("nonsense.pem");
    std::fs::write(&nonsense, "no certificate").expect("a file");
    let missing = directory.path().join("missing.pem");
    let database = cluster().database();
    let certificates = &cluster().certificates;
    let path = |path: &std::path::Path| path.display().to_string();
    for (cert, key) in [
        (&missing, &certificates.key),
        (&nonsense, &certificates.key),
        (&certificates.cert, &missing),
        (&certificates.cert, &nonsense),
        // A key of something else.
        (&certificates.ca, &certificates.key),
    ] {
        let config = Config::of(&database)
            .set("listen.tls.cert", path(cert))
            .set("listen.tls.key", path(key));
        let ended = Gateway::refused(config);
        assert_eq!(ended.status.code(), Some(78), "{ended:?}");
        let named = [cert, key].iter().any(|file| ended.stderr.contains(&path(file)));
        assert!(named, "{}", ended.stderr);
    }
    let config = Config::of(&database).set("auth.users_file", path(&missing));
    let ended = Gateway::refused(config);
    assert_eq!(ended.status.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains(&path(&missing)), "{}", ended.stderr);
}

#[test]
fn a_reload_of_a_broken_file_is_reported_and_the_old_configuration_stays() {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 2);
    let gateway = Gateway::start(config.clone());
    let mut client = gateway.client(&database);
    gateway.rewrite(config.clone().set("pool.pool_sise", 9).set("pool.pool_size", 7));
    // The console tells who asked.
    let complaint = gateway.console().error("reload");
    let told = format!("{complaint:?}");
    assert!(told.contains("pool_sise") && told.contains("pool_size"), "{told}");
    // A signal tells the log.
    gateway.signal(Signal::HUP);
    wait::until("the log to name the key", || gateway.said().contains("pool_sise"));
    let pool_size = || {
        let rows = gateway.show("databases");
        let row = rows.iter().find(|row| row["name"] == database.name).expect("the database");
        row["pool_size"].clone()
    };
    assert_eq!(pool_size(), "2");
    assert_eq!(client.one("select 'alive'"), "alive");
    // So with text that is no TOML, and with a file that is gone.
    std::fs::write(&gateway.file, "[pool\npool_size = 1").expect("the file");
    gateway.console().error("reload");
    let away = gateway.file.with_extension("away");
    std::fs::rename(&gateway.file, &away).expect("a rename");
    gateway.console().error("reload");
    assert_eq!(pool_size(), "2");
    // A good one takes effect, by console and by signal.
    gateway.rewrite(config.clone().set("pool.pool_size", 3));
    gateway.console().run("reload");
    assert_eq!(pool_size(), "3");
    gateway.rewrite(config.set("pool.pool_size", 4));
    gateway.signal(Signal::HUP);
    wait::until("the new size", || pool_size() == "4");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn a_reload_with_an_unreadable_certificate_changes_nothing() {
    let database = cluster().database();
    let directory = Directory::new("tls");
    let cert = directory.path().join("cert.pem");
    std::fs::copy(&cluster().certificates.cert, &cert).expect("a copy");
    let config = Config::of(&database)
        .set("listen.tls.cert", cert.display().to_string())
        .set("listen.tls.key", cluster().certificates.key.display().to_string());
    let gateway = Gateway::start(config);
    std::fs::write(&cert, "broken").expect("a file");
    let complaint = gateway.console().error("reload");
    assert!(format!("{complaint:?}").contains("cert.pem"), "{complaint:?}");
    let mut client = WireClient::connect(&gateway.address());
    client.put(wire::pg::startup::put_ssl_request);
    assert_eq!(client.byte(), b'S', "TLS is still offered");
}

#[test]
fn a_reload_adds_changes_and_removes_databases_and_users() {
    let (one, two) = (cluster().database(), cluster().database());
    let config = Config::of(&one);
    let gateway = Gateway::start(config.clone());
    let mut client = gateway.client(&one);
    client.run("select 1");
    let with_two = config.database(&two.name).set("users.late.password", "late secret");
    gateway.rewrite(with_two);
    gateway.console().run("reload");
    gateway.client(&two).run("select 1");
    let parameters = [("user", "late"), ("database", two.name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), "wrong", &parameters).err();
    assert_eq!(refused.expect("a wrong password").code, "28P01");
    let mut old = gateway.client(&one);
    old.run("select 1");
    // Away with the first: its clients are closed, new ones find nothing.
    gateway.rewrite(Config::of(&two));
    gateway.console().run("reload");
    let last = old.until_closed();
    assert_eq!(last.last().expect("a reason").complaint().severity, "FATAL");
    let parameters = [("user", APP), ("database", one.name.as_str())];
    let refused = WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).err();
    assert_eq!(refused.expect("it is gone").code, "3D000");
    wait::until("its servers to close", || cluster().backends(&one) == 0);
    gateway.client(&two).run("select 1");
}

#[test]
fn a_door_that_may_not_be_opened_ends_with_77() {
    let directory = Directory::new("closed");
    let file = directory.path().join("a file");
    std::fs::write(&file, "").expect("a file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).expect("chmod");
    // 203.0.113.0/24 is for documentation: no machine has it.
    for door in ["203.0.113.1:6432".to_owned(), format!("unix:{}/x", file.display())] {
        let config = Config::of(&cluster().database());
        let ended = Gateway::refused(config.set("listen.postgres", [door.as_str()]));
        let code = ended.status.code();
        assert!(matches!(code, Some(77 | 78)), "{door}: {ended:?}");
        assert!(!ended.stderr.is_empty());
    }
}
