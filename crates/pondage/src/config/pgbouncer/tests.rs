use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::table::{DATABASES, MAIN, PEERS, USERS};
use super::*;
use crate::config::{
    effective, reload, set, Balance, Config, Environment, Flags, Host, TlsVersion, TlsVersions,
};

/// Every option, each with a value that differs from its default where it is taken.
const EVERYTHING: &str = include_str!("everything.ini");

/// A directory that goes when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pondage-ini-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Directory(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a temporary file can be written");
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn loaded(path: &Path) -> Result<Config, Report> {
    Config::from_ini(path, Environment::default(), Flags::default())
}

fn config(text: &str) -> Config {
    let directory = Directory::new();
    loaded(&directory.write("pgbouncer.ini", text)).unwrap_or_else(|report| panic!("{report}"))
}

/// What is wrong with `text`, without the name of its directory.
fn refused(text: &str) -> String {
    let directory = Directory::new();
    let report = loaded(&directory.write("pgbouncer.ini", text)).expect_err("it is wrong");
    report.to_string().replace(&format!("{}/", directory.0.display()), "")
}

/// The effective configuration without its comments, which name the places of values.
fn bare(config: &Config) -> String {
    let text = effective(config);
    let lines = text.lines().map(|line| line.split("  # ").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The golden file with its paths in `directory`.
fn everything(directory: &Directory) -> PathBuf {
    directory.write("users.txt", "\"app\" \"sesame\"\n\"lookup\" \"open\"\n");
    directory.write("tls.pem", crate::config::tests::PEM);
    let place = directory.0.display().to_string();
    directory.write("pgbouncer.ini", &EVERYTHING.replace("{directory}", &place))
}

#[test]
fn the_golden_file_has_every_option_of_the_table() {
    for (table, section) in [(MAIN, "[pgbouncer]"), (DATABASES, "[databases]")] {
        let start = EVERYTHING.find(section).expect("it has the section");
        for known in table {
            let found = EVERYTHING[start..].contains(&format!("{} =", known.name))
                || EVERYTHING[start..].contains(&format!("{}=", known.name));
            assert!(found, "no {} in {section}", known.name);
        }
    }
    for known in USERS.iter().chain(PEERS) {
        assert!(EVERYTHING.contains(&format!("{}=", known.name)), "no {}", known.name);
    }
}

#[test]
fn every_option_is_taken_or_named() {
    let directory = Directory::new();
    let path = everything(&directory);
    let config = loaded(&path).unwrap_or_else(|report| panic!("{report}"));
    let place = directory.0.display().to_string();
    let said = format!("{}\n\n{}\n", bare(&config), config.notices.join("\n"));
    let said = said.replace(&place, "{directory}");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/pgbouncer/everything.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&golden, &said).expect("it can be written");
    }
    let golden = std::fs::read_to_string(golden).expect("the golden text");
    assert!(said == golden, "with UPDATE_DOCS=1, look at the change:\n{said}");
}

#[test]
fn imported_toml_says_what_the_ini_says() {
    let directory = Directory::new();
    let ini = everything(&directory);
    let Imported { toml, notes } = import(&ini, None).expect("it can be imported");
    let running = loaded(&ini).expect("valid");
    assert!(running.notices.starts_with(&notes), "{notes:#?}\n{:#?}", running.notices);
    let imported = Config::from_text(&toml).unwrap_or_else(|report| panic!("{report}\n{toml}"));
    assert_eq!(bare(&imported), bare(&running));
    let of = |config: &Config| format!("{:#?} {:#?}", config.databases, config.users);
    assert_eq!(of(&imported), of(&running));
    assert!(toml.contains("password = \"it's \\\"open\\\"\"\n"), "{toml}");
    // Another file of users, and the same otherwise.
    let users = directory.write("others.txt", "\"other\" \"sesame\"\n");
    let Imported { toml, .. } = import(&ini, Some(&users)).expect("it can be imported");
    let imported = Config::from_text(&toml).unwrap_or_else(|report| panic!("{report}\n{toml}"));
    assert!(imported.auth.file_users.contains_key("other"));
}

#[test]
fn an_ini_that_says_little_means_what_pgbouncer_means() {
    let config = config("[pgbouncer]\n[databases]\napp =\n* = host=db port=6000\n");
    let pool = config.pool("app", "me").expect("known");
    assert_eq!(pool.mode, crate::config::PoolMode::Session);
    assert_eq!(pool.upstream.host, Host::Unix("/tmp".into()));
    assert_eq!((pool.upstream.database.as_str(), pool.upstream.port), ("app", 5432));
    let other = config.pool("else", "me").expect("known");
    assert_eq!((other.upstream.database.as_str(), other.upstream.port), ("else", 6000));
    assert_eq!((config.runtime.max_clients, config.listen.http), (100, None));
    assert_eq!(config.listen.postgres.len(), 1, "{:?}", config.listen.postgres);
    assert_eq!(config.auth.method, crate::config::AuthMethod::Md5);
    assert_eq!(config.notices, Vec::<String>::new());
}

#[test]
fn the_files_of_an_authentication_by_rules_count_where_it_is_chosen() {
    let directory = Directory::new();
    let rules = directory.write("hba.conf", "local all all trust\n");
    let rules = rules.display();
    for (method, count) in [("hba", 0), ("md5", 1)] {
        let text = format!(
            "[databases]\na =\n[pgbouncer]\nauth_type = {method}\nauth_hba_file = {rules}\n"
        );
        let ini = directory.write("pgbouncer.ini", &text);
        let config = loaded(&ini).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(config.auth.method.name(), method);
        assert_eq!(config.notices.len(), count, "{:?}", config.notices);
        assert!(config.notices.iter().all(|notice| notice.contains("needs `auth_type = hba`")));
    }
}

#[test]
fn every_auth_type_is_taken_as_it_is_or_refused_with_its_line() {
    use crate::config::AuthMethod;
    let directory = Directory::new();
    let rules = directory.write("hba.conf", "local all all trust\n").display().to_string();
    let pem = directory.write("tls.pem", crate::config::tests::PEM).display().to_string();
    let tls = format!(
        "client_tls_sslmode = verify-ca\nclient_tls_ca_file = {pem}\n\
         client_tls_cert_file = {pem}\nclient_tls_key_file = {pem}\n"
    );
    let hba = format!("auth_hba_file = {rules}\n");
    // Whether a user has to be known of whom nothing is asked.
    for (theirs, more, ours, known_only) in [
        ("trust", "", AuthMethod::Trust, true),
        ("any", "", AuthMethod::Any, false),
        ("plain", "", AuthMethod::Password, true),
        ("md5", "", AuthMethod::Md5, true),
        ("scram-sha-256", "", AuthMethod::ScramOnly, true),
        ("cert", &tls, AuthMethod::Cert, true),
        ("hba", &hba, AuthMethod::Hba, true),
    ] {
        let text = format!("[databases]\na = user=u\n[pgbouncer]\nauth_type = {theirs}\n{more}");
        let auth = config(&text).auth;
        assert_eq!((auth.method, auth.known_only), (ours, known_only), "{theirs}");
        let notices = config(&text).notices;
        assert!(notices.is_empty() || theirs == "cert", "{theirs}: {notices:?}");
    }
    for (theirs, what) in [("ldap", "Pondage does not"), ("pam", "Pondage does not"), ("peer", "")]
    {
        let report = refused(&format!("[databases]\na =\n[pgbouncer]\nauth_type = {theirs}\n"));
        let said = format!("`auth_type` is \"{theirs}\"; expected one of any, trust, plain");
        assert!(report.contains(&said) && report.contains("pgbouncer.ini:4:1"), "{report}");
        assert!(report.contains(what), "{report}");
    }
    // In a file of rules, too; PgBouncer skips such a line.
    for (method, column) in [("ldap ldapserver=\"dc.example\"", 27), ("pam", 27), ("any", 27)] {
        let line = format!("local all all trust\nhost all all 10.0.0.0/8   {method}\n");
        let rules = directory.write("wrong.conf", &line).display().to_string();
        let report = refused(&format!(
            "[databases]\na =\n[pgbouncer]\nauth_type = hba\nauth_hba_file = {rules}\n"
        ));
        let word = method.split(' ').next().unwrap_or_default();
        assert!(report.contains(&format!("wrong.conf:2:{column}")), "{report}");
        assert!(report.contains(&format!("authentication method \"{word}\"")), "{report}");
    }
}

#[test]
fn quotes_comments_and_repetitions() {
    let text = "; a comment\n  # another\n[databases] ; and here\n\
        'my db' = host = h  password='it''s; #1' dbname='a b'\n\
        \"say \"\"hi\"\"\"=host=h user = me\n\
        twice = host=first\ntwice = host=second password=a password=b\n\
        [pgbouncer]\npool_mode = statement\n[users]\n[pgbouncer]\nlisten_port = 7000\n";
    let config = config(text);
    let pool = config.pool("my db", "me").expect("known");
    let password = pool.upstream.password.clone();
    assert_eq!(password, Some(wire::pg::auth::Secret::Plain("it's; #1".into())));
    assert_eq!(pool.upstream.database, "a b");
    assert_eq!(config.pool("say \"hi\"", "you").expect("known").upstream.user, "me");
    let twice = config.pool("twice", "me").expect("known");
    assert_eq!(twice.upstream.host, Host::Tcp("second".into()));
    assert_eq!(twice.upstream.several.balance, Balance::Disable, "one host");
    // A section may come twice.
    assert_eq!(twice.mode, crate::config::PoolMode::Statement);
}

#[test]
fn units_become_ours() {
    let config = config(
        "[databases]\na = host=h query_wait_timeout=-1 server_lifetime=0\n\
         [pgbouncer]\nquery_wait_timeout = 1.5\nserver_check_delay = 0\nquery_timeout=0\n\
         server_idle_timeout = 0.0001\nserver_check_query = select 1\nserver_reset_query =\n\
         server_reset_query_always = 1\nunix_socket_mode = 0770\nlisten_addr = *, ::1, 10.0.0.1\n\
         unix_socket_dir =\n",
    );
    let pool = config.pool("a", "me").expect("known");
    assert_eq!(pool.wait_timeout.as_millis(), 1500);
    assert_eq!(pool.server_lifetime.as_millis(), 1);
    assert_eq!(pool.server_check_delay.as_millis(), 1);
    assert_eq!((pool.query_timeout.as_millis(), pool.server_idle_timeout.as_millis()), (0, 1));
    assert_eq!(pool.server_check_query, "select 1");
    assert_eq!((pool.server_reset_query.as_str(), pool.server_reset_always), ("", true));
    assert_eq!(config.listen.unix_socket_mode, 0o770);
    let listen = format!("{:?}", config.listen.postgres);
    for address in ["0.0.0.0:6432", "[::1]:6432", "10.0.0.1:6432"] {
        assert!(listen.contains(address), "{listen}");
    }
    let unchecked = self::config(
        "[pgbouncer]\nserver_check_query =\nserver_check_delay = 3\n[databases]\na=\n",
    );
    assert!(unchecked.pool("a", "me").expect("known").server_check_delay.is_zero());
}

#[test]
fn lists_of_tls_versions_are_taken_as_far_as_they_are_offered() {
    let ini = |list: &str| {
        format!(
            "[pgbouncer]\nclient_tls_protocols = {list}\nserver_tls_protocols = {list}\n\
             [databases]\na =\nb =\n"
        )
    };
    let (v2, v3) = (TlsVersion::V1_2, TlsVersion::V1_3);
    for (list, least, most, older) in [
        ("", v2, v3, false),
        ("secure", v2, v3, false),
        ("default", v2, v3, false),
        ("all", v2, v3, true),
        ("Legacy", v2, v3, true),
        ("tlsv1", v2, v3, true),
        ("tlsv1.2", v2, v2, false),
        ("TLSv1.3", v3, v3, false),
        ("tlsv1.1, tlsv1.2", v2, v2, true),
        ("tlsv1.2:tlsv1.3", v2, v3, false),
        ("!tlsv1.0,!tlsv1.1,!tlsv1.2", v3, v3, false),
        ("all:!tlsv1.3", v2, v2, true),
    ] {
        let config = config(&ini(list));
        let of = |versions: TlsVersions| (versions.least, versions.most);
        assert_eq!(of(config.listen.tls.versions), (least, most), "{list}");
        for database in ["a", "b"] {
            let pool = config.pool(database, "me").expect("known");
            assert_eq!(of(pool.upstream.tls.versions), (least, most), "{list}");
        }
        let notes = config.notices.join("\n");
        assert_eq!(config.notices.len(), if older { 2 } else { 0 }, "{list}: {notes}");
        assert_eq!(notes.contains("TLS 1.0 and 1.1 are not offered"), older, "{notes}");
    }
    for (list, what) in [
        ("tlsv1.0", "error[P0122]: `client_tls_protocols` is \"tlsv1.0\": TLS 1.0 and 1.1"),
        ("tlsv1.1,tlsv1.0", "error[P0122]: `server_tls_protocols` is \"tlsv1.1,tlsv1.0\""),
        ("secure,!tlsv1.2,!tlsv1.3", "error[P0122]"),
        ("sslv3", "error[P0105]: `client_tls_protocols` is \"sslv3\"; expected secure, all"),
        ("tlsv1.2,", "error[P0105]: `server_tls_protocols` is \"tlsv1.2,\""),
    ] {
        let report = refused(&ini(list));
        assert!(report.contains(what) && report.contains("pgbouncer.ini:2:1"), "{report}");
        assert_eq!(report.matches("error[").count(), 2, "once for all databases: {report}");
    }
}

#[test]
fn the_least_size_of_a_pool_is_capped_at_its_size() {
    let config = config(
        "[pgbouncer]\nmin_pool_size = 30\n[databases]\na = host=h\nb = host=h pool_size=40\n\
         c = host=h pool_size=2\nd = host=h pool_size=5 min_pool_size=6\n[users]\nu = pool_size=3\n",
    );
    let least =
        |database: &str, user: &str| config.pool(database, user).expect("known").min_pool_size;
    assert_eq!(least("b", "x"), 30);
    assert_eq!([least("a", "x"), least("c", "x"), least("d", "x"), least("a", "u")], [20, 2, 5, 3]);
}

#[test]
fn databases_have_their_own_query_for_users() {
    let one = config(
        "[databases]\na = auth_user=x auth_query='select $1, 1'\nb = host=h\n\
         c = auth_user=y auth_dbname=a\n[pgbouncer]\nauth_query = select $1, 2\n",
    );
    let of = |database: &str| {
        let query = one.auth_query(database)?;
        Some((query.user.as_str(), &*query.sql, query.database.as_deref()))
    };
    assert_eq!(of("a"), Some(("x", "select $1, 1", None)));
    // Users of one database don't get into the other.
    assert_eq!(of("b"), None);
    assert_eq!(of("c"), Some(("y", "select $1, 2", Some("a"))));
    assert_eq!((of("pgbouncer"), one.notices.len()), (None, 0));
    // What `[pgbouncer]` says stands for what databases don't say, and for the console.
    let all = config(
        "[databases]\na = auth_query='select $1, 1'\n* =\n[pgbouncer]\nauth_user = z\n\
         auth_dbname = a\n",
    );
    let of = |database: &str| all.auth_query(database).expect("a query");
    assert_eq!((of("a").user.as_str(), &*of("a").sql), ("z", "select $1, 1"));
    assert_eq!(&*of("b").sql, options::default::AUTH_QUERY);
    assert_eq!((of("b").database.as_deref(), of("pgbouncer")), (Some("a"), of("b")));
    let lonely = config("[databases]\na = auth_query='select $1'\n[pgbouncer]\n");
    assert!(lonely.notices[0].ends_with(":2: `auth_query` is ignored: it needs `auth_user`"));
    let lonely = config("[databases]\na =\n[pgbouncer]\nauth_query = select $1\n");
    assert!(lonely.notices[0].ends_with(":4: `auth_query` is ignored: it needs `auth_user`"));
}

#[test]
fn included_files_are_part_of_the_file() {
    let directory = Directory::new();
    let databases = directory.write("databases.ini", "a = host=included\n[users]\nme=pool_size=3");
    let text = format!("[pgbouncer]\n[databases]\n%include {}\n", databases.display());
    let path = directory.write("pgbouncer.ini", &format!("{text}you = pool_size=4\n"));
    let config = loaded(&path).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(config.pool("a", "me").expect("known").pool_size, 3);
    assert_eq!(config.pool("a", "you").expect("known").pool_size, 4);
    // RELOAD reads all of it again.
    directory.write("databases.ini", "a = host=changed\n[users]\nme=pool_size=5");
    let config = reload(&config).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(config.pool("a", "me").expect("known").pool_size, 5);
    // A problem is told with the file that has it.
    directory.write("databases.ini", "a = host=included wat=1\n[users]");
    let report = loaded(&path).expect_err("an unknown key").to_string();
    assert!(report.contains("databases.ini:1:1"), "{report}");
    // Round and round, and nowhere.
    let itself = directory.0.join("itself.ini");
    let include = format!("%include {0}\n%include {0}\n[pgbouncer]\n", itself.display());
    directory.write("itself.ini", &include);
    let report = loaded(&itself).expect_err("it has no end").to_string();
    assert!(report.contains("files include one another 10 deep"), "{report}");
    let report = refused("[pgbouncer]\n%include /nowhere/at.all\n");
    assert!(report.contains("can't include /nowhere/at.all: No such file"), "{report}");
}

#[test]
fn wrong_files_are_refused_with_the_line() {
    let cases = [
        ("[databases]\na =\n", "pgbouncer.ini:1:1", "there is no section [pgbouncer]"),
        ("a = 1\n[pgbouncer]\n", ":1:1", "`a` stands before the first section"),
        ("[pgbouncer\n", ":1:1", "has no `]` behind it"),
        ("[pgbouncer]\nwhat ever\n", ":2:1", "the line is not `key = value`"),
        ("[pgbouncer]\n'a = 1\n", ":2:1", "the line is not `key = value`"),
        ("[pgbouncer]\n  = 1\n", ":2:3", "the line is not `key = value`"),
        ("[pgbouncr]\n", ":1:1", "did you mean `pgbouncer`?"),
        ("[pgbouncer]\npool_mod = x\n", ":2:1", "did you mean `pool_mode`?"),
        ("[pgbouncer]\npool_mode = x\n", ":2:1", "expected one of session, transaction"),
        ("[pgbouncer]\nquery_timeout = 5s\n", ":2:1", "expected a number of seconds"),
        ("[pgbouncer]\nquery_timeout = 1e99\n", ":2:1", "the longest duration is 3650d"),
        ("[pgbouncer]\nquery_timeout = nan\n", ":2:1", "expected a number of seconds"),
        ("[pgbouncer]\nmax_client_conn = many\n", ":2:1", "expected a whole number"),
        ("[pgbouncer]\nlog_connections = yes\n", ":2:1", "expected 0 or 1"),
        ("[pgbouncer]\nauth_type = ldap\n", ":2:1", "PgBouncer has it, Pondage does not"),
        ("[pgbouncer]\nauth_type = sesam\n", ":2:1", "expected one of any, trust, plain"),
        ("[pgbouncer]\nlisten_addr = nobody.example\n", ":2:1", "no address to listen on"),
        ("[pgbouncer]\nunix_socket_mode = 999\n", ":2:1", "expected octal permission bits"),
        ("[pgbouncer]\nauth_file = /nowhere\n", ":2:1", "can't use /nowhere"),
        ("[pgbouncer]\n[databases]\na = host=h1,,h2\n", ":3:1", "no name"),
        ("[pgbouncer]\n[databases]\na = host=@abstract\n", ":3:1", "abstract Unix sockets"),
        ("[pgbouncer]\n[databases]\na = hsot=h\n", ":3:1", "did you mean `host`?"),
        ("[pgbouncer]\n[databases]\na = host\n", ":3:1", "is not `key=value`"),
        ("[pgbouncer]\n[databases]\na = host=\n", ":3:1", "`host` has no value"),
        ("[pgbouncer]\n[databases]\na = password='it''s\n", ":3:1", "has no closing quote"),
        ("[pgbouncer]\n[databases]\na = port=0\n", ":3:1", "`port` is \"0\""),
        ("[pgbouncer]\n[databases]\npgbouncer = host=h\n", ":3:1", "is the console's"),
        ("[pgbouncer]\n[users]\nme = pol_size=1\n", ":3:1", "did you mean `pool_size`?"),
        ("[pgbouncer]\n[peers]\n0 = host=h\n", ":3:1", "expected a number from 1"),
        ("[pgbouncer]\n[peers]\n1 = port=1\n", ":3:1", "peer 1 has no `host`"),
    ];
    for (text, place, what) in cases {
        let report = refused(text);
        assert!(report.contains(place) && report.contains(what), "{text}\n{report}");
        assert!(!report.contains("it''s"), "{report}");
    }
    let report = loaded(Path::new("/nowhere/pgbouncer.ini")).expect_err("no file").to_string();
    assert!(report.starts_with("error[P0100]: can't read /nowhere/pgbouncer.ini"), "{report}");
}

#[test]
fn migration_page_has_the_options_of_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrating-from-pgbouncer.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (head, rest) = text.split_once("migration_page`. -->\n").expect("where the tables start");
    let (_, tail) = rest.split_once("<!-- end of the options -->").expect("where they end");
    let whole = format!(
        "{head}migration_page`. -->\n{}\n<!-- end of the options -->{tail}",
        options_of_pgbouncer()
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&page, &whole).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&page).expect("the page");
    assert!(
        written == whole,
        "docs/migrating-from-pgbouncer.md is not what the table says: \
         run `UPDATE_DOCS=1 cargo test --workspace --lib migration_page`"
    );
}

#[test]
fn the_console_sets_options_of_the_ini() {
    let directory = Directory::new();
    let text = "[databases]\napp = host=db\n[pgbouncer]\npool_mode = session\n";
    let path = directory.write("pgbouncer.ini", text);
    let first = loaded(&path).unwrap_or_else(|report| panic!("{report}"));
    let limit = |config: &Config| {
        config.databases.get("app").and_then(|database| database.max_server_connections)
    };
    // One that stands for all databases, and two that need each other.
    let config = set(&first, "max_db_connections", "9").expect("set");
    assert_eq!((limit(&first), limit(&config)), (None, Some(9)));
    let config = set(&config, "auth_user", "asker").expect("set");
    let config = set(&config, "auth_query", "SELECT 1, 2 WHERE $1 = ''").expect("set");
    assert!(config.auth.query.is_some());
    let refused = set(&config, "auth_type", "ldap").expect_err("missing").to_string();
    assert!(refused.contains("PgBouncer has it") && refused.contains("SET on the console"));
    // The file may be half written by now: only RELOAD reads it.
    directory.write("pgbouncer.ini", "[databases]\napp = host=\n[pgb");
    let config = set(&config, "dns_max_ttl", "1").expect("taken note of");
    assert_eq!(limit(&config), Some(9));
    let noted = |config: &Config| config.notices.iter().any(|note| note.contains("dns_max_ttl"));
    assert!(noted(&config) && !noted(&first));
    assert!(reload(&config).is_err());
    directory.write("pgbouncer.ini", text);
    assert_eq!(reload(&config).map(|config| limit(&config)).ok(), Some(None));
}

#[test]
fn peers_are_all_but_the_process_itself() {
    let peers = "[databases]\na =\n[peers]\n1 = host=a\n2 = host=b port=7\n3 = host=/run/c\n";
    let of = |main: &str| config(&format!("{peers}[pgbouncer]\n{main}"));
    let known = of("peer_id = 2\n");
    let written: Vec<String> = known.runtime.peers.iter().map(ToString::to_string).collect();
    assert_eq!(written, ["a:6432", "unix:/run/c/.s.PGSQL.6432"]);
    assert_eq!(known.notices, Vec::<String>::new());
    let none = of("");
    assert!(none.runtime.peers.is_empty());
    assert!(none.notices[0].contains("`[peers]` is ignored: it needs `peer_id`"));
    let wrong = refused(&format!("{peers}[pgbouncer]\npeer_id = x\n"));
    assert!(wrong.contains("`peer_id` is \"x\"; expected a number"), "{wrong}");
}

#[test]
fn a_certificate_and_its_key_may_be_set_one_after_the_other() {
    let directory = Directory::new();
    let pem = directory.write("tls.pem", crate::config::tests::PEM).display().to_string();
    let text = "[databases]\napp = host=db\n[pgbouncer]\n";
    let mut config = loaded(&directory.write("pgbouncer.ini", text)).expect("valid");
    for side in ["client", "server"] {
        config = set(&config, &format!("{side}_tls_key_file"), &pem).expect("a half of it");
        let why = format!("`{side}_tls_key_file` is ignored: it needs `{side}_tls_cert_file`");
        assert!(config.notices.iter().any(|note| note.contains(&why)), "{:?}", config.notices);
        config = set(&config, &format!("{side}_tls_cert_file"), &pem).expect("the other half");
        assert!(!config.notices.iter().any(|note| note.contains("_file` is ignored")));
        config = set(&config, &format!("{side}_tls_sslmode"), "require").expect("TLS");
    }
    assert_eq!(config.listen.tls.mode, crate::config::ListenTlsMode::Require);
    let pool = config.pool("app", "me").expect("known");
    assert_eq!(pool.upstream.tls.key.as_ref().map(|path| path.display().to_string()), Some(pem));
    assert!(set(&config, "client_tls_key_file", "").is_err(), "TLS needs it");
}

#[test]
fn clients_of_a_forced_user_share_its_pool_whatever_is_said_of_them() {
    let text = "[databases]\napp = host=db user=forced\nfree = host=db\n\
                [users]\nann = pool_mode=session\nforced = pool_mode=statement\n[pgbouncer]\n";
    let config = config(text);
    let pool = |database: &str| config.pool(database, "ann").expect("a pool");
    assert_eq!(pool("app").user, "forced");
    assert_eq!(pool("app").mode, crate::config::PoolMode::Statement);
    assert_eq!(
        (pool("free").user.as_str(), pool("free").mode),
        ("ann", crate::config::PoolMode::Session)
    );
}
