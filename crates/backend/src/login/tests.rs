use super::*;
use wire::pg::auth::{Binding, ScramError, ScramServer, ScramVerifier};
use wire::pg::backend::{
    put_auth_cleartext, put_auth_md5, put_auth_ok, put_auth_sasl, put_auth_sasl_continue,
    put_auth_sasl_final, put_backend_key, put_error, put_negotiate, put_notice,
    put_parameter_status, put_ready, ErrorReply,
};

const NONCE: &str = "rOprNGfwEbeRWgbNEkqOabcd";

fn plain(password: &str) -> Option<Secret> {
    Some(Secret::Plain(password.to_owned()))
}

fn put_session(out: &mut Vec<u8>) {
    put_parameter_status(out, "server_version", "15.0");
    put_parameter_status(out, "TimeZone", "UTC");
    put_parameter_status(out, "TimeZone", "Europe/Vienna");
    put_backend_key(out, 4711, &[1, 2, 3, 4]);
    put_ready(out, TxStatus::Idle);
}

/// A log-in under way with what it has received but not yet understood.
struct Peer {
    login: Option<Login>,
    received: Vec<u8>,
    sent: Vec<u8>,
    done: Option<LoggedIn>,
}

impl Peer {
    fn new(secret: Option<Secret>) -> Peer {
        Peer::with(secret.map(Credential::Secret))
    }

    fn with(credential: Option<Credential>) -> Peer {
        let login = Login::start("app", credential, NONCE);
        Peer { login: Some(login), received: vec![], sent: vec![], done: None }
    }

    fn bound(end_point: Option<Vec<u8>>, must_bind: bool) -> Peer {
        let mut peer = Peer::new(plain("pencil"));
        peer.login = peer.login.map(|login| login.bound(end_point, must_bind));
        peer
    }

    /// Gives `bytes` in pieces of `size`.
    fn give(&mut self, bytes: &[u8], size: usize) -> Result<(), LoginError> {
        for piece in bytes.chunks(size) {
            self.received.extend_from_slice(piece);
            while let Some(message) = next_message(&self.received)? {
                let Message { tag, body, total } = message;
                let login = self.login.take().expect("a message after the end");
                match login.message(tag, body, &mut self.sent)? {
                    Step::Await(login) => self.login = Some(login),
                    Step::Keys(needs) => {
                        let (password, salt, iterations) = needs.source();
                        let keys = ScramKeys::derive(password, salt, iterations);
                        self.login = Some(needs.with_keys(&keys, &mut self.sent));
                    }
                    Step::Done(session) => self.done = Some(session),
                }
                self.received.drain(..total);
            }
        }
        Ok(())
    }

    /// The body of the one message sent since the last call.
    fn take_sent(&mut self) -> Vec<u8> {
        let sent = std::mem::take(&mut self.sent);
        let head = header(&sent).expect("a message").expect("a whole header");
        assert_eq!((head.tag, head.total), (b'p', sent.len()));
        sent[5..].to_vec()
    }
}

fn built(fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    fill(&mut bytes);
    bytes
}

fn error_of(secret: Option<Secret>, fill: impl FnOnce(&mut Vec<u8>)) -> LoginError {
    let mut peer = Peer::new(secret);
    peer.give(&built(fill), usize::MAX).expect_err("the log-in goes on")
}

/// Plays the server of a SCRAM exchange up to the server-final message.
fn scram_until_final(peer: &mut Peer, piece: usize) -> Vec<u8> {
    let verifier = ScramVerifier::derive("pencil", b"0123456789abcdef", 64);
    let offer = built(|out| put_auth_sasl(out, &["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]));
    peer.give(&offer, piece).expect("offer");
    let initial = peer.take_sent();
    let initial = frontend::sasl_initial(&initial).expect("SASLInitialResponse");
    assert_eq!(initial.mechanism, "SCRAM-SHA-256");
    let first = initial.response.expect("client-first");
    let (server, reply) =
        ScramServer::start(&verifier, first, "srvnonce", Binding::Unable).expect("start");
    peer.give(&built(|out| put_auth_sasl_continue(out, &reply)), piece).expect("continue");
    let response = peer.take_sent();
    let response = frontend::sasl_response(&response).expect("SASLResponse");
    server.finish(response).expect("right proof").0
}

#[test]
fn trust_logs_in_and_keeps_the_last_value_of_a_parameter_however_the_bytes_are_split() {
    let bytes = built(|out| {
        put_negotiate(out, 0, &["_pq_.x"]);
        put_auth_ok(out);
        let severity = "WARNING";
        let (detail, hint) = (None, None);
        put_notice(out, &ErrorReply { severity, code: "01000", message: "hi", detail, hint });
        put_session(out);
    });
    for size in 1..bytes.len() {
        let mut peer = Peer::new(None);
        peer.give(&bytes, size).expect("log-in");
        let done = peer.done.expect("done");
        assert_eq!((done.pid, done.key.as_slice()), (4711, &[1, 2, 3, 4][..]));
        let expected = [("server_version", "15.0"), ("TimeZone", "Europe/Vienna")];
        assert_eq!(done.parameters, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(peer.sent.is_empty());
    }
}

#[test]
fn a_clear_text_request_is_answered_with_the_password() {
    let mut peer = Peer::new(plain("pencil"));
    peer.give(&built(put_auth_cleartext), 1).expect("request");
    assert_eq!(peer.take_sent(), b"pencil\0");
    peer.give(&built(put_auth_ok), 1).expect("ok");
    peer.give(&built(put_session), 1).expect("session");
    assert!(peer.done.is_some());
}

#[test]
fn an_md5_request_is_answered_alike_from_the_password_and_from_its_hash() {
    let hash = Secret::parse("md5d1ebf4bdf2f7d3c7ed5afdb5aba15bd0").expect("hash");
    let mut from_hash = Peer::new(Some(hash));
    from_hash.give(&built(|out| put_auth_md5(out, [1, 2, 3, 4])), 1).expect("request");
    assert!(from_hash.take_sent().starts_with(b"md5"));
    let mut peer = Peer::new(plain("pencil"));
    peer.give(&built(|out| put_auth_md5(out, [1, 2, 3, 4])), 1).expect("request");
    let expected = auth::md5_response("app", "pencil", [1, 2, 3, 4]);
    assert_eq!(peer.take_sent(), [expected.as_bytes(), b"\0"].concat());
}

#[test]
fn scram_logs_in_however_the_bytes_are_split() {
    for piece in 1..40 {
        let mut peer = Peer::new(plain("pencil"));
        let server_final = scram_until_final(&mut peer, piece);
        let rest = built(|out| {
            put_auth_sasl_final(out, &server_final);
            put_auth_ok(out);
            put_session(out);
        });
        peer.give(&rest, piece).expect("final");
        assert!(peer.done.is_some());
    }
}

#[test]
fn the_keys_of_a_client_log_in_without_its_password_where_the_verifier_is_the_same() {
    let keys = ScramKeys::derive("pencil", b"0123456789abcdef", 64);
    let mut peer = Peer::with(Some(Credential::Keys(keys.clone())));
    let server_final = scram_until_final(&mut peer, 1);
    let rest = built(|out| {
        put_auth_sasl_final(out, &server_final);
        put_auth_ok(out);
        put_session(out);
    });
    peer.give(&rest, 1).expect("final");
    assert!(peer.done.is_some());

    let mut peer = Peer::with(Some(Credential::Keys(keys)));
    let refused = peer.give(&built(|out| put_auth_md5(out, [0; 4])), 1);
    assert_eq!(refused, Err(LoginError::SecretUnfit { asked: "md5" }));
}

#[test]
fn a_server_that_skips_its_proof_is_refused() {
    let mut peer = Peer::new(plain("pencil"));
    scram_until_final(&mut peer, usize::MAX);
    let refused = peer.give(&built(put_auth_ok), usize::MAX);
    assert_eq!(refused, Err(LoginError::ServerNotProven));

    let early = error_of(plain("pencil"), |out| {
        put_auth_sasl(out, &["SCRAM-SHA-256"]);
        put_auth_ok(out);
    });
    assert_eq!(early, LoginError::ServerNotProven);
}

#[test]
fn a_server_with_a_wrong_proof_is_refused() {
    let mut peer = Peer::new(plain("pencil"));
    scram_until_final(&mut peer, usize::MAX);
    let forged = b"v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let refused = peer.give(&built(|out| put_auth_sasl_final(out, forged)), usize::MAX);
    assert_eq!(refused, Err(LoginError::Scram(ScramError::WrongServerSignature)));
}

#[test]
fn a_server_error_keeps_code_message_detail_and_hint() {
    let reply = ErrorReply {
        severity: "FATAL",
        code: "28P01",
        message: "password authentication failed",
        detail: Some("a detail"),
        hint: Some("a hint"),
    };
    let error = error_of(None, |out| put_error(out, &reply));
    assert!(error.permanent());
    assert_eq!(error.to_string(), "FATAL 28P01: password authentication failed");
    let LoginError::Server(error) = error else { panic!("not the server's: {error:?}") };
    assert_eq!(error.detail.as_deref(), Some("a detail"));
    assert_eq!(error.hint.as_deref(), Some("a hint"));
}

#[test]
fn only_errors_that_a_new_try_would_meet_again_are_permanent() {
    let permanent = |code: &str| {
        let (severity, message, detail, hint) = ("FATAL", "no", None, None);
        error_of(None, |out| put_error(out, &ErrorReply { severity, code, message, detail, hint }))
            .permanent()
    };
    for code in ["28000", "28P01", "3D000", "3F000", "42501"] {
        assert!(permanent(code), "{code}");
    }
    for code in ["53300", "57P03", "57P01", "XX000"] {
        assert!(!permanent(code), "{code}");
    }
}

#[test]
fn a_secret_that_cannot_answer_the_request_is_named() {
    let md5 = Secret::parse("md5d1ebf4bdf2f7d3c7ed5afdb5aba15bd0").ok();
    let scram = Some(Secret::Scram(ScramVerifier::derive("pencil", b"salt", 1)));
    let sasl = |out: &mut Vec<u8>| put_auth_sasl(out, &["SCRAM-SHA-256"]);
    let md5_request = |out: &mut Vec<u8>| put_auth_md5(out, [0; 4]);
    assert_eq!(error_of(md5, sasl), LoginError::SecretUnfit { asked: "SCRAM-SHA-256" });
    assert_eq!(error_of(scram.clone(), sasl), LoginError::SecretUnfit { asked: "SCRAM-SHA-256" });
    assert_eq!(error_of(scram, md5_request), LoginError::SecretUnfit { asked: "md5" });
    assert_eq!(error_of(None, md5_request), LoginError::NoPassword { asked: "md5" });
}

#[test]
fn an_authentication_request_that_is_not_supported_is_named() {
    let request = |kind: u32| {
        let mut bytes = vec![b'R', 0, 0, 0, 8];
        bytes.extend_from_slice(&kind.to_be_bytes());
        error_of(plain("x"), |out| out.extend_from_slice(&bytes)).to_string()
    };
    assert_eq!(request(7), "the server asks for GSSAPI authentication, which is not supported");
    assert_eq!(request(99), "the server asks for unknown authentication 99");
    let plus = error_of(plain("x"), |out| put_auth_sasl(out, &["SCRAM-SHA-256-PLUS"]));
    assert_eq!(plus, LoginError::NoMechanism { offered: "SCRAM-SHA-256-PLUS".to_owned() });
}

#[test]
fn a_message_out_of_place_reports_what_was_expected_and_what_came() {
    let ready = error_of(None, |out| put_ready(out, TxStatus::Idle));
    assert_eq!(ready, LoginError::Unexpected { expected: "an authentication request", got: b'Z' });
    let twice = error_of(plain("x"), |out| {
        put_auth_cleartext(out);
        put_auth_md5(out, [0; 4]);
    });
    assert_eq!(twice, LoginError::Unexpected { expected: "AuthenticationOk", got: b'R' });
}

#[test]
fn a_message_or_a_list_beyond_its_ceiling_is_refused_before_it_is_kept() {
    let long = [b'S', 0, 1, 0, 0];
    assert!(matches!(next_message(&long), Err(WireError::TooLong { .. })));
    let many = error_of(None, |out| {
        put_auth_ok(out);
        for i in 0..=LOGIN_PARAMETERS_MAX {
            put_parameter_status(out, &format!("p{i}"), "");
        }
    });
    assert!(matches!(many, LoginError::Wire(WireError::TooLong { .. })));
}

proptest::proptest! {
    #[test]
    fn garbage_never_panics(
        messages in proptest::collection::vec(
            (proptest::sample::select(b"RSKZEvN?".to_vec()), proptest::collection::vec(0u8.., 0..40)),
            0..20,
        )
    ) {
        let mut login = Login::start("app", plain("pencil").map(Credential::Secret), NONCE);
        let mut out = Vec::new();
        for (kind, body) in messages {
            match login.message(kind, &body, &mut out) {
                Ok(Step::Await(next)) => login = next,
                _ => break,
            }
        }
    }
}

/// What a log-in answers an offer with: mechanism and header of the first message.
fn choice(tls: bool, must_bind: bool, offered: &[&str]) -> Result<(String, String), LoginError> {
    let mut peer = Peer::bound(tls.then(|| vec![7; 32]), must_bind);
    peer.give(&built(|out| put_auth_sasl(out, offered)), usize::MAX)?;
    let initial = peer.take_sent();
    let initial = frontend::sasl_initial(&initial).expect("SASLInitialResponse");
    let first = String::from_utf8_lossy(initial.response.expect("client-first")).into_owned();
    let header = first.split(",n=").next().expect("a header").to_owned();
    Ok((initial.mechanism.to_owned(), header))
}

#[test]
fn a_log_in_is_bound_where_both_ends_can() {
    const PLUS: &str = "SCRAM-SHA-256-PLUS";
    const PLAIN: &str = "SCRAM-SHA-256";
    let both: &[&str] = &[PLUS, PLAIN];
    let bound = Some((PLUS, "p=tls-server-end-point,"));
    let cases = [
        (true, false, both, bound),
        (true, true, both, bound),
        (true, true, &[PLUS], bound),
        (false, false, both, Some((PLAIN, "n,"))),
        (true, false, &[PLAIN], Some((PLAIN, "y,"))),
        (false, false, &[PLAIN], Some((PLAIN, "n,"))),
        (true, true, &[PLAIN], None),
        (false, true, both, None),
    ];
    for (tls, must_bind, offered, expected) in cases {
        let chosen = choice(tls, must_bind, offered);
        match expected {
            Some((mechanism, header)) => {
                assert_eq!(chosen, Ok((mechanism.to_owned(), header.to_owned())), "{offered:?}");
            }
            None => assert!(matches!(chosen, Err(LoginError::Unbound(_))), "{chosen:?}"),
        }
    }
    assert!(matches!(choice(false, false, &[PLUS]), Err(LoginError::NoMechanism { .. })));
}

#[test]
fn a_log_in_that_has_to_be_bound_takes_no_other_proof_and_none_at_all() {
    let requests =
        [built(put_auth_ok), built(put_auth_cleartext), built(|out| put_auth_md5(out, [1; 4]))];
    for request in requests {
        let mut peer = Peer::bound(Some(vec![7; 32]), true);
        let error = peer.give(&request, usize::MAX).expect_err("goes on");
        assert!(matches!(error, LoginError::Unbound(_)) && error.permanent(), "{error:?}");
        assert!(peer.sent.is_empty(), "nothing of the password is sent");
    }
}
