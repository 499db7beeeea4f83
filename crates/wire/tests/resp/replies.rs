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
    says_both("$3\r\n1.5\r\n", ",1.5\r\n", |out, protocol| put_double(out, 1.5, protocol));
    says_both(":1\r\n", "#t\r\n", |out, protocol| put_boolean(out, true, protocol));
    says_both(":0\r\n", "#f\r\n", |out, protocol| put_boolean(out, false, protocol));
    says_both("$3\r\n123\r\n", "(123\r\n", |out, protocol| put_big_number(out, "123", protocol));
    says_both("$4\r\ntext\r\n", "=8\r\ntxt:text\r\n", |out, protocol| {
        put_verbatim(out, "txt", b"text", protocol);
    });
}

#[test]
fn doubles_are_written_as_c_writes_them_with_17_digits() {
    for (number, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-17.0, "-17"),
        (0.1, "0.10000000000000001"),
        (1.1, "1.1000000000000001"),
        (-2.5, "-2.5"),
        (3.0e-4, "0.00029999999999999997"),
        (1.0e-5, "1.0000000000000001e-05"),
        (123456.789, "123456.789"),
        (99999999999999984.0, "99999999999999984"),
        (1e17, "1e+17"),
        (1.5e17, "1.5e+17"),
        (12345678901234567890.0, "1.2345678901234567e+19"),
        (1e22, "1e+22"),
        (5e-324, "4.9406564584124654e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (-f64::NAN, "nan"),
    ] {
        says(text, |out| put_double_text(out, number));
    }
}

proptest! {
    #[test]
    fn doubles_are_read_back_as_they_were(bits: u64) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let mut out = Vec::new();
        put_double_text(&mut out, number);
        let text = String::from_utf8(out).expect("ASCII");
        prop_assert_eq!(text.parse::<f64>().expect("a number").to_bits(), bits, "{}", text);
    }

    #[test]
    fn doubles_near_one_are_read_back_as_they_were(number in -1e6..1e6f64) {
        let mut out = Vec::new();
        put_double_text(&mut out, number);
        let text = String::from_utf8(out).expect("ASCII");
        prop_assert!(!text.contains('e') || number.abs() < 1e-4);
        prop_assert_eq!(text.parse::<f64>().expect("a number"), number);
    }

    #[test]
    fn integers_are_written_as_rust_writes_them(number: i64) {
        let mut out = Vec::new();
        put_integer(&mut out, number);
        prop_assert_eq!(out, format!(":{number}\r\n").into_bytes());
    }
}
