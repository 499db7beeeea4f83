//! Who may only look changes nothing.

use std::collections::BTreeSet;

use super::{config, LOOKER, LOOKER_PASSWORD};
use crate::kit::cluster::APP;
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::httpclient::Visitor;
use crate::kit::{cluster, Gateway, WireClient};
use crate::traps::servers::direct;

const SCHEMA: &str = "create table shelf(id int primary key, n int);
    create procedure move(p_id int) language plpgsql as
        'begin update shelf set n = n + 1 where id = p_id; end';
    grant all on shelf to public";

/// Every command that changes something, with `{db}` and `{client}` in it.
const COMMANDS: &[&str] = &[
    "PAUSE",
    "PAUSE {db}",
    "RESUME",
    "RESUME {db}",
    "SUSPEND",
    "DISABLE {db}",
    "ENABLE {db}",
    "RECONNECT",
    "RECONNECT {db}",
    "KILL",
    "KILL {db}",
    "KILL_CLIENT {client}",
    "WAIT_CLOSE",
    "WAIT_CLOSE {db}",
    "RELOAD",
    "SHUTDOWN",
    "SHUTDOWN WAIT_FOR_SERVERS",
    "SHUTDOWN WAIT_FOR_CLIENTS",
    "SET log_level = 'debug'",
    "CREATE CACHE more IN DATABASE {db} FROM SELECT id FROM shelf WHERE n = 1",
    "DROP CACHE held",
    "DROP CACHE held IN DATABASE {db}",
    "DROP ALL CACHES",
    "DROP ALL CACHES IN DATABASE {db}",
    "MIRROR TABLE shelf IN DATABASE {db}",
    "DROP MIRROR shelf IN DATABASE {db}",
    "SET PROCEDURE public.move KEY (p_id) MODE lane",
    "RESET PROCEDURE public.move",
];

/// What any of them would change.
fn condition(console: &mut WireClient) -> Vec<String> {
    ["databases", "state", "config", "caches", "mirrors", "procedures", "clients", "servers"]
        .iter()
        .map(|show| {
            let mut rows = console.table(&format!("SHOW {show}"));
            for row in &mut rows {
                // Averages, and what looking itself changes.
                for column in ["calls_per_second", "request_time", "wait", "wait_us", "state"] {
                    row.remove(column);
                }
            }
            format!("{show}: {rows:#?}")
        })
        .collect()
}

#[test]
fn who_may_only_look_changes_nothing() {
    let database = cluster().database();
    direct(&database).run(SCHEMA);
    let gateway = Gateway::start(
        config(&database)
            .set("cache.mode", "manual")
            .set("cache.user", APP)
            .set("pool.pool_size", 1),
    );
    let mut client = gateway.client(&database);
    client.run("call move(1)");
    let server = client.one("select pg_backend_pid()");
    let mut console = gateway.console();
    let name = &database.name;
    console.run(&format!(
        "CREATE CACHE held IN DATABASE {name} FROM SELECT n FROM shelf WHERE id = 1"
    ));
    let of_client = |row: &std::collections::BTreeMap<String, String>| row["database"] == *name;
    let id = console.table("SHOW CLIENTS").into_iter().find(of_client).expect("it")["id"].clone();

    // The list has all that SHOW HELP has.
    console.run("SHOW HELP");
    let help = console.notices.last().expect("the help").detail.clone();
    let first = |line: &str| line.split([' ', '|']).next().unwrap_or_default().to_owned();
    let told: BTreeSet<String> = help
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .filter(|line| !line.starts_with([' ', '\t']))
        .map(first)
        .filter(|word| !["SHOW", "EXPLAIN", ""].contains(&word.as_str()))
        .collect();
    let listed: BTreeSet<String> = COMMANDS.iter().map(|command| first(command)).collect();
    assert_eq!(told, listed);

    let looker = Visitor::log_in(gateway.http_port, LOOKER, LOOKER_PASSWORD);
    assert_eq!(looker.get("/api/v1/session").json()["role"], "stats");
    let before = condition(&mut console);
    for command in COMMANDS {
        let command = command.replace("{db}", name).replace("{client}", &id);
        let answer = looker.command(&command);
        assert_eq!(answer.refusal(), (403, "42501".to_owned()), "{command}");
        assert_eq!(condition(&mut console), before, "{command}");
    }
    // By the same server, so nothing was closed either, nor is anybody held.
    assert_eq!(client.one("select pg_backend_pid()"), server);
    assert_eq!(looker.command("SHOW POOLS").status, 200);

    // It is the right that they lack: an administrator's command does what it says.
    let admin = Visitor::log_in(gateway.http_port, ADMIN, ADMIN_PASSWORD);
    for (command, paused) in [("PAUSE", "1"), ("RESUME", "0")] {
        let answer = admin.command(&format!("{command} {name}"));
        assert_eq!((answer.status, answer.json()["tag"].as_str()), (200, Some(command)));
        let rows = console.table("SHOW DATABASES");
        let row = rows.iter().find(|row| row["name"] == *name).expect("its row");
        assert_eq!(row["paused"], paused, "{command}");
    }
}
