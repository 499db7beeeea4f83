//! What is asked of who wants to come in, at whatever door: by `auth.method`, or by the first rule
//! that fits.

use wire::pg::sqlstate;

use crate::config::{Auth, AuthMethod};
use crate::hba::{
    Asked, Certificate, Identity, Method, NotMapped, Replication, Subject, NAME_BYTES_MAX,
};
use crate::link::Ends;
use crate::session::login::{Proof, Refused};

/// What is asked of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub method: Method,
    certificate: Certificate,
    identity: Identity,
    pub map: Option<String>,
    /// `scram-sha-256` of a rule is never md5, as it may be with `auth.method`.
    scram_only: bool,
}

impl Terms {
    fn of(method: Method) -> Terms {
        Terms {
            method,
            certificate: match method {
                Method::Cert => Certificate::VerifyFull,
                _ => Certificate::Any,
            },
            identity: Identity::CommonName,
            map: None,
            scram_only: false,
        }
    }

    pub fn proof(&self) -> Proof {
        match self.method {
            // Nothing more is asked of who has shown a certificate, or is known to the system.
            Method::Trust | Method::Cert | Method::Peer => Proof::Nothing,
            Method::Password => Proof::Password,
            Method::Md5 => Proof::Md5,
            Method::Scram if self.scram_only => Proof::ScramOnly,
            Method::Scram | Method::Reject => Proof::Scram,
        }
    }

    /// Source: `ClientAuthentication` and `CheckCertAuth` in `src/backend/libpq/auth.c`.
    ///
    /// # Errors
    /// What the client is told that has shown no certificate, or another's.
    pub fn check_certificate(
        &self,
        auth: &Auth,
        user: &str,
        subject: Option<&Subject>,
    ) -> Result<(), Refused> {
        if self.certificate == Certificate::Any {
            return Ok(());
        }
        let Some(subject) = subject else {
            return Err(Refused::new(
                sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
                "connection requires a valid client certificate",
            ));
        };
        if self.certificate == Certificate::VerifyCa {
            return Ok(());
        }
        let name = match self.identity {
            Identity::CommonName => subject.common_name.as_deref(),
            Identity::DistinguishedName => Some(subject.distinguished_name.as_str()),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Err(
                failed("certificate", user).detail("The client's certificate has no such name.")
            );
        };
        auth.maps.check(self.map.as_deref(), name, user).map_err(|NotMapped(why)| {
            tracing::info!(event = "certificate_refused", %user, "{why}");
            failed("certificate", user)
        })
    }
}

/// What `auth.method`, or the first rule that fits, asks of the client.
///
/// # Errors
/// What the client is told whom no rule lets in.
pub fn terms(auth: &Auth, asked: &Asked<'_>) -> Result<Terms, Refused> {
    let of = |method| Ok(Terms { map: auth.ident_map.clone(), ..Terms::of(method) });
    match auth.method {
        AuthMethod::Trust | AuthMethod::Any => of(Method::Trust),
        AuthMethod::Password => of(Method::Password),
        AuthMethod::Md5 => of(Method::Md5),
        AuthMethod::Scram => of(Method::Scram),
        AuthMethod::ScramOnly => Ok(Terms { scram_only: true, ..Terms::of(Method::Scram) }),
        AuthMethod::Cert => of(Method::Cert),
        AuthMethod::Peer => of(Method::Peer),
        AuthMethod::Hba => terms_of_rules(auth, asked),
    }
}

fn terms_of_rules(auth: &Auth, asked: &Asked<'_>) -> Result<Terms, Refused> {
    let Some(rules) = &auth.hba else { return Err(nobody()) };
    // PostgreSQL cuts longer names: they would pass by the rules for what they are cut to.
    if asked.user.len() > NAME_BYTES_MAX || asked.database.len() > NAME_BYTES_MAX {
        return Err(nobody()
            .detail(format!("Names of users and databases have at most {NAME_BYTES_MAX} bytes.")));
    }
    match rules.find(asked) {
        None => Err(no_entry(asked)),
        Some(rule) if rule.method == Method::Reject => {
            let (file, line) = (&rule.place.file, rule.place.line);
            tracing::info!(event = "hba_rejected", user = %asked.user, rule = %format_args!("{file}:{line}"));
            Err(rejected(asked))
        }
        Some(rule) => Ok(Terms {
            method: rule.method,
            certificate: rule.certificate,
            identity: rule.identity,
            map: rule.map.clone(),
            scram_only: rule.method == Method::Scram,
        }),
    }
}

/// PostgreSQL's words.
pub fn failed(method: &str, user: &str) -> Refused {
    let message = format!("{method} authentication failed for user \"{user}\"");
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
}

fn nobody() -> Refused {
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, "no rule lets this client in")
}

fn no_entry(asked: &Asked<'_>) -> Refused {
    let who = who(asked);
    let message = match asked.replication {
        Replication::Physical => {
            format!("no pg_hba.conf entry for replication connection from {who}")
        }
        _ => format!("no pg_hba.conf entry for {who}"),
    };
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
        .hint("The file is auth.hba_file. [P0318]")
}

fn rejected(asked: &Asked<'_>) -> Refused {
    let who = who(asked);
    let message = match asked.replication {
        Replication::Physical => format!("pg_hba.conf rejects replication connection for {who}"),
        _ => format!("pg_hba.conf rejects connection for {who}"),
    };
    Refused::new(sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message)
        .hint("The file is auth.hba_file. [P0319]")
}

/// Source: `ClientAuthentication` in `src/backend/libpq/auth.c`.
fn who(asked: &Asked<'_>) -> String {
    let host = match asked.ends {
        Ends::Unix { .. } => "[local]".to_owned(),
        Ends::Tcp { remote, .. } => remote.ip().to_canonical().to_string(),
    };
    let encryption = if asked.tls { "SSL encryption" } else { "no encryption" };
    match asked.replication {
        Replication::Physical => format!("host \"{host}\", user \"{}\", {encryption}", asked.user),
        _ => format!(
            "host \"{host}\", user \"{}\", database \"{}\", {encryption}",
            asked.user, asked.database
        ),
    }
}
