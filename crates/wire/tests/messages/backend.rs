use wire::pg::backend::*;
use wire::pg::WireError;

use crate::{body_of, built};

#[test]
fn ready_carries_the_transaction_status() {
    let all = [(TxStatus::Idle, b'I'), (TxStatus::InTransaction, b'T'), (TxStatus::Failed, b'E')];
    for (status, byte) in all {
        let message = built(|out| put_ready(out, status));
        assert_eq!(message, [b'Z', 0, 0, 0, 5, byte]);
        assert_eq!(ready(&message[5..]), Ok(status));
        assert_eq!(TxStatus::from_byte(byte), Some(status));
    }
    assert_eq!(ready(b""), Err(WireError::Truncated("transaction status")));
    assert_eq!(ready(b"II"), Err(WireError::Trailing("ReadyForQuery")));
    let unknown = WireError::Unexpected { what: "transaction status", got: b'X'.into() };
    assert_eq!(ready(b"X"), Err(unknown));
}

/// As PostgreSQL 15 sends it.
const DIVISION: &[u8] = b"SERROR\0VERROR\0C22012\0Mdivision by zero\0Fint.c\0L841\0Rint4div\0\0";

#[test]
fn error_of_postgresql_is_read() {
    let fields = error_fields(DIVISION).expect("well-formed");
    assert_eq!(fields.severity(), Some("ERROR"));
    assert_eq!(fields.code(), Some("22012"));
    assert_eq!(fields.message(), Some("division by zero"));
    assert_eq!((fields.detail(), fields.hint(), fields.position()), (None, None, None));
    assert_eq!(fields.field(b'R'), Some(&b"int4div"[..]));
}

/// Trap 21: a missing SQLSTATE.
#[test]
fn error_may_lack_any_field() {
    let fields = error_fields(b"SFATAL\0Mno more connections\0\0").expect("well-formed");
    assert_eq!(fields.code(), None);
    assert_eq!(fields.severity(), Some("FATAL"));
    assert_eq!(fields.message(), Some("no more connections"));
    let fields = error_fields(b"\0").expect("well-formed");
    assert_eq!((fields.severity(), fields.code(), fields.message()), (None, None, None));
}

#[test]
fn severity_is_the_one_that_is_not_localised() {
    let fields = error_fields(b"SFEHLER\0VERROR\0\0").expect("well-formed");
    assert_eq!(fields.severity(), Some("ERROR"));
    let fields = error_fields(b"SFEHLER\0V\xff\0\0").expect("well-formed");
    assert_eq!(fields.severity(), Some("FEHLER"));
}

#[test]
fn field_that_is_not_utf8_counts_as_missing() {
    let fields = error_fields(b"SERROR\0Mf\xfcr\0Hhint\0P8\0\0").expect("well-formed");
    assert_eq!(fields.message(), None);
    assert_eq!(fields.field(b'M'), Some(&b"f\xfcr"[..]));
    assert_eq!((fields.hint(), fields.position()), (Some("hint"), Some("8")));
}

#[test]
fn error_cut_anywhere_is_refused() {
    for end in 0..DIVISION.len() {
        assert!(error_fields(&DIVISION[..end]).is_err(), "cut at {end}");
    }
    assert_eq!(error_fields(b"SERROR\0\0x"), Err(WireError::Trailing("ErrorResponse")));
}

#[test]
fn errors_and_notices_of_our_own_are_built() {
    let mut reply = ErrorReply {
        severity: "FATAL",
        code: "53300",
        message: "no server connection became free",
        detail: Some("20 of 20 in use"),
        hint: Some("raise pool_size"),
    };
    let message = built(|out| put_error(out, &reply));
    let body = b"SFATAL\0VFATAL\0C53300\0Mno server connection became free\0\
        D20 of 20 in use\0Hraise pool_size\0\0";
    assert_eq!(body_of(&message, tag::ERROR), body);
    (reply.detail, reply.hint) = (None, None);
    let message = built(|out| put_notice(out, &reply));
    let body = b"SFATAL\0VFATAL\0C53300\0Mno server connection became free\0\0";
    assert_eq!(body_of(&message, tag::NOTICE), body);
}

#[test]
fn nul_in_an_error_ends_its_text_and_starts_no_field() {
    let message = "a\0CXX000\0";
    let reply = ErrorReply { severity: "ERROR", code: "42601", message, detail: None, hint: None };
    let built = built(|out| put_error(out, &reply));
    let fields = error_fields(&built[5..]).expect("well-formed");
    assert_eq!((fields.code(), fields.message()), (Some("42601"), Some("a")));
}

#[test]
fn parameter_status_has_name_and_value() {
    let message = built(|out| put_parameter_status(out, "TimeZone", "UTC"));
    assert_eq!(message, b"S\0\0\0\x11TimeZone\0UTC\0");
    assert_eq!(parameter_status(&message[5..]), Ok(("TimeZone", "UTC")));
    assert_eq!(parameter_status(b"a\0"), Err(WireError::NotTerminated("parameter value")));
    assert_eq!(parameter_status(b"a\0\xe9\0"), Err(WireError::NotUtf8("parameter value")));
    assert_eq!(parameter_status(b"a\0b\0c"), Err(WireError::Trailing("ParameterStatus")));
}

#[test]
fn backend_key_has_4_to_256_bytes() {
    let message = built(|out| put_backend_key(out, 258, &[9, 8, 7, 6]));
    assert_eq!(message, [b'K', 0, 0, 0, 12, 0, 0, 1, 2, 9, 8, 7, 6]);
    assert_eq!(backend_key(&message[5..]), Ok((258, &[9, 8, 7, 6][..])));
    let long = built(|out| put_backend_key(out, 1, &[5; 256]));
    assert_eq!(backend_key(&long[5..]), Ok((1, &[5; 256][..])));
    assert_eq!(backend_key(&[0; 3]), Err(WireError::Truncated("process id")));
    assert_eq!(backend_key(&[0; 7]), Err(WireError::Truncated("cancel key")));
    assert!(matches!(backend_key(&[0; 261]), Err(WireError::TooLong { len: 257, .. })));
}

#[test]
fn descriptions_have_types() {
    let message = built(|out| put_parameter_description(out, &[23, 0]));
    let body = &message[5..];
    assert_eq!(parameter_types(body), Ok(vec![23, 0]));
    let columns = [
        Column { name: "a", oid: 25, size: -1, format: 0 },
        Column { name: "", oid: 1700, size: -1, format: 1 },
    ];
    let rows = built(|out| put_row_description(out, &columns));
    let rows = &rows[5..];
    assert_eq!(column_types(rows), Ok(vec![25, 1700]));
    assert_eq!(column_names(rows), Ok(vec!["a".to_owned(), String::new()]));
    assert_eq!(column_types(b"\0\0"), Ok(vec![]));
    assert_eq!(column_names(b"\0\0"), Ok(vec![]));
    for end in 0..body.len() {
        assert!(matches!(parameter_types(&body[..end]), Err(WireError::Truncated(_))), "{end}");
    }
    for end in 0..rows.len() {
        assert!(column_types(&rows[..end]).is_err(), "{end}");
        assert!(column_names(&rows[..end]).is_err(), "{end}");
    }
    assert_eq!(column_types(b"\0\0x"), Err(WireError::Trailing("RowDescription")));
}

#[test]
fn data_row_has_values_and_nulls() {
    let values = [Some(&b"one"[..]), None, Some(b"")];
    let message = built(|out| put_data_row(out, &values));
    let body = &message[5..];
    assert_eq!(data_row(body), Ok(values.to_vec()));
    for end in 0..body.len() {
        assert!(matches!(data_row(&body[..end]), Err(WireError::Truncated(_))), "{end}");
    }
    assert_eq!(data_row(b"\0\0x"), Err(WireError::Trailing("DataRow")));
    let (what, got) = ("length of a value", 0xffff_fffe);
    assert_eq!(data_row(b"\0\x01\xff\xff\xff\xfe"), Err(WireError::Unexpected { what, got }));
}

#[test]
fn command_complete_has_a_tag() {
    let message = built(|out| put_command_complete(out, "INSERT 0 1"));
    assert_eq!(message, b"C\0\0\0\x0fINSERT 0 1\0");
    assert_eq!(command_tag(&message[5..]), Ok(&b"INSERT 0 1"[..]));
    assert_eq!(command_tag(b"BEGIN"), Err(WireError::NotTerminated("command tag")));
    assert_eq!(command_tag(b"BEGIN\0x"), Err(WireError::Trailing("CommandComplete")));
}

#[test]
fn authentication_requests_are_read_and_built() {
    let scram = "SCRAM-SHA-256";
    let all = [
        (built(put_auth_ok), b"R\0\0\0\x08\0\0\0\0".to_vec(), Auth::Ok),
        (built(put_auth_cleartext), b"R\0\0\0\x08\0\0\0\x03".to_vec(), Auth::Cleartext),
        (
            built(|out| put_auth_md5(out, [0xc1, 0xa9, 0x93, 0x94])),
            b"R\0\0\0\x0c\0\0\0\x05\xc1\xa9\x93\x94".to_vec(),
            Auth::Md5([0xc1, 0xa9, 0x93, 0x94]),
        ),
        (
            built(|out| put_auth_sasl(out, &[scram])),
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec(),
            Auth::Sasl(vec![scram]),
        ),
        (
            built(|out| put_auth_sasl_continue(out, b"r=x")),
            b"R\0\0\0\x0b\0\0\0\x0br=x".to_vec(),
            Auth::SaslContinue(b"r=x"),
        ),
        (
            built(|out| put_auth_sasl_final(out, b"v=x")),
            b"R\0\0\0\x0b\0\0\0\x0cv=x".to_vec(),
            Auth::SaslFinal(b"v=x"),
        ),
    ];
    for (built, bytes, read) in all {
        assert_eq!(built, bytes);
        assert_eq!(auth(body_of(&bytes, tag::AUTHENTICATION)), Ok(read));
    }
}

#[test]
fn authentication_of_other_kinds_is_named() {
    assert_eq!(auth(b"\0\0\0\x07"), Ok(Auth::Other(7)));
    assert_eq!(auth(b"\0\0\0\x08token"), Ok(Auth::Other(8)));
    assert_eq!(auth(b"\xff\xff\xff\xff"), Ok(Auth::Other(u32::MAX)));
}

#[test]
fn malformed_authentication_is_refused() {
    assert_eq!(auth(b"\0\0\0"), Err(WireError::Truncated("authentication kind")));
    assert_eq!(auth(b"\0\0\0\x05abc"), Err(WireError::Truncated("md5 salt")));
    assert_eq!(auth(b"\0\0\0\0x"), Err(WireError::Trailing("Authentication")));
    assert_eq!(auth(b"\0\0\0\x0aX\0"), Err(WireError::NotTerminated("SASL mechanism")));
    let many = [&b"\0\0\0\x0a"[..], &b"X\0".repeat(SASL_MECHANISMS_MAX + 1), b"\0"].concat();
    assert!(matches!(auth(&many), Err(WireError::TooLong { max: SASL_MECHANISMS_MAX, .. })));
}

#[test]
fn negotiation_names_the_version_and_the_unknown_options() {
    let message = built(|out| put_negotiate(out, 2, &["_pq_.x", "_pq_.y"]));
    assert_eq!(message, b"v\0\0\0\x1a\0\x03\0\x02\0\0\0\x02_pq_.x\0_pq_.y\0");
    let read = negotiate(&message[5..]).expect("well-formed");
    assert_eq!((read.minor, read.count), (2, 2));
    assert_eq!(read.options().collect::<Vec<_>>(), ["_pq_.x", "_pq_.y"]);
    assert_eq!(negotiate(b"\0\0\0\x02\0\0\0\0").map(|read| read.minor), Ok(2));
}

#[test]
fn malformed_negotiation_is_refused() {
    let version = WireError::Unexpected { what: "protocol version", got: 4 << 16 };
    assert_eq!(negotiate(b"\0\x04\0\0\0\0\0\0"), Err(version));
    let truncated = WireError::Truncated("options");
    assert_eq!(negotiate(b"\0\x03\0\0\x7f\xff\xff\xffa\0"), Err(truncated.clone()));
    assert_eq!(negotiate(b"\0\x03\0\0\xff\xff\xff\xff"), Err(truncated));
    assert_eq!(negotiate(b"\0\x03\0\0\0\0\0\x01a"), Err(WireError::NotTerminated("option name")));
    let trailing = WireError::Trailing("NegotiateProtocolVersion");
    assert_eq!(negotiate(b"\0\x03\0\0\0\0\0\0a\0"), Err(trailing));
}

#[test]
fn rows_are_built() {
    let columns = [
        Column { name: "id", oid: 23, size: 4, format: 1 },
        Column { name: "name", oid: 25, size: -1, format: 0 },
    ];
    let message = built(|out| put_row_description(out, &columns));
    let body = b"\0\x02id\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01\
        name\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
    assert_eq!(body_of(&message, tag::ROW_DESCRIPTION), body);
    let message = built(|out| put_data_row(out, &[Some(b"x"), None, Some(b"")]));
    let body = b"\0\x03\0\0\0\x01x\xff\xff\xff\xff\0\0\0\0";
    assert_eq!(body_of(&message, tag::DATA_ROW), body);
    let message = built(|out| put_parameter_description(out, &[23, 25]));
    assert_eq!(message, b"t\0\0\0\x0e\0\x02\0\0\0\x17\0\0\0\x19");
}

#[test]
fn messages_without_a_body_have_five_bytes() {
    assert_eq!(built(put_parse_complete), b"1\0\0\0\x04");
    assert_eq!(built(put_bind_complete), b"2\0\0\0\x04");
    assert_eq!(built(put_close_complete), b"3\0\0\0\x04");
    assert_eq!(built(put_no_data), b"n\0\0\0\x04");
    assert_eq!(built(put_empty_query), b"I\0\0\0\x04");
    assert_eq!(built(put_portal_suspended), b"s\0\0\0\x04");
}

#[test]
fn notifications_tell_who_where_and_what() {
    let message = built(|out| put_notification(out, 7, "redis", "k 0 61"));
    let body = body_of(&message, tag::NOTIFICATION);
    assert_eq!(body, b"\0\0\0\x07redis\0k 0 61\0");
    assert_eq!(notification(body), Ok((7, &b"redis"[..], &b"k 0 61"[..])));
    assert_eq!(notification(&body[..3]), Err(WireError::Truncated("process id")));
    assert_eq!(notification(b"\0\0\0\x07r"), Err(WireError::NotTerminated("channel")));
    assert_eq!(notification(b"\0\0\0\x07r\0p"), Err(WireError::NotTerminated("payload")));
    let trailing = WireError::Trailing("NotificationResponse");
    assert_eq!(notification(b"\0\0\0\x07r\0p\0x"), Err(trailing));
}
