//! Certificates of X.509's first version, as `openssl x509 -req` makes them, on both sides.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::kit::certificates::Authority;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, Config, Database, Gateway, Tool, WireClient};

struct Files(Directory);

impl Files {
    fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).expect("a file");
        // libpq looks at its key's.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
        path.display().to_string()
    }

    /// A gateway that shows a certificate for this name.
    fn gateway(&self, config: Config, authority: &Authority, name: &str) -> Gateway {
        let (cert, key) = authority.first_version(name);
        let config = config
            .set("listen.tls.cert", self.write("server.crt", &cert))
            .set("listen.tls.key", self.write("server.key", &key));
        Gateway::start(config)
    }
}

fn psql(gateway: &Gateway, database: &Database, environment: &[(&str, &str)]) -> (i32, String) {
    let mut tool = Tool::psql(gateway, database).env("PGHOST", "localhost");
    for (name, value) in environment {
        tool = tool.env(name, value);
    }
    let done = tool.args(["-c", "select 'alive'"]).outcome();
    (done.status.code().expect("a code"), done.stderr)
}

#[test]
fn the_gateway_may_show_one() {
    let database = cluster().database();
    let (files, authority) = (Files(Directory::new("first")), Authority::new());
    let ca = files.write("ca.crt", &authority.pem());
    let gateway = files.gateway(Config::of(&database), &authority, "localhost");
    for version in ["TLSv1.2", "TLSv1.3"] {
        let environment = [
            ("PGSSLMODE", "verify-full"),
            ("PGSSLROOTCERT", &ca),
            ("PGSSLMINPROTOCOLVERSION", version),
            ("PGSSLMAXPROTOCOLVERSION", version),
        ];
        let (code, said) = psql(&gateway, &database, &environment);
        assert_eq!(code, 0, "{version}: {said}");
    }
    // With the key of another.
    let (_, other) = authority.first_version("localhost");
    let config = Config::of(&database)
        .set("listen.tls.cert", files.0.path().join("server.crt").display().to_string())
        .set("listen.tls.key", files.write("other.key", &other));
    let ended = Gateway::refused(config);
    assert!(ended.stderr.contains("P0204"), "{ended:?}");
}

#[test]
fn a_server_may_show_one_that_an_authority_of_the_file_has_signed() {
    let database = cluster().database();
    let (files, authority) = (Files(Directory::new("first")), Authority::new());
    let ca = files.write("ca.crt", &authority.pem());
    let other = files.write("other.crt", &Authority::new().pem());
    let url = format!("databases.{}.url", database.name);
    for (name, mode, ca, version, works) in [
        ("localhost", "verify-full", &ca, "TLSv1.3", true),
        ("localhost", "verify-full", &ca, "TLSv1.2", true),
        ("elsewhere", "verify-ca", &ca, "TLSv1.3", true),
        ("elsewhere", "verify-full", &ca, "TLSv1.3", false),
        ("localhost", "verify-ca", &other, "TLSv1.3", false),
        ("elsewhere", "require", &other, "TLSv1.3", true),
    ] {
        let inner = files.gateway(Config::of(&database), &authority, name);
        let place = format!("postgres://localhost:{}/{}", inner.port, database.name);
        let tls = format!("sslmode={mode}&sslrootcert={ca}&ssl_max_protocol_version={version}");
        let tls = if mode == "require" { "sslmode=require".to_owned() } else { tls };
        let config =
            Config::base().set("pool.wait_timeout", "5s").set(&url, format!("{place}?{tls}"));
        let gateway = Gateway::start(config);
        let parameters = [("user", APP), ("database", database.name.as_str())];
        match WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters) {
            Ok(mut client) => {
                assert!(works, "{name} {mode} {ca} was believed");
                assert_eq!(client.one("select 'alive'"), "alive");
            }
            Err(refused) => assert!(!works, "{name} {mode}: {refused:?}"),
        }
    }
}

#[test]
fn a_client_may_show_one_and_is_who_it_says() {
    let database = cluster().database();
    let (files, authority) = (Files(Directory::new("first")), Authority::new());
    let ca = files.write("ca.crt", &authority.pem());
    let config = Config::of(&database)
        .set("auth.method", "cert")
        .set("listen.tls.mode", "verify-client")
        .set("listen.tls.client_ca", ca.as_str());
    let gateway = files.gateway(config, &authority, "localhost");
    let impostor = Authority::new();
    for (signer, name, works) in
        [(&authority, APP, true), (&authority, "somebody", false), (&impostor, APP, false)]
    {
        let (cert, key) = signer.first_version(name);
        let (cert, key) = (files.write("client.crt", &cert), files.write("client.key", &key));
        for version in ["TLSv1.2", "TLSv1.3"] {
            let environment = [
                ("PGSSLMODE", "verify-full"),
                ("PGSSLROOTCERT", &ca),
                ("PGSSLCERT", &cert),
                ("PGSSLKEY", &key),
                ("PGSSLMAXPROTOCOLVERSION", version),
            ];
            let (code, said) = psql(&gateway, &database, &environment);
            assert_eq!(code == 0, works, "{name} {version}: {said}");
        }
    }
}
