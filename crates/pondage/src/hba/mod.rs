//! Who may come in, and how they prove it: PostgreSQL's pg_hba.conf and pg_ident.conf.
//!
//! ```text
//! files --lines--> tokens --> rules (pg_hba.conf), maps (pg_ident.conf)
//!                               '--find(asked)--> the first that fits
//! ```
//! Syntax and meaning are those of PostgreSQL 16 without GSSAPI. What can't be done here is refused
//! by name when the files are read: roles' memberships are unknown to a pooler (`samerole`,
//! `+group`), and host names would make who may come in a matter of whoever answers for DNS.
//!
//! Reading is for whoever loads the configuration; asking touches memory only.
//!
//! Source: PostgreSQL's documentation, "The pg_hba.conf File"; `src/backend/libpq/hba.c`.

mod address;
mod files;
mod ident;
mod pattern;
mod rules;
mod subject;
#[cfg(test)]
mod tests;
mod tokens;

use std::path::Path;
use std::sync::Arc;

use crate::link::Ends;

use address::Addresses;
use pattern::Pattern;

pub use address::Net;
pub use ident::{Maps, NotMapped};
pub use subject::Subject;

/// The longest name PostgreSQL has (NAMEDATALEN - 1).
pub const NAME_BYTES_MAX: usize = 63;

/// What is wrong with a file, and where. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub place: At,
    pub message: String,
    pub help: Option<String>,
}

/// The place of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    pub file: Arc<str>,
    pub line: usize,
    pub column: usize,
}

impl Fault {
    fn new(place: At, message: impl Into<String>) -> Fault {
        Fault { place, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Fault {
        self.help = Some(help.into());
        self
    }
}

/// The rules of a pg_hba.conf, in order.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One line.
#[derive(Debug)]
pub struct Rule {
    kind: Kind,
    databases: Vec<Name>,
    users: Vec<Name>,
    addresses: Addresses,
    pub method: Method,
    pub certificate: Certificate,
    pub identity: Identity,
    /// `map=`
    pub map: Option<String>,
    pub place: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// Nobody comes by GSSAPI encryption.
    HostGss,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Trust,
    Reject,
    Md5,
    Password,
    Scram,
    Cert,
    Peer,
}

/// Whether the client has to show a certificate (`clientcert=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    Any,
    VerifyCa,
    /// And its subject is, or is mapped to, the user.
    VerifyFull,
}

/// What of a certificate's subject is the client's name (`clientname=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    CommonName,
    DistinguishedName,
}

/// A word that stands for databases or users.
#[derive(Debug)]
enum Name {
    All,
    SameUser,
    Replication,
    Is(String),
    Like(Pattern),
}

/// What a client asks for, and from where.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub user: &'a str,
    pub database: &'a str,
    pub replication: Replication,
    pub ends: &'a Ends,
    pub tls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    No,
    /// In a database: rules for it apply as for any client.
    Logical,
    /// Only rules that say `replication` apply.
    Physical,
}

impl Rules {
    /// Reads a file and all that it includes.
    ///
    /// # Errors
    /// Every line that is wrong, in order; never empty.
    pub fn read(file: &Path) -> Result<Rules, Vec<Fault>> {
        rules::read(file)
    }

    /// The first rule that fits.
    pub fn find(&self, asked: &Asked<'_>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.fits(asked))
    }

    /// A rule that asks for a client's certificate.
    pub fn needs_certificates(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.certificate != Certificate::Any)
    }

    /// Whether anybody may come in unasked from another machine.
    pub fn trusts_others(&self) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            rule.method == Method::Trust
                && !matches!(rule.kind, Kind::Local | Kind::HostGss)
                && rule.certificate == Certificate::Any
                && !rule.addresses.are_loopback()
        })
    }
}

impl Rule {
    /// Source: `check_hba` in `src/backend/libpq/hba.c`.
    fn fits(&self, asked: &Asked<'_>) -> bool {
        let from = match (self.kind, asked.ends) {
            (Kind::Local, Ends::Unix { .. }) => true,
            (Kind::Local, Ends::Tcp { .. }) | (_, Ends::Unix { .. }) => false,
            (kind, Ends::Tcp { remote, .. }) => {
                let encrypted = match kind {
                    Kind::HostSsl => asked.tls,
                    Kind::HostNoSsl => !asked.tls,
                    Kind::HostGss => false,
                    Kind::Host | Kind::Local => true,
                };
                encrypted && self.addresses.have(remote.ip())
            }
        };
        from && self.databases.iter().any(|name| name.is_database(asked))
            && self.users.iter().any(|name| name.is_user(asked.user))
    }
}

impl Name {
    /// Source: `check_db`.
    fn is_database(&self, asked: &Asked<'_>) -> bool {
        match self {
            Name::Replication => asked.replication == Replication::Physical,
            _ if asked.replication == Replication::Physical => false,
            Name::All => true,
            Name::SameUser => asked.database == asked.user,
            Name::Is(name) => name == asked.database,
            Name::Like(pattern) => pattern.fits(asked.database),
        }
    }

    /// Source: `check_role`.
    fn is_user(&self, user: &str) -> bool {
        match self {
            Name::All => true,
            Name::Is(name) => name == user,
            Name::Like(pattern) => pattern.fits(user),
            Name::SameUser | Name::Replication => false,
        }
    }
}
