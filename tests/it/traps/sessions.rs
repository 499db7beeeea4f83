//! Trap 16: what a client has set is its own, on every server, and nobody else's; whether it was
//! reported, rolled back, or done by a function.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use wire::pg::backend::tag;

use super::batch::Batch;
use super::servers::{direct, OneServer, TwoServers};
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::wireclient::Message;
use crate::kit::{Database, WireClient};

/// Functions that set, one of them by the name of a setting that no client ever says.
const FUNCTIONS: &str = "
    create function set_it(name text, value text) returns text language plpgsql
        as 'begin return set_config(name, value, false); end';
    create function hide(value text) returns text language sql
        as $$ select set_it('app.hidden', value) $$;
    create function dynamic(value text) returns text language plpgsql
        as $$ begin execute format('set work_mem to %L', value); return value; end $$;
    create function fails(value text) returns text language plpgsql
        as $$ begin perform set_config('app.user_id', value, false); return 1 / 0; end $$;
    create function undoes(value text) returns text language plpgsql as $$ begin
        begin perform set_config('app.user_id', value, false); raise 'no'; exception when others then null; end;
        return value; end $$;
    create function innocent(value text) returns text language sql as 'select upper(value)';";

fn prepare(database: &Database, role: &str) {
    database.run(FUNCTIONS);
    database.run(&format!("create role \"{role}\"; grant \"{role}\" to \"{APP}\""));
}

#[test]
fn trap_16_settings_that_are_not_reported_go_with_their_client() {
    let mut servers = TwoServers::start();
    let role = format!("role of {}", servers.database.name);
    prepare(&servers.database, &role);
    let (mut client, mut other) = (servers.client(), servers.client());
    let names = ["search_path", "work_mem", "statement_timeout", "app.user_id", "role"];
    servers.only(0);
    other.run("set app.user_id to '0'");
    let before: Vec<String> = names.map(|name| other.one(&format!("show {name}"))).into();
    client.run("set search_path to a, \"B c\"; set work_mem to '7MB'");
    client.run("set statement_timeout to '50s'");
    client.extended("select set_config($1, $2, false)", &[Some(b"app.user_id"), Some(b"it's")]);
    client.run(&format!("set role \"{role}\""));
    let after = ["a, \"B c\"", "7MB", "50s", "it's", role.as_str()];
    for server in [1, 0, 1] {
        servers.only(server);
        for (at, name) in names.iter().enumerate() {
            let show = format!("show {name}");
            assert_eq!(client.one(&show), after[at], "{name} on server {server}");
            assert_eq!(other.one(&show), before[at], "{name} of the other on server {server}");
        }
    }
    client.run("reset role; reset search_path");
    client.run("begin; reset work_mem; rollback");
    assert_eq!(client.one("show work_mem"), after[1]);
    client.run("discard all");
    for server in [0, 1] {
        servers.only(server);
        assert_eq!(client.one("select current_user"), APP);
        assert_eq!(client.one("show search_path"), before[0]);
        assert_eq!(client.one("show work_mem"), before[1]);
    }
}

/// Clients' pools clean a session so, between two of their own users.
#[test]
fn trap_16_reset_goes_back_to_what_a_client_has_come_with() {
    let mut servers = TwoServers::start();
    let parameters = [
        ("user", APP),
        ("database", &servers.database.name),
        ("datestyle", "German"),
        ("options", "-c work_mem=7MB -c search_path=mine"),
    ];
    let mut client = WireClient::login_with(&servers.gateway.address(), APP_PASSWORD, &parameters);
    let mut other = servers.client();
    let names = ["DateStyle", "work_mem", "search_path"];
    servers.only(0);
    let others: Vec<String> = names.map(|name| other.one(&format!("show {name}"))).into();
    for reset in [
        "reset all",
        "discard all",
        "reset datestyle; reset work_mem; reset search_path",
        "set datestyle to default; set work_mem to default; set search_path to default",
        "begin; reset all; commit",
    ] {
        client.run("set datestyle to 'SQL'; set work_mem to '9MB'; set search_path to yours");
        assert_eq!(client.one("show datestyle"), "SQL, DMY");
        let told = client.query(reset);
        for server in [1, 0] {
            servers.only(server);
            let mine: Vec<String> = names.map(|name| client.one(&format!("show {name}"))).into();
            assert_eq!(mine, ["German, DMY", "7MB", "mine"], "{reset} on server {server}");
            let theirs: Vec<String> = names.map(|name| other.one(&format!("show {name}"))).into();
            assert_eq!(theirs, others, "{reset} on server {server}");
        }
        assert!(told.iter().all(|message| message.tag != tag::ERROR), "{reset}");
    }
    // What is undone was not reset, and what was set since is not gone back from.
    client.run("set datestyle to 'SQL'");
    client.run("begin; reset all; rollback");
    assert_eq!(client.one("show datestyle"), "SQL, DMY");
    client.run("reset work_mem");
    assert_eq!(client.one("show datestyle"), "SQL, DMY");
    let told = client.query("reset datestyle");
    let more = client.query("show datestyle");
    let row = more.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
    assert_eq!(row.values(), [Some("German, DMY".to_owned())]);
    // Drivers read dates by what they are told last.
    let mut statuses = told.iter().chain(&more).filter(|it| it.tag == tag::PARAMETER_STATUS);
    assert_eq!(statuses.next_back().map(|it| &it.body[..]), Some(&b"DateStyle\0German, DMY\0"[..]));
}

#[test]
fn who_goes_at_once_leaves_nothing_behind() {
    let servers = OneServer::start();
    let role = format!("role of {}", servers.database.name);
    prepare(&servers.database, &role);
    for text in [
        format!("set role \"{role}\""),
        "begin; set app.user_id to '7'; select 1".to_owned(),
        "set search_path to a".to_owned(),
    ] {
        let mut client = servers.client();
        Batch::new().query(&text).to(&mut client);
        client.terminate();
        let mut other = servers.client();
        let seen = other.one(
            "select current_user || ' ' || coalesce(current_setting('app.user_id', true), '') || \
             current_setting('search_path')",
        );
        assert_eq!(seen, format!("{APP} \"$user\", public"), "{text}");
    }
}

/// What a client and the one that it is compared with have, and what they are answered.
const LOOK: &str = "select current_user, session_user, \
    current_setting('search_path'), current_setting('work_mem'), current_setting('timezone'), \
    current_setting('statement_timeout'), current_setting('default_transaction_read_only'), \
    coalesce(current_setting('app.user_id', true), ''), \
    coalesce(current_setting('app.hidden', true), ''), \
    coalesce(current_setting('my.own.name', true), '')";

struct Pair {
    through: WireClient,
    direct: WireClient,
    open: bool,
    failed: bool,
}

impl Pair {
    fn both(&mut self, text: &str, values: &[Option<&[u8]>], extended: bool) -> [Vec<Message>; 2] {
        [&mut self.through, &mut self.direct].map(|client| match extended {
            true => client.extended(text, values),
            false => client.query(text),
        })
    }

    fn step(&mut self, random: &mut StdRng, role: &str, what: &str) {
        let (text, values) = statement(random, role, self.open);
        let values: Vec<Option<&[u8]>> =
            values.iter().map(|value| Some(value.as_bytes())).collect();
        // Only texts without several statements may be extended.
        let extended = !values.is_empty() || random.random_bool(0.4) && !text.contains(';');
        let answers = self.both(&text, &values, extended);
        let [through, direct] = answers.map(|messages| told(&messages));
        assert_eq!(through, direct, "{what}: {text}");
        let status = direct.last().expect("a ReadyForQuery").clone();
        self.open = status != "Z I";
        self.failed = status == "Z E";
        if !self.failed {
            let extended = random.random_bool(0.5);
            let [through, direct] = self.both(LOOK, &[], extended).map(|messages| told(&messages));
            assert_eq!(through, direct, "{what}: after {text}");
        }
    }
}

/// Rows, tags, codes of errors and the state of the transaction.
pub fn told(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| match message.tag {
        tag::DATA_ROW => Some(format!("{:?}", message.values())),
        tag::COMMAND_COMPLETE => Some(message.command_tag()),
        tag::ERROR => Some(message.complaint().code),
        tag::READY_FOR_QUERY => Some(format!("Z {}", char::from(message.body[0]))),
        _ => None,
    };
    messages.iter().filter_map(one).collect()
}

fn statement(random: &mut StdRng, role: &str, open: bool) -> (String, Vec<String>) {
    let custom = ["app.user_id", "my.own.name", "App.User_Id"];
    let (name, value) = match random.random_range(0..8) {
        0 => ("work_mem", format!("{}MB", random.random_range(1..9))),
        1 => ("search_path", format!("s{}", random.random_range(0..9))),
        2 => ("statement_timeout", format!("{}s", random.random_range(20..90))),
        3 => ("timezone", ["Asia/Tokyo", "UTC", "no zone"][random.random_range(0..3)].to_owned()),
        4 => ("work_mem", "much".to_owned()),
        _ => (custom[random.random_range(0..3)], format!("it''s {}", random.random_range(0..9))),
    };
    let plain = |text: String| (text, Vec::new());
    let parameters = |text: &str| (text.to_owned(), vec![name.to_owned(), value.clone()]);
    let savepoint = ["a", "b"][random.random_range(0..2)];
    match random.random_range(0..30) {
        0..=2 => plain(format!("set {name} to '{value}'")),
        3 => plain(format!("SET SESSION {name} = '{value}'")),
        4 => plain(format!("set local {name} = '{value}'")),
        5 => plain(format!("reset {name}")),
        6 => plain(format!("select set_config('{name}', '{value}', false)")),
        7 => plain(format!("select pg_catalog.set_config('{name}', '{value}', true)")),
        8 => parameters("select set_config($1, $2, false)"),
        9 => parameters("select set_it($1, $2)"),
        10 => plain(format!("select hide('{}')", random.random_range(0..99))),
        11 => plain(format!("select dynamic('{}MB')", random.random_range(1..9))),
        12 => plain("select fails('x')".into()),
        13 => plain("select undoes('x'), innocent('y')".into()),
        14 => plain(format!("set role \"{role}\"")),
        15 => plain("reset role".into()),
        16 => plain(format!("set local role \"{role}\"")),
        17 => plain("set session characteristics as transaction read only".into()),
        18 => plain("reset all".into()),
        19 => plain(format!("do $$ begin perform set_config('{name}', '{value}', false); end $$")),
        20 => plain(format!("set {name} to '{value}'; select 1")),
        21 | 22 if open => plain(format!("savepoint {savepoint}")),
        23 if open => plain(format!("rollback to {savepoint}")),
        24 if open => plain(format!("release {savepoint}")),
        25 | 26 if open => plain("commit".into()),
        27 | 28 if open => plain("rollback".into()),
        21..=25 => plain("begin".into()),
        26 => plain("set session authorization default".into()),
        27 => plain("set time zone 'Europe/Rome'".into()),
        _ if open => plain("select 1 / 0".into()),
        _ => plain("reset default_transaction_read_only".into()),
    }
}

#[test]
fn trap_16_random_programs_see_the_settings_that_they_would_see_alone() {
    for size in [1, 2] {
        let servers = OneServer::start_with(|config| config.set("pool.pool_size", size));
        let role = format!("role of {}", servers.database.name);
        prepare(&servers.database, &role);
        let seed: u64 = rand::random();
        println!("pool of {size}, seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut pairs: Vec<Pair> = (0..3)
            .map(|_| Pair {
                through: servers.client(),
                direct: direct(&servers.database),
                open: false,
                failed: false,
            })
            .collect();
        for step in 0..400 {
            let open: Vec<usize> = (0..pairs.len()).filter(|at| pairs[*at].open).collect();
            let at = match open.len() < size as usize {
                true => random.random_range(0..pairs.len()),
                false => open[random.random_range(0..open.len())],
            };
            let what = format!("seed {seed}, pool of {size}, step {step}, client {at}");
            pairs[at].step(&mut random, &role, &what);
        }
    }
}
