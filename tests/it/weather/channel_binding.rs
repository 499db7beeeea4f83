//! SCRAM-SHA-256-PLUS, with libpq as the client and PostgreSQL as the server.

use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

use crate::kit::cluster::{APP, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, Config, Database, Gateway, Tool};

/// A gateway whose certificate is signed by `algorithm`.
fn with_certificate(database: &Database, algorithm: &'static SignatureAlgorithm) -> Gateway {
    let directory = Directory::new("binding");
    let key = KeyPair::generate_for(algorithm).expect("a key pair");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    let cert = params.self_signed(&key).expect("a certificate").pem();
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let config = Config::of(database)
        .set("listen.tls.cert", file("server.crt", cert))
        .set("listen.tls.key", file("server.key", key.serialize_pem()));
    Gateway::start(config)
}

/// The exit code of psql and what it said.
fn psql(gateway: &Gateway, database: &Database, tls: &str, binding: &str) -> (i32, String) {
    let done = Tool::psql(gateway, database)
        .env("PGHOST", "localhost")
        .env("PGSSLMODE", tls)
        .env("PGCHANNELBINDING", binding)
        .args(["-c", "select 'alive'"])
        .outcome();
    (done.status.code().expect("a code"), done.stderr)
}

#[test]
fn libpq_binds_itself_to_certificates_of_every_kind() {
    let database = cluster().database();
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ECDSA_P521_SHA512,
        &rcgen::PKCS_RSA_SHA256,
        &rcgen::PKCS_RSA_SHA512,
    ] {
        let gateway = with_certificate(&database, algorithm);
        for binding in ["require", "prefer", "disable"] {
            let (code, said) = psql(&gateway, &database, "require", binding);
            assert_eq!(code, 0, "{algorithm:?} {binding}: {said}");
        }
        let (code, said) = psql(&gateway, &database, "disable", "require");
        assert_eq!(code, 2, "without TLS: {said}");
    }
}

/// Ed25519 has no hash of its own, and libpq gives up where it is offered all the same.
#[test]
fn a_certificate_without_a_hash_is_not_offered_for_binding() {
    let database = cluster().database();
    let gateway = with_certificate(&database, &rcgen::PKCS_ED25519);
    let (code, said) = psql(&gateway, &database, "require", "prefer");
    assert_eq!(code, 0, "{said}");
    let (code, said) = psql(&gateway, &database, "require", "require");
    assert!(code == 2 && said.contains("did not offer"), "{said}");
}

/// Nobody but the client and PostgreSQL knows the password; both connections are bound.
#[test]
fn a_bound_proof_is_passed_through_to_a_bound_server() {
    let database = cluster().database();
    let certificates = &cluster().certificates;
    let name = &database.name;
    let config = |method: &str| {
        Config::of(&database)
            .set("auth.query_user", SUPERUSER)
            .set("users.postgres.password", SUPERUSER_PASSWORD)
            .set("pool.wait_timeout", "2s")
            .set("listen.tls.cert", certificates.cert.display().to_string())
            .set("listen.tls.key", certificates.key.display().to_string())
            .set(&format!("databases.{name}.host"), "127.0.0.1")
            .set(&format!("databases.{name}.tls_mode"), method)
            .set(&format!("databases.{name}.channel_binding"), "require")
    };
    database.run("create role bound login password 'right'");
    let ask = |gateway: &Gateway, user: &str, password: &str| {
        let done = Tool::psql(gateway, &database)
            .env("PGHOST", "localhost")
            .env("PGUSER", user)
            .env("PGPASSWORD", password)
            .env("PGSSLMODE", "require")
            .env("PGCHANNELBINDING", "require")
            .args(["-Atc", "select ssl, user from pg_stat_ssl where pid = pg_backend_pid()"])
            .outcome();
        (done.stdout, done.stderr)
    };
    let gateway = Gateway::start(config("require"));
    assert_eq!(ask(&gateway, "bound", "right"), ("t|bound\n".to_owned(), String::new()));
    let (said, why) = ask(&gateway, "bound", "wrong");
    assert!(said.is_empty() && why.contains("password authentication failed"), "{why}");
    drop(gateway);
    // Where the server can't be had over TLS, it is not had at all.
    let gateway = Gateway::start(config("disable"));
    let (said, why) = ask(&gateway, APP, crate::kit::cluster::APP_PASSWORD);
    assert!(said.is_empty() && why.contains("channel binding is required"), "{why}");
    drop(gateway);
    database.run("drop role bound");
}
