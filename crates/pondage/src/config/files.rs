//! The files that a configuration names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use wire::pg::auth::Secret;

use super::report::{Code, Place, Problem};
use super::value::escaped;

/// Bytes that are read of a configuration or users file; a longer one is refused.
pub const FILE_MAX: u64 = 16 << 20;

/// The text of a file, or why there is none.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let taken = File::open(path)
        .and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text))
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
            _ => reason(&error),
        })?;
    match u64::try_from(taken) {
        Ok(taken) if taken <= FILE_MAX => Ok(text),
        _ => Err(format!("it is longer than {} MB", FILE_MAX >> 20)),
    }
}

/// What the operating system says, without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The one secret in a file.
pub(super) fn read_secret(path: &Path) -> Result<String, String> {
    let text = read(path)?;
    let secret = text.trim_end_matches(['\r', '\n']);
    match secret {
        "" => Err("it is empty".to_owned()),
        _ if secret.contains('\0') => Err("it has a NUL byte".to_owned()),
        _ => Ok(secret.to_owned()),
    }
}

pub(super) fn check_certificates(path: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(pem_reason)?;
    let mut count = 0;
    for certificate in certificates {
        certificate.map_err(pem_reason)?;
        count += 1;
    }
    match count {
        0 => Err("it has no certificate in PEM form".to_owned()),
        _ => Ok(()),
    }
}

pub(super) fn check_key(path: &Path) -> Result<(), String> {
    PrivateKeyDer::from_pem_file(path).map(drop).map_err(|error| match error {
        pem::Error::NoItemsFound => "it has no private key in PEM form".to_owned(),
        error => pem_reason(error),
    })
}

fn pem_reason(error: pem::Error) -> String {
    match error {
        pem::Error::Io(error) => reason(&error),
        error => error.to_string(),
    }
}

/// Reads PgBouncer's userlist.txt: `"user" "secret"` on each line, quotes inside doubled, what
/// follows on the line ignored; empty lines and lines that start with `;` or `#` too.
///
/// # Errors
/// One [`Code::BadUsersLine`] or [`Code::BadSecret`] for each bad line. The line is not shown.
///
/// Source: PgBouncer's documentation, "Authentication file format".
pub(super) fn parse_users(
    name: &str,
    text: &str,
) -> Result<BTreeMap<String, Secret>, Vec<Problem>> {
    let mut users = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start();
        if content.is_empty() || content.starts_with([';', '#']) {
            continue;
        }
        let column = line.chars().count() - content.chars().count() + 1;
        let place = Place::File { file: name.into(), line: index + 1, column };
        let wrong = |code, why: String| Problem::new(code, why).at(place.clone());
        let Some((user, secret)) = users_line(content) else {
            let why = "the line is not `\"user\" \"secret\"`".to_owned();
            problems.push(
                wrong(Code::BadUsersLine, why).help("a quote inside of quotes is written twice"),
            );
            continue;
        };
        match Secret::parse(&secret) {
            Err(_) => problems.push(wrong(
                Code::BadSecret,
                format!("the SCRAM verifier of user \"{}\" is malformed", escaped(&user)),
            )),
            Ok(_) if users.contains_key(&user) => problems.push(wrong(
                Code::BadUsersLine,
                format!("user \"{}\" stands in the file twice", escaped(&user)),
            )),
            Ok(secret) => {
                users.insert(user, secret);
            }
        }
    }
    match problems.is_empty() {
        true => Ok(users),
        false => Err(problems),
    }
}

fn users_line(line: &str) -> Option<(String, String)> {
    let (user, rest) = quoted_part(line)?;
    let (secret, _) = quoted_part(rest.trim_start())?;
    (!user.is_empty() && !user.contains('\0') && !secret.contains('\0')).then_some((user, secret))
}

/// The text of a part in quotes, and what follows it.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut part = String::new();
    loop {
        let (piece, after) = rest.split_once('"')?;
        part.push_str(piece);
        match after.strip_prefix('"') {
            Some(after) => {
                part.push('"');
                rest = after;
            }
            None => return Some((part, after)),
        }
    }
}
