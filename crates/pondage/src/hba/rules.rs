//! Lines of pg_hba.conf.
//!
//! Source: `parse_hba_line` in `src/backend/libpq/hba.c`.

use std::net::IpAddr;
use std::path::Path;

use super::address::{self, Addresses, Net};
use super::files::{self, Line};
use super::pattern::Pattern;
use super::tokens::Token;
use super::{At, Certificate, Fault, Identity, Kind, Method, Name, Rule, Rules};

/// Regular expressions in one file; each may take some hundred kilobytes.
const PATTERNS_MAX: usize = 500;

pub(super) fn read(file: &Path) -> Result<Rules, Vec<Fault>> {
    let (lines, mut faults) = files::read(file);
    let mut rules = Vec::with_capacity(lines.len());
    for line in &lines {
        match rule(line) {
            Ok(rule) => rules.push(rule),
            Err(fault) => faults.push(*fault),
        }
    }
    let like = |name: &&Name| matches!(name, Name::Like(_));
    let names = rules.iter().flat_map(|rule: &Rule| rule.databases.iter().chain(&rule.users));
    let start = || At { file: file.display().to_string().into(), line: 1, column: 1 };
    if names.filter(like).count() > PATTERNS_MAX {
        let message = format!("more than {PATTERNS_MAX} regular expressions");
        faults.push(Fault::new(start(), message));
    }
    if rules.is_empty() && faults.is_empty() {
        faults.push(Fault::new(start(), "it has no line, so that nobody could come in"));
    }
    match faults.is_empty() {
        true => Ok(Rules { rules }),
        false => Err(faults),
    }
}

type Parsed<T> = Result<T, Box<Fault>>;

fn fault<T>(place: At, message: impl Into<String>) -> Parsed<T> {
    Err(Box::new(Fault::new(place, message)))
}

/// The fields of a line one after the other.
struct Fields<'a> {
    line: &'a Line,
    at: usize,
}

impl<'a> Fields<'a> {
    fn next(&mut self, what: &str) -> Parsed<&'a [Token]> {
        match self.line.fields.get(self.at) {
            Some(field) => {
                self.at += 1;
                Ok(field)
            }
            None => fault(self.line.end(), format!("the line ends before the {what}")),
        }
    }

    /// A field that is no list.
    fn one(&mut self, what: &str) -> Parsed<&'a Token> {
        match self.next(what)? {
            [token] => Ok(token),
            many => {
                let second =
                    many.get(1).map_or_else(|| self.line.end(), |token| self.line.at(token));
                fault(second, format!("more than one {what}"))
            }
        }
    }
}

fn rule(line: &Line) -> Parsed<Rule> {
    let mut fields = Fields { line, at: 0 };
    let word = fields.one("connection type")?;
    let kind = match word.text.as_str() {
        "local" => Kind::Local,
        // Without GSSAPI nobody comes by it, and everybody without it.
        "host" | "hostnogssenc" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        "hostgssenc" => Kind::HostGss,
        other => return fault(line.at(word), format!("unknown connection type \"{other}\"")),
    };
    let names = |tokens: &[Token], name: fn(&Line, &Token) -> Parsed<Name>| {
        tokens.iter().map(|token| name(line, token)).collect::<Parsed<Vec<Name>>>()
    };
    let databases = names(fields.next("database")?, database)?;
    let users = names(fields.next("user")?, user)?;
    let addresses = match kind {
        Kind::Local => Addresses::All,
        _ => addresses(&mut fields)?,
    };
    let word = fields.one("authentication method")?;
    let method = method(line, word, kind)?;
    let mut rule = Rule {
        kind,
        databases,
        users,
        addresses,
        method,
        certificate: match method {
            Method::Cert => Certificate::VerifyFull,
            _ => Certificate::Any,
        },
        identity: Identity::CommonName,
        map: None,
        place: At { file: line.file.clone(), line: line.number, column: 1 },
    };
    while fields.at < line.fields.len() {
        for token in fields.next("option")? {
            option(line, token, &mut rule)?;
        }
    }
    Ok(rule)
}

fn database(line: &Line, token: &Token) -> Parsed<Name> {
    match token.text.as_str() {
        "all" if !token.quoted => Ok(Name::All),
        "sameuser" if !token.quoted => Ok(Name::SameUser),
        "replication" if !token.quoted => Ok(Name::Replication),
        "samerole" | "samegroup" if !token.quoted => Err(Box::new(
            Fault::new(line.at(token), format!("{} is not supported", token.text)).help(
                "Pondage does not know which roles a user is a member of: name the databases",
            ),
        )),
        _ => name(line, token),
    }
}

fn user(line: &Line, token: &Token) -> Parsed<Name> {
    match token.text.as_str() {
        "all" if !token.quoted => Ok(Name::All),
        text if !token.quoted && text.starts_with('+') => {
            let message = format!("{text} is not supported");
            Err(Box::new(
                Fault::new(line.at(token), message)
                    .help("Pondage does not know the members of a role: name the users"),
            ))
        }
        _ => name(line, token),
    }
}

fn name(line: &Line, token: &Token) -> Parsed<Name> {
    match token.text.strip_prefix('/') {
        None => Ok(Name::Is(token.text.clone())),
        Some(written) => match Pattern::new(written) {
            Ok(pattern) => Ok(Name::Like(pattern)),
            Err(why) => {
                let message = format!("invalid regular expression \"{written}\": {why}");
                fault(line.at(token), message)
            }
        },
    }
}

fn addresses(fields: &mut Fields<'_>) -> Parsed<Addresses> {
    let line = fields.line;
    let word = fields.one("address")?;
    if word.is("all") {
        return Ok(Addresses::All);
    }
    if word.is("samehost") || word.is("samenet") {
        return match address::own(word.text == "samehost") {
            Ok(nets) => Ok(Addresses::Nets(nets)),
            Err(error) => {
                fault(line.at(word), format!("the addresses of this machine are unknown: {error}"))
            }
        };
    }
    let (written, bits) = match word.text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (word.text.as_str(), None),
    };
    let Ok(address) = written.parse::<IpAddr>() else {
        let message = format!("\"{}\" is no IP address", word.text);
        let help = "names of hosts are not supported: who may come in would be a matter of DNS";
        return Err(Box::new(Fault::new(line.at(word), message).help(help)));
    };
    let net = match bits {
        Some(bits) => match bits.parse().ok().and_then(|bits| Net::prefix(address, bits)) {
            Some(net) => net,
            None => return fault(line.at(word), format!("invalid CIDR mask in \"{}\"", word.text)),
        },
        None => {
            let mask = match fields.one("netmask") {
                Err(fault) => {
                    let help = "write the range as 10.0.0.0/8, or a netmask behind the address";
                    return Err(Box::new(fault.help(help)));
                }
                Ok(mask) => mask,
            };
            let Ok(bits) = mask.text.parse::<IpAddr>() else {
                return fault(line.at(mask), format!("invalid IP mask \"{}\"", mask.text));
            };
            match Net::masked(address, bits) {
                Some(net) => net,
                None => return fault(line.at(mask), "IP address and mask do not match"),
            }
        }
    };
    Ok(Addresses::Nets(vec![net]))
}

fn method(line: &Line, word: &Token, kind: Kind) -> Parsed<Method> {
    let method = match word.text.as_str() {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        "md5" => Method::Md5,
        "password" => Method::Password,
        "scram-sha-256" => Method::Scram,
        "cert" => Method::Cert,
        "peer" => Method::Peer,
        // As in PostgreSQL.
        "ident" if kind == Kind::Local => Method::Peer,
        known @ ("ident" | "pam" | "bsd" | "ldap" | "gss" | "sspi" | "radius" | "oauth") => {
            let help = "Pondage has trust, reject, md5, password, scram-sha-256, cert and peer";
            let message = format!("authentication method \"{known}\" is not supported");
            return Err(Box::new(Fault::new(line.at(word), message).help(help)));
        }
        other => return fault(line.at(word), format!("unknown authentication method \"{other}\"")),
    };
    match (method, kind) {
        (Method::Peer, Kind::Local) => Ok(method),
        (Method::Peer, _) => fault(line.at(word), "peer works in local lines only"),
        (Method::Cert, Kind::HostSsl) => Ok(method),
        (Method::Cert, _) => fault(line.at(word), "cert works in hostssl lines only"),
        _ => Ok(method),
    }
}

/// Source: `parse_hba_auth_opt`.
fn option(line: &Line, token: &Token, rule: &mut Rule) -> Parsed<()> {
    let Some((name, value)) = token.text.split_once('=') else {
        return fault(line.at(token), format!("\"{}\" is not of the form name=value", token.text));
    };
    let only_with_tls = |rule: &Rule| match rule.kind {
        Kind::HostSsl => Ok(()),
        _ => fault(line.at(token), format!("{name} works in hostssl lines only")),
    };
    let invalid = || fault(line.at(token), format!("invalid value for {name}: \"{value}\""));
    match name {
        "map" if matches!(rule.method, Method::Cert | Method::Peer) => {
            rule.map = (!value.is_empty()).then(|| value.to_owned());
        }
        "map" => return fault(line.at(token), "map works with the methods cert and peer only"),
        "clientcert" => {
            only_with_tls(rule)?;
            rule.certificate = match value {
                "verify-full" => Certificate::VerifyFull,
                "verify-ca" if rule.method == Method::Cert => {
                    return fault(line.at(token), "with cert, clientcert can only be verify-full");
                }
                "verify-ca" => Certificate::VerifyCa,
                _ => return invalid(),
            };
        }
        "clientname" => {
            only_with_tls(rule)?;
            rule.identity = match value {
                "CN" => Identity::CommonName,
                "DN" => Identity::DistinguishedName,
                _ => return invalid(),
            };
        }
        _ => return fault(line.at(token), format!("unknown option \"{name}\"")),
    }
    Ok(())
}
