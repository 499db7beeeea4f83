//! RECONNECT puts another connection in the place of the one that listens for all.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::Arc;

use super::listening::{foreign, last_words, next};
use super::servers::direct;
use crate::kit::cluster::{Cluster, APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Address, Config, Gateway, WireClient};

const LISTENER: &str = "select coalesce(string_agg(pid::text, ' '), '') from pg_stat_activity
    where application_name = 'pondage listen' and datname = current_database()";

#[test]
fn on_reconnect_listeners_stay_and_miss_nothing_and_hear_nothing_twice() {
    const NOTIFICATIONS: usize = 3000;
    let database = cluster().database();
    let config = Config::of(&database).set("pool.pool_size", 3).set("runtime.workers", 2);
    let gateway = Gateway::start(config);
    let mut listeners: Vec<WireClient> = (0..4).map(|_| gateway.client(&database)).collect();
    listeners.iter_mut().for_each(|client| client.run("listen a; listen \"B b\""));
    // One of them keeps its server.
    listeners[0].run("create temp table t ()");
    let mut sender = direct(&database);
    let sends = std::thread::spawn(move || {
        for n in 0..NOTIFICATIONS {
            let channel = if n % 3 == 0 { "\"B b\"" } else { "a" };
            sender.run(&format!("notify {channel}, '{n}'"));
        }
    });
    let mut last = database.one(LISTENER);
    let mut console = gateway.console();
    let mut renewed = 0;
    while !sends.is_finished() || renewed < 3 {
        console.run("reconnect");
        wait::until("another connection to listen, alone", || {
            let now = database.one(LISTENER);
            !now.is_empty() && !now.contains(' ') && now != last
        });
        last = database.one(LISTENER);
        renewed += 1;
    }
    sends.join().expect("all are sent");
    for client in &mut listeners {
        for n in 0..NOTIFICATIONS {
            let channel = if n % 3 == 0 { "B b" } else { "a" };
            assert_eq!(next(client), foreign(channel, &n.to_string()), "{renewed} times renewed");
        }
    }
    // Who comes and goes meanwhile is followed as ever.
    listeners[1].run("unlisten a; listen c");
    console.run("reconnect");
    listeners[2].run("listen c");
    let mut sender = direct(&database);
    sender.run("notify a, 'x'; notify c, 'y'");
    for (at, wanted) in [(0, vec!["a"]), (1, vec!["c"]), (2, vec!["a", "c"]), (3, vec!["a"])] {
        for channel in wanted {
            let payload = if channel == "a" { "x" } else { "y" };
            assert_eq!(next(&mut listeners[at]), foreign(channel, payload));
        }
    }
}

/// A way to a server, which leads elsewhere when it is told to.
fn switched(to: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let Ok(there) = TcpStream::connect(("127.0.0.1", to.load(Ordering::SeqCst))) else {
                continue;
            };
            for (from, to) in [(&client, &there), (&there, &client)] {
                let mut from = from.try_clone().expect("a socket");
                let mut to = to.try_clone().expect("a socket");
                std::thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        if to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

#[test]
fn on_reconnect_to_another_server_who_listens_is_told() {
    let clusters = [Cluster::start("succeeded", &[]), Cluster::start("succeeding", &[])];
    let to = Arc::new(AtomicU16::new(clusters[0].port));
    let config = Config::base()
        .set("pool.server_login_retry", "100ms")
        .set("databases.app.host", "127.0.0.1")
        .set("databases.app.port", i64::from(switched(to.clone())))
        .set("databases.app.dbname", "postgres");
    let gateway = Gateway::start(config);
    let address = Address::tcp("127.0.0.1", gateway.port);
    let client = || WireClient::login(&address, APP, APP_PASSWORD, "app");
    let mut listener = client();
    listener.run("listen a");
    to.store(clusters[1].port, Ordering::SeqCst);
    gateway.console().run("reconnect");
    let words = last_words(&mut listener);
    assert_eq!((words.code.as_str(), words.hint.contains("[P0441]")), ("57P01", true), "{words:?}");
    let mut listener = client();
    listener.run("listen a");
    clusters[1].superuser("postgres").run("notify a, '1'");
    assert_eq!(next(&mut listener), foreign("a", "1"));
    // The new one can't be reached.
    clusters.iter().for_each(|cluster| cluster.stop("fast"));
    assert_eq!(last_words(&mut listener).code, "57P01");
}
