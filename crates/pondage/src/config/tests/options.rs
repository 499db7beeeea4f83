//! The option table against what the rest of the code makes of it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::options::{self, Row, Section, TABLE};
use super::super::value::{duration_text, Kind};
use super::super::ProcedureOptions;
use super::super::{changed_unreloadable, effective, show_config, Address, Config, Flags, Host};
use super::{environment, meaning, meaning_beside_pool, Directory, PEM};

fn valid(text: &str) -> Config {
    match Config::from_text(text) {
        Ok(config) => config,
        Err(report) => panic!("refused:\n{text}\n{report}"),
    }
}

/// A valid value other than the default, as TOML.
fn other(row: &Row, file: &str) -> String {
    match row.kind {
        Kind::Flag => match row.default_value() {
            Some(value) if value.to_toml() == "true" => "false".to_owned(),
            _ => "true".to_owned(),
        },
        // Above every default and within every limit.
        Kind::Count { most, .. } if row.name == "max_clients" => (most - 1).to_string(),
        Kind::Count { .. } if row.name == "min_pool_size" => "3".to_owned(),
        Kind::Count { most, .. } => most.min(2_000).to_string(),
        Kind::Workers => "63".to_owned(),
        Kind::Duration { .. } => "\"7s\"".to_owned(),
        Kind::Text if row.name == "peers" => "\"other:6432\"".to_owned(),
        Kind::Text if row.name == "otlp_endpoint" => "\"http://127.0.0.1:4318\"".to_owned(),
        Kind::Secret if row.name == "otlp_headers" => "\"api-key=sesame\"".to_owned(),
        Kind::Text => "\"SELECT $1\"".to_owned(),
        Kind::Name => "\"somebody\"".to_owned(),
        Kind::Host => "\"db.example\"".to_owned(),
        Kind::Ports => "\"6000\"".to_owned(),
        Kind::Choice(words) => {
            let default = row.default_value().map(|value| value.shown()).unwrap_or_default();
            let word = words.iter().rev().find(|word| **word != default).expect("two words");
            format!("\"{word}\"")
        }
        Kind::TlsVersion => match row.default_value().map(|value| value.shown()).as_deref() {
            Some("TLSv1.2") => "\"TLSv1.3\"".to_owned(),
            _ => "\"TLSv1.2\"".to_owned(),
        },
        Kind::Path => format!("\"{file}\""),
        Kind::Permissions => "\"0700\"".to_owned(),
        Kind::Addresses => "[\"127.0.0.1:7000\"]".to_owned(),
        Kind::SocketAddress => "\"127.0.0.1:7001\"".to_owned(),
        Kind::SocketAddresses => "[\"127.0.0.1:7002\"]".to_owned(),
        Kind::Names => "[\"somebody\"]".to_owned(),
        Kind::Networks => "[\"10.0.0.0/8\"]".to_owned(),
        Kind::Mirrors => "[\"orders COLUMNS (id, total)\"]".to_owned(),
        Kind::Caches => "[\"one FROM SELECT a FROM t WHERE id = 5\"]".to_owned(),
        Kind::Numbers => "[3, 5]".to_owned(),
        Kind::Size { .. } => "\"99MiB\"".to_owned(),
        Kind::KeyspaceEvents => "\"KEA\"".to_owned(),
        Kind::Secret => "\"sesame\"".to_owned(),
        Kind::Url => "\"postgres://a:b@db.example/x\"".to_owned(),
    }
}

/// The section with names that it may have.
fn path(section: Section) -> &'static str {
    match section {
        Section::Procedure => "procedures.\"public.NAME\"",
        other => other.path(),
    }
}

/// What an option needs beside it.
fn company(section: Section, name: &str, file: &str) -> String {
    match (section, name) {
        (Section::ListenTls, "mode" | "client_ca") => {
            let rest = match name {
                "mode" => format!("client_ca = \"{file}\""),
                _ => "mode = \"verify-client\"".to_owned(),
            };
            format!("cert = \"{file}\"\nkey = \"{file}\"\n{rest}\n")
        }
        (Section::ListenTls, "cert") => format!("key = \"{file}\"\n"),
        (Section::ListenTls, "key") => format!("cert = \"{file}\"\n"),
        (Section::Database, "tls_cert") => format!("tls_key = \"{file}\"\n"),
        (Section::Database, "tls_key") => format!("tls_cert = \"{file}\"\n"),
        (Section::Listen, "proxied") => "proxies = [\"10.0.0.1\"]\n".to_owned(),
        (Section::Database, "tls_negotiation") => "tls_mode = \"require\"\n".to_owned(),
        (Section::Database, "split_reads") => {
            "host = \"a,b\"\ntarget_session_attrs = \"primary\"\n".to_owned()
        }
        // The stream needs to know as whom to log in.
        (Section::Cache, "mode" | "password" | "password_file") => "user = \"u\"\n".to_owned(),
        (_, "cache") => "[cache]\nuser = \"u\"\n".to_owned(),
        (Section::Procedure, "also") => "key = [\"p_w\"]\n".to_owned(),
        (Section::Telemetry, "otlp_headers" | "otlp_timeout" | "trace_one_in") => {
            "otlp_endpoint = \"http://127.0.0.1:4318\"\n".to_owned()
        }
        (Section::Auth, "method") => format!("hba_file = \"{file}\"\n"),
        (Section::Auth, "hba_file") => "method = \"hba\"\n".to_owned(),
        (Section::Auth, "ident_map") => format!("ident_file = \"{file}\"\n"),
        (Section::Database, "auth_query" | "auth_query_database" | "auth_query_cache") => {
            "auth_query_user = \"q\"\n".to_owned()
        }
        (Section::Auth, "query" | "query_database" | "query_cache") => {
            "query_user = \"q\"\n".to_owned()
        }
        _ => String::new(),
    }
}

#[test]
fn every_option_changes_the_configuration() {
    let directory = Directory::new();
    let pem = directory.write("c.pem", PEM).display().to_string();
    let users = directory.write("users.txt", "\"a\" \"b\"\n").display().to_string();
    let hba = directory.write("pg_hba.conf", "local all all trust\n").display().to_string();
    let ident = directory.write("pg_ident.conf", "somebody a b\n").display().to_string();
    let base = meaning(&valid("[databases.NAME.users.NAME]\n[users.NAME]\n"));
    for section in Section::ALL {
        for row in options::rows(section) {
            let file = match row.name {
                "users_file" => &users,
                "hba_file" => &hba,
                "ident_file" => &ident,
                _ => &pem,
            };
            let beside = match row.name {
                "method" => &hba,
                "ident_map" => &ident,
                _ => &pem,
            };
            let company = company(section, row.name, beside);
            let path = path(section);
            let rest = match section {
                Section::DatabaseUser => "[users.NAME]\n",
                Section::User => "[databases.NAME.users.NAME]\n",
                // The Redis door needs to know as whom to log in.
                Section::Listen => {
                    "[databases.NAME.users.NAME]\n[users.NAME]\n[databases.NAME]\nuser = \"u\"\n"
                }
                _ => "[databases.NAME.users.NAME]\n[users.NAME]\n",
            };
            let value = other(row, file);
            let text = format!("[{path}]\n{} = {value}\n{company}{rest}", row.name);
            let config = valid(&text);
            assert_ne!(meaning(&config), base, "{path}.{} = {value} changes nothing", row.name);
            let printed = effective(&config);
            let missing =
                !row.kind.is_secret() && !printed.contains(&format!("{} = {value}", row.name));
            assert!(!missing, "`check` does not print {path}.{}:\n{printed}", row.name);
        }
    }
}

#[test]
fn defaults_are_valid_values_of_their_kind() {
    for row in TABLE {
        let Some(value) = row.default_value() else { continue };
        let (section, toml) = (row.sections[0], value.to_toml());
        let text = format!("[{}]\n{} = {toml}\n", path(section), row.name);
        let rest = if section == Section::Database { "" } else { "[databases.NAME]\n" };
        let config = valid(&format!("{text}{rest}"));
        let plain = valid("[databases.NAME]\n");
        match section {
            // Pools say nothing until they are resolved.
            Section::Pool => assert_eq!(
                config.pool("NAME", "a").expect("known"),
                plain.pool("NAME", "a").expect("known")
            ),
            // A section of its own says that calls travel, so what is compared is how.
            Section::Procedure => {
                let said = &config.procedures["public.NAME"];
                let how = |options: &ProcedureOptions| {
                    let names = (options.key.clone(), options.also.clone());
                    let ways = (options.mode(), options.durable_ack());
                    (names, ways, options.max_train(), options.retry())
                };
                assert_eq!(how(said), how(&ProcedureOptions::default()), "{}", row.name);
            }
            _ => assert_eq!(meaning(&config), meaning(&plain), "{} = {toml}", row.name),
        }
    }
}

#[test]
fn names_are_unique_in_each_section_and_documented() {
    for section in Section::ALL {
        let mut names = BTreeSet::new();
        for row in options::rows(section) {
            assert!(names.insert(row.name), "{} twice in {}", row.name, section.path());
            assert!(
                row.help.ends_with('.') && !row.help.contains('|'),
                "{}: {}",
                row.name,
                row.help
            );
        }
    }
}

#[test]
fn what_check_prints_means_the_same_when_it_is_read() {
    let directory = Directory::new();
    let pem = directory.write("c.pem", PEM);
    let text = format!(
        r#"
[listen]
postgres = ["0.0.0.0:7000", "[::]:7000", "unix:/run/pondage", "unix:/tmp/.s.PGSQL.7001"]
http = "off"
unix_socket_mode = 0o770
[listen.tls]
cert = "{pem}"
key = "{pem}"
[auth]
query_user = "ask \"me\""
admin_users = ["a", "b\\c"]
[pool]
wait_timeout = "1500ms"
server_lifetime = "90m"
query_timeout = 0
[databases."my app"]
url = "postgres://app@[::1]:5433/x%20y?sslmode=verify-full&connect_timeout=3"
connect_query = "SET a = 'é'"
server_check_query = "line\nline\u0007"
[databases."*"]
host = "/var/run/postgresql"
[databases.app.users.report]
mode = "session"
[users.report]
max_client_connections = 5
"#,
        pem = pem.display()
    );
    let config = valid(&text);
    let printed = effective(&config);
    let again = valid(&printed);
    assert_eq!(meaning_beside_pool(&again), meaning_beside_pool(&config));
    for (database, user) in [("my app", "a"), ("app", "report"), ("app", "a"), ("other", "report")]
    {
        assert_eq!(again.pool(database, user), config.pool(database, user));
    }
    let without_origin = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  # ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(without_origin(&effective(&again)), without_origin(&printed));
}

#[test]
fn check_prints_origins_and_no_secrets() {
    let directory = Directory::new();
    let file = directory.write("password", "hunter2\n");
    let text = format!(
        "[databases.app]\npassword = \"hunter2\"\n[users.b]\npassword_file = \"{}\"\n",
        file.display()
    );
    let variables = environment(&[("PONDAGE_USERS__A__PASSWORD", "hunter2")]);
    let flags = Flags { http: Some("off".to_owned()), ..Flags::default() };
    let config = Config::from_text_and(&text, variables, flags).expect("valid");
    let printed = effective(&config);
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(!format!("{:?}", config.settings).contains("hunter2"));
    for line in [
        "http = \"off\"  # flag --http",
        "password = \"***\"  # pondage.toml:2:1",
        "password = \"***\"  # environment variable PONDAGE_USERS__A__PASSWORD",
        &format!("password_file = \"{}\"  # pondage.toml:4:1", file.display()),
    ] {
        assert!(printed.lines().any(|printed| printed == line), "no {line} in:\n{printed}");
    }
}

#[test]
fn show_config_has_our_names_and_those_of_pgbouncer() {
    let config =
        valid("[databases.app]\n[pool]\nwait_timeout = \"1500ms\"\n[runtime]\nworkers = 2\n");
    let rows = show_config(&config);
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"));
        (row.value.as_str(), row.default.as_str(), row.changeable)
    };
    assert_eq!(row("pool.wait_timeout"), ("1500ms", "2m", true));
    assert_eq!(row("query_wait_timeout"), ("1.500", "120", true));
    assert_eq!(row("runtime.workers"), ("2", "auto", false));
    assert_eq!(row("max_client_conn"), ("10000", "10000", true));
    assert_eq!(row("server_reset_query_always"), ("0", "0", true));
    assert_eq!(row("pool_mode"), ("transaction", "transaction", true));
    let keys: BTreeSet<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys.len(), rows.len());
}

#[test]
fn changes_that_wait_for_a_restart_are_listed() {
    let old = valid("[databases.app]\n");
    let new = valid(
        "[databases.app]\npool_size = 5\n[runtime]\nworkers = 3\nmax_clients = 5\n\
         [listen]\npostgres = [\"127.0.0.1:7000\"]\n",
    );
    let changes: Vec<(String, String, String)> = changed_unreloadable(&old, &new)
        .into_iter()
        .map(|change| (change.key, change.old, change.new))
        .collect();
    let expected =
        [("listen.postgres", "127.0.0.1:6432", "127.0.0.1:7000"), ("runtime.workers", "auto", "3")];
    let expected = expected.map(|(key, old, new)| (key.to_owned(), old.to_owned(), new.to_owned()));
    assert_eq!(changes, expected);
    assert!(changed_unreloadable(&new, &new).is_empty());
}

#[test]
fn durations_are_read_with_units_and_printed_in_the_largest() {
    for (text, milliseconds, printed) in [
        ("\"250ms\"", 250, "250ms"),
        ("\"5s\"", 5_000, "5s"),
        ("\"60s\"", 60_000, "1m"),
        ("\"90 s\"", 90_000, "90s"),
        ("\"2min\"", 120_000, "2m"),
        ("\"10m\"", 600_000, "10m"),
        ("\"1h\"", 3_600_000, "1h"),
        ("\"1d\"", 86_400_000, "1d"),
        ("0", 0, "0"),
        ("\"0\"", 0, "0"),
        ("\"0s\"", 0, "0"),
    ] {
        let config = valid(&format!("[databases.app]\nquery_timeout = {text}\n"));
        let pool = config.pool("app", "a").expect("known");
        assert_eq!(pool.query_timeout, Duration::from_millis(milliseconds), "{text}");
        assert_eq!(duration_text(pool.query_timeout), printed);
    }
}

#[test]
fn addresses_are_read_in_every_form() {
    let config = valid(
        "[databases.app]\n[listen]\npostgres = [\"unix:/run/a\", \"localhost:7000\", \"[::1]:7000\", \
         \"unix:/run/b/.s.PGSQL.5432\"]\n",
    );
    let unix = |directory: &str, port| Address::Unix { directory: directory.into(), port };
    assert_eq!(
        config.listen.postgres,
        [
            unix("/run/a", 7000),
            Address::Tcp(([127, 0, 0, 1], 7000).into()),
            Address::Tcp((std::net::Ipv6Addr::LOCALHOST, 7000).into()),
            unix("/run/b", 5432),
        ]
    );
    let config = valid("[databases.app]\n[listen]\npostgres = \"unix:/run/a\"\n");
    assert_eq!(config.listen.postgres, [unix("/run/a", 6432)]);
}

#[test]
fn the_packaged_example_is_valid_and_names_every_section_it_shows() {
    let config = valid(include_str!("../../../../../packaging/pondage.toml"));
    assert_eq!(config.databases["app"].upstream.host, Host::Tcp("localhost".to_owned()));
    assert!(config.secret("admin").is_some() && config.is_admin("admin"));
    // With every comment that holds an option taken away, it is TOML that Pondage knows.
    let uncommented: String = include_str!("../../../../../packaging/pondage.toml")
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    if let Err(report) = Config::from_text(&uncommented) {
        let unreadable = |code: &str| code == "P0112";
        let others: Vec<String> = report
            .problems
            .iter()
            .filter(|problem| !unreadable(problem.code.name()))
            .map(|problem| problem.to_string())
            .collect();
        assert!(others.is_empty(), "{}", others.join("\n"));
    }
}
