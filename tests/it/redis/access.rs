//! Who may come in: passwords in every form, secrets of every kind, TLS, and how many.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{guarded, open};
use crate::kit::certificates::Authority;
use crate::kit::cluster::{APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Gateway, RedisClient, WireClient};

const PING: &[u8] = b"PING\r\n";
const PONG: &[u8] = b"+PONG\r\n";
const NOAUTH: &[u8] = b"-NOAUTH Authentication required.\r\n";
const WRONG: &[u8] = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// As clients write it.
fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

#[test]
fn every_form_of_auth_is_taken() {
    let gateway = Gateway::start(guarded(&cluster().database()));
    let one_word = format!("{APP}:{APP_PASSWORD}");
    for words in [
        &["AUTH", APP, APP_PASSWORD][..],
        &["AUTH", &one_word],
        &["auth", APP_PASSWORD],
        &["AUTH", "default", APP_PASSWORD],
    ] {
        let mut client = RedisClient::connect(&gateway);
        client.says(PING, NOAUTH);
        // What follows at once waits for the outcome.
        client.says(&[command(words), PING.to_vec()].concat(), &[b"+OK\r\n", PONG].concat());
    }
    let mut client = RedisClient::connect(&gateway);
    client.send(&command(&["HELLO", "3", "AUTH", APP, APP_PASSWORD, "SETNAME", "me"]));
    client.hears(b"%7\r\n");
    for words in [&["AUTH", APP, "wrong"][..], &["AUTH", "nobody", "x"], &["AUTH", "wrong"]] {
        let mut client = RedisClient::connect(&gateway);
        client.says(&[command(words), PING.to_vec()].concat(), &[WRONG, NOAUTH].concat());
    }
    let mut client = RedisClient::connect(&gateway);
    client.says(b"*11\r\n", b"-ERR Protocol error: unauthenticated multibulk length\r\n");
    client.ends();
}

#[test]
fn secrets_may_be_verifiers_and_hashes() {
    let verifier = wire::pg::auth::ScramVerifier::derive("pencil", b"salt of sixteen!", 4096);
    let config = guarded(&cluster().database())
        .set("users.scram.password", verifier.to_string())
        // Of "pencil" and "hash".
        .set("users.hash.password", "md51a24d5231e5b35504f6501bbdf87b4f6")
        .set("users.plain.password", "pencil")
        .set("redis.users", ["scram", "hash", "plain"]);
    let gateway = Gateway::start(config);
    for user in ["scram", "hash", "plain"] {
        let mut client = RedisClient::connect(&gateway);
        client.says(&command(&["AUTH", user, "pencils"]), WRONG);
        client
            .says(&[command(&["AUTH", user, "pencil"]), PING.into()].concat(), b"+OK\r\n+PONG\r\n");
    }
    let mut client = RedisClient::connect(&gateway);
    // Known, but not among those who may come in here.
    client.says(&command(&["AUTH", APP, APP_PASSWORD]), WRONG);
}

#[test]
fn users_are_looked_up_in_the_database_where_the_configuration_has_none() {
    let database = cluster().database();
    let config = guarded(&database)
        .set("auth.query_user", SUPERUSER)
        .set("users.postgres.password", SUPERUSER_PASSWORD);
    let gateway = Gateway::start(config);
    database.run("create role \"of redis\" login password 'right'");
    for (user, password, reply) in [
        ("of redis", "wrong", WRONG),
        ("nobody at all", "right", WRONG),
        ("of redis", "right", b"+OK\r\n"),
    ] {
        let mut client = RedisClient::connect(&gateway);
        client.says(&command(&["AUTH", user, password]), reply);
    }
    drop(gateway);
    database.run("drop role \"of redis\"");
}

/// A TLS connection that trusts the tests' authority.
fn encrypted(gateway: &Gateway) -> StreamOwned<ClientConnection, TcpStream> {
    encrypted_as(gateway, None)
}

/// The same, and it shows a certificate with its key.
fn encrypted_as(
    gateway: &Gateway,
    shown: Option<&(String, String)>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(&cluster().certificates.ca).expect("a certificate");
    roots.add(ca).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match shown {
        None => config.with_no_client_auth(),
        Some((cert, key)) => {
            let cert = CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate");
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            config.with_client_auth_cert(vec![cert], key).expect("a pair")
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
    StreamOwned::new(connection, RedisClient::socket(gateway))
}

#[test]
fn tls_is_spoken_from_the_first_byte_and_may_be_required() {
    let database = cluster().database();
    let certificates = &cluster().certificates;
    let with = |mode: &str| {
        let config = open(&database)
            .set("listen.tls.cert", certificates.cert.display().to_string())
            .set("listen.tls.key", certificates.key.display().to_string())
            .set("listen.tls.mode", mode);
        Gateway::start(config)
    };
    for mode in ["prefer", "require"] {
        let gateway = with(mode);
        let mut client = RedisClient::over(encrypted(&gateway));
        client.says(PING, PONG);
        client.says(&PING.repeat(10_000), &PONG.repeat(10_000));
        let mut plain = RedisClient::connect(&gateway);
        if mode == "prefer" {
            plain.says(PING, PONG);
        } else {
            plain.says(PING, b"-ERR TLS is required\r\n");
            plain.ends();
        }
    }
    let gateway = Gateway::start(open(&database));
    let mut stream = encrypted(&gateway);
    let refused = std::io::Write::write_all(&mut stream, PING).expect_err("there is no TLS");
    assert!(refused.kind() != ErrorKind::WouldBlock, "{refused}");
}

#[test]
fn one_client_more_than_allowed_is_told_so_until_another_leaves() {
    let gateway = Gateway::start(open(&cluster().database()).set("redis.max_clients", 2));
    let mut first = RedisClient::connect(&gateway);
    let mut second = RedisClient::connect(&gateway);
    first.says(PING, PONG);
    second.says(PING, PONG);
    let mut third = RedisClient::connect(&gateway);
    third.hears(b"-ERR max number of clients reached\r\n");
    third.ends();
    drop(second);
    wait::until("a place", || {
        let mut next = RedisClient::socket(&gateway);
        let mut heard = [0; 7];
        let written = std::io::Write::write_all(&mut next, PING);
        written.is_ok()
            && std::io::Read::read_exact(&mut next, &mut heard).is_ok()
            && heard == *PONG
    });
}

#[test]
fn arguments_longer_than_allowed_are_refused() {
    let gateway = Gateway::start(open(&cluster().database()).set("redis.value_limit", "1KiB"));
    let mut client = RedisClient::connect(&gateway);
    let fits = [b"*2\r\n$4\r\nPING\r\n$1024\r\n".as_slice(), &[b'x'; 1024], b"\r\n"].concat();
    client.says(&fits, &fits[14..]);
    client.says(b"*2\r\n$4\r\nPING\r\n$1025\r\n", b"-ERR Protocol error: invalid bulk length\r\n");
    client.ends();
}

/// Who was rejected by the HBA file got in at this door, with his password.
#[test]
fn the_hba_file_holds_for_redis_clients_too() {
    let database = cluster().database();
    let directory = Directory::new("redis-hba");
    let authority = Authority::new();
    let ca = directory.path().join("ca.crt");
    std::fs::write(&ca, authority.pem()).expect("a file");
    let name = &database.name;
    let file = directory.path().join("pg_hba.conf");
    let write = |rules: &str| {
        std::fs::write(&file, rules.replace("DB", name)).expect("a file");
    };
    write(
        "host other ann 127.0.0.1/32 trust\nhost DB ann 127.0.0.1/32 reject\n\
         host DB bob 10.0.0.0/8 trust\nhostssl DB cy all cert\n\
         hostssl DB dan all password clientcert=verify-ca\n\
         host all app,admin all scram-sha-256\n",
    );
    let certificates = &cluster().certificates;
    let config = guarded(&database)
        .set("auth.method", "hba")
        .set("auth.hba_file", file.display().to_string())
        .set("users.ann.password", "one")
        .set("users.bob.password", "two")
        .set("users.dan.password", "four")
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string())
        .set("listen.tls.client_ca", ca.display().to_string());
    let gateway = Gateway::start(config);
    let refusal = |what: &str, user: &str, code: &str| {
        format!(
            "-NOPERM {what} host \"127.0.0.1\", user \"{user}\", database \"{name}\", no \
             encryption. The file is auth.hba_file. [{code}]\r\n"
        )
    };
    let rejected = refusal("pg_hba.conf rejects connection for", "ann", "P0319");
    let no_entry = refusal("no pg_hba.conf entry for", "bob", "P0318");
    for (user, password, reply) in [
        ("ann", "one", rejected.as_bytes()),
        ("bob", "two", no_entry.as_bytes()),
        (APP, "wrong", WRONG),
        (APP, APP_PASSWORD, b"+OK\r\n"),
    ] {
        let mut client = RedisClient::connect(&gateway);
        client.says(&command(&["AUTH", user, password]), reply);
    }
    // Certificates: of the user, of another one, none; and one with a password.
    let (cy, dan) = (authority.client("cy"), authority.client("anybody"));
    let needs = b"-NOPERM connection requires a valid client certificate.\r\n";
    let other = b"-NOPERM certificate authentication failed for user \"cy\".\r\n";
    for (shown, words, reply) in [
        (Some(&cy), ["AUTH", "cy", "x"], &b"+OK\r\n"[..]),
        (Some(&dan), ["AUTH", "cy", "x"], other),
        (None, ["AUTH", "cy", "x"], needs),
        (Some(&dan), ["AUTH", "dan", "four"], b"+OK\r\n"),
        (Some(&dan), ["AUTH", "dan", "five"], WRONG),
        (None, ["AUTH", "dan", "four"], needs),
    ] {
        let mut client = RedisClient::over(encrypted_as(&gateway, shown));
        client.says(&command(&words), reply);
    }
    // Who is in stays in when the rules change; who comes then goes by the new ones.
    let mut inside = RedisClient::connect(&gateway);
    inside.says(&command(&["AUTH", APP, APP_PASSWORD]), b"+OK\r\n");
    write("host DB app all trust\nhost all all all reject\n");
    gateway.signal(rustix::process::Signal::HUP);
    wait::until("the reload", || gateway.said().contains("event=reload"));
    inside.says(PING, PONG);
    // The default user is trusted now, and need not say so.
    RedisClient::connect(&gateway).says(PING, PONG);
}

/// Guessing was slowed down at PostgreSQL's door alone.
#[test]
fn who_guesses_is_slowed_down_and_both_doors_know_it() {
    let database = cluster().database();
    let gateway = Gateway::start(guarded(&database));
    // At PostgreSQL's door; the free ones and one more.
    for _ in 0..6 {
        let parameters = [("user", APP), ("database", database.name.as_str())];
        let refused = WireClient::try_login(&gateway.address(), "guess", &parameters);
        assert_eq!(refused.err().expect("wrong").code, "28P01");
    }
    let mut crowd: Vec<RedisClient> = Vec::new();
    for _ in 0..200 {
        let mut client = RedisClient::connect(&gateway);
        client.send(&command(&["AUTH", APP, "guess"]));
        crowd.push(client);
    }
    // More than may wait are turned away at once, though none of them has tried before.
    let refused = b"-ERR too many failed log-ins from this address. Try again in a minute. \
                    [P0320]\r\n";
    let mut last = crowd.pop().expect("one of them");
    last.hears(refused);
    // Others are none of it.
    let mut other = RedisClient::connect(&gateway);
    other.says(&command(&["AUTH", "admin", crate::kit::gateway::ADMIN_PASSWORD]), b"+OK\r\n");
    drop(crowd);
}
