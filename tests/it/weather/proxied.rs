//! Clients that come through proxies, which say by the PROXY protocol where these come from.

use std::net::SocketAddr;

use wire::pg::startup;
use wire::proxy::{put_header, put_line, Origin};

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::{free_port, Directory};
use crate::kit::wireclient::Complaint;
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, TlsClient, WireClient};

/// A gateway whose second door takes clients of the proxies in `networks`, and that door.
fn gateway(database: &Database, networks: &str, more: &[(&str, &str)]) -> (Gateway, Address) {
    let port = free_port();
    let certificates = &cluster().certificates;
    let mut config = Config::of(database)
        .set("telemetry.log_connections", true)
        .set("listen.proxied", [format!("127.0.0.1:{port}").as_str()])
        .set("listen.proxies", [networks])
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string());
    for (path, value) in more {
        config = config.set(path, *value);
    }
    (Gateway::start(config), Address::tcp("127.0.0.1", port))
}

fn origin(source: &str) -> Origin {
    let destination =
        if source.starts_with('[') { "[2001:db8::1]:5432" } else { "198.51.100.1:5432" };
    let end = |text: &str| text.parse::<SocketAddr>().expect("an address");
    Origin::Client { source: end(source), destination: end(destination) }
}

/// The header by the version of the protocol, with something at its end that is to be skipped.
fn header(version: u32, origin: &Origin) -> Vec<u8> {
    let mut out = Vec::new();
    match version {
        1 => put_line(&mut out, origin),
        _ => put_header(&mut out, origin, b"\x04\x00\x03abc\x05\x00\x00"),
    }
    out
}

/// Logs in behind `header`.
fn log_in(
    door: &Address,
    header: &[u8],
    user: &str,
    database: &str,
) -> Result<WireClient, Complaint> {
    let mut client = WireClient::connect(door);
    client.send(header);
    client.put(|out| startup::put_startup(out, 0, &[("user", user), ("database", database)]));
    client.authenticate(user, APP_PASSWORD)?;
    Ok(client)
}

/// The log has it, or will.
fn said(gateway: &Gateway, what: &str) {
    wait::until(what, || gateway.said().contains(what));
}

/// Address and port of this client in SHOW CLIENTS.
fn shown(gateway: &Gateway, database: &Database) -> (String, String) {
    let clients = gateway.show("clients");
    let ours = clients.iter().find(|row| row["database"] == database.name).expect("the client");
    (ours["addr"].clone(), ours["port"].clone())
}

#[test]
fn the_address_that_a_proxy_says_is_the_clients() {
    let database = cluster().database();
    let (gateway, door) = gateway(&database, "127.0.0.0/8", &[]);
    for version in [1, 2] {
        for (source, ip, port) in [
            ("192.0.2.7:51234", "192.0.2.7", "51234"),
            ("[2001:db8::7]:1", "2001:db8::7", "1"),
            ("[::ffff:192.0.2.8]:2", "192.0.2.8", "2"),
        ] {
            let mut client = log_in(&door, &header(version, &origin(source)), APP, &database.name)
                .expect("logged in");
            assert_eq!(client.one("select 'alive'"), "alive");
            assert_eq!(shown(&gateway, &database), (ip.to_owned(), port.to_owned()));
            let logged = format!("addr={}", source.replace("[::ffff:192.0.2.8]", "192.0.2.8"));
            said(&gateway, &logged);
            client.terminate();
        }
        // What a proxy says of itself, and one that does not know, is of the proxy.
        let mut client =
            log_in(&door, &header(version, &Origin::Unsaid), APP, &database.name).expect("in");
        assert_eq!(client.one("select 'alive'"), "alive");
        assert_eq!(shown(&gateway, &database).0, "127.0.0.1");
        client.terminate();
    }
    // The other door is as it was.
    gateway.client(&database).run("select 1");
    let refused = log_in_plain(&gateway.address(), &header(2, &origin("192.0.2.7:1")));
    assert!(refused.is_none_or(|complaint| complaint.code == "08P01"));
}

/// What is said to who sends these bytes first, if anything is.
fn log_in_plain(door: &Address, first: &[u8]) -> Option<Complaint> {
    let mut client = WireClient::connect(door);
    client.send(first);
    client.until_closed().last().map(crate::kit::wireclient::Message::complaint)
}

#[test]
fn a_header_may_come_in_pieces_or_with_all_that_follows() {
    let database = cluster().database();
    let (_gateway, door) = gateway(&database, "127.0.0.1", &[]);
    for version in [1, 2] {
        let mut bytes = header(version, &origin("192.0.2.7:51234"));
        startup::put_startup(&mut bytes, 0, &[("user", APP), ("database", &database.name)]);
        let every: Vec<usize> = (1..bytes.len()).collect();
        for offsets in [&every[..], &[], &[bytes.len() - 3]] {
            let mut client = WireClient::connect(&door);
            client.send_split(&bytes, offsets);
            client.authenticate(APP, APP_PASSWORD).expect("logged in");
            assert_eq!(client.one("select 'alive'"), "alive");
            client.terminate();
        }
    }
}

#[test]
fn a_header_comes_before_tls_of_both_kinds() {
    let database = cluster().database();
    let (gateway, door) = gateway(
        &database,
        "127.0.0.1",
        &[("auth.method", "trust"), ("listen.tls.mode", "require")],
    );
    let ca = &cluster().certificates.ca;
    for version in [1, 2] {
        for direct in [true, false] {
            let mut client = TlsClient::connect(&door, ca, direct.then_some("postgresql"));
            let source = format!("192.0.2.{version}:{}", 1000 + u32::from(direct));
            let bytes = header(version, &origin(&source));
            std::io::Write::write_all(&mut client.0.sock, &bytes).expect("a header");
            if !direct {
                client.ask();
            }
            assert!(client.log_in(APP, &database.name), "{version} {direct}");
            assert!(client.query("select 'al' || 'ive'").expect("an answer").contains("alive"));
            said(&gateway, &format!("addr={source}"));
        }
    }
}

#[test]
fn who_sends_no_header_or_is_no_proxy_is_refused_and_the_log_says_why() {
    let database = cluster().database();
    let (gateway, door) = gateway(&database, "127.0.0.0/8", &[]);
    let mut startup = Vec::new();
    startup::put_startup(&mut startup, 0, &[("user", APP), ("database", &database.name)]);
    let mut request = Vec::new();
    startup::put_ssl_request(&mut request);
    for (first, why) in [
        (&startup[..], "there is none"),
        (&request, "there is none"),
        (b"\x16\x03\x01\x02\x00\x01", "there is none"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", "its line (version 1) is malformed"),
        (b"\r\n\r\n\0\r\nQUIT\n\x31", "its version is 3"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\0", "0x12: no stream"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff", "it has 65551 bytes, more than 4096"),
    ] {
        let complaint = log_in_plain(&door, first).expect("an error");
        assert_eq!((complaint.severity.as_str(), complaint.code.as_str()), ("FATAL", "08P01"));
        assert!(
            complaint.hint.contains("P0125") && complaint.detail.contains(why),
            "{complaint:?}"
        );
        said(&gateway, why);
    }
    // A second one is not for us.
    let twice = [header(2, &origin("192.0.2.7:1")), header(2, &origin("192.0.2.8:1"))].concat();
    assert_eq!(log_in_plain(&door, &twice).expect("an error").code, "08P01");
    let figures = gateway.page("/metrics").expect("a page");
    assert!(figures.contains("pondage_client_refused_total{sqlstate=\"08P01\"} 8"), "{figures}");
    drop(gateway);

    let (gateway, door) = self::gateway(&database, "192.0.2.0/24", &[]);
    let complaint = log_in_plain(&door, &header(2, &origin("192.0.2.7:1"))).expect("an error");
    assert_eq!(complaint.code, "28000");
    assert!(complaint.hint.contains("P0124"), "{complaint:?}");
    said(&gateway, "127.0.0.1 is in no network of listen.proxies");
    // RELOAD says otherwise.
    let config = std::fs::read_to_string(&gateway.file).expect("the configuration");
    let config = config.replace("192.0.2.0/24", "127.0.0.1/32");
    std::fs::write(&gateway.file, config).expect("the configuration");
    gateway.console().run("reload");
    log_in(&door, &header(2, &origin("192.0.2.7:1")), APP, &database.name).expect("logged in");
}

#[test]
fn rules_and_waits_are_for_the_clients_address() {
    let database = cluster().database();
    let directory = Directory::new("rules");
    let rules = directory.path().join("pg_hba.conf");
    let text = "host all all 192.0.2.7/32 reject\nhost all all 192.0.2.0/24 scram-sha-256\n\
                host all admin 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&rules, text).expect("rules");
    let more = [("auth.method", "hba"), ("auth.hba_file", &*rules.display().to_string())];
    let (_gateway, door) = gateway(&database, "127.0.0.1", &more);
    let try_from = |source: &str, password: &str| {
        let mut client = WireClient::connect(&door);
        client.send(&header(2, &origin(source)));
        let parameters = [("user", APP), ("database", database.name.as_str())];
        client.put(|out| startup::put_startup(out, 0, &parameters));
        client.authenticate(APP, password)
    };
    let rejected = try_from("192.0.2.7:1", APP_PASSWORD).expect_err("rejected");
    assert!(rejected.message.contains("rejects connection for host \"192.0.2.7\""), "{rejected:?}");
    let unfit = try_from("203.0.113.1:1", APP_PASSWORD).expect_err("no line");
    assert!(unfit.message.contains("no pg_hba.conf entry for host \"203.0.113.1\""), "{unfit:?}");
    try_from("192.0.2.8:1", APP_PASSWORD).expect("let in");

    // Who guesses waits, and others behind the same proxy do not.
    for _ in 0..8 {
        try_from("192.0.2.9:1", "wrong").expect_err("a wrong password");
    }
    let waiting: Vec<WireClient> = (0..60)
        .map(|_| {
            let mut client = WireClient::connect(&door);
            client.send(&header(2, &origin("192.0.2.9:1")));
            let parameters = [("user", APP), ("database", database.name.as_str())];
            client.put(|out| startup::put_startup(out, 0, &parameters));
            client
        })
        .collect();
    let refused = try_from("192.0.2.9:1", APP_PASSWORD).expect_err("too many");
    assert_eq!(refused.code, "53300", "{refused:?}");
    try_from("192.0.2.8:1", APP_PASSWORD).expect("let in");
    drop(waiting);
}
