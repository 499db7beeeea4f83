//! Nothing comes of an upgrade: the process that runs goes on as before. Or that one is lost.

use std::io::{BufRead, BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::config;
use crate::kit::place::Directory;
use crate::kit::{cluster, Address, Gateway, WireClient};

/// A new process as the one that runs sees it.
struct New(BufReader<UnixStream>);

impl New {
    fn at(gateway: &Gateway) -> New {
        let path = gateway.directory.path().join("control");
        New(BufReader::new(UnixStream::connect(path).expect("the control socket")))
    }

    fn says(&mut self, line: &str) {
        // In one piece: who says too much is not read to the end.
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    /// The sockets beside a line are closed unseen.
    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

#[test]
fn a_new_process_that_cannot_start_changes_nothing() {
    let database = cluster().database();
    let gateway = Gateway::start(config(&database));
    let unix = Address::unix(gateway.directory.path(), gateway.port);
    let file = gateway.file.display().to_string();
    let mut stays = gateway.client(&database);

    gateway.rewrite(config(&database).set("pool.pool_sise", 3));
    let refused = Gateway::command(&["serve", "-R", "-c", &file], &[]);
    assert_eq!(refused.status.code(), Some(78), "{refused:?}");
    // It has the sockets already when it finds that another address is in use.
    let held = TcpListener::bind("127.0.0.1:0").expect("bind");
    let taken = held.local_addr().expect("an address").to_string();
    gateway.rewrite(config(&database).set("listen.http", taken));
    let refused = Gateway::command(&["serve", "-R", "-c", &file], &[]);
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert!(refused.stderr.contains("P0211"), "{refused:?}");
    // So it is when the running process starts it.
    let refused = Gateway::command(&["upgrade", "-c", &file], &[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.stderr.contains("error[P0217]"), "{refused:?}");
    assert!(refused.stderr.contains("77"), "{refused:?}");
    drop(held);

    assert_eq!(stays.one("select 1"), "1");
    for address in [&gateway.address(), &unix] {
        let mut client = WireClient::login(address, "app", "app secret", &database.name);
        assert_eq!(client.one("select 2"), "2");
    }
    gateway.rewrite(config(&database));
    let next = gateway.successor(&[]);
    assert_eq!(next.client(&database).one("select 3"), "3");
}

#[test]
fn a_new_process_that_is_lost_on_the_way_changes_nothing() {
    let database = cluster().database();
    let gateway = Gateway::start(config(&database));
    for words in [&["takeover 1"][..], &["takeover 1", "ready"], &["takeover 1", "serving"]] {
        let mut new = New::at(&gateway);
        for word in words {
            new.says(word);
            assert!(!new.hears().is_empty());
        }
        drop(new);
        // Who came while the doors were closed waits no longer.
        assert_eq!(gateway.client(&database).one("select 1"), "1");
    }
    // One at a time.
    let mut first = New::at(&gateway);
    first.says("takeover 1");
    first.hears();
    let mut second = New::at(&gateway);
    second.says("takeover 1");
    assert_eq!(second.hears(), "no another process is taking over");
    let mut other = New::at(&gateway);
    other.says("takeover 999");
    assert_eq!(other.hears(), "no \"takeover 999\" is not understood");
    let mut long = New::at(&gateway);
    long.says(&"x".repeat(5000));
    assert_eq!(gateway.client(&database).one("select 1"), "1");
}

#[test]
fn when_the_old_process_is_killed_on_the_way_the_new_one_serves() {
    let database = cluster().database();
    let directory = Directory::new("killed");
    let path = directory.path().join("control");
    let door = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = door.local_addr().expect("an address").port();
    let old = UnixListener::bind(&path).expect("bind");
    let killed = std::thread::spawn(move || {
        let (stream, _) = old.accept().expect("the new process");
        drop(old);
        let mut lines = BufReader::new(stream.try_clone().expect("a copy"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        assert_eq!(line, "takeover 1\n");
        let socket =
            format!("{{\"usage\":\"postgres\",\"name\":\"127.0.0.1:{port}\",\"activated\":false}}");
        let answer = format!("{{\"pid\":1,\"sockets\":[{socket}]}}\n");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let descriptors = [door.as_fd()];
        assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let bytes = [IoSlice::new(answer.as_bytes())];
        sendmsg(&stream, &bytes, &mut beside, SendFlags::empty()).expect("sent");
        line.clear();
        lines.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        // It ends without another word.
    });
    let config = config(&database)
        .set("listen.postgres", [format!("127.0.0.1:{port}").as_str()])
        .set("runtime.control_socket", directory.path().join("control").display().to_string());
    let gateway = Gateway::taking_over(config);
    killed.join().expect("as expected");
    let address = Address::tcp("127.0.0.1", port);
    let mut client = WireClient::login(&address, "app", "app secret", &database.name);
    assert_eq!(client.one("select 1"), "1");
    assert!(gateway.said().contains("takeover_orphaned"));
}

#[test]
fn without_a_process_that_runs_there_is_nothing_to_take_over() {
    let directory = Directory::new("nobody");
    let path = directory.path().join("control").display().to_string();
    let environment = [
        ("PONDAGE_DATABASES__APP__HOST", "127.0.0.1"),
        ("PONDAGE_RUNTIME__CONTROL_SOCKET", path.as_str()),
    ];
    for (arguments, code) in [(&["serve", "-R"][..], 77), (&["upgrade"], 1)] {
        for environment in [&environment[..], &environment[..1]] {
            let refused = Gateway::command(arguments, environment);
            assert_eq!(refused.status.code(), Some(code), "{refused:?}");
            assert!(refused.stderr.starts_with("error[P0216]: cannot reach"), "{refused:?}");
        }
    }
}
