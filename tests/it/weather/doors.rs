//! Doors: TCP on both families, Unix sockets, TLS on both sides.

use crate::kit::cluster::{APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::{cluster, Address, Config, Gateway, Tool, WireClient};

#[test]
fn clients_come_in_by_ipv4_ipv6_and_unix_socket() {
    let database = cluster().database();
    let doors = ["127.0.0.1:{port}", "[::1]:{port}", "unix:{directory}"];
    let gateway = Gateway::start(Config::of(&database).set("listen.postgres", doors));
    let unix = Address::unix(gateway.directory.path(), gateway.port);
    let addresses = [gateway.address(), Address::tcp("::1", gateway.port), unix.clone()];
    let mut clients: Vec<_> = addresses
        .iter()
        .map(|address| WireClient::login(address, APP, APP_PASSWORD, &database.name))
        .collect();
    for client in &mut clients {
        assert_eq!(client.one("select 'alive'"), "alive");
    }
    let seen: Vec<String> = gateway.show("clients").iter().map(|row| row["addr"].clone()).collect();
    for address in ["127.0.0.1", "::1", "unix"] {
        assert!(seen.iter().any(|seen| seen.starts_with(address)), "{address} in {seen:?}");
    }
    drop(clients);
    let Address::Unix(path) = unix else { unreachable!("made above") };
    assert!(path.exists());
    drop(gateway);
    assert!(!path.exists(), "the socket file goes with its process");
}

#[test]
fn a_socket_file_left_behind_is_replaced_and_one_in_use_is_not() {
    let database = cluster().database();
    let directory = crate::kit::place::Directory::new("sockets");
    let door = format!("unix:{}/.s.PGSQL.6432", directory.path().display());
    let config = Config::of(&database).set("listen.postgres", [door.as_str()]);
    // Left behind: the file is there and nobody listens.
    let path = directory.path().join(".s.PGSQL.6432");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    assert!(path.exists());
    let gateway = Gateway::start(config.clone());
    let address = Address::Unix(path);
    WireClient::login(&address, APP, APP_PASSWORD, &database.name).run("select 1");
    let ended = Gateway::refused(config);
    assert_eq!(ended.status.code(), Some(77), "{ended:?}");
    WireClient::login(&address, APP, APP_PASSWORD, &database.name).run("select 1");
    drop(gateway);
}

#[test]
fn tls_towards_clients_in_every_mode() {
    let database = cluster().database();
    let certificates = &cluster().certificates;
    let ca = certificates.ca.display().to_string();
    let with = |mode: Option<&str>| {
        let config = Config::of(&database)
            .set("listen.tls.cert", certificates.cert.display().to_string())
            .set("listen.tls.key", certificates.key.display().to_string());
        Gateway::start(match mode {
            Some(mode) => config.set("listen.tls.mode", mode),
            None => config,
        })
    };
    let psql = |gateway: &Gateway, mode: &str| {
        Tool::psql(gateway, &database)
            .env("PGSSLMODE", mode)
            .env("PGSSLROOTCERT", &ca)
            .env("PGHOST", "localhost")
            .args(["-c", "select 'alive'"])
            .outcome()
    };
    for (mode, plain, encrypted) in [
        (None, true, true),
        (Some("prefer"), true, true),
        (Some("require"), false, true),
        (Some("disable"), true, false),
    ] {
        let gateway = with(mode);
        for (client, works) in
            [("disable", plain), ("require", encrypted), ("verify-full", encrypted)]
        {
            let done = psql(&gateway, client);
            let code = if works { 0 } else { 2 };
            assert_eq!(done.status.code(), Some(code), "{mode:?}, {client}: {done:?}");
        }
    }
    // A big answer and a big question through TLS.
    let gateway = with(Some("require"));
    let script = format!(
        "select length(repeat('x', 20000000));\nselect repeat('y', 5000000);\n\
         select length('{}');\n",
        "z".repeat(5_000_000)
    );
    let said = Tool::psql(&gateway, &database)
        .env("PGSSLMODE", "require")
        .env("PGHOST", "localhost")
        .input(script)
        .run();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines[0], lines[1].len(), lines[2]), ("20000000", 5_000_000, "5000000"));
}

#[test]
fn tls_towards_servers_in_every_mode() {
    let database = cluster().database();
    let name = &database.name;
    let ca = cluster().certificates.ca.display().to_string();
    let other_ca = crate::kit::place::Directory::new("other");
    let other = crate::kit::certificates::write_to(other_ca.path());
    let other = other.ca.display().to_string();
    // Mode, host, authority; whether TLS is used, or nothing if it must fail.
    let cases = [
        ("disable", "127.0.0.1", None, Some(false)),
        ("prefer", "127.0.0.1", None, Some(true)),
        ("require", "127.0.0.1", None, Some(true)),
        ("verify-ca", "127.0.0.1", Some(&ca), Some(true)),
        ("verify-full", "127.0.0.1", Some(&ca), Some(true)),
        ("verify-full", "::1", Some(&ca), Some(true)),
        ("verify-ca", "127.0.0.1", Some(&other), None),
        ("verify-full", "127.0.0.1", Some(&other), None),
        // The certificate is for localhost, 127.0.0.1 and ::1.
        ("verify-ca", "127.0.0.2", Some(&ca), None),
    ];
    for (mode, host, authority, expected) in cases {
        let mut config = Config::of(&database)
            .set("pool.wait_timeout", "2s")
            .set(&format!("databases.{name}.host"), host)
            .set(&format!("databases.{name}.tls_mode"), mode);
        if let Some(authority) = authority {
            config = config.set(&format!("databases.{name}.tls_ca"), authority.as_str());
        }
        let gateway = Gateway::start(config);
        let parameters = [("user", APP), ("database", name.as_str())];
        match (WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters), expected) {
            (Ok(mut client), Some(encrypted)) => {
                let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
                assert_eq!(client.one(sql), if encrypted { "t" } else { "f" }, "{mode} {host}");
            }
            (Err(refused), None) => assert_eq!(refused.severity, "FATAL", "{refused:?}"),
            (Ok(_), None) => panic!("{mode} to {host} with {authority:?} was let in"),
            (Err(refused), Some(_)) => panic!("{mode} to {host}: {refused:?}"),
        }
    }
    // A role that PostgreSQL lets in by TLS only.
    let config = Config::of(&database)
        .set("users.tlsonly.password", OTHER_PASSWORD)
        .set(&format!("databases.{name}.tls_mode"), "require");
    let gateway = Gateway::start(config);
    WireClient::login(&gateway.address(), "tlsonly", OTHER_PASSWORD, name).run("select 1");
}

#[test]
fn servers_are_reached_by_unix_socket() {
    let database = cluster().database();
    let path = format!("databases.{}.host", database.name);
    let config = Config::of(&database).set(&path, cluster().directory.display().to_string());
    let gateway = Gateway::start(config);
    let mut client = gateway.client(&database);
    let sql = "select client_addr is null from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(client.one(sql), "t");
}
