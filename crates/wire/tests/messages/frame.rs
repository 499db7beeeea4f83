use wire::pg::{header, Header, WireError, HEADER_BYTES, MESSAGE_BYTES_MAX};

fn with_length(len: i32) -> [u8; 5] {
    let [a, b, c, d] = len.to_be_bytes();
    [b'D', a, b, c, d]
}

#[test]
fn header_needs_five_bytes() {
    let message = with_length(11);
    for end in 0..HEADER_BYTES {
        assert_eq!(header(&message[..end]), Ok(None));
    }
    assert_eq!(header(&message), Ok(Some(Header { tag: b'D', total: 12 })));
}

#[test]
fn length_that_does_not_cover_itself_is_refused() {
    for len in [i32::MIN, -1, 0, 3] {
        assert_eq!(header(&with_length(len)), Err(WireError::BadLength { tag: b'D', len }));
    }
    assert_eq!(header(&with_length(4)), Ok(Some(Header { tag: b'D', total: 5 })));
}

#[test]
fn length_beyond_what_postgresql_builds_is_refused() {
    let longest = (MESSAGE_BYTES_MAX - 1) as i32;
    let head = Header { tag: b'D', total: MESSAGE_BYTES_MAX };
    assert_eq!(header(&with_length(longest)), Ok(Some(head)));
    for len in [longest + 1, i32::MAX] {
        assert!(matches!(header(&with_length(len)), Err(WireError::TooLong { .. })));
    }
}

#[test]
fn errors_are_short_facts() {
    let shown = [
        (WireError::BadLength { tag: 0, len: -1 }, "invalid length -1 of a start-up packet"),
        (WireError::BadLength { tag: b'Q', len: 3 }, "invalid length 3 of message 'Q'"),
        (WireError::BadLength { tag: 0xff, len: 3 }, "invalid length 3 of message '\\xff'"),
        (WireError::Truncated("row limit"), "message ends within row limit"),
        (WireError::NotTerminated("query text"), "query text is not terminated"),
        (WireError::NotUtf8("parameter name"), "parameter name is not UTF-8"),
        (WireError::Trailing("Parse"), "bytes after the end of Parse"),
        (WireError::Unexpected { what: "target kind", got: 88 }, "unexpected target kind: 88"),
        (
            WireError::TooLong { what: "cancel key", len: 257, max: 256 },
            "cancel key too long: 257, at most 256",
        ),
        (WireError::BadSecret("SCRAM salt"), "invalid stored secret: SCRAM salt"),
    ];
    for (error, text) in shown {
        assert_eq!(error.to_string(), text);
    }
}
