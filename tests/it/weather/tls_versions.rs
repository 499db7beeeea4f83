//! Which versions of TLS are spoken, with libpq as the client and PostgreSQL as the server.

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, Config, Database, Gateway, Tool, WireClient};

/// What psql, which speaks no version but `version`, is told.
fn psql(gateway: &Gateway, database: &Database, version: &str) -> Result<String, String> {
    let done = Tool::psql(gateway, database)
        .env("PGHOST", "localhost")
        .env("PGSSLMODE", "require")
        .env("PGSSLMINPROTOCOLVERSION", version)
        .env("PGSSLMAXPROTOCOLVERSION", version)
        .args(["-c", "select 'alive'"])
        .outcome();
    match done.status.success() {
        true => Ok(done.stdout),
        false => Err(done.stderr),
    }
}

#[test]
fn clients_speak_the_versions_that_they_may() {
    let database = cluster().database();
    let certificates = &cluster().certificates;
    let with = |range: Option<(&str, &str)>| {
        let config = Config::of(&database)
            .set("listen.tls.cert", certificates.cert.display().to_string())
            .set("listen.tls.key", certificates.key.display().to_string());
        match range {
            Some((least, most)) => {
                config.set("listen.tls.min_version", least).set("listen.tls.max_version", most)
            }
            None => config,
        }
    };
    let gateway = Gateway::start(with(None));
    for (range, old, new) in [
        (None, true, true),
        (Some(("TLSv1.3", "TLSv1.3")), false, true),
        (Some(("TLSv1.2", "TLSv1.2")), true, false),
        (Some(("TLSv1.2", "TLSv1.3")), true, true),
    ] {
        // New connections have what a RELOAD says.
        gateway.rewrite(with(range));
        gateway.console().run("RELOAD");
        for (version, works) in [("TLSv1.2", old), ("TLSv1.3", new)] {
            let said = psql(&gateway, &database, version);
            assert_eq!(said.is_ok(), works, "{range:?} {version}: {said:?}");
        }
    }
    // What is refused is in the log.
    gateway.rewrite(with(Some(("TLSv1.3", "TLSv1.3"))));
    gateway.console().run("RELOAD");
    let refused = psql(&gateway, &database, "TLSv1.2").expect_err("too old");
    assert!(refused.contains("protocol version"), "{refused}");
    let why = "the client speaks no version of TLS that it may speak here";
    crate::kit::wait::until("the log to say so", || gateway.said().contains(why));
}

#[test]
fn servers_are_spoken_to_in_the_versions_that_they_may() {
    let database = cluster().database();
    let name = &database.name;
    for (least, most, spoken) in [
        ("TLSv1.2", "TLSv1.3", "TLSv1.3"),
        ("TLSv1.2", "TLSv1.2", "TLSv1.2"),
        ("TLSv1.3", "TLSv1.3", "TLSv1.3"),
    ] {
        let config = Config::of(&database)
            .set(&format!("databases.{name}.tls_mode"), "require")
            .set(&format!("databases.{name}.tls_min_version"), least)
            .set(&format!("databases.{name}.tls_max_version"), most);
        let gateway = Gateway::start(config);
        let mut client = WireClient::login(&gateway.address(), APP, APP_PASSWORD, name);
        let sql = "select version from pg_stat_ssl where pid = pg_backend_pid()";
        assert_eq!(client.one(sql), spoken, "{least} to {most}");
        let servers = gateway.show("servers");
        assert!(servers[0]["tls"].starts_with(spoken), "{servers:?}");
    }
}
