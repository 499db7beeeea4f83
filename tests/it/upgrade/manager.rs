//! What systemd passes, and what it is told.

use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use super::config;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Address, Config, Gateway, WireClient};

/// The service manager's end of NOTIFY_SOCKET.
struct Manager {
    socket: UnixDatagram,
    path: String,
    _directory: Directory,
}

impl Manager {
    fn new() -> Manager {
        let directory = Directory::new("notify");
        let path = directory.path().join("notify").display().to_string();
        let socket = UnixDatagram::bind(&path).expect("bind");
        socket.set_read_timeout(Some(wait::DEADLINE)).expect("a timeout");
        Manager { socket, path, _directory: directory }
    }

    fn hears(&self) -> String {
        let mut message = [0; 1024];
        let bytes = self.socket.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..bytes]).into_owned()
    }
}

#[test]
fn the_service_manager_is_told_of_each_state_in_order() {
    let manager = Manager::new();
    let database = cluster().database();
    let environment = [("NOTIFY_SOCKET", manager.path.as_str())];
    let mut first = Gateway::start_with(config(&database), &environment);
    assert!(manager.hears().starts_with("READY=1\nSTATUS=Serving at 127.0.0.1:"));
    for refused in [false, true] {
        if refused {
            first.rewrite(config(&database).set("pool.pool_sise", 3));
        }
        first.signal(Signal::HUP);
        let reloading = manager.hears();
        let since = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a time");
        assert!(since.parse::<u64>().expect("a number") > 0);
        assert_eq!(manager.hears(), "READY=1");
    }
    first.rewrite(config(&database));
    let mut second = first.successor(&environment);
    let pid = second.pid();
    assert_eq!(manager.hears(), format!("MAINPID={pid}\nSTATUS=Process {pid} takes over"));
    assert!(manager.hears().starts_with("READY=1\nSTATUS=Serving at 127.0.0.1:"));
    // The end of the first one is not the service's.
    assert!(first.wait().success());
    second.signal(Signal::TERM);
    assert!(second.wait().success());
    assert_eq!(manager.hears(), "STOPPING=1");
}

#[test]
fn the_watchdog_hears_of_a_process_that_turns() {
    let manager = Manager::new();
    let database = cluster().database();
    let environment = [("NOTIFY_SOCKET", manager.path.as_str()), ("WATCHDOG_USEC", "200000")];
    let gateway = Gateway::start_with(config(&database), &environment);
    assert!(manager.hears().starts_with("READY=1"));
    assert_eq!((manager.hears(), manager.hears()), ("WATCHDOG=1".into(), "WATCHDOG=1".into()));
    // A stopped process shows no life.
    gateway.signal(Signal::STOP);
    manager.socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let mut message = [0; 64];
    while manager.socket.recv(&mut message).is_ok() {}
    gateway.signal(Signal::CONT);
}

#[test]
fn a_socket_of_the_service_managers_is_the_door_and_stays_it_through_an_upgrade() {
    let database = cluster().database();
    let door = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = door.local_addr().expect("an address").port();
    let address = Address::tcp("127.0.0.1", port);
    let copy = door.try_clone().expect("a copy");
    let mut first = Gateway::activated(config(&database), copy.into(), "pondage.socket");
    let log_in = || WireClient::login(&address, APP, APP_PASSWORD, &database.name);
    assert_eq!(log_in().one("select 1"), "1");
    // It stands in place of the configured ones.
    assert!(WireClient::try_connect(&first.address()).is_err());
    let mut stays = log_in();
    let second = first.successor(&[]);
    assert_eq!(log_in().one("select 2"), "2");
    assert_eq!(stays.one("select 3"), "3");
    stays.terminate();
    assert!(first.wait().success());
    assert!(second.said().contains(&port.to_string()));
    // The manager keeps it, whatever becomes of the process.
    drop(second);
    assert!(WireClient::try_connect(&address).is_ok());
}

#[test]
fn what_is_no_listening_socket_is_refused() {
    let database = cluster().database();
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
    let refused = Gateway::refused_activated(Config::of(&database), datagrams.into());
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert!(refused.stderr.starts_with("error[P0218]: cannot listen on"), "{refused:?}");
}
