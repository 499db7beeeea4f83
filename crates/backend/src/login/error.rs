//! Why a log-in ended.

use std::fmt;

use wire::pg::auth::ScramError;
use wire::pg::backend;
use wire::pg::sqlstate;
use wire::pg::WireError;

/// A server's ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// "ERROR", "FATAL" or "PANIC".
    pub severity: String,
    /// The SQLSTATE; XX000 when the server sent none.
    pub code: String,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl ServerError {
    /// Reads the body of an ErrorResponse.
    ///
    /// # Errors
    /// When its fields have no end.
    pub fn read(body: &[u8]) -> Result<ServerError, WireError> {
        let fields = backend::error_fields(body)?;
        // Before the client's encoding is known a message may come in any.
        let lossy = |kind| fields.field(kind).map(|f| String::from_utf8_lossy(f).into_owned());
        Ok(ServerError {
            severity: fields.severity().unwrap_or("FATAL").to_owned(),
            code: fields.code().unwrap_or(sqlstate::INTERNAL_ERROR).to_owned(),
            message: lossy(b'M').unwrap_or_else(|| "an error without a message".to_owned()),
            detail: lossy(b'D'),
            hint: lossy(b'H'),
        })
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.severity, self.code, self.message)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginError {
    /// The server refused, in its own words.
    Server(ServerError),
    /// The server asks for a proof and there is no password to make it of.
    NoPassword {
        asked: &'static str,
    },
    /// The stored secret is a hash that can't answer what the server asks for.
    SecretUnfit {
        asked: &'static str,
    },
    /// The server asks for Kerberos, GSSAPI, SSPI or something newer.
    UnsupportedRequest {
        kind: u32,
    },
    /// The server offers SASL, but not SCRAM-SHA-256.
    NoMechanism {
        offered: String,
    },
    /// It has to be bound to its TLS connection, and can't be.
    Unbound(&'static str),
    /// The SCRAM exchange failed.
    Scram(ScramError),
    /// The server let us in before it proved that it knows the password: it may be another.
    ServerNotProven,
    /// A message that has no place here.
    Unexpected {
        expected: &'static str,
        got: u8,
    },
    Wire(WireError),
}

impl LoginError {
    /// The SQLSTATE that says it to a client.
    pub fn code(&self) -> &str {
        match self {
            LoginError::Server(error) => &error.code,
            LoginError::NoPassword { .. } | LoginError::SecretUnfit { .. } => {
                sqlstate::INVALID_PASSWORD
            }
            LoginError::UnsupportedRequest { .. }
            | LoginError::NoMechanism { .. }
            | LoginError::Unbound(_)
            | LoginError::Scram(_)
            | LoginError::ServerNotProven => sqlstate::INVALID_AUTHORIZATION_SPECIFICATION,
            LoginError::Unexpected { .. } | LoginError::Wire(_) => sqlstate::PROTOCOL_VIOLATION,
        }
    }

    /// Whether the same log-in would end the same way until somebody changes a setting. A server
    /// that is starting, full or being shut down is not a reason.
    ///
    /// Source: appendix "PostgreSQL Error Codes"; `InitPostgres` in
    /// `src/backend/utils/init/postinit.c` says which of them a log-in can meet.
    pub fn permanent(&self) -> bool {
        match self {
            LoginError::Server(error) => {
                error.code.starts_with("28")
                    || matches!(
                        error.code.as_str(),
                        sqlstate::INVALID_CATALOG_NAME
                            | "3F000"
                            | sqlstate::INSUFFICIENT_PRIVILEGE
                            | sqlstate::INVALID_PARAMETER_VALUE
                            | sqlstate::UNDEFINED_OBJECT
                            | sqlstate::FEATURE_NOT_SUPPORTED
                    )
            }
            LoginError::Unexpected { .. } | LoginError::Wire(_) => false,
            _ => true,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            LoginError::Server(error) => error.hint.as_deref(),
            LoginError::NoPassword { .. } => {
                Some("Put the password into the database's url, or into the user's section.")
            }
            LoginError::SecretUnfit { .. } => {
                Some("Store the password itself for this user; a hash can't log in with SCRAM.")
            }
            LoginError::Unbound(_) => {
                Some("Let pg_hba.conf ask for scram-sha-256 over TLS, or set channel_binding.")
            }
            LoginError::UnsupportedRequest { .. } | LoginError::NoMechanism { .. } => {
                Some("Let pg_hba.conf ask for scram-sha-256, md5 or password here.")
            }
            _ => None,
        }
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginError::Server(error) => error.fmt(f),
            LoginError::NoPassword { asked } => {
                write!(f, "the server asks for {asked} authentication and no password is known")
            }
            LoginError::SecretUnfit { asked } => write!(
                f,
                "the server asks for {asked} authentication, which the stored hash can't answer"
            ),
            LoginError::UnsupportedRequest { kind } => match request_name(*kind) {
                Some(name) => write!(f, "the server asks for {name}, which is not supported"),
                None => write!(f, "the server asks for unknown authentication {kind}"),
            },
            LoginError::NoMechanism { offered } => {
                write!(f, "the server offers the SASL mechanisms {offered}, not SCRAM-SHA-256")
            }
            LoginError::Unbound(why) => {
                write!(f, "channel binding is required, but {why}")
            }
            LoginError::Scram(error) => error.fmt(f),
            LoginError::ServerNotProven => {
                f.write_str("the server did not prove that it knows the password")
            }
            LoginError::Unexpected { expected, got } => {
                write!(f, "expected {expected} of the server, got message '{}'", got.escape_ascii())
            }
            LoginError::Wire(error) => error.fmt(f),
        }
    }
}

/// Source: "Message Formats", Authentication messages; `src/include/libpq/protocol.h`.
fn request_name(kind: u32) -> Option<&'static str> {
    match kind {
        2 => Some("Kerberos V5 authentication"),
        4 => Some("crypt authentication"),
        6 => Some("SCM credentials"),
        7 => Some("GSSAPI authentication"),
        9 => Some("SSPI authentication"),
        _ => None,
    }
}

impl std::error::Error for LoginError {}

impl From<WireError> for LoginError {
    fn from(error: WireError) -> Self {
        LoginError::Wire(error)
    }
}

impl From<ScramError> for LoginError {
    fn from(error: ScramError) -> Self {
        LoginError::Scram(error)
    }
}
