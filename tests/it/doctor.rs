//! `pondage doctor` at databases that are as they should be, and at some that are not.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD, SUPERUSER, SUPERUSER_PASSWORD};
use crate::kit::gateway::Ended;
use crate::kit::place::Directory;
use crate::kit::{wait, Gateway};

/// What a careful operator has.
const HEALTHY: [&str; 2] = ["fsync = on", "full_page_writes = on"];

fn url(cluster: &Cluster, user: &str, password: &str, database: &str) -> String {
    let password = password.replace(' ', "%20");
    format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", cluster.port)
}

fn app_url(cluster: &Cluster, database: &str) -> String {
    url(cluster, APP, APP_PASSWORD, database)
}

fn doctor(arguments: &[&str]) -> Ended {
    Gateway::command(&[&["doctor"], arguments].concat(), &[])
}

/// What it says to programs of the one database.
#[track_caller]
fn examined(url: &str) -> (i32, Vec<Value>) {
    let ended = doctor(&[url, "--json"]);
    let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let code = ended.status.code().expect("an exit code");
    assert_eq!(told["exit_code"], code, "{told}");
    let databases = told["databases"].as_array().expect("databases");
    assert_eq!(databases.len(), 1, "{told}");
    let checks = databases[0]["checks"].as_array();
    (code, checks.unwrap_or_else(|| panic!("{told:#}")).clone())
}

/// All findings: check, weight and what it is.
fn findings(checks: &[Value]) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let of = |check: &Value| {
        let name = text(&check["check"]);
        let found = check["findings"].as_array().expect("findings").clone();
        found.into_iter().map(move |finding| (name.clone(), text(&finding["weight"]), finding))
    };
    checks.iter().flat_map(of).collect()
}

/// A database that belongs to `app`.
fn database(cluster: &Cluster) {
    cluster.superuser("postgres").run(&format!("CREATE DATABASE shop OWNER {APP}"));
}

#[test]
fn a_database_as_it_should_be_has_nothing_to_fix() {
    let cluster = Cluster::start("healthy", &HEALTHY);
    database(&cluster);
    cluster.superuser("shop").run("CREATE TABLE good (id int PRIMARY KEY)");
    let (code, checks) = examined(&app_url(&cluster, "shop"));
    for check in &checks {
        assert_eq!(check["state"], "ok", "{check:#}");
    }
    assert_eq!((code, checks.len()), (0, 19));
    // The same for people.
    let ended = doctor(&[&app_url(&cluster, "shop")]);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.contains("  ok       wal_level     logical\n"), "{}", ended.stdout);
    let sum = "0 problems, 0 warnings, 0 notes; 19 things examined\n";
    assert!(ended.stdout.contains(sum), "{}", ended.stdout);

    // What only some roles meet.
    let mut sql = cluster.superuser("postgres");
    sql.run("ALTER SYSTEM SET commit_siblings = 0");
    sql.run("SELECT pg_reload_conf()");
    // Microseconds before each flush: a slow disk.
    sql.run(&format!("ALTER ROLE {APP} SET commit_delay = 50000"));
    let (code, checks) = examined(&app_url(&cluster, "shop"));
    let found = findings(&checks);
    let names: Vec<(&str, &str)> =
        found.iter().map(|(check, weight, _)| (check.as_str(), weight.as_str())).collect();
    assert_eq!((code, names), (0, vec![("latency", "note")]), "{found:#?}");

    let standby = cluster.standby();
    let (code, checks) = examined(&app_url(&standby, "shop"));
    assert_eq!(code, 1);
    assert!(findings(&checks).iter().any(|(check, _, _)| check == "standby"), "{checks:#?}");
    assert!(checks.iter().all(|check| check["state"] != "unseen"), "{checks:#?}");
}

const FAULTS: [&str; 9] = [
    "fsync = off",
    "full_page_writes = off",
    "synchronous_commit = off",
    "wal_level = replica",
    "max_connections = 20",
    "max_wal_senders = 1",
    "max_replication_slots = 1",
    "max_prepared_transactions = 5",
    "plan_cache_mode = force_custom_plan",
];

/// Beside the settings; run as superuser in the database.
const FAULTY: [&str; 18] = [
    "ALTER SYSTEM SET password_encryption = 'md5'",
    "SELECT pg_reload_conf()",
    "GRANT CREATE ON SCHEMA public TO PUBLIC",
    "CREATE TABLE named (id int NOT NULL, UNIQUE (id))",
    "CREATE TABLE nameless (id int)",
    "CREATE FUNCTION open_door() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
    "CREATE FUNCTION keeps() RETURNS void LANGUAGE plpgsql AS \
     'BEGIN CREATE TEMP TABLE mine (a int); PERFORM pg_advisory_lock(1); END'",
    "CREATE COLLATION old (provider = icu, locale = 'und')",
    "UPDATE pg_collation SET collversion = '1' WHERE collname = 'old'",
    "CREATE TABLE words (word text COLLATE old PRIMARY KEY)",
    "ALTER ROLE app NOREPLICATION CONNECTION LIMIT 2",
    "REVOKE ALL ON DATABASE shop FROM PUBLIC, app",
    "GRANT CONNECT ON DATABASE shop TO app",
    "ALTER DATABASE shop CONNECTION LIMIT 3",
    "SELECT pg_create_physical_replication_slot('left_over', true)",
    "BEGIN",
    "CREATE TABLE later (id int PRIMARY KEY)",
    "PREPARE TRANSACTION 'for''gotten'",
];

/// Everything that is found as app and as superuser: check and weight.
#[track_caller]
fn both(cluster: &Cluster) -> Vec<(String, String, Value)> {
    let (_, of_app) = examined(&app_url(cluster, "shop"));
    let superuser = url(cluster, SUPERUSER, SUPERUSER_PASSWORD, "shop");
    let (_, of_superuser) = examined(&superuser);
    let mut all = findings(&of_app);
    all.extend(findings(&of_superuser));
    all
}

#[test]
fn each_fault_is_found_and_what_is_to_be_run_mends_it() {
    let cluster = Cluster::start("faulty", &FAULTS);
    database(&cluster);
    cluster.superuser("postgres").run(&format!(
        "ALTER DATABASE shop OWNER TO {SUPERUSER}; \
         ALTER ROLE {APP} VALID UNTIL '{}'",
        cluster.superuser("postgres").one("SELECT now() + interval '3 days 1 hour'")
    ));
    let mut sql = cluster.superuser("shop");
    FAULTY.iter().for_each(|statement| sql.run(statement));
    let mut idle = cluster.superuser("shop");
    idle.run("BEGIN");
    idle.run("SELECT 1");
    let long = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' \
                AND state_change < now() - interval '61 seconds'";
    wait::within(Duration::from_secs(150), || {
        (cluster.superuser("shop").one(long) == "1").then_some(())
    })
    .expect("an old transaction");

    let found = both(&cluster);
    for (check, weight, part) in [
        ("durability", "problem", "fsync is off"),
        ("durability", "problem", "full_page_writes is off"),
        ("durability", "warning", "synchronous_commit is off"),
        ("rights", "warning", "\"postgres\" is a superuser"),
        ("rights", "note", "\"app\" may not create schemas"),
        ("verifiers", "warning", "password_encryption is md5"),
        ("verifiers", "warning", "1 roles are stored as md5: {legacy}"),
        ("verifiers", "warning", "\"app\" is valid for 3 days more"),
        ("search_path", "warning", "schema public"),
        ("search_path", "warning", "public.open_door()"),
        ("connections", "problem", "leaves room for 17"),
        ("connections", "problem", "role \"app\" may have 2"),
        ("connections", "problem", "database \"shop\" may have 3"),
        ("transactions", "warning", "idle in a transaction for"),
        ("transactions", "warning", "transaction 'for''gotten' of postgres has been prepared for"),
        ("wal_level", "note", "wal_level of the server is replica"),
        ("replication", "note", "\"app\" has no REPLICATION attribute"),
        ("slots", "note", "all of max_replication_slots = 1"),
        ("wal_kept", "warning", "nobody reads slot left_over"),
        ("identity", "note", "public.named, public.nameless"),
        ("plans", "warning", "force_custom_plan"),
        (
            "functions",
            "note",
            "public.keeps() (a temporary table, an advisory lock of the session)",
        ),
        ("collations", "problem", "collation public.old was that of version 1"),
    ] {
        let is = |(name, heavy, finding): &&(String, String, Value)| {
            let what = finding["what"].as_str().expect("a text");
            name == check && heavy == weight && what.contains(part)
        };
        let finding = found.iter().find(is);
        let (_, _, finding) = finding.unwrap_or_else(|| panic!("{check}: {part}\n{found:#?}"));
        for key in ["effect", "then"] {
            assert_ne!(finding[key], "", "{finding:#}");
        }
        assert_ne!(finding["run"].as_array().map_or(0, Vec::len), 0, "{finding:#}");
    }

    // What it says is run as it is, but for what only the operator can know.
    let mut done = HashSet::new();
    for (_, _, finding) in &found {
        for line in finding["run"].as_array().expect("lines") {
            let line = line.as_str().expect("a text");
            let is_for_people = line.starts_with(['-', '\\'])
                || ["'...'", "TO app;"].iter().any(|part| line.contains(part));
            // Both who looked have found it.
            let mut was_done = |line: &str| {
                let once = ["ROLLBACK PREPARED", "SELECT pg_drop_replication_slot"];
                once.iter().any(|once| line.starts_with(once)) && !done.insert(line.to_owned())
            };
            if !is_for_people && !was_done(line) {
                cluster.superuser("shop").run(line);
            }
        }
    }
    cluster.stop("fast");
    cluster.launch();
    let left = both(&cluster);
    let mut checks: Vec<&str> = left.iter().map(|(check, _, _)| check.as_str()).collect();
    checks.dedup();
    // Whose passwords, which other role, and what functions are for is the operator's to say.
    assert_eq!(checks, ["functions", "rights", "verifiers", "functions"], "{left:#?}");
}

#[test]
fn who_is_not_let_in_or_not_there_is_told_with_the_code_for_it() {
    let cluster = crate::kit::cluster();
    let wrong = doctor(&[&url(cluster, APP, "wrong", "postgres")]);
    assert_eq!(wrong.status.code(), Some(77), "{}", wrong.stdout);
    assert!(wrong.stdout.contains("password authentication failed"), "{}", wrong.stdout);
    let unknown = doctor(&[&app_url(cluster, "nowhere")]);
    assert_eq!(unknown.status.code(), Some(77), "{}", unknown.stdout);
    assert!(unknown.stdout.contains("\"nowhere\" does not exist"), "{}", unknown.stdout);
    let away = doctor(&["postgres://app:secret@127.0.0.1:1/app", "--json"]);
    assert_eq!(away.status.code(), Some(69));
    let told: Value = serde_json::from_str(&away.stdout).expect("JSON");
    assert_eq!(told["databases"][0]["error"]["sqlstate"], "08001");
    let typed = doctor(&["postgers://app:hunter2@db/app"]);
    assert_eq!(typed.status.code(), Some(2));
    assert!(!typed.stderr.contains("hunter2"), "{}", typed.stderr);
    let nothing = doctor(&[&url(cluster, APP, APP_PASSWORD, "")]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(nothing.stderr.contains("--database"), "{}", nothing.stderr);
}

#[test]
fn all_databases_of_a_configuration_are_examined() {
    let cluster = crate::kit::cluster();
    let (one, two) = (cluster.database(), cluster.database());
    let directory = Directory::new("doctor");
    let file = directory.path().join("pondage.toml");
    let port = cluster.port;
    let section = |name: &str, size: u32| {
        format!(
            "[databases.{name}]\nhost = \"127.0.0.1\"\nport = {port}\nuser = \"{APP}\"\n\
             password = \"{APP_PASSWORD}\"\npool_size = {size}\n"
        )
    };
    let toml = format!("{}{}", section(&one.name, 300), section(&two.name, 200));
    std::fs::write(&file, toml).expect("a file");
    let file = file.display().to_string();
    let ended = doctor(&["-c", &file, "--json"]);
    let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let databases = told["databases"].as_array().expect("databases");
    let names: Vec<&str> =
        databases.iter().map(|one| one["database"].as_str().expect("a name")).collect();
    let mut both = [one.name.as_str(), two.name.as_str()];
    both.sort_unstable();
    assert_eq!(names, both);
    // Each pool has room for itself, and both together have not.
    assert!(ended.stdout.contains("may open 500 connections"), "{}", ended.stdout);
    let alone = doctor(&["-c", &file, "--database", &one.name]);
    assert!(!alone.stdout.contains(&two.name), "{}", alone.stdout);
    let unknown = doctor(&["-c", &file, "--database", "neither"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(unknown.stderr.contains("no database \"neither\""), "{}", unknown.stderr);
}
