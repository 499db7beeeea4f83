//! Who a client's certificate is made out to.
//!
//! A Name is a SEQUENCE (the DN) of SETs (each an RDN) of SEQUENCEs of a type and a value.
//!
//! Source: RFC 5280, 4.1.2.4; the text of a DN: RFC 2253, as OpenSSL's XN_FLAG_RFC2253, which
//! PostgreSQL compares.

use rustls_pki_types::CertificateDer;

use crate::der::{any, element, OID, SEQUENCE};
use crate::first_version::FirstVersion;

/// The names of a certificate that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its first common name.
    pub common_name: Option<String>,
    /// Its DN, the most special part first: `CN=bob,O=Example`.
    pub distinguished_name: String,
}

const SET: u8 = 0x31;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Types that have a name in a DN. Source: OpenSSL, `crypto/objects/objects.txt`.
const NAMES: [(&[u8], &str); 14] = [
    (COMMON_NAME, "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

impl Subject {
    /// None: it can't be read.
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Subject> {
        match FirstVersion::read(certificate) {
            Some(first) => first.subject(),
            None => {
                let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
                Subject::of_name(certificate.subject())
            }
        }
    }

    /// `name`: the value of a Name, without its own head.
    pub fn of_name(mut name: &[u8]) -> Option<Subject> {
        let mut common_name = None;
        let mut parts = Vec::new();
        while !name.is_empty() {
            let mut set = element(&mut name, SET)?;
            let mut part = Vec::new();
            while !set.is_empty() {
                let mut pair = element(&mut set, SEQUENCE)?;
                let kind = element(&mut pair, OID)?;
                let (tag, value, whole) = any(&mut pair)?;
                let text = text(tag, value);
                if kind == COMMON_NAME && common_name.is_none() {
                    // One with a NUL is made to be taken for another (CVE-2009-4034).
                    common_name = Some(text.clone().filter(|text| !text.contains('\0'))?);
                }
                part.push(attribute(kind, text.as_deref(), whole));
            }
            parts.push(part.join("+"));
        }
        parts.reverse();
        Some(Subject { common_name, distinguished_name: parts.join(",") })
    }
}

/// The text of a string, by its type.
fn text(tag: u8, value: &[u8]) -> Option<String> {
    match tag {
        // UTF8String, and those that are ASCII: Numeric, Printable, IA5, Visible.
        0x0c | 0x12 | 0x13 | 0x16 | 0x1a => String::from_utf8(value.to_vec()).ok(),
        // TeletexString, which everybody takes for Latin-1.
        0x14 => Some(value.iter().map(|byte| char::from(*byte)).collect()),
        // BMPString
        0x1e if value.len() % 2 == 0 => {
            let units = value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<String, _>>().ok()
        }
        _ => None,
    }
}

/// `CN=bob`; what has no name or no text as numbers: `1.2.3=#0C03626F62`.
fn attribute(kind: &[u8], text: Option<&str>, whole: &[u8]) -> String {
    let name = NAMES.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name);
    match (name, text) {
        (Some(name), Some(text)) => format!("{name}={}", escaped(text)),
        _ => {
            let name = name.map_or_else(|| dotted(kind), str::to_owned);
            let hex: String = whole.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("{name}=#{hex}")
        }
    }
}

/// Source: RFC 2253, 2.4; control characters and what is not ASCII as OpenSSL writes them.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.len().saturating_sub(1);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend(['\\', char::from(byte)]),
            b'#' if at == 0 => out.push_str("\\#"),
            b' ' if at == 0 || at == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out
}

fn dotted(oid: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in oid {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    let (first, rest) = numbers.split_first().unwrap_or((&0, &[]));
    let root = (first / 40).min(2);
    let mut text = format!("{root}.{}", first - root * 40);
    rest.iter().for_each(|number| text.push_str(&format!(".{number}")));
    text
}
