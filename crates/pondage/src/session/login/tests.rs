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
