use super::*;

fn one(text: &str) -> Request {
    let mut requests =
        parse(text.as_bytes()).unwrap_or_else(|failure| panic!("{text}: {failure:?}"));
    assert_eq!(requests.len(), 1, "{text}");
    requests.remove(0)
}

fn refused(text: &str) -> Failure {
    parse(text.as_bytes()).expect_err(text)
}

fn some(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn every_show_is_found_in_any_case_and_by_select() {
    for show in Show::ALL {
        let word = show.word();
        assert_eq!(one(&format!("SHOW {word}")), Request::Show(*show));
        assert_eq!(one(&format!(" show\n\t{} ; ", word.to_lowercase())), Request::Show(*show));
        assert_eq!(one(&format!("select {word}")), Request::Show(*show));
    }
}

fn set(name: &str, value: &str) -> Act {
    Act::Set { name: name.to_owned(), value: Unlogged(value.to_owned()) }
}

#[test]
fn commands_with_and_without_a_database() {
    for (text, act) in [
        ("RELOAD", Act::Reload),
        ("suspend;", Act::Suspend),
        // PostgreSQL has one of the same name.
        ("SET transaction_timeout = 2", set("transaction_timeout", "2")),
        ("PAUSE", Act::Pause(None)),
        ("Pause App", Act::Pause(some("App"))),
        ("RESUME \"my \"\"db\"\"\";", Act::Resume(some("my \"db\""))),
        ("resume", Act::Resume(None)),
        ("RECONNECT my-db", Act::Reconnect(some("my-db"))),
        ("KILL", Act::Kill(None)),
        ("kill app", Act::Kill(some("app"))),
        ("DISABLE app", Act::Disable("app".into())),
        ("ENABLE app", Act::Enable("app".into())),
        ("WAIT_CLOSE", Act::WaitClose(None)),
        ("KILL_CLIENT 18446744073709551615", Act::KillClient(u64::MAX)),
        ("SHUTDOWN", Act::Shutdown(Shutdown::Immediate)),
        ("shutdown immediate", Act::Shutdown(Shutdown::Immediate)),
        ("SHUTDOWN WAIT_FOR_SERVERS", Act::Shutdown(Shutdown::WaitForServers)),
        ("SHUTDOWN wait_for_clients", Act::Shutdown(Shutdown::WaitForClients)),
        ("SET pool_size = 3", set("pool_size", "3")),
        ("set pool.pool_size to '3'", set("pool.pool_size", "3")),
    ] {
        assert_eq!(one(text), Request::Act(act), "{text}");
    }
}

#[test]
fn what_drivers_send_unasked_is_taken() {
    for (text, tag) in [
        ("SET extra_float_digits = 3", "SET"),
        ("set application_name to 'x'", "SET"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"),
        ("SET TIME ZONE 'UTC'", "SET"),
        ("SET NAMES 'utf8'", "SET"),
        ("SET LOCAL search_path = a, b", "SET"),
        ("SET myapp.tenant = '1'", "SET"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN"),
        ("start transaction", "START TRANSACTION"),
        ("commit", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("RESET ALL", "RESET"),
        ("DISCARD ALL", "DISCARD ALL"),
    ] {
        assert!(matches!(one(text), Request::Ignored { tag: got, .. } if got == tag), "{text}");
    }
    assert!(matches!(
        one("SHOW TRANSACTION ISOLATION LEVEL"),
        Request::ShowSetting(Setting { name: "transaction_isolation", .. })
    ));
    assert!(matches!(one("show DateStyle"), Request::ShowSetting(Setting { value: "ISO", .. })));
}

#[test]
fn asyncpg_cleans_its_connection_with_four_commands() {
    let requests =
        parse(b"SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;").unwrap();
    assert_eq!(requests.len(), 4);
}

#[test]
fn constants_can_be_selected() {
    assert_eq!(
        one("SELECT 1, 'it''s', version(), current_user"),
        Request::Select(vec![
            Constant { name: "?column?", value: ConstantValue::Int(1) },
            Constant { name: "?column?", value: ConstantValue::Text("it's".into()) },
            Constant { name: "version", value: ConstantValue::Version },
            Constant { name: "current_user", value: ConstantValue::User },
        ])
    );
    assert_eq!(refused("SELECT * FROM pg_class").code, "42601");
    assert_eq!(refused("SELECT 99999999999").code, "42601");
    assert_eq!(refused("SELECT").code, "42601");
}

#[test]
fn an_unknown_command_names_its_nearest_one() {
    for (text, hint) in [
        ("PUASE app", "Did you mean PAUSE?"),
        ("relod", "Did you mean RELOAD?"),
        ("pools", "Did you mean SHOW POOLS?"),
        ("SHOW POOL", "Did you mean SHOW POOLS?"),
        ("show clents", "Did you mean SHOW CLIENTS?"),
    ] {
        let failure = refused(text);
        assert_eq!(failure.code, "42601", "{text}");
        assert_eq!(failure.hint.as_deref(), Some(hint), "{text}");
    }
    let failure = refused("SHOW nonsense");
    assert_eq!(failure.message, "there is no SHOW \"nonsense\"");
    assert!(failure.detail.unwrap().contains("POOLS, CLIENTS, SERVERS"));
    assert_eq!(refused("VACUUM full").message, "invalid command 'VACUUM full', use SHOW HELP;");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    for text in [
        "RELOAD app",
        "SUSPEND now",
        "PAUSE a b",
        "PAUSE 'app'",
        "PAUSE \"\"",
        "DISABLE",
        "ENABLE ;",
        "KILL_CLIENT",
        "KILL_CLIENT abc",
        "KILL_CLIENT -1",
        "SHUTDOWN NOW",
        "SET x",
        "SET = 3",
        "SHOW",
        "\"SHOW\" POOLS",
        "= 3",
    ] {
        assert_eq!(refused(text).code, "42601", "{text}");
    }
    assert_eq!(refused(&format!("PAUSE {}", "x".repeat(256))).code, "42601");
}

#[test]
fn several_commands_share_a_message_and_one_bad_one_refuses_all() {
    assert_eq!(parse(b"").unwrap(), []);
    assert_eq!(parse(b" ;; -- nothing\n;").unwrap(), []);
    assert_eq!(parse(b"PAUSE a; RESUME a; SHOW \"pools\";").unwrap().len(), 3);
    assert_eq!(refused("PAUSE a; NONSENSE").code, "42601");
    assert_eq!(parse(b"\xff").unwrap_err().code, "22021");
    assert_eq!(refused(&"RELOAD;".repeat(COMMANDS_MAX + 1)).code, "54000");
}

#[test]
fn what_is_about_redis_or_proxied_may_be_two_words() {
    for text in ["SHOW REDIS KEYS", "show redis keys", "show redis_keys"] {
        assert_eq!(parse(text.as_bytes()), Ok(vec![Request::Show(Show::RedisKeys)]), "{text}");
    }
    assert_eq!(parse(b"show proxied queries"), Ok(vec![Request::Show(Show::ProxiedQueries)]));
    assert!(parse(b"SHOW DNS HOSTS").is_err());
    assert!(parse(b"SHOW REDIS NONSENSE").is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "show", "select", "set", "pause", "kill_client", "shutdown", "a", "\"", "'", ";", "=",
                "to", ",", "(", ")", "--", "/*", "*/", "1", "é", "\n", "transaction", "session",
            ]),
            0..10,
        ),
    ) {
        let _ = parse(words.join(" ").as_bytes());
        let _ = parse(words.concat().as_bytes());
    }
}
