//! Commands, one by one and in every piece.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::resp::request::{
    Limits, Parser, ProtocolError, ARGUMENTS_MAX, BULK_BYTES_MAX_BEFORE_LOGIN, LINE_BYTES_MAX,
};

use crate::command;

type Commands = Vec<Vec<Vec<u8>>>;

/// What the client of these bytes has said, and why it was closed if it was.
fn read_in(pieces: &[&[u8]], limits: Limits) -> (Commands, Option<ProtocolError>) {
    let mut parser = Parser::default();
    let (mut input, mut commands) = (Vec::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match parser.next(&input[at..], limits) {
                Ok(Some(taken)) => {
                    let source = parser.source(&input[at..]);
                    let words = parser.arguments().iter();
                    let words: Vec<_> = words
                        .map(|span| source[span.start as usize..span.end as usize].to_vec())
                        .collect();
                    if !words.is_empty() {
                        commands.push(words);
                    }
                    at += taken;
                    assert!(parser.is_between_commands());
                }
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
        input.drain(..at);
        assert!(parser.wants() <= input.len() || !parser.is_between_commands());
    }
    (commands, None)
}

fn read(bytes: &[u8]) -> (Commands, Option<ProtocolError>) {
    read_in(&[bytes], Limits::default())
}

fn words(of: &[&str]) -> Vec<Vec<u8>> {
    of.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[track_caller]
fn reads(bytes: &[u8], expected: &[&[&str]]) {
    let expected: Commands = expected.iter().map(|command| words(command)).collect();
    assert_eq!(read(bytes), (expected, None), "{}", bytes.escape_ascii());
}

#[track_caller]
fn refused(bytes: &[u8], limits: Limits, told: &str) {
    let (_, error) = read_in(&[bytes], limits);
    let mut reply = Vec::new();
    error.unwrap_or_else(|| panic!("{} is refused", bytes.escape_ascii())).put(&mut reply);
    assert_eq!(reply.escape_ascii().to_string(), format!("-ERR Protocol error: {told}\\r\\n"));
}

#[test]
fn commands_are_arrays_of_bulks() {
    reads(b"*1\r\n$4\r\nPING\r\n", &[&["PING"]]);
    reads(b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", &[&["ECHO", ""], &["PING"]]);
    reads(b"*2\r\n$4\r\nECHO\r\n$12\r\na\r\nb\n\0cdefgh\r\n", &[&["ECHO", "a\r\nb\n\0cdefgh"]]);
}

#[test]
fn empty_commands_are_passed_over() {
    reads(b"*0\r\n*-1\r\n\r\n\n  \r\n*-9223372036854775808\r\nPING\r\n", &[&["PING"]]);
}

#[test]
fn bytes_behind_a_carriage_return_and_behind_a_bulk_are_not_looked_at() {
    reads(b"*1\rx$4\ryPINGzz*1\r\n$4\r\nPING\r\n", &[&["PING"], &["PING"]]);
}

#[test]
fn commands_are_lines_too() {
    reads(b"PING\r\n", &[&["PING"]]);
    reads(b"PING\n", &[&["PING"]]);
    reads(b" set  a\tb \r\nGET a\n", &[&["set", "a", "b"], &["GET", "a"]]);
    reads(b"ECHO a\x0bb \x0b\x0c c\r\r\n", &[&["ECHO", "a\x0bb", "c"]]);
    reads(b"$4\r\n", &[&["$4"]]);
}

#[test]
fn lines_are_quoted_as_redis_quotes() {
    reads(b"ECHO \"a b\" 'c d'\r\n", &[&["ECHO", "a b", "c d"]]);
    reads(b"ECHO \"\" ''\r\n", &[&["ECHO", "", ""]]);
    reads(
        b"ECHO \"\\x41\\x4a\\n\\r\\t\\b\\a\\\"\\q\\x4\"\r\n",
        &[&["ECHO", "AJ\n\r\t\x08\x07\"qx4"]],
    );
    reads(b"ECHO '\\n\\'\"'\r\n", &[&["ECHO", "\\n'\""]]);
    reads(b"ECHO a\"b c\" a'b c'\r\n", &[&["ECHO", "ab c", "ab c"]]);
    let (commands, error) = read(b"ECHO \"\\xff\\x00\"\r\n");
    assert_eq!((commands[0][1].as_slice(), error), (&b"\xff\0"[..], None));
}

#[test]
fn quotes_that_do_not_fit_are_refused() {
    for line in ["\"", "'", "ECHO \"a", "ECHO 'a", "ECHO \"a\"b", "ECHO 'a'b", "ECHO \"a\\"] {
        let line = format!("{line}\r\n");
        refused(line.as_bytes(), Limits::default(), "unbalanced quotes in request");
    }
}

#[test]
fn counts_and_lengths_that_are_none_are_refused() {
    for count in ["", "a", "+1", "01", "-0", "1 ", "1048577", "3000000000", "9223372036854775808"] {
        let bytes = format!("*{count}\r\n");
        refused(bytes.as_bytes(), Limits::default(), "invalid multibulk length");
    }
    for length in ["", "a", "-1", "-10", "01", "2000000000", "536870913", "99999999999999999999"] {
        let bytes = format!("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n${length}\r\n");
        refused(bytes.as_bytes(), Limits::default(), "invalid bulk length");
    }
    let narrow = Limits { bulk_bytes: 10, must_log_in: false };
    refused(b"*1\r\n$11\r\n", narrow, "invalid bulk length");
}

#[test]
fn arguments_that_are_no_bulks_are_refused_with_what_they_are() {
    for (got, told) in [(b'f', "f"), (b'*', "*"), (b'\n', " "), (b'\r', " "), (0, "\\x00")] {
        let bytes = [&b"*1\r\n"[..], &[got], b"1\r\nx\r\n"].concat();
        refused(&bytes, Limits::default(), &format!("expected \\'$\\', got \\'{told}\\'"));
    }
}

#[test]
fn lines_without_end_are_refused() {
    let long = vec![b'1'; LINE_BYTES_MAX + 1];
    for (head, told) in [
        (&b""[..], "too big inline request"),
        (b"*", "too big mbulk count string"),
        (b"*1\r\n$", "too big bulk count string"),
    ] {
        refused(&[head, &long].concat(), Limits::default(), told);
        assert_eq!(read(&[head, &long[..LINE_BYTES_MAX - 1]].concat()).1, None, "{told}");
    }
}

#[test]
fn who_has_to_log_in_may_send_little() {
    let limits = Limits { must_log_in: true, ..Limits::default() };
    refused(b"*11\r\n", limits, "unauthenticated multibulk length");
    refused(b"*2\r\n$16385\r\n", limits, "unauthenticated bulk length");
    let largest = vec![b'x'; BULK_BYTES_MAX_BEFORE_LOGIN as usize];
    let ten = vec![&largest[..]; 10];
    assert_eq!(read_in(&[&command(&ten)], limits).0.len(), 1);
    assert_eq!(read(b"*11\r\n$16385\r\n"), (Vec::new(), None));
}

#[test]
fn as_many_arguments_as_are_allowed_are_taken() {
    let mut bytes = format!("*{ARGUMENTS_MAX}\r\n").into_bytes();
    bytes.extend(b"$1\r\nx\r\n".repeat(ARGUMENTS_MAX as usize));
    assert_eq!(read(&bytes).0[0].len(), ARGUMENTS_MAX as usize);
}

/// A pipeline with everything in it.
fn pipeline() -> Vec<u8> {
    let mut bytes = command(&[b"SET", b"key", b"\r\n*1\r\n$4\r\nPING\r\n"]);
    bytes.extend_from_slice(b"*0\r\n\r\nECHO \"a \\x00 b\" 'c'\r\nGET key\n");
    bytes.extend(command(&[b"MSET", b"", b"", &[b'v'; 123], b"0123456789"]));
    bytes.extend_from_slice(b"*-1\r\nPING\r\n*1\r\n!4\r\n");
    bytes
}

#[test]
fn a_pipeline_reads_the_same_however_it_is_cut() {
    let bytes = pipeline();
    let whole = read(&bytes);
    assert_eq!((whole.0.len(), whole.1), (5, Some(ProtocolError::NoBulk(b'!'))));
    for cut in 0..=bytes.len() {
        let (one, two) = bytes.split_at(cut);
        assert_eq!(read_in(&[one, two], Limits::default()), whole, "cut at {cut}");
    }
    let each: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read_in(&each, Limits::default()), whole, "byte by byte");
}

#[test]
fn a_long_argument_in_many_pieces_is_looked_at_once() {
    // Were every piece looked at from the beginning, this would be a billion bytes.
    let bytes = command(&[b"SET", b"key", &vec![b'\r'; 8 << 20]]);
    let mut parser = Parser::default();
    for end in (0..bytes.len()).step_by(64) {
        assert_eq!(parser.next(&bytes[..end], Limits::default()), Ok(None));
    }
    assert_eq!(parser.wants(), bytes.len());
    assert_eq!(parser.next(&bytes, Limits::default()), Ok(Some(bytes.len())));
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        commands in vec(vec(vec(any::<u8>(), 0..40), 1..20), 1..6),
        cuts in vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut bytes = Vec::new();
        for words in &commands {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            bytes.extend(command(&words));
        }
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read_in(&pieces, Limits::default()), (commands, None));
    }

    #[test]
    fn what_was_quoted_is_read(words in vec(vec(any::<u8>(), 0..20), 1..6)) {
        let mut line = Vec::new();
        for word in &words {
            line.push(b'"');
            line.extend(word.iter().flat_map(|byte| format!("\\x{byte:02X}").into_bytes()));
            line.extend_from_slice(b"\" ");
        }
        line.push(b'\n');
        prop_assert_eq!(read(&line), (vec![words], None));
    }

    #[test]
    fn any_bytes_read_the_same_byte_by_byte(bytes in vec(
        prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'*'), Just(b'$'), Just(b'1'), Just(b'"'),
            Just(b' '), any::<u8>()],
        0..60,
    )) {
        let each: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read_in(&each, Limits::default()), read(&bytes));
    }
}
