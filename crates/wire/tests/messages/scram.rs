use base64::prelude::{Engine, BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use wire::pg::auth::{
    Binding, ScramClient, ScramError, ScramKeys, ScramServer, ScramVerifier, SCRAM_ITERATIONS_MAX,
    SCRAM_MESSAGE_BYTES_MAX,
};

/// An exchange that took place elsewhere. `nonce` is what the server added.
struct Exchange {
    verifier: &'static str,
    client_first: &'static str,
    nonce: &'static str,
    server_first: &'static str,
    client_final: &'static str,
    server_final: &'static str,
}

/// psql logging in to PostgreSQL 15, and the verifier stored there. The password is `pencil`.
const PSQL: Exchange = Exchange {
    verifier: "SCRAM-SHA-256$4096:eSejugD+RfenBcG2B2lC/w==\
        $3hg/gndmN6p2pEnhrZFDshGJIiMY/kHZkENd6FI+JfM=:hJ5sqxsn6OimE+iFlaR9ggz+sSxtxRRkY7Ee6sGVHUw=",
    client_first: "n,,n=,r=Td7WFopxFKAlkefEFzv6g3wj",
    nonce: "5dESHoZoMY4seK7d+682w2IW",
    server_first: "r=Td7WFopxFKAlkefEFzv6g3wj5dESHoZoMY4seK7d+682w2IW,\
        s=eSejugD+RfenBcG2B2lC/w==,i=4096",
    client_final: "c=biws,r=Td7WFopxFKAlkefEFzv6g3wj5dESHoZoMY4seK7d+682w2IW,\
        p=LAv09ASbFjomylfXtvrJ2FkSsHA26PxZOZcYf50Gmcg=",
    server_final: "v=yPByXhk5EmJC/vfGKvdFPsBU4C1xTluPq/y6u4RRwv8=",
};

/// RFC 7677, section 3; the verifier is derived from its password, `pencil`.
const RFC: Exchange = Exchange {
    verifier: "",
    client_first: "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    nonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    server_first: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    client_final: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    server_final: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
};

/// The salt of RFC 7677's example.
const RFC_SALT: [u8; 16] = [
    0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa, 0x81,
];

fn verifier() -> ScramVerifier {
    ScramVerifier::parse(PSQL.verifier).expect("a verifier")
}

fn start(client_first: &str) -> Result<ScramServer, ScramError> {
    ScramServer::start(&verifier(), client_first.as_bytes(), PSQL.nonce, Binding::Unable)
        .map(|(server, _)| server)
}

/// What the server makes of psql's client-final message after `change`.
fn finish_with(change: impl FnOnce(&str) -> String) -> Result<(Vec<u8>, [u8; 32]), ScramError> {
    let server = start(PSQL.client_first).expect("psql's message");
    server.finish(change(PSQL.client_final).as_bytes())
}

/// What psql's end makes of `server_first`.
fn server_first(message: &str) -> Result<(), ScramError> {
    let nonce = &PSQL.client_first["n,,n=,r=".len()..];
    ScramClient::start(nonce, Binding::Unable).0.server_first(message.as_bytes()).map(|_| ())
}

#[test]
fn server_speaks_as_in_the_rfc_and_as_postgresql() {
    let rfc = ScramVerifier::derive("pencil", &RFC_SALT, 4096);
    for (exchange, verifier) in [(RFC, rfc), (PSQL, verifier())] {
        let first = exchange.client_first.as_bytes();
        let (server, reply) =
            ScramServer::start(&verifier, first, exchange.nonce, Binding::Unable).expect("first");
        assert_eq!(reply, exchange.server_first.as_bytes());
        let last = exchange.client_final.as_bytes();
        let (reply, client_key) = server.finish(last).expect("last");
        assert_eq!(reply, exchange.server_final.as_bytes());
        let keys = ScramKeys::derive("pencil", &verifier.salt, verifier.iterations);
        assert_eq!(client_key, keys.client_key);
        let passed_through = ScramKeys::from_client_key(client_key, verifier.server_key);
        assert!(passed_through == keys, "the keys of a client that passed through");
    }
}

#[test]
fn client_speaks_as_psql() {
    let nonce = &PSQL.client_first["n,,n=,r=".len()..];
    let (client, first) = ScramClient::start(nonce, Binding::Unable);
    assert_eq!(first, PSQL.client_first.as_bytes());
    let needs = client.server_first(PSQL.server_first.as_bytes()).expect("server-first");
    assert_eq!((&needs.salt, needs.iterations), (&verifier().salt, 4096));
    let keys = ScramKeys::derive("pencil", &needs.salt, needs.iterations);
    let (awaits, last) = needs.with_keys(&keys);
    assert_eq!(last, PSQL.client_final.as_bytes());
    assert_eq!(awaits.server_final(PSQL.server_final.as_bytes()), Ok(()));
}

#[test]
fn wrong_password_is_a_wrong_proof() {
    let (client, first) = ScramClient::start("nonce", Binding::Unable);
    let (server, reply) =
        ScramServer::start(&verifier(), &first, "more", Binding::Unable).expect("first");
    let needs = client.server_first(&reply).expect("server-first");
    let keys = ScramKeys::derive("pencil2", &needs.salt, needs.iterations);
    let (_, last) = needs.with_keys(&keys);
    assert_eq!(server.finish(&last), Err(ScramError::WrongProof));
}

/// Logs in as a client of its own making: `first` with its header, `last` without its proof.
fn log_in(header: &str, first: &str, last: &str) -> Result<(Vec<u8>, [u8; 32]), ScramError> {
    let client_first = format!("{header}{first}");
    let (server, reply) =
        ScramServer::start(&verifier(), client_first.as_bytes(), "server", Binding::Unable)
            .expect("first");
    let keys = ScramKeys::derive("pencil", &verifier().salt, 4096);
    let reply = String::from_utf8(reply).expect("text");
    let mut mac = Hmac::<Sha256>::new_from_slice(&keys.stored_key).expect("any length");
    mac.update(format!("{first},{reply},{last}").as_bytes());
    let signature = mac.finalize().into_bytes();
    let proof: Vec<_> = signature.iter().zip(keys.client_key).map(|(s, k)| s ^ k).collect();
    server.finish(format!("{last},p={}", BASE64_STANDARD.encode(proof)).as_bytes())
}

#[test]
fn client_that_believes_channel_binding_impossible_is_let_in() {
    assert!(log_in("n,,", "n=,r=client", "c=biws,r=clientserver").is_ok());
    assert!(log_in("y,,", "n=,r=client", "c=eSws,r=clientserver").is_ok());
    let mismatch = Err(ScramError::ChannelBindingMismatch);
    assert_eq!(log_in("y,,", "n=,r=client", "c=biws,r=clientserver"), mismatch);
    assert_eq!(log_in("n,,", "n=,r=client", "c=eSws,r=clientserver"), mismatch);
}

#[test]
fn optional_extensions_are_skipped_but_signed() {
    assert!(log_in("n,,", "n=me,r=client,x=1,y=", "c=biws,r=clientserver,z=p").is_ok());
}

#[test]
fn unsupported_requests_of_a_client_are_named() {
    let unsupported = [
        ("p=tls-server-end-point,,n=,r=x", "channel binding"),
        ("n,a=admin,n=,r=x", "authorization identity"),
        ("n,,m=ext,n=,r=x", "mandatory extension"),
    ];
    for (first, what) in unsupported {
        assert_eq!(start(first).err(), Some(ScramError::Unsupported(what)), "{first}");
    }
}

#[test]
fn malformed_first_message_of_a_client_is_refused() {
    let malformed = [
        ("", "channel-binding flag"),
        ("n", "channel-binding flag"),
        ("x,,n=,r=x", "channel-binding flag"),
        ("n,", "authorization identity"),
        ("n,b,n=,r=x", "authorization identity"),
        ("n,,", "user name"),
        ("n,,r=x", "user name"),
        ("n,,n=", "nonce"),
        ("n,,n=,s=x", "nonce"),
        ("n,,n=,r=", "nonce"),
        ("n,,n=,r=a b", "nonce"),
        ("n,,n=,r=\u{e9}", "nonce"),
        ("n,,n=,r=x\0", "text"),
    ];
    for (first, what) in malformed {
        assert_eq!(start(first).err(), Some(ScramError::Malformed(what)), "{first:?}");
    }
    let not_utf8 = ScramServer::start(&verifier(), b"n,,n=\xff,r=x", "y", Binding::Unable);
    assert_eq!(not_utf8.err(), Some(ScramError::Malformed("text")));
    assert!(start("n,,n=a=2Cb,r=x,ext=1").is_ok(), "extensions are skipped");
}

#[test]
fn altered_last_message_of_a_client_is_refused() {
    assert!(finish_with(str::to_owned).is_ok());
    let is = |error| Err::<(Vec<u8>, [u8; 32]), _>(error);
    let altered = finish_with(|m| m.replace("c=biws", "c=eSws"));
    assert_eq!(altered, is(ScramError::ChannelBindingMismatch));
    assert_eq!(finish_with(|m| m.replace("r=Td7", "r=Td8")), is(ScramError::NonceMismatch));
    assert_eq!(finish_with(|m| m.replace("w2IW,", "w2I,")), is(ScramError::NonceMismatch));
    assert_eq!(finish_with(|m| m.replace("w2IW,", "w2IWx,")), is(ScramError::NonceMismatch));
    assert_eq!(finish_with(|m| m.replace("p=LAv0", "p=LAv1")), is(ScramError::WrongProof));
    assert_eq!(finish_with(|m| m.replace(",p=", ",x=1,p=")), is(ScramError::WrongProof));
    for proof in ["", "LAv0", "!", "LAv09ASbFjomylfXtvrJ2FkSsHA26PxZOZcYf50Gmcg"] {
        let (head, _) = PSQL.client_final.split_once(",p=").expect("a proof");
        let altered = finish_with(|_| format!("{head},p={proof}"));
        assert_eq!(altered, is(ScramError::Malformed("proof")), "{proof}");
    }
    assert_eq!(finish_with(|_| String::new()), is(ScramError::Malformed("proof")));
    let reordered = finish_with(|m| m.replace("c=biws,r=", "r=biws,c="));
    assert_eq!(reordered, is(ScramError::Malformed("channel binding")));
}

#[test]
fn every_cut_of_a_message_is_an_error() {
    for end in 0..PSQL.client_final.len() {
        assert!(finish_with(|message| message[..end].to_owned()).is_err(), "cut at {end}");
    }
    let end_of_salt = PSQL.server_first.len() - "4096".len();
    for end in 0..=end_of_salt {
        assert!(server_first(&PSQL.server_first[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn malformed_first_message_of_a_server_is_refused() {
    assert_eq!(server_first(PSQL.server_first), Ok(()));
    let altered = |from: &str, to: &str| server_first(&PSQL.server_first.replace(from, to));
    assert_eq!(altered("r=Td7", "r=Td8"), Err(ScramError::NonceMismatch));
    assert_eq!(altered(PSQL.nonce, ""), Err(ScramError::NonceMismatch), "nothing was added");
    assert_eq!(altered("r=Td7", "m=x,r=Td7"), Err(ScramError::Unsupported("mandatory extension")));
    assert_eq!(altered("eSej", "!"), Err(ScramError::Malformed("salt")));
    for count in ["", "0", "-1", "+4096", "04096", "4096x", "99999999999"] {
        let error = Err(ScramError::Malformed("iteration count"));
        assert_eq!(altered("4096", count), error, "{count}");
    }
    assert_eq!(altered("i=4096", "i=4096,x=1"), Ok(()), "extensions are skipped");
}

#[test]
fn hostile_server_gets_no_endless_work() {
    let asked = |n: u32| server_first(&PSQL.server_first.replace("4096", &n.to_string()));
    assert_eq!(asked(SCRAM_ITERATIONS_MAX), Ok(()));
    let got = SCRAM_ITERATIONS_MAX + 1;
    let max = SCRAM_ITERATIONS_MAX;
    assert_eq!(asked(got), Err(ScramError::TooManyIterations { got, max }));
}

#[test]
fn server_must_prove_itself() {
    let server_final = |message: &str| {
        let nonce = &PSQL.client_first["n,,n=,r=".len()..];
        let needs =
            ScramClient::start(nonce, Binding::Unable).0.server_first(PSQL.server_first.as_bytes());
        let keys = ScramKeys::derive("pencil", &verifier().salt, 4096);
        let (awaits, _) = needs.expect("server-first").with_keys(&keys);
        awaits.server_final(message.as_bytes())
    };
    assert_eq!(server_final(PSQL.server_final), Ok(()));
    assert_eq!(server_final(RFC.server_final), Err(ScramError::WrongServerSignature));
    let refused = ScramError::Server("invalid-proof".to_owned());
    assert_eq!(server_final("e=invalid-proof"), Err(refused));
    for malformed in ["", "v=", "v=AAAA", "x=1"] {
        let error = Err(ScramError::Malformed("server signature"));
        assert_eq!(server_final(malformed), error, "{malformed}");
    }
}

#[test]
fn unknown_user_looks_like_a_known_one() {
    let mock = |secret: u8, user| ScramVerifier::mock(&[secret; 32], user, 4096);
    assert!(mock(1, "a") == mock(1, "a"), "the same salt every time");
    assert_ne!(mock(1, "a").salt, mock(1, "b").salt);
    assert_ne!(mock(1, "a").salt, mock(2, "a").salt);
    assert_eq!(mock(1, "a").salt.len(), verifier().salt.len());
    assert_ne!(mock(1, "a").stored_key, mock(1, "a").server_key);
    let (server, reply) =
        ScramServer::start(&mock(1, "a"), b"n,,n=,r=x", "y", Binding::Unable).expect("first");
    assert!(reply.ends_with(b",i=4096"));
    let last = format!("c=biws,r=xy,p={}=", "A".repeat(43));
    assert_eq!(server.finish(last.as_bytes()), Err(ScramError::WrongProof));
}

#[test]
fn oversized_messages_are_refused() {
    let first = format!("n,,n=,r={}", "x".repeat(SCRAM_MESSAGE_BYTES_MAX));
    assert_eq!(start(&first).err(), Some(ScramError::TooLong { len: first.len() }));
    let longest = &first[..SCRAM_MESSAGE_BYTES_MAX];
    assert!(start(longest).is_ok());
    assert_eq!(server_first(&first), Err(ScramError::TooLong { len: first.len() }));
}

/// An exchange of both ends over connections whose certificates have these hashes.
fn bound(client: Binding<'_>, server: Binding<'_>) -> Result<[u8; 32], ScramError> {
    let (client, first) = ScramClient::start("client", client);
    let (server, reply) = ScramServer::start(&verifier(), &first, "server", server)?;
    let needs = client.server_first(&reply)?;
    let keys = ScramKeys::derive("pencil", &needs.salt, needs.iterations);
    let (awaits, last) = needs.with_keys(&keys);
    let (reply, client_key) = server.finish(&last)?;
    awaits.server_final(&reply)?;
    assert_eq!(client_key, keys.client_key, "a bound proof can be passed on, too");
    Ok(client_key)
}

#[test]
fn exchange_is_bound_to_its_connection() {
    let (ours, other) = (Binding::EndPoint(&[1; 32]), Binding::EndPoint(&[2; 32]));
    assert!(bound(ours, ours).is_ok());
    assert_eq!(bound(other, ours), Err(ScramError::ChannelBindingMismatch));
    let long = [1; 64];
    assert!(bound(Binding::EndPoint(&long), Binding::EndPoint(&long)).is_ok());
    assert_eq!(bound(Binding::EndPoint(&long), ours), Err(ScramError::ChannelBindingMismatch));
}

#[test]
fn client_that_was_told_a_lie_about_channel_binding_is_refused() {
    let ours = Binding::EndPoint(&[1; 32]);
    assert!(bound(Binding::Unable, Binding::Unused).is_ok(), "a client that can't");
    assert!(bound(Binding::Unused, Binding::Unable).is_ok(), "it was not offered");
    let declined = Err(ScramError::ChannelBindingDeclined);
    assert_eq!(bound(Binding::Unused, Binding::Unused), declined);
    let flag = Err(ScramError::Malformed("channel-binding flag"));
    assert_eq!(bound(Binding::Unable, ours), flag, "the mechanism asks for more");
    assert_eq!(bound(Binding::Unused, ours), flag);
    let unsupported = Err(ScramError::Unsupported("channel binding"));
    assert_eq!(bound(ours, Binding::Unused), unsupported, "the mechanism is the other one");
    let unique = ScramServer::start(&verifier(), b"p=tls-unique,,n=,r=x", "y", ours);
    assert_eq!(unique.err(), Some(ScramError::Unsupported("channel-binding type")));
}

#[test]
fn header_of_a_bound_exchange_is_as_in_the_rfc() {
    let (_, first) = ScramClient::start("abc", Binding::EndPoint(b"hash"));
    assert_eq!(first, b"p=tls-server-end-point,,n=,r=abc");
    let (_, first) = ScramClient::start("abc", Binding::Unused);
    assert_eq!(first, b"y,,n=,r=abc");
}
