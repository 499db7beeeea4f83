//! Session mode: what clients have come with is what their RESET goes back to.

use wire::pg::backend::tag;
use wire::pg::startup;

use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::wireclient::Address;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

fn sessions(pool_size: i64) -> (Database, Gateway, Config) {
    let database = cluster().database();
    let config = Config::of(&database).set("pool.mode", "session").set("pool.pool_size", pool_size);
    (database, Gateway::start(config.clone()), config)
}

fn login(address: &Address, database: &Database, more: &[(&str, &str)]) -> WireClient {
    let mut parameters = vec![("user", APP), ("database", database.name.as_str())];
    parameters.extend(more);
    WireClient::login_with(address, APP_PASSWORD, &parameters)
}

const TOKYO: [(&str, &str); 3] = [
    ("TimeZone", "Asia/Tokyo"),
    ("DateStyle", "SQL, DMY"),
    ("options", "-c geqo=off -c app.tenant=7 -c ignore_system_indexes=on"),
];

/// All that a client can find out of what is set, as the gateway's and PostgreSQL's clients see it.
#[test]
fn reset_goes_back_to_what_a_client_of_session_mode_has_come_with() {
    let (database, gateway, _) = sessions(3);
    database.run(
        "create function forget() returns text language plpgsql as \
         'begin reset timezone; perform set_config(''geqo'', null, false); \
         return current_setting(''timezone''); end'",
    );
    let scripts = [
        "set timezone to 'Europe/Rome'; reset timezone",
        "set datestyle to 'German'",
        "reset datestyle",
        "set geqo to on; set app.tenant to 8; set work_mem to '1MB'",
        "begin; reset all; set timezone to 'Europe/Rome'; savepoint s",
        "reset timezone; rollback to s",
        "rollback",
        "reset all",
        "set timezone to 'Europe/Rome'; select forget()",
        "begin; set local timezone to 'Europe/Rome'; select forget(); commit",
        "set timezone to default; set datestyle to default",
        "discard all",
    ];
    let shown = "select current_setting('timezone'), current_setting('datestyle'), \
         current_setting('geqo'), current_setting('work_mem'), nullif(current_setting('app.tenant', true), ''), \
         current_setting('ignore_system_indexes'), current_setting('client_encoding')";
    // Twice, for the server may have been another's before.
    for more in [&TOKYO[..], &[], &TOKYO[1..2], &TOKYO[..], &[]] {
        let mut own = login(&gateway.address(), &database, more);
        let mut direct = login(&cluster().address(), &database, more);
        for script in scripts {
            assert_eq!(own.query(script), direct.query(script), "{more:?}: {script}");
            assert_eq!(own.rows(shown), direct.rows(shown), "{more:?}: {script}");
        }
        own.terminate();
    }
}

/// DISCARD ALL ends a role, and does not go back to one of the start-up packet.
#[test]
fn a_role_that_a_client_of_session_mode_has_come_with_is_there_for_the_next_one_too() {
    let (database, gateway, _) = sessions(1);
    let role = format!("{}_role", database.name);
    cluster().superuser("postgres").run(&format!("create role {role}; grant {role} to {APP}"));
    let options = format!("-c role={role} -c geqo=off");
    for more in [&[("options", options.as_str())][..], &[("options", "-c geqo=off")], &[]] {
        for _ in 0..2 {
            let mut client = login(&gateway.address(), &database, more);
            let acts = if more.first() == Some(&("options", &options)) { &role } else { APP };
            assert_eq!(client.one("select current_user"), acts, "{more:?}");
            client.run("discard all");
            client.terminate();
        }
    }
}

#[test]
fn clients_that_come_with_the_same_share_servers_and_others_take_their_places() {
    let (database, gateway, _) = sessions(1);
    let mut pids = Vec::new();
    for round in 0..3 {
        for more in [&[][..], &TOKYO[..]] {
            for name in ["one", "two"] {
                let mut more = more.to_vec();
                more.push(("application_name", name));
                let mut client = login(&gateway.address(), &database, &more);
                assert_eq!(client.one("show application_name"), name, "round {round}");
                pids.push(client.one("select pg_backend_pid()"));
                client.terminate();
            }
        }
    }
    for pair in pids.chunks(2) {
        assert_eq!(pair[0], pair[1], "{pids:?}");
    }
    pids.dedup();
    assert_eq!(pids.len(), 6, "{pids:?}");
    wait::until("the closed ones to be gone", || cluster().backends(&database) == 1);
}

/// Those who wait get servers in the order in which they came, whatever they came with.
#[test]
fn clients_with_various_parameters_wait_for_one_server_and_all_get_it() {
    let (database, gateway, _) = sessions(1);
    let zones = ["Asia/Tokyo", "Europe/Rome", "UTC", "America/Lima"];
    let mut holder = gateway.client(&database);
    holder.run("select 1");
    let mut waiting: Vec<_> = (0..12)
        .map(|number| {
            let more = [("TimeZone", zones[number % zones.len()])];
            let mut client = login(&gateway.address(), &database, &more);
            client.put(|out| {
                wire::pg::frontend::put_query(out, "reset timezone; show timezone");
            });
            client
        })
        .collect();
    let queued = || gateway.show("pools").iter().any(|pool| pool["cl_waiting"] == "12");
    wait::until("all to wait", queued);
    holder.terminate();
    for (number, mut client) in waiting.drain(..).enumerate() {
        let answer = client.until_ready();
        let row = answer.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
        assert_eq!(row.values(), [Some(zones[number % zones.len()].to_owned())]);
        client.terminate();
    }
}

#[test]
fn what_postgresql_refuses_to_start_with_is_told_to_its_client_only() {
    let (database, gateway, _) = sessions(2);
    let mut good = gateway.client(&database);
    good.run("select 1");
    let wrong = [
        ("TimeZone", "Nowhere/At all", "22023"),
        ("no_such_parameter", "1", "42704"),
        ("shared_buffers", "1GB", "55P02"),
        ("log_statement", "all", "42501"),
        ("work_mem", "much", "22023"),
    ];
    for (name, value, code) in wrong {
        let parameters = [("user", APP), ("database", database.name.as_str()), (name, value)];
        let mut direct = WireClient::connect(&cluster().address());
        direct.put(|out| startup::put_startup(out, 0, &parameters));
        let expected = direct.authenticate(APP, APP_PASSWORD).expect_err("it is refused");
        assert_eq!(expected.code, code);
        let mut client = login(&gateway.address(), &database, &[(name, value)]);
        client.put(|out| wire::pg::frontend::put_query(out, "select 1"));
        let last = client.until_closed();
        let told = last.iter().find(|message| message.tag == tag::ERROR).expect("an error");
        let told = told.complaint();
        assert_eq!((&*told.severity, &told.code), ("FATAL", &expected.code), "{told:?}");
        assert!(told.message.ends_with(&expected.message), "{told:?}");
        assert!(told.hint.contains("P0322"), "{told:?}");
        // Nobody else waits for it, also not with other parameters of its own.
        assert_eq!(good.one("show timezone"), "UTC");
        let mut next = login(&gateway.address(), &database, &[("geqo", "off")]);
        assert_eq!(next.one("show geqo"), "off");
        next.terminate();
    }
}

#[test]
fn a_server_that_was_started_for_a_session_is_nothing_for_transaction_mode() {
    let (database, gateway, config) = sessions(2);
    let mut tokyo = login(&gateway.address(), &database, &TOKYO[..2]);
    let pid = tokyo.one("select pg_backend_pid()");
    let mut busy = login(&gateway.address(), &database, &TOKYO[..2]);
    let other = busy.one("select pg_backend_pid()");
    tokyo.terminate();
    gateway.rewrite(config.set("pool.mode", "transaction"));
    gateway.console().run("reload");
    let mut client = gateway.client(&database);
    assert_ne!(client.one("select pg_backend_pid()"), pid);
    // The other is closed when its transaction is over.
    busy.run("select 1");
    let mut both = [client, busy];
    for client in &mut both {
        client.run("begin");
        let now = client.one("select pg_backend_pid()");
        assert!(now != pid && now != other, "{now}");
    }
    let [mut client, mut busy] = both;
    client.run("reset timezone");
    assert_eq!(client.one("show timezone"), "UTC");
    assert_eq!(busy.one("show timezone"), "Asia/Tokyo");
}
