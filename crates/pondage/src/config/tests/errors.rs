//! Every error, as people read it.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::report::Code;
use super::super::{reload, Config, Flags, Report};
use super::cases::CASES;
use super::{environment, meaning, Directory};

fn refusal(result: Result<Config, Report>) -> String {
    match result {
        Ok(config) => panic!("accepted:\n{}", meaning(&config)),
        Err(report) => report.to_string(),
    }
}

#[test]
fn texts_are_refused_with_every_reason() {
    for (text, expected) in CASES {
        let report = refusal(Config::from_text(text));
        assert_eq!(report.trim(), expected.trim(), "for:\n{text}");
    }
}

#[test]
fn missing_file_is_named_with_the_reason() {
    let path = std::path::Path::new("/nowhere/pondage.toml");
    let report = refusal(Config::load(Some(path), environment(&[]), Flags::default()));
    assert_eq!(
        report,
        "error[P0100]: can't read /nowhere/pondage.toml: No such file or directory\n"
    );
}

#[test]
fn bad_lines_of_the_users_file_are_named_and_not_shown() {
    let directory = Directory::new();
    let users = directory.write(
        "users.txt",
        "; comment\n# comment\n\n\"good\" \"se\"\"cret\" rest\nhunter2\n  \"a\" \"hunter2\n\
         \"b\" \"SCRAM-SHA-256$hunter2\"\n\"good\" \"hunter2\"\n",
    );
    let path = directory.write("p.toml", "[databases.app]\n[auth]\nusers_file = \"users.txt\"\n");
    let report = refusal(Config::load(Some(&path), environment(&[]), Flags::default()));
    let users = users.display();
    assert_eq!(
        report,
        format!(
            r#"error[P0113]: the line is not `"user" "secret"`
  --> {users}:5:1
   = help: a quote inside of quotes is written twice

error[P0113]: the line is not `"user" "secret"`
  --> {users}:6:3
   = help: a quote inside of quotes is written twice

error[P0118]: the SCRAM verifier of user "b" is malformed
  --> {users}:7:1

error[P0113]: user "good" stands in the file twice
  --> {users}:8:1
"#
        )
    );
}

#[test]
fn variables_that_name_no_option_are_refused() {
    let cases = [
        ("PONDAGE_RUNTIME__MAX_CLIENT", "   = help: did you mean PONDAGE_RUNTIME__MAX_CLIENTS?\n"),
        ("PONDAGE_RUNTIME_MAX_CLIENTS", "   = help: did you mean PONDAGE_RUNTIME__MAX_CLIENTS?\n"),
        (
            "PONDAGE_DATABASES__APP__POOLSIZE",
            "   = help: did you mean PONDAGE_DATABASES__APP__POOL_SIZE?\n",
        ),
        ("PONDAGE_X", "   = help: variables are called PONDAGE_SECTION__KEY\n"),
    ];
    for (name, help) in cases {
        let variables = environment(&[(name, "hunter2")]);
        let report = refusal(Config::from_text_and("[databases.app]", variables, Flags::default()));
        let head = format!("error[P0116]: environment variable {name} names no option\n");
        assert_eq!(report, format!("{head}  --> environment variable {name}\n{help}"));
    }
}

#[test]
fn variables_that_kubernetes_makes_for_a_service_are_ignored() {
    let variables = environment(&[
        ("PONDAGE_SERVICE_HOST", "10.0.0.1"),
        ("PONDAGE_SERVICE_PORT", "6432"),
        ("PONDAGE_SERVICE_PORT_POSTGRES", "6432"),
        ("PONDAGE_PORT", "tcp://10.0.0.1:6432"),
        ("PONDAGE_PORT_6432_TCP_ADDR", "10.0.0.1"),
        ("PONDAGE_HTTP_SERVICE_HOST", "10.0.0.2"),
        ("PONDAGE_HTTP_PORT_6433_TCP", "tcp://10.0.0.2:6433"),
    ]);
    assert!(Config::from_text_and("[databases.app]", variables, Flags::default()).is_ok());
}

#[test]
fn variables_and_flags_are_named_as_the_place_of_their_problems() {
    let variables = environment(&[
        ("PONDAGE_DATABASES__APP__URL", "postgres://a:hunter2@db:port"),
        ("PONDAGE_DATABASES__APP__PASSWORD_FILE", "/nowhere/pw"),
        ("PONDAGE_RUNTIME__LOGIN_TIMEOUT", "5"),
    ]);
    let flags = Flags { workers: Some("0".to_owned()), ..Flags::default() };
    assert_eq!(
        refusal(Config::from_text_and("[databases.app]", variables, flags)),
        r#"error[P0112]: can't use /nowhere/pw: No such file or directory
  --> environment variable PONDAGE_DATABASES__APP__PASSWORD_FILE

error[P0106]: `login_timeout` is 5 without a unit
  --> environment variable PONDAGE_RUNTIME__LOGIN_TIMEOUT
   = help: write "5s" for seconds or "5ms" for milliseconds

error[P0108]: `port` in the URL is not a port from 1 to 65535, or a list of ports
  --> environment variable PONDAGE_DATABASES__APP__URL
   = help: in a password, write / as %2F, @ as %40 and ? as %3F

error[P0105]: `--workers` is "0"; expected "auto" or a whole number from 1 to 64
  --> flag --workers
"#
    );
}

#[test]
fn a_variable_that_two_sections_answer_to_is_refused() {
    let variables = environment(&[("PONDAGE_DATABASES__MY_APP__POOL_SIZE", "5")]);
    let text = "[databases.my-app]\n[databases.my_app]\n";
    assert_eq!(
        refusal(Config::from_text_and(text, variables, Flags::default())),
        "error[P0116]: `MY_APP` stands for both `my-app` and `my_app`\n  \
         --> environment variable PONDAGE_DATABASES__MY_APP__POOL_SIZE\n   \
         = help: set this in the configuration file\n"
    );
}

#[test]
fn url_without_password_is_not_served_to_others() {
    let flags = Flags { listen: vec!["0.0.0.0:6432".to_owned()], ..Flags::default() };
    assert_eq!(
        refusal(Config::from_url("postgres://app@db/app", environment(&[]), flags.clone())),
        r#"error[P0119]: without a password in the URL, whoever reaches 0.0.0.0:6432 could come in
  --> the URL on the command line
   = help: put a user and a password into the URL: clients log in with them
   = help: or listen on 127.0.0.1, or set PONDAGE_AUTH__METHOD=trust
"#
    );
    let chosen = environment(&[("PONDAGE_AUTH__METHOD", "trust")]);
    assert!(Config::from_url("postgres://app@db/app", chosen, flags).is_ok());
}

#[test]
fn malformed_urls_are_refused_without_showing_them() {
    let cases = [
        ("postgres://u:hunter2@[::1/app", "the URL has a malformed host"),
        ("postgres://u:hunter2%4@db/app", "the URL has a malformed % sequence in its password"),
        ("postgres://u:hunter2@db/app?x=hunter2", "the URL has a parameter that is not supported"),
        ("postgres://u:hunter2@db/app?user=b", "the URL says user twice"),
        ("postgres://:hunter2@db/app", "the URL has a password but no user"),
        (
            "postgres://u:hun/ter2",
            "`port` in the URL is not a port from 1 to 65535, or a list of ports",
        ),
    ];
    for (url, message) in cases {
        let report = refusal(Config::from_url(url, environment(&[]), Flags::default()));
        assert!(report.starts_with(&format!("error[P0108]: {message}\n")), "{url}:\n{report}");
        assert!(!report.contains("hun"), "{report}");
    }
}

#[test]
fn a_refused_reload_says_that_nothing_changed() {
    let directory = Directory::new();
    let path = directory.write("p.toml", "[databases.app]\n");
    let config = Config::load(Some(&path), environment(&[]), Flags::default()).expect("valid");
    directory.write("p.toml", "[databases.app]\npool_sise = 5\n");
    let report = refusal(reload(&config));
    assert_eq!(
        report,
        format!(
            r#"error[P0103]: unknown key `pool_sise`
  --> {}:2:1
  |
2 | pool_sise = …
  | ^^^^^^^^^
  = help: did you mean `pool_size`?
  = note: the running configuration is unchanged; reload refused
"#,
            path.display()
        )
    );
    assert_eq!(directory.path(), path.parent().expect("a directory"));
}

#[test]
fn certificate_without_key_and_unused_client_ca_are_refused() {
    let directory = Directory::new();
    directory.write("c.pem", super::PEM);
    let text = "[databases.app]\n[listen.tls]\ncert = \"c.pem\"\nclient_ca = \"c.pem\"\n";
    let path = directory.write("p.toml", text);
    let report = refusal(Config::load(Some(&path), environment(&[]), Flags::default()));
    let path = path.display();
    assert_eq!(
        report,
        format!(
            r#"error[P0111]: `cert` needs `key`
  --> {path}:3:8
  |
3 | cert = "c.pem"
  |        ^^^^^^^

error[P0110]: `client_ca` is not used in mode `disable`
  --> {path}:4:13
  |
4 | client_ca = "c.pem"
  |             ^^^^^^^
  = help: set `mode = "verify-client"` to have certificates of clients checked
"#
        )
    );
}

#[test]
fn hba_and_ident_files_are_refused_with_every_line() {
    let directory = Directory::new();
    let hba = directory.write("hba", "local all all trust\nhost all all all pam\n");
    let ident = directory.write("ident", "m /( a\n");
    let text = "[databases.app]\n[auth]\nmethod = \"hba\"\nhba_file = \"hba\"\n\
                ident_file = \"ident\"\n";
    let path = directory.write("p.toml", text);
    let report = refusal(Config::load(Some(&path), environment(&[]), Flags::default()));
    let (hba, ident) = (hba.display(), ident.display());
    assert!(report.contains(&format!(
        r#"error[P0120]: authentication method "pam" is not supported
  --> {hba}:2:18
   = help: Pondage has trust, reject, md5, password, scram-sha-256, cert and peer
"#
    )));
    let invalid = r#"error[P0121]: invalid regular expression "(": "#;
    assert!(report.contains(invalid), "{report}");
    assert!(report.contains(&format!("  --> {ident}:1:3\n")), "{report}");
}

#[test]
fn syntax_errors_never_show_a_secret() {
    let texts = [
        "[users.a]\npassword = \"hunter2\n",
        "[users.a]\npassword = \"\"\"\nhunter2\nhunter2 = \\q\"\"\"\n",
        "[databases]\napp = { host = \"x\", password = \"hunter2\", }, }\n",
        "[databases.a]\nurl = 'hunter2\n",
        "password = hunter2\n",
        "x = [\n hunter2\n",
        "hunter2\n",
    ];
    for text in texts {
        let report = refusal(Config::from_text(text));
        assert!(report.starts_with("error[P0101]: "), "{report}");
        assert!(!report.contains("hunter2"), "{report}");
    }
}

#[test]
fn errors_never_show_a_secret_beside_them() {
    let texts = [
        "[databases]\napp = { password = \"hunter2\", pool_size = \"x\" }\n",
        "[databases]\napp = { pool_size = \"x\", password = \"hunter2\" }\n",
        "[databases.app]\nusers = { a = { pasword = \"hunter2\" }, b = { pool_size = 0 } }\n",
        "[databases.app]\npasswort = [\"hunter2\",\n \"hunter2\"]\n",
        "[databases.app]\npassword = { value = \"hunter2\" }\n",
        "[databases.app]\npool_size = { value = \"hunter2\" }\n",
        "[databases.app]\npasswort.value.x = \"hunter2\"\n",
        "[[users]]\npassword = \"hunter2\"\n",
        "users.a = \"hunter2\"\n",
    ];
    for text in texts {
        let report = refusal(Config::from_text(text));
        assert!(!report.contains("hunter2"), "for {text}:\n{report}");
    }
}

#[test]
fn every_code_is_tested_and_documented() {
    let here = concat!(include_str!("errors.rs"), include_str!("cases.rs"));
    let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), Code::ALL.len());
    for name in names {
        assert!(here.contains(&format!("error[{name}]: ")), "no test shows {name}");
    }
}

/// A configuration with its secrets in all the places they can have.
const SECRETIVE: &str = r#"
[runtime]
max_clients = 7
[databases.app]
pool_size = 5
password = "hunter2"
[databases.web]
url = "postgres://app:hunter2@db:5432/web?sslmode=require"
[databases]
inline = { host = "db", password = "hunter2", port = 5432 }
[users.a]
password = """
hunter2"""
mode = "session"
[users.b]
password = 'hunter2'
"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_slip_of_the_pen_makes_a_secret_show(
        at in 0..SECRETIVE.len(),
        deleted in 0..3usize,
        inserted in "[\\]\\[\"'=.{}#,\n a0/@:?%_-]{0,2}",
    ) {
        let (before, rest) = SECRETIVE.split_at(at);
        let text = format!("{before}{inserted}{}", &rest[deleted.min(rest.len())..]);
        if let Err(report) = Config::from_text(&text) {
            prop_assert!(!report.to_string().contains("hunter"), "{text}\n{report}");
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}|(.|\n){0,200}") {
        let _ = Config::from_text(&text);
    }

    #[test]
    fn arbitrary_lines_never_panic(
        lines in proptest::collection::vec(
            (
                "(listen|listen.tls|auth|pool|users.a|databases.\"é\"|databases.a.users.b|x|runtime)",
                "(postgres|mode|cert|pool_size|min_pool_size|wait_timeout|password|url|host|workers\
                  |admin_users|http|unix_socket_mode|\"é\"|query|max_clients)",
                "(\"[a-z0-9:/é%@. *]{0,12}\"|-?[0-9]{1,20}|0o[0-7]{1,4}|true|\\[\"[a-z:0-9]*\"\\]\
                  |\\{ a = 1 \\}|1.5|2020-01-01|nan|'''\n é'''|\"postgres://[a-z:@/%?=,\\[\\]]{0,20}\")",
            ),
            0..8,
        ),
        sections in any::<bool>(),
    ) {
        let text: String = lines
            .iter()
            .map(|(section, key, value)| match sections {
                true => format!("[{section}]\n{key} = {value} # é\n"),
                false => format!("{section}.{key} = {value}\n"),
            })
            .collect();
        let _ = Config::from_text(&text).map_err(|report| report.to_string());
    }

    #[test]
    fn arbitrary_environment_never_panics(
        name in "PONDAGE_[A-Z_é]{0,30}|PONDAGE_(LISTEN|DATABASES__A|USERS__B|AUTH)__[A-Z_]{0,12}",
        value in "\\PC{0,40}",
    ) {
        let variables = environment(&[(&name, &value), ("DATABASE_URL", &value)]);
        let _ = Config::from_text_and("", variables, Flags::default());
    }
}

#[test]
fn queries_for_users_that_can_not_work_are_told_with_their_line() {
    let needs = "`auth_query` needs `auth_query_user`";
    for (text, line, what) in [
        ("[databases.a]\nauth_query = \"select $1\"\n", 2, needs),
        ("[databases.a]\nauth_query_cache = \"5s\"\n", 2, "`auth_query_cache` needs"),
        (
            "[databases.a]\nauth_query_user = \"q\"\nauth_query = \"select 1\"\n",
            3,
            "`auth_query` has no $1",
        ),
        (
            "[databases.a]\n[auth]\nquery_user = \"q\"\nquery_database = \"pgbouncer\"\n",
            4,
            "`query_database` is \"pgbouncer\", which is the console",
        ),
        (
            "[databases.a]\nauth_query_user = \"q\"\nauth_query_database = \"admin\"\n",
            3,
            "`auth_query_database` is \"admin\", which is the console",
        ),
        // Of all databases, of which one has none of its own.
        (
            "[databases.a]\n[databases.b]\nauth_query = \"select $1\"\n\
             [auth]\nquery_user = \"q\"\nquery = \"select 1\"\n",
            6,
            "`query` has no $1",
        ),
    ] {
        let report = Config::from_text(text).expect_err(text).to_string();
        assert!(report.contains(what), "{text}\n{report}");
        assert!(report.contains(&format!("pondage.toml:{line}:")), "{text}\n{report}");
    }
    // PgBouncer's files have a query for all that no database uses.
    let unused = "[databases.b]\nauth_query = \"select $1\"\n\
                  [auth]\nquery_user = \"q\"\nquery = \"select 1\"\n";
    Config::from_text(unused).unwrap_or_else(|report| panic!("{report}"));
}
