//! What fuzzing holds the codec to, one function for each target.
//!
//! They run under libFuzzer (`fuzz_targets/`) and, over the committed corpus and its mutations,
//! in `crates/wire/tests/corpus.rs`. Each takes any bytes; it may panic only where the codec
//! breaks a promise: a parser that panics, an answer that changes when bytes arrive one by one,
//! a message that is not the same after parsing and building it again.

use wire::pg::auth::{
    md5_response, Binding, ScramClient, ScramKeys, ScramServer, ScramVerifier, Secret,
    SCRAM_ITERATIONS_MAX,
};
use wire::pg::{backend, frontend, header, pgoutput, replication, startup, HEADER_BYTES};
use wire::proxy;
use wire::resp::{reply, Limits, Parser, ProtocolError};

/// A target: its name, which is its corpus's folder, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("startup", startup),
    ("frontend", frontend),
    ("backend", backend),
    ("scram", scram),
    ("secret", secret),
    ("resp", resp),
    ("replication", replication),
    ("pgoutput", pgoutput),
    ("proxy", proxy),
];

/// `data` is what a client sends before it is logged in.
pub fn startup(data: &[u8]) {
    let Ok(Some((first, consumed))) = startup::first_packet(data) else {
        return;
    };
    for end in 0..consumed {
        assert_eq!(startup::first_packet(&data[..end]), Ok(None), "cut at {end}");
    }
    let mut again = Vec::new();
    match first {
        startup::FirstPacket::Ssl => startup::put_ssl_request(&mut again),
        startup::FirstPacket::GssEnc => startup::put_gssenc_request(&mut again),
        startup::FirstPacket::Cancel { pid, key } => startup::put_cancel(&mut again, pid, key),
        startup::FirstPacket::Startup(packet) => {
            if packet.major != 3 {
                assert_eq!(packet.params().count(), 0);
                return;
            }
            let params: Vec<_> = packet.params().collect();
            for (name, _) in &params {
                let last = params.iter().rev().find(|(n, _)| n == name);
                assert_eq!(packet.get(name), last.map(|(_, value)| *value));
            }
            startup::put_startup(&mut again, packet.minor, &params);
        }
    }
    assert_eq!(again, data[..consumed]);
}

/// `data` is what a client sends once it is logged in, or one tag and body.
pub fn frontend(data: &[u8]) {
    each_message(data, frontend_message);
}

/// `data` is what a server sends, or one tag and body.
pub fn backend(data: &[u8]) {
    each_message(data, backend_message);
}

fn each_message(data: &[u8], check: fn(u8, &[u8])) {
    if let Some((tag, body)) = data.split_first() {
        check(*tag, body);
    }
    let mut rest = data;
    while let Ok(Some(head)) = header(rest) {
        for end in 0..HEADER_BYTES {
            assert_eq!(header(&rest[..end]), Ok(None));
        }
        assert!(head.total >= HEADER_BYTES);
        let Some((message, after)) = rest.split_at_checked(head.total) else {
            break;
        };
        check(head.tag, &message[HEADER_BYTES..]);
        rest = after;
    }
}

fn frontend_message(tag: u8, body: &[u8]) {
    use frontend::tag;
    let mut again = Vec::new();
    match tag {
        tag::QUERY => match frontend::query(body) {
            Ok(text) => frontend::put_query(&mut again, text),
            Err(_) => return,
        },
        tag::PARSE => match frontend::parse(body) {
            Ok(p) => frontend::put_parse(&mut again, p.name, p.query, p.types),
            Err(_) => return,
        },
        tag::BIND => match bind_in_pieces(body) {
            Some(head) => {
                let rest = &body[head.rest..];
                frontend::put_bind_head(&mut again, rest.len(), head.portal, head.statement);
                again.extend_from_slice(rest);
            }
            None => return,
        },
        tag::DESCRIBE => match frontend::describe(body) {
            Ok((target, name)) => frontend::put_describe(&mut again, target, name),
            Err(_) => return,
        },
        tag::CLOSE => match frontend::close(body) {
            Ok((target, name)) => frontend::put_close(&mut again, target, name),
            Err(_) => return,
        },
        tag::EXECUTE => match frontend::execute(body) {
            Ok((portal, max_rows)) => frontend::put_execute(&mut again, portal, max_rows),
            Err(_) => return,
        },
        tag::PASSWORD => return password(body),
        _ => return,
    }
    assert_eq!(again[0], tag);
    assert_eq!(again[HEADER_BYTES..], *body);
}

/// A Bind's head is the same wherever the body is cut, and is there as soon as it can be.
fn bind_in_pieces(body: &[u8]) -> Option<frontend::BindHead<'_>> {
    let Ok(whole) = frontend::bind_head(body) else {
        return None;
    };
    for end in 0..body.len() {
        let seen = frontend::bind_head(&body[..end]);
        assert_eq!(seen, Ok(whole.filter(|head| head.rest <= end)), "cut at {end}");
    }
    whole
}

/// What a message with tag `p` is depends on what was asked for: all readings must hold.
fn password(body: &[u8]) {
    let mut again = Vec::new();
    if let Ok(text) = frontend::password(body) {
        frontend::put_password(&mut again, text);
        assert_eq!(again[HEADER_BYTES..], *body);
    }
    again.clear();
    if let Ok(frontend::SaslInitial { mechanism, response: Some(data) }) =
        frontend::sasl_initial(body)
    {
        frontend::put_sasl_initial(&mut again, mechanism, data);
        assert_eq!(again[HEADER_BYTES..], *body);
    }
    again.clear();
    if let Ok(data) = frontend::sasl_response(body) {
        frontend::put_sasl_response(&mut again, data);
        assert_eq!(again[HEADER_BYTES..], *body);
    }
}

fn backend_message(tag: u8, body: &[u8]) {
    use backend::tag;
    let mut again = Vec::new();
    match tag {
        tag::READY_FOR_QUERY => match backend::ready(body) {
            Ok(status) => backend::put_ready(&mut again, status),
            Err(_) => return,
        },
        tag::PARAMETER_STATUS => match backend::parameter_status(body) {
            Ok((name, value)) => backend::put_parameter_status(&mut again, name, value),
            Err(_) => return,
        },
        tag::BACKEND_KEY_DATA => match backend::backend_key(body) {
            Ok((pid, key)) => backend::put_backend_key(&mut again, pid, key),
            Err(_) => return,
        },
        tag::COMMAND_COMPLETE => match backend::command_tag(body).map(std::str::from_utf8) {
            Ok(Ok(text)) => backend::put_command_complete(&mut again, text),
            _ => return,
        },
        tag::DATA_ROW => match backend::data_row(body) {
            Ok(values) => backend::put_data_row(&mut again, &values),
            Err(_) => return,
        },
        tag::NEGOTIATE => match backend::negotiate(body) {
            Ok(negotiate) => {
                let options: Vec<_> = negotiate.options().collect();
                assert_eq!(options.len(), negotiate.count);
                backend::put_negotiate(&mut again, negotiate.minor, &options);
                // The major version is not kept: some send the minor one alone.
                assert_eq!(again[HEADER_BYTES + 2..], body[2..]);
                return;
            }
            Err(_) => return,
        },
        tag::AUTHENTICATION => match backend::auth(body) {
            Ok(auth) => put_auth(&mut again, &auth, body),
            Err(_) => return,
        },
        tag::ERROR | tag::NOTICE => return error_fields(body),
        _ => return,
    }
    assert_eq!(again[0], tag);
    assert_eq!(again[HEADER_BYTES..], *body);
}

fn put_auth(out: &mut Vec<u8>, auth: &backend::Auth<'_>, body: &[u8]) {
    match auth {
        backend::Auth::Ok => backend::put_auth_ok(out),
        backend::Auth::Cleartext => backend::put_auth_cleartext(out),
        backend::Auth::Md5(salt) => backend::put_auth_md5(out, *salt),
        backend::Auth::Sasl(mechanisms) => backend::put_auth_sasl(out, mechanisms),
        backend::Auth::SaslContinue(data) => backend::put_auth_sasl_continue(out, data),
        backend::Auth::SaslFinal(data) => backend::put_auth_sasl_final(out, data),
        backend::Auth::Other(kind) => {
            assert_eq!(kind.to_be_bytes(), body[..4]);
            out.extend_from_slice(&[backend::tag::AUTHENTICATION, 0, 0, 0, 0]);
            out.extend_from_slice(body);
        }
    }
}

fn error_fields(body: &[u8]) {
    let Ok(fields) = backend::error_fields(body) else {
        return;
    };
    let Some((severity, code, message)) =
        fields.severity().zip(fields.code()).zip(fields.message()).map(|((s, c), m)| (s, c, m))
    else {
        return;
    };
    let (detail, hint) = (fields.detail(), fields.hint());
    let reply = backend::ErrorReply { severity, code, message, detail, hint };
    let mut again = Vec::new();
    backend::put_error(&mut again, &reply);
    let fields = backend::error_fields(&again[HEADER_BYTES..]).expect("built here");
    assert_eq!(fields.severity(), Some(severity));
    assert_eq!(fields.code(), Some(code));
    assert_eq!(fields.message(), Some(message));
    assert_eq!(fields.detail(), detail);
    assert_eq!(fields.hint(), hint);
}

/// The nonces of both ends in this target, so that a corpus can hold messages that fit.
const SERVER_NONCE: &str = "3rfcNHYJY1ZVvWVs7j";
const CLIENT_NONCE: &str = "fyko+d2lbbFgONRv9qkxdawL";

/// `data` is client-first, client-final, server-first, server-final, password and salt, with a
/// NUL between them.
pub fn scram(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let mut next = || parts.next().unwrap_or_default();
    let (client_first, client_final) = (next(), next());
    let (server_first, server_final) = (next(), next());
    let (password, salt) = (next(), next());

    let nobody = ScramVerifier::mock(&[7; 32], "nobody", 4096);
    if let Ok((server, first)) =
        ScramServer::start(&nobody, client_first, SERVER_NONCE, Binding::EndPoint(&[7; 32]))
    {
        assert!(first.starts_with(b"r="));
        assert!(server.finish(client_final).is_err(), "a mock verifier let someone in");
    }

    let keys = ScramKeys::from_client_key([1; 32], [2; 32]);
    let (client, _) = ScramClient::start(CLIENT_NONCE, Binding::Unable);
    if let Ok(needs) = client.server_first(server_first) {
        assert!((1..=SCRAM_ITERATIONS_MAX).contains(&needs.iterations));
        let (awaits, _) = needs.with_keys(&keys);
        assert!(awaits.server_final(server_final).is_err(), "a forged server was believed");
    }

    if salt.len() <= 64 {
        honest_exchange(&String::from_utf8_lossy(password), salt);
    }
}

/// Both ends with one password agree.
fn honest_exchange(password: &str, salt: &[u8]) {
    let verifier = ScramVerifier::derive(password, salt, 1);
    let (client, first) = ScramClient::start(CLIENT_NONCE, Binding::Unable);
    let (server, reply) =
        ScramServer::start(&verifier, &first, SERVER_NONCE, Binding::Unable).expect("first");
    let needs = client.server_first(&reply).expect("server-first");
    assert_eq!((needs.salt.as_slice(), needs.iterations), (salt, 1));
    let keys = ScramKeys::derive(password, &needs.salt, needs.iterations);
    let (awaits, last) = needs.with_keys(&keys);
    let (reply, client_key) = server.finish(&last).expect("client-final");
    assert_eq!(client_key, keys.client_key);
    awaits.server_final(&reply).expect("server-final");
}

/// `data` is a stored secret.
pub fn secret(data: &[u8]) {
    let Ok(stored) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(secret) = Secret::parse(stored) else {
        return;
    };
    let salt = [1, 2, 3, 4];
    let answer = md5_response("user", stored, salt);
    match &secret {
        Secret::Plain(plain) => {
            assert_eq!(plain, stored);
            assert_eq!(secret.check_plain("user", data), !plain.is_empty());
            assert!(!secret.check_plain("user", &[data, b"x"].concat()));
            let check = |user| secret.check_md5(user, salt, answer.as_bytes());
            assert_eq!(check("user"), (!plain.is_empty()).then_some(true));
            assert_eq!(check("other"), (!plain.is_empty()).then_some(false));
        }
        Secret::Md5(hex) => {
            assert_eq!(stored.as_bytes()[3..], *hex);
            assert!(!secret.check_plain("user", data));
            assert_eq!(secret.check_md5("user", salt, answer.as_bytes()), Some(false));
        }
        Secret::Scram(verifier) => {
            let again = Secret::parse(&verifier.to_string());
            assert_eq!(again.as_ref(), Ok(&secret));
            assert_eq!(secret.check_md5("user", salt, answer.as_bytes()), None);
            if verifier.iterations <= 16 {
                assert!(!secret.check_plain("user", data));
            }
        }
    }
}

/// `data` is what a proxy sends before its client's bytes.
pub fn proxy(data: &[u8]) {
    let Ok(Some((origin, consumed))) = proxy::header(data) else {
        return;
    };
    assert!(consumed <= proxy::HEADER_BYTES_MAX);
    for end in 0..consumed {
        assert_eq!(proxy::header(&data[..end]), Ok(None), "cut at {end}");
    }
    let mut again = Vec::new();
    proxy::put_line(&mut again, &origin);
    assert_eq!(proxy::header(&again), Ok(Some((origin, again.len()))));
    again.clear();
    proxy::put_header(&mut again, &origin, &data[consumed..data.len().min(consumed + 100)]);
    assert_eq!(proxy::header(&again), Ok(Some((origin, again.len()))));
}

/// `data` is what a Redis client sends.
pub fn resp(data: &[u8]) {
    let limits = Limits { bulk_bytes: 1 << 20, must_log_in: data.len() % 2 == 1 };
    let whole = commands(&[data], limits);
    let each: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(commands(&each, limits), whole, "byte by byte");
    // What was read is read again from how clients write it.
    let mut again = Vec::new();
    for words in &whole.0 {
        again.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        words.iter().for_each(|word| reply::put_bulk(&mut again, word));
    }
    let unlimited = Limits { must_log_in: false, ..limits };
    assert_eq!(commands(&[&again], unlimited), (whole.0, None));
    if let Some(error) = whole.1 {
        let mut told = Vec::new();
        error.put(&mut told);
        assert!(told.iter().position(|byte| *byte == b'\r') == Some(told.len() - 2));
        assert!(told.iter().position(|byte| *byte == b'\n') == Some(told.len() - 1));
    }
}

/// The commands in `pieces` of one connection's bytes, and why it ends if it does.
fn commands(pieces: &[&[u8]], limits: Limits) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let mut parser = Parser::default();
    let (mut input, mut commands) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match parser.next(&input, limits) {
                Ok(Some(taken)) => {
                    let source = parser.source(&input);
                    let words = parser
                        .arguments()
                        .iter()
                        .map(|span| source[span.start as usize..span.end as usize].to_vec());
                    let words: Vec<_> = words.collect();
                    if !words.is_empty() {
                        commands.push(words);
                    }
                    input.drain(..taken);
                }
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

/// `data` is the body of a CopyData, of a server or a client that replicates, or a position.
pub fn replication(data: &[u8]) {
    if let Ok(message) = replication::from_server(data) {
        let mut again = Vec::new();
        replication::put_from_server(&mut again, &message);
        assert_eq!(replication::from_server(&again[HEADER_BYTES..]), Ok(message));
        if let replication::FromServer::Data { data, .. } = message {
            pgoutput(data);
        }
    }
    if let Ok(update) = replication::status_update(data) {
        let mut again = Vec::new();
        replication::put_status_update(&mut again, &update);
        assert_eq!(replication::status_update(&again[HEADER_BYTES..]), Ok(update));
    }
    if let Some(Ok(lsn)) = std::str::from_utf8(data).ok().map(str::parse::<replication::Lsn>) {
        assert_eq!(lsn.to_string().parse(), Ok(lsn));
    }
}

/// `data` is a change, streamed or not.
pub fn pgoutput(data: &[u8]) {
    for streamed in [false, true] {
        let Ok(message) = pgoutput::message(data, streamed) else {
            continue;
        };
        let mut again = Vec::new();
        pgoutput::put(&mut again, &message);
        assert_eq!(pgoutput::message(&again, streamed), Ok(message.clone()));
        rows(&message);
    }
}

/// Every field of a row is there, and a row made of its fields is the same.
fn rows(message: &pgoutput::Message<'_>) {
    use pgoutput::{Message, Old};
    let (old, new) = match message {
        Message::Insert { new, .. } => (&Old::Absent, Some(new)),
        Message::Update { old, new, .. } => (old, Some(new)),
        Message::Delete { old, .. } => (old, None),
        _ => return,
    };
    let old = match old {
        Old::Absent | Old::Unknown => None,
        Old::Key(row) | Old::Whole(row) => Some(row),
    };
    for row in old.into_iter().chain(new) {
        let fields: Vec<_> = row.fields().collect();
        assert_eq!(fields.len(), row.columns());
        let mut again = Vec::new();
        pgoutput::put_tuple(&mut again, &fields);
        assert_eq!(pgoutput::Tuple::parse(&again), Ok(*row));
    }
}
