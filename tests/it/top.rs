//! `pondage top` as somebody in front of a terminal sees it.

use std::process::Command;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{self, ADMIN, ADMIN_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::terminal::Terminal;
use crate::kit::{cluster, Address, Config, Database, Gateway, WireClient};

fn url(gateway: &Gateway) -> String {
    let password = ADMIN_PASSWORD.replace(' ', "%20");
    format!("postgres://{ADMIN}:{password}@127.0.0.1:{}", gateway.port)
}

fn top(arguments: &[&str]) -> Command {
    let mut command = Command::new(gateway::binary());
    command.arg("top").args(arguments);
    command
}

fn started() -> (Database, Gateway) {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    (database, gateway)
}

#[test]
fn pages_are_turned_sorted_and_filtered_by_keys() {
    let (database, gateway) = started();
    let mut client = gateway.client(&database);
    client.run("select 'a statement of the test'");
    let mut terminal = Terminal::run(top(&[&url(&gateway), "--interval", "0.2"]));
    // Every number is the console's.
    terminal.sees(" 1 Pools ");
    terminal.sees(&database.name);
    terminal.sees("statements/s");
    terminal.sees("clients 2, 0 of them wait");
    assert!(terminal.is_alternate());
    terminal.press("2");
    terminal.sees("CALLS/s");
    terminal.sees("alone select ?");
    let pool = &gateway.show("queries")[0];
    assert_eq!(pool["calls"], "1");
    // Rates come with the second look.
    let before = client.one("select count(*) from generate_series(1, 10)");
    assert_eq!(before, "10");
    terminal.sees("generate_series");
    terminal.press("/nothing\r");
    terminal.sees("nothing has \"nothing\" in it");
    terminal.press("\u{1b}");
    terminal.sees("generate_series");
    terminal.press("/generate\r");
    terminal.sees_no("alone select ?");
    terminal.sees("/generate");
    terminal.press("3");
    // The filter has come along.
    terminal.sees("nothing has \"generate\" in it");
    terminal.press("\u{1b}");
    terminal.sees("pondage  admin");
    terminal.press("?");
    terminal.sees("only rows with what is typed");
    terminal.press("x");
    terminal.sees_no("only rows with what is typed");
    terminal.press(" ");
    terminal.sees("paused");
    terminal.press("7");
    terminal.sees("no command yet, or no Redis door");
    terminal.press("q");
    let (status, left) = terminal.ended();
    assert_eq!((status.code(), left), (Some(0), true));
}

#[test]
fn it_waits_for_a_pondage_that_comes_back() {
    let database = cluster().database();
    let port = free_port();
    let config = || Config::of(&database).set("listen.postgres", vec![format!("127.0.0.1:{port}")]);
    let gateway = Gateway::start(config());
    let file = gateway.file().display().to_string();
    let mut terminal = Terminal::run(top(&["-c", &file, "--page", "servers", "--interval", "0.2"]));
    terminal.sees(" 4 Servers ");
    terminal.sees("no connection to PostgreSQL is open");
    drop(gateway);
    terminal.sees("not up to date:");
    let _gateway = Gateway::start(config());
    terminal.sees_no("not up to date:");
    let mut client =
        WireClient::login(&Address::tcp("127.0.0.1", port), APP, APP_PASSWORD, &database.name);
    client.run("select 1");
    terminal.sees(&database.name);
    // As in every program: Ctrl-C.
    terminal.press("\u{3}");
    let (status, left) = terminal.ended();
    assert_eq!((status.code(), left), (Some(0), true));
}

#[test]
fn once_prints_a_page_as_text() {
    let (database, gateway) = started();
    gateway.client(&database).run("select 1");
    let once = ["--once", "--interval", "0.1"];
    let done = Gateway::command(&[&["top", &url(&gateway)], &once[..]].concat(), &[]);
    assert_eq!((done.status.code(), done.stderr.as_str()), (Some(0), ""));
    let row = done.stdout.lines().find(|line| line.starts_with(&database.name));
    let row = row.unwrap_or_else(|| panic!("{}", done.stdout));
    assert!(row.contains(" app "), "{row}");
    assert!(row.contains(" transaction "), "{row}");
    let url = url(&gateway);
    let page = [&["top", &url, "--page", "hosts"], &once[..]].concat();
    let empty = Gateway::command(&page, &[]);
    assert!(empty.stdout.ends_with("\nno database has several hosts\n"), "{}", empty.stdout);
}

#[test]
fn what_can_not_be_shown_is_told_with_the_code_for_it() {
    let (_, gateway) = started();
    let of = |arguments: &[&str]| {
        let done = Gateway::command(&[&["top"], arguments].concat(), &[]);
        (done.status.code(), done.stderr)
    };
    let wrong = format!("postgres://{ADMIN}:hunter2@127.0.0.1:{}", gateway.port);
    let (code, why) = of(&[&wrong, "--once"]);
    assert_eq!(code, Some(77), "{why}");
    assert!(!why.contains("hunter2"), "{why}");
    let (code, why) = of(&["postgres://a:b@127.0.0.1:1", "--once"]);
    assert_eq!(code, Some(69), "{why}");
    let (code, why) = of(&[&url(&gateway), "--page", "pool"]);
    assert_eq!(code, Some(2));
    assert!(why.contains("there are pools, queries"), "{why}");
    let (code, why) = of(&[&url(&gateway)]);
    assert_eq!(code, Some(2));
    assert!(why.contains("--once"), "{why}");
    let (code, why) = of(&["--interval", "0", &url(&gateway)]);
    assert_eq!(code, Some(2), "{why}");
}
