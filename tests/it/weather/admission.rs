//! Who may come in: HBA files, client certificates, users of the operating system.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use wire::pg::backend::{self, tag, Auth};
use wire::pg::startup;

use crate::kit::certificates::Authority;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Address, Config, Database, Gateway, Tool, WireClient};

/// What a client is asked for, or told.
fn asked(address: &Address, user: &str, database: &str) -> String {
    let mut client = WireClient::connect(address);
    let parameters = [("user", user), ("database", database)];
    client.put(|out| startup::put_startup(out, 0, &parameters));
    let message = client.message();
    if message.tag == tag::ERROR {
        let complaint = message.complaint();
        return format!("{} {}", complaint.code, complaint.message);
    }
    match backend::auth(&message.body).expect("an Authentication message") {
        Auth::Ok => "trust".to_owned(),
        Auth::Cleartext => "password".to_owned(),
        Auth::Md5(_) => "md5".to_owned(),
        Auth::Sasl(_) => "scram".to_owned(),
        other => panic!("{other:?}"),
    }
}

/// A file that PostgreSQL 15 takes too.
fn random_rules(random: &mut StdRng, databases: [&str; 2]) -> String {
    // The tests themselves.
    let mut text = "local all postgres trust\nlocal pondage admin trust\n".to_owned();
    let [one, two] = databases;
    let quoted = format!("\"{two}\"");
    let both = format!("{one},{two}");
    let databases = ["all", one, two, &quoted, &both, "sameuser", "replication", "\"all\"", "none"];
    let users = ["all", "app", "legacy", "\"app\"", "app,legacy", "plain, app", "\"all\"", "+app"];
    let addresses = [
        "all",
        "127.0.0.1/32",
        "127.0.0.2/32",
        "127.0.0.0/8",
        "127.0.0.1 255.255.255.255",
        "0.0.0.0/0",
        "::1/128",
        "::/0",
        "10.0.0.0/8",
        "samehost",
        "samenet",
    ];
    let methods = ["trust", "reject", "md5", "password", "scram-sha-256"];
    for _ in 0..random.random_range(1..8) {
        let mut pick = |words: &[&str]| (*words.choose(random).expect("some")).to_owned();
        let kind = pick(&["local", "host", "host", "hostssl", "hostnossl", "hostnogssenc"]);
        let database = pick(&databases);
        // What depends on the members of roles is refused; see the unit tests.
        let user = pick(&users[..users.len() - 1]);
        let address = if kind == "local" { String::new() } else { pick(&addresses) };
        text.push_str(&format!("{kind} {database}\t{user} {address} {}", pick(&methods)));
        text.push_str(&pick(&["\n", " # why\n", "\n\n", " \\\n\n", "\r\n"]));
    }
    text
}

#[test]
fn postgresql_15_asks_for_the_same_with_the_same_file() {
    let cluster = Cluster::start("hba", &[]);
    let file = cluster.directory.join("data/pg_hba.conf");
    let socket = Address::unix(&cluster.directory, cluster.port);
    let mut superuser = WireClient::login(&socket, "postgres", "", "postgres");
    // Both are names of users, too.
    superuser.run("create database app");
    superuser.run("create database other");
    let databases = ["app", "other"];
    let stored = |client: &mut WireClient, role: &str| {
        client.one(&format!("select rolpassword from pg_authid where rolname = '{role}'"))
    };
    std::fs::write(&file, "local all all trust\n").expect("a file");
    let doors = ["127.0.0.1:{port}", "[::1]:{port}", "unix:{directory}"];
    let mut config = Config::default()
        .set("listen.postgres", doors)
        .set("auth.method", "hba")
        .set("auth.hba_file", file.display().to_string())
        .set("auth.admin_users", ["admin"])
        .set("runtime.shutdown_timeout", "5s");
    for role in ["app", "legacy", "plain"] {
        config = config.set(&format!("users.{role}.password"), stored(&mut superuser, role));
    }
    // Its servers are another PostgreSQL's: this one would refuse them by the same file.
    let elsewhere = crate::kit::cluster().database();
    for database in databases {
        config = config
            .database(database)
            .set(&format!("databases.{database}.dbname"), elsewhere.name.clone())
            .set(&format!("databases.{database}.user"), APP)
            .set(&format!("databases.{database}.password"), APP_PASSWORD);
    }
    let gateway = Gateway::start(config);
    let unix = Address::unix(gateway.directory.path(), gateway.port);
    let doors = [
        (cluster.address(), gateway.address()),
        (Address::tcp("::1", cluster.port), Address::tcp("::1", gateway.port)),
        (socket, unix.clone()),
    ];
    let mut console = WireClient::login(&unix, "admin", "", "pondage");
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..40 {
        let rules = random_rules(&mut random, databases);
        std::fs::write(&file, &rules).expect("a file");
        let loaded = superuser.one("select pg_conf_load_time()");
        superuser.run("select pg_reload_conf()");
        wait::until("PostgreSQL to read the file", || {
            superuser.one("select pg_conf_load_time()") != loaded
        });
        console.run("reload");
        for (theirs, ours) in &doors {
            for user in ["app", "legacy", "plain"] {
                for database in databases {
                    let (theirs, ours) =
                        (asked(theirs, user, database), asked(ours, user, database));
                    assert_eq!(theirs, ours, "{user} to {database} with\n{rules}");
                }
            }
        }
    }
}

#[test]
fn a_bad_file_is_refused_at_the_start_and_changes_nothing_by_reload() {
    let database = cluster().database();
    let directory = Directory::new("hba");
    let file = directory.path().join("pg_hba.conf");
    std::fs::write(&file, "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        .expect("a file");
    let config = Config::of(&database)
        .set("auth.method", "hba")
        .set("auth.hba_file", file.display().to_string());
    let gateway = Gateway::start(config.clone());
    gateway.client(&database).run("select 1");
    std::fs::write(&file, "host all all 127.0.0.1/32 reject\nhost all all all pam\n")
        .expect("a file");
    let told = gateway.console().error("reload");
    let place = format!("{}:2:18", file.display());
    let text = format!("{told:?}");
    assert!(text.contains("P0120") && text.contains(&place), "{text}");
    gateway.client(&database).run("select 1");
    let ended = Gateway::refused(config);
    assert!(ended.stderr.contains("\"pam\" is not supported"), "{ended:?}");
    assert!(ended.stderr.contains(&place), "{ended:?}");
    std::fs::write(&file, "host pondage all all md5\nhost all all all reject\n").expect("a file");
    gateway.console().run("reload");
    let refused = asked(&gateway.address(), APP, &database.name);
    let expected = format!(
        "28000 pg_hba.conf rejects connection for host \"127.0.0.1\", user \"app\", \
         database \"{}\", no encryption",
        database.name
    );
    assert_eq!(refused, expected);
}

/// A gateway that has TLS and knows an authority of clients.
fn certified(database: &Database, authority: &Path) -> Config {
    let certificates = &cluster().certificates;
    Config::of(database)
        .set("listen.postgres", ["127.0.0.1:{port}", "unix:{directory}"])
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string())
        .set("listen.tls.client_ca", authority.display().to_string())
}

fn put(directory: &Directory, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, text).expect("a file");
    // libpq wants keys to be nobody else's.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    path.display().to_string()
}

/// What psql says to `select 'in'` with this certificate, or to none.
fn psql(gateway: &Gateway, database: &Database, shown: Option<&[String; 2]>) -> String {
    let mut tool = Tool::psql(gateway, database).env("PGSSLMODE", "require");
    if let Some([cert, key]) = shown {
        tool = tool.env("PGSSLCERT", cert).env("PGSSLKEY", key);
    }
    let ended = tool.env("PGPASSWORD", APP_PASSWORD).args(["-Atc", "select 'in'"]).outcome();
    format!("{}{}", ended.stdout, ended.stderr)
}

#[test]
fn certificates_let_in_whom_they_name() {
    let database = cluster().database();
    let directory = Directory::new("client-certificates");
    let authority = Authority::new();
    let ca = directory.path().join("ca.crt");
    put(&directory, "ca.crt", &authority.pem());
    let made = |by: &Authority, name: &str| {
        let (cert, key) = by.client(name);
        [
            put(&directory, &format!("{name}.crt"), &cert),
            put(&directory, &format!("{name}.key"), &key),
        ]
    };
    let (app, bob) = (made(&authority, APP), made(&authority, "bob"));
    let stranger = made(&Authority::new(), "stranger");
    let maps = put(&directory, "ident", "staff bob app\nnames \"CN=bob\" app\n");

    let gateway = Gateway::start(certified(&database, &ca).set("auth.method", "cert"));
    assert_eq!(psql(&gateway, &database, Some(&app)).trim(), "in");
    let told = psql(&gateway, &database, Some(&bob));
    assert!(told.contains("certificate authentication failed for user \"app\""), "{told}");
    let told = psql(&gateway, &database, None);
    assert!(told.contains("connection requires a valid client certificate"), "{told}");
    assert!(!psql(&gateway, &database, Some(&stranger)).contains("in\n"));

    let mapped = certified(&database, &ca)
        .set("auth.method", "cert")
        .set("auth.ident_file", maps.clone())
        .set("auth.ident_map", "staff");
    let gateway = Gateway::start(mapped);
    assert_eq!(psql(&gateway, &database, Some(&bob)).trim(), "in");
    assert!(psql(&gateway, &database, Some(&app)).contains("failed"));

    for (rule, [by_app, by_bob, by_none]) in [
        ("hostssl all all all cert", [true, false, false]),
        ("hostssl all all all cert map=staff", [false, true, false]),
        ("hostssl all all all cert map=names clientname=DN", [false, true, false]),
        ("hostssl all all all scram-sha-256 clientcert=verify-ca", [true, true, false]),
        ("hostssl all all all scram-sha-256 clientcert=verify-full", [true, false, false]),
        ("hostssl all all all scram-sha-256", [true, true, true]),
        ("hostnossl all all all trust", [false, false, false]),
    ] {
        let config = certified(&database, &ca)
            .set("auth.method", "hba")
            .set("auth.hba_file", put(&directory, "hba", &format!("{rule}\n")))
            .set("auth.ident_file", maps.clone());
        let gateway = Gateway::start(config);
        for (shown, works) in [(Some(&app), by_app), (Some(&bob), by_bob), (None, by_none)] {
            let told = psql(&gateway, &database, shown);
            assert_eq!(told.trim() == "in", works, "{rule}: {told}");
        }
    }
}

#[test]
fn the_owner_of_a_process_is_its_user() {
    let database = cluster().database();
    let me = rustix::process::geteuid();
    let passwd = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd");
    let number = me.as_raw().to_string();
    let is_me = |line: &&str| line.split(':').nth(2) == Some(number.as_str());
    let me = passwd.lines().find(is_me).and_then(|line| line.split(':').next()).expect("a name");
    let directory = Directory::new("peer");
    let maps = put(&directory, "ident", &format!("m {me} app\nm /^(.*)$ x\\1\n"));
    let config = Config::of(&database)
        .set("listen.postgres", ["127.0.0.1:{port}", "unix:{directory}"])
        .set("auth.method", "peer");
    let try_as = |gateway: &Gateway, user: &str| {
        asked(&Address::unix(gateway.directory.path(), gateway.port), user, &database.name)
    };
    let failed = |user: &str| format!("28000 Peer authentication failed for user \"{user}\"");
    let gateway = Gateway::start(config.clone());
    assert_eq!(try_as(&gateway, APP), failed(APP));
    assert_eq!(asked(&gateway.address(), APP, &database.name), failed(APP));
    let mapped = config.set("auth.ident_file", maps).set("auth.ident_map", "m");
    let gateway = Gateway::start(mapped);
    assert_eq!(try_as(&gateway, APP), "trust");
    assert_eq!(try_as(&gateway, "legacy"), failed("legacy"));
    let unix = Address::unix(gateway.directory.path(), gateway.port);
    WireClient::login(&unix, APP, "", &database.name).run("select 1");
}

/// Guesses until the door makes who does so wait, and turns away those for whom there is no room.
fn guess(gateway: &Gateway, user: &str, database: &str) {
    let parameters = [("user", user), ("database", database)];
    for at in 0..8 {
        let guess = format!("guess {at}");
        let refused = WireClient::try_login(&gateway.address(), &guess, &parameters);
        assert_eq!(refused.err().expect("wrong").code, "28P01");
    }
    // Now each waits for its turn, and who would wait too long is turned away.
    let waiting: Vec<WireClient> = (0..60)
        .map(|_| {
            let mut client = WireClient::connect(&gateway.address());
            client.put(|out| startup::put_startup(out, 0, &parameters));
            client
        })
        .collect();
    let refused = asked(&gateway.address(), user, database);
    assert_eq!(refused, "53300 too many failed log-ins from this address");
    drop(waiting);
}

#[test]
fn who_guesses_passwords_is_slowed_and_others_are_not() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    guess(&gateway, APP, &database.name);
    gateway.console().run("show pools");
}

#[test]
fn who_guesses_at_the_console_is_slowed_too() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    guess(&gateway, "admin", "pondage");
    gateway.client(&database).run("select 1");
}
