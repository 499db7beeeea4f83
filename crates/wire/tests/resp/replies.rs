//! Replies in both protocols.

use proptest::prelude::*;
use wire::resp::reply::*;
use wire::resp::Protocol::{self, Resp2, Resp3};

#[track_caller]
fn says(expected: &str, put: impl FnOnce(&mut Vec<u8>)) {
    let mut out = b"before".to_vec();
    put(&mut out);
    assert_eq!(out.escape_ascii().to_string(), format!("before{}", expected.escape_default()));
}

#[track_caller]
fn says_both(resp2: &str, resp3: &str, put: impl Fn(&mut Vec<u8>, Protocol)) {
    says(resp2, |out| put(out, Resp2));
    says(resp3, |out| put(out, Resp3));
}

#[test]
fn what_both_protocols_have_is_the_same_in_both() {
    says("+OK\r\n", |out| put_simple(out, "OK"));
    says("-ERR no such key\r\n", |out| put_error(out, b"ERR no such key"));
    says("-ERR a  b\r\n", |out| put_error(out, b"ERR a\r\nb"));
    for (number, text) in [
        (0, ":0\r\n"),
        (9, ":9\r\n"),
        (10, ":10\r\n"),
        (-1, ":-1\r\n"),
        (1234567890, ":1234567890\r\n"),
        (i64::MAX, ":9223372036854775807\r\n"),
        (i64::MIN, ":-9223372036854775808\r\n"),
    ] {
        says(text, |out| put_integer(out, number));
    }
    says("$0\r\n\r\n", |out| put_bulk(out, b""));
    says("$12\r\nhello\r\nworld\r\n", |out| put_bulk(out, b"hello\r\nworld"));
    says("$3\r\n-42\r\n", |out| put_bulk_integer(out, -42));
    says("*0\r\n", |out| put_array(out, 0));
    says("*1000000\r\n", |out| put_array(out, 1_000_000));
}

#[test]
fn what_only_resp3_has_is_said_otherwise_in_resp2() {
    says_both("$-1\r\n", "_\r\n", put_null);
    says_both("*-1\r\n", "_\r\n", put_null_array);
    says_both("*4\r\n", "%2\r\n", |out, protocol| put_map(out, 2, protocol));
    says_both("*2\r\n", "~2\r\n", |out, protocol| put_set(out, 2, protocol));
    says_both("*3\r\n", ">3\r\n", |out, protocol| put_push(out, 3, protocol));
    says_both("$3\r\n1.5\r\n", ",1.5\r\n", |out, protocol| put_double(out, b"1.5", protocol));
    says_both(":1\r\n", "#t\r\n", |out, protocol| put_boolean(out, true, protocol));
    says_both(":0\r\n", "#f\r\n", |out, protocol| put_boolean(out, false, protocol));
    says_both("$3\r\n123\r\n", "(123\r\n", |out, protocol| put_big_number(out, "123", protocol));
    says_both("$4\r\ntext\r\n", "=8\r\ntxt:text\r\n", |out, protocol| {
        put_verbatim(out, "txt", b"text", protocol);
    });
}

proptest! {
    #[test]
    fn integers_are_written_as_rust_writes_them(number: i64) {
        let mut out = Vec::new();
        put_integer(&mut out, number);
        prop_assert_eq!(out, format!(":{number}\r\n").into_bytes());
    }
}
