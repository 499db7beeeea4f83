use wire::pg::startup::{
    first_packet, put_cancel, put_gssenc_request, put_ssl_request, put_startup, FirstPacket,
    CANCEL_KEY_BYTES_MAX, STARTUP_BYTES_MAX,
};
use wire::pg::WireError;

use crate::built;

/// As psql 15 sends it.
const PSQL: &[u8] = b"\0\0\0\x57\0\x03\0\0user\0scramuser\0database\0postgres\0\
    application_name\0psql\0client_encoding\0UTF8\0\0";

fn packet(payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn error_of(payload: &[u8]) -> WireError {
    first_packet(&packet(payload)).expect_err("malformed")
}

#[test]
fn startup_of_psql_is_read_and_built() {
    let psql = packet(&PSQL[4..]);
    let Ok(Some((FirstPacket::Startup(startup), used))) = first_packet(&psql) else {
        panic!("not a start-up packet");
    };
    assert_eq!((startup.major, startup.minor, used), (3, 0, psql.len()));
    let params: Vec<_> = startup.params().collect();
    let expected = [
        ("user", "scramuser"),
        ("database", "postgres"),
        ("application_name", "psql"),
        ("client_encoding", "UTF8"),
    ];
    assert_eq!(params, expected);
    assert_eq!(startup.get("database"), Some("postgres"));
    assert_eq!(startup.get("replication"), None);
    assert_eq!(built(|out| put_startup(out, 0, &params)), psql);
}

/// Trap 21: a start-up split at every byte.
#[test]
fn packet_is_incomplete_until_its_last_byte() {
    let packets = [
        packet(&PSQL[4..]),
        built(put_ssl_request),
        built(put_gssenc_request),
        built(|out| put_cancel(out, 7, b"kkkk")),
    ];
    for bytes in packets {
        for end in 0..bytes.len() {
            assert_eq!(first_packet(&bytes[..end]), Ok(None), "cut at {end}");
        }
        let more = [bytes.as_slice(), b"more"].concat();
        let used = first_packet(&more).expect("well-formed").expect("complete").1;
        assert_eq!(used, bytes.len());
    }
}

#[test]
fn requests_have_the_bytes_of_the_documentation() {
    let ssl = built(put_ssl_request);
    assert_eq!(ssl, [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
    assert_eq!(first_packet(&ssl), Ok(Some((FirstPacket::Ssl, 8))));
    let gss = built(put_gssenc_request);
    assert_eq!(gss, [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30]);
    assert_eq!(first_packet(&gss), Ok(Some((FirstPacket::GssEnc, 8))));
    let cancel = built(|out| put_cancel(out, 258, &[1, 2, 3, 4]));
    assert_eq!(cancel, [0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 1, 2, 1, 2, 3, 4]);
    let expected = FirstPacket::Cancel { pid: 258, key: &[1, 2, 3, 4] };
    assert_eq!(first_packet(&cancel), Ok(Some((expected, 16))));
}

#[test]
fn request_with_a_payload_is_refused() {
    assert_eq!(error_of(&[0x04, 0xd2, 0x16, 0x2f, 0]), WireError::Trailing("SSLRequest"));
    assert_eq!(error_of(&[0x04, 0xd2, 0x16, 0x30, 0]), WireError::Trailing("GSSENCRequest"));
}

#[test]
fn cancel_key_has_4_to_256_bytes() {
    for len in [4, 32, CANCEL_KEY_BYTES_MAX] {
        let key = vec![7; len];
        let cancel = built(|out| put_cancel(out, 1, &key));
        let expected = FirstPacket::Cancel { pid: 1, key: &key };
        assert_eq!(first_packet(&cancel), Ok(Some((expected, 12 + len))));
    }
    let cancel =
        |len: usize| error_of(&[&[0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1][..], &vec![7; len]].concat());
    assert_eq!(cancel(3), WireError::Truncated("cancel key"));
    assert!(matches!(cancel(257), WireError::TooLong { len: 257, max: 256, .. }));
    assert_eq!(error_of(&[0x04, 0xd2, 0x16, 0x2e, 0]), WireError::Truncated("process id"));
}

#[test]
fn length_is_judged_before_more_is_waited_for() {
    for len in [i32::MIN, -1, 0, 4, 7] {
        assert_eq!(first_packet(&len.to_be_bytes()), Err(WireError::BadLength { tag: 0, len }));
    }
    let longest = STARTUP_BYTES_MAX as i32 + 4;
    assert_eq!(first_packet(&longest.to_be_bytes()), Ok(None));
    for len in [longest + 1, i32::MAX] {
        let word = len.to_be_bytes();
        assert!(matches!(
            first_packet(&word),
            Err(WireError::TooLong { max: STARTUP_BYTES_MAX, .. })
        ));
    }
    assert!(first_packet(b"GET / HTTP/1.1").is_err());
    assert!(first_packet(&[0x16, 0x03, 0x01, 0x00]).is_err(), "a TLS ClientHello");
}

#[test]
fn other_major_versions_are_left_to_the_caller() {
    let old = packet(b"\0\x02\0\0database\0\0\0\xff");
    let Ok(Some((FirstPacket::Startup(startup), used))) = first_packet(&old) else {
        panic!("not a start-up packet");
    };
    assert_eq!((startup.major, startup.minor, used), (2, 0, old.len()));
    assert_eq!(startup.params().count(), 0);
}

#[test]
fn minor_versions_and_protocol_options_are_read() {
    let newer = built(|out| put_startup(out, 9999, &[("user", "me"), ("_pq_.x", "1")]));
    let Ok(Some((FirstPacket::Startup(startup), _))) = first_packet(&newer) else {
        panic!("not a start-up packet");
    };
    assert_eq!((startup.major, startup.minor), (3, 9999));
    assert_eq!(startup.get("_pq_.x"), Some("1"));
}

#[test]
fn last_of_repeated_parameters_wins() {
    let twice = packet(b"\0\x03\0\0user\0a\0user\0b\0\0");
    let Ok(Some((FirstPacket::Startup(startup), _))) = first_packet(&twice) else {
        panic!("not a start-up packet");
    };
    assert_eq!(startup.get("user"), Some("b"));
    assert_eq!(startup.params().count(), 2);
}

#[test]
fn malformed_parameters_are_refused() {
    let errors: [(&[u8], WireError); 6] = [
        (b"\0\x03\0\0", WireError::NotTerminated("start-up parameter name")),
        (b"\0\x03\0\0user", WireError::NotTerminated("start-up parameter name")),
        (b"\0\x03\0\0user\0me", WireError::NotTerminated("start-up parameter value")),
        (b"\0\x03\0\0user\0me\0", WireError::NotTerminated("start-up parameter name")),
        (b"\0\x03\0\0user\0me\0\0x", WireError::Trailing("start-up parameters")),
        (b"\0\x03\0\0user\0\xe9\0\0", WireError::NotUtf8("start-up parameter value")),
    ];
    for (payload, error) in errors {
        assert_eq!(error_of(payload), error, "{}", payload.escape_ascii());
    }
}
