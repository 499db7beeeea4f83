//! Traps 18 to 21: huge rows, both sides writing, encryption requests, garbage.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use wire::pg::backend::{self, tag};
use wire::pg::{header, startup, HEADER_BYTES};

use super::batch::{tags, Batch};
use super::servers::OneServer;
use crate::kit::cluster::{APP, APP_PASSWORD};
use crate::kit::place::free_port;
use crate::kit::wireclient::{Complaint, Message};
use crate::kit::{cluster, Config, Database, Gateway, WireClient};

/// Resident memory of the gateway, in bytes.
fn resident(gateway: &Gateway) -> usize {
    let path = format!("/proc/{}/status", gateway.pid());
    let status = std::fs::read_to_string(&path).expect("the gateway runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kilobytes = line.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}

/// PostgreSQL needs about three times a value's size to make and send it.
fn megabytes_of_a_row_for_this_machine() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").expect("/proc/meminfo");
    let line = info.lines().find(|line| line.starts_with("MemAvailable:")).expect("MemAvailable");
    let kilobytes: usize =
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
    // PostgreSQL's own limit is a little under 1 GB.
    (kilobytes / 1024 / 5).clamp(256, 1000)
}

#[test]
fn trap_18_a_row_of_1_gb_to_a_slow_client_costs_less_than_1_mb() {
    const GROWTH_MAX: usize = 1 << 20;
    let servers = OneServer::start();
    let mut client = servers.client();
    // Everything that a query needs has been used once.
    client.run("select repeat('x', 3000000)");
    let base = resident(&servers.gateway);
    let bytes = megabytes_of_a_row_for_this_machine() * 1_000_000;
    let sql = format!("select repeat('x', {bytes}), 'end'");
    Batch::new().query(&sql).to(&mut client);
    client.expect(tag::ROW_DESCRIPTION);

    const END: &[u8] = b"Z\0\0\0\x05I";
    let (mut peak, mut total) = (0, 0);
    let mut tail = Vec::new();
    let mut chunk = vec![0; 1 << 20];
    while !tail.ends_with(END) {
        let read = client.read_raw(&mut chunk);
        assert!(read > 0, "closed after {total} of {bytes} bytes");
        total += read;
        tail.extend_from_slice(&chunk[read.saturating_sub(END.len())..read]);
        tail.drain(..tail.len().saturating_sub(END.len()));
        peak = peak.max(resident(&servers.gateway));
        if total < 64 << 20 {
            // A slow reader: whatever the gateway would gather, it could gather now.
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert!(total > bytes, "{total} bytes came of {bytes}");
    let growth = peak.saturating_sub(base);
    assert!(growth < GROWTH_MAX, "{growth} bytes more than {base} for a row of {bytes}");
    assert_eq!(client.one("select 'alive'"), "alive");
}

#[test]
fn trap_18_a_message_of_many_megabytes_to_a_slow_server_costs_less_than_1_mb() {
    const GROWTH_MAX: usize = 1 << 20;
    let servers = OneServer::start();
    servers.database.run("create table t(a text); grant all on t to app");
    let mut client = servers.client();
    client.run(&format!("select length('{}')", "x".repeat(1_000_000)));
    let base = resident(&servers.gateway);
    let big = "y".repeat(200_000_000);
    let mut peak = 0;
    for batch in [
        Batch::new().query(&format!("select length('{big}')")),
        Batch::new().parse("", "select length($1)").bind("", &[&big]).execute().sync(),
    ] {
        for part in batch.0.chunks(1 << 20) {
            client.send(part);
            peak = peak.max(resident(&servers.gateway));
        }
        let answer = client.until_ready();
        let row = answer.iter().find(|message| message.tag == tag::DATA_ROW).expect("a row");
        assert_eq!(row.values(), [Some(big.len().to_string())]);
    }
    let growth = peak.saturating_sub(base);
    assert!(growth < GROWTH_MAX, "{growth} bytes more than {base}");
}

#[test]
fn trap_18_both_sides_writing_at_once_never_deadlock() {
    const ROUNDS: usize = 60;
    let servers = OneServer::start();
    let mut client = servers.client();
    let value = "z".repeat(1_000_000);
    let prepared = Batch::new().parse("s", "select $1::text || 'end'").sync();
    assert_eq!(tags(&prepared.answer(&mut client)), "1Z");
    // One thread only writes, the other only reads: megabytes are under way in both directions.
    let mut writer = client.sender();
    let batch = Batch::new().bind("s", &[&value]).execute().sync();
    let writing = std::thread::spawn(move || {
        (0..ROUNDS).for_each(|_| writer.send(&batch.0));
    });
    for _ in 0..ROUNDS {
        let answer = client.until_ready();
        assert_eq!(tags(&answer), "2DCZ");
        assert_eq!(answer[1].body.len(), value.len() + 3 + 6);
    }
    writing.join().expect("the writer");
    // A client that writes it all before it reads is held back, and harms nobody else.
    let mut other = servers.gateway.client(&servers.database);
    let small = Batch::new().bind("s", &["small"]).execute().sync();
    (0..2000).for_each(|_| small.to(&mut client));
    for _ in 0..2000 {
        assert_eq!(tags(&client.until_ready()), "2DCZ");
    }
    assert_eq!(other.one("select 'alive'"), "alive");
}

#[test]
fn trap_18_a_client_that_reads_nothing_stalls_nobody_else() {
    let database = cluster().database();
    let gateway = Gateway::start(Config::of(&database).set("pool.pool_size", 2));
    let mut stalled = gateway.client(&database);
    let mut other = gateway.client(&database);
    other.run("select 1");
    Batch::new().query("select repeat('x', 100000000)").to(&mut stalled);
    stalled.expect(tag::ROW_DESCRIPTION);
    for _ in 0..50 {
        assert_eq!(other.one("select 'alive'"), "alive");
    }
    assert_eq!(tags(&stalled.until_ready()), "DCZ");
}

/// Sends bytes to a door and returns what came back up to its end.
#[track_caller]
fn said_to(gateway: &Gateway, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", gateway.port)).expect("the door");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut said = Vec::new();
    // A reset is an end too: the gateway need not read what it has refused.
    if let Err(error) = stream.read_to_end(&mut said) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    said
}

/// The error that a door said first, if that is what it said.
fn refusal(said: &[u8]) -> Option<Complaint> {
    let head = header(said).ok().flatten().filter(|head| head.tag == tag::ERROR)?;
    let body = said.get(HEADER_BYTES..head.total)?.to_vec();
    Some(Message { tag: head.tag, body }.complaint())
}

/// With a certificate, so that TLS is offered.
fn with_tls(database: &Database) -> Gateway {
    let certificates = &cluster().certificates;
    let config = Config::of(database)
        .set("listen.tls.cert", certificates.cert.display().to_string())
        .set("listen.tls.key", certificates.key.display().to_string());
    Gateway::start(config)
}

#[test]
fn trap_19_bytes_after_an_encryption_request_are_fatal() {
    let database = cluster().database();
    let tls = with_tls(&database);
    let plain = Gateway::of(&database);
    let mut startup_packet = Vec::new();
    let parameters = [("user", APP), ("database", database.name.as_str())];
    startup::put_startup(&mut startup_packet, 0, &parameters);
    let requests: [fn(&mut Vec<u8>); 2] = [startup::put_ssl_request, startup::put_gssenc_request];
    for gateway in [&tls, &plain] {
        for request in requests {
            for injected in [&startup_packet[..], b"\x16\x03\x01", b"Q"] {
                let mut bytes = Vec::new();
                request(&mut bytes);
                bytes.extend(injected);
                let said = said_to(gateway, &bytes);
                let refused = refusal(&said).unwrap_or_else(|| panic!("{said:?}"));
                assert_eq!((refused.severity.as_str(), refused.code.as_str()), ("FATAL", "08P01"));
            }
        }
        assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
    }
}

#[test]
fn trap_19_bytes_after_the_servers_answer_to_ssl_request_are_fatal() {
    // A server that says `S` and, in clear text, more: as a man in the middle would.
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the gateway connects");
        let mut request = [0; 8];
        stream.read_exact(&mut request).expect("SSLRequest");
        let mut said = b"S".to_vec();
        backend::put_auth_ok(&mut said);
        backend::put_ready(&mut said, backend::TxStatus::Idle);
        stream.write_all(&said).expect("the gateway reads");
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    let config = Config::of(&cluster().database())
        .set("databases.fake.host", "127.0.0.1")
        .set("databases.fake.port", i64::from(port))
        .set("databases.fake.tls_mode", "require")
        .set("pool.wait_timeout", "3s");
    let gateway = Gateway::start(config);
    let parameters = [("user", APP), ("database", "fake")];
    let refused = WireClient::try_login(&gateway.address(), APP_PASSWORD, &parameters).err();
    let refused = refused.expect("no log-in through an injected answer");
    assert!(refused.message.contains("fake") || refused.detail.contains("TLS"), "{refused:?}");
    let sent = server.join().expect("the server");
    assert!(!sent.windows(4).any(|word| word == b"user"), "no start-up packet in clear text");
}

#[test]
fn trap_20_gssenc_then_ssl_then_startup_works() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let mut client = WireClient::connect(&gateway.address());
    client.put(startup::put_gssenc_request);
    assert_eq!(client.byte(), b'N');
    client.put(startup::put_ssl_request);
    assert_eq!(client.byte(), b'N');
    let parameters = [("user", APP), ("database", database.name.as_str())];
    client.put(|out| startup::put_startup(out, 0, &parameters));
    client.authenticate(APP, APP_PASSWORD).expect("logged in");
    assert_eq!(client.one("select 'alive'"), "alive");
    // The other way round as well.
    let mut client = WireClient::connect(&gateway.address());
    client.put(startup::put_ssl_request);
    assert_eq!(client.byte(), b'N');
    client.put(startup::put_gssenc_request);
    assert_eq!(client.byte(), b'N');
    client.put(|out| startup::put_startup(out, 0, &parameters));
    client.authenticate(APP, APP_PASSWORD).expect("logged in");
    // Where TLS is offered, GSSAPI still is not.
    let tls = with_tls(&database);
    let mut client = WireClient::connect(&tls.address());
    client.put(startup::put_gssenc_request);
    assert_eq!(client.byte(), b'N');
    client.put(startup::put_ssl_request);
    assert_eq!(client.byte(), b'S');
}

#[test]
fn trap_20_newer_protocols_and_options_get_exactly_one_negotiation() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    let known = [("user", APP), ("database", database.name.as_str())];
    let option = [known[0], known[1], ("_pq_.compression", "zstd")];
    let options = [known[0], ("_pq_.a", "1"), known[1], ("_pq_.b", "2")];
    /// Minor version and parameters sent; version and options named back, if anything is.
    type Case<'a> = (u16, &'a [(&'a str, &'a str)], Option<(u32, &'a [&'a str])>);
    let cases: [Case<'_>; 8] = [
        (0, &known, None),
        (1, &known, None),
        (2, &known, None),
        (3, &known, Some((2, &[]))),
        (9999, &known, Some((2, &[]))),
        (0, &option, Some((0, &["_pq_.compression"]))),
        (2, &option, Some((2, &["_pq_.compression"]))),
        (9999, &options, Some((2, &["_pq_.a", "_pq_.b"]))),
    ];
    for (minor, parameters, expected) in cases {
        let mut client = WireClient::connect(&gateway.address());
        client.put(|out| startup::put_startup(out, minor, parameters));
        if let Some(expected) = expected {
            let first = client.message();
            assert_eq!(first.tag, tag::NEGOTIATE, "3.{minor} {parameters:?}");
            let negotiate = backend::negotiate(&first.body).expect("NegotiateProtocolVersion");
            let named = negotiate.options().collect::<Vec<_>>();
            assert_eq!((negotiate.minor, named.as_slice()), expected, "3.{minor}");
        }
        client.authenticate(APP, APP_PASSWORD).expect("logged in");
        assert_eq!(client.negotiations, usize::from(expected.is_some()), "3.{minor}");
        assert_eq!(client.one("select 'alive'"), "alive", "3.{minor}");
    }
    // Another major version is an error.
    let said = said_to(&gateway, &[0, 0, 0, 9, 0, 4, 0, 0, 0]);
    assert_eq!(refusal(&said).expect("an error").severity, "FATAL");
}

#[test]
fn trap_21_lengths_that_lie_are_an_error_and_never_a_crash() {
    let database = cluster().database();
    let gateway = Gateway::of(&database);
    // Start-up packets.
    for length in [i32::MIN, -1, 0, 3, 4, 7, 10_005, 0x4000_0000, i32::MAX] {
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend([0, 3, 0, 0]);
        bytes.extend([b'x'; 32]);
        let said = said_to(&gateway, &bytes);
        if !said.is_empty() {
            assert_eq!(refusal(&said).expect("an error").severity, "FATAL", "length {length}");
        }
    }
    // Messages while logging in, and after it.
    for logged_in in [false, true] {
        for length in [i32::MIN, -1, 0, 3, 0x4000_0000, i32::MAX] {
            for tag in [b'p', b'Q', b'P', b'B', b'd', b'X', 0, 0xff] {
                let mut client = if logged_in {
                    gateway.client(&database)
                } else {
                    let mut client = WireClient::connect(&gateway.address());
                    let parameters = [("user", APP), ("database", database.name.as_str())];
                    client.put(|out| startup::put_startup(out, 0, &parameters));
                    client.expect(tag::AUTHENTICATION);
                    client
                };
                let mut bytes = vec![tag];
                bytes.extend(length.to_be_bytes());
                bytes.extend([0; 16]);
                client.send(&bytes);
                client.finish_sending();
                let last = client.until_closed();
                if let Some(last) = last.last() {
                    assert_eq!(last.complaint().severity, "FATAL", "{tag} of {length} bytes");
                }
            }
        }
    }
    // Lengths inside of messages.
    for body in [
        &b""[..],
        b"\0",
        b"s",
        b"s\0",
        b"s\0select 1\0\xff\xff",
        b"s\0select 1\0\x7f\xff\0\0",
        b"\0\0\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\0\x01\x7f\xff\xff\xff",
    ] {
        for tag in *b"PBDECFQcfdHS" {
            let mut client = gateway.client(&database);
            client.send(&Batch::new().message(tag, body).sync().0);
            client.finish_sending();
            client.until_closed();
        }
    }
    assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
}

#[test]
fn trap_21_an_error_without_sqlstate_reaches_the_client_as_an_error() {
    // It answers everything with an odd error.
    let (gateway, server) = in_front_of_fake(|mut stream| {
        for fields in [&b"Mno code\0\0"[..], b"\0", b"C\0M\0\0", b"Mno end", b""] {
            if !matches!(stream.read(&mut [0; 4096]), Ok(1..)) {
                return;
            }
            let mut said = vec![b'E'];
            said.extend((fields.len() as u32 + 4).to_be_bytes());
            said.extend(fields);
            backend::put_ready(&mut said, backend::TxStatus::Idle);
            if stream.write_all(&said).is_err() {
                return;
            }
        }
    });
    let mut client = WireClient::login(&gateway.address(), APP, APP_PASSWORD, "fake");
    for _ in 0..3 {
        let answer = client.query("select 1");
        assert_eq!(tags(&answer), "EZ");
    }
    // One that is not even well-formed may end the connection, with an error.
    Batch::new().query("select 1").to(&mut client);
    client.expect(tag::ERROR);
    drop(client);
    drop(gateway);
    server.join().expect("the server");
}

#[test]
fn trap_21_a_password_of_64_kb_is_refused() {
    let database = cluster().database();
    for method in ["scram", "md5", "password"] {
        let gateway = Gateway::start(Config::of(&database).set("auth.method", method));
        for length in [65_530, 65_535, 65_536, 70_000, 1_000_000] {
            let mut client = WireClient::connect(&gateway.address());
            let parameters = [("user", APP), ("database", database.name.as_str())];
            client.put(|out| startup::put_startup(out, 0, &parameters));
            client.expect(tag::AUTHENTICATION);
            let mut body = "p".repeat(length).into_bytes();
            body.push(0);
            let _ = client.try_send(&Batch::new().message(b'p', &body).0);
            let last = client.until_closed();
            if let Some(last) = last.last() {
                assert_eq!(last.complaint().severity, "FATAL", "{method}, {length} bytes");
            }
        }
        assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
    }
}

#[test]
fn trap_21_a_start_up_packet_split_at_every_byte_is_understood() {
    let servers = OneServer::start();
    let mut packet = Vec::new();
    let parameters = [("user", APP), ("database", servers.database.name.as_str())];
    startup::put_startup(&mut packet, 0, &parameters);
    for at in 1..packet.len() {
        let mut client = WireClient::connect(&servers.gateway.address());
        client.send_split(&packet, &[at]);
        client.authenticate(APP, APP_PASSWORD).expect("logged in");
        assert_eq!(client.status, b'I');
    }
    let everywhere: Vec<usize> = (1..packet.len()).collect();
    let mut client = WireClient::connect(&servers.gateway.address());
    client.send_split(&packet, &everywhere);
    client.authenticate(APP, APP_PASSWORD).expect("logged in");
    // And so is everything after it.
    let batch = Batch::new().parse("s", "select 'split'").bind("s", &[]).execute().sync();
    let everywhere: Vec<usize> = (1..batch.0.len()).collect();
    client.send_split(&batch.0, &everywhere);
    assert_eq!(tags(&client.until_ready()), "12DCZ");
    // Incomplete ones are only closed.
    for at in 0..packet.len() {
        let said = said_to(&servers.gateway, &packet[..at]);
        assert!(said.is_empty() || refusal(&said).is_some(), "{at}: {said:?}");
    }
}

#[test]
fn trap_21_garbage_on_the_port_is_refused_and_the_gateway_lives() {
    use rand::{Rng, SeedableRng};
    let database = cluster().database();
    let plain = Gateway::of(&database);
    let tls = with_tls(&database);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let mut garbage = vec![
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        // A TLS ClientHello, as far as it matters here.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"\x16\x03\x01\x00\x05hello".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        Vec::new(),
    ];
    for _ in 0..200 {
        let mut bytes = vec![0; random.random_range(1..300)];
        random.fill(&mut bytes[..]);
        garbage.push(bytes);
    }
    for gateway in [&plain, &tls] {
        for bytes in &garbage {
            let said = said_to(gateway, bytes);
            let right = said.is_empty() || refusal(&said).is_some() || said[0] == 0x15;
            assert!(right, "{said:?} was said to {bytes:?}");
        }
        // Garbage of one who has logged in.
        for bytes in garbage.iter().take(60) {
            let mut client = gateway.client(&database);
            let _ = client.try_send(bytes);
            client.finish_sending();
            client.until_closed();
        }
        assert_eq!(gateway.client(&database).one("select 'alive'"), "alive");
    }
}

/// A gateway with the database `fake`, whose server lets one connection in and then does what
/// `then` says.
fn in_front_of_fake(
    then: impl FnOnce(TcpStream) + Send + 'static,
) -> (Gateway, std::thread::JoinHandle<()>) {
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the gateway connects");
        let mut said = Vec::new();
        backend::put_auth_ok(&mut said);
        backend::put_parameter_status(&mut said, "server_version", "15.0");
        backend::put_backend_key(&mut said, 1, &[0; 4]);
        backend::put_ready(&mut said, backend::TxStatus::Idle);
        let _ = stream.read(&mut [0; 4096]).expect("a start-up packet");
        stream.write_all(&said).expect("the gateway reads");
        then(stream);
    });
    let config = Config::of(&cluster().database())
        .set("databases.fake.host", "127.0.0.1")
        .set("databases.fake.port", i64::from(port))
        .set("databases.fake.tls_mode", "disable");
    (Gateway::start(config), server)
}

#[test]
fn trap_14_a_server_that_dies_within_a_row_leaves_the_row_cut() {
    const PART: &[u8] = b"D\0\0\0\x40\0\x01\0\0\0\x36the beginning of a row";
    let (gateway, server) = in_front_of_fake(|mut stream| {
        let _ = stream.read(&mut [0; 4096]).expect("a query");
        stream.write_all(PART).expect("the gateway reads");
    });
    let mut client = WireClient::login(&gateway.address(), APP, APP_PASSWORD, "fake");
    Batch::new().query("select 1").to(&mut client);
    let mut seen = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        match client.read_raw(&mut chunk) {
            0 => break,
            read => seen.extend_from_slice(&chunk[..read]),
        }
    }
    server.join().expect("the server");
    assert_eq!(seen, PART, "an error behind it would be read as the rest of the row");
}

#[test]
fn trap_14_a_client_killed_within_a_row_gets_no_error_inside_it() {
    let servers = OneServer::start();
    let mut client = servers.client();
    let clients = servers.gateway.show("clients");
    let id = &clients.iter().find(|row| row["user"] == APP).expect("the client")["id"];
    Batch::new().query("select repeat('x', 50000000)").to(&mut client);
    client.expect(tag::ROW_DESCRIPTION);
    servers.gateway.console().run(&format!("kill_client {id}"));
    let mut chunk = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        let read = client.read_raw(&mut chunk);
        if read == 0 {
            break;
        }
        let row = chunk[..read].iter().filter(|byte| **byte == b'x').count();
        assert!(read - row <= 11, "{}", chunk[..read].escape_ascii());
        total += read;
    }
    assert!(total < 50_000_000, "it was not killed");
    assert_eq!(servers.client().one("select 'alive'"), "alive");
}
