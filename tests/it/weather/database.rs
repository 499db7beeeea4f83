//! The database: down, restarted, wrong.

use std::time::{Duration, Instant};

use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{Cluster, APP, APP_PASSWORD, OTHER_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::wireclient::Message;
use crate::kit::{cluster, wait, Config, Gateway, WireClient};

/// A gateway in front of a cluster of its own, with the database `postgres`.
fn in_front_of(own: &Cluster) -> Config {
    Config::of(&cluster().database())
        .set("databases.own.host", "127.0.0.1")
        .set("databases.own.port", i64::from(own.port))
        .set("databases.own.dbname", "postgres")
        .set("pool.server_login_retry", "100ms")
}

#[test]
fn a_database_that_is_down_at_start_is_waited_for_and_its_clients_are_told_why_and_since_when() {
    let own = Cluster::start("down", &[]);
    own.stop("fast");
    let gateway = Gateway::start(in_front_of(&own).set("pool.wait_timeout", "1s"));
    let parameters = [("user", APP), ("database", "own")];
    let try_login = || WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters);
    for _ in 0..2 {
        let refused = try_login().err().expect("the database is down");
        assert_eq!(refused.severity, "FATAL");
        assert_eq!(refused.code, "08001", "{refused:?}");
        assert!(refused.message.contains(&own.port.to_string()), "where: {refused:?}");
        assert!(refused.message.contains("refused"), "why: {refused:?}");
        let since = refused.detail.contains("since 20") && refused.detail.contains("tries");
        assert!(since, "since when: {refused:?}");
        assert!(refused.hint.contains("P0411"), "{refused:?}");
    }
    // One that waits gets in when the database comes up.
    own.launch();
    let mut client = wait::for_some("a log-in", || try_login().ok());
    assert_eq!(client.one("select 'up'"), "up");
}

#[test]
fn clients_that_are_logged_in_wait_for_a_database_that_restarts() {
    let own = Cluster::start("restart", &[]);
    let gateway = Gateway::start(in_front_of(&own));
    let mut clients: Vec<_> =
        (0..4).map(|_| WireClient::login(&gateway.address(), APP, APP_PASSWORD, "own")).collect();
    clients.iter_mut().for_each(|client| client.run("select 1"));
    for mode in ["fast", "immediate"] {
        own.stop(mode);
        for client in &mut clients {
            client.put(|out| frontend::put_query(out, "select 'served'"));
        }
        own.launch();
        for client in &mut clients {
            let answer = client.until_ready();
            assert_eq!(answer[1].values(), [Some("served".into())], "{mode}");
        }
    }
}

#[test]
fn a_database_restarted_under_load_loses_only_what_was_in_flight() {
    let own = Cluster::start("load", &[]);
    let gateway = Gateway::start(in_front_of(&own));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let address = gateway.address();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|number| {
                let (stop, address) = (&stop, &address);
                scope.spawn(move || {
                    let (mut served, mut lost) = (0, 0);
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let parameters = [("user", APP), ("database", "own")];
                        let Ok(mut client) =
                            WireClient::try_login(address, APP_PASSWORD, &parameters)
                        else {
                            continue;
                        };
                        let mark = format!("{number}-{served}");
                        loop {
                            client.put(|out| {
                                frontend::put_query(
                                    out,
                                    format!("select '{mark}', pg_sleep(0.001)"),
                                );
                            });
                            let Some(row) = row_or_lost(&mut client) else {
                                lost += 1;
                                break;
                            };
                            assert_eq!(row.values()[0], Some(mark.clone()));
                            served += 1;
                            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                                break;
                            }
                        }
                    }
                    (served, lost)
                })
            })
            .collect();
        for mode in ["fast", "immediate", "fast"] {
            own.stop(mode);
            own.launch();
            let mut client = WireClient::login(&address, APP, APP_PASSWORD, "own");
            client.run("select 1");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for worker in workers {
            let (served, lost) = worker.join().expect("a client");
            assert!(served > 0 && lost <= 3, "{served} served, {lost} lost in three restarts");
        }
    });
}

#[test]
fn a_permanent_error_of_the_server_is_told_at_once() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("users.tlsonly.password", OTHER_PASSWORD)
        .set("users.legacy.password", "not what the server has")
        .set("databases.missing.host", "127.0.0.1")
        .set("databases.missing.port", i64::from(cluster().port))
        .set("databases.missing.dbname", "no_such_database")
        .set(&format!("databases.{}.tls_mode", database.name), "disable");
    let gateway = Gateway::start(config);
    for (user, password, name, code, part) in [
        ("legacy", "not what the server has", database.name.as_str(), "28P01", "legacy"),
        ("tlsonly", OTHER_PASSWORD, database.name.as_str(), "28000", "tlsonly"),
        (APP, APP_PASSWORD, "missing", "3D000", "no_such_database"),
    ] {
        let began = Instant::now();
        let parameters = [("user", user), ("database", name)];
        let refused = WireClient::try_login(&gateway.address(), password, &parameters).err();
        let refused = refused.expect("the server refuses");
        assert_eq!((refused.severity.as_str(), refused.code.as_str()), ("FATAL", code));
        assert!(refused.message.contains(part), "{refused:?}");
        assert!(began.elapsed() < Duration::from_secs(4), "it took {:?}", began.elapsed());
    }
    assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
}

#[test]
fn an_unknown_database_and_a_wrong_password_are_refused_with_postgresql_codes() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    for (user, password, name, code) in [
        (APP, "wrong", database.name.as_str(), "28P01"),
        (APP, "", database.name.as_str(), "28P01"),
        ("nobody", "wrong", database.name.as_str(), "28P01"),
        (APP, APP_PASSWORD, "nowhere", "3D000"),
    ] {
        let parameters = [("user", user), ("database", name)];
        let refused = WireClient::try_login(&gateway.address(), password, &parameters).err();
        let refused = refused.expect("a refusal");
        assert_eq!((refused.severity.as_str(), refused.code.as_str()), ("FATAL", code));
    }
    // Who is not known is not told apart from who has the wrong password.
    let said = |user: &str| {
        let parameters = [("user", user), ("database", database.name.as_str())];
        let refused = WireClient::try_login(&gateway.address(), "wrong", &parameters).err();
        refused.expect("a refusal").message.replace(user, "USER")
    };
    assert_eq!(said(APP), said("nobody"));
}

#[test]
fn a_host_that_does_not_answer_is_given_up_after_the_connect_timeout() {
    // Listens, and never says a word.
    let port = free_port();
    let silent = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let database = cluster().database();
    let config = Config::of(&database)
        .set("databases.silent.host", "127.0.0.1")
        .set("databases.silent.port", i64::from(port))
        // Not for the other one, which may be slow.
        .set("databases.silent.connect_timeout", "300ms");
    let gateway = Gateway::start(config);
    let parameters = [("user", APP), ("database", "silent")];
    let refused = WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).err();
    let refused = refused.expect("nobody answers");
    assert_eq!(refused.code, "08001", "{refused:?}");
    assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
    drop(silent);
}

/// The row of an answer, or nothing when the server was lost on the way.
#[track_caller]
fn row_or_lost(client: &mut WireClient) -> Option<Message> {
    let mut row = None;
    loop {
        let message = client.try_message_or_cut()?;
        match message.tag {
            tag::DATA_ROW => row = Some(message),
            tag::READY_FOR_QUERY => return row,
            tag::ERROR => {
                let complaint = message.complaint();
                let right = ["57P01", "57P02", "08006"].contains(&complaint.code.as_str());
                assert!(right, "{complaint:?}");
                return None;
            }
            _ => {}
        }
    }
}
