//! Pool modes, several workers, and what clients leave behind.

use wire::pg::backend::tag;
use wire::pg::frontend;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

fn with(settings: impl FnOnce(Config) -> Config) -> (Database, Gateway) {
    let database = cluster().database();
    let gateway = Gateway::start(settings(Config::of(&database)));
    (database, gateway)
}

#[test]
fn in_session_mode_a_client_keeps_its_server_and_leaves_it_clean() {
    let (database, gateway) =
        with(|config| config.set("pool.mode", "session").set("pool.pool_size", 1));
    let mut client = gateway.client(&database);
    let pid = client.one("select pg_backend_pid()");
    client.run("create temp table mine(a int); set timezone to 'Asia/Tokyo'; listen news");
    client.run("prepare p as select 'prepared'; select pg_advisory_lock(7)");
    assert_eq!(client.one("execute p"), "prepared");
    assert_eq!(client.one("select count(*) from mine"), "0");
    assert_eq!(client.one("select pg_backend_pid()"), pid);
    let mut next = gateway.client(&database);
    next.put(|out| frontend::put_query(out, "select pg_backend_pid()::text"));
    next.expect_silence(std::time::Duration::from_millis(200));
    client.terminate();
    assert_eq!(next.until_ready()[1].values(), [Some(pid)]);
    for (sql, expected) in [
        ("show timezone", "UTC"),
        ("select count(*) from pg_prepared_statements", "0"),
        (
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
            "0",
        ),
        ("select count(*) from pg_class where relname = 'mine'", "0"),
        ("select count(*) from pg_listening_channels()", "0"),
    ] {
        assert_eq!(next.one(sql), expected, "{sql}");
    }
}

#[test]
fn notifications_reach_a_client_of_session_mode() {
    let (database, gateway) = with(|config| config.set("pool.mode", "session"));
    let mut client = gateway.client(&database);
    client.run("listen news");
    database.run("notify news, 'hello'");
    let message = client.expect(tag::NOTIFICATION);
    assert!(message.body.ends_with(b"news\0hello\0"), "{message:?}");
}

#[test]
fn modes_differ_per_database_and_per_user() {
    let database = cluster().database();
    let name = &database.name;
    let config = Config::of(&database)
        .set("pool.pool_size", 1)
        .set("users.keeper.password", "keeper secret")
        .set("users.keeper.mode", "session")
        .set("databases.sessions.host", "127.0.0.1")
        .set("databases.sessions.port", i64::from(cluster().port))
        .set("databases.sessions.dbname", name.as_str())
        .set("databases.sessions.mode", "session")
        .set(&format!("databases.{name}.user"), APP)
        .set(&format!("databases.{name}.password"), APP_PASSWORD);
    let gateway = Gateway::start(config);
    let mut keeper = WireClient::login(&gateway.address(), "keeper", "keeper secret", name);
    keeper.run("create temp table mine(a int)");
    let mut session = WireClient::login(&gateway.address(), APP, APP_PASSWORD, "sessions");
    session.run("create temp table mine(a int)");
    let (mut one, mut two) = (gateway.client(&database), gateway.client(&database));
    for client in [&mut one, &mut two, &mut keeper, &mut session] {
        client.run("select 1");
    }
    assert_eq!(keeper.one("select count(*) from mine"), "0");
    assert_eq!(session.one("select count(*) from mine"), "0");
    let pools = gateway.show("pools");
    let mode = |database: &str, user: &str| {
        let row = pools.iter().find(|row| row["database"] == database && row["user"] == user);
        row.unwrap_or_else(|| panic!("{database}/{user} in {pools:?}"))["pool_mode"].clone()
    };
    assert_eq!(mode(name, APP), "transaction");
    assert_eq!(mode(name, "keeper"), "session");
    assert_eq!(mode("sessions", APP), "session");
}

#[test]
fn several_workers_share_one_budget_and_idle_servers_move_to_who_waits() {
    let (database, gateway) =
        with(|config| config.set("runtime.workers", 3).set("pool.pool_size", 2));
    let mut clients: Vec<_> = (0..24).map(|_| gateway.client(&database)).collect();
    // Every client is served again and again, though most workers hold no server.
    for round in 0..5 {
        for (number, client) in clients.iter_mut().enumerate() {
            let sql = format!("select '{round}-{number}'");
            assert_eq!(client.one(&sql), format!("{round}-{number}"));
        }
        assert!(cluster().backends(&database) <= 2);
    }
    // Together, too.
    for client in &mut clients {
        client.put(|out| frontend::put_query(out, "select pg_sleep(0.01), 'together'"));
    }
    for client in &mut clients {
        assert_eq!(client.until_ready()[1].values()[1], Some("together".into()));
    }
    assert!(cluster().backends(&database) <= 2);
    // The whole budget to transactions of whichever worker.
    for pair in clients.chunks_mut(2) {
        pair.iter_mut().for_each(|client| client.run("begin; select 1"));
        assert_eq!(cluster().backends(&database), 2);
        pair.iter_mut().for_each(|client| client.run("commit"));
    }
    let pools = gateway.show("pools");
    let row = pools.iter().find(|row| row["database"] == database.name).expect("the pool");
    assert_eq!((row["sv_idle"].as_str(), row["cl_waiting"].as_str()), ("2", "0"));
    assert_eq!(pools.iter().filter(|row| row["database"] == database.name).count(), 1);
}

#[test]
fn a_worker_with_many_waiting_clients_does_not_starve_the_others() {
    const CLIENTS: usize = 12;
    let (database, gateway) =
        with(|config| config.set("runtime.workers", 3).set("pool.pool_size", 1));
    let done = std::sync::Mutex::new(vec![0; CLIENTS]);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (gateway, database, done) = (&gateway, &database, &done);
            scope.spawn(move || {
                let mut client = gateway.client(database);
                // Until the slowest has been served often enough.
                while done.lock().expect("no panic").iter().any(|served| *served < 20) {
                    client.run("select 1");
                    done.lock().expect("no panic")[number] += 1;
                }
            });
        }
    });
    assert_eq!(cluster().backends(&database), 1);
}

#[test]
fn cancel_and_console_work_across_workers() {
    let (database, gateway) = with(|config| config.set("runtime.workers", 3));
    let mut clients: Vec<_> = (0..6).map(|_| gateway.client(&database)).collect();
    for client in &mut clients {
        client.put(|out| frontend::put_query(out, "select pg_sleep(60)"));
    }
    let sleeping = format!(
        "select count(*) from pg_stat_activity where datname = '{}' and wait_event = 'PgSleep'",
        database.name
    );
    let mut superuser = cluster().superuser("postgres");
    wait::until("five queries to run", || superuser.one(&sleeping) == "5");
    assert_eq!(
        gateway.show("clients").iter().filter(|r| r["database"] == database.name).count(),
        6
    );
    for client in &mut clients {
        client.cancel(&gateway.address());
    }
    for client in &mut clients {
        let error = client.until_ready().into_iter().find(|message| message.tag == tag::ERROR);
        assert_eq!(error.expect("an error").complaint().code, "57014");
    }
}

#[test]
fn discard_all_and_deallocate_take_what_is_the_clients_own_only() {
    let (database, gateway) = with(|config| config.set("pool.pool_size", 1));
    let (mut one, mut other) = (gateway.client(&database), gateway.client(&database));
    let prepare = |client: &mut WireClient, name: &str| {
        client.put(|out| {
            frontend::put_parse(out, name.as_bytes(), b"select 'prepared'", &[]);
            frontend::put_sync(out);
        });
        client.until_ready().iter().map(|message| char::from(message.tag)).collect::<String>()
    };
    let run = |client: &mut WireClient, name: &str| {
        client.put(|out| {
            frontend::put_bind(out, b"", name.as_bytes(), &[]);
            frontend::put_execute(out, b"", 0);
            frontend::put_sync(out);
        });
        client.until_ready().iter().map(|message| char::from(message.tag)).collect::<String>()
    };
    for drop_all in ["discard all", "deallocate all", "deallocate prepare all"] {
        assert_eq!(prepare(&mut one, "a"), "1Z");
        assert_eq!(prepare(&mut other, "b"), "1Z");
        one.run("set application_name to 'one'");
        other.run("set application_name to 'other'");
        one.run(drop_all);
        assert_eq!(run(&mut one, "a"), "EZ", "{drop_all}");
        assert_eq!(run(&mut other, "b"), "2DCZ", "{drop_all}");
        let kept = if drop_all == "discard all" { "" } else { "one" };
        assert_eq!(one.one("show application_name"), kept, "{drop_all}");
        assert_eq!(other.one("show application_name"), "other");
        assert_eq!(prepare(&mut one, "a"), "1Z", "the name is free");
        assert_eq!(run(&mut one, "a"), "2DCZ");
        for (client, name) in [(&mut one, "a"), (&mut other, "b")] {
            client.run(&format!("deallocate \"{name}\""));
            assert_eq!(run(client, name), "EZ");
            assert_eq!(client.error(&format!("deallocate {name}")).code, "26000");
        }
    }
}

#[test]
fn without_following_statements_session_mode_still_has_them() {
    let (database, gateway) =
        with(|config| config.set("pool.mode", "session").set("pool.max_prepared_statements", 0));
    let mut client = gateway.client(&database);
    client.put(|out| {
        frontend::put_parse(out, b"s", b"select 'prepared'", &[]);
        frontend::put_sync(out);
    });
    client.until_ready();
    client.put(|out| {
        frontend::put_bind(out, b"", b"s", &[]);
        frontend::put_execute(out, b"", 0);
        frontend::put_sync(out);
    });
    assert_eq!(client.until_ready()[1].values(), [Some("prepared".into())]);
}

#[test]
fn a_replication_connection_is_the_clients_own() {
    let (database, gateway) = with(|config| config.set("pool.mode", "session"));
    let parameters =
        [("user", APP), ("database", database.name.as_str()), ("replication", "database")];
    let mut client = WireClient::login_with(&gateway.address(), APP_PASSWORD, &parameters);
    let system = client.table("IDENTIFY_SYSTEM").remove(0);
    assert_eq!(system["dbname"], database.name);
    client.run("CREATE_REPLICATION_SLOT trial TEMPORARY LOGICAL test_decoding");
    assert_eq!(gateway.client(&database).one("select 'beside it'"), "beside it");
    client.put(|out| {
        frontend::put_query(out, "START_REPLICATION SLOT trial LOGICAL 0/0");
    });
    client.expect(tag::COPY_BOTH);
    database.run("create table t(a int); insert into t values (1)");
    let change = loop {
        let message = client.expect(tag::COPY_DATA);
        if message.body[0] == b'w' {
            break message;
        }
    };
    assert!(String::from_utf8_lossy(&change.body).contains("BEGIN"), "{change:?}");
    drop(client);
    wait::until("the slot to be gone", || {
        database.one("select count(*) from pg_replication_slots where slot_name = 'trial'") == "0"
    });
}
