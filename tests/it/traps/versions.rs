//! Protocol 3.2 on both sides: cancel keys of more than 4 bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use wire::pg::startup::{self, FirstPacket};
use wire::pg::{backend, frontend};

use super::batch::Batch;
use super::statements::error_code;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::gateway::{ADMIN, ADMIN_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::{cluster, wait, Config, Database, Gateway, WireClient};

/// A client that asks for protocol 3.`minor`.
#[track_caller]
fn client(gateway: &Gateway, database: &Database, minor: u16) -> WireClient {
    let mut client = WireClient::connect(&gateway.address());
    let parameters = [("user", APP), ("database", database.name.as_str())];
    client.put(|out| startup::put_startup(out, minor, &parameters));
    client.authenticate(APP, APP_PASSWORD).expect("logged in");
    client
}

#[test]
fn keys_are_as_long_as_the_protocol_has_them() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    for (minor, negotiations, bytes) in [(0, 0, 4), (1, 0, 4), (2, 0, 32), (9999, 1, 32)] {
        let client = client(&gateway, &database, minor);
        let (_, key) = client.key.as_ref().expect("BackendKeyData");
        assert_eq!((client.negotiations, key.len()), (negotiations, bytes), "3.{minor}");
    }
    // The console's clients have them, too.
    let mut console = WireClient::connect(&gateway.address());
    let parameters = [("user", ADMIN), ("database", "pondage")];
    console.put(|out| startup::put_startup(out, 2, &parameters));
    console.authenticate(ADMIN, ADMIN_PASSWORD).expect("logged in");
    assert_eq!(console.key.as_ref().map(|(_, key)| key.len()), Some(32));
}

#[test]
fn a_long_key_cancels_its_client_and_no_part_of_it_does() {
    for workers in [1, 3_i64] {
        let database = cluster().database();
        let config = Config::of(&database).set("runtime.workers", workers);
        let gateway = Gateway::start(config);
        let mut sleeper = client(&gateway, &database, 2);
        let others = [client(&gateway, &database, 2), client(&gateway, &database, 0)];
        let pid = sleeper.one("begin; select pg_backend_pid()");
        let (number, key) = sleeper.key.clone().expect("BackendKeyData");
        Batch::new().query("select pg_sleep(600)").to(&mut sleeper);
        let sleeps =
            format!("select wait_event = 'PgSleep' from pg_stat_activity where pid = {pid}");
        wait::until("the sleep", || database.one(&sleeps) == "t");
        let mut bent = key.clone();
        bent[31] ^= 1;
        let mut wrong =
            vec![bent, key[..4].to_vec(), key[..31].to_vec(), [&key[..], &[0]].concat()];
        wrong.push(vec![0; 256]);
        wrong.extend(others.iter().filter_map(|other| Some(other.key.as_ref()?.1.clone())));
        for wrong in wrong {
            let mut asker = WireClient::connect(&gateway.address());
            asker.put(|out| startup::put_cancel(out, number, &wrong));
            assert_eq!(asker.until_closed(), [], "{wrong:?}");
        }
        assert_eq!(database.one(&sleeps), "t", "nobody has cancelled it");
        sleeper.cancel(&gateway.address());
        assert_eq!(error_code(&sleeper.until_ready()), "57014");
    }
}

/// What a server said of a connection: the minor version it was asked for, or a cancel request.
#[derive(Debug, PartialEq)]
enum Heard {
    Minor(u16),
    Cancel(u32, Vec<u8>),
}

/// A server that speaks 3.`spoken` with keys of 256 bytes, and answers no query before it has been
/// asked to cancel.
fn server(spoken: u16, heard: mpsc::Sender<Heard>) -> u16 {
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    std::thread::spawn(move || {
        let mut session: Option<TcpStream> = None;
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut packet = vec![0; 4];
            stream.read_exact(&mut packet).expect("a length");
            packet.resize(u32::from_be_bytes([0, 0, packet[2], packet[3]]) as usize, 0);
            stream.read_exact(&mut packet[4..]).expect("a packet");
            let first = startup::first_packet(&packet).expect("right").expect("whole").0;
            let mut said = Vec::new();
            match first {
                FirstPacket::Startup(asked) => {
                    heard.send(Heard::Minor(asked.minor)).expect("the test listens");
                    if asked.minor > spoken {
                        backend::put_negotiate(&mut said, spoken.into(), &[]);
                    }
                    backend::put_auth_ok(&mut said);
                    backend::put_parameter_status(&mut said, "server_version", "18.0");
                    let length = if asked.minor.min(spoken) < 2 { 4 } else { 256 };
                    backend::put_backend_key(&mut said, 77, &vec![9; length]);
                    backend::put_ready(&mut said, backend::TxStatus::Idle);
                    stream.write_all(&said).expect("the gateway reads");
                    session = Some(stream);
                }
                FirstPacket::Cancel { pid, key } => {
                    heard.send(Heard::Cancel(pid, key.to_vec())).expect("the test listens");
                    drop(stream);
                    let error = backend::ErrorReply {
                        severity: "ERROR",
                        code: "57014",
                        message: "canceling statement due to user request",
                        detail: None,
                        hint: None,
                    };
                    backend::put_error(&mut said, &error);
                    backend::put_ready(&mut said, backend::TxStatus::Idle);
                    let mut session = session.as_ref().expect("a session");
                    session.write_all(&said).expect("the gateway reads");
                }
                other => panic!("{other:?}"),
            }
        }
    });
    port
}

#[test]
fn servers_are_asked_for_3_2_where_the_option_says_so_and_get_their_long_keys_back() {
    // What the option says, what the server speaks; what it is asked for, the key it gives.
    let cases = [(None, 2, 0, 4), (Some("3.0"), 2, 0, 4), (Some("3.2"), 2, 2, 256)];
    let cases = cases.into_iter().chain([(Some("latest"), 2, 2, 256), (Some("3.2"), 0, 2, 4)]);
    for (option, spoken, asked, length) in cases {
        let (sender, heard) = mpsc::channel();
        let port = server(spoken, sender);
        let mut config = Config::of(&cluster().database())
            .set("databases.fake.host", "127.0.0.1")
            .set("databases.fake.port", i64::from(port))
            .set("databases.fake.tls_mode", "disable");
        if let Some(option) = option {
            config = config.set("databases.fake.max_protocol_version", option);
        }
        let gateway = Gateway::start(config.set("pool.mode", "session"));
        let mut client = WireClient::login(&gateway.address(), APP, APP_PASSWORD, "fake");
        client.put(|out| frontend::put_query(out, "select pg_sleep(600)"));
        let deadline = Duration::from_secs(60);
        assert_eq!(heard.recv_timeout(deadline), Ok(Heard::Minor(asked)), "{option:?}");
        client.expect_silence(Duration::from_millis(200));
        client.cancel(&gateway.address());
        let request = heard.recv_timeout(deadline);
        assert_eq!(request, Ok(Heard::Cancel(77, vec![9; length])), "{option:?}");
        assert_eq!(error_code(&client.until_ready()), "57014");
    }
}
