//! `pondage URL`, as somebody tries it at a database of his own: what is wrong is said at the
//! start, and what to type next.

use std::process::Command;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::binary;
use crate::kit::place::free_port;
use crate::kit::terminal::Terminal;
use crate::kit::{cluster, Address, WireClient};

/// A terminal with the program in it, and its door.
fn of_url(url: &str) -> (Terminal, Address) {
    let port = free_port();
    let mut command = Command::new(binary());
    command.args(["--http", "off", "--listen", &format!("127.0.0.1:{port}"), url]);
    (Terminal::run(command), Address::tcp("127.0.0.1", port))
}

fn ends(terminal: Terminal) {
    terminal.interrupt();
    assert!(terminal.ended().0.success());
}

#[test]
fn a_url_says_what_to_type_next_and_that_the_server_is_there() {
    let database = cluster().database();
    let (port, name) = (cluster().port, &database.name);
    let password = APP_PASSWORD.replace(' ', "%20");
    let (terminal, address) =
        of_url(&format!("postgres://{APP}:{password}@127.0.0.1:{port}/{name}"));
    terminal.sees("server_reached");
    terminal.sees(&format!("-U {APP} {name}"));
    terminal.sees("pondage -c 'show advice'");
    assert!(!terminal.text().contains(APP_PASSWORD), "{}", terminal.text());
    let mut client = WireClient::login(&address, APP, APP_PASSWORD, name);
    assert_eq!(client.one("select 1"), "1");
    ends(terminal);
}

#[test]
fn a_url_with_a_wrong_password_is_told_so_before_any_client_comes() {
    let database = cluster().database();
    let (port, name) = (cluster().port, &database.name);
    let (terminal, _) = of_url(&format!("postgres://{APP}:hunter2@127.0.0.1:{port}/{name}"));
    terminal.sees("server_connect_failed");
    terminal.sees("28P01");
    ends(terminal);
}

#[test]
fn a_url_of_a_server_that_is_away_is_served_and_told_so() {
    let (terminal, address) = of_url("postgres://app:secret@127.0.0.1:1/app");
    terminal.sees("server_connect_failed");
    terminal.sees("Connection refused");
    terminal.sees("ready");
    // It waits for clients all the same.
    drop(WireClient::connect(&address));
    ends(terminal);
}
