use std::sync::Arc;

use wire::pg::auth::ScramClient;
use wire::pg::backend::{auth, Auth};

use super::*;

const HASH: [u8; 32] = [7; 32];
const NONCE: &str = "rOprNGfwEbeRWgbNEkqOabcd";

/// A log-in that is at its challenge, over TLS with a certificate that has a hash or one without.
fn challenged(secret: Option<Secret>, end_point: Option<&[u8]>) -> (Login, Vec<String>) {
    let mut login = Login::new();
    login.wish.user = "app".to_owned();
    login.identity = Identity { subject: None, end_point: end_point.map(Arc::from) };
    let mut out = Vec::new();
    let chance = Chance { salt: [1; 4], nonce: NONCE, mock_key: &[2; 32] };
    assert_eq!(login.challenge(Proof::Scram, secret, None, &chance, &mut out), Challenge::Sent);
    let Ok(Auth::Sasl(offered)) = auth(&out[5..]) else { panic!("{out:?}") };
    (login, offered.iter().map(|name| (*name).to_owned()).collect())
}

fn secret() -> Option<Secret> {
    Some(Secret::Scram(ScramVerifier::derive("pencil", b"salt", 16)))
}

/// What becomes of a client that chooses `mechanism` and binds itself like this.
fn log_in(
    secret: Option<Secret>,
    end_point: Option<&[u8]>,
    mechanism: &str,
    binding: Binding<'_>,
) -> Result<Credential, Refused> {
    let (mut login, _) = challenged(secret, end_point);
    let (client, first) = ScramClient::start(NONCE, binding);
    let mut message = Vec::new();
    frontend::put_sasl_initial(&mut message, mechanism, &first);
    let mut out = Vec::new();
    login.answer(tag::PASSWORD, &message[5..], NONCE, &mut out)?;
    let Ok(Auth::SaslContinue(reply)) = auth(&out[5..]) else { panic!("{out:?}") };
    let needs = client.server_first(reply).expect("server-first");
    let keys = ScramKeys::derive("pencil", &needs.salt, needs.iterations);
    let (_, last) = needs.with_keys(&keys);
    message.clear();
    frontend::put_sasl_response(&mut message, &last);
    login.answer(tag::PASSWORD, &message[5..], NONCE, &mut out)?;
    assert!(login.is_accepted());
    Ok(login.proven.expect("a proof"))
}

#[test]
fn channel_binding_is_offered_where_there_is_something_to_bind_to() {
    assert_eq!(challenged(secret(), None).1, [SCRAM_SHA_256]);
    assert_eq!(challenged(secret(), Some(&HASH)).1, [SCRAM_SHA_256_PLUS, SCRAM_SHA_256]);
    assert_eq!(challenged(None, Some(&HASH)).1, [SCRAM_SHA_256_PLUS, SCRAM_SHA_256], "nobody");
}

#[test]
fn a_bound_proof_logs_in_and_is_good_for_a_server() {
    for (mechanism, binding) in
        [(SCRAM_SHA_256_PLUS, Binding::EndPoint(&HASH)), (SCRAM_SHA_256, Binding::Unable)]
    {
        let proven = log_in(secret(), Some(&HASH), mechanism, binding).expect("let in");
        let keys = ScramKeys::derive("pencil", b"salt", 16);
        assert_eq!(proven, Credential::Keys(keys), "{mechanism}");
    }
    assert!(log_in(secret(), None, SCRAM_SHA_256, Binding::Unused).is_ok(), "not offered");
}

#[test]
fn who_is_lied_to_about_channel_binding_is_refused_as_by_postgresql() {
    let refused = |end_point: Option<&[u8]>, mechanism, binding| {
        let known = log_in(secret(), end_point, mechanism, binding).expect_err("let in");
        let nobody = log_in(None, end_point, mechanism, binding).expect_err("let in");
        assert_eq!(known, nobody, "it says nothing about who exists");
        (known.code, known.message)
    };
    let (not_authorized, violation) =
        (sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, sqlstate::PROTOCOL_VIOLATION);
    let (code, message) = refused(Some(&HASH), SCRAM_SHA_256, Binding::Unused);
    assert_eq!((code, &*message), (not_authorized, "SCRAM channel binding negotiation error"));
    let other = Binding::EndPoint(&[8; 32]);
    let (code, message) = refused(Some(&HASH), SCRAM_SHA_256_PLUS, other);
    assert_eq!((code, &*message), (not_authorized, "SCRAM channel binding check failed"));
    let (code, message) = refused(None, SCRAM_SHA_256_PLUS, Binding::EndPoint(&HASH));
    assert_eq!((code, &*message), (violation, "client selected an invalid SASL mechanism"));
    for (mechanism, binding) in [
        (SCRAM_SHA_256, Binding::EndPoint(&HASH)),
        (SCRAM_SHA_256_PLUS, Binding::Unable),
        (SCRAM_SHA_256_PLUS, Binding::Unused),
    ] {
        assert_eq!(refused(Some(&HASH), mechanism, binding).0, violation, "{mechanism}");
    }
}

fn plain(password: &str) -> Option<Secret> {
    Some(Secret::Plain(password.to_owned()))
}

/// A log-in whose secret was found a while ago has had this answer.
fn failed(proof: Proof, known: Option<Secret>, answer: &[u8]) -> Login {
    let mut login = Login::new();
    login.wish.user = "app".to_owned();
    login.is_kept(known.clone());
    let chance = Chance { salt: [1; 4], nonce: NONCE, mock_key: &[2; 32] };
    let sent = login.challenge(proof, known, None, &chance, &mut Vec::new());
    assert_eq!(sent, Challenge::Sent);
    let mut message = answer.to_vec();
    message.push(0);
    let refused = login.answer(tag::PASSWORD, &message, "", &mut Vec::new());
    assert_eq!(refused.expect_err("wrong").code, sqlstate::INVALID_PASSWORD);
    assert!(login.may_have_changed());
    login
}

#[test]
fn a_password_is_held_against_the_secret_as_it_is_now() {
    for known in [plain("old"), None] {
        let mut login = failed(Proof::Password, known.clone(), b"new");
        assert!(matches!(login.again(plain("new")), Ok(Answer::Accepted)));
        assert!(login.is_accepted() && login.proven.is_some());
        let mut login = failed(Proof::Password, known.clone(), b"new");
        let verifier = Secret::Scram(ScramVerifier::derive("new", b"salt", 16));
        assert!(matches!(login.again(Some(verifier)), Ok(Answer::Check { .. })));
        for now in [known.clone(), plain("newer")] {
            let mut login = failed(Proof::Password, known.clone(), b"new");
            let refused = login.again(now).expect_err("wrong");
            assert_eq!(refused.code, sqlstate::INVALID_PASSWORD);
            assert!(!login.may_have_changed(), "it is asked once");
        }
    }
}

#[test]
fn an_md5_response_is_held_against_it_unless_that_can_do_scram_only() {
    let response = wire::pg::auth::md5_response("app", "new", [1; 4]);
    let failed = || failed(Proof::Md5, plain("old"), response.as_bytes());
    assert!(matches!(failed().again(plain("new")), Ok(Answer::Accepted)));
    let code = |now| failed().again(now).expect_err("wrong").code;
    assert_eq!(code(plain("old")), sqlstate::INVALID_PASSWORD);
    assert_eq!(code(None), sqlstate::INVALID_PASSWORD);
    assert_eq!(code(secret()), sqlstate::CANNOT_CONNECT_NOW);
}

#[test]
fn a_scram_proof_can_not_be_and_the_client_is_to_connect_again() {
    let wrong = |now: Option<Secret>| {
        let (mut login, _) = challenged(secret(), None);
        login.is_kept(secret());
        let (client, first) = ScramClient::start(NONCE, Binding::Unable);
        let mut message = Vec::new();
        frontend::put_sasl_initial(&mut message, SCRAM_SHA_256, &first);
        let mut out = Vec::new();
        login.answer(tag::PASSWORD, &message[5..], NONCE, &mut out).expect("goes on");
        let Ok(Auth::SaslContinue(reply)) = auth(&out[5..]) else { panic!("{out:?}") };
        let needs = client.server_first(reply).expect("server-first");
        let keys = ScramKeys::derive("another", &needs.salt, needs.iterations);
        message.clear();
        frontend::put_sasl_response(&mut message, &needs.with_keys(&keys).1);
        login.answer(tag::PASSWORD, &message[5..], NONCE, &mut out).expect_err("wrong");
        login.again(now).expect_err("it can't be right")
    };
    assert_eq!(wrong(secret()).code, sqlstate::INVALID_PASSWORD);
    let changed = Some(Secret::Scram(ScramVerifier::derive("another", b"pepper", 16)));
    for now in [changed, None] {
        let refused = wrong(now);
        assert_eq!(refused.code, sqlstate::CANNOT_CONNECT_NOW);
        assert!(refused.hint.is_some_and(|hint| hint.ends_with("[P0324]")));
    }
}
