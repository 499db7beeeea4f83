use wire::pg::frontend::*;
use wire::pg::WireError;

use crate::{body_of, built};

#[test]
fn query_has_a_text_without_nul() {
    let message = built(|out| put_query(out, "select 1"));
    assert_eq!(message, b"Q\0\0\0\x0dselect 1\0");
    assert_eq!(query(body_of(&message, tag::QUERY)), Ok(&b"select 1"[..]));
    assert_eq!(query(b"\0"), Ok(&b""[..]));
    assert_eq!(query(b"select 1"), Err(WireError::NotTerminated("Query")));
    assert_eq!(query(b""), Err(WireError::NotTerminated("Query")));
    assert_eq!(query(b"select 1\0; drop table t\0"), Err(WireError::Trailing("Query")));
}

#[test]
fn parse_keeps_its_types_raw() {
    let types = [0, 2, 0, 0, 0, 23, 0, 0, 0, 25];
    let message = built(|out| put_parse(out, b"s1", b"select $1, $2", &types));
    assert_eq!(message, b"P\0\0\0\x1fs1\0select $1, $2\0\0\x02\0\0\0\x17\0\0\0\x19");
    let expected = Parse { name: b"s1", query: b"select $1, $2", types: &types };
    assert_eq!(parse(body_of(&message, tag::PARSE)), Ok(expected));
    let untyped = built(|out| put_parse(out, b"", b"select 1", b""));
    let expected = Parse { name: b"", query: b"select 1", types: &[0, 0] };
    assert_eq!(parse(body_of(&untyped, tag::PARSE)), Ok(expected));
}

#[test]
fn parse_with_the_wrong_number_of_types_is_refused() {
    assert_eq!(parse(b"s\0q\0"), Err(WireError::Truncated("parameter type count")));
    assert_eq!(parse(b"s\0q\0\0"), Err(WireError::Truncated("parameter type count")));
    assert_eq!(parse(b"s\0q\0\xff\xff\0\0\0\x17"), Err(WireError::Truncated("parameter types")));
    assert_eq!(parse(b"s\0q\0\0\x01\0\0\0"), Err(WireError::Truncated("parameter types")));
    assert_eq!(parse(b"s\0q\0\0\0\0"), Err(WireError::Trailing("Parse")));
    assert_eq!(parse(b"s\0q"), Err(WireError::NotTerminated("query text")));
    assert_eq!(parse(b"s"), Err(WireError::NotTerminated("statement name")));
    let most = [b"s\0q\0\xff\xff", &[0; 4 * 65535][..]].concat();
    assert_eq!(parse(&most).map(|parse| parse.types.len()), Ok(2 + 4 * 65535));
}

#[test]
fn bind_head_is_there_as_soon_as_its_second_nul() {
    let body = b"portal\0statement\0\0\x01\0\x01";
    for end in 0..17 {
        assert_eq!(bind_head(&body[..end]), Ok(None), "cut at {end}");
    }
    let head = BindHead { portal: b"portal", statement: b"statement", rest: 17 };
    for end in 17..=body.len() {
        assert_eq!(bind_head(&body[..end]), Ok(Some(head)));
    }
}

#[test]
fn names_beyond_their_ceiling_are_refused_unfinished() {
    let name = vec![b'n'; NAME_BYTES_MAX + 1];
    let too_long = |what| WireError::TooLong { what, len: NAME_BYTES_MAX + 1, max: NAME_BYTES_MAX };
    assert_eq!(bind_head(&name), Err(too_long("portal name")));
    let second = [b"\0", name.as_slice()].concat();
    assert_eq!(bind_head(&second), Err(too_long("statement name")));
    assert_eq!(bind_head(&name[1..]), Ok(None));
    assert_eq!(parse(&name), Err(too_long("statement name")));
    assert_eq!(execute(&name), Err(too_long("portal name")));
    assert_eq!(describe(&[b"S", name.as_slice()].concat()), Err(too_long("target name")));
    let longest = [&name[1..], b"\0\0"].concat();
    assert_eq!(bind_head(&longest).map(|head| head.map(|head| head.rest)), Ok(Some(8194)));
}

#[test]
fn bind_head_leaves_room_for_the_rest() {
    let rest = [0, 0, 0, 0, 0, 0];
    let mut message = built(|out| put_bind_head(out, rest.len(), b"p", b"s1"));
    message.extend_from_slice(&rest);
    assert_eq!(message, b"B\0\0\0\x0fp\0s1\0\0\0\0\0\0\0");
    body_of(&message, tag::BIND);
}

#[test]
fn bind_sends_text_values_and_nulls() {
    let message = built(|out| put_bind(out, b"", b"s", &[Some(b"42"), None, Some(b"")]));
    let body = b"\0s\0\0\0\0\x03\0\0\0\x0242\xff\xff\xff\xff\0\0\0\0\0\0";
    assert_eq!(body_of(&message, tag::BIND), body);
}

#[test]
fn the_tail_of_a_bind_tells_values_with_their_formats() {
    let read = |rest: &[u8]| {
        let tail = bind_tail(rest).expect("well-formed");
        let own = |(binary, value): (bool, Option<&[u8]>)| (binary, value.map(<[u8]>::to_vec));
        (tail.values().map(own).collect::<Vec<_>>(), tail.results.to_vec())
    };
    let some = |bytes: &[u8]| Some(bytes.to_vec());
    assert_eq!(read(b"\0\0\0\0\0\0"), (vec![], vec![]));
    let text = b"\0\0\0\x02\0\0\0\x0242\xff\xff\xff\xff\0\0";
    assert_eq!(read(text), (vec![(false, some(b"42")), (false, None)], vec![]));
    let one = b"\0\x01\0\x01\0\x02\0\0\0\x01a\0\0\0\0\0\x01\0\x01";
    assert_eq!(read(one), (vec![(true, some(b"a")), (true, some(b""))], vec![0, 1]));
    let each = b"\0\x02\0\0\0\x01\0\x02\0\0\0\x01a\0\0\0\x01b\0\x02\0\x01\0\0";
    assert_eq!(read(each), (vec![(false, some(b"a")), (true, some(b"b"))], vec![0, 1, 0, 0]));
    for end in 0..each.len() {
        assert!(bind_tail(&each[..end]).is_err(), "cut at {end}");
    }
    assert!(bind_tail(b"\0\x01\0\x02\0\0\0\0").is_err(), "no such format");
    assert!(bind_tail(b"\0\x02\0\0\0\0\0\x01\0\0\0\0\0\0").is_err(), "two formats for one value");
    assert!(bind_tail(b"\0\0\0\x01\xff\xff\xff\xfe\0\0").is_err(), "a length of -2");
    assert!(bind_tail(b"\0\0\0\0\0\0\0").is_err(), "one byte more");
}

#[test]
fn describe_and_close_name_a_statement_or_a_portal() {
    let message = built(|out| put_describe(out, Target::Statement, b"s1"));
    assert_eq!(message, b"D\0\0\0\x08Ss1\0");
    assert_eq!(describe(&message[5..]), Ok((Target::Statement, &b"s1"[..])));
    let message = built(|out| put_close(out, Target::Portal, b""));
    assert_eq!(message, b"C\0\0\0\x06P\0");
    assert_eq!(close(&message[5..]), Ok((Target::Portal, &b""[..])));
    let unknown = WireError::Unexpected { what: "target kind", got: b'X'.into() };
    assert_eq!(describe(b"Xs1\0"), Err(unknown));
    assert_eq!(close(b""), Err(WireError::Truncated("target kind")));
    assert_eq!(close(b"S"), Err(WireError::NotTerminated("target name")));
    assert_eq!(close(b"Ss\0s\0"), Err(WireError::Trailing("Close")));
}

#[test]
fn execute_has_a_row_limit() {
    let message = built(|out| put_execute(out, b"p", 100));
    assert_eq!(message, b"E\0\0\0\x0ap\0\0\0\0\x64");
    assert_eq!(execute(&message[5..]), Ok((&b"p"[..], 100)));
    assert_eq!(execute(b"\0\xff\xff\xff\xff"), Ok((&b""[..], -1)));
    assert_eq!(execute(b"p\0\0\0\0"), Err(WireError::Truncated("row limit")));
    assert_eq!(execute(b"p\0\0\0\0\0\0"), Err(WireError::Trailing("Execute")));
}

#[test]
fn messages_without_a_body_have_five_bytes() {
    assert_eq!(built(put_sync), b"S\0\0\0\x04");
    assert_eq!(built(put_flush), b"H\0\0\0\x04");
    assert_eq!(built(put_terminate), b"X\0\0\0\x04");
    assert_eq!(built(|out| put_copy_fail(out, "no")), b"f\0\0\0\x07no\0");
}

/// Trap 21: a 64 KB password.
#[test]
fn password_of_64_kilobytes_is_refused() {
    let message = built(|out| put_password(out, b"pencil"));
    assert_eq!(message, b"p\0\0\0\x0bpencil\0");
    assert_eq!(password(&message[5..]), Ok(&b"pencil"[..]));
    assert_eq!(password(b"pencil"), Err(WireError::NotTerminated("PasswordMessage")));
    assert_eq!(password(b"pen\0cil\0"), Err(WireError::Trailing("PasswordMessage")));
    let mut body = vec![b'x'; AUTH_BODY_BYTES_MAX];
    body[AUTH_BODY_BYTES_MAX - 1] = 0;
    assert_eq!(password(&body).map(<[u8]>::len), Ok(AUTH_BODY_BYTES_MAX - 1));
    body.insert(0, b'x');
    assert!(matches!(password(&body), Err(WireError::TooLong { .. })));
    assert!(matches!(sasl_initial(&body), Err(WireError::TooLong { .. })));
    assert!(matches!(sasl_response(&body), Err(WireError::TooLong { .. })));
}

#[test]
fn sasl_initial_response_of_psql_is_read_and_built() {
    let psql = b"p\0\0\0\x36SCRAM-SHA-256\0\0\0\0\x20n,,n=,r=Td7WFopxFKAlkefEFzv6g3wj";
    let response = &b"n,,n=,r=Td7WFopxFKAlkefEFzv6g3wj"[..];
    let initial = SaslInitial { mechanism: "SCRAM-SHA-256", response: Some(response) };
    assert_eq!(sasl_initial(body_of(psql, tag::PASSWORD)), Ok(initial));
    assert_eq!(built(|out| put_sasl_initial(out, "SCRAM-SHA-256", response)), psql);
    assert_eq!(built(|out| put_sasl_response(out, b"c=biws")), b"p\0\0\0\x0ac=biws");
}

#[test]
fn sasl_initial_response_with_a_wrong_length_is_refused() {
    let none = SaslInitial { mechanism: "X", response: None };
    assert_eq!(sasl_initial(b"X\0\xff\xff\xff\xff"), Ok(none));
    let errors: [(&[u8], WireError); 6] = [
        (b"X", WireError::NotTerminated("SASL mechanism")),
        (b"\xff\0\0\0\0\0", WireError::NotUtf8("SASL mechanism")),
        (b"X\0\0\0\0", WireError::Truncated("SASL response length")),
        (b"X\0\0\0\0\x02n", WireError::Truncated("SASL response")),
        (
            b"X\0\xff\xff\xff\xfe",
            WireError::Unexpected { what: "SASL response length", got: 0xffff_fffe },
        ),
        (b"X\0\0\0\0\x01nn", WireError::Trailing("SASLInitialResponse")),
    ];
    for (body, error) in errors {
        assert_eq!(sasl_initial(body), Err(error), "{}", body.escape_ascii());
    }
}

#[test]
fn nul_in_a_text_ends_it_and_starts_no_field() {
    assert_eq!(built(|out| put_query(out, "select 1\0x")), built(|out| put_query(out, "select 1")));
    let bind = built(|out| put_bind(out, b"p\0s", b"s\0\0", &[]));
    assert_eq!(bind, built(|out| put_bind(out, b"p", b"s", &[])));
}
