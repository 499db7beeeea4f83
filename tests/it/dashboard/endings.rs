//! A stream ends with what it stands on: its session, its user's password, its process.

use std::fs;

use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::httpclient::{self, Visitor};
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Gateway};

use super::{config, LOOKER, LOOKER_PASSWORD};

/// A user of a file beside those of the configuration.
const FILED: &str = "filed";

/// The visitor is nobody any more, and is told so.
#[track_caller]
fn is_out(visitor: &Visitor) {
    for path in ["/api/v1/state", "/api/v1/stream", "/api/v1/session"] {
        assert_eq!(visitor.get(path).refusal(), (401, "P0501".to_owned()), "{path}");
    }
    assert_eq!(visitor.command("SHOW POOLS").refusal(), (401, "P0501".to_owned()));
}

#[test]
fn a_stream_ends_with_its_session() {
    let database = cluster().database();
    let gateway = Gateway::start(config(&database));
    let port = gateway.http_port;
    let leaves = Visitor::log_in(port, ADMIN, ADMIN_PASSWORD);
    let stays = Visitor::log_in(port, ADMIN, ADMIN_PASSWORD);
    let (mut first, mut second) = (leaves.events(), stays.events());
    assert!(first.next().is_some() && second.next().is_some());
    assert_eq!(leaves.ask("DELETE /api/v1/session").status, 204);
    first.ended();
    is_out(&leaves);
    // Another session of the same user goes on.
    assert!(second.next().is_some() && second.next().is_some());
    assert_eq!(stays.get("/api/v1/session").json()["user"], ADMIN);
}

#[test]
fn a_stream_ends_when_the_password_of_its_user_changes_or_the_user_goes() {
    let database = cluster().database();
    let directory = Directory::new("users");
    let users = directory.path().join("users.txt");
    let write = |password: &str| {
        fs::write(&users, format!("\"{FILED}\" \"{password}\"\n")).expect("the users file");
    };
    write("one");
    let config = config(&database)
        .set("auth.admin_users", [ADMIN, FILED])
        .set("auth.users_file", users.display().to_string());
    let gateway = Gateway::start(config.clone());
    let port = gateway.http_port;
    let visitors = [(ADMIN, ADMIN_PASSWORD), (LOOKER, LOOKER_PASSWORD), (FILED, "one")]
        .map(|(user, password)| Visitor::log_in(port, user, password));
    let [mut admin, mut looker, mut filed] = visitors.each_ref().map(Visitor::events);
    assert!(admin.next().is_some() && looker.next().is_some() && filed.next().is_some());
    let reload = || gateway.console().run("RELOAD");

    // In the configuration.
    gateway.rewrite(config.clone().set("users.looker.password", "another secret"));
    reload();
    looker.ended();
    is_out(&visitors[1]);
    let refused = httpclient::log_in(port, LOOKER, LOOKER_PASSWORD).refusal();
    assert_eq!(refused, (401, "P0502".to_owned()));
    let mut looker = Visitor::log_in(port, LOOKER, "another secret").events();
    assert!(filed.next().is_some() && looker.next().is_some());

    // In the file of users.
    write("two");
    reload();
    filed.ended();
    is_out(&visitors[2]);
    let again = Visitor::log_in(port, FILED, "two");
    let mut filed = again.events();
    assert!(filed.next().is_some());

    // None of the console's any more, with the same password as before.
    let config = config.set("auth.admin_users", [ADMIN]).set("auth.stats_users", [ADMIN]);
    gateway.rewrite(config.set("users.looker.password", "another secret"));
    reload();
    filed.ended();
    looker.ended();
    is_out(&again);
    // Whom none of this was about has seen it all.
    assert!(admin.next().is_some() && admin.next().is_some());
    assert_eq!(visitors[0].get("/api/v1/session").json()["role"], "admin");
}

#[test]
fn an_upgrade_ends_the_streams_and_the_new_process_goes_on_with_them() {
    let database = cluster().database();
    let config = config(&database)
        .set("runtime.control_socket", "{directory}/control")
        .set("runtime.pid_file", "{directory}/pid");
    let mut first = Gateway::start(config);
    let mut stays = first.client(&database);
    stays.run("begin");
    let port = first.http_port;
    let visitor = Visitor::log_in(port, ADMIN, ADMIN_PASSWORD);
    let mut streams: Vec<_> = (0..3).map(|_| visitor.events()).collect();
    assert!(streams.iter_mut().all(|stream| stream.next().is_some()));
    // Connections without a request, as browsers keep them, don't keep the streams either.
    let idle: Vec<_> = (0..20).map(|_| httpclient::connect(port)).collect();

    let file = first.file.display().to_string();
    let done = Gateway::command(&["upgrade", "-c", &file], &[]);
    assert!(done.status.success(), "{done:?}");
    streams.into_iter().for_each(|stream| stream.ended());
    // The old process is there still, for its client; the door is the new one's.
    assert!(first.try_wait().is_none());
    is_out(&visitor);
    let again = Visitor::log_in(port, ADMIN, ADMIN_PASSWORD);
    let mut stream = again.events();
    assert!(stream.next().is_some() && stream.next().is_some());
    let pid = fs::read_to_string(first.directory.path().join("pid")).expect("a pid file");
    assert_ne!(pid.trim(), first.pid().to_string());

    // One that this test can wait for.
    let last = first.successor(&[]);
    stream.ended();
    stays.run("commit");
    stays.terminate();
    assert!(first.wait().success());
    drop(idle);
    assert!(Visitor::log_in(last.http_port, ADMIN, ADMIN_PASSWORD).events().next().is_some());
}

#[test]
fn a_door_that_is_full_is_handed_over_all_the_same() {
    let database = cluster().database();
    let config = config(&database).set("runtime.control_socket", "{directory}/control");
    let first = Gateway::start(config);
    // The old process goes on for this one.
    let mut stays = first.client(&database);
    stays.run("begin");
    let port = first.http_port;
    let visitor = Visitor::log_in(port, ADMIN, ADMIN_PASSWORD);
    let mut stream = visitor.events();
    assert!(stream.next().is_some());
    // As many connections as the door takes, and more that wait for a place.
    let held: Vec<_> = (0..300).map(|_| httpclient::connect(port)).collect();
    let second = first.successor(&[]);
    stream.ended();
    let asked = std::time::Instant::now();
    assert!(second.page("/healthz").expect("the door").starts_with("HTTP/1.1 200"));
    assert!(asked.elapsed() < wait::DEADLINE / 2, "{:?}", asked.elapsed());
    drop(held);
}
