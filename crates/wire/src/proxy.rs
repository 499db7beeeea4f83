//! The PROXY protocol: what a proxy says of its client, before the client's first byte.
//!
//! Version 1 is a line of text: `PROXY TCP4 source destination port port`, CR, LF. Version 2:
//!
//! ```text
//! | signature | version, command | family, protocol | length | addresses, then TLVs |
//! | 12 bytes  |        u8        |        u8        |  u16   |     length bytes      |
//! ```
//! Headers are told from what clients of ours begin with by their first byte, but they are never
//! guessed: who takes them takes nothing else.
//!
//! Source: HAProxy's documentation, "The PROXY protocol", versions 1 & 2, 2020/03/05.

use std::fmt;
use std::io::Write;
// Addresses alone: this crate has no sockets.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
const FIXED_BYTES: usize = 16;

/// A header of version 2 with all it has to say. Its length field could count 64 KiB; addresses
/// need 216 bytes at most, and what proxies add is small.
pub const HEADER_BYTES_MAX: usize = 4096;

const LINE: &[u8] = b"PROXY ";
/// A line of version 1, its end included.
const LINE_BYTES_MAX: usize = 107;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nothing: the proxy speaks for itself (a health check), or its client has no address that
    /// could be said. The connection's own ends count.
    Unsaid,
    Client {
        source: SocketAddr,
        destination: SocketAddr,
    },
}

/// Bytes that are no header, or one that can't be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    Absent,
    Line,
    Version(u8),
    Command(u8),
    /// Not what a stream has.
    Protocol(u8),
    TooLong(usize),
    TooShort(usize),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Absent => f.write_str("there is none"),
            HeaderError::Line => f.write_str("its line (version 1) is malformed"),
            HeaderError::Version(version) => write!(f, "its version is {version}"),
            HeaderError::Command(command) => write!(f, "its command {command} is unknown"),
            HeaderError::Protocol(protocol) => {
                write!(f, "its address family and protocol are {protocol:#04x}: no stream")
            }
            HeaderError::TooLong(bytes) => {
                write!(f, "it has {bytes} bytes, more than {HEADER_BYTES_MAX}")
            }
            HeaderError::TooShort(bytes) => {
                write!(f, "its {bytes} bytes of addresses are too few")
            }
        }
    }
}

/// What the header says and how many bytes it has; none while it is incomplete. Whether `bytes`
/// begin with a header at all is known from as few of them as possible.
///
/// # Errors
/// They do not.
pub fn header(bytes: &[u8]) -> Result<Option<(Origin, usize)>, HeaderError> {
    let begins = |with: &[u8]| {
        let length = with.len().min(bytes.len());
        bytes[..length] == with[..length]
    };
    if begins(&SIGNATURE) {
        return binary(bytes);
    }
    if begins(LINE) {
        return line(bytes);
    }
    Err(HeaderError::Absent)
}

fn binary(bytes: &[u8]) -> Result<Option<(Origin, usize)>, HeaderError> {
    let Some(version_and_command) = bytes.get(12).copied() else { return Ok(None) };
    let (version, command) = (version_and_command >> 4, version_and_command & 0xf);
    if version != 2 {
        return Err(HeaderError::Version(version));
    }
    if command > 1 {
        return Err(HeaderError::Command(command));
    }
    let (Some(protocol), Some(length)) = (bytes.get(13).copied(), bytes.get(14..FIXED_BYTES))
    else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    let total = FIXED_BYTES + length;
    if total > HEADER_BYTES_MAX {
        return Err(HeaderError::TooLong(total));
    }
    let Some(rest) = bytes.get(FIXED_BYTES..total) else { return Ok(None) };
    // What a proxy says of itself is to be skipped, family and all.
    let origin = match (command, protocol) {
        (0, _) | (_, 0x00 | 0x31) => Origin::Unsaid,
        (_, 0x11) => addresses::<4>(rest).ok_or(HeaderError::TooShort(length))?,
        (_, 0x21) => addresses::<16>(rest).ok_or(HeaderError::TooShort(length))?,
        (_, other) => return Err(HeaderError::Protocol(other)),
    };
    Ok(Some((origin, total)))
}

/// Source and destination, then the port of each. What follows is not looked at.
fn addresses<const BYTES: usize>(rest: &[u8]) -> Option<Origin>
where
    IpAddr: From<[u8; BYTES]>,
{
    let (source, rest) = rest.split_first_chunk::<BYTES>()?;
    let (destination, rest) = rest.split_first_chunk::<BYTES>()?;
    let (source_port, rest) = rest.split_first_chunk::<2>()?;
    let (destination_port, _) = rest.split_first_chunk::<2>()?;
    let end = |ip: &[u8; BYTES], port: &[u8; 2]| {
        SocketAddr::new(IpAddr::from(*ip), u16::from_be_bytes(*port))
    };
    Some(Origin::Client {
        source: end(source, source_port),
        destination: end(destination, destination_port),
    })
}

fn line(bytes: &[u8]) -> Result<Option<(Origin, usize)>, HeaderError> {
    let seen = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = seen.windows(2).position(|pair| pair == b"\r\n") else {
        return match seen.len() < LINE_BYTES_MAX {
            true => Ok(None),
            false => Err(HeaderError::Line),
        };
    };
    let text = std::str::from_utf8(&seen[LINE.len()..end]).map_err(|_| HeaderError::Line)?;
    let origin = match text.split_once(' ') {
        Some(("TCP4", rest)) => text_addresses::<Ipv4Addr>(rest),
        Some(("TCP6", rest)) => text_addresses::<Ipv6Addr>(rest),
        // What follows is to be skipped.
        Some(("UNKNOWN", _)) => Some(Origin::Unsaid),
        None if text == "UNKNOWN" => Some(Origin::Unsaid),
        _ => None,
    };
    Ok(Some((origin.ok_or(HeaderError::Line)?, end + 2)))
}

fn text_addresses<A>(text: &str) -> Option<Origin>
where
    A: std::str::FromStr,
    IpAddr: From<A>,
{
    let mut words = text.split(' ');
    let mut next = || words.next();
    let (source, destination) = (next()?.parse::<A>().ok()?, next()?.parse::<A>().ok()?);
    let (source_port, destination_port) = (port(next()?)?, port(next()?)?);
    next().is_none().then(|| Origin::Client {
        source: SocketAddr::new(source.into(), source_port),
        destination: SocketAddr::new(destination.into(), destination_port),
    })
}

/// Digits alone: no sign, no zeros before.
fn port(text: &str) -> Option<u16> {
    let number = text.parse::<u16>().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A header of version 1, as proxies send it.
pub fn put_line(out: &mut Vec<u8>, origin: &Origin) {
    // Writing to a Vec can't fail.
    let _ = match origin {
        Origin::Unsaid => out.write_all(b"PROXY UNKNOWN\r\n"),
        Origin::Client { source, destination } => {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, to) = (source.ip(), destination.ip());
            let ports = (source.port(), destination.port());
            write!(out, "PROXY {family} {from} {to} {} {}\r\n", ports.0, ports.1)
        }
    };
}

/// A header of version 2, as proxies send it; nothing said is the command LOCAL. `tlvs` are as they
/// go over the wire.
pub fn put_header(out: &mut Vec<u8>, origin: &Origin, tlvs: &[u8]) {
    out.extend_from_slice(&SIGNATURE);
    let mut rest = Vec::new();
    let put = |rest: &mut Vec<u8>, ip: IpAddr| match ip {
        IpAddr::V4(ip) => rest.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => rest.extend_from_slice(&ip.octets()),
    };
    match origin {
        Origin::Unsaid => out.extend_from_slice(&[0x20, 0x00]),
        Origin::Client { source, destination } => {
            out.extend_from_slice(&[0x21, if source.is_ipv4() { 0x11 } else { 0x21 }]);
            put(&mut rest, source.ip());
            put(&mut rest, destination.ip());
            rest.extend_from_slice(&source.port().to_be_bytes());
            rest.extend_from_slice(&destination.port().to_be_bytes());
        }
    }
    rest.extend_from_slice(tlvs);
    let length = u16::try_from(rest.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(source: &str, destination: &str) -> Origin {
        let end = |text: &str| text.parse().expect("an address");
        Origin::Client { source: end(source), destination: end(destination) }
    }

    fn line_of(text: &str) -> Result<Option<(Origin, usize)>, HeaderError> {
        header(format!("PROXY {text}\r\n").as_bytes())
    }

    #[test]
    fn headers_are_read_whatever_follows_and_wherever_they_are_cut() {
        let v4 = client("192.0.2.7:51234", "198.51.100.1:6432");
        let v6 = client("[2001:db8::7]:0", "[::1]:65535");
        for origin in [v4, v6, Origin::Unsaid] {
            for (version, tlvs) in [(1, &b""[..]), (2, b""), (2, b"\x04\x00\x03abc\x20\x00\x00")] {
                let mut bytes = Vec::new();
                match version {
                    1 => put_line(&mut bytes, &origin),
                    _ => put_header(&mut bytes, &origin, tlvs),
                }
                let length = bytes.len();
                for end in 0..length {
                    assert_eq!(
                        header(&bytes[..end]),
                        Ok(None),
                        "{origin:?} {version} cut at {end}"
                    );
                }
                bytes.extend_from_slice(b"\0\0\0\x08\x04\xd2\x16\x2f\r\n");
                assert_eq!(header(&bytes), Ok(Some((origin, length))), "{version}");
            }
        }
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(
            line_of("TCP4 255.255.255.255 255.255.255.255 65535 65535"),
            Ok(Some((client("255.255.255.255:65535", "255.255.255.255:65535"), 56)))
        );
        let all = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        let ends = format!("[{all}]:65535");
        assert_eq!(
            line_of(&format!("TCP6 {all} {all} 65535 65535")),
            Ok(Some((client(&ends, &ends), 104)))
        );
        let longest = format!("UNKNOWN {all} {all} 65535 65535");
        assert_eq!(line_of(&longest), Ok(Some((Origin::Unsaid, LINE_BYTES_MAX))));
        assert_eq!(line_of(&format!("{longest}0")), Err(HeaderError::Line));
        assert_eq!(line_of("UNKNOWN"), Ok(Some((Origin::Unsaid, 15))));
    }

    #[test]
    fn malformed_lines_are_refused() {
        for text in [
            "",
            "TCP4",
            "TCP5 1.1.1.1 2.2.2.2 1 2",
            "TCP4  1.1.1.1 2.2.2.2 1 2",
            "TCP4 1.1.1.1 2.2.2.2 1 2 ",
            "TCP4 1.1.1.1 2.2.2.2 1 2 3",
            "TCP4 1.1.1.1 2.2.2.2 1",
            "TCP4 1.1.1.1 2.2.2.2 +1 2",
            "TCP4 1.1.1.1 2.2.2.2 01 2",
            "TCP4 1.1.1.1 2.2.2.2 1 65536",
            "TCP4 ::1 ::1 1 2",
            "TCP6 1.1.1.1 2.2.2.2 1 2",
            "TCP4 localhost 2.2.2.2 1 2",
            "UNKNOWNS",
        ] {
            assert_eq!(line_of(text), Err(HeaderError::Line), "{text:?}");
        }
        assert_eq!(header(b"PROXY \xff\r\n"), Err(HeaderError::Line));
        assert_eq!(header(&[&b"PROXY "[..], &[b'x'; 101]].concat()), Err(HeaderError::Line));
        assert_eq!(header(&[&b"PROXY "[..], &[b'x'; 100]].concat()), Ok(None));
    }

    #[test]
    fn malformed_headers_are_refused_as_soon_as_that_is_known() {
        let with = |rest: &[u8]| header(&[&SIGNATURE[..], rest].concat());
        assert_eq!(with(&[0x11]), Err(HeaderError::Version(1)));
        assert_eq!(with(&[0x22]), Err(HeaderError::Command(2)));
        assert_eq!(with(&[0x21, 0x11, 0x0f, 0xf1]), Err(HeaderError::TooLong(4097)));
        assert_eq!(with(&[0x21, 0x11, 0x0f, 0xf0]), Ok(None));
        assert_eq!(with(&[0x21, 0x11, 0, 3, 1, 2, 3]), Err(HeaderError::TooShort(3)));
        assert_eq!(with(&[0x21, 0x21, 0, 0]), Err(HeaderError::TooShort(0)));
        for protocol in [0x12, 0x22, 0x32, 0x10, 0x41, 0xff] {
            assert_eq!(with(&[0x21, protocol, 0, 0]), Err(HeaderError::Protocol(protocol)));
            // LOCAL has no family.
            assert_eq!(with(&[0x20, protocol, 0, 0]), Ok(Some((Origin::Unsaid, 16))));
        }
        // Unspecified, and a Unix socket's paths.
        assert_eq!(with(&[0x21, 0, 0, 1, 9]), Ok(Some((Origin::Unsaid, 17))));
        let paths = [&[0x21, 0x31, 0, 216][..], &[b'/'; 216]].concat();
        assert_eq!(with(&paths), Ok(Some((Origin::Unsaid, 232))));
    }

    #[test]
    fn what_clients_begin_with_is_none() {
        for first in [&b"\0\0\0\x08"[..], b"\x16\x03\x01", b"p", b"\r\nGET", b"PROXX ", b"proxy "] {
            assert_eq!(header(first), Err(HeaderError::Absent), "{first:?}");
        }
        assert_eq!(header(b""), Ok(None));
    }
}
