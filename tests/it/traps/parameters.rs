//! Trap 15, and settings that stay with their client.

use wire::pg::backend::{self, tag};

use super::batch::{tags, Batch};
use super::servers::{OneServer, TwoServers};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::wireclient::Message;
use crate::kit::{cluster, Address, Config, Gateway, WireClient};

/// Name and value of a ParameterStatus.
#[track_caller]
fn status(message: &Message) -> (String, String) {
    assert_eq!(message.tag, tag::PARAMETER_STATUS);
    let (name, value) = backend::parameter_status(&message.body).expect("a parameter");
    (name.to_owned(), value.to_owned())
}

#[test]
fn trap_15_parameters_of_a_replay_are_hidden_and_of_an_own_set_forwarded() {
    let mut servers = TwoServers::start();
    let (mut tokyo, mut other) = (servers.client(), servers.client());
    servers.only(0);
    let answer = tokyo.query("set timezone to 'Asia/Tokyo'");
    assert_eq!(tags(&answer), "CSZ");
    assert_eq!(status(&answer[1]), ("TimeZone".into(), "Asia/Tokyo".into()));
    // On both servers the setting is made and unmade again and again, and nobody hears of it.
    for server in [1, 0, 1, 0] {
        servers.only(server);
        for (client, zone) in [(&mut tokyo, "Asia/Tokyo"), (&mut other, "UTC")] {
            let answer = client.query("show timezone");
            assert_eq!(tags(&answer), "TDCZ");
            assert_eq!(answer[1].values(), [Some(zone.into())]);
            let show = Batch::new().parse("", "show timezone").bind("", &[]).execute().sync();
            assert_eq!(tags(&show.answer(client)), "12DCZ");
        }
    }
    assert_eq!(other.parameters["TimeZone"], "UTC");
    // RESET, too, is the client's own.
    let answer = tokyo.query("reset timezone");
    assert_eq!(tags(&answer), "CSZ");
    assert_eq!(status(&answer[1]), ("TimeZone".into(), "UTC".into()));
    let set = Batch::new().parse("", "set application_name to 'own'").bind("", &[]).execute();
    let answer = set.sync().answer(&mut tokyo);
    assert_eq!(tags(&answer), "12CSZ");
    assert_eq!(status(&answer[3]), ("application_name".into(), "own".into()));
    for server in [0, 1] {
        servers.only(server);
        assert_eq!(tokyo.one("show application_name"), "own");
        assert_ne!(other.one("show application_name"), "own");
    }
}

#[test]
fn trap_15_set_up_notices_reach_nobody() {
    let database = cluster().database();
    let connect_query = format!("databases.{}.connect_query", database.name);
    let config = Config::of(&database)
        .set("pool.pool_size", 1)
        .set("pool.server_check_delay", "1ms")
        .set("pool.server_check_query", "do $$ begin raise notice 'check'; end $$")
        .set("pool.server_reset_always", true)
        .set("pool.server_reset_query", "do $$ begin raise warning 'reset'; end $$")
        .set(&connect_query, "do $$ begin raise notice 'connected'; end $$");
    let servers = OneServer { gateway: Gateway::start(config), database };
    let mut clients: Vec<_> = (0..3).map(|_| servers.client()).collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            if round == 0 {
                client.run(&format!("set application_name to 'client {number}'"));
            }
            let answer = client.query("select 1");
            assert_eq!(tags(&answer), "TDCZ");
            let name = client.one("show application_name");
            assert_eq!(name, format!("client {number}"));
        }
    }
    let all: Vec<_> = clients.iter().flat_map(|client| client.notices.clone()).collect();
    assert_eq!(all, []);
    // A client's own notices do come.
    clients[0].run("do $$ begin raise notice 'own'; end $$");
    assert_eq!(clients[0].notices.len(), 1);
    assert_eq!(clients[0].notices[0].message, "own");
}

#[test]
fn settings_undone_by_a_rollback_are_undone_on_the_next_server_too() {
    let mut servers = TwoServers::start();
    let mut client = servers.client();
    servers.only(0);
    client.run("set timezone to 'Asia/Tokyo'");
    client.run("begin; set timezone to 'Europe/Paris'; set datestyle to 'German'");
    client.run("savepoint s; set application_name to 'undone'; rollback to s");
    client.run("rollback");
    client.run("begin; set application_name to 'kept'; savepoint s; set timezone to 'Asia/Aden'");
    client.run("rollback to s; commit");
    client.run("begin; set local timezone to 'Europe/Rome'; commit");
    for server in [0, 1] {
        servers.only(server);
        for (name, value) in
            [("timezone", "Asia/Tokyo"), ("application_name", "kept"), ("datestyle", "ISO, MDY")]
        {
            assert_eq!(client.one(&format!("show {name}")), value, "server {server}");
        }
    }
}

#[test]
fn start_up_parameters_of_many_clients_are_kept_over_one_server() {
    let servers = OneServer::start();
    let zones = ["Asia/Tokyo", "Europe/Paris", "America/Lima", "UTC"];
    let address = servers.gateway.address();
    let mut clients: Vec<WireClient> = (0..12)
        .map(|number| {
            let zone = zones[number % zones.len()];
            let name = format!("client {number}");
            let options = format!("-c search_path=schema_{number},public -c work_mem=9{number}kB");
            let parameters = [
                ("user", APP),
                ("database", &servers.database.name),
                ("TimeZone", zone),
                ("application_name", &name),
                ("options", options.as_str()),
                ("DateStyle", "ISO"),
                ("extra_float_digits", "2"),
                ("client_encoding", "utf-8"),
            ];
            let client = WireClient::login_with(&address, APP_PASSWORD, &parameters);
            assert_eq!(client.parameters["TimeZone"], zone);
            assert_eq!(client.parameters["application_name"], name);
            client
        })
        .collect();
    let expected = servers.pid();
    for _ in 0..2 {
        for (number, client) in clients.iter_mut().enumerate() {
            let zone = zones[number % zones.len()];
            assert_eq!(client.one("show timezone"), zone);
            assert_eq!(client.one("show application_name"), format!("client {number}"));
            assert_eq!(client.one("show search_path"), format!("schema_{number},public"));
            assert_eq!(client.one("show work_mem"), format!("9{number}kB"));
            assert_eq!(client.one("show extra_float_digits"), "2");
            assert_eq!(client.one("show client_encoding"), "UTF8");
            assert_eq!(client.one("select pg_backend_pid()"), expected);
        }
    }
}

#[test]
fn an_encoding_is_reported_as_the_server_reports_it_however_it_is_spelled() {
    let servers = OneServer::start();
    let spellings = ["'utf-8'", "Unicode", "iso-8859-1", "Shift_JIS", "windows-1252", "sql_ascii"];
    for spelling in spellings {
        let parameters = [
            ("user", APP),
            ("database", servers.database.name.as_str()),
            ("client_encoding", spelling),
        ];
        let mut client =
            WireClient::login_with(&servers.gateway.address(), APP_PASSWORD, &parameters);
        let reported = client.parameters["client_encoding"].clone();
        assert_eq!(client.one("show client_encoding"), reported, "{spelling}");
    }
}

#[test]
fn a_start_up_parameter_that_the_server_refuses_is_told_to_its_client_only() {
    let servers = OneServer::start();
    let address = servers.gateway.address();
    let mut good = servers.client();
    for (name, value) in [("TimeZone", "Nowhere/At all"), ("no_such_parameter", "1")] {
        let parameters = [("user", APP), ("database", &servers.database.name), (name, value)];
        let mut client = WireClient::connect(&address);
        client.put(|out| wire::pg::startup::put_startup(out, 0, &parameters));
        let refused = client.authenticate(APP, APP_PASSWORD).err().unwrap_or_else(|| {
            Batch::new().query("select 1").to(&mut client);
            let last = client.until_closed();
            last.iter().find(|message| message.tag == tag::ERROR).expect("an error").complaint()
        });
        assert_eq!(refused.severity, "FATAL");
        assert!(["22023", "42704"].contains(&refused.code.as_str()), "{refused:?}");
        assert_eq!(good.one("show timezone"), "UTC");
    }
}

/// What the client is called in pg_stat_activity while it asks.
#[track_caller]
fn called(client: &mut WireClient) -> String {
    client.one("select application_name from pg_stat_activity where pid = pg_backend_pid()")
}

#[test]
fn clients_have_their_addresses_in_their_names_where_that_is_wanted() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("listen.postgres", ["127.0.0.1:{port}", "unix:{directory}"])
        .set("pool.pool_size", 1)
        .set("pool.application_name_add_host", true);
    let gateway = Gateway::start(config.clone());
    let client = |address: &Address, more: &[(&str, &str)]| {
        let mut parameters = vec![("user", APP), ("database", database.name.as_str())];
        parameters.extend(more);
        WireClient::try_login(address, APP_PASSWORD, &parameters).expect("logged in")
    };
    let mut web = client(&gateway.address(), &[("application_name", "web")]);
    let mut nameless = client(&gateway.address(), &[]);
    let unix = Address::unix(gateway.directory.path(), gateway.port);
    let mut local = client(&unix, &[("application_name", "cron")]);
    let shown = gateway.show("clients");
    let expected = |name: &str| {
        let ours = shown.iter().find(|row| row["application_name"].starts_with(name));
        let ours = ours.unwrap_or_else(|| panic!("no {name} in {shown:?}"));
        format!("{name} - {}:{}", ours["addr"], ours["port"])
    };
    let (web_name, app_name) = (expected("web"), expected("app"));
    assert!(web_name.starts_with("web - 127.0.0.1:"), "{web_name}");
    assert_eq!(web.parameters["application_name"], web_name);
    // One server for all three, in whichever order.
    for _ in 0..3 {
        assert_eq!(called(&mut web), web_name);
        assert_eq!(called(&mut nameless), app_name);
        assert_eq!(called(&mut local), format!("cron - unix:{}", gateway.port));
    }
    web.run("begin");
    assert_eq!(called(&mut web), web_name);
    web.run("commit");

    // What a client says later is its own affair, as with PgBouncer.
    web.run("set application_name = 'mine'");
    assert_eq!(called(&mut nameless), app_name);
    assert_eq!(called(&mut web), "mine");

    // PostgreSQL shows 63 bytes: the address is among them.
    let long = "n".repeat(63);
    let mut long = client(&gateway.address(), &[("application_name", &long)]);
    let name = called(&mut long);
    assert!(name.len() == 63 && name.contains("nnn - 127.0.0.1:"), "{name}");
    for client in [web, nameless, local, long] {
        client.terminate();
    }

    // RELOAD switches it for those who come.
    gateway.rewrite(config.set("pool.application_name_add_host", false));
    gateway.console().run("reload");
    let mut web = client(&gateway.address(), &[("application_name", "web")]);
    assert_eq!(called(&mut web), "web");
}

#[test]
fn a_clients_address_is_in_its_name_in_session_mode_too() {
    let database = cluster().database();
    let config = Config::of(&database)
        .set("pool.mode", "session")
        .set("pool.application_name_add_host", true)
        .set(&format!("databases.{}.application_name", database.name), "pooled");
    let gateway = Gateway::start(config);
    let mut first = gateway.client(&database);
    let name = called(&mut first);
    assert!(name.starts_with("pooled - 127.0.0.1:"), "{name}");
    let mut second = gateway.client(&database);
    assert_ne!(called(&mut second), name);
    assert_eq!(called(&mut first), name);
}
