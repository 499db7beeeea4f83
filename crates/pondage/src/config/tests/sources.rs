//! Who is heard: flag, environment, file, default; and URLs.

use wire::pg::auth::Secret;

use super::super::{
    reload, set, Address, AuthMethod, Balance, CacheMode, Config, Environment, Flags, Host, Origin,
    PoolMode, Refusal, ServerTlsMode, SessionAttrs, TlsNegotiation, TlsVersion,
};
use super::{environment, Directory};

fn from(text: &str, variables: &[(&str, &str)], flags: Flags) -> Config {
    match Config::from_text_and(text, environment(variables), flags) {
        Ok(config) => config,
        Err(report) => panic!("refused:\n{report}"),
    }
}

fn plain(password: &str) -> Secret {
    Secret::Plain(password.to_owned())
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let file = "[databases.app]\n[runtime]\nworkers = 2\n";
    let variable = [("PONDAGE_RUNTIME__WORKERS", "3")];
    let flag = Flags { workers: Some("4".to_owned()), ..Flags::default() };
    assert_eq!(from(file, &[], Flags::default()).runtime.workers, 2);
    assert_eq!(from(file, &variable, Flags::default()).runtime.workers, 3);
    assert_eq!(from(file, &variable, flag.clone()).runtime.workers, 4);
    assert_eq!(from(file, &[], flag).runtime.workers, 4);
    assert_eq!(from("[databases.app]", &[], Flags::default()).runtime.max_clients, 10_000);
}

#[test]
fn every_flag_reaches_its_option() {
    let flags = Flags {
        listen: vec!["127.0.0.1:7000".to_owned(), "unix:/tmp".to_owned()],
        redis: Some("off".to_owned()),
        http: Some("127.0.0.1:7001".to_owned()),
        workers: Some("auto".to_owned()),
        log_level: Some("debug".to_owned()),
        log_format: Some("json".to_owned()),
    };
    let config = from("[databases.app]\n[runtime]\nworkers = 60\n", &[], flags);
    assert_eq!(config.listen.postgres.len(), 2);
    assert_eq!(config.listen.http, Some(([127, 0, 0, 1], 7001).into()));
    assert!(config.runtime.workers <= 4);
    assert_eq!(config.telemetry.log_level, "debug");
    assert_eq!(config.telemetry.log_format, super::super::LogFormat::Json);
}

#[test]
fn variables_find_sections_by_capitals_and_make_new_ones_in_lower_case() {
    let config = from(
        "[databases.\"My-App\"]\n[databases.\"My-App\".users.Ann]\n[users.Ann]\n",
        &[
            ("PONDAGE_DATABASES__MY_APP__POOL_SIZE", "7"),
            ("PONDAGE_DATABASES__MY_APP__USERS__ANN__MODE", "session"),
            ("PONDAGE_DATABASES__MY_APP__USERS__BOB__MODE", "statement"),
            ("PONDAGE_DATABASES__OTHER__HOST", "db.example"),
            ("PONDAGE_USERS__ANN__PASSWORD", "one"),
            ("PONDAGE_USERS__BOB__PASSWORD", "two"),
            ("PONDAGE_LISTEN__TLS__MODE", "disable"),
            ("PONDAGE_LISTEN__POSTGRES", "127.0.0.1:7000, [::1]:7000"),
            ("PONDAGE_TELEMETRY__LOG_CONNECTIONS", "true"),
            ("PONDAGE_AUTH__ADMIN_USERS", "ann,bob"),
        ],
        Flags::default(),
    );
    assert_eq!(config.databases.keys().collect::<Vec<_>>(), ["My-App", "other"]);
    let ann = config.pool("My-App", "Ann").expect("known");
    assert_eq!((ann.pool_size, ann.mode), (7, PoolMode::Session));
    assert_eq!(config.pool("My-App", "bob").expect("known").mode, PoolMode::Statement);
    assert_eq!(config.secret("Ann"), Some(&plain("one")));
    assert_eq!(config.secret("bob"), Some(&plain("two")));
    assert_eq!(config.listen.postgres.len(), 2);
    assert!(config.telemetry.log_connections && config.is_admin("bob"));
}

#[test]
fn secrets_come_from_files_and_the_stronger_source_wins() {
    let directory = Directory::new();
    let one = directory.write("one", "from file\r\n").display().to_string();
    let two = directory.write("two", "from variable's file\n").display().to_string();
    directory.write("p.toml", "[databases.app]\n[users.a]\npassword_file = \"one\"\n");
    let path = directory.path().join("p.toml");
    let load = |variables: &[(&str, &str)]| {
        Config::load(Some(&path), environment(variables), Flags::default()).expect("valid")
    };
    assert_eq!(load(&[]).secret("a"), Some(&plain("from file")));
    let stronger = load(&[("PONDAGE_USERS__A__PASSWORD_FILE", &two)]);
    assert_eq!(stronger.secret("a"), Some(&plain("from variable's file")));
    let weaker = format!("[databases.app]\npassword = \"x\"\n[users.a]\npassword_file = '{one}'\n");
    let config = from(&weaker, &[("PONDAGE_USERS__A__PASSWORD", "y")], Flags::default());
    assert_eq!(config.secret("a"), Some(&plain("y")));
}

#[test]
fn url_of_a_section_says_what_its_keys_would() {
    let url = "postgresql://app:p%40ss:w@db.example:5433/real?sslmode=require\
               &application_name=web&connect_timeout=3";
    let config = from(&format!("[databases.app]\nurl = \"{url}\"\n"), &[], Flags::default());
    let pool = config.pool("app", "ann").expect("known");
    let upstream = &pool.upstream;
    assert_eq!(upstream.host, Host::Tcp("db.example".to_owned()));
    assert_eq!((upstream.port, upstream.database.as_str()), (5433, "real"));
    assert_eq!((upstream.user.as_str(), &upstream.password), ("app", &Some(plain("p@ss:w"))));
    assert_eq!(upstream.tls.mode, ServerTlsMode::Require);
    assert_eq!(upstream.application_name.as_deref(), Some("web"));
    assert_eq!(pool.connect_timeout.as_secs(), 3);
}

#[test]
fn url_says_how_tls_begins_and_which_versions_it_has() {
    let url = "postgres://db/app?sslmode=verify-full&sslnegotiation=direct\
               &ssl_min_protocol_version=tlsv1.3&ssl_max_protocol_version=TLSv1.3";
    let config = from(&format!("[databases.app]\nurl = \"{url}\"\n"), &[], Flags::default());
    let tls = &config.databases["app"].upstream.tls;
    assert_eq!(tls.negotiation, TlsNegotiation::Direct);
    let (least, most) = (tls.versions.least, tls.versions.most);
    assert_eq!((least, most), (TlsVersion::V1_3, TlsVersion::V1_3));
    // libpq refuses the first, too.
    for (parameters, code) in [
        ("sslmode=prefer&sslnegotiation=direct", "P0110"),
        ("sslnegotiation=direct", "P0110"),
        ("ssl_min_protocol_version=TLSv1.1", "P0108"),
    ] {
        let text = format!("[databases.app]\nurl = \"postgres://db/app?{parameters}\"\n");
        let report = Config::from_text(&text).expect_err("refused").to_string();
        assert!(report.contains(&format!("error[{code}]")), "{report}");
    }
}

#[test]
fn urls_of_every_form_name_their_host() {
    for (url, host, port) in [
        ("postgres://db", Host::Tcp("db".to_owned()), 5432),
        ("postgres:///app", Host::Tcp("localhost".to_owned()), 5432),
        ("postgres://u@db:1/", Host::Tcp("db".to_owned()), 1),
        ("postgres://[::1]:7/app", Host::Tcp("::1".to_owned()), 7),
        ("postgres://[::1]/app", Host::Tcp("::1".to_owned()), 5432),
        ("postgres://%2Frun%2Fpg/app", Host::Unix("/run/pg".into()), 5432),
        ("postgres:///app?host=/run/pg&port=9", Host::Unix("/run/pg".into()), 9),
    ] {
        let text = format!("[databases.app]\nurl = \"{url}\"\n");
        let config = from(&text, &[], Flags::default());
        let upstream = &config.databases["app"].upstream;
        assert_eq!((&upstream.host, upstream.port), (&host, port), "{url}");
    }
}

#[test]
fn lists_of_hosts_have_one_port_or_one_each() {
    let tcp = |host: &str, port: u16| (Host::Tcp(host.to_owned()), port);
    for (text, expected) in [
        ("host = \"a,b\"", vec![tcp("a", 5432), tcp("b", 5432)]),
        ("host = \"a,b\"\nport = 7", vec![tcp("a", 7), tcp("b", 7)]),
        ("host = \"a,::1,c\"\nport = \"7,8,9\"", vec![tcp("a", 7), tcp("::1", 8), tcp("c", 9)]),
        ("url = \"postgres://a,b/x\"", vec![tcp("a", 5432), tcp("b", 5432)]),
        (
            "url = \"postgres://u@a:1,[::1]:2,c/x\"",
            vec![tcp("a", 1), tcp("::1", 2), tcp("c", 5432)],
        ),
        ("url = \"postgres:///x?host=a,b&port=1,2\"", vec![tcp("a", 1), tcp("b", 2)]),
    ] {
        let text = format!("[cache]\nmode = \"auto\"\n[databases.app]\n{text}\n");
        let pool = from(&text, &[], Flags::default()).pool("app", "ann").expect("known");
        assert_eq!(pool.upstream.hosts(), expected, "{text}");
        assert_eq!(pool.cache, CacheMode::Off, "its stream follows one server");
    }
    let url = "postgres://a,b/x?target_session_attrs=prefer-standby";
    let text = format!("[databases.app]\nurl = \"{url}\"\nload_balance_hosts = \"round-robin\"\n");
    let config = from(&text, &[], Flags::default());
    let several = &config.databases["app"].upstream.several;
    assert_eq!(
        (several.target, several.balance),
        (SessionAttrs::PreferStandby, Balance::RoundRobin)
    );
}

#[test]
fn lists_that_do_not_fit_are_refused_with_the_reason() {
    let many = vec!["h"; 17].join(",");
    for (text, code, why) in [
        ("host = \"a,b\"\nport = \"1,2,3\"", "P0105", "`port` has 3 ports for 2 hosts"),
        ("port = \"1,2\"", "P0105", "`port` has 2 ports for 1 hosts"),
        ("port = \"1,\"", "P0105", "a list of ports"),
        ("port = 0", "P0105", "a list of ports"),
        ("split_reads = true", "P0110", "needs a list of hosts"),
        ("host = \"a,b\"\nsplit_reads = true", "P0110", "target_session_attrs"),
        (
            "host = \"a,b\"\nsplit_reads = true\ntarget_session_attrs = \"primary\"\n\
          host_check_interval = 0",
            "P0110",
            "needs a host_check_interval",
        ),
        ("host = \"a,,b\"", "P0105", "a host of the list has no name"),
        ("host = \"a,/tmp\"", "P0105", "not directories of sockets"),
        (&format!("host = \"{many}\""), "P0105", "at most 16 hosts"),
        ("target_session_attrs = \"master\"", "P0105", "one of any, read-write"),
        ("host = \"a,b\"\ncache = \"auto\"", "P0110", "a database with several hosts"),
    ] {
        let text = format!("[databases.app]\n{text}\n");
        let report = Config::from_text(&text).expect_err("refused").to_string();
        assert!(
            report.contains(&format!("error[{code}]")) && report.contains(why),
            "{text}{report}"
        );
    }
}

#[test]
fn url_in_a_variable_replaces_the_keys_of_the_file_that_it_says() {
    let config = from(
        "[databases.app]\nhost = \"old\"\nport = 1\nuser = \"old\"\npool_size = 7\n",
        &[("PONDAGE_DATABASES__APP__URL", "postgres://new")],
        Flags::default(),
    );
    let pool = config.pool("app", "ann").expect("known");
    assert_eq!(pool.upstream.host, Host::Tcp("new".to_owned()));
    assert_eq!((pool.upstream.port, pool.upstream.user.as_str(), pool.pool_size), (5432, "old", 7));
}

#[test]
fn a_url_alone_reaches_every_database_as_its_user() {
    let url = "postgres://app:sesame@db/shop";
    let config = Config::from_url(url, Environment::default(), Flags::default()).expect("valid");
    assert_eq!(config.databases.keys().collect::<Vec<_>>(), ["*", "shop"]);
    for name in ["shop", "other"] {
        let upstream = &config.pool(name, "app").expect("known").upstream;
        assert_eq!((upstream.database.as_str(), upstream.user.as_str()), (name, "app"));
        assert_eq!(upstream.password, Some(plain("sesame")));
    }
    assert_eq!(config.auth.method, AuthMethod::Scram);
    assert_eq!(config.secret("app"), Some(&plain("sesame")));
    assert!(config.is_admin("app") && config.notices.is_empty());
    assert!(matches!(config.origin, Origin::CommandLine));
}

#[test]
fn a_url_without_password_trusts_this_machine_and_says_so() {
    let config =
        Config::from_url("postgres://app@db/shop", Environment::default(), Flags::default())
            .expect("valid");
    assert_eq!(config.auth.method, AuthMethod::Trust);
    assert_eq!(
        config.notices,
        ["the URL has no password: everybody on this machine may log in without one"]
    );
    let upstream = &config.pool("shop", "anybody").expect("known").upstream;
    assert_eq!((upstream.user.as_str(), &upstream.password), ("app", &None));
}

#[test]
fn database_url_counts_only_where_no_database_is_configured() {
    let variables = [("DATABASE_URL", "postgres://app:sesame@db/shop")];
    let config = from("[runtime]\nmax_clients = 7\n", &variables, Flags::default());
    assert_eq!(config.runtime.max_clients, 7);
    assert!(config.pool("anything", "app").is_ok());
    let config = from("[databases.app]\n", &variables, Flags::default());
    assert_eq!(config.pool("shop", "app").err(), Some(Refusal::UnknownDatabase));
    let config = from(
        "[users.app]\npassword = \"stronger\"\n[auth]\nadmin_users = []\n",
        &variables,
        Flags::default(),
    );
    assert_eq!(config.secret("app"), Some(&plain("stronger")));
    assert!(!config.is_admin("app"));
}

#[test]
fn nearest_section_wins_for_a_pool() {
    let config = from(
        "[pool]\npool_size = 1\nwait_timeout = \"1s\"\nquery_timeout = \"1s\"\nmode = \"session\"\n\
         [databases.app]\npool_size = 2\nwait_timeout = \"2s\"\nquery_timeout = \"2s\"\n\
         [users.ann]\npool_size = 3\nwait_timeout = \"3s\"\n\
         [databases.app.users.ann]\npool_size = 4\n",
        &[],
        Flags::default(),
    );
    let pool = config.pool("app", "ann").expect("known");
    let seconds = (pool.wait_timeout.as_secs(), pool.query_timeout.as_secs());
    assert_eq!((pool.pool_size, seconds, pool.mode), (4, (3, 2), PoolMode::Session));
}

#[test]
fn users_file_is_read_beside_the_configuration() {
    let directory = Directory::new();
    directory.write("users.txt", "\"a \"\"b\"\"\" \"x\"\n\"ann\" \"from file\"\n");
    let text =
        "[databases.app]\n[auth]\nusers_file = \"users.txt\"\n[users.ann]\npassword = \"y\"\n";
    let path = directory.write("p.toml", text);
    let config =
        Config::load(Some(&path), Environment::default(), Flags::default()).expect("valid");
    assert_eq!(config.secret("a \"b\""), Some(&plain("x")));
    assert_eq!(config.secret("ann"), Some(&plain("y")));
    assert_eq!(config.auth.users_file, Some(directory.path().join("users.txt")));
}

#[test]
fn reload_reads_the_file_again_under_the_same_flags_and_variables() {
    let directory = Directory::new();
    let path = directory.write("p.toml", "[databases.app]\npool_size = 5\n");
    let flags = Flags { listen: vec!["127.0.0.1:7000".to_owned()], ..Flags::default() };
    let variables = environment(&[("PONDAGE_RUNTIME__MAX_CLIENTS", "9")]);
    let config = Config::load(Some(&path), variables, flags).expect("valid");
    directory.write("p.toml", "[databases.app]\npool_size = 6\n[runtime]\nmax_clients = 8\n");
    let config = reload(&config).expect("valid");
    assert_eq!(config.pool("app", "a").expect("known").pool_size, 6);
    assert_eq!(config.runtime.max_clients, 9);
    assert_eq!(config.listen.postgres, [Address::Tcp(([127, 0, 0, 1], 7000).into())]);
}

/// What `set` says is wrong.
fn unset(config: &Config, name: &str, value: &str) -> String {
    set(config, name, value).expect_err(name).to_string()
}

#[test]
fn what_the_console_sets_is_stronger_than_all_else_until_a_reload() {
    let flag = Flags { log_level: Some("debug".to_owned()), ..Flags::default() };
    let first = from("[databases.app]\nhost = \"db\"\n[pool]\npool_size = 7\n", &[], flag);
    let config = set(&first, "pool.pool_size", "3").expect("set");
    let config = set(&config, "telemetry.log_level", "warn").expect("set");
    let size = |config: &Config| config.pool("app", "x").map(|pool| pool.pool_size).ok();
    assert_eq!((size(&config), config.telemetry.log_level.as_str()), (Some(3), "warn"));
    // By PgBouncer's name, in its units; the later word counts.
    let config = set(&config, "default_pool_size", "4").expect("set");
    let config = set(&config, "query_wait_timeout", "1.5").expect("set");
    let other = set(&config, "pool.pool_size", "5").expect("set");
    assert_eq!(size(&other), Some(5), "whatever the name");
    assert_eq!(size(&config), Some(4));
    let wait = config.pool("app", "x").map(|pool| pool.wait_timeout).ok();
    assert_eq!(wait, Some(std::time::Duration::from_millis(1500)));
    let again = reload(&config).expect("the same as at the start");
    assert_eq!((size(&again), again.telemetry.log_level.as_str()), (Some(7), "debug"));
}

#[test]
fn what_the_console_sets_badly_is_refused_whole() {
    let config = from("[databases.app]\nhost = \"db\"\n", &[], Flags::default());
    let wrong = unset(&config, "pool.pool_size", "many");
    assert!(wrong.contains("pool.pool_size") && wrong.contains("SET on the console"), "{wrong}");
    let wrong = unset(&config, "default_pool_sise", "3");
    assert!(wrong.contains("did you mean `default_pool_size`?"), "{wrong}");
    let wrong = unset(&config, "auth_file", "users.txt");
    assert!(wrong.contains("another option here: `auth.users_file`"), "{wrong}");
    let wrong = unset(&config, "max_db_connections", "3");
    assert!(wrong.contains("`max_server_connections` of `[databases.NAME]`"), "{wrong}");
    // Together with what the file says, too.
    let wrong = unset(&config, "auth.method", "hba");
    assert!(wrong.contains("hba_file"), "{wrong}");
    let ignored = set(&config, "tcp_keepalive", "1").expect("taken note of");
    assert!(ignored.notices.iter().any(|note| note.starts_with("`tcp_keepalive` is ignored")));
}
